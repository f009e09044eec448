/* SPDX-License-Identifier: Apache-2.0 */
/* run/initialize.c - normal numbers by the Box-Muller transform of counter-based uniforms. */
#include "run/initialize.h"

#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/random.h"
#include "base/residual.h"
#include "checkpoint/narrow.h"

/* Writes normal numbers for columns 4 * index to 4 * index + 3 of a row. u is never 0, so no value
 * exceeds sqrt(-2 ln 2^-32) = 6.66 in magnitude. */
static void draw_normals(const hr_random_row *row, uint32_t index, double normals[4])
{
    const double turn = 6.283185307179586476925;
    const hr_random_block block = hr_random_block_of(row, index);
    for (int i = 0; i < 4; i += 2) {
        const double u = (block.word[i] + 1.0) / 4294967296.0;
        const double v = block.word[i + 1] / 4294967296.0, radius = sqrt(-2 * log(u));
        normals[i] = radius * cos(turn * v);
        normals[i + 1] = radius * sin(turn * v);
    }
}

/* A uniform number in [-1, 1) for a column of a row. */
static double draw_uniform(const hr_random_row *row, uint32_t column)
{
    const hr_random_block block = hr_random_block_of(row, column / 4);
    return block.word[column % 4] / 2147483648.0 - 1;
}

/* Adapters do not change the initial values of other parameters. */
static hr_random_stream stream_of(const hr_program *program, int32_t index, uint64_t seed)
{
    uint32_t before = 0;
    if (program->params[index].adapts != HR_NONE)
        return hr_random_stream_of(seed, 0, HR_SITE_ADAPTERS, (uint32_t)index);
    for (int32_t p = 0; p < index; p++) before += program->params[p].adapts == HR_NONE;
    return hr_random_stream_of(seed, 0, HR_SITE_WEIGHTS, before);
}

/* The scale of all blocks of a stored weight: a power of two with which no initial value overflows.
 */
static float scale_of(const hr_param *param)
{
    const double most = param->init_constant ? fabs(param->init_scale) : 7 * param->init_scale;
    return most > 0 ? (float)exp2(ceil(log2(most / 448))) : 1;
}

static void fill_scales(const hr_program *program, const hr_param *param, float *scales)
{
    const int64_t count = hr_tensor_bytes(&program->tensors[param->scales]) / 4;
    for (int64_t i = 0; i < count; i++) scales[i] = scale_of(param);
}

/* Writes element `at` of a weight without a master. */
static void put(void *weight, int64_t at, hr_dtype dtype, float value, float scale)
{
    if (dtype == HR_BF16) ((hr_bf16 *)weight)[at] = hr_bf16_from_f32(value);
    else if (dtype == HR_F8_E4M3) ((uint8_t *)weight)[at] = hr_e4m3_from_f32(value / scale);
    else if (!hr_narrow_to_f16(value, (uint16_t *)weight + at))
        ((uint16_t *)weight)[at] = value < 0 ? 0xfbff : 0x7bff; /* the largest magnitude */
}

void hr_initialize(const hr_program *program, int32_t index, uint64_t seed, hr_weights_place place,
                   const volatile sig_atomic_t *interrupts)
{
    const hr_param *param = &program->params[index];
    const hr_tensor *tensor = &program->tensors[param->master];
    const hr_layout layout = (hr_layout)tensor->layout;
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    float *master = place.master;
    const float scale = place.scales ? scale_of(param) : 1;
    memset(master ? master : place.weight, 0, (size_t)hr_tensor_bytes(tensor));
    if (place.scales) fill_scales(program, param, place.scales);
    if (place.residual.codes)
        memset(place.residual.codes, 0,
               (size_t)hr_tensor_bytes(&program->tensors[hr_program_residual(program, index)]));
    const hr_random_stream stream = stream_of(program, index, seed);
    double draws[4] = { 1, 1, 1, 1 };
    const bool is_normal = !param->init_constant && !param->init_uniform;
    for (int64_t k = 0; k < K; k++) {
        if (interrupts && *interrupts > 0) return;
        const hr_random_row row = hr_random_row_of(stream, 0, (uint32_t)k);
        for (int64_t n = 0; n < N; n++) {
            const int64_t at = hr_layout_index(layout, K, N, k, n);
            if (n % 4 == 0 && is_normal) draw_normals(&row, (uint32_t)(n / 4), draws);
            if (param->init_uniform) draws[n % 4] = draw_uniform(&row, (uint32_t)n);
            const float value = (float)(param->init_scale * draws[n % 4]);
            if (master) master[at] = value;
            else if (place.residual.codes) hr_residual_put(place.weight, place.residual, at, value);
            else put(place.weight, at, (hr_dtype)tensor->dtype, value, scale);
        }
    }
    const int64_t elements = hr_tensor_bytes(tensor) / hr_dtype_bytes((hr_dtype)tensor->dtype);
    if (place.residual.codes) hr_residual_finish(place.weight, place.residual, elements);
    if (!master || !place.weight) return;
    for (int64_t i = 0; i < elements; i++)
        ((hr_bf16 *)place.weight)[i] = hr_bf16_from_f32(master[i]);
}

/* An average starts at the weights. */
static void init_average(const hr_weights_place *weights, float *average, int64_t elements)
{
    const hr_bf16 *halves = weights->weight;
    if (weights->master) {
        memcpy(average, weights->master, (size_t)elements * sizeof *average);
        return;
    }
    for (int64_t i = 0; i < elements; i++)
        average[i] = weights->residual.codes ? hr_residual_value(halves, weights->residual, i)
                                             : hr_bf16_to_f32(halves[i]);
}

void hr_initialize_state(const hr_program *program, int32_t index, int32_t state,
                         hr_weights_place weights, void *to)
{
    const hr_state *kind = &program->states[state];
    const hr_tensor *tensor = &program->tensors[program->params[index].states[state]];
    const int64_t bytes = hr_tensor_bytes(tensor);
    if (hr_state_is_residual(kind)) return;
    if (kind->average) init_average(&weights, to, bytes / (int64_t)sizeof(float));
    else memset(to, tensor->dtype == HR_U8 ? kind->zero : 0, (size_t)bytes);
}
