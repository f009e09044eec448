/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/corpus.h - the data files of a recipe as streams of documents.
 *
 * One reader in fixed memory serves all texts, one pass at a time, whatever the file sizes. The
 * pieces of a pass depend only on the files' content and the description. */
#ifndef HR_CORPUS_CORPUS_H
#define HR_CORPUS_CORPUS_H

#include "corpus/spec.h"
#include "text/documents.h"

enum { HR_CORPUS_LINE_BYTES = 1 << 20 }; /* longer lines are read in parts */

typedef struct {
    const char *train, *valid; /* as in the recipe; empty: none. All four strings are borrowed */
    const char *text_field, *prompt_field, *completion_field;
    bool skip_bad_lines;
    int64_t vocab_size;   /* limit for ids in files of token ids */
    int64_t document_end; /* id that ends documents in files of ids; -1: the ids are one document */
    int64_t line_bytes;   /* 0: HR_CORPUS_LINE_BYTES; tests use less */
} hr_corpus_desc;

/* One text of the recipe: its properties and its documents. */
typedef struct {
    hr_documents documents;
    int64_t files, bytes;
    int64_t share; /* rows per block of a mixture; else 0 */
} hr_corpus_text;

typedef struct {
    hr_corpus_text train[HR_SPEC_PARTS_MAX]; /* [train_count]: 1, or the parts of a mixture */
    hr_corpus_text valid;                    /* only if has_valid */
    int32_t train_count;
    bool has_valid, held_out; /* held_out: valid consists of documents of train */
    int64_t block;            /* rows of a block of a mixture; else 0 */
} hr_corpus_view;

typedef struct hr_corpus hr_corpus;

/* Bytes of an open corpus: a function of the description alone, without file access. 0 if the
 * description is invalid; hr_corpus_check returns the error. Pure. */
int64_t hr_corpus_bytes(const hr_corpus_desc *desc);

/* Checks the syntax of the description, without file access. Errors USAGE. */
HR_MUST_CHECK hr_status hr_corpus_read(const hr_corpus_desc *desc, hr_error *err);

/* Checks the syntax of the description, and that the files that it names individually exist. Errors
 * as hr_corpus_open. */
HR_MUST_CHECK hr_status hr_corpus_check(const hr_corpus_desc *desc, hr_error *err);

/* Lists the files, in memory [bytes], aligned to 64.
 *
 * Errors   USAGE  as hr_spec_read and hr_list_add; ids and text in one recipe; a held-out share of
 *                 documents of ids
 *          NO_FIT `bytes` is too small. */
HR_MUST_CHECK hr_status hr_corpus_open(hr_corpus **corpus, void *memory, int64_t bytes,
                                       const hr_corpus_desc *desc, hr_error *err);
void hr_corpus_close(hr_corpus **corpus);

/* Valid until the close. */
const hr_corpus_view *hr_corpus_texts(const hr_corpus *corpus);

/* Path of file `index` of a text of the view, for reports; null if there are fewer files. */
const char *hr_corpus_file(const hr_corpus *corpus, const hr_corpus_text *text, int64_t index);

#endif
