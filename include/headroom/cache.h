/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/cache.h - the directory in which runs keep token shards, vocabularies and calibrations:
 * what lies in it, and a limit of its size. */
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
    const char *name; /* in the directory; valid during the call */
    hr_cache_kind kind;
    int64_t bytes;
    int64_t used_seconds; /* of the last use, since 1970 UTC */
    bool in_use;          /* by a running process */
} hr_cache_entry;

typedef struct {
    int64_t removed, removed_bytes;
    int64_t kept, kept_bytes; /* shards and vocabularies that stay */
    int64_t in_use;           /* of these, those that could not be removed for that */
} hr_cache_report;

/* Tells of the entries in the order of the file system. Other files are passed over. A directory
 * that is missing has none.
 * Errors   USAGE    `directory` is none
 *          FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_cache_list(const char *directory,
                                      void (*tell)(void *context, const hr_cache_entry *entry),
                                      void *context, hr_error *err);

/* Removes shards and vocabularies, the least recently used first, until the others have at most
 * `limit_bytes`. An entry that a running process uses stays, and so does every other file.
 *
 *   report  out
 *
 * Errors   as hr_cache_list
 * Threads  any, and any process: entries in use are locked (flock). */
HR_MUST_CHECK hr_status hr_cache_prune(const char *directory, int64_t limit_bytes,
                                       hr_cache_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
