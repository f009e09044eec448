/* SPDX-License-Identifier: Apache-2.0 */
/* report/refusal.c - prints what a run lacks, and what would make it fit. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "report/explain.h"
#include "report/style.h"
#include "report/words.h"

static void put_line(hr_writer *writer, const char *name, int64_t bytes, const char *why)
{
    hr_put(writer, "  %-18s", name);
    hr_words_put_bytes(writer, bytes);
    hr_put(writer, "%s%s\n", *why ? "  " : "", why);
}

static const hr_plan_part *largest_of(const hr_plan_part *parts, int32_t count)
{
    const hr_plan_part *most = NULL;
    for (int32_t i = 0; i < count; i++)
        if (!most || parts[i].bytes > most->bytes) most = &parts[i];
    return most;
}

/* A change as the table has it. */
typedef struct {
    char needs[32], gained[32], price[HR_PLAN_NAME_BYTES + 32];
} change_row;

static change_row row_of(const hr_plan_change *change)
{
    change_row row;
    hr_words_digits(change->bytes, row.needs);
    hr_words_digits(change->gained_bytes, row.gained);
    if (change->changes_mathematics)
        snprintf(row.price, sizeof row.price, "other mathematics: %s", change->price);
    else
        snprintf(row.price, sizeof row.price, "%+.3g s a step%s%s", change->seconds_lost,
                 *change->price ? ", " : "", change->price);
    return row;
}

/* Columns as wide as what is in them, so that changes of a large model stay readable. */
static void put_table(hr_writer *writer, const hr_plan_change *changes, int32_t count)
{
    static const char needs[] = "then needs", gained[] = "gained";
    size_t what_columns = 0, needs_columns = sizeof needs - 1, gained_columns = sizeof gained - 1;
    for (int32_t i = 0; i < count; i++) {
        const change_row row = row_of(&changes[i]);
        what_columns = hr_max(what_columns, strlen(changes[i].what));
        needs_columns = hr_max(needs_columns, strlen(row.needs));
        gained_columns = hr_max(gained_columns, strlen(row.gained));
    }
    hr_put(writer, "  %-*s  %*s%15s  %*s  %s\n", (int)what_columns, "", (int)needs_columns, needs,
           "", (int)gained_columns, gained, "price");
    for (int32_t i = 0; i < count; i++) {
        const change_row row = row_of(&changes[i]);
        hr_put(writer, "  %-*s  %*s  %9.3f GiB  %*s  %s\n", (int)what_columns, changes[i].what,
               (int)needs_columns, row.needs, (double)changes[i].bytes / 1073741824.0,
               (int)gained_columns, row.gained, row.price);
    }
}

static void put_changes(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                        const hr_plan_details *details, int64_t beside)
{
    char left[32];
    hr_words_digits(answer->minimum_bytes + beside, left);
    if (details->change_count) {
        const bool pairs = strchr(details->changes[0].what, ' ') != NULL;
        hr_put(writer, "\n%swould fit with one of these%s, cheapest first\n", style->title,
               pairs ? " pairs" : "");
        hr_put(writer, "%s", style->plain);
        put_table(writer, details->changes, details->change_count);
    } else hr_put(writer, "\nno change of one or two keys that was tried makes it fit\n");
    if (beside) /* no budget makes a machine larger */
        hr_put(writer,
               "  %s bytes left on the machine: the smallest plan of this recipe, %.3g s a step\n",
               left, answer->step_seconds);
    else
        hr_put(writer, "  --budget %lld: the smallest plan of this recipe, %.3g s a step\n",
               (long long)answer->minimum_bytes, answer->step_seconds);
}

void hr_explain_refusal(const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, bool colour, hr_writer *writer)
{
    const hr_style style = hr_style_of(colour);
    const hr_plan_part *line = largest_of(details->lines, details->line_count);
    const hr_plan_part *part = largest_of(details->parts, details->part_count);
    hr_put(writer, "%sdoes not fit%s\n", style.bad, style.plain);
    /* A budget is for the process; a machine also has to hold what the kernel keeps for it. */
    const int64_t beside = config->memory.budget ? 0 : answer->kernel_bytes;
    put_line(writer, "needs at least", answer->minimum_bytes, "");
    if (beside) put_line(writer, "and in the kernel", beside, "page tables");
    put_line(writer, beside ? "available" : "budget", answer->available_bytes, "");
    put_line(writer, "lacks", answer->minimum_bytes + beside - answer->available_bytes, "");
    if (line) put_line(writer, "largest part", line->bytes, line->name);
    /* Parts are counted in the arena, so they are parts of no other line. */
    const bool in_arena = line && !strcmp(line->name, "arena");
    if (part) put_line(writer, in_arena ? "most of it" : "most of arena", part->bytes, part->name);
    if (details->alone.bytes) {
        char digits[32];
        hr_words_digits(details->alone.bytes, digits);
        hr_put(writer, "\n  %s%s alone, %s bytes, %s more than that, whatever the strategy%s\n",
               style.strong, details->alone.name, digits, details->alone.why, style.plain);
    }
    hr_put(writer, "  the smallest plan has its peak in: %s\n", details->peak);
    put_changes(writer, &style, answer, details, beside);
}
