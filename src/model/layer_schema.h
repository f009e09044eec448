/* SPDX-License-Identifier: Apache-2.0 */
/* model/layer_schema.h - the intermediates of a layer that may be saved or recomputed.
 *
 * They come from the marks in the family's forward pass, not from a second list. All values in one
 * buffer (q, k and v of one product) are saved together or not at all: a set of values is closed if
 * it splits no buffer. */
#ifndef HR_MODEL_LAYER_SCHEMA_H
#define HR_MODEL_LAYER_SCHEMA_H

#include "config/config.h"
#include "graph/program.h"

typedef struct {
    hr_intermediates present;
    hr_intermediates parts[HR_INTERMEDIATES]; /* disjoint; each is the set of one or more buffers */
    hr_intermediates made[HR_INTERMEDIATES];  /* of each part: all values that the same steps
                                                compute, itself included */
    int32_t part_count;
} hr_layer_schema;

/* The schema of a checked config, for the layers of all kinds. */
hr_layer_schema hr_layer_schema_of(const hr_config *config);

/* The parameters, of these matrices, and forward steps of a layer, and the elements of its
 * parameters with padding: the most over its kinds. */
typedef struct {
    int32_t params, matrices, steps;
    int32_t rest_params;             /* of further adapters, outside of layers */
    int32_t bases;                   /* matrices that may have adapters */
    int64_t elements, rest_elements; /* rest: of the parameters outside of the layers */
    int64_t largest;                 /* elements of the largest parameter of all */
    int64_t count, rest_count;       /* of parameters without padding, as models are measured */
} hr_layer_size;

/* Counts them in a build of one layer of each kind. */
hr_layer_size hr_layer_size_of(const hr_config *config);

/* The largest closed subset of `set`. */
hr_intermediates hr_layer_schema_within(const hr_layer_schema *schema, hr_intermediates set);

/* The word for an intermediate in a strategy: "norm", "q". */
const char *hr_intermediate_name(hr_intermediate intermediate);

#endif
