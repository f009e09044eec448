/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/tokenize.h - tokenizers of the field: text to ids and back, exactly as their files say.
 *
 * Reads tokenizer.json of byte-level BPE, of BPE of characters as Llama 2 has it, and of Unigram;
 * vocab.json with merges.txt; files of ranks; and tokenizer.model of SentencePiece. What such a
 * file asks for and is not supported is refused by name. */
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
    const char *path;    /* a file, or a folder with one */
    const char *pattern; /* of a file of ranks: gpt2, cl100k, qwen, o200k; null: by its name */
    int64_t threads;     /* 0: as affinity and cgroup quota allow */
    bool decodes_only;   /* nothing is set aside for encoding */
} hr_tokenize_setting;

enum { HR_TOKENIZE_STAGES_MAX = 16, HR_TOKENIZE_AROUND_MAX = 16 };

typedef struct {
    /* "tokenizer.json", "vocab.json and merges.txt", ".tiktoken", "tokenizer.model" */
    const char *form;
    const char *model; /* "byte-level BPE", "BPE of characters", "Unigram" */
    bool falls_back;   /* characters without a token become bytes; else an unknown token */
    int64_t ids;       /* highest id + 1: rows that a model's embedding needs */
    int64_t tokens;    /* ids that have a text; the others are holes */
    int64_t hole;      /* the first, -1: none */
    int64_t merges, added, special;
    int64_t longest_bytes; /* of a token */
    bool nfc, normalizes;  /* to form C; in another way */
    /* How each stage of the pre-tokenizer finds its matches: "scanner gpt2", "pcre2" ... */
    const char *stages[HR_TOKENIZE_STAGES_MAX];
    int32_t stage_count;
    bool orderly;  /* tokens are found from left to right, in time linear in a piece */
    bool by_words; /* later tokens span words */
    uint32_t first[HR_TOKENIZE_AROUND_MAX], last[HR_TOKENIZE_AROUND_MAX]; /* around a text */
    int32_t first_count, last_count;
    int64_t end_id; /* of the end of a text, by the names that files have for it; -1: unknown */
    int64_t table_bytes; /* of memory */
    int64_t work_bytes;
    int64_t piece_bytes; /* the longest piece that can be encoded */
} hr_tokenize_info;

/* Opens a tokenizer and sets aside what encoding will need.
 *
 * Errors   USAGE    missing, unreadable, or nothing of the kind in the folder
 *          CORRUPT  what is wrong with it, or what it asks for and is not supported
 *          NO_FIT, FAILURE
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_tokenize_open(hr_tokenize **tokenize, const hr_tokenize_setting *setting,
                                         hr_error *err);
void hr_tokenize_close(hr_tokenize **tokenize);

/* Valid until the close. */
const hr_tokenize_info *hr_tokenize_view(const hr_tokenize *tokenize);

/* What is done with a text. Any of the functions may be null. They are called one at a time and in
 * the order of the text, by whichever of the tokenizer's threads has come to that place. */
typedef struct {
    bool around; /* the ids that the file puts around every text come too */
    bool lines;  /* {"text": ...} a line: each is a text */
    void (*ids)(void *context, const uint32_t *ids, int64_t count); /* the next of a text */
    void (*end)(void *context);                                     /* a text is over */
    void (*told)(void *context, int64_t bytes_done, int64_t bytes); /* bytes -1: not known */
    void *context;
    const volatile sig_atomic_t *interrupts; /* above 0: to end */
} hr_tokenize_request;

typedef struct {
    int64_t bytes, texts, ids; /* bytes of texts, without what is around them in lines */
} hr_tokenize_result;

/* Encodes a file; "-": standard input.
 *
 *   result  out; also after an error, as far as it came
 *
 * Repeat   the same ids whatever the threads
 * Errors   USAGE        missing or unreadable
 *          CORRUPT      not UTF-8, with the byte; a line that is no such object, with its number; a
 *                       piece or a line too long
 *          FAILURE, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_tokenize_file(hr_tokenize *tokenize, const char *path,
                                         const hr_tokenize_request *request,
                                         hr_tokenize_result *result, hr_error *err);

/* The same for a text [bytes] in memory. */
HR_MUST_CHECK hr_status hr_tokenize_text(hr_tokenize *tokenize, const char *text, int64_t bytes,
                                         const hr_tokenize_request *request,
                                         hr_tokenize_result *result, hr_error *err);

/* The text of ids [count] behind those of the calls before, as UTF-8.
 *
 *   skips_special  special tokens have no text
 *   text           out [room]; room for one token at least, and 64 bytes
 *   used           out; ids taken; fewer than count when there is no more room
 *
 * Returns bytes written. Bytes that are no character become U+FFFD. */
int64_t hr_tokenize_decode(hr_tokenize *tokenize, const uint32_t *ids, int64_t count,
                           bool skips_special, char *text, int64_t room, int64_t *used);

/* Room that is enough for any one token; and the end of a text: what was held back, for which the
 * same room is enough. */
int64_t hr_tokenize_room(const hr_tokenize *tokenize);
int64_t hr_tokenize_decode_end(hr_tokenize *tokenize, char *text);

#ifdef __cplusplus
}
#endif
#endif
