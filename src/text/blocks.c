/* SPDX-License-Identifier: Apache-2.0 */
/* text/blocks.c - reads and writes checksummed blocks. The block's index is the seed of its
 * checksum, so exchanged blocks are detected. */
#include "text/blocks.h"

#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/path.h"

static uint64_t checksum(const uint8_t *block, int64_t index)
{
    return XXH3_64bits_withSeed(block + 8, HR_BLOCK_PAYLOAD, (uint64_t)index);
}

static void set_checksum(uint8_t *block, int64_t index)
{
    const uint64_t sum = checksum(block, index);
    memcpy(block, &sum, sizeof sum);
}

/* Size of a file with this payload. */
static int64_t file_bytes(int64_t payload_bytes)
{
    return (1 + (payload_bytes + HR_BLOCK_PAYLOAD - 1) / HR_BLOCK_PAYLOAD) * HR_BLOCK_BYTES;
}

hr_status hr_blocks_begin(hr_blocks_writer *writer, const char *directory, const char *name,
                          uint8_t *staging, hr_error *err)
{
    writer->staging = staging;
    writer->block = 1;
    writer->used = 0;
    writer->payload_bytes = 0;
    memset(staging, 0, HR_BLOCK_BYTES);
    const hr_status status = hr_file_begin(&writer->out, directory, name, err);
    if (status != HR_OK) return status;
    /* Reserve block 0 for the header, which is written at commit. */
    return hr_file_append(&writer->out, staging, HR_BLOCK_BYTES, err);
}

/* Writes the staged blocks; pads the last one with zeros. */
static hr_status write_staged(hr_blocks_writer *writer, hr_error *err)
{
    const int64_t count = (writer->used + HR_BLOCK_PAYLOAD - 1) / HR_BLOCK_PAYLOAD;
    const int64_t tail = count * HR_BLOCK_PAYLOAD - writer->used;
    memset(writer->staging + count * HR_BLOCK_BYTES - tail, 0, (size_t)tail);
    for (int64_t i = 0; i < count; i++)
        set_checksum(writer->staging + i * HR_BLOCK_BYTES, writer->block + i);
    writer->block += count;
    writer->used = 0;
    return hr_file_append(&writer->out, writer->staging, count * HR_BLOCK_BYTES, err);
}

