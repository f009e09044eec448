/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/count_atoms.c - stage 2. Words are long and hardly ever recur, but their atoms
 * do. Atoms are counted and merged once each, and the text is written as their tokens. A long text
 * is read twice more before that: to count the borders between tokens, and to find the size of what
 * is left when it is cut at rare borders. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/train/stage.h"

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

/* Merges all atoms, and counts the bytes and the tokens of the corpus. */
static hr_status merge_atoms(hr_stage *s, int64_t counts[256], hr_error *err)
{
    const hr_word_counts *atoms = &s->words;
    const int64_t inherited = s->inherited.count, ids = 256 + inherited;
    int64_t longest = 0;
    for (int64_t i = 0; i < atoms->word_count; i++)
        longest = hr_max(longest, atoms->words[i].bytes);
    const int64_t scratch_bytes = hr_inherited_scratch_bytes(longest);
    const int64_t parts[] = { 8 * ids, scratch_bytes, 8 * (atoms->word_count + 1),
                              4 * atoms->text_bytes };
    int64_t bytes = 64;
    hr_region kept;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) bytes += hr_round_up(parts[i], 64);
    hr_status status = hr_stage_region(s, "inherited ids", hr_round_up(inherited, 64) + 4 * ids,
                                       &kept, err);
    if (status == HR_OK) status = hr_stage_region(s, "atoms", bytes, &s->atoms, err);
    if (status != HR_OK) return status;
    s->there = hr_region_take(&kept, inherited, 1);
    s->final_ids = hr_region_take_raw(&kept, ids, 4);
    int64_t *totals = hr_region_take(&s->atoms, ids, 8);
    void *scratch = hr_region_take_raw(&s->atoms, scratch_bytes, 1);
    s->atom_starts = hr_region_take_raw(&s->atoms, atoms->word_count + 1, 8);
    s->atom_tokens = hr_region_take_raw(&s->atoms, atoms->text_bytes, 4);
    HR_ASSERT(s->there && s->final_ids && totals && scratch && s->atom_starts && s->atom_tokens);
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
            status = hr_stage_report(s, "applying inherited merges", i, atoms->word_count, err);
            if (status != HR_OK) return status;
        }
    }
    s->atoms.used -= 4 * (atoms->text_bytes - (int64_t)s->atom_starts[atoms->word_count]);
    hr_memory_region_trim(&s->memory, &s->atoms);
    s->token_most = s->tokens = 0;
    for (int64_t i = 0; i < ids; i++) {
        s->token_most = hr_max(s->token_most, totals[i]);
        s->tokens += totals[i];
    }
    return HR_OK;
}

/* ---- the text as tokens */

/* Iterates over the tokens of a word, as inherited ids. */
typedef struct {
    const hr_stage *stage;
    hr_atom_place *places; /* cache of the thread */
    const uint8_t *word;
    int64_t bytes, at;
    const uint32_t *token, *end; /* rest of the current atom */
    bool changed;                /* an atom is unknown: the text differs from what was counted */
} token_iterator;

static token_iterator iterate_tokens(const hr_stage_worker *w, const uint8_t *word, int64_t bytes)
{
    return (token_iterator){ .stage = w->stage, .places = w->places, .word = word, .bytes = bytes };
}

/* Looks an atom up in the table of all atoms; false: not found. */
static bool find_atom(const hr_stage *s, const uint8_t *text, int64_t bytes, hr_atom_place *place)
{
    const int64_t atom = hr_word_counts_find(&s->words, text, bytes);
    if (atom < 0) return false;
    place->start = s->atom_starts[atom];
    place->tokens = (uint32_t)(s->atom_starts[atom + 1] - s->atom_starts[atom]);
    return true;
}

