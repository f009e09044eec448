/* SPDX-License-Identifier: Apache-2.0 */
/* report/html_step.c - one path per component, in the order of the table of components, and marks
 * where the backward pass and the update begin. */
#include "report/html_step.h"

#include <stdio.h>

#include "base/checked.h"

enum { HEIGHT = 380 };

typedef struct {
    const hr_plan_details *details;
    int64_t outside, top; /* bytes of the process outside of the arena; of the upper end */
} curve;

static double x_of(const curve *c, int32_t edge)
{
    return hr_html_x(edge, 0, c->details->curve_count);
}

static double y_of(const curve *c, int64_t bytes)
{
    return hr_html_y((double)bytes, 0, (double)c->top, HEIGHT);
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

static void put_component(hr_html *page, const curve *c, int32_t n)
{
    char size[HR_COUNT_BYTES];
    hr_html_put(page, "<path fill='");
    hr_html_put_color(page, n);
    hr_html_put(page, "' d='");
    for (int32_t i = 0; i < c->details->curve_count; i++)
        hr_html_put(page, "%s%.1f %.1fH%.1f", i ? "V" : "M",
                    i ? y_of(c, below(c, i, n + 1)) : x_of(c, 0), y_of(c, below(c, i, n + 1)),
                    x_of(c, i + 1));
    for (int32_t i = c->details->curve_count - 1; i >= 0; i--)
        hr_html_put(page, "V%.1fH%.1f", y_of(c, below(c, i, n)), x_of(c, i));
    hr_html_put(page, "Z'><title>%s: up to %s</title></path>\n", c->details->curve_names[n],
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

static void put_axis(hr_html *page, const curve *c)
{
    char text[HR_COUNT_BYTES];
    const int64_t grid = grid_of(c);
    for (int64_t bytes = 0; bytes <= c->top; bytes += grid)
        hr_html_put_grid(page, y_of(c, bytes), bytes ? hr_size_print(bytes, text) : "0");
    hr_html_put(page, "<text x='%d' y='%d'>operation %s</text>", HR_HTML_LEFT, HEIGHT - 10,
                hr_count_print(c->details->curve_first, text));
    hr_html_put(page, "<text x='%d' y='%d' text-anchor=end>%s</text>\n",
                HR_HTML_WIDTH - HR_HTML_RIGHT, HEIGHT - 10,
                hr_count_print(c->details->curve_last, text));
}

static void put_mark(hr_html *page, const curve *c, int32_t operation, const char *name)
{
    const hr_plan_details *d = c->details;
    if (operation <= d->curve_first || operation > d->curve_last) return;
    const double x = hr_html_x(operation, d->curve_first, d->curve_last + 1);
    hr_html_put(page,
                "<path class=mark d='M%.1f %dV%d'/><text x='%.1f' y='%d' "
                "text-anchor=%s>%s</text>\n",
                x, HR_HTML_TOP, HEIGHT - HR_HTML_BOTTOM, x, HR_HTML_TOP - 4,
                x > HR_HTML_WIDTH - 60 ? "end" : "middle", name);
}

static void put_limit(hr_html *page, const curve *c, const hr_html_limit *limit)
{
    char size[HR_COUNT_BYTES];
    const double y = y_of(c, limit->bytes);
    hr_html_put(page, "<path class=limit d='M%d %.1f", HR_HTML_LEFT,
                limit->over ? y_of(c, limit->over[0]) : y);
    for (int32_t i = 1; limit->over && i < c->details->curve_count; i++)
        if (limit->over[i] != limit->over[i - 1])
            hr_html_put(page, "H%.1fV%.1f", x_of(c, i), y_of(c, limit->over[i]));
    hr_html_put(page, "H%d'/><text class=limit x='%d' y='%.1f' text-anchor=%s>%s %s</text>\n",
                HR_HTML_WIDTH - HR_HTML_RIGHT,
                limit->right ? HR_HTML_WIDTH - HR_HTML_RIGHT - 8 : HR_HTML_LEFT + 8,
                y + (limit->above ? -5 : 14), limit->right ? "end" : "start", limit->name,
                hr_size_print(limit->bytes, size));
}

static void put_legend(hr_html *page, const curve *c)
{
    hr_html_begin_legend(page);
    hr_html_put(page, "<li><i class=base></i>outside of the arena</li>");
    for (int32_t n = 0; n < HR_PLAN_PARTS_MOST; n++) {
        if (!largest(c, n)) continue;
        hr_html_put(page, "<li><i style='background:");
        hr_html_put_color(page, n);
        hr_html_put(page, "'></i>%s</li>", c->details->curve_names[n]);
    }
    hr_html_end_chart(page);
}

void hr_html_put_step(hr_html *page, const hr_plan_details *details, int64_t outside,
                      const hr_html_limit *limits, int32_t limit_count)
{
    int64_t most = 0;
    for (int32_t i = 0; i < limit_count; i++) most = hr_max(most, limits[i].bytes);
    const curve c = { details, outside, (int64_t)(1.08 * (double)most) };
    char size[HR_COUNT_BYTES], about[HR_PLAN_NAME_BYTES + 32];
    if (!details->curve_count || c.top <= 0) return;
    snprintf(about, sizeof about, "The peak is %s", details->peak);
    hr_html_begin_chart(page, 'c', "Bytes over a training step", about, HEIGHT);
    put_axis(page, &c);
    hr_html_put(page,
                "<rect class=base x='%d' y='%.1f' width='%d' height='%.1f'><title>outside of the "
                "arena: %s</title></rect>\n",
                HR_HTML_LEFT, y_of(&c, outside), HR_HTML_WIDTH - HR_HTML_LEFT - HR_HTML_RIGHT,
                HEIGHT - HR_HTML_BOTTOM - y_of(&c, outside), hr_size_print(outside, size));
    for (int32_t n = 0; n < HR_PLAN_PARTS_MOST; n++)
        if (largest(&c, n)) put_component(page, &c, n);
    put_mark(page, &c, details->curve_backward, "backward");
    put_mark(page, &c, details->curve_update, "update");
    for (int32_t i = 0; i < limit_count; i++) put_limit(page, &c, &limits[i]);
    put_legend(page, &c);
}
