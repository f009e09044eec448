/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/plain.c - the tokenizers of data.tokenizer that have no merges: bytes, and the words of
 * a trained model. Both encode a text in one pass, as training does. */
#include <string.h>

#include "base/checked.h"
#include "tokenize/encode_session.h"

enum { BYTES = 256 };

static hr_status open_region(hr_tokenize *t, int64_t bytes, hr_error *err)
{
    return hr_memory_region_open(&t->memory, "a tokenizer's tables", bytes, &t->tables, err);
}

/* Bytes of place_tokens. */
static int64_t tokens_bytes(int64_t ids, int64_t text_bytes)
{
    return (int64_t)sizeof(hr_tokenizer) + 6 * (ids + 1) + text_bytes + 5 * 64;
}

/* Places a tokenizer that can only decode. The caller writes the texts. */
static void place_tokens(hr_tokenize *t, int64_t ids, int64_t text_bytes)
{
    hr_tokenizer *made = hr_region_take(&t->tables, 1, sizeof *made);
    made->ids = made->tokens = made->bpe.size.ids = ids;
    made->bpe.orderly = true;
    made->bpe.text_at = hr_region_take(&t->tables, ids + 1, sizeof *made->bpe.text_at);
    made->bpe.text = hr_region_take_raw(&t->tables, text_bytes, 1);
    made->bpe.present = hr_region_take_raw(&t->tables, ids, 1);
    made->marks = hr_region_take(&t->tables, ids, 1);
    memset(made->bpe.present, HR_BPE_PLAIN, (size_t)ids);
    t->tokenizer = made;
}

static void add_token(hr_bpe *bpe, int64_t id, const uint8_t *text, int64_t bytes)
{
    memcpy(bpe->text + bpe->text_at[id], text, (size_t)bytes);
    bpe->text_at[id + 1] = bpe->text_at[id] + (uint32_t)bytes;
    bpe->longest_bytes = (int32_t)hr_max(bpe->longest_bytes, bytes);
}

static hr_status open_bytes(hr_tokenize *t, hr_error *err)
{
    const hr_status status = open_region(t, tokens_bytes(BYTES, BYTES), err);
    if (status != HR_OK) return status;
    place_tokens(t, BYTES, BYTES);
    for (int32_t id = 0; id < BYTES; id++) {
        const uint8_t byte = (uint8_t)id;
        add_token(&t->tokenizer->bpe, id, &byte, 1);
    }
    t->tokenizer->form = "bytes";
    t->tokenizer->decoding.kind = HR_DECODING_BYTES;
    return HR_OK;
}

static hr_status open_words(hr_tokenize *t, hr_error *err)
{
    const hr_word_level_source source = { .path = t->source.path,
                                          .file_bytes = t->source.outline.bytes,
                                          .words = t->source.outline.vocab_count };
    hr_status status = hr_word_level_check(&source, err);
    if (status != HR_OK) return status;
    const int64_t ids = source.words, reading = hr_word_level_bytes(&source);
    status = open_region(t, reading + tokens_bytes(ids, source.file_bytes), err);
    if (status == HR_OK) status = hr_word_level_open(&t->words, &t->tables, &source, err);
    if (status != HR_OK) return status;
    place_tokens(t, ids, source.file_bytes);
    for (int64_t id = 0; id < ids; id++) {
        int64_t bytes;
        const uint8_t *text = hr_word_level_text(t->words, id, &bytes);
        add_token(&t->tokenizer->bpe, id, text + 1, bytes - 1); /* without the leading space */
    }
    t->tokenizer->form = "tokenizer.json";
    t->tokenizer->kind = HR_CHARACTER_BPE; /* joined as they are, not as characters of bytes */
    t->tokenizer->decoding.kind = HR_DECODING_JOINED;
    return HR_OK;
}

hr_status hr_encode_session_open_plain(hr_tokenize *t, hr_error *err)
{
    return t->source.words ? open_words(t, err) : open_bytes(t, err);
}

void hr_encode_session_describe_plain(hr_tokenize *t)
{
    hr_tokenize_info *info = &t->info;
    info->model = t->words ? "WordLevel" : "bytes";
    if (!t->words) return;
    info->piece_bytes = HR_WORD_BYTES;
    info->normalizes = true;
    info->stages[info->stage_count++] = "white space";
    info->end_id = hr_word_level_document_end(t->words);
}

static hr_status output(hr_tokenize *t, const uint32_t *ids, int64_t count, hr_error *err)
{
    const volatile sig_atomic_t *interrupts = t->request.interrupts;
    hr_encode_session_output(t, ids, count);
    return interrupts && __atomic_load_n(interrupts, __ATOMIC_RELAXED) > 0
               ? hr_fail(err, HR_INTERRUPTED, "interrupted while encoding")
               : HR_OK;
}

hr_status hr_encode_session_plain(hr_tokenize *t, const uint8_t *text, int64_t bytes, bool ends,
                                  const char *name, int64_t offset, hr_error *err)
{
    uint32_t ids[HR_WORD_LEVEL_AT_ONCE];
    hr_status status = HR_OK;
    if (t->words) hr_word_level_take(t->words, text, bytes, ends, name, offset);
    for (int64_t done = 0, count = HR_WORD_LEVEL_AT_ONCE;
         status == HR_OK && count == HR_WORD_LEVEL_AT_ONCE; done += count) {
        if (t->words) status = hr_word_level_next(t->words, ids, &count, err);
        else count = hr_min(bytes - done, HR_WORD_LEVEL_AT_ONCE);
        for (int64_t i = 0; !t->words && i < count; i++) ids[i] = text[done + i];
        if (status == HR_OK) status = output(t, ids, count, err);
    }
    return status;
}
