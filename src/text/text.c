/* SPDX-License-Identifier: Apache-2.0 */
/* text/text.c - the passes of hr_text_prepare: identify, count, rank, encode. A pass is skipped if
 * its result is in the cache. */
#include "text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "base/region.h"
#include "config/config.h"
#include "text/blocks.h"
#include "text/cache.h"
#include "text/counting.h"
#include "text/scan.h"
#include "text/shard.h"
#include "text/tokens.h"
#include "text/word_vocabulary.h"

/* State of the passes; all pointers are into the caller's memory. */
typedef struct {
    const hr_text_desc *desc;
    const hr_text_progress *progress;
    hr_error *err;
    uint8_t *word;         /* buffer of the scanner */
    uint8_t *shard_memory; /* a shard's writer or reader, or staging of the vocabulary */
    uint8_t *vocabulary_memory;
    uint8_t *table_memory;
    hr_text *made;
    hr_shard_info *train; /* [train_count], identified texts */
    uint32_t *order;      /* [V - 4] */
    hr_word_table table;  /* filled from the vocabulary when words are encoded */
    bool table_loaded;
    uint8_t *tokens_memory, *staging; /* for a tokenizer file */
    hr_tokens_facts facts;
    hr_tokens *tokens;       /* null: not opened yet */
    hr_shard_writer *writer; /* destination of the tokenizer's ids */
    int64_t *covered;        /* counter of these ids */
} prepare;

/* ---- memory */

static bool in_range(const hr_text_desc *desc)
{
    if (desc->vocab_size > INT32_MAX) return false;
    if (desc->tokenizer == HR_TOKENIZER_BYTES)
        return desc->ids_only || desc->vocab_size >= HR_BYTES_VOCABULARY;
    if (desc->tokenizer == HR_TOKENIZER_FILE) return desc->vocab_size >= 1;
    return desc->vocab_size > HR_WORDS_SPECIAL && desc->words_max >= 1 &&
           desc->words_max <= HR_WORDS_MAX;
}

int64_t hr_text_prepare_bytes(const hr_text_desc *desc)
{
    if (!in_range(desc)) return 0;
    int64_t bytes = hr_max(hr_shard_bytes(), hr_shard_writer_bytes()) +
                    hr_round_up(sizeof(hr_text), 64) +
                    hr_round_up(HR_TEXT_PARTS_MAX * sizeof(hr_shard_info), 64);
    hr_tokens_facts facts;
    if (desc->tokenizer == HR_TOKENIZER_FILE && hr_tokens_probe(desc->file, &facts, NULL) == HR_OK)
        bytes += hr_round_up(facts.bytes, 64) + HR_TOKENS_STAGING;
    if (desc->tokenizer == HR_TOKENIZER_WORDS)
        bytes += HR_WORD_BYTES + hr_vocabulary_bytes(desc->tokenizer, desc->vocab_size) +
                 hr_words_bytes(hr_counting_table_words(desc)) +
                 hr_round_up((desc->vocab_size - HR_WORDS_SPECIAL) * (int64_t)sizeof(uint32_t), 64);
    return bytes;
}

static void place(prepare *p, hr_region *region)
{
    const hr_text_desc *desc = p->desc;
    p->shard_memory = hr_region_take(region, 1, hr_max(hr_shard_bytes(), hr_shard_writer_bytes()));
    p->made = hr_region_take(region, 1, sizeof(hr_text));
    p->train = hr_region_take(region, HR_TEXT_PARTS_MAX, sizeof(hr_shard_info));
    HR_ASSERT(p->shard_memory && p->made && p->train);
    if (desc->tokenizer == HR_TOKENIZER_FILE) {
        p->staging = hr_region_take_raw(region, 1, HR_TOKENS_STAGING);
        p->tokens_memory = hr_region_take_raw(region, 1, p->facts.bytes);
        HR_ASSERT(p->staging && p->tokens_memory);
    }
    if (desc->tokenizer != HR_TOKENIZER_WORDS) return;
    p->word = hr_region_take(region, 1, HR_WORD_BYTES);
    p->vocabulary_memory = hr_region_take(region, 1,
                                          hr_vocabulary_bytes(desc->tokenizer, desc->vocab_size));
    p->table_memory = hr_region_take(region, 1, hr_words_bytes(hr_counting_table_words(desc)));
    p->order = hr_region_take(region, desc->vocab_size - HR_WORDS_SPECIAL, sizeof(uint32_t));
    HR_ASSERT(p->word && p->vocabulary_memory && p->table_memory && p->order);
}

