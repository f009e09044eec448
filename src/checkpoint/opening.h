/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/opening.h - state and error helpers shared by the readers of safetensors headers and
 * of the shard index, while files are being opened. */
#ifndef HR_CHECKPOINT_OPENING_H
#define HR_CHECKPOINT_OPENING_H

#include <limits.h>

#include "base/json.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"

enum { HR_STORED_LENGTH_BYTES = 8, HR_STORED_NAME_SHOWN = 120 };

/* One entry of the index. */
typedef struct {
    const char *name;
    int32_t file;
    bool found;
} hr_opening_name;

/* State while safetensors files are opened. */
typedef struct {
    hr_stored *stored;
    hr_region *region;
    hr_error *err;
    const char *folder; /* null: a single file */
    char *texts[HR_STORED_FILES_MAX];
    int64_t text_bytes[HR_STORED_FILES_MAX];
    hr_opening_name *named; /* [named_count], sorted by name; null without an index */
    int32_t named_count;
    char place[PATH_MAX]; /* path of the current file, for error messages */
} hr_opening;

/* False if the name contains a control character. */
bool hr_opening_is_plain(const char *name);

/* Makes file `index` of the table the current one: writes its path to `place`. */
HR_MUST_CHECK hr_status hr_opening_place(hr_opening *o, int32_t index);

HR_MUST_CHECK hr_status hr_opening_no_room(const hr_opening *o);

/* Reports an error in `what` of the current file; its text begins at byte `at`. */
HR_MUST_CHECK hr_status hr_opening_not_json(const hr_opening *o, const hr_json *json,
                                            const char *what, int64_t at);

/* Appends a row to a table that is the last allocation of the region; null if the region is full.
 */
void *hr_opening_add_row(hr_region *region, void **table, int32_t count, int64_t bytes);

/* Loads the header of file `index`, the current one, into the region; then parses its tensors into
 * the table. */
HR_MUST_CHECK hr_status hr_opening_load_header(hr_opening *o, int32_t index);
HR_MUST_CHECK hr_status hr_opening_read_header(hr_opening *o, int32_t index);

/* Reads the folder's index: the shards and the tensor entries. After all headers are read, checks
 * that the shards agree with the index. */
HR_MUST_CHECK hr_status hr_opening_open_index(hr_opening *o);
HR_MUST_CHECK hr_status hr_opening_check_index(hr_opening *o);

#endif
