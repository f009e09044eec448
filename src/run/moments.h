/* SPDX-License-Identifier: Apache-2.0 */
/* run/moments.h - the place of the file of optimizer moments (memory.moments=file). */
#ifndef HR_RUN_MOMENTS_H
#define HR_RUN_MOMENTS_H

#include "headroom/train.h"

enum { HR_MOMENTS_NAME_BYTES = 32 };

/* memory.file_dir, or train.out without it; empty: neither is given. */
const char *hr_moments_directory(const hr_config *config);

/* Sets the name of the file. In memory.file_dir, which several runs may use, it depends on the
 * folder of the run, so that a resumed run replaces the file of a killed one; without a folder, on
 * the process. */
void hr_moments_name(const hr_config *config, char name[HR_MOMENTS_NAME_BYTES]);

/* Checks the place of the file before texts are read. Creates nothing.
 *
 *   bytes  of the file's data in the plan; 0: no file, which is reported if the recipe asks for one
 *
 * Errors   USAGE   there is no directory for the file
 *          NO_FIT  memory.file_dir has no room. The file of a killed run counts as free space: the
 *                  run replaces it. train.out is checked with the checkpoints (hr_disk_check_run).
 */
HR_MUST_CHECK hr_status hr_moments_check(const hr_config *config, const hr_train_events *events,
                                         int64_t bytes, hr_error *err);

/* Returns the bytes that the file takes from the free space of the existing folder train.out; 0: it
 * is on another file system. */
int64_t hr_moments_out_bytes(const hr_config *config, int64_t bytes);

/* Reports a directory in memory (tmpfs), where the file saves none. The directory exists. */
void hr_moments_warn(const hr_config *config, const hr_train_events *events);

#endif