static hr_status check_desc(const hr_text_desc *desc, int64_t bytes, hr_error *err)
{
    HR_ASSERT(desc->train_count >= 0 && desc->train_count <= HR_TEXT_PARTS_MAX);
    if (desc->tokenizer == HR_TOKENIZER_BYTES && !in_range(desc))
        return hr_fail(err, HR_USAGE, "model.vocab_size=%lld: data.tokenizer=bytes needs %d",
                       (long long)desc->vocab_size, HR_BYTES_VOCABULARY);
    if (desc->tokenizer == HR_TOKENIZER_WORDS &&
        (desc->vocab_size <= HR_WORDS_SPECIAL || desc->vocab_size > INT32_MAX))
        return hr_fail(err, HR_USAGE, "model.vocab_size=%lld: data.tokenizer=words needs %d to %d",
                       (long long)desc->vocab_size, HR_WORDS_SPECIAL + 1, INT32_MAX);
    if (!in_range(desc))
        return hr_fail(err, HR_USAGE, "data.words_max=%lld: must lie between 1 and %d",
                       (long long)desc->words_max, HR_WORDS_MAX);
    if (desc->document_end >= desc->vocab_size)
        return hr_fail(err, HR_USAGE,
                       "data.document_end=%lld: must be an id below model.vocab_size=%lld",
                       (long long)desc->document_end, (long long)desc->vocab_size);
    const int64_t needed = hr_text_prepare_bytes(desc);
    if (bytes < needed)
        return hr_fail(err, HR_NO_FIT, "tokenizing the text needs %lld bytes, %lld are available",
                       (long long)needed, (long long)bytes);
    return HR_OK;
}

int64_t hr_text_document_end(hr_tokenizer_kind kind)
{
    return kind == HR_TOKENIZER_WORDS ? HR_WORD_END : kind == HR_TOKENIZER_FILE ? -2 : -1;
}

/* ---- cache files */

/* Locks the file if it exists, in the next slot of `held`. */
static hr_status hold(prepare *p, const char *path, bool *there)
{
    hr_text *made = p->made;
    HR_ASSERT(made->held_count < (int32_t)(sizeof made->held / sizeof *made->held));
    int *file = &made->held[made->held_count];
    const hr_status status = hr_cache_hold(path, file, p->err);
    *there = status == HR_OK && *file >= 0;
    made->held_count += *there;
    return status;
}

/* Releases the file that was locked last, because it is damaged and will be created again. */
static void release_damaged(prepare *p, const char *path)
{
    char line[HR_PATH_BYTES + 64];
    snprintf(line, sizeof line, "cache: %s is damaged and is rebuilt", path);
    if (p->progress && p->progress->note) p->progress->note(p->progress->context, line);
    hr_file_close(&p->made->held[--p->made->held_count]);
}

void hr_text_release(hr_text *text)
{
    while (text->held_count) hr_file_close(&text->held[--text->held_count]);
}

/* ---- passes over a text */

/* The recipe's key of a text. */
static const char *key_of(const prepare *p, const hr_documents *documents)
{
    return documents == p->desc->valid ? "data.valid" : "data.train";
}

/* Reads a text for its identity, which includes the separator between documents. */
static hr_status identify(prepare *p, const hr_documents *documents, hr_shard_info *info)
{
    const hr_status status = documents->identify(documents->context, p->progress, &info->source,
                                                 &info->source_bytes, p->err);
    if (status != HR_OK) return status;
    if (info->source_bytes == 0)
        return hr_fail(p->err, HR_CORRUPT, "%s: is empty: use %s=FILE with a file that has text",
                       documents->name, key_of(p, documents));
    if (documents->holds) info->source.high ^= (uint64_t)(p->desc->document_end + 1);
    info->kind = documents->is_ids ? HR_SHARD_IDS : (int32_t)p->desc->tokenizer;
    return HR_OK;
}

