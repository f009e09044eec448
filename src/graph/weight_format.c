/* SPDX-License-Identifier: Apache-2.0 */
/* graph/weight_format.c - the table of weight formats. */
#include "graph/weight_format.h"

#include "base/assert.h"

static const hr_weight_format formats[] = {
    [HR_WEIGHTS_COMPUTE] = { .name = "compute", .dtype = HR_F32, .trains = true },
    [HR_WEIGHTS_F16] = { .name = "f16", .file_dtype = "F16", .dtype = HR_F16 },
    [HR_WEIGHTS_BF16] = { .name = "bf16", .file_dtype = "BF16", .dtype = HR_BF16 },
    [HR_WEIGHTS_F8_E4M3] = { .name = "f8_e4m3",
                             .file_dtype = "F8_E4M3",
                             .dtype = HR_F8_E4M3,
                             .scale_dtype = HR_F32,
                             .block = { 128, 128 } },
};

_Static_assert(sizeof formats / sizeof *formats == HR_WEIGHTS_AUTO,
               "a row for each value of hr_weights_choice but auto");

const hr_weight_format *hr_weight_format_of(int32_t format)
{
    HR_ASSERT(format >= 0 && format < HR_WEIGHTS_AUTO);
    return &formats[format];
}

void hr_weight_scales_shape(const hr_weight_format *format, int64_t rows, int64_t columns,
                            int64_t shape[2])
{
    const int64_t sides[2] = { rows, columns };
    for (int32_t i = 0; i < 2; i++) {
        const int64_t block = format->block[i];
        shape[i] = block ? sides[i] / block + (sides[i] % block != 0) : 0;
    }
}
