/* SPDX-License-Identifier: Apache-2.0 */
/* train/plan.c - plans a run and writes down what came of it. */
#include "headroom/plan.h"

#include "base/checked.h"
#include "plan/plan_file.h"
#include "report/explain.h"
#include "train/admit.h"
#include "train/refuse.h"

static hr_status plan_into(const hr_config *config, const hr_plan_outputs *outputs,
                           hr_memory *memory, hr_admission *admission, hr_error *err)
{
    hr_status status = hr_admit(memory, config, outputs->calibrations, true, admission, err);
    const hr_compiled *compiled = &admission->compiled;
    if (status != HR_OK && status != HR_NO_FIT) return status;
    if (outputs->text && outputs->program)
        hr_explain_program(compiled, outputs->text, outputs->text_bytes);
    else if (outputs->text && status == HR_NO_FIT)
        hr_refuse(memory, config, admission, outputs->text, outputs->text_bytes);
    else if (outputs->text)
        hr_explain_plan(config, compiled, &admission->answer, outputs->text, outputs->text_bytes);
    if (outputs->file && status == HR_OK)
        status = hr_plan_file_write(outputs->file, &compiled->program, &compiled->plan, err);
    return status;
}

hr_status hr_plan_make(const hr_config *config, const hr_plan_outputs *outputs,
                       hr_plan_answer *answer, hr_error *err)
{
    hr_memory memory = { 0 };
    hr_admission admission = { 0 };
    hr_status status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = plan_into(config, outputs, &memory, &admission, err);
    *answer = admission.answer;
    hr_memory_close(&memory);
    return status;
}
