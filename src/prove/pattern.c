/* SPDX-License-Identifier: Apache-2.0 */
/* prove/pattern.c - sparse attention against dense attention with an explicit mask.
 *
 * The reference computes every score in double, with -Inf where the recipe masks it (masked.c). It
 * takes hours at a length at which sparse attention is worth its name, so the proof shortens the
 * model until the scores take seconds, but no further than the pattern repeats. */
#include <stdio.h>

#include "base/checked.h"
#include "prove/proofs.h"

/* Products of a reference run: some ten seconds on one thread. */
#define PRODUCTS_MOST 4e9

/* Of a thread, for the prediction. */
#define PRODUCTS_A_SECOND 1e9

/* fp32 kernels against double: rounding of fp32, and exponentials with a relative error of 4e-6.
 * bf16 and fp16: operands and results of attention are rounded to 8 or 11 bits, which turns the
 * sign of some inputs of a ReLU, so that these bounds only find gross errors. Such a recipe is
 * therefore proven in both: its own kernels, and the sharp bound. */
static const double
    bounds[] = { [HR_FORMAT_FP32] = 1e-4, [HR_FORMAT_BF16] = 0.15, [HR_FORMAT_FP16] = 0.02 };
static const char *const in_half[] = { [HR_FORMAT_FP32] = "",
                                       [HR_FORMAT_BF16] = "; in bf16 within 15 %, and in fp32",
                                       [HR_FORMAT_FP16] = "; in fp16 within 2 %, and in fp32" };

/* See hr_prover_compare: what is left of gradients that cancel is larger in bf16. */
static const double
    roundings[] = { [HR_FORMAT_FP32] = 5e-3, [HR_FORMAT_BF16] = 1e-2, [HR_FORMAT_FP16] = 2e-3 };

/* Tokens at which a query has seen each kind of pair that the pattern has: a masked one too. */
static int64_t tokens_needed(const hr_config *config)
{
    const int64_t tokens = config->model.attention.sliding_window;
    if (tokens) return 2 * tokens;
    const int64_t blocks = hr_max(config->model.attention.window + 2,
                                  2 * hr_config_attention_stride(config));
    return (blocks + 1) * config->model.attention.block;
}

static bool has_masked_pair(const hr_config *config)
{
    const int64_t last = config->train.seq_len - 1;
    for (int64_t l = 0; l < config->model.n_layers; l++)
        for (int64_t key = 0; key <= last; key++)
            if (!hr_masked_sees(config, l, last, key)) return true;
    return false;
}

/* Makes the pattern repeat sooner; false: it cannot. */
static bool shrink_pattern(hr_config *config)
{
    enum { TOKENS_LEAST = 16 };
    int64_t *size = config->model.attention.sliding_window ? &config->model.attention.sliding_window
                                                           : &config->model.attention.block;
    if (*size / 2 < TOKENS_LEAST) return false;
    *size /= 2;
    return true;
}

/* Fewer sequences, layers and tokens, and a smaller vocabulary, until the reference takes seconds.
 * Layers of both kinds stay: the first two. An existing model keeps its shape. */
static void shorten(hr_config *config)
{
    enum { VOCABULARY_MOST = 4096 };
    const bool is_new = !*config->model.from;
    if (is_new) config->model.vocab_size = hr_min(config->model.vocab_size, VOCABULARY_MOST);
    if (hr_masked_products(config) > PRODUCTS_MOST) config->train.batch = 1;
    if (hr_masked_products(config) > PRODUCTS_MOST && is_new)
        config->model.n_layers = hr_min(config->model.n_layers, 2);
    while (hr_masked_products(config) > PRODUCTS_MOST) {
        const bool repeats = config->train.seq_len / 2 >= tokens_needed(config);
        if (!repeats && (!is_new || !shrink_pattern(config))) return;
        config->train.seq_len /= 2;
    }
}

/* "blocks of 64 tokens", "a window of 128 tokens". */
static void describe_pattern(const hr_config *config, char text[64])
{
    const int64_t tokens = config->model.attention.sliding_window;
    if (tokens) snprintf(text, 64, "a window of %lld tokens", (long long)tokens);
    else snprintf(text, 64, "blocks of %lld tokens", (long long)config->model.attention.block);
}

/* What does not belong to attention. */
static void clear_rest(hr_config *config)
{
    *config->train.freeze = *config->train.param_groups = 0; /* every gradient counts */
    config->model.weights = HR_WEIGHTS_COMPUTE;
    config->model.dropout = 0;
    config->memory.micro_batch = config->memory.loss_chunk = 0;
    *config->memory.strategy = 0;
    config->memory.moments = config->memory.weights = HR_PLACE_HOST;
}

hr_status hr_pattern_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    char pattern[64];
    hr_config *config = &prover->variant;
    const int32_t dtype = prover->base.train.dtype;
    *config = prover->base;
    *applies = false;
    if (!config->model.attention.pattern && !config->model.attention.sliding_window) {
        (void)hr_proof_declines(proof, "the recipe has no sparse attention and no sliding window");
        return HR_OK;
    }
    if (!has_masked_pair(config)) {
        (void)hr_proof_declines(proof,
                                "the pattern masks nothing at train.seq_len %lld: attention is "
                                "dense",
                                (long long)config->train.seq_len);
        return HR_OK;
    }
    shorten(config);
    clear_rest(config);
    *applies = true;
    proof->bound = bounds[HR_FORMAT_FP32];
    if (dtype != HR_FORMAT_FP32) prover->runs *= 2;
    describe_pattern(config, pattern);
    snprintf(proof->compared, sizeof proof->compared,
             "sparse = dense attention with an explicit mask in double; %s, %lld x %lld random "
             "tokens, %lld layer%s, no dropout%s",
             pattern, (long long)config->train.batch, (long long)config->train.seq_len,
             (long long)config->model.n_layers, config->model.n_layers == 1 ? "" : "s",
             in_half[dtype]);
    proof->seconds = hr_masked_products(config) * (dtype != HR_FORMAT_FP32 ? 2 : 1) /
                     (PRODUCTS_A_SECOND * prover->threads);
    hr_status status = hr_config_check(config, err);
    return status == HR_OK ? hr_prover_draw_tokens(prover, config, err) : status;
}

