/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_ref.c - lif_template.h for every machine. */
#define FILL hr_lif_fill_ref
#define WIDTH 4
#define FEW 4
#include "ops/lif/lif_template.h"
