/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_check.c - checks that involve several keys of `data`. */
#include <string.h>

#include "config/config_keys.h"

enum {
    BYTE_IDS = 256,
    WORDS_LEAST = 5 /* <pad> <unk> <sos> <eos> and one word */
};

/* Rows are token ids; with them, only text for validation is tokenized. */
static hr_status check_vocabulary(const hr_config *config, hr_error *err)
{
    const hr_config_data data = hr_config_data_of(config);
    const bool rows_alone = *data.train_rows && !*data.valid_text;
    const hr_tokenizer_kind kind = hr_config_tokenizer(config);
    const bool words = kind == HR_TOKENIZER_WORDS;
    const int64_t V = config->model.vocab_size, least = words ? WORDS_LEAST : BYTE_IDS;
    const bool has_ids = hr_config_has_ids(config), synthetic = hr_config_is_synthetic(config);
    if ((rows_alone || (has_ids && !synthetic)) && config->train.sample_tokens)
        return hr_fail(err, HR_USAGE,
                       "train.sample_tokens is %lld, but the tokenizer of the ids in %.200s is not "
                       "known: use train.sample_tokens=none",
                       (long long)config->train.sample_tokens,
                       rows_alone ? data.train_rows : data.train_text);
    if (*data.train_rows && *data.valid_text && words)
        return hr_fail(err, HR_USAGE,
                       "data.tokenizer words needs training text, but %.200s has token ids; give "
                       "data.valid as a safetensors file too",
                       data.train_rows);
    if (!config->data.tokenizer[0])
        return hr_fail(err, HR_USAGE, "data.tokenizer is empty; use bytes, words or a path");
    if (V >= least || rows_alone || has_ids || kind == HR_TOKENIZER_FILE)
        return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "model.vocab_size is %lld; data.tokenizer %s needs %lld at least%s",
                   (long long)V, words ? "words" : "bytes", (long long)least,
                   words ? ": <pad>, <unk>, <sos>, <eos> and one word" : "");
}

static hr_status check_documents(const hr_config *config, hr_error *err)
{
    const struct {
        const char *key, *name;
    } fields[] = { { "data.text_field", config->data.text_field },
                   { "data.prompt_field", config->data.prompt_field },
                   { "data.completion_field", config->data.completion_field } };
    const int32_t count = sizeof fields / sizeof *fields;
    int64_t id = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t other = (i + 1) % count;
        if (!fields[i].name[0])
            return hr_fail(err, HR_USAGE, "%s is empty; it needs a field name", fields[i].key);
        if (!strcmp(fields[i].name, fields[other].name))
            return hr_fail(err, HR_USAGE, "%s and %s are both %s; they must differ", fields[i].key,
                           fields[other].key, fields[i].name);
    }
    if (!hr_config_document_end(config, &id))
        return hr_fail(err, HR_USAGE,
                       "data.document_end takes a token id, auto or none; got \"%s\"",
                       config->data.document_end);
    if (id < config->model.vocab_size) return HR_OK;
    return hr_fail(err, HR_USAGE, "data.document_end %lld must be below model.vocab_size %lld",
                   (long long)id, (long long)config->model.vocab_size);
}

/* Keys that do nothing without an evaluation. */
static hr_status check_evaluation(const hr_config *config, hr_error *err)
{
    const char *key = config->train.patience    ? "train.patience"
                      : config->train.keep_best ? "train.keep_best"
                                                : NULL;
    if (!key || config->data.valid[0]) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s needs evaluations: give data.valid, such as data.valid=5%%",
                   key);
}

hr_status hr_config_check_data(const hr_config *config, hr_error *err)
{
    hr_status status = check_evaluation(config, err);
    if (status == HR_OK) status = check_vocabulary(config, err);
    return status == HR_OK ? check_documents(config, err) : status;
}
