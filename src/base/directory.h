/* SPDX-License-Identifier: Apache-2.0 */
/* base/directory.h - what lies in a directory, and directories that are renamed and removed whole.
 *
 * System calls on small buffers of the stack, as base/file.h: readdir would allocate. */
#ifndef HR_BASE_DIRECTORY_H
#define HR_BASE_DIRECTORY_H

#include <stdbool.h>

#include "headroom/status.h"

/* Is told a name; false: no more are wanted. */
typedef bool hr_directory_fn(void *context, const char *name);

/* Names of a directory in the order of the file system, without "." and "..". One that is missing
 * has none. What comes and goes meanwhile may be told or not.
 * Errors   FAILURE  the system refused; USAGE  it is no directory. */
HR_MUST_CHECK hr_status hr_directory_list(const char *path, hr_directory_fn *fn, void *context,
                                          hr_error *err);

/* Removes a directory and the files in it, the one called `keystone` first (null: none), so that
 * what is left of a removal that was cut short is not taken for whole. Links are removed and not
 * followed. A directory that is missing is fine.
 * Errors   FAILURE  the system refused; something in it is a directory itself. */
HR_MUST_CHECK hr_status hr_directory_remove(const char *path, const char *keystone, hr_error *err);

/* Flushes the names in a directory. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_directory_flush(const char *path, hr_error *err);

#endif
