/* SPDX-License-Identifier: Apache-2.0 */
/* train/initialise.h - first values of a parameter, as its family names them. */
#ifndef HR_TRAIN_INITIALISE_H
#define HR_TRAIN_INITIALISE_H

#include <signal.h>

#include "graph/program.h"

/* Writes master, and weight where it is another tensor; weight alone where master is null. Element
 * (k, n) is a function of (seed, index, k, n) alone: neither the layout nor the format nor the
 * order of loading changes it. Padding is zero.
 *
 *   index       row of the table of parameters
 *   interrupts  once above 0, what is not written yet stays so; null: there are none */
void hr_initialise(const hr_program *program, int32_t index, uint64_t seed, float *master,
                   void *weight, const volatile sig_atomic_t *interrupts);

#endif
