/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_scratch.h - how the update cuts a matrix, and its scratch.
 *
 * In every layout a matrix is lines of strips: a strip has 16 lanes in each line. A line is a row,
 * and a lane a column; in HR_PANEL_PAIR a line is two rows, and two lanes are a column. Lines form
 * blocks, whose number is fixed by the shape, and a block is passed in tiles of lines, strip after
 * strip. */
#ifndef HR_OPS_ADAFACTOR_SCRATCH_H
#define HR_OPS_ADAFACTOR_SCRATCH_H

#include "base/checked.h"
#include "base/dtype.h"
#include "ops/adafactor/adafactor.h"
#include "ops/update/update_scratch.h"

enum {
    HR_ADAFACTOR_LANES = 16,  /* HR_PANEL_WIDTH: lanes of a strip */
    HR_ADAFACTOR_BLOCKS = 32, /* most blocks: threads share them, and each has sums of columns */
    HR_ADAFACTOR_LEAST = 16,  /* fewest lines of a block that is not the last */
    HR_ADAFACTOR_TILE = 256   /* most lines of a tile: a strip of it is 16 KiB */
};

typedef struct {
    int64_t lines, strips;
    int64_t line_rows;           /* rows of a line: 1 or 2 */
    int64_t stride;              /* elements from a line of a strip to the next */
    int64_t lanes_last;          /* lanes of the last strip that are stored */
    int64_t block_lines, blocks; /* the last block may be shorter */
    int64_t tile_lines;
} hr_adafactor_grid;

static inline hr_adafactor_grid hr_adafactor_grid_of(int64_t K, int64_t N, hr_layout layout)
{
    const int64_t lanes = HR_ADAFACTOR_LANES, across = (N + lanes - 1) / lanes;
    const bool pair = layout == HR_PANEL_PAIR, rows = layout == HR_ROWS;
    hr_adafactor_grid grid = { .lines = pair ? (K + 1) / 2 : K,
                               .strips = pair ? 2 * across : across,
                               .line_rows = pair ? 2 : 1,
                               .stride = rows   ? N
                                         : pair ? 2 * lanes
                                                : lanes,
                               .lanes_last = rows ? N - lanes * (across - 1) : lanes };
    const int64_t share = (grid.lines + HR_ADAFACTOR_BLOCKS - 1) / HR_ADAFACTOR_BLOCKS;
    grid.block_lines = hr_max(share, HR_ADAFACTOR_LEAST);
    grid.blocks = (grid.lines + grid.block_lines - 1) / grid.block_lines;
    /* Few lines of a row-major matrix are read side by side; a strip of panels is contiguous. */
    grid.tile_lines = rows ? HR_ADAFACTOR_LEAST : hr_min(grid.block_lines, HR_ADAFACTOR_TILE);
    return grid;
}

/* Index of the first element of a line of a strip. */
static inline int64_t hr_adafactor_at(const hr_adafactor_grid *grid, hr_layout layout,
                                      int64_t strip, int64_t line)
{
    const int64_t lanes = HR_ADAFACTOR_LANES;
    if (layout == HR_ROWS) return line * grid->stride + strip * lanes;
    if (layout == HR_PANEL) return (strip * grid->lines + line) * lanes;
    return (strip / 2 * grid->lines + line) * 2 * lanes + strip % 2 * lanes;
}

/* Offsets in bytes, all multiples of 64. */
typedef struct {
    int64_t sums;    /* double [2][blocks]: of R, of u^2 */
    int64_t squares; /* float [blocks][strips][16]: of each lane */
    int64_t lanes;   /* float [blocks][tile_lines][16]: of the lines of a tile */
    int64_t rows;    /* float [lines][2]: factors of the rows of a line; one row: twice */
    int64_t columns; /* float [strips][16]: factors of lanes, with the scale of gradients */
    int64_t runs;    /* double: squares of each run of the master, with scale_parameter */
    int64_t bytes;
} hr_adafactor_scratch;

static inline hr_adafactor_scratch hr_adafactor_scratch_of(const hr_adafactor_attr *attr,
                                                           const hr_adafactor_grid *grid)
{
    const int64_t runs = attr->scale_parameter ? hr_update_runs(attr->update.elements) : 0;
    const int64_t strip = HR_ADAFACTOR_LANES * (int64_t)sizeof(float);
    hr_adafactor_scratch s = { 0 };
    s.squares = s.sums + hr_round_up(2 * grid->blocks * (int64_t)sizeof(double), 64);
    s.lanes = s.squares + grid->blocks * grid->strips * strip;
    s.rows = s.lanes + grid->blocks * grid->tile_lines * strip;
    s.columns = s.rows + hr_round_up(2 * grid->lines * (int64_t)sizeof(float), 64);
    s.runs = s.columns + grid->strips * strip;
    s.bytes = s.runs + runs * (int64_t)sizeof(double);
    return s;
}

#endif
