/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/kind.h - what a file is, by its name alone: nothing is ever guessed from its content. */
#ifndef HR_CORPUS_KIND_H
#define HR_CORPUS_KIND_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    HR_FILE_TEXT,   /* a document */
    HR_FILE_LINES,  /* JSON, an object a line; each a document */
    HR_FILE_TOKENS, /* ids of another program */
    HR_FILE_TABLE   /* Parquet or Arrow: refused */
} hr_file_kind;

typedef enum { HR_FILE_PLAIN, HR_FILE_GZIP, HR_FILE_ZSTD } hr_file_packing;

typedef struct {
    hr_file_kind kind;
    hr_file_packing packing;
    bool known; /* its name says that it is text or lines; of any other name it is text too */
} hr_file_sort;

/* Of name [bytes]. Pure. */
hr_file_sort hr_file_sort_of(const char *name, int64_t bytes);

#endif
