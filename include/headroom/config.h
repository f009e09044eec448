/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/config.h - everything a person can choose, as one struct of plain values.
 *
 * A recipe (YAML) and `key=value` on the command line set the same keys through the same table
 * (hr_config_key), which also gives each key its type, default, unit and one line of text. */
#ifndef HEADROOM_CONFIG_H
#define HEADROOM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_PATH_BYTES = 1024 };

typedef enum {
    HR_FAMILY_NEEDLE,
    HR_FAMILY_GPT_NEOX,
    HR_FAMILY_LLAMA,
    HR_FAMILY_GPT2,
    HR_FAMILY_OPT,
    HR_FAMILY_MISTRAL,
    HR_FAMILY_QWEN2,
    HR_FAMILY_QWEN3,
    HR_FAMILY_YXANUL,
    HR_FAMILY_WIDE,
    HR_FAMILIES
} hr_family;
typedef enum { HR_TIE_AUTO, HR_TIE_FALSE, HR_TIE_TRUE } hr_tie; /* auto: as the family is known */
typedef enum { HR_FORMAT_FP32, HR_FORMAT_BF16 } hr_format;
typedef enum { HR_TOKENIZER_BYTES, HR_TOKENIZER_WORDS, HR_TOKENIZER_FILE } hr_tokenizer_kind;
typedef enum { HR_BAD_LINES_STOP, HR_BAD_LINES_SKIP } hr_bad_lines;
typedef enum { HR_BAD_STEPS_STOP, HR_BAD_STEPS_SKIP, HR_BAD_STEPS_REWIND } hr_bad_steps;
typedef enum { HR_DOCUMENTS_JOINED, HR_DOCUMENTS_SEPARATE } hr_documents_kind;
typedef enum {
    HR_RECOMPUTE_AUTO, /* norms, and layers where nothing else fits */
    HR_RECOMPUTE_NONE,
    HR_RECOMPUTE_NORMS,
    HR_RECOMPUTE_LAYERS /* all but the residual stream */
} hr_recompute_kind;
typedef enum { HR_OPTIMIZER_ADAM, HR_OPTIMIZER_ADAMW, HR_OPTIMIZER_SGD } hr_optimizer_kind;
typedef enum {
    HR_SCHEDULE_CONSTANT,
    HR_SCHEDULE_LINEAR,
    HR_SCHEDULE_COSINE,
    HR_SCHEDULE_WSD /* warm-up, stable, decay */
} hr_schedule_kind;

enum { HR_CONFIG_GIVEN_WORDS = 4, HR_FIELD_BYTES = 64, HR_TOKEN_IDS_BYTES = 256 };

