/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/verify.h - verifies a plan file independently of the planner.
 *
 * Lifetimes are derived from reads, writes, loops and homes; the lifetimes, floor and sizes that
 * the file declares are only compared with them. docs/plan-file.md has the schema and every
 * rule. */
#ifndef HEADROOM_VERIFY_H
#define HEADROOM_VERIFY_H

#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_VERIFY_ALIVE_MAX = 16, HR_VERIFY_SPACES_MAX = 4 };

/* A storage that is alive at the peak. */
typedef struct {
    char name[128], role[16];
    int64_t bytes;
} hr_verify_alive;

/* A memory space beside the host's: device, pinned, file or base. */
typedef struct {
    char name[16];
    int64_t bytes;
    int64_t floor_bytes; /* derived from the lifetimes */
} hr_verify_space;

typedef struct {
    int32_t loop_count, buffer_count, storage_count, step_count;
    int64_t arena_bytes, process_bytes; /* the arena is the memory of the host */
    int64_t floor_bytes;                /* derived from the lifetimes */
    int64_t gap_bytes;                  /* arena_bytes - floor_bytes */
    int32_t peak_step;                  /* first step at which floor_bytes are alive */
    char peak_op[128];
    int32_t alive_count; /* storages alive at peak_step; the largest are listed */
    int32_t alive_listed;
    hr_verify_alive alive[HR_VERIFY_ALIVE_MAX];
    int32_t space_count; /* with buffers, beside the host */
    hr_verify_space spaces[HR_VERIFY_SPACES_MAX];
} hr_verify_report;

/* Reads and verifies the file.
 *
 *   report  out; untouched on error
 *
 * Errors   BROKEN   two buffers use the same bytes at one step: the sentence names both and the
 *                   step.
 *          CORRUPT  not a plan file, or an inconsistent one: the sentence names the item.
 *          USAGE    missing or unreadable file.
 *          FAILURE  out of memory.
 * Cost     a few times the file size in memory, freed on return; files above 1 GiB are refused.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_verify_file(const char *path, hr_verify_report *report, hr_error *err);

typedef struct {
    int32_t plan_count;
    int32_t kept_count; /* buffers that live through the run */
    int64_t kept_bytes;
    int64_t arena_bytes, process_bytes; /* the largest of any plan: those of the run */
} hr_verify_set_report;

/* Verifies the plans of the stages of one run, each as hr_verify_file does, and that what lives
 * through the run is the same in all: names, kinds, sizes, offsets.
 *
 *   paths   [count] of hr_plan_make for a recipe with train.stages; at least one
 *   report  out; untouched on error
 *
 * Errors   BROKEN  a buffer that lives through the run is missing in a plan, or lies elsewhere.
 *          Others as hr_verify_file. */
HR_MUST_CHECK hr_status hr_verify_set(const char *const *paths, int32_t count,
                                      hr_verify_set_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
