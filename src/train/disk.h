/* SPDX-License-Identifier: Apache-2.0 */
/* train/disk.h - the bytes that a run takes on disks, and whether a disk has them.
 *
 * Sizes of checkpoints follow from the program and the recipe; those of logs and shards are
 * bounds. */
#ifndef HR_TRAIN_DISK_H
#define HR_TRAIN_DISK_H

#include "graph/program.h"
#include "headroom/plan.h"

/* Fills disk for a run of so many steps; steps 0: as the recipe says, or not known. Looks at the
 * length of the texts' files, and at nothing else. */
void hr_disk_of(const hr_config *config, const hr_program *program, int64_t steps,
                hr_plan_disk *disk);

/* Before the first step of a run: that the file system of train.out, which is there, has room for
 * the checkpoints that the run will hold. Checkpoints that are there count as room: the run
 * replaces them. A log that may outgrow the disk is no reason to refuse, since a full disk costs
 * lines of it and not the run.
 *
 *   disk        of the run with its number of steps
 *   done        steps that the run goes on from
 *   free_bytes  out: for the log, beside the checkpoints; -1: not known
 *
 * Errors   NO_FIT  bytes needed, bytes there, and what to change. A file system that does not say
 *                  how much it has is not refused. */
HR_MUST_CHECK hr_status hr_disk_check_run(const hr_config *config, const hr_plan_disk *disk,
                                          int64_t done, int64_t *free_bytes, hr_error *err);

/* That there is room for one more checkpoint. Errors FAILURE, with both numbers. */
HR_MUST_CHECK hr_status hr_disk_check_checkpoint(const char *path, int64_t bytes, hr_error *err);

#endif
