/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/base_files.h - the files of the frozen model that adapters belong to. A checkpoint of
 * adapters names them in base.json, with sizes and hashes, and has none of their bytes. */
#ifndef HR_CHECKPOINT_BASE_FILES_H
#define HR_CHECKPOINT_BASE_FILES_H

#include "base/region.h"
#include "base/writer.h"
#include "checkpoint/hash.h"
#include "checkpoint/manifest.h"

enum { HR_BASE_FILES_MAX = 256 };

typedef struct {
    char name[HR_MANIFEST_NAME_BYTES];
    int64_t bytes, changed_ns; /* the second: time of the last change */
    char hash[HR_HASH_BYTES];
} hr_base_file;

typedef struct {
    const char *folder; /* as the recipe names it; null: initial weights, which the seed gives */
    const char *cache;  /* directory of hashes that are known (hash_cache.h); null: none */
    hr_base_file *files;
    int32_t count;
} hr_base_files;

/* Called between pieces of a file. True: stop. */
typedef bool hr_base_progress(void *context, int64_t done, int64_t all);

extern const char hr_base_name[]; /* "base.json" */

/* Bytes of region that the list of a folder needs. */
int64_t hr_base_files_bytes(void);

/* Lists the files with weights of a folder, and hashes them, unless the cache has their hashes.
 *
 *   cache    directory for hashes; null: none
 *   kept     of the list; needs hr_base_files_bytes
 *   scratch  needs hr_stored_bytes(folder) during the call
 *
 * Errors   as hr_stored_open; USAGE  more than HR_BASE_FILES_MAX files, a name of 40 characters or
 *          more; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_base_files_open(hr_base_files *base, const char *folder,
                                           const char *cache, hr_base_progress *progress,
                                           void *context, hr_region *kept, hr_region *scratch,
                                           hr_error *err);

/* Checks that the files are those of the checkpoint in the folder `place`.
 * Errors  USAGE    a file differs, with its name
 *         CORRUPT  the checkpoint has no base.json, or another format of it. */
HR_MUST_CHECK hr_status hr_base_files_compare(const hr_base_files *base, const char *place,
                                              hr_error *err);

/* Checks that no file has changed since the list was made. A file with another time is hashed.
 * Errors  CORRUPT  a file has changed, with its name. */
HR_MUST_CHECK hr_status hr_base_files_check(hr_base_files *base, hr_error *err);

/* Prints base.json: a line for the folder, then a line for each file. */
void hr_base_files_print(const hr_base_files *base, hr_writer *w);

#endif
