/* SPDX-License-Identifier: Apache-2.0 */
/* text/cache.h - an entry of a cache in use: it is locked against removal, and its last use is
 * noted. */
#ifndef HR_TEXT_CACHE_H
#define HR_TEXT_CACHE_H

#include "headroom/cache.h"

/* Locks the file against hr_cache_prune for as long as `file` is open, and sets its times to now.
 * Where the file system has no locks, it is opened all the same.
 *
 *   file  out; a descriptor, for hr_file_close; -1: no such file is there, or not any more
 *
 * Errors   as hr_file_open, but for a file that is missing. */
HR_MUST_CHECK hr_status hr_cache_hold(const char *path, int *file, hr_error *err);

#endif
