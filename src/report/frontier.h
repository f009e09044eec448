/* SPDX-License-Identifier: Apache-2.0 */
/* report/frontier.h - prints the plans of one recipe as words, as a table and as a plot. */
#ifndef HR_REPORT_FRONTIER_H
#define HR_REPORT_FRONTIER_H

#include "base/writer.h"
#include "headroom/plan_queries.h"
#include "plan/strategy.h"

enum { HR_FRONTIER_SVG_BYTES = 24576 };

/* Prints what a strategy does to save memory, compared with one that saves everything and splits
 * nothing; "nothing" if it is that strategy. */
void hr_frontier_words(const hr_config *config, const hr_strategy *strategy,
                       char words[HR_POINT_WORDS_BYTES]);

/* Prints a table of the points and, from three points on, a text plot. */
void hr_frontier_print(const hr_frontier *frontier, int32_t columns, hr_writer *writer);


/* Prints the plot as SVG, without scripts, fonts or links. */
void hr_frontier_draw(const hr_frontier *frontier, hr_writer *writer);

void hr_largest_print(const hr_largest *largest, hr_writer *writer);

void hr_smallest_print(const hr_smallest *smallest, hr_writer *writer);

#endif
