/* SPDX-License-Identifier: Apache-2.0 */
/* run/initialize.h - initial values of a parameter, as its model family defines them. */
#ifndef HR_RUN_INITIALIZE_H
#define HR_RUN_INITIALIZE_H

#include <signal.h>

#include "checkpoint/weights_in.h"

/* Writes master, and weight if it is a separate tensor; only weight if master is null. A stored
 * weight gets the nearest elements of its format, with equal scales. Element (k,
 * n) depends only on (seed, index, k, n), not on layout, dtype or order of loading. Padding is
 * zero.
 *
 *   index       parameter index
 *   interrupts  once above 0, the remaining elements stay unwritten; null: none */
void hr_initialize(const hr_program *program, int32_t index, uint64_t seed, hr_weights_place place,
                   const volatile sig_atomic_t *interrupts);

/* Sets a state of a parameter, at `to`, to its initial value. A residual is part of the weights, so
 * it stays as it is.
 *   weights  initialized or loaded before */
void hr_initialize_state(const hr_program *program, int32_t param, int32_t state,
                         hr_weights_place weights, void *to);

#endif
