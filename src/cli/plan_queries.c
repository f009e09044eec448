/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan_queries.c - headroom plan with --largest, --smallest or --frontier: queries over all
 * plans of a recipe. Results are on the heap, which is a fixed part of the plan. */
#include "headroom/plan_queries.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

enum { TEXT_BYTES = 1 << 16 };

/* Width of the terminal in columns; 80 if there is none. */
static int32_t columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return 80;
    return size.ws_col;
}

static json_t *json_of_count(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *json_of_point(const hr_plan_point *point)
{
    json_t *bound = point->bound_seconds < 0 ? json_null() : json_real(point->bound_seconds);
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:s, s:s, s:s, s:{s:o, s:f}}", "process_bytes",
                     (json_int_t)point->process_bytes, "arena_bytes",
                     (json_int_t)point->arena_bytes, "floor_bytes", (json_int_t)point->floor_bytes,
                     "step_seconds_predicted", point->step_seconds, "tokens_per_second_predicted",
                     point->tokens_per_second, "packing", point->packing, "given_up", point->words,
                     "strategy", point->strategy, "certificate", "lower_bound_seconds", bound,
                     "found_seconds", point->step_seconds);
}

static void print_json(json_t *object)
{
    (void)hr_cli_print_json(object, 0);
}

/* ---- --largest */

static json_t *json_of_value(int64_t value, int64_t bytes)
{
    if (value < 0) return json_null();
    return json_pack("{s:I, s:o}", "value", (json_int_t)value, "minimum_bytes",
                     json_of_count(bytes));
}

static void print_largest(const hr_largest *answer)
{
    static const char *const outcomes[] = { [HR_LARGEST_FOUND] = "found",
                                            [HR_LARGEST_END] = "end",
                                            [HR_LARGEST_FREE] = "free",
                                            [HR_LARGEST_NONE] = "none" };
    const bool fits = answer->outcome != HR_LARGEST_NONE;
    print_json(json_pack(
        "{s:s, s:s, s:b, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:i, s:s, s:o}", "question",
        "largest", "key", answer->key->name, "fits", fits, "outcome", outcomes[answer->outcome],
        "limit_reached", answer->cut, "does_not_fit", json_of_count(answer->below), "at_once",
        json_of_value(answer->at_once, answer->at_once_bytes), "largest",
        json_of_value(answer->value, answer->value_bytes), "next",
        json_of_value(answer->next, answer->next_bytes), "next_multiple_of_64",
        json_of_value(answer->beyond, answer->beyond_bytes), "free_from",
        json_of_count(answer->free_from), "available_bytes", (json_int_t)answer->available_bytes,
        "plans_made", answer->probes, "reason", answer->reason, "plan",
        fits ? json_of_point(&answer->plan) : json_null()));
}

static hr_status largest(const hr_cli_arguments *arguments, const hr_config *config,
                         const hr_plan_query *question, hr_largest *answer, hr_error *err)
{
    const hr_status status = hr_plan_largest(
        config, hr_cli_key_name(arguments->values[HR_OPTION_LARGEST]), question, answer, err);
    hr_cli_planning_end(question->progress.context);
    if (status != HR_OK && (status != HR_NO_FIT || !answer->key)) return status; /* no answer */
    if (arguments->values[HR_OPTION_JSON]) print_largest(answer);
    else printf("%s", question->text);
    return status;
}

/* ---- --smallest */

static hr_status read_slowdown(const char *text, double *slowdown, hr_error *err)
{
    char *end = NULL;
    *slowdown = 0.1;
    if (!text) return HR_OK;
    const double percent = strtod(text, &end);
    if (end != text && (!*end || !strcmp(end, "%")) && percent >= 0 && percent <= 1e6) {
        *slowdown = percent / 100;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE,
                   "--slowdown takes a percentage from 0 to 1,000,000, such as 10%%; got "
                   "\"%.40s\"",
                   text);
}

static hr_status smallest(const hr_cli_arguments *arguments, const hr_config *config,
                          const hr_plan_query *question, hr_smallest *answer, hr_error *err)
{
    double slowdown;
    hr_status status = read_slowdown(arguments->values[HR_OPTION_SLOWDOWN], &slowdown, err);
    if (status == HR_OK) status = hr_plan_smallest(config, slowdown, question, answer, err);
    hr_cli_planning_end(question->progress.context);
    if (status != HR_OK) return status;
    if (!arguments->values[HR_OPTION_JSON]) printf("%s", question->text);
    else
        print_json(json_pack("{s:s, s:b, s:f, s:o, s:o, s:o, s:o, s:s}", "question", "smallest",
                             "strategy_named", answer->named, "slowdown", answer->slowdown, "least",
                             json_of_point(&answer->least), "within",
                             json_of_point(&answer->within), "within_bound",
                             json_of_count(answer->within_bound ? answer->within_bound : -1),
                             "fastest", json_of_point(&answer->fastest), "times", answer->times));
    return HR_OK;
}

/* ---- --frontier */

static void print_frontier(const hr_frontier *answer)
{
    json_t *points = json_array();
    for (int32_t i = 0; i < answer->count; i++)
        json_array_append_new(points, json_of_point(&answer->points[i]));
    print_json(json_pack("{s:s, s:b, s:b, s:o, s:s, s:o}", "question", "frontier", "strategy_named",
                         answer->named, "limit_reached", answer->cut, "available_bytes",
                         json_of_count(answer->available_bytes), "times", answer->times, "points",
                         points));
}

static hr_status frontier(const hr_cli_arguments *arguments, const hr_config *config,
                          const hr_plan_query *question, hr_frontier *answer, hr_error *err)
{
    const char *svg = arguments->values[HR_OPTION_SVG];
    hr_status status = hr_cli_check_file("svg", svg, err);
    if (status == HR_OK) status = hr_plan_frontier(config, svg, question, answer, err);
    hr_cli_planning_end(question->progress.context);
    if (status != HR_OK) return status;
    if (arguments->values[HR_OPTION_JSON]) print_frontier(answer);
    else printf("%s", question->text);
    return HR_OK;
}

/* ---- all of them */

bool hr_cli_is_query(const hr_cli_arguments *arguments)
{
    return arguments->values[HR_OPTION_LARGEST] || arguments->values[HR_OPTION_SMALLEST] ||
           arguments->values[HR_OPTION_FRONTIER];
}

hr_status hr_cli_query(const hr_cli_arguments *arguments, const hr_config *config,
                       const char *calibrations, const hr_device_choice *device, hr_error *err)
{
    union {
        hr_largest largest;
        hr_smallest smallest;
        hr_frontier frontier;
    } *answer = calloc(1, sizeof *answer);
    char *text = calloc(1, TEXT_BYTES);
    hr_status status;
    hr_cli_planning planning;
    const hr_plan_query question = { .size = sizeof question,
                                     .calibrations = calibrations,
                                     .device = device,
                                     .text = text,
                                     .text_bytes = TEXT_BYTES,
                                     .columns = columns(),
                                     .progress = { hr_cli_planning_show, &planning } };
    hr_cli_planning_begin(&planning);
    if (!answer || !text) status = hr_fail(err, HR_FAILURE, "out of memory for an answer");
    else if (arguments->values[HR_OPTION_LARGEST])
        status = largest(arguments, config, &question, &answer->largest, err);
    else if (arguments->values[HR_OPTION_SMALLEST])
        status = smallest(arguments, config, &question, &answer->smallest, err);
    else status = frontier(arguments, config, &question, &answer->frontier, err);
    hr_cli_planning_end(&planning);
    free(text);
    free(answer);
    return status;
}