/* Compares the kernels of a dtype with the reference. */
static hr_status compare_in(hr_prover *prover, int32_t dtype, hr_error *err)
{
    hr_prover_set_dtype(&prover->variant, dtype);
    prover->masks = true;
    hr_status status = hr_prover_trace(prover, &prover->variant, &prover->own, 1, false, NULL, err);
    prover->masks = false;
    if (status != HR_OK) return status;
    return hr_prover_compare(prover, &prover->variant, &prover->own, roundings[dtype], NULL, err);
}

hr_status hr_pattern_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    proof->steps = 1;
    const int32_t dtype = prover->variant.train.dtype;
    if (dtype != HR_FORMAT_FP32) {
        const hr_status status = compare_in(prover, dtype, err);
        if (status != HR_OK || prover->tracer.found.relative > bounds[dtype]) {
            proof->bound = bounds[dtype];
            return status;
        }
    }
    return compare_in(prover, HR_FORMAT_FP32, err);
}

/* ---- native sparse attention */

/* Sizes with which a query of a short sequence leaves blocks out: a ragged one. */
static void shorten_nsa(hr_config *config)
{
    enum { BLOCKS = 9, LEAST = 2 };
    const int64_t first = config->model.attention.nsa.select_first,
                  local = config->model.attention.nsa.select_local;
    int64_t *count = &config->model.attention.nsa.select_count;
    if (hr_masked_products(config) > PRODUCTS_MOST) config->train.batch = 1;
    if (hr_masked_products(config) > PRODUCTS_MOST && !*config->model.from)
        config->model.n_layers = hr_min(config->model.n_layers, 2);
    if (!*config->model.from) config->model.vocab_size = hr_min(config->model.vocab_size, 4096);
    while (config->model.attention.nsa.select_block > 16 &&
           config->model.attention.nsa.compress_stride % LEAST == 0 &&
           config->model.attention.nsa.select_block * BLOCKS > config->train.seq_len / LEAST) {
        config->model.attention.nsa.select_block /= LEAST;
        config->model.attention.nsa.compress_stride /= LEAST;
        if (!*config->model.from) config->model.attention.nsa.compress_block /= LEAST;
    }
    while (hr_masked_products(config) > PRODUCTS_MOST &&
           config->train.seq_len / LEAST > config->model.attention.nsa.compress_block)
        config->train.seq_len /= LEAST;
    config->train.seq_len -= config->train.seq_len % LEAST == 0;
    const int64_t blocks = config->train.seq_len / config->model.attention.nsa.select_block;
    *count = hr_max(first + local, hr_min(*count, blocks / LEAST));
    config->model.attention.nsa.window = hr_min(config->model.attention.nsa.window,
                                                config->train.seq_len / 3);
}

hr_status hr_nsa_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    hr_config *config = &prover->variant;
    const int32_t dtype = prover->base.train.dtype;
    *config = prover->base;
    *applies = false;
    if (config->model.attention.kind != HR_ATTENTION_NSA) {
        (void)hr_proof_declines(proof, "model.attention.kind is not nsa");
        return HR_OK;
    }
    shorten_nsa(config);
    clear_rest(config);
    *applies = true;
    proof->bound = bounds[HR_FORMAT_FP32];
    if (dtype != HR_FORMAT_FP32) prover->runs *= 2;
    snprintf(proof->compared, sizeof proof->compared,
             "each branch = dense attention with its mask in double, and with every block selected "
             "= dense attention; %lld of %lld blocks of %lld, %lld x %lld random tokens%s",
             (long long)config->model.attention.nsa.select_count,
             (long long)(config->train.seq_len / config->model.attention.nsa.select_block + 1),
             (long long)config->model.attention.nsa.select_block, (long long)config->train.batch,
             (long long)config->train.seq_len, in_half[dtype]);
    proof->seconds = 2 * hr_masked_products(config) * (dtype != HR_FORMAT_FP32 ? 2 : 1) /
                     (PRODUCTS_A_SECOND * prover->threads);
    hr_status status = hr_config_check(config, err);
    return status == HR_OK ? hr_prover_draw_tokens(prover, config, err) : status;
}

/* A branch that saw a later key would differ: the reference has none. */
hr_status hr_nsa_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    hr_config *config = &prover->variant;
    const int64_t block = config->model.attention.nsa.select_block;
    hr_status status = hr_pattern_run(prover, proof, err);
    if (status != HR_OK || prover->tracer.found.relative > proof->bound) return status;
    int64_t *count = &config->model.attention.nsa.select_count;
    *count = hr_max(*count, hr_min(256, config->train.seq_len / block + 1));
    prover->selects_all = *count * block >= config->train.seq_len;
    if (prover->selects_all) status = compare_in(prover, HR_FORMAT_FP32, err);
    prover->selects_all = false;
    return status;
}
