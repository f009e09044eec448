/* SPDX-License-Identifier: Apache-2.0 */
/* report/runs_page.c - runs as a page: the table of the text, a chart of losses for each measure of
 * progress, bytes, and the keys in which recipes differ. */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "headroom/runs.h"
#include "report/html.h"

enum { HEIGHT = 330, GRID_MOST = 8 };

hr_status hr_runs_check_page(const char *path, hr_error *err)
{
    return hr_html_check(path, err);
}

/* ---- charts */

typedef enum { OF_STEPS, OF_TOKENS, OF_SECONDS } measure;

typedef struct {
    const hr_run *runs;
    int32_t count;
    measure measure;
    double end, least, most; /* of x; of the losses that are shown */
} chart;

static double along(const chart *c, const hr_run_loss *point)
{
    if (c->measure == OF_STEPS) return point->step;
    return c->measure == OF_TOKENS ? point->tokens : point->seconds;
}

static void widen(chart *c, const hr_run_losses *losses)
{
    for (int32_t i = 0; i < losses->count; i++) {
        const hr_run_loss point = hr_run_losses_at(losses, i);
        c->end = fmax(c->end, along(c, &point));
        c->least = fmin(c->least, point.loss);
        c->most = fmax(c->most, point.loss);
    }
}

/* The ranges of both axes. A loss of more than twice the first one of all runs is drawn at the
 * upper end: a run that diverges leaves the others readable. */
static bool measure_all(chart *c)
{
    double first = 0;
    c->end = 0, c->least = INFINITY, c->most = -INFINITY;
    for (int32_t i = 0; i < c->count; i++) {
        const hr_run_losses *losses = &c->runs[i].losses;
        widen(c, losses);
        widen(c, &c->runs[i].valid_losses);
        if (losses->count) first = fmax(first, hr_run_losses_at(losses, 0).loss);
    }
    if (!(c->end > 0)) return false;
    if (first > 0) c->most = fmin(c->most, 2 * first);
    const double room = fmax(0.04 * (c->most - c->least), 1e-3 * fabs(c->most) + 1e-6);
    c->least -= room;
    c->most += room;
    return true;
}

