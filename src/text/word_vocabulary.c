/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_vocabulary.c - one word per line, in checksummed blocks. */
#define XXH_STATIC_LINKING_ONLY /* for a state struct without allocation */
#include "text/word_vocabulary.h"

#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"
#include "config/config.h"
#include "text/blocks.h"
#include "text/scan.h"
#include "text/text.h"

#define MAGIC "hrwords\n"
#define TOKENS_MAGIC "hrtoken\n" /* payload: offsets [used + 1], then the texts */
enum { VERSION = 1 };

static const char *const SPECIAL[HR_WORDS_SPECIAL] = { "<pad>", "<unk>", "<sos>", "<eos>" };

/* Layout of the header in block 0, little-endian. */
typedef struct {
    hr_blocks_header blocks;
    int64_t vocab_size, used, distinct_words;
    hr_text_hash source, words;
} words_header;

struct hr_vocabulary {
    hr_blocks blocks;
    hr_vocabulary_info info;
    hr_tokenizer_kind kind;
    uint8_t staging[HR_BLOCKS_BYTES];
    uint8_t word[HR_WORD_BYTES];
    /* [vocab_size + 1]; word i is payload bytes [begin[i], begin[i + 1] - 1). For a tokenizer file:
     * bytes [begin[i], begin[i + 1]) after the table of offsets */
    uint32_t begin[];
};

int64_t hr_vocabulary_bytes(hr_tokenizer_kind kind, int64_t vocab_size)
{
    const int64_t offsets = kind != HR_TOKENIZER_BYTES ? vocab_size + 1 : 0;
    return hr_round_up((int64_t)sizeof(hr_vocabulary) + offsets * (int64_t)sizeof(uint32_t), 64);
}

/* Records where each line begins; this read also verifies every block. */
static hr_status find_words(hr_vocabulary *vocabulary, hr_error *err)
{
    const int64_t payload_bytes = vocabulary->blocks.payload_bytes;
    int64_t lines = 0;
    vocabulary->begin[0] = 0;
    for (int64_t offset = 0; offset < payload_bytes; offset += HR_WORD_BYTES) {
        const int64_t part = hr_min(HR_WORD_BYTES, payload_bytes - offset);
        const hr_status status = hr_blocks_read(&vocabulary->blocks, offset, vocabulary->word, part,
                                                err);
        if (status != HR_OK) return status;
        for (int64_t i = 0; i < part && lines <= vocabulary->info.used; i++)
            if (vocabulary->word[i] == '\n' && lines++ < vocabulary->info.used)
                vocabulary->begin[lines] = (uint32_t)(offset + i + 1);
    }
    if (lines == vocabulary->info.used && vocabulary->begin[lines] == payload_bytes) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: does not hold the %lld words it names: delete the file and run again",
                   vocabulary->blocks.path, (long long)vocabulary->info.used);
}

static hr_status open_words(hr_vocabulary *vocabulary, int64_t vocab_size, const char *path,
                            hr_error *err)
{
    words_header header;
    hr_status status = hr_blocks_open(&vocabulary->blocks, path, vocabulary->staging, MAGIC,
                                      VERSION, &header, sizeof header, err);
    if (status != HR_OK) return status;
    vocabulary->info = (hr_vocabulary_info){ header.vocab_size, header.used, header.distinct_words,
                                             header.source, header.words };
    if (header.vocab_size != vocab_size || header.used < HR_WORDS_SPECIAL ||
        header.used > vocab_size || vocabulary->blocks.payload_bytes > UINT32_MAX)
        status = hr_fail(err, HR_CORRUPT,
                         "%s: holds %lld words for a vocabulary of %lld, and one of %lld is "
                         "needed: delete the file and run again",
                         path, (long long)header.used, (long long)header.vocab_size,
                         (long long)vocab_size);
    if (status == HR_OK) status = find_words(vocabulary, err);
    if (status != HR_OK) hr_blocks_close(&vocabulary->blocks);
    return status;
}

static hr_status open_tokens(hr_vocabulary *vocabulary, int64_t vocab_size, const char *path,
                             hr_error *err)
{
    words_header header;
    hr_blocks *blocks = &vocabulary->blocks;
    hr_status status = hr_blocks_open(blocks, path, vocabulary->staging, TOKENS_MAGIC, VERSION,
                                      &header, sizeof header, err);
    if (status != HR_OK) return status;
    const int64_t used = header.used;
    vocabulary->info = (hr_vocabulary_info){ .vocab_size = vocab_size,
                                             .used = used,
                                             .words = header.words };
    const int64_t table_bytes = (used + 1) * (int64_t)sizeof *vocabulary->begin;
    bool fits = used >= 1 && used <= vocab_size && table_bytes <= blocks->payload_bytes;
    if (fits) status = hr_blocks_read(blocks, 0, vocabulary->begin, table_bytes, err);
    for (int64_t i = 0; fits && status == HR_OK && i < used; i++)
        fits = vocabulary->begin[i] <= vocabulary->begin[i + 1];
    fits = fits &&
           (status != HR_OK || (vocabulary->begin[0] == 0 &&
                                vocabulary->begin[used] + table_bytes == blocks->payload_bytes));
    if (!fits)
        status = hr_fail(err, HR_CORRUPT,
                         "%s: does not hold %lld tokens of %lld: delete the file and run again",
                         path, (long long)used, (long long)vocab_size);
    if (status != HR_OK) hr_blocks_close(blocks);
    return status;
}

