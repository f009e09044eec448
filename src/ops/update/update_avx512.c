/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_avx512.c - update_template.h with AVX-512: 16 floats per vector. */
#include "ops/update/codes_avx512.h"

#define FILL hr_update_fill_avx512
#include "ops/update/update_template.h"
