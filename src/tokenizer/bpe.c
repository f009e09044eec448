/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/bpe.c - construction of the BPE tables: pairs, origins of tokens, and the radix tree of
 * token texts. */
#include "tokenizer/bpe.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/unicode.h"

enum {
    ID_BITS = 21,
    RANK_BITS = 22,
    LABELS = 16, /* children of a node that stores their labels itself */
    STARTS = 65536,
    FILTER_MORE_BITS = 3 /* 8 to 16 bits of the Bloom filter per slot of the pair table */
};

/* log2 of the slots for `count` keys at a load factor of at most 5/8. */
static int32_t bits_for(int64_t count)
{
    int32_t bits = 4;
    while ((INT64_C(5) << bits) / 8 < count + 1) bits++;
    return bits;
}

int64_t hr_bpe_bytes(hr_bpe_size size)
{
    const int64_t aligned = 64, ids = size.ids + 1, nodes = 2 * ids;
    return ids * 4 + size.text_bytes + 16 + ids + ids * (int64_t)sizeof(hr_bpe_origin) +
           ids * (int64_t)sizeof(hr_bpe_token) + (INT64_C(8) << bits_for(size.pairs)) +
           (INT64_C(1) << (bits_for(size.pairs) + FILTER_MORE_BITS)) / 8 + (size.pairs + 1) * 4 +
           (size.whole_first ? INT64_C(4) << bits_for(size.ids) : 0) + STARTS * INT64_C(4) +
           nodes * (int64_t)sizeof(hr_bpe_node) +
           (nodes / LABELS + 1) * (int64_t)sizeof(hr_bpe_set) + 12 * aligned;
}

/* Scratch has two uses in turn. Finding origins: pairs in rank order. Then sorting: two rows of ids
 * and of the first eight bytes of tokens; and the tree: the span of tokens below each node. */
int64_t hr_bpe_scratch_bytes(hr_bpe_size size)
{
    const int64_t ids = size.ids + 1;
    return hr_max(ids * 4 + (size.pairs + 1) * 8, ids * (4 + 4 + 8 + 16 + 8)) + 8 * 64;
}

hr_status hr_bpe_place(hr_bpe *bpe, hr_region *region, hr_bpe_size size, hr_error *err)
{
    const int64_t ids = size.ids + 1;
    HR_ASSERT(size.ids <= HR_BPE_IDS_MAX && size.pairs < HR_BPE_RANKS_MAX);
    *bpe = (hr_bpe){ .size = size };
    bpe->pair_bits = bits_for(size.pairs);
    bpe->slot_bits = size.whole_first ? bits_for(size.ids) : 0;
    bpe->text_at = hr_region_take(region, ids, 4);
    bpe->text = hr_region_take_raw(region, size.text_bytes + 16, 1);
    bpe->present = hr_region_take(region, ids, 1);
    bpe->origins = hr_region_take_raw(region, ids, sizeof *bpe->origins);
    bpe->tokens = hr_region_take_raw(region, ids, sizeof *bpe->tokens);
    bpe->pairs = hr_region_take(region, INT64_C(1) << bpe->pair_bits, 8);
    bpe->filter_bits = bpe->pair_bits + FILTER_MORE_BITS;
    bpe->maybe = hr_region_take(region, (INT64_C(1) << bpe->filter_bits) / 64, 8);
    bpe->results = hr_region_take_raw(region, size.pairs + 1, 4);
    bpe->slots = size.whole_first ? hr_region_take_raw(region, INT64_C(1) << bpe->slot_bits, 4)
                                  : NULL;
    bpe->nodes = hr_region_take_raw(region, 2 * ids, sizeof *bpe->nodes);
    bpe->starts = hr_region_take(region, STARTS, 4);
    bpe->sets = hr_region_take_raw(region, 2 * ids / LABELS + 1, sizeof *bpe->sets);
    if (!bpe->sets)
        return hr_fail(err, HR_NO_FIT, "tokenizer tables: need %lld bytes, the region has %lld",
                       (long long)hr_bpe_bytes(size), (long long)region->bytes);
    return HR_OK;
}

/* ---- pairs */

