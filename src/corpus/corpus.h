/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/corpus.h - the files of a recipe as documents.
 *
 * One reader in fixed memory, whatever the files' sizes: passes over texts take turns. What a pass
 * hands out is a function of the files' content and the description alone. */
#ifndef HR_CORPUS_CORPUS_H
#define HR_CORPUS_CORPUS_H

#include "corpus/spec.h"
#include "text/documents.h"

enum { HR_CORPUS_LINE_BYTES = 1 << 20 }; /* a longer line is read in parts */

typedef struct {
    const char *train, *valid; /* as recipes have them; empty: there is none. Borrowed, all four */
    const char *text_field, *prompt_field, *completion_field;
    bool skip_bad_lines;
    int64_t vocab_size;   /* ids that are there already are below */
    int64_t document_end; /* id that ends documents of such ids; -1: they are one document */
    int64_t line_bytes;   /* 0: HR_CORPUS_LINE_BYTES; tests have less */
} hr_corpus_desc;

/* A text of the recipe: what there is of it, and its documents. */
typedef struct {
    hr_documents documents;
    int64_t files, bytes;
    int64_t share; /* of a mixture's block; else 0 */
} hr_corpus_text;

typedef struct {
    hr_corpus_text train[HR_SPEC_PARTS_MAX]; /* [train_count]: 1, or the parts of a mixture */
    hr_corpus_text valid;                    /* where has_valid */
    int32_t train_count;
    bool has_valid, held_out; /* valid is documents of train */
    int64_t block;            /* of a mixture; else 0 */
} hr_corpus_view;

typedef struct hr_corpus hr_corpus;

/* Bytes of an open corpus: a function of the description alone, no file is looked at. 0 where it
 * cannot be read, which hr_corpus_check says. Pure. */
int64_t hr_corpus_bytes(const hr_corpus_desc *desc);

/* That the words of the description can be read; no file is looked at. Errors USAGE. */
HR_MUST_CHECK hr_status hr_corpus_read(const hr_corpus_desc *desc, hr_error *err);

/* That the description can be read, and the files that it names one by one are there.
 * Errors as hr_corpus_open. */
HR_MUST_CHECK hr_status hr_corpus_check(const hr_corpus_desc *desc, hr_error *err);

/* Lists the files, in memory [bytes], aligned to 64.
 *
 * Errors   USAGE  as hr_spec_read and hr_list_add; ids and text in one recipe; documents of ids
 *                 held out
 *          NO_FIT `bytes` is too small. */
HR_MUST_CHECK hr_status hr_corpus_open(hr_corpus **corpus, void *memory, int64_t bytes,
                                       const hr_corpus_desc *desc, hr_error *err);
void hr_corpus_close(hr_corpus **corpus);

/* Valid until the close. */
const hr_corpus_view *hr_corpus_look(const hr_corpus *corpus);

/* Path of file `index` of a text of the view, for reports; null past its end. */
const char *hr_corpus_file(const hr_corpus *corpus, const hr_corpus_text *text, int64_t index);

#endif
