/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.h - files read whole or not at all, and files that appear whole or not at all.
 *
 * Only system calls on the caller's buffers: nothing here allocates, so all of it may run after the
 * memory is sealed. Calls that a signal cuts short are taken up again. */
#ifndef HR_BASE_FILE_H
#define HR_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_NAME_BYTES = 256 }; /* a file's name inside its directory, the null included */

/* What an error of the system means, in its words. Takes no memory, as strerror may. */
const char *hr_reason(int code);

/* Writes `directory`/`name` into path [bytes]. Errors USAGE too long. */
HR_MUST_CHECK hr_status hr_path_join(const char *directory, const char *name, char *path,
                                     int64_t bytes, hr_error *err);

/* Makes a directory and those above it that are missing, and flushes their names; one that is there
 * already is fine.
 * Errors   USAGE    something else has that name; too long
 *          FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_directory_make(const char *path, hr_error *err);

/* That hr_directory_make could make it, or that it is there, and that files can be put into it, as
 * far as can be known without making anything. Errors as hr_directory_make. */
HR_MUST_CHECK hr_status hr_directory_check(const char *path, hr_error *err);

/* Flushes the directory around a path, so that a name made there outlives a crash. Where nobody may
 * read that directory, nothing can be done. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_file_flush_name(const char *path, hr_error *err);

/* Whether something has that name. */
bool hr_file_exists(const char *path);

/* Bytes that may still be written to the file system of a path, -1 where it does not say. */
int64_t hr_file_free_bytes(const char *path);

/* Whether a directory has that name, through links. */
bool hr_file_is_directory(const char *path);

/* Opens a regular file for reading.
 *
 *   file   out; a descriptor, for hr_file_close
 *   bytes  out; its length now
 *
 * Errors   USAGE  missing, unreadable, a directory or another thing that is no regular file. */
HR_MUST_CHECK hr_status hr_file_open(const char *path, int *file, int64_t *bytes, hr_error *err);

/* Closes a descriptor and makes it -1. Accepts -1. */
void hr_file_close(int *file);

/* Reads exactly memory [bytes] from `offset` on. `path` is for the sentence.
 * Errors   FAILURE  the system refused
 *          CORRUPT  the file ends before. */
HR_MUST_CHECK hr_status hr_file_read(int file, const char *path, int64_t offset, void *memory,
                                     int64_t bytes, hr_error *err);

/* A file in the making. Until it is committed it has no name, so that a process that is killed
 * leaves nothing behind; where a file system cannot do that, a temporary one beside its place.
 * After an error the temporary file is gone and the object is closed. One thread per object. */
typedef struct {
    int directory, file; /* -1: closed */
    int64_t bytes;       /* written so far */
    bool named;          /* lies under its temporary name */
    char name[HR_NAME_BYTES];
    char temporary[HR_NAME_BYTES + 32];
} hr_file_out;

/* Only a regular file is ever replaced: not a directory, nor a device, a pipe or a link, behind
 * which there may be one.
 *
 * Errors   USAGE    the directory is missing, the name is no name, or what has it is no file
 *          FAILURE  the directory cannot be written. */
HR_MUST_CHECK hr_status hr_file_begin(hr_file_out *out, const char *directory, const char *name,
                                      hr_error *err);

/* The same for a whole path. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_file_begin_path(hr_file_out *out, const char *path, hr_error *err);

/* That hr_file_begin_path would begin, as far as can be known without making anything. Errors as
 * hr_file_begin. */
HR_MUST_CHECK hr_status hr_file_check_place(const char *path, hr_error *err);

/* That hr_file_begin_path would begin, and that a file which is there may go: it is empty or begins
 * as every file of this kind does. Anything else is somebody's.
 *
 *   begin  how a file of this kind begins; a short text
 *   kind   its name for the sentence: "plan"
 *
 * Errors as hr_file_check_place; USAGE also where the file begins otherwise, or cannot be read. */
HR_MUST_CHECK hr_status hr_file_check_kind(const char *path, const char *begin, const char *kind,
                                           hr_error *err);

/* That a file, device or pipe of that name can be opened for writing, or a file be made: again
 * without making, and without waiting for who reads a pipe.
 * Errors   USAGE    its directory is missing, or it is one itself
 *          FAILURE  the system would refuse. */
HR_MUST_CHECK hr_status hr_file_check_open(const char *path, hr_error *err);

/* Has the file system set aside room for a file that will have so many bytes, where it can: what
 * does not fit is told before it is written. Errors FAILURE, and the file is closed and gone. */
HR_MUST_CHECK hr_status hr_file_reserve(hr_file_out *out, int64_t bytes, hr_error *err);

/* Adds memory [bytes] at the end. Errors FAILURE, a full disk among them. */
HR_MUST_CHECK hr_status hr_file_append(hr_file_out *out, const void *memory, int64_t bytes,
                                       hr_error *err);

/* Writes memory [bytes] at `offset` <= out->bytes, over what is there. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_file_rewrite(hr_file_out *out, int64_t offset, const void *memory,
                                        int64_t bytes, hr_error *err);

/* Makes it as short as `bytes` <= out->bytes again. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_file_cut(hr_file_out *out, int64_t bytes, hr_error *err);

/* Flushes, renames over whatever has the name, flushes the directory, closes. */
HR_MUST_CHECK hr_status hr_file_commit(hr_file_out *out, hr_error *err);

/* Whether two paths lead to one file or directory. */
bool hr_file_is_one(const char *path, const char *other);

/* Copies a file under a name of a directory, through buffer [bytes]; onto itself it does nothing.
 * Errors as hr_file_open, hr_file_begin and hr_file_append. */
HR_MUST_CHECK hr_status hr_file_copy(const char *from, const char *directory, const char *name,
                                     void *buffer, int64_t bytes, hr_error *err);

/* Removes the temporary file and closes. Does nothing to an object that is closed. */
void hr_file_abort(hr_file_out *out);

#endif
