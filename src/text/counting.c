/* SPDX-License-Identifier: Apache-2.0 */
/* text/counting.c - counts in one pass if the table is large enough; otherwise in as many passes as
 * are needed to report the necessary size. */
#include "text/counting.h"

#include <stdio.h>

#include "base/checked.h"
#include "text/scan.h"

/* Limit of passes after the table is full: RECOUNT_BYTES of reading (a minute or two), but at least
 * RECOUNTS_LEAST passes. */
enum { RECOUNTS_LEAST = 32 };
#define RECOUNT_BYTES (INT64_C(32) << 30)

/* The words whose hash, with its halves exchanged, is in [first, last]. The halves are exchanged
 * because the table uses the upper bits: words with equal upper bits would cluster in one region of
 * it. */
typedef struct {
    uint64_t first, last;
} share;

int64_t hr_counting_table_words(const hr_text_desc *desc)
{
    return hr_max(desc->words_max, 2 * HR_WORD_BYTES / HR_WORDS_TEXT_BYTES);
}

const char *hr_text_train_name(const hr_text_desc *desc)
{
    return desc->train_count == 1 ? desc->train->name : "data.train";
}

hr_status hr_text_check_unchanged(const hr_text_desc *desc, const hr_documents *documents,
                                  hr_text_hash hash, int64_t *bad_lines, hr_error *err)
{
    hr_text_hash seen = documents->seen(documents->context, bad_lines);
    if (documents->holds) seen.high ^= (uint64_t)(desc->document_end + 1);
    if (hr_text_hash_equal(seen, hash)) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%s: changed while it was read: run again", documents->name);
}

/* Counts the words of a piece that belong to a share. */
static hr_status count_piece(const hr_counting *c, hr_scan *scan, share of, bool *full)
{
    for (;;) {
        int64_t bytes;
        const hr_status status = hr_scan_next(scan, &bytes, c->err);
        if (status != HR_OK || bytes == 0) return status;
        const uint64_t hash = hr_words_hash(c->word, bytes);
        const uint64_t rotated = hash << 32 | hash >> 32;
        if (rotated < of.first || rotated > of.last) continue;
        const int64_t index = hr_words_add(c->table, c->word, bytes, hash);
        *full = index < 0;
        if (*full) return HR_OK;
        c->table->words[index].count++;
    }
}

static hr_status count_part(const hr_counting *c, int32_t part, share of, const char *work,
                            bool *full)
{
    const hr_documents *documents = &c->desc->train[part];
    int64_t bad_lines;
    hr_scan scan = hr_scan_over(c->word);
    hr_piece piece = { .path = "" };
    hr_status status = documents->open(documents->context, work, c->progress, c->err);
    while (status == HR_OK && !*full) {
        status = documents->next(documents->context, &piece, c->err);
        if (status != HR_OK || !piece.path) break;
        hr_scan_take(&scan, &piece);
        if (!piece.discard) status = count_piece(c, &scan, of, full);
    }
    if (status == HR_OK && !*full)
        status = hr_text_check_unchanged(c->desc, documents, c->train[part].source, &bad_lines,
                                         c->err);
    documents->close(documents->context);
    return status;
}

/* Counts the words of all parts that belong to a share.
 *
 *   full  out; the table is too small for them */
static hr_status count_words(const hr_counting *c, share of, const char *work, bool *full)
{
    hr_status status = HR_OK;
    hr_words_clear(c->table);
    *full = false;
    for (int32_t i = 0; i < c->desc->train_count && status == HR_OK && !*full; i++)
        status = count_part(c, i, of, work, full);
    return status;
}

typedef struct {
    int64_t words, bytes;
    bool more; /* there are more than these */
} distinct;

/* Whether twice the words and twice the text would fit. */
static bool is_half_empty(const hr_word_table *table)
{
    return table->word_count <= table->words_max / 2 && table->text_bytes <= table->text_max / 2;
}

/* Counts the distinct words in one pass per share of the hash range. If a share is too large for
 * the table, it is halved; after one that leaves half of the table empty, the next is twice as
 * large. Each share begins at a multiple of its width. */
static hr_status count_distinct(const hr_counting *c, distinct *all)
{
    int64_t text_bytes = 1;
    for (int32_t i = 0; i < c->desc->train_count; i++) text_bytes += c->train[i].source_bytes;
    const int64_t passes = hr_max(RECOUNTS_LEAST, RECOUNT_BYTES / text_bytes);
    uint64_t first = 0, width = UINT64_MAX / 2 + 1;
    *all = (distinct){ .more = true };
    *c->table = hr_words_place(c->table_memory, hr_counting_table_words(c->desc));
    for (int64_t i = 0; i < passes && all->more; i++) {
        const share of = { first, first + (width - 1) };
        char work[64];
        bool full;
        snprintf(work, sizeof work, "counting all words, %.0f %% done",
                 0x1p-64 * 100 * (double)first);
        const hr_status status = count_words(c, of, work, &full);
        if (status != HR_OK) return status;
        if (full && width == 1) break;
        if (full) width /= 2;
        if (full) continue;
        all->words += c->table->word_count;
        all->bytes += c->table->text_bytes;
        all->more = of.last < UINT64_MAX;
        first = of.last + 1;
        const bool wider = is_half_empty(c->table) && width <= UINT64_MAX / 4;
        if (wider && first % (2 * width) == 0) width *= 2;
    }
    return HR_OK;
}

/* Reports that the table was too small, and the size that is necessary. */
static hr_status refuse_words(const hr_counting *c)
{
    const int64_t words_max = c->desc->words_max;
    distinct all;
    const hr_status status = count_distinct(c, &all);
    if (status != HR_OK) return status;
    const int64_t by_text = (all.bytes + HR_WORDS_TEXT_BYTES - 1) / HR_WORDS_TEXT_BYTES;
    const int64_t needed = hr_max(all.words, by_text) + all.more;
    return hr_fail(c->err, HR_USAGE,
                   "%s: has %s%lld distinct words of %lld bytes, but data.words_max=%lld has "
                   "room for %lld of %lld bytes: use data.words_max=%lld%s",
                   hr_text_train_name(c->desc), all.more ? "more than " : "", (long long)all.words,
                   (long long)all.bytes, (long long)words_max, (long long)words_max,
                   (long long)(words_max * HR_WORDS_TEXT_BYTES), (long long)needed,
                   all.more ? " or more" : "");
}

hr_status hr_counting_run(const hr_counting *c)
{
    bool full;
    const hr_status status = count_words(c, (share){ 0, UINT64_MAX }, "counting words", &full);
    return status == HR_OK && full ? refuse_words(c) : status;
}