hr_status hr_vocabulary_check_tokens(const char *path, uint8_t *staging, hr_error *err)
{
    uint8_t piece[HR_BLOCK_PAYLOAD];
    hr_blocks blocks;
    words_header header;
    hr_status status = hr_blocks_open(&blocks, path, staging, TOKENS_MAGIC, VERSION, &header,
                                      sizeof header, err);
    if (status != HR_OK) return status;
    for (int64_t at = 0; at < blocks.payload_bytes && status == HR_OK; at += sizeof piece)
        status = hr_blocks_read(&blocks, at, piece,
                                hr_min((int64_t)sizeof piece, blocks.payload_bytes - at), err);
    hr_blocks_close(&blocks);
    return status;
}

hr_status hr_vocabulary_open(hr_vocabulary **vocabulary, void *memory, hr_tokenizer_kind kind,
                             int64_t vocab_size, const char *path, hr_error *err)
{
    hr_vocabulary *opened = memory;
    hr_status status = HR_OK;
    opened->kind = kind;
    opened->blocks.file = -1;
    opened->info = (hr_vocabulary_info){ .used = HR_BYTES_VOCABULARY };
    if (kind == HR_TOKENIZER_WORDS) status = open_words(opened, vocab_size, path, err);
    if (kind == HR_TOKENIZER_FILE) status = open_tokens(opened, vocab_size, path, err);
    if (status == HR_OK) *vocabulary = opened;
    return status;
}

void hr_vocabulary_close(hr_vocabulary **vocabulary)
{
    if (*vocabulary) hr_blocks_close(&(*vocabulary)->blocks);
    *vocabulary = 0;
}

const hr_vocabulary_info *hr_vocabulary_view(const hr_vocabulary *vocabulary)
{
    return &vocabulary->info;
}

/* Reads the word of an id into vocabulary->word. */
static hr_status read_word(hr_vocabulary *vocabulary, int64_t id, int64_t *bytes, hr_error *err)
{
    const int64_t begin = vocabulary->begin[id], end = (int64_t)vocabulary->begin[id + 1] - 1;
    if (end - begin > HR_WORD_BYTES)
        return hr_fail(err, HR_CORRUPT, "%s: word %lld has %lld bytes, a word has at most %d",
                       vocabulary->blocks.path, (long long)id, (long long)(end - begin),
                       HR_WORD_BYTES);
    *bytes = end - begin;
    return hr_blocks_read(&vocabulary->blocks, begin, vocabulary->word, end - begin, err);
}

hr_status hr_vocabulary_word(hr_vocabulary *vocabulary, int64_t id, const char **word,
                             int64_t *bytes, hr_error *err)
{
    HR_ASSERT(id >= 0 && id < vocabulary->info.used);
    *word = (const char *)vocabulary->word;
    return read_word(vocabulary, id, bytes, err);
}

static int64_t decode_bytes(const int32_t *ids, int64_t count, char *text, int64_t bytes)
{
    const int64_t written = hr_min(count, bytes);
    for (int64_t i = 0; i < written; i++)
        text[i] = (char)(ids[i] >= 0 && ids[i] < HR_BYTES_VOCABULARY ? ids[i] : '?');
    return written;
}

/* Decodes complete tokens; skips ids without text. */
static hr_status decode_tokens(hr_vocabulary *vocabulary, const int32_t *ids, int64_t count,
                               char *text, int64_t bytes, int64_t *used, hr_error *err)
{
    const int64_t table_bytes = (vocabulary->info.used + 1) * (int64_t)sizeof *vocabulary->begin;
    hr_status status = HR_OK;
    *used = 0;
    for (int64_t i = 0; i < count && status == HR_OK; i++) {
        if (ids[i] < 0 || ids[i] >= vocabulary->info.used) continue;
        const int64_t begin = vocabulary->begin[ids[i]];
        const int64_t length = (int64_t)vocabulary->begin[ids[i] + 1] - begin;
        if (length > bytes - *used) break;
        status = hr_blocks_read(&vocabulary->blocks, table_bytes + begin, text + *used, length,
                                err);
        *used += length;
    }
    return status;
}

