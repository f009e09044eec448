/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_ref.c - reference implementation of one row of dropout. */
#include <stdbool.h>

#include "base/element.h"
#include "ops/dropout/dropout_kernels.h"

static void row(const void *x, const void *residual, void *y, int64_t D,
                const hr_random_row *random, uint32_t threshold, float scale, hr_dtype dtype)
{
    hr_random_block block = { 0 };
    for (int64_t c = 0; c < D; c++) {
        if (c % 4 == 0) block = hr_random_block_of(random, (uint32_t)(c / 4));
        const bool keep = block.word[c % 4] >= threshold;
        const double branch = keep ? (double)hr_element_get(x, c, dtype) * scale : 0;
        hr_element_set(y, c, dtype,
                       (float)(branch + (residual ? hr_element_get(residual, c, dtype) : 0)));
    }
}

void hr_dropout_fill_ref(hr_dropout_kernels *kernels)
{
    *kernels = (hr_dropout_kernels){ row };
}
