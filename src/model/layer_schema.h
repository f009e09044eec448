/* SPDX-License-Identifier: Apache-2.0 */
/* model/layer_schema.h - which values a layer of a model has that may be kept or computed again.
 *
 * Read off the family's own forward pass, not listed a second time: a value is there if a buffer is
 * marked as it. What one buffer is at once (q, k and v of one product) is kept together or not at
 * all: a set of values is closed if it divides no buffer. */
#ifndef HR_MODEL_LAYER_SCHEMA_H
#define HR_MODEL_LAYER_SCHEMA_H

#include "graph/program.h"
#include "headroom/config.h"

typedef struct {
    hr_intermediates present;
    hr_intermediates parts[HR_INTERMEDIATES]; /* disjoint, each one or more buffers' */
    hr_intermediates made[HR_INTERMEDIATES]; /* of each part: all that the steps which make it make,
                                                 itself included */
    int32_t part_count;
} hr_layer_schema;

/* The form of a config that passed its check. */
hr_layer_schema hr_layer_schema_of(const hr_config *config);

/* The largest closed set within `set`. */
hr_intermediates hr_nfc_within(const hr_layer_schema *form, hr_intermediates set);

/* The words for one intermediate in a strategy: "norm", "q". */
const char *hr_intermediate_name(hr_intermediate intermediate);

#endif