/* Looks a short atom up through the cache. Reads up to HR_FEED_BEHIND bytes after a word. */
static const hr_atom_place *place_of(token_iterator *it, const uint8_t *text, int64_t bytes)
{
    uint64_t key[2];
    memcpy(key, text, sizeof key);
    if (bytes < 8) key[0] &= (UINT64_C(1) << 8 * bytes) - 1;
    key[1] &= bytes <= 8 ? 0 : (UINT64_C(1) << 8 * (bytes - 8)) - 1;
    key[1] |= (uint64_t)bytes << 56;
    const uint64_t mixed = (key[0] ^ key[1] * UINT64_C(0xbf58476d1ce4e5b9)) *
                           UINT64_C(0x9e3779b97f4a7c15);
    hr_atom_place *place = &it->places[mixed >> (64 - HR_ATOM_PLACE_BITS)];
    if (place->key[0] == key[0] && place->key[1] == key[1]) return place;
    if (!find_atom(it->stage, text, bytes, place)) return 0;
    memcpy(place->key, key, sizeof key);
    return place;
}

static bool next_token(token_iterator *it, uint32_t *token)
{
    while (it->token == it->end) {
        if (it->at == it->bytes) return false;
        const uint8_t *text = it->word + it->at;
        const int64_t bytes = hr_inherited_atom(&it->stage->inherited, text, it->bytes - it->at);
        hr_atom_place found;
        const hr_atom_place *place = &found;
        if (bytes <= 15) place = place_of(it, text, bytes);
        else if (!find_atom(it->stage, text, bytes, &found)) place = 0;
        it->changed = !place;
        if (it->changed) return false;
        it->at += bytes;
        it->token = it->stage->atom_tokens + place->start;
        it->end = it->token + place->tokens;
    }
    *token = *it->token++;
    return true;
}

/* Whether a pair can never be merged. A longer token that contains it would be refused too. */
static bool is_refused(const hr_stage *s, uint32_t left, uint32_t right)
{
    return hr_vocabulary_refuses(&s->inherited.vocabulary, left, right);
}

static bool count_borders(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    hr_stage *s = w->stage;
    token_iterator it = iterate_tokens(w, word, bytes);
    uint32_t left, right;
    if (next_token(&it, &left))
        for (; next_token(&it, &right); left = right)
            if (!is_refused(s, left, right)) hr_borders_add(&s->borders, left, right);
    w->changed = it.changed;
    return !w->changed;
}

static bool is_kept(const hr_stage *s, uint32_t left, uint32_t right)
{
    return hr_borders_most(&s->borders, left, right) >= s->cut && !is_refused(s, left, right);
}

static void put_slot(hr_stage_worker *w, uint32_t value)
{
    uint32_t *slots = w->stage->engine.slots;
    w->changed = w->changed || w->slot_at == w->slot_end;
    if (w->changed) return;
    if (slots) slots[w->slot_at] = value;
    w->slot_at++;
}

/* Writes a word as inherited ids. */
static bool write_whole(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    token_iterator it = iterate_tokens(w, word, bytes);
    uint32_t token, first = HR_SLOT_FIRST;
    for (; next_token(&it, &token); first = 0) put_slot(w, token | first);
    w->changed = w->changed || it.changed;
    return !w->changed;
}

/* Writes the stretches of a word between cut borders. Drops single tokens, which never merge.
 * Before the corpus is allocated, only counts slots. */
static bool write_cut(void *context, const uint8_t *word, int64_t bytes)
{
    hr_stage_worker *w = context;
    const hr_stage *s = w->stage;
    token_iterator it = iterate_tokens(w, word, bytes);
    uint32_t left, right;
    bool inside = false;
    if (next_token(&it, &left))
        for (; next_token(&it, &right); left = right) {
            const bool kept = is_kept(s, left, right);
            if (kept && !inside) put_slot(w, left | HR_SLOT_FIRST);
            if (kept) put_slot(w, right);
            inside = kept;
        }
    w->changed = w->changed || it.changed;
    return !w->changed;
}

/* ---- sizes */

/* Borders to keep per merge. How many merges are as frequent as the rarest kept border is a guess.
 * If it is too low, train.c repeats the stage with more borders. */
enum { BORDERS_A_MERGE = 4 };

