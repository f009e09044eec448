/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_vocabulary.h - which word an id stands for: a file made with the shards, and its
 * reader.
 *
 * An open vocabulary keeps only where each word lies; the words stay in the file and are read when
 * text is wanted, so its memory is a function of V alone, however long the words. */
#ifndef HR_TEXT_WORD_VOCABULARY_H
#define HR_TEXT_WORD_VOCABULARY_H

#include "headroom/config.h"
#include "text/pass.h"
#include "text/tokens.h"
#include "text/word_table.h"

/* What a vocabulary's file says of itself. */
typedef struct {
    int64_t vocab_size;     /* V that it was made for */
    int64_t used;           /* ids that have a word: 4 special ones and those of the text */
    int64_t distinct_words; /* of the training text */
    hr_text_hash source;    /* of the training text */
    hr_text_hash words;     /* of the words and V: the tokenizer's identity */
} hr_vocabulary_info;

typedef struct hr_vocabulary hr_vocabulary;

/* Bytes of an open vocabulary: a function of these alone. Pure. */
int64_t hr_vocabulary_bytes(hr_tokenizer_kind kind, int64_t vocab_size);

/* Opens one in memory [hr_vocabulary_bytes(kind, vocab_size)], aligned to 64. For bytes there is no
 * file and `path` is not looked at.
 *
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, cut short, or made for another V.
 * Cost     reads the file once. */
HR_MUST_CHECK hr_status hr_vocabulary_open(hr_vocabulary **vocabulary, void *memory,
                                           hr_tokenizer_kind kind, int64_t vocab_size,
                                           const char *path, hr_error *err);
void hr_vocabulary_close(hr_vocabulary **vocabulary);

/* Valid until the close. For bytes, `used` is 256 and the rest zero. */
const hr_vocabulary_info *hr_vocabulary_view(const hr_vocabulary *vocabulary);

/* The text of ids [count]: words with a space between them, or the bytes of bytes and of tokens as
 * they are. An id without a word is written as <unk>, or as '?' for bytes.
 *
 *   text  out [bytes]; ends at the last id that fits whole; not terminated
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

/* Puts every word of the text (not the special ones) into an empty table: index + 4 is its id.
 * Errors   as hr_vocabulary_decode. */
HR_MUST_CHECK hr_status hr_vocabulary_load(hr_vocabulary *vocabulary, hr_word_table *table,
                                           hr_error *err);

/* Reads the whole file of a tokenizer's texts, for its checksums. staging [HR_BLOCKS_BYTES].
 * Errors   as hr_vocabulary_open. */
HR_MUST_CHECK hr_status hr_vocabulary_check_tokens(const char *path, uint8_t *staging,
                                                   hr_error *err);

/* Writes the file of a tokenizer: the texts of its ids. Arguments and errors as below.
 *
 *   hash  of the tokenizer's own files */
HR_MUST_CHECK hr_status hr_vocabulary_write_tokens(const char *directory, const char *name,
                                                   const hr_tokens *tokens, hr_text_hash hash,
                                                   uint8_t *staging, hr_error *err);

/* Writes the file: the special words, then table's words in the order of order [count].
 *
 *   staging  [HR_BLOCKS_BYTES]
 *   source   hash of the text that the table was counted from
 *
 * Errors   as hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_vocabulary_write(const char *directory, const char *name,
                                            const hr_word_table *table, const uint32_t *order,
                                            int64_t count, int64_t vocab_size, hr_text_hash source,
                                            uint8_t *staging, hr_error *err);

#endif
