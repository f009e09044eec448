/* SPDX-License-Identifier: Apache-2.0 */
/* train/probes.h - one plan after the other in one process. */
#ifndef HR_TRAIN_PROBES_H
#define HR_TRAIN_PROBES_H

#include "headroom/plan_queries.h"
#include "mem/memory.h"
#include "train/admit.h"

typedef struct {
    hr_memory memory;
    const char *calibrations;
    hr_admission_room room;
    int64_t least_floor;             /* of the last plan's recipe */
    int64_t work;                    /* of all plans so far, as hr_admission counts it */
    int32_t made;                    /* plans so far */
    char times[HR_TIMES_TEXT_BYTES]; /* of the last */
} hr_probes;

/* Errors   as hr_memory_open. */
HR_MUST_CHECK hr_status hr_probes_open(hr_probes *probes, const hr_plan_query *question,
                                       hr_error *err);
void hr_probes_close(hr_probes *probes);

/* The fastest plan within a budget. Errors as hr_admit. */
HR_MUST_CHECK hr_status hr_probe_fastest(hr_probes *probes, const hr_config *config, int64_t budget,
                                         hr_plan_point *point, hr_error *err);

/* Bytes that are within a budget only if there is a plan that is: about those of the smallest.
 * Errors as hr_admit_least. */
HR_MUST_CHECK hr_status hr_probe_any(hr_probes *probes, const hr_config *config, int64_t budget,
                                     int64_t *bytes, hr_error *err);

/* Process bytes of the smallest plan. Errors as hr_admit_least. */
HR_MUST_CHECK hr_status hr_probe_least(hr_probes *probes, const hr_config *config, int64_t *bytes,
                                       hr_error *err);

#endif
