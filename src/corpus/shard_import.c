/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/shard_import.c - parses little-endian headers and ids.
 * Source  llm.c, dev/data/data_common.py: 256 numbers of 32 bits, then the ids. */
#include "corpus/shard_import.h"

#include <string.h>

#include "base/checked.h"

enum {
    HEADER_BYTES = 1024,
    GPT2_MAGIC = 20240520,
    GPT2_VERSION = 1, /* 16-bit ids */
    LLAMA_MAGIC = 20240801,
    LLAMA_VERSION = 7 /* 32-bit ids */
};

static hr_status check_declared(hr_shard_import *tokens, const hr_input_stream *input_stream,
                                int32_t ids_bytes, const int32_t header[3], hr_error *err)
{
    const bool wide = header[0] == LLAMA_MAGIC;
    const int32_t version = wide ? LLAMA_VERSION : GPT2_VERSION;
    if (header[1] != version || header[2] < 0)
        return hr_fail(err, HR_CORRUPT,
                       "%s: its header says version %d and %d tokens; version %d is read",
                       input_stream->path, header[1], header[2], version);
    if (ids_bytes)
        return hr_fail(err, HR_USAGE, "%s: has a header with its type: remove ids=u%d",
                       input_stream->path, 8 * ids_bytes);
    *tokens = (hr_shard_import){ .id_bytes = wide ? 4 : 2, .declared = header[2] };
    return HR_OK;
}

hr_status hr_shard_import_begin(hr_shard_import *tokens, hr_input_stream *input_stream,
                                int32_t ids_bytes, uint8_t *buffer, hr_error *err)
{
    enum { NUMPY_BYTES = 6 };
    static const char numpy[] = "\x93NUMPY";
    int32_t header[3] = { 0 };
    int64_t count;
    const hr_status status = hr_input_stream_read(input_stream, buffer, HEADER_BYTES, &count, err);
    if (status != HR_OK) return status;
    if (count == HEADER_BYTES) memcpy(header, buffer, sizeof header);
    if (header[0] == GPT2_MAGIC || header[0] == LLAMA_MAGIC)
        return check_declared(tokens, input_stream, ids_bytes, header, err);
    if (!ids_bytes)
        return hr_fail(err, HR_USAGE,
                       "%s: has no llm.c header; for raw 16-bit ids, as nanoGPT writes them, add "
                       "ids=u16 after its name",
                       input_stream->path);
    if (count >= NUMPY_BYTES && memcmp(buffer, numpy, NUMPY_BYTES) == 0)
        return hr_fail(err, HR_USAGE,
                       "%s: is a NumPy file, whose header would be read as ids: write the ids "
                       "alone, with array.tofile(\"train.bin\")",
                       input_stream->path);
    *tokens = (hr_shard_import){ .id_bytes = ids_bytes, .declared = -1, .held = count };
    return HR_OK;
}

static hr_status check_end(const hr_shard_import *tokens, const hr_input_stream *input_stream,
                           hr_error *err)
{
    if (tokens->declared < 0 || tokens->declared == tokens->read) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s: its header says %lld tokens, it has %s%lld",
                   input_stream->path, (long long)tokens->declared,
                   tokens->read > tokens->declared ? "more than " : "",
                   (long long)hr_min(tokens->read, tokens->declared));
}

hr_status hr_shard_import_next(hr_shard_import *tokens, hr_input_stream *input_stream,
                               int64_t vocab_size, uint8_t *buffer, uint32_t *ids, int64_t *count,
                               hr_error *err)
{
    const int64_t width = tokens->id_bytes, room = HR_SHARD_IMPORT_AT_ONCE * width;
    int64_t read;
    const hr_status status = hr_input_stream_read(input_stream, buffer + tokens->held,
                                                  room - tokens->held, &read, err);
    if (status != HR_OK) return status;
    const int64_t bytes = tokens->held + read;
    tokens->held = 0;
    if (bytes % width)
        return hr_fail(err, HR_CORRUPT, "%s: ends with an incomplete id of %lld bytes",
                       input_stream->path, (long long)width);
    *count = bytes / width;
    for (int64_t i = 0; i < *count; i++) {
        ids[i] = 0;
        memcpy(&ids[i], buffer + i * width, (size_t)width);
        if (ids[i] < vocab_size) continue;
        return hr_fail(err, HR_CORRUPT,
                       "%s: token %lld is %u, but ids must be below model.vocab_size=%lld: it is "
                       "for another vocabulary, or has another id size",
                       input_stream->path, (long long)(tokens->read + i), ids[i],
                       (long long)vocab_size);
    }
    tokens->read += *count;
    if (tokens->declared >= 0 && (*count == 0 || tokens->read > tokens->declared))
        return check_end(tokens, input_stream, err);
    return HR_OK;
}
