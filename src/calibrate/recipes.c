/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/recipes.c - the two tables. The recipes of the check were drawn at random once;
 * families that were added later replaced some of them. */
#include "calibrate/recipes.h"

#include <stddef.h>
#include <stdio.h>

#include "config/config.h"

enum {
    NEEDLE = HR_FAMILY_NEEDLE,
    NEOX = HR_FAMILY_GPT_NEOX,
    LLAMA = HR_FAMILY_LLAMA,
    GPT2 = HR_FAMILY_GPT2,
    MISTRAL = HR_FAMILY_MISTRAL,
    WIDE = HR_FAMILY_WIDE,
    BF16 = HR_FORMAT_BF16,
    FP32 = HR_FORMAT_FP32,
    ADAMW = HR_OPTIMIZER_ADAMW,
    SGD = HR_OPTIMIZER_SGD,
    LION = HR_OPTIMIZER_LION,
    ADAFACTOR = HR_OPTIMIZER_ADAFACTOR,
    MUON = HR_OPTIMIZER_MUON,
    KEEP = HR_RECOMPUTE_NONE,
    RECOMPUTE = HR_RECOMPUTE_LAYERS,
    HALF = HR_WEIGHTS_F16,
    E4M3 = HR_WEIGHTS_F8_E4M3
};

/* Each recipe takes tens of milliseconds per step on two cores with AMX, and less than 400 MiB. The
 * rows of a micro-batch vary from 64 to 4,096 independently of the widths: otherwise a pass over a
 * weight could not be separated from its product. Some widths and vocabularies end inside a tile.
 *
 * The first eighteen run every operation in both dtypes. If time runs short, recipes at the end are
 * skipped. */
static const hr_recipe calibration[] = {
    { NEOX, BF16, ADAMW, KEEP, 64, 2, 4, 256, 1000, 64, 64, 32, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 128, 2, 2, 384, 8192, 128, 16, 8, 0.1, 0 },
    { LLAMA, BF16, ADAMW, KEEP, 192, 2, 6, 512, 1000, 128, 16, 8, 0, 2, 0, HALF },
    { NEOX, FP32, ADAMW, KEEP, 64, 2, 4, 256, 1000, 64, 32, 16, 0, 0 },
    { NEEDLE, FP32, ADAMW, KEEP, 128, 2, 2, 384, 8192, 128, 4, 2, 0.1, 0 },
    { LLAMA, FP32, ADAMW, KEEP, 192, 2, 6, 512, 4096, 128, 4, 2, 0, 2, 0, HALF },
    { LLAMA, BF16, ADAMW, KEEP, 128, 1, 4, 704, 512, 64, 1, 1, 0, 4, 0, E4M3 },
    { LLAMA, FP32, ADAMW, KEEP, 256, 1, 4, 704, 1000, 64, 1, 1, 0, 1, 0, E4M3 },
    { NEOX, BF16, ADAMW, RECOMPUTE, 128, 2, 4, 512, 512, 256, 16, 16, 0, 0 },
    { NEOX, FP32, ADAMW, RECOMPUTE, 256, 2, 4, 1024, 4096, 256, 1, 1, 0, 0 },
    { NEEDLE, BF16, SGD, KEEP, 320, 1, 10, 880, 16384, 100, 3, 3, 0, 0 },
    { NEEDLE, FP32, SGD, KEEP, 320, 1, 10, 640, 4096, 100, 6, 6, 0, 0 },
    { GPT2, BF16, ADAFACTOR, KEEP, 192, 2, 6, 768, 4096, 128, 8, 4, 0, 0 },
    { GPT2, FP32, ADAFACTOR, KEEP, 128, 2, 4, 512, 2000, 128, 4, 4, 0, 0 },
    { LLAMA, BF16, MUON, KEEP, 256, 2, 4, 704, 1000, 64, 4, 4, 0, 4 },
    { LLAMA, FP32, MUON, KEEP, 192, 1, 3, 512, 1000, 64, 4, 4, 0, 3 },
    { WIDE, BF16, LION, KEEP, 256, 2, 0, 2048, 1000, 128, 8, 4, 0, 0 },
    { WIDE, FP32, LION, KEEP, 128, 2, 0, 1024, 1000, 256, 4, 2, 0, 0 },
    { MISTRAL, BF16, ADAMW, KEEP, 256, 1, 4, 704, 2000, 1024, 2, 2, 0, 2, 192 },
    { NEOX, BF16, ADAMW, RECOMPUTE, 256, 2, 4, 1024, 4096, 256, 2, 2, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 512, 1, 8, 1536, 32000, 128, 6, 3, 0, 0 },
    { NEEDLE, BF16, ADAMW, RECOMPUTE, 512, 1, 8, 2048, 10000, 512, 2, 2, 0.1, 0 },
    { LLAMA, BF16, ADAMW, RECOMPUTE, 768, 1, 12, 2048, 2000, 256, 1, 1, 0, 4 },
    { NEEDLE, BF16, ADAMW, KEEP, 192, 2, 3, 768, 50304, 64, 4, 4, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 768, 1, 24, 1536, 512, 64, 4, 2, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 1024, 1, 16, 4096, 1000, 64, 1, 1, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 1024, 1, 8, 2048, 512, 256, 8, 8, 0, 0 },
    { NEOX, BF16, LION, KEEP, 832, 1, 13, 1664, 10000, 128, 1, 1, 0, 0 },
    { NEOX, BF16, SGD, KEEP, 768, 1, 12, 3072, 2048, 1024, 1, 1, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 384, 1, 24, 1152, 512, 512, 8, 8, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 256, 1, 8, 400, 2000, 1024, 3, 3, 0.1, 0 },
    { NEOX, FP32, LION, KEEP, 192, 1, 12, 880, 16384, 64, 4, 4, 0, 0 },
    { NEEDLE, FP32, ADAMW, RECOMPUTE, 512, 1, 8, 1024, 2000, 512, 1, 1, 0.1, 0 },
    { NEOX, FP32, SGD, KEEP, 768, 1, 12, 1536, 512, 64, 2, 2, 0, 0 },
    { NEEDLE, FP32, ADAMW, KEEP, 128, 1, 4, 400, 512, 256, 16, 16, 0, 0 },
};

