/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache_run.c - clears and copies cache rows; threads share the rows. */
#include <string.h>

#include "base/assert.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kv_cache/kv_cache.h"

void hr_cache_clear_run(const hr_call *call)
{
    const hr_kv_cache_attr *attr = call->attr;
    int64_t first, last;
    hr_share(attr->G * attr->capacity * attr->head_width, call->thread, call->threads, &first,
             &last);
    const size_t bytes = (size_t)((last - first) * hr_dtype_bytes(call->dtype));
    for (int k = 0; k < 2 && call->out[k]; k++)
        memset(hr_element_at(call->out[k], first, call->dtype), 0, bytes);
}

/* Copies the heads of one row to row `at` of each head of the cache. */
static void put_row(const hr_call *call, const void *row, int64_t offset, int64_t stride,
                    void *cache, int64_t at)
{
    const hr_kv_cache_attr *attr = call->attr;
    const size_t bytes = (size_t)(attr->head_width * hr_dtype_bytes(call->dtype));
    for (int64_t g = 0; g < attr->G; g++)
        memcpy(hr_element_at(cache, (g * attr->capacity + at) * attr->head_width, call->dtype),
               hr_element_at((void *)row, offset + g * stride, call->dtype), bytes);
}

void hr_cache_append_run(const hr_call *call)
{
    const hr_kv_cache_attr *attr = call->attr;
    const int64_t position = *(const int32_t *)call->in[2] + call->row_first;
    void *v = call->in[1] ? call->in[1] : call->in[0];
    int64_t first, last;
    HR_ASSERT(position >= 0 && call->rows <= attr->capacity);
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const int64_t at = (position + r) % attr->capacity;
        put_row(call, hr_element_at(call->in[0], r * attr->k_width, call->dtype), attr->k_offset,
                attr->k_head_stride, call->out[0], at);
        put_row(call, hr_element_at(v, r * attr->v_width, call->dtype), attr->v_offset,
                attr->v_head_stride, call->out[1], at);
    }
}

const hr_op_run hr_cache_clear_cpu_run = { hr_cache_clear_run, 1 };
const hr_op_run hr_cache_append_cpu_run = { hr_cache_append_run, 1 };
