/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/inflow.c - pread, hash, unpack, hand out. */
#include "corpus/inflow.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"

int64_t hr_inflow_bytes(bool gzip, bool zstd)
{
    return (gzip || zstd ? HR_INFLOW_BYTES : 0) + (gzip ? hr_gunzip_bytes() : 0) +
           (zstd ? hr_unzstd_bytes() : 0);
}

void hr_inflow_place(hr_inflow *inflow, hr_region *region, bool gzip, bool zstd)
{
    *inflow = (hr_inflow){ .file = -1 };
    if (gzip || zstd) inflow->raw = hr_region_take_raw(region, 1, HR_INFLOW_BYTES);
    if (gzip) inflow->gunzip = hr_gunzip_place(hr_region_take_raw(region, 1, hr_gunzip_bytes()));
    if (zstd) inflow->unzstd = hr_unzstd_place(hr_region_take_raw(region, 1, hr_unzstd_bytes()));
}

void hr_inflow_begin(hr_inflow *inflow, const char *work, const hr_text_progress *progress,
                     int64_t total)
{
    inflow->work = work;
    inflow->progress = progress;
    inflow->done = 0;
    inflow->total = total;
    XXH3_INITSTATE(&inflow->hash);
    XXH3_128bits_reset(&inflow->hash);
}

hr_status hr_inflow_open(hr_inflow *inflow, const char *path, hr_file_packing packing,
                         hr_error *err)
{
    const hr_status status = hr_file_open(path, &inflow->file, &inflow->bytes, err);
    if (status != HR_OK) return status;
    inflow->path = path;
    inflow->packing = packing;
    inflow->offset = 0;
    inflow->at = inflow->end = inflow->raw;
    inflow->between = false;
    if (packing == HR_FILE_GZIP) hr_gunzip_begin(inflow->gunzip, path);
    if (packing == HR_FILE_ZSTD) hr_unzstd_begin(inflow->unzstd, path);
    return HR_OK;
}

void hr_inflow_close(hr_inflow *inflow)
{
    hr_file_close(&inflow->file);
}

/* The next bytes of the file as they are: as many as are wanted, or there are. */
static hr_status read_raw(hr_inflow *inflow, uint8_t *to, int64_t bytes, int64_t *count,
                          hr_error *err)
{
    const int64_t next = hr_min(hr_min(inflow->bytes - inflow->offset, bytes), HR_INFLOW_BYTES);
    hr_status status = hr_text_continue(inflow->progress, inflow->work, inflow->done, inflow->total,
                                        err);
    if (status == HR_OK)
        status = hr_file_read(inflow->file, inflow->path, inflow->offset, to, next, err);
    if (status != HR_OK) return status;
    XXH3_128bits_update(&inflow->hash, to, (size_t)next);
    inflow->offset += next;
    inflow->done += next;
    *count = next;
    return HR_OK;
}

/* A step of unpacking. At the end of the file, and of all that was packed, it makes nothing. */
static hr_status unpack(hr_inflow *inflow, uint8_t *to, int64_t bytes, int64_t *count,
                        hr_error *err)
{
    hr_unpacked unpacked = { 0 };
    hr_status status = HR_OK;
    if (inflow->at == inflow->end && inflow->offset < inflow->bytes) {
        int64_t read = 0;
        status = read_raw(inflow, inflow->raw, HR_INFLOW_BYTES, &read, err);
        inflow->at = inflow->raw;
        inflow->end = inflow->raw + read;
    }
    if (status != HR_OK) return status;
    const int64_t left = inflow->end - inflow->at;
    if (inflow->packing == HR_FILE_GZIP)
        status = hr_gunzip_step(inflow->gunzip, inflow->at, left, to, bytes, &unpacked, err);
    else status = hr_unzstd_step(inflow->unzstd, inflow->at, left, to, bytes, &unpacked, err);
    if (status != HR_OK) return status;
    inflow->at += unpacked.used;
    *count = unpacked.made;
    if (unpacked.used || unpacked.made || left) inflow->between = unpacked.between;
    return HR_OK;
}

static hr_status cut_short(const hr_inflow *inflow, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s: truncated at byte %lld in the middle of its %s data",
                   inflow->path, (long long)inflow->bytes,
                   inflow->packing == HR_FILE_GZIP ? "gzip" : "zstd");
}

hr_status hr_inflow_read(hr_inflow *inflow, uint8_t *to, int64_t bytes, int64_t *count,
                         hr_error *err)
{
    *count = 0;
    while (*count < bytes) {
        int64_t made = 0;
        const int64_t offset = inflow->offset, left = inflow->end - inflow->at;
        const bool plain = inflow->packing == HR_FILE_PLAIN;
        const hr_status status = plain ? read_raw(inflow, to + *count, bytes - *count, &made, err)
                                       : unpack(inflow, to + *count, bytes - *count, &made, err);
        if (status != HR_OK) return status;
        *count += made;
        if (made) continue;
        if (plain) break;
        /* Nothing was made: more input may come, or some was taken in. */
        if (inflow->offset > offset || inflow->end - inflow->at < left) continue;
        if (inflow->offset == inflow->bytes && inflow->at == inflow->end) {
            if (!inflow->between) return cut_short(inflow, err);
            break;
        }
        HR_ASSERT(inflow->at < inflow->end);
        return cut_short(inflow, err);
    }
    return HR_OK;
}

hr_status hr_inflow_pass(hr_inflow *inflow, uint8_t *scratch, int64_t bytes, hr_error *err)
{
    int64_t count = 1;
    hr_status status = HR_OK;
    while (status == HR_OK && count > 0)
        status = read_raw(inflow, scratch, hr_min(bytes, HR_INFLOW_BYTES), &count, err);
    return status;
}

void hr_inflow_add(hr_inflow *inflow, const void *memory, int64_t bytes)
{
    XXH3_128bits_update(&inflow->hash, memory, (size_t)bytes);
}

hr_text_hash hr_inflow_hash(const hr_inflow *inflow)
{
    const XXH128_hash_t hash = XXH3_128bits_digest(&inflow->hash);
    return (hr_text_hash){ hash.low64, hash.high64 };
}
