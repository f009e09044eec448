/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/cache.h - lists and prunes the cache directory of token shards, vocabularies and
 * calibrations. */
#ifndef HEADROOM_CACHE_H
#define HEADROOM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { HR_CACHE_TOKENS, HR_CACHE_VOCABULARY, HR_CACHE_CALIBRATION } hr_cache_kind;

typedef struct {
    const char *name; /* file name in the directory; valid during the call */
    hr_cache_kind kind;
    int64_t bytes;
    int64_t used_seconds; /* time of the last use, Unix time in seconds */
    bool in_use;          /* used by a running process */
} hr_cache_entry;

typedef struct {
    int64_t removed, removed_bytes;
    int64_t kept, kept_bytes; /* shards and vocabularies that remain */
    int64_t in_use;           /* of these, those that a running process uses */
} hr_cache_report;

/* Reports the entries of a cache in file-system order. Other files are ignored. A missing directory
 * counts as empty.
 * Errors   USAGE    `directory` is not a directory
 *          FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_cache_list(const char *directory,
                                      void (*tell)(void *context, const hr_cache_entry *entry),
                                      void *context, hr_error *err);

/* Removes shards and vocabularies, the least recently used first, until the rest have at most
 * `limit_bytes`. Entries in use by a running process and all other files remain.
 *
 *   report  out
 *
 * Errors   as hr_cache_list
 * Threads  any thread and any process: entries in use are locked (flock). */
HR_MUST_CHECK hr_status hr_cache_prune(const char *directory, int64_t limit_bytes,
                                       hr_cache_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
