/* SPDX-License-Identifier: Apache-2.0 */
/* prove/values.h - the initial weights of a run as fp32 in a file, and a run that starts from them.
 *
 * Weights in the order of their matrices, K x N, so that a run of another program can read them:
 * one that stores them in another format, or one with another factorization. */
#ifndef HR_PROVE_VALUES_H
#define HR_PROVE_VALUES_H

#include "prove/trace.h"

typedef struct hr_values {
    int file;           /* -1: closed */
    int64_t *offset;    /* [param_max] of each parameter */
    int64_t (*dims)[2]; /* [param_max] K, N */
    int32_t count, param_max;
    uint8_t *buffer;     /* [HR_TRACE_BUFFER_BYTES] */
    const int32_t *from; /* [params of the program that reads] parameter to read; null: its own */
} hr_values;

int64_t hr_values_bytes(int64_t params);

/* Places the tables and creates the file, which has no name. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_values_open(hr_values *values, const char *directory, int64_t params,
                                       uint8_t *buffer, hr_region *region, hr_error *err);

void hr_values_close(hr_values *values);

/* Writes the weight that a step of loading has just loaded, dequantized; ignores other steps.
 * Errors FAILURE. */
HR_MUST_CHECK hr_status hr_values_note(hr_values *values, const hr_executor *executor, int32_t step,
                                       hr_error *err);

/* Appends a matrix that no run loaded. Returns its number in `index`. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_values_append(hr_values *values, int64_t K, int64_t N,
                                         const float *elements, int32_t *index, hr_error *err);

/* Reads rows [row, row + rows) of a matrix. */
HR_MUST_CHECK hr_status hr_values_read(const hr_values *values, int32_t index, int64_t row,
                                       int64_t rows, float *elements, hr_error *err);

/* The service of a run that begins with these weights. */
hr_services hr_values_services(hr_values *values);

#endif
