/* SPDX-License-Identifier: Apache-2.0 */
/* ops/host/host.h - steps that the trainer runs itself, between kernels: they read text, write
 * files and hand numbers over. They are steps of the program, so that what they touch is planned.
 *
 *   initialise  out  master W, weight W, moment W, moment W,  first values of one parameter,
 *                    average W                                made up or read from files
 *   batch       out  ids R, targets R, scale W, lr W,         rows of the next batch of text; what
 *                    begins R                                 all its rows are scaled by, and lr;
 *                                                             where documents begin
 *   prompt      out  ids r, position W                        what a text goes on with, and where
 *   sample      in   logits r                                 choose the next token
 *   emit        in   logits r                                 into a file, or against what comes
 *                                                             next in a text
 *   report      in   sums w ...                               numbers for the log
 *   save        in   master w, moment W, moment W, average W  one parameter into files, by pieces
 *
 * save, sample, emit and initialise work through a scratch buffer of `staging_bytes`. */
#ifndef HR_OPS_HOST_H
#define HR_OPS_HOST_H

#include "graph/builder.h"

typedef struct {
    int32_t param; /* row of the table of parameters, where the step belongs to one */
    int64_t staging_bytes;
} hr_host_attr;

#endif
