/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/unpack_kernels.h - the AVX2 variant of hr_unpack_take. */
#ifndef HR_CHECKPOINT_UNPACK_KERNELS_H
#define HR_CHECKPOINT_UNPACK_KERNELS_H

#include "checkpoint/unpack.h"

/* The largest bit pattern, without the sign, of an fp32 element that is finite in all outputs. */
static inline uint32_t hr_unpack_most(const hr_unpack *unpack)
{
    return unpack->weight ? HR_UNPACK_MOST_BF16 : HR_UNPACK_MOST_F32;
}

/* Whether hr_unpack_take_avx2 supports these rows. */
bool hr_unpack_can_avx2(const hr_unpack *unpack, int64_t first, int64_t count);

/* As hr_unpack_take, if hr_unpack_can_avx2. */
bool hr_unpack_take_avx2(const hr_unpack *unpack, int64_t first, int64_t count, const void *source);

#endif
