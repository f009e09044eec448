/* SPDX-License-Identifier: Apache-2.0 */
/* report/grid.c - prints a grid as tables of cells with three lines each: whether it fits and its
 * bytes, what the plan does to fit, and its speed. A list of devices has one line for each. */
#include "report/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"

enum { CELL_LINES = 3, CELL_BYTES = 64, LINE_BYTES = 1024 };

static const hr_grid_cell *cell_at(const hr_grid_table *t, int32_t tab, int32_t row, int32_t column)
{
    return &t->cells[((int64_t)tab * t->rows + row) * t->columns + column];
}

static int32_t device_count(const hr_grid_table *t)
{
    return (int32_t)hr_max(t->request->device_count, 1);
}

/* ---- labels */

const char *hr_grid_device_name(const hr_grid_table *t, int32_t device)
{
    return t->request->device_count ? t->request->devices[device].device->name : "this machine";
}

const char *hr_grid_keys_print(const hr_grid_axis *axis, char text[HR_GRID_LABEL_BYTES])
{
    hr_writer writer = { text, HR_GRID_LABEL_BYTES };
    for (int32_t k = 0; k < axis->key_count; k++)
        hr_put(&writer, "%s%s", k ? " x " : "", axis->keys[k]->name);
    return text;
}

static void row_label(const hr_grid_table *t, int32_t row, char text[HR_GRID_LABEL_BYTES])
{
    if (t->request->axis_count) hr_grid_axis_label(&t->request->axes[0], row, text);
    else snprintf(text, HR_GRID_LABEL_BYTES, "%s", hr_grid_device_name(t, row));
}

static void column_label(const hr_grid_table *t, int32_t column, char text[HR_GRID_LABEL_BYTES])
{
    if (t->request->axis_count > 1) hr_grid_axis_label(&t->request->axes[1], column, text);
    else snprintf(text, HR_GRID_LABEL_BYTES, "%s", hr_grid_device_name(t, column));
}

/* "model.n_layers = 8, rtx-4090" */
static void tab_label(const hr_grid_table *t, int32_t tab, char *text, int64_t bytes)
{
    const hr_grid_request *request = t->request;
    const int32_t devices = device_count(t);
    char label[HR_GRID_LABEL_BYTES];
    hr_writer writer = { text, bytes };
    hr_put(&writer, "%s", "");
    if (request->axis_count > 2) {
        hr_put(&writer, "%s = ", hr_grid_keys_print(&request->axes[2], label));
        hr_put(&writer, "%s", hr_grid_axis_label(&request->axes[2], tab / devices, label));
    }
    if (request->axis_count > 1 && request->device_count)
        hr_put(&writer, "%s%s", writer.used ? ", " : "", hr_grid_device_name(t, tab % devices));
}

/* ---- cells */

/* "37,831", or three digits of a rate below 100 */
static const char *print_rate(double tokens, char text[HR_COUNT_BYTES])
{
    if (tokens >= 100) return hr_count_print((int64_t)(tokens + 0.5), text);
    snprintf(text, HR_COUNT_BYTES, "%.3g", tokens);
    return text;
}

const char *hr_grid_size_print(int64_t bytes, char text[HR_COUNT_BYTES])
{
    if (bytes < INT64_C(1) << 30) return hr_size_print(bytes, text);
    snprintf(text, HR_COUNT_BYTES, "%.2f GiB", (double)bytes / (1024.0 * 1024 * 1024));
    return text;
}

static void put_size(const hr_grid_cell *cell, hr_writer *w)
{
    static const char *const words[] = { [HR_CELL_FITS] = "fits",
                                         [HR_CELL_FITS_WITH] = "with",
                                         [HR_CELL_REFUSED] = "needs",
                                         [HR_CELL_INVALID] = "invalid" };
    char size[HR_COUNT_BYTES] = "";
    if (cell->file_bytes) {
        hr_put(w, "disk: needs %s", hr_grid_size_print(cell->file_bytes, size));
        return;
    }
    if (cell->verdict != HR_CELL_INVALID) hr_grid_size_print(cell->process_bytes, size);
    hr_put(w, "%s%s%s", words[cell->verdict], *size ? " " : "", size);
}

