/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of bits once more, over emulated vdpbf16ps and AMX. */
#include "train/bits_test.c"
