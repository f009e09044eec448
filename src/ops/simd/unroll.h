/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/unroll.h - loops over registers must vanish: left as loops, accumulators live in
 * memory. The two compilers ask for it in their own words, and each ignores the other's. */
#ifndef HR_OPS_SIMD_UNROLL_H
#define HR_OPS_SIMD_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
