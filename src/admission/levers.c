/* SPDX-License-Identifier: Apache-2.0 */
/* admission/levers.c - the table of levers, and the values of their keys. */
#include "admission/levers.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/writer.h"
#include "model/family.h"
#include "model/optimizer.h"

/* ---- when a lever applies */

static bool freezes_nothing(const hr_config *config)
{
    return !hr_config_freezes(config);
}

/* Adapters of random weights would be of no use. */
static bool tunes_a_model(const hr_config *config)
{
    return config->model.from[0] && freezes_nothing(config);
}

static bool adapts(const hr_config *config)
{
    return config->train.adapter.kind != HR_ADAPTER_NONE;
}

/* Whether frozen weights would stay as a folder in bf16 has them. */
static bool keeps_bf16(const hr_config *config)
{
    return hr_config_freezes(config) && hr_config_weights(config) == HR_WEIGHTS_COMPUTE &&
           config->train.dtype != HR_FORMAT_BF16 && config->stored_weights == HR_WEIGHTS_BF16;
}

static bool stores_frozen(const hr_config *config)
{
    return hr_config_freezes(config) && hr_config_weights(config) == HR_WEIGHTS_COMPUTE;
}

static bool has_full_head(const hr_config *config)
{
    return !hr_family_ties(config);
}

static bool counts_words(const hr_config *config)
{
    return config->data.train[0] && hr_config_tokenizer(config) == HR_TOKENIZER_WORDS;
}

/* The vocabulary of a tokenizer file is the file's. */
static bool has_no_tokenizer_file(const hr_config *config)
{
    return hr_config_tokenizer(config) != HR_TOKENIZER_FILE;
}

static bool averages(const hr_config *config)
{
    return config->train.ema_decay > 0;
}

static bool sees_everything(const hr_config *config)
{
    return !config->model.attention.pattern && !config->model.attention.sliding_window;
}

static bool has_no_pattern(const hr_config *config)
{
    return !config->model.attention.pattern;
}

/* ---- where halving starts */

static int64_t window_of(const hr_config *config)
{
    const int64_t window = config->model.attention.sliding_window;
    return window ? window : config->train.seq_len;
}

/* Of a full decoder [X, V]: the power of 2 from which on a half is smaller than the matrix, which
 * ranks below X V / (X + V) are. */
static int64_t decoder_rank_of(const hr_config *config)
{
    const double X = (double)hr_config_expansion(config), V = (double)config->model.vocab_size;
    int64_t rank = 2;
    if (config->model.decoder_rank) return config->model.decoder_rank;
    while ((double)rank < X * V / (X + V)) rank *= 2;
    return rank;
}

/* ---- freezing
 *
 * Step k leaves the upper 1 / 2^k of the layers to train, at least one. The parameters before the
 * layers are frozen too, so that the backward pass ends at the lowest trained layer. */

enum { FROZEN_MOST = 100 }; /* layers, numbered with up to two digits */

/* Patterns for layers 0 to count - 1: "P[0-6].*", or "P?.*,P[1-2]?.*,P3[0-6].*". */
static void put_layers(hr_writer *writer, const char *prefix, int64_t count)
{
    const int64_t tens = count / 10, ones = count % 10;
    const char *between = "";
    if (tens > 0) {
        hr_put(writer, "%s?.*", prefix);
        between = ",";
    }
    if (tens > 1)
        hr_put(writer, tens > 2 ? "%s%s[1-%lld]?.*" : "%s%s%lld?.*", between, prefix,
               (long long)tens - 1);
    if (ones == 0) return;
    hr_put(writer, "%s%s", between, prefix);
    if (tens > 0) hr_put(writer, "%lld", (long long)tens);
    hr_put(writer, ones > 1 ? "[0-%lld].*" : "%lld.*", (long long)ones - 1);
}

static double write_freeze(const hr_config *config, const hr_lever_names *names, int32_t step,
                           char value[HR_LEVER_VALUE_BYTES])
{
    hr_writer writer = { value, HR_LEVER_VALUE_BYTES };
    const int64_t layers = config->model.n_layers;
    if (!*names->before || !*names->layers || step > 12 || layers < 2) return 0;
    const int64_t trained = (layers + (INT64_C(1) << step) - 1) >> step;
    if (INT64_C(1) << (step - 1) >= layers || layers - trained > FROZEN_MOST) return 0;
    hr_put(&writer, "%s,", names->before);
    put_layers(&writer, names->layers, layers - trained);
    return writer.cut ? 0 : (double)trained / (double)layers;
}

/* ---- adapters of fewer modules */

