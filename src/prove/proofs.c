/* SPDX-License-Identifier: Apache-2.0 */
/* prove/proofs.c - the proofs that compare one run with the reference, and the table of all. */
#include "prove/proofs.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/path.h"
#include "model/optimizer.h"
#include "plan/strategy_file.h"

enum { PARTS_MOST = 16, BLOCK_TOKENS = 64 };

#define COMPARES(...) (snprintf(proof->compared, sizeof proof->compared, __VA_ARGS__), true)

/* Tokens of a tile that leaves every bit: about PARTS_MOST tiles of whole blocks, or of whole
 * sequences, the last one shorter where it can be. */
static int64_t tile_of(const hr_config *config)
{
    const int64_t T = config->train.seq_len, unit = T % BLOCK_TOKENS ? T : BLOCK_TOKENS;
    const int64_t units = config->train.batch * T / unit;
    return unit * ((units + PARTS_MOST - 1) / PARTS_MOST);
}

/* Sequences of a micro-batch: the smallest divisor of the batch with at most PARTS_MOST
 * micro-batches. */
static int64_t micro_of(const hr_config *config)
{
    const int64_t batch = config->train.batch;
    int64_t micro = (batch + PARTS_MOST - 1) / PARTS_MOST;
    while (batch % micro) micro++;
    return micro;
}

/* ---- changes of the strategy */

static bool change_micro_batch(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    const int64_t micro = micro_of(&prover->base), batch = prover->base.train.batch;
    if (batch < 2) return hr_proof_declines(proof, "train.batch is one sequence");
    strategy->micro_batch = micro;
    return COMPARES("%lld micro-batches of %lld sequence%s = one batch of %lld",
                    (long long)(batch / micro), (long long)micro, micro == 1 ? "" : "s",
                    (long long)batch);
}

static bool change_loss_chunk(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    const int64_t chunk = tile_of(&prover->base);
    if (chunk >= prover->base.train.batch * prover->base.train.seq_len)
        return hr_proof_declines(proof,
                                 "the smallest loss chunk without rounding, %lld tokens, is "
                                 "the whole batch",
                                 (long long)chunk);
    strategy->loss_chunk = chunk;
    return COMPARES("loss in chunks of %lld tokens = loss of all tokens at once", (long long)chunk);
}

static bool change_mlp_tile(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    const int64_t tile = tile_of(&prover->base);
    strategy->mlp_tile = tile;
    hr_strategy_canonical(&prover->base, strategy);
    if (tile >= prover->base.train.batch * prover->base.train.seq_len)
        return hr_proof_declines(proof,
                                 "the smallest MLP tile without rounding, %lld tokens, is "
                                 "the whole batch",
                                 (long long)tile);
    if (!strategy->mlp_tile) return hr_proof_declines(proof, "the family has no MLP");
    return COMPARES("MLPs in tiles of %lld tokens = whole MLPs", (long long)tile);
}

static bool change_attention_tile(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    const hr_config *base = &prover->base;
    const int64_t T = base->train.seq_len, part = hr_strategy_part(base, base->train.batch);
    const bool parts = part && part < T;
    const int64_t tile = parts ? part : micro_of(base) * T;
    if (base->train.batch < 2 && !parts)
        return hr_proof_declines(proof, "train.batch is one sequence");
    strategy->attention_tile = tile;
    if (base->model.family == HR_FAMILY_WIDE)
        return COMPARES("the trunk in tiles of %lld tokens = the whole trunk", (long long)tile);
    return COMPARES("attention in tiles of %lld tokens = whole attention", (long long)tile);
}

static void recompute_all(const hr_prover *prover, hr_strategy *strategy)
{
    for (int32_t l = 0; l < strategy->layer_count; l++)
        strategy->recompute_set[l] = (1u << HR_INTERMEDIATES) - 2;
    hr_strategy_canonical(&prover->base, strategy);
}

static bool change_recompute(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    recompute_all(prover, strategy);
    if (!strategy->recompute_set[0])
        return hr_proof_declines(proof, "the layers have nothing to recompute");
    return COMPARES("every layer recomputed = every activation kept");
}

