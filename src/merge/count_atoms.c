/* SPDX-License-Identifier: Apache-2.0 */
/* merge/count_atoms.c - stage 2: words are long and hardly any is there twice, but the atoms that
 * inherited merges stay inside are. They are counted and merged once each; then the text is cut a
 * second time and written down as their tokens. */
#include <string.h>

#include "base/checked.h"
#include "merge/stage.h"

bool hr_stage_count_atoms(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    while (w->atom_at < bytes) {
        const uint8_t *atom = word + w->atom_at;
        const int64_t length = hr_inherited_atom(&w->stage->inherited, atom, bytes - w->atom_at);
        w->full = !hr_word_counts_add(&w->counts, atom, length, 1);
        if (w->full) return false;
        w->atom_at += length;
    }
    w->atom_at = 0;
    w->words++;
    return true;
}

static int64_t tokens_of(const hr_stage *s, int64_t atom)
{
    return (int64_t)(s->atom_starts[atom + 1] - s->atom_starts[atom]);
}

/* Merges all atoms, and counts the tokens that the corpus begins with. */
static hr_status merge_atoms(hr_stage *s, int64_t counts[256], hr_error *err)
{
    const hr_word_counts *atoms = &s->words;
    const int64_t inherited = s->inherited.count, ids = 256 + inherited;
    int64_t longest = 0;
    for (int64_t i = 0; i < atoms->word_count; i++)
        longest = hr_max(longest, atoms->words[i].bytes);
    const int64_t scratch_bytes = hr_inherited_scratch_bytes(longest);
    const int64_t parts[] = { 8 * (atoms->word_count + 1),
                              4 * atoms->text_bytes,
                              inherited,
                              8 * inherited,
                              4 * ids,
                              8 * ids,
                              scratch_bytes };
    int64_t bytes = 64;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) bytes += hr_round_up(parts[i], 64);
    hr_status status = hr_stage_region(s, "atoms", bytes, &s->atoms, err);
    if (status != HR_OK) return status;
    s->atom_starts = hr_region_take_raw(&s->atoms, atoms->word_count + 1, 8);
    s->atom_tokens = hr_region_take_raw(&s->atoms, atoms->text_bytes, 4);
    s->there = hr_region_take(&s->atoms, inherited, 1);
    s->final_ids = hr_region_take(&s->atoms, ids, 4);
    int64_t *totals = hr_region_take(&s->atoms, ids, 8);
    void *scratch = hr_region_take_raw(&s->atoms, scratch_bytes, 1);
    HR_ASSERT(s->atom_starts && s->atom_tokens && s->there && totals && scratch);
    s->atom_starts[0] = 0;
    for (int64_t i = 0; i < atoms->word_count; i++) {
        const hr_counted_word *atom = &atoms->words[i];
        const uint8_t *text = atoms->text + atom->text;
        uint32_t *tokens = s->atom_tokens + s->atom_starts[i];
        const int64_t count = hr_inherited_merge_atom(&s->inherited, s->there, text, atom->bytes,
                                                      scratch, tokens);
        s->atom_starts[i + 1] = s->atom_starts[i] + (uint64_t)count;
        for (int64_t t = 0; t < count; t++) totals[tokens[t]] += atom->count;
        for (uint32_t b = 0; b < atom->bytes; b++) counts[text[b]] += atom->count;
        if (i % 4096 == 0) {
            status = hr_stage_tell(s, "inheriting merges", i, atoms->word_count, err);
            if (status != HR_OK) return status;
        }
    }
    for (int64_t i = 0; i < ids; i++) s->token_most = hr_max(s->token_most, totals[i]);
    return HR_OK;
}

/* Slots of every thread's part. */
static int64_t size_parts(hr_stage *s)
{
    int64_t slots = 1;
    for (int32_t i = 0; i < s->threads; i++) {
        hr_stage_worker *w = &s->workers[i];
        w->slots = w->words;
        for (int64_t a = 0; a < w->counts.word_count; a++) {
            const hr_counted_word *atom = &w->counts.words[a];
            const int64_t known = hr_word_counts_find(&s->words, w->counts.text + atom->text,
                                                      atom->bytes);
            w->slots += atom->count * tokens_of(s, known);
        }
        w->slot_at = slots - 1;
        slots += w->slots;
        w->slot_end = slots - 1;
        s->result->plan.words += w->words;
    }
    return slots;
}

