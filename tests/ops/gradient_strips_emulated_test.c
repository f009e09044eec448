/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of strips over emulated vdpbf16ps and AMX, on any machine with AVX-512. */
#include "ops/gradient_strips_test.c"
