/* SPDX-License-Identifier: Apache-2.0 */
/* prove/prover.c - the runs of a proof. */
#include "prove/prover.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "base/random.h"
#include "base/writer.h"
#include "plan/strategy_file.h"

bool hr_proof_declines(hr_proof *proof, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(proof->reason, sizeof proof->reason, format, values);
    va_end(values);
    return false;
}

static hr_status write_strategy(const hr_prover *prover, const hr_strategy *strategy,
                                char path[HR_PATH_BYTES], hr_error *err)
{
    char text[HR_STRATEGY_TEXT_BYTES];
    hr_writer writer = { text, sizeof text };
    hr_file_out out;
    hr_strategy_print(&prover->base, strategy, &writer);
    hr_status status = hr_path_join(prover->directory, "strategy.yaml", path, HR_PATH_BYTES, err);
    if (status == HR_OK) status = hr_file_begin(&out, prover->directory, "strategy.yaml", err);
    if (status == HR_OK) status = hr_file_append(&out, text, writer.used, err);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}

hr_status hr_prover_use(hr_prover *prover, const hr_strategy *strategy, hr_config *config,
                        hr_error *err)
{
    *config = prover->base;
    config->memory.micro_batch = config->memory.loss_chunk = 0;
    config->memory.recompute = HR_RECOMPUTE_AUTO;
    config->memory.moments = config->memory.weights = HR_PLACE_HOST;
    return write_strategy(prover, strategy, config->memory.strategy, err);
}

hr_strategy hr_prover_strategy(hr_prover *prover)
{
    hr_strategy strategy = prover->whole;
    strategy.recompute_set = prover->strategy.recompute_set;
    memset(strategy.recompute_set, 0,
           (size_t)strategy.layer_count * sizeof *strategy.recompute_set);
    return strategy;
}

hr_status hr_prover_plan(hr_prover *prover, const hr_config *config, double *seconds, hr_error *err)
{
    const hr_plan_outputs outputs = { .size = sizeof outputs,
                                      .calibrations = prover->options->calibrations };
    const hr_status status = hr_plan_make(config, &outputs, &prover->answer, err);
    if (status == HR_OK) *seconds = prover->answer.step_seconds;
    return status;
}

/* ---- tokens */

static int32_t draw_token(const hr_config *config, int64_t index)
{
    const uint64_t seed = (uint64_t)config->train.seed;
    return (int32_t)hr_random_below(hr_random_mix(seed ^ hr_random_mix((uint64_t)index)),
                                    (uint64_t)config->model.vocab_size);
}

/* Appends the tokens of all rows, or their targets: the next tokens, none after the last of
 * several. */
static hr_status put_tokens(hr_file_out *out, const hr_config *config, int64_t count, bool targets,
                            hr_error *err)
{
    enum { LABEL_IGNORED = -100 };
    int32_t ids[1024];
    const int64_t most = sizeof ids / sizeof *ids, T = config->train.seq_len;
    hr_status status = HR_OK;
    for (int64_t first = 0, part; first < count && status == HR_OK; first += part) {
        part = hr_min(most, count - first);
        for (int64_t i = 0; i < part; i++)
            ids[i] = targets && T > 1 && (first + i + 1) % T == 0
                         ? LABEL_IGNORED
                         : draw_token(config, first + i + targets);
        status = hr_file_append(out, ids, part * (int64_t)sizeof *ids, err);
    }
    return status;
}

hr_status hr_prover_draw_tokens(const hr_prover *prover, hr_config *config, hr_error *err)
{
    char name[64], header[512];
    uint64_t header_bytes;
    hr_file_out out;
    const int64_t T = config->train.seq_len, rows = config->train.batch * prover->steps;
    const int64_t bytes = rows * T * (int64_t)sizeof(int32_t);
    snprintf(name, sizeof name, "tokens-%lldx%lld.safetensors", (long long)rows, (long long)T);
    snprintf(header, sizeof header,
             "{\"input_ids\":{\"dtype\":\"I32\",\"shape\":[%lld,%lld],\"data_offsets\":[0,%lld]},"
             "\"labels\":{\"dtype\":\"I32\",\"shape\":[%lld,%lld],\"data_offsets\":[%lld,%lld]}}",
             (long long)rows, (long long)T, (long long)bytes, (long long)rows, (long long)T,
             (long long)bytes, (long long)(2 * bytes));
    while (strlen(header) % 8) strcat(header, " ");
    header_bytes = strlen(header);
    *config->data.fixed_batch = *config->data.valid = 0;
    config->data.documents = HR_DOCUMENTS_JOINED;
    hr_status status = hr_path_join(prover->directory, name, config->data.train, HR_PATH_BYTES,
                                    err);
    if (status == HR_OK) status = hr_file_begin(&out, prover->directory, name, err);
    if (status == HR_OK) status = hr_file_append(&out, &header_bytes, sizeof header_bytes, err);
    if (status == HR_OK) status = hr_file_append(&out, header, (int64_t)header_bytes, err);
    if (status == HR_OK) status = put_tokens(&out, config, rows * T, false, err);
    if (status == HR_OK) status = put_tokens(&out, config, rows * T, true, err);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}

/* ---- runs */

static void tell(const hr_prover *prover, const char *work, int64_t done, int64_t total)
{
    const hr_prove_events *events = &prover->options->events;
    if (events->working) events->working(events->context, prover->proof, work, done, total);
}

static void show_preparing(void *context, const char *work, int64_t done, int64_t total)
{
    tell(context, work, done, total);
}

static void show_step(void *context, const hr_train_step *step)
{
    const hr_prover *prover = context;
    tell(prover, "training steps", step->step, prover->steps);
}

