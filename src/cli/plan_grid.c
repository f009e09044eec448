/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan_grid.c - headroom plan with --grid or --devices: one plan per combination of values and
 * device, as tables, CSV, JSON or a drawing. Cells are printed as they are planned, so that the
 * heap stays a fixed part of the plans of this machine. */
#include "headroom/plan_grid.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct {
    const hr_grid_request *request;
    hr_cli_planning *planning; /* null: no progress line */
    int64_t cells;             /* printed so far */
} printing;

static const char *const verdicts[] = { [HR_CELL_FITS] = "fits",
                                        [HR_CELL_FITS_WITH] = "fits with",
                                        [HR_CELL_REFUSED] = "refused",
                                        [HR_CELL_INVALID] = "invalid" };

static bool has_plan(const hr_grid_cell *cell)
{
    return cell->verdict == HR_CELL_FITS || cell->verdict == HR_CELL_FITS_WITH;
}

static const char *device_name(const hr_grid_request *request, const hr_grid_cell *cell)
{
    return request->device_count ? request->devices[cell->device].device->name : "";
}

/* ---- CSV */

static void put_csv_heading(const hr_grid_request *request)
{
    for (int32_t a = 0; a < request->axis_count; a++)
        for (int32_t k = 0; k < request->axes[a].key_count; k++)
            printf("%s,", request->axes[a].keys[k]->name);
    printf(
        "device,verdict,process_bytes,available_bytes,arena_bytes,micro_batch,loss_chunk,"
        "recomputed_layers,step_seconds,tokens_per_second,hours,change,saved_by,reason,least_bytes,"
        "least_change,disk_bytes\n");
}

static void put_number(double value)
{
    if (value > 0) printf(",%.9g", value);
    else printf(",");
}

static void put_csv(void *context, const hr_grid_cell *cell, const hr_plan_answer *answer)
{
    printing *p = context;
    const hr_grid_request *request = p->request;
    char value[HR_GRID_VALUE_BYTES];
    (void)answer;
    if (!p->cells++) put_csv_heading(request);
    for (int32_t a = 0; a < request->axis_count; a++)
        for (int32_t k = 0; k < request->axes[a].key_count; k++) {
            hr_cli_put_field(hr_grid_axis_value(&request->axes[a], cell->points[a], k, value));
            putchar(',');
        }
    printf("%s,%s", device_name(request, cell), verdicts[cell->verdict]);
    if (cell->verdict == HR_CELL_INVALID) printf(",,");
    else printf(",%lld,%lld", (long long)cell->process_bytes, (long long)cell->available_bytes);
    if (has_plan(cell))
        printf(",%lld,%lld,%lld,%d", (long long)cell->arena_bytes, (long long)cell->micro_batch,
               (long long)cell->loss_chunk, cell->recomputed_layers);
    else printf(",,,,");
    put_number(cell->step_seconds);
    put_number(cell->tokens_per_second);
    put_number(cell->hours);
    putchar(',');
    hr_cli_put_field(cell->change);
    putchar(',');
    hr_cli_put_field(cell->words);
    putchar(',');
    hr_cli_put_field(cell->reason);
    put_number((double)cell->least_bytes);
    putchar(',');
    hr_cli_put_field(cell->least);
    put_number((double)cell->disk_bytes);
    printf("\n");
}

/* ---- JSON */

static json_t *json_of_value(const hr_key *key, const char *value)
{
    char *end = NULL;
    const long long number = strtoll(value, &end, 10);
    const bool counts = key->type == HR_KEY_INTEGER || key->type == HR_KEY_BYTES;
    return counts && end != value && !*end ? json_integer(number) : json_string(value);
}

