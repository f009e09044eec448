/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/tokenize.c - opens a tokenizer with its memory and threads; decodes. */
#include "tokenize/encode_session.h"

#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"

static void describe(hr_tokenize *t)
{
    static const char *const models[] = { "byte-level BPE", "BPE of characters", "Unigram" };
    const hr_tokenizer *tokenizer = t->tokenizer;
    hr_tokenize_info *info = &t->info;
    *info = (hr_tokenize_info){ .form = tokenizer->form,
                                .ids = tokenizer->ids,
                                .tokens = tokenizer->tokens,
                                .hole = -1,
                                .merges = tokenizer->merges,
                                .added = tokenizer->added_count,
                                .model = models[tokenizer->kind],
                                .falls_back = tokenizer->bpe.falls_back,
                                .nfc = tokenizer->nfc,
                                .normalizes = hr_normalizer_acts(&tokenizer->normalizer),
                                .orderly = tokenizer->bpe.orderly,
                                .by_words = tokenizer->bpe.by_words,
                                .longest_bytes = tokenizer->bpe.longest_bytes,
                                .first_count = tokenizer->first_count,
                                .last_count = tokenizer->last_count,
                                .end_id = hr_tokenizer_document_end(tokenizer),
                                .table_bytes = t->tables.used,
                                .piece_bytes = hr_bpe_piece_bytes(&tokenizer->bpe,
                                                                  HR_PRETOKENIZER_WINDOW_MAX) };
    for (int32_t i = 0; i < tokenizer->added_count; i++)
        info->special += tokenizer->added[i].special;
    for (int64_t id = 0; id < tokenizer->ids && info->hole < 0; id++)
        if (tokenizer->bpe.present[id] == HR_BPE_ABSENT) info->hole = id;
    while (!t->plain && info->stage_count < HR_TOKENIZE_STAGES_MAX &&
           (info->stages[info->stage_count] = hr_pretokenizer_how(tokenizer->pretokenizer,
                                                                  info->stage_count)))
        info->stage_count++;
    memcpy(info->first, tokenizer->first, sizeof info->first);
    memcpy(info->last, tokenizer->last, sizeof info->last);
    if (t->plain) hr_encode_session_describe_plain(t);
}

static hr_status open_tables(hr_tokenize *t, const hr_tokenize_setting *setting, hr_error *err)
{
    hr_tokenizer_source *source = &t->source;
    hr_region scratch = { 0 };
    hr_status status = HR_OK;
    t->plain = !strcmp(setting->path, "bytes");
    if (!t->plain) status = hr_tokenizer_probe(source, setting->path, setting->pattern, err);
    t->plain |= source->words;
    if (status == HR_OK && t->plain) return hr_encode_session_open_plain(t, err);
    if (status == HR_OK)
        status = hr_memory_region_open(&t->memory, "a tokenizer's tables", source->table_bytes,
                                       &t->tables, err);
    if (status == HR_OK)
        status = hr_memory_region_open(&t->memory, "reading a tokenizer", source->scratch_bytes,
                                       &scratch, err);
    if (status == HR_OK)
        status = hr_tokenizer_place(&t->tokenizer, &t->tables, scratch, source, hr_cpu_detect(),
                                    err);
    hr_memory_region_close(&t->memory, &scratch);
    return status;
}

static hr_status open_window(hr_tokenize *t, int64_t more_bytes, hr_error *err)
{
    const int64_t bytes = HR_ENCODE_SESSION_WINDOW_BYTES + 64 + more_bytes;
    const hr_status status = hr_memory_region_open(&t->memory, "encoding", bytes, &t->work, err);
    if (status != HR_OK) return status;
    t->window = hr_region_take_raw(&t->work, HR_ENCODE_SESSION_WINDOW_BYTES, 1);
    t->window_bytes = HR_ENCODE_SESSION_WINDOW_BYTES;
    t->info.work_bytes = t->work.used;
    return HR_OK;
}

/* Opens a window, and an encoder per thread; with several threads also a window and an id buffer
 * per thread. */