/* "m512 c4096 r28" */
static void put_means(const hr_grid_cell *cell, hr_writer *w)
{
    char size[HR_COUNT_BYTES];
    hr_put(w, "%s", "");
    if (cell->file_bytes) hr_put(w, "has %s", hr_grid_size_print(cell->file_available_bytes, size));
    if (cell->verdict != HR_CELL_FITS_WITH) return;
    if (*cell->change) hr_put(w, "%s ", cell->change);
    if (cell->micro_batch) hr_put(w, "m%lld ", (long long)cell->micro_batch);
    if (cell->loss_chunk) hr_put(w, "c%lld ", (long long)cell->loss_chunk);
    if (cell->recomputed_layers) hr_put(w, "r%d ", cell->recomputed_layers);
    if (cell->splits_more) hr_put(w, "+ ");
    if (w->used) w->text[--w->used] = 0;
}

static void put_speed(const hr_grid_table *t, const hr_grid_cell *cell, hr_writer *w)
{
    char rate[HR_COUNT_BYTES];
    hr_put(w, "%s", "");
    if (cell->tokens_per_second <= 0) return;
    hr_put(w, "%s/s", print_rate(cell->tokens_per_second, rate));
    if (t->request->tokens > 0) hr_put(w, " %.*f h", cell->hours < 100 ? 1 : 0, cell->hours);
}

static void put_cell(const hr_grid_table *t, const hr_grid_cell *cell, int32_t line,
                     char text[CELL_BYTES])
{
    hr_writer w = { text, CELL_BYTES };
    if (line == 0) put_size(cell, &w);
    else if (line == 1) put_means(cell, &w);
    else put_speed(t, cell, &w);
}

/* ---- tables */

/* A line of columns. Blanks are put in front of the next text, so that no line ends with them. */
typedef struct {
    const hr_grid_sink *sink;
    int64_t blanks;
} line_state;

static void put_column(line_state *line, const char *text, int64_t width)
{
    char blanks[HR_GRID_LABEL_BYTES + 1];
    const int64_t length = (int64_t)strlen(text);
    if (length) {
        snprintf(blanks, sizeof blanks, "%*s", (int)hr_min(line->blanks, HR_GRID_LABEL_BYTES), "");
        for (; line->blanks > 0; line->blanks -= HR_GRID_LABEL_BYTES) {
            if (line->blanks < HR_GRID_LABEL_BYTES) blanks[line->blanks] = 0;
            hr_grid_put(line->sink, blanks);
        }
        hr_grid_put(line->sink, text);
        line->blanks = 0;
    }
    line->blanks += hr_max(width - length, 0) + 2;
}

static void end_line(line_state *line)
{
    hr_grid_put(line->sink, "\n");
    line->blanks = 0;
}

typedef struct {
    int64_t labels, cells;
} widths;

static widths widths_of(const hr_grid_table *t, int32_t tab)
{
    char label[HR_GRID_LABEL_BYTES], text[CELL_BYTES];
    hr_grid_keys_print(&t->request->axes[0], label);
    widths w = { .labels = hr_max((int64_t)strlen(label), 9) }; /* "available" */
    for (int32_t c = 0; c < t->columns; c++) {
        column_label(t, c, label);
        w.cells = hr_max(w.cells, (int64_t)strlen(label));
    }
    for (int32_t row = 0; row < t->rows; row++) {
        row_label(t, row, label);
        w.labels = hr_max(w.labels, (int64_t)strlen(label));
        for (int32_t c = 0; c < t->columns; c++)
            for (int32_t line = 0; line < CELL_LINES; line++) {
                put_cell(t, cell_at(t, tab, row, c), line, text);
                w.cells = hr_max(w.cells, (int64_t)strlen(text));
            }
    }
    return w;
}

/* The most that a plan of the column may take: a budget can be below what the device has. */
static int64_t available(const hr_grid_table *t, int32_t column)
{
    int64_t most = 0;
    for (int32_t row = 0; row < t->rows; row++)
        most = hr_max(most, cell_at(t, 0, row, column)->available_bytes);
    return most ? most : hr_device_budget(&t->request->devices[column]);
}