static hr_status choose_cut(hr_stage *s, int64_t merges, hr_error *err)
{
    hr_status status = hr_stage_region(s, "borders", hr_borders_bytes(s->tokens), &s->bordering,
                                       err);
    if (status != HR_OK) return status;
    hr_borders_place(&s->borders, &s->bordering, s->tokens);
    status = hr_stage_feed(s, "counting borders", count_borders, err);
    const int64_t level = hr_borders_level(&s->borders, merges * BORDERS_A_MERGE);
    s->cut = s->cut_most ? hr_min(level, s->cut_most) : level;
    return status;
}

/* Tokens of the part of a thread. */
static int64_t tokens_of(const hr_stage *s, const hr_stage_worker *w)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < w->counts.word_count; i++) {
        const hr_counted_word *atom = &w->counts.words[i];
        hr_atom_place place = { .tokens = 0 };
        if (find_atom(s, w->counts.text + atom->text, atom->bytes, &place))
            tokens += atom->count * place.tokens;
    }
    return tokens;
}

static hr_status count_slots(hr_stage *s, int64_t merges, hr_error *err)
{
    const bool whole = s->source->bytes < s->request->cut_from;
    for (int32_t i = 0; i < s->threads; i++) {
        hr_stage_worker *w = &s->workers[i];
        w->slot_at = whole ? tokens_of(s, w) : 0;
        w->slot_end = INT64_MAX;
    }
    if (s->threads > 1) hr_memory_region_close(&s->memory, &s->counting);
    if (whole) return HR_OK;
    hr_status status = choose_cut(s, merges, err);
    if (status == HR_OK) status = hr_stage_feed(s, "cutting at rare borders", write_cut, err);
    return status;
}

/* Computes the slots of each thread's part, and the room for all pairs. */
static hr_status size_parts(hr_stage *s, int64_t merges, hr_error *err)
{
    hr_engine_sizes *sizes = &s->sizes;
    hr_status status = count_slots(s, merges, err);
    sizes->slots = 0;
    for (int32_t i = 0; i < s->threads; i++) {
        hr_stage_worker *w = &s->workers[i];
        const int64_t slots = w->slot_at;
        w->slot_at = sizes->slots;
        sizes->slots = w->slot_end = w->slot_at + slots;
        s->result->plan.words += w->words;
    }
    sizes->slots++; /* the end mark */
    sizes->positions = sizes->slots / 2 + 6 * s->token_most + 65536;
    if (status == HR_OK && s->cut)
        sizes->positions = hr_max(sizes->slots / 2, s->token_most) + 65536 +
                           11 * hr_min(hr_borders_largest(&s->borders), sizes->slots);
    return status;
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
                       "already make %lld tokens",
                       (long long)s->request->vocab_size, (long long)there,
                       (long long)(first + there));
    const int64_t tokens = s->request->vocab_size;
    status = size_parts(s, tokens - first - there, err);
    s->sizes.words = 0;
    s->sizes.pairs = 6 * tokens + 65536 + hr_min(4 * s->sizes.slots, 65536);
    s->sizes.merges = tokens + s->inherited.count + 65536;
    return status;
}

/* ---- building */

/* Assigns final ids, in rank order, to the inherited merges whose pair occurred. */
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

hr_status hr_stage_write_atoms(hr_stage *s, hr_error *err)
{
    hr_status status = hr_stage_feed(s, "writing the text as tokens",
                                     s->cut ? write_cut : write_whole, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < s->threads; i++)
        if (s->workers[i].slot_at != s->workers[i].slot_end)
            return hr_fail(err, HR_CORRUPT, "the text changed while it was read");
    s->engine.slots[s->sizes.slots - 1] = HR_SLOT_END;
    s->engine.slot_count = s->sizes.slots;
    return HR_OK;
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
    for (int64_t at = 0; at < e->slot_count - 1; at++)
        e->slots[at] = s->final_ids[e->slots[at] & ~HR_SLOT_FIRST] | (e->slots[at] & HR_SLOT_FIRST);
    return hr_engine_count(e, 1, err);
}
