/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_cpu.c - compression on the CPU, for the planner. */
#include <stdio.h>

#include "ops/compress/compress_scratch.h"
#include "ops/cpu.h"

static int64_t row_quantum(const void *attr)
{
    return ((const hr_compress_attr *)attr)->T;
}

/* A chunk of rows has more than the overlap of groups. */
static bool supports(const void *of, char cause[HR_CAUSE_BYTES])
{
    const hr_compress_attr *attr = of;
    const int64_t overlap = (attr->length + attr->stride - 1) / attr->stride;
    snprintf(cause, HR_CAUSE_BYTES, "%d heads of keys times %lld overlapping groups, at most %d",
             attr->G, (long long)overlap, COMPRESS_ROWS / 2);
    return attr->G * overlap <= COMPRESS_ROWS / 2;
}

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    const compress_layout l = compress_lay_out(attr, rows, false);
    return l.call_bytes + threads * l.thread_bytes;
}

static int64_t scratch_bytes_bwd(const void *attr, int64_t rows, int32_t threads)
{
    const compress_layout l = compress_lay_out(attr, rows, true);
    return l.call_bytes + threads * l.thread_bytes;
}

/* Cost items: values that are gathered. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_compress_attr *attr = (const hr_compress_attr *)step->attr;
    (void)bf16;
    items[0] = compress_rows(attr, rows) * attr->length * attr->head_width;
}

static int64_t pieces(const void *attr, int64_t rows)
{
    return (compress_rows(attr, rows) + COMPRESS_ROWS - 1) / COMPRESS_ROWS;
}

const hr_op_facts hr_compress_cpu = { .dtypes = HR_CPU_FLOATS,
                                      .supports = supports,
                                      .row_quantum = row_quantum,
                                      .scratch_bytes = scratch_bytes,
                                      .items = items,
                                      .pieces = pieces };

/* Of rows that complete one group each `stride`. */
static void items_cached(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_compress_attr *attr = (const hr_compress_attr *)step->attr;
    (void)bf16;
    items[0] = attr->G * (rows / attr->stride + 1) * attr->length * attr->head_width;
}

const hr_op_facts hr_compress_cached_cpu = { .dtypes = HR_CPU_FLOATS_IDS,
                                             .supports = supports,
                                             .scratch_bytes = scratch_bytes,
                                             .items = items_cached };

const hr_op_facts hr_compress_bwd_cpu = { .dtypes = HR_CPU_FLOATS,
                                          .supports = supports,
                                          .row_quantum = row_quantum,
                                          .scratch_bytes = scratch_bytes_bwd,
                                          .items = items,
                                          .pieces = pieces };
