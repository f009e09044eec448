/* SPDX-License-Identifier: Apache-2.0 */
/* prove/proof_recipe.c - chooses what is proven on.
 *
 * The reference keeps everything, so it needs more memory than the recipe may ever be given. If it
 * does not fit, the model gets fewer layers, then the batch fewer sequences, then these fewer
 * tokens: what the proofs compare does not depend on any of the three. */
#include "prove/proof_recipe.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "data/paths.h"
#include "model/family.h"

enum { LAYERS_LEAST = 2, BATCH_LEAST = 2, TOKENS_LEAST = 128 };

/* Removes what does not affect training steps. A share of the training text as data.valid stays:
 * without it, the text would be another one. */
static void set_base(hr_prover *prover)
{
    hr_config *base = &prover->base;
    const char *valid = base->data.valid;
    *base->train.out = 0;
    base->train.eval_every = base->train.checkpoint_every = base->train.sample_every = 0;
    base->train.sample_tokens = base->train.max_seconds = base->train.patience = 0;
    base->train.keep_best = false;
    base->memory.spill = HR_SPILL_NO;
    if (*valid && valid[strlen(valid) - 1] != '%') *base->data.valid = 0;
    if (base->train.steps) prover->steps = hr_min(prover->steps, base->train.steps);
    prover->report->steps = prover->steps;
}

/* ---- data */

static hr_status choose_data(hr_prover *prover, hr_error *err)
{
    hr_config *base = &prover->base;
    hr_prove_report *report = prover->report;
    const hr_config_data data = hr_config_data_of(base);
    const char *named = *data.train_rows ? data.train_rows : data.train_text;
    hr_error missing;
    if (*named && hr_paths_check(base, NULL, &missing) == HR_OK) {
        snprintf(report->data, sizeof report->data, "%s", named);
        return HR_OK;
    }
    if (*named)
        snprintf(report->data, sizeof report->data, "random tokens: %.*s",
                 (int)hr_min((int64_t)strcspn(missing.message, ";"), 300), missing.message);
    else
        snprintf(report->data, sizeof report->data,
                 "random tokens: the recipe names no data.train");
    prover->draws_tokens = true;
    const hr_status status = hr_prover_draw_tokens(prover, base, err);
    return status == HR_OK ? hr_paths_check(base, NULL, err) : status;
}

/* ---- size */

/* Makes the base smaller by one step; false: it cannot be smaller. */
static bool reduce(hr_prover *prover)
{
    hr_config *base = &prover->base;
    const bool has_any_length = prover->draws_tokens || !*hr_config_data_of(base).train_rows;
    if (!*base->model.from && base->model.n_layers > LAYERS_LEAST) {
        base->model.n_layers = LAYERS_LEAST;
        prover->whole.layer_count = LAYERS_LEAST;
        *base->train.freeze = *base->train.param_groups = 0; /* may name absent layers */
    } else if (base->train.batch > BATCH_LEAST && !*base->data.fixed_batch) {
        base->train.batch = BATCH_LEAST;
    } else if (has_any_length && base->train.seq_len / 2 >= TOKENS_LEAST) {
        base->train.seq_len /= 2;
    } else {
        return false;
    }
    return prover->is_reduced = true;
}

static void describe_reduction(const hr_prover *prover, const hr_error *why)
{
    const hr_config *base = &prover->base, *recipe = &prover->recipe;
    hr_writer writer = { prover->report->reduced, sizeof prover->report->reduced };
    hr_put(&writer, "proven on");
    if (base->model.n_layers != recipe->model.n_layers)
        hr_put(&writer, " %lld layers instead of %lld,", (long long)base->model.n_layers,
               (long long)recipe->model.n_layers);
    if (base->train.batch != recipe->train.batch)
        hr_put(&writer, " a batch of %lld instead of %lld,", (long long)base->train.batch,
               (long long)recipe->train.batch);
    if (base->train.seq_len != recipe->train.seq_len)
        hr_put(&writer, " %lld tokens instead of %lld,", (long long)base->train.seq_len,
               (long long)recipe->train.seq_len);
    hr_put(&writer, " because the reference of the whole recipe does not fit: %.200s",
           why->message);
}

static hr_status plan_reference(hr_prover *prover, double *seconds, hr_error *err)
{
    const hr_status status = hr_prover_use(prover, &prover->whole, &prover->variant, err);
    return status == HR_OK ? hr_prover_plan(prover, &prover->variant, seconds, err) : status;
}

static void describe(hr_prover *prover)
{
    const hr_config *base = &prover->base;
    const hr_plan_answer *answer = &prover->answer;
    char parameters[HR_COUNT_BYTES];
    prover->threads = answer->threads;
    snprintf(prover->report->configuration, sizeof prover->report->configuration,
             "%s, %s parameters, %lld layer%s, batch %lld x %lld tokens, %s, %s kernels, %d "
             "thread%s",
             hr_family_of(base)->name, hr_count_print(answer->parameters, parameters),
             (long long)base->model.n_layers, base->model.n_layers == 1 ? "" : "s",
             (long long)base->train.batch, (long long)base->train.seq_len,
             hr_format_name(base->train.dtype), answer->rung, answer->threads,
             answer->threads == 1 ? "" : "s");
}

hr_status hr_proof_recipe_choose(hr_prover *prover, double *seconds, hr_error *err)
{
    hr_error first = { .status = HR_OK };
    set_base(prover);
    hr_status status = choose_data(prover, err);
    if (status == HR_OK) status = plan_reference(prover, seconds, err);
    if (status == HR_NO_FIT) first = *err;
    while (status == HR_NO_FIT && reduce(prover)) {
        status = hr_config_check(&prover->base, err);
        if (status == HR_OK && prover->draws_tokens)
            status = hr_prover_draw_tokens(prover, &prover->base, err);
        if (status == HR_OK) status = plan_reference(prover, seconds, err);
    }
    if (status == HR_NO_FIT) {
        first = *err;
        return hr_fail(err, HR_NO_FIT,
                       "the reference keeps everything and does not fit, even with %lld layers and "
                       "%lld x %lld tokens: %.300s",
                       (long long)prover->base.model.n_layers, (long long)prover->base.train.batch,
                       (long long)prover->base.train.seq_len, first.message);
    }
    if (status != HR_OK) return status;
    if (prover->is_reduced) describe_reduction(prover, &first);
    describe(prover);
    return HR_OK;
}
