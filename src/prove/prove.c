/* SPDX-License-Identifier: Apache-2.0 */
/* prove/prove.c - the order of things: what is proven on, what it takes, each proof, the end. */
#include "prove/prove.h"

#include <linux/magic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/options.h"
#include "base/path.h"
#include "base/writer.h"
#include "model/family.h"
#include "prove/proof_recipe.h"
#include "prove/proofs.h"
#include "sections/assemble.h"

/* ---- selection */

static const hr_proof_kind *find_kind(const char *name)
{
    const hr_proof_kind *kind;
    for (int32_t i = 0; (kind = hr_proof_kind_at(i)); i++)
        if (!strcmp(kind->name, name)) return kind;
    return NULL;
}

static hr_status check_options(const hr_prove_options *options, hr_error *err)
{
    const hr_proof_kind *kind, *nearest = NULL;
    int32_t least = INT32_MAX;
    if (options->steps < 0 || options->steps > HR_PROVE_STEPS_MOST)
        return hr_fail(err, HR_USAGE, "--steps takes 1 to %d, got %lld", HR_PROVE_STEPS_MOST,
                       (long long)options->steps);
    if (!options->only || find_kind(options->only)) return HR_OK;
    for (int32_t i = 0; (kind = hr_proof_kind_at(i)); i++) {
        const int32_t cost = hr_word_cost(options->only, kind->name);
        if (cost < least) nearest = kind;
        least = hr_min(least, cost);
    }
    if (nearest)
        return hr_fail(err, HR_USAGE, "there is no proof %.40s; the nearest is %s", options->only,
                       nearest->name);
    return hr_fail(err, HR_USAGE,
                   "there is no proof %.40s; headroom prove --help lists all of them",
                   options->only);
}

static bool is_selected(const hr_prover *prover, const hr_proof_kind *kind)
{
    return !prover->options->only || !strcmp(prover->options->only, kind->name);
}

/* ---- memory and files */

static hr_status take_memory(hr_prover **taken, hr_memory *memory, const hr_config *config,
                             hr_error *err)
{
    const int64_t params = hr_model_limits_of(config).params + 1;
    const int64_t sets = 2 * config->model.n_layers * (int64_t)sizeof(hr_intermediates);
    const int64_t bytes = (int64_t)sizeof(hr_prover) + 3 * hr_trace_bytes(params) +
                          hr_values_bytes(2 * params) + sets +
                          2 * params * (int64_t)sizeof(int32_t) + HR_TRACE_BUFFER_BYTES + 16 * 64;
    hr_region region;
    hr_status status = hr_memory_region_open(memory, "proofs", bytes, &region, err);
    if (status != HR_OK) return status;
    hr_prover *prover = hr_region_take(&region, 1, sizeof *prover);
    if (!prover) return hr_fail(err, HR_FAILURE, "out of memory for the proofs");
    *prover = (hr_prover){ .memory = memory,
                           .recipe = *config,
                           .base = *config,
                           .param_max = params,
                           .reference.file = -1,
                           .own.file = -1,
                           .second.file = -1,
                           .values.file = -1 };
    prover->buffer = hr_region_take(&region, HR_TRACE_BUFFER_BYTES, 1);
    prover->whole.layer_count = (int32_t)config->model.n_layers;
    prover->whole.dw_first = true;
    prover->whole.recompute_set = hr_region_take(&region, config->model.n_layers,
                                                 sizeof *prover->whole.recompute_set);
    prover->strategy.recompute_set = hr_region_take(&region, config->model.n_layers,
                                                    sizeof *prover->strategy.recompute_set);
    prover->region = region;
    *taken = prover;
    if (prover->buffer && prover->whole.recompute_set && prover->strategy.recompute_set)
        return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for the proofs");
}

static hr_status make_directory(hr_prover *prover, hr_error *err)
{
    const char *above = prover->options->directory;
    hr_status status = hr_directory_check_writable(above, err);
    if (status == HR_OK)
        status = hr_path_join(above, "headroom-prove-XXXXXX", prover->directory,
                              sizeof prover->directory, err);
    if (status == HR_OK && !mkdtemp(prover->directory)) {
        *prover->directory = 0;
        status = hr_fail(err, HR_FAILURE, "%.600s: a temporary directory cannot be created in it",
                         above);
    }
    if (status != HR_OK) *prover->directory = 0;
    return status;
}

