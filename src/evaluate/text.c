/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/text.c - tokenizes the documents in one pass, piece by piece. */
#include "evaluate/text.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "config/config.h"
#include "corpus/kind.h"

hr_status hr_evaluate_set_keys(const hr_evaluate_request *request, hr_config *config, hr_error *err)
{
    static const char *const accepted[] = { "data.text_field", "data.prompt_field",
                                            "data.completion_field", "data.bad_lines" };
    if (request->key_count && !request->text)
        return hr_fail(err, HR_USAGE, "%.60s: keys of a recipe need --file", request->keys[0]);
    for (int64_t k = 0; k < request->key_count; k++) {
        const char *word = request->keys[k];
        const size_t length = strcspn(word, "=");
        bool known = false;
        for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
            known |= strlen(accepted[i]) == length && !strncmp(word, accepted[i], length);
        if (!known)
            return hr_fail(err, HR_USAGE,
                           "\"%.60s\": the keys of eval are data.text_field, data.prompt_field, "
                           "data.completion_field and data.bad_lines",
                           word);
        const hr_status status = hr_config_set_word(config, word, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_corpus_desc hr_evaluate_corpus(const hr_config *config, const char *text)
{
    return (hr_corpus_desc){ .train = "",
                             .valid = text,
                             .text_field = config->data.text_field,
                             .prompt_field = config->data.prompt_field,
                             .completion_field = config->data.completion_field,
                             .skip_bad_lines = config->data.bad_lines == HR_BAD_LINES_SKIP,
                             .vocab_size = config->model.vocab_size,
                             .document_end = -1 };
}

bool hr_evaluate_is_ids(const char *text)
{
    hr_spec spec;
    if (hr_spec_read(&spec, "--file", text, NULL) != HR_OK || !spec.count) return false;
    const hr_spec_part *part = spec.parts;
    return part->ids_bytes || part->synthetic ||
           hr_file_sort_of(part->path, part->path_bytes).kind == HR_FILE_TOKENS;
}

bool hr_evaluate_is_plain(const char *text)
{
    const hr_file_sort sort = hr_file_sort_of(text, (int64_t)strlen(text));
    return hr_file_exists(text) && !hr_file_is_directory(text) && sort.kind == HR_FILE_TEXT &&
           sort.packing == HR_FILE_PLAIN;
}

typedef struct {
    hr_sequences *source;
    hr_tokens *tokens;
    int64_t document_end;             /* token id; -1: none */
    bool began, ended;                /* the document has text; an earlier one has */
    int64_t ids, targets, text_bytes; /* before the document */
    hr_error *err;
} reading;

static hr_status add_bytes(const reading *r, const hr_piece *piece)
{
    enum { IDS = 1024 };
    uint32_t ids[IDS];
    hr_status status = HR_OK;
    for (int64_t done = 0; done < piece->count && status == HR_OK; done += IDS) {
        const int64_t count = hr_min(piece->count - done, IDS);
        for (int64_t i = 0; i < count; i++) {
            ids[i] = piece->bytes[done + i];
            if (ids[i] >= r->source->vocabulary)
                return hr_fail(r->err, HR_USAGE, "%s: byte %lld is %d; the model has ids 0 to %lld",
                               piece->path, (long long)(piece->offset + done + i), (int)ids[i],
                               (long long)r->source->vocabulary - 1);
        }
        status = hr_sequences_add(r->source, ids, count, r->err);
    }
    return status;
}

/* Takes back what was read of a document. */
static hr_status discard(reading *r)
{
    r->began = false;
    r->source->targets = r->targets;
    r->source->text_bytes = r->text_bytes;
    if (r->tokens) hr_tokens_discard(r->tokens);
    return hr_ids_file_cut(&r->source->ids, r->ids, r->err);
}

/* Special tokens that a tokenizer adds around a text are added only around the first segment.
 * Between documents is the id that ends documents, as in training; empty ones are ignored. */
static hr_status add_piece(reading *r, const hr_piece *piece)
{
    hr_sequences *source = r->source;
    const uint32_t end = (uint32_t)r->document_end;
    hr_status status = HR_OK;
    if (piece->discard) return discard(r);
    if (piece->begins) {
        r->ended |= r->began;
        r->began = false;
        r->ids = source->ids.count;
        r->targets = source->targets;
        r->text_bytes = source->text_bytes;
    }
    if (!r->began && !piece->count && (piece->ends || !piece->segment_ends)) return HR_OK;
    if (!r->began && r->ended && r->document_end >= 0) {
        source->masked = false;
        status = hr_sequences_add(source, &end, 1, r->err);
    }
    r->began = true;
    if (status != HR_OK) return status;
    source->masked = !piece->targets;
    if (piece->ids) return hr_sequences_add(source, piece->ids, piece->count, r->err);
    if (piece->targets) source->text_bytes += piece->count;
    if (!r->tokens) return add_bytes(r, piece);
    status = hr_tokens_add(r->tokens, piece->bytes, piece->count, piece->segment_ends, piece->path,
                           piece->offset, r->err);
    if (piece->segment_ends) hr_tokens_omit_special(r->tokens);
    return status;
}

/* The first token is never predicted, so its bytes do not count. */
static hr_status exclude_first_token(const reading *r)
{
    hr_sequences *source = r->source;
    int32_t first = 0;
    int64_t bytes = 1;
    const hr_status status = hr_ids_file_read(&source->ids, 0, 1, &first, r->err);
    if (status != HR_OK || first < 0 || !source->text_bytes) return status;
    source->targets--;
    if (r->tokens && hr_tokens_is_special_prefix(r->tokens, first)) return HR_OK;
    if (r->tokens) hr_tokens_text(r->tokens, first, &bytes);
    source->text_bytes -= hr_min(bytes, source->text_bytes);
    return HR_OK;
}

hr_status hr_evaluate_read(hr_sequences *source, hr_corpus *corpus, hr_tokens *tokens,
                           const hr_text_progress *progress, int64_t *bad_lines, hr_error *err)
{
    const hr_corpus_view *view = hr_corpus_texts(corpus);
    const hr_documents *documents = &view->valid.documents;
    reading r = { .source = source,
                  .tokens = documents->is_ids ? NULL : tokens,
                  .document_end = -1,
                  .err = err };
    hr_piece piece;
    source->is_text = true;
    if (r.tokens) r.document_end = hr_tokens_document_end(tokens);
    hr_status status = documents->open(documents->context, "reading the text", progress, err);
    while (status == HR_OK) {
        status = documents->next(documents->context, &piece, err);
        if (status != HR_OK || !piece.path) break;
        status = add_piece(&r, &piece);
    }
    if (status == HR_OK) documents->seen(documents->context, bad_lines);
    documents->close(documents->context);
    if (status == HR_OK) status = hr_ids_file_flush(&source->ids, err);
    if (status != HR_OK) return status;
    source->count = source->ids.count;
    if (source->count < 2)
        return hr_fail(err, HR_CORRUPT, "%s: an evaluation needs two tokens, the text has %lld",
                       source->path, (long long)source->count);
    status = exclude_first_token(&r);
    if (status != HR_OK || source->targets > 0) return status;
    return hr_fail(err, HR_CORRUPT, "%s: has no target: every token of it is of a prompt",
                   source->path);
}
