/* SPDX-License-Identifier: Apache-2.0 */
/* report/page.c - one file of HTML, CSS and SVG. Text from files is escaped. */
#include "report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/writer.h"
#include "headroom/version.h"
#include "report/explain.h"
#include "report/labels.h"

const char hr_page_begin[] = "<!doctype html>\n<!-- headroom ";

enum { WIDTH = 960, HEIGHT = 380, LEFT = 76, RIGHT = 12, TOP = 16, BOTTOM = 34, PIECE = 16 << 10 };

typedef struct {
    hr_file_out out;
    hr_status status;
    hr_error *err;
} page;

/* ---- text */

static void put(page *p, const char *format, ...) HR_PRINTF(2, 3);
static void put(page *p, const char *format, ...)
{
    char text[PIECE];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (p->status == HR_OK)
        p->status = hr_file_append(&p->out, text, hr_min(length, (int)sizeof text - 1), p->err);
}

/* Text of an element or an attribute: what has a meaning in HTML is written as entities. */
static void put_text(page *p, const char *text)
{
    static const char special[] = "<>&\"'";
    while (*text) {
        const int plain = (int)strcspn(text, special);
        put(p, "%.*s", plain, text);
        if (text[plain]) put(p, "&#%d;", text[plain]);
        text += plain + (text[plain] != 0);
    }
}

static void put_cell(page *p, const char *text)
{
    put(p, "<td>");
    put_text(p, text);
    put(p, "</td>");
}

static void put_bytes(page *p, int64_t bytes)
{
    char count[HR_COUNT_BYTES], size[HR_COUNT_BYTES];
    put(p, "<td class=n>%s</td><td class=n>%s</td>", hr_count_print(bytes, count),
        hr_size_print(bytes, size));
}

/* A table that scrolls by itself on a narrow screen, also with the keyboard. */
static void begin_table(page *p, const char *title, const char *heads)
{
    put(p,
        "<h2>%s</h2>\n<div class=wide tabindex=0 role=region "
        "aria-label=\"%s\"><table>\n<tr>%s</tr>\n",
        title, title, heads);
}

static void end_table(page *p)
{
    put(p, "</table></div>\n");
}

/* ---- the curve */

/* Colors that differ in hue from their neighbors, with enough contrast on light and dark. */
static void put_color(page *p, int32_t component)
{
    put(p, "hsl(%d,55%%,%d%%)", (component * 67 + 205) % 360, component % 2 ? 52 : 60);
}

typedef struct {
    const hr_plan_details *details;
    int64_t outside, top; /* bytes of the process outside of the arena; of the upper end */
} curve;

static double x_of(const curve *c, int32_t edge)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * edge / c->details->curve_count;
}

static double y_of(const curve *c, int64_t bytes)
{
    return HEIGHT - BOTTOM - (double)(HEIGHT - TOP - BOTTOM) * (double)bytes / (double)c->top;
}

/* Bytes below component `n` in part i of the step. */
static int64_t below(const curve *c, int32_t i, int32_t n)
{
    int64_t sum = c->outside;
    for (int32_t k = 0; k < n; k++) sum += c->details->curve_parts[i][k];
    return sum;
}

static int64_t largest(const curve *c, int32_t n)
{
    int64_t most = 0;
    for (int32_t i = 0; i < c->details->curve_count; i++)
        most = hr_max(most, c->details->curve_parts[i][n]);
    return most;
}

static void put_component(page *p, const curve *c, int32_t n)
{
    char size[HR_COUNT_BYTES];
    put(p, "<path fill='");
    put_color(p, n);
    put(p, "' d='");
    for (int32_t i = 0; i < c->details->curve_count; i++)
        put(p, "%s%.1f %.1fH%.1f", i ? "V" : "M", i ? y_of(c, below(c, i, n + 1)) : x_of(c, 0),
            y_of(c, below(c, i, n + 1)), x_of(c, i + 1));
    for (int32_t i = c->details->curve_count - 1; i >= 0; i--)
        put(p, "V%.1fH%.1f", y_of(c, below(c, i, n)), x_of(c, i));
    put(p, "Z'><title>%s: up to %s</title></path>\n", c->details->curve_names[n],
        hr_size_print(largest(c, n), size));
}