static uint64_t mix(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

/* Left and right id in the high bits, with room for the rank below. A used slot is never 0, because
 * its lowest bit is set. */
static uint64_t pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << (ID_BITS + RANK_BITS) | (uint64_t)right << RANK_BITS;
}

static inline uint64_t pair_hash(uint64_t key)
{
    return mix(key >> RANK_BITS) * UINT64_C(0xff51afd7ed558ccd);
}

bool hr_bpe_add_merge(hr_bpe *bpe, uint32_t left, uint32_t right, int32_t rank, uint32_t result)
{
    const uint64_t key = pair_key(left, right);
    const int64_t mask = (INT64_C(1) << bpe->pair_bits) - 1;
    if (rank + 1 >= HR_BPE_RANKS_MAX) return false;
    const uint64_t hash = pair_hash(key), bit = hash >> (64 - bpe->filter_bits);
    int64_t slot = (int64_t)(hash >> (64 - bpe->pair_bits));
    bpe->maybe[bit >> 6] |= UINT64_C(1) << (bit & 63);
    for (int64_t tried = 0; bpe->pairs[slot]; slot = (slot + 1) & mask) {
        if (bpe->pairs[slot] >> RANK_BITS == key >> RANK_BITS) break;
        if (++tried > mask / 2) return false;
    }
    bpe->pairs[slot] = key | (uint64_t)(rank + 1);
    if (bpe->results && rank <= bpe->size.pairs) bpe->results[rank] = result;
    return true;
}

int32_t hr_bpe_rank(const hr_bpe *bpe, uint32_t left, uint32_t right)
{
    const uint64_t key = pair_key(left, right);
    const int64_t mask = (INT64_C(1) << bpe->pair_bits) - 1;
    const uint64_t hash = pair_hash(key), bit = hash >> (64 - bpe->filter_bits);
    if (!(bpe->maybe[bit >> 6] >> (bit & 63) & 1)) return HR_BPE_NONE;
    for (int64_t slot = (int64_t)(hash >> (64 - bpe->pair_bits)); bpe->pairs[slot];
         slot = (slot + 1) & mask)
        if (bpe->pairs[slot] >> RANK_BITS == key >> RANK_BITS)
            return (int32_t)(bpe->pairs[slot] & ((1 << RANK_BITS) - 1)) - 1;
    return HR_BPE_NONE;
}

/* ---- origins of tokens */

/* Undoes the merges that made both tokens, the latest first. At each point it checks whether the
 * tokens then adjacent at the border would have merged before that merge. Among equal ranks the
 * left merge comes first. */
bool hr_bpe_is_stable(const hr_bpe *bpe, uint32_t left, uint32_t right, int32_t limit)
{
    int32_t left_next = limit, right_next = limit - 1; /* rank of the merge that used x, y */
    for (;;) {
        const int32_t rank = hr_bpe_rank(bpe, left, right);
        if (rank >= 0 && rank < left_next && rank <= right_next) return false;
        const hr_bpe_origin *of_left = &bpe->origins[left], *of_right = &bpe->origins[right];
        if (of_left->rank > of_right->rank) {
            left_next = of_left->rank;
            left = of_left->right;
        } else if (of_right->rank >= 0) {
            right_next = of_right->rank;
            right = of_right->left;
        } else {
            return true;
        }
    }
}

/* late [ids]: lowest rank of a merge that was skipped because one of its halves could not be made
 * yet. If a later merge makes that half, the skipped merge has a lower rank than its half, so the
 * table is not orderly. A merge whose result is made by another merge is never applied, so its rank
 * does not matter. */
static void note_late(const hr_bpe *bpe, uint32_t left, uint32_t right, int32_t rank,
                      uint32_t result, int32_t *late)
{
    if (bpe->origins[result].rank != HR_BPE_NEVER) return;
    if (bpe->origins[left].rank == HR_BPE_NEVER && rank < late[left]) late[left] = rank;
    if (bpe->origins[right].rank == HR_BPE_NEVER && rank < late[right]) late[right] = rank;
}

/* A merge is the origin of its result if both halves can be made by then, and no merge of a lower
 * rank joins across their border first. */
