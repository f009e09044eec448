/* SPDX-License-Identifier: Apache-2.0 */
/* report/html.h - one file of HTML without scripts, fonts or links, dark and light: its head, text
 * with entities, tables that scroll on a narrow screen, and the grid of a chart.
 *
 * Errors are kept: after the first one nothing is written, and hr_html_close returns it. */
#ifndef HR_REPORT_HTML_H
#define HR_REPORT_HTML_H

#include <stdbool.h>

#include "base/file.h"

enum { HR_HTML_TEXT_BYTES = 12 << 10 };

typedef struct {
    hr_file_out out;
    hr_status status;
    hr_error *err;
    int32_t used;
    char text[HR_HTML_TEXT_BYTES]; /* [used] not yet in the file */
} hr_html;

/* Checks that a page can be written there. Errors as hr_file_check_kind. */
HR_MUST_CHECK hr_status hr_html_check(const char *path, hr_error *err);

/* Begins the file: its head, up to <main>. Errors as hr_file_begin_path. */
HR_MUST_CHECK hr_status hr_html_open(hr_html *page, const char *path, const char *title,
                                     hr_error *err);

/* Ends the file with a paragraph: the version and `note`. Errors as hr_file_append. */
HR_MUST_CHECK hr_status hr_html_close(hr_html *page, const char *note);

/* Markup, at most HR_HTML_TEXT_BYTES in one call. */
void hr_html_put(hr_html *page, const char *format, ...) HR_PRINTF(2, 3);

/* Text of an element or an attribute: what has a meaning in HTML is written as entities. */
void hr_html_put_text(hr_html *page, const char *text);

/* A cell of a table with text; with exact bytes, and a second one with hr_size_print of them; with
 * a count, or "-" for 0; with a number, or "-" for NaN. */
void hr_html_put_cell(hr_html *page, const char *text);
void hr_html_put_bytes(hr_html *page, int64_t bytes);
void hr_html_put_count(hr_html *page, int64_t count);
void hr_html_put_number(hr_html *page, int32_t decimals, double value);

/* A table below its title. `heads` is markup of the first row; empty: it has none yet. */
void hr_html_begin_table(hr_html *page, const char *title, const char *heads);
void hr_html_end_table(hr_html *page);

/* A cell with a bar of that share of the width, and below it a second one; NaN: none. */
void hr_html_put_bars(hr_html *page, double share, double second);

/* An element of <dl class=facts>. */
void hr_html_put_fact(hr_html *page, const char *name, const char *text);

/* The color of area n, which differs in hue from those of its neighbors. */
void hr_html_put_color(hr_html *page, int32_t n);

/* The color of line n, with more contrast to the background. They repeat. */
enum { HR_HTML_LINE_COLORS = 6 };
void hr_html_put_line_color(hr_html *page, int32_t n);

/* Where charts are drawn, in the coordinates of their SVG. */
enum { HR_HTML_WIDTH = 960, HR_HTML_LEFT = 76, HR_HTML_RIGHT = 12 };
enum { HR_HTML_TOP = 16, HR_HTML_BOTTOM = 34 };

/* A value from `least` to `most` as x, left to right, or as y, upward in a chart of that height. */
double hr_html_x(double value, double least, double most);
double hr_html_y(double value, double least, double most, int32_t height);

/* Begins a figure that scrolls by itself on a narrow screen, and its SVG. `id` is a letter of its
 * own on the page; `about` is a sentence for who cannot see it, without its full stop. */
void hr_html_begin_chart(hr_html *page, char id, const char *title, const char *about,
                         int32_t height);

/* Ends the SVG and begins its legend; ends the figure. */
void hr_html_begin_legend(hr_html *page);
void hr_html_end_chart(hr_html *page);

/* A line of the grid at y, and its label on the left. */
void hr_html_put_grid(hr_html *page, double y, const char *label);

#endif