/* A round number of MiB or GiB, of which at most six are below the upper end. */
static int64_t grid_of(const curve *c)
{
    static const int64_t factors[] = { 1, 2, 5 };
    const int64_t unit = INT64_C(1) << (c->top >> 32 ? 30 : 20);
    int64_t grid = unit, power = 1;
    for (int32_t i = 1; c->top / grid > 6; i++) {
        if (i % 3 == 0) power *= 10;
        grid = factors[i % 3] * power * unit;
    }
    return grid;
}

static void put_axis(page *p, const curve *c)
{
    char text[HR_COUNT_BYTES];
    const int64_t grid = grid_of(c);
    for (int64_t bytes = 0; bytes <= c->top; bytes += grid)
        put(p,
            "<path class=grid d='M%d %.1fH%d'/><text x='%d' y='%.1f' text-anchor=end>%s</text>\n",
            LEFT, y_of(c, bytes), WIDTH - RIGHT, LEFT - 6, y_of(c, bytes) + 4,
            bytes ? hr_size_print(bytes, text) : "0");
    put(p, "<text x='%d' y='%d'>operation %s</text>", LEFT, HEIGHT - 10,
        hr_count_print(c->details->curve_first, text));
    put(p, "<text x='%d' y='%d' text-anchor=end>%s</text>\n", WIDTH - RIGHT, HEIGHT - 10,
        hr_count_print(c->details->curve_last, text));
}

static void put_line(page *p, const curve *c, int64_t bytes, const char *name, bool left)
{
    char size[HR_COUNT_BYTES];
    put(p,
        "<path class=limit d='M%d %.1fH%d'/><text class=limit x='%d' y='%.1f' text-anchor=%s>%s "
        "%s</text>\n",
        LEFT, y_of(c, bytes), WIDTH - RIGHT, left ? LEFT + 8 : WIDTH - RIGHT - 8,
        y_of(c, bytes) + (left ? 14 : -5), left ? "start" : "end", name,
        hr_size_print(bytes, size));
}

static void put_curve(page *p, const hr_plan_answer *answer, const hr_plan_details *details,
                      int64_t process)
{
    const int64_t limit = answer->available_bytes;
    const bool shows_limit = limit > 0 && limit < 3 * process;
    const curve c = { .details = details,
                      .outside = hr_max(process - answer->arena_bytes, 0),
                      .top = (int64_t)(1.08 * (double)hr_max(process, shows_limit ? limit : 0)) };
    char size[HR_COUNT_BYTES];
    if (!details->curve_count || c.top <= 0) return;
    put(p,
        "<figure><div class=wide tabindex=0 role=region aria-label=\"Bytes over a training "
        "step\"><svg viewBox='0 0 %d %d' role=img aria-labelledby='ct cd'><title id=ct>Bytes over "
        "a "
        "training step</title><desc id=cd>The peak is ",
        WIDTH, HEIGHT);
    put_text(p, details->peak);
    put(p, ".</desc>\n");
    put_axis(p, &c);
    put(p,
        "<rect class=base x='%d' y='%.1f' width='%d' height='%.1f'><title>outside of the arena: "
        "%s</title></rect>\n",
        LEFT, y_of(&c, c.outside), WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - y_of(&c, c.outside),
        hr_size_print(c.outside, size));
    for (int32_t n = 0; n < HR_PLAN_PARTS_MOST; n++)
        if (largest(&c, n)) put_component(p, &c, n);
    put_line(p, &c, process, answer->fits ? "planned" : "needs at least", true);
    if (shows_limit && limit != process) put_line(p, &c, limit, "available", false);
    put(p,
        "</svg></div><figcaption><ul class=legend><li><i class=base></i>outside of the arena</li>");
    for (int32_t n = 0; n < HR_PLAN_PARTS_MOST; n++) {
        if (!largest(&c, n)) continue;
        put(p, "<li><i style='background:");
        put_color(p, n);
        put(p, "'></i>%s</li>", details->curve_names[n]);
    }
    put(p, "</ul></figcaption></figure>\n");
}

/* ---- tables */

static void put_list(page *p, const char *title, const hr_plan_part *parts, int32_t count,
                     int64_t whole)
{
    if (!count) return;
    begin_table(p, title, "<th>what<th class=n>bytes<th><th class=n>share<th>");
    for (int32_t i = 0; i < count; i++) {
        put(p, "<tr>");
        put_cell(p, parts[i].name);
        put_bytes(p, parts[i].bytes);
        put(p, "<td class=n>%.1f %%</td>",
            whole > 0 ? 100 * (double)parts[i].bytes / (double)whole : 0);
        put_cell(p, parts[i].why);
        put(p, "</tr>\n");
    }
    end_table(p);
}

