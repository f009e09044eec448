/* SPDX-License-Identifier: Apache-2.0 */
/* admission/format_loss.h - what formats of weights and optimizer states cost in loss.
 *
 * Measured by bench/low_bytes, with what was trained and how in docs/low-byte-formats.md. */
#ifndef HR_ADMISSION_FORMAT_LOSS_H
#define HR_ADMISSION_FORMAT_LOSS_H

#include "config/config.h"

typedef struct {
    int32_t format, optimizer, master, moments; /* hr_format: of train.dtype */
    double percent, interval; /* loss above fp32 states of the optimizer, and the half of its 95 %
                               * interval */
} hr_format_loss;

/* The measured row of a recipe's formats; null: fp32 states, or not measured. States beside fp32
 * weights have the row of bf16. Pure. */
const hr_format_loss *hr_format_loss_of(const hr_config *config);

/* "loss +0.08 +- 0.14 % in a small bf16 model"; empty for null, and for a row without a difference.
 * Returns text. */
enum { HR_FORMAT_LOSS_BYTES = 64 };
const char *hr_format_loss_print(const hr_format_loss *loss, char text[HR_FORMAT_LOSS_BYTES]);

/* Row `index`; null past the last. Pure. */
const hr_format_loss *hr_format_loss_at(int32_t index);

#endif