/* The device of a run that masks explicitly; the mask is that of the config of the run. */
static const hr_device *mask(void *context, const hr_device *device, hr_pool *pool)
{
    hr_tracer *tracer = context;
    hr_prover *prover = tracer->prover;
    return hr_masked_device_open(&prover->masked, &prover->variant, prover->selects_all, device,
                                 pool);
}

hr_status hr_prover_run(hr_prover *prover, const hr_config *config, const hr_observer *observer,
                        bool fresh, hr_error *err)
{
    const hr_train_options options = {
        .size = sizeof options,
        .events = { .context = prover,
                    .preparing = show_preparing,
                    .working = show_preparing,
                    .step = show_step },
        .calibrations = prover->options->calibrations,
        .cache_limit_bytes = prover->options->cache_limit_bytes,
        .fresh = fresh,
        .interrupts = prover->options->interrupts,
    };
    const hr_status status = hr_train_observed(config, &options, observer, &prover->result, err);
    if (status != HR_INTERRUPTED) return status;
    return hr_fail(err, HR_INTERRUPTED, "interrupted in the proof %s; its files are removed",
                   prover->proof);
}

void hr_prover_disturb(const hr_prover *prover, hr_tracer *tracer)
{
    const hr_prove_fault *fault = prover->fault;
    if (!fault || strcmp(fault->proof, prover->proof) != 0) return;
    tracer->disturb = fault->disturb;
    tracer->disturbing = fault->context;
}

static hr_status trace(hr_prover *prover, const hr_config *config, hr_values *starts, hr_error *err)
{
    hr_tracer *tracer = &prover->tracer;
    hr_observer observer = hr_tracer_observer(tracer, tracer->trace->steps);
    if (prover->masks) observer.device = mask;
    if (starts) observer.services = hr_values_services(starts);
    const hr_status status = hr_prover_run(prover, config, &observer, true, err);
    return status == HR_OK ? hr_tracer_finish(tracer, err) : status;
}

hr_status hr_prover_trace(hr_prover *prover, const hr_config *config, hr_trace *traced,
                          int64_t steps, bool values, hr_values *notes, hr_error *err)
{
    traced->steps = steps;
    traced->has_values = values;
    prover->tracer = (hr_tracer){ .trace = traced,
                                  .writes = true,
                                  .ignores_values = !values,
                                  .notes = notes,
                                  .prover = prover,
                                  .buffer = prover->buffer };
    return trace(prover, config, NULL, err);
}

hr_status hr_prover_trace_from(hr_prover *prover, const hr_config *config, hr_trace *traced,
                               hr_values *starts, hr_error *err)
{
    traced->steps = 1;
    traced->has_values = false;
    prover->tracer = (hr_tracer){ .trace = traced,
                                  .writes = true,
                                  .ignores_values = true,
                                  .prover = prover,
                                  .look = prover->look,
                                  .looking = prover->looking,
                                  .buffer = prover->buffer };
    hr_prover_disturb(prover, &prover->tracer);
    return trace(prover, config, starts, err);
}

hr_status hr_prover_compare(hr_prover *prover, const hr_config *config, hr_trace *traced,
                            double rounding, hr_values *starts, hr_error *err)
{
    prover->tracer = (hr_tracer){ .trace = traced,
                                  .norm_wise = rounding > 0,
                                  .floor = rounding * hr_trace_average(traced),
                                  .ignores_values = rounding > 0 || !traced->has_values,
                                  .buffer = prover->buffer };
    hr_prover_disturb(prover, &prover->tracer);
    hr_observer observer = hr_tracer_observer(&prover->tracer, rounding > 0 ? 1 : traced->steps);
    if (starts) observer.services = hr_values_services(starts);
    const hr_status status = hr_prover_run(prover, config, &observer, true, err);
    return status == HR_OK ? hr_tracer_finish(&prover->tracer, err) : status;
}

hr_status hr_prover_reference(hr_prover *prover, hr_error *err)
{
    const char *name = prover->proof;
    if (prover->has_reference) return HR_OK;
    prover->proof = "reference";
    hr_status status = hr_prover_use(prover, &prover->whole, &prover->variant, err);
    if (status == HR_OK)
        status = hr_prover_trace(prover, &prover->variant, &prover->reference, prover->steps, true,
                                 NULL, err);
    prover->has_reference = status == HR_OK;
    if (status == HR_OK) prover->steps = prover->report->steps = prover->reference.steps;
    prover->proof = name;
    return status;
}

/* ---- directory */

typedef struct {
    const char *path;
    char found[HR_PATH_BYTES]; /* the first directory in it; empty: none */
} first_directory;

static bool find_directory(void *context, const char *name)
{
    first_directory *first = context;
    hr_error ignored;
    if (hr_path_join(first->path, name, first->found, sizeof first->found, &ignored) == HR_OK &&
        hr_file_is_directory(first->found))
        return false;
    *first->found = 0;
    return true;
}

/* Descends to a directory without directories, removes it, and begins again. */
hr_status hr_prover_remove(const char *path, hr_error *err)
{
    enum { DIRECTORIES_MOST = 4096 };
    hr_status status = HR_OK;
    for (int32_t i = 0; i < DIRECTORIES_MOST && status == HR_OK; i++) {
        char deepest[HR_PATH_BYTES];
        snprintf(deepest, sizeof deepest, "%s", path);
        first_directory first = { .path = deepest, .found = "" };
        for (int32_t depth = 0; depth < DIRECTORIES_MOST; depth++) {
            status = hr_directory_list(deepest, find_directory, &first, err);
            if (status != HR_OK || !*first.found) break;
            snprintf(deepest, sizeof deepest, "%s", first.found);
            *first.found = 0;
        }
        if (status == HR_OK) status = hr_directory_remove(deepest, NULL, err);
        if (!strcmp(deepest, path)) break;
    }
    return status;
}