hr_status hr_blocks_append(hr_blocks_writer *writer, const void *memory, int64_t bytes,
                           hr_error *err)
{
    const uint8_t *from = memory;
    writer->payload_bytes += bytes;
    while (bytes > 0) {
        const int64_t block = writer->used / HR_BLOCK_PAYLOAD;
        const int64_t inside = writer->used % HR_BLOCK_PAYLOAD;
        const int64_t part = hr_min(bytes, HR_BLOCK_PAYLOAD - inside);
        memcpy(writer->staging + block * HR_BLOCK_BYTES + 8 + inside, from, (size_t)part);
        writer->used += part;
        from += part;
        bytes -= part;
        if (writer->used < HR_BLOCKS_STAGED * HR_BLOCK_PAYLOAD) continue;
        const hr_status status = write_staged(writer, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Rolling back discards staged blocks; blocks written after the mark are overwritten later. */
void hr_blocks_mark_here(const hr_blocks_writer *writer, hr_blocks_mark *mark)
{
    mark->payload_bytes = writer->payload_bytes;
    memcpy(mark->block, writer->staging + writer->used / HR_BLOCK_PAYLOAD * HR_BLOCK_BYTES,
           (size_t)(writer->used % HR_BLOCK_PAYLOAD) + 8);
}

hr_status hr_blocks_rollback(hr_blocks_writer *writer, const hr_blocks_mark *mark, hr_error *err)
{
    HR_ASSERT(mark->payload_bytes <= writer->payload_bytes);
    const int64_t block = 1 + mark->payload_bytes / HR_BLOCK_PAYLOAD;
    const int64_t inside = mark->payload_bytes % HR_BLOCK_PAYLOAD;
    writer->payload_bytes = mark->payload_bytes;
    if (block >= writer->block) {
        writer->used = (block - writer->block) * HR_BLOCK_PAYLOAD + inside;
        return HR_OK;
    }
    memcpy(writer->staging, mark->block, (size_t)inside + 8);
    writer->block = block;
    writer->used = inside;
    return hr_file_cut(&writer->out, block * HR_BLOCK_BYTES, err);
}

hr_status hr_blocks_commit(hr_blocks_writer *writer, hr_blocks_header *header, int64_t bytes,
                           hr_error *err)
{
    HR_ASSERT(bytes >= (int64_t)sizeof *header && bytes <= HR_BLOCK_PAYLOAD);
    hr_status status = write_staged(writer, err);
    if (status != HR_OK) return status;
    header->payload_bytes = writer->payload_bytes;
    HR_ASSERT(writer->out.bytes == file_bytes(header->payload_bytes));
    memset(writer->staging, 0, HR_BLOCK_BYTES);
    memcpy(writer->staging + 8, header, (size_t)bytes);
    set_checksum(writer->staging, 0);
    status = hr_file_rewrite(&writer->out, 0, writer->staging, HR_BLOCK_BYTES, err);
    return status == HR_OK ? hr_file_commit(&writer->out, err) : status;
}

void hr_blocks_abort(hr_blocks_writer *writer)
{
    hr_file_abort(&writer->out);
}

static hr_status damaged(const hr_blocks *blocks, int64_t block, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%s: block %lld (bytes %lld to %lld) is damaged (wrong checksum): delete the "
                   "file and run again",
                   blocks->path, (long long)block, (long long)(block * HR_BLOCK_BYTES),
                   (long long)((block + 1) * HR_BLOCK_BYTES));
}

/* Reads blocks [block, block + count) into staging and verifies them. */
static hr_status stage(hr_blocks *blocks, int64_t block, int64_t count, hr_error *err)
{
    blocks->count = 0;
    const hr_status status = hr_file_read(blocks->file, blocks->path, block * HR_BLOCK_BYTES,
                                          blocks->staging, count * HR_BLOCK_BYTES, err);
    if (status != HR_OK) return status;
    for (int64_t i = 0; i < count; i++) {
        uint64_t sum;
        memcpy(&sum, blocks->staging + i * HR_BLOCK_BYTES, sizeof sum);
        if (sum != checksum(blocks->staging + i * HR_BLOCK_BYTES, block + i))
            return damaged(blocks, block + i, err);
    }
    blocks->block = block;
    blocks->count = count;
    return HR_OK;
}

/* Reads block 0; verifies magic, version and the file's size. */
static hr_status read_header(hr_blocks *blocks, const char *magic, uint32_t version,
                             hr_blocks_header *header, int64_t length, hr_error *err)
{
    if (length < HR_BLOCK_BYTES)
        return hr_fail(err, HR_CORRUPT,
                       "%s: has %lld bytes, its header needs %d: delete the file and run again",
                       blocks->path, (long long)length, HR_BLOCK_BYTES);
    const hr_status status = stage(blocks, 0, 1, err);
    if (status != HR_OK) return status;
    memcpy(header, blocks->staging + 8, sizeof *header);
    if (memcmp(header->magic, magic, sizeof header->magic) != 0 || header->version != version)
        return hr_fail(err, HR_CORRUPT,
                       "%s: is not a %.8s file of version %u: delete the file and run again",
                       blocks->path, magic, version);
    if (header->payload_bytes < 0 || header->payload_bytes > length ||
        file_bytes(header->payload_bytes) != length)
        return hr_fail(err, HR_CORRUPT,
                       "%s: has %lld bytes, too few for its content of %lld: delete the file and "
                       "run again",
                       blocks->path, (long long)length, (long long)header->payload_bytes);
    return HR_OK;
}

hr_status hr_blocks_open(hr_blocks *blocks, const char *path, uint8_t *staging, const char *magic,
                         uint32_t version, void *header, int64_t bytes, hr_error *err)
{
    hr_blocks opened = { .staging = staging, .file = -1 };
    hr_blocks_header found;
    int64_t length = 0;
    hr_status status = hr_path_join("", path, opened.path, sizeof opened.path, err);
    if (status == HR_OK) status = hr_file_open(path, &opened.file, &length, err);
    if (status == HR_OK) status = read_header(&opened, magic, version, &found, length, err);
    if (status != HR_OK) {
        hr_file_close(&opened.file);
        return status;
    }
    memcpy(header, staging + 8, (size_t)bytes);
    opened.payload_bytes = found.payload_bytes;
    *blocks = opened;
    return HR_OK;
}

void hr_blocks_close(hr_blocks *blocks)
{
    hr_file_close(&blocks->file);
}

hr_status hr_blocks_read(hr_blocks *blocks, int64_t offset, void *memory, int64_t bytes,
                         hr_error *err)
{
    HR_ASSERT(offset >= 0 && bytes >= 0 && bytes <= blocks->payload_bytes - offset);
    uint8_t *to = memory;
    while (bytes > 0) {
        const int64_t block = 1 + offset / HR_BLOCK_PAYLOAD, inside = offset % HR_BLOCK_PAYLOAD;
        if (block < blocks->block || block >= blocks->block + blocks->count) {
            const int64_t last = 1 + (offset + bytes - 1) / HR_BLOCK_PAYLOAD;
            const hr_status status = stage(blocks, block,
                                           hr_min(last - block + 1, HR_BLOCKS_STAGED), err);
            if (status != HR_OK) return status;
        }
        const int64_t part = hr_min(bytes, HR_BLOCK_PAYLOAD - inside);
        memcpy(to, blocks->staging + (block - blocks->block) * HR_BLOCK_BYTES + 8 + inside,
               (size_t)part);
        to += part;
        offset += part;
        bytes -= part;
    }
    return HR_OK;
}
