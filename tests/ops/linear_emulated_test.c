/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of matrix products over emulated vdpbf16ps and AMX, on any machine with AVX-512. */
#include "ops/linear_test.c"
