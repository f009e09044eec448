/* SPDX-License-Identifier: Apache-2.0 */
/* report/refusal.c - prints how much memory is missing, and which changes make a run fit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "config/config.h"
#include "headroom/config.h"
#include "headroom/devices.h"
#include "report/explain.h"
#include "report/labels.h"
#include "report/stages.h"
#include "report/style.h"

static void put_line(hr_writer *writer, const char *name, int64_t bytes, const char *why)
{
    hr_put(writer, "  %-28s", name);
    hr_label_put_bytes(writer, bytes);
    hr_put(writer, "%s%s\n", *why ? "  " : "", why);
}

static const hr_plan_part *largest_of(const hr_plan_part *parts, int32_t count)
{
    const hr_plan_part *most = NULL;
    for (int32_t i = 0; i < count; i++)
        if (!most || parts[i].bytes > most->bytes) most = &parts[i];
    return most;
}

/* A row of a table. */
typedef struct {
    char what[HR_PLAN_CHANGE_BYTES], needs[HR_COUNT_BYTES], size[HR_COUNT_BYTES],
        gained[HR_COUNT_BYTES], price[HR_CHANGE_COST_BYTES];
} change_row;

const char *hr_change_cost_print(const hr_plan_change *change, char text[HR_CHANGE_COST_BYTES])
{
    enum { BYTES = HR_CHANGE_COST_BYTES };
    char time[HR_COUNT_BYTES];
    if (change->gained_bytes <= 0) snprintf(text, BYTES, "%s", change->price);
    else if (change->changes_mathematics)
        snprintf(text, BYTES, "%s; a different training result", change->price);
    else if (change->untimed)
        snprintf(text, BYTES, "%s", *change->price ? change->price : "its time was not computed");
    else
        snprintf(text, BYTES, "%s per step %s than the fastest plan%s%s",
                 hr_duration_print(fabs(change->seconds_lost), time),
                 change->seconds_lost < 0 ? "less" : "more", *change->price ? ", " : "",
                 change->price);
    return text;
}

static change_row row_of(const hr_plan_change *change)
{
    change_row row;
    snprintf(row.what, sizeof row.what, "%s", change->what);
    hr_count_print(change->bytes, row.needs);
    hr_size_print(change->bytes, row.size);
    hr_count_print(change->gained_bytes, row.gained);
    hr_change_cost_print(change, row.price);
    return row;
}

/* More memory: a budget, another card, or without either more free memory, `beside` bytes of which
 * are for the kernel. */
static change_row more_memory(const hr_plan_answer *answer, int64_t beside)
{
    change_row row = { .gained = "0" };
    char time[HR_COUNT_BYTES];
    const hr_plan_device *device = &answer->device;
    int64_t needed = answer->minimum_bytes + beside;
    const bool on_it = *device->name && needed <= device->usable_bytes - device->reserve_bytes;
    const bool larger = *device->larger && !on_it;
    if (larger) needed = device->larger_bytes;
    if (larger) snprintf(row.what, sizeof row.what, "--device %s", device->larger);
    else if (*device->name && !on_it)
        snprintf(row.what, sizeof row.what, "a device with more memory");
    else if (!beside) snprintf(row.what, sizeof row.what, "--budget %lld", (long long)needed);
    else
        snprintf(row.what, sizeof row.what, "%s",
                 needed > answer->memory_bytes ? "a larger machine" : "more free memory");
    hr_count_print(needed, row.needs);
    hr_size_print(needed, row.size);
    if (*device->name && !on_it)
        snprintf(row.price, sizeof row.price, "%s%s%ssmallest plan", larger ? "the smallest " : "",
                 larger ? hr_device_group_words((int32_t)device->larger_group) : "",
                 larger ? " that holds the " : "");
    else
        snprintf(row.price, sizeof row.price, "smallest plan, %s per step",
                 hr_duration_print(answer->step_seconds, time));
    return row;
}

enum { WHAT_COLUMNS_MOST = 44 }; /* a longer change has a line of its own */

/* Columns are as wide as their contents, so that large models stay readable. */
static void put_table(hr_writer *writer, const change_row *rows, int32_t count)
{
    static const char needs[] = "needs", gained[] = "saves";
    size_t what_columns = 0, needs_columns = sizeof needs - 1, gained_columns = sizeof gained - 1;
    for (int32_t i = 0; i < count; i++) {
        const size_t length = strlen(rows[i].what);
        if (length <= WHAT_COLUMNS_MOST) what_columns = hr_max(what_columns, length);
        needs_columns = hr_max(needs_columns, strlen(rows[i].needs));
        gained_columns = hr_max(gained_columns, strlen(rows[i].gained));
    }
    hr_put(writer, "  %-*s  %*s%14s  %*s  %s\n", (int)what_columns, "", (int)needs_columns, needs,
           "", (int)gained_columns, gained, "cost");
    for (int32_t i = 0; i < count; i++) {
        const bool fits = strlen(rows[i].what) <= WHAT_COLUMNS_MOST;
        if (!fits) hr_put(writer, "  %s\n", rows[i].what);
        hr_put(writer, "  %-*s  %*s  %12s  %*s  %s\n", (int)what_columns, fits ? rows[i].what : "",
               (int)needs_columns, rows[i].needs, rows[i].size, (int)gained_columns, rows[i].gained,
               rows[i].price);
    }
}

