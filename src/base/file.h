/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.h - files that are read completely or not at all, and written completely or not at all.
 *
 * Uses only system calls on buffers of the caller and allocates nothing, so all functions may run
 * after the seal. Calls that a signal interrupts are resumed. */
#ifndef HR_BASE_FILE_H
#define HR_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_NAME_BYTES = 256 }; /* a file name without its directory, including the null byte */

/* The status of an open that failed with this errno: FAILURE if the system is short of files or
 * memory or cannot read its disk, else USAGE. */
hr_status hr_file_open_status(int code);

/* Returns true when a file of any kind has that name. */
bool hr_file_exists(const char *path);

/* Free bytes in the file system of a path; -1: unknown. */
int64_t hr_file_free_bytes(const char *path);

/* Returns true when the path is a directory or a link to one. */
bool hr_file_is_directory(const char *path);

/* Opens a regular file for reading.
 *
 *   file   out; a descriptor, for hr_file_close
 *   bytes  out; its current length
 *
 * Errors   USAGE    missing, unreadable, or not a regular file
 *          FAILURE  the system is short of files or memory. */
HR_MUST_CHECK hr_status hr_file_open(const char *path, int *file, int64_t *bytes, hr_error *err);

/* Closes a descriptor and sets it to -1. Accepts -1. */
void hr_file_close(int *file);

/* Reads exactly memory [bytes] starting at `offset`. `path` is for the error.
 * Errors   FAILURE  a system call failed
 *          CORRUPT  the file is too short. */
HR_MUST_CHECK hr_status hr_file_read(int file, const char *path, int64_t offset, void *memory,
                                     int64_t bytes, hr_error *err);

/* The same by direct I/O, past the cache of the system: reads the whole blocks around the bytes.
 *
 *   blocks  [bytes + 2 * HR_FILE_BLOCK], aligned to HR_FILE_BLOCK; they come to lie at the result
 *
 * Returns  where the bytes are in `blocks`; null: an error, as of hr_file_read. */
enum { HR_FILE_BLOCK = 4096 };
HR_MUST_CHECK void *hr_file_read_direct(int file, const char *path, int64_t offset, void *blocks,
                                        int64_t bytes, hr_error *err);

/* Opens a file again for direct I/O; -1: the file system refuses it. */
int hr_file_open_direct(int file);

/* A file being written. It has no name before the commit, so that a killed process leaves nothing
 * behind. On file systems without unnamed files it has a temporary name in the same directory.
 * After an error the temporary file is removed and the object is closed. One thread per object. */
typedef struct {
    int directory, file; /* -1: closed */
    int64_t bytes;       /* written so far */
    bool named;          /* it has its temporary name */
    char name[HR_NAME_BYTES];
    char temporary[HR_NAME_BYTES + 32];
} hr_file_out;

/* Starts a new file. Only a regular file may be replaced, not a directory, device, pipe or symbolic
 * link.
 *
 * Errors   USAGE    the directory is missing, the name is invalid, or it is not a regular file
 *          FAILURE  the directory is not writable. */
HR_MUST_CHECK hr_status hr_file_begin(hr_file_out *out, const char *directory, const char *name,
                                      hr_error *err);

/* Same as hr_file_begin, for a complete path. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_file_begin_path(hr_file_out *out, const char *path, hr_error *err);

/* Checks, without creating anything, that hr_file_begin_path would succeed. Errors as
 * hr_file_begin. */
HR_MUST_CHECK hr_status hr_file_check_place(const char *path, hr_error *err);

/* Checks that hr_file_begin_path would succeed and that an existing file may be replaced: it must
 * be empty or start with `begin`. This protects other files of the user.
 *
 *   begin  the first bytes of every file of this kind; a short text
 *   kind   name of the kind for the error: "plan"
 *
 * Errors as hr_file_check_place; USAGE also when the file starts differently or is unreadable. */
HR_MUST_CHECK hr_status hr_file_check_kind(const char *path, const char *begin, const char *kind,
                                           hr_error *err);

/* The same of a kind whose files have the text `is` at `at`. */
HR_MUST_CHECK hr_status hr_file_check_kind_at(const char *path, int64_t at, const char *is,
                                              const char *kind, hr_error *err);

/* Checks that a file, device or pipe of that name can be opened for writing, or that a file can be
 * created. Creates nothing and does not wait for the reader of a pipe.
 * Errors   USAGE    its directory is missing, or the path is a directory
 *          FAILURE  the open would fail. */
HR_MUST_CHECK hr_status hr_file_check_open(const char *path, hr_error *err);

/* Reserves space for `bytes` in the file system where it supports this, so that a full disk is
 * reported before writing. Errors FAILURE; the file is then closed and removed. */
HR_MUST_CHECK hr_status hr_file_reserve(hr_file_out *out, int64_t bytes, hr_error *err);

/* Appends memory [bytes]. Errors FAILURE, which includes a full disk. */
HR_MUST_CHECK hr_status hr_file_append(hr_file_out *out, const void *memory, int64_t bytes,
                                       hr_error *err);

/* Overwrites the file from `offset` <= out->bytes with memory [bytes]. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_file_rewrite(hr_file_out *out, int64_t offset, const void *memory,
                                        int64_t bytes, hr_error *err);

/* Truncates the file to `bytes` <= out->bytes. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_file_cut(hr_file_out *out, int64_t bytes, hr_error *err);

/* Flushes the file, renames it over an existing one, flushes the directory and closes. */
HR_MUST_CHECK hr_status hr_file_commit(hr_file_out *out, hr_error *err);

/* Returns true when both paths refer to the same file or directory. */
bool hr_file_is_one(const char *path, const char *other);

/* Copies a file to a name in a directory, through buffer [bytes]. Copying a file onto itself does
 * nothing.
 * Errors as hr_file_open, hr_file_begin and hr_file_append. */
HR_MUST_CHECK hr_status hr_file_copy(const char *from, const char *directory, const char *name,
                                     void *buffer, int64_t bytes, hr_error *err);

/* Removes the temporary file and closes. Does nothing when the object is closed. */
void hr_file_abort(hr_file_out *out);

#endif
