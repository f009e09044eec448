/* SPDX-License-Identifier: Apache-2.0 */
/* ops/call.h - what a running operation is given. It cannot fail, allocate, wait or print.
 *
 * Every thread of the pool calls the same function with its own `thread`; the function takes its
 * share of the work from (thread, threads). An operation with several phases is called once a
 * phase; all threads have finished a phase before any enters the next. Which thread computes
 * what may depend on the number of threads; the bits of the result may not. */
#ifndef HR_OPS_CALL_H
#define HR_OPS_CALL_H

#include <stdint.h>

#include "base/dtype.h"
#include "graph/program.h"

struct hr_kernels;

typedef struct {
    void *in[HR_IN_MAX]; /* null: operand left out */
    void *out[HR_OUT_MAX];
    void *scratch;    /* shared by all threads; at least the op's scratch_bytes; 64-aligned */
    const void *attr; /* the op's struct */
    const struct hr_kernels *kernels;
    int64_t rows;      /* token rows of this turn; may be fewer than planned; may be 0 */
    int64_t row_first; /* global index of the first: sequence = row / T, position = row % T */
    int64_t clock;     /* optimiser step, from 0 */
    uint64_t seed;
    uint32_t clear; /* bit k: output k (letter a) starts its sum here */
    hr_dtype dtype; /* of activations: HR_F32 or HR_BF16 */
    int32_t phase, thread, threads;
} hr_call;

typedef void hr_run_fn(const hr_call *call);

/* Share `thread` of `threads` of `count` units, as evenly as whole units go: [*first, *last). */
static inline void hr_share(int64_t count, int32_t thread, int32_t threads, int64_t *first,
                            int64_t *last)
{
    *first = count * thread / threads;
    *last = count * (thread + 1) / threads;
}

#endif
