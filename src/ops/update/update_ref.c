/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_ref.c - reference implementation of the update passes, in fp32. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ops/update/update_kernels.h"

static void sumsq(const float *gradient, int64_t count, double *runs)
{
    const int64_t length = HR_UPDATE_RUN_ELEMENTS;
    for (int64_t first = 0; first < count; first += length) {
        double lanes[HR_SUMSQ_LANES] = { 0 }, sum = 0;
        for (int64_t i = first; i < first + length && i < count; i++)
            lanes[(i - first) % HR_SUMSQ_LANES] += (double)gradient[i] * gradient[i];
        for (int64_t i = 0; i < HR_SUMSQ_LANES; i++) sum += lanes[i];
        runs[first / length] = sum;
    }
}

static void adamw(const float *gradient, float *master, float *m, float *v, hr_bf16 *weight,
                  int64_t count, const hr_adamw_factors *f)
{
    for (int64_t i = 0; i < count; i++) {
        const float w = master[i], g = f->scale * gradient[i] + f->pull * w;
        m[i] = f->keep1 * m[i] + f->take1 * g;
        v[i] = f->keep2 * v[i] + f->take2 * (g * g);
        master[i] = w - (f->shrink * w + f->rate * (m[i] / (f->debias2 * sqrtf(v[i]) + f->eps)));
        if (weight) weight[i] = hr_bf16_from_f32(master[i]);
    }
}

static void sgd(const float *gradient, float *master, float *m, hr_bf16 *weight, int64_t count,
                const hr_sgd_factors *f)
{
    for (int64_t i = 0; i < count; i++) {
        const float w = master[i];
        m[i] = f->keep * m[i] + (f->scale * gradient[i] + f->pull * w);
        master[i] = w - f->rate * m[i];
        if (weight) weight[i] = hr_bf16_from_f32(master[i]);
    }
}

/* Fused where the vectors are, so that all variants are bit-identical. */
static void lion(const float *gradient, float *master, float *m, hr_bf16 *weight, int64_t count,
                 const hr_lion_factors *f)
{
    for (int64_t i = 0; i < count; i++) {
        const float w = master[i], g = f->scale * gradient[i];
        const float c = fmaf(f->keep1, m[i], f->take1 * g), size = fabsf(c);
        const float sign = c / (size < FLT_MIN ? FLT_MIN : size);
        m[i] = fmaf(f->keep2, m[i], f->take2 * g);
        master[i] = w - fmaf(f->shrink, w, f->rate * sign);
        if (weight) weight[i] = hr_bf16_from_f32(master[i]);
    }
}

static void unpack_codes(const uint8_t *codes, const hr_moment_map *map, float scale, float *to,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = map->values[codes[i]] * scale;
}

/* The number of limits below x. */
static int32_t code_of(const hr_moment_map *map, float x)
{
    int32_t code = 0;
    for (int32_t half = HR_MOMENT_CODES / 2; half > 0; half /= 2)
        if (x > map->limits[code + half - 1]) code += half;
    return code;
}

/* Magnitudes are compared as integers, in which NaN is the largest. */
static float pack_codes(const float *from, const hr_moment_map *map, uint8_t *codes, int64_t count)
{
    uint32_t most = 0;
    float scale;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    memcpy(&scale, &most, sizeof scale);
    if (scale < FLT_MIN || !(scale <= FLT_MAX)) {
        for (int64_t i = 0; i < count; i++) codes[i] = (uint8_t)map->zero;
        return scale < FLT_MIN ? 0 : NAN;
    }
    const float inverse = 1 / scale;
    for (int64_t i = 0; i < count; i++) codes[i] = (uint8_t)code_of(map, from[i] * inverse);
    return scale;
}

static void adamw_codes(const float *gradient, float *master, const hr_coded_moment moments[2],
                        hr_bf16 *weight, int64_t count, const hr_adamw_factors *factors)
{
    const hr_coded_moment *first = &moments[0], *second = &moments[1];
    float m[HR_MOMENT_BLOCK], v[HR_MOMENT_BLOCK];
    unpack_codes(first->codes, first->map, *first->scale, m, count);
    unpack_codes(second->codes, second->map, *second->scale, v, count);
    for (int64_t i = 0; i < count; i++) v[i] *= v[i];
    adamw(gradient, master, m, v, weight, count, factors);
    for (int64_t i = 0; i < count; i++) v[i] = sqrtf(v[i]);
    *first->scale = pack_codes(m, first->map, first->codes, count);
    *second->scale = pack_codes(v, second->map, second->codes, count);
}

static void unpack_bf16(const hr_bf16 *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = hr_bf16_to_f32(from[i]);
}

static void pack_bf16(const float *from, const hr_random_row *row, uint32_t first, hr_bf16 *to,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        const bool finite = (bits & 0x7f800000) != 0x7f800000;
        if (row && finite)
            to[i] = (hr_bf16)((bits + hr_random_half(row, first + (uint64_t)i)) >> 16);
        else to[i] = hr_bf16_from_f32(from[i]);
    }
}

static void join(const hr_bf16 *weight, const uint16_t *codes, uint16_t tie, float *to,
                 int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = hr_residual_join(weight[i], codes[i], tie);
        memcpy(to + i, &bits, sizeof bits);
    }
}

static bool part(const float *from, hr_bf16 *weight, uint16_t *codes, int64_t count)
{
    bool up = false;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        weight[i] = hr_bf16_from_f32(from[i]);
        codes[i] = (uint16_t)bits;
        up |= hr_residual_is_up(bits);
    }
    return up;
}

static void join_bytes(const hr_bf16 *weight, const uint8_t *codes, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = hr_residual_join_byte(weight[i], codes[i]);
        memcpy(to + i, &bits, sizeof bits);
    }
}

static void part_bytes(const float *from, const hr_random_row *row, uint32_t first, hr_bf16 *weight,
                       uint8_t *codes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        hr_residual_part_byte(bits, hr_random_half(row, first + (uint64_t)i) & 0xff, weight + i,
                              codes + i);
    }
}

void hr_update_fill_ref(hr_update_kernels *kernels)
{
    *kernels = (hr_update_kernels){ sumsq,      adamw,       sgd,         lion,      unpack_codes,
                                    pack_codes, adamw_codes, unpack_bf16, pack_bf16, join,
                                    part,       join_bytes,  part_bytes };
}
