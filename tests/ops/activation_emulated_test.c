/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of activations over emulated vdpbf16ps and AMX: the product writes the same bits with
 * every instruction set, on any machine with AVX-512. */
#include "ops/activation_test.c"
