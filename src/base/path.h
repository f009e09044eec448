/* SPDX-License-Identifier: Apache-2.0 */
/* base/path.h - paths, and the text of an error of the system. Allocates nothing. */
#ifndef HR_BASE_PATH_H
#define HR_BASE_PATH_H

#include <limits.h>
#include <stdint.h>

#include "headroom/status.h"

/* Returns the text of an errno value. Allocates nothing, unlike strerror. */
const char *hr_reason(int code);

/* Writes `directory`/`name` into path [bytes]. Errors USAGE  the result is too long. */
HR_MUST_CHECK hr_status hr_path_join(const char *directory, const char *name, char *path,
                                     int64_t bytes, hr_error *err);

/* Splits a path into its directory and its last name, which is part of `path`. The directory of a
 * bare name is ".", and of a name in the root "/". Errors USAGE  the path is too long. */
HR_MUST_CHECK hr_status hr_path_split(const char *path, char directory[PATH_MAX], const char **name,
                                      hr_error *err);

/* Removes the slashes at the end of path [bytes], except the root. */
void hr_path_strip_slashes(char *path, int64_t bytes);

/* For a path that does not exist: checks that it leads through no symbolic link to nothing. Needs
 * two paths of stack. Errors USAGE  names the link. */
HR_MUST_CHECK hr_status hr_path_check_links(const char *path, hr_error *err);

#endif
