/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/recipe.h - the recipe of a run as a file, and the comparison of two recipes. */
#ifndef HR_CHECKPOINT_RECIPE_H
#define HR_CHECKPOINT_RECIPE_H

#include "base/writer.h"
#include "headroom/config.h"

enum { HR_RECIPE_BYTES = (64 << 10) - 128 }; /* the manifest beside it took the rest */

extern const char hr_recipe_name[]; /* "recipe.yaml" */

/* Prints every key with its value in the form that hr_config_read reads. Allocates nothing. */
void hr_recipe_print(const hr_config *config, hr_writer *writer);

/* Bytes that hr_recipe_print writes. Pure. */
int64_t hr_recipe_bytes(const hr_config *config);

/* A key whose value differs between two recipes, and both values. */
typedef struct {
    const char *key;
    char before[HR_VALUE_BYTES], now[HR_VALUE_BYTES];
} hr_recipe_change;

/* Whether a key changes what a run computes or logs, as opposed to file locations or speed. */
bool hr_recipe_matters(const char *key);

/* Finds the next key, from *index on, that matters and differs; false if there is none. Start with
 * *index = 0. */
bool hr_recipe_differs(const hr_config *before, const hr_config *now, int32_t *index,
                       hr_recipe_change *change);

#endif
