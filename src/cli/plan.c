/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan.c - headroom plan: will it fit, what eats it, what to change. */
#include "headroom/plan.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

enum { PLAN_TEXT_BYTES = 1 << 16, PROGRAM_TEXT_BYTES = 1 << 24 };

static void print_json(const hr_plan_answer *answer)
{
    json_t *certificate = json_pack("{s:f, s:f}", "lower_bound_seconds", answer->bound_seconds,
                                    "found_seconds", answer->step_seconds);
    if (answer->bound_seconds < 0)
        json_object_set_new(certificate, "lower_bound_seconds", json_null());
    json_t *object = json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:s, s:s, s:f, s:s, s:s, "
        "s:o}",
        "fits", answer->fits, "process_bytes", (json_int_t)answer->process_bytes, "minimum_bytes",
        (json_int_t)answer->minimum_bytes, "available_bytes", (json_int_t)answer->available_bytes,
        "arena_bytes", (json_int_t)answer->arena_bytes, "floor_bytes",
        (json_int_t)answer->floor_bytes, "kernel_bytes", (json_int_t)answer->kernel_bytes,
        "parameters", (json_int_t)answer->parameters, "micro_batch",
        (json_int_t)answer->micro_batch, "loss_chunk", (json_int_t)answer->loss_chunk,
        "flops_per_token", (json_int_t)answer->flops_per_token, "threads", answer->threads, "rung",
        answer->rung, "packing", answer->packing, "step_seconds_predicted", answer->step_seconds,
        "times", answer->times, "strategy", answer->strategy, "certificate", certificate);
    json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    printf("\n");
}

static int plan(const hr_cli_arguments *arguments, const hr_config *config, char *text,
                int64_t text_bytes)
{
    hr_plan_answer answer;
    hr_error err;
    const bool json = arguments->values[HR_OPTION_JSON];
    const bool program = arguments->values[HR_OPTION_PROGRAM];
    const hr_plan_outputs outputs = { .file = arguments->values[HR_OPTION_PLAN_OUT],
                                      .text = text,
                                      .text_bytes = text_bytes,
                                      .program = program };
    *text = 0;
    const hr_status status = hr_plan_make(config, &outputs, &answer, &err);
    const bool answered = status == HR_OK || status == HR_NO_FIT;
    if (answered && json) print_json(&answer);
    else if (answered) printf("%s", text);
    return status == HR_OK ? HR_OK : hr_cli_fail(&err);
}

int hr_cli_plan(const hr_cli_arguments *arguments)
{
    hr_config config;
    hr_error err;
    const bool program = arguments->values[HR_OPTION_PROGRAM];
    if (program && arguments->values[HR_OPTION_JSON]) {
        (void)hr_fail(&err, HR_USAGE, "--program and --json both say what to print; give one");
        return hr_cli_fail(&err);
    }
    if (hr_cli_recipe(arguments, &config, &err) != HR_OK) return hr_cli_fail(&err);
    if (hr_cli_check_out(arguments->values[HR_OPTION_PLAN_OUT], &err) != HR_OK)
        return hr_cli_fail(&err);
    const int64_t text_bytes = program ? PROGRAM_TEXT_BYTES : PLAN_TEXT_BYTES;
    /* From the heap, whose line of the plan is fixed: a mapping of its own would be counted with
     * the image, and this plan would not be the one that `train` makes. */
    mallopt(M_MMAP_MAX, 0);
    char *text = malloc((size_t)text_bytes);
    if (!text) {
        (void)hr_fail(&err, HR_FAILURE, "no memory for %lld bytes of text", (long long)text_bytes);
        return hr_cli_fail(&err);
    }
    const int code = plan(arguments, &config, text, text_bytes);
    free(text);
    return code;
}
