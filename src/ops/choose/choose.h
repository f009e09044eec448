/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose.h - chooses the blocks of keys that the heads of a group attend to, from their
 * attention to compressed keys. No gradient flows through the choice.
 *
 *     p[t,h,n] = softmax over the compressed keys n that query t sees of scale q[t,h].kc[n]
 *     score[t,j] = sum over heads h of the group, m < block / stride, n < length / stride of
 *                  p[t, h, block / stride j + m - n], 0 outside of the compressed keys
 *
 * A query t may have the blocks j with block j <= t. It has the first `first` of them, the last
 * `local`, and the rest up to `count` by score, the lower number first if two are equal.
 *
 * Operands. choose  in  q r, kc s, lse R, position W      out  blocks r
 *
 *   q       [rows, q_width] activations; head h starts at q_offset + h q_head_stride
 *   kc      [rows, k_width]: compressed keys (ops/compress/compress.h)
 *   lse     fp32 [rows, H]: of the attention to kc; without it it is computed
 *   blocks  uint16 [rows, G count]: ascending, then HR_ATTENTION_NO_BLOCK
 *
 * Instead of whole sequences, a call may have the rows of a part of one, and kc of all of it. With
 * `position`, int32 [1], that of its first row, these are any rows, and kc is a cache.
 *
 * Repeat   the same blocks for any number of threads, and for any split of the rows.
 * Cost     2 head_width FLOP for each head, query and compressed key that it sees; twice without
 *          lse. Scores of a few queries exist at a time.
 * Source   Yuan et al. 2025, arXiv:2502.11089, eq. 8 to 11. */
#ifndef HR_OPS_CHOOSE_H
#define HR_OPS_CHOOSE_H

#include "ops/attention/attention.h"

enum { HR_CHOOSE_COUNT_MOST = 256 };

typedef struct {
    int32_t H, G, head_width;
    int64_t T;
    int64_t q_width, q_offset, q_head_stride, k_width;
    int32_t length, stride;      /* of compressed keys, in tokens */
    int32_t block;               /* in tokens, a multiple of the stride */
    int32_t count, first, local; /* blocks; first + local <= count */
    float scale;
} hr_choose_attr;

/* The mask of the compressed keys. */
static inline hr_attention_mask hr_choose_mask(const hr_choose_attr *attr)
{
    return (hr_attention_mask){ HR_PATTERN_COMPRESSED, 1, attr->length, attr->stride };
}

hr_run_fn hr_choose_run;

#endif
