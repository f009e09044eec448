/* SPDX-License-Identifier: Apache-2.0 */
/* text/text.c - the passes of hr_text_prepare: hash, count, rank, encode; each skipped when its
 * result is there already. */
#include "text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/region.h"
#include "text/blocks.h"
#include "text/scan.h"
#include "text/shard.h"
#include "text/vocabulary.h"

/* After the table is full, how many rounds, each over a share of the words, count the rest. */
enum { RECOUNT_ROUNDS = 8 };

/* What the passes work with; everything lies in the caller's memory. */
typedef struct {
    const hr_text_desc *desc;
    const hr_text_progress *progress;
    hr_error *err;
    hr_source *source;
    uint8_t *buffer, *word; /* of the source; of the scan */
    uint8_t *shard_memory;  /* a shard's writer or reader, or staging of the vocabulary */
    uint8_t *vocabulary_memory;
    uint8_t *table_memory;
    uint32_t *order;     /* [V - 4] */
    hr_word_table table; /* words: filled from the vocabulary when something is encoded */
    bool table_loaded;
} prepare;

/* ---- memory */

static bool in_range(const hr_text_desc *desc)
{
    if (desc->vocab_size > INT32_MAX) return false;
    if (desc->tokenizer == HR_TOKENIZER_BYTES) return desc->vocab_size >= HR_BYTES_VOCABULARY;
    return desc->vocab_size > HR_WORDS_SPECIAL && desc->words_max >= 1 &&
           desc->words_max <= HR_WORDS_MAX;
}

int64_t hr_text_prepare_bytes(const hr_text_desc *desc)
{
    if (!in_range(desc)) return 0;
    int64_t bytes = hr_round_up(sizeof(hr_source), 64) + HR_SOURCE_MARGIN + HR_SOURCE_BYTES +
                    hr_max(hr_shard_bytes(), hr_shard_writer_bytes());
    if (desc->tokenizer == HR_TOKENIZER_WORDS)
        bytes += HR_WORD_BYTES + hr_vocabulary_bytes(desc->tokenizer, desc->vocab_size) +
                 hr_words_bytes(desc->words_max) +
                 hr_round_up((desc->vocab_size - HR_WORDS_SPECIAL) * (int64_t)sizeof(uint32_t), 64);
    return bytes;
}

static void place(prepare *p, hr_region *region)
{
    const hr_text_desc *desc = p->desc;
    p->source = hr_region_take(region, 1, sizeof(hr_source));
    p->buffer = hr_region_take(region, 1, HR_SOURCE_MARGIN + HR_SOURCE_BYTES);
    p->shard_memory = hr_region_take(region, 1, hr_max(hr_shard_bytes(), hr_shard_writer_bytes()));
    HR_ASSERT(p->source && p->buffer && p->shard_memory);
    if (desc->tokenizer == HR_TOKENIZER_BYTES) return;
    p->word = hr_region_take(region, 1, HR_WORD_BYTES);
    p->vocabulary_memory = hr_region_take(region, 1,
                                          hr_vocabulary_bytes(desc->tokenizer, desc->vocab_size));
    p->table_memory = hr_region_take(region, 1, hr_words_bytes(desc->words_max));
    p->order = hr_region_take(region, desc->vocab_size - HR_WORDS_SPECIAL, sizeof(uint32_t));
    HR_ASSERT(p->word && p->vocabulary_memory && p->table_memory && p->order);
}

static hr_status check_desc(const hr_text_desc *desc, int64_t bytes, hr_error *err)
{
    if (desc->tokenizer == HR_TOKENIZER_BYTES && desc->vocab_size < HR_BYTES_VOCABULARY)
        return hr_fail(err, HR_USAGE, "model.vocab_size=%lld: data.tokenizer=bytes needs %d",
                       (long long)desc->vocab_size, HR_BYTES_VOCABULARY);
    if (desc->vocab_size <= HR_WORDS_SPECIAL || desc->vocab_size > INT32_MAX)
        return hr_fail(err, HR_USAGE, "model.vocab_size=%lld: data.tokenizer=words needs %d to %d",
                       (long long)desc->vocab_size, HR_WORDS_SPECIAL + 1, INT32_MAX);
    if (!in_range(desc))
        return hr_fail(err, HR_USAGE, "data.words_max=%lld: must lie between 1 and %d",
                       (long long)desc->words_max, HR_WORDS_MAX);
    const int64_t needed = hr_text_prepare_bytes(desc);
    if (bytes < needed)
        return hr_fail(err, HR_NO_FIT, "preparing the text needs %lld bytes, there are %lld",
                       (long long)needed, (long long)bytes);
    return HR_OK;
}