static hr_status open_files(hr_prover *prover, hr_error *err)
{
    const char *directory = prover->directory;
    hr_trace *traces[] = { &prover->reference, &prover->own, &prover->second };
    hr_status status = HR_OK;
    for (int32_t i = 0; i < 3 && status == HR_OK; i++)
        status = hr_trace_open(traces[i], directory, prover->param_max, &prover->region, err);
    if (status != HR_OK) return status;
    return hr_values_open(&prover->values, directory, 2 * prover->param_max, prover->buffer,
                          &prover->region, err);
}

/* Bytes of the largest files: the trace of the reference, a checkpoint or the file of states, and
 * for proofs with their own two runs a second trace. */
static hr_status check_disk(const hr_prover *prover, hr_error *err)
{
    char needed[64], there[64];
    struct statfs system;
    const int64_t trained = prover->answer.trained_parameters, states = HR_STATES_MAX / 2;
    const int64_t bytes = (2 * prover->steps + 2 * (1 + states)) * trained * (int64_t)sizeof(float);
    const int64_t free_bytes = hr_file_free_bytes(prover->directory);
    if (statfs(prover->directory, &system) == 0 && system.f_type == TMPFS_MAGIC)
        snprintf(prover->report->note, sizeof prover->report->note,
                 "%.200s is memory (tmpfs), beside the plan: the saved gradients and states take "
                 "up to %s of it; --dir gives a directory on a disk",
                 prover->options->directory, hr_bytes_print(bytes, needed));
    if (free_bytes < 0 || free_bytes >= bytes) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "%.500s: the gradients and states to compare need up to %s, %s are free; --dir "
                   "gives another directory",
                   prover->options->directory, hr_bytes_print(bytes, needed),
                   hr_bytes_print(free_bytes, there));
}

static void close_all(hr_prover *prover)
{
    hr_error ignored;
    hr_trace_close(&prover->reference);
    hr_trace_close(&prover->own);
    hr_trace_close(&prover->second);
    hr_values_close(&prover->values);
    if (*prover->directory) (void)!hr_prover_remove(prover->directory, &ignored);
}

/* ---- proofs */

/* Counts the runs and predicts their time, without running any. */
static hr_status predict(hr_prover *prover, double whole_seconds, hr_error *err)
{
    const hr_proof_kind *kind;
    hr_prove_report *report = prover->report;
    bool needs_reference = false;
    for (int32_t i = 0; (kind = hr_proof_kind_at(i)); i++) {
        hr_proof proof = { .name = kind->name };
        bool applies;
        double seconds = 0;
        hr_error refused;
        if (!is_selected(prover, kind)) continue;
        prover->runs = kind->runs;
        hr_status status = kind->prepare(prover, &proof, &applies, err);
        if (status != HR_OK && status != HR_NO_FIT) return status;
        if (status != HR_OK || !applies) continue;
        status = hr_prover_plan(prover, &prover->variant, &seconds, &refused);
        if (status != HR_OK && status != HR_NO_FIT)
            return hr_fail(err, status, "%s", refused.message);
        report->runs += prover->runs;
        report->predicted_seconds += seconds * (double)prover->steps * prover->runs + proof.seconds;
        needs_reference |= !kind->has_own;
    }
    if (!needs_reference) return HR_OK;
    report->runs++;
    report->predicted_seconds += whole_seconds * (double)prover->steps;
    return HR_OK;
}

/* What the comparison says about the proof. */
static void judge(const hr_prover *prover, hr_proof *proof)
{
    const hr_difference *found = &prover->tracer.found;
    proof->tensors = found->tensors;
    proof->elements = found->elements;
    proof->largest_absolute = found->absolute;
    proof->largest_relative = found->relative;
    proof->largest_ulps = found->ulps;
    snprintf(proof->tensor, sizeof proof->tensor, "%s", found->tensor);
    const bool passes = proof->bound > 0 ? found->relative <= proof->bound
                                         : found->different == 0 && found->relative == 0;
    proof->outcome = passes && found->tensors > 0 ? HR_PROOF_PASSED : HR_PROOF_FAILED;
    if (proof->outcome == HR_PROOF_PASSED) return;
    if (!found->tensors) snprintf(proof->reason, sizeof proof->reason, "nothing was compared");
    else snprintf(proof->reason, sizeof proof->reason, "%s", found->where);
}

