/* SPDX-License-Identifier: Apache-2.0 */
/* graph/weight_format.h - how a weight is stored in memory and in files, apart from the dtype that
 * products compute with.
 *
 * A stored weight has the element order of the matrix that products read (base/dtype.h), so that
 * dequantizing it is one pass over flat arrays. Its scales are a second tensor, in the order of the
 * file. Operations that do not read a format get a dequantized copy (plan/dequantize.h). */
#ifndef HR_GRAPH_WEIGHT_FORMAT_H
#define HR_GRAPH_WEIGHT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "headroom/config.h"

/* After the name of a matrix in a file: its scales. */
#define HR_SCALES_SUFFIX "_scale_inv"

/* The largest number of scales in a row of blocks. */
enum { HR_SCALES_MAX = 1024 };

typedef struct {
    const char *name;       /* in recipes and on the command line */
    const char *file_dtype; /* in safetensors files; null: F32 */
    hr_dtype dtype;         /* of an element; of HR_WEIGHTS_COMPUTE it is that of products */
    hr_dtype scale_dtype;   /* of a scale in memory and in files that headroom writes */
    int64_t block[2]; /* rows and columns of the matrix in a file that share a scale; an element is
                       * multiplied by it. 0: no scales */
    bool trains;      /* whether the weight may be trained. The others are for frozen weights */
} hr_weight_format;

/* The row of a format: hr_weights_choice, but not HR_WEIGHTS_AUTO. Never null. */
const hr_weight_format *hr_weight_format_of(int32_t format);

/* The scales of a matrix with `rows` x `columns` elements in a file: a table of shape [2]. Zeros:
 * the format has none. */
void hr_weight_scales_shape(const hr_weight_format *format, int64_t rows, int64_t columns,
                            int64_t shape[2]);

#endif
