/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/bpe_encode.c - encodes a piece: from a cache, from left to right, or by merging.
 *
 * Short pieces recur: those of up to 15 bytes and three tokens are kept in a cache with two entries
 * per line, the newer first. If some tokens span words, pieces are long and hardly ever recur, but
 * their words do. Then each word is encoded on its own first, through the cache, and the merges
 * across words are applied afterwards. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/bpe.h"
#include "tokenizer/unicode.h"

enum {
    CACHE_LINES = 1 << 14, /* 1 MiB: half of the L2 cache of a server core */
    PAIR_BITS = 14,
    KEPT_BYTES = 15,
    KEPT_IDS = 3,
    /* longest piece that is encoded word by word; longer ones go left to right */
    WORDS_BYTES_MAX = 1 << 16,
    /* longest piece that is encoded by merging; 48 bytes of scratch per byte */
    MERGED_BYTES_MAX = 1 << 18
};

typedef struct {
    uint8_t text[KEPT_BYTES];
    uint8_t bytes; /* low 4 bits: bytes, high 4 bits: number of ids; 0: free */
    uint32_t ids[KEPT_IDS];
    uint32_t unused;
} kept;

typedef struct {
    _Alignas(64) kept two[2];
} line;

typedef struct {
    /* before, after: -1: none. id -1: merged into the previous symbol. id <= -2: a character
     * without a token, at byte -2 - id; it merges with nothing. */
    int32_t id, before, after;
} symbol;

struct hr_bpe_workspace {
    const hr_bpe *bpe;
    line *lines;      /* [CACHE_LINES] */
    uint64_t *stable; /* [1 << PAIR_BITS] cache of hr_bpe_is_stable: left, right, result; 0: free */
    uint32_t *ids;    /* [piece_bytes + KEPT_IDS] */
    /* [piece_bytes / 64 + 1] bits: positions from which no encoding reaches the end */
    uint64_t *dead;
    uint8_t *present; /* [piece_bytes] the piece without bytes that have no token */
    symbol *symbols;  /* [merged] */
    uint64_t *heap;   /* [3 merged] heap of rank << 32 | position */
    int64_t piece_bytes, merged;
};

int64_t hr_bpe_piece_bytes(const hr_bpe *bpe, int64_t piece_bytes)
{
    return bpe->orderly ? piece_bytes : hr_min(piece_bytes, MERGED_BYTES_MAX);
}

/* Also the limit of hr_bpe_encode_ref. */
static int64_t merged_bytes(const hr_bpe *bpe, int64_t piece_bytes)
{
    if (!bpe->orderly) return hr_bpe_piece_bytes(bpe, piece_bytes);
    return bpe->by_words ? hr_min(piece_bytes, WORDS_BYTES_MAX) : 64;
}

int64_t hr_bpe_workspace_bytes(const hr_bpe *bpe, int64_t piece_bytes)
{
    const int64_t merged = merged_bytes(bpe, piece_bytes);
    return (int64_t)sizeof(hr_bpe_workspace) + CACHE_LINES * (int64_t)sizeof(line) +
           (INT64_C(8) << PAIR_BITS) + (piece_bytes + KEPT_IDS) * 4 + piece_bytes / 8 + 16 +
           (bpe->bytes_missing ? piece_bytes : 0) + merged * (int64_t)(sizeof(symbol) + 24) +
           9 * 64;
}

