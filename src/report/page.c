/* SPDX-License-Identifier: Apache-2.0 */
/* report/page.c - the tables of a plan, in the order of its text. */
#include "report/page.h"

#include <stdio.h>

#include "base/checked.h"
#include "config/config.h"
#include "headroom/config.h"
#include "report/explain.h"
#include "report/html_step.h"

/* ---- tables */

static void put_list(hr_html *page, const char *title, const hr_plan_part *parts, int32_t count,
                     int64_t whole)
{
    if (!count) return;
    hr_html_begin_table(page, title, "<th>what<th class=n>bytes<th><th class=n>share<th>");
    for (int32_t i = 0; i < count; i++) {
        hr_html_put(page, "<tr>");
        hr_html_put_cell(page, parts[i].name);
        hr_html_put_bytes(page, parts[i].bytes);
        hr_html_put(page, "<td class=n>%.1f %%</td>",
                    whole > 0 ? 100 * (double)parts[i].bytes / (double)whole : 0);
        hr_html_put_cell(page, parts[i].why);
        hr_html_put(page, "</tr>\n");
    }
    hr_html_end_table(page);
}

static void put_largest(hr_html *page, const hr_plan_details *details)
{
    if (!details->largest_count) return;
    hr_html_begin_table(page, "Largest tensors at the peak",
                        "<th>what<th class=n>bytes<th><th>shape<th>");
    for (int32_t i = 0; i < details->largest_count; i++) {
        hr_html_put(page, "<tr>");
        hr_html_put_cell(page, details->largest[i].name);
        hr_html_put_bytes(page, details->largest[i].bytes);
        hr_html_put_cell(page, details->shapes[i]);
        hr_html_put_cell(page, details->largest[i].why);
        hr_html_put(page, "</tr>\n");
    }
    hr_html_end_table(page);
}

static void put_changes(hr_html *page, const char *title, const hr_plan_change *changes,
                        int32_t count)
{
    char cost[HR_CHANGE_COST_BYTES];
    if (!count) return;
    hr_html_begin_table(page, title,
                        "<th>change<th class=n>needs<th><th class=n>saves<th><th>cost");
    for (int32_t i = 0; i < count; i++) {
        hr_html_put(page, "<tr>");
        hr_html_put_cell(page, changes[i].what);
        hr_html_put_bytes(page, changes[i].bytes);
        hr_html_put_bytes(page, changes[i].gained_bytes);
        hr_html_put_cell(page, hr_change_cost_print(&changes[i], cost));
        hr_html_put(page, "</tr>\n");
    }
    hr_html_end_table(page);
}

