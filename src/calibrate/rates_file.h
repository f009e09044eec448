/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/rates_file.h - rates of this machine on disk, and where the rates in use come from.
 *
 * One JSON file for each machine: processor, kernels, threads and pages give its name. It says for
 * which build it was measured; a file of another build or machine is stale: ignored, and said. */
#ifndef HR_CALIBRATE_RATES_FILE_H
#define HR_CALIBRATE_RATES_FILE_H

#include "plan/cost.h"

enum { HR_RATES_SOURCE_BYTES = 160, HR_RATES_NAME_BYTES = 64 };

/* What rates are good for. */
typedef struct {
    char processor[96], rung[16], huge_pages[16];
    int32_t threads;
    int64_t page_bytes;
    uint64_t build; /* of version, operations and terms */
} hr_rates_machine;

/* Describes this machine running kernels of `cpu_mask` on so many threads.
 *   ops [op_count]  of programs that will be priced */
void hr_rates_machine_of(const struct hr_op *const *ops, int32_t op_count, uint32_t cpu_mask,
                         int32_t threads, hr_rates_machine *machine);

/* "calibration-0123456789abcdef.json": never two names for one machine. */
void hr_rates_name(const hr_rates_machine *machine, char name[HR_RATES_NAME_BYTES]);

/* Writes the file whole, in a directory that is made if it is missing.
 *   date  "2025-03-14", for people
 * Errors   USAGE, FAILURE as base/file.h. */
HR_MUST_CHECK hr_status hr_rates_save(const char *directory, const struct hr_op *const *ops,
                                      int32_t op_count, const hr_rates_machine *machine,
                                      const char *date, const hr_rates *rates, hr_error *err);

/* The rates to use on this machine: those that were measured here, or a guess.
 *
 *   directory  null or empty: there is none
 *   source     out; "calibrated here 2025-03-14", or "a guess by instruction set (amx)" and why
 *
 * Errors   CORRUPT  the file is no calibration: not JSON, a number that is none, negative or beyond
 *                   all measure. It names the file; removing it or `headroom calibrate` helps. */
HR_MUST_CHECK hr_status hr_rates_load(const char *directory, const struct hr_op *const *ops,
                                      int32_t op_count, uint32_t cpu_mask, int32_t threads,
                                      hr_rates *rates, char source[HR_RATES_SOURCE_BYTES],
                                      hr_error *err);

#endif
