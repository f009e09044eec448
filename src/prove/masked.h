/* SPDX-License-Identifier: Apache-2.0 */
/* prove/masked.h - a device that computes attention as the textbook has it: every score, -Inf where
 * the recipe masks it, softmax, all in double. Everything else runs on the device of the run.
 *
 * It shares no code with the kernels: neither the mask, which it takes from the recipe, nor the
 * derivative, which it sums column by column from the scores. */
#ifndef HR_PROVE_MASKED_H
#define HR_PROVE_MASKED_H

#include "config/config.h"
#include "dev/device.h"
#include "dev/pool.h"

typedef struct {
    hr_device device; /* first */
    const hr_device *inner;
    hr_pool *pool;
    const hr_config *config;
    bool selects_all;
} hr_masked_device;

/* Places the device in front of another. The recipe has no dropout and joined documents.
 *
 *   selects_all  queries see all keys up to their own where the operation has selected blocks */
const hr_device *hr_masked_device_open(hr_masked_device *masked, const hr_config *config,
                                       bool selects_all, const hr_device *inner, hr_pool *pool);

/* Whether a query sees a key that is not after it, in a layer of this recipe. */
bool hr_masked_sees(const hr_config *config, int64_t layer, int64_t query, int64_t key);

/* Multiplications of a training step: each pair of a query and a key before it, masked or not. */
double hr_masked_products(const hr_config *config);

#endif
