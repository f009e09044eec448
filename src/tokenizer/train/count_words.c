/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/count_words.c - stage 1: counts distinct words. Each is one word of the engine's
 * corpus. */
#include "base/checked.h"
#include "tokenizer/train/stage.h"

bool hr_stage_count_word(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    w->full = !hr_word_counts_add(&w->counts, word, bytes, 1);
    return !w->full;
}

/* Room for the pairs of `slots` symbols, and for those that one merge adds, at most two per token.
 * Pairs that do not fit are found later by a recount. */
static int64_t pairs_for(int64_t slots, int64_t tokens)
{
    return hr_min(4 * slots, slots / 8 + 32768) + 3 * tokens + 1024;
}

hr_status hr_stage_size_words(hr_stage *s, hr_error *err)
{
    int64_t weighted[256] = { 0 }, there[256] = { 0 }, most = 0;
    const hr_word_counts *words = &s->words;
    for (int64_t i = 0; i < words->word_count; i++) {
        const hr_counted_word *word = &words->words[i];
        for (uint32_t at = 0; at < word->bytes; at++) {
            const uint8_t byte = words->text[word->text + at];
            weighted[byte] += word->count;
            there[byte]++;
        }
    }
    hr_status status = hr_stage_alphabet(s, weighted, err);
    if (status != HR_OK) return status;
    for (int32_t byte = 0; byte < 256; byte++) most = hr_max(most, there[byte]);
    s->result->plan.words = words->word_count;
    s->sizes.words = words->word_count;
    s->sizes.slots = words->text_bytes + 1;
    s->sizes.positions = 2 * s->sizes.slots + 16 * most + 4096;
    s->sizes.pairs = pairs_for(s->sizes.slots, s->request->vocab_size);
    s->sizes.merges = s->request->vocab_size + 65536;
    return HR_OK;
}

/* Writes bytes, because the vocabulary does not exist yet. */
hr_status hr_stage_write_words(hr_stage *s, hr_error *err)
{
    hr_engine *e = &s->engine;
    const hr_word_counts *words = &s->words;
    int64_t at = 0;
    (void)err;
    for (int64_t i = 0; i < words->word_count; i++) {
        const hr_counted_word *word = &words->words[i];
        e->counts[i] = word->count;
        for (uint32_t b = 0; b < word->bytes; b++) {
            e->owners[at] = (uint32_t)i;
            e->slots[at++] = words->text[word->text + b] | (b ? 0 : HR_SLOT_FIRST);
        }
    }
    e->slots[at++] = HR_SLOT_END;
    e->slot_count = at;
    return HR_OK;
}

/* Removes bytes that are not in a limited alphabet; their neighbors become adjacent. */
hr_status hr_stage_build_words(hr_stage *s, hr_error *err)
{
    uint32_t ids[256], first = 0;
    hr_engine *e = &s->engine;
    int64_t to = 0;
    hr_alphabet_put(&s->alphabet, s->request->special_tokens, s->request->special_count,
                    &e->vocabulary, ids);
    for (int64_t at = 0; at < e->slot_count - 1; at++) {
        const uint32_t id = ids[e->slots[at] & UINT8_MAX];
        first |= e->slots[at] & HR_SLOT_FIRST;
        if (id == HR_NO_TOKEN) continue;
        e->owners[to] = e->owners[at];
        e->slots[to++] = id | first;
        first = 0;
    }
    e->slots[to++] = HR_SLOT_END;
    e->slot_count = to;
    return hr_engine_count(e, 1, err);
}
