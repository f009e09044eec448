/* SPDX-License-Identifier: Apache-2.0 */
/* planning/plan.c - plans a run and prints the result. */
#include "headroom/plan.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "admission/admit.h"
#include "admission/refuse.h"
#include "admission/remove.h"
#include "admission/stages.h"
#include "base/file.h"
#include "base/options.h"
#include "plan/plan_file.h"
#include "planning/disk.h"
#include "planning/larger.h"
#include "planning/stopping.h"
#include "planning/target.h"
#include "report/details.h"
#include "report/explain.h"
#include "report/html.h"
#include "report/listing.h"
#include "report/page.h"
#include "report/snapshot.h"

/* Finds what to report: how to make a plan smaller that fits, or what would fit instead. */
static hr_status find_reasons(const hr_config *config, const hr_admission_machine *machine,
                              hr_admission *admission, hr_plan_details *details, hr_error *err)
{
    const hr_status status = hr_details(&admission->config, &admission->compiled.program,
                                        &admission->compiled.plan, &admission->region, details,
                                        err);
    if (status != HR_OK) return status;
    if (admission->answer.fits) return hr_remove(machine, admission, details, err);
    hr_refuse(machine, config, admission, details);
    return HR_OK;
}

static void print(const hr_config *config, const hr_plan_outputs *outputs,
                  const hr_plan_answer *answer, const hr_plan_details *details)
{
    hr_writer writer = { outputs->text, outputs->text_bytes };
    if (answer->fits)
        hr_explain_plan(config, answer, details, outputs->colour, outputs->blocks, &writer);
    else hr_explain_refusal(config, answer, details, outputs->colour, &writer);
}

/* "plan.json" of stage 3 is "plan-3.json". */
static hr_status name_file(const char *path, int32_t number, char name[HR_PATH_BYTES],
                           hr_error *err)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const int stem = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);
    const int length = snprintf(name, HR_PATH_BYTES, "%.*s-%d%s", stem, path, number, path + stem);
    if (length < HR_PATH_BYTES) return HR_OK;
    return hr_fail(err, HR_USAGE, "%.200s: the path is too long", path);
}

/* Checks the files of all stages, and that none of a longer run is left beside them: a pattern such
 * as plan-*.json would take it for a stage. Not inlined, as plan_into. */
static __attribute__((noinline)) hr_status check_files(const hr_config *config, const char *path,
                                                       hr_error *err)
{
    char name[HR_PATH_BYTES];
    hr_stages stages;
    if (!hr_config_has_stages(config)) return hr_plan_file_check(path, err);
    hr_status status = hr_config_stages(config, &stages, err);
    for (int32_t i = 1; i <= stages.count && status == HR_OK; i++) {
        status = name_file(path, i, name, err);
        if (status == HR_OK) status = hr_plan_file_check(name, err);
    }
    if (status == HR_OK) status = name_file(path, stages.count + 1, name, err);
    if (status != HR_OK || !hr_file_exists(name)) return status;
    return hr_fail(err, HR_USAGE,
                   "%.900s: exists, and the run has only %d stages: remove it, or give another "
                   "--out",
                   name, stages.count);
}

/* Writes the plan of each stage to a file of its own. */
static hr_status write_stages(const hr_admission_machine *machine, hr_stage_set *set,
                              const char *path, hr_admission *admission, hr_error *err)
{
    char name[HR_PATH_BYTES];
    hr_status status = HR_OK;
    for (int32_t i = 0; i < set->list.count && status == HR_OK; i++) {
        status = hr_stage_set_compile(set, i, admission, err);
        if (status == HR_OK) status = hr_stage_set_account(machine, set, true, admission, err);
        if (status == HR_OK) status = name_file(path, i + 1, name, err);
        if (status == HR_OK)
            status = hr_plan_file_write(name, &admission->compiled.program,
                                        &admission->compiled.plan, err);
    }
    return status;
}

