/* SPDX-License-Identifier: Apache-2.0 */
/* planning/schedule_svg.c - draws the learning rate over the steps of a run, with its stages. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/writer.h"
#include "config/config.h"
#include "config/schedule.h"
#include "headroom/plan.h"
#include "headroom/stages.h"
#include "report/svg.h"

enum {
    WIDTH = 900,
    HEIGHT = 360,
    LEFT = 80,
    RIGHT = 20,
    TOP = 44,
    BOTTOM = 60,
    POINTS = 800,
    SVG_BYTES = 64 << 10
};

typedef struct {
    const hr_config *config;
    const hr_stages *stages; /* null: none */
    int64_t steps;
    double most; /* the highest rate */
    hr_writer *to;
} drawing;

static double rate(const drawing *d, int64_t step)
{
    return hr_schedule_lr(d->config, d->stages, step, d->steps);
}

static double x_of(const drawing *d, int64_t step)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)step / (double)d->steps;
}

static double y_of(const drawing *d, double lr)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (d->most > 0 ? lr / d->most : 0);
}

static int64_t step_of(const drawing *d, int32_t point)
{
    const double step = (double)(d->steps - 1) * point / (POINTS - 1);
    return (int64_t)step;
}

/* The steps at which the curve is drawn: evenly, and both sides of the begin of each stage. */
static void put_curve(const drawing *d)
{
    int32_t next = 1;
    hr_put(d->to, "<polyline class=\"line\" points=\"");
    for (int32_t i = 0; i < POINTS; i++) {
        const int64_t step = step_of(d, i);
        for (; d->stages && next < d->stages->count && d->stages->at[next].first_step <= step;
             next++)
            for (int64_t at = d->stages->at[next].first_step - 1, side = 0; side < 2; side++)
                hr_put(d->to, "%.1f,%.1f ", x_of(d, at + side), y_of(d, rate(d, at + side)));
        hr_put(d->to, "%.1f,%.1f ", x_of(d, step), y_of(d, rate(d, step)));
    }
    hr_put(d->to, "\"/>\n");
}

static void put_stages(const drawing *d)
{
    for (int32_t i = 0; d->stages && i < d->stages->count; i++) {
        const hr_stage *stage = &d->stages->at[i];
        const int64_t end = i + 1 < d->stages->count ? stage[1].first_step : d->steps;
        const double x = x_of(d, stage->first_step), width = x_of(d, end) - x;
        hr_put(d->to,
               "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#888\" "
               "fill-opacity=\"%s\">"
               "<title>stage %d from step %lld: %lld x %lld tokens, lr_scale %g</title></rect>\n",
               x, TOP, width, HEIGHT - TOP - BOTTOM, i % 2 ? "0.06" : "0.16", i + 1,
               (long long)stage->first_step, (long long)stage->batch, (long long)stage->seq_len,
               stage->lr_scale);
        char tokens[HR_COUNT_BYTES];
        snprintf(tokens, sizeof tokens, "%lld", (long long)stage->seq_len);
        if (width >= 24) hr_svg_put_label(d->to, x + width / 2, TOP - 14, "middle", tokens);
    }
    if (d->stages) hr_svg_put_label(d->to, LEFT - 8, TOP - 14, "end", "tokens");
}

static void put_axes(const drawing *d)
{
    char label[HR_COUNT_BYTES];
    for (int32_t i = 0; i <= 4; i++) {
        const double lr = d->most * i / 4;
        snprintf(label, sizeof label, "%.3g", lr);
        hr_svg_put_row(d->to, LEFT, WIDTH - RIGHT, y_of(d, lr), label);
        const int64_t step = d->steps / 4 * i + d->steps % 4 * i / 4;
        hr_svg_put_label(d->to, x_of(d, step), HEIGHT - BOTTOM + 18, i == 4 ? "end" : "middle",
                         hr_count_print(step, label));
    }
    hr_svg_put_label(d->to, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "middle", "step");
}

static void draw(const drawing *d)
{
    char title[64];
    snprintf(title, sizeof title, "learning rate over %lld steps", (long long)d->steps);
    hr_svg_begin(d->to, WIDTH, HEIGHT, title);
    put_stages(d);
    put_axes(d);
    put_curve(d);
    hr_svg_end(d->to);
}

hr_status hr_plan_schedule(const hr_config *config, const char *svg, hr_error *err)
{
    char text[SVG_BYTES];
    hr_writer writer = { text, sizeof text };
    hr_stages stages;
    hr_file_out out;
    hr_status status = hr_file_check_kind(svg, hr_svg_first, "drawing", err);
    if (status == HR_OK) status = hr_config_stages(config, &stages, err);
    if (status != HR_OK) return status;
    if (!config->train.steps)
        return hr_fail(err, HR_USAGE,
                       "--schedule draws all steps, and train.steps=auto depends on the text: give "
                       "train.steps");
    drawing d = { config, stages.count ? &stages : NULL, config->train.steps, 0, &writer };
    for (int32_t i = 0; i < POINTS; i++) d.most = fmax(d.most, rate(&d, step_of(&d, i)));
    for (int32_t i = 0; i < stages.count; i++)
        d.most = fmax(d.most, rate(&d, hr_max(stages.at[i].first_step - 1, 0)));
    draw(&d);
    if (writer.cut) return hr_fail(err, HR_FAILURE, "%s: more than %d bytes", svg, SVG_BYTES);
    status = hr_file_begin_path(&out, svg, err);
    if (status == HR_OK) status = hr_file_append(&out, text, writer.used, err);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}
