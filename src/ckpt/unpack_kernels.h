/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/unpack_kernels.h - hr_unpack_take with more instructions than every x86-64 has. */
#ifndef HR_CKPT_UNPACK_KERNELS_H
#define HR_CKPT_UNPACK_KERNELS_H

#include "ckpt/unpack.h"

/* The largest word, without its sign, that is finite in all that is written: where bf16 is, words
 * from half a step above its largest number on round up to infinity, the even one. */
static inline uint32_t hr_unpack_most(const hr_unpack *unpack)
{
    return unpack->weight ? 0x7f7f7fff : 0x7f7fffff;
}

/* Whether the function below takes these rows. */
bool hr_unpack_can_avx2(const hr_unpack *unpack, int64_t first, int64_t count);

/* As hr_unpack_take, where it can. */
bool hr_unpack_take_avx2(const hr_unpack *unpack, int64_t first, int64_t count, const void *source);

#endif