typedef struct {
    struct {
        char from[HR_PATH_BYTES]; /* folder of a model that is there already; empty: a new one */
        int32_t family;           /* hr_family */
        int64_t d_model, n_layers, n_heads, d_ff, vocab_size;
        int64_t n_kv_heads;     /* llama and its kin; 0: n_heads */
        int64_t head_dim;       /* llama and its kin; 0: d_model / n_heads */
        int64_t positions;      /* that are learned, or were rotated; 0: seq_len */
        int64_t embedding_rank; /* yxanul: width of the factorised table; 0: d_model / 4 */
        int64_t expansion;      /* wide: elements that the decoder reads; 0: 4 d_model */
        int64_t decoder_rank;   /* wide: of the decoder's two factors; 0: it is one matrix */
        int32_t tie_embeddings; /* hr_tie: the head is the table */
        double dropout;
        double norm_eps;
        double rotary_fraction; /* gpt_neox: share of each head that rotates */
        double rope_theta;
        bool parallel_residual; /* gpt_neox */
        struct {
            int32_t kind; /* hr_rope_scaling_kind of ops/rope: none, linear, llama3 */
            double factor, low_freq_factor, high_freq_factor;
            int64_t original_positions; /* those that the model was trained with before */
        } rope_scaling;                 /* llama */
        struct {
            int32_t pattern; /* hr_pattern of ops/attention: dense, local, global, mixed */
            int64_t window, stride, block; /* stride 0: the pattern's own */
            int64_t sliding_window;        /* tokens; llama; 0: none */
        } attention;
    } model;
    struct {
        char train[HR_PATH_BYTES], valid[HR_PATH_BYTES]; /* as docs/corpora.md has them */
        char text_field[HR_FIELD_BYTES];                 /* of an object a line: its text, or ... */
        char prompt_field[HR_FIELD_BYTES], completion_field[HR_FIELD_BYTES];
        char document_end[HR_FIELD_BYTES]; /* id between documents, auto or none */
        int32_t bad_lines;                 /* hr_bad_lines */
        int32_t documents;                 /* hr_documents_kind */
        char tokenizer[HR_PATH_BYTES];     /* bytes, words, or a path */
        int64_t words_max;                 /* distinct words that counting has room for */
        char cache[HR_PATH_BYTES];         /* directory of token shards; empty: inside train.out */
        char fixed_batch[HR_PATH_BYTES];   /* safetensors: the batch of every step; empty: none */
    } data;
    struct {
        int32_t format; /* hr_format */
        int64_t batch;  /* sequences an update */
        int64_t seq_len;
        int64_t steps; /* updates; 0: as many as `epochs` gives */
        int64_t epochs;
        int64_t seed;
        int64_t threads;           /* 0: as affinity and cgroup quota allow */
        int64_t eval_every;        /* steps; 0: at the end only */
        int64_t eval_batches;      /* micro-batches an evaluation; 0: all of data.valid */
        int64_t checkpoint_every;  /* steps; 0: at the end only */
        int64_t keep_last;         /* checkpoints */
        int64_t keep_every;        /* steps; 0: none but the last */
        bool keep_best;            /* that of the least validation loss */
        int64_t patience;          /* evaluations without a new best; 0: any number */
        int64_t max_seconds;       /* 0: as long as it takes */
        double average;            /* of the weights: decay; 0: none */
        int32_t bad_steps;         /* hr_bad_steps */
        int64_t bad_steps_max;     /* of a run */
        bool spikes;               /* make one too */
        int64_t sample_every;      /* steps; 0: at the end only */
        int64_t sample_tokens;     /* 0: no sample */
        double sample_temperature; /* 0: the likeliest token */
        double z_loss; /* times the mean of log(sum of exponentials)^2, added to the loss */
        char freeze[HR_PATH_BYTES]; /* patterns of names (model/rules.h): what does not train */
        char groups[HR_PATH_BYTES]; /* patterns with their own learning rate and decay */
        char out[HR_PATH_BYTES];    /* directory for weights; empty: nothing is written */
        char kernels[16];           /* auto, or the highest rung to use: ref, avx2 ... */
        struct {
            int32_t kind; /* hr_optimizer_kind */
            double lr, beta1, beta2, eps, weight_decay;
            double clip; /* largest gradient norm; 0: no clipping */
        } optimizer;
        struct {
            int32_t kind; /* hr_schedule_kind */
            int64_t warmup_steps;
            double final_fraction; /* of lr, that the schedule falls to */
            double decay_share;    /* wsd: the share of the steps that decays at the end */
        } schedule;
    } train;
    struct {
        int64_t budget;               /* bytes for the whole process; 0: unbounded */
        int64_t micro_batch;          /* sequences; 0: auto */
        int64_t loss_chunk;           /* tokens; 0: auto */
        int32_t recompute;            /* hr_recompute_kind */
        char strategy[HR_PATH_BYTES]; /* file that says all of the above; empty: none */
    } memory;
    /* Which tokens begin, end and fill a text to other software, as config.json of model.from has
     * them: lines of it. No keys: headroom asks the tokenizer. */
    char token_ids[HR_TOKEN_IDS_BYTES];
    /* Bit i: key i of the table was set since hr_config_default. hr_config_set keeps it, for
     * hr_config_adopt. */
    uint64_t given[HR_CONFIG_GIVEN_WORDS];
} hr_config;

typedef enum {
    HR_KEY_INTEGER,
    HR_KEY_REAL,
    HR_KEY_BOOL,
    HR_KEY_CHOICE,
    HR_KEY_BYTES,
    HR_KEY_TEXT
} hr_key_type;

/* One row of the table of keys. Strings live as long as the program. */
typedef struct {
    const char *name; /* "train.optimizer.lr" */
    hr_key_type type;
    const char *default_text;
    const char *unit;      /* "tokens", "sequences", "bytes"; empty: none */
    const char *choices;   /* "fp32 bf16", in the order of the enum; null: not a choice */
    const char *zero_word; /* a word that may be written for 0: "auto"; null: none */
    double low, high;      /* legal range of numbers */
    bool below_high;       /* `high` itself is refused */
    const char *text;      /* one line for people */
} hr_key;

enum { HR_TAKES_BYTES = 192 };

/* Row `index` of the table, null past its end. Pure. */
const hr_key *hr_config_key(int32_t index);

/* What a key takes, for people: "a whole number from 0 to 1024, in threads, or auto".
 * Returns text. */
const char *hr_key_takes(const hr_key *key, char text[HR_TAKES_BYTES]);

/* The known key that is most similar to `key`; null where none is similar. Pure. */
const char *hr_config_nearest(const char *key);

/* Damerau-Levenshtein distance: the letters that must be added, removed, replaced or swapped with
 * their neighbour to turn one word into the other. Only the first 63 letters count. Pure. */
enum { HR_WORD_LETTERS_MAX = 63 };
int32_t hr_word_distance(const char *a, const char *b);

