/* SPDX-License-Identifier: Apache-2.0 */
/* Native sparse attention with emulated vdpbf16ps and AMX tiles, on any machine with AVX-512. */
#define HR_EMULATED
#include "nsa_test.c" /* NOLINT(bugprone-suspicious-include) */
