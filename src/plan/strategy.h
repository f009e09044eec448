/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy.h - the choices that change bytes and time, and never the mathematics.
 *
 * A plain struct with one canonical form: a cut that is not smaller than the cut around it is 0,
 * as is one of what a layer does not have, which is not dropped either, nor what shares a buffer
 * with something kept (model/layer_schema.h). */
#ifndef HR_PLAN_STRATEGY_H
#define HR_PLAN_STRATEGY_H

#include <stdint.h>

#include "graph/program.h"
#include "headroom/config.h"

typedef struct {
    int64_t micro_batch;    /* sequences a turn; 0: the whole batch at once */
    int64_t loss_chunk;     /* tokens of logits that exist at a time; 0: a whole micro-batch */
    int64_t mlp_tile;       /* tokens that pass an MLP at a time; 0: a whole micro-batch */
    int64_t attention_tile; /* sequences that pass attention at a time; 0: a whole micro-batch */
    bool dw_first;          /* the gradient of a weight before that of its product's input */
    bool consume;           /* an update takes its gradient at once: plan/consume.h */
    bool reorder;           /* steps move around the peak, outside the certified space:
                               plan/reorder.h */
    int32_t layer_count;
    hr_intermediates
        *recompute_set; /* [layer_count] what of the layer is computed again: closed sets */
} hr_strategy;

/* The strategy a recipe asks for, with `micro_batch` sequences. Canonical.
 *
 *   dropped  out [n_layers], the caller's: the same set for every layer */
hr_strategy hr_strategy_of(const hr_config *config, int64_t micro_batch,
                           hr_intermediates *recompute_set);

/* Brings a strategy into its canonical form: of all that give one program the one with the most
 * zeros. */
void hr_strategy_canonical(const hr_config *config, hr_strategy *strategy);

/* Legal for a recipe: its layers, a divisor of its batch, tiles that keep every bit (multiples of
 * 64 tokens where a sequence is one, else whole sequences), gradients consumed only where the whole
 * batch goes at once.
 * Errors   USAGE  one sentence. */
HR_MUST_CHECK hr_status hr_strategy_check(const hr_config *config, const hr_strategy *strategy,
                                          hr_error *err);

/* Applies it to a program built at full batch: order, clones, cuts, updates, then numbers the loops
 * in their order. The strategy must be canonical and pass the check.
 * Errors   FAILURE  the program has no room for clones, loops or views. */
HR_MUST_CHECK hr_status hr_strategy_apply(const hr_strategy *strategy, int64_t T,
                                          hr_program *program, hr_region *scratch, hr_error *err);

#endif
