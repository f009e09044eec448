/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/kind.h - the kind of a file, determined by its name alone, never by its content. */
#ifndef HR_CORPUS_KIND_H
#define HR_CORPUS_KIND_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    HR_FILE_TEXT,   /* one document */
    HR_FILE_LINES,  /* JSON Lines: one object per line, each a document */
    HR_FILE_TOKENS, /* token ids from another program */
    HR_FILE_TABLE,  /* Parquet or Arrow: not supported */
    HR_FILE_ROWS    /* rows of token ids, which are no text of a corpus */
} hr_file_kind;

typedef enum { HR_FILE_PLAIN, HR_FILE_GZIP, HR_FILE_ZSTD } hr_file_packing;

typedef struct {
    hr_file_kind kind;
    hr_file_packing packing;
    /* the name has a known extension of a text or JSON Lines file; files with other names are text
     * too */
    bool known;
} hr_file_sort;

/* Kind of a file with name [bytes]. Pure. */
hr_file_sort hr_file_sort_of(const char *name, int64_t bytes);

#endif
