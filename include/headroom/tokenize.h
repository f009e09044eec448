/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/tokenize.h - encodes and decodes text with a given tokenizer, exactly as its files
 * define.
 *
 * Reads tokenizer.json with byte-level BPE, character-level BPE (Llama 2), Unigram, or the
 * WordLevel of data.tokenizer=words; vocab.json with merges.txt; tiktoken rank files; and
 * SentencePiece tokenizer.model. An unsupported feature of a file is an error that names it. */
#ifndef HEADROOM_TOKENIZE_H
#define HEADROOM_TOKENIZE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_tokenize hr_tokenize;

typedef struct {
    const char *path; /* a tokenizer file, a folder with one, or "bytes" */
    /* pre-tokenizer for a rank file: gpt2, cl100k, qwen, o200k; null: from the file name */
    const char *pattern;
    int64_t threads;   /* 0: from CPU affinity and cgroup quota */
    bool decodes_only; /* allocate nothing for encoding */
} hr_tokenize_setting;

enum { HR_TOKENIZE_STAGES_MAX = 16, HR_TOKENIZE_AROUND_MAX = 16 };

typedef struct {
    /* "tokenizer.json", "vocab.json and merges.txt", ".tiktoken", "tokenizer.model", "bytes" */
    const char *form;
    const char *model; /* "byte-level BPE", "BPE of characters", "Unigram", "WordLevel", "bytes" */
    /* byte fallback: characters without a token become bytes; otherwise the unknown token */
    bool falls_back;
    int64_t ids;    /* highest id + 1: rows that an embedding needs */
    int64_t tokens; /* ids that have a text; other ids are unused */
    int64_t hole;   /* first unused id; -1: none */
    int64_t merges, added, special;
    int64_t longest_bytes; /* of the longest token */
    bool nfc, normalizes;  /* Unicode normalization form C; another normalization */
    /* How each stage of the pre-tokenizer matches: "scanner gpt2", "pcre2" ... */
    const char *stages[HR_TOKENIZE_STAGES_MAX];
    int32_t stage_count;
    bool orderly;  /* encoding takes time linear in the length of a piece */
    bool by_words; /* SuperBPE: later tokens span words */
    /* ids that the post-processor adds before and after a text */
    uint32_t first[HR_TOKENIZE_AROUND_MAX], last[HR_TOKENIZE_AROUND_MAX];
    int32_t first_count, last_count;
    int64_t end_id;      /* end-of-text id, from the names that files use for it; -1: unknown */
    int64_t table_bytes; /* memory of the tables */
    int64_t work_bytes;
    int64_t piece_bytes; /* longest piece that can be encoded */
} hr_tokenize_info;

/* Opens a tokenizer and allocates the memory for encoding.
 *
 * Errors   USAGE    missing or unreadable file, or no tokenizer in the folder
 *          CORRUPT  damaged content or an unsupported feature, named
 *          NO_FIT, FAILURE
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_tokenize_open(hr_tokenize **tokenize, const hr_tokenize_setting *setting,
                                         hr_error *err);
void hr_tokenize_close(hr_tokenize **tokenize);

/* Valid until hr_tokenize_close. */
const hr_tokenize_info *hr_tokenize_view(const hr_tokenize *tokenize);

/* What to encode, and the callbacks for the ids. Any callback may be null. They are called one at a
 * time, in the order of the text, from any thread of the tokenizer. */
typedef struct {
    size_t size; /* of this struct */
    bool around; /* include the ids that the post-processor adds around every text */
    bool lines;  /* input is JSON lines, {"text": ...}; each line is one text */
    /* the next ids of the current text */
    void (*ids)(void *context, const uint32_t *ids, int64_t count);
    void (*end)(void *context); /* the current text is complete */
    /* progress; bytes -1: not known */
    void (*progress)(void *context, int64_t bytes_done, int64_t bytes);
    void *context;
    const volatile sig_atomic_t *interrupts; /* above 0: stop */
} hr_tokenize_request;

typedef struct {
    int64_t bytes, texts, ids; /* bytes of texts, without the JSON around them */
} hr_tokenize_result;

/* Encodes a file; "-" is standard input.
 *
 *   result  out; also after an error, as far as encoding got
 *
 * Repeat   the same ids for any number of threads
 * Errors   USAGE        missing or unreadable file
 *          CORRUPT      not UTF-8, with the byte offset; a line without a text object, with its
 *                       number; a piece or line that is too long
 *          FAILURE, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_tokenize_file(hr_tokenize *tokenize, const char *path,
                                         const hr_tokenize_request *request,
                                         hr_tokenize_result *result, hr_error *err);

/* The same for `text` [bytes] in memory. */
HR_MUST_CHECK hr_status hr_tokenize_text(hr_tokenize *tokenize, const char *text, int64_t bytes,
                                         const hr_tokenize_request *request,
                                         hr_tokenize_result *result, hr_error *err);

/* Decodes `ids` [count], which continue those of earlier calls, to UTF-8.
 *
 *   skips_special  omit the text of special tokens
 *   text           out [room]; room for at least one token (hr_tokenize_room)
 *   used           out; ids consumed; fewer than count if the room is full
 *
 * Returns the number of bytes written. Invalid bytes become U+FFFD. */
int64_t hr_tokenize_decode(hr_tokenize *tokenize, const uint32_t *ids, int64_t count,
                           bool skips_special, char *text, int64_t room, int64_t *used);

/* hr_tokenize_room: bytes of room that any single token needs. hr_tokenize_decode_end: ends a text
 * and writes the bytes held back for an incomplete character; the same room is enough. */
int64_t hr_tokenize_room(const hr_tokenize *tokenize);
int64_t hr_tokenize_decode_end(hr_tokenize *tokenize, char *text);

#ifdef __cplusplus
}
#endif
#endif
