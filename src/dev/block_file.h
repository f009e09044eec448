/* SPDX-License-Identifier: Apache-2.0 */
/* dev/block_file.h - a scratch file of 4,096-byte blocks whose checksums are in memory.
 *
 * The file holds values of a run that do not fit into memory. It is worth nothing without the
 * process that wrote it: after a kill the next run replaces it. Direct I/O bypasses the page cache,
 * which a cgroup would charge. Every block that is read has the checksum with which it was
 * written, or the read fails. */
#ifndef HR_DEV_BLOCK_FILE_H
#define HR_DEV_BLOCK_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"

enum {
    /* Unit of checksums, and alignment of offsets, sizes and memory: what direct I/O needs on disks
     * with sectors of up to 4,096 bytes. A checksum of 4 bytes per block is 0.1 % of the data. */
    HR_BLOCK_BYTES = 4096,
    HR_BLOCK_FILE_RUN_BYTES = 256 /* name of the run, including the null byte */
};

typedef struct {
    const char *directory, *name;
    const char *run; /* name of the run, shown to people who look into the file; cut if longer */
    int64_t bytes;   /* of data: a multiple of HR_BLOCK_BYTES, > 0 */
} hr_block_file_options;

/* Private fields, except for `direct`. */
typedef struct {
    int file;      /* -1: closed */
    int directory; /* descriptor; the name of the file begins at path[name_at] */
    int32_t name_at;
    bool direct;    /* direct I/O; false: the file system has none, and pages are dropped instead */
    bool has_crc32; /* the instruction */
    int64_t bytes;
    uint32_t *checksums; /* of each block; 0: never written */
    char path[PATH_MAX];
} hr_block_file;

/* Whether a file, which is not opened for writing, is one of these: empty, or with their header. */
bool hr_block_file_is(const char *path);

/* Bytes in the region. */
int64_t hr_block_file_bytes(const hr_block_file_options *options);

/* Creates the file with mode 0600, reserves its space on the disk and locks it. A file that a
 * killed run left is replaced; any other file is refused. After an error there is no file, except
 * one that is refused or cannot be locked.
 *
 *   region  with hr_block_file_bytes(options); holds the checksums while the file is open
 *
 * Errors   USAGE    the path is too long, its directory is missing, or it has another kind of file
 *          NO_FIT   the disk is full, or the size exceeds a limit for files
 *          FAILURE  a system call failed; another process uses the file. */
HR_MUST_CHECK hr_status hr_block_file_open(hr_block_file *file,
                                           const hr_block_file_options *options, hr_region *region,
                                           hr_error *err);

/* Asserts that hr_block_file_write and _read accept these arguments. */
void hr_block_file_check(const hr_block_file *file, const void *memory, int64_t offset,
                         int64_t bytes);

/* Writes or reads memory [bytes] at `offset` of the data.
 *
 * Align    memory, offset and bytes to HR_BLOCK_BYTES
 * Errors   FAILURE  a system call failed
 *          CORRUPT  the file was removed or truncated; a block was never written, or differs from
 *                   what was written. Memory that was read has then no meaning
 * Threads  any, for ranges that do not overlap; ranges that do need an order between the calls. */
HR_MUST_CHECK hr_status hr_block_file_write(const hr_block_file *file, const void *memory,
                                            int64_t offset, int64_t bytes, hr_error *err);
HR_MUST_CHECK hr_status hr_block_file_read(const hr_block_file *file, void *memory, int64_t offset,
                                           int64_t bytes, hr_error *err);

/* Closes the file and removes it, if it still has its name in its directory, which may have been
 * moved. Accepts a closed or zeroed object. */
void hr_block_file_close(hr_block_file *file);

#endif
