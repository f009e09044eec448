/* SPDX-License-Identifier: Apache-2.0 */
/* graph/op.h - the properties of an operation that the compiler uses, on every back end. What
 * depends on kernels is in graph/backend.h.
 *
 * Operand letters are all the semantics that passes need (capital: optional operand):
 *   in   r  token rows, split by the loop     w  read completely
 *   out  r  token rows, written once          w  written completely
 *        a  summed over rows into an accumulator; the first write per iteration of its home clears
 *        u  state, updated in place */
#ifndef HR_GRAPH_OP_H
#define HR_GRAPH_OP_H

#include "graph/program.h"
#include "graph/transfer.h"

struct hr_derive;

typedef struct hr_op {
    const char *name;
    const char *in, *out;      /* one letter per operand */
    uint8_t reuse[HR_OUT_MAX]; /* bit j: output may overwrite input j after its last use */
    uint8_t residual;          /* 1 + input that is added to output 0 unchanged; 0: none */
    int16_t remade_by;         /* 1 + op that computes output 0 from output 1 alone, with the same
                                * attributes, bit-identical; 0: none */
    uint8_t transfer;          /* hr_transfer: a service that moves values between spaces */
    uint32_t host;             /* a service, run by the host and not by a kernel (dev/service.h):
                                * bit i: the section hr_loop_id i may hold it; 0: a kernel */

    /* Emits the steps that compute gradients of the inputs; null: no gradient flows through. */
    hr_status (*derivative)(struct hr_derive *derive, int32_t step, hr_error *err);

    /* Changes a recomputing clone whose output 0 has no reader, so that it computes only the other
     * outputs. Null: it computes output 0 anyway. */
    void (*without_first)(hr_step *clone);

    /* Restricts a step over flat arrays to `elements` of them: its operands that are weights,
     * masters, states or gradients are then views of that many. Null: it cannot be split. */
    void (*split)(hr_step *step, int64_t elements);

    /* Floating-point operations of the matrix products for `rows` rows; null: none. */
    int64_t (*flops)(const void *attr, int64_t rows);
} hr_op;

#endif
