/* SPDX-License-Identifier: Apache-2.0 */
/* run/file_space.h - the place of the file of values that a run keeps out of memory
 * (memory.moments=file, memory.spill=auto). */
#ifndef HR_RUN_FILE_SPACE_H
#define HR_RUN_FILE_SPACE_H

#include "headroom/train.h"

enum { HR_FILE_SPACE_NAME_BYTES = 32 };

/* memory.file_dir, or train.out without it; empty: neither is given. */
const char *hr_file_space_directory(const hr_config *config);

/* Checks that memory.file_dir, if the recipe gives it to a file, is a directory.
 * Errors   USAGE  it is not. */
HR_MUST_CHECK hr_status hr_file_space_find(const hr_config *config, hr_error *err);

/* Sets the name of the file. In memory.file_dir, which several runs may use, it depends on the
 * folder of the run, so that a resumed run replaces the file of a killed one; without a folder, on
 * the process. */
void hr_file_space_name(const hr_config *config, char name[HR_FILE_SPACE_NAME_BYTES]);

/* Checks the place of the file before texts are read. Creates nothing.
 *
 *   bytes  of the file in the plan; 0: no file, which is reported if the recipe asks for one
 *
 * Errors   USAGE   there is no directory for the file
 *          NO_FIT  memory.file_dir has no room. The file of a killed run counts as free space: the
 *                  run replaces it. train.out is checked with the checkpoints (hr_disk_check_run).
 */
HR_MUST_CHECK hr_status hr_file_space_check(const hr_config *config, const hr_train_events *events,
                                            int64_t bytes, hr_error *err);

/* Returns the bytes that the file takes from the free space of the existing folder train.out; 0: it
 * is on another file system. */
int64_t hr_file_space_out_bytes(const hr_config *config, int64_t bytes);

/* Removes the file that a killed run left where this recipe would have it. The caller has the lock
 * of the run, whose file is not open. Does nothing if there is none. */
void hr_file_space_clear(const hr_config *config);

/* Reports a directory in memory (tmpfs), where the file saves none. The directory exists. */
void hr_file_space_warn(const hr_config *config, const hr_train_events *events);

#endif
