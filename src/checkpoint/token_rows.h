/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/token_rows.h - rows of token ids and their targets from a safetensors file.
 *
 * The file has two tensors [rows, tokens] of dtype I64 or I32: input_ids, and labels, where
 * labels[b, t] is the token after input_ids[b, t], or -100 to ignore it. Without labels, the target
 * is the next token of the row; the last token has none. Other tensors are ignored. Rows are read
 * on demand, and every read checks all ids against the vocabulary. */
#ifndef HR_CHECKPOINT_TOKEN_ROWS_H
#define HR_CHECKPOINT_TOKEN_ROWS_H

#include <signal.h>

#include "base/file.h"
#include "base/region.h"

enum {
    HR_TOKEN_ROWS_HEADER_MOST = 12 << 10, /* small enough to parse on the stack */
    HR_LABEL_IGNORED = -100
};

/* A contiguous array of integers in a file. */
typedef struct {
    const char *name;
    int64_t offset;
    int32_t width; /* bytes of each: 4 or 8, little-endian; 0: no array */
} hr_token_numbers;

typedef struct {
    const char *path;     /* owned by the caller */
    int file;             /* descriptor; -1: closed */
    int64_t rows, length; /* rows, and tokens of each row */
    int64_t vocabulary;   /* every id and label is below it */
    hr_token_numbers ids, labels;
} hr_token_rows;

/* Results of a complete read. */
typedef struct {
    int64_t targets; /* labels that are not ignored */
} hr_token_rows_facts;

/* Opens a file and finds its two tensors. The caller sets `vocabulary`.
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  as hr_stored_open; a tensor is missing or has another dtype or shape; the
 *                   header is larger than HR_TOKEN_ROWS_HEADER_MOST. */
HR_MUST_CHECK hr_status hr_token_rows_open(hr_token_rows *rows, const char *path, hr_error *err);

/* As hr_token_rows_open, for a header of any size; labels are optional. `scratch` needs
 * hr_stored_bytes(path) during the call. */
HR_MUST_CHECK hr_status hr_token_rows_open_in(hr_token_rows *rows, const char *path,
                                              hr_region *scratch, hr_error *err);

/* Reads and checks all ids and labels before the run, so that a bad id cannot stop it weeks later.
 *
 *   interrupts  a value above 0 stops the check; may be null
 *   facts       out
 *
 * Errors   CORRUPT  an id or label outside the vocabulary; all labels are ignored; labels equal
 *                   input_ids, so they were not shifted by one
 *          INTERRUPTED, and as hr_file_read. */
HR_MUST_CHECK hr_status hr_token_rows_check(const hr_token_rows *rows,
                                            const volatile sig_atomic_t *interrupts,
                                            hr_token_rows_facts *facts, hr_error *err);

/* Reads one row.
 *
 *   ids, targets  [length] out; an ignored target is -1; may be null
 *   count         out: targets that are not ignored
 *
 * Errors   CORRUPT  an id or label outside the vocabulary. As hr_file_read.
 * Cost     no allocation; 4 KiB buffers on the stack. */
HR_MUST_CHECK hr_status hr_token_rows_read(const hr_token_rows *rows, int64_t row, int32_t *ids,
                                           int32_t *targets, int64_t *count, hr_error *err);

/* Closes the file. Accepts a closed object. */
void hr_token_rows_close(hr_token_rows *rows);

#endif
