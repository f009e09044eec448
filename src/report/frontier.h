/* SPDX-License-Identifier: Apache-2.0 */
/* report/frontier.h - plans of one recipe side by side: in words, as a table, as a plot. */
#ifndef HR_REPORT_FRONTIER_H
#define HR_REPORT_FRONTIER_H

#include "base/writer.h"
#include "headroom/plan_queries.h"
#include "plan/strategy.h"

enum { HR_FRONTIER_SVG_BYTES = 24576 };

/* What a strategy gives up against one that keeps everything and cuts nothing; "nothing". */
void hr_frontier_words(const hr_config *config, const hr_strategy *strategy,
                       char words[HR_POINT_WORDS_BYTES]);

/* A table of the points and, from three points on, a plot of plain characters. */
void hr_frontier_print(const hr_frontier *frontier, int32_t columns, hr_writer *writer);

extern const char hr_frontier_svg_begin[]; /* of every drawing */

/* The plot as SVG, without scripts, fonts or links. */
void hr_frontier_draw(const hr_frontier *frontier, hr_writer *writer);

void hr_largest_print(const hr_largest *largest, hr_writer *writer);

void hr_smallest_print(const hr_smallest *smallest, hr_writer *writer);

#endif