static hr_status open_work(hr_tokenize *t, hr_error *err)
{
    if (t->plain) return open_window(t, 0, err);
    const int64_t encoder = hr_encoder_bytes(t->tokenizer, HR_ENCODE_SESSION_WINDOW_BYTES);
    const int64_t part = t->threads > 1
                             ? HR_ENCODE_SESSION_PART_BYTES_MAX + HR_ENCODE_SESSION_PART_IDS * 4
                             : 0;
    void *stacks;
    hr_status status = open_window(t, t->threads * (encoder + part + 256) + 4096, err);
    for (int32_t i = 0; i < t->threads && status == HR_OK; i++) {
        hr_encode_session_part *mine = &t->parts[i];
        mine->session = t;
        if (part) mine->window = hr_region_take_raw(&t->work, HR_ENCODE_SESSION_PART_BYTES_MAX, 1);
        if (part) mine->ids = hr_region_take_raw(&t->work, HR_ENCODE_SESSION_PART_IDS, 4);
        status = hr_encoder_place(&mine->encoder, &t->work, t->tokenizer,
                                  HR_ENCODE_SESSION_WINDOW_BYTES, hr_encode_session_sink, mine,
                                  err);
        if (status == HR_OK) hr_encoder_may_grow(mine->encoder, hr_encode_session_room);
    }
    if (status != HR_OK) return status;
    t->info.work_bytes = t->work.used;
    status = hr_memory_stacks_open(&t->memory, hr_pool_bytes(t->threads), &stacks, err);
    return status == HR_OK
               ? hr_pool_open(&t->pool, stacks, hr_pool_bytes(t->threads), t->threads, err)
               : status;
}

hr_status hr_tokenize_open(hr_tokenize **tokenize, const hr_tokenize_setting *setting,
                           hr_error *err)
{
    hr_memory memory = { 0 };
    hr_region own = { 0 };
    hr_status status = hr_memory_open(&memory, err);
    if (status == HR_OK)
        status = hr_memory_region_open(&memory, "a tokenizer", sizeof(hr_tokenize) + 64, &own, err);
    if (status != HR_OK) {
        hr_memory_close(&memory);
        return status;
    }
    hr_tokenize *made = hr_region_take(&own, 1, sizeof *made);
    made->memory = memory;
    made->decoder.tokenizer = NULL;
    status = hr_threads_choose(setting->threads, &made->threads, err);
    made->threads = (int32_t)hr_min(made->threads, HR_ENCODE_SESSION_THREADS_MAX);
    if (status == HR_OK) status = open_tables(made, setting, err);
    if (status == HR_OK) {
        describe(made);
        made->decoder.tokenizer = made->tokenizer;
        if (!setting->decodes_only) status = open_work(made, err);
    }
    if (status == HR_OK) *tokenize = made;
    else hr_tokenize_close(&made);
    return status;
}

void hr_tokenize_close(hr_tokenize **tokenize)
{
    if (!*tokenize) return;
    hr_pool_close(&(*tokenize)->pool);
    hr_memory memory = (*tokenize)->memory; /* copied, because it owns the memory of *tokenize */
    *tokenize = NULL;
    hr_memory_close(&memory);
}

const hr_tokenize_info *hr_tokenize_view(const hr_tokenize *tokenize)
{
    return &tokenize->info;
}

/* ---- decoding */

int64_t hr_tokenize_decode(hr_tokenize *tokenize, const uint32_t *ids, int64_t count,
                           bool skips_special, char *text, int64_t room, int64_t *used)
{
    tokenize->decoder.skips_special = skips_special;
    return hr_decoder_add(&tokenize->decoder, ids, count, (uint8_t *)text, room, used);
}

int64_t hr_tokenize_room(const hr_tokenize *tokenize)
{
    const hr_tokenizer *tokenizer = tokenize->tokenizer;
    int64_t longest = tokenizer->bpe.longest_bytes;
    for (int64_t id = 0; id < tokenizer->ids; id++)
        longest = hr_max(longest, hr_bpe_token_bytes(&tokenizer->bpe, (uint32_t)id));
    for (int32_t i = 0; i < tokenizer->added_count; i++)
        longest = hr_max(longest, tokenizer->renamed[i].bytes);
    return 3 * (longest + HR_DECODER_RUN) + 64;
}

int64_t hr_tokenize_decode_end(hr_tokenize *tokenize, char *text)
{
    return hr_decoder_end(&tokenize->decoder, (uint8_t *)text);
}
