/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan.c - headroom plan: shows whether a run fits, what uses the memory, and what to
 * change. */
#include "headroom/plan.h"
#include "headroom/stages.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { PLAN_TEXT_BYTES = 1 << 16, PROGRAM_TEXT_BYTES = 1 << 24 };

/* ---- JSON: docs/plan-queries.md lists the members */

static json_t *json_of_parts(const hr_plan_part *parts, int32_t count)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "name", parts[i].name, "why",
                                              parts[i].why, "bytes", (json_int_t)parts[i].bytes));
    return list;
}

static json_t *json_of_changes(const hr_plan_change *changes, int32_t count)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < count; i++) {
        json_t *change = json_pack(
            "{s:s, s:s, s:I, s:I, s:f, s:b}", "what", changes[i].what, "price", changes[i].price,
            "process_bytes", (json_int_t)changes[i].bytes, "gained_bytes",
            (json_int_t)changes[i].gained_bytes, "seconds_lost", changes[i].seconds_lost,
            "changes_mathematics", changes[i].changes_mathematics);
        if (changes[i].untimed) json_object_set_new(change, "seconds_lost", json_null());
        json_array_append_new(list, change);
    }
    return list;
}

static void add_disk(json_t *object, const hr_plan_disk *disk)
{
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "tensor_bytes",
                            (json_int_t)disk->tensor_bytes, "checkpoint_bytes",
                            (json_int_t)disk->checkpoint_bytes, "checkpoints",
                            (json_int_t)disk->checkpoints, "log_bytes", (json_int_t)disk->log_bytes,
                            "steps", (json_int_t)disk->steps, "bytes", (json_int_t)disk->bytes);
    json_object_set_new(all, "moments_bytes", json_integer(disk->moments_bytes));
    json_object_set_new(all, "spilled_bytes", json_integer(disk->spilled_bytes));
    json_object_set_new(all, "base_bytes", json_integer(disk->base_bytes));
    json_object_set_new(all, "shard_bytes",
                        disk->shard_bytes < 0 ? json_null() : json_integer(disk->shard_bytes));
    json_object_set_new(object, "disk", all);
}

static void add_details(json_t *object, const hr_plan_details *details)
{
    json_t *curve = json_array();
    for (int32_t i = 0; i < details->curve_count; i++)
        json_array_append_new(curve, json_integer(details->curve[i]));
    json_t *why = json_pack(
        "{s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "steps", details->step_count,
        "peak_step", details->peak_step, "peak", details->peak, "process",
        json_of_parts(details->lines, details->line_count), "phases",
        json_of_parts(details->phases, details->phase_count), "at_peak",
        json_of_parts(details->parts, details->part_count), "largest",
        json_of_parts(details->largest, details->largest_count), "removals",
        json_of_changes(details->removals, details->removal_count), "changes",
        json_of_changes(details->changes, details->change_count), "curve", curve);
    if (details->whole_bytes > 0) {
        const hr_plan_tensor *largest = &details->whole_largest;
        json_object_set_new(why, "not_enough",
                            json_of_changes(details->partial, details->partial_count));
        json_object_set_new(why, "untried", json_string(details->untried));
        json_object_set_new(why, "used", json_of_parts(details->used, details->used_count));
        json_object_set_new(why, "whole_bytes", json_integer(details->whole_bytes));
        json_object_set_new(why, "whole_largest",
                            json_pack("{s:s, s:s, s:I}", "name", largest->name, "shape",
                                      largest->shape, "bytes", (json_int_t)largest->bytes));
    }
    if (details->alone.bytes > 0)
        json_object_set_new(why, "alone_too_large", json_of_parts(&details->alone, 1));
    json_object_set_new(object, "why", why);
}

/* The spaces, with the predicted time that each engine works. */
static void add_spaces(json_t *object, const hr_plan_answer *answer)
{
    json_t *list = json_array();
    const bool card = answer->device.is_card;
    json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:f}", "name", card ? "device" : "host",
                                          "bytes", (json_int_t)answer->arena_bytes, "floor_bytes",
                                          (json_int_t)answer->floor_bytes, "seconds_predicted",
                                          answer->compute_seconds));
    if (answer->file_bytes)
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:f}", "name", "file", "bytes",
                                              (json_int_t)answer->file_bytes, "floor_bytes",
                                              (json_int_t)answer->file_bytes, "seconds_predicted",
                                              answer->file_seconds));
    if (answer->away_bytes)
        json_array_append_new(list,
                              json_pack("{s:s, s:I, s:I, s:f, s:I, s:I}", "name", "base", "bytes",
                                        (json_int_t)answer->away_bytes, "floor_bytes",
                                        (json_int_t)answer->away_bytes, "seconds_predicted",
                                        (double)answer->read_bytes / (double)answer->read_rate,
                                        "read_bytes", (json_int_t)answer->read_bytes, "read_rate",
                                        (json_int_t)answer->read_rate));
    /* Given, and no tensor is there. */
    if (card && answer->device.host_bytes)
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:i, s:f, s:I}", "name", "host", "bytes", 0,
                                        "floor_bytes", 0, "seconds_predicted", 0.0,
                                        "available_bytes", (json_int_t)answer->device.host_bytes));
    json_object_set_new(object, "spaces", list);
}

