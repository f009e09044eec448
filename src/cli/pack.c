/* SPDX-License-Identifier: Apache-2.0 */
/* cli/pack.c - headroom pack: computes offsets for a public packing instance. */
#include "headroom/pack.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

enum { SECONDS_DEFAULT = 10 };

static void print_text(const hr_pack_request *request, const hr_pack_report *report)
{
    char arena[64], floor[64], bound[64], gap[64];
    printf("%s: %s buffer%s\n", request->file, hr_cli_count(report->rows),
           report->rows == 1 ? "" : "s");
    printf("  arena    %s\n", hr_bytes_print(report->arena_bytes, arena));
    printf("  floor    %s, live at time %lld\n", hr_bytes_print(report->floor_bytes, floor),
           (long long)report->peak_time);
    printf("  gap      %s\n", hr_bytes_print(report->arena_bytes - report->floor_bytes, gap));
    printf("  proof    %s", report->proof);
    if (report->arena_bytes > report->bound_bytes)
        printf(": no arena is smaller than %s", hr_bytes_print(report->bound_bytes, bound));
    printf("\n  time     %.3f s, %s placements tried by the exact search\n", report->seconds,
           hr_cli_count(report->nodes));
    if (request->out) printf("  written  %s\n", request->out);
}

static void print_json(const hr_pack_request *request, const hr_pack_report *report)
{
    json_t *object = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:I, s:o}", "rows", report->rows, "arena_bytes",
        (json_int_t)report->arena_bytes, "floor_bytes", (json_int_t)report->floor_bytes,
        "gap_bytes", (json_int_t)(report->arena_bytes - report->floor_bytes), "bound_bytes",
        (json_int_t)report->bound_bytes, "peak_time", (json_int_t)report->peak_time, "proof",
        report->proof, "seconds", report->seconds, "nodes", (json_int_t)report->nodes, "out",
        request->out ? hr_cli_json_string(request->out) : json_null());
    (void)hr_cli_print_json(object, 0);
}

static hr_status read_seconds(const char *text, double *seconds, hr_error *err)
{
    char *end;
    *seconds = text ? strtod(text, &end) : SECONDS_DEFAULT;
    if (!text || (*text && !*end && *seconds >= 0 && *seconds <= HR_PACK_SECONDS_MAX)) return HR_OK;
    return hr_fail(err, HR_USAGE, "--seconds takes a number from 0 to %d; got \"%.40s\"",
                   HR_PACK_SECONDS_MAX, text);
}

int hr_cli_pack(const hr_cli_arguments *arguments)
{
    hr_pack_request request = { .size = sizeof request,
                                .file = arguments->operands[0],
                                .out = arguments->values[HR_OPTION_PACK_OUT],
                                .capacity_bytes = -1 };
    const char *capacity = arguments->values[HR_OPTION_CAPACITY];
    hr_pack_report report;
    hr_error err;
    if (read_seconds(arguments->values[HR_OPTION_SECONDS], &request.seconds, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (hr_cli_check_out(request.out, &err) != HR_OK) return hr_cli_fail(&err);
    if (capacity && hr_bytes_parse(capacity, &request.capacity_bytes, &err) != HR_OK)
        return hr_cli_fail(&err);
    const hr_status status = hr_pack_file(&request, &report, &err);
    const bool answered = status == HR_OK || status == HR_NO_FIT || status == HR_UNDECIDED;
    if (request.capacity_bytes >= 0 && status != HR_OK) request.out = NULL;
    if (answered && arguments->values[HR_OPTION_JSON]) print_json(&request, &report);
    else if (answered) print_text(&request, &report);
    return status == HR_OK ? HR_OK : hr_cli_fail(&err);
}
