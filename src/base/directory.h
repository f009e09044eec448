/* SPDX-License-Identifier: Apache-2.0 */
/* base/directory.h - lists and removes directories.
 *
 * Uses system calls on small stack buffers, like base/file.h: readdir would allocate. */
#ifndef HR_BASE_DIRECTORY_H
#define HR_BASE_DIRECTORY_H

#include <stdbool.h>

#include "headroom/status.h"

/* Receives one name. Returns false to end the listing. */
typedef bool hr_directory_fn(void *context, const char *name);

/* Passes the names in a directory to `fn`, in the order of the file system, without "." and "..". A
 * missing directory counts as empty. Entries created or removed during the listing may be included
 * or not.
 * Errors   FAILURE  a system call failed; USAGE  the path is not a directory. */
HR_MUST_CHECK hr_status hr_directory_list(const char *path, hr_directory_fn *fn, void *context,
                                          hr_error *err);

/* Removes a directory and the files in it. The file `keystone` (may be null) is removed first, so
 * that an interrupted removal does not leave a directory that looks complete. Symbolic links are
 * removed, not followed. A missing directory is not an error.
 * Errors   FAILURE  a system call failed, or the directory contains another directory. */
HR_MUST_CHECK hr_status hr_directory_remove(const char *path, const char *keystone, hr_error *err);

/* Calls fsync on a directory, so that its names survive a crash. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_directory_flush(const char *path, hr_error *err);

#endif