/* ---- passes over a text */

static hr_status open_source(prepare *p, const char *path, const char *work)
{
    return hr_source_open(p->source, path, work, p->buffer, p->progress, p->err);
}

/* Reads a text for its identity alone. */
static hr_status hash_text(prepare *p, const char *path, hr_text_hash *hash, int64_t *bytes)
{
    int64_t count = 1;
    hr_status status = open_source(p, path, "reading text");
    if (status != HR_OK) return status;
    while (status == HR_OK && count > 0) status = hr_source_next(p->source, &count, p->err);
    *hash = hr_source_hash(p->source);
    *bytes = p->source->bytes;
    hr_source_close(p->source);
    if (status == HR_OK && *bytes == 0)
        return hr_fail(p->err, HR_CORRUPT, "%s: is empty, and text is needed", path);
    return status;
}

/* What hash_text saw must be what a later pass read. */
static hr_status check_unchanged(prepare *p, hr_text_hash hash)
{
    if (hr_text_hash_equal(hr_source_hash(p->source), hash)) return HR_OK;
    return hr_fail(p->err, HR_FAILURE, "%s: changed while it was read: run again", p->source->path);
}

/* Counts the words whose hash falls into `round` of `rounds`.
 *
 *   full  out; the table could not take them all */
static hr_status count_words(prepare *p, uint64_t round, uint64_t rounds, bool *full)
{
    hr_words_clear(&p->table);
    *full = false;
    hr_status status = open_source(p, p->desc->train, "counting words");
    if (status != HR_OK) return status;
    hr_scan scan = hr_scan_over(p->source, p->word);
    while (!*full) {
        int64_t bytes;
        status = hr_scan_next(&scan, &bytes, p->err);
        if (status != HR_OK || bytes == 0) break;
        const uint64_t hash = hr_words_hash(p->word, bytes);
        if (hash % rounds != round) continue;
        const int64_t index = hr_words_add(&p->table, p->word, bytes, hash);
        if (index >= 0) p->table.words[index].count++;
        *full = index < 0;
    }
    hr_source_close(p->source);
    return status;
}

/* The table was too small for the text. Counts how large it would have to be, a share of the words
 * at a time, so that the sentence can say what to type. */
static hr_status refuse_words(prepare *p)
{
    const int64_t words_max = p->desc->words_max;
    int64_t words = 0, text_bytes = 0;
    bool full = false;
    for (uint64_t round = 0; round < RECOUNT_ROUNDS && !full; round++) {
        const hr_status status = count_words(p, round, RECOUNT_ROUNDS, &full);
        if (status != HR_OK) return status;
        words += p->table.word_count;
        text_bytes += p->table.text_bytes;
    }
    const int64_t by_text = (text_bytes + HR_WORDS_TEXT_BYTES - 1) / HR_WORDS_TEXT_BYTES;
    const int64_t needed = hr_max(words, by_text) + full;
    return hr_fail(p->err, HR_USAGE,
                   "%s: has %s%lld distinct words of %lld bytes, and data.words_max=%lld has room "
                   "for %lld of %lld bytes: type data.words_max=%lld%s",
                   p->desc->train, full ? "more than " : "", (long long)words,
                   (long long)text_bytes, (long long)words_max, (long long)words_max,
                   (long long)(words_max * HR_WORDS_TEXT_BYTES), (long long)needed,
                   full ? " or more" : "");
}

/* Counts the training text and writes the vocabulary's file. */
static hr_status make_vocabulary(prepare *p, const char *name, hr_text_hash train)
{
    bool full;
    hr_status status = count_words(p, 0, 1, &full);
    if (status == HR_OK && full) return refuse_words(p);
    if (status == HR_OK) status = check_unchanged(p, train);
    if (status != HR_OK) return status;
    if (p->table.word_count == 0)
        return hr_fail(p->err, HR_CORRUPT, "%s: has no words, only white space", p->desc->train);
    const int64_t kept = hr_words_rank(&p->table, p->order, p->desc->vocab_size - HR_WORDS_SPECIAL);
    return hr_vocabulary_write(p->desc->cache, name, &p->table, p->order, kept, p->desc->vocab_size,
                               train, p->shard_memory, p->err);
}

