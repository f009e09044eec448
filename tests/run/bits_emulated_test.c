/* SPDX-License-Identifier: Apache-2.0 */
/* Runs bits_test.c with emulated vdpbf16ps and AMX. */
#include "run/bits_test.c"
