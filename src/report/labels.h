/* SPDX-License-Identifier: Apache-2.0 */
/* report/labels.h - a step, a tensor and a number of bytes as people say them. */
#ifndef HR_REPORT_LABELS_H
#define HR_REPORT_LABELS_H

#include "base/writer.h"
#include "graph/program.h"
#include "headroom/plan.h"

/* What a step is: "layer 3 backward, MLP down-projection, gradient of its weight". */
void hr_label_step(const hr_program *program, int32_t step, char text[HR_PLAN_NAME_BYTES]);

/* A tensor by its whole name, with its layer where the name does not say it: "layer 3 up". */
void hr_label_tensor(const hr_tensor *tensor, char text[HR_PLAN_NAME_BYTES]);

/* The section that a step belongs to: a child of the run. */
int32_t hr_label_section(const hr_program *program, int32_t step);

enum { HR_WORDS_BYTES_COLUMNS = 21 };

/* Exact bytes, right-aligned in HR_WORDS_BYTES_COLUMNS, and the size in the unit that suits
 * `largest`, the largest number of the same table. */
void hr_label_put_bytes(hr_writer *writer, int64_t bytes, int64_t largest);

#endif
