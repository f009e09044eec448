/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_avx512.c - lif_template.h with AVX-512. */
#define FILL hr_lif_fill_avx512
#define WIDTH 16
#define FEW 4
#include "ops/lif/lif_template.h"