static void add_origin(hr_bpe *bpe, uint32_t left, uint32_t right, int32_t rank, uint32_t result,
                       const int32_t *late)
{
    hr_bpe_origin *origin = &bpe->origins[result];
    if (bpe->origins[left].rank == HR_BPE_NEVER || bpe->origins[right].rank == HR_BPE_NEVER ||
        origin->rank != HR_BPE_NEVER)
        return;
    /* The pair itself has this rank, which is not lower than its own. */
    int32_t left_next = rank, right_next = rank - 1;
    uint32_t x = left, y = right;
    for (;;) {
        const int32_t between = hr_bpe_rank(bpe, x, y);
        if (between >= 0 && between < left_next && between <= right_next) return;
        const hr_bpe_origin *of_x = &bpe->origins[x], *of_y = &bpe->origins[y];
        if (of_x->rank > of_y->rank) {
            left_next = of_x->rank;
            x = of_x->right;
        } else if (of_y->rank >= 0) {
            right_next = of_y->rank;
            y = of_y->left;
        } else {
            break;
        }
    }
    *origin = (hr_bpe_origin){ rank, left, right };
    if (late[result] <= rank) bpe->orderly = false;
}

/* Treats every way to split a token in two tokens as a merge. */
static void add_splits(hr_bpe *bpe, int32_t id, int32_t rank, int32_t *late, bool notes)
{
    const uint8_t *text = bpe->text + bpe->text_at[id];
    const int64_t bytes = hr_bpe_token_bytes(bpe, (uint32_t)id);
    for (int64_t cut = 1; cut < bytes; cut++) {
        const int32_t left = hr_bpe_find(bpe, text, cut);
        const int32_t right = left < 0 ? left : hr_bpe_find(bpe, text + cut, bytes - cut);
        if (right < 0) continue;
        if (notes) note_late(bpe, (uint32_t)left, (uint32_t)right, rank, (uint32_t)id, late);
        else if (hr_bpe_add_merge(bpe, (uint32_t)left, (uint32_t)right, rank, (uint32_t)id))
            add_origin(bpe, (uint32_t)left, (uint32_t)right, rank, (uint32_t)id, late);
    }
}

/* Marks the tokens that consist of no other tokens: single bytes or characters; in HR_BPE_TREE all
 * tokens. */
static void find_units(hr_bpe *bpe)
{
    if (bpe->kind <= HR_BPE_RANKS) {
        for (int32_t byte = 0; byte < 256; byte++) {
            if (bpe->byte_id[byte] < 0) bpe->bytes_missing = true;
            else bpe->origins[bpe->byte_id[byte]].rank = HR_BPE_BYTE;
        }
        return;
    }
    for (int64_t id = 0; id < bpe->size.ids; id++) {
        const int64_t bytes = hr_bpe_token_bytes(bpe, (uint32_t)id);
        uint32_t point;
        if (bpe->present[id] != HR_BPE_PLAIN || !bytes) continue;
        if (bpe->kind == HR_BPE_TREE ||
            hr_utf8_take(bpe->text + bpe->text_at[id], bytes, &point) == bytes)
            bpe->origins[id].rank = HR_BPE_BYTE;
    }
}