static void put_largest(page *p, const hr_plan_details *details)
{
    if (!details->largest_count) return;
    begin_table(p, "Largest tensors at the peak", "<th>what<th class=n>bytes<th><th>shape<th>");
    for (int32_t i = 0; i < details->largest_count; i++) {
        put(p, "<tr>");
        put_cell(p, details->largest[i].name);
        put_bytes(p, details->largest[i].bytes);
        put_cell(p, details->shapes[i]);
        put_cell(p, details->largest[i].why);
        put(p, "</tr>\n");
    }
    end_table(p);
}

static void put_changes(page *p, const char *title, const hr_plan_change *changes, int32_t count)
{
    char cost[HR_CHANGE_COST_BYTES];
    if (!count) return;
    begin_table(p, title, "<th>change<th class=n>needs<th><th class=n>saves<th><th>cost");
    for (int32_t i = 0; i < count; i++) {
        put(p, "<tr>");
        put_cell(p, changes[i].what);
        put_bytes(p, changes[i].bytes);
        put_bytes(p, changes[i].gained_bytes);
        put_cell(p, hr_change_cost_print(&changes[i], cost));
        put(p, "</tr>\n");
    }
    end_table(p);
}

static void put_stages(page *p, const hr_plan_answer *answer)
{
    char count[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    if (!answer->stage_count || !answer->stages) return;
    begin_table(p, "Stages",
                "<th class=n>from step<th class=n>batch<th class=n>tokens<th "
                "class=n>bytes<th><th class=n>step<th>");
    for (int32_t i = 0; i < answer->stage_count; i++) {
        const hr_plan_stage *s = &answer->stages[i];
        put(p, "<tr><td class=n>%s</td>", hr_count_print(s->first_step, count));
        put(p, "<td class=n>%lld</td><td class=n>%lld</td>", (long long)s->batch,
            (long long)s->seq_len);
        put_bytes(p, s->process_bytes);
        put(p, "<td class=n>%s</td><td>%s</td></tr>\n", hr_duration_print(s->step_seconds, time),
            s->fits ? "" : "does not fit");
    }
    end_table(p);
}

static void put_head(page *p, bool fits)
{
    put(p,
        "%s%s -->\n<html lang=en><meta charset=utf-8>\n<meta name=viewport "
        "content='width=device-width,initial-scale=1'>\n<title>headroom: the run "
        "%s</title>\n<style>\n"
        ":root{color-scheme:light "
        "dark;--f:#1b1f24;--b:#fff;--m:#57606a;--l:#d0d7de;--k:#8c959f;--r:#b42318}\n"
        "@media(prefers-color-scheme:dark){:root{--f:#e6edf3;--b:#0d1117;--m:#9da7b1;--l:#30363d;"
        "--k:#6e7681;--r:#ff7b72}}\n"
        "body{font:16px/1.5 system-ui,sans-serif;color:var(--f);background:var(--b);margin:0 auto;"
        "max-width:64rem;padding:1rem}\n"
        "h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
        ".no{color:var(--r)}.facts{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:1rem "
        "0;padding:0}\n"
        ".facts div{min-width:8rem}.facts dt{color:var(--m);font-size:.85rem}.facts dd{margin:0}\n"
        "figure{margin:1.5rem 0}svg{width:100%%;min-width:36rem;height:auto}svg "
        "text{fill:var(--f);font-size:12px}\n"
        ".grid{stroke:var(--l)}.base{fill:var(--k);background:var(--k)}path.limit{stroke:var(--r);"
        "stroke-width:1.5;stroke-dasharray:6 4}text.limit{fill:var(--r)}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.2rem "
        "1rem;list-style:none;padding:0;font-size:.85rem}\n"
        ".legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem}\n"
        ".wide{overflow-x:auto}.wide:focus{outline:2px solid "
        "var(--m)}table{border-collapse:collapse}\n"
        "th{color:var(--m);font-weight:600;font-size:.85rem}th,td{text-align:left;padding:.25rem "
        ".75rem "
        ".25rem 0;border-bottom:1px solid var(--l);vertical-align:top}\n"
        "td:last-child{min-width:12rem}.n{text-align:right;min-width:0!important;white-space:"
        "nowrap;font-variant-numeric:tabular-nums}"
        "pre{overflow-x:auto}\n</style>\n<main>\n",
        hr_page_begin, HR_VERSION, fits ? "fits" : "does not fit");
}

static void put_fact(page *p, const char *name, const char *text)
{
    put(p, "<div><dt>%s</dt><dd>", name);
    put_text(p, text);
    put(p, "</dd></div>");
}

static void put_facts(page *p, const hr_config *config, const hr_plan_answer *answer)
{
    char text[128], a[HR_COUNT_BYTES], b[HR_COUNT_BYTES];
    put(p, "<dl class=facts>");
    put_fact(p, "parameters", hr_count_print(answer->parameters, text));
    snprintf(text, sizeof text, "%s bytes (%s), %s", hr_count_print(answer->arena_bytes, a),
             hr_size_print(answer->arena_bytes, b), answer->packing);
    put_fact(p, "arena", text);
    if (answer->available_bytes > 0)
        put_fact(p, "available", hr_size_print(answer->available_bytes, text));
    snprintf(text, sizeof text, "%lld x %lld tokens", (long long)config->train.batch,
             (long long)config->train.seq_len);
    put_fact(p, "batch", text);
    if (answer->step_seconds > 0)
        put_fact(p, "step", hr_duration_print(answer->step_seconds, text));
    if (answer->step_seconds > 0) {
        const double tokens = (double)config->train.batch * (double)config->train.seq_len;
        snprintf(text, sizeof text, "%s tokens/s",
                 hr_count_print((int64_t)(tokens / answer->step_seconds + 0.5), a));
        put_fact(p, "speed", text);
    }
    put_fact(p, "times", answer->times);
    if (*answer->device.name) put_fact(p, "device", answer->device.title);
    put(p, "</dl>\n");
}

static void put_all(page *p, const hr_config *config, const hr_plan_answer *answer,
                    const hr_plan_details *details)
{
    char size[HR_COUNT_BYTES], count[HR_COUNT_BYTES];
    const int64_t process = answer->fits ? answer->process_bytes : answer->minimum_bytes;
    put_head(p, answer->fits);
    put(p, "<h1%s>%s %s <small>(%s bytes)</small></h1>\n", answer->fits ? "" : " class=no",
        answer->fits ? "Fits:" : "Does not fit: needs at least", hr_size_print(process, size),
        hr_count_print(process, count));
    put_facts(p, config, answer);
    put_curve(p, answer, details, process);
    put_changes(p, "Changes that make it fit", details->changes, details->change_count);
    put_changes(p, "Changes that are not enough alone", details->partial, details->partial_count);
    put_list(p, "The process", details->lines, details->line_count, process);
    put(p, "<p>The peak of the arena is in operation %s of %s: ",
        hr_count_print(details->peak_step, size), hr_count_print(details->step_count, count));
    put_text(p, details->peak);
    put(p, ".</p>\n");
    put_list(p, "Components at the peak", details->parts, details->part_count, answer->floor_bytes);
    put_largest(p, details);
    put_list(p, "Phases of the run", details->phases, details->phase_count, answer->floor_bytes);
    put_changes(p, "What would save memory", details->removals, details->removal_count);
    put_list(p, "What the smallest plan does already", details->used, details->used_count, process);
    put_stages(p, answer);
    if (*answer->strategy) put(p, "<h2>Strategy</h2>\n<pre tabindex=0>");
    put_text(p, answer->strategy);
    if (*answer->strategy) put(p, "</pre>\n");
    put(p,
        "<h2>Not included</h2>\n<ul><li>what the kernel keeps for the process outside of it, such "
        "as "
        "page tables: %s</li><li>files: %s beside checkpoints</li><li>the page cache of the "
        "system, "
        "which it frees when memory is short</li></ul>\n<p>headroom %s. Bytes are those of the "
        "plan "
        "that trains; times are predictions.</p>\n</main></html>\n",
        hr_size_print(answer->kernel_bytes, size), hr_size_print(answer->file_bytes, count),
        HR_VERSION);
}

hr_status hr_page_write(const char *path, const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, hr_error *err)
{
    page p = { .err = err };
    p.status = hr_file_begin_path(&p.out, path, err);
    if (p.status != HR_OK) return p.status;
    put_all(&p, config, answer, details);
    return p.status == HR_OK ? hr_file_commit(&p.out, err) : p.status;
}
