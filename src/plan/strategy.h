/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy.h - the choices that change bytes and time, and never the mathematics.
 *
 * A plain struct with one canonical form: a cut that is not smaller than the cut around it is 0. */
#ifndef HR_PLAN_STRATEGY_H
#define HR_PLAN_STRATEGY_H

#include <stdint.h>

#include "graph/program.h"
#include "headroom/config.h"

typedef struct {
    int64_t micro_batch; /* sequences a turn; 0: the whole batch at once */
    int64_t loss_chunk;  /* tokens of logits that exist at a time; 0: a whole micro-batch */
    uint32_t dropped;    /* bit i: intermediates i of layers are computed again, not kept */
} hr_strategy;

/* The strategy a recipe asks for, with `micro_batch` sequences. */
hr_strategy hr_strategy_of(const hr_config *config, int64_t micro_batch);

/* Applies it to a program built at full batch: clones, cuts, then numbers the loops in their order.
 * Errors   FAILURE  the program has no room for the views. */
HR_MUST_CHECK hr_status hr_strategy_apply(const hr_strategy *strategy, int64_t T,
                                          hr_program *program, hr_region *scratch, hr_error *err);

#endif
