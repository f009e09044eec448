/* SPDX-License-Identifier: Apache-2.0 */
/* run/measures.h - what was measured in a run: by its services (run/host.c) and its transfers. */
#ifndef HR_RUN_MEASURES_H
#define HR_RUN_MEASURES_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/space_file.h"

typedef struct {
    /* Of the current step. */
    int64_t targets; /* target tokens of its batch */
    double lr, loss, grad_norm;
    double z_loss;     /* not included in loss */
    double loss_scale; /* factor of its gradients; 0: none */
    bool is_bad;       /* it gets no update */
    bool overflowed;   /* because its gradient overflowed f16, which is no fault of the recipe */

    /* Since the run began: of its file, and of the files of a frozen model. */
    hr_space_moved moved, base_moved;

    /* Of the last evaluation. */
    int64_t evaluated_tokens;
    double evaluation_loss;
} hr_measures;

#endif
