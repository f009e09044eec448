/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_build.h - adds the compression of keys or values to a program. */
#ifndef HR_OPS_COMPRESS_BUILD_H
#define HR_OPS_COMPRESS_BUILD_H

#include "graph/builder.h"
#include "ops/compress/compress.h"

/* The weights of an MLP; all HR_NONE: the mean. */
typedef struct {
    int32_t position, w1, b1, w2, b2;
} hr_compress_weights;

/* y of rows x, [rows, G K]. The caller sets G, head_width, length, stride and hidden. */
int32_t hr_build_compress(hr_builder *builder, const char *name, int32_t x,
                          hr_compress_weights weights, hr_compress_attr attr);

/* The same of a cache x, [T, G K], to which `added` rows came at the builder's position: y is a
 * cache, [T, hr_compress_width]. */
void hr_build_compress_cached(hr_builder *builder, int32_t x, int32_t added,
                              hr_compress_weights weights, hr_compress_attr attr, int32_t y);

#endif
