/* SPDX-License-Identifier: Apache-2.0 */
/* Runs oracle_test.c with emulated vdpbf16ps and AMX. */
#include "train/oracle_test.c"
