/* SPDX-License-Identifier: Apache-2.0 */
/* config/config.c - converts one key at a time between text and hr_config, using its table row. */
#define _GNU_SOURCE
#include "config/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/number.h"
#include "base/utf8.h"
#include "config/config_keys.h"
#include "config/config_value.h"

_Static_assert(HR_CONFIG_ROWS_MAX <= 64 * HR_CONFIG_GIVEN_WORDS, "a bit for every key");

static void choice_word(const char *choices, int32_t index, char *text, int64_t bytes)
{
    const char *at = choices;
    for (; index > 0; index--) at = strchr(at, ' ') + 1;
    snprintf(text, (size_t)bytes, "%.*s", (int)strcspn(at, " "), at);
}

/* The first byte that is not of a printable character of YAML, or of one that ends a line; or null.
 * Paths are printed in recipes, which are read again, and in reports, one per line. */
static const char *unprintable(const char *text)
{
    uint32_t point;
    for (int64_t left = (int64_t)strlen(text), taken; left > 0; text += taken, left -= taken) {
        taken = hr_utf8_take((const uint8_t *)text, left, &point);
        const bool broken = taken == 1 && (*text & 0x80);
        if (broken || point < ' ' || (point >= 0x7f && point < 0xa0) || point >> 1 == 0x2028 >> 1 ||
            point >> 1 == 0xfffe >> 1 || point == 0xfeff)
            return text;
    }
    return NULL;
}

static hr_status fail_value(const hr_config_row *row, const char *key, const char *value,
                            hr_error *err)
{
    char takes[HR_TAKES_BYTES], quoted[48];
    hr_key_takes(&row->key, takes);
    hr_config_quote(value, quoted);
    if (row->key.type == HR_KEY_TEXT && !row->key.choices)
        return hr_fail(err, HR_USAGE,
                       "%s takes a string of at most %d bytes without control characters; got %s",
                       key, row->bytes - 1, quoted);
    if (row->key.type == HR_KEY_BYTES)
        return hr_fail(err, HR_USAGE, "%s takes a %s; got %s", key, takes, quoted);
    char advice[HR_ADVICE_BYTES];
    hr_config_advise_value(row, value, advice);
    const bool word = row->key.choices || row->key.type == HR_KEY_BOOL;
    return hr_fail(err, HR_USAGE, "%s takes %s%s; got %s%s%s", key,
                   word                              ? ""
                   : row->key.type == HR_KEY_INTEGER ? "an "
                                                     : "a ",
                   takes, quoted,
                   hr_config_is_share(row, value) ? ", a share: multiply it by train.steps" : "",
                   advice);
}

hr_status hr_config_set(hr_config *config, const char *key, const char *value, hr_error *err)
{
    const int32_t index = hr_config_row_find(key);
    if (index < 0) return hr_config_fail_unknown(key, value, err);
    const hr_config_row *row = &hr_config_rows()[index];
    hr_config_member parsed = { .text = { 0 } };
    const char *wrong = row->key.type == HR_KEY_TEXT ? unprintable(value) : NULL;
    if (wrong) {
        char quoted[48];
        const bool control = (unsigned char)*wrong < 0x80;
        return hr_fail(err, HR_USAGE, "%s takes %s, and byte %lld of %s is %s%s", key,
                       control ? "no control characters" : "printable UTF-8",
                       (long long)(wrong - value), hr_config_quote(value, quoted),
                       control ? "one" : "not", *wrong == '\n' ? ", the end of a line" : "");
    }
    if (!hr_config_member_read(row, value, &parsed)) {
        return fail_value(row, key, value, err);
    }
    memcpy((char *)config + row->offset, &parsed, (size_t)row->bytes);
    config->given[index / 64] |= UINT64_C(1) << index % 64;
    config->from_recipe[index / 64] &= ~(UINT64_C(1) << index % 64);
    const int32_t old = hr_config_renamed_find(key);
    if (old >= 0) config->old_names |= UINT64_C(1) << old;
    return HR_OK;
}

hr_status hr_config_set_word(hr_config *config, const char *word, hr_error *err)
{
    char key[128];
    const char *equals = strchr(word, '=');
    if (!equals)
        return hr_fail(err, HR_USAGE, "\"%.60s\" is not key=value; a command takes one recipe",
                       word);
    snprintf(key, sizeof key, "%.*s", (int)(equals - word), word);
    return hr_config_set(config, key, equals + 1, err);
}

