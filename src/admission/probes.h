/* SPDX-License-Identifier: Apache-2.0 */
/* admission/probes.h - a series of plans in one process, with shared memory and search results. */
#ifndef HR_ADMISSION_PROBES_H
#define HR_ADMISSION_PROBES_H

#include "admission/admit.h"
#include "admission/machine.h"
#include "headroom/plan_queries.h"

typedef struct {
    const hr_admission_machine *machine;
    hr_admission_room room;
    int64_t least_floor;             /* of the recipe of the last plan */
    int64_t work;                    /* of all plans so far, in units of hr_admission.work */
    int64_t work_most;               /* limit of it, see hr_plan_query */
    int32_t made;                    /* plans made so far */
    bool has_file;                   /* of the recipe of the last plan (hr_admission) */
    char times[HR_TIMES_TEXT_BYTES]; /* source of the rates of the last plan */
} hr_probes;

/* Begins a series with an empty cache of search results, in a region of the machine. Errors as
 * machine->open. */
HR_MUST_CHECK hr_status hr_probes_open(hr_probes *probes, const hr_admission_machine *machine,
                                       const hr_plan_query *question, hr_error *err);

/* Forgets the results of the search: the machine has changed, and with it the rates. */
void hr_probes_forget(hr_probes *probes);

/* Returns whether the limit of work is reached. */
static inline bool hr_probes_are_spent(const hr_probes *probes)
{
    return probes->work >= probes->work_most;
}

/* Finds the fastest plan within a budget. Errors as hr_admit. */
HR_MUST_CHECK hr_status hr_probe_fastest(hr_probes *probes, const hr_config *config, int64_t budget,
                                         hr_plan_point *point, hr_error *err);

/* Finds out whether any plan fits a budget: *bytes is within the budget only if a plan is. *bytes
 * is close to the process bytes of the smallest plan. Errors as hr_admit_least. */
HR_MUST_CHECK hr_status hr_probe_any(hr_probes *probes, const hr_config *config, int64_t budget,
                                     int64_t *bytes, hr_error *err);

/* Finds the process bytes of the smallest plan. Errors as hr_admit_least. */
HR_MUST_CHECK hr_status hr_probe_least(hr_probes *probes, const hr_config *config, int64_t *bytes,
                                       hr_error *err);

#endif
