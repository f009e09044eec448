/* SPDX-License-Identifier: Apache-2.0 */
/* report/grid_svg.c - draws a grid as a heat map: a square per cell, its color the verdict and the
 * share of the available bytes, its title all of it. */
#include "report/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "report/svg.h"

enum { CELL_WIDTH = 92, CELL_HEIGHT = 34, LEFT = 150, TOP = 58, TAB_GAP = 70, TEXT_BYTES = 4096 };

/* Green for plans that save everything, yellow for those that do not, red for refusals; the fuller,
 * the darker. */
static void put_color(hr_writer *w, const hr_grid_cell *cell)
{
    const double share = cell->available_bytes > 0
                             ? (double)cell->process_bytes / (double)cell->available_bytes
                             : 0;
    const int light = (int)(88 - 26 * (share < 1 ? share : 1));
    switch (cell->verdict) {
    case HR_CELL_FITS: hr_put(w, "hsl(135,45%%,%d%%)", light); break;
    case HR_CELL_FITS_WITH: hr_put(w, "hsl(48,75%%,%d%%)", light); break;
    case HR_CELL_REFUSED: hr_put(w, "hsl(4,65%%,%d%%)", share > 4 ? 58 : 76); break;
    default: hr_put(w, "#ddd");
    }
}

static void put_title(hr_writer *w, const hr_grid_cell *cell)
{
    char bytes[64], there[64], rate[HR_COUNT_BYTES];
    hr_put(w, "<title>");
    if (cell->verdict == HR_CELL_INVALID) hr_svg_put_text(w, cell->reason);
    else if (cell->file_bytes)
        hr_put(w, "disk: needs %s, has %s", hr_bytes_print(cell->file_bytes, bytes),
               hr_bytes_print(cell->file_available_bytes, there));
    else if (cell->verdict == HR_CELL_REFUSED)
        hr_put(w, "needs at least %s of %s", hr_bytes_print(cell->process_bytes, bytes),
               hr_bytes_print(cell->available_bytes, there));
    else {
        hr_put(w, "%s of %s, %s tokens/s; memory saved by: ",
               hr_bytes_print(cell->process_bytes, bytes),
               hr_bytes_print(cell->available_bytes, there),
               hr_count_print((int64_t)(cell->tokens_per_second + 0.5), rate));
        if (*cell->change) hr_put(w, "%s; ", cell->change);
        hr_svg_put_text(w, cell->words);
    }
    hr_put(w, "</title>");
}

static void draw_cell(const hr_grid_cell *cell, int64_t x, int64_t y, const hr_grid_sink *sink)
{
    static const char *const words[] = { "fits", "fits with", "needs", "invalid" };
    char text[TEXT_BYTES], size[HR_COUNT_BYTES];
    hr_writer w = { text, sizeof text };
    hr_put(&w, "<g><rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" fill=\"", (long long)x,
           (long long)y, CELL_WIDTH - 2, CELL_HEIGHT - 2);
    put_color(&w, cell);
    hr_put(&w, "\"/>");
    put_title(&w, cell);
    hr_svg_put_label(&w, (double)x + 6, (double)y + 13, "start",
                     cell->file_bytes ? "needs disk" : words[cell->verdict]);
    if (cell->verdict != HR_CELL_INVALID)
        hr_svg_put_label(
            &w, (double)x + 6, (double)y + 26, "start",
            hr_grid_size_print(cell->file_bytes ? cell->file_bytes : cell->process_bytes, size));
    hr_put(&w, "</g>\n");
    hr_grid_put(sink, text);
}

static void draw_label(const char *label, int64_t x, int64_t y, const char *anchor,
                       const hr_grid_sink *sink)
{
    char text[TEXT_BYTES];
    hr_writer w = { text, sizeof text };
    hr_svg_put_label(&w, (double)x, (double)y, anchor, label);
    hr_grid_put(sink, text);
}

/* What the tab, its rows and its columns are. */
static void draw_heading(const hr_grid_table *t, int32_t tab, int64_t y, const hr_grid_sink *sink)
{
    const hr_grid_request *request = t->request;
    const int32_t devices = (int32_t)hr_max(request->device_count, 1);
    char text[TEXT_BYTES], label[HR_GRID_LABEL_BYTES];
    hr_writer w = { text, sizeof text };
    hr_put(&w, "%s", "");
    for (int32_t a = 0; a < request->axis_count; a++) {
        const hr_grid_axis *axis = &request->axes[a];
        hr_put(&w, "%s%s", a ? "; " : "", hr_grid_keys_print(axis, label));
        if (a == 2) hr_put(&w, " = %s", hr_grid_axis_label(axis, tab / devices, label));
        else hr_put(&w, "%s", a ? " across" : " down");
    }
    if (request->axis_count > 1 && request->device_count)
        hr_put(&w, "; %s", hr_grid_device_name(t, tab % devices));
    draw_label(text, 8, y + 20, "start", sink);
}

static void draw_tab(const hr_grid_table *t, int32_t tab, int64_t top, const hr_grid_sink *sink)
{
    char label[HR_GRID_LABEL_BYTES];
    const int32_t axes = t->request->axis_count;
    draw_heading(t, tab, top, sink);
    for (int32_t c = 0; c < t->columns; c++) {
        if (axes > 1) hr_grid_axis_label(&t->request->axes[1], c, label);
        else snprintf(label, sizeof label, "%s", axes ? hr_grid_device_name(t, c) : "");
        draw_label(label, LEFT + c * (int64_t)CELL_WIDTH + 6, top + TOP - 8, "start", sink);
    }
    for (int32_t row = 0; row < t->rows; row++) {
        const int64_t y = top + TOP + row * (int64_t)CELL_HEIGHT;
        if (axes) hr_grid_axis_label(&t->request->axes[0], row, label);
        else snprintf(label, sizeof label, "%s", hr_grid_device_name(t, row));
        draw_label(label, LEFT - 8, y + 20, "end", sink);
        for (int32_t c = 0; c < t->columns; c++)
            draw_cell(&t->cells[((int64_t)tab * t->rows + row) * t->columns + c],
                      LEFT + c * (int64_t)CELL_WIDTH, y, sink);
    }
}

void hr_grid_draw(const hr_grid_table *t, const hr_grid_sink *sink)
{
    char text[TEXT_BYTES];
    const int64_t tab_height = TOP + t->rows * (int64_t)CELL_HEIGHT + TAB_GAP - TOP / 2;
    hr_writer w = { text, sizeof text };
    hr_svg_begin(&w, LEFT + t->columns * (int64_t)CELL_WIDTH + 16, t->tabs * tab_height,
                 "Which plans fit");
    hr_grid_put(sink, text);
    for (int32_t tab = 0; tab < t->tabs; tab++) draw_tab(t, tab, tab * tab_height, sink);
    w.used = 0;
    hr_svg_end(&w);
    hr_grid_put(sink, text);
}
