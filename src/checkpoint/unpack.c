/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/unpack.c - the portable variant, one element at a time, and the choice of the
 * variant. */
#include "checkpoint/unpack.h"

#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/e4m3.h"
#include "base/f16.h"
#include "base/residual.h"
#include "checkpoint/block_scales.h"
#include "checkpoint/unpack_kernels.h"

static uint32_t scaled(uint8_t code, float scale)
{
    const float value = hr_e4m3_to_f32(code) * scale;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Element i of a row of `width` elements. */
static uint32_t element(const hr_unpack *u, const void *source, int64_t row, int64_t i)
{
    const int64_t index = row * hr_unpack_width(u) + i;
    if (u->kind == HR_STORED_F32) return ((const uint32_t *)source)[index];
    if (u->kind == HR_STORED_E4M3)
        return scaled(((const uint8_t *)source)[index], u->scales[i / HR_SCALE_BLOCK]);
    const uint16_t half = ((const uint16_t *)source)[index];
    return u->kind == HR_STORED_BF16 ? (uint32_t)half << 16 : hr_f16_to_f32_bits(half);
}

static void put(const hr_unpack *u, int64_t to, uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    if (u->master) memcpy(u->master + to, &bits, sizeof bits);
    if (u->residual.codes) hr_residual_put(u->weight, u->residual, to, value);
    else if (u->weight) u->weight[to] = hr_bf16_from_f32(value);
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

/* Rows of a matrix whose columns are in groups. The last group also writes the padding. */
static bool take_groups(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t width = hr_unpack_width(u), stored_n = hr_round_up(u->N, HR_PANEL_WIDTH);
    const bool panels = u->layout != HR_ROWS;
    bool finite = true;
    for (int64_t row = first; row < first + count; row++) {
        const int64_t k = row % u->K, n = row / u->K * width;
        const bool last = panels && n + width == u->N;
        for (int64_t i = 0; i < width; i++) {
            const uint32_t bits = element(u, source, row - first, i);
            finite &= (bits & 0x7fffffff) <= hr_unpack_most(u);
            put(u, hr_layout_index(u->layout, u->K, u->N, k, n + i), bits);
        }
        for (int64_t i = u->N; i < stored_n && last; i++)
            put(u, hr_layout_index(u->layout, u->K, u->N, k, i), 0);
        const bool pads = last && u->layout == HR_PANEL_PAIR && k + 1 == u->K && u->K % 2;
        for (int64_t i = 0; i < stored_n && pads; i++)
            put(u, hr_layout_index(u->layout, u->K, u->N, u->K, i), 0);
    }
    return finite;
}

bool hr_unpack_is_flat(const hr_unpack *u)
{
    return u->groups <= 1 && u->kind == HR_STORED_F32 && u->master && u->layout == HR_ROWS &&
           !u->transposed;
}

bool hr_unpack_take(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    if (u->groups > 1) return take_groups(u, first, count, source);
    const bool quick = !u->residual.codes && u->cpu_mask & HR_CPU_AVX2 &&
                       hr_unpack_can_avx2(u, first, count);
    return quick ? hr_unpack_take_avx2(u, first, count, source)
                 : take_portable(u, first, count, source);
}
