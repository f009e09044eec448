/* SPDX-License-Identifier: Apache-2.0 */
/* text/source.c - pread, hash, hand out. */
#include "text/source.h"

#include "base/checked.h"
#include "base/file.h"

hr_status hr_source_open(hr_source *source, const char *path, const char *work, uint8_t *buffer,
                         const hr_text_progress *progress, hr_error *err)
{
    int file = -1;
    int64_t bytes = 0;
    const hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    source->path = path;
    source->work = work;
    source->progress = progress;
    source->piece = buffer + HR_SOURCE_MARGIN;
    source->bytes = bytes;
    source->offset = 0;
    source->file = file;
    XXH3_INITSTATE(&source->hash);
    XXH3_128bits_reset(&source->hash);
    return HR_OK;
}

void hr_source_close(hr_source *source)
{
    hr_file_close(&source->file);
}

hr_status hr_source_next(hr_source *source, int64_t *count, hr_error *err)
{
    const int64_t next = hr_min(source->bytes - source->offset, HR_SOURCE_BYTES);
    hr_status status = hr_text_continue(source->progress, source->work, source->offset,
                                        source->bytes, err);
    if (status == HR_OK)
        status = hr_file_read(source->file, source->path, source->offset, source->piece, next, err);
    if (status != HR_OK) return status;
    XXH3_128bits_update(&source->hash, source->piece, (size_t)next);
    source->offset += next;
    *count = next;
    return HR_OK;
}

hr_text_hash hr_source_hash(const hr_source *source)
{
    const XXH128_hash_t hash = XXH3_128bits_digest(&source->hash);
    return (hr_text_hash){ hash.low64, hash.high64 };
}