static void find_origins(hr_bpe *bpe, uint64_t *in_order, int32_t *late)
{
    for (int64_t id = 0; id < bpe->size.ids; id++) {
        bpe->origins[id] = (hr_bpe_origin){ HR_BPE_NEVER, 0, 0 };
        late[id] = INT32_MAX;
    }
    find_units(bpe);
    bpe->orderly = !bpe->ties;
    if (bpe->kind == HR_BPE_TREE) return;
    if (bpe->kind == HR_BPE_RANKS) {
        for (int32_t id = 0; id < bpe->size.ids; id++) {
            add_splits(bpe, id, id, late, false);
            add_splits(bpe, id, id, late, true);
        }
        return;
    }
    if (bpe->kind == HR_BPE_SCORES) {
        for (int32_t i = 0; i < bpe->scored; i++) {
            add_splits(bpe, bpe->by_score[i], bpe->score_ranks[i], late, false);
            add_splits(bpe, bpe->by_score[i], bpe->score_ranks[i], late, true);
        }
        return;
    }
    /* in_order [pairs + 1]: left and right of the merge with that rank; 0: none. */
    const int64_t slots = INT64_C(1) << bpe->pair_bits;
    memset(in_order, 0, (size_t)(bpe->size.pairs + 1) * sizeof *in_order);
    for (int64_t slot = 0; slot < slots; slot++) {
        const uint64_t entry = bpe->pairs[slot];
        const int64_t rank = (int64_t)(entry & ((1 << RANK_BITS) - 1)) - 1;
        if (entry) in_order[rank] = entry;
    }
    for (int64_t rank = 0; rank <= bpe->size.pairs; rank++) {
        if (!in_order[rank]) continue;
        const uint32_t left = (uint32_t)(in_order[rank] >> (ID_BITS + RANK_BITS));
        const uint32_t right = (uint32_t)(in_order[rank] >> RANK_BITS) & ((1u << ID_BITS) - 1);
        add_origin(bpe, left, right, (int32_t)rank, bpe->results[rank], late);
        note_late(bpe, left, right, (int32_t)rank, bpe->results[rank], late);
    }
}

/* ---- texts */

static uint64_t hash_text(const uint8_t *text, int64_t bytes)
{
    uint64_t hash = (uint64_t)bytes;
    for (; bytes >= 8; bytes -= 8, text += 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = mix(hash ^ word);
    }
    uint64_t word = 0;
    memcpy(&word, text, (size_t)bytes);
    return mix(mix(hash ^ word) + 1);
}

static bool is_text(const hr_bpe *bpe, int32_t id, const uint8_t *text, int64_t bytes)
{
    return hr_bpe_token_bytes(bpe, (uint32_t)id) == bytes &&
           !memcmp(bpe->text + bpe->text_at[id], text, (size_t)bytes);
}

int32_t hr_bpe_find(const hr_bpe *bpe, const uint8_t *text, int64_t bytes)
{
    const int64_t mask = (INT64_C(1) << bpe->slot_bits) - 1;
    int64_t slot = (int64_t)(hash_text(text, bytes) >> (64 - bpe->slot_bits));
    for (; bpe->slots[slot] >= 0; slot = (slot + 1) & mask)
        if (is_text(bpe, bpe->slots[slot], text, bytes)) return bpe->slots[slot];
    return HR_BPE_NONE;
}

static void fill_slots(hr_bpe *bpe)
{
    const int64_t mask = (INT64_C(1) << bpe->slot_bits) - 1;
    memset(bpe->slots, 0xff, (size_t)(mask + 1) * sizeof *bpe->slots);
    for (int32_t id = 0; id < bpe->size.ids; id++) {
        if (bpe->present[id] != HR_BPE_PLAIN) continue;
        int64_t slot = (int64_t)(hash_text(bpe->text + bpe->text_at[id],
                                           hr_bpe_token_bytes(bpe, (uint32_t)id)) >>
                                 (64 - bpe->slot_bits));
        while (bpe->slots[slot] >= 0) slot = (slot + 1) & mask;
        bpe->slots[slot] = id;
    }
}

/* ---- the tree */

typedef struct {
    const hr_bpe *bpe;
    /* [ids] the first eight bytes as a big-endian number, which sorts like the bytes */
    uint64_t *first;
} sorting;

static bool before(const sorting *sort, uint32_t a, uint32_t b)
{
    if (sort->first[a] != sort->first[b]) return sort->first[a] < sort->first[b];
    const hr_bpe *bpe = sort->bpe;
    const int64_t a_bytes = hr_bpe_token_bytes(bpe, a), b_bytes = hr_bpe_token_bytes(bpe, b);
    const int order = memcmp(bpe->text + bpe->text_at[a], bpe->text + bpe->text_at[b],
                             (size_t)hr_min(a_bytes, b_bytes));
    return order ? order < 0 : a_bytes < b_bytes;
}

