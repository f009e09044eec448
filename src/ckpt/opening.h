/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/opening.h - safetensors files while they are being opened: what headers and the index of
 * shards are read into, and what both say when something is wrong. */
#ifndef HR_CKPT_OPENING_H
#define HR_CKPT_OPENING_H

#include <limits.h>

#include "base/json.h"
#include "ckpt/safetensors.h"

enum { HR_STORED_LENGTH_BYTES = 8, HR_STORED_NAME_SHOWN = 120 };

/* What the index says of one tensor. */
typedef struct {
    const char *name;
    int32_t file;
    bool found;
} hr_opening_name;

/* One opening, while it lasts. */
typedef struct {
    hr_stored *stored;
    hr_region *region;
    hr_error *err;
    const char *folder; /* null: a single file */
    char *texts[HR_STORED_FILES_MAX];
    int64_t text_bytes[HR_STORED_FILES_MAX];
    hr_opening_name *named; /* [named_count] in the order of names; null without an index */
    int32_t named_count;
    char place[PATH_MAX]; /* of the file at hand, for sentences */
} hr_opening;

/* The end of a path says more than its beginning. */
const char *hr_opening_shown(const char *path);

/* False: a control character is in it. */
bool hr_opening_is_plain(const char *name);

/* Makes file `index` of the table the one at hand: its path goes into `place`. */
HR_MUST_CHECK hr_status hr_opening_place(hr_opening *o, int32_t index);

HR_MUST_CHECK hr_status hr_opening_no_room(const hr_opening *o);

/* Of `what` in the file at hand, whose text begins at byte `at`. */
HR_MUST_CHECK hr_status hr_opening_not_json(const hr_opening *o, const hr_json *json,
                                            const char *what, int64_t at);

/* A row more behind those of a table that nothing was taken behind; null without room. */
void *hr_opening_add_row(hr_region *region, void **table, int32_t count, int64_t bytes);

/* Takes the header of file `index`, that at hand, into the region; then its tensors into the
 * table. */
HR_MUST_CHECK hr_status hr_opening_load_header(hr_opening *o, int32_t index);
HR_MUST_CHECK hr_status hr_opening_read_header(hr_opening *o, int32_t index);

/* Reads the folder's index: which shards there are, and what it says of each tensor; then, when all
 * headers were read, whether the shards say the same. */
HR_MUST_CHECK hr_status hr_opening_open_index(hr_opening *o);
HR_MUST_CHECK hr_status hr_opening_check_index(hr_opening *o);

#endif
