/* SPDX-License-Identifier: Apache-2.0 */
/* report/svg.h - what the drawings of plan have in common: files of SVG without scripts, fonts or
 * links, on white, for documents. The charts of pages are drawn by html.h. */
#ifndef HR_REPORT_SVG_H
#define HR_REPORT_SVG_H

#include "base/writer.h"

/* How every drawing begins: a file that begins so may be replaced. */
extern const char hr_svg_first[];

/* Begins a drawing. Classes: line, grid, beyond. */
void hr_svg_begin(hr_writer *w, int64_t width, int64_t height, const char *title);
void hr_svg_end(hr_writer *w);

/* Bytes of a text before what an element or attribute cannot have as it is; *code: its code point,
 * U+FFFD for a byte that is no UTF-8, or 0 at the end. */
int64_t hr_svg_plain(const char *text, int32_t *code);

/* Text inside of an element: what has a meaning there is written as entities. */
void hr_svg_put_text(hr_writer *w, const char *text);

/*   anchor  "start", "middle" or "end", at x */
void hr_svg_put_label(hr_writer *w, double x, double y, const char *anchor, const char *text);

/* A line of the grid from `left` to `right` at y, and its label on the left. */
void hr_svg_put_row(hr_writer *w, double left, double right, double y, const char *label);

#endif