static void put_stages(hr_html *page, const hr_plan_answer *answer)
{
    char count[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    if (!answer->stage_count || !answer->stages) return;
    hr_html_begin_table(page, "Stages",
                        "<th class=n>from step<th class=n>batch<th class=n>tokens<th "
                        "class=n>bytes<th><th class=n>step<th>");
    for (int32_t i = 0; i < answer->stage_count; i++) {
        const hr_plan_stage *s = &answer->stages[i];
        hr_html_put(page, "<tr><td class=n>%s</td>", hr_count_print(s->first_step, count));
        hr_html_put(page, "<td class=n>%lld</td><td class=n>%lld</td>", (long long)s->batch,
                    (long long)s->seq_len);
        hr_html_put_bytes(page, s->process_bytes);
        hr_html_put(page, "<td class=n>%s</td><td>%s</td></tr>\n",
                    hr_duration_print(s->step_seconds, time), s->fits ? "" : "does not fit");
    }
    hr_html_end_table(page);
}

static void put_size(hr_html *page, const char *name, int64_t bytes, const char *behind)
{
    char text[256], a[HR_COUNT_BYTES], b[HR_COUNT_BYTES];
    snprintf(text, sizeof text, "%s bytes (%s)%s", hr_count_print(bytes, a),
             hr_size_print(bytes, b), behind);
    hr_html_put_fact(page, name, text);
}

static void put_facts(hr_html *page, const hr_config *config, const hr_plan_answer *answer)
{
    char text[128], a[HR_COUNT_BYTES];
    hr_html_put(page, "<dl class=facts>");
    hr_html_put_fact(page, "parameters", hr_count_print(answer->parameters, text));
    snprintf(text, sizeof text, ", %s", answer->packing);
    put_size(page, "arena", answer->arena_bytes, text);
    if (answer->available_bytes > 0) put_size(page, "available", answer->available_bytes, "");
    if (answer->fits && answer->minimum_bytes > 0)
        put_size(page, "smallest plan", answer->minimum_bytes, "");
    snprintf(text, sizeof text, "%lld x %lld tokens", (long long)config->train.batch,
             (long long)config->train.seq_len);
    hr_html_put_fact(page, "batch", text);
    if (answer->step_seconds > 0)
        hr_html_put_fact(page, "step", hr_duration_print(answer->step_seconds, text));
    if (answer->step_seconds > 0) {
        const double tokens = (double)config->train.batch * (double)config->train.seq_len;
        snprintf(text, sizeof text, "%s tokens/s",
                 hr_count_print((int64_t)(tokens / answer->step_seconds + 0.5), a));
        hr_html_put_fact(page, "speed", text);
    }
    hr_html_put_fact(page, "times", answer->times);
    if (*answer->device.name) hr_html_put_fact(page, "device", answer->device.title);
    hr_html_put(page, "</dl>\n");
}

/* Lines across the chart: the plan, and what there is unless it is far above. */
static void put_curve(hr_html *page, const hr_plan_answer *answer, const hr_plan_details *details,
                      int64_t process)
{
    const int64_t limit = answer->available_bytes;
    const bool shows_limit = limit > 0 && limit < 3 * process && limit != process;
    const hr_html_limit limits[] = {
        { answer->fits ? "planned" : "needs at least", process, false, false },
        { "available", limit, true, true },
    };
    hr_html_put_step(page, details, hr_max(process - answer->arena_bytes, 0), limits,
                     1 + shows_limit);
}

static void put_all(hr_html *page, const hr_config *config, const hr_plan_answer *answer,
                    const hr_plan_details *details)
{
    char size[HR_COUNT_BYTES], count[HR_COUNT_BYTES];
    const int64_t process = answer->fits ? answer->process_bytes : answer->minimum_bytes;
    hr_html_put(page, "<h1%s>%s %s <small>(%s bytes)</small></h1>\n",
                answer->fits ? "" : " class=no",
                answer->fits ? "Fits:" : "Does not fit: needs at least",
                hr_size_print(process, size), hr_count_print(process, count));
    put_facts(page, config, answer);
    put_curve(page, answer, details, process);
    put_changes(page, "Changes that make it fit", details->changes, details->change_count);
    put_changes(page, "Changes that are not enough alone", details->partial,
                details->partial_count);
    put_list(page, "The process", details->lines, details->line_count, process);
    hr_html_put(page, "<p>The peak of the arena is in operation %s of %s: ",
                hr_count_print(details->peak_step, size),
                hr_count_print(details->step_count, count));
    hr_html_put_text(page, details->peak);
    hr_html_put(page, ".</p>\n");
    put_list(page, "Components at the peak", details->parts, details->part_count,
             answer->floor_bytes);
    put_largest(page, details);
    put_list(page, "Phases of the run", details->phases, details->phase_count, answer->floor_bytes);
    put_changes(page, "What would save memory", details->removals, details->removal_count);
    put_list(page, "What the smallest plan does already", details->used, details->used_count,
             process);
    put_stages(page, answer);
    if (*answer->strategy) hr_html_put(page, "<h2>Strategy</h2>\n<pre tabindex=0>");
    hr_html_put_text(page, answer->strategy);
    if (*answer->strategy) hr_html_put(page, "</pre>\n");
    hr_html_put(page,
                "<h2>Not included</h2>\n<ul><li>what the kernel keeps for the process outside of "
                "it, such as page tables: %s</li><li>files: %s beside checkpoints</li><li>the page "
                "cache of the system, which it frees when memory is short</li></ul>\n",
                hr_size_print(answer->kernel_bytes, size),
                hr_size_print(answer->file_bytes, count));
}

hr_status hr_page_write(const char *path, const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, hr_error *err)
{
    hr_html page;
    const char *title = answer->fits ? "the run fits" : "the run does not fit";
    const hr_status status = hr_html_open(&page, path, title, err);
    if (status != HR_OK) return status;
    put_all(&page, config, answer, details);
    return hr_html_close(&page, "Bytes are those of the plan that trains; times are predictions.");
}
