/* SPDX-License-Identifier: Apache-2.0 */
/* report/grid.h - prints the cells of a grid as tables, and draws them as a heat map. */
#ifndef HR_REPORT_GRID_H
#define HR_REPORT_GRID_H

#include "base/number.h"
#include "headroom/plan_grid.h"

/* The shape of a grid: rows by the first axis, columns by the second; devices are the rows without
 * an axis, the columns beside one axis, and further tabs beside two or three. */
typedef struct {
    const hr_grid_request *request;
    const hr_grid_cell *cells; /* [tabs x rows x columns] */
    int32_t tabs, rows, columns;
    const char *times[2]; /* sources of the predicted times; the second may be empty */
} hr_grid_table;

/* Takes text in pieces. */
typedef struct {
    void (*put)(void *context, const char *text);
    void *context;
} hr_grid_sink;

static inline void hr_grid_put(const hr_grid_sink *sink, const char *text)
{
    sink->put(sink->context, text);
}

/* The name of a device of the request, or "this machine". */
const char *hr_grid_device_name(const hr_grid_table *table, int32_t device);

/* "train.seq_len x train.batch". Returns text. */
const char *hr_grid_keys_print(const hr_grid_axis *axis, char text[HR_GRID_LABEL_BYTES]);

/* "21.53 GiB", or smaller units below 1 GiB. Returns text. */
const char *hr_grid_size_print(int64_t bytes, char text[HR_COUNT_BYTES]);

void hr_grid_print(const hr_grid_table *table, const hr_grid_sink *sink);

/* SVG, without scripts, fonts or links; report/svg.h. */
void hr_grid_draw(const hr_grid_table *table, const hr_grid_sink *sink);

#endif
