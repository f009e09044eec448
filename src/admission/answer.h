/* SPDX-License-Identifier: Apache-2.0 */
/* admission/answer.h - the answer of an admission. */
#ifndef HR_ADMISSION_ANSWER_H
#define HR_ADMISSION_ANSWER_H

#include "admission/admit.h"

/* Fills the answer from the compiled plan, except what the search decides: whether the plan fits,
 * minimum_bytes and the bounds of the search. */
void hr_answer_describe(hr_admission *admission);

/* Fills the device of an answer. */
void hr_answer_describe_device(const hr_device_choice *choice, hr_plan_device *device);

#endif