/* Bottom-up merge sort. Returns whichever of the two rows holds the result. */
static uint32_t *sort_ids(const sorting *sort, uint32_t *ids, uint32_t *other, int64_t count)
{
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t begin = 0; begin < count; begin += 2 * width) {
            const int64_t middle = hr_min(begin + width, count);
            const int64_t end = hr_min(begin + 2 * width, count);
            int64_t left = begin, right = middle;
            for (int64_t at = begin; at < end; at++) {
                const bool take_left = left < middle &&
                                       (right == end || !before(sort, ids[right], ids[left]));
                other[at] = ids[take_left ? left++ : right++];
            }
        }
        uint32_t *swap = ids;
        ids = other;
        other = swap;
    }
    return ids;
}

typedef struct {
    uint32_t begin, end; /* range of sorted tokens below a node */
} span;

/* Length of the longest common prefix of a span, from its first and last token. */
static int64_t common(const hr_bpe *bpe, const uint32_t *sorted, span of, int64_t from)
{
    const uint32_t first = sorted[of.begin], last = sorted[of.end - 1];
    const uint8_t *a = bpe->text + bpe->text_at[first], *b = bpe->text + bpe->text_at[last];
    const int64_t most = hr_min(hr_bpe_token_bytes(bpe, first), hr_bpe_token_bytes(bpe, last));
    while (from < most && a[from] == b[from]) from++;
    return from;
}

static void add_label(hr_bpe *bpe, hr_bpe_node *node, uint8_t label)
{
    if (node->count == LABELS) {
        hr_bpe_set *set = &bpe->sets[bpe->set_count];
        *set = (hr_bpe_set){ { 0 } };
        for (int32_t i = 0; i < LABELS; i++)
            set->bits[node->labels[i] >> 6] |= UINT64_C(1) << (node->labels[i] & 63);
        node->set = (uint32_t)bpe->set_count++;
    }
    if (node->count < LABELS) node->labels[node->count] = label;
    else bpe->sets[node->set].bits[label >> 6] |= UINT64_C(1) << (label & 63);
    node->count++;
}

/* Builds the tree breadth first, so the children of a node are contiguous. best [nodes]: the
 * longest token that ends at a node or above it. */
static void build_tree(hr_bpe *bpe, const uint32_t *sorted, int64_t count, span *spans,
                       int32_t *best)
{
    bpe->node_count = 1;
    bpe->nodes[0] = (hr_bpe_node){ .token = HR_BPE_NONE };
    spans[0] = (span){ 0, (uint32_t)count };
    best[0] = HR_BPE_NONE;
    for (int32_t at = 0; at < bpe->node_count; at++) {
        hr_bpe_node *node = &bpe->nodes[at];
        uint32_t next = spans[at].begin;
        const uint32_t end = spans[at].end;
        if (node->token >= 0) next++; /* the token of this node sorts first */
        node->children = (uint32_t)bpe->node_count;
        while (next < end) {
            const int64_t depth = node->depth;
            const uint8_t label = bpe->text[bpe->text_at[sorted[next]] + depth];
            uint32_t stop = next + 1;
            while (stop < end && bpe->text[bpe->text_at[sorted[stop]] + depth] == label) stop++;
            const span of = { next, stop };
            const int64_t deep = common(bpe, sorted, of, depth + 1);
            const uint32_t first = sorted[next];
            const bool ends = hr_bpe_token_bytes(bpe, first) == deep;
            const int32_t child = bpe->node_count++;
            bpe->nodes[child] = (hr_bpe_node){ .token = ends ? (int32_t)first : HR_BPE_NONE,
                                               .text = bpe->text_at[first],
                                               .depth = (uint16_t)deep };
            spans[child] = of;
            best[child] = ends ? (int32_t)first : best[at];
            if (ends) bpe->tokens[first].shorter = best[at];
            add_label(bpe, node, label);
            next = stop;
        }
    }
}

/* Fills the node to continue at for each pair of first bytes. */
static void fill_starts(hr_bpe *bpe)
{
    for (int32_t i = 0; i < STARTS; i++) {
        const int32_t first = hr_bpe_child(bpe, &bpe->nodes[0], (uint8_t)(i >> 8));
        const hr_bpe_node *node = &bpe->nodes[first];
        if (!first) continue;
        if (node->depth == 1) bpe->starts[i] = hr_bpe_child(bpe, node, (uint8_t)i);
        else if (bpe->text[node->text + 1] == (uint8_t)i) bpe->starts[i] = first;
    }
}