static json_t *json_of_given(int64_t bytes)
{
    return bytes ? json_integer(bytes) : json_null();
}

static void add_device(json_t *object, const hr_plan_device *device)
{
    json_t *value = json_null();
    if (*device->name)
        value = json_pack(
            "{s:s, s:s, s:s, s:b, s:I, s:I, s:o, s:I, s:o, s:I}", "name", device->name, "title",
            device->title, "kind", device->is_card ? "gpu" : "cpu", "own", device->own,
            "usable_bytes", (json_int_t)device->usable_bytes, "reserve_bytes",
            (json_int_t)device->reserve_bytes, "host_bytes", json_of_given(device->host_bytes),
            "host_needed_bytes", (json_int_t)device->host_needed_bytes, "disk_bytes",
            json_of_given(device->disk_bytes), "disk_needed_bytes",
            (json_int_t)device->disk_needed_bytes);
    /* For a refusal: what holds the smallest plan. */
    if (*device->larger)
        json_object_set_new(value, "larger",
                            json_pack("{s:s, s:I}", "name", device->larger, "minimum_bytes",
                                      (json_int_t)device->larger_bytes));
    json_object_set_new(object, "device", value);
}

/* The stages of a run, in order. */
static void add_stages(json_t *object, const hr_plan_answer *answer)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < answer->stage_count; i++) {
        const hr_plan_stage *stage = &answer->stages[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:b, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:i, s:b}",
                "fits", stage->fits, "first_step", (json_int_t)stage->first_step, "steps",
                json_of_given(stage->steps), "seq_len", (json_int_t)stage->seq_len, "batch",
                (json_int_t)stage->batch, "micro_batch", (json_int_t)stage->micro_batch,
                "loss_chunk", (json_int_t)stage->loss_chunk, "process_bytes",
                (json_int_t)stage->process_bytes, "arena_bytes", (json_int_t)stage->arena_bytes,
                "floor_bytes", (json_int_t)stage->floor_bytes, "lr_scale", stage->lr_scale,
                "step_seconds_predicted", stage->step_seconds, "lower_bound_seconds",
                stage->bound_seconds < 0 ? json_null() : json_real(stage->bound_seconds),
                "layers_recomputing", stage->recomputing, "gradient_release", stage->releases));
    }
    json_object_set_new(object, "stages", list);
    json_object_set_new(object, "stage", json_integer(answer->stage + 1));
}

static void print_json(const hr_plan_answer *answer, const hr_plan_details *details)
{
    json_t *certificate = json_pack("{s:f, s:f}", "lower_bound_seconds", answer->bound_seconds,
                                    "found_seconds", answer->step_seconds);
    if (answer->bound_seconds < 0)
        json_object_set_new(certificate, "lower_bound_seconds", json_null());
    json_t *least = answer->minimum_bytes ? json_integer(answer->minimum_bytes) : json_null();
    json_t *object = json_pack(
        "{s:b, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:i, s:s, s:s, s:f, s:f, s:s, s:s, s:o}",
        "fits", answer->fits, "process_bytes", (json_int_t)answer->process_bytes, "minimum_bytes",
        least, "available_bytes", (json_int_t)answer->available_bytes, "memory_bytes",
        (json_int_t)answer->memory_bytes, "arena_bytes", (json_int_t)answer->arena_bytes,
        "floor_bytes", (json_int_t)answer->floor_bytes, "bound_bytes",
        (json_int_t)answer->bound_bytes, "gap_bytes",
        (json_int_t)(answer->arena_bytes - answer->bound_bytes), "kernel_bytes",
        (json_int_t)answer->kernel_bytes, "parameters", (json_int_t)answer->parameters,
        "trained_parameters", (json_int_t)answer->trained_parameters, "base_bytes",
        (json_int_t)answer->base_bytes, "adapter_bytes", (json_int_t)answer->adapter_bytes,
        "micro_batch", (json_int_t)answer->micro_batch, "loss_chunk",
        (json_int_t)answer->loss_chunk, "flops_per_token", (json_int_t)answer->flops_per_token,
        "threads", answer->threads, "rung", answer->rung, "packing", answer->packing,
        "step_seconds_predicted", answer->step_seconds, "stop_seconds", answer->stop_seconds,
        "times", answer->times, "strategy", answer->strategy, "certificate", certificate);
    add_device(object, &answer->device);
    json_object_set_new(object, "attention_kept", json_integer(answer->attention_kept));
    json_object_set_new(object, "attention_causal", json_integer(answer->attention_causal));
    if (answer->stage_count) add_stages(object, answer);
    add_spaces(object, answer);
    add_disk(object, &answer->disk);
    add_details(object, details);
    (void)hr_cli_print_json(object, 0);
}

