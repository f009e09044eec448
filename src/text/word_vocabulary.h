/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_vocabulary.h - the file of the words or texts of all ids, stored with the shards, and
 * its reader.
 *
 * An open vocabulary keeps only the offset of each word and reads the words from the file on
 * demand, so its memory depends on V alone. */
#ifndef HR_TEXT_WORD_VOCABULARY_H
#define HR_TEXT_WORD_VOCABULARY_H

#include "config/config.h"
#include "headroom/config.h"
#include "text/pass.h"
#include "text/tokens.h"
#include "text/word_table.h"

/* Header information of a vocabulary file. */
typedef struct {
    int64_t vocab_size;     /* V of the recipe */
    int64_t used;           /* ids that have a word: 4 special words and those of the text */
    int64_t distinct_words; /* of the training text */
    hr_text_hash source;    /* of the training text */
    hr_text_hash words;     /* of the words and V; identifies the tokenizer */
} hr_vocabulary_info;

typedef struct hr_vocabulary hr_vocabulary;

/* Bytes of an open vocabulary: a function of the arguments alone. Pure. */
int64_t hr_vocabulary_bytes(hr_tokenizer_kind kind, int64_t vocab_size);

/* Opens a vocabulary in memory [hr_vocabulary_bytes(kind, vocab_size)], aligned to 64. For bytes
 * there is no file, and `path` is unused.
 *
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, truncated, or for another V.
 * Cost     reads the file once. */
HR_MUST_CHECK hr_status hr_vocabulary_open(hr_vocabulary **vocabulary, void *memory,
                                           hr_tokenizer_kind kind, int64_t vocab_size,
                                           const char *path, hr_error *err);
void hr_vocabulary_close(hr_vocabulary **vocabulary);

/* Valid until the close. For bytes, `used` is 256 and the rest zero. */
const hr_vocabulary_info *hr_vocabulary_view(const hr_vocabulary *vocabulary);

/* Decodes ids [count]: words separated by a space; bytes and tokens without one. An id without a
 * word becomes <unk>, or '?' for bytes.
 *
 *   text  out [bytes]; ends after the last id that fits; not null-terminated
 *   used  out; bytes written
 *
 * Errors   CORRUPT, FAILURE  the file can no longer be read.
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_vocabulary_decode(hr_vocabulary *vocabulary, const int32_t *ids,
                                             int64_t count, char *text, int64_t bytes,
                                             int64_t *used, hr_error *err);

/* The word of an id below `used`, valid until the next call. Errors as hr_vocabulary_decode. */
HR_MUST_CHECK hr_status hr_vocabulary_word(hr_vocabulary *vocabulary, int64_t id, const char **word,
                                           int64_t *bytes, hr_error *err);

/* Adds every word of the text, without the special words, to an empty table: index + 4 is its id.
 * Errors   as hr_vocabulary_decode. */
HR_MUST_CHECK hr_status hr_vocabulary_load(hr_vocabulary *vocabulary, hr_word_table *table,
                                           hr_error *err);

/* Verifies the checksums of a whole file of token texts. staging [HR_BLOCKS_BYTES].
 * Errors   as hr_vocabulary_open. */
HR_MUST_CHECK hr_status hr_vocabulary_check_tokens(const char *path, uint8_t *staging,
                                                   hr_error *err);

/* Writes the file of a tokenizer: the texts of its ids. Other arguments and errors as
 * hr_vocabulary_write.
 *
 *   hash  of the tokenizer's own files */
HR_MUST_CHECK hr_status hr_vocabulary_write_tokens(const char *directory, const char *name,
                                                   const hr_tokens *tokens, hr_text_hash hash,
                                                   uint8_t *staging, hr_error *err);

/* Writes the file: the special words, then the words of `table` in the order of order [count].
 *
 *   staging  [HR_BLOCKS_BYTES]
 *   source   hash of the text that was counted
 *
 * Errors   as hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_vocabulary_write(const char *directory, const char *name,
                                            const hr_word_table *table, const uint32_t *order,
                                            int64_t count, int64_t vocab_size, hr_text_hash source,
                                            uint8_t *staging, hr_error *err);

#endif
