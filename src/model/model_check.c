/* SPDX-License-Identifier: Apache-2.0 */
/* model/model_check.c - checks a recipe as a whole: the keys of its model and its training against
 * the family, the limits of operations and each other.
 *
 * After this check the compiler may multiply and add sizes freely: every product that it computes
 * from these numbers stays below 2^62, with room to add a hundred of them. */
#include "headroom/stages.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "config/config_keys.h"
#include "model/family.h"
#include "model/layer_types.h"
#include "model/nsa.h"
#include "model/optimizer.h"
#include "model/rules.h"
#include "ops/attention/attention.h"
#include "ops/lif/lif.h"

enum { STATE_BYTES = 16 }; /* fp32 weight, gradient and two moments: the maximum per parameter */

/* Elements of a head of that width which RoPE rotates; 0: the family has none. */
static int64_t rotated(const hr_config *config, int64_t width)
{
    const uint32_t traits = hr_family_of(config)->traits;
    if (traits & HR_ROTATES_SHARE) return (int64_t)((double)width * config->model.rotary_fraction);
    return traits & HR_ROTATES_ALL ? width : 0;
}

/* Whether the model may have so many heads, which divide its width. */
static bool suits(const hr_config *config, int64_t heads)
{
    const int64_t width = config->model.d_model / heads, groups = config->model.n_kv_heads;
    return (!groups || heads % groups == 0) && width <= HR_ATTENTION_HEAD_MAX &&
           rotated(config, width) % 2 == 0;
}

/* The divisor of `whole` nearest to `wanted`; the smaller of two. Divisors come in pairs, so the
 * loop ends at the square root of `whole`. Without an error to fill, the result is not needed.
 *   model  only numbers of heads that suit it; 0: none does. Null: any divisor */
static int64_t nearest_divisor(int64_t whole, int64_t wanted, const hr_config *model,
                               const hr_error *reader)
{
    int64_t nearest = 0;
    for (int64_t low = 1; reader && low <= whole / low; low++) {
        if (whole % low) continue;
        const int64_t pair[] = { low, whole / low };
        for (int32_t i = 0; i < 2; i++) {
            const int64_t away = llabs(pair[i] - wanted), best = llabs(nearest - wanted);
            if (model && !suits(model, pair[i])) continue;
            if (!nearest || away < best || (away == best && pair[i] < nearest)) nearest = pair[i];
        }
    }
    return nearest;
}

/* Checks keys that change shapes against the features of the family. */
static hr_status check_family(const hr_config *config, hr_error *err)
{
    const struct {
        bool given;
        uint32_t trait;
        const char *key;
    } keys[] = {
        { config->model.n_kv_heads, HR_READS_GROUPS, "model.n_kv_heads" },
        { config->model.head_dim, HR_READS_GROUPS, "model.head_dim" },
        { config->model.rope_scaling.kind, HR_READS_GROUPS, "model.rope_scaling.kind" },
        { config->model.attention.sliding_window, HR_SLIDES, "model.attention.sliding_window" },
        { *config->model.attention.layer_types, HR_MIXES_ATTENTION, "model.attention.layer_types" },
        { config->model.positions, HR_LEARNS_POSITIONS | HR_ROTATES_SHARE | HR_ROTATES_ALL,
          "model.positions" },
        { config->model.embedding_rank, HR_READS_RANK, "model.embedding_rank" },
        { config->model.expansion, HR_READS_EXPANSION, "model.expansion" },
        { config->model.decoder_rank, HR_READS_EXPANSION, "model.decoder_rank" },
        { config->model.trunk, HR_READS_EXPANSION, "model.trunk" }
    };
    const hr_family_spec *family = hr_family_of(config);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given && !(family->traits & keys[i].trait))
            return hr_fail(err, HR_USAGE, "model.family %s has no %s", family->name, keys[i].key);
    if (family->traits & HR_HAS_STATES && config->model.attention.pattern)
        return hr_fail(err, HR_USAGE,
                       "model.family %s has no attention, so no model.attention.pattern",
                       family->name);
    if (family->traits & HR_HAS_STATES && config->data.documents)
        return hr_fail(err, HR_USAGE,
                       "model.family %s carries its state through a window: data.documents must be "
                       "joined",
                       family->name);
    if (family->traits & HR_HAS_STATES && config->model.dropout > 0)
        return hr_fail(err, HR_USAGE, "model.family %s has no dropout", family->name);
    if (hr_family_ties(config) && !(family->traits & HR_MAY_TIE))
        return hr_fail(err, HR_USAGE, "model.family %s cannot tie its embeddings", family->name);
    return HR_OK;
}

