/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/sequences.c - tokens from safetensors, and text as bytes. */
#include "evaluate/sequences.h"

#include <string.h>

#include "base/checked.h"
#include "ckpt/safetensors.h"
#include "evaluate/questions.h"

enum { NO_LABEL = -100 };

int64_t hr_sequences_header_bytes(const char *path)
{
    const int64_t bytes = hr_stored_bytes(path);
    return bytes ? bytes : 1;
}

static hr_status take_tensor(hr_sequences *source, const hr_stored_tensor *tensor,
                             hr_sequences_ids *ids, hr_error *err)
{
    char shape[128];
    const char *dtype = tensor->dtype->name;
    if (strcmp(dtype, "I64") != 0 && strcmp(dtype, "I32") != 0)
        return hr_fail(err, HR_CORRUPT, "%s: %s is of type %s; it has to be I64 or I32",
                       source->path, tensor->name, dtype);
    if (tensor->rank != 2 || tensor->bytes == 0)
        return hr_fail(
            err, HR_CORRUPT, "%s: %s has shape %s; it has to be [sequences, tokens], one at least",
            source->path, tensor->name, hr_stored_shape(tensor, shape, (int64_t)sizeof shape));
    if (source->rows && (tensor->dims[0] != source->rows || tensor->dims[1] != source->length))
        return hr_fail(err, HR_CORRUPT, "%s: %s has shape %s, and input_ids [%lld, %lld]",
                       source->path, tensor->name,
                       hr_stored_shape(tensor, shape, (int64_t)sizeof shape),
                       (long long)source->rows, (long long)source->length);
    *ids = (hr_sequences_ids){ tensor->offset, strcmp(dtype, "I64") == 0 ? 8 : 4 };
    source->rows = tensor->dims[0];
    source->length = source->stride = tensor->dims[1];
    return HR_OK;
}

hr_status hr_sequences_open_tokens(hr_sequences *source, const char *path, hr_region *scratch,
                                   hr_error *err)
{
    hr_stored stored = { 0 };
    int64_t bytes;
    source->path = path;
    hr_status status = hr_file_open(path, &source->file, &bytes, err); /* a folder is none */
    if (status == HR_OK) status = hr_stored_open(&stored, path, scratch, err);
    if (status != HR_OK) return status;
    const hr_stored_tensor *ids = hr_stored_find(&stored, "input_ids");
    const hr_stored_tensor *labels = hr_stored_find(&stored, "labels");
    if (!ids) status = hr_fail(err, HR_CORRUPT, "%s has no tensor input_ids", path);
    if (status == HR_OK) status = take_tensor(source, ids, &source->ids, err);
    if (status == HR_OK && labels) status = take_tensor(source, labels, &source->labels, err);
    source->count = source->rows * source->length;
    hr_stored_close(&stored);
    return status;
}

hr_status hr_sequences_open_text(hr_sequences *source, const char *path, hr_error *err)
{
    source->path = path;
    source->is_text = true;
    source->ids.width = 1;
    const hr_status status = hr_file_open(path, &source->file, &source->count, err);
    if (status != HR_OK || source->count >= 2) return status;
    return hr_fail(err, HR_USAGE,
                   "%s has %lld bytes; two tokens at least are needed, one to come after another",
                   path, (long long)source->count);
}

void hr_sequences_cut(hr_sequences *source, int64_t context, int64_t stride)
{
    const int64_t asked = source->count - 1; /* nothing stands before the first token */
    source->length = hr_min(context, asked);
    source->stride = hr_min(stride, source->length);
    source->rows = 1 + (asked - source->length + source->stride - 1) / source->stride;
}

static int64_t integer_at(const uint8_t *bytes, int32_t width)
{
    uint64_t value = 0;
    for (int32_t i = width - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return width == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

/* Integers [count] of a file from number `first` on; `least` is the only one below 0. */
static hr_status read_ids(const hr_sequences *source, hr_sequences_ids from, const char *name,
                          int64_t first, int64_t count, int64_t least, int32_t *out, hr_error *err)
{
    uint8_t piece[HR_SEQUENCES_PIECE_BYTES];
    const int64_t held = HR_SEQUENCES_PIECE_BYTES / from.width;
    for (int64_t done = 0; done < count; done += held) {
        const int64_t here = hr_min(held, count - done);
        const hr_status status = hr_file_read(source->file, source->path,
                                              from.offset + (first + done) * from.width, piece,
                                              here * from.width, err);
        if (status != HR_OK) return status;
        for (int64_t i = 0; i < here; i++) {
            const int64_t id = integer_at(piece + i * from.width, from.width);
            out[done + i] = (int32_t)id;
            if (id >= 0 && id < source->vocabulary) continue;
            out[done + i] = -1;
            if (id == least) continue;
            return hr_fail(err, HR_USAGE, "%s: %s %lld is %lld; the model has ids 0 to %lld",
                           source->path, name, (long long)(first + done + i), (long long)id,
                           (long long)source->vocabulary - 1);
        }
    }
    return HR_OK;
}

/* A window of text, and the byte after it. What an earlier window asked for is not asked again. */
static hr_status read_window(const hr_sequences *source, int64_t row, int32_t *ids,
                             int32_t *targets, hr_error *err)
{
    const int64_t first = row * source->stride;
    const int64_t length = hr_min(source->length, source->count - 1 - first);
    const int64_t fresh = row == 0 ? 0 : source->length - source->stride;
    hr_status status = read_ids(source, source->ids, "byte", first, length, 0, ids, err);
    if (status == HR_OK)
        status = read_ids(source, source->ids, "byte", first + 1, length, 0, targets, err);
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
    const int64_t T = source->length;
    if (source->is_text) return read_window(source, row, ids, targets, err);
    if (source->choices) return hr_questions_read(source, row, ids, targets, err);
    hr_status status = read_ids(source, source->ids, "input_ids, token", row * T, T, 0, ids, err);
    if (status == HR_OK && source->labels.width)
        return read_ids(source, source->labels, "labels, token", row * T, T, NO_LABEL, targets,
                        err);
    for (int64_t t = 0; t < T; t++) targets[t] = t + 1 < T ? ids[t + 1] : -1;
    return status;
}

hr_status hr_sequences_check(const hr_sequences *source, int32_t *ids, int32_t *targets,
                             hr_error *err)
{
    if (source->ids.width == 1 && source->vocabulary > UINT8_MAX) return HR_OK;
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
}
