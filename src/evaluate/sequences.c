/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/sequences.c - sequences from safetensors, and windows of a text. */
#include "evaluate/sequences.h"

#include "base/checked.h"
#include "checkpoint/safetensors.h"
#include "evaluate/multiple_choice.h"

int64_t hr_sequences_header_bytes(const char *path)
{
    const int64_t bytes = hr_stored_bytes(path);
    return bytes ? bytes : 1;
}

hr_status hr_sequences_open_tokens(hr_sequences *source, const char *path, hr_region *scratch,
                                   hr_error *err)
{
    source->path = path;
    source->tokens.vocabulary = source->vocabulary;
    const hr_status status = hr_token_rows_open_in(&source->tokens, path, scratch, err);
    if (status != HR_OK) return status;
    source->rows = source->tokens.rows;
    source->length = source->stride = source->tokens.length;
    source->count = source->rows * source->length;
    return HR_OK;
}

hr_status hr_sequences_open_text(hr_sequences *source, const char *path, hr_error *err)
{
    source->path = path;
    source->is_text = true;
    const hr_status status = hr_file_open(path, &source->file, &source->count, err);
    source->text_bytes = source->targets = source->count - 1;
    if (status != HR_OK || source->count >= 2) return status;
    return hr_fail(err, HR_CORRUPT, "%s: an evaluation needs two tokens, the text has %lld", path,
                   (long long)source->count);
}

hr_status hr_sequences_add(hr_sequences *source, const uint32_t *ids, int64_t count, hr_error *err)
{
    enum { IDS = 1024 };
    uint32_t marked[IDS];
    hr_status status = HR_OK;
    if (!source->masked) {
        source->targets += count;
        return hr_ids_file_add(&source->ids, ids, count, err);
    }
    for (int64_t done = 0; done < count && status == HR_OK; done += IDS) {
        const int64_t part = hr_min(count - done, IDS);
        for (int64_t i = 0; i < part; i++) marked[i] = ~ids[done + i];
        status = hr_ids_file_add(&source->ids, marked, part, err);
    }
    return status;
}

void hr_sequences_cut(hr_sequences *source, int64_t context, int64_t stride)
{
    const int64_t asked = source->count - 1; /* the first token has no context */
    source->length = hr_min(context, asked);
    source->stride = hr_min(stride, source->length);
    source->rows = 1 + (asked - source->length + source->stride - 1) / source->stride;
}

/* Reads tokens [count] of a text, starting at index `first`. */
static hr_status read_text(const hr_sequences *source, int64_t first, int64_t count, int32_t *out,
                           hr_error *err)
{
    enum { PIECE_BYTES = 4096 };
    uint8_t piece[PIECE_BYTES];
    if (source->file < 0) return hr_ids_file_read(&source->ids, first, count, out, err);
    for (int64_t done = 0; done < count; done += PIECE_BYTES) {
        const int64_t here = hr_min(PIECE_BYTES, count - done);
        const hr_status status = hr_file_read(source->file, source->path, first + done, piece, here,
                                              err);
        if (status != HR_OK) return status;
        for (int64_t i = 0; i < here; i++) {
            out[done + i] = piece[i];
            if (piece[i] < source->vocabulary) continue;
            return hr_fail(err, HR_USAGE, "%s: byte %lld is %d; the model has ids 0 to %lld",
                           source->path, (long long)(first + done + i), piece[i],
                           (long long)source->vocabulary - 1);
        }
    }
    return HR_OK;
}

/* Reads a window of a text and the token after it. Targets of earlier windows are not repeated. */
static hr_status read_window(const hr_sequences *source, int64_t row, int32_t *ids,
                             int32_t *targets, hr_error *err)
{
    const int64_t first = row * source->stride;
    const int64_t length = hr_min(source->length, source->count - 1 - first);
    const int64_t fresh = row == 0 ? 0 : source->length - source->stride;
    hr_status status = read_text(source, first, length, ids, err);
    if (status == HR_OK) status = read_text(source, first + 1, length, targets, err);
    for (int64_t t = 0; t < length && status == HR_OK; t++) {
        ids[t] = ids[t] < 0 ? ~ids[t] : ids[t];
        targets[t] = targets[t] < 0 ? -1 : targets[t];
    }
    for (int64_t t = length; t < source->length; t++) {
        ids[t] = 0;
        targets[t] = -1;
    }
    for (int64_t t = 0; t < fresh; t++) targets[t] = -1;
    return status;
}

hr_status hr_sequences_read(const hr_sequences *source, int64_t row, int32_t *ids, int32_t *targets,
                            hr_error *err)
{
    int64_t count;
    if (source->is_text) return read_window(source, row, ids, targets, err);
    if (source->choices) return hr_multiple_choice_read(source, row, ids, targets, err);
    return hr_token_rows_read(&source->tokens, row, ids, targets, &count, err);
}

hr_status hr_sequences_check(const hr_sequences *source, int32_t *ids, int32_t *targets,
                             hr_error *err)
{
    if (source->ids.file >= 0 && source->is_text)
        return HR_OK; /* checked while they were
                                                                 * written */
    if (source->is_text && source->vocabulary > UINT8_MAX) return HR_OK;
    for (int64_t row = 0; row < source->rows; row++) {
        const hr_status status = hr_sequences_read(source, row, ids, targets, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

int64_t hr_sequences_place(const hr_sequences *source, int64_t row, int64_t t)
{
    return (source->is_text ? row * source->stride : 0) + t + 1;
}

void hr_sequences_close(hr_sequences *source)
{
    hr_file_close(&source->file);
    hr_ids_file_close(&source->ids);
    hr_token_rows_close(&source->tokens);
}
