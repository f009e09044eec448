/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/input_stream.c - reads with pread, hashes, and decompresses. */
#include "corpus/input_stream.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"

int64_t hr_input_stream_bytes(bool gzip, bool zstd)
{
    return (gzip || zstd ? HR_INPUT_STREAM_BYTES : 0) + (gzip ? hr_gunzip_bytes() : 0) +
           (zstd ? hr_unzstd_bytes() : 0);
}

void hr_input_stream_place(hr_input_stream *input_stream, hr_region *region, bool gzip, bool zstd)
{
    *input_stream = (hr_input_stream){ .file = -1 };
    if (gzip || zstd) input_stream->raw = hr_region_take_raw(region, 1, HR_INPUT_STREAM_BYTES);
    if (gzip)
        input_stream->gunzip = hr_gunzip_place(hr_region_take_raw(region, 1, hr_gunzip_bytes()));
    if (zstd)
        input_stream->unzstd = hr_unzstd_place(hr_region_take_raw(region, 1, hr_unzstd_bytes()));
}

void hr_input_stream_begin(hr_input_stream *input_stream, const char *work,
                           const hr_text_progress *progress, int64_t total)
{
    input_stream->work = work;
    input_stream->progress = progress;
    input_stream->done = 0;
    input_stream->total = total;
    XXH3_INITSTATE(&input_stream->hash);
    XXH3_128bits_reset(&input_stream->hash);
}

hr_status hr_input_stream_open(hr_input_stream *input_stream, const char *path,
                               hr_file_packing packing, hr_error *err)
{
    const hr_status status = hr_file_open(path, &input_stream->file, &input_stream->bytes, err);
    if (status != HR_OK) return status;
    input_stream->path = path;
    input_stream->packing = packing;
    input_stream->offset = 0;
    input_stream->at = input_stream->end = input_stream->raw;
    input_stream->between = false;
    if (packing == HR_FILE_GZIP) hr_gunzip_begin(input_stream->gunzip, path);
    if (packing == HR_FILE_ZSTD) hr_unzstd_begin(input_stream->unzstd, path);
    return HR_OK;
}

void hr_input_stream_close(hr_input_stream *input_stream)
{
    hr_file_close(&input_stream->file);
}

/* Reads the next bytes of the file without decompression; fewer than `bytes` only at its end. */
static hr_status read_raw(hr_input_stream *input_stream, uint8_t *to, int64_t bytes, int64_t *count,
                          hr_error *err)
{
    const int64_t next = hr_min(hr_min(input_stream->bytes - input_stream->offset, bytes),
                                HR_INPUT_STREAM_BYTES);
    hr_status status = hr_text_continue(input_stream->progress, input_stream->work,
                                        input_stream->done, input_stream->total, err);
    if (status == HR_OK)
        status = hr_file_read(input_stream->file, input_stream->path, input_stream->offset, to,
                              next, err);
    if (status == HR_CORRUPT) /* it has become shorter */
        return hr_fail(err, HR_FAILURE, "%s: changed while it was read: run again",
                       input_stream->path);
    if (status != HR_OK) return status;
    XXH3_128bits_update(&input_stream->hash, to, (size_t)next);
    input_stream->offset += next;
    input_stream->done += next;
    *count = next;
    return HR_OK;
}

/* Decompresses more data. At the end of the file and of the compressed data, count is 0. */
static hr_status unpack(hr_input_stream *input_stream, uint8_t *to, int64_t bytes, int64_t *count,
                        hr_error *err)
{
    hr_unpacked unpacked = { 0 };
    hr_status status = HR_OK;
    if (input_stream->at == input_stream->end && input_stream->offset < input_stream->bytes) {
        int64_t read = 0;
        status = read_raw(input_stream, input_stream->raw, HR_INPUT_STREAM_BYTES, &read, err);
        input_stream->at = input_stream->raw;
        input_stream->end = input_stream->raw + read;
    }
    if (status != HR_OK) return status;
    const int64_t left = input_stream->end - input_stream->at;
    if (input_stream->packing == HR_FILE_GZIP)
        status = hr_gunzip_step(input_stream->gunzip, input_stream->at, left, to, bytes, &unpacked,
                                err);
    else
        status = hr_unzstd_step(input_stream->unzstd, input_stream->at, left, to, bytes, &unpacked,
                                err);
    if (status != HR_OK) return status;
    input_stream->at += unpacked.used;
    *count = unpacked.made;
    if (unpacked.used || unpacked.made || left) input_stream->between = unpacked.between;
    return HR_OK;
}

static hr_status cut_short(const hr_input_stream *input_stream, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s: truncated at byte %lld in the middle of its %s data",
                   input_stream->path, (long long)input_stream->bytes,
                   input_stream->packing == HR_FILE_GZIP ? "gzip" : "zstd");
}

hr_status hr_input_stream_read(hr_input_stream *input_stream, uint8_t *to, int64_t bytes,
                               int64_t *count, hr_error *err)
{
    *count = 0;
    while (*count < bytes) {
        int64_t made = 0;
        const int64_t offset = input_stream->offset, left = input_stream->end - input_stream->at;
        const bool plain = input_stream->packing == HR_FILE_PLAIN;
        const hr_status status = plain ? read_raw(input_stream, to + *count, bytes - *count, &made,
                                                  err)
                                       : unpack(input_stream, to + *count, bytes - *count, &made,
                                                err);
        if (status != HR_OK) return status;
        *count += made;
        if (made) continue;
        if (plain) break;
        /* No output: continue if the decoder consumed input or more input can be read. */
        if (input_stream->offset > offset || input_stream->end - input_stream->at < left) continue;
        if (input_stream->offset == input_stream->bytes && input_stream->at == input_stream->end) {
            if (!input_stream->between) return cut_short(input_stream, err);
            break;
        }
        HR_ASSERT(input_stream->at < input_stream->end);
        return cut_short(input_stream, err);
    }
    return HR_OK;
}

hr_status hr_input_stream_pass(hr_input_stream *input_stream, uint8_t *scratch, int64_t bytes,
                               hr_error *err)
{
    int64_t count = 1;
    hr_status status = HR_OK;
    while (status == HR_OK && count > 0)
        status = read_raw(input_stream, scratch, hr_min(bytes, HR_INPUT_STREAM_BYTES), &count, err);
    return status;
}

void hr_input_stream_add(hr_input_stream *input_stream, const void *memory, int64_t bytes)
{
    XXH3_128bits_update(&input_stream->hash, memory, (size_t)bytes);
}

hr_text_hash hr_input_stream_hash(const hr_input_stream *input_stream)
{
    const XXH128_hash_t hash = XXH3_128bits_digest(&input_stream->hash);
    return (hr_text_hash){ hash.low64, hash.high64 };
}