/* Counts the training text and writes the vocabulary file. */
static hr_status make_vocabulary(prepare *p, const char *name, hr_text_hash train)
{
    hr_counting counting = { p->desc,         p->progress, p->train, p->word,
                             p->table_memory, &p->table,   p->err };
    hr_status status = hr_counting_run(&counting);
    if (status != HR_OK) return status;
    if (p->table.word_count == 0)
        return hr_fail(p->err, HR_CORRUPT,
                       "%s: has only white space: use data.train=FILE with a file that has words",
                       hr_text_train_name(p->desc));
    const int64_t kept = hr_words_rank(&p->table, p->order, p->desc->vocab_size - HR_WORDS_SPECIAL);
    return hr_vocabulary_write(p->desc->cache, name, &p->table, p->order, kept, p->desc->vocab_size,
                               train, p->shard_memory, p->err);
}

/* Appends the words of a piece as ids. */
static hr_status append_words(prepare *p, hr_shard_writer *writer, hr_scan *scan, int64_t *covered)
{
    enum { IDS = 1024 };
    uint32_t ids[IDS];
    for (int64_t count = 0, bytes = 1; bytes > 0;) {
        hr_status status = hr_scan_next(scan, &bytes, p->err);
        if (status != HR_OK) return status;
        if (bytes > 0) {
            const uint64_t hash = hr_words_hash(p->word, bytes);
            const int64_t index = hr_words_find(&p->table, p->word, bytes, hash);
            ids[count++] = index < 0 ? HR_WORD_UNKNOWN : (uint32_t)(index + HR_WORDS_SPECIAL);
            *covered += index >= 0;
        }
        if (count < IDS && bytes > 0) continue;
        status = hr_shard_append(writer, ids, count, p->err);
        if (status != HR_OK) return status;
        count = 0;
    }
    return HR_OK;
}

/* Appends the bytes of a piece as ids; they are wider than one byte if the separator is above 255.
 */
static hr_status append_bytes(prepare *p, hr_shard_writer *writer, const hr_piece *piece)
{
    enum { IDS = 1024 };
    uint32_t ids[IDS];
    hr_status status = HR_OK;
    if (p->desc->document_end < HR_BYTES_VOCABULARY)
        return hr_shard_append_bytes(writer, piece->bytes, piece->count, p->err);
    for (int64_t done = 0; done < piece->count && status == HR_OK; done += IDS) {
        const int64_t count = hr_min(piece->count - done, IDS);
        for (int64_t i = 0; i < count; i++) ids[i] = piece->bytes[done + i];
        status = hr_shard_append(writer, ids, count, p->err);
    }
    return status;
}

/* ---- tokenizer files */

static hr_status sink_ids(void *context, const uint32_t *ids, int64_t count, hr_error *err)
{
    prepare *p = context;
    const int64_t unknown = hr_tokens_unknown(p->tokens);
    for (int64_t i = 0; i < count; i++) *p->covered += ids[i] != unknown;
    return hr_shard_append(p->writer, ids, count, err);
}

static hr_status open_tokens(prepare *p)
{
    if (p->tokens) return HR_OK;
    return hr_tokens_open(&p->tokens, p->tokens_memory, p->facts.bytes, p->desc->file, false,
                          sink_ids, p, p->err);
}

static hr_status check_ids(const hr_text_desc *desc, const hr_tokens_facts *facts, hr_error *err)
{
    if (facts->ids <= desc->vocab_size) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "model.vocab_size is %lld, but %.300s has %lld ids: use model.vocab_size=%lld",
                   (long long)desc->vocab_size, desc->file, (long long)facts->ids,
                   (long long)facts->ids);
}

