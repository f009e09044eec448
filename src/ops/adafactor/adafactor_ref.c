/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_ref.c - reference implementation of Adafactor's passes over a strip. */
#include "ops/adafactor/adafactor_kernels.h"

enum { LANES = HR_ADAFACTOR_LANES };

static void squares(const float *gradient, hr_adafactor_strip strip, float scale, float *of_lines,
                    float *of_strip)
{
    for (int64_t i = 0; i < strip.lines; i++)
        for (int64_t l = 0; l < strip.lanes; l++) {
            const float g = scale * gradient[i * strip.stride + l];
            of_lines[i * LANES + l] += g * g;
            of_strip[l] += g * g;
        }
}

static double measure(const float *gradient, hr_adafactor_strip strip, const float *rows,
                      const float *columns)
{
    double sum = 0;
    for (int64_t i = 0; i < strip.lines; i++)
        for (int64_t l = 0; l < strip.lanes; l++) {
            const double u = gradient[i * strip.stride + l] * columns[l] * rows[2 * i + l % 2];
            sum += u * u;
        }
    return sum;
}

static void apply(const float *gradient, float *master, float *m, hr_bf16 *weight,
                  hr_adafactor_strip strip, const float *rows, const float *columns,
                  const hr_adafactor_factors *f)
{
    for (int64_t i = 0; i < strip.lines; i++)
        for (int64_t l = 0; l < strip.lanes; l++) {
            const int64_t at = i * strip.stride + l;
            const float w = master[at];
            float u = f->rate * (gradient[at] * columns[l] * rows[2 * i + l % 2]);
            if (m) u = m[at] = f->keep * m[at] + f->take * u;
            master[at] = w - (f->shrink * w + u);
            if (weight) weight[at] = hr_bf16_from_f32(master[at]);
        }
}

void hr_adafactor_fill_ref(hr_adafactor_kernels *kernels)
{
    *kernels = (hr_adafactor_kernels){ squares, measure, apply };
}
