/* SPDX-License-Identifier: Apache-2.0 */
/* text/text.h - from documents to files of token ids, once, before a run takes its memory.
 *
 * What is made lies in a cache directory under names that hold the hash of the text's content, so
 * the same text is never tokenized twice and a changed text never passes for the old one. */
#ifndef HR_TEXT_TEXT_H
#define HR_TEXT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/config.h"
#include "text/documents.h"

/* The words of data.tokenizer=words that no text makes; their ids. */
enum { HR_WORD_PAD, HR_WORD_UNKNOWN, HR_WORD_START, HR_WORD_END, HR_WORDS_SPECIAL };

/* The vocabulary of data.tokenizer=bytes: an id is a byte. */
enum { HR_BYTES_VOCABULARY = 256 };

enum { HR_TEXT_PARTS_MAX = 16 }; /* of a mixture */

typedef struct {
    const hr_documents *train; /* [train_count]: one, or the parts of a mixture. Words are theirs */
    int32_t train_count;       /* 0: there is none */
    const hr_documents *valid; /* null: there is none */
    const char *cache;         /* directory, made when missing */
    hr_tokenizer_kind tokenizer;
    const char *file;     /* of a tokenizer that is a file */
    int64_t vocab_size;   /* V, the rows of the model's embedding */
    int64_t words_max;    /* distinct words that counting has room for */
    int64_t document_end; /* id between documents; -1: none; -2: the tokenizer file's own */
} hr_text_desc;

/* One text as token ids. */
typedef struct {
    char shard[HR_PATH_BYTES]; /* empty: no such text */
    int64_t source_bytes, tokens;
    int64_t covered; /* tokens that are in the vocabulary; the others are <unk> */
    int64_t documents, longest, masked, bad_lines; /* as hr_shard_info has them */
    bool reused; /* the shard was there, was whole and fits the text */
} hr_text_part;

typedef struct {
    hr_text_part train[HR_TEXT_PARTS_MAX], valid; /* [train_count] */
    int32_t train_count;
    char vocabulary[HR_PATH_BYTES];  /* for hr_vocabulary_open; bytes: empty */
    int64_t vocabulary_used;         /* ids that mean something; rows from here to V are unused */
    int64_t distinct_words;          /* of the training text; bytes: 0 */
    int held[HR_TEXT_PARTS_MAX + 2]; /* [held_count] files that are locked against hr_cache_prune */
    int32_t held_count;
} hr_text;

/* Lets go of the files: hr_cache_prune may remove them. Accepts what is zeroed. */
void hr_text_release(hr_text *text);

/* The id between documents where the recipe says auto: <eos> for words; bytes have none; a file's
 * own is only known once it is open. Pure. */
int64_t hr_text_document_end(hr_tokenizer_kind kind);

/* That a tokenizer's file can be read, and that V has all its ids. Errors as hr_tokens_look;
 * USAGE. */
HR_MUST_CHECK hr_status hr_text_check_file(const hr_text_desc *desc, hr_error *err);

/* Bytes that hr_text_prepare needs: a function of tokenizer, V and words_max alone, and of a
 * tokenizer's file as it is now. 0 when the description is out of range, which hr_text_prepare then
 * says. */
int64_t hr_text_prepare_bytes(const hr_text_desc *desc);

/* Makes the shards, or finds them made. One that is there and damaged is made again, which
 * progress->note says. The files stay locked until hr_text_release.
 *
 *   memory  [bytes], bytes >= hr_text_prepare_bytes(desc); free again when this returns
 *   text    out
 *
 * Align    memory to 64.
 * Repeat   equal texts and descriptions give equal files, byte for byte.
 * Errors   USAGE        a path that is missing or unreadable; a vocabulary too small, or without
 *                       the id between documents; more distinct words than words_max, with both
 *          NO_FIT       `bytes` is too small
 *          CORRUPT      a text without tokens; for words, one that is not UTF-8 (says where) or has
 *                       a word of more than HR_WORD_BYTES
 *          FAILURE      the system refused, a full disk among others
 *          INTERRUPTED  progress said stop. In every case nothing half-written stays behind.
 * Cost     bytes: two passes over a new text, one over a known one; words: three and one. */
HR_MUST_CHECK hr_status hr_text_prepare(const hr_text_desc *desc, void *memory, int64_t bytes,
                                        const hr_text_progress *progress, hr_text *text,
                                        hr_error *err);

#endif
