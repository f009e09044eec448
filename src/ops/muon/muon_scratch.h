/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon_scratch.h - the matrices of the iteration. */
#ifndef HR_OPS_MUON_SCRATCH_H
#define HR_OPS_MUON_SCRATCH_H

#include "ops/linear/linear_scratch.h"
#include "ops/muon/muon.h"

enum { HR_MUON_BLOCK = 256 }; /* elements of a block of the update */

static inline hr_dtype hr_muon_dtype(const hr_muon_attr *attr)
{
    return attr->layout == HR_PANEL_PAIR ? HR_BF16 : HR_F32;
}

/* Offsets in bytes, all multiples of 64. `rows` is row-major, `panels` in the layout of weights. */
typedef struct {
    int64_t M, L;    /* X is [M, L], M <= L */
    bool transposed; /* X is the transpose of the weight */
    int64_t sums;    /* double: of the squares of each block of u */
    int64_t rows, panels;
    int64_t gram, gram_panels; /* [M, M] */
    int64_t change;            /* [M, M] row-major: (b A + c A A) / a */
    int64_t product;           /* of the products, for all threads */
    int64_t bytes;
} hr_muon_scratch;

static inline hr_muon_scratch hr_muon_scratch_of(const hr_muon_attr *attr, int32_t threads)
{
    hr_muon_scratch s = { .M = hr_min(attr->K, attr->N),
                          .L = hr_max(attr->K, attr->N),
                          .transposed = attr->K > attr->N };
    const hr_layout layout = (hr_layout)attr->layout;
    const int64_t element = hr_dtype_bytes(hr_muon_dtype(attr));
    const int64_t blocks = (attr->update.elements + HR_MUON_BLOCK - 1) / HR_MUON_BLOCK;
    const int64_t square = hr_round_up(element * s.M * s.M, 64);
    const int64_t reduced = hr_linear_lay_out_mm(s.M, s.L, s.M).bytes;
    const int64_t widened = hr_linear_lay_out_mm(s.M, s.M, s.L).bytes;
    s.rows = hr_round_up(8 * blocks, 64);
    s.panels = s.rows + hr_round_up(element * s.M * s.L, 64);
    s.gram = s.panels + hr_round_up(element * hr_layout_elements(layout, s.M, s.L), 64);
    s.gram_panels = s.gram + square;
    s.change = s.gram_panels + hr_round_up(element * hr_layout_elements(layout, s.M, s.M), 64);
    s.product = s.change + square;
    s.bytes = s.product + threads * hr_max(reduced, widened);
    return s;
}

#endif
