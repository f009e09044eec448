/* SPDX-License-Identifier: Apache-2.0 */
/* model/npt_inputs.h - what layers read that learn to equal others, by step. */
#ifndef HR_MODEL_NPT_INPUTS_H
#define HR_MODEL_NPT_INPUTS_H

#include "config/config.h"

/* What layers that learn to equal others read: the output of the standard layer before, or of the
 * layer itself, with the gradient passing through it or not; or for each sequence one of the first
 * two, at random.
 *
 *     train.adapter.inputs  teacher, student, detached, mixed:SHARE of the student; words with
 *                           @STEP hold from that step on: "teacher mixed:0.5@1000 student@2000" */
typedef enum { HR_NPT_TEACHER, HR_NPT_STUDENT, HR_NPT_DETACHED, HR_NPT_MIXED } hr_npt_inputs;

enum { HR_NPT_PHASES_MOST = 8 };

typedef struct {
    int64_t step;
    double share; /* of sequences that read the student */
} hr_npt_phase;

/* The same of a checked config. `phases` and `count`: of MIXED, by step; otherwise one. */
hr_npt_inputs hr_npt_inputs_of(const hr_config *config, hr_npt_phase phases[HR_NPT_PHASES_MOST],
                               int32_t *count);

/* Checks the text of train.adapter.inputs. Errors USAGE. */
HR_MUST_CHECK hr_status hr_npt_inputs_check(const char *text, hr_error *err);

#endif