void hr_config_copy_changes(hr_config *config, const hr_config *before, const hr_config *after)
{
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const int32_t at = hr_config_rows()[i].offset;
        const size_t bytes = (size_t)hr_config_rows()[i].bytes;
        if (memcmp((const char *)before + at, (const char *)after + at, bytes) != 0)
            memcpy((char *)config + at, (const char *)after + at, bytes);
    }
}

hr_status hr_config_get(const hr_config *config, const char *key, char *text, int64_t bytes,
                        hr_error *err)
{
    const int32_t index = hr_config_row_find(key);
    if (index < 0) return hr_config_fail_unknown(key, NULL, err);
    const hr_config_row *row = &hr_config_rows()[index];
    const void *value = (const char *)config + row->offset;
    char written[64]; /* a number or a word */
    const char *shown = written, *zero = row->key.zero_word;
    switch (row->key.type) {
    case HR_KEY_INTEGER:
    case HR_KEY_BYTES:
        if (zero && *(const int64_t *)value == 0) shown = zero;
        else snprintf(written, sizeof written, "%lld", (long long)*(const int64_t *)value);
        break;
    case HR_KEY_REAL:
        if (zero && *(const double *)value == 0) shown = zero;
        else hr_real_print(*(const double *)value, written);
        break;
    case HR_KEY_BOOL: shown = *(const bool *)value ? "true" : "false"; break;
    case HR_KEY_CHOICE:
        choice_word(row->key.choices, *(const int32_t *)value, written, (int64_t)sizeof written);
        break;
    case HR_KEY_TEXT: shown = value; break;
    }
    const int64_t needed = (int64_t)strlen(shown) + 1;
    if (needed > bytes)
        return hr_fail(err, HR_USAGE, "%s: its value needs %lld bytes, there are %lld", key,
                       (long long)needed, (long long)bytes);
    memcpy(text, shown, (size_t)needed);
    return HR_OK;
}

bool hr_config_is_given(const hr_config *config, const char *key)
{
    const int32_t row = hr_config_row_find(key);
    return config->given[row / 64] >> row % 64 & 1;
}

bool hr_config_is_given_beside(const hr_config *config, const char *other, const char *key)
{
    const int32_t row = hr_config_row_find(key), beside = hr_config_row_find(other);
    const bool named_outside = !(config->from_recipe[beside / 64] >> beside % 64 & 1);
    const bool from_recipe = config->from_recipe[row / 64] >> row % 64 & 1;
    return hr_config_is_given(config, key) && !(named_outside && from_recipe);
}

bool hr_config_is_changed(const hr_config *config, const char *key)
{
    const hr_config_row *row = &hr_config_rows()[hr_config_row_find(key)];
    hr_config_member value = { .text = { 0 } };
    const bool read = hr_config_member_read(row, row->key.default_text, &value);
    HR_ASSERT(read);
    return memcmp((const char *)config + row->offset, &value, (size_t)row->bytes) != 0;
}

int64_t hr_config_head_dim(const hr_config *config)
{
    const int64_t given = config->model.head_dim;
    return given ? given : config->model.d_model / config->model.n_heads;
}

int64_t hr_config_attention_stride(const hr_config *config)
{
    const int64_t given = config->model.attention.stride;
    if (given) return given;
    return config->model.attention.pattern == HR_ATTENTION_MIXED ? 4 : 2;
}

int64_t hr_config_kv_heads(const hr_config *config)
{
    return config->model.n_kv_heads ? config->model.n_kv_heads : config->model.n_heads;
}

static bool is_rows(const char *path)
{
    static const char suffix[] = ".safetensors";
    const size_t bytes = strlen(path), suffix_bytes = sizeof suffix - 1;
    return bytes >= suffix_bytes && !strcmp(path + bytes - suffix_bytes, suffix);
}

hr_config_data hr_config_data_of(const hr_config *config)
{
    const char *train = config->data.train, *valid = config->data.valid;
    hr_config_data data = { "", "", "", "" };
    if (config->data.fixed_batch[0]) data.train_rows = config->data.fixed_batch;
    else *(is_rows(train) ? &data.train_rows : &data.train_text) = train;
    *(is_rows(valid) ? &data.valid_rows : &data.valid_text) = valid;
    return data;
}

