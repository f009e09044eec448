/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/tokenizer.h - a tokenizer loaded from its files into memory of the caller.
 *
 * A first pass over the files determines the memory. Features that are not supported are refused by
 * name, never approximated. */
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
    HR_TOKENIZER_RANKS, /* .tiktoken: lines of base64 and a rank */
    HR_TOKENIZER_MODEL, /* tokenizer.model of SentencePiece */
} hr_tokenizer_form;

/* Result of the first pass over the files. */
typedef struct {
    hr_tokenizer_form form;
    char path[HR_TOKENIZER_PATH_BYTES];   /* the file; of a pair its vocab.json */
    char merges[HR_TOKENIZER_PATH_BYTES]; /* of a pair: its merges.txt */
    const char *pattern;                  /* of a .tiktoken file */
    hr_json_index outline;
    int64_t merges_bytes;
    bool unigram; /* a tokenizer.json whose vocabulary is a list of tokens and scores */
    bool words;   /* a tokenizer.json with the model WordLevel, which text/word_level.h reads */
    hr_bpe_size size;
    int64_t table_bytes, scratch_bytes;
} hr_tokenizer_source;

/* Examines a file, or a folder with tokenizer.json, vocab.json and merges.txt, or tokenizer.model.
 *
 *   pattern  name of the split pattern (gpt2, cl100k, o200k, qwen) of a .tiktoken file, which does
 *            not contain one; null: from the file name
 *
 * Errors   USAGE    missing, unreadable, no tokenizer in the folder, or an unknown pattern
 *          CORRUPT  not a tokenizer. */
HR_MUST_CHECK hr_status hr_tokenizer_probe(hr_tokenizer_source *source, const char *path,
                                           const char *pattern, hr_error *err);

typedef struct hr_tokenizer hr_tokenizer;

/* Loads a tokenizer.
 *
 *   tables   a region of source->table_bytes that lives as long as the tokenizer
 *   scratch  [source->scratch_bytes], free again after the call
 *   cpu      from hr_cpu_detect
 *
 * Errors   CORRUPT  an invalid file or an unsupported feature, by name
 *          USAGE, FAILURE, NO_FIT
 * Threads  one; any number may use the loaded tokenizer. */
HR_MUST_CHECK hr_status hr_tokenizer_place(hr_tokenizer **tokenizer, hr_region *tables,
                                           hr_region scratch, const hr_tokenizer_source *source,
                                           uint32_t cpu, hr_error *err);

enum {
    HR_TOKENIZER_SPECIAL = 1,
    HR_TOKENIZER_ADDED = 2,
    HR_TOKENIZER_OUTSIDE = 4,  /* the model never outputs it */
    HR_TOKENIZER_RENAMED = 8,  /* an added token whose normalized text is another one */
    HR_TOKENIZER_FALLBACK = 16 /* stands for a byte (<0x41>) */
};

/* The model. */
typedef enum {
    HR_BYTE_LEVEL_BPE, /* BPE over bytes */
    HR_CHARACTER_BPE,  /* BPE over characters */
    HR_UNIGRAM
} hr_tokenizer_model_kind;

/* prepend_scheme of the pre-tokenizer Metaspace: the pieces that get a leading U+2581. */
typedef enum { HR_METASPACE_NEVER, HR_METASPACE_FIRST, HR_METASPACE_ALWAYS } hr_metaspace_scheme;

typedef enum {
    HR_DECODING_BYTES,  /* ByteLevel */
    HR_DECODING_JOINED, /* no decoder: token texts joined by spaces */
    HR_DECODING_PIECES, /* token texts concatenated */
    HR_DECODING_SENTENCEPIECE
} hr_decoding_kind;

typedef struct {
    hr_decoding_kind kind;
    bool spaces;     /* replace U+2581 with a space */
    bool falls_back; /* decode <0x41> to a byte */
    bool drops;      /* Metaspace: remove the U+2581 at the start of the first token */
    int32_t strips;  /* most spaces to remove at the start of the text */
} hr_decoding;

struct hr_tokenizer {
    hr_bpe bpe;
    hr_pretokenizer *pretokenizer;
    hr_added raw, normalized;    /* added tokens that match in raw text, in normalized text */
    const hr_added_token *added; /* [added_count] in file order */
    /* [added_count] text and bytes that those with HR_TOKENIZER_RENAMED are decoded to. */
    const hr_added_token *renamed;
    int32_t added_count;
    uint8_t *marks; /* [ids] flags HR_TOKENIZER_... */
    hr_tokenizer_model_kind kind;
    hr_unigram unigram;
    hr_normalizer normalizer; /* of HR_CHARACTER_BPE and HR_UNIGRAM */
    hr_charsmap charsmap;     /* of the normalizer Precompiled */
    hr_added symbols;         /* user-defined symbols of SentencePiece, as written */
    /* The tables have a space for each U+2581. No other space reaches the model. */
    bool spaced;
    bool metaspace, splits; /* the pre-tokenizer is Metaspace; it also splits before each U+2581 */
    hr_metaspace_scheme scheme;
    bool joins[256]; /* some token has a space after a character that ends with this byte */
    bool fuses;      /* fuse_unk: consecutive characters without a token become one unknown token */
    hr_decoding decoding;
    uint8_t unknown_text[32]; /* SentencePiece's unk_surface, for decoding */
    int32_t unknown_text_bytes;
    bool nfc;
    uint32_t first[HR_TOKENIZER_AROUND_MAX], last[HR_TOKENIZER_AROUND_MAX];
    int32_t first_count, last_count; /* ids that the post-processor adds before and after a text */
    int64_t ids;                     /* largest id + 1 */
    int64_t tokens;                  /* ids that have a text */
    int64_t merges;
    int32_t pattern_count;
    bool prefix_space; /* add_prefix_space: text between added tokens gets a leading space */
    const char *form;  /* name of the file format: "tokenizer.json" and so on */
};

/* The id of an added token or other token by its text; HR_BPE_NONE: none. Slow: linear search. */
int32_t hr_tokenizer_id_of(const hr_tokenizer *tokenizer, const char *text);

/* The token that ends a document, by its name: the first known one of a list; -1: none. */
int32_t hr_tokenizer_document_end(const hr_tokenizer *tokenizer);

/* The byte of a byte token such as <0x0A>; -1: not a byte token. */
int32_t hr_byte_piece(const uint8_t *text, int64_t bytes);

/* The character that stands for a byte in byte-level files. */
uint32_t hr_byte_character(uint8_t byte);

/* The byte that a character stands for in byte-level files; -1: none. */
int32_t hr_character_byte(uint32_t character);

#endif