/* Step k leaves adapters in the upper 1 / 2^k of the layers, at least one. */
static double write_adapted(const hr_config *config, const hr_lever_names *names, int32_t step,
                            char value[HR_LEVER_VALUE_BYTES])
{
    const int64_t layers = config->model.n_layers;
    (void)names;
    if (*config->train.adapter.layers || step > 12 || INT64_C(1) << (step - 1) >= layers) return 0;
    const int64_t left = (layers + (INT64_C(1) << step) - 1) >> step;
    snprintf(value, HR_LEVER_VALUE_BYTES, "%lld-%lld", (long long)(layers - left),
             (long long)layers - 1);
    return (double)left / (double)layers;
}

static double write_attention(const hr_config *config, const hr_lever_names *names, int32_t step,
                              char value[HR_LEVER_VALUE_BYTES])
{
    if (*config->train.adapter.targets || !names->attention || step > 1) return 0;
    snprintf(value, HR_LEVER_VALUE_BYTES, "*att*");
    return 1;
}

/* Whether the masters of bf16 weights can be taken away. */
static bool has_masters(const hr_config *config)
{
    return config->train.dtype == HR_FORMAT_BF16 && config->train.state.master != HR_MASTERS_NONE;
}

static bool has_fp32_masters(const hr_config *config)
{
    return has_masters(config) && config->train.state.master == HR_MASTERS_FP32;
}

/* Whether what attention keeps of one sequence can be a large part of the memory. */
static bool has_long_sequences(const hr_config *config)
{
    enum { LONG = 8192 };
    return config->train.seq_len >= LONG;
}

static bool stores_moments(const hr_config *config)
{
    return hr_optimizers[config->train.optimizer.kind].scales &&
           config->train.state.moments == HR_MOMENTS_FP32;
}

/* Whether weights in bf16 and moments as 8-bit codes are a change from fp32. */
static bool is_all_fp32(const hr_config *config)
{
    return config->train.dtype == HR_FORMAT_FP32 && stores_moments(config) && !adapts(config);
}

static bool has_masters_and_moments(const hr_config *config)
{
    return has_masters(config) && stores_moments(config);
}

/* ---- the table */

static const char attention_text[] = "saves time, not memory: scores of all pairs of tokens are "
                                     "never stored";
static const char masters_text[] = "needs no less: adds a bf16 copy to the fp32 weights";

#define SMALLER "smaller model"

