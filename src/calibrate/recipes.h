/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/recipes.h - the recipes that calibration runs, and those that a check runs.
 *
 * They have one or two layers: more layers call the same operations. Their shapes vary every
 * quantity that a price depends on, and cover every operation in each dtype. */
#ifndef HR_CALIBRATE_RECIPES_H
#define HR_CALIBRATE_RECIPES_H

#include "headroom/config.h"

typedef struct {
    int32_t family, format, optimizer, recompute; /* values of config.h */
    int64_t d_model, n_layers, n_heads, d_ff, vocab_size, seq_len, batch, micro_batch;
    double dropout;
    int64_t n_kv_heads;     /* grouped-query attention; else 0 */
    int64_t sliding_window; /* tokens; 0: off */
    int32_t weights;        /* hr_weights_choice of the weights of the MLP, which are then frozen */
} hr_recipe;

/* Returns recipe `index` of the calibration; null past the end. The first HR_RECIPES_REQUIRED
 * recipes cover every operation in both dtypes. */
enum { HR_RECIPES_REQUIRED = 18, HR_RECIPES_MAX = 64 };
const hr_recipe *hr_recipe_of_calibration(int32_t index);

/* Returns the recipe of the speed probe: a fixed small step that measures the current machine
 * speed, with or without a matrix unit. */
const hr_recipe *hr_recipe_of_speed_probe(bool matrix_unit);

/* Returns recipe `index` of a check; null past the end.
 *   unseen  out: the shapes of the recipe occur in no calibration recipe; every other recipe */
const hr_recipe *hr_recipe_of_check(int32_t index, bool *unseen);

/* Writes the config of a recipe; keys that the recipe does not have get their defaults. */
void hr_recipe_config(const hr_recipe *recipe, hr_config *config);

#endif
