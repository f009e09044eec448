/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm_scratch.h - blocks of tokens, pieces of their rows, and scratch. */
#ifndef HR_OPS_PRODUCT_NORM_SCRATCH_H
#define HR_OPS_PRODUCT_NORM_SCRATCH_H

#include "ops/linear/linear_scratch.h"
#include "ops/product_norm/product_norm.h"

enum {
    HR_PRODUCT_NORM_BLOCK = 512, /* tokens */
    HR_PRODUCT_NORM_PIECE = 2048 /* elements of a row: a product reads a piece at a time */
};

static inline int64_t hr_product_norm_blocks(int64_t rows)
{
    return (rows + HR_PRODUCT_NORM_BLOCK - 1) / HR_PRODUCT_NORM_BLOCK;
}

/* Tokens of a block. */
static inline int64_t hr_product_norm_tokens(int64_t rows, int64_t block)
{
    return hr_min(HR_PRODUCT_NORM_BLOCK, rows - block * HR_PRODUCT_NORM_BLOCK);
}

static inline int64_t hr_product_norm_pieces(int64_t width)
{
    return (width + HR_PRODUCT_NORM_PIECE - 1) / HR_PRODUCT_NORM_PIECE;
}

/* Offsets in bytes, all multiples of 64. The first two are a piece of a block of tokens. */
typedef struct {
    int64_t rows, panels;
    int64_t sums[2]; /* float [block, block]: dot products of x, and of dy */
    int64_t parts;   /* double [block]: of each token */
    int64_t product; /* of the products, for all threads */
    int64_t bytes;
} hr_product_norm_scratch;

static inline hr_product_norm_scratch hr_product_norm_scratch_of(const hr_product_norm_attr *attr,
                                                                 int32_t threads)
{
    const int64_t tokens = hr_min(attr->rows, HR_PRODUCT_NORM_BLOCK);
    const int64_t width = hr_min(hr_max(attr->K, attr->N), HR_PRODUCT_NORM_PIECE);
    hr_product_norm_scratch s = { 0 };
    s.panels = s.rows + hr_round_up(4 * tokens * width, 64);
    s.sums[0] = s.panels + hr_round_up(4 * hr_layout_elements(HR_PANEL_PAIR, tokens, width), 64);
    s.sums[1] = s.sums[0] + hr_round_up(4 * tokens * tokens, 64);
    s.parts = s.sums[1] + hr_round_up(4 * tokens * tokens, 64);
    s.product = s.parts + hr_round_up(8 * tokens, 64);
    s.bytes = s.product + threads * hr_linear_lay_out_mm(tokens, width, tokens).bytes;
    return s;
}

#endif