/* Spiking neurons: whole blocks, and in a block enough neurons to hear and to win. */
static hr_status check_neurons(const hr_config *config, hr_error *err)
{
    const int64_t D = config->model.d_model, block = config->model.lif.block;
    int64_t nearest = block / HR_LIF_UNIT * HR_LIF_UNIT;
    if (config->model.trunk != HR_TRUNK_LIF) return HR_OK;
    while (nearest > HR_LIF_UNIT && D % nearest) nearest -= HR_LIF_UNIT;
    if (D % HR_LIF_UNIT)
        return hr_fail(err, HR_USAGE,
                       "model.trunk lif has blocks of 16 neurons or a multiple: model.d_model %lld "
                       "is not a multiple of 16",
                       (long long)D);
    if (block % HR_LIF_UNIT || D % block)
        return hr_fail(err, HR_USAGE,
                       "model.lif.block %lld is no multiple of 16 that divides model.d_model %lld; "
                       "the nearest below that is one is %lld",
                       (long long)block, (long long)D, (long long)nearest);
    if (config->model.lif.winners > block || config->model.lif.synapses >= block)
        return hr_fail(
            err, HR_USAGE,
            "model.lif.winners %lld and model.lif.synapses %lld: a block of %lld neurons "
            "has at most %lld winners, and a neuron at most %lld synapses",
            (long long)config->model.lif.winners, (long long)config->model.lif.synapses,
            (long long)block, (long long)block, (long long)block - 1);
    return HR_OK;
}

static hr_status check_positions(const hr_config *config, hr_error *err)
{
    const int64_t T = config->train.seq_len, positions = config->model.positions;
    const bool learned = hr_family_of(config)->traits & HR_LEARNS_POSITIONS;
    if (!learned || !positions || T <= positions) return HR_OK;
    char more[64] = ""; /* a loaded model has a fixed number */
    if (!config->model.from[0])
        snprintf(more, sizeof more, " or model.positions=%lld", (long long)T);
    return hr_fail(err, HR_USAGE,
                   "train.seq_len %lld is more than model.positions %lld: use "
                   "train.seq_len=%lld%s",
                   (long long)T, (long long)positions, (long long)positions, more);
}

static hr_status check_rotation(const hr_config *config, hr_error *err)
{
    const int64_t width = hr_config_head_dim(config), rotary = rotated(config, width);
    if (rotary % 2 == 0) return HR_OK;
    if (!(hr_family_of(config)->traits & HR_ROTATES_SHARE))
        return hr_fail(err, HR_USAGE,
                       "RoPE needs an even head width, not %lld: change model.head_dim or "
                       "model.n_heads",
                       (long long)width);
    return hr_fail(err, HR_USAGE,
                   "model.rotary_fraction %g of a head of %lld is %lld elements; RoPE needs an "
                   "even number",
                   config->model.rotary_fraction, (long long)width, (long long)rotary);
}

/* Names the nearest number of heads that suits the width, or the nearest width that has one. */
static hr_status refuse_heads(const hr_config *config, hr_error *err)
{
    const int64_t D = config->model.d_model, H = config->model.n_heads, pair = 2 * H;
    const int64_t nearest = nearest_divisor(D, H, config, err);
    if (!nearest)
        return hr_fail(err, HR_USAGE,
                       "model.n_heads %lld does not divide model.d_model %lld, and no number of "
                       "heads suits it: use model.d_model=%lld",
                       (long long)H, (long long)D, (long long)(hr_max((D + H) / pair, 1) * pair));
    return hr_fail(err, HR_USAGE,
                   "model.n_heads %lld does not divide model.d_model %lld; the nearest that does "
                   "is %lld",
                   (long long)H, (long long)D, (long long)nearest);
}

