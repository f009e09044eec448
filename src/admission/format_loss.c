/* SPDX-License-Identifier: Apache-2.0 */
/* admission/format_loss.c - the table. A test compares it with the page. */
#include "admission/format_loss.h"

#include <stddef.h>
#include <stdio.h>

#define ROW(optimizer, master, moments, percent, interval) \
    { \
        HR_FORMAT_BF16, HR_OPTIMIZER_##optimizer, HR_MASTERS_##master, HR_MOMENTS_##moments, \
            percent, interval \
    }

static const hr_format_loss rows[] = {
    ROW(ADAMW, FP32, BF16, 0.04, 0.46),
    ROW(ADAMW, FP32, INT8, 0.05, 0.33),
    ROW(ADAMW, RESIDUAL16, FP32, 0, 0),
    ROW(ADAMW, RESIDUAL8, FP32, 0.04, 0.19),
    ROW(ADAMW, RESIDUAL8, INT8, 0.05, 0.45),
    ROW(ADAMW, NONE, FP32, 0, 0.22),
    ROW(ADAMW, NONE, INT8, 0.08, 0.14),
    ROW(LION, FP32, INT8, -1.11, 1.79),
    ROW(MUON, FP32, INT8, 0.10, 0.15),
    ROW(MUON, NONE, INT8, 0.06, 0.20),
    ROW(ADAFACTOR, NONE, FP32, -0.04, 0.17),
    ROW(SGD, FP32, INT8, -0.10, 0.69),
    ROW(SGD, NONE, INT8, -0.21, 1.62),
    { HR_FORMAT_FP16, HR_OPTIMIZER_ADAMW, HR_MASTERS_FP32, HR_MOMENTS_FP32, -0.01, 0.04 },
};

const hr_format_loss *hr_format_loss_at(int32_t index)
{
    return index >= 0 && index < (int32_t)(sizeof rows / sizeof *rows) ? &rows[index] : NULL;
}

const char *hr_format_loss_print(const hr_format_loss *loss, char text[HR_FORMAT_LOSS_BYTES])
{
    *text = 0;
    if (loss && loss->interval > 0)
        snprintf(text, HR_FORMAT_LOSS_BYTES, "loss %+.2f +- %.2f %% in a small %s model",
                 loss->percent, loss->interval, hr_format_name(loss->format));
    return text;
}

/* A residual of 16 bits is an fp32 master in two places, and moments are the same beside fp32
 * weights; activations in f16 are another matter. */
const hr_format_loss *hr_format_loss_of(const hr_config *config)
{
    const hr_format_loss *row;
    for (int32_t i = 0; (row = hr_format_loss_at(i)); i++) {
        const int32_t master = config->train.state.master;
        const bool halves = master == HR_MASTERS_RESIDUAL16 && row->master == HR_MASTERS_FP32;
        const bool fp16 = row->format == HR_FORMAT_FP16;
        if (fp16 == (config->train.dtype == HR_FORMAT_FP16) &&
            row->optimizer == config->train.optimizer.kind &&
            row->moments == config->train.state.moments && (row->master == master || halves))
            return row;
    }
    return NULL;
}
