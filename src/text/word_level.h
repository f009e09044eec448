/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_level.h - writes the vocabulary of data.tokenizer=words as a tokenizer.json, and reads
 * it.
 *
 * The file is a WordLevel model of the HF tokenizers library, with a normalizer and a pre-tokenizer
 * that produce the words of text/scan.h, so both give the same ids. Special words are upper case
 * (<UNK>); words of a text are lower case, so they never collide. */
#ifndef HR_TEXT_WORD_LEVEL_H
#define HR_TEXT_WORD_LEVEL_H

#include "base/region.h"
#include "text/word_vocabulary.h"

/* A file with the model WordLevel, as hr_tokenizer_probe finds it. */
typedef struct {
    const char *path; /* borrowed */
    int64_t file_bytes, words;
} hr_word_level_source;

/* Checks that the memory of the file can be planned. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_word_level_check(const hr_word_level_source *source, hr_error *err);

/* Bytes that an open file keeps, and all bytes that hr_word_level_open needs. Pure. */
int64_t hr_word_level_kept_bytes(const hr_word_level_source *source);
int64_t hr_word_level_bytes(const hr_word_level_source *source);

typedef struct hr_word_level hr_word_level;

/* Reads the file into the first hr_word_level_kept_bytes of a region; the rest is scratch.
 * Errors   CORRUPT  not JSON; a WordLevel tokenizer with another normalizer or pre-tokenizer, or
 *                   with ids out of order; as hr_file_open and hr_file_read; NO_FIT. */
HR_MUST_CHECK hr_status hr_word_level_open(hr_word_level **level, hr_region *region,
                                           const hr_word_level_source *source, hr_error *err);

/* Starts to encode a part of a text. `ends`: the text ends here. The text and `name`, which is for
 * error messages, are borrowed until all ids are read; `offset` is the position in its file. */
void hr_word_level_take(hr_word_level *level, const uint8_t *text, int64_t bytes, bool ends,
                        const char *name, int64_t offset);

/* Reads the next ids [HR_WORD_LEVEL_AT_ONCE]; fewer only at the end of the part. Errors as
 * hr_scan_next. */
enum { HR_WORD_LEVEL_AT_ONCE = 1024 };
HR_MUST_CHECK hr_status hr_word_level_next(hr_word_level *level, uint32_t *ids, int64_t *count,
                                           hr_error *err);

/* Discards a partial word. */
void hr_word_level_discard(hr_word_level *level);

int64_t hr_word_level_count(const hr_word_level *level);

/* Id of words that are not in the vocabulary. */
int64_t hr_word_level_unknown(const hr_word_level *level);

/* Id of the word that ends a document; -1: none. */
int64_t hr_word_level_document_end(const hr_word_level *level);

/* The text of an id, preceded by a space. */
const uint8_t *hr_word_level_text(const hr_word_level *level, int64_t id, int64_t *bytes);

/* Writes tokenizer.json into a folder. Errors as hr_file_begin; those of reading the vocabulary. */
HR_MUST_CHECK hr_status hr_word_level_write(hr_vocabulary *vocabulary, const char *folder,
                                            hr_error *err);

#endif
