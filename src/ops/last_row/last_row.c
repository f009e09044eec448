/* SPDX-License-Identifier: Apache-2.0 */
/* ops/last_row/last_row.c - builder function and properties of last_row. */
#include "ops/last_row/last_row.h"

#include "ops/last_row/last_row_build.h"
#include "ops/list.h"

int32_t hr_build_last_row(hr_builder *builder, const char *name, int32_t x)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_last_row_attr attr = { builder->program->tensors[x].dims[1] };
    builder->rows = 1;
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.D);
    hr_step *step = hr_build_step(builder, HR_OP_last_row, &attr, sizeof attr);
    step->in[0] = x;
    step->out[0] = y;
    return y;
}

const hr_op hr_last_row_op = { .name = "last_row", .in = "r", .out = "w" };
