/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_cpu.c - attention on the CPU, for the planner. */
#include <stdio.h>

#include "base/checked.h"
#include "ops/attention/attention_build.h"
#include "ops/attention/attention_scratch.h"
#include "ops/cpu.h"

static bool supports_width(int32_t width, char cause[HR_CAUSE_BYTES])
{
    snprintf(cause, HR_CAUSE_BYTES, "head_width is %d, at most %d", width, HR_ATTENTION_HEAD_MAX);
    return width <= HR_ATTENTION_HEAD_MAX;
}

static bool supports(const void *attr, char cause[HR_CAUSE_BYTES])
{
    const hr_attention_attr *shape = attr;
    const int32_t block = shape->mask.block;
    if (!supports_width(shape->head_width, cause)) return false;
    if (shape->mask.kind != HR_PATTERN_SELECTED) return true;
    snprintf(cause, HR_CAUSE_BYTES,
             "a selected block has %d keys; a power of 2 from 8 to %d is one", block,
             HR_ATTENTION_BLOCK_MAX);
    return block >= 8 && block <= HR_ATTENTION_BLOCK_MAX && (block & (block - 1)) == 0;
}

static bool supports_cached(const void *attr, char cause[HR_CAUSE_BYTES])
{
    return supports_width(((const hr_attention_cached_attr *)attr)->head_width, cause);
}

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    if (((const hr_attention_attr *)attr)->mask.kind == HR_PATTERN_SELECTED)
        return threads * attention_selected_thread_bytes(attr);
    return threads * attention_thread_bytes(attr, rows);
}

static int64_t scratch_bytes_bwd(const void *attr, int64_t rows, int32_t threads)
{
    return attention_bwd_bytes(attr, rows, threads);
}

static int64_t scratch_bytes_cached(const void *attr, int64_t rows, int32_t threads)
{
    (void)rows;
    return threads * attention_cached_thread_bytes(attr);
}

static int64_t row_quantum(const void *attr)
{
    return ((const hr_attention_attr *)attr)->T;
}

/* Per score, the padding of a head to the 32 elements that the widest kernels multiply at once. */
static int64_t padding_of(int64_t width)
{
    return hr_round_up(width, 32) - width;
}

/* Cost items: scores, each with an exponential; scores that draw a random number for dropout; and
 * the padding of heads. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_attention_attr *shape = (const hr_attention_attr *)step->attr;
    (void)bf16;
    items[0] = hr_attention_scores(shape, rows);
    if (shape->dropout > 0) items[1] = items[0];
    items[2] = items[0] * padding_of(shape->head_width);
}

static void items_cached(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_attention_cached_attr *shape = (const hr_attention_cached_attr *)step->attr;
    (void)bf16;
    items[0] = hr_attention_cached_scores(shape, rows);
    items[2] = items[0] * padding_of(shape->head_width);
}

/* Parts of a sequence are divided too, once there are chunks of it. */
static int64_t chunks(const hr_attention_attr *shape, int64_t rows, int64_t chunk)
{
    return (hr_min(rows, shape->T) + chunk - 1) / chunk;
}

static int64_t pieces(const void *attr, int64_t rows)
{
    const hr_attention_attr *shape = attr;
    const int64_t heads = (rows + shape->T - 1) / shape->T * shape->H;
    if (shape->mask.kind == HR_PATTERN_SELECTED)
        return heads / (shape->H / shape->G) * chunks(shape, rows, attention_selected_tile(shape));
    return attention_is_whole(shape) ? heads : heads * chunks(shape, rows, ATTENTION_LONG_TILE);
}

static int64_t pieces_backward(const void *attr, int64_t rows)
{
    const hr_attention_attr *shape = attr;
    return attention_lanes(shape, rows) * chunks(shape, rows, attention_chunks(shape));
}

static int64_t pieces_cached(const void *attr, int64_t rows)
{
    return rows * ((const hr_attention_cached_attr *)attr)->H;
}

const hr_op_facts hr_attention_cpu = { .dtypes = HR_CPU_FLOATS_IDS | 1u << HR_U16,
                                       .supports = supports,
                                       .row_quantum = row_quantum,
                                       .scratch_bytes = scratch_bytes,
                                       .items = items,
                                       .pieces = pieces };

const hr_op_facts hr_attention_bwd_cpu = { .dtypes = HR_CPU_FLOATS_IDS | 1u << HR_U16,
                                           .supports = supports,
                                           .row_quantum = row_quantum,
                                           .scratch_bytes = scratch_bytes_bwd,
                                           .items = items,
                                           .pieces = pieces_backward };

const hr_op_facts hr_attention_cached_cpu = { .dtypes = HR_CPU_FLOATS_IDS,
                                              .supports = supports_cached,
                                              .scratch_bytes = scratch_bytes_cached,
                                              .items = items_cached,
                                              .pieces = pieces_cached };
