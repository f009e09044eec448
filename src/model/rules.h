/* SPDX-License-Identifier: Apache-2.0 */
/* model/rules.h - training rules of each parameter, selected by name patterns.
 *
 *     train.freeze  patterns of frozen parameters
 *     train.param_groups  groups separated by `;`, each of patterns and of lr=X (a factor of the
 *                   learning rate), decay=X (weight decay, of vectors too) or both; the first group
 *                   with a matching pattern applies
 *
 * Words are separated by blanks or commas. In a pattern, * matches any letters, ? matches one and
 * [abc] one of these. */
#ifndef HR_MODEL_RULES_H
#define HR_MODEL_RULES_H

#include "config/config.h"
#include "graph/program.h"

/* What a model trains, for a proxy model with fewer layers. */
typedef struct {
    int32_t frozen;          /* leading layers that no gradient reaches, without the last layer */
    int32_t frozen_in_proxy; /* the number of them in the proxy model */
    int64_t frozen_bytes;    /* in these layers, of what lives through the run */
    uint64_t layers;         /* bit i: parameter i is trained in one of the layers after these */
    uint64_t rests;          /* bit i: parameter i rests in one of them (hr_param_rule) */
    int32_t ranks[64];       /* the largest rank of an adapter of parameter i in these layers */
    bool uniform;            /* all such layers train the same parameters */
    int64_t count;           /* of trained parameters; 0: all train */
} hr_trained;

/* For hr_builder.rule and hr_builder.adapter. */
typedef struct {
    const hr_config *config;
    const hr_trained *trained; /* null: name patterns apply in layers, too */
} hr_rules;

hr_param_rule hr_rules_of(const void *rules, int16_t layer, int32_t index, bool vector,
                          bool adapter, const char *name);
hr_adapter_rule hr_rules_adapter(const void *rules, int32_t which, int16_t layer, int32_t index,
                                 const char *name);

/* Steps of the stages before that of the config which do not train a parameter. Pure. */
int64_t hr_rules_missed(const hr_config *config, const char *name);

/* Checks the syntax of the keys that name parameters or modules.
 *
 * Errors   USAGE  a group without a pattern, an unknown setting, a number out of range. */
HR_MUST_CHECK hr_status hr_rules_check(const hr_config *config, hr_error *err);

/* Checks the patterns against the parameters.
 *
 * Errors   USAGE  a pattern that matches no parameter of the program, nothing left to train. */
HR_MUST_CHECK hr_status hr_rules_check_names(const hr_config *config, const hr_program *program,
                                             hr_error *err);

/* Whether a tensor lives through the run, in the arena, and belongs to one of the layers
 * [first, end). */
static inline bool hr_is_kept_in(const hr_program *program, int32_t tensor, int32_t first,
                                 int32_t end)
{
    const hr_tensor *of = &program->tensors[tensor];
    return of->home == HR_NONE && of->view_of == HR_NONE && of->layer != HR_NONE &&
           of->layer >= first && of->layer < end && !hr_tensor_is_away(program, tensor);
}

/* Derives what an assembled program trains. */
hr_trained hr_trained_of(const hr_program *program, int32_t layers);

#endif
