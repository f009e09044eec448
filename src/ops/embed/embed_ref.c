/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_ref.c - reference implementation of the embedding rows. */
#include "base/element.h"
#include "ops/embed/embed_kernels.h"

static void fwd(const float *word, const float *position, void *y, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        hr_element_set(y, i, dtype, word[i] + (position ? position[i] : 0));
}

static void bwd(float *sum, const void *dy, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) sum[i] += hr_element_get(dy, i, dtype);
}

void hr_embed_fill_ref(hr_embed_kernels *kernels)
{
    *kernels = (hr_embed_kernels){ fwd, bwd };
}
