/* SPDX-License-Identifier: Apache-2.0 */
/* run/inputs.c - opens batches of rows or of texts. */
#include "run/inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "data/rows.h"
#include "data/stage_texts.h"
#include "text/cursor.h"

/* Opens a file of rows if the recipe names one, else windows of a text. */
static hr_status open_data(const hr_config *config, const hr_train_options *options,
                           hr_batch_desc *desc, hr_region *region, hr_token_rows *rows,
                           hr_batches **batches, hr_error *err)
{
    hr_status status = HR_OK;
    if (!desc->shard[0]) status = hr_rows_open(rows, config, !desc->training, options, desc, err);
    const int64_t bytes = hr_batches_bytes(desc->mixture.count ? desc->mixture.count : 1);
    void *memory = hr_region_take(region, bytes, 1);
    if (status == HR_OK) status = hr_batches_open(batches, memory, desc, err);
    return status == HR_OK ? hr_batches_check_targets(*batches, desc->name, err) : status;
}

/* The name of the validation text in error messages: a share of data.train has no path. */
static const char *valid_name(const hr_config *config, char text[64])
{
    const char *valid = config->data.valid;
    if (!*valid || valid[strlen(valid) - 1] != '%') return valid;
    snprintf(text, 64, "data.valid=%.40s", valid);
    return text;
}

/* Counts the steps of the recipe. */
static hr_status count_steps(const hr_inputs *inputs, const hr_config *config, int64_t *steps,
                             hr_error *err)
{
    const int64_t an_epoch = hr_batches_view(inputs->train)->batches;
    *steps = config->train.steps;
    if (*steps || hr_checked_mul(config->train.epochs, an_epoch, steps)) return HR_OK;
    return hr_fail(err, HR_USAGE, "train.epochs: %lld epochs of %lld steps are too many",
                   (long long)config->train.epochs, (long long)an_epoch);
}

/* The mixture of each stage. */
static hr_status mix_stages(hr_inputs *inputs, const hr_stage_set *set, const hr_batch_mixture *all,
                            hr_region *region, hr_error *err)
{
    hr_status status = HR_OK;
    inputs->cursors = all->count;
    inputs->mixtures = hr_region_take(region, set->list.count, sizeof *inputs->mixtures);
    if (!inputs->mixtures) return hr_fail(err, HR_FAILURE, "out of memory for the stages");
    for (int32_t i = 0; i < set->list.count && status == HR_OK; i++)
        status = hr_stage_texts_mixture(set->recipe, i, all, &inputs->mixtures[i], err);
    return status;
}

hr_status hr_inputs_open(hr_inputs *inputs, const hr_config *config,
                         const hr_train_options *options, const hr_text *text,
                         const hr_batch_mixture *mixture, const hr_stage_set *set,
                         hr_region *region, int64_t *steps, hr_error *err)
{
    int64_t lengths[HR_STAGES_MAX];
    const hr_stages *stages = set ? &set->list : NULL;
    const hr_config_data data = hr_config_data_of(set ? set->recipe : config);
    for (int32_t i = 0; stages && i < stages->count; i++) lengths[i] = stages->at[i].seq_len;
    char name[64];
    hr_batch_desc desc = { .shard = text->train[0].shard,
                           .mixture = *mixture,
                           .name = *data.train_rows ? data.train_rows : data.train_text,
                           .vocab_size = config->model.vocab_size,
                           .T = config->train.seq_len,
                           .batch = config->train.batch,
                           .separate = config->data.documents == HR_DOCUMENTS_SEPARATE,
                           .training = true,
                           .seed = (uint64_t)config->train.seed,
                           .unit = stages ? hr_passes_unit(lengths, stages->count) : 0,
                           .longest = stages ? stages->longest : 0 };
    hr_status status = stages ? mix_stages(inputs, set, mixture, region, err) : HR_OK;
    if (status != HR_OK) return status;
    status = open_data(config, options, &desc, region, &inputs->train_rows, &inputs->train, err);
    if (status == HR_OK && !stages) status = count_steps(inputs, config, steps, err);
    if (status != HR_OK || !config->data.valid[0]) return status;
    desc = (hr_batch_desc){ .shard = text->valid.shard,
                            .name = valid_name(config, name),
                            .vocab_size = config->model.vocab_size,
                            .T = config->train.seq_len,
                            .separate = config->data.documents == HR_DOCUMENTS_SEPARATE,
                            .batch = config->memory.micro_batch,
                            .longest = desc.longest,
                            .tokens = set ? hr_config_valid_tokens(set->recipe) : 0 };
    return open_data(config, options, &desc, region, &inputs->valid_rows, &inputs->valid, err);
}

hr_status hr_inputs_open_vocabulary(hr_inputs *inputs, const hr_config *config, const hr_text *text,
                                    hr_region *region, hr_error *err)
{
    const hr_tokenizer_kind kind = hr_config_tokenizer(config);
    const int64_t size = config->model.vocab_size;
    if (!text->train[0].shard[0] && !text->valid.shard[0]) return HR_OK;
    return hr_vocabulary_open(&inputs->vocabulary,
                              hr_region_take(region, hr_vocabulary_bytes(kind, size), 1), kind,
                              size, text->vocabulary, err);
}

void hr_inputs_close(hr_inputs *inputs)
{
    hr_batches_close(&inputs->train);
    hr_batches_close(&inputs->valid);
    hr_token_rows_close(&inputs->train_rows);
    hr_token_rows_close(&inputs->valid_rows);
    hr_vocabulary_close(&inputs->vocabulary);
}
