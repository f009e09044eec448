/* SPDX-License-Identifier: Apache-2.0 */
/* graph/rates.h - the rates of a machine: what an operation of a back end costs there. plan/cost.h
 * has the model that they belong to. */
#ifndef HR_GRAPH_RATES_H
#define HR_GRAPH_RATES_H

#include "graph/backend.h"

/* Terms of a call, beside the constant cost of the call. */
enum {
    HR_TERM_FLOPS,
    HR_TERM_ITEMS,                             /* of hr_op_facts.items, kind i: HR_TERM_ITEMS + i */
    HR_TERM_IN = HR_TERM_ITEMS + HR_ITEMS_MAX, /* bytes of input i: HR_TERM_IN + i */
    HR_TERM_OUT = HR_TERM_IN + HR_IN_MAX,      /* bytes of output k; a sum is read and written */
    HR_TERM_START = HR_TERM_OUT + HR_OUT_MAX,  /* bytes of sums that are zeroed */
    HR_TERM_COUNT
};

enum { HR_RATE_OPS_MOST = 68, HR_SPEED_PARTS = 3 };

/* Version of the meaning of the terms: rates of another version are invalid. Increase it with every
 * change of what an operation counts. */
enum { HR_COST_MODEL = 4 };

/* Limits of the rates: picoseconds per call and attoseconds (10^-18 s) per unit of a term. Integers
 * of these units are fine enough for 10^17 operations per second and coarse enough for a sum of 292
 * years. */
#define HR_RATE_CALL_PS_MOST INT64_C(1000000000000) /* one second */
#define HR_RATE_UNIT_AS_MOST INT64_C(1000000000000) /* one microsecond */

typedef struct {
    int64_t call_ps;
    int64_t unit_as[HR_TERM_COUNT];
} hr_rate;

/* Rates of each operation for each hr_compute, indexed like the program's table of operations. All
 * are between 0 and the two limits. */
typedef struct hr_rates {
    const hr_backend *backend; /* that they are rates of */
    int32_t threads;           /* thread count of the measurement, >= 1 */
    /* Microseconds of each part of a fixed short probe during the measurement
     * (calibrate/speed_probe.h). Zeros: not measured. */
    int32_t pace_us[HR_SPEED_PARTS];
    /* Bytes per second; 0: not measured. */
    int64_t disk_rate;                       /* of checkpoints: written and flushed */
    int64_t file_read_rate, file_write_rate; /* of the file space (dev/space_file.h) */
    bool in_nanoseconds; /* costs are nanoseconds: for training steps that take days */
    hr_rate op[HR_RATE_OPS_MOST][HR_COMPUTES];
} hr_rates;

/* Assumed rate of a file space that was not measured, for either direction: that of a SATA SSD. */
#define HR_FILE_RATE_ESTIMATE INT64_C(500000000)

/* Bytes per second of the file space: as measured, or the estimate. */
static inline int64_t hr_rates_file_read(const hr_rates *rates)
{
    return rates->file_read_rate ? rates->file_read_rate : HR_FILE_RATE_ESTIMATE;
}

static inline int64_t hr_rates_file_write(const hr_rates *rates)
{
    return rates->file_write_rate ? rates->file_write_rate : HR_FILE_RATE_ESTIMATE;
}

#endif
