/* SPDX-License-Identifier: Apache-2.0 */
/* text/blocks.h - files in which no bit can change unseen.
 *
 * A file is blocks of 4096 bytes: a checksum of 8, then 4088 of content. Block 0 holds the header,
 * the rest one flat array of payload bytes. Reading checks exactly the blocks it touches.
 * docs/shards.md has the format. */
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

/* What headers begin with. `payload_bytes` is filled in by the writer. */
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

/* A place in the payload that a writer can go back to. */
typedef struct {
    int64_t payload_bytes;
    uint8_t block[HR_BLOCK_BYTES]; /* what the block that it lies in holds before it */
} hr_blocks_mark;

/* Begins `name` in `directory`. staging [HR_BLOCKS_BYTES] is borrowed. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_blocks_begin(hr_blocks_writer *writer, const char *directory,
                                        const char *name, uint8_t *staging, hr_error *err);

/* Adds memory [bytes] to the payload. After an error nothing is left of the file. */
HR_MUST_CHECK hr_status hr_blocks_append(hr_blocks_writer *writer, const void *memory,
                                         int64_t bytes, hr_error *err);

/* Remembers how long the payload is now. */
void hr_blocks_mark_here(const hr_blocks_writer *writer, hr_blocks_mark *mark);

/* Makes the payload again what it was at the mark. After an error nothing is left of the file. */
HR_MUST_CHECK hr_status hr_blocks_return(hr_blocks_writer *writer, const hr_blocks_mark *mark,
                                         hr_error *err);

/* Writes the header [bytes <= HR_BLOCK_PAYLOAD] and makes the file appear under its name. */
HR_MUST_CHECK hr_status hr_blocks_commit(hr_blocks_writer *writer, hr_blocks_header *header,
                                         int64_t bytes, hr_error *err);
void hr_blocks_abort(hr_blocks_writer *writer);

typedef struct {
    char path[HR_PATH_BYTES];
    uint8_t *staging;
    int64_t block, count; /* staged and checked: blocks [block, block + count) */
    int64_t payload_bytes;
    int file;
} hr_blocks;

/* Opens a file and reads its header.
 *
 *   staging  [HR_BLOCKS_BYTES], borrowed until the close
 *   magic    [8]; the file's must be the same, and its version `version`
 *   header   [bytes] out; begins with an hr_blocks_header
 *
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, cut short, or another kind or version of file. */
HR_MUST_CHECK hr_status hr_blocks_open(hr_blocks *blocks, const char *path, uint8_t *staging,
                                       const char *magic, uint32_t version, void *header,
                                       int64_t bytes, hr_error *err);
void hr_blocks_close(hr_blocks *blocks);

/* Reads payload bytes [offset, offset + bytes) into memory. They must be inside the payload.
 * Errors  CORRUPT  a block's checksum is wrong: says which. */
HR_MUST_CHECK hr_status hr_blocks_read(hr_blocks *blocks, int64_t offset, void *memory,
                                       int64_t bytes, hr_error *err);

#endif