static bool change_release(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    (void)prover;
    strategy->consume = true;
    return COMPARES("gradients released at their update = all gradients kept");
}

static bool change_order(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    (void)prover;
    strategy->dw_first = false;
    return COMPARES("input gradients first = weight gradients first");
}

/* Everything that may be combined; gradient release needs one micro-batch. */
static bool change_all(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof)
{
    hr_proof ignored;
    (void)change_micro_batch(prover, strategy, &ignored);
    (void)change_loss_chunk(prover, strategy, &ignored);
    strategy->mlp_tile = tile_of(&prover->base);
    recompute_all(prover, strategy);
    strategy->dw_first = false;
    strategy->reorder = true;
    return COMPARES("micro-batches, loss chunks, tiles, recompute and other orders = none of them");
}

static hr_status prepare_strategy(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    const hr_proof_kind *kind = NULL;
    for (int32_t i = 0; !kind; i++)
        if (!strcmp(hr_proof_name(i), proof->name)) kind = hr_proof_kind_at(i);
    prover->strategy = hr_prover_strategy(prover);
    *applies = kind->change(prover, &prover->strategy, proof);
    if (!*applies) return HR_OK;
    hr_strategy_canonical(&prover->base, &prover->strategy);
    return hr_prover_use(prover, &prover->strategy, &prover->variant, err);
}

/* ---- changes of the recipe */

/* The bound of a loss chunk that splits a group of partial sums (docs/numerics.md). No plan that
 * the search finds has one, but a recipe may name it. */
static double bound_of_chunk(const hr_config *config, int64_t chunk)
{
    const int64_t T = config->train.seq_len, unit = T % BLOCK_TOKENS ? T : BLOCK_TOKENS;
    if (chunk % unit == 0 || chunk >= config->train.batch * T) return 0;
    return config->train.dtype == HR_FORMAT_FP32 ? 1e-6 : 1e-3;
}

/* The plan that `headroom plan` prints for the recipe. A strategy file is for the layers of the
 * recipe, so a reduced recipe gets the plan that the search finds. */
static hr_status prepare_plan(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    const hr_config *recipe = &prover->recipe;
    hr_config *variant = &prover->variant;
    *variant = prover->base;
    variant->memory = recipe->memory;
    if (prover->is_reduced) {
        variant->memory.micro_batch = 0;
        *variant->memory.strategy = 0;
    }
    snprintf(variant->memory.file_dir, sizeof variant->memory.file_dir, "%s", prover->directory);
    prover->strategy = hr_prover_strategy(prover);
    prover->strategy.loss_chunk = variant->memory.loss_chunk;
    hr_status status = HR_OK;
    if (*variant->memory.strategy)
        status = hr_strategy_read(variant, variant->memory.strategy, &prover->strategy, err);
    proof->bound = bound_of_chunk(variant, prover->strategy.loss_chunk);
    *applies = COMPARES("the plan of the recipe = the whole batch at once, everything kept");
    return status;
}

/* After an update, Adam has divided the rounding of small gradients by their size, so a bound holds
 * for the first step. */
static hr_status run_plan(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    enum { ROUNDING_PARTS = 1000 };
    if (proof->bound > 0) proof->steps = 1;
    return hr_prover_compare(prover, &prover->variant, &prover->reference,
                             proof->bound > 0 ? 1.0 / ROUNDING_PARTS : 0, NULL, err);
}

static hr_status prepare_threads(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    const int32_t threads = prover->threads > 1 ? 1 : 2;
    const hr_status status = hr_prover_use(prover, &prover->whole, &prover->variant, err);
    prover->variant.train.threads = threads;
    *applies = COMPARES("%d thread%s = %d thread%s", threads, threads > 1 ? "s" : "",
                        prover->threads, prover->threads > 1 ? "s" : "");
    return status;
}

static hr_status prepare_masters(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    hr_config *variant = &prover->variant;
    if (prover->base.train.state.master != HR_MASTERS_RESIDUAL16) {
        *applies = hr_proof_declines(proof, "train.state.master is not residual16");
        return HR_OK;
    }
    const hr_status status = hr_prover_use(prover, &prover->whole, variant, err);
    variant->train.state.master = HR_MASTERS_FP32;
    *applies = COMPARES("fp32 masters = bf16 weights with residuals");
    return status;
}