/* Finds the lowest rank that makes a token of several words. No merge uses a token made by a higher
 * rank (the tables are orderly), so all merges below this rank can be applied first, word by
 * word. */
static void find_words_rank(hr_bpe *bpe)
{
    bpe->words_rank = INT32_MAX;
    int32_t last = 0;
    for (int64_t id = 0; id < bpe->size.ids; id++) {
        const int32_t rank = bpe->origins[id].rank;
        const uint8_t *text = bpe->text + bpe->text_at[id];
        if (rank < 0 || rank == HR_BPE_NEVER) continue;
        if (rank > last) last = rank;
        for (int64_t i = 1; i < bpe->tokens[id].bytes && rank < bpe->words_rank; i++)
            if (hr_bpe_ends_word(text[i - 1], text[i])) bpe->words_rank = rank;
    }
    bpe->by_words = bpe->kind <= HR_BPE_RANKS && bpe->orderly && bpe->words_rank <= last &&
                    bpe->words_rank > last / 8;
}

hr_status hr_bpe_finish(hr_bpe *bpe, hr_bpe_kind kind, hr_region scratch, hr_error *err)
{
    const bool by_result = kind == HR_BPE_RANKS || kind == HR_BPE_SCORES;
    bpe->kind = kind;
    const int64_t ids = bpe->size.ids + 1;
    for (int32_t byte = 0; byte < 256; byte++) bpe->byte_id[byte] = HR_BPE_NONE;
    for (int32_t id = 0; id < bpe->size.ids; id++) {
        const int64_t bytes = hr_bpe_token_bytes(bpe, (uint32_t)id);
        bpe->tokens[id] = (hr_bpe_token){ HR_BPE_NONE, (int32_t)bytes };
        if (bpe->present[id] != HR_BPE_PLAIN) continue;
        if (bytes > HR_BPE_TOKEN_BYTES_MAX)
            return hr_fail(err, HR_CORRUPT, "token %d has %lld bytes; the limit is %d", id,
                           (long long)bytes, HR_BPE_TOKEN_BYTES_MAX);
        if (bytes > bpe->longest_bytes) bpe->longest_bytes = (int32_t)bytes;
        if (bytes == 1) bpe->byte_id[bpe->text[bpe->text_at[id]]] = id;
    }
    if (bpe->slots) fill_slots(bpe);
    hr_region early = scratch;
    uint64_t *in_order = hr_region_take_raw(&early, by_result ? 1 : bpe->size.pairs + 1, 8);
    int32_t *late = hr_region_take_raw(&early, ids, 4);
    uint32_t *one = hr_region_take_raw(&scratch, ids, 4);
    uint32_t *two = hr_region_take_raw(&scratch, ids, 4);
    uint64_t *first = hr_region_take_raw(&scratch, ids, 8);
    span *spans = hr_region_take_raw(&scratch, 2 * ids, sizeof *spans);
    int32_t *best = hr_region_take_raw(&scratch, 2 * ids, 4);
    if (!best || !late || !in_order)
        return hr_fail(err, HR_NO_FIT, "tokenizer tables: need %lld bytes of scratch",
                       (long long)hr_bpe_scratch_bytes(bpe->size));
    find_origins(bpe, in_order, late);
    int64_t count = 0;
    for (int32_t id = 0; id < bpe->size.ids; id++) {
        if (bpe->present[id] != HR_BPE_PLAIN || bpe->origins[id].rank == HR_BPE_NEVER) continue;
        const uint8_t *text = bpe->text + bpe->text_at[id];
        const int64_t bytes = hr_bpe_token_bytes(bpe, (uint32_t)id);
        first[id] = 0;
        for (int64_t i = 0; i < 8; i++) first[id] = first[id] << 8 | (i < bytes ? text[i] : 0);
        one[count++] = (uint32_t)id;
    }
    const sorting sort = { bpe, first };
    build_tree(bpe, sort_ids(&sort, one, two, count), count, spans, best);
    fill_starts(bpe);
    find_words_rank(bpe);
    return HR_OK;
}
