/* SPDX-License-Identifier: Apache-2.0 */
/* model/rules.h - what training does to each parameter, by patterns of names.
 *
 *     train.freeze  patterns of frozen parameters
 *     train.param_groups  groups separated by `;`, each of patterns and of lr=X (a factor of the
 *                   learning rate), decay=X (weight decay, of vectors too) or both; the first group
 *                   with a matching pattern applies
 *
 * Words stand apart by blanks or commas. A pattern is a name with * for any letters, ? for one and
 * [abc] for one of these. */
#ifndef HR_MODEL_RULES_H
#define HR_MODEL_RULES_H

#include "graph/program.h"
#include "headroom/config.h"

/* What trains of a model, for one with fewer layers that stands in for it. */
typedef struct {
    int32_t frozen; /* layers from the first on that no gradient reaches, but for the last layer */
    int32_t frozen_in_proxy; /* as many of them the proxy model has */
    uint64_t layers; /* bit i: parameter i of a layer that is not still trains, in one of them */
    bool alike;      /* in all of them or in none */
} hr_trained;

/* For hr_builder.rule. */
typedef struct {
    const hr_config *config;
    const hr_trained *trained; /* null: names decide in layers, too */
} hr_rules;

hr_param_rule hr_rules_of(const void *rules, int16_t layer, int32_t index, bool vector,
                          const char *name);

/* Errors   USAGE  a group without a pattern, an unknown setting, a number out of range. */
HR_MUST_CHECK hr_status hr_rules_check(const hr_config *config, hr_error *err);

/* Errors   USAGE  a pattern that matches no parameter of the program, nothing left to train. */
HR_MUST_CHECK hr_status hr_rules_check_names(const hr_config *config, const hr_program *program,
                                             hr_error *err);

/* What trains of an assembled program. */
hr_trained hr_trained_of(const hr_program *program, int32_t layers);

#endif
