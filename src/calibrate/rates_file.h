/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/rates_file.h - the calibration file of this machine, and the choice of the rates in
 * use.
 *
 * One JSON file per back end and machine, named by a hash of back end, processor, kernels, threads
 * and page size. It records the build that measured it. A file of another build or machine is
 * stale: it is ignored, and `source` says so. */
#ifndef HR_CALIBRATE_RATES_FILE_H
#define HR_CALIBRATE_RATES_FILE_H

#include "plan/cost.h"

enum { HR_RATES_SOURCE_BYTES = 160, HR_RATES_NAME_BYTES = 64 };

/* The machine and build that rates apply to. */
typedef struct {
    char backend[16], processor[96], rung[16], huge_pages[16];
    int32_t threads;
    int64_t page_bytes;
    uint64_t build; /* hash of version, operations and terms */
} hr_rates_machine;

/* Describes this machine with the kernels of `cpu_mask` and `threads` threads.
 *   backend  of the programs to be priced */
void hr_rates_machine_of(const hr_backend *backend, uint32_t cpu_mask, int32_t threads,
                         hr_rates_machine *machine);

/* Writes a name such as "calibration-0123456789abcdef.json". The same machine always has the same
 * name. */
void hr_rates_name(const hr_rates_machine *machine, char name[HR_RATES_NAME_BYTES]);

/* Writes the file atomically; creates the directory if it is missing.
 *   date  "2025-03-14", shown to the user
 * Errors   USAGE, FAILURE as base/file.h. */
HR_MUST_CHECK hr_status hr_rates_save(const char *directory, const hr_backend *backend,
                                      const hr_rates_machine *machine, const char *date,
                                      const hr_rates *rates, hr_error *err);

/* Returns the rates for this machine: the calibrated ones, or an estimate.
 *
 *   directory  of the calibration file; null or empty: none
 *   source     out; "calibrated on this machine 2025-03-14", or "estimated from the instruction set
 *              (amx)" and why
 *
 * Errors   CORRUPT  the file is not a calibration: not JSON, or a rate that is not an integer,
 *          negative or too large. The message names the file; removing it or `headroom calibrate`
 *          helps. */
HR_MUST_CHECK hr_status hr_rates_load(const char *directory, const hr_backend *backend,
                                      uint32_t cpu_mask, int32_t threads, hr_rates *rates,
                                      char source[HR_RATES_SOURCE_BYTES], hr_error *err);

#endif