static hr_status run_proof(hr_prover *prover, const hr_proof_kind *kind, hr_proof *proof,
                           hr_error *err)
{
    bool applies = false;
    const int64_t begun_ns = hr_clock_ns();
    prover->proof = kind->name;
    proof->name = kind->name;
    hr_status status = kind->has_own ? HR_OK : hr_prover_reference(prover, err);
    if (status == HR_OK) status = kind->prepare(prover, proof, &applies, err);
    if (status == HR_OK && !applies) {
        proof->outcome = HR_PROOF_DOES_NOT_APPLY;
        return HR_OK;
    }
    proof->steps = (int32_t)prover->steps;
    if (status == HR_OK)
        status = kind->run ? kind->run(prover, proof, err)
                           : hr_prover_compare(prover, &prover->variant, &prover->reference, 0,
                                               NULL, err);
    proof->seconds = (double)(hr_clock_ns() - begun_ns) * 1e-9;
    if (status == HR_OK) judge(prover, proof);
    if (status != HR_NO_FIT) return status;
    proof->outcome = HR_PROOF_NOT_RUN;
    snprintf(proof->reason, sizeof proof->reason, "%.*s", HR_PROOF_REASON_BYTES - 1, err->message);
    return HR_OK;
}

static hr_status run_proofs(hr_prover *prover, hr_error *err)
{
    const hr_proof_kind *kind;
    const hr_prove_events *events = &prover->options->events;
    hr_prove_report *report = prover->report;
    for (int32_t i = 0; (kind = hr_proof_kind_at(i)); i++) {
        if (!is_selected(prover, kind)) continue;
        hr_proof *proof = &report->proofs[report->proof_count];
        *proof = (hr_proof){ .outcome = HR_PROOF_NOT_RUN };
        const hr_status status = run_proof(prover, kind, proof, err);
        if (status != HR_OK) return status;
        report->proof_count++;
        report->passed += proof->outcome == HR_PROOF_PASSED;
        report->failed += proof->outcome == HR_PROOF_FAILED;
        report->not_applicable += proof->outcome == HR_PROOF_DOES_NOT_APPLY;
        report->not_run += proof->outcome == HR_PROOF_NOT_RUN;
        if (events->proved) events->proved(events->context, proof);
    }
    return HR_OK;
}

/* The status of all proofs together: the first failure counts, then the first that was not run. One
 * that was asked for by its name, and has nothing to prove, is no success. */
static hr_status conclude(const hr_prove_report *report, const char *only, hr_error *err)
{
    for (int32_t i = 0; i < report->proof_count; i++) {
        const hr_proof *proof = &report->proofs[i];
        if (proof->outcome == HR_PROOF_FAILED)
            return hr_fail(err, HR_BROKEN, "%s failed: %s", proof->name, proof->reason);
    }
    for (int32_t i = 0; i < report->proof_count; i++) {
        const hr_proof *proof = &report->proofs[i];
        if (proof->outcome == HR_PROOF_NOT_RUN)
            return hr_fail(err, HR_NO_FIT, "%s was not run: %s", proof->name, proof->reason);
    }
    if (only && report->not_applicable)
        return hr_fail(err, HR_USAGE, "%s does not apply to this recipe: %s", only,
                       report->proofs[0].reason);
    return HR_OK;
}

static hr_status prove(hr_prover *prover, hr_error *err)
{
    const hr_prove_events *events = &prover->options->events;
    double seconds = 0;
    hr_status status = make_directory(prover, err);
    if (status == HR_OK) status = hr_proof_recipe_choose(prover, &seconds, err);
    if (status == HR_OK) status = check_disk(prover, err);
    if (status == HR_OK) status = open_files(prover, err);
    if (status == HR_OK) status = predict(prover, seconds, err);
    if (status != HR_OK) return status;
    if (events->begun) events->begun(events->context, prover->report);
    status = run_proofs(prover, err);
    return status == HR_OK ? conclude(prover->report, prover->options->only, err) : status;
}

hr_status hr_prove_with(const hr_config *config, const hr_prove_options *options,
                        const hr_prove_fault *fault, hr_prove_report *report, hr_error *err)
{
    hr_memory memory = { 0 };
    hr_prover *prover = NULL;
    *report = (hr_prove_report){ .steps = 0 };
    hr_status status = check_options(options, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status != HR_OK) return status;
    status = take_memory(&prover, &memory, config, err);
    if (status == HR_OK) {
        prover->options = options;
        prover->report = report;
        prover->fault = fault;
        prover->steps = options->steps ? options->steps : HR_PROVE_STEPS_DEFAULT;
        status = prove(prover, err);
        close_all(prover);
    }
    hr_memory_close(&memory);
    return status;
}

hr_status hr_prove(const hr_config *config, const hr_prove_options *given, hr_prove_report *report,
                   hr_error *err)
{
    hr_prove_options options;
    const hr_status status = hr_options_take(&options, sizeof options, given, err);
    return status == HR_OK ? hr_prove_with(config, &options, NULL, report, err) : status;
}
