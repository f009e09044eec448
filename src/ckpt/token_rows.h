/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/token_rows.h - rows of tokens, and what comes after each, out of a safetensors file.
 *
 * Two tensors [rows, tokens], I64 or I32: input_ids, and labels, where labels[b, t] is the token
 * after input_ids[b, t], or -100 where none is asked for. Without labels it is the next of its row,
 * and nothing after the last. Other tensors are let be. No row is held: each is read when it is
 * due, and its numbers are held against the vocabulary every time. */
#ifndef HR_CKPT_TOKEN_ROWS_H
#define HR_CKPT_TOKEN_ROWS_H

#include <signal.h>

#include "base/file.h"
#include "base/region.h"

enum {
    HR_TOKEN_ROWS_HEADER_MOST = 12 << 10, /* so that it is read on the stack */
    HR_LABEL_IGNORED = -100
};

/* Integers that lie one behind the other in a file. */
typedef struct {
    const char *name;
    int64_t offset;
    int32_t width; /* bytes of each: 4 or 8, the low ones first; 0: there are none */
} hr_token_numbers;

typedef struct {
    const char *path;     /* the caller's */
    int file;             /* descriptor; -1: closed */
    int64_t rows, length; /* and tokens of each */
    int64_t vocabulary;   /* ids and labels are below it */
    hr_token_numbers ids, labels;
} hr_token_rows;

/* What is known once every number was read. */
typedef struct {
    int64_t targets; /* labels that are not ignored */
} hr_token_rows_facts;

/* Opens a file and finds its two tensors. `vocabulary` is the caller's to set.
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  as hr_stored_open; a tensor is missing, of another type or shape; a header of
 *                   more than HR_TOKEN_ROWS_HEADER_MOST. */
HR_MUST_CHECK hr_status hr_token_rows_open(hr_token_rows *rows, const char *path, hr_error *err);

/* The same with a header of any size, and labels or none. `scratch` holds hr_stored_bytes(path)
 * while this runs. */
HR_MUST_CHECK hr_status hr_token_rows_open_in(hr_token_rows *rows, const char *path,
                                              hr_region *scratch, hr_error *err);

/* Reads everything once, labels too: a run should not meet the wrong id in its third week.
 *
 *   interrupts  once above 0, the rest is left; null: there are none
 *   facts       out
 *
 * Errors   CORRUPT  an id or a label that the vocabulary has not; no label that counts; labels that
 *                   repeat input_ids, each at its own place: they were not moved by one
 *          INTERRUPTED, and as hr_file_read. */
HR_MUST_CHECK hr_status hr_token_rows_check(const hr_token_rows *rows,
                                            const volatile sig_atomic_t *interrupts,
                                            hr_token_rows_facts *facts, hr_error *err);

/* Reads one row.
 *
 *   ids, targets  [length] out; a target that is ignored is -1. Null: not wanted
 *   count         out: targets that are not ignored
 *
 * Errors   CORRUPT  an id or a label that the vocabulary has not. As hr_file_read.
 * Cost     no allocation; pieces of 4 KiB on the stack. */
HR_MUST_CHECK hr_status hr_token_rows_read(const hr_token_rows *rows, int64_t row, int32_t *ids,
                                           int32_t *targets, int64_t *count, hr_error *err);

/* Closes the file. Accepts what is closed. */
void hr_token_rows_close(hr_token_rows *rows);

#endif