/* ---- text */

static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (no && *no) return false;
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Uses the heap, which is a fixed part of the plan. */
static hr_status plan(const hr_cli_arguments *arguments, const hr_config *config,
                      const char *calibrations, const hr_device_choice *device, hr_error *err)
{
    hr_plan_answer answer;
    const bool json = arguments->values[HR_OPTION_JSON];
    const bool program = arguments->values[HR_OPTION_PROGRAM];
    const int64_t text_bytes = program ? PROGRAM_TEXT_BYTES : PLAN_TEXT_BYTES;
    char *text = calloc(1, (size_t)text_bytes);
    hr_plan_details *details = calloc(1, sizeof *details);
    hr_plan_stage *stages = calloc(HR_STAGES_MAX, sizeof *stages);
    hr_plan_outputs outputs = { .size = sizeof outputs,
                                .file = arguments->values[HR_OPTION_PLAN_OUT],
                                .text = text,
                                .text_bytes = text_bytes,
                                .program = program,
                                .colour = wants_colour(),
                                .blocks = hr_cli_has_blocks(),
                                .stages = stages,
                                .details = details,
                                .page = arguments->values[HR_OPTION_HTML],
                                .snapshot = arguments->values[HR_OPTION_SNAPSHOT],
                                .calibrations = calibrations,
                                .device = device };
    hr_status status;
    if (!text || !details || !stages)
        status = hr_fail(err, HR_FAILURE, "out of memory for %lld bytes of text",
                         (long long)text_bytes);
    else {
        hr_cli_planning planning;
        hr_cli_planning_begin(&planning);
        outputs.progress = (hr_plan_progress){ hr_cli_planning_show, &planning };
        status = hr_plan_make(config, &outputs, &answer, err);
        hr_cli_planning_end(&planning);
        /* If planning itself ran out of memory, only the error is shown. */
        const bool answered = status == HR_OK || (status == HR_NO_FIT && answer.minimum_bytes > 0);
        if (status == HR_NO_FIT && !answered && json) printf("{\n  \"fits\": false\n}\n");
        if (answered && json) print_json(&answer, details);
        else if (answered) printf("%s", text);
    }
    free(details);
    free(stages);
    free(text);
    return status;
}

/* ---- option combinations */

static const hr_cli_option_id questions[] = { HR_OPTION_AS,       HR_OPTION_LARGEST,
                                              HR_OPTION_SMALLEST, HR_OPTION_FRONTIER,
                                              HR_OPTION_PROGRAM,  HR_OPTION_PLAN_OUT };
enum {
    QUESTIONS = sizeof questions / sizeof *questions,
    REAL_QUESTIONS = 4,
    ESTIMATED = 2 /* of them: --as goes with --largest */
};

static const hr_cli_option_id grid_only[] = { HR_OPTION_GRID_TOKENS, HR_OPTION_CSV };

static hr_status check_grid_options(const hr_cli_arguments *arguments, hr_error *err)
{
    const char *const *values = arguments->values;
    const char *mine = values[HR_OPTION_GRID] ? "grid" : "devices";
    if (values[HR_OPTION_LARGEST] && values[HR_OPTION_GRID])
        return hr_fail(err, HR_USAGE,
                       "--largest searches one key and --grid plans given values; give one: "
                       "--grid %.40s=1..1024 shows where a value stops fitting",
                       values[HR_OPTION_LARGEST]);
    const bool estimates = values[HR_OPTION_AS] != NULL;
    for (int32_t i = 0; i < QUESTIONS; i++)
        if (values[questions[i]] && !(estimates && i < ESTIMATED))
            return hr_fail(err, HR_USAGE, "--%s and --%s exclude each other; give one",
                           hr_cli_option_at(questions[i])->name, mine);
    if (values[HR_OPTION_JSON] && values[HR_OPTION_CSV])
        return hr_fail(err, HR_USAGE, "--json and --csv exclude each other; give one");
    if (values[HR_OPTION_LARGEST] && values[HR_OPTION_CSV])
        return hr_fail(err, HR_USAGE, "--largest and --csv exclude each other; give one");
    static const hr_cli_option_id planned[] = { HR_OPTION_GRID_TOKENS, HR_OPTION_SVG };
    for (int32_t i = 0; i < 2; i++)
        if (estimates && values[planned[i]])
            return hr_fail(err, HR_USAGE, "--%s is of plans: --as gives bytes only",
                           hr_cli_option_at(planned[i])->name);
    if (values[HR_OPTION_DEVICE] && values[HR_OPTION_DEVICES])
        return hr_fail(err, HR_USAGE, "--device and --devices exclude each other; give one");
    return HR_OK;
}

