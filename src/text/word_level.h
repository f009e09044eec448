/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_level.h - the vocabulary of data.tokenizer=words as a tokenizer.json, and its reader.
 *
 * The file is a WordLevel model of the HF tokenizers library, with a normalizer and a pre-tokenizer
 * that make the same words as text/scan.h, so both give the same ids. Special words are written in
 * upper case (<UNK>): words of a text are lower case, so none is ever taken for a special one. */
#ifndef HR_TEXT_WORD_LEVEL_H
#define HR_TEXT_WORD_LEVEL_H

#include <limits.h>

#include "base/region.h"
#include "text/word_vocabulary.h"

/* What has to be known of a file before there is memory for it. */
typedef struct {
    char path[PATH_MAX]; /* of the file itself */
    int64_t file_bytes, words;
} hr_word_level_source;

/* Whether `path` is such a file, or a folder with one called tokenizer.json. What cannot be read is
 * none: who reads other tokenizers says why. Reads the file once. */
bool hr_word_level_probe(const char *path, hr_word_level_source *source);

/* Bytes that stay, and all that hr_word_level_open needs. Pure. */
int64_t hr_word_level_kept_bytes(const hr_word_level_source *source);
int64_t hr_word_level_bytes(const hr_word_level_source *source);

typedef struct hr_word_level hr_word_level;

/* Reads the file into the first hr_word_level_kept_bytes of a region; the rest is scratch.
 * Errors   CORRUPT  no JSON; a WordLevel tokenizer that makes words in another way, or whose ids do
 *                   not come in order; as hr_file_open and hr_file_read; NO_FIT. */
HR_MUST_CHECK hr_status hr_word_level_open(hr_word_level **level, hr_region *region,
                                           const hr_word_level_source *source, hr_error *err);

/* More text; `ends`: no word reaches over its end. Its ids come next. The text and `name`, which is
 * for sentences, are borrowed until there are no more; `offset` is where in its file it begins. */
void hr_word_level_take(hr_word_level *level, const uint8_t *text, int64_t bytes, bool ends,
                        const char *name, int64_t offset);

/* Some of the next ids [HR_WORD_LEVEL_AT_ONCE]; fewer only where what was taken ends. Errors as
 * hr_scan_next. */
enum { HR_WORD_LEVEL_AT_ONCE = 1024 };
HR_MUST_CHECK hr_status hr_word_level_next(hr_word_level *level, uint32_t *ids, int64_t *count,
                                           hr_error *err);

/* The beginning of a word that waits for its end is void. */
void hr_word_level_forget(hr_word_level *level);

int64_t hr_word_level_count(const hr_word_level *level);

/* Id of the word that ends a document; -1: none. */
int64_t hr_word_level_document_end(const hr_word_level *level);

/* The text of an id, with a space before it. */
const uint8_t *hr_word_level_text(const hr_word_level *level, int64_t id, int64_t *bytes);

/* Writes tokenizer.json into a folder. Errors as hr_file_begin; those of reading the vocabulary. */
HR_MUST_CHECK hr_status hr_word_level_write(hr_vocabulary *vocabulary, const char *folder,
                                            hr_error *err);

#endif