static json_t *json_of_time(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *json_of_values(const hr_grid_request *request, const hr_grid_cell *cell)
{
    json_t *values = json_object();
    char value[HR_GRID_VALUE_BYTES];
    for (int32_t a = 0; a < request->axis_count; a++)
        for (int32_t k = 0; k < request->axes[a].key_count; k++) {
            const hr_key *key = request->axes[a].keys[k];
            hr_grid_axis_value(&request->axes[a], cell->points[a], k, value);
            json_object_set_new(values, key->name, json_of_value(key, value));
        }
    return values;
}

static void put_json_heading(const hr_grid_request *request)
{
    json_t *axes = json_array();
    for (int32_t a = 0; a < request->axis_count; a++) {
        json_t *keys = json_array();
        for (int32_t k = 0; k < request->axes[a].key_count; k++)
            json_array_append_new(keys, json_string(request->axes[a].keys[k]->name));
        json_array_append_new(
            axes, json_pack("{s:o, s:i}", "keys", keys, "points", request->axes[a].count));
    }
    printf("{\n  \"question\": \"grid\",\n  \"axes\": ");
    json_dumpf(axes, stdout, JSON_COMPACT);
    json_decref(axes);
    printf(",\n  \"tokens\": ");
    if (request->tokens > 0) printf("%.0f", request->tokens);
    else printf("null");
    printf(",\n  \"cells\": [\n");
}

static void put_json(void *context, const hr_grid_cell *cell, const hr_plan_answer *answer)
{
    printing *p = context;
    const char *device = device_name(p->request, cell);
    const bool plan = has_plan(cell), valid = cell->verdict != HR_CELL_INVALID;
    if (!p->cells++) put_json_heading(p->request);
    else printf(",\n");
    json_t *object = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:s, s:s}", "values", json_of_values(p->request, cell), "device",
        *device ? json_string(device) : json_null(), "verdict", verdicts[cell->verdict],
        "process_bytes", valid ? json_integer(cell->process_bytes) : json_null(), "available_bytes",
        valid ? json_integer(cell->available_bytes) : json_null(), "change", cell->change, "reason",
        cell->reason);
    /* What a list of devices tried, and what the plan keeps in a file. */
    if (cell->least_bytes)
        json_object_set_new(object, "least",
                            json_pack("{s:s, s:I, s:b}", "change", cell->least, "minimum_bytes",
                                      (json_int_t)cell->least_bytes, "all_tried", cell->tried_all));
    if (*cell->change && plan)
        json_object_set_new(object, "fastest", json_boolean(!cell->smallest));
    if (cell->disk_bytes) json_object_set_new(object, "file_bytes", json_integer(cell->disk_bytes));
    json_object_set_new(object, "plan", json_null());
    if (plan)
        json_object_set_new(
            object, "plan",
            json_pack("{s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o, s:s, s:s, s:s}", "arena_bytes",
                      (json_int_t)cell->arena_bytes, "floor_bytes", (json_int_t)cell->floor_bytes,
                      "micro_batch", (json_int_t)answer->micro_batch, "loss_chunk",
                      (json_int_t)answer->loss_chunk, "recomputed_layers", cell->recomputed_layers,
                      "step_seconds_predicted", json_of_time(cell->step_seconds),
                      "tokens_per_second_predicted", json_of_time(cell->tokens_per_second), "hours",
                      json_of_time(cell->hours), "given_up", cell->words, "strategy",
                      answer->strategy, "times", answer->times));
    printf("    ");
    json_dumpf(object, stdout, JSON_COMPACT);
    json_decref(object);
}

/* ---- text */

static void put_text(void *context, const char *text)
{
    printing *p = context;
    if (p->planning) hr_cli_planning_end(p->planning);
    p->planning = NULL;
    fputs(text, stdout);
}

/* ---- all of them */

/* "1B", "500M", "2.5T" or plain digits. */
static hr_status read_tokens(const char *text, double *tokens, hr_error *err)
{
    static const char units[] = "KMBT";
    char *end = NULL;
    *tokens = 0;
    if (!text) return HR_OK;
    /* strtod would take "0x10", "inf" and "nan", too. */
    const bool decimal = strspn(text, "0123456789.") && !strchr(text, 'x') && !strchr(text, 'X');
    double value = decimal ? strtod(text, &end) : 0, scale = 1;
    if (!decimal) end = (char *)text;
    const char *unit = *end ? strchr(units, *end >= 'a' && *end <= 'z' ? *end - 32 : *end) : NULL;
    if (unit) end++;
    for (const char *u = units; unit && u <= unit; u++) scale *= 1000;
    if (end != text && !*end && value * scale >= 1 && value * scale <= 1e18) {
        *tokens = value * scale;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE,
                   "--tokens takes a number of tokens such as 1B, 500M or 300000000; got \"%.40s\"",
                   text);
}