static hr_status check_heads(const hr_config *config, hr_error *err)
{
    const int64_t D = config->model.d_model, H = config->model.n_heads;
    const int64_t G = hr_config_kv_heads(config);
    if (hr_family_of(config)->traits & HR_HAS_STATES) return HR_OK;
    if (!config->model.head_dim && D % H) return refuse_heads(config, err);
    if (H % G)
        return hr_fail(err, HR_USAGE,
                       "model.n_kv_heads %lld does not divide model.n_heads %lld; the nearest that "
                       "does is %lld",
                       (long long)G, (long long)H, (long long)nearest_divisor(H, G, NULL, err));
    if (config->model.head_dim > HR_ATTENTION_HEAD_MAX)
        return hr_fail(err, HR_USAGE, "model.head_dim is %lld; the limit is %d",
                       (long long)config->model.head_dim, HR_ATTENTION_HEAD_MAX);
    if (hr_config_head_dim(config) > HR_ATTENTION_HEAD_MAX)
        return hr_fail(err, HR_USAGE,
                       "model.d_model %lld / model.n_heads %lld gives heads of %lld; the limit is "
                       "%d: use at least %lld heads",
                       (long long)D, (long long)H, (long long)(D / H), HR_ATTENTION_HEAD_MAX,
                       (long long)((D + HR_ATTENTION_HEAD_MAX - 1) / HR_ATTENTION_HEAD_MAX));
    return check_rotation(config, err);
}

static hr_status check_scaling(const hr_config *config, hr_error *err)
{
    const hr_rope_scaling_choice kind = (hr_rope_scaling_choice)config->model.rope_scaling.kind;
    const bool yarn = kind == HR_ROPE_SCALING_YARN;
    const double low = yarn ? config->model.rope_scaling.beta_slow
                            : config->model.rope_scaling.low_freq_factor;
    const double high = yarn ? config->model.rope_scaling.beta_fast
                             : config->model.rope_scaling.high_freq_factor;
    if ((kind != HR_ROPE_SCALING_LLAMA3 && !yarn) || low < high) return HR_OK;
    return hr_fail(err, HR_USAGE, "model.rope_scaling.%s %g must be below %s %g",
                   yarn ? "beta_slow" : "low_freq_factor", low,
                   yarn ? "beta_fast" : "high_freq_factor", high);
}

/* A sliding window in tokens and a pattern of blocks exclude each other. */
static hr_status check_window(const hr_config *config, hr_error *err)
{
    const hr_family_spec *family = hr_family_of(config);
    if (hr_nsa_is_on(config) && !(family->traits & HR_SELECTS_KEYS))
        return hr_fail(err, HR_USAGE, "model.family %s has no model.attention.kind nsa",
                       family->name);
    const hr_status status = hr_nsa_check(config, err);
    if (status != HR_OK) return status;
    if (!config->model.attention.sliding_window || !config->model.attention.pattern)
        return hr_layer_types_check(config, err);
    return hr_fail(err, HR_USAGE,
                   "model.attention.sliding_window %lld needs model.attention.pattern dense",
                   (long long)config->model.attention.sliding_window);
}

static hr_status check_batch(const hr_config *config, hr_error *err)
{
    const int64_t batch = config->train.batch, micro = config->memory.micro_batch;
    if (micro == 0 || batch % micro == 0) return HR_OK;
    return hr_fail(
        err, HR_USAGE,
        "memory.micro_batch %lld does not divide train.batch %lld; the nearest that does "
        "is %lld",
        (long long)micro, (long long)batch, (long long)nearest_divisor(batch, micro, NULL, err));
}

enum { FACTORS_MAX = 6 };

typedef struct {
    const char *text;
    int64_t limit;
    int64_t factors[FACTORS_MAX]; /* 0: no factor */
} product;

static hr_status check_product(const product *p, hr_error *err)
{
    int64_t value = 1;
    for (int32_t i = 0; i < FACTORS_MAX && p->factors[i]; i++)
        if (!hr_checked_mul(value, p->factors[i], &value) || value > p->limit)
            return hr_fail(err, HR_USAGE, "%s exceeds %lld, the limit; reduce one of them", p->text,
                           (long long)p->limit);
    return HR_OK;
}

/* Limits bytes to 2^56 (72 petabytes), so that a hundred buffers of that size can be added, and the
 * floating-point operations of one call of one operation to 2^62. A call has at most one
 * micro-batch and one layer. Sums over calls saturate (plan/cost.h). */
