/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/names.h - the names of parameters in each family: those of transformers, or those of
 * headroom for its own families. */
#ifndef HR_ESTIMATE_NAMES_H
#define HR_ESTIMATE_NAMES_H

#include "estimate/model.h"

/* Names without their ending, ".weight" or ".bias". Absent parts are null; a bias has the name of
 * the part before it. */
typedef struct {
    const char *prefix; /* of layers, with the number as %lld */
    const char *parts[HR_WEIGHTS_OF_LAYER];
    const char *table, *positions, *factor, *norm, *expansion, *expansion_bias, *head;
} hr_estimate_names;

const hr_estimate_names *hr_estimate_names_of(int32_t family);

#endif
