/* SPDX-License-Identifier: Apache-2.0 */
/* run/measures.h - what the services of a run hand to the trainer (run/host.c writes it). */
#ifndef HR_RUN_MEASURES_H
#define HR_RUN_MEASURES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    /* Of the current step. */
    int64_t targets; /* target tokens of its batch */
    double lr, loss, grad_norm;
    double z_loss;     /* not included in loss */
    double loss_scale; /* factor of its gradients; 0: none */
    bool is_bad;       /* it gets no update */
    bool overflowed;   /* because its gradient overflowed f16, which is no fault of the recipe */

    /* Of the last evaluation. */
    int64_t evaluated_tokens;
    double evaluation_loss;
} hr_measures;

#endif