static hr_status check_products(const hr_config *config, hr_error *err)
{
    const int64_t bytes_most = INT64_C(1) << 56, flops_most = INT64_C(1) << 62;
    const int64_t V = config->model.vocab_size, D = config->model.d_model, F = config->model.d_ff;
    const int64_t L = config->model.n_layers, H = config->model.n_heads;
    const int64_t A = hr_max(D, H * hr_config_head_dim(config)); /* attention width */
    const int64_t B = config->train.batch, T = config->train.seq_len;
    const int64_t M = config->memory.micro_batch ? config->memory.micro_batch : B;
    const bool expands = hr_family_of(config)->traits & HR_READS_EXPANSION;
    const int64_t X = expands ? hr_config_expansion(config) : 1; /* input width of the decoder */
    const int64_t R = hr_max(config->model.decoder_rank, 1);     /* width between its factors */
    const int64_t passes = 8; /* two FLOP per element, forward, twice backward, recomputed */
    const product products[] = {
        { "model.vocab_size x model.d_model x 16 bytes", bytes_most, { V, D, STATE_BYTES } },
        { "model.n_layers x model.d_model x model.d_ff x 48 bytes",
          bytes_most,
          { L, D, F, 3, STATE_BYTES } },
        { "model.n_layers x model.d_model x the width of attention x 64 bytes",
          bytes_most,
          { L, D, A, 4, STATE_BYTES } },
        { "train.seq_len x model.d_model x 16 bytes", bytes_most, { T, D, STATE_BYTES } },
        { "model.positions x model.d_model x 16 bytes",
          bytes_most,
          { hr_config_positions(config), D, STATE_BYTES } },
        { "model.embedding_rank x (model.vocab_size or model.d_model) x 16 bytes",
          bytes_most,
          { hr_config_embedding_rank(config), hr_max(V, D), STATE_BYTES } },
        { "model.expansion x (model.d_model or model.vocab_size) x 16 bytes",
          bytes_most,
          { X, hr_max(D, V), STATE_BYTES } },
        { "model.decoder_rank x (model.expansion or model.vocab_size) x 16 bytes",
          bytes_most,
          { R, hr_max(X, V), STATE_BYTES } },
        { "train.batch x train.seq_len x model.expansion x 16 bytes", bytes_most, { B, T, X, 16 } },
        { "8 FLOP x the micro-batch x train.seq_len x model.expansion x (model.d_model or "
          "model.vocab_size)",
          flops_most,
          { passes, M, T, X, hr_max(D, V) } },
        { "8 FLOP x the micro-batch x train.seq_len x model.decoder_rank x (model.expansion or "
          "model.vocab_size)",
          flops_most,
          { passes, M, T, R, hr_max(X, V) } },
        { "train.batch x train.seq_len x model.n_layers x the width of attention x 64 bytes",
          bytes_most,
          { B, T, L, A, 64 } },
        { "train.batch x train.seq_len x model.n_layers x model.d_ff x 24 bytes",
          bytes_most,
          { B, T, L, F, 24 } },
        { "train.batch x train.seq_len x model.vocab_size x 8 bytes", bytes_most, { B, T, V, 8 } },
        { "train.batch x train.seq_len x model.n_heads x model.n_layers x 4 bytes",
          bytes_most,
          { B, T, H, L, 4 } },
        { "8 FLOP x the micro-batch x train.seq_len x model.vocab_size x model.d_model",
          flops_most,
          { passes, M, T, V, D } },
        { "24 FLOP x the micro-batch x train.seq_len x model.d_model x model.d_ff",
          flops_most,
          { 3 * passes, M, T, D, F } },
        { "32 FLOP x the micro-batch x train.seq_len x model.d_model x the width of attention",
          flops_most,
          { 4 * passes, M, T, D, A } },
        { "14 FLOP x the micro-batch x train.seq_len squared x the width of attention",
          flops_most,
          { 14, M, T, T, A } },
        { "train.steps x train.batch x train.seq_len tokens",
          flops_most,
          { hr_max(config->train.steps, 1), B, T } },
        { "data.words_max x 64 bytes", bytes_most, { config->data.words_max, 64 } },
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const hr_status status = check_product(&products[i], err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Dropout indexes the scores of a row, head after head, with 32 bits. */
static hr_status check_dropout(const hr_config *config, hr_error *err)
{
    const int64_t H = config->model.n_heads, T = config->train.seq_len;
    if (config->model.dropout == 0 || H * T <= UINT32_MAX) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "model.n_heads x train.seq_len is %lld; with dropout the limit is %lld",
                   (long long)(H * T), (long long)UINT32_MAX);
}

static hr_status check_moments(const hr_config *config, hr_error *err)
{
    const hr_optimizer *optimizer = &hr_optimizers[config->train.optimizer.kind];
    if (config->memory.moments != HR_PLACE_HOST && optimizer->whole)
        return hr_fail(err, HR_USAGE,
                       "train.optimizer.kind %s updates whole matrices, so its states stay in "
                       "memory: use memory.moments=host",
                       optimizer->name);
    if (hr_config_chooses_states(config))
        return hr_fail(err, HR_USAGE,
                       "train.state.%s=auto is chosen by headroom plan and train for one recipe: "
                       "give a format",
                       config->train.state.master == HR_MASTERS_AUTO ? "master" : "moments");
    if (config->train.state.moments != HR_MOMENTS_FP32 && !optimizer->scales)
        return hr_fail(err, HR_USAGE,
                       "train.optimizer.kind %s keeps its states in fp32: use "
                       "train.state.moments=fp32",
                       optimizer->name);
    return HR_OK;
}

static hr_status check_masters(const hr_config *config, hr_error *err)
{
    if (config->train.state.master == HR_MASTERS_FP32) return HR_OK;
    if (config->train.dtype != HR_FORMAT_BF16)
        return hr_fail(err, HR_USAGE,
                       "train.state.master is for bf16 weights, and with train.dtype=%s they are "
                       "fp32: use train.dtype=bf16, or train.state.master=fp32",
                       hr_format_name(config->train.dtype));
    return HR_OK;
}

hr_status hr_config_check_model(const hr_config *config, hr_error *err)
{
    hr_status status = check_family(config, err);
    if (status == HR_OK) status = check_neurons(config, err);
    if (status == HR_OK) status = check_heads(config, err);
    if (status == HR_OK) status = check_scaling(config, err);
    return status == HR_OK ? check_window(config, err) : status;
}

/* Checks the stages one by one, each as the recipe that it is. Not inlined: a recipe without stages
 * needs no second one on the stack. */
static __attribute__((noinline)) hr_status check_stages(const hr_config *config, hr_error *err)
{
    hr_config stage;
    hr_stages stages;
    hr_error why;
    hr_status status = hr_config_stages(config, &stages, err);
    for (int32_t i = 0; i < stages.count && status == HR_OK; i++) {
        const int64_t first = stages.at[i].first_step, steps = config->train.steps;
        status = hr_config_at_stage(config, i, &stage, err);
        if (status != HR_OK) return status;
        if (hr_config_check(&stage, &why) != HR_OK)
            return hr_fail(err, HR_USAGE, "train.stages, stage %d: %.600s", i + 1, why.message);
        if (steps && first >= steps)
            return hr_fail(err, HR_USAGE,
                           "train.stages, stage %d: begins at step %lld, and the run ends after "
                           "train.steps=%lld",
                           i + 1, (long long)first, (long long)steps);
    }
    return status;
}

/* train.epochs set over a recipe that has train.steps. Those of a stage are computed. */
static hr_status check_passes(const hr_config *config, hr_error *err)
{
    const int64_t steps = config->train.steps;
    if (!steps || config->stage.count || !hr_config_is_given(config, "train.epochs") ||
        !hr_config_is_given(config, "train.steps") ||
        hr_config_is_given_beside(config, "train.epochs", "train.steps"))
        return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.epochs=%lld: the recipe has train.steps %lld, which counts; give "
                   "train.steps=auto, too",
                   (long long)config->train.epochs, (long long)steps);
}

hr_status hr_config_check(const hr_config *config, hr_error *err)
{
    const hr_status passes = check_passes(config, err);
    if (passes != HR_OK) return passes;
    if (hr_config_has_stages(config)) return check_stages(config, err);
    hr_status (*const checks[])(const hr_config *, hr_error *) = {
        hr_config_check_model, hr_config_check_data, check_batch,   check_products, check_dropout,
        check_positions,       check_moments,        check_masters, hr_rules_check
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const hr_status status = checks[i](config, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}
