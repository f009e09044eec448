/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/unpack.c - the portable variant, one element at a time, and the choice of the
 * variant. */
#include "checkpoint/unpack.h"

#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "checkpoint/block_scales.h"
#include "checkpoint/unpack_kernels.h"

/* Converts with integers, because threads may flush subnormal floats to zero. The product with
 * 2^-24 is a normal float even if the f16 is subnormal. */
static uint32_t f32_of_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    const float small = (float)rest * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &small, sizeof bits);
    if (rest >= 0x400) bits = (rest << 13) + (112u << 23);
    if (rest >= 0x7c00) bits = rest << 13 | 0x7f800000;
    return sign | bits;
}

/* E4M3 has no Inf; the largest magnitude is NaN. */
static uint32_t f32_of_e4m3(uint8_t byte, float scale)
{
    const uint32_t rest = byte & 0x7f;
    uint32_t bits = (rest << 20) + (120u << 23);
    float value = (float)rest * 0x1p-9f; /* subnormal */
    if (rest == 0x7f) return 0x7fc00000;
    if (rest >= 8) memcpy(&value, &bits, sizeof value);
    value *= byte & 0x80 ? -scale : scale;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Element i of a row of `width` elements. */
static uint32_t element(const hr_unpack *u, const void *source, int64_t row, int64_t i)
{
    const int64_t index = row * hr_unpack_width(u) + i;
    if (u->kind == HR_STORED_F32) return ((const uint32_t *)source)[index];
    if (u->kind == HR_STORED_E4M3)
        return f32_of_e4m3(((const uint8_t *)source)[index], u->scales[i / HR_SCALE_BLOCK]);
    const uint16_t half = ((const uint16_t *)source)[index];
    return u->kind == HR_STORED_BF16 ? (uint32_t)half << 16 : f32_of_f16(half);
}

static void put(const hr_unpack *u, int64_t to, uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    if (u->master) memcpy(u->master + to, &bits, sizeof bits);
    if (u->weight) u->weight[to] = hr_bf16_from_f32(value);
}

/* Writes each row with the zero padding at its end; the last row also writes the padding rows after
 * it. */
static bool take_portable(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t rows = hr_unpack_rows(u), width = hr_unpack_width(u);
    const bool panels = u->layout != HR_ROWS;
    const int64_t stored_k = u->layout == HR_PANEL_PAIR ? hr_round_up(u->K, 2) : u->K;
    const int64_t stored_n = panels ? hr_round_up(u->N, HR_PANEL_WIDTH) : u->N;
    const int64_t stored_width = u->transposed ? stored_k : stored_n;
    const int64_t stored_rows = u->transposed ? stored_n : stored_k;
    const int64_t end = first + count == rows ? stored_rows : first + count;
    const uint32_t most = hr_unpack_most(u);
    bool finite = true;
    for (int64_t row = first; row < end; row++)
        for (int64_t i = 0; i < stored_width; i++) {
            const int64_t k = u->transposed ? i : row, n = u->transposed ? row : i;
            uint32_t bits = 0;
            if (row < rows && i < width) bits = element(u, source, row - first, i);
            finite &= (bits & 0x7fffffff) <= most;
            put(u, hr_layout_index(u->layout, u->K, u->N, k, n), bits);
        }
    return finite;
}

bool hr_unpack_is_flat(const hr_unpack *u)
{
    return u->kind == HR_STORED_F32 && u->master && u->layout == HR_ROWS && !u->transposed;
}

bool hr_unpack_take(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const bool quick = u->cpu_mask & HR_CPU_AVX2 && hr_unpack_can_avx2(u, first, count);
    return quick ? hr_unpack_take_avx2(u, first, count, source)
                 : take_portable(u, first, count, source);
}
