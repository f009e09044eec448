/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_kernels.h - inner loop of distances: one row with a counted label. */
#ifndef HR_OPS_MATCH_KERNELS_H
#define HR_OPS_MATCH_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/match/match.h"

/* Returns the error of a row. Writes its gradient times `scale`, unless dy is null; dy may be
 * exactly y or t. */
typedef double hr_match_row_fn(const void *y, const void *t, void *dy, int64_t D, int32_t measure,
                               double scale, hr_dtype dtype);

typedef struct {
    hr_match_row_fn *row;
} hr_match_kernels;

/* One function per instruction set, each in its own file. */
void hr_match_fill_ref(hr_match_kernels *kernels);
void hr_match_fill_avx2(hr_match_kernels *kernels);
void hr_match_fill_avx512(hr_match_kernels *kernels);

#endif