hr_status hr_text_check_file(const hr_text_desc *desc, hr_error *err)
{
    hr_tokens_facts facts;
    if (desc->tokenizer != HR_TOKENIZER_FILE) return HR_OK;
    const hr_status status = hr_tokens_probe(desc->file, &facts, err);
    return status == HR_OK ? check_ids(desc, &facts, err) : status;
}

/* Creates or reuses the file with the texts of all ids, which decoding needs. */
static hr_status prepare_token_texts(prepare *p, hr_text *text)
{
    char name[HR_NAME_BYTES];
    hr_status status = hr_tokens_identify(p->desc->file, p->staging, &p->facts, p->err);
    if (status == HR_OK) status = check_ids(p->desc, &p->facts, p->err);
    if (status != HR_OK) return status;
    text->vocabulary_used = p->facts.ids;
    snprintf(name, sizeof name, "tokens-%016" PRIx64 ".vocabulary", p->facts.hash.low);
    status = hr_path_join(p->desc->cache, name, text->vocabulary, sizeof text->vocabulary, p->err);
    bool there = false;
    if (status == HR_OK) status = hold(p, text->vocabulary, &there);
    if (status == HR_OK && there)
        status = hr_vocabulary_check_tokens(text->vocabulary, p->shard_memory, p->err);
    if (there && status == HR_CORRUPT) release_damaged(p, text->vocabulary);
    else if (there || status != HR_OK) return status;
    status = open_tokens(p);
    if (status == HR_OK)
        status = hr_vocabulary_write_tokens(p->desc->cache, name, p->tokens, p->facts.hash,
                                            p->shard_memory, p->err);
    return status == HR_OK ? hold(p, text->vocabulary, &there) : status;
}

/* ---- pieces */

/* Encodes one piece. */
static hr_status encode_piece(prepare *p, hr_shard_writer *writer, hr_scan *scan,
                              const hr_piece *piece, int64_t *covered)
{
    if (piece->ids || p->desc->tokenizer == HR_TOKENIZER_BYTES) *covered += piece->count;
    if (piece->ids) return hr_shard_append(writer, piece->ids, piece->count, p->err);
    if (p->desc->tokenizer == HR_TOKENIZER_BYTES) return append_bytes(p, writer, piece);
    p->covered = covered;
    if (p->desc->tokenizer == HR_TOKENIZER_FILE)
        return hr_tokens_add(p->tokens, piece->bytes, piece->count, piece->segment_ends,
                             piece->path, piece->offset, p->err);
    hr_scan_take(scan, piece);
    return append_words(p, writer, scan, covered);
}

/* Encodes all documents. If `masks` is false and a token is not a target, stops and sets it. */
static hr_status encode(prepare *p, const hr_documents *documents, hr_shard_writer *writer,
                        hr_shard_info *info, bool *masks)
{
    const bool had_masks = *masks;
    hr_scan scan = hr_scan_over(p->word);
    hr_piece piece;
    for (int64_t covered = 0;;) { /* count up to the beginning of the current document */
        hr_status status = documents->next(documents->context, &piece, p->err);
        if (status != HR_OK || !piece.path) return status;
        if (piece.begins) {
            hr_shard_document(writer);
            covered = info->covered;
        }
        *masks |= !piece.targets && piece.count > 0;
        if (*masks && !had_masks) return HR_OK;
        if (had_masks) hr_shard_mask(writer, piece.targets);
        if (piece.discard) {
            info->covered = covered;
            if (p->tokens) hr_tokens_discard(p->tokens);
            status = hr_shard_discard(writer, p->err);
        } else {
            status = encode_piece(p, writer, &scan, &piece, &info->covered);
        }
        if (status != HR_OK) return status;
    }
}

/* Number of ids of a shard: with bytes, the separator may be above 255. */
static int64_t shard_vocabulary(const prepare *p, const hr_documents *documents)
{
    if (documents->is_ids || p->desc->tokenizer == HR_TOKENIZER_WORDS) return p->desc->vocab_size;
    if (p->desc->tokenizer == HR_TOKENIZER_FILE)
        return hr_max(p->facts.ids, p->desc->document_end + 1);
    return hr_max(HR_BYTES_VOCABULARY, p->desc->document_end + 1);
}

