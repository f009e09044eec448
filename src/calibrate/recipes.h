/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/recipes.h - what is run to learn prices, and what is run to test them.
 *
 * Of one or two layers: a third would say nothing new. The shapes differ in everything a price
 * depends on, and each type sees each operation. */
#ifndef HR_CALIBRATE_RECIPES_H
#define HR_CALIBRATE_RECIPES_H

#include "headroom/config.h"

typedef struct {
    int32_t family, format, optimizer, recompute; /* of config.h */
    int64_t d_model, n_layers, n_heads, d_ff, vocab_size, seq_len, batch, micro_batch;
    double dropout;
    int64_t n_kv_heads;     /* where heads share keys; else 0 */
    int64_t sliding_window; /* tokens; 0: none */
} hr_recipe;

/* Row `index` of what calibration runs, null past its end. The first HR_RECIPES_FIRST run every
 * operation, in both types, that any of them runs. */
enum { HR_RECIPES_FIRST = 16, HR_RECIPES_LEARNED_MOST = 64 };
const hr_recipe *hr_recipe_learned(int32_t index);

/* The fixed small step that tells how fast the machine is at the moment, with a matrix unit or
 * without. */
const hr_recipe *hr_recipe_pace(bool matrix_unit);

/* Row `index` of what a check runs: every other one has shapes that no calibration runs. Null past
 * its end. */
const hr_recipe *hr_recipe_tested(int32_t index, bool *unseen);

/* The config of a recipe, everything else at its default. */
void hr_recipe_config(const hr_recipe *recipe, hr_config *config);

#endif