/* Whether a part of a text [bytes] begins with a word. */
static bool begins(const char *part, size_t bytes, const char *word)
{
    const size_t length = strlen(word);
    return bytes >= length && !memcmp(part, word, length) &&
           (bytes == length || part[length] == ' ');
}

bool hr_config_is_synthetic(const hr_config *config)
{
    const char *text = config->data.train + strspn(config->data.train, " ");
    return !config->data.fixed_batch[0] && begins(text, strcspn(text, ";"), "synthetic");
}

static bool ends(const char *name, size_t *bytes, const char *ending)
{
    const size_t length = strlen(ending);
    if (*bytes <= length || strncasecmp(name + *bytes - length, ending, length) != 0) return false;
    *bytes -= length;
    return true;
}

/* Whether a part of a text [bytes] has token ids: synthetic, of a declared type, or in a file whose
 * name says so. */
static bool has_ids(const char *part, size_t bytes)
{
    while (bytes && *part == ' ') part++, bytes--;
    if (begins(part, bytes, "synthetic") || memmem(part, bytes, " ids=", 5)) return true;
    const char *weight = memmem(part, bytes, " weight=", 8);
    if (weight) bytes = (size_t)(weight - part);
    while (bytes && part[bytes - 1] == ' ') bytes--;
    (void)(ends(part, &bytes, ".gz") || ends(part, &bytes, ".zst"));
    return ends(part, &bytes, ".bin");
}

bool hr_config_has_ids(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    const char *const texts[] = { data.train_text, data.valid_text };
    if (!*data.train_text) return false;
    for (int i = 0; i < 2; i++)
        for (const char *part = texts[i]; *part;) {
            const size_t bytes = strcspn(part, ";");
            if (bytes && !has_ids(part, bytes) && part[bytes - 1] != '%') return false;
            part += bytes + (part[bytes] == ';');
        }
    return true;
}

bool hr_config_document_end(const hr_config *config, int64_t *id)
{
    const char *text = config->data.document_end;
    int64_t value = HR_DOCUMENT_END_AUTO;
    if (!strcmp(text, "none")) value = HR_DOCUMENT_END_NONE;
    else if (strcmp(text, "auto") != 0 && (!hr_integer_parse(text, &value) || value < 0))
        return false;
    *id = value;
    return true;
}

hr_tokenizer_kind hr_config_tokenizer(const hr_config *config)
{
    if (!strcmp(config->data.tokenizer, "bytes")) return HR_TOKENIZER_BYTES;
    return strcmp(config->data.tokenizer, "words") ? HR_TOKENIZER_FILE : HR_TOKENIZER_WORDS;
}

int64_t hr_config_embedding_rank(const hr_config *config)
{
    const int64_t given = config->model.embedding_rank;
    return given ? given : hr_max(config->model.d_model / 4, 1);
}

const char *hr_config_file_holds(const hr_config *config)
{
    if (config->memory.spill == HR_SPILL_NO) return "moments";
    return config->memory.moments == HR_PLACE_FILE ? "moments and layer inputs" : "layer inputs";
}

bool hr_config_freezes(const hr_config *config)
{
    return config->train.freeze[0] || config->train.adapter.kind != HR_ADAPTER_NONE;
}

bool hr_config_chooses_states(const hr_config *config)
{
    return config->train.state.master == HR_MASTERS_AUTO ||
           config->train.state.moments == HR_MOMENTS_AUTO;
}

hr_weights_choice hr_config_weights(const hr_config *config)
{
    const int32_t choice = config->model.weights;
    const bool same = choice == HR_WEIGHTS_BF16 && config->train.dtype == HR_FORMAT_BF16;
    return choice == HR_WEIGHTS_AUTO || same ? HR_WEIGHTS_COMPUTE : (hr_weights_choice)choice;
}

int64_t hr_config_expansion(const hr_config *config)
{
    const int64_t given = config->model.expansion;
    return given ? given : 4 * config->model.d_model;
}

void hr_config_default(hr_config *config)
{
    memset(config, 0, sizeof *config);
    config->train.adapter.factor = 1;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const hr_key *key = &hr_config_rows()[i].key;
        HR_ASSERT(hr_config_set(config, key->name, key->default_text, NULL) == HR_OK);
    }
    memset(config->given, 0, sizeof config->given);
    memset(config->from_recipe, 0, sizeof config->from_recipe);
}
