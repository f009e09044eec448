/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/spec.h - what data.train and data.valid say: parts between semicolons, each a file, a
 * folder or a pattern, and words about it behind.
 *
 *     wiki/ weight=0.7; code-*.jsonl.gz weight=0.3 */
#ifndef HR_CORPUS_SPEC_H
#define HR_CORPUS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum {
    HR_SPEC_PARTS_MAX = 16,
    HR_MIX_BLOCK_MAX = 65536 /* rows in which a mixture has its shares exactly */
};

typedef struct {
    const char *path; /* [path_bytes] of the recipe's text: no null behind */
    int64_t path_bytes;
    double weight;     /* 0: none was given */
    int32_t ids_bytes; /* of an id, 2 or 4, where raw ids were said to be there; else 0 */
} hr_spec_part;

typedef struct {
    hr_spec_part parts[HR_SPEC_PARTS_MAX];
    int32_t count;
    bool weighted; /* all parts are, and each is a text of its own; else they are one text */
    double share;  /* data.valid: of all documents, held out; 0: parts are given */
} hr_spec;

/* Reads a recipe's text, which stays as it is. `key` is for sentences. An empty text has no parts.
 * Errors   USAGE  names the part. */
HR_MUST_CHECK hr_status hr_spec_read(hr_spec *spec, const char *key, const char *text,
                                     hr_error *err);

/* A part that is a folder ("corpus/"), or written like a pattern (with * ? or [). Pure. */
bool hr_spec_is_folder(const hr_spec_part *part);
bool hr_spec_is_pattern(const hr_spec_part *part);

/* Weights as whole shares of a block of rows: of the smallest block in which they are exact, or of
 * HR_MIX_BLOCK_MAX rows, rounded so that the sum holds.
 *
 *   shares  [count] out, each at least 1
 *
 * Errors   USAGE  a weight that gets no row of the largest block. */
HR_MUST_CHECK hr_status hr_spec_shares(const hr_spec *spec, int64_t *shares, int64_t *block,
                                       hr_error *err);

#endif
