/* SPDX-License-Identifier: Apache-2.0 */
/* base/directory.h - creates, checks, lists and removes directories.
 *
 * Uses system calls on small stack buffers, like base/file.h: readdir would allocate. */
#ifndef HR_BASE_DIRECTORY_H
#define HR_BASE_DIRECTORY_H

#include <stdbool.h>

#include "headroom/status.h"

/* Creates a directory and its missing parents, and flushes their names. An existing directory is
 * not an error.
 * Errors   USAGE    another file has that name, or the path is too long
 *          FAILURE  a system call failed. */
HR_MUST_CHECK hr_status hr_directory_make(const char *path, hr_error *err);

/* Checks that the path is a directory or a link to one. Errors USAGE  with the reason. */
HR_MUST_CHECK hr_status hr_directory_find(const char *path, hr_error *err);

/* Checks, without creating anything, that hr_directory_make would succeed and that files can be
 * created in the directory. Errors as hr_directory_make. */
HR_MUST_CHECK hr_status hr_directory_check(const char *path, hr_error *err);

/* Checks that the directory exists and that files may be created in it. Other causes (a full disk,
 * a file system without regular files) appear only when a file is written.
 * Errors   USAGE    missing, or not a directory
 *          FAILURE  its permissions. */
HR_MUST_CHECK hr_status hr_directory_check_writable(const char *path, hr_error *err);

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

/* Flushes the directory that contains a path, so that a name created there survives a crash. Does
 * nothing when the directory is not readable. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_directory_flush_name(const char *path, hr_error *err);

#endif
