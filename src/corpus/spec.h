/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/spec.h - parses data.train and data.valid: parts separated by semicolons, each a file,
 * folder or pattern, followed by options.
 *
 *     wiki/ weight=0.7; code-*.jsonl.gz weight=0.3
 *     synthetic tokens=1000000 seed=7 */
#ifndef HR_CORPUS_SPEC_H
#define HR_CORPUS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum {
    HR_SPEC_PARTS_MAX = 16,
    HR_MIX_BLOCK_MAX = 65536 /* largest block of rows in which a mixture has exact shares */
};

typedef struct {
    const char *path; /* [path_bytes] within the recipe's text; not null-terminated */
    int64_t path_bytes;
    double weight;     /* 0: none was given */
    int32_t ids_bytes; /* bytes of a raw id, 2 or 4, if the recipe declares raw ids; else 0 */
    /* not a file: ids of corpus/synthetic.h, of this many tokens (0: the default) and this seed */
    bool synthetic;
    int64_t tokens, seed;
} hr_spec_part;

typedef struct {
    hr_spec_part parts[HR_SPEC_PARTS_MAX];
    int32_t count;
    /* all parts have weights and are separate texts; otherwise all parts are one text */
    bool weighted;
    double share; /* data.valid: fraction of the documents to hold out; 0: parts are given */
} hr_spec;

/* Parses a text of the recipe without modifying it. `key` is for error messages. An empty text has
 * no parts.
 * Errors   USAGE  names the part. */
HR_MUST_CHECK hr_status hr_spec_read(hr_spec *spec, const char *key, const char *text,
                                     hr_error *err);

/* Whether a part is a folder ("corpus/"), or written as a pattern (with * ? or [). Pure. */
bool hr_spec_is_folder(const hr_spec_part *part);
bool hr_spec_is_pattern(const hr_spec_part *part);

/* Converts weights to integer shares of a block of rows: the smallest block in which they are
 * exact, or HR_MIX_BLOCK_MAX rows, rounded so that the sum is exact.
 *
 *   shares  [count] out, each at least 1
 *
 * Errors   USAGE  a weight is too small for one row of the largest block. */
HR_MUST_CHECK hr_status hr_spec_shares(const hr_spec *spec, int64_t *shares, int64_t *block,
                                       hr_error *err);

#endif
