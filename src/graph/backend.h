/* SPDX-License-Identifier: Apache-2.0 */
/* graph/backend.h - a back end as the planner knows it: how it computes each operation, without its
 * kernels.
 *
 * hr_op (graph/op.h) is true of the mathematics, hr_op_facts of one back end's implementation. A
 * program names its back end, and every size, split and cost that depends on kernels comes from
 * there. The other half, which runs steps, is dev/device.h. */
#ifndef HR_GRAPH_BACKEND_H
#define HR_GRAPH_BACKEND_H

#include "graph/op.h"

/* Kinds of extra work that an operation can declare beside its products and bytes. */
enum { HR_ITEMS_MAX = 4, HR_CAUSE_BYTES = 160 };

/* The implementation of one operation. */
typedef struct {
    uint32_t dtypes; /* bit d: an operand may be of hr_dtype d. Not used for host operations */

    /* Returns whether the back end computes the operation with these attributes. If not, `cause`
     * out: the attribute, its value and what is possible, as "head_width is 320, at most 256".
     * Null: with any. */
    bool (*supports)(const void *attr, char cause[HR_CAUSE_BYTES]);

    /* Token rows may be split at multiples of this; null: 1. */
    int64_t (*row_quantum)(const void *attr);

    /* Scratch bytes of the whole step, over all threads; null: none. Must not decrease with
     * rows. */
    int64_t (*scratch_bytes)(const void *attr, int64_t rows, int32_t threads);

    /* For the cost model only (plan/cost.h). Counts work that is neither a matrix product nor a
     * pass over bytes: exponentials, sums that wait for the rest of a reduction, packing before a
     * product. Each operation defines its own kinds; null: none.
     *   step   attributes, and which operands are present
     *   bf16   whether any operand is bf16
     *   items  in/out; zeros at the call; must not decrease with rows */
    void (*items)(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX]);

    /* For the cost model only. Marks tables of which a call reads or writes one row per token,
     * whatever their length: bit i is input i or output i. */
    uint8_t in_looked_up, out_looked_up;

    /* For the cost model only. How many of the `bytes` of an input a call reads; null: all. */
    int64_t (*in_bytes)(const void *attr, int32_t input, int64_t bytes);

    /* For the cost model only. Number of work pieces that threads share, one thread per piece;
     * null: enough for any number of threads. */
    int64_t (*pieces)(const void *attr, int64_t rows);
} hr_op_facts;

struct hr_rates;

typedef struct hr_backend {
    const char *name;
    const hr_op *const *ops;         /* [op_count] the operations that programs are made of */
    const hr_op_facts *const *facts; /* [op_count] of each; null: the back end does not have it */
    int32_t op_count;

    /* The layout of the matrices that products with this dtype of activations read. */
    hr_layout (*matrix_layout)(hr_dtype activations);

    /* Sets the operation and the attributes of a step that dequantizes a stored parameter, with the
     * operands weight and scales, to the tensor that products read; null: this back end has no
     * stored weights. */
    void (*dequantize)(const hr_program *program, int32_t param, hr_step *step);

    /* Estimates the rates of a machine that was not calibrated (graph/rates.h).
     *   features  of the machine: of a CPU its mask (base/cpu.h)
     *   rates     in: the back end and `threads`, zeros otherwise. out: the rates of operations */
    void (*guess)(uint32_t features, struct hr_rates *rates);
} hr_backend;

static inline const hr_op *hr_step_op(const hr_program *program, const hr_step *step)
{
    return program->backend->ops[step->op];
}

/* Leaves the other outputs to a step whose first output is computed elsewhere. Returns whether
 * there are any. */
static inline bool hr_step_drop_first(const hr_program *program, hr_step *step)
{
    const hr_op *op = hr_step_op(program, step);
    bool any = false;
    for (int32_t k = 1; k < HR_OUT_MAX; k++) any |= step->out[k] != HR_NONE;
    step->out[0] = HR_NONE;
    if (any && op->without_first) op->without_first(step);
    return any;
}

static inline const hr_op_facts *hr_step_facts(const hr_program *program, const hr_step *step)
{
    return program->backend->facts[step->op];
}

/* Checks that the program's back end has every operation of the program, and those that recompute
 * can put in their place, with its dtypes and attributes.
 *
 * Errors   USAGE  the first that it does not have, by name, with the cause. */
HR_MUST_CHECK hr_status hr_backend_check(const hr_program *program, hr_error *err);

#endif