static const hr_lever levers[] = {
    { "memory.strategy", HR_LOSS_NOTHING, "", "" },
    { "memory.micro_batch", HR_LOSS_NOTHING, "", "auto" },
    { "memory.loss_chunk", HR_LOSS_NOTHING, "", "auto" },
    { "memory.recompute", HR_LOSS_NOTHING, "", "auto" },
    { "train.threads", HR_LOSS_NOTHING, "", "1" },
    { "train.state.master", HR_LOSS_NOTHING, "16 bits beside a bf16 weight, not 32", "residual16",
      .applies = has_fp32_masters },
    { "memory.moments", HR_LOSS_NOTHING, "optimizer moments in a file", "file" },
    { "memory.spill", HR_LOSS_NOTHING, "inputs of layers in a file until backward", "auto" },
    { "memory.recompute_again", HR_LOSS_NOTHING, "attention recomputed a second time", "true",
      .applies = has_long_sequences },
    { "model.weights", HR_LOSS_NOTHING, "frozen weights stay in bf16, as in their files", "bf16",
      .applies = keeps_bf16 },
    { "memory.weights", HR_LOSS_NOTHING, "frozen weights stay in their files", "file",
      .applies = adapts },
    { "train.sample_tokens", HR_LOSS_NOTHING, "no generated samples", "none" },
    { "data.words_max", HR_LOSS_NOTHING, "texts with more distinct words are refused",
      .least = 65536, .applies = counts_words },
    { "train.dtype", HR_LOSS_ROUNDING, "weights and activations in bf16", "bf16",
      .applies = freezes_nothing, .why_none = masters_text },
    { "train.dtype", HR_LOSS_ROUNDING, "weights and activations in bf16", "bf16",
      .applies = hr_config_freezes },
    { "train.dtype", HR_LOSS_ROUNDING, "activations in fp16, a scaled loss, products in fp32",
      "fp16", .applies = freezes_nothing },
    { "train.dtype", HR_LOSS_ROUNDING, "no bf16 copy of the fp32 weights, slower products",
      "fp32" },
    { "model.weights", HR_LOSS_ROUNDING, "frozen weights in fp8, as headroom convert writes them",
      "f8_e4m3", .applies = stores_frozen },
    { "train.dtype", HR_LOSS_ROUNDING, "bf16 weights with 16 more bits, moments as 8-bit codes",
      "bf16", .with = "train.state.master=residual16 train.state.moments=int8",
      .applies = is_all_fp32 },
    { "train.dtype", HR_LOSS_ROUNDING, "bf16 weights, stochastic rounding, moments as 8-bit codes",
      "bf16", .with = "train.state.master=none train.state.moments=int8", .applies = is_all_fp32 },
    { "train.state.master", HR_LOSS_ROUNDING, "8 bits beside a bf16 weight, not 32", "residual8",
      .applies = has_fp32_masters },
    { "train.state.master", HR_LOSS_ROUNDING, "no master weights, stochastic rounding", "none",
      .applies = has_masters },
    { "train.state.master", HR_LOSS_ROUNDING,
      "no master weights, stochastic rounding, moments as 8-bit codes", "none",
      .with = "train.state.moments=int8", .applies = has_masters_and_moments },
    { "train.state.moments", HR_LOSS_ROUNDING, "optimizer moments as 8-bit codes", "int8" },
    { "train.optimizer.kind", HR_LOSS_UPDATES, "one state per row and column of a weight",
      "adafactor" },
    { "train.optimizer.kind", HR_LOSS_UPDATES, "one state per weight, lower learning rate",
      "lion" },
    { "train.optimizer.kind", HR_LOSS_UPDATES, "another optimizer", "sgd" },
    { "train.ema_decay", HR_LOSS_UPDATES, "no average of the weights", "0", .applies = averages },
    { "train.batch", HR_LOSS_UPDATES, "smaller global batch", .least = 1 },
    { "train.freeze", HR_LOSS_TRAINED, "trains the upper layers only", .applies = freezes_nothing,
      .write = write_freeze },
    { "train.adapter.kind", HR_LOSS_TRAINED, "trains low-rank adapters only", "lora",
      .applies = tunes_a_model },
    { "train.adapter.rank", HR_LOSS_TRAINED, "smaller rank of the adapters", .least = 1,
      .applies = adapts },
    { "train.adapter.targets", HR_LOSS_TRAINED, "adapters of attention only", .applies = adapts,
      .write = write_attention },
    { "train.adapter.layers", HR_LOSS_TRAINED, "adapters of the upper layers only",
      .applies = adapts, .write = write_adapted },
    { "train.seq_len", HR_LOSS_WINDOWS, "shorter sequences", .least = 16 },
    { "model.attention.pattern", HR_LOSS_WINDOWS, "block-sparse attention", "local",
      .without = HR_HAS_STATES, .applies = sees_everything, .why_none = attention_text },
    { "model.attention.sliding_window", HR_LOSS_WINDOWS, "sliding window", .least = 16,
      .traits = HR_SLIDES, .applies = has_no_pattern, .start = window_of,
      .why_none = attention_text },
    { "model.embedding_rank", HR_LOSS_RANK, "smaller rank of the embedding", .least = 8,
      .traits = HR_READS_RANK, .start = hr_config_embedding_rank },
    { "model.decoder_rank", HR_LOSS_RANK, "factorized output head", .least = 16,
      .traits = HR_READS_EXPANSION, .start = decoder_rank_of },
    { "model.vocab_size", HR_LOSS_WORDS, "smaller vocabulary", .least = 256,
      .applies = has_no_tokenizer_file },
    { "model.tie_embeddings", HR_LOSS_MODEL, "the head is the token embedding", "true",
      .traits = HR_MAY_TIE, .applies = has_full_head },
    { "model.expansion", HR_LOSS_MODEL, SMALLER, .least = 16, .traits = HR_READS_EXPANSION,
      .start = hr_config_expansion },
    { "model.n_kv_heads", HR_LOSS_MODEL, "fewer key-value heads", .least = 1,
      .traits = HR_READS_GROUPS, .start = hr_config_kv_heads },
    { "model.n_layers", HR_LOSS_MODEL, SMALLER, .least = 1 },
    { "model.d_ff", HR_LOSS_MODEL, SMALLER, .least = 16, .without = HR_HAS_STATES },
    { "model.d_model", HR_LOSS_MODEL, SMALLER, .least = 16 },
};
enum { LEVERS = sizeof levers / sizeof *levers };
_Static_assert((int)LEVERS <= (int)HR_LEVERS_MOST, "callers keep a note for each lever");

const hr_lever *hr_levers(int32_t *count)
{
    *count = LEVERS;
    return levers;
}

void hr_lever_names_of(const hr_program *program, hr_lever_names *names)
{
    hr_writer writer = { names->before, sizeof names->before };
    *names = (hr_lever_names){ .before = "" };
    for (int32_t p = 0; p < program->param_count; p++) {
        const char *name = program->params[p].external_name;
        const int32_t layer = program->tensors[program->params[p].weight].layer;
        if (layer == HR_NONE && *names->layers) break;
        if (layer == HR_NONE) {
            hr_put(&writer, "%s%s", p ? "," : "", name);
            continue;
        }
        if (layer > 0) break;
        names->attention |= strstr(name, "att") && program->params[p].adapter != HR_NONE;
        const char *number = strstr(name, ".0.");
        if (number && number - name + 2 < (int64_t)sizeof names->layers)
            snprintf(names->layers, sizeof names->layers, "%.*s", (int)(number - name) + 1, name);
    }
    if (writer.cut) names->before[0] = 0;
}