hr_status hr_bpe_workspace_place(hr_bpe_workspace **work, hr_region *region, const hr_bpe *bpe,
                                 int64_t piece_bytes, hr_error *err)
{
    hr_bpe_workspace *made = hr_region_take(region, 1, sizeof *made);
    const int64_t merged = merged_bytes(bpe, piece_bytes);
    line *lines = hr_region_take(region, CACHE_LINES, sizeof *lines);
    uint64_t *stable = hr_region_take(region, 1 << PAIR_BITS, 8);
    uint32_t *ids = hr_region_take_raw(region, piece_bytes + KEPT_IDS, 4);
    uint64_t *dead = hr_region_take_raw(region, piece_bytes / 64 + 1, 8);
    uint8_t *present = bpe->bytes_missing ? hr_region_take_raw(region, piece_bytes, 1)
                                          : (uint8_t *)dead;
    symbol *symbols = hr_region_take_raw(region, merged, sizeof *symbols);
    uint64_t *heap = hr_region_take_raw(region, 3 * merged, 8);
    if (!made || !present || !heap)
        return hr_fail(err, HR_NO_FIT, "encoding: needs %lld bytes, the region has %lld",
                       (long long)hr_bpe_workspace_bytes(bpe, piece_bytes),
                       (long long)region->bytes);
    *made = (hr_bpe_workspace){ .bpe = bpe,
                                .lines = lines,
                                .stable = stable,
                                .ids = ids,
                                .dead = dead,
                                .present = present,
                                .symbols = symbols,
                                .heap = heap,
                                .piece_bytes = piece_bytes,
                                .merged = merged };
    *work = made;
    return HR_OK;
}

/* ---- encoding by merging */

