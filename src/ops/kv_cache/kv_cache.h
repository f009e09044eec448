/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache.h - keys and values of the tokens so far, and how new ones join them.
 *
 * A cache is two tensors of activations' type, keys and values, [G * capacity, head_width]: all
 * rows of the first head, then of the second, so that a head is read as one run of bytes. Row j of
 * the sequence is row j mod capacity of each head. A capacity of hr_kv_cache_rows holds what
 * attention_cached needs: all positions, or, where a window slides, a ring of the window and the
 * rows of a call.
 *
 *     cache_clear   cache = 0: nobody reads that; it begins a sequence
 *     cache_append  cache[g][(p + r) mod capacity] = head g of row r, for each row of the call
 *
 * Operands. cache_clear   in  -                        out  key cache w, value cache w
 *           cache_append  in  k r, v R, position w     out  key cache u, value cache u
 *
 *   k, v      [rows, *] activations, keys rotated; v left out: both lie in k. Head g of a row of k
 *             starts at k_offset + g * k_head_stride, and so for v. At most `capacity` rows
 *   position  int32 [1]: p is that of the step's first row, >= 0
 *
 * Cost     memory: rows are read once and written once. */
#ifndef HR_OPS_KV_CACHE_H
#define HR_OPS_KV_CACHE_H

#include "base/checked.h"
#include "ops/call.h"

typedef struct {
    int32_t G, head_width;
    int64_t capacity;
    int64_t k_width, v_width; /* elements of a row of each input tensor */
    int64_t k_offset, v_offset;
    int64_t k_head_stride, v_head_stride;
} hr_kv_cache_attr;

/* A ring's rows come in blocks of so many, as kernels read them. */
enum { HR_KV_CACHE_BLOCK = 32 };

/* Rows of a cache for `positions` tokens, of which a call brings `rows` at most and sees `window`
 * before each, itself included; window 0: all. */
static inline int64_t hr_kv_cache_rows(int64_t positions, int64_t rows, int64_t window)
{
    const int64_t ring = hr_round_up(window + rows - 1, HR_KV_CACHE_BLOCK);
    return window == 0 || ring > positions ? positions : ring;
}

hr_run_fn hr_cache_clear_run;
hr_run_fn hr_cache_append_run;

#endif
