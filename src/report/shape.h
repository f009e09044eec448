/* SPDX-License-Identifier: Apache-2.0 */
/* report/shape.h - describes the shape of a tensor with numbers and with letters. */
#ifndef HR_REPORT_SHAPE_H
#define HR_REPORT_SHAPE_H

#include "headroom/plan.h"
#include "plan/compile.h"

/* Describes the shape of a tensor, and its `bytes` as a product if that is all it holds. The
 * letters of dimensions:
 *
 *   B, T   sequences and tokens of each      d     model.d_model
 *   V      model.vocab_size                  F     model.d_ff
 *   H, G   heads and key-value heads         K     model.head_dim
 *   R      a rank                            X     model.expansion
 *
 * A dimension that is none of them, or a product of few, is a number. */
void hr_shape_print(const hr_config *config, const hr_tensor *tensor, int64_t bytes,
                    char text[HR_PLAN_SHAPE_BYTES]);

/* Finds the largest tensor of a plan in the arena, and describes it; bytes 0: there is none. */
void hr_shape_largest(const hr_config *config, const hr_compiled *compiled,
                      hr_plan_tensor *largest);

#endif
