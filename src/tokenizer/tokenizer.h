/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/tokenizer.h - a tokenizer as its files describe it, in memory that the caller gives.
 *
 * How much that is, is known from a first look at the files. What a tokenizer of the field may have
 * and this one does not know is refused by name, never approximated. */
#ifndef HR_TOKENIZER_TOKENIZER_H
#define HR_TOKENIZER_TOKENIZER_H

#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/json_index.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/unigram.h"

enum { HR_TOKENIZER_PATH_BYTES = 4096, HR_TOKENIZER_AROUND_MAX = 16 };

typedef enum {
    HR_TOKENIZER_JSON,  /* tokenizer.json */
    HR_TOKENIZER_PAIR,  /* vocab.json and merges.txt */
    HR_TOKENIZER_RANKS, /* lines of base64 and a rank */
    HR_TOKENIZER_MODEL, /* tokenizer.model of SentencePiece */
} hr_tokenizer_form;

/* What was seen at a first look. */
typedef struct {
    hr_tokenizer_form form;
    char path[HR_TOKENIZER_PATH_BYTES];   /* the file; of a pair its vocabulary */
    char merges[HR_TOKENIZER_PATH_BYTES]; /* of a pair */
    const char *pattern;                  /* of a file of ranks */
    hr_json_index outline;
    int64_t merges_bytes;
    bool unigram; /* tokenizer.json whose vocabulary is a list of tokens and scores */
    hr_bpe_size size;
    int64_t table_bytes, scratch_bytes;
} hr_tokenizer_source;

/* Looks at a file, or at a folder with tokenizer.json, vocab.json and merges.txt, or a .tiktoken.
 *
 *   pattern  a pattern's name (gpt2, cl100k, o200k, qwen) for a file of ranks, which has none;
 *            null: by the file's name
 *
 * Errors   USAGE    missing, unreadable, or nothing of the kind in the folder; no such pattern
 *          CORRUPT  no tokenizer. */
HR_MUST_CHECK hr_status hr_tokenizer_probe(hr_tokenizer_source *source, const char *path,
                                           const char *pattern, hr_error *err);

typedef struct hr_tokenizer hr_tokenizer;

/* Makes a tokenizer.
 *
 *   tables   a region with source->table_bytes, that lives as long as the tokenizer
 *   scratch  [source->scratch_bytes], free again when this returns
 *   cpu      from hr_cpu_detect
 *
 * Errors   CORRUPT  what is wrong with the file, or what it asks for and is not supported
 *          USAGE, FAILURE, NO_FIT
 * Threads  one; the tokenizer itself any number. */
HR_MUST_CHECK hr_status hr_tokenizer_place(hr_tokenizer **tokenizer, hr_region *tables,
                                           hr_region scratch, const hr_tokenizer_source *source,
                                           uint32_t cpu, hr_error *err);

enum {
    HR_TOKENIZER_SPECIAL = 1,
    HR_TOKENIZER_ADDED = 2,
    HR_TOKENIZER_OUTSIDE = 4,  /* the model never makes it */
    HR_TOKENIZER_RENAMED = 8,  /* added, and its text is a normalized one */
    HR_TOKENIZER_FALLBACK = 16 /* stands for a byte */
};

/* What a model's tokens are made of. */
typedef enum {
    HR_BYTE_LEVEL_BPE, /* byte-level BPE */
    HR_CHARACTER_BPE,  /* BPE of characters */
    HR_UNIGRAM
} hr_tokenizer_model_kind;

/* Which pieces get U+2581 in front: as the pre-tokenizer Metaspace has it. */
typedef enum { HR_METASPACE_NEVER, HR_METASPACE_FIRST, HR_METASPACE_ALWAYS } hr_metaspace_scheme;

typedef enum {
    HR_DECODING_BYTES,  /* ByteLevel */
    HR_DECODING_JOINED, /* none: texts of tokens with spaces between them */
    HR_DECODING_PIECES, /* texts of tokens, one behind the other */
    HR_DECODING_SENTENCEPIECE
} hr_decoding_kind;

typedef struct {
    hr_decoding_kind kind;
    bool spaces;     /* U+2581 becomes a space */
    bool falls_back; /* <0x41> is a byte */
    bool drops;      /* Metaspace: U+2581 of the first token becomes nothing */
    int32_t strips;  /* spaces at the beginning of the text, at most */
} hr_decoding;

struct hr_tokenizer {
    hr_bpe bpe;
    hr_pretokenizer *pretokenizer;
    hr_added raw, normalized;    /* added tokens by where they are found */
    const hr_added_token *added; /* [added_count] in the order of the file */
    int32_t added_count;
    uint8_t *marks; /* [ids] HR_TOKENIZER_... */
    hr_tokenizer_model_kind kind;
    hr_unigram unigram;
    hr_normalizer normalizer; /* of CHARACTERS and UNIGRAM */
    hr_charsmap charsmap;     /* of its Precompiled */
    hr_added symbols;         /* user-defined pieces of SentencePiece, as written */
    /* Tables have a space for each U+2581: no other space reaches the model. */
    bool spaced;
    bool metaspace, splits; /* the pre-tokenizer; it also parts before each U+2581 */
    hr_metaspace_scheme scheme;
    bool joins[256]; /* some token has a space behind a character that ends with this byte */
    bool fuses;      /* characters without a token, one behind the other, have one together */
    hr_decoding decoding;
    uint8_t unknown_text[32]; /* of SentencePiece, for decoding */
    int32_t unknown_text_bytes;
    bool nfc;
    uint32_t first[HR_TOKENIZER_AROUND_MAX], last[HR_TOKENIZER_AROUND_MAX];
    int32_t first_count, last_count; /* what the post-processor puts around a text */
    int64_t ids;                     /* highest id + 1 */
    int64_t tokens;                  /* ids that have a text */
    int64_t merges;
    int32_t pattern_count;
    bool prefix_space; /* text between added tokens that does not begin with a space gets one */
    const char *form;  /* "tokenizer.json", ... */
};

/* The id of an added token or of any other by its text; HR_BPE_NONE. Slow. */
int32_t hr_tokenizer_id_of(const hr_tokenizer *tokenizer, const char *text);

/* The byte that a token such as <0x0A> stands for, -1: none. */
int32_t hr_byte_piece(const uint8_t *text, int64_t bytes);

/* A byte as a character, as byte-level files write it. */
uint32_t hr_byte_character(uint8_t byte);

/* The byte that a character stands for, -1: none. */
int32_t hr_character_byte(uint32_t character);

#endif
