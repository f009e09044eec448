/* SPDX-License-Identifier: Apache-2.0 */
/* ops/last_row/last_row_run.c - one copy, by the first thread. */
#include <string.h>

#include "ops/cpu_run.h"
#include "ops/last_row/last_row.h"

void hr_last_row_run(const hr_call *call)
{
    const hr_last_row_attr *attr = call->attr;
    const int64_t row_bytes = attr->D * hr_dtype_bytes(call->dtype);
    if (call->thread != 0 || call->rows < 1) return;
    memcpy(call->out[0], (const char *)call->in[0] + (call->rows - 1) * row_bytes,
           (size_t)row_bytes);
}

const hr_op_run hr_last_row_cpu_run = { hr_last_row_run, 1 };