static hr_status prepare_moments(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    double seconds;
    hr_config *variant = &prover->variant;
    const hr_optimizer *optimizer = &hr_optimizers[prover->base.train.optimizer.kind];
    if (optimizer->whole) {
        *applies = hr_proof_declines(proof, "%s updates whole matrices: its states stay in memory",
                                     optimizer->name);
        return HR_OK;
    }
    hr_status status = hr_prover_use(prover, &prover->whole, variant, err);
    variant->memory.moments = HR_PLACE_FILE;
    variant->memory.file_budget = 0;
    snprintf(variant->memory.file_dir, sizeof variant->memory.file_dir, "%s", prover->directory);
    if (status == HR_OK) status = hr_prover_plan(prover, variant, &seconds, err);
    *applies = status != HR_OK || prover->answer.file_bytes > 0
                   ? COMPARES("optimizer states in a file = in memory")
                   : hr_proof_declines(proof,
                                       "every optimizer state is below %d KiB and stays in "
                                       "memory",
                                       HR_STATE_AWAY_BYTES >> 10);
    return status;
}

/* Recomputes every layer, for the backward pass of each of its blocks. */
static hr_status prepare_again(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    prover->strategy = hr_prover_strategy(prover);
    recompute_all(prover, &prover->strategy);
    const hr_status status = hr_prover_use(prover, &prover->strategy, &prover->variant, err);
    prover->variant.memory.recompute_again = true;
    *applies = COMPARES("layers recomputed for each block = kept activations");
    return status;
}

/* Recomputes every layer from its input, which is in the file. */
static hr_status prepare_spill(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    double seconds;
    hr_config *variant = &prover->variant;
    prover->strategy = hr_prover_strategy(prover);
    recompute_all(prover, &prover->strategy);
    hr_status status = hr_prover_use(prover, &prover->strategy, variant, err);
    variant->memory.spill = HR_SPILL_AUTO;
    variant->memory.file_budget = 0;
    snprintf(variant->memory.file_dir, sizeof variant->memory.file_dir, "%s", prover->directory);
    if (status == HR_OK) status = hr_prover_plan(prover, variant, &seconds, err);
    *applies = status != HR_OK || prover->answer.file_bytes > 0
                   ? COMPARES("layer inputs in a file = in memory")
                   : hr_proof_declines(proof, "backward reads no input of a layer");
    return status;
}

static hr_status prepare_base(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    double seconds;
    hr_config *variant = &prover->variant;
    if (prover->base.train.adapter.kind == HR_ADAPTER_NONE || !*prover->base.model.from) {
        *applies = hr_proof_declines(proof, "no frozen model of a folder is under adapters");
        return HR_OK;
    }
    hr_status status = hr_prover_use(prover, &prover->whole, variant, err);
    variant->memory.weights = HR_PLACE_FILE;
    if (status == HR_OK) status = hr_prover_plan(prover, variant, &seconds, err);
    if (status == HR_USAGE) { /* of the recipe only this key has changed */
        *applies = hr_proof_declines(proof, "no frozen matrix has %d KiB or more",
                                     HR_STATE_AWAY_BYTES >> 10);
        return HR_OK;
    }
    *applies = COMPARES("frozen weights in their files = in memory");
    return status;
}

/* ---- resume */

static hr_status prepare_resume(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    const hr_status status = hr_prover_use(prover, &prover->whole, &prover->variant, err);
    if (status != HR_OK) return status;
    *applies = prover->steps > 1 ? COMPARES("stopped after step %lld and resumed = never stopped",
                                            (long long)(prover->steps / 2))
                                 : hr_proof_declines(proof, "it takes two steps, and there is one");
    return hr_path_join(prover->directory, "run", prover->variant.train.out, HR_PATH_BYTES, err);
}

