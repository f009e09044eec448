/* SPDX-License-Identifier: Apache-2.0 */
/* report/profile_page.c - where the time of a step went, beside where it was planned to go. */
#include "report/profile_page.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "config/config.h"
#include "headroom/config.h"
#include "report/html_step.h"

enum { FACT_BYTES = 256 };

static void put_size(hr_html *page, const char *name, int64_t bytes)
{
    char text[FACT_BYTES], count[HR_COUNT_BYTES], size[HR_COUNT_BYTES];
    snprintf(text, sizeof text, "%s bytes (%s)", hr_count_print(bytes, count),
             hr_size_print(bytes, size));
    hr_html_put_fact(page, name, text);
}

static void put_facts(hr_html *page, const hr_config *config, const hr_profile_report *report)
{
    const hr_train_result *run = &report->run;
    char text[FACT_BYTES], time[HR_COUNT_BYTES];
    hr_html_put(page, "<dl class=facts>");
    snprintf(text, sizeof text, "%lld%s", (long long)report->steps,
             report->warm_up_steps ? ", after one that is not counted" : "");
    hr_html_put_fact(page, "steps", text);
    hr_html_put_fact(page, "planned step", hr_duration_print(run->plan.step_seconds, time));
    hr_html_put_fact(page, "times", run->plan.times);
    snprintf(text, sizeof text, "%lld x %lld tokens", (long long)config->train.batch,
             (long long)config->train.seq_len);
    hr_html_put_fact(page, "batch", text);
    snprintf(text, sizeof text, "%s, %d thread%s", run->plan.rung, run->plan.threads,
             run->plan.threads == 1 ? "" : "s");
    hr_html_put_fact(page, "kernels", text);
    put_size(page, "process, planned", run->process_bytes_planned);
    put_size(page, "process, measured", run->process_bytes_measured);
    put_size(page, "arena, planned", run->arena_bytes_planned);
    put_size(page, "arena, used", run->arena_bytes_used);
    hr_html_put(page, "</dl>\n");
}

static void put_memory(hr_html *page, const hr_profile_report *report,
                       const hr_plan_details *details)
{
    const hr_train_result *run = &report->run;
    const hr_html_limit limits[] = {
        { "planned", run->process_bytes_planned, false, false, NULL },
        { "measured", run->process_bytes_measured, true, false, report->curve.resident },
    };
    hr_html_put_step(page, details,
                     hr_max(run->process_bytes_planned - run->arena_bytes_planned, 0), limits, 2);
}

/* Shorter steps have more digits. */
static int32_t decimals_of(const hr_profile_report *report)
{
    return report->step_seconds < 10 ? 6 : 3;
}

/* `most` is the time of the longest bar; 0: no bars. */
static void put_row(hr_html *page, const hr_profile_report *report, const hr_profile_row *row,
                    double most)
{
    const double rate = row->flops > 0 && row->seconds > 0 ? row->flops / row->seconds : NAN;
    hr_html_put_number(page, 1, row->calls > 0 ? row->calls : NAN);
    hr_html_put_number(page, decimals_of(report), row->seconds);
    hr_html_put(page, "<td class=n>%.1f %%</td>", 100 * row->seconds / report->step_seconds);
    hr_html_put_number(page, decimals_of(report), row->planned_seconds);
    hr_html_put_number(page, 1, 1e-9 * rate);
    if (report->ceiling_flops > 0 && !isnan(rate))
        hr_html_put(page, "<td class=n>%.0f %%</td>", 100 * rate / report->ceiling_flops);
    else if (report->ceiling_flops > 0) hr_html_put(page, "<td class=n>-</td>");
    if (most > 0) hr_html_put_bars(page, row->seconds / most, row->planned_seconds / most);
    else hr_html_put(page, "<td></td>");
    hr_html_put(page, "</tr>\n");
}

static void begin_rows(hr_html *page, const hr_profile_report *report, const char *title,
                       const char *name)
{
    char heads[512];
    snprintf(heads, sizeof heads,
             "<th>%s<th class=n>calls<th class=n>seconds<th class=n>share<th class=n>planned<th "
             "class=n>GFLOP/s%s<th><i></i>measured <i class=b></i>planned",
             name, report->ceiling_flops > 0 ? "<th class=n>ceiling" : "");
    hr_html_begin_table(page, title, heads);
}

static double longest(const hr_profile_row *rows, int32_t count)
{
    double most = 0;
    for (int32_t i = 0; i < count; i++)
        most = fmax(most, fmax(rows[i].seconds, rows[i].planned_seconds));
    return most;
}

static void put_name(hr_html *page, const hr_profile_row *row)
{
    hr_html_put(page, "<tr><td>");
    if (row->operation) hr_html_put(page, "%s, ", row->operation);
    hr_html_put(page, "%s%s%s</td>", row->part, *row->direction ? ", " : "", row->direction);
}

static void put_engines(hr_html *page, const hr_profile_report *report)
{
    hr_html_begin_table(page, "What waits for what",
                        "<th>engine<th>what it does<th class=n>seconds<th class=n>share<th "
                        "class=n>bytes<th class=n>MB/s<th>");
    for (int32_t i = 0; i < report->engine_count; i++) {
        const hr_profile_engine *row = &report->engines[i];
        const double rate = row->bytes > 0 && row->seconds > 0 ? row->bytes / row->seconds : NAN;
        hr_html_put(page, "<tr><td>%s</td><td>%s</td>", row->engine, row->doing);
        hr_html_put_number(page, decimals_of(report), row->seconds);
        hr_html_put(page, "<td class=n>%.1f %%</td>", 100 * row->seconds / report->step_seconds);
        hr_html_put_count(page, (int64_t)row->bytes);
        hr_html_put_number(page, 1, 1e-6 * rate);
        hr_html_put_bars(page, row->seconds / report->step_seconds, NAN);
        hr_html_put(page, "</tr>\n");
    }
    hr_html_end_table(page);
}

static void put_rows(hr_html *page, const hr_profile_report *report, const char *title,
                     const char *name, const hr_profile_row *rows, int32_t count)
{
    const double most = longest(rows, count);
    const hr_profile_row between = { .seconds = report->between_seconds };
    begin_rows(page, report, title, name);
    for (int32_t i = 0; i < count; i++) {
        put_name(page, &rows[i]);
        put_row(page, report, &rows[i], most);
    }
    hr_html_put(page, "<tr><td>between operations</td>");
    put_row(page, report, &between, most);
    hr_html_put(page, "<tr><td>step</td>");
    put_row(page, report, &report->step, 0);
    hr_html_end_table(page);
}

hr_status hr_profile_page_write(const char *path, const hr_config *config,
                                const hr_profile_report *report, const hr_plan_details *details,
                                hr_error *err)
{
    hr_html page;
    char time[HR_COUNT_BYTES];
    const hr_status status = hr_html_open(&page, path, "profile", err);
    if (status != HR_OK) return status;
    hr_html_put(&page, "<h1>A step takes %s</h1>\n", hr_duration_print(report->step_seconds, time));
    put_facts(&page, config, report);
    put_memory(&page, report, details);
    put_engines(&page, report);
    put_rows(&page, report, "Parts of the model", "part", report->parts, report->part_count);
    put_rows(&page, report, "Operations", "operation", report->rows, report->row_count);
    return hr_html_close(&page, "Times and bytes are of one step; planned times are predictions "
                                "of the operations, without waits for files.");
}
