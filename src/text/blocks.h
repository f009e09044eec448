/* SPDX-License-Identifier: Apache-2.0 */
/* text/blocks.h - files in which every changed bit is detected.
 *
 * A file consists of blocks of 4096 bytes: a checksum of 8 bytes, then 4088 bytes of content. Block
 * 0 holds the header, the others hold one array of payload bytes. A read verifies exactly the
 * blocks that it touches. docs/shards.md specifies the format. */
#ifndef HR_TEXT_BLOCKS_H
#define HR_TEXT_BLOCKS_H

#include "base/file.h"
#include "headroom/config.h"
#include "text/pass.h"

enum {
    HR_BLOCK_BYTES = 4096,
    HR_BLOCK_PAYLOAD = HR_BLOCK_BYTES - 8,
    HR_BLOCKS_STAGED = 16,                              /* blocks read or written at once */
    HR_BLOCKS_BYTES = HR_BLOCKS_STAGED * HR_BLOCK_BYTES /* staging of a reader or a writer */
};

/* The beginning of every header. The writer sets `payload_bytes`. */
typedef struct {
    char magic[8];
    uint32_t version, reserved;
    int64_t payload_bytes;
} hr_blocks_header;

typedef struct {
    hr_file_out out;
    uint8_t *staging;
    int64_t block; /* index of the first staged block */
    int64_t used;  /* payload bytes staged */
    int64_t payload_bytes;
} hr_blocks_writer;

/* A position in the payload to which a writer can roll back. */
typedef struct {
    int64_t payload_bytes;
    uint8_t block[HR_BLOCK_BYTES]; /* content of its block before the position */
} hr_blocks_mark;

/* Begins file `name` in `directory`. staging [HR_BLOCKS_BYTES] is borrowed. Errors as
 * hr_file_begin. */
HR_MUST_CHECK hr_status hr_blocks_begin(hr_blocks_writer *writer, const char *directory,
                                        const char *name, uint8_t *staging, hr_error *err);

/* Appends memory [bytes] to the payload. On an error the file is removed. */
HR_MUST_CHECK hr_status hr_blocks_append(hr_blocks_writer *writer, const void *memory,
                                         int64_t bytes, hr_error *err);

/* Saves the current end of the payload in `mark`. */
void hr_blocks_mark_here(const hr_blocks_writer *writer, hr_blocks_mark *mark);

/* Rolls the payload back to the mark. On an error the file is removed. */
HR_MUST_CHECK hr_status hr_blocks_rollback(hr_blocks_writer *writer, const hr_blocks_mark *mark,
                                           hr_error *err);

/* Writes the header [bytes <= HR_BLOCK_PAYLOAD] and publishes the file under its name. */
HR_MUST_CHECK hr_status hr_blocks_commit(hr_blocks_writer *writer, hr_blocks_header *header,
                                         int64_t bytes, hr_error *err);
void hr_blocks_abort(hr_blocks_writer *writer);

typedef struct {
    char path[HR_PATH_BYTES];
    uint8_t *staging;
    int64_t block, count; /* blocks [block, block + count) are staged and verified */
    int64_t payload_bytes;
    int file;
} hr_blocks;

/* Opens a file and reads its header.
 *
 *   staging  [HR_BLOCKS_BYTES], borrowed until the close
 *   magic    [8]; must equal the file's, as `version` must
 *   header   [bytes] out; begins with an hr_blocks_header
 *
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, truncated, or another kind or version of file. */
HR_MUST_CHECK hr_status hr_blocks_open(hr_blocks *blocks, const char *path, uint8_t *staging,
                                       const char *magic, uint32_t version, void *header,
                                       int64_t bytes, hr_error *err);
void hr_blocks_close(hr_blocks *blocks);

/* Reads payload bytes [offset, offset + bytes) into memory. They must be inside the payload.
 * Errors  CORRUPT  a block's checksum is wrong: says which. */
HR_MUST_CHECK hr_status hr_blocks_read(hr_blocks *blocks, int64_t offset, void *memory,
                                       int64_t bytes, hr_error *err);

#endif
