/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache.h - clears a KV cache and appends keys and values to it.
 *
 * A cache is two tensors, keys and values, with the dtype of activations, [G * capacity,
 * head_width]. The rows of one head are contiguous. Row j of the sequence is row j mod capacity of
 * each head. hr_kv_cache_rows computes the capacity that attention_cached needs: all positions or,
 * with a sliding window, a ring buffer for the window and the rows of a call.
 *
 *     cache_clear   cache = 0, at the start of a sequence; the zeros are never read as values
 *     cache_append  cache[g][(p + r) mod capacity] = head g of row r, for each row of the call
 *
 * Operands. cache_clear   in  -                        out  key cache w, value cache W
 *           cache_append  in  k r, v R, position w     out  key cache u, value cache u
 *
 *   k, v      [rows, *] activations, keys after RoPE; v omitted: k holds both. Head g of a row of k
 *             starts at k_offset + g * k_head_stride; the same for v. At most `capacity` rows
 *   position  int32 [1]: position p of the first row, >= 0
 *
 * Cost     memory-bound: each row is read and written once. */
#ifndef HR_OPS_KV_CACHE_H
#define HR_OPS_KV_CACHE_H

#include "base/checked.h"
#include "ops/call.h"

typedef struct {
    int32_t G, head_width;
    int64_t capacity;
    int64_t k_width, v_width; /* row widths of the input tensors, in elements */
    int64_t k_offset, v_offset;
    int64_t k_head_stride, v_head_stride;
} hr_kv_cache_attr;

/* Kernels read the rows of a ring buffer in blocks of this size. */
enum { HR_KV_CACHE_BLOCK = 32 };

/* Capacity of a cache for `positions` tokens, if a call has at most `rows` rows and each row
 * attends to `window` tokens including itself; window 0: all. */
static inline int64_t hr_kv_cache_rows(int64_t positions, int64_t rows, int64_t window)
{
    const int64_t ring = hr_round_up(window + rows - 1, HR_KV_CACHE_BLOCK);
    return window == 0 || ring > positions ? positions : ring;
}

hr_run_fn hr_cache_clear_run;
hr_run_fn hr_cache_append_run;

#endif
