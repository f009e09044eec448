/* SPDX-License-Identifier: Apache-2.0 */
/* report/refusal.c - prints how much memory is missing, and which changes make a run fit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/config.h"
#include "report/explain.h"
#include "report/labels.h"
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

/* A row of the table. */
typedef struct {
    char needs[HR_COUNT_BYTES], size[HR_COUNT_BYTES], gained[HR_COUNT_BYTES],
        price[HR_PLAN_NAME_BYTES + 32];
} change_row;

static change_row row_of(const hr_plan_change *change)
{
    change_row row;
    char time[HR_COUNT_BYTES];
    hr_count_print(change->bytes, row.needs);
    hr_size_print(change->bytes, row.size);
    hr_count_print(change->gained_bytes, row.gained);
    if (change->changes_mathematics)
        snprintf(row.price, sizeof row.price, "%s; a different training result", change->price);
    else
        snprintf(row.price, sizeof row.price, "%c%s per step%s%s",
                 change->seconds_lost < 0 ? '-' : '+',
                 hr_duration_print(fabs(change->seconds_lost), time), *change->price ? ", " : "",
                 change->price);
    return row;
}

/* Columns are as wide as their contents, so that large models stay readable. */
static void put_table(hr_writer *writer, const hr_plan_change *changes, int32_t count)
{
    static const char needs[] = "needs", gained[] = "saves";
    size_t what_columns = 0, needs_columns = sizeof needs - 1, gained_columns = sizeof gained - 1;
    for (int32_t i = 0; i < count; i++) {
        const change_row row = row_of(&changes[i]);
        what_columns = hr_max(what_columns, strlen(changes[i].what));
        needs_columns = hr_max(needs_columns, strlen(row.needs));
        gained_columns = hr_max(gained_columns, strlen(row.gained));
    }
    hr_put(writer, "  %-*s  %*s%14s  %*s  %s\n", (int)what_columns, "", (int)needs_columns, needs,
           "", (int)gained_columns, gained, "cost");
    for (int32_t i = 0; i < count; i++) {
        const change_row row = row_of(&changes[i]);
        hr_put(writer, "  %-*s  %*s  %12s  %*s  %s\n", (int)what_columns, changes[i].what,
               (int)needs_columns, row.needs, row.size, (int)gained_columns, row.gained, row.price);
    }
}

static void put_changes(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                        const hr_plan_details *details, int64_t beside)
{
    char left[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    hr_count_print(answer->minimum_bytes + beside, left);
    hr_duration_print(answer->step_seconds, time);
    if (details->change_count) {
        const bool pairs = strchr(details->changes[0].what, ' ') != NULL;
        hr_put(writer, "\n%schanges that make it fit%s, cheapest first%s\n", style->title,
               style->plain, pairs ? " (two keys at a time)" : "");
        put_table(writer, details->changes, details->change_count);
    } else hr_put(writer, "\nno change of one or two keys was found that makes it fit\n");
    if (beside) /* a budget does not make a machine larger */
        hr_put(writer,
               "  or free memory until %s bytes are available: the smallest plan, %s per step\n",
               left, time);
    else
        hr_put(writer, "  --budget %lld  the smallest plan of this recipe, %s per step\n",
               (long long)answer->minimum_bytes, time);
}

void hr_explain_refusal(const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, bool colour, hr_writer *writer)
{
    const hr_style style = hr_style_of(colour);
    const hr_plan_part *line = largest_of(details->lines, details->line_count);
    const hr_plan_part *part = largest_of(details->parts, details->part_count);
    hr_put(writer, "%sdoes not fit%s\n", style.bad, style.plain);
    /* A budget is for the process; the machine also needs memory for the kernel. */
    const int64_t beside = config->memory.budget ? 0 : answer->kernel_bytes;
    put_line(writer, "needs at least", answer->minimum_bytes, "");
    if (beside) put_line(writer, "page tables and cache", beside, "kernel memory");
    put_line(writer, beside ? "available on this machine" : "budget", answer->available_bytes, "");
    put_line(writer, "missing", answer->minimum_bytes + beside - answer->available_bytes, "");
    if (line) put_line(writer, "largest part of the process", line->bytes, line->name);
    if (part) put_line(writer, "largest part of the arena", part->bytes, part->name);
    if (details->alone.bytes) {
        char digits[HR_COUNT_BYTES];
        hr_put(writer, "\n  %s%s alone: %s bytes, more than the budget whatever else changes%s\n",
               style.strong, details->alone.name, hr_count_print(details->alone.bytes, digits),
               style.plain);
    }
    hr_put(writer, "  the smallest plan peaks at: %s\n", details->peak);
    put_changes(writer, &style, answer, details, beside);
}