/* Writes the shard of one text, with or without masks. If a shard without masks turns out to need
 * them, writes nothing and sets `masks`. */
static hr_status try_shard(prepare *p, const hr_documents *documents, const char *name,
                           hr_shard_info *info, bool *masks)
{
    const bool had_masks = *masks;
    const uint32_t without = ~(uint32_t)HR_SHARD_MASKS;
    hr_shard_desc desc = { .directory = p->desc->cache,
                           .name = name,
                           .vocab_size = shard_vocabulary(p, documents),
                           .holds = had_masks ? documents->holds : documents->holds & without,
                           .document_end = documents->is_ids ? -1 : p->desc->document_end };
    const bool by_file = !documents->is_ids && p->desc->tokenizer == HR_TOKENIZER_FILE;
    hr_shard_writer *writer = 0;
    info->covered = 0;
    hr_status status = by_file ? open_tokens(p) : HR_OK;
    if (status != HR_OK) return status;
    if (by_file) hr_tokens_discard(p->tokens);
    if (desc.document_end < -1) desc.document_end = hr_tokens_document_end(p->tokens);
    status = documents->open(documents->context, "writing token ids", p->progress, p->err);
    if (status == HR_OK) status = hr_shard_begin(&writer, p->shard_memory, &desc, p->err);
    p->writer = writer;
    if (status == HR_OK) status = encode(p, documents, writer, info, masks);
    const bool again = *masks != had_masks;
    if (status == HR_OK && !again)
        status = hr_text_check_unchanged(p->desc, documents, info->source, &info->bad_lines,
                                         p->err);
    documents->close(documents->context);
    if (status == HR_OK && !again) return hr_shard_commit(writer, info, p->err);
    hr_shard_abort(writer);
    return status;
}

/* Few texts have masks, and those have them in their first lines. So trying without masks first
 * costs little and saves one bit per token. */
static hr_status make_shard(prepare *p, const hr_documents *documents, const char *name,
                            hr_shard_info *info)
{
    bool masks = false;
    const hr_status status = try_shard(p, documents, name, info, &masks);
    return status == HR_OK && masks ? try_shard(p, documents, name, info, &masks) : status;
}

/* ---- reuse */

/* Whether the header matches the text and tokenizer that the name refers to. */
static bool matches_text(const hr_shard_info *have, const hr_shard_info *want)
{
    return have->kind == want->kind && hr_text_hash_equal(have->source, want->source) &&
           hr_text_hash_equal(have->tokenizer, want->tokenizer);
}

static bool have_words(const prepare *p)
{
    return p->desc->tokenizer == HR_TOKENIZER_WORDS;
}

/* Opens a shard and checks that it matches the text. Verifies all of a reused shard, so that a
 * flipped bit cannot stop a run weeks later. */
static hr_status take_shard(prepare *p, const hr_documents *documents, const hr_shard_info *want,
                            hr_text_part *part)
{
    hr_shard *shard = 0;
    hr_status status = hr_shard_open(&shard, p->shard_memory, part->shard, p->err);
    if (status != HR_OK) return status;
    const hr_shard_info *have = hr_shard_view(shard);
    part->source_bytes = have->source_bytes;
    part->tokens = have->tokens;
    part->covered = have->covered;
    part->documents = have->documents;
    part->longest = have->longest;
    part->masked = have->masked;
    part->bad_lines = have->bad_lines;
    if (!matches_text(have, want))
        status = hr_fail(p->err, HR_CORRUPT,
                         "%s: was made from another text than %s: delete the file and run again",
                         part->shard, documents->name);
    else if (part->reused) status = hr_shard_check(shard, p->progress, p->err);
    hr_shard_close(&shard);
    return status;
}

