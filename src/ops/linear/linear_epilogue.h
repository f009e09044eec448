/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_epilogue.h - the epilogue of a product, applied while its sums are in L1.
 *
 * The including file selects the vector width: simd/vec_avx2.h or simd/vec_avx512.h. It defines
 * LINEAR_AVX512BF16 if it may use AVX512-BF16. */
#ifndef HR_OPS_LINEAR_LINEAR_EPILOGUE_H
#define HR_OPS_LINEAR_LINEAR_EPILOGUE_H

#include <float.h>
#include <string.h>

#include "base/bf16.h"
#ifdef LINEAR_AVX512BF16
#define ACTIVATION_AVX512BF16
#endif
#include "ops/activation/activation_vec.h"
#include "ops/linear/linear_kernels.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Sums of a tile: row i starts at sums + i * sums_step; at most 32 columns. */
typedef struct {
    int64_t row, rows, n, columns;
    const float *sums;
    int64_t sums_step;
} linear_tile;

/* Computes out from z = a B + bias. Forward, act comes before the residual; backward, act' after
 * the addend. */
ALWAYS_INLINE vec finish_value(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                               vec z, int64_t index, int64_t lanes)
{
    if (!transposed) {
        /* Round as stored, so that recompute gives the same bits. */
        if (act != HR_ACT_NONE) z = hr_as_stored(dtype, z);
        z = hr_activate_vec(dtype, act, z);
    }
    if (mm->residual) z = vec_add(z, vec_load(mm->residual, index, lanes, dtype));
    if (transposed && act != HR_ACT_NONE) {
        const vec aux = vec_load(mm->aux, index, lanes, dtype);
        z = act == HR_ACT_RELU ? vec_zero_below(z, aux, vec_set(FLT_MIN))
                               : vec_mul(z, hr_slope_vec(dtype, act, aux));
    }
    return z;
}

ALWAYS_INLINE void finish_vector(hr_dtype dtype, bool transposed, hr_act act,
                                 const hr_linear_mm *mm, vec z, int64_t row, int64_t n,
                                 int64_t lanes)
{
    const int64_t index = row * mm->N + n;
    if (!transposed && mm->bias) z = vec_add(z, vec_load_f32(mm->bias + n, lanes));
    if (!transposed && mm->pre) hr_store_result(dtype, mm->pre, index, z, lanes);
    z = finish_value(dtype, transposed, act, mm, z, index, lanes);
    hr_store_result(dtype, mm->out, index, z, lanes);
}

ALWAYS_INLINE void finish_rows(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                               const linear_tile *tile)
{
    const float *sums = tile->sums;
    for (int64_t i = 0; i < tile->rows; i++, sums += tile->sums_step) {
        const int64_t row = tile->row + i;
        int64_t j = 0;
        for (; j + VEC_LANES <= tile->columns; j += VEC_LANES)
            finish_vector(dtype, transposed, act, mm, vec_load_f32(sums + j, VEC_LANES), row,
                          tile->n + j, VEC_LANES);
        if (j < tile->columns)
            finish_vector(dtype, transposed, act, mm, vec_load_f32(sums + j, tile->columns - j),
                          row, tile->n + j, tile->columns - j);
    }
}

/* The sums of a product that goes on later (hr_linear_mm.after). */
static inline void keep_sums(const hr_linear_mm *mm, const linear_tile *tile)
{
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy(mm->after + (tile->row + i) * mm->N + tile->n, tile->sums + i * tile->sums_step,
               (size_t)tile->columns * sizeof *mm->after);
}

/* The sums that a product begins with (hr_linear_mm.before). */
static inline void take_sums(const hr_linear_mm *mm, const linear_tile *tile, float *sums)
{
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy(sums + i * tile->sums_step, mm->before + (tile->row + i) * mm->N + tile->n,
               (size_t)tile->columns * sizeof *sums);
}

/* Selects the epilogue of a tile once, outside the inner loops. */
ALWAYS_INLINE void finish_tile(hr_dtype dtype, const hr_linear_mm *mm, const linear_tile *tile)
{
    if (mm->after) {
        keep_sums(mm, tile);
        return;
    }
    if (!mm->transposed) {
        switch (mm->act) {
        case HR_ACT_NONE: finish_rows(dtype, false, HR_ACT_NONE, mm, tile); break;
        case HR_ACT_RELU: finish_rows(dtype, false, HR_ACT_RELU, mm, tile); break;
        case HR_ACT_GELU: finish_rows(dtype, false, HR_ACT_GELU, mm, tile); break;
        case HR_ACT_GELU_TANH: finish_rows(dtype, false, HR_ACT_GELU_TANH, mm, tile); break;
        }
        return;
    }
    switch (mm->aux ? mm->act : HR_ACT_NONE) {
    case HR_ACT_NONE: finish_rows(dtype, true, HR_ACT_NONE, mm, tile); break;
    case HR_ACT_RELU: finish_rows(dtype, true, HR_ACT_RELU, mm, tile); break;
    case HR_ACT_GELU: finish_rows(dtype, true, HR_ACT_GELU, mm, tile); break;
    case HR_ACT_GELU_TANH: finish_rows(dtype, true, HR_ACT_GELU_TANH, mm, tile); break;
    }
}

#endif
