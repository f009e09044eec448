/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_avx2.c - lif_template.h with AVX2. */
#define FILL hr_lif_fill_avx2
#define WIDTH 8
#define FEW 8
#include "ops/lif/lif_template.h"
