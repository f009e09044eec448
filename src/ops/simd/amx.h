/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/amx.h - wrappers for AMX tile instructions, so that tests can compile the same kernels
 * over an emulation (tests/emulate/amx.h) on any machine.
 *
 * A thread has eight tiles of 16 rows of 64 bytes, numbered 0 to 7; tile numbers must be constants
 * at the call. The wrappers use assembly because the intrinsics of gcc 12 do not declare which
 * memory they read and write, so the compiler drops stores before them. */
#ifndef HR_OPS_SIMD_AMX_H
#define HR_OPS_SIMD_AMX_H

#include <stdint.h>

#ifdef HR_EMULATE
#include "emulate/amx.h"
#else

#define HR_TILE_INLINE static inline __attribute__((always_inline))

/* Configures eight full tiles for the calling thread, all zero. Call it before any other function
 * here, in every thread and every kernel call. hr_tile_release() ends it, which saves 8 KiB per
 * context switch. hr_cpu_detect requests the system's permission at start. */
HR_TILE_INLINE void hr_tile_config(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1,
                 .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
                 .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };
    _Static_assert(sizeof config == 64, "ldtilecfg reads 64 bytes");
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

HR_TILE_INLINE void hr_tile_release(void)
{
    __asm__ volatile("tilerelease");
}

HR_TILE_INLINE void hr_tile_zero(const int tile)
{
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
}

/* Row r of the tile is at `stride` bytes times r past the pointer. */
HR_TILE_INLINE void hr_tile_load(const int tile, const void *from, int64_t stride)
{
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(stride), "i"(tile)
                     : "memory");
}

/* The same for data that is not needed again soon: it is not kept in L1. */
HR_TILE_INLINE void hr_tile_load_stream(const int tile, const void *from, int64_t stride)
{
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(stride), "i"(tile)
                     : "memory");
}

HR_TILE_INLINE void hr_tile_store(const int tile, void *to, int64_t stride)
{
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(to), "r"(stride), "i"(tile)
                     : "memory");
}

/* c (16 x 16 fp32) += a (16 rows of 32 bf16) times b (16 lines of 16 pairs: line k holds elements
 * 2k and 2k + 1 of each of 16 columns, as in HR_PANEL_PAIR). Three different tiles. */
HR_TILE_INLINE void hr_tile_dpbf16(const int c, const int a, const int b)
{
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
}

#endif
#endif
