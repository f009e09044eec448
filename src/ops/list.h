/* SPDX-License-Identifier: Apache-2.0 */
/* ops/list.h - the list of operations. Each has a compiler half hr_<name>_op and a kernel half
 * hr_<name>_run with its number of phases (0: run by the host). */
#ifndef HR_OPS_LIST_H
#define HR_OPS_LIST_H

#include "graph/op.h"
#include "ops/call.h"

#define HR_OP_LIST(X) \
    X(embed, 1) \
    X(embed_bwd, 1) \
    X(norm, 1) \
    X(norm_bwd, 2) \
    X(linear, 1) \
    X(linear_dx, 1) \
    X(linear_dw, 1) \
    X(activation, 1) \
    X(glu, 1) \
    X(glu_bwd, 1) \
    X(recurrence, 1) \
    X(recurrence_bwd, 2) \
    X(recurrence_clear, 1) \
    X(rope_table, 1) \
    X(rope, 1) \
    X(attention, 1) \
    X(attention_bwd, 1) \
    X(attention_cached, 1) \
    X(cache_clear, 1) \
    X(cache_append, 1) \
    X(dropout, 1) \
    X(loss, 2) \
    X(last_row, 1) \
    X(merge, 1) \
    X(sumsq, 2) \
    X(clip, 1) \
    X(adamw, 1) \
    X(sgd, 1) \
    X(average, 1)

/* Operations that the trainer runs: they read text, write files and report numbers. */
#define HR_HOST_OP_LIST(X) \
    X(initialise) \
    X(batch) \
    X(prompt) \
    X(sample) \
    X(emit) \
    X(report) \
    X(save)

#define HR_OP_ID(name, phases) HR_OP_##name,
#define HR_HOST_OP_ID(name) HR_OP_##name,
enum { HR_OP_LIST(HR_OP_ID) HR_HOST_OP_LIST(HR_HOST_OP_ID) HR_OP_COUNT };
#undef HR_OP_ID
#undef HR_HOST_OP_ID

/* [HR_OP_COUNT] properties of each operation, for the compiler. */
extern const hr_op *const hr_op_table[];

/* Kernel half of an operation: null and 0 phases for a host operation. */
typedef struct {
    hr_run_fn *run;
    int32_t phases;
} hr_op_run;

/* [HR_OP_COUNT] kernels, for the executor. They are in a separate file so that the compiler links
 * no kernel. */
extern const hr_op_run hr_op_run_table[];

#endif