/* Not inlined: the memory has to be opened with a small stack (mem/process.h). */
static __attribute__((noinline)) hr_status plan_into(const hr_config *given,
                                                     const hr_plan_outputs *outputs,
                                                     hr_memory *memory, hr_admission *admission,
                                                     hr_plan_details *details, hr_error *err)
{
    hr_measured measured;
    const hr_config *config;
    const hr_admission_machine machine = hr_target(outputs->device, memory, outputs->calibrations,
                                                   &measured);
    hr_status status = hr_target_config(outputs->device, given, memory, &config, err);
    hr_stage_set *set = NULL;
    if (status == HR_OK && hr_config_has_stages(config))
        status = hr_admit_stages(&machine, config, admission, &set, err);
    else if (status == HR_OK) status = hr_admit(&machine, config, true, NULL, admission, err);
    if (set) config = &set->config;
    const hr_compiled *compiled = &admission->compiled;
    const bool is_refused = status == HR_NO_FIT && compiled->program.step_count &&
                            !hr_admit_exceeds_file(admission);
    if (status != HR_OK && !is_refused) return status;
    hr_disk_of(config, &compiled->program, admission->answer.file_bytes, 0,
               &admission->answer.disk);
    if (status == HR_OK && outputs->device) {
        status = hr_target_check_disk(config, &admission->answer.disk, &admission->answer.device,
                                      err);
        admission->answer.fits = status == HR_OK;
        if (status != HR_OK) return status;
    }
    if (!outputs->device)
        hr_stopping_describe(&compiled->program, &admission->rates, &admission->answer);
    const bool table = (outputs->text && !outputs->program) || outputs->page;
    hr_error other;
    /* First, because what follows overwrites a refused program. */
    if (outputs->text && outputs->program)
        hr_listing(&compiled->program, outputs->text, outputs->text_bytes);
    if (table || outputs->details) {
        const hr_status found = find_reasons(config, &machine, admission, details, &other);
        if (found != HR_OK) return hr_fail(err, found, "%s", other.message);
        if (is_refused) hr_larger_find(outputs->device, config, memory, admission);
    }
    if (outputs->text && !outputs->program) print(config, outputs, &admission->answer, details);
    if (outputs->page && hr_page_write(outputs->page, &admission->config, &admission->answer,
                                       details, &other) != HR_OK)
        return hr_fail(err, other.status, "%s", other.message);
    if (set && outputs->stages)
        memcpy(outputs->stages, set->plans, (size_t)set->list.count * sizeof *outputs->stages);
    if (outputs->snapshot && status == HR_OK)
        status = hr_snapshot_write(outputs->snapshot, compiled, &admission->region, err);
    if (!outputs->file || status != HR_OK) return status;
    if (set) return write_stages(&machine, set, outputs->file, admission, err);
    return hr_plan_file_write(outputs->file, &compiled->program, &compiled->plan, err);
}

/* Not inlined, as above. */
static __attribute__((noinline)) hr_status plan_alone(const hr_config *config,
                                                      const hr_plan_outputs *outputs,
                                                      hr_memory *memory, hr_admission *admission,
                                                      hr_error *err)
{
    hr_plan_details details;
    return plan_into(config, outputs, memory, admission, &details, err);
}

hr_status hr_plan_make(const hr_config *config, const hr_plan_outputs *given,
                       hr_plan_answer *answer, hr_error *err)
{
    hr_plan_outputs outputs;
    hr_memory memory = { 0 };
    hr_admission admission = { .progress = { 0 } };
    hr_status status = hr_options_take(&outputs, sizeof outputs, given, err);
    admission.progress = outputs.progress;
    if (status == HR_OK && outputs.file) status = check_files(config, outputs.file, err);
    if (status == HR_OK && outputs.snapshot)
        status = hr_file_check_kind(outputs.snapshot, hr_snapshot_begin, "snapshot", err);
    if (status == HR_OK && outputs.page) status = hr_html_check(outputs.page, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK && outputs.details)
        status = plan_into(config, &outputs, &memory, &admission, outputs.details, err);
    else if (status == HR_OK) status = plan_alone(config, &outputs, &memory, &admission, err);
    admission.answer.stages = outputs.stages; /* the others end with the memory */
    if (answer) *answer = admission.answer;
    hr_memory_close(&memory);
    return status;
}
