/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan_grid.h - plans a recipe for every combination of some values of its keys, and for
 * several devices.
 *
 * Each cell is the plan that hr_plan_make makes for the recipe with these values: the same bytes,
 * strategy and time. docs/grids.md describes axes and output. */
#ifndef HEADROOM_PLAN_GRID_H
#define HEADROOM_PLAN_GRID_H

#include "headroom/plan.h"
#include "headroom/plan_queries.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HR_GRID_CELLS_MOST = 10000,
    HR_GRID_AXES_MOST = 3, /* of keys */
    HR_GRID_KEYS_MOST = 4, /* of one axis */
    HR_GRID_VALUE_BYTES = 256,
    HR_GRID_LABEL_BYTES = 96
};

/* An axis: one key, or several that change together. It points into the text that it was parsed
 * from. */
typedef struct {
    int32_t key_count;
    const hr_key *keys[HR_GRID_KEYS_MOST];
    const char *values; /* the text after "KEY=" */
    int32_t count;      /* of points */
} hr_grid_axis;

/* Parses "KEY=a,b,c", "KEY=64..4096" (doubling), "KEY=8..64+8" (adding), a mixture of them, or
 * "KEY,KEY=a:b,c:d". Ranges are of keys with integers or sizes, and end at the last value that is
 * not above their end.
 *
 * Errors   USAGE  unknown key, a key twice, a value that the key does not accept, a range that runs
 *                 backwards or has no end, more than HR_GRID_CELLS_MOST points. */
HR_MUST_CHECK hr_status hr_grid_axis_parse(const char *text, hr_grid_axis *axis, hr_error *err);

/* The value of a key of an axis at a point, as hr_config_set takes it. Returns value. */
const char *hr_grid_axis_value(const hr_grid_axis *axis, int32_t point, int32_t key,
                               char value[HR_GRID_VALUE_BYTES]);

/* The values of a point, "8 x 8192", without thousands separators. Returns label. */
const char *hr_grid_axis_label(const hr_grid_axis *axis, int32_t point,
                               char label[HR_GRID_LABEL_BYTES]);

/* ---- cells */

typedef enum {
    HR_CELL_FITS,      /* with every activation saved and nothing split */
    HR_CELL_FITS_WITH, /* the fastest plan that fits splits or recomputes, or needs `change` */
    HR_CELL_REFUSED,   /* nothing fits */
    HR_CELL_INVALID    /* these values make no recipe, or the device lacks a format: `reason` */
} hr_cell_verdict;

typedef struct {
    int32_t points[HR_GRID_AXES_MOST]; /* of each axis; 0 without it */
    int32_t device;                    /* index of request->devices; 0 */
    hr_cell_verdict verdict;
    int64_t process_bytes;   /* of the plan; of the smallest plan when refused */
    int64_t available_bytes; /* for it */
    /* If it is the file of moments that does not fit: its bytes, and those for it. Otherwise 0. */
    int64_t file_bytes, file_available_bytes;
    int64_t arena_bytes, floor_bytes;
    double step_seconds, tokens_per_second; /* 0 unless it fits */
    double hours;                           /* for request->tokens; 0: not asked for */
    int64_t batch, seq_len;
    int64_t micro_batch;       /* 0: the whole batch */
    int64_t loss_chunk;        /* 0: the whole micro-batch */
    int32_t recomputed_layers; /* layers that recompute anything */
    int32_t layers;
    bool splits_more;                  /* tiles, gradient release or reordered operations */
    char words[HR_POINT_WORDS_BYTES];  /* of hr_plan_point; when it fits */
    char change[HR_PLAN_CHANGE_BYTES]; /* "memory.moments=file"; empty: none */
    bool smallest;                     /* the plan with `change` is the smallest, not the fastest */
    int64_t disk_bytes;                /* of the file of moments, when it fits; 0: none */
    /* When refused and changes were tried: the one that needs the least, and process_bytes of its
     * smallest plan; 0: none. Whether all changes were tried. */
    char least[HR_PLAN_CHANGE_BYTES];
    int64_t least_bytes;
    bool tried_all;
    char reason[HR_ERROR_BYTES]; /* when refused or invalid */
} hr_grid_cell;

typedef struct {
    size_t size;             /* of this struct */
    const hr_config *config; /* before hr_config_adopt */
    const hr_grid_axis *axes;
    int32_t axis_count;              /* 0 to HR_GRID_AXES_MOST */
    const hr_device_choice *devices; /* [device_count] */
    int32_t device_count;            /* 0: this machine */
    /* Where the recipe does not fit as it is: takes train.dtype=fp32 if the device lacks the dtype,
     * and then the cheapest change that a refusal offers. For lists of devices; the cell is then no
     * longer the plan of the recipe alone, and `change` says so. */
    bool changes;
    double tokens;            /* for `hours`; 0: none */
    const char *calibrations; /* directory of calibrations; null: step times are estimated */
    const char *svg;          /* path for a heat map, written atomically; null: none */
    hr_plan_progress progress;
    void *context; /* of the functions */

    /* Called for each cell in order: by the third axis, then by device if there are two or more
     * axes, then by the first axis, then by the second, or else by device. Null: none.
     *   answer  of the plan, without minimum_bytes, disk and stop_seconds; only if the cell fits */
    void (*cell)(void *context, const hr_grid_cell *cell, const hr_plan_answer *answer);

    /* Takes the tables as text, in pieces. Null: none. */
    void (*write)(void *context, const char *text);
} hr_grid_request;

/* Plans every cell. Cells share memory and results of the search.
 *
 * Errors   USAGE    a key in two axes, more than HR_GRID_CELLS_MOST cells, or every cell invalid:
 *                   the reason of the first
 *          NO_FIT   no cell fits, or no memory for planning
 *          FAILURE  the drawing cannot be written.
 * Threads  one call at a time per process, because it measures the process. */
HR_MUST_CHECK hr_status hr_plan_grid(const hr_grid_request *request, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