static hr_status encode_bytes(prepare *p, hr_shard_writer *writer, hr_shard_info *info)
{
    int64_t count = 1;
    hr_status status = HR_OK;
    while (status == HR_OK && count > 0) {
        status = hr_source_next(p->source, &count, p->err);
        if (status == HR_OK)
            status = hr_shard_append_bytes(writer, p->source->piece, count, p->err);
    }
    info->covered = p->source->bytes;
    return status;
}

static hr_status encode_words(prepare *p, hr_shard_writer *writer, hr_shard_info *info)
{
    enum { IDS = 1024 };
    uint32_t ids[IDS];
    int64_t count = 0, bytes = 1;
    hr_status status = HR_OK;
    hr_scan scan = hr_scan_over(p->source, p->word);
    while (status == HR_OK && bytes > 0) {
        status = hr_scan_next(&scan, &bytes, p->err);
        if (status == HR_OK && bytes > 0) {
            const uint64_t hash = hr_words_hash(p->word, bytes);
            const int64_t index = hr_words_find(&p->table, p->word, bytes, hash);
            ids[count++] = index < 0 ? HR_WORD_UNKNOWN : (uint32_t)(index + HR_WORDS_SPECIAL);
            info->covered += index >= 0;
        }
        if (status == HR_OK && (count == IDS || bytes == 0)) {
            status = hr_shard_append(writer, ids, count, p->err);
            count = 0;
        }
    }
    return status;
}

/* Writes the shard of one text. */
static hr_status make_shard(prepare *p, const char *path, const char *name, hr_shard_info *info)
{
    const bool words = p->desc->tokenizer == HR_TOKENIZER_WORDS;
    const int64_t vocab_size = words ? p->desc->vocab_size : HR_BYTES_VOCABULARY;
    hr_shard_writer *writer = 0;
    hr_status status = open_source(p, path, "writing token ids");
    if (status != HR_OK) return status;
    status = hr_shard_begin(&writer, p->shard_memory, p->desc->cache, name, vocab_size, p->err);
    if (status == HR_OK)
        status = words ? encode_words(p, writer, info) : encode_bytes(p, writer, info);
    if (status == HR_OK) status = check_unchanged(p, info->source);
    hr_source_close(p->source);
    if (status == HR_OK) return hr_shard_commit(writer, info, p->err);
    hr_shard_abort(writer);
    return status;
}

/* ---- what is there already */

/* Whether the shard belongs to that text and tokenizer; its name says so, its header proves it. */
static bool belongs(const hr_shard_info *have, const hr_shard_info *want)
{
    return have->kind == want->kind && hr_text_hash_equal(have->source, want->source) &&
           hr_text_hash_equal(have->tokenizer, want->tokenizer);
}

/* Opens the shard, holds it against what is wanted, and reads all of it when it was not made just
 * now: a run should not meet the flipped bit in its third week. */
static hr_status take_shard(prepare *p, const char *source, const hr_shard_info *want,
                            hr_text_part *part)
{
    hr_shard *shard = 0;
    hr_status status = hr_shard_open(&shard, p->shard_memory, part->shard, p->err);
    if (status != HR_OK) return status;
    const hr_shard_info *have = hr_shard_view(shard);
    part->source_bytes = have->source_bytes;
    part->tokens = have->tokens;
    part->covered = have->covered;
    if (!belongs(have, want))
        status = hr_fail(p->err, HR_CORRUPT,
                         "%s: was made from another text than %s: delete the file and run again",
                         part->shard, source);
    else if (part->reused) status = hr_shard_check(shard, p->progress, p->err);
    hr_shard_close(&shard);
    if (status == HR_OK && part->tokens == 0)
        return hr_fail(p->err, HR_CORRUPT, "%s: has no words, only white space", source);
    return status;
}

static hr_status load_table(prepare *p, hr_vocabulary *vocabulary)
{
    if (p->table_loaded || !vocabulary) return HR_OK;
    hr_words_clear(&p->table);
    p->table_loaded = true;
    return hr_vocabulary_load(vocabulary, &p->table, p->err);
}

