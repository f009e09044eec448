/* SPDX-License-Identifier: Apache-2.0 */
/* report/frontier.c - bytes are on the x axis (logarithmic), tokens per second on the y axis.
 * Between two points, a budget gets the plan of the left one, so the line is a staircase. */
#include "report/frontier.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "report/labels.h"
#include "report/svg.h"

/* ---- words */

static void put_cut(hr_writer *w, const char *what, int64_t cut, const char *unit)
{
    char count[HR_COUNT_BYTES];
    if (!cut) return;
    hr_put(w, "%s%s %s %s%s", w->used ? ", " : "", what, hr_count_print(cut, count), unit,
           cut == 1 ? "" : "s");
}

/* Layers that recompute an activation. */
static int32_t layers_of(const hr_strategy *strategy, int32_t intermediate)
{
    int32_t layers = 0;
    for (int32_t l = 0; l < strategy->layer_count; l++)
        layers += strategy->recompute_set[l] >> intermediate & 1;
    return layers;
}

/* "recompute norm outputs, queries in every layer, keys in 2, values in 3 of 6 layers" */
static void put_recomputed(hr_writer *w, const hr_strategy *strategy)
{
    const char *before = w->used ? "; recompute " : "recompute ";
    bool all = false, some = false;
    for (int32_t i = 1; i < HR_INTERMEDIATE_INPUT; i++) {
        if (layers_of(strategy, i) != strategy->layer_count) continue;
        hr_put(w, "%s%s", before, hr_label_intermediate((hr_intermediate)i));
        before = ", ";
        all = true;
    }
    if (all) hr_put(w, " in every layer");
    for (int32_t i = 1; i < HR_INTERMEDIATE_INPUT; i++) {
        const int32_t layers = layers_of(strategy, i);
        if (layers == 0 || layers == strategy->layer_count) continue;
        hr_put(w, "%s%s in %d", before, hr_label_intermediate((hr_intermediate)i), layers);
        before = ", ";
        some = true;
    }
    if (some) hr_put(w, " of %d layers", strategy->layer_count);
}

static void put_spilled(hr_writer *w, const hr_strategy *strategy)
{
    const int32_t layers = layers_of(strategy, HR_INTERMEDIATE_INPUT);
    if (layers)
        hr_put(w, "%slayer inputs in a file in %d of %d layers", w->used ? "; " : "", layers,
               strategy->layer_count);
}

void hr_frontier_words(const hr_config *config, const hr_strategy *strategy,
                       char words[HR_POINT_WORDS_BYTES])
{
    hr_writer w = { words, HR_POINT_WORDS_BYTES };
    char batch[HR_COUNT_BYTES];
    hr_put(&w, "%s", "");
    if (strategy->micro_batch)
        hr_put(&w, "micro-batch %lld (batch %s)", (long long)strategy->micro_batch,
               hr_count_print(config->train.batch, batch));
    put_cut(&w, "loss chunk", strategy->loss_chunk, "token");
    put_cut(&w, "MLP tile", strategy->mlp_tile, "token");
    put_cut(&w, "attention tile", strategy->attention_tile, "token");
    put_recomputed(&w, strategy);
    put_spilled(&w, strategy);
    if (strategy->consume)
        hr_put(&w, "%sgradient release%s", w.used ? "; " : "",
               hr_config_needs_norm(config) ? " (backward runs twice, for the gradient norm)" : "");
    if (!w.used) hr_put(&w, "nothing, all activations are saved");
}

/* ---- the table */

static void put_indented(hr_writer *w, const char *lines)
{
    while (*lines) {
        const int length = (int)strcspn(lines, "\n");
        hr_put(w, "    %.*s\n", length, lines);
        lines += length + (lines[length] != 0);
    }
}

static double fastest_of(const hr_frontier *f)
{
    return f->points[f->count - 1].tokens_per_second;
}

static bool is_beyond(const hr_frontier *f, const hr_plan_point *point)
{
    return f->available_bytes >= 0 && point->process_bytes > f->available_bytes;
}

/* "1,400"; three digits of a rate below 100. */
static const char *print_rate(double tokens, char text[HR_COUNT_BYTES])
{
    if (tokens >= 100) return hr_count_print((int64_t)(tokens + 0.5), text);
    snprintf(text, HR_COUNT_BYTES, "%.3g", tokens);
    return text;
}

