/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_avx2.c - update_template.h with AVX2: 8 floats per vector. */
#include "ops/update/codes_avx2.h"

#define FILL hr_update_fill_avx2
#include "ops/update/update_template.h"