hr_status hr_stage_size_atoms(hr_stage *s, hr_error *err)
{
    int64_t counts[256] = { 0 };
    s->result->plan.words = 0;
    hr_status status = merge_atoms(s, counts, err);
    if (status == HR_OK) status = hr_stage_alphabet(s, counts, err);
    if (status != HR_OK) return status;
    const int64_t first = s->alphabet.count + s->request->special_count;
    int64_t there = 0;
    for (int64_t rank = 0; rank < s->inherited.count; rank++) there += s->there[rank];
    if (first + there > s->request->vocab_size)
        return hr_fail(err, HR_USAGE,
                       "vocabulary size %lld: %lld inherited merges, characters and special tokens "
                       "are %lld tokens already",
                       (long long)s->request->vocab_size, (long long)there,
                       (long long)(first + there));
    const int64_t slots = size_parts(s), tokens = s->request->vocab_size;
    s->sizes.words = 0;
    s->sizes.slots = slots;
    s->sizes.positions = slots / 2 + 6 * s->token_most + 65536;
    s->sizes.pairs = 6 * tokens + 65536 + hr_min(4 * slots, 65536);
    s->sizes.merges = tokens + s->inherited.count + 65536;
    return HR_OK;
}

/* ---- building */

/* The inherited merges that were there to be made get their ids, in their order. */
static void inherit(hr_stage *s, const uint32_t bytes[256])
{
    hr_engine *e = &s->engine;
    for (int64_t id = 0; id < 256 + s->inherited.count; id++)
        s->final_ids[id] = id < 256 ? bytes[id] : HR_NO_TOKEN;
    for (int64_t rank = 0; rank < s->inherited.count; rank++) {
        const hr_inherited_merge *merge = &s->inherited.merges[rank];
        if (!s->there[rank]) {
            s->result->dropped++;
            continue;
        }
        const uint32_t left = s->final_ids[merge->left], right = s->final_ids[merge->right];
        const uint32_t joined = hr_vocabulary_join(&e->vocabulary, left, right);
        e->vocabulary.tokens[joined].is_made = true;
        s->final_ids[merge->joined] = joined;
        hr_engine_inherit(e, left, right);
    }
}

static bool write_word(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    const hr_stage *s = w->stage;
    uint32_t *slots = s->engine.slots;
    w->changed = w->slot_at == w->slot_end;
    if (w->changed) return false;
    slots[w->slot_at++] = HR_SLOT_EDGE;
    for (int64_t at = 0, length; at < bytes; at += length) {
        length = hr_inherited_atom(&s->inherited, word + at, bytes - at);
        const int64_t atom = hr_word_counts_find(&s->words, word + at, length);
        const int64_t count = atom < 0 ? 0 : tokens_of(s, atom);
        w->changed = atom < 0 || count > w->slot_end - w->slot_at;
        if (w->changed) return false;
        const uint32_t *tokens = s->atom_tokens + s->atom_starts[atom];
        for (int64_t t = 0; t < count; t++) slots[w->slot_at++] = tokens[t];
    }
    return true;
}

hr_status hr_stage_build_atoms(hr_stage *s, hr_error *err)
{
    uint32_t ids[256];
    hr_engine *e = &s->engine;
    s->result->inherited = s->inherited.count;
    s->result->dropped = 0;
    hr_alphabet_put(&s->alphabet, s->request->special_tokens, s->request->special_count,
                    &e->vocabulary, ids);
    inherit(s, ids);
    const int64_t tokens = (int64_t)s->atom_starts[s->words.word_count];
    for (int64_t i = 0; i < tokens; i++) s->atom_tokens[i] = s->final_ids[s->atom_tokens[i]];
    hr_status status = hr_stage_feed(s, "writing the text as tokens", write_word, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < s->threads; i++)
        if (s->workers[i].slot_at != s->workers[i].slot_end)
            return hr_fail(err, HR_CORRUPT, "text: it changed while it was read");
    e->slots[s->sizes.slots - 1] = HR_SLOT_EDGE;
    e->slot_count = s->sizes.slots;
    return hr_engine_count(e, 1, err);
}
