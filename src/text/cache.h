/* SPDX-License-Identifier: Apache-2.0 */
/* text/cache.h - locks a cache entry against removal and records its last use. */
#ifndef HR_TEXT_CACHE_H
#define HR_TEXT_CACHE_H

#include "headroom/cache.h"

/* Locks the file against hr_cache_prune while `file` is open, and sets its timestamps to now. On a
 * file system without locks, the file is only opened.
 *
 *   file  out; a descriptor for hr_file_close; -1 if the file does not exist or was removed
 *
 * Errors   as hr_file_open, except for a missing file. */
HR_MUST_CHECK hr_status hr_cache_hold(const char *path, int *file, hr_error *err);

#endif
