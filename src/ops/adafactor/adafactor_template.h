/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_template.h - Adafactor's passes over a strip, over the vectors of
 * ops/simd. A strip is one or two vectors wide; its columns stay in registers while its lines pass,
 * and three passes read the gradient. Bound by memory, less than one pass is: 16 M parameters with
 * the bf16 copy, two threads of a shared EPYC, 2026-11: 16 GB/s, 43 % of read-modify-write. */
#include <stddef.h>

#include "ops/adafactor/adafactor_kernels.h"
#include "ops/simd/unroll.h"

enum { LANES = HR_ADAFACTOR_LANES, PARTS = LANES / VEC_LANES };

/* Stored lanes of vector `part` of a strip. */
VEC_INLINE int64_t lanes_of(int64_t lanes, int part)
{
    const int64_t left = lanes - part * VEC_LANES;
    return left < 0 ? 0 : left > VEC_LANES ? VEC_LANES : left;
}

VEC_INLINE void squares_of(const float *gradient, hr_adafactor_strip strip, int64_t lanes,
                           float scale, float *of_lines, float *of_strip)
{
    vec sums[PARTS];
    UNROLL for (int p = 0; p < PARTS; p++)
        sums[p] = vec_load_f32(of_strip + p * VEC_LANES, VEC_LANES);
    for (int64_t i = 0; i < strip.lines; i++) UNROLL for (int p = 0; p < PARTS; p++)
        {
            float *line = of_lines + i * LANES + p * VEC_LANES;
            const float *at = gradient + i * strip.stride + p * VEC_LANES;
            const vec g = vec_mul(vec_set(scale), vec_load_f32(at, lanes_of(lanes, p)));
            vec_store_f32(line, vec_fma(g, g, vec_load_f32(line, VEC_LANES)), VEC_LANES);
            sums[p] = vec_fma(g, g, sums[p]);
        }
    UNROLL for (int p = 0; p < PARTS; p++)
        vec_store_f32(of_strip + p * VEC_LANES, sums[p], VEC_LANES);
}

static void squares(const float *gradient, hr_adafactor_strip strip, float scale, float *of_lines,
                    float *of_strip)
{
    if (strip.lanes == LANES) squares_of(gradient, strip, LANES, scale, of_lines, of_strip);
    else squares_of(gradient, strip, strip.lanes, scale, of_lines, of_strip);
}

VEC_INLINE double measure_of(const float *gradient, hr_adafactor_strip strip, int64_t lanes,
                             const float *rows, const float *columns)
{
    vec moved[PARTS], column[PARTS];
    double sum = 0;
    UNROLL for (int p = 0; p < PARTS; p++)
    {
        moved[p] = vec_set(0);
        column[p] = vec_load_f32(columns + p * VEC_LANES, VEC_LANES);
    }
    for (int64_t i = 0; i < strip.lines; i++) {
        const vec row = vec_set_pair(rows + 2 * i);
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            const float *at = gradient + i * strip.stride + p * VEC_LANES;
            const vec g = vec_load_f32(at, lanes_of(lanes, p));
            const vec u = vec_mul(vec_mul(g, column[p]), row);
            moved[p] = vec_fma(u, u, moved[p]);
        }
    }
    UNROLL for (int p = 0; p < PARTS; p++) sum += (double)vec_reduce_add(moved[p]);
    return sum;
}

static double measure(const float *gradient, hr_adafactor_strip strip, const float *rows,
                      const float *columns)
{
    return measure_of(gradient, strip, strip.lanes == LANES ? LANES : strip.lanes, rows, columns);
}

VEC_INLINE void apply_of(const float *gradient, float *master, float *m, hr_bf16 *weight,
                         hr_adafactor_strip strip, int64_t lanes, const float *rows,
                         const float *columns, const hr_adafactor_factors *f)
{
    vec column[PARTS];
    UNROLL for (int p = 0; p < PARTS; p++)
        column[p] = vec_load_f32(columns + p * VEC_LANES, VEC_LANES);
    for (int64_t i = 0; i < strip.lines; i++) {
        const vec row = vec_set_pair(rows + 2 * i);
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            const int64_t at = i * strip.stride + p * VEC_LANES, some = lanes_of(lanes, p);
            const vec g = vec_mul(vec_mul(vec_load_f32(gradient + at, some), column[p]), row);
            const vec w = vec_load_f32(master + at, some);
            vec u = vec_mul(vec_set(f->rate), g);
            if (m) {
                u = vec_fma(vec_set(f->keep), vec_load_f32(m + at, some),
                            vec_mul(vec_set(f->take), u));
                vec_store_f32(m + at, u, some);
            }
            const vec updated = vec_sub(w, vec_fma(vec_set(f->shrink), w, u));
            vec_store_f32(master + at, updated, some);
            if (weight) vec_store_bf16(weight + at, updated, some);
        }
    }
}

static void apply(const float *gradient, float *master, float *m, hr_bf16 *weight,
                  hr_adafactor_strip strip, const float *rows, const float *columns,
                  const hr_adafactor_factors *factors)
{
    const hr_adafactor_factors f = *factors;
    if (strip.lanes < LANES)
        apply_of(gradient, master, m, weight, strip, strip.lanes, rows, columns, &f);
    else if (m) apply_of(gradient, master, m, weight, strip, LANES, rows, columns, &f);
    else if (weight) apply_of(gradient, master, NULL, weight, strip, LANES, rows, columns, &f);
    else apply_of(gradient, master, NULL, NULL, strip, LANES, rows, columns, &f);
}

void FILL(hr_adafactor_kernels *kernels)
{
    *kernels = (hr_adafactor_kernels){ squares, measure, apply };
}