static void put_changes(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                        const hr_plan_details *details, int64_t beside)
{
    change_row rows[HR_PLAN_CHANGES_MOST + 1];
    const int32_t count = details->change_count;
    rows[0] = more_memory(answer, beside);
    for (int32_t i = 0; i < count; i++) rows[i + 1] = row_of(&details->changes[i]);
    hr_put(writer, "\n%schanges that make it fit%s, each line alone%s\n", style->title,
           style->plain,
           count ? ", sorted by what they give up:\n  memory, time, precision, optimizer or batch, "
                   "trained layers, sequence length, rank of a "
                   "matrix,\n  vocabulary, model size"
                 : "");
    put_table(writer, rows, count + 1);
    if (!count) hr_put(writer, "  no other change was found\n");
}

/* Changes that are not enough alone, and those that the search did not come to. */
static void put_partial(hr_writer *writer, const hr_style *style, const hr_plan_details *details)
{
    change_row rows[HR_PLAN_CHANGES_MOST];
    for (int32_t i = 0; i < details->partial_count; i++) rows[i] = row_of(&details->partial[i]);
    if (details->partial_count) {
        hr_put(writer, "\n%schanges that are not enough alone%s\n", style->title, style->plain);
        put_table(writer, rows, details->partial_count);
    }
    if (*details->untried)
        hr_put(writer, "\n%schanges that were not planned%s, or not in full, and may fit\n  %s\n",
               style->title, style->plain, details->untried);
}

/* What the smallest plan does already. */
static void put_used(hr_writer *writer, const hr_style *style, const hr_plan_details *details)
{
    if (!details->used_count) return;
    hr_put(writer, "\n%swhat the smallest plan does already%s, and the bytes that each saves\n",
           style->title, style->plain);
    for (int32_t i = 0; i < details->used_count; i++) {
        hr_put(writer, "  %-40s", details->used[i].name);
        hr_label_put_bytes(writer, details->used[i].bytes);
        hr_put(writer, "\n");
    }
}

/* What planning takes beyond the arena, which is then not what decides. */
static void put_planning(hr_writer *writer, const hr_plan_details *details)
{
    for (int32_t i = 0; i < details->line_count; i++)
        if (!strcmp(details->lines[i].name, "planning") && details->lines[i].bytes)
            put_line(writer, "planning, beyond the arena", details->lines[i].bytes,
                     "by the search for a plan: a smaller arena saves nothing");
}

/* The plan without any of these, and its largest tensor. */
static void put_whole(hr_writer *writer, const hr_plan_answer *answer,
                      const hr_plan_details *details)
{
    const hr_plan_tensor *largest = &details->whole_largest;
    char why[HR_PLAN_NAME_BYTES + HR_PLAN_SHAPE_BYTES];
    if (details->whole_bytes > answer->minimum_bytes)
        put_line(writer, "without the savings below", details->whole_bytes, "");
    snprintf(why, sizeof why, "%s %s", largest->name, largest->shape);
    if (largest->bytes)
        put_line(writer,
                 details->whole_bytes > answer->minimum_bytes ? "largest tensor without them"
                                                              : "largest tensor",
                 largest->bytes, why);
}

static void put_available(hr_writer *writer, const hr_plan_answer *answer, int64_t beside)
{
    const hr_plan_device *device = &answer->device;
    char why[HR_PLAN_NAME_BYTES], size[2][HR_COUNT_BYTES];
    if (!*device->name) {
        put_line(writer, beside ? "available on this machine" : "budget", answer->available_bytes,
                 "");
        return;
    }
    snprintf(why, sizeof why, "%s: %s usable, %s reserve", device->name,
             hr_size_print(device->usable_bytes, size[0]),
             hr_size_print(device->reserve_bytes, size[1]));
    const bool limited = answer->available_bytes < device->usable_bytes - device->reserve_bytes;
    put_line(writer, limited ? "budget" : "available", answer->available_bytes, why);
}

void hr_explain_refusal(const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, bool colour, hr_writer *writer)
{
    const hr_style style = hr_style_of(colour);
    const hr_plan_part *line = largest_of(details->lines, details->line_count);
    const hr_plan_part *part = largest_of(details->parts, details->part_count);
    hr_put(writer, "%sdoes not fit%s\n", style.bad, style.plain);
    hr_stages_put(answer, &style, writer);
    if (answer->stage_count)
        hr_put(writer,
               "    keys that stages set, such as train.batch, are changed in train.stages, "
               "and not tried here\n\n");
    /* A budget is for the process; the machine also needs memory for the kernel. */
    const int64_t beside = config->memory.budget ? 0 : answer->kernel_bytes;
    put_line(writer, "needs at least", answer->minimum_bytes, "");
    if (beside) put_line(writer, "page tables and cache", beside, "kernel memory");
    put_available(writer, answer, beside);
    put_line(writer, "missing", answer->minimum_bytes + beside - answer->available_bytes, "");
    if (details->change_count)
        put_line(writer, "with the cheapest change", details->changes[0].bytes,
                 details->changes[0].what);
    if (line && !answer->device.is_card)
        put_line(writer, "largest part of the process", line->bytes, line->name);
    if (part) put_line(writer, "largest part of the arena", part->bytes, part->name);
    put_planning(writer, details);
    put_whole(writer, answer, details);
    hr_put(writer, "  peak of the smallest plan: %s\n", details->peak);
    if (details->alone.bytes) {
        char size[64];
        hr_put(writer, "  %s%s alone: %s, %s%s\n", style.strong, details->alone.name,
               hr_bytes_print(details->alone.bytes, size), details->alone.why, style.plain);
    }
    put_changes(writer, &style, answer, details, beside);
    put_partial(writer, &style, details);
    put_used(writer, &style, details);
}
