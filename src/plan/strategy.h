/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy.h - the choices that change memory and time but not the results.
 *
 * A plain struct with one canonical form. In it, a tile that is not smaller than its enclosing tile
 * is 0, and so is a tile for a part that the layer does not have. Absent values, and values that
 * share a buffer with a saved one, are not in a recompute set (model/layer_schema.h). */
#ifndef HR_PLAN_STRATEGY_H
#define HR_PLAN_STRATEGY_H

#include <stdint.h>

#include "config/config.h"
#include "graph/program.h"

typedef struct {
    int64_t micro_batch; /* sequences per iteration; 0: the whole batch */
    int64_t loss_chunk;  /* tokens whose logits exist at a time; 0: a whole micro-batch */
    int64_t mlp_tile;    /* tokens that an MLP processes at a time; 0: a whole micro-batch */
    /* tokens that attention processes at a time: whole sequences, or a part of one; 0: a whole
     * micro-batch */
    int64_t attention_tile;
    bool dw_first; /* the gradient of a weight before that of the product's input */
    bool consume;  /* gradient release: plan/consume.h */
    bool late;     /* no transfer is early, and no wait late: plan/prefetch.h, plan/spill.h */
    bool reorder;  /* move steps around the peak, outside of the searched space: plan/reorder.h */
    int32_t layer_count;
    hr_intermediates
        *recompute_set; /* [layer_count] values that each layer does not keep: closed sets. They are
                         * recomputed, an HR_INTERMEDIATE_INPUT is read from the file */
} hr_strategy;

/* Cuts at multiples of so many tokens leave all results bit-identical, in micro-batches of
 * `sequences` sequences of T tokens. Sums over tokens have groups of 64, counted from the start of
 * each sequence (docs/numerics.md): 64 if T is a multiple of it or the micro-batch is one sequence,
 * else T. Pure. */
int64_t hr_strategy_unit(int64_t T, int64_t sequences);

/* Tiles of attention in a micro-batch of one sequence may be multiples of so many tokens; 0: they
 * are of whole sequences only, in this family or with more sequences. Pure. */
int64_t hr_strategy_part(const hr_config *config, int64_t sequences);

/* The strategy of a recipe, with micro-batches of `micro_batch` sequences. Canonical.
 *
 *   recompute_set  out [n_layers], the caller's memory: the same set for every layer */
hr_strategy hr_strategy_of(const hr_config *config, int64_t micro_batch,
                           hr_intermediates *recompute_set);

/* Brings a strategy into its canonical form: the one with the most zeros among those that give the
 * same program. */
void hr_strategy_canonical(const hr_config *config, hr_strategy *strategy);

/* Checks that a strategy is legal for a recipe: its layer count, a micro-batch that divides the
 * batch, tiles that keep results bit-identical (hr_strategy_unit), and gradient release only
 * without micro-batches.
 *
 * Errors   USAGE  one sentence. */
HR_MUST_CHECK hr_status hr_strategy_check(const hr_config *config, const hr_strategy *strategy,
                                          hr_error *err);

/* Applies a strategy to a program built at full batch: orders, recomputes, dequantizes, tiles,
 * releases gradients, spills, then sorts the loops. The strategy must be canonical and pass the
 * check.
 *
 * Errors   FAILURE  the program has no room for clones, loops or views. */
HR_MUST_CHECK hr_status hr_strategy_apply(const hr_strategy *strategy, int64_t T,
                                          hr_program *program, hr_region *scratch, hr_error *err);

#endif