static void put_heading(const hr_grid_table *t, const widths *w, const hr_grid_sink *sink)
{
    char label[HR_GRID_LABEL_BYTES], size[HR_COUNT_BYTES];
    line_state line = { .sink = sink };
    put_column(&line, hr_grid_keys_print(&t->request->axes[0], label), w->labels);
    for (int32_t c = 0; c < t->columns; c++) {
        column_label(t, c, label);
        put_column(&line, label, w->cells);
    }
    end_line(&line);
    if (t->request->axis_count > 1 || !t->request->device_count) return;
    put_column(&line, "available", w->labels);
    for (int32_t c = 0; c < t->columns; c++)
        put_column(&line, hr_grid_size_print(available(t, c), size), w->cells);
    end_line(&line);
}

static void put_row(const hr_grid_table *t, int32_t tab, int32_t row, const widths *w,
                    const hr_grid_sink *sink)
{
    char label[HR_GRID_LABEL_BYTES], cell[CELL_BYTES];
    for (int32_t l = 0; l < CELL_LINES; l++) {
        bool any = l == 0;
        for (int32_t c = 0; c < t->columns && !any; c++) {
            put_cell(t, cell_at(t, tab, row, c), l, cell);
            any = *cell;
        }
        if (!any) continue;
        line_state line = { .sink = sink };
        row_label(t, row, label);
        put_column(&line, l == 0 ? label : "", w->labels);
        for (int32_t c = 0; c < t->columns; c++) {
            put_cell(t, cell_at(t, tab, row, c), l, cell);
            put_column(&line, cell, w->cells);
        }
        end_line(&line);
    }
}

static void put_times(const hr_grid_table *t, const hr_grid_sink *sink)
{
    char text[LINE_BYTES];
    if (!*t->times[0]) return;
    snprintf(text, sizeof text, "tokens/s: %s%s%s\n", t->times[0], *t->times[1] ? "; others " : "",
             t->times[1]);
    hr_grid_put(sink, text);
}

/* Why cells are invalid: each reason once, and how many more cells have others. */
static void put_reasons(const hr_grid_table *t, const hr_grid_sink *sink)
{
    enum { REASONS_MOST = 4 };
    char text[LINE_BYTES];
    const char *reasons[REASONS_MOST];
    int32_t count = 0;
    int64_t others = 0;
    for (int64_t i = 0; i < (int64_t)t->tabs * t->rows * t->columns; i++) {
        int32_t same = 0;
        if (t->cells[i].verdict != HR_CELL_INVALID) continue;
        while (same < count && strcmp(reasons[same], t->cells[i].reason) != 0) same++;
        if (same < count) continue;
        if (count == REASONS_MOST) {
            others++;
            continue;
        }
        reasons[count++] = t->cells[i].reason;
        snprintf(text, sizeof text, "invalid: %s\n", t->cells[i].reason);
        hr_grid_put(sink, text);
    }
    if (!others) return;
    snprintf(text, sizeof text,
             "invalid: %lld cell%s for other reasons; --csv and --json have all\n",
             (long long)others, others == 1 ? "" : "s");
    hr_grid_put(sink, text);
}

static void put_legend(const hr_grid_table *t, const hr_grid_sink *sink)
{
    hr_grid_put(
        sink, "\nfits: with every activation saved and nothing split; with: the fastest plan that "
              "fits has\n  m: micro-batch of so many sequences, c: loss chunk of so many tokens, "
              "r: so many layers that recompute,\n  +: tiles, gradient release or reordered "
              "operations; needs: the smallest plan, which is more than available\n");
    put_reasons(t, sink);
    put_times(t, sink);
}

/* ---- a list of devices */

