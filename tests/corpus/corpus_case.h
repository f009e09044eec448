/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_case.h - opens a corpus in exactly its planned memory, and renders its documents as text.
 */
#ifndef HR_TESTS_CORPUS_CASE_H
#define HR_TESTS_CORPUS_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "corpus/corpus.h"
#include "guard.h"
#include "support/folder.h"

typedef struct {
    hr_guard guard;
    hr_corpus *corpus;
} hr_corpus_case;

static inline hr_corpus_desc hr_corpus_case_desc(const char *train, const char *valid)
{
    return (hr_corpus_desc){ .train = train,
                             .valid = valid,
                             .text_field = "text",
                             .prompt_field = "prompt",
                             .completion_field = "completion",
                             .vocab_size = 50000,
                             .document_end = -1 };
}

static inline hr_status hr_corpus_case_open(hr_corpus_case *opened, const hr_corpus_desc *desc,
                                            hr_error *err)
{
    const int64_t bytes = hr_corpus_bytes(desc);
    opened->corpus = NULL;
    void *memory = hr_guard_open(&opened->guard, bytes);
    memset(memory, 0xa5, (size_t)bytes);
    return hr_corpus_open(&opened->corpus, memory, bytes, desc, err);
}

static inline void hr_corpus_case_close(hr_corpus_case *opened)
{
    hr_corpus_close(&opened->corpus);
    hr_guard_close(&opened->guard);
}

/* Renders a document as [text], a prompt in it as (text), and ids as #1#2. Discarded documents are
 * removed. The result does not depend on how documents are split into pieces. */
static inline hr_status hr_corpus_case_render(const hr_documents *documents, char *out,
                                              int64_t bytes, int64_t *bad_lines, hr_text_hash *hash,
                                              hr_error *err)
{
    hr_piece piece;
    int64_t used = 0, begun = 0;
    bool inside = false, prompt = false;
    hr_status status = documents->open(documents->context, "rendering", NULL, err);
    while (status == HR_OK) {
        status = documents->next(documents->context, &piece, err);
        if (status != HR_OK || !piece.path) break;
        if (piece.begins) {
            if (documents->is_ids && inside) out[used++] = ']';
            begun = used;
            out[used++] = '[';
            inside = true;
            prompt = false;
        }
        assert_true(inside);
        if (piece.discard) {
            used = begun;
            inside = prompt = false;
            continue;
        }
        if (!piece.targets && !prompt && piece.count + piece.segment_ends > 0 && !piece.ends)
            out[used++] = '(';
        prompt |= !piece.targets;
        assert_true(used + 10 * piece.count + 8 < bytes);
        for (int64_t i = 0; i < piece.count; i++)
            if (piece.ids) used += sprintf(out + used, "#%u", piece.ids[i]);
            else out[used++] = (char)piece.bytes[i];
        if (!piece.targets && piece.segment_ends && !piece.ends) out[used++] = ')';
        if (piece.ends) out[used++] = ']';
        inside = !piece.ends;
    }
    if (documents->is_ids && inside) out[used++] = ']';
    if (status == HR_OK && hash) *hash = documents->seen(documents->context, bad_lines);
    documents->close(documents->context);
    out[used] = 0;
    return status;
}

/* Renders the documents of data.train; returns an error as status and message. */
static inline hr_status hr_corpus_case_render_train(const hr_corpus_desc *desc, char *out,
                                                    int64_t bytes, int64_t *bad_lines,
                                                    hr_error *err)
{
    hr_corpus_case opened;
    hr_text_hash identity = { 0 }, seen = { 0 };
    int64_t files_bytes, lines = 0;
    *out = 0;
    hr_status status = hr_corpus_case_open(&opened, desc, err);
    if (status == HR_OK) {
        const hr_documents *documents = &hr_corpus_texts(opened.corpus)->train[0].documents;
        status = documents->identify(documents->context, NULL, &identity, &files_bytes, err);
        if (status == HR_OK)
            status = hr_corpus_case_render(documents, out, bytes, &lines, &seen, err);
        if (status == HR_OK) assert_true(hr_text_hash_equal(identity, seen));
        if (bad_lines) *bad_lines = lines;
    }
    hr_corpus_case_close(&opened);
    return status;
}

static inline void hr_corpus_case_assert_refused(hr_status status, const hr_error *err,
                                                 hr_status wanted, const char *sentence)
{
    if (status != wanted) fail_msg("status %d, not %d: %s", status, wanted, err->message);
    if (!strstr(err->message, sentence)) fail_msg("\"%s\" lacks \"%s\"", err->message, sentence);
    assert_null(strchr(err->message, '\n'));
}

#endif