static void put_table(const hr_frontier *f, hr_writer *w)
{
    hr_put(w, "%33s %11s %10s  %s\n", "process memory", "tokens/s", "of fastest",
           "memory saved by");
    for (int32_t i = 0; i < f->count; i++) {
        const hr_plan_point *p = &f->points[i];
        char bytes[HR_COUNT_BYTES], size[HR_COUNT_BYTES], rate[HR_COUNT_BYTES];
        hr_put(w, "%c%19s %12s %11s %8.1f %%  %s\n", is_beyond(f, p) ? '>' : ' ',
               hr_count_print(p->process_bytes, bytes), hr_size_print(p->process_bytes, size),
               print_rate(p->tokens_per_second, rate), 100 * p->tokens_per_second / fastest_of(f),
               p->words);
    }
    if (is_beyond(f, &f->points[f->count - 1])) {
        char budget[64];
        hr_put(w, "> above the budget of %s\n", hr_bytes_print(f->available_bytes, budget));
    }
    if (f->cut)
        hr_put(w,
               "the search ended at its limit of work, after %d plans; there may be others between "
               "these\n",
               f->probes);
    hr_put(w, "speed: %s\n", f->times);
    if (f->named) hr_put(w, "memory.strategy is set: there is only this plan\n");
}

/* ---- the plots */

/* Position of a value between two ends, 0 to 1. */
static double share(double value, double low, double high)
{
    return high > low ? (value - low) / (high - low) : 0;
}

typedef struct {
    double low, high, step; /* tokens per second: ticks at multiples of step from low to high */
    double left, right;     /* logarithms of bytes */
} frame;

/* Ticks at 1, 2 or 5 times a power of ten, four to nine of them. */
static frame frame_of(const hr_frontier *f)
{
    const double low = f->points[0].tokens_per_second, high = fastest_of(f);
    const double rough = fmax(high - low, high * 1e-3) / 4;
    const double ten = pow(10, floor(log10(rough)));
    const double step = rough >= 5 * ten ? 5 * ten : rough >= 2 * ten ? 2 * ten : ten;
    return (frame){ .low = floor(low / step) * step,
                    .high = ceil(high / step) * step,
                    .step = step,
                    .left = log2((double)f->points[0].process_bytes),
                    .right = log2((double)f->points[f->count - 1].process_bytes) };
}

enum { PLOT_ROWS = 15, PLOT_COLUMNS_MOST = 160, PLOT_COLUMNS_LEAST = 30, LABEL_COLUMNS = 12 };

static void put_plot(const hr_frontier *f, int32_t columns, hr_writer *w)
{
    const frame at = frame_of(f);
    const int32_t width = (int32_t)hr_max(PLOT_COLUMNS_LEAST,
                                          hr_min(columns - LABEL_COLUMNS - 2, PLOT_COLUMNS_MOST));
    char cells[PLOT_ROWS][PLOT_COLUMNS_MOST];
    memset(cells, ' ', sizeof cells);
    int32_t row = 0, column = 0;
    for (int32_t i = 0; i < f->count; i++) {
        const hr_plan_point *p = &f->points[i];
        const double x = share(log2((double)p->process_bytes), at.left, at.right);
        const double y = share(p->tokens_per_second, at.low, at.high);
        const int32_t next = (int32_t)lround(x * (width - 1));
        for (; i > 0 && column < next; column++)
            if (cells[row][column] == ' ') cells[row][column] = '.';
        row = PLOT_ROWS - 1 - (int32_t)lround(y * (PLOT_ROWS - 1));
        column = next;
        cells[row][column] = 'o';
    }
    hr_put(w, "\n%*s\n", LABEL_COLUMNS, "tokens/s");
    for (int32_t r = 0; r < PLOT_ROWS; r++) {
        const double value = at.high - (at.high - at.low) * r / (PLOT_ROWS - 1);
        int32_t end = width;
        while (end > 0 && cells[r][end - 1] == ' ') end--;
        char rate[HR_COUNT_BYTES] = "";
        if (r % 7 == 0) print_rate(value, rate);
        hr_put(w, "%*s |%.*s\n", LABEL_COLUMNS - 1, rate, end, cells[r]);
    }
    char line[PLOT_COLUMNS_MOST + 1], left[HR_COUNT_BYTES], right[HR_COUNT_BYTES];
    memset(line, '-', sizeof line);
    hr_size_print(f->points[0].process_bytes, left);
    hr_size_print(f->points[f->count - 1].process_bytes, right);
    hr_put(w, "%*s +%.*s\n", LABEL_COLUMNS - 1, "", width, line);
    const int space = width - (int)strlen(left) - (int)strlen(right);
    const char *label = space > 30 ? "process memory, log scale" : "";
    const int before = (space + (int)strlen(label)) / 2;
    hr_put(w, "%*s  %s%*s%*s%s\n", LABEL_COLUMNS - 1, "", left, before, label, space - before, "",
           right);
}

