/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/unigram.c - Viterbi: the best last token for each position. Sums are kept in a ring
 * buffer for as many positions as the longest token has bytes. */
#include "tokenizer/unigram.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/unicode.h"

enum { NOTHING = -1, UNKNOWN = -2 };

struct hr_unigram_workspace {
    const hr_unigram *unigram;
    double *sums; /* [mask + 1] ring buffer: sum of the best path to a position */
    int64_t mask;
    int32_t *ids; /* [piece_bytes + 2] last token of the best path to a position */
    int64_t piece_bytes;
    double sum; /* of all previous parts */
};

static int64_t ring_of(const hr_unigram *unigram)
{
    int64_t ring = 8;
    while (ring < unigram->tree->longest_bytes + 8) ring *= 2;
    return ring;
}

int64_t hr_unigram_workspace_bytes(const hr_unigram *unigram, int64_t piece_bytes)
{
    return (int64_t)sizeof(hr_unigram_workspace) + ring_of(unigram) * 8 + (piece_bytes + 2) * 4 +
           4 * 64;
}

hr_status hr_unigram_workspace_place(hr_unigram_workspace **work, hr_region *region,
                                     const hr_unigram *unigram, int64_t piece_bytes, hr_error *err)
{
    hr_unigram_workspace *made = hr_region_take(region, 1, sizeof *made);
    double *sums = hr_region_take_raw(region, ring_of(unigram), 8);
    int32_t *ids = hr_region_take_raw(region, piece_bytes + 2, 4);
    if (!made || !sums || !ids)
        return hr_fail(err, HR_NO_FIT, "encoding: needs %lld bytes, the region has %lld",
                       (long long)hr_unigram_workspace_bytes(unigram, piece_bytes),
                       (long long)region->bytes);
    *made = (hr_unigram_workspace){ .unigram = unigram,
                                    .sums = sums,
                                    .mask = ring_of(unigram) - 1,
                                    .ids = ids,
                                    .piece_bytes = piece_bytes };
    *work = made;
    return HR_OK;
}

void hr_unigram_begin(hr_unigram_workspace *work)
{
    work->sum = 0;
}

void hr_unigram_continue(hr_unigram_workspace *work, const hr_unigram_workspace *before)
{
    work->sum = before->sum;
}

/* Records a path to `end` with last token `id` if it is better than the known one. */
static inline void offer(hr_unigram_workspace *work, int64_t *frontier, int64_t end, int32_t id,
                         double before, double score)
{
    double sum = before + score;
    if (work->unigram->single) sum = (float)before + (float)score;
    while (*frontier < end) work->ids[++*frontier] = NOTHING;
    if (work->ids[end] != NOTHING && !(sum > work->sums[end & work->mask])) return;
    work->ids[end] = id;
    work->sums[end & work->mask] = work->unigram->single ? (float)sum : sum;
}

/* Records all tokens that begin at `at`. Returns whether the single character at `at` is one of
 * them. */
static bool offer_tokens(hr_unigram_workspace *work, const uint8_t *text, int64_t at, int64_t bytes,
                         int64_t character, int64_t *frontier, double before)
{
    const hr_bpe *tree = work->unigram->tree;
    const double *scores = work->unigram->scores;
    const uint8_t *here = text + at;
    const int64_t most = bytes - at;
    bool alone = false;
    if (tree->byte_id[here[0]] >= 0) {
        offer(work, frontier, at + 1, tree->byte_id[here[0]], before,
              scores[tree->byte_id[here[0]]]);
        alone = character == 1;
    }
    if (most < 2) return alone;
    int64_t depth = 2;
    for (int32_t next = tree->starts[here[0] << 8 | here[1]]; next;) {
        const hr_bpe_node *node = &tree->nodes[next];
        if (node->depth > most) break;
        const uint8_t *example = tree->text + node->text;
        while (depth < node->depth && here[depth] == example[depth]) depth++;
        if (depth < node->depth) break;
        if (node->token >= 0) {
            offer(work, frontier, at + depth, node->token, before, scores[node->token]);
            alone |= depth == character;
        }
        if (depth == most) break;
        next = hr_bpe_child(tree, node, here[depth]);
        depth++;
    }
    return alone;
}

/* Restarts float sums that have become large. */
static void reset_sums(hr_unigram_workspace *work, int64_t at, int64_t frontier)
{
    const float sum = (float)work->sums[at & work->mask];
    if (!(sum < -100000.0f) && !(sum > 100000.0f)) return;
    for (int64_t i = at; i <= frontier; i++)
        if (i == at || work->ids[i] != NOTHING)
            work->sums[i & work->mask] = (float)work->sums[i & work->mask] - sum;
}

/* Writes the tokens of the best path, from last to first, to the end of the same row. Returns the
 * index of the first. */
static int64_t trace(hr_unigram_workspace *work, const uint8_t *text, int64_t bytes)
{
    const hr_bpe *tree = work->unigram->tree;
    int64_t to = bytes + 1;
    for (int64_t at = bytes; at > 0;) {
        const int32_t id = work->ids[at];
        HR_ASSERT(id != NOTHING);
        work->ids[to--] = id;
        if (id >= 0) {
            at -= tree->tokens[id].bytes;
            continue;
        }
        do at--;
        while (at > 0 && (text[at] & 0xc0) == 0x80);
    }
    return to + 1;
}

int64_t hr_unigram_encode(hr_unigram_workspace *work, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids)
{
    const hr_bpe *tree = work->unigram->tree;
    int64_t frontier = 0, count = 0, at = 0;
    uint32_t point;
    HR_ASSERT(bytes <= work->piece_bytes);
    work->ids[0] = 0;
    work->sums[0] = work->sum;
    for (int64_t character; at < bytes; at += character) {
        if (work->unigram->single) reset_sums(work, at, frontier);
        character = hr_utf8_take(text + at, bytes - at, &point);
        const double before = work->sums[at & work->mask];
        if (!offer_tokens(work, text, at, bytes, character, &frontier, before))
            offer(work, &frontier, at + character, UNKNOWN, before, work->unigram->unknown_score);
    }
    work->sum = work->sums[bytes & work->mask];
    at = 0;
    for (int64_t from = trace(work, text, bytes); from <= bytes + 1; from++) {
        const int32_t id = work->ids[from];
        if (id >= 0) {
            work->ids[count++] = id;
            at += tree->tokens[id].bytes;
            continue;
        }
        const int64_t taken = hr_utf8_take(text + at, bytes - at, &point);
        if (tree->falls_back)
            for (int64_t i = 0; i < taken; i++) work->ids[count++] = tree->fallback[text[at + i]];
        else work->ids[count++] = tree->unknown;
        at += taken;
    }
    *ids = (const uint32_t *)(const void *)work->ids;
    return count;
}