static hr_status check_tokens(const prepare *p, const hr_documents *documents,
                              const hr_text_part *part)
{
    if (part->tokens > 0) return HR_OK;
    const char *valid = p->desc->valid ? p->desc->valid->name : "";
    if (*valid && valid[strlen(valid) - 1] == '%')
        return hr_fail(p->err, HR_CORRUPT,
                       "%s: the share leaves it no text: of several documents it holds out whole "
                       "ones; use another share, or data.valid=FILE",
                       documents->name);
    return hr_fail(p->err, HR_CORRUPT, "%s: %s: use %s=FILE with a file that has %s",
                   documents->name,
                   have_words(p) ? "has only white space" : "has no document with text",
                   key_of(p, documents), have_words(p) ? "words" : "text");
}

static hr_status load_table(prepare *p, hr_vocabulary *vocabulary)
{
    if (p->table_loaded || !vocabulary) return HR_OK;
    hr_words_clear(&p->table);
    p->table_loaded = true;
    return hr_vocabulary_load(vocabulary, &p->table, p->err);
}

static void name_shard(const prepare *p, const hr_documents *documents, const hr_shard_info *info,
                       char name[HR_NAME_BYTES])
{
    const uint64_t source = info->source.low ^ (documents->holds ? info->source.high : 0);
    if (documents->is_ids)
        snprintf(name, HR_NAME_BYTES, "ids-%lld-%016" PRIx64 ".tokens",
                 (long long)p->desc->vocab_size, source);
    else if (p->desc->tokenizer != HR_TOKENIZER_BYTES)
        snprintf(name, HR_NAME_BYTES, "%s-%016" PRIx64 "-%016" PRIx64 ".tokens",
                 p->desc->tokenizer == HR_TOKENIZER_WORDS ? "words" : "tokens", info->tokenizer.low,
                 source);
    else snprintf(name, HR_NAME_BYTES, "bytes-%016" PRIx64 ".tokens", source);
}

/* Creates or reuses the shard of one text; `info` has its identity. */
static hr_status prepare_part(prepare *p, const hr_documents *documents, hr_vocabulary *vocabulary,
                              hr_shard_info *info, hr_text_part *part)
{
    char name[HR_NAME_BYTES];
    if (vocabulary && !documents->is_ids) info->tokenizer = hr_vocabulary_view(vocabulary)->words;
    if (p->desc->tokenizer == HR_TOKENIZER_FILE && !documents->is_ids)
        info->tokenizer = p->facts.hash;
    name_shard(p, documents, info, name);
    hr_status status = hr_path_join(p->desc->cache, name, part->shard, sizeof part->shard, p->err);
    if (status != HR_OK) return status;
    bool there;
    status = hold(p, part->shard, &part->reused);
    if (status == HR_OK && part->reused) status = take_shard(p, documents, info, part);
    if (part->reused && status == HR_CORRUPT) {
        release_damaged(p, part->shard);
        part->reused = false;
        status = HR_OK;
    }
    if (status == HR_OK && !part->reused) {
        status = load_table(p, vocabulary);
        if (status == HR_OK) status = make_shard(p, documents, name, info);
        if (status == HR_OK) status = hold(p, part->shard, &there);
        if (status == HR_OK) status = take_shard(p, documents, info, part);
    }
    return status == HR_OK ? check_tokens(p, documents, part) : status;
}

/* Opens the vocabulary and checks that it was made from this training text. */
static hr_status open_vocabulary(prepare *p, hr_text_hash train, hr_vocabulary **vocabulary,
                                 const char *path)
{
    const hr_status status = hr_vocabulary_open(
        vocabulary, p->vocabulary_memory, p->desc->tokenizer, p->desc->vocab_size, path, p->err);
    if (status != HR_OK || hr_text_hash_equal(hr_vocabulary_view(*vocabulary)->source, train))
        return status;
    hr_vocabulary_close(vocabulary);
    return hr_fail(p->err, HR_CORRUPT,
                   "%s: was made from another text than %s: delete the file and run again", path,
                   hr_text_train_name(p->desc));
}

