/* SPDX-License-Identifier: Apache-2.0 */
/* graph/op.h - the properties of an operation that the compiler uses, on every back end. What
 * depends on kernels is in graph/backend.h.
 *
 * Operand letters are all the semantics that passes need (capital: optional operand):
 *   in   r  token rows, split by the loop     w  read completely
 *        s  token rows of sequences: r, but w in a loop over parts of a sequence
 *   out  r  token rows, written once          w  written completely
 *        s  token rows of sequences, which are written with the last of their parts
 *        a  summed over rows into an accumulator; the first write per iteration of its home clears
 *        u  state, updated in place */
#ifndef HR_GRAPH_OP_H
#define HR_GRAPH_OP_H

#include "graph/program.h"
#include "graph/transfer.h"

struct hr_derive;

/* Strips of gradients consist of so many elements, or a multiple: whole runs of the update, so that
 * its results do not depend on strips. */
enum { HR_STRIP_QUANTUM = 4096 };

/* The strips of a gradient consist of whole units: equal parts of it. */
typedef struct {
    int64_t units;  /* of the whole gradient */
    int64_t least;  /* units of a strip; fewer take longer for each unit */
    int64_t enough; /* more are not faster */
} hr_strips;

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

    /* Changes a step whose output 0 is omitted, so that it computes only the other outputs: a
     * recomputing clone, or the rest of a step that computes a gradient in strips. Null: a clone
     * computes output 0 anyway, and the rest needs no change. */
    void (*without_first)(hr_step *step);

    /* Restricts a step over flat arrays to `elements` of them, from `first` on: its operands that
     * are weights, masters, states or gradients are then views of these, or of the scales of their
     * blocks. An iteration of the loop of the step has those that follow the one before. Null: it
     * cannot be split, since it needs the whole matrix. */
    void (*split)(hr_step *step, int64_t first, int64_t elements);

    /* Describes the strips of output 0, the gradient of a weight: parts of it that are contiguous
     * in the layout of the weight, and that the operation can compute alone. No units: it cannot
     * with these attributes; null: with none. */
    hr_strips (*strips)(const void *attr);

    /* Restricts a step to the strip of `units` from `first` on. Iteration i of the loop of the step
     * computes the one i strips behind it. Omits the other outputs. */
    void (*cut_strip)(hr_step *step, int64_t first, int64_t units);

    /* For an operation on whole sequences: whether a loop may have parts of one, of HR_PART_ROWS or
     * a multiple. Null: with no attributes. */
    bool (*has_parts)(const void *attr);

    /* Makes a step one over parts of a sequence. Returns the fp32 elements of the accumulator that
     * is its last output then; 0: it has none. */
    int64_t (*into_parts)(hr_step *step);

    /* Of a term of the gradient norm that reads inputs 0 and 1 of the step that computes a
     * gradient, and not the gradient: the parameter. Null: it is none. */
    int32_t (*measures)(const void *attr);

    /* Floating-point operations of the matrix products for `rows` rows; null: none. */
    int64_t (*flops)(const void *attr, int64_t rows);
} hr_op;

/* Whether an operand is rows of whole sequences. */
static inline bool hr_letter_is_sequence(char letter)
{
    return letter == 's' || letter == 'S';
}

#endif
