/* SPDX-License-Identifier: Apache-2.0 */
/* planning/disk.h - the disk space of a run, and the check that a disk has it.
 *
 * Sizes of checkpoints follow from the program and the recipe. Sizes of logs and shards are upper
 * bounds. */
#ifndef HR_PLANNING_DISK_H
#define HR_PLANNING_DISK_H

#include "graph/program.h"
#include "headroom/plan.h"

/* Fills disk for a run of `steps` steps; 0: as in the recipe, or unknown. Reads the sizes of the
 * text files, and nothing else.
 *
 *   file_bytes  of the file of moments and layer inputs; 0: there is none */
void hr_disk_of(const hr_config *config, const hr_program *program, int64_t file_bytes,
                int64_t steps, hr_plan_disk *disk);

/* Checks before the first step that the file system of the existing folder train.out has room for
 * the checkpoints and the moments of the run. Existing checkpoints count as free space, since the
 * run replaces them. A log that may exceed the free space is not refused: a full disk loses log
 * lines, not the run.
 *
 *   disk           for the total number of steps
 *   done           completed steps of a resumed run
 *   moments_bytes  that a file of moments takes from the same free space; 0: none
 *   free_bytes     out: space left for the log after the checkpoints; -1: unknown
 *
 * Errors   NO_FIT  bytes needed, bytes free, and what to change. A file system that does not report
 *          its free space is accepted. */
HR_MUST_CHECK hr_status hr_disk_check_run(const hr_config *config, const hr_plan_disk *disk,
                                          int64_t done, int64_t moments_bytes, int64_t *free_bytes,
                                          hr_error *err);

#endif
