/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/config.h - all settings of a run.
 *
 * A recipe (YAML) and `key=value` on the command line set the same keys through the same table
 * (hr_config_key), which gives each key its type, default, unit and one line of help. */
#ifndef HEADROOM_CONFIG_H
#define HEADROOM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_PATH_BYTES = 1024, HR_STAGES_BYTES = 4096, HR_VALUE_BYTES = HR_STAGES_BYTES };

/* The settings. Each key has a value from the start: its default. */
typedef struct hr_config hr_config;

/* New settings, with defaults, or a copy; null: no memory. For hr_config_free, which takes null. */
hr_config *hr_config_new(void);
hr_config *hr_config_copy(const hr_config *config);
void hr_config_free(hr_config *config);

/* to = from */
void hr_config_assign(hr_config *to, const hr_config *from);

/* train.dtype */
typedef enum { HR_FORMAT_FP32, HR_FORMAT_BF16, HR_FORMAT_FP16 } hr_format;

/* The value of train.dtype. `format` is one of hr_format. */
static inline const char *hr_format_name(int32_t format)
{
    static const char *const names[] = { "fp32", "bf16", "fp16" };
    return names[format];
}

/* How frozen weights are stored in memory: enumerator, choice of model.weights. compute: in the
 * dtype that products read. docs/adding.md says what a new one needs. */
#define HR_WEIGHT_FORMAT_LIST(X) \
    X(COMPUTE, compute) \
    X(F16, f16) \
    X(BF16, bf16) \
    X(F8_E4M3, f8_e4m3)

#define HR_WEIGHT_FORMAT_ID(id, name) HR_WEIGHTS_##id,
typedef enum {
    HR_WEIGHT_FORMAT_LIST(HR_WEIGHT_FORMAT_ID)
        HR_WEIGHTS_AUTO /* as config.json of model.from says */
} hr_weights_choice;
#undef HR_WEIGHT_FORMAT_ID

/* AUTO: in memory if the run fits, or in files where that is faster or fits. */
typedef enum { HR_PLACE_HOST, HR_PLACE_FILE, HR_PLACE_AUTO } hr_place;

typedef enum {
    HR_KEY_INTEGER,
    HR_KEY_REAL,
    HR_KEY_BOOL,
    HR_KEY_CHOICE,
    HR_KEY_BYTES,
    HR_KEY_TEXT
} hr_key_type;

/* One row of the table of keys. Strings are valid for the life of the program. */
typedef struct {
    const char *name; /* "train.optimizer.lr" */
    hr_key_type type;
    const char *default_text;
    const char *unit;      /* "tokens", "sequences", "bytes"; empty: no unit */
    const char *choices;   /* "fp32 bf16", in enum order; null: not a choice */
    const char *zero_word; /* word accepted for 0: "auto"; null: none */
    double low, high;      /* legal range */
    bool below_high;       /* `high` itself is not legal */
    const char *text;      /* one line of help */
} hr_key;

enum { HR_TAKES_BYTES = 192 };

/* Row `index` of the table, null past its end. Pure. */
const hr_key *hr_config_key(int32_t index);

/* A key whose name has changed. The old name is accepted for one version. */
typedef struct {
    const char *old_name, *name;
} hr_renamed_key;

/* Row `index` of the table of old names, null past its end. At most 64 rows. Pure. */
const hr_renamed_key *hr_config_renamed(int32_t index);

/* The current name of a key, given its current or old name; null: unknown key. Pure. */
const char *hr_config_name(const char *name);

/* The values that a key accepts: "integer from 0 to 1,024 threads, or auto". Returns text. */
const char *hr_key_takes(const hr_key *key, char text[HR_TAKES_BYTES]);

/* The known key most similar to `key`; null: none is similar. Pure. */
const char *hr_config_nearest(const char *key);

/* Damerau-Levenshtein distance: the letters that must be added, removed, replaced or swapped with
 * their neighbor to turn one word into the other. Only the first 63 letters count. Pure. */
enum { HR_WORD_LETTERS_MAX = 63 };
int32_t hr_word_distance(const char *a, const char *b);

/* How unlikely it is that `word` was meant to be `known`: 0 for equal words, and INT32_MAX for
 * words that are too different to suggest one for the other. Similar words differ in at most one
 * edit for every three letters of `word`, or one begins with the other, or `word` is a whole part
 * of `known` ("size" of "vocab-size"); a beginning and a part have three letters or more. Pure. */
int32_t hr_word_cost(const char *word, const char *known);

/* Whether data.train is the source of synthetic ids, which no tokenizer reads. Pure. */
bool hr_config_is_synthetic(const hr_config *config);

/* Whether training and validation text are token ids, by their names, so that no tokenizer is
 * needed. Pure. */
bool hr_config_has_ids(const hr_config *config);

/* Sets every key to its default. */
void hr_config_default(hr_config *config);