static hr_status check_options(const hr_cli_arguments *arguments, hr_error *err)
{
    const char *const *values = arguments->values;
    for (int32_t i = 0; i < REAL_QUESTIONS; i++)
        for (int32_t j = i + 1; j < QUESTIONS; j++)
            if (values[questions[i]] && values[questions[j]] && j >= ESTIMATED)
                return hr_fail(err, HR_USAGE, "--%s and --%s exclude each other; give one",
                               hr_cli_option_at(questions[i])->name,
                               hr_cli_option_at(questions[j])->name);
    if (values[HR_OPTION_PROGRAM] && values[HR_OPTION_JSON])
        return hr_fail(err, HR_USAGE, "--program and --json exclude each other; give one");
    if (values[HR_OPTION_SLOWDOWN] && !values[HR_OPTION_SMALLEST])
        return hr_fail(err, HR_USAGE, "--slowdown needs --smallest");
    const bool draws = values[HR_OPTION_HTML] || values[HR_OPTION_SNAPSHOT];
    if (draws && (values[HR_OPTION_AS] || hr_cli_is_query(arguments) || hr_cli_is_grid(arguments)))
        return hr_fail(err, HR_USAGE, "--%s is of one plan: leave the other question out",
                       values[HR_OPTION_HTML] ? "html" : "snapshot");
    if (values[HR_OPTION_ASSUME] && !values[HR_OPTION_AS])
        return hr_fail(err, HR_USAGE, "--assume needs --as");
    if (hr_cli_is_grid(arguments)) return check_grid_options(arguments, err);
    for (size_t i = 0; i < sizeof grid_only / sizeof *grid_only; i++)
        if (values[grid_only[i]])
            return hr_fail(err, HR_USAGE, "--%s needs --grid or --devices",
                           hr_cli_option_at(grid_only[i])->name);
    if (values[HR_OPTION_SVG] && !values[HR_OPTION_FRONTIER])
        return hr_fail(err, HR_USAGE, "--svg needs --frontier or --grid");
    return HR_OK;
}

static int answer(const hr_cli_arguments *arguments, hr_config *config)
{
    hr_error err;
    char directory[HR_PATH_BYTES];
    hr_status status = check_options(arguments, &err);
    const bool grid = hr_cli_is_grid(arguments) ||
                      (arguments->values[HR_OPTION_AS] && arguments->values[HR_OPTION_LARGEST]);
    if (status == HR_OK && grid) status = hr_cli_recipe_keys(arguments, config, &err);
    else if (status == HR_OK) status = hr_cli_recipe(arguments, config, &err);
    const bool asks = grid || arguments->values[HR_OPTION_AS] || hr_cli_is_query(arguments);
    if (status == HR_OK && asks) status = hr_cli_leave_stages(config, &err);
    if (status == HR_OK) status = hr_cli_check_out(arguments->values[HR_OPTION_PLAN_OUT], &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    hr_device_choice choice;
    hr_device_list *own = NULL;
    const hr_device_choice *device = arguments->values[HR_OPTION_DEVICE] ? &choice : NULL;
    status = hr_cli_device(arguments, &own, &choice, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    const char *schedule = arguments->values[HR_OPTION_SCHEDULE];
    if (schedule) status = hr_plan_schedule(config, schedule, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    const char *calibrations = hr_cli_calibrations(directory, sizeof directory);
    /* Without mmap in malloc: a mapping would count as part of the image, and this plan would
     * differ from the one that `train` makes. */
    mallopt(M_MMAP_MAX, 0);
    if (grid) status = hr_cli_grid(arguments, config, calibrations, own, &err);
    else if (arguments->values[HR_OPTION_AS])
        status = hr_cli_estimate(arguments, config, calibrations, device, &err);
    else if (hr_cli_is_query(arguments))
        status = hr_cli_query(arguments, config, calibrations, device, &err);
    else status = plan(arguments, config, calibrations, device, &err);
    free(own);
    return status == HR_OK ? HR_OK : hr_cli_fail(&err);
}

int hr_cli_plan(const hr_cli_arguments *arguments)
{
    return hr_cli_with_config(arguments, answer);
}
