/* SPDX-License-Identifier: Apache-2.0 */
/* admission/format_loss.h - what formats of weights and optimizer states cost in loss.
 *
 * Measured by bench/low_bytes, with what was trained and how in docs/low-byte-formats.md. */
#ifndef HR_ADMISSION_FORMAT_LOSS_H
#define HR_ADMISSION_FORMAT_LOSS_H

#include "headroom/config.h"

typedef struct {
    int32_t optimizer, master, moments; /* in bf16 */
    double percent, interval; /* loss above fp32 states of the optimizer, and the half of its 95 %
                               * interval */
} hr_format_loss;

/* The measured row of a recipe's formats; null: fp32 states, or not measured. Pure. */
const hr_format_loss *hr_format_loss_of(const hr_config *config);

/* Row `index`; null past the last. Pure. */
const hr_format_loss *hr_format_loss_at(int32_t index);

#endif