static hr_status read_axes(const hr_cli_arguments *arguments, hr_grid_axis *axes, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; i < arguments->repeated_count && status == HR_OK; i++)
        status = hr_grid_axis_parse(arguments->repeated[i], &axes[i], err);
    for (int32_t i = 0; i < arguments->repeated_count && status == HR_OK; i++)
        for (int32_t k = 0; k < axes[i].key_count && status == HR_OK; k++)
            if (arguments->values[HR_OPTION_BUDGET] &&
                !strcmp(axes[i].keys[k]->name, "memory.budget"))
                status = hr_fail(err, HR_USAGE,
                                 "--budget and --grid memory.budget exclude each other; give one");
    return status;
}

bool hr_cli_is_grid(const hr_cli_arguments *arguments)
{
    return arguments->values[HR_OPTION_GRID] || arguments->values[HR_OPTION_DEVICES];
}

static hr_status plan_cells(const hr_cli_arguments *arguments, const hr_config *config,
                            const char *calibrations, const hr_device_choice *devices,
                            int32_t device_count, hr_error *err)
{
    const char *const *values = arguments->values;
    const bool json = values[HR_OPTION_JSON], csv = values[HR_OPTION_CSV];
    hr_grid_axis axes[HR_GRID_AXES_MOST];
    hr_cli_planning planning;
    printing p = { .planning = json || csv ? NULL : &planning };
    hr_grid_request request = { .size = sizeof request,
                                .config = config,
                                .axes = axes,
                                .axis_count = arguments->repeated_count,
                                .devices = devices,
                                .device_count = device_count,
                                .changes = arguments->repeated_count == 0,
                                .calibrations = calibrations,
                                .svg = values[HR_OPTION_SVG],
                                .context = &p };
    p.request = &request;
    if (json || csv) request.cell = json ? put_json : put_csv;
    else {
        request.write = put_text;
        request.progress = (hr_plan_progress){ hr_cli_planning_show, &planning };
    }
    hr_status status = read_axes(arguments, axes, err);
    if (status == HR_OK) status = read_tokens(values[HR_OPTION_GRID_TOKENS], &request.tokens, err);
    if (status == HR_OK) status = hr_cli_check_file("svg", values[HR_OPTION_SVG], err);
    if (status != HR_OK) return status;
    hr_cli_planning_begin(&planning);
    status = hr_plan_grid(&request, err);
    if (p.planning || json || csv) hr_cli_planning_end(&planning);
    if (json && p.cells) printf("\n  ]\n}\n");
    return status;
}

hr_status hr_cli_grid(const hr_cli_arguments *arguments, const hr_config *config,
                      const char *calibrations, const hr_device_list *own, hr_error *err)
{
    const char *const *values = arguments->values;
    const bool many = values[HR_OPTION_DEVICES];
    const char *names = many ? values[HR_OPTION_DEVICES] : values[HR_OPTION_DEVICE];
    hr_device_choice *devices = calloc(HR_DEVICES_MOST, sizeof *devices);
    int32_t count = 0;
    hr_status status = HR_OK;
    if (!devices) status = hr_fail(err, HR_FAILURE, "out of memory for a list of devices");
    else if (names)
        status = hr_devices_choose(names, own, many ? HR_DEVICES_MOST : 1, devices, &count, err);
    if (status == HR_OK)
        status = values[HR_OPTION_AS]
                     ? hr_cli_estimates(arguments, config, devices, count, err)
                     : plan_cells(arguments, config, calibrations, devices, count, err);
    free(devices);
    return status;
}
