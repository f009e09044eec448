/* SPDX-License-Identifier: Apache-2.0 */
/* run/initialize.h - initial values of a parameter, as its model family defines them. */
#ifndef HR_RUN_INITIALIZE_H
#define HR_RUN_INITIALIZE_H

#include <signal.h>

#include "graph/program.h"

/* Writes master, and weight if it is a separate tensor; only weight if master is null. Element (k,
 * n) depends only on (seed, index, k, n), not on layout, dtype or order of loading. Padding is
 * zero.
 *
 *   index       parameter index
 *   interrupts  once above 0, the remaining elements stay unwritten; null: none */
void hr_initialize(const hr_program *program, int32_t index, uint64_t seed, float *master,
                   void *weight, const volatile sig_atomic_t *interrupts);

#endif
