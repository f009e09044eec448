/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/token_rows.c - reads and checks integers of a file in chunks. */
#include "checkpoint/token_rows.h"

#include <string.h>

#include "base/checked.h"
#include "checkpoint/safetensors.h"

enum {
    PIECE_BYTES = 4096,
    PIECE_NUMBERS = PIECE_BYTES / 8,
    NAME_SHOWN = 200,
    /* hr_stored_bytes for the longest path and the largest header. */
    SCRATCH_BYTES = 80 << 10
};

static hr_status take_tensor(hr_token_rows *rows, const hr_stored *stored, const char *name,
                             bool needed, hr_token_numbers *numbers, hr_error *err)
{
    char shape[128];
    const hr_stored_tensor *tensor = hr_stored_find(stored, name);
    if (!tensor && !needed) return HR_OK;
    if (!tensor)
        return hr_fail(err, HR_CORRUPT, "%.*s: has no tensor %s", NAME_SHOWN, rows->path, name);
    const char *dtype = tensor->dtype->name;
    const bool wide = !strcmp(dtype, "I64");
    if (!wide && strcmp(dtype, "I32") != 0)
        return hr_fail(err, HR_CORRUPT, "%.*s: %s has dtype %s; it must be I64 or I32", NAME_SHOWN,
                       rows->path, name, dtype);
    hr_stored_shape(tensor, shape, (int64_t)sizeof shape);
    if (tensor->rank != 2 || tensor->bytes == 0)
        return hr_fail(err, HR_CORRUPT,
                       "%.*s: %s has shape %s; it must be [rows, tokens], at least one row",
                       NAME_SHOWN, rows->path, name, shape);
    if (rows->rows && (tensor->dims[0] != rows->rows || tensor->dims[1] != rows->length))
        return hr_fail(err, HR_CORRUPT, "%.*s: %s has shape %s, input_ids has [%lld, %lld]",
                       NAME_SHOWN, rows->path, name, shape, (long long)rows->rows,
                       (long long)rows->length);
    *numbers = (hr_token_numbers){ name, tensor->offset, wide ? 8 : 4 };
    rows->rows = tensor->dims[0];
    rows->length = tensor->dims[1];
    return HR_OK;
}

static hr_status open_in(hr_token_rows *rows, const char *path, bool needs_labels,
                         hr_region *scratch, hr_error *err)
{
    hr_token_rows opened = { .path = path, .file = -1, .vocabulary = rows->vocabulary };
    hr_stored stored = { 0 };
    int64_t bytes;
    hr_status status = hr_file_open(path, &opened.file, &bytes, err); /* fails for a folder */
    if (status == HR_OK) status = hr_stored_open(&stored, path, scratch, err);
    if (status == HR_OK)
        status = take_tensor(&opened, &stored, "input_ids", true, &opened.ids, err);
    if (status == HR_OK)
        status = take_tensor(&opened, &stored, "labels", needs_labels, &opened.labels, err);
    hr_stored_close(&stored);
    if (status == HR_OK) *rows = opened;
    else hr_file_close(&opened.file);
    return status;
}

hr_status hr_token_rows_open_in(hr_token_rows *rows, const char *path, hr_region *scratch,
                                hr_error *err)
{
    return open_in(rows, path, false, scratch, err);
}

hr_status hr_token_rows_open(hr_token_rows *rows, const char *path, hr_error *err)
{
    _Alignas(64) uint8_t scratch[SCRATCH_BYTES];
    hr_region region = hr_region_over(scratch, sizeof scratch);
    if (hr_stored_text_bytes(path) > HR_TOKEN_ROWS_HEADER_MOST)
        return hr_fail(err, HR_CORRUPT,
                       "%.*s: its header has more than %d bytes; keep only input_ids and labels",
                       NAME_SHOWN, path, HR_TOKEN_ROWS_HEADER_MOST);
    return open_in(rows, path, true, &region, err);
}

void hr_token_rows_close(hr_token_rows *rows)
{
    hr_file_close(&rows->file);
}