/* Creates or reuses the vocabulary of the training text, and opens it. */
static hr_status prepare_vocabulary(prepare *p, hr_text_hash train, hr_vocabulary **vocabulary,
                                    hr_text *text)
{
    char name[HR_NAME_BYTES];
    snprintf(name, sizeof name, "words-%lld-%016" PRIx64 ".vocabulary",
             (long long)p->desc->vocab_size, train.low ^ train.high);
    hr_status status = hr_path_join(p->desc->cache, name, text->vocabulary, sizeof text->vocabulary,
                                    p->err);
    bool there = false;
    if (status == HR_OK) status = hold(p, text->vocabulary, &there);
    if (status == HR_OK && there) status = open_vocabulary(p, train, vocabulary, text->vocabulary);
    if (there && status == HR_CORRUPT) {
        release_damaged(p, text->vocabulary);
        there = false;
        status = HR_OK;
    }
    if (status == HR_OK && !there) {
        status = make_vocabulary(p, name, train);
        if (status == HR_OK) status = hold(p, text->vocabulary, &there);
        if (status == HR_OK) status = open_vocabulary(p, train, vocabulary, text->vocabulary);
    }
    if (status != HR_OK) return status;
    const hr_vocabulary_info *info = hr_vocabulary_view(*vocabulary);
    text->vocabulary_used = info->used;
    text->distinct_words = info->distinct_words;
    return HR_OK;
}

/* ---- all passes */

/* The combined identity of all parts; the identity of a single part is unchanged. */
static hr_text_hash hash_of(const hr_shard_info *parts, int32_t count)
{
    hr_text_hash hash = parts[0].source;
    for (int32_t i = 1; i < count; i++) {
        const uint64_t pair[4] = { hash.low, hash.high, parts[i].source.low, parts[i].source.high };
        const XXH128_hash_t both = XXH3_128bits(pair, sizeof pair);
        hash = (hr_text_hash){ both.low64, both.high64 };
    }
    return hash;
}

static hr_status prepare_parts(prepare *p, hr_text *text)
{
    const hr_text_desc *desc = p->desc;
    hr_vocabulary *vocabulary = 0;
    hr_shard_info *train = p->train, valid = { 0 };
    hr_status status = HR_OK;
    for (int32_t i = 0; i < desc->train_count && status == HR_OK; i++)
        status = identify(p, &desc->train[i], &train[i]);
    if (status == HR_OK && desc->valid) status = identify(p, desc->valid, &valid);
    const bool ids = desc->train_count && desc->train->is_ids;
    const bool words = desc->tokenizer == HR_TOKENIZER_WORDS && !ids;
    if (status == HR_OK && desc->tokenizer == HR_TOKENIZER_FILE && !ids)
        status = prepare_token_texts(p, text);
    if (status == HR_OK && words)
        status = prepare_vocabulary(p, hash_of(train, desc->train_count), &vocabulary, text);
    text->train_count = desc->train_count;
    for (int32_t i = 0; i < desc->train_count && status == HR_OK; i++)
        status = prepare_part(p, &desc->train[i], vocabulary, &train[i], &text->train[i]);
    if (status == HR_OK && desc->valid)
        status = prepare_part(p, desc->valid, vocabulary, &valid, &text->valid);
    hr_vocabulary_close(&vocabulary);
    return status;
}

hr_status hr_text_prepare(const hr_text_desc *desc, void *memory, int64_t bytes,
                          const hr_text_progress *progress, hr_text *text, hr_error *err)
{
    hr_status status = check_desc(desc, bytes, err);
    if (status == HR_OK) status = hr_directory_make(desc->cache, err);
    if (status != HR_OK) return status;
    prepare p = { .desc = desc, .progress = progress, .err = err };
    if (desc->tokenizer == HR_TOKENIZER_FILE) status = hr_tokens_probe(desc->file, &p.facts, err);
    if (status != HR_OK) return status;
    hr_region region = hr_region_over(memory, bytes);
    place(&p, &region);
    if (desc->tokenizer == HR_TOKENIZER_WORDS)
        p.table = hr_words_place(p.table_memory, desc->words_max);
    p.made->vocabulary_used = HR_BYTES_VOCABULARY;
    status = prepare_parts(&p, p.made);
    if (status == HR_OK) *text = *p.made;
    else hr_text_release(p.made);
    return status;
}
