/* SPDX-License-Identifier: Apache-2.0 */
/* train/initialise.c - normal numbers by the Box-Muller transform of counter-based uniforms. */
#include "train/initialise.h"

#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/random.h"

/* A site that no dropout uses, so that the two kinds of numbers never meet. */
enum { INITIAL_SITE = 0x494e4954 };

static double normal(uint64_t row_key, uint32_t column)
{
    const double turn = 6.283185307179586476925;
    const double u = (hr_random_element(row_key, 2 * column) + 1.0) / 4294967296.0;
    const double v = hr_random_element(row_key, 2 * column + 1) / 4294967296.0;
    return sqrt(-2 * log(u)) * cos(turn * v);
}

void hr_initialise(const hr_program *program, int32_t index, uint64_t seed, float *master,
                   void *weight, const volatile sig_atomic_t *interrupts)
{
    const hr_param *param = &program->params[index];
    const hr_tensor *tensor = &program->tensors[param->master];
    const hr_layout layout = (hr_layout)tensor->layout;
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    memset(master ? master : weight, 0, (size_t)hr_tensor_bytes(tensor));
    for (int64_t k = 0; k < K; k++) {
        if (interrupts && *interrupts > 0) return;
        const uint64_t key = hr_random_row_key(seed, 0, INITIAL_SITE, (uint64_t)index, (uint64_t)k);
        for (int64_t n = 0; n < N; n++) {
            const int64_t at = hr_layout_index(layout, K, N, k, n);
            const float value = (float)(param->init_constant
                                            ? param->init_scale
                                            : param->init_scale * normal(key, (uint32_t)n));
            if (master) master[at] = value;
            else ((hr_bf16 *)weight)[at] = hr_bf16_from_f32(value);
        }
    }
    if (!master || !weight) return;
    const int64_t elements = hr_tensor_bytes(tensor) / (int64_t)sizeof *master;
    for (int64_t i = 0; i < elements; i++) ((hr_bf16 *)weight)[i] = hr_bf16_from_f32(master[i]);
}
