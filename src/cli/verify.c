/* SPDX-License-Identifier: Apache-2.0 */
/* cli/verify.c - headroom verify: checks a plan file with the independent verifier. */
#include "headroom/verify.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static void print_text(const char *path, const hr_verify_report *report)
{
    char arena[64], floor[64], process[64];
    printf("%s: valid, no two live buffers overlap\n", path);
    printf("  %s operations, %s loops, %s buffers in %s storages\n",
           hr_cli_count(report->step_count), hr_cli_count(report->loop_count),
           hr_cli_count(report->buffer_count), hr_cli_count(report->storage_count));
    printf("  process  %s\n", hr_bytes_print(report->process_bytes, process));
    printf("  arena    %s\n", hr_bytes_print(report->arena_bytes, arena));
    printf("  floor    %s, %s bytes below the arena\n", hr_bytes_print(report->floor_bytes, floor),
           hr_cli_count(report->gap_bytes));
    for (int32_t i = 0; i < report->space_count; i++) {
        const hr_verify_space *space = &report->spaces[i];
        char bytes[64];
        printf("  %-8s %s; floor %s, %s bytes below\n", space->name,
               hr_bytes_print(space->bytes, bytes), hr_bytes_print(space->floor_bytes, floor),
               hr_cli_count(space->bytes - space->floor_bytes));
    }
    printf("  peak at operation %s (%s), %s live buffers; the largest:\n",
           hr_cli_count(report->peak_step), report->peak_op, hr_cli_count(report->alive_count));
    for (int32_t i = 0; i < report->alive_listed; i++) {
        char bytes[64];
        printf("    %-40s %-10s %s\n", report->alive[i].name, report->alive[i].role,
               hr_bytes_print(report->alive[i].bytes, bytes));
    }
}

static int print_json(const hr_verify_report *report)
{
    json_t *alive = json_array();
    for (int32_t i = 0; i < report->alive_listed; i++)
        json_array_append_new(alive, json_pack("{s:s, s:s, s:I}", "name", report->alive[i].name,
                                               "role", report->alive[i].role, "bytes",
                                               (json_int_t)report->alive[i].bytes));
    json_t *spaces = json_array();
    for (int32_t i = 0; i < report->space_count; i++) {
        const hr_verify_space *space = &report->spaces[i];
        json_array_append_new(spaces, json_pack("{s:s, s:I, s:I, s:I}", "name", space->name,
                                                "bytes", (json_int_t)space->bytes, "floor_bytes",
                                                (json_int_t)space->floor_bytes, "gap_bytes",
                                                (json_int_t)(space->bytes - space->floor_bytes)));
    }
    json_t *object = json_pack(
        "{s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:i, s:s, s:i, s:o, s:o}", "loops",
        report->loop_count, "buffers", report->buffer_count, "storages", report->storage_count,
        "steps", report->step_count, "arena_bytes", (json_int_t)report->arena_bytes,
        "process_bytes", (json_int_t)report->process_bytes, "floor_bytes",
        (json_int_t)report->floor_bytes, "gap_bytes", (json_int_t)report->gap_bytes, "peak_step",
        report->peak_step, "peak_op", report->peak_op, "alive_count", report->alive_count, "alive",
        alive, "spaces", spaces);
    return hr_cli_print_json(object, 0);
}

/* Answers for a recipe: verify judges the file of a plan, prove the training of a recipe. */
static int refuse_recipe(const char *path)
{
    hr_error err;
    (void)hr_fail(&err, HR_USAGE,
                  "%.200s is a %s, and verify checks a plan file (headroom plan %.200s --out "
                  "plan.json); to check the training of the recipe, type headroom prove %.200s",
                  path, hr_cli_preset_find(path) ? "preset" : "recipe", path, path);
    return hr_cli_fail(&err);
}

static bool is_recipe(const char *path)
{
    const char *suffix = strrchr(path, '.');
    return suffix && (!strcmp(suffix, ".yaml") || !strcmp(suffix, ".yml"));
}

/* The plans of the stages of a run. */
static int verify_set(const hr_cli_arguments *arguments, hr_progress *progress)
{
    hr_verify_set_report set;
    hr_error err;
    char arena[64], process[64], kept[64];
    const hr_status status = hr_verify_set((const char *const *)arguments->operands,
                                           arguments->operand_count, &set, &err);
    hr_progress_end(progress);
    if (status != HR_OK) return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_JSON]) {
        json_t *object = json_pack(
            "{s:i, s:i, s:I, s:I, s:I}", "plans", set.plan_count, "kept_buffers", set.kept_count,
            "kept_bytes", (json_int_t)set.kept_bytes, "arena_bytes", (json_int_t)set.arena_bytes,
            "process_bytes", (json_int_t)set.process_bytes);
        const int failed = json_dumpf(object, stdout, JSON_INDENT(2));
        json_decref(object);
        printf("\n");
        return failed ? HR_FAILURE : HR_OK;
    }
    printf("%d plans: each is valid, and what lives through the run is at the same bytes in all\n",
           set.plan_count);
    printf("  process  %s, of the largest\n", hr_bytes_print(set.process_bytes, process));
    printf("  arena    %s, of the largest\n", hr_bytes_print(set.arena_bytes, arena));
    printf("  kept     %s in %s buffers\n", hr_bytes_print(set.kept_bytes, kept),
           hr_cli_count(set.kept_count));
    return HR_OK;
}

int hr_cli_verify(const hr_cli_arguments *arguments)
{
    hr_verify_report report;
    hr_error err;
    hr_progress progress = hr_progress_begin(STDERR_FILENO);
    hr_progress_note(&progress, "verifying", hr_cli_now_ns());
    if (arguments->operand_count > 1) return verify_set(arguments, &progress);
    const hr_status status = hr_verify_file(arguments->operands[0], &report, &err);
    hr_progress_end(&progress);
    const char *path = arguments->operands[0];
    const bool preset = hr_cli_preset_find(path) && access(path, F_OK) != 0;
    if ((status == HR_CORRUPT && is_recipe(path)) || (status != HR_OK && preset))
        return refuse_recipe(path);
    if (status != HR_OK) return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_JSON]) return print_json(&report);
    print_text(path, &report);
    return HR_OK;
}