static void sift_down(uint64_t *heap, int64_t count, int64_t at)
{
    const uint64_t moved = heap[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moved) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void push(uint64_t *heap, int64_t *count, uint64_t entry)
{
    int64_t at = (*count)++;
    for (; at > 0 && heap[(at - 1) / 2] > entry; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

/* Pushes the pair that begins at symbol `at`, if it merges. */
static void push_pair(hr_bpe_workspace *work, int64_t *count, int32_t at)
{
    const int32_t after = at < 0 ? -1 : work->symbols[at].after;
    if (after < 0 || work->symbols[at].id < 0 || work->symbols[after].id < 0) return;
    const int32_t rank = hr_bpe_rank(work->bpe, (uint32_t)work->symbols[at].id,
                                     (uint32_t)work->symbols[after].id);
    if (rank >= 0) push(work->heap, count, (uint64_t)rank << 32 | (uint32_t)at);
}

/* The result of a merge. If several merges share a rank, the token with the joined text. */
static uint32_t result_of(const hr_bpe *bpe, int32_t rank, uint32_t left, uint32_t right)
{
    uint8_t text[HR_BPE_SCORED_BYTES_MAX];
    if (!bpe->ties) return bpe->results[rank];
    const int64_t a = hr_bpe_token_bytes(bpe, left), b = hr_bpe_token_bytes(bpe, right);
    HR_ASSERT(a + b <= (int64_t)sizeof text);
    memcpy(text, bpe->text + bpe->text_at[left], (size_t)a);
    memcpy(text + a, bpe->text + bpe->text_at[right], (size_t)b);
    return (uint32_t)hr_bpe_find(bpe, text, a + b);
}

/* Applies the queued merges and the merges that they make possible. */
static void merge_queued(hr_bpe_workspace *work, int64_t queued)
{
    const hr_bpe *bpe = work->bpe;
    symbol *symbols = work->symbols;
    while (queued) {
        const uint64_t entry = work->heap[0];
        work->heap[0] = work->heap[--queued];
        if (queued) sift_down(work->heap, queued, 0);
        const int32_t at = (int32_t)(uint32_t)entry, rank = (int32_t)(entry >> 32);
        const int32_t after = symbols[at].id < 0 ? -1 : symbols[at].after;
        if (after < 0 || symbols[after].id < 0 ||
            hr_bpe_rank(bpe, (uint32_t)symbols[at].id, (uint32_t)symbols[after].id) != rank)
            continue;
        symbols[at].id = (int32_t)result_of(bpe, rank, (uint32_t)symbols[at].id,
                                            (uint32_t)symbols[after].id);
        symbols[at].after = symbols[after].after;
        symbols[after].id = -1;
        if (symbols[at].after >= 0) symbols[symbols[at].after].before = at;
        push_pair(work, &queued, symbols[at].before);
        push_pair(work, &queued, at);
    }
}

/* Writes the ids of a character without a token: the unknown token or byte tokens. Returns their
 * number. */
static int64_t put_unknown(const hr_bpe *bpe, const uint8_t *text, int64_t bytes, uint32_t *ids)
{
    if (!bpe->falls_back) return ids[0] = (uint32_t)bpe->unknown, 1;
    for (int64_t i = 0; i < bytes; i++) ids[i] = (uint32_t)bpe->fallback[text[i]];
    return bytes;
}

static inline int32_t longest(const hr_bpe *bpe, const uint8_t *text, int64_t bytes,
                              int32_t *token_bytes);

/* Fills the initial symbols of a piece. */
static int32_t fill_symbols(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes)
{
    const hr_bpe *bpe = work->bpe;
    symbol *symbols = work->symbols;
    int32_t count = 0, token_bytes;
    uint32_t point;
    for (int64_t i = 0, taken; i < bytes; i += taken) {
        taken = bpe->kind <= HR_BPE_RANKS ? 1 : hr_utf8_take(text + i, bytes - i, &point);
        int32_t id = bpe->kind <= HR_BPE_RANKS ? bpe->byte_id[text[i]]
                                               : longest(bpe, text + i, taken, &token_bytes);
        if (id < 0 && bpe->kind <= HR_BPE_RANKS) continue;
        if (id < 0) id = -2 - (int32_t)i;
        symbols[count] = (symbol){ id, count - 1, count + 1 };
        count++;
    }
    if (count) symbols[count - 1].after = -1;
    return count;
}

int64_t hr_bpe_encode_ref(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids)
{
    symbol *symbols = work->symbols;
    int64_t queued = 0, written = 0;
    uint32_t point;
    HR_ASSERT(bytes <= work->merged);
    const int32_t count = fill_symbols(work, text, bytes);
    for (int32_t i = 0; i < count; i++) push_pair(work, &queued, i);
    merge_queued(work, queued);
    for (int32_t i = 0; i < count; i++) {
        const int32_t id = symbols[i].id;
        if (id >= 0) work->ids[written++] = (uint32_t)id;
        if (id > -2) continue;
        const uint8_t *at = text - 2 - id;
        written += put_unknown(work->bpe, at, hr_utf8_take(at, text + bytes - at, &point),
                               work->ids + written);
    }
    *ids = work->ids;
    return written;
}
/* ---- encoding from left to right */

/* The longest token that is a prefix of text [bytes], and its length; HR_BPE_NONE: none, or no
 * text. */
static inline int32_t longest(const hr_bpe *bpe, const uint8_t *text, int64_t bytes,
                              int32_t *token_bytes)
{
    if (!bytes) return HR_BPE_NONE;
    int32_t best = bpe->byte_id[text[0]];
    *token_bytes = 1;
    if (bytes == 1) return best;
    int64_t depth = 2;
    for (int32_t at = bpe->starts[text[0] << 8 | text[1]]; at;) {
        const hr_bpe_node *node = &bpe->nodes[at];
        if (node->depth > bytes) return best;
        const uint8_t *example = bpe->text + node->text;
        while (depth < node->depth && text[depth] == example[depth]) depth++;
        if (depth < node->depth) return best;
        if (node->token >= 0) {
            best = node->token;
            *token_bytes = (int32_t)depth;
        }
        if (depth == bytes) return best;
        at = hr_bpe_child(bpe, node, text[depth]);
        depth++;
    }
    return best;
}

static inline bool is_stable(hr_bpe_workspace *work, uint32_t left, uint32_t right, int32_t limit)
{
    const uint64_t key = (uint64_t)(left + 1) << 32 | (uint64_t)right << 1;
    uint64_t *place = &work->stable[(key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PAIR_BITS)];
    if (limit != INT32_MAX) return hr_bpe_is_stable(work->bpe, left, right, limit);
    if ((*place ^ key) <= 1) return *place & 1;
    const bool answer = hr_bpe_is_stable(work->bpe, left, right, limit);
    *place = key | answer;
    return answer;
}

/* Tries the longest token first. If no token fits at a position, marks the position dead and
 * shortens the token before it. Uses only tokens and merges of rank below `limit`. Encodes from
 * *from to the end or to a character without a token, and appends to the first `first` ids. Returns
 * the number of ids. */
static int64_t encode_run(hr_bpe_workspace *work, const uint8_t *text, int64_t *from, int64_t bytes,
                          int64_t first, int32_t limit)
{
    const hr_bpe *bpe = work->bpe;
    uint64_t *dead = work->dead;
    int64_t count = first, at = *from;
    int32_t length = 0, token = longest(bpe, text + at, bytes - at, &length);
    while (token >= 0) {
        const int64_t end = at + length;
        if (bpe->origins[token].rank < limit && !(dead[end >> 6] >> (end & 63) & 1) &&
            (count == first || is_stable(work, work->ids[count - 1], (uint32_t)token, limit))) {
            work->ids[count++] = (uint32_t)token;
            at = end;
            token = longest(bpe, text + at, bytes - at, &length);
            continue;
        }
        token = bpe->tokens[token].shorter;
        while (token < 0) {
            HR_ASSERT(count > first); /* the first byte or character always fits */
            dead[at >> 6] |= UINT64_C(1) << (at & 63);
            token = (int32_t)work->ids[--count];
            at -= bpe->tokens[token].bytes;
            token = bpe->tokens[token].shorter;
        }
        length = bpe->tokens[token].bytes;
    }
    *from = at;
    return count;
}

static int64_t encode_bytes(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes,
                            int32_t limit)
{
    int64_t from = 0;
    memset(work->dead, 0, (size_t)(bytes / 64 + 1) * 8);
    return encode_run(work, text, &from, bytes, 0, limit);
}

/* Characters without a token separate the text: nothing merges across them. */
static int64_t encode_characters(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes)
{
    int64_t count = 0;
    uint32_t point;
    memset(work->dead, 0, (size_t)(bytes / 64 + 1) * 8);
    for (int64_t at = 0; at < bytes;) {
        count = encode_run(work, text, &at, bytes, count, INT32_MAX);
        if (at == bytes) break;
        const int64_t taken = hr_utf8_take(text + at, bytes - at, &point);
        count += put_unknown(work->bpe, text + at, taken, work->ids + count);
        at += taken;
    }
    return count;
}

/* ---- the cache */

/* Loads text [bytes <= 15], padded with zeros; `room` bytes are readable. */
static inline __m128i load_text(const uint8_t *text, int64_t bytes, int64_t room)
{
    static const uint8_t masks[32] = { 255, 255, 255, 255, 255, 255, 255, 255,
                                       255, 255, 255, 255, 255, 255, 255, 255 };
    if (room >= 16) {
        const __m128i all = _mm_loadu_si128((const __m128i *)(const void *)text);
        const uint8_t *mask = masks + 16 - bytes;
        return _mm_and_si128(all, _mm_loadu_si128((const __m128i *)(const void *)mask));
    }
    uint8_t copy[16] = { 0 };
    memcpy(copy, text, (size_t)bytes);
    return _mm_loadu_si128((const __m128i *)(const void *)copy);
}

/* Encodes a piece that is not in the cache; with a `limit`, a word, with merges of rank below
 * it. */
static int64_t encode_new(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes, int32_t limit)
{
    const hr_bpe *bpe = work->bpe;
    if (bpe->whole_first && limit == INT32_MAX) {
        const int32_t id = hr_bpe_find(bpe, text, bytes);
        if (id >= 0) return work->ids[0] = (uint32_t)id, 1;
    }
    if (bpe->kind > HR_BPE_RANKS && bpe->orderly) return encode_characters(work, text, bytes);
    if (bpe->bytes_missing) {
        int64_t left = 0;
        for (int64_t i = 0; i < bytes; i++)
            if (bpe->byte_id[text[i]] >= 0) work->present[left++] = text[i];
        text = work->present;
        bytes = left;
    }
    const uint32_t *ids;
    return bpe->orderly ? encode_bytes(work, text, bytes, limit)
                        : hr_bpe_encode_ref(work, text, bytes, &ids);
}

static inline int64_t encode_kept(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes,
                                  int64_t room, int32_t limit, const uint32_t **ids)
{
    *ids = work->ids;
    if (bytes > KEPT_BYTES) return encode_new(work, text, bytes, limit);
    const __m128i key = load_text(text, bytes, room);
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(key);
    const uint64_t high = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(key, key));
    const uint64_t mixed = (low ^ high * UINT64_C(0xff51afd7ed558ccd) ^ (uint64_t)bytes << 57) *
                           UINT64_C(0x9e3779b97f4a7c15);
    line *here = &work->lines[(mixed ^ mixed >> 29) >> 32 & (CACHE_LINES - 1)];
    for (int32_t i = 0; i < 2; i++) {
        const kept *one = &here->two[i];
        const __m128i there = _mm_loadu_si128((const __m128i *)(const void *)one);
        const uint32_t equal = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(key, there));
        if ((one->bytes & 15) != bytes || (equal & 0x7fff) != 0x7fff) continue;
        *ids = one->ids;
        return one->bytes >> 4;
    }
    const int64_t count = encode_new(work, text, bytes, limit);
    if (count == 0 || count > KEPT_IDS) return count;
    here->two[1] = here->two[0];
    _mm_storeu_si128((__m128i *)(void *)&here->two[0], key);
    here->two[0].bytes = (uint8_t)(bytes | count << 4);
    memcpy(here->two[0].ids, *ids, (size_t)count * 4);
    return count;
}

/* ---- encoding word by word */

/* Applies the merges of rank words_rank and higher, lowest first. */
static int64_t merge_symbols(hr_bpe_workspace *work, int32_t count)
{
    symbol *symbols = work->symbols;
    int64_t queued = 0, written = 0;
    symbols[count - 1].after = -1;
    for (int32_t i = 0; i + 1 < count; i++) push_pair(work, &queued, i);
    merge_queued(work, queued);
    for (int32_t i = 0; i >= 0; i = symbols[i].after)
        work->ids[written++] = (uint32_t)symbols[i].id;
    return written;
}

/* Encodes each word with the merges below words_rank, then merges across words. */
static int64_t encode_words(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes,
                            int64_t room)
{
    const int32_t limit = work->bpe->words_rank;
    int32_t count = 0;
    for (int64_t begin = 0; begin < bytes;) {
        int64_t end = begin + 1;
        while (end < bytes && !hr_bpe_ends_word(text[end - 1], text[end])) end++;
        const uint32_t *ids;
        const int64_t written = encode_kept(work, text + begin, end - begin, room - begin, limit,
                                            &ids);
        for (int64_t i = 0; i < written; i++, count++)
            work->symbols[count] = (symbol){ (int32_t)ids[i], count - 1, count + 1 };
        begin = end;
    }
    return count ? merge_symbols(work, count) : 0;
}

int64_t hr_bpe_encode(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes, int64_t room,
                      const uint32_t **ids)
{
    if (!work->bpe->by_words || work->bpe->whole_first)
        return encode_kept(work, text, bytes, room, INT32_MAX, ids);
    *ids = work->ids;
    return bytes <= work->merged ? encode_words(work, text, bytes, room)
                                 : encode_new(work, text, bytes, INT32_MAX);
}
