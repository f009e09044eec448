/* SPDX-License-Identifier: Apache-2.0 */
/* ops/call.h - the arguments of a running operation. An operation cannot fail, allocate, wait or
 * print.
 *
 * The pool calls the same function once for each `thread`, on any thread of the system; the
 * function computes its share of the work from (thread, threads). An operation with several phases
 * is called once per phase, with a barrier between phases. The number of threads may change which
 * thread computes a value, but not the bits of the value. */
#ifndef HR_OPS_CALL_H
#define HR_OPS_CALL_H

#include <stdint.h>

#include "base/dtype.h"
#include "graph/program.h"

struct hr_kernels;

typedef struct {
    void *in[HR_IN_MAX]; /* null: operand omitted */
    void *out[HR_OUT_MAX];
    void *scratch;    /* shared by all threads; at least scratch_bytes of the op; 64-byte aligned */
    const void *attr; /* attribute struct of the op */
    const struct hr_kernels *kernels;
    int64_t rows;      /* token rows of this iteration; may be fewer than planned, or 0 */
    int64_t row_first; /* global index of the first row: sequence = row / T, position = row % T */
    int64_t turn;      /* iteration of the innermost loop of the step, from 0 */
    int64_t clock;     /* optimizer step, from 0 */
    int64_t uncounted; /* earlier steps that are no update of the optimizer's states */
    uint64_t seed;
    uint32_t clear; /* bit k: output k (operand letter a) starts its sum here */
    hr_dtype dtype; /* dtype of activations: HR_F32 or HR_BF16 */
    int32_t phase, thread, threads;
} hr_call;

typedef void hr_run_fn(const hr_call *call);

/* Splits `count` units evenly over `threads`: share `thread` is [*first, *last). */
static inline void hr_share(int64_t count, int32_t thread, int32_t threads, int64_t *first,
                            int64_t *last)
{
    *first = count * thread / threads;
    *last = count * (thread + 1) / threads;
}

#endif
