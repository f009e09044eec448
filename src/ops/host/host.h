/* SPDX-License-Identifier: Apache-2.0 */
/* ops/host/host.h - operations that the trainer runs between kernels: they read text, write files
 * and report numbers. They are part of the program, so their memory is planned.
 *
 *   initialise  out  master W, weight W, states W ...         initial values of one parameter,
 *                                                             generated or read from files
 *   batch       out  ids R, targets R, scale W, lr W,         the next batch of text, the loss
 *                    begins R                                 scale, the learning rate, and the
 *                                                             starts of documents
 *   prompt      out  ids r, position W                        the prompt and its position
 *   sample      in   logits r                                 chooses the next token
 *   emit        in   logits r                                 writes logits, or computes the loss
 *                                                             against the next tokens of a text
 *   report      in   sums w ...                               numbers for the log
 *   save        in   master w, states W ...                   writes one parameter in pieces
 *
 * save, sample, emit and initialise use a scratch buffer of `staging_bytes`. */
#ifndef HR_OPS_HOST_H
#define HR_OPS_HOST_H

#include "graph/backend.h"
#include "graph/builder.h"
#include "ops/list.h"

typedef struct {
    int32_t param; /* row of the parameter table, for steps of one parameter */
    int64_t staging_bytes;
} hr_host_attr;

/* The same for every back end: hr_<op>_host. */
#define HR_OP_HOST(name) extern const hr_op_facts hr_##name##_host;
HR_HOST_OP_LIST(HR_OP_HOST)
#undef HR_OP_HOST

#endif