/* ---- values */

enum { STEPS_MOST = 40 }; /* halvings of any key */

/* Writes the value of a step. Returns the share that is left; 0: no such step. */
static __attribute__((noinline)) double value_of(const hr_lever *lever, const hr_config *config,
                                                 const hr_lever_names *names, int32_t step,
                                                 char value[HR_LEVER_VALUE_BYTES])
{
    hr_error ignored;
    char before[HR_PATH_BYTES];
    long long number = 0;
    if (hr_config_get(config, lever->key, before, sizeof before, &ignored) != HR_OK) return 0;
    if (lever->write) return lever->write(config, names, step, value);
    if (lever->value) {
        snprintf(value, HR_LEVER_VALUE_BYTES, "%s", lever->value);
        return step == 1 && strcmp(before, value) ? 1 : 0;
    }
    if (lever->start) number = lever->start(config);
    else if (sscanf(before, "%lld", &number) != 1) return 0;
    const long long smaller = step > 62 ? 0 : number >> step;
    /* The last step goes down to the least value. */
    if (number <= lever->least || (step > 1 && number >> (step - 1) <= lever->least)) return 0;
    const long long left = hr_max(smaller, lever->least);
    snprintf(value, HR_LEVER_VALUE_BYTES, "%lld", left);
    return (double)left / (double)number;
}

static bool applies(const hr_lever *lever, const hr_config *config)
{
    const uint32_t traits = hr_family_of(config)->traits;
    if (config->model.from[0] && !strncmp(lever->key, "model.", 6) &&
        strcmp(lever->key, "model.weights"))
        return false;
    if (hr_config_stage_sets(config, lever->key) && strcmp(lever->key, "train.freeze") != 0)
        return false;
    if (lever->traits && !(traits & lever->traits)) return false;
    return !(traits & lever->without) && (!lever->applies || lever->applies(config));
}

/* Sets what goes with a lever: keys of train.state, which try_value restores. */
static bool set_others(hr_config *config, const char *with)
{
    hr_error ignored;
    char word[64];
    bool set = true;
    for (const char *at = with ? with : ""; *at && set; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        set = hr_config_set_word(config, word, &ignored) == HR_OK;
        at += length;
    }
    return set;
}

/* Sets a key in place, with what goes with it: a config is large, and the stack size is planned.
 * False: the recipe is not valid with the value, and is unchanged. */
static bool try_value(hr_config *config, const hr_lever *lever, const char *value)
{
    hr_error ignored;
    char before[HR_PATH_BYTES];
    uint64_t given[HR_CONFIG_GIVEN_WORDS];
    _Static_assert(sizeof given == sizeof config->given, "which keys are given");
    memcpy(given, config->given, sizeof given);
    if (hr_config_get(config, lever->key, before, sizeof before, &ignored) != HR_OK) return false;
    const int32_t master = config->train.state.master, moments = config->train.state.moments;
    if (hr_config_set(config, lever->key, value, &ignored) == HR_OK &&
        set_others(config, lever->with) && hr_config_check(config, &ignored) == HR_OK)
        return true;
    const bool restored = hr_config_set(config, lever->key, before, &ignored) == HR_OK;
    HR_ASSERT(restored);
    config->train.state.master = master;
    config->train.state.moments = moments;
    memcpy(config->given, given, sizeof given);
    return false;
}

double hr_lever_apply(const hr_lever *lever, const hr_lever_names *names, int32_t step,
                      hr_config *config, char value[HR_LEVER_VALUE_BYTES])
{
    char plain[HR_LEVER_VALUE_BYTES] = "";
    const double left = value_of(lever, config, names, step, plain);
    if (left == 0 || !try_value(config, lever, plain)) return 0;
    hr_writer writer = { value, HR_LEVER_VALUE_BYTES };
    const char *quote = !*plain ? "\"" : strpbrk(plain, "*?[") ? "'" : "";
    hr_put(&writer, "%s%s%s", quote, plain, quote);
    if (lever->with) hr_put(&writer, " %s", lever->with);
    return left;
}

int32_t hr_lever_steps(const hr_lever *lever, const hr_config *config, const hr_lever_names *names)
{
    char value[HR_LEVER_VALUE_BYTES];
    hr_config tried = *config;
    int32_t steps = 0;
    if (!applies(lever, config)) return 0;
    while (steps < STEPS_MOST && hr_lever_apply(lever, names, steps + 1, &tried, value) > 0) {
        tried = *config;
        steps++;
    }
    return steps;
}
