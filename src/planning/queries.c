/* SPDX-License-Identifier: Apache-2.0 */
/* planning/queries.c - the questions of headroom/plan_queries.h about this machine. */
#include "headroom/plan_queries.h"

#include "admission/queries.h"
#include "base/options.h"
#include "planning/target.h"

/* The queries are functions of another file, so that the memory is opened with a small stack
 * (mem/process.h). */
typedef struct {
    hr_memory memory;
    hr_measured measured;
    hr_admission_machine machine;
    const hr_config *config;
    hr_plan_query question;
} place;

static hr_status open_place(place *here, const hr_config *config, const hr_plan_query *given,
                            hr_error *err)
{
    *here = (place){ .memory = { 0 } };
    hr_status status = hr_options_take(&here->question, sizeof here->question, given, err);
    if (status == HR_OK) status = hr_memory_open(&here->memory, err);
    if (status != HR_OK) return status;
    here->machine = hr_target(here->question.device, &here->memory, here->question.calibrations,
                              &here->measured);
    return hr_target_config(here->question.device, config, &here->memory, &here->config, err);
}

hr_status hr_plan_largest(const hr_config *config, const char *key, const hr_plan_query *question,
                          hr_largest *answer, hr_error *err)
{
    place here;
    hr_status status = open_place(&here, config, question, err);
    if (status == HR_OK)
        status = hr_query_largest(&here.machine, here.config, key, &here.question, answer, err);
    hr_memory_close(&here.memory);
    return status;
}

hr_status hr_plan_smallest(const hr_config *config, double slowdown, const hr_plan_query *question,
                           hr_smallest *answer, hr_error *err)
{
    place here;
    hr_status status = open_place(&here, config, question, err);
    if (status == HR_OK)
        status = hr_query_smallest(&here.machine, here.config, slowdown, &here.question, answer,
                                   err);
    hr_memory_close(&here.memory);
    return status;
}

hr_status hr_plan_frontier(const hr_config *config, const char *svg, const hr_plan_query *question,
                           hr_frontier *answer, hr_error *err)
{
    place here;
    hr_status status = open_place(&here, config, question, err);
    if (status == HR_OK)
        status = hr_query_frontier(&here.machine, here.config, svg, &here.question, answer, err);
    hr_memory_close(&here.memory);
    return status;
}