/* How unlikely it is that `word` was meant to be `known`: 0 for equal words, and INT32_MAX for
 * words that are too different to suggest one for the other. Similar words differ in at most one
 * edit for every three letters of `word`, or one begins with the other, or `word` is a whole part
 * of `known` ("size" of "vocab-size"); a beginning and a part have three letters or more. Pure. */
int32_t hr_word_cost(const char *word, const char *known);

/* Elements of a head, and heads that have keys and values of their own. Pure. */
int64_t hr_config_head_dim(const hr_config *config);
int64_t hr_config_kv_heads(const hr_config *config);

/* Blocks from one that all see to the next, of the patterns that have such. Pure. */
int64_t hr_config_attention_stride(const hr_config *config);

/* Positions of a model, learned or rotated, and the width of a factorised table. Pure. */
int64_t hr_config_positions(const hr_config *config);
int64_t hr_config_embedding_rank(const hr_config *config);

/* What the decoder of a wide model reads. Pure. */
int64_t hr_config_expansion(const hr_config *config);

/* What data.tokenizer says: a word, or the path of a file or folder. Pure. */
hr_tokenizer_kind hr_config_tokenizer(const hr_config *config);

/* What data.document_end says, beside an id. */
enum { HR_DOCUMENT_END_NONE = -1, HR_DOCUMENT_END_AUTO = -2 };

/* An id, or one of these; false: it is neither. Pure. */
bool hr_config_document_end(const hr_config *config, int64_t *id);

/* What a run is trained and evaluated on: texts, or safetensors files of rows of tokens, which are
 * data.fixed_batch and every name that ends in .safetensors. Empty: there is none. */
typedef struct {
    const char *train_text, *train_rows; /* one of them at most */
    const char *valid_text, *valid_rows;
} hr_config_data;

/* Paths stay those of the config. Pure. */
hr_config_data hr_config_data_of(const hr_config *config);

/* All defaults. */
void hr_config_default(hr_config *config);

/* Sets one key from text.
 * Errors   USAGE  unknown key (names a known one that is near), wrong type, out of range: says what
 *                 the key takes. `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_set(hr_config *config, const char *key, const char *value,
                                      hr_error *err);

/* The same from one word, "key=value". Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_set_word(hr_config *config, const char *word, hr_error *err);

/* The present value of a key as text that hr_config_set takes back. `text` [bytes] out. */
HR_MUST_CHECK hr_status hr_config_get(const hr_config *config, const char *key, char *text,
                                      int64_t bytes, hr_error *err);

/* Reads a recipe over the values that are there: YAML, mappings of keys to single values, at most
 * 1 MiB. A key may be written nested or with its dots ("optimizer.lr: 1e-3" inside "train").
 * Errors   USAGE  missing or unreadable file, not YAML, unknown or repeated key, wrong type, list,
 *                 alias, anchor, tag, second document: names file and line. `config` is then
 *                 untouched. */
HR_MUST_CHECK hr_status hr_config_read(hr_config *config, const char *path, hr_error *err);

/* Where model.from names a folder: takes every key of `model` but dropout from its config.json.
 * Comes after all keys are set, and before the check; without model.from it does nothing.
 * Errors   USAGE    no such file; a key that was given, and not as the folder says
 *          CORRUPT  not JSON; an architecture, an option or a value that is not known: named.
 * `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_adopt(hr_config *config, hr_error *err);

/* Where data are rows of tokens: takes train.seq_len from the file, and train.batch from that of
 * data.fixed_batch. Comes after all keys are set, and before the check; without such a file it only
 * looks at how texts are named (docs/corpora.md).
 * Errors   USAGE    no such file; a key that was given, and not as the file has it; words about a
 *                   text that cannot be read
 *          CORRUPT  no safetensors, or without input_ids and labels [rows, tokens].
 * `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_adopt_data(hr_config *config, hr_error *err);

/* Checks what no single key can: heads that do not divide the width, products that overflow, a
 * vocabulary too small for its tokenizer. One sentence with both numbers. Whether a text is longer
 * than a window is not known here; a window is never longer than the positions, since
 * train.seq_len is both.
 * Errors   USAGE. */
HR_MUST_CHECK hr_status hr_config_check(const hr_config *config, hr_error *err);

/* The part of it that follows from the keys of `model` alone. Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_check_model(const hr_config *config, hr_error *err);

/* Reads "700MiB", "733MB", "1.5GiB" or plain bytes; a broken byte is dropped. Errors USAGE. */
HR_MUST_CHECK hr_status hr_bytes_parse(const char *text, int64_t *bytes, hr_error *err);

/* "734,003,200 bytes (0.684 GiB)" into text [64]. Returns text. */
const char *hr_bytes_print(int64_t bytes, char text[64]);

#ifdef __cplusplus
}
#endif
#endif
