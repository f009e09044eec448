/* SPDX-License-Identifier: Apache-2.0 */
/* text/text.h - converts documents to shards of token ids, once, before a run allocates its memory.
 *
 * Shards are stored in a cache directory. Their names contain the hash of the text's content, so
 * the same text is tokenized once, and a changed text gets a new shard. */
#ifndef HR_TEXT_TEXT_H
#define HR_TEXT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "headroom/config.h"
#include "text/documents.h"

/* Ids of the special words of data.tokenizer=words, which never occur in a text. */
enum { HR_WORD_PAD, HR_WORD_UNKNOWN, HR_WORD_START, HR_WORD_END, HR_WORDS_SPECIAL };

/* The vocabulary of data.tokenizer=bytes: an id is a byte. */
enum { HR_BYTES_VOCABULARY = 256 };

enum { HR_TEXT_PARTS_MAX = 16 }; /* parts of a mixture */

typedef struct {
    /* [train_count]: one text, or the parts of a mixture. They define the words */
    const hr_documents *train;
    int32_t train_count;       /* 0: there is none */
    const hr_documents *valid; /* null: there is none */
    const char *cache;         /* directory, created if missing */
    hr_tokenizer_kind tokenizer;
    const char *file;     /* path of a tokenizer file */
    int64_t vocab_size;   /* V, the rows of the model's embedding */
    int64_t words_max;    /* capacity for distinct words during counting */
    int64_t document_end; /* id between documents; -1: none; -2: the one of the tokenizer file */
    bool ids_only;        /* every text is ids: with bytes, any vocabulary is large enough */
} hr_text_desc;

/* One text as token ids. */
typedef struct {
    char shard[HR_PATH_BYTES]; /* empty: no such text */
    int64_t source_bytes, tokens;
    int64_t covered; /* tokens that are in the vocabulary; the others are <unk> */
    int64_t documents, longest, masked, bad_lines; /* as in hr_shard_info */
    bool reused;                                   /* a valid shard for the text already existed */
} hr_text_part;

typedef struct {
    hr_text_part train[HR_TEXT_PARTS_MAX], valid; /* [train_count] */
    int32_t train_count;
    char vocabulary[HR_PATH_BYTES];  /* for hr_vocabulary_open; bytes: empty */
    int64_t vocabulary_used;         /* ids in use; rows from here to V are unused */
    int64_t distinct_words;          /* of the training text; bytes: 0 */
    int held[HR_TEXT_PARTS_MAX + 2]; /* [held_count] files that are locked against hr_cache_prune */
    int32_t held_count;
} hr_text;

/* Unlocks the files; hr_cache_prune may then remove them. Accepts a zeroed object. */
void hr_text_release(hr_text *text);

/* The id between documents if the recipe says auto: <eos> for words, none for bytes. The id of a
 * tokenizer file is known only after it is opened. Pure. */
int64_t hr_text_document_end(hr_tokenizer_kind kind);

/* Checks that a tokenizer file can be read and that V is at least its number of ids. Errors as
 * hr_tokens_probe; USAGE. */
HR_MUST_CHECK hr_status hr_text_check_file(const hr_text_desc *desc, hr_error *err);

/* Bytes that hr_text_prepare needs: a function of tokenizer, V, words_max and the current tokenizer
 * file. 0 if the description is out of range; hr_text_prepare returns the error. */
int64_t hr_text_prepare_bytes(const hr_text_desc *desc);

/* Creates the shards, or reuses those in the cache. A damaged shard is created again, with a
 * message through progress->note. The files stay locked until hr_text_release.
 *
 *   memory  [bytes], bytes >= hr_text_prepare_bytes(desc); unused after the call
 *   text    out
 *
 * Align    memory to 64.
 * Repeat   equal texts and descriptions give equal files, byte for byte.
 * Errors   USAGE        a path that is missing or unreadable; a vocabulary that is too small or
 *                       lacks the id between documents; more distinct words than words_max, with
 *                       both numbers
 *          NO_FIT       `bytes` is too small
 *          CORRUPT      a text without tokens; for words, a text that is not UTF-8 (with the
 *                       offset) or has a word of more than HR_WORD_BYTES
 *          FAILURE      a system call failed, for example on a full disk
 *          INTERRUPTED  progress asked to stop. No error leaves partial files behind.
 * Cost     bytes: two passes over a new text, one over a known one; words: three and one. */
HR_MUST_CHECK hr_status hr_text_prepare(const hr_text_desc *desc, void *memory, int64_t bytes,
                                        const hr_text_progress *progress, hr_text *text,
                                        hr_error *err);

#endif
