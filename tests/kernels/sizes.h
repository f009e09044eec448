/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kernels/sizes.h - what the cases of all operations share: sizes, the place of a kernel, and
 * common error bounds. */
#ifndef HR_TESTS_KERNELS_SIZES_H
#define HR_TESTS_KERNELS_SIZES_H

#include "kernels/harness.h"

/* `rows` tokens; `a` and `b` are usually widths, as each operation documents. */
typedef struct {
    int64_t rows, a, b;
} kernel_sizes;

typedef struct {
    const char *name;
    void (*make)(kernel_case *c, kernel_sizes sizes, int32_t option);
    int32_t option;
    kernel_sizes timed;
    bool fp32_only; /* no activations */
} kernel_entry;

#define KERNEL_AT(field) ((int64_t)offsetof(hr_kernels, field))
#define KERNEL_LINEAR(c, field) \
    (KERNEL_AT(linear.of) + (int64_t)sizeof(hr_linear_typed) * (c)->call.dtype + \
     (int64_t)offsetof(hr_linear_typed, field))
#define KERNEL_TYPED(c, field) (KERNEL_AT(field) + (int64_t)sizeof(void *) * (c)->call.dtype)

/* One rounding to the dtype, after fp32 arithmetic on numbers of magnitude `size`. */
static inline kernel_bound kernel_rounded(hr_dtype dtype, double size)
{
    const double tolerance = dtype == HR_BF16 ? 1.0 / 128 : dtype == HR_F16 ? 1.0 / 1024 : 4e-6;
    return (kernel_bound){ .tolerance = tolerance, .size = size };
}

static const kernel_bound kernel_same_bits = { .tolerance = 0 };

#endif
