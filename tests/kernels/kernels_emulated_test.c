/* SPDX-License-Identifier: Apache-2.0 */
/* The AMX and AVX512-BF16 variants over their emulation, on any machine with AVX-512. */
#include "kernels/kernels_test.c"