/* A step of some milliseconds with the three classes of operations: products, updates, others. It
 * has fewer rows without a matrix unit. */
static const hr_recipe speed_probe[] = {
    { NEEDLE, BF16, SGD, KEEP, 512, 1, 8, 1536, 1000, 128, 1, 1, 0, 0 },
    { NEEDLE, BF16, SGD, KEEP, 512, 1, 8, 1536, 1000, 128, 4, 4, 0, 0 },
};

/* Rows with an odd index have widths, vocabularies and sequence lengths that are not in the table
 * above. */
static const hr_recipe check[] = {
    { NEOX, BF16, ADAMW, KEEP, 256, 1, 4, 512, 1000, 512, 8, 4, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 288, 1, 9, 768, 12000, 192, 5, 5, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 768, 4, 24, 1536, 16384, 64, 16, 16, 0.1, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 448, 1, 7, 1568, 12000, 384, 10, 5, 0, 0 },
    { GPT2, BF16, ADAMW, RECOMPUTE, 256, 2, 4, 1024, 32000, 512, 1, 1, 0, 0 },
    { NEOX, BF16, ADAMW, RECOMPUTE, 96, 2, 3, 256, 20000, 320, 12, 3, 0, 0 },
    { LLAMA, BF16, ADAMW, KEEP, 256, 3, 8, 768, 16384, 512, 2, 2, 0, 4 },
    { NEOX, FP32, ADAMW, KEEP, 96, 6, 6, 240, 20000, 320, 3, 3, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 320, 2, 20, 640, 512, 256, 16, 4, 0, 0 },
    { LLAMA, BF16, ADAMW, KEEP, 576, 6, 9, 1536, 3000, 320, 3, 3, 0, 3 },
    { NEOX, BF16, ADAMW, RECOMPUTE, 512, 3, 8, 2048, 16384, 256, 8, 8, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 448, 4, 7, 1184, 12000, 192, 4, 2, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 256, 1, 8, 512, 32000, 1024, 4, 4, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 224, 3, 14, 560, 40000, 192, 2, 2, 0, 0 },
    { NEOX, BF16, ADAMW, RECOMPUTE, 128, 6, 8, 256, 32000, 64, 32, 16, 0, 0 },
    { WIDE, BF16, ADAMW, RECOMPUTE, 224, 1, 0, 1760, 3000, 96, 10, 5, 0, 0 },
    { WIDE, BF16, ADAMW, KEEP, 128, 6, 0, 2048, 1000, 64, 64, 64, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 576, 1, 9, 1536, 6000, 384, 5, 5, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 1024, 1, 64, 2048, 32000, 256, 2, 2, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 224, 2, 7, 784, 3000, 48, 85, 85, 0, 0 },
    { LLAMA, FP32, ADAMW, RECOMPUTE, 320, 2, 10, 880, 1000, 100, 8, 4, 0, 5 },
    { NEOX, BF16, ADAMW, KEEP, 448, 2, 28, 1184, 3000, 192, 4, 2, 0, 0 },
    { NEOX, FP32, ADAMW, RECOMPUTE, 320, 1, 5, 640, 1000, 64, 16, 16, 0, 0 },
    { NEEDLE, BF16, ADAMW, RECOMPUTE, 288, 6, 18, 1008, 20000, 384, 5, 5, 0, 0 },
    { NEEDLE, BF16, ADAMW, RECOMPUTE, 384, 1, 24, 1152, 32000, 128, 16, 4, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 640, 1, 20, 1696, 3000, 96, 40, 10, 0, 0 },
    { NEEDLE, BF16, ADAMW, RECOMPUTE, 128, 2, 8, 512, 16384, 64, 16, 16, 0.1, 0 },
    { GPT2, BF16, ADAMW, KEEP, 288, 4, 9, 720, 6000, 48, 42, 21, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 768, 1, 24, 3072, 4096, 128, 16, 4, 0, 0 },
    { LLAMA, BF16, ADAMW, RECOMPUTE, 448, 3, 14, 1216, 6000, 96, 10, 5, 0, 2 },
    { NEEDLE, BF16, ADAMW, KEEP, 320, 1, 10, 960, 512, 128, 32, 32, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 896, 1, 14, 3136, 6000, 192, 2, 2, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 192, 6, 3, 384, 1000, 512, 4, 4, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 288, 1, 18, 720, 12000, 160, 24, 6, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 192, 1, 6, 576, 32000, 512, 8, 8, 0.1, 0 },
    { MISTRAL, BF16, ADAMW, KEEP, 160, 3, 10, 416, 12000, 640, 1, 1, 0, 5, 96 },
    { NEEDLE, BF16, ADAMW, KEEP, 384, 2, 6, 1536, 4096, 512, 4, 4, 0, 0 },
    { GPT2, FP32, ADAMW, KEEP, 224, 3, 14, 560, 6000, 160, 12, 3, 0, 0 },
    { NEEDLE, BF16, ADAMW, KEEP, 128, 2, 8, 256, 4096, 256, 16, 4, 0, 0 },
    { NEOX, BF16, ADAMW, KEEP, 576, 4, 9, 1440, 12000, 48, 40, 10, 0, 0 },
};

