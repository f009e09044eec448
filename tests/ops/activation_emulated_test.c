/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of activations over emulated vdpbf16ps and AMX: that the product wrote the same bits on
 * every rung, on any machine with AVX-512. */
#include "ops/activation_test.c"
