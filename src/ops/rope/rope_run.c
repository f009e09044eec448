/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_run.c - splits rows, or positions of the table, over threads. */
#include <math.h>
#include <string.h>

#include "ops/cpu_run.h"
#include "ops/element.h"
#include "ops/kernels.h"
#include "ops/rope/rope.h"

void hr_rope_run(const hr_call *call)
{
    const hr_rope_attr *attr = call->attr;
    const size_t row_bytes = (size_t)(attr->width * hr_dtype_bytes(call->dtype));
    const float *table = call->in[1];
    const int32_t *start = call->in[2], *begins = call->in[3];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const void *x = hr_element_at(call->in[0], r * attr->width, call->dtype);
        void *y = hr_element_at(call->out[0], r * attr->width, call->dtype);
        if (y != x) memcpy(y, x, row_bytes);
        const int64_t row = call->row_first + r;
        const int64_t position = start ? *start + row : row % attr->T - (begins ? begins[r] : 0);
        call->kernels->rope.rotate(y, table + position * attr->rotary, attr, call->dtype);
    }
}

static double scaled(const hr_rope_scaling *scaling, double frequency)
{
    const double waves = (double)scaling->original * frequency / (2 * M_PI);
    const double stretched = frequency / scaling->factor;
    if (scaling->kind == HR_ROPE_NONE) return frequency;
    if (scaling->kind == HR_ROPE_LINEAR || waves < scaling->low) return stretched;
    if (waves > scaling->high) return frequency;
    const double share = (waves - scaling->low) / (scaling->high - scaling->low);
    return (1 - share) * stretched + share * frequency;
}

void hr_rope_table_run(const hr_call *call)
{
    const hr_rope_attr *attr = call->attr;
    const int64_t rotary = attr->rotary, half = rotary / 2;
    float *table = call->out[0];
    int64_t first, last;
    hr_share(attr->T, call->thread, call->threads, &first, &last);
    for (int64_t e = 0; e < half; e++) {
        const double plain = pow(attr->theta, -2.0 * (double)e / (double)rotary);
        const double frequency = scaled(&attr->scaling, plain);
        for (int64_t position = first; position < last; position++) {
            const double angle = (double)position * frequency;
            table[position * rotary + e] = (float)cos(angle);
            table[position * rotary + half + e] = (float)sin(angle);
        }
    }
}

const hr_op_run hr_rope_cpu_run = { hr_rope_run, 1 };
const hr_op_run hr_rope_table_cpu_run = { hr_rope_table_run, 1 };
