/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of matrix products once more, over emulated vdpbf16ps and AMX: every rung on any
 * machine that has AVX-512. */
#include "ops/linear_test.c"
