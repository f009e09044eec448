/* SPDX-License-Identifier: Apache-2.0 */
/* graph/op.h - what the compiler knows about an operation.
 *
 * Operand letters are the whole semantics that passes need:
 *   in   r  token rows, cut with the loop      w  read whole          (capital: may be left out)
 *   out  r  token rows, written once           w  written whole
 *        a  summed over rows into a carried value; the first write in a turn of its home clears
 *        u  state, read and written in place                          (capital: may be left out) */
#ifndef HR_GRAPH_OP_H
#define HR_GRAPH_OP_H

#include "graph/program.h"

struct hr_derive;

/* Kinds of work that an operation may name beside its products and bytes. */
enum { HR_ITEMS_MAX = 4 };

typedef struct hr_op {
    const char *name;
    const char *in, *out;      /* one letter an operand */
    uint8_t reuse[HR_OUT_MAX]; /* bit j: output may take the bytes of input j if j dies here */
    uint8_t residual;          /* 1 + input that is added to output 0 unchanged; 0: none */
    int16_t remade_by;         /* 1 + op that makes output 0 from output 1 alone, with the same
                                  attributes, bit for bit; 0: none */
    bool host;                 /* run by the trainer, not by a kernel: reads text, writes files */

    /* Emits the steps that compute gradients of the inputs; null: nothing flows through. */
    hr_status (*derivative)(struct hr_derive *derive, int32_t step, hr_error *err);

    /* Of a clone that nobody wants output 0 of: makes it compute the others and not that. Null:
     * output 0 is written all the same. */
    void (*without_first)(hr_step *clone);

    /* Token rows may be cut at multiples of this; null: 1. */
    int64_t (*row_quantum)(const void *attr);

    /* Scratch for the whole step, all threads together; null: none. Grows with rows, never
     * shrinks. */
    int64_t (*scratch_bytes)(const void *attr, int64_t rows, int32_t threads);

    /* Floating-point operations of matrix products over so many rows; null: none. */
    int64_t (*flops)(const void *attr, int64_t rows);

    /* For the price alone (plan/cost.h). What is done beside products and passes over bytes, each
     * kind by its count: exponentials, sums that wait for the rest of a reduction, what is packed
     * before it is multiplied. Kinds are the operation's own; null: none.
     *   step   attributes, and which operands are there
     *   bf16   whether any operand is
     *   items  in: zeros; grow with rows */
    void (*items)(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX]);

    /* For the price alone. Operands that are tables of which a call takes a row a token, however
     * long they are: bit i is input i, output k. */
    uint8_t in_looked_up, out_looked_up;

    /* For the price alone. Pieces that threads share, each piece done by one; null: enough for any
     * number of threads. */
    int64_t (*pieces)(const void *attr, int64_t rows);
} hr_op;

#endif