/* Two sessions of one run with checkpoints. The second compares the steps that it trains. */
static hr_status run_resume(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    const int64_t stop = prover->steps / 2;
    const hr_observer first = { .last_step = stop };
    hr_error left;
    proof->steps = (int32_t)(prover->steps - stop);
    hr_status status = hr_prover_run(prover, &prover->variant, &first, true, err);
    if (status == HR_OK) {
        prover->tracer = (hr_tracer){ .trace = &prover->reference,
                                      .first_step = stop,
                                      .prover = prover,
                                      .buffer = prover->buffer };
        hr_prover_disturb(prover, &prover->tracer);
        const hr_observer observer = hr_tracer_observer(&prover->tracer, prover->steps);
        status = hr_prover_run(prover, &prover->variant, &observer, false, err);
    }
    if (status == HR_OK) status = hr_tracer_finish(&prover->tracer, err);
    const hr_status removed = hr_prover_remove(prover->variant.train.out, &left);
    return status == HR_OK && removed != HR_OK ? hr_fail(err, removed, "%s", left.message) : status;
}

static const hr_proof_kind kinds[] = {
    { "plan", "the plan of the recipe = the whole batch at once, everything kept", prepare_plan,
      run_plan, NULL, 1, false },
    { "micro-batch", "micro-batches = one batch", prepare_strategy, NULL, change_micro_batch, 1,
      false },
    { "loss-chunk", "chunked loss = whole loss", prepare_strategy, NULL, change_loss_chunk, 1,
      false },
    { "mlp-tile", "tiled MLPs = whole MLPs", prepare_strategy, NULL, change_mlp_tile, 1, false },
    { "attention-tile", "tiled attention = whole attention", prepare_strategy, NULL,
      change_attention_tile, 1, false },
    { "recompute", "recomputed layers = kept activations", prepare_strategy, NULL, change_recompute,
      1, false },
    { "again", "layers recomputed for each block = kept activations", prepare_again, NULL, NULL, 1,
      false },
    { "release", "released gradients = kept gradients", prepare_strategy, NULL, change_release, 1,
      false },
    { "order", "either order of the gradients of a product", prepare_strategy, NULL, change_order,
      1, false },
    { "together", "all of these = none", prepare_strategy, NULL, change_all, 1, false },
    { "threads", "1 thread = N threads", prepare_threads, NULL, NULL, 1, false },
    { "resume", "stopped and resumed = never stopped", prepare_resume, run_resume, NULL, 1, false },
    { "moments", "optimizer states in a file = in memory", prepare_moments, NULL, NULL, 1, false },
    { "spill", "layer inputs in a file = in memory", prepare_spill, NULL, NULL, 1, false },
    { "base", "frozen weights in their files = in memory", prepare_base, NULL, NULL, 1, false },
    { "masters", "fp32 masters = bf16 weights with residuals", prepare_masters, NULL, NULL, 1,
      false },
    { "pattern", "sparse attention = dense attention with an explicit mask", hr_pattern_prepare,
      hr_pattern_run, NULL, 2, true },
    { "nsa", "native sparse attention = dense attention with explicit masks", hr_nsa_prepare,
      hr_nsa_run, NULL, 4, true },
    { "factors", "a factorized matrix = its product", hr_factors_prepare, hr_factors_run, NULL, 2,
      true },
    { "adapter", "low-rank adapters = weights that contain them", hr_adapters_prepare,
      hr_adapters_run, NULL, 3, true },
    { "npt", "adapters of a token = weights that change with each token", hr_modulated_prepare,
      hr_modulated_run, NULL, 2, true },
    { "weights", "weights stored as f16, bf16 or f8_e4m3 = the same weights dequantized",
      hr_stored_prepare, hr_stored_run, NULL, 2, true },
};

const hr_proof_kind *hr_proof_kind_at(int32_t index)
{
    const int32_t count = sizeof kinds / sizeof *kinds;
    return index >= 0 && index < count ? &kinds[index] : NULL;
}

const char *hr_proof_name(int32_t index)
{
    const hr_proof_kind *kind = hr_proof_kind_at(index);
    return kind ? kind->name : NULL;
}

const char *hr_proof_text(int32_t index)
{
    const hr_proof_kind *kind = hr_proof_kind_at(index);
    return kind ? kind->text : NULL;
}