static int64_t number_at(const uint8_t *bytes, int32_t width)
{
    uint64_t value = 0;
    for (int32_t i = width - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return width == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

/* Reads numbers [first, first + count), at most one chunk. An ignored label becomes -1. */
static hr_status read_piece(const hr_token_rows *rows, const hr_token_numbers *from, int64_t first,
                            int64_t count, int32_t *out, hr_error *err)
{
    uint8_t piece[PIECE_BYTES];
    const bool labels = from == &rows->labels;
    const int32_t width = from->width;
    const hr_status status = hr_file_read(rows->file, rows->path, from->offset + first * width,
                                          piece, count * width, err);
    if (status != HR_OK) return status;
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = number_at(piece + i * width, width);
        out[i] = number < 0 ? -1 : (int32_t)number;
        if (number >= 0 && number < rows->vocabulary) continue;
        if (labels && number == HR_LABEL_IGNORED) continue;
        return hr_fail(err, HR_CORRUPT,
                       "%.*s: %s[%lld, %lld] is %lld; the model has ids 0 to %lld%s", NAME_SHOWN,
                       rows->path, from->name, (long long)((first + i) / rows->length),
                       (long long)((first + i) % rows->length), (long long)number,
                       (long long)rows->vocabulary - 1, labels ? ", and -100 is ignored" : "");
    }
    return HR_OK;
}

/* Reads the targets of numbers [first, first + count), at most one chunk. */
static hr_status read_targets(const hr_token_rows *rows, int64_t first, int64_t count, int32_t *out,
                              hr_error *err)
{
    if (rows->labels.width) return read_piece(rows, &rows->labels, first, count, out, err);
    const bool ends = (first + count) % rows->length == 0; /* this chunk ends the row */
    const hr_status status = read_piece(rows, &rows->ids, first + 1, count - ends, out, err);
    if (status == HR_OK && ends) out[count - 1] = -1;
    return status;
}

hr_status hr_token_rows_read(const hr_token_rows *rows, int64_t row, int32_t *ids, int32_t *targets,
                             int64_t *count, hr_error *err)
{
    int32_t unwanted[PIECE_NUMBERS];
    int64_t counted = 0;
    for (int64_t t = 0; t < rows->length; t += PIECE_NUMBERS) {
        const int64_t here = hr_min(PIECE_NUMBERS, rows->length - t);
        const int64_t first = row * rows->length + t;
        int32_t *after = targets ? targets + t : unwanted;
        hr_status status = HR_OK;
        if (ids) status = read_piece(rows, &rows->ids, first, here, ids + t, err);
        if (status == HR_OK) status = read_targets(rows, first, here, after, err);
        if (status != HR_OK) return status;
        for (int64_t i = 0; i < here; i++) counted += after[i] >= 0;
    }
    *count = counted;
    return HR_OK;
}

/* How labels relate to input_ids. */
typedef struct {
    bool repeat;  /* every label that is not ignored equals the id at its own position */
    bool is_next; /* every such label equals the next id, if that is in the same chunk */
} relation;

static void relate(const hr_token_rows *rows, int64_t first, int64_t count, const int32_t *ids,
                   const int32_t *labels, relation *related)
{
    for (int64_t i = 0; i < count; i++) {
        if (labels[i] < 0) continue;
        const bool has_next = i + 1 < count && (first + i) % rows->length + 1 < rows->length;
        related->repeat &= labels[i] == ids[i];
        if (has_next) related->is_next &= labels[i] == ids[i + 1];
    }
}

hr_status hr_token_rows_check(const hr_token_rows *rows, const volatile sig_atomic_t *interrupts,
                              hr_token_rows_facts *facts, hr_error *err)
{
    const int64_t numbers = rows->rows * rows->length;
    relation related = { true, true };
    int64_t counted = 0;
    for (int64_t first = 0; first < numbers; first += PIECE_NUMBERS) {
        int32_t ids[PIECE_NUMBERS], labels[PIECE_NUMBERS];
        const int64_t here = hr_min(PIECE_NUMBERS, numbers - first);
        if (interrupts && *interrupts > 0)
            return hr_fail(err, HR_INTERRUPTED,
                           "interrupted before the first step; nothing was saved");
        hr_status status = read_piece(rows, &rows->ids, first, here, ids, err);
        if (status == HR_OK) status = read_piece(rows, &rows->labels, first, here, labels, err);
        if (status != HR_OK) return status;
        for (int64_t i = 0; i < here; i++) counted += labels[i] >= 0;
        relate(rows, first, here, ids, labels, &related);
    }
    if (counted == 0)
        return hr_fail(err, HR_CORRUPT, "%.*s: all %lld labels are -100: there is nothing to learn",
                       NAME_SHOWN, rows->path, (long long)numbers);
    if (related.repeat && !related.is_next)
        return hr_fail(
            err, HR_CORRUPT,
            "%.*s: labels equal input_ids; each label must be the next token: shift them "
            "by one",
            NAME_SHOWN, rows->path);
    *facts = (hr_token_rows_facts){ counted };
    return HR_OK;
}
