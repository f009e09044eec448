/* SPDX-License-Identifier: Apache-2.0 */
/* emulate/amx.h - the AMX instructions in plain C, with eight tiles in an array.
 *
 * ops/simd/amx.h includes it when tests build the kernels with HR_EMULATE. An invalid instruction
 * on the machine is a failed assertion here. */
#ifndef HR_EMULATE_AMX_H
#define HR_EMULATE_AMX_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "base/assert.h"
#include "base/bf16.h"

enum { HR_TILE_ROWS = 16, HR_TILE_ROW_BYTES = 64 };

typedef union {
    uint8_t bytes[HR_TILE_ROWS][HR_TILE_ROW_BYTES];
    hr_bf16 pairs[HR_TILE_ROWS][16][2];
    float f32[HR_TILE_ROWS][16];
} hr_emulate_tile;

typedef struct {
    hr_emulate_tile tile[8];
    bool configured;
} hr_emulate_tiles;

/* One set per thread and per including file: each kernel configures its own tiles. */
static _Thread_local hr_emulate_tiles hr_emulate_state;

static inline hr_emulate_tile *hr_emulate_tile_of(int tile)
{
    HR_ASSERT(hr_emulate_state.configured);
    HR_ASSERT(tile >= 0 && tile < 8);
    return &hr_emulate_state.tile[tile];
}

static inline void hr_tile_config(void)
{
    memset(&hr_emulate_state, 0, sizeof hr_emulate_state);
    hr_emulate_state.configured = true;
}

static inline void hr_tile_release(void)
{
    hr_emulate_state.configured = false;
}

static inline void hr_tile_zero(int tile)
{
    memset(hr_emulate_tile_of(tile), 0, sizeof(hr_emulate_tile));
}

static inline void hr_tile_load(int tile, const void *from, int64_t stride)
{
    hr_emulate_tile *to = hr_emulate_tile_of(tile);
    for (int64_t r = 0; r < HR_TILE_ROWS; r++)
        memcpy(to->bytes[r], (const uint8_t *)from + r * stride, HR_TILE_ROW_BYTES);
}

static inline void hr_tile_load_stream(int tile, const void *from, int64_t stride)
{
    hr_tile_load(tile, from, stride);
}

static inline void hr_tile_store(int tile, void *to, int64_t stride)
{
    const hr_emulate_tile *from = hr_emulate_tile_of(tile);
    for (int64_t r = 0; r < HR_TILE_ROWS; r++)
        memcpy((uint8_t *)to + r * stride, from->bytes[r], HR_TILE_ROW_BYTES);
}

/* Intel's manual, volume 2, TDPBF16PS: the products of even elements and those of odd elements are
 * two chains of fused multiply-adds over the whole reduction, both from zero; their sum is added to
 * the tile. Not inlined: the caller's change of MXCSR must not move across it. Excluded from
 * ThreadSanitizer, because tiles are thread-local. */
static __attribute__((noinline, unused, no_sanitize("thread"))) void hr_emulate_dpbf16(
    hr_emulate_tile *c, const hr_emulate_tile *a, const hr_emulate_tile *b)
{
    float b_even[16][16], b_odd[16][16];
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < 16; n++) {
            b_even[k][n] = hr_bf16_to_f32(b->pairs[k][n][0]);
            b_odd[k][n] = hr_bf16_to_f32(b->pairs[k][n][1]);
        }
    for (int m = 0; m < HR_TILE_ROWS; m++) {
        float even[16] = { 0 }, odd[16] = { 0 };
        for (int k = 0; k < 16; k++) {
            const float a_even = hr_bf16_to_f32(a->pairs[m][k][0]);
            const float a_odd = hr_bf16_to_f32(a->pairs[m][k][1]);
            for (int n = 0; n < 16; n++) {
                even[n] = fmaf(a_even, b_even[k][n], even[n]);
                odd[n] = fmaf(a_odd, b_odd[k][n], odd[n]);
            }
        }
        for (int n = 0; n < 16; n++) c->f32[m][n] += even[n] + odd[n];
    }
}

/* Denormal inputs count as zero, denormal results become zero, ties round to even, and MXCSR is
 * neither read nor written. A NaN input gives a NaN; which of several is unspecified. */
static inline void hr_tile_dpbf16(int c, int a, int b)
{
    const unsigned own = _mm_getcsr(), fixed = 0x9fc0;
    HR_ASSERT(c != a && c != b && a != b);
    _mm_setcsr(fixed);
    hr_emulate_dpbf16(hr_emulate_tile_of(c), hr_emulate_tile_of(a), hr_emulate_tile_of(b));
    _mm_setcsr(own);
}

#endif
