/* SPDX-License-Identifier: Apache-2.0 */
/* report/labels.h - readable labels for steps, tensors and sizes. */
#ifndef HR_REPORT_LABELS_H
#define HR_REPORT_LABELS_H

#include "base/writer.h"
#include "graph/program.h"
#include "headroom/plan.h"

/* Describes a step: "layer 3 backward, MLP down-projection, gradient of its weight". */
void hr_label_step(const hr_program *program, int32_t step, char text[HR_PLAN_NAME_BYTES]);

/* Full name of a tensor, with its layer if the name does not include it: "layer 3 up". */
void hr_label_tensor(const hr_tensor *tensor, char text[HR_PLAN_NAME_BYTES]);

/* Name of an activation of a layer in the plural: "norm outputs". */
const char *hr_label_intermediate(hr_intermediate intermediate);

enum { HR_WORDS_BYTES_COLUMNS = 21 };

/* Prints exact bytes, right-aligned in HR_WORDS_BYTES_COLUMNS, and hr_size_print of them. */
void hr_label_put_bytes(hr_writer *writer, int64_t bytes);

#endif