const hr_recipe *hr_recipe_of_calibration(int32_t index)
{
    return index >= 0 && (size_t)index < sizeof calibration / sizeof *calibration
               ? &calibration[index]
               : NULL;
}

const hr_recipe *hr_recipe_of_speed_probe(bool matrix_unit)
{
    return &speed_probe[matrix_unit];
}

const hr_recipe *hr_recipe_of_check(int32_t index, bool *unseen)
{
    if (index < 0 || (size_t)index >= sizeof check / sizeof *check) return NULL;
    *unseen = index % 2 == 1;
    return &check[index];
}

void hr_recipe_config(const hr_recipe *recipe, hr_config *config)
{
    hr_config_default(config);
    config->model.family = recipe->family;
    config->model.d_model = recipe->d_model;
    config->model.n_layers = recipe->n_layers;
    if (recipe->n_heads) config->model.n_heads = recipe->n_heads;
    config->model.n_kv_heads = recipe->n_kv_heads;
    if (recipe->family == WIDE) config->model.expansion = recipe->d_ff;
    else config->model.d_ff = recipe->d_ff;
    config->model.attention.sliding_window = recipe->sliding_window;
    config->model.vocab_size = recipe->vocab_size;
    config->model.weights = recipe->weights;
    if (recipe->weights) snprintf(config->train.freeze, sizeof config->train.freeze, "*.mlp.*");
    config->model.dropout = recipe->dropout;
    snprintf(config->data.tokenizer, sizeof config->data.tokenizer, "words");
    config->train.dtype = recipe->format;
    config->train.seq_len = recipe->seq_len;
    config->train.batch = recipe->batch;
    config->train.steps = 1000;
    config->train.sample_tokens = 0;
    config->train.optimizer.kind = recipe->optimizer;
    config->memory.micro_batch = recipe->micro_batch;
    config->memory.recompute = recipe->recompute;
}