/* Sets one key from text.
 * Errors   USAGE  unknown key (suggests a similar one), wrong type, or out of range: names the
 *                 accepted values. `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_set(hr_config *config, const char *key, const char *value,
                                      hr_error *err);

/* The same from one argument, "key=value". Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_set_word(hr_config *config, const char *word, hr_error *err);

/* Whether a format of train.state is left to hr_plan_choose_states. Pure. */
bool hr_config_chooses_states(const hr_config *config);

/* Writes the value of a key in a form that hr_config_set accepts. `text` [bytes] out. */
HR_MUST_CHECK hr_status hr_config_get(const hr_config *config, const char *key, char *text,
                                      int64_t bytes, hr_error *err);

/* The value of a key by its type. The key must be in the table (hr_config_key).
 *   integer  integers and bytes; of a choice its index, of a bool 0 or 1
 *   real     reals
 *   text     texts; it points into `config` */
int64_t hr_config_integer(const hr_config *config, const char *key);
double hr_config_real(const hr_config *config, const char *key);
const char *hr_config_text(const hr_config *config, const char *key);

/* Whether hr_config_read was the last to set this key, and whether the old name of row `index` of
 * the table of old names was used. */
bool hr_config_from_recipe(const hr_config *config, const char *key);
bool hr_config_used_old_name(const hr_config *config, int32_t index);

/* Reads a recipe and overwrites the keys it sets: YAML, mappings of keys to scalars, at most 1 MiB.
 * A key may be nested or dotted ("optimizer.lr: 1e-3" inside "train").
 * Errors   USAGE  missing or unreadable file, not YAML, unknown or repeated key, wrong type, a list
 *                 for a key that takes none, alias, anchor, tag, second document: names file and
 *                 line. `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_read(hr_config *config, const char *path, hr_error *err);

/* The same for a recipe in memory; errors have `name` in place of the file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_read_text(hr_config *config, const char *text, const char *name,
                                            hr_error *err);

/* If model.from names a folder: takes every key of `model` except dropout and weights from its
 * config.json, and replaces model.weights=auto by its format if weights are frozen, else by
 * compute; otherwise does nothing. Call it after all keys are set and before hr_config_check. If
 * hr_config_set, and not a recipe, set model.from, the folder replaces the recipe's keys of
 * `model`, and data.tokenizer if the folder has a tokenizer.
 * Errors   USAGE    no such file; an explicit key contradicts the folder
 *          CORRUPT  not JSON; an unknown architecture, option or value, named.
 * `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_adopt(hr_config *config, hr_error *err);

/* If the data are rows of tokens: takes train.seq_len from the file, and train.batch from
 * data.fixed_batch. Synthetic ids have no text: data.tokenizer becomes bytes, and
 * train.sample_tokens 0. Call it after all keys are set and before hr_config_check. Without such
 * data it only checks the syntax of the text keys (docs/corpora.md).
 * Errors   USAGE    no such file; an explicit key contradicts the file; invalid text syntax
 *          CORRUPT  not safetensors, or without input_ids and labels [rows, tokens].
 * `config` is then untouched. */
HR_MUST_CHECK hr_status hr_config_adopt_data(hr_config *config, hr_error *err);

/* Checks conditions between keys: heads that do not divide the width, products that overflow, a
 * vocabulary too small for its tokenizer. The sentence has both numbers. It does not compare the
 * text with the window.
 * Errors   USAGE. */
HR_MUST_CHECK hr_status hr_config_check(const hr_config *config, hr_error *err);

/* The part of hr_config_check that depends only on the keys of `model`. Errors USAGE. */
HR_MUST_CHECK hr_status hr_config_check_model(const hr_config *config, hr_error *err);

/* Parses "700MiB", "733MB", "1.5GiB" or plain bytes; drops fractions of a byte. Errors USAGE. */
HR_MUST_CHECK hr_status hr_bytes_parse(const char *text, int64_t *bytes, hr_error *err);

/* Number formats for people. JSON, CSV and values that are parsed again have no thousands
 * separators. Each function returns `text`. */
enum { HR_COUNT_BYTES = 40 };

/* "734,003,200". */
const char *hr_count_print(int64_t count, char text[HR_COUNT_BYTES]);

/* "700.0 MiB": KiB, MiB from 1 MiB on, GiB from 10 GiB on. */
const char *hr_size_print(int64_t bytes, char text[HR_COUNT_BYTES]);

/* "734,003,200 bytes (700.0 MiB)" into text [64]. */
const char *hr_bytes_print(int64_t bytes, char text[64]);

/* "785.2 ms", "3.091 s", "12 min 34 s" from two minutes on, "3 h 20 min" from an hour on, "18 days
 * 12 h" from two days on; "?" for a negative number, NaN or Inf. */
const char *hr_duration_print(double seconds, char text[HR_COUNT_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