hr_status hr_vocabulary_decode(hr_vocabulary *vocabulary, const int32_t *ids, int64_t count,
                               char *text, int64_t bytes, int64_t *used, hr_error *err)
{
    int64_t written = 0, length = 0;
    if (vocabulary->kind == HR_TOKENIZER_BYTES) {
        *used = decode_bytes(ids, count, text, bytes);
        return HR_OK;
    }
    if (vocabulary->kind == HR_TOKENIZER_FILE)
        return decode_tokens(vocabulary, ids, count, text, bytes, used, err);
    for (int64_t i = 0; i < count; i++) {
        const bool known = ids[i] >= 0 && ids[i] < vocabulary->info.used;
        const hr_status status = read_word(vocabulary, known ? ids[i] : HR_WORD_UNKNOWN, &length,
                                           err);
        if (status != HR_OK) return status;
        const int64_t space = i > 0;
        if (length + space > bytes - written) break;
        if (space) text[written++] = ' ';
        memcpy(text + written, vocabulary->word, (size_t)length);
        written += length;
    }
    *used = written;
    return HR_OK;
}

hr_status hr_vocabulary_load(hr_vocabulary *vocabulary, hr_word_table *table, hr_error *err)
{
    int64_t bytes = 0;
    for (int64_t id = HR_WORDS_SPECIAL; id < vocabulary->info.used; id++) {
        const hr_status status = read_word(vocabulary, id, &bytes, err);
        if (status != HR_OK) return status;
        const uint64_t hash = hr_words_hash(vocabulary->word, bytes);
        if (hr_words_add(table, vocabulary->word, bytes, hash) == id - HR_WORDS_SPECIAL) continue;
        return hr_fail(
            err, HR_USAGE, "%s: its %lld words do not fit data.words_max=%lld: use a larger one",
            vocabulary->blocks.path, (long long)vocabulary->info.used, (long long)table->words_max);
    }
    return HR_OK;
}

hr_status hr_vocabulary_write_tokens(const char *directory, const char *name,
                                     const hr_tokens *tokens, hr_text_hash hash, uint8_t *staging,
                                     hr_error *err)
{
    hr_blocks_writer writer;
    const int64_t count = hr_tokens_count(tokens);
    int64_t at = 0, bytes;
    hr_status status = hr_blocks_begin(&writer, directory, name, staging, err);
    for (int64_t id = 0; id <= count && status == HR_OK; id++) {
        const uint32_t begin = (uint32_t)at;
        status = hr_blocks_append(&writer, &begin, sizeof begin, err);
        if (id < count) hr_tokens_text(tokens, id, &bytes), at += bytes;
    }
    for (int64_t id = 0; id < count && status == HR_OK; id++) {
        const uint8_t *text = hr_tokens_text(tokens, id, &bytes);
        status = hr_blocks_append(&writer, text, bytes, err);
    }
    if (status != HR_OK) return status; /* the failed call removed the file */
    words_header header = { .blocks = { .magic = TOKENS_MAGIC, .version = VERSION },
                            .vocab_size = count,
                            .used = count,
                            .words = hash };
    return hr_blocks_commit(&writer, &header.blocks, sizeof header, err);
}

/* Appends one line to the file and to its hash. */
static hr_status write_line(hr_blocks_writer *writer, XXH3_state_t *hash, const void *word,
                            int64_t bytes, hr_error *err)
{
    XXH3_128bits_update(hash, word, (size_t)bytes);
    XXH3_128bits_update(hash, "\n", 1);
    const hr_status status = hr_blocks_append(writer, word, bytes, err);
    return status == HR_OK ? hr_blocks_append(writer, "\n", 1, err) : status;
}

hr_status hr_vocabulary_write(const char *directory, const char *name, const hr_word_table *table,
                              const uint32_t *order, int64_t count, int64_t vocab_size,
                              hr_text_hash source, uint8_t *staging, hr_error *err)
{
    hr_blocks_writer writer;
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_128bits_reset_withSeed(&hash, (uint64_t)vocab_size);
    hr_status status = hr_blocks_begin(&writer, directory, name, staging, err);
    for (int i = 0; i < HR_WORDS_SPECIAL && status == HR_OK; i++)
        status = write_line(&writer, &hash, SPECIAL[i], (int64_t)strlen(SPECIAL[i]), err);
    for (int64_t i = 0; i < count && status == HR_OK; i++) {
        const hr_word *word = &table->words[order[i]];
        status = write_line(&writer, &hash, table->text + word->text, word->bytes, err);
    }
    if (status != HR_OK) return status; /* the failed call removed the file */
    const XXH128_hash_t digest = XXH3_128bits_digest(&hash);
    words_header header = { .blocks = { .magic = MAGIC, .version = VERSION },
                            .vocab_size = vocab_size,
                            .used = HR_WORDS_SPECIAL + count,
                            .distinct_words = table->word_count,
                            .source = source,
                            .words = { digest.low64, digest.high64 } };
    return hr_blocks_commit(&writer, &header.blocks, sizeof header, err);
}
