/* SPDX-License-Identifier: Apache-2.0 */
/* base/dtype.h - element types and memory layouts of matrices. */
#ifndef HR_BASE_DTYPE_H
#define HR_BASE_DTYPE_H

#include <stdint.h>

/* F16 are activations and their gradients, or weights in files; F8_E4M3 only the latter
 * (graph/weight_format.h). U8 are the codes of optimizer states (ops/update/moments.h), U16
 * residuals (base/residual.h). */
typedef enum { HR_F32, HR_BF16, HR_F16, HR_F64, HR_I32, HR_F8_E4M3, HR_U8, HR_U16 } hr_dtype;

static inline int64_t hr_dtype_bytes(hr_dtype dtype)
{
    static const int8_t bytes[] = { 4, 2, 2, 8, 4, 1, 1, 2 };
    return bytes[dtype];
}

static inline const char *hr_dtype_name(hr_dtype dtype)
{
    static const char *const names[] = {
        "f32", "bf16", "f16", "f64", "i32", "f8_e4m3", "u8", "u16"
    };
    return names[dtype];
}

/* The dtypes of activations, and their number: tables of kernels are indexed by them. */
enum { HR_ACTIVATIONS = HR_F16 + 1 };

/* The dtypes that products multiply in, and their number: tables of rates are indexed by them. */
typedef enum { HR_COMPUTE_F32 = HR_F32, HR_COMPUTE_BF16 = HR_BF16, HR_COMPUTES } hr_compute;

/* The dtype that products with these activations multiply in, which is that of their weights: f16
 * activations are widened to fp32. */
static inline hr_dtype hr_product_dtype(hr_dtype activations)
{
    return activations == HR_BF16 ? HR_BF16 : HR_F32;
}

/* The element order of a [K, N] matrix.
 *
 * PANEL: panels of 16 columns; a panel is K lines of 16: element (k, n) is at
 *     (n / 16) * K * 16 + k * 16 + n % 16.
 * PANEL_PAIR: the same with two rows interleaved in a line, as vdpbf16ps and the AMX tiles read
 *     bf16: element (k, n) is at ((n / 16) * ceil(K / 2) + k / 2) * 32 + (n % 16) * 2 + k % 2.
 * Columns past N and an odd last row are stored and always hold zeros. Weights, their gradients and
 * their optimizer states share one layout, so that an update is a pass over flat arrays. */
typedef enum { HR_ROWS, HR_PANEL, HR_PANEL_PAIR } hr_layout;

enum { HR_PANEL_WIDTH = 16 };

/* Number of stored elements of a [K, N] matrix, padding included. The caller must check the sizes
 * for overflow first. */
static inline int64_t hr_layout_elements(hr_layout layout, int64_t K, int64_t N)
{
    if (layout == HR_ROWS) return K * N;
    const int64_t lines = layout == HR_PANEL ? K : (K + 1) / 2 * 2;
    return (N + HR_PANEL_WIDTH - 1) / HR_PANEL_WIDTH * HR_PANEL_WIDTH * lines;
}

/* Index of element (k, n) of a [K, N] matrix in memory. */
static inline int64_t hr_layout_index(hr_layout layout, int64_t K, int64_t N, int64_t k, int64_t n)
{
    const int64_t panel = n / HR_PANEL_WIDTH, column = n % HR_PANEL_WIDTH;
    if (layout == HR_ROWS) return k * N + n;
    if (layout == HR_PANEL) return (panel * K + k) * HR_PANEL_WIDTH + column;
    return (panel * ((K + 1) / 2) + k / 2) * 2 * HR_PANEL_WIDTH + column * 2 + k % 2;
}

#endif
