/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/unroll.h - UNROLL, a request to unroll the next loop fully. Loops over registers need
 * it: otherwise the compiler keeps accumulators in memory. Each compiler has its own pragma. */
#ifndef HR_OPS_SIMD_UNROLL_H
#define HR_OPS_SIMD_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