/* Makes or finds the shard of one text whose identity is `info`'s. */
static hr_status prepare_part(prepare *p, const char *path, hr_vocabulary *vocabulary,
                              hr_shard_info *info, hr_text_part *part)
{
    char name[HR_NAME_BYTES];
    if (vocabulary)
        snprintf(name, sizeof name, "words-%016" PRIx64 "-%016" PRIx64 ".tokens",
                 info->tokenizer.low, info->source.low);
    else snprintf(name, sizeof name, "bytes-%016" PRIx64 ".tokens", info->source.low);
    hr_status status = hr_path_join(p->desc->cache, name, part->shard, sizeof part->shard, p->err);
    if (status != HR_OK) return status;
    part->reused = hr_file_exists(part->shard);
    if (!part->reused) {
        status = load_table(p, vocabulary);
        if (status == HR_OK) status = make_shard(p, path, name, info);
        if (status != HR_OK) return status;
    }
    return take_shard(p, path, info, part);
}

/* Makes or finds the vocabulary of the training text, and opens it. */
static hr_status prepare_vocabulary(prepare *p, hr_text_hash train, hr_vocabulary **vocabulary,
                                    hr_text *text)
{
    char name[HR_NAME_BYTES];
    hr_error *err = p->err;
    snprintf(name, sizeof name, "words-%lld-%016" PRIx64 ".vocabulary",
             (long long)p->desc->vocab_size, train.low);
    hr_status status = hr_path_join(p->desc->cache, name, text->vocabulary, sizeof text->vocabulary,
                                    err);
    if (status == HR_OK && !hr_file_exists(text->vocabulary))
        status = make_vocabulary(p, name, train);
    if (status == HR_OK)
        status = hr_vocabulary_open(vocabulary, p->vocabulary_memory, p->desc->tokenizer,
                                    p->desc->vocab_size, text->vocabulary, err);
    if (status != HR_OK) return status;
    const hr_vocabulary_info *info = hr_vocabulary_view(*vocabulary);
    text->vocabulary_used = info->used;
    text->distinct_words = info->distinct_words;
    if (hr_text_hash_equal(info->source, train)) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: was made from another text than %s: delete the file and run again",
                   text->vocabulary, p->desc->train);
}

/* ---- all of it */

static hr_status prepare_parts(prepare *p, hr_text *text)
{
    const hr_text_desc *desc = p->desc;
    hr_vocabulary *vocabulary = 0;
    hr_shard_info train = { .kind = desc->tokenizer }, valid = { .kind = desc->tokenizer };
    hr_status status = HR_OK;
    if (*desc->train) status = hash_text(p, desc->train, &train.source, &train.source_bytes);
    if (status == HR_OK && *desc->valid)
        status = hash_text(p, desc->valid, &valid.source, &valid.source_bytes);
    if (status == HR_OK && desc->tokenizer == HR_TOKENIZER_WORDS) {
        status = prepare_vocabulary(p, train.source, &vocabulary, text);
        if (status == HR_OK)
            train.tokenizer = valid.tokenizer = hr_vocabulary_view(vocabulary)->words;
    }
    if (status == HR_OK && *desc->train)
        status = prepare_part(p, desc->train, vocabulary, &train, &text->train);
    if (status == HR_OK && *desc->valid)
        status = prepare_part(p, desc->valid, vocabulary, &valid, &text->valid);
    hr_vocabulary_close(&vocabulary);
    return status;
}

hr_status hr_text_prepare(const hr_text_desc *desc, void *memory, int64_t bytes,
                          const hr_text_progress *progress, hr_text *text, hr_error *err)
{
    hr_text made = { .vocabulary_used = HR_BYTES_VOCABULARY };
    hr_status status = check_desc(desc, bytes, err);
    if (status == HR_OK) status = hr_directory_make(desc->cache, err);
    if (status != HR_OK) return status;
    prepare p = { .desc = desc, .progress = progress, .err = err };
    hr_region region = hr_region_over(memory, bytes);
    place(&p, &region);
    if (desc->tokenizer == HR_TOKENIZER_WORDS)
        p.table = hr_words_place(p.table_memory, desc->words_max);
    status = prepare_parts(&p, &made);
    if (status == HR_OK) *text = made;
    return status;
}