static void put_device(const hr_grid_table *t, const hr_grid_cell *cell, const hr_grid_sink *sink)
{
    char text[LINE_BYTES], size[3][HR_COUNT_BYTES], speed[CELL_BYTES];
    const hr_device_choice *choice = &t->request->devices[cell->device];
    const int64_t room = cell->available_bytes ? cell->available_bytes : hr_device_budget(choice);
    hr_writer w = { text, sizeof text }, rate = { speed, sizeof speed };
    put_speed(t, cell, &rate);
    hr_put(&w, "%-21s %10s", choice->device->name, hr_grid_size_print(room, size[0]));
    if (cell->verdict == HR_CELL_INVALID) hr_put(&w, "  invalid: %s", cell->reason);
    else if (cell->file_bytes)
        hr_put(&w, " %11s  %-18s  does not fit%s%s: disk: needs %s, has %s",
               hr_grid_size_print(cell->process_bytes, size[0]), "", *cell->change ? " with " : "",
               cell->change, hr_grid_size_print(cell->file_bytes, size[1]),
               hr_grid_size_print(cell->file_available_bytes, size[2]));
    else if (cell->verdict == HR_CELL_REFUSED) {
        hr_put(&w, " %11s  %-18s  does not fit%s%s: needs at least %s",
               hr_grid_size_print(cell->process_bytes, size[1]), "", *cell->change ? " with " : "",
               cell->change, size[1]);
        if (cell->least_bytes)
            hr_put(&w, ", and %s with %s", hr_grid_size_print(cell->least_bytes, size[2]),
                   cell->least);
        if (!cell->tried_all) hr_put(&w, "; not every change was tried");
    } else {
        const bool plain = cell->verdict == HR_CELL_FITS;
        const bool nothing = !strncmp(cell->words, "nothing", 7);
        hr_put(&w, " %11s  %-18s  fits%s%s", hr_grid_size_print(cell->process_bytes, size[1]),
               speed, plain ? "" : " with ", cell->change);
        if (cell->disk_bytes)
            hr_put(&w, " (%s on disk)", hr_grid_size_print(cell->disk_bytes, size[2]));
        hr_put(&w, "%s", cell->smallest ? ", smallest plan" : "");
        if (*cell->change && !cell->tried_all) hr_put(&w, "; not every change was tried");
        hr_put(&w, "%s%s", *cell->change && !nothing ? "; " : "", nothing ? "" : cell->words);
    }
    hr_put(&w, "\n");
    hr_grid_put(sink, text);
}

static void put_devices(const hr_grid_table *t, const hr_grid_sink *sink)
{
    char text[LINE_BYTES];
    snprintf(text, sizeof text, "%-21s %10s %11s  %-18s  %s\n", "device", "available", "plan",
             t->request->tokens > 0 ? "tokens/s, hours" : "tokens/s", "");
    text[strcspn(text, "\n")] = 0;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--) text[end - 1] = 0;
    hr_grid_put(sink, text);
    hr_grid_put(sink, "\n");
    for (int32_t row = 0; row < t->rows; row++) put_device(t, cell_at(t, 0, row, 0), sink);
    hr_grid_put(sink,
                "\navailable: usable bytes less the reserve, or a smaller budget; fits: every "
                "activation is saved and nothing is split; fits with: the fastest plan that "
                "fits, or the smallest where it says so\n");
    put_times(t, sink);
}

/* What a table of cards is not: it is read alone. */
static void put_caution(const hr_grid_table *t, const hr_grid_sink *sink)
{
    bool cards = false;
    for (int32_t i = 0; i < t->request->device_count; i++)
        cards |= t->request->devices[i].device->kind == HR_DEVICE_GPU;
    if (cards)
        hr_grid_put(sink, "headroom trains on CPUs today: plans for cards are of the same program, "
                          "which does not run there yet\n\n");
}

void hr_grid_print(const hr_grid_table *t, const hr_grid_sink *sink)
{
    char text[LINE_BYTES];
    put_caution(t, sink);
    if (!t->request->axis_count) {
        put_devices(t, sink);
        return;
    }
    for (int32_t tab = 0; tab < t->tabs; tab++) {
        const widths w = widths_of(t, tab);
        tab_label(t, tab, text, sizeof text);
        hr_grid_put(sink, tab ? "\n" : "");
        hr_grid_put(sink, text);
        hr_grid_put(sink, *text ? "\n" : "");
        put_heading(t, &w, sink);
        for (int32_t row = 0; row < t->rows; row++) put_row(t, tab, row, &w, sink);
    }
    put_legend(t, sink);
}
