/* SPDX-License-Identifier: Apache-2.0 */
/* Runs bits_test.c with emulated vdpbf16ps and AMX. */
#include "train/bits_test.c"
