/* SPDX-License-Identifier: Apache-2.0 */
/* graph/op.h - the properties of an operation that the compiler uses.
 *
 * Operand letters are all the semantics that passes need (capital: optional operand):
 *   in   r  token rows, split by the loop     w  read completely
 *   out  r  token rows, written once          w  written completely
 *        a  summed over rows into an accumulator; the first write per iteration of its home clears
 *        u  state, updated in place */
#ifndef HR_GRAPH_OP_H
#define HR_GRAPH_OP_H

#include "graph/program.h"

struct hr_derive;

/* Kinds of extra work that an operation can declare beside its products and bytes. */
enum { HR_ITEMS_MAX = 4 };

typedef struct hr_op {
    const char *name;
    const char *in, *out;      /* one letter per operand */
    uint8_t reuse[HR_OUT_MAX]; /* bit j: output may overwrite input j after its last use */
    uint8_t residual;          /* 1 + input that is added to output 0 unchanged; 0: none */
    int16_t remade_by;         /* 1 + op that computes output 0 from output 1 alone, with the same
                                * attributes, bit-identical; 0: none */
    bool host;                 /* run by the trainer, not by a kernel: reads text, writes files */

    /* Emits the steps that compute gradients of the inputs; null: no gradient flows through. */
    hr_status (*derivative)(struct hr_derive *derive, int32_t step, hr_error *err);

    /* Changes a recomputing clone whose output 0 has no reader, so that it computes only the other
     * outputs. Null: it computes output 0 anyway. */
    void (*without_first)(hr_step *clone);

    /* Token rows may be split at multiples of this; null: 1. */
    int64_t (*row_quantum)(const void *attr);

    /* Scratch bytes of the whole step, over all threads; null: none. Must not decrease with
     * rows. */
    int64_t (*scratch_bytes)(const void *attr, int64_t rows, int32_t threads);

    /* Floating-point operations of the matrix products for `rows` rows; null: none. */
    int64_t (*flops)(const void *attr, int64_t rows);

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

    /* For the cost model only. Number of work pieces that threads share, one thread per piece;
     * null: enough for any number of threads. */
    int64_t (*pieces)(const void *attr, int64_t rows);
} hr_op;

#endif
