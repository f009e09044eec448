/* SPDX-License-Identifier: Apache-2.0 */
/* The oracles once more, over emulated vdpbf16ps and AMX. */
#include "train/oracle_test.c"
