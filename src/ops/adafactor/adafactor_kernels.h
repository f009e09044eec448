/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_kernels.h - inner loops of Adafactor: one strip of one tile, one
 * thread. */
#ifndef HR_OPS_ADAFACTOR_KERNELS_H
#define HR_OPS_ADAFACTOR_KERNELS_H

#include <stdint.h>

#include "base/bf16.h"
#include "ops/adafactor/adafactor_scratch.h"

/* Element (line, lane) of a strip is at line * stride + lane; `lanes` of 16 are stored. */
typedef struct {
    int64_t lines, stride, lanes;
} hr_adafactor_strip;

/* m = keep m + take u;  w = w - (shrink w + m);  without m: u is in its place. u has the rate. */
typedef struct {
    float rate, keep, take, shrink;
} hr_adafactor_factors;

/* Adds (scale gradient)^2 to of_lines [lines][16] and to of_strip [16]. */
typedef void hr_adafactor_squares_fn(const float *gradient, hr_adafactor_strip strip, float scale,
                                     float *of_lines, float *of_strip);

/* Returns the sum of u^2 with u = gradient * columns[lane] * rows[line][lane % 2]. */
typedef double hr_adafactor_measure_fn(const float *gradient, hr_adafactor_strip strip,
                                       const float *rows, const float *columns);

/* Updates the master, and m and the weight, if they are not null, with rate * u. */
typedef void hr_adafactor_apply_fn(const float *gradient, float *master, float *m, hr_bf16 *weight,
                                   hr_adafactor_strip strip, const float *rows,
                                   const float *columns, const hr_adafactor_factors *factors);

typedef struct {
    hr_adafactor_squares_fn *squares;
    hr_adafactor_measure_fn *measure;
    hr_adafactor_apply_fn *apply;
} hr_adafactor_kernels;

/* One function per instruction set, each in its own file. */
void hr_adafactor_fill_ref(hr_adafactor_kernels *kernels);
void hr_adafactor_fill_avx2(hr_adafactor_kernels *kernels);
void hr_adafactor_fill_avx512(hr_adafactor_kernels *kernels);

#endif
