/* SPDX-License-Identifier: Apache-2.0 */
/* Runs oracle_test.c with emulated vdpbf16ps and AMX. */
#include "run/oracle_test.c"