void hr_frontier_print(const hr_frontier *frontier, int32_t columns, hr_writer *writer)
{
    put_table(frontier, writer);
    if (frontier->count > 2) put_plot(frontier, columns, writer);
}

/* ---- SVG */

enum { WIDTH = 760, HEIGHT = 440, LEFT = 76, RIGHT = 24, TOP = 44, BOTTOM = 56 };

static double svg_x(const frame *at, double bytes)
{
    return LEFT + share(log2(bytes), at->left, at->right) * (WIDTH - LEFT - RIGHT);
}

static double svg_y(const frame *at, double tokens)
{
    return HEIGHT - BOTTOM - share(tokens, at->low, at->high) * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(const frame *at, hr_writer *w)
{
    const int32_t ticks = (int32_t)lround((at->high - at->low) / at->step);
    for (int32_t i = 0; i <= ticks; i++) {
        const double tokens = at->low + i * at->step, y = svg_y(at, tokens);
        char rate[HR_COUNT_BYTES];
        hr_svg_put_row(w, LEFT, WIDTH - RIGHT, y, print_rate(tokens, rate));
    }
    /* Five ticks at equal ratios, from the first plan to the last. */
    for (int32_t i = 0; i <= 4; i++) {
        const double bytes = exp2(at->left + (at->right - at->left) * i / 4);
        const double x = svg_x(at, bytes);
        hr_put(w, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP, HEIGHT - BOTTOM);
        char size[HR_COUNT_BYTES];
        hr_svg_put_label(w, x, HEIGHT - BOTTOM + 18, i == 4 ? "end" : "middle",
                         hr_size_print((int64_t)bytes, size));
        if (at->right <= at->left) return;
    }
}

static void draw_points(const hr_frontier *f, const frame *at, hr_writer *w)
{
    hr_put(w, "<path class=\"line\" d=\"");
    for (int32_t i = 0; i < f->count; i++) {
        const double x = svg_x(at, (double)f->points[i].process_bytes);
        const double y = svg_y(at, f->points[i].tokens_per_second);
        if (i == 0) hr_put(w, "M%.1f %.1f", x, y);
        else hr_put(w, "H%.1fV%.1f", x, y);
    }
    hr_put(w, "\"/>\n");
    for (int32_t i = 0; i < f->count; i++) {
        const hr_plan_point *p = &f->points[i];
        hr_put(w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"%s><title>",
               svg_x(at, (double)p->process_bytes), svg_y(at, p->tokens_per_second),
               is_beyond(f, p) ? " class=\"beyond\"" : "");
        char size[64], rate[HR_COUNT_BYTES];
        hr_put(w, "%s, %s tokens/s; memory saved by: %s</title></circle>\n",
               hr_bytes_print(p->process_bytes, size), print_rate(p->tokens_per_second, rate),
               p->words);
    }
}

void hr_frontier_draw(const hr_frontier *frontier, hr_writer *w)
{
    const frame at = frame_of(frontier);
    hr_svg_begin(w, WIDTH, HEIGHT, "Tokens per second against process memory");
    draw_axes(&at, w);
    draw_points(frontier, &at, w);
    hr_svg_put_label(w, LEFT, TOP - 18, "start", "tokens per second, predicted");
    hr_svg_put_label(w, WIDTH - RIGHT, HEIGHT - 14, "end", "process memory (log scale)");
    hr_svg_end(w);
}

/* ---- largest and smallest */

/* A row of the answer: a setting, the memory of its smallest plan, and a remark. */
static void put_value(hr_writer *w, int columns, const char *key, int64_t value, int64_t bytes,
                      const char *why)
{
    char setting[96];
    snprintf(setting, sizeof setting, "%s=%lld", key, (long long)value);
    hr_put(w, "  %-*s  ", columns, setting);
    if (bytes < 0) {
        hr_put(w, "cannot be planned on this machine\n");
        return;
    }
    hr_put(w, "needs at least");
    hr_label_put_bytes(w, bytes);
    hr_put(w, "%s%s\n", *why ? "  " : "", why);
}

/* The first line. A batch larger than the largest micro-batch needs no more memory, only time:
 * gradients accumulate. */
static void put_answer(const hr_largest *a, hr_writer *w)
{
    char value[HR_COUNT_BYTES], at_once[HR_COUNT_BYTES];
    hr_count_print(a->value, value);
    hr_put(w, "largest %s that fits: ", a->key->name);
    if (a->outcome == HR_LARGEST_NONE)
        hr_put(w, "none, not even the minimum, %s\n", hr_count_print(a->next, value));
    else if (a->cut) hr_put(w, "at least %s\n", value);
    else if (a->at_once > 0)
        hr_put(w, "%s%s without gradient accumulation, any up to %s with it\n",
               a->at_once_cut ? "at least " : "", hr_count_print(a->at_once, at_once), value);
    else if (a->outcome == HR_LARGEST_FOUND) hr_put(w, "%s\n", value);
    else hr_put(w, "%s, its maximum\n", value);
}

static void put_values(const hr_largest *a, hr_writer *w)
{
    const char *key = a->key->name;
    const int64_t most = hr_max(a->value, hr_max(a->next, a->beyond));
    const int columns = snprintf(NULL, 0, "%s=%lld", key, (long long)most);
    char why[64] = "", count[HR_COUNT_BYTES];
    if (a->at_once > 0) {
        snprintf(why, sizeof why, "%s tokens at once", hr_count_print(a->tokens_at_once, count));
        put_value(w, columns, key, a->at_once, a->at_once_bytes, why);
        snprintf(why, sizeof why, "gradients accumulate");
    }
    if (a->value >= 0) put_value(w, columns, key, a->value, a->value_bytes, why);
    if (a->next >= 0) put_value(w, columns, key, a->next, a->next_bytes, "");
    if (a->beyond >= 0) put_value(w, columns, key, a->beyond, a->beyond_bytes, "");
    hr_put(w, "  %-*s  %-14s", columns, "available", "");
    hr_label_put_bytes(w, a->available_bytes);
    hr_put(w, "\n");
}

static void put_why(const hr_largest *a, hr_writer *w)
{
    char count[HR_COUNT_BYTES];
    const bool end = a->outcome == HR_LARGEST_END || a->outcome == HR_LARGEST_FREE;
    if (a->cut) {
        hr_put(w, "  the search ended at its limit of work, after %d plans; ", a->probes);
        if (a->below < 0) hr_put(w, "a larger value may fit\n");
        else
            hr_put(w, "%s does not fit, a value in between may\n", hr_count_print(a->below, count));
    }
    if (a->outcome == HR_LARGEST_FREE && a->free_from < 0)
        hr_put(w, "  memory does not depend on %s\n", a->key->name);
    else if (a->outcome == HR_LARGEST_FREE)
        hr_put(w, "  memory does not grow beyond %s=%lld\n", a->key->name, (long long)a->free_from);
    if (*a->reason) hr_put(w, "  %s%s\n", end ? "no larger value is valid: " : "", a->reason);
}

void hr_largest_print(const hr_largest *a, hr_writer *w)
{
    char size[64], time[HR_COUNT_BYTES];
    put_answer(a, w);
    put_values(a, w);
    put_why(a, w);
    if (a->value < 0) return;
    hr_put(w, "\nfastest plan with %s=%lld: %s, %s per step\n", a->key->name, (long long)a->value,
           hr_bytes_print(a->plan.process_bytes, size),
           hr_duration_print(a->plan.step_seconds, time));
    hr_put(w, "  memory saved by: %s\n", a->plan.words);
}

static void put_budget(hr_writer *w, const char *what, const hr_plan_point *p,
                       const hr_plan_point *fastest)
{
    char size[64], rate[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    hr_put(w, "%s\n  --budget %lld  %s\n", what, (long long)p->process_bytes,
           hr_bytes_print(p->process_bytes, size));
    hr_put(w, "  %s per step, %s tokens/s, %.1f %% slower than the fastest\n",
           hr_duration_print(p->step_seconds, time), print_rate(p->tokens_per_second, rate),
           100 * (p->step_seconds / fastest->step_seconds - 1));
    hr_put(w, "  memory saved by: %s\n", p->words);
    put_indented(w, p->strategy);
}

void hr_smallest_print(const hr_smallest *a, hr_writer *w)
{
    char what[128], size[64], time[HR_COUNT_BYTES];
    if (a->named) {
        hr_put(w, "memory.strategy is set: there is only this plan\n");
        put_budget(w, "its budget", &a->least, &a->fastest);
        return;
    }
    put_budget(w, "smallest budget", &a->least, &a->fastest);
    snprintf(what, sizeof what,
             "\nsmallest budget that is at most %.4g %% slower than the fastest plan",
             100 * a->slowdown);
    put_budget(w, what, &a->within, &a->fastest);
    if (a->within_bound)
        hr_put(w,
               "  the search ended at its limit; below %s it found no plan that is fast enough\n",
               hr_bytes_print(a->within_bound, size));
    hr_put(w, "\nfastest plan: %s, %s per step\nspeed: %s\n",
           hr_bytes_print(a->fastest.process_bytes, size),
           hr_duration_print(a->fastest.step_seconds, time), a->times);
}