/* A round step of which at most `count` are in a range. */
static double round_step(double range, int32_t count)
{
    const double power = pow(10, floor(log10(range / count)));
    const double times = range / count / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void put_axes(hr_html *page, const chart *c)
{
    static const char *const names[] = { "steps", "tokens", "seconds" };
    const double up = round_step(c->most - c->least, GRID_MOST),
                 right = round_step(c->end, GRID_MOST);
    char text[HR_COUNT_BYTES];
    for (double loss = up * ceil(c->least / up); loss <= c->most; loss += up) {
        snprintf(text, sizeof text, "%.6g", fabs(loss) < 1e-9 * up ? 0 : loss);
        hr_html_put_grid(page, hr_html_y(loss, c->least, c->most, HEIGHT), text);
    }
    for (int32_t i = 0; i * right <= 0.94 * c->end; i++) {
        const double x = hr_html_x(i * right, 0, c->end);
        if (right < 1) snprintf(text, sizeof text, "%.6g", i * right);
        else hr_count_print((int64_t)(i * right + 0.5), text);
        hr_html_put(page, "<path class=grid d='M%.1f %dv6'/><text x='%.1f' y='%d'%s>%s</text>\n", x,
                    HEIGHT - HR_HTML_BOTTOM, x, HEIGHT - 10, i ? " text-anchor=middle" : "", text);
    }
    hr_html_put(page, "<text x='%d' y='%d' text-anchor=end>%s</text>\n",
                HR_HTML_WIDTH - HR_HTML_RIGHT, HEIGHT - 10, names[c->measure]);
}

static double x_of(const chart *c, const hr_run_loss *point)
{
    return hr_html_x(along(c, point), 0, c->end);
}

static double y_of(const chart *c, const hr_run_loss *point)
{
    return hr_html_y(fmin(point->loss, c->most), c->least, c->most, HEIGHT);
}

/* The stroke of run i, dashed where its color is that of an earlier run. */
static void put_stroke(hr_html *page, int32_t i)
{
    hr_html_put(page, " style='stroke:");
    hr_html_put_line_color(page, i);
    const int32_t dash = i / HR_HTML_LINE_COLORS;
    if (dash) hr_html_put(page, ";stroke-dasharray:%d 3", 2 + 4 * dash);
    hr_html_put(page, "'");
}

static void put_losses(hr_html *page, const chart *c, int32_t run)
{
    const hr_run_losses *losses = &c->runs[run].losses;
    if (!losses->count) return;
    hr_html_put(page, "<path class=line");
    put_stroke(page, run);
    hr_html_put(page, " d='");
    for (int32_t i = 0; i < losses->count; i++) {
        const hr_run_loss point = hr_run_losses_at(losses, i);
        hr_html_put(page, "%s%.1f %.1f", i ? "L" : "M", x_of(c, &point), y_of(c, &point));
    }
    if (losses->count == 1) hr_html_put(page, "h2"); /* one step: a short line */
    hr_html_put(page, "'><title>");
    hr_html_put_text(page, c->runs[run].folder);
    hr_html_put(page, "</title></path>\n");
}

static void put_valid(hr_html *page, const chart *c, int32_t run)
{
    const hr_run_losses *losses = &c->runs[run].valid_losses;
    if (!losses->count) return;
    hr_html_put(page, "<g style='fill:");
    hr_html_put_line_color(page, run);
    hr_html_put(page, "'><title>");
    hr_html_put_text(page, c->runs[run].folder);
    hr_html_put(page, ", validation</title>");
    for (int32_t i = 0; i < losses->count; i++) {
        const hr_run_loss point = hr_run_losses_at(losses, i);
        hr_html_put(page, "<circle cx='%.1f' cy='%.1f' r='3'/>", x_of(c, &point), y_of(c, &point));
    }
    hr_html_put(page, "</g>\n");
}

static bool has_valid(const chart *c)
{
    for (int32_t i = 0; i < c->count; i++)
        if (c->runs[i].valid_losses.count) return true;
    return false;
}

static void put_legend(hr_html *page, const chart *c)
{
    hr_html_begin_legend(page);
    for (int32_t i = 0; i < c->count; i++) {
        hr_html_put(page, "<li><svg class=key viewBox='0 0 28 8'><path class=line");
        put_stroke(page, i);
        hr_html_put(page, " d='M0 4H28'/></svg>");
        hr_html_put_text(page, c->runs[i].folder);
        hr_html_put(page, "</li>");
    }
    if (has_valid(c)) hr_html_put(page, "<li>points: validation</li>");
    hr_html_end_chart(page);
}

static void put_chart(hr_html *page, chart c)
{
    static const char *const titles[] = { "Loss over steps", "Loss over tokens",
                                          "Loss over seconds" };
    if (!measure_all(&c)) return;
    hr_html_put(page, "<h2>%s</h2>\n", titles[c.measure]);
    hr_html_begin_chart(page, (char)('p' + c.measure), titles[c.measure],
                        "The table has the last losses", HEIGHT);
    put_axes(page, &c);
    for (int32_t i = 0; i < c.count; i++) put_losses(page, &c, i);
    for (int32_t i = 0; i < c.count; i++) put_valid(page, &c, i);
    put_legend(page, &c);
}

static void put_stride(hr_html *page, const hr_run *runs, int32_t count)
{
    int32_t most = 1;
    for (int32_t i = 0; i < count; i++) {
        most = (int32_t)hr_max(most, runs[i].losses.stride);
        most = (int32_t)hr_max(most, runs[i].valid_losses.stride);
    }
    if (most > 1)
        hr_html_put(page, "<p>A point of a long run is the mean of up to %d losses.</p>\n", most);
}

/* ---- tables */

static void put_runs(hr_html *page, const hr_run *runs, int32_t count, int64_t tokens)
{
    char text[HR_COUNT_BYTES];
    hr_html_begin_table(page, "Runs",
                        "<th>run<th class=n>steps<th class=n>tokens<th class=n>seconds<th "
                        "class=n>tokens/s<th class=n>loss<th class=n>at equal<th class=n>valid<th "
                        "class=n>best");
    for (int32_t i = 0; i < count; i++) {
        const hr_run *r = &runs[i];
        hr_html_put(page, "<tr>");
        hr_html_put_cell(page, r->folder);
        hr_html_put_count(page, r->steps);
        hr_html_put_count(page, r->tokens);
        hr_html_put_number(page, 1, r->seconds);
        hr_html_put_count(page,
                          r->seconds > 0 ? (int64_t)((double)r->tokens / r->seconds + 0.5) : 0);
        const double losses[] = { r->loss, r->common, r->valid, r->best };
        for (size_t k = 0; k < sizeof losses / sizeof *losses; k++)
            hr_html_put_number(page, 4, losses[k]);
        hr_html_put(page, "</tr>\n");
    }
    hr_html_end_table(page);
    hr_html_put(page, "<p>At equal: the loss after at most %s tokens, which all have.</p>\n",
                hr_count_print(tokens, text));
}

static void put_bytes(hr_html *page, const char *what, int64_t bytes, int64_t most)
{
    hr_html_put(page, "<td>%s</td>", what);
    if (bytes > 0) hr_html_put_bytes(page, bytes);
    else hr_html_put(page, "<td class=n>-</td><td></td>");
    hr_html_put_bars(page, bytes > 0 ? (double)bytes / (double)most : NAN, NAN);
    hr_html_put(page, "</tr>\n");
}

static void put_memory(hr_html *page, const hr_run *runs, int32_t count)
{
    int64_t most = 0;
    for (int32_t i = 0; i < count; i++)
        most = hr_max(most, hr_max(runs[i].planned, runs[i].measured));
    if (most <= 0) return;
    hr_html_begin_table(page, "Bytes of the process",
                        "<th>run<th><th class=n>bytes<th class=n><th>");
    for (int32_t i = 0; i < count; i++) {
        hr_html_put(page, "<tr><td rowspan=2>");
        hr_html_put_text(page, runs[i].folder);
        hr_html_put(page, "</td>");
        put_bytes(page, "planned", runs[i].planned, most);
        hr_html_put(page, "<tr>");
        put_bytes(page, "measured", runs[i].measured, most);
    }
    hr_html_end_table(page);
}

static void put_difference(hr_html *page, const hr_run *runs, int32_t count, const char *key)
{
    char text[HR_VALUE_BYTES];
    hr_html_put(page, "<tr><td>%s</td>", key);
    for (int32_t i = 0; i < count; i++) hr_html_put_cell(page, hr_run_value(&runs[i], key, text));
    hr_html_put(page, "</tr>\n");
}

static void put_differences(hr_html *page, const hr_run *runs, int32_t count)
{
    int32_t row = 0;
    const hr_key *key = hr_runs_next_difference(runs, count, 0, &row);
    if (!key) return;
    hr_html_begin_table(page, "What differs in their recipes", "");
    hr_html_put(page, "<tr><th>key</th>");
    for (int32_t i = 0; i < count; i++) {
        hr_html_put(page, "<th>");
        hr_html_put_text(page, runs[i].folder);
        hr_html_put(page, "</th>");
    }
    hr_html_put(page, "</tr>\n");
    for (; key; key = hr_runs_next_difference(runs, count, row + 1, &row))
        put_difference(page, runs, count, key->name);
    hr_html_end_table(page);
}

static void put_unknown(hr_html *page, const hr_run *runs, int32_t count)
{
    for (int32_t i = 0; i < count && count > 1; i++) {
        if (runs[i].recipe) continue;
        hr_html_put(page, "<p>");
        hr_html_put_text(page, runs[i].folder);
        hr_html_put(page, " has no checkpoint, so its recipe is not known.</p>\n");
    }
}

hr_status hr_runs_write_page(const char *path, const hr_run *runs, int32_t count, int64_t tokens,
                             hr_error *err)
{
    hr_html page;
    const hr_status status = hr_html_open(&page, path, "runs", err);
    if (status != HR_OK) return status;
    hr_html_put(&page, "<h1>%d run%s</h1>\n", count, count == 1 ? "" : "s");
    put_runs(&page, runs, count, tokens);
    for (int32_t m = OF_STEPS; m <= OF_SECONDS; m++)
        put_chart(&page, (chart){ .runs = runs, .count = count, .measure = (measure)m });
    put_stride(&page, runs, count);
    put_memory(&page, runs, count);
    put_differences(&page, runs, count);
    put_unknown(&page, runs, count);
    return hr_html_close(&page, "Losses, times and measured bytes are those of the logs.");
}
