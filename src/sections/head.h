/* SPDX-License-Identifier: Apache-2.0 */
/* sections/head.h - a head whose weight stays in the files of the model, in strips of its columns.
 *
 * The whole head is by far the largest weight, and all its logits the largest activation. In
 * strips, the loss is a pass over them that adds up the exponentials of each row (ops/loss/loss.h),
 * and its gradient another: a strip of logits is computed again, becomes the gradient of its
 * logits, and adds to the gradient of the input. The bits are those of the whole. */
#ifndef HR_SECTIONS_HEAD_H
#define HR_SECTIONS_HEAD_H

#include "graph/program.h"
#include "headroom/config.h"

/* The most steps, and tensors, that strips add to a program of this config. Pure. */
int32_t hr_head_most(const hr_config *config);

/* Cuts each product of a loss, of an emit, or of one row of logits, whose weight is in a file. Call
 * it after all derivatives, and before passes that tile. A head with an adapter stays whole. An
 * emit step gets the strips in order.
 *
 * Errors   FAILURE  no room for steps or tensors.
 * Cost     one pass over the program. */
HR_MUST_CHECK hr_status hr_head_cut(hr_program *program, hr_error *err);

#endif
