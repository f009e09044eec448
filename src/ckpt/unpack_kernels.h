/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/unpack_kernels.h - hr_unpack_take with more instructions than every x86-64 has. */
#ifndef HR_CKPT_UNPACK_KERNELS_H
#define HR_CKPT_UNPACK_KERNELS_H

#include "ckpt/unpack.h"

/* Whether the function below takes these rows. */
bool hr_unpack_can_avx2(const hr_unpack *unpack, int64_t first, int64_t count);

/* As hr_unpack_take, where it can. */
bool hr_unpack_take_avx2(const hr_unpack *unpack, int64_t first, int64_t count, const void *source);

#endif
