/* SPDX-License-Identifier: Apache-2.0 */
/* train/refuse.h - what to type when nothing fits.
 *
 * Every change in the list was compiled and packed with micro-batch, loss chunk and recomputing
 * open as the recipe leaves them: the bytes beside it are those of a real plan. */
#ifndef HR_TRAIN_REFUSE_H
#define HR_TRAIN_REFUSE_H

#include "train/admit.h"

/* Prints bytes needed and available, the largest part, and the changes that would make the run fit,
 * cheapest first: those that change only time, then the format, the optimiser, the text, the model.
 * The admission's own plan is overwritten.
 *
 *   text  [bytes] out, terminated; cut where it is full */
void hr_refuse(hr_memory *memory, const hr_config *config, hr_admission *admission, char *text,
               int64_t bytes);

#endif
