/* SPDX-License-Identifier: Apache-2.0 */
/* infer/inference.c - plans, allocates, seals, loads and runs a model. Independent of the task. */
#include "infer/inference.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/path.h"
#include "base/threads.h"
#include "checkpoint/load.h"
#include "hf/hf_adapter.h"
#include "hf/hf_config.h"
#include "mem/limits.h"
#include "ops/backends.h"
#include "ops/host/host.h"
#include "sections/assemble.h"

static bool has(const char *folder, const char *name)
{
    char path[HR_PATH_BYTES];
    hr_error ignored;
    return hr_path_join(folder, name, path, sizeof path, &ignored) == HR_OK && hr_file_exists(path);
}

/* The folder of a run that trained adapters has no model. */
static hr_status check_folder(const char *folder, hr_error *err)
{
    const bool adapts = has(folder, "adapter_config.json") || has(folder, "npt_config.json");
    if (has(folder, "config.json") || !adapts) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%.300s has adapters and no model; name the folder of their base, and add "
                   "--adapter %.300s",
                   folder, folder);
}

/* Reads the keys of a folder of adapters into a config, and the path of its file. */
static hr_status read_adapter(hr_inference *s, int32_t which, hr_config *config, hr_error *err)
{
    char folder[HR_PATH_BYTES];
    double factor;
    hr_status status = hr_hf_adapter_split(s->request->adapters[which], folder, &factor, err);
    if (status == HR_OK) status = hr_config_set(config, "train.adapter.from", folder, err);
    if (status == HR_OK) status = hr_adapter_path(folder, s->paths[which], err);
    if (status == HR_OK) status = hr_config_adopt(config, err);
    config->train.adapter.factor = factor;
    return status;
}

/* Adds the adapters after the first. Not inlined: a config is large. */
static __attribute__((noinline)) hr_status read_more(hr_inference *s, hr_error *err)
{
    hr_config other = s->config;
    hr_config_adapter *last = &s->config.train.adapter;
    *other.model.from = 0; /* the base is known: its config.json is not read again */
    for (int32_t i = 1; i < s->request->adapter_count; i++) {
        const hr_status status = read_adapter(s, i, &other, err);
        if (status != HR_OK) return status;
        s->more[i - 1] = other.train.adapter;
        s->more[i - 1].next = NULL;
        if (last->kind == HR_ADAPTER_NPT || other.train.adapter.kind == HR_ADAPTER_NPT)
            return hr_fail(err, HR_USAGE,
                           "--adapter %.200s: NPT adapters change what a layer computes, so they "
                           "do not add up with others",
                           s->request->adapters[i]);
        if (last->dora || other.train.adapter.dora || *other.train.adapter.modules_to_save)
            return hr_fail(err, HR_USAGE,
                           "--adapter %.200s: several adapters add up only if none has magnitudes "
                           "(DoRA), and only the first may have modules that are trained whole",
                           s->request->adapters[i]);
        last->next = &s->more[i - 1];
        last = &s->more[i - 1];
    }
    return HR_OK;
}

/* Switches layers between their adapters and the standard form. */
static hr_status switch_layers(hr_inference *s, hr_error *err)
{
    hr_config_adapter *adapter = &s->config.train.adapter;
    const char *layers = s->request->npt_layers;
    if (!layers) return HR_OK;
    if (adapter->kind != HR_ADAPTER_NPT)
        return hr_fail(err, HR_USAGE, "--npt-layers needs --adapter with a folder of NPT adapters");
    if (strlen(layers) >= sizeof adapter->switched)
        return hr_fail(err, HR_USAGE, "--npt-layers has more than %d characters",
                       (int)sizeof adapter->switched - 1);
    snprintf(adapter->switched, sizeof adapter->switched, "%s", layers);
    return HR_OK; /* hr_assembly_begin checks them */
}

hr_status hr_inference_begin(hr_inference *s, hr_error *err)
{
    hr_config *config = &s->config;
    const int32_t adapters = s->request->adapter_count;
    if (!s->request->folder || !*s->request->folder)
        return hr_fail(err, HR_USAGE, "the path of the model is empty; give a folder");
    if (adapters < 0 || adapters > HR_INFER_ADAPTERS_MAX)
        return hr_fail(err, HR_USAGE, "%d adapters are given, at most %d are possible", adapters,
                       HR_INFER_ADAPTERS_MAX);
    if (s->request->format < HR_FORMAT_FP32 || s->request->format > HR_FORMAT_FP16 ||
        s->request->weights < HR_WEIGHTS_COMPUTE || s->request->weights > HR_WEIGHTS_AUTO ||
        s->request->place < HR_PLACE_HOST || s->request->place > HR_PLACE_AUTO)
        return hr_fail(err, HR_USAGE,
                       "format %d, weights %d, place %d: each takes a value of its enum in "
                       "headroom/config.h",
                       s->request->format, s->request->weights, s->request->place);
    hr_config_default(config);
    s->backend = hr_backend_find(HR_BACKEND_DEFAULT);
    hr_status status = hr_threads_choose(s->request->threads, &s->threads, err);
    if (status == HR_OK)
        status = hr_cpu_choose("--kernels", s->request->kernels, hr_cpu_detect(), &s->cpu_mask,
                               err);
    if (status == HR_OK) status = check_folder(s->request->folder, err);
    if (status == HR_OK) status = hr_config_set(config, "model.from", s->request->folder, err);
    if (status == HR_OK && !s->request->adapter_count) status = hr_config_adopt(config, err);
    if (status == HR_OK && s->request->adapter_count) status = read_adapter(s, 0, config, err);
    if (status == HR_OK && s->request->adapter_count > 1) status = read_more(s, err);
    if (status == HR_OK) status = switch_layers(s, err);
    if (status == HR_OK) status = hr_weights_in_check(s->request->folder, err);
    config->train.dtype = s->request->format;
    config->model.weights = s->request->weights == HR_WEIGHTS_AUTO ? config->stored_weights
                                                                   : s->request->weights;
    config->memory.weights = (hr_place)s->request->place;
    config->train.batch = 1;
    if (status == HR_OK) /* the input is token ids, so any vocabulary is accepted */
        status = hr_config_set(config, "data.tokenizer", "words", err);
    return status;
}

hr_status hr_inference_find_ends(hr_inference *s, hr_error *err)
{
    return hr_hf_read_ends(s->request->folder, &s->config, &s->ends, err);
}

/* ---- text */

/* Finds the file or directory of the tokenizer; null: tokens are bytes. */
static hr_status find_tokenizer(const hr_inference *s, const char *instead, const char **path,
                                hr_error *err)
{
    const char *asked = s->request->tokenizer;
    *path = NULL;
    if (asked && strcmp(asked, "bytes") != 0) *path = asked;
    else if (!asked && hr_hf_has_tokenizer(s->request->folder)) *path = s->request->folder;
    if (*path || asked || s->config.model.vocab_size == UINT8_MAX + 1) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s has no tokenizer for its %lld tokens; use %s or --tokenizer FILE",
                   s->request->folder, (long long)s->config.model.vocab_size, instead);
}

hr_status hr_inference_open_text(hr_inference *s, const char *instead, hr_tokens_sink *sink,
                                 void *context, hr_error *err)
{
    const char *path;
    hr_tokens_facts facts;
    hr_status status = find_tokenizer(s, instead, &path, err);
    if (status != HR_OK || !path) return status;
    status = hr_tokens_probe(path, &facts, err);
    if (status == HR_OK)
        status = hr_memory_region_open(s->memory, "the tokenizer", facts.bytes, &s->tokens_region,
                                       err);
    if (status != HR_OK) return status;
    memset(s->tokens_region.base, 0, (size_t)facts.bytes); /* touch all pages, because the plan
                                                            * counts all of them */
    s->tokens_region.used = facts.kept;
    status = hr_tokens_open(&s->tokens, s->tokens_region.base, facts.bytes, path, true, sink,
                            context, err);
    if (status != HR_OK || hr_tokens_count(s->tokens) <= s->config.model.vocab_size) return status;
    return hr_fail(err, HR_USAGE,
                   "%s has %lld tokens, the model in %s has %lld: use its own tokenizer", path,
                   (long long)hr_tokens_count(s->tokens), s->request->folder,
                   (long long)s->config.model.vocab_size);
}

void hr_inference_end_text(hr_inference *s)
{
    if (s->tokens) hr_memory_region_trim(s->memory, &s->tokens_region);
}

/* ---- the plan */

static bool has_away(const hr_inference *s)
{
    return s->compiled.plan.spaces[HR_SPACE_BASE].bytes > 0;
}

static int64_t tables_bytes(const hr_inference *s)
{
    const hr_program *program = &s->compiled.program;
    const int64_t alignment = 8 * 64;
    const int64_t sources = 1 + s->request->adapter_count;
    const int64_t stream = has_away(s) ? hr_weights_stream_bytes(hr_weights_width_most(&s->config))
                                       : 0;
    return hr_executor_bytes(program) + sources * hr_weights_in_bytes(program) + stream +
           s->own_bytes + alignment;
}

static int64_t reading_bytes(const hr_inference *s)
{
    int64_t most = hr_weights_in_scratch_bytes(s->request->folder);
    for (int32_t i = 0; i < s->request->adapter_count; i++)
        most = hr_max(most, hr_weights_in_scratch_bytes(s->paths[i]));
    return most;
}

static bool is_planned(hr_config *config, int64_t tokens)
{
    config->train.seq_len = tokens;
    return hr_config_check(config, NULL) == HR_OK;
}

/* If even one token cannot be planned, the length is not the problem: hr_inference_plan reports the
 * error. */
int64_t hr_inference_longest(hr_inference *s, int64_t tokens)
{
    int64_t least = 1, most = tokens;
    if (is_planned(&s->config, tokens) || !is_planned(&s->config, least)) return tokens;
    while (most - least > 1) {
        const int64_t middle = least + (most - least) / 2;
        *(is_planned(&s->config, middle) ? &least : &most) = middle;
    }
    return least;
}

hr_status hr_inference_plan(hr_inference *s, hr_error *err)
{
    hr_status status = hr_config_check(&s->config, err);
    if (status == HR_OK)
        status = hr_memory_region_open(s->memory, "planning", hr_compile_bytes(&s->config),
                                       &s->planning, err);
    if (status != HR_OK) return status;
    memset(s->planning.base, 0, (size_t)s->planning.bytes); /* touch all pages, because the plan
                                                             * counts all of them */
    return HR_OK;
}

static void describe(const hr_inference *s)
{
    const hr_program *program = &s->compiled.program;
    s->result->arena_bytes_planned = s->compiled.plan.arena_bytes;
    s->result->process_bytes_planned = s->compiled.plan.process.bytes;
    for (int32_t p = 0; p < program->param_count; p++)
        s->result->weight_bytes += hr_tensor_bytes(&program->tensors[program->params[p].weight]);
}

hr_status hr_inference_fit(hr_inference *s, int64_t own_bytes, const char *tokens,
                           const char *instead, hr_error *err)
{
    const hr_memory *memory = s->memory;
    const int64_t budget = s->request->budget, available = hr_room_available(budget);
    const hr_process_base base = hr_memory_process(memory);
    hr_plan *plan = &s->compiled.plan;
    s->own_bytes = own_bytes;
    const int64_t planning = hr_round_up(s->planning.bytes, hr_page_bytes());
    const hr_account_region regions[] = {
        { memory->regions_bytes - planning, HR_PHASE_PREPARE, HR_PHASE_RUN },
        { memory->regions_bytes_most, HR_PHASE_PLAN, HR_PHASE_PLAN },
        { s->planning.used, HR_PHASE_PREPARE, HR_PHASE_RUN }, /* program and plan */
        { tables_bytes(s), HR_PHASE_READ, HR_PHASE_RUN },
        { reading_bytes(s), HR_PHASE_READ, HR_PHASE_READ },
    };
    plan->process.has_file = has_away(s);
    hr_account_regions(&base, regions, sizeof regions / sizeof *regions, s->threads,
                       hr_cpu_rung_name(s->cpu_mask), plan->arena_bytes, &plan->process);
    const int64_t needed = hr_account_needed(budget, base.page_bytes, plan->process.bytes,
                                             s->threads, has_away(s));
    if (needed <= available) {
        hr_memory_region_trim(s->memory, &s->planning);
        describe(s);
        return HR_OK;
    }
    /* What is not the arena, such as planning, no other option makes smaller. */
    hr_account rest = plan->process;
    char there[64], wanted[64], others[192] = "";
    hr_account_regions(&base, regions, sizeof regions / sizeof *regions, s->threads,
                       hr_cpu_rung_name(s->cpu_mask), 0, &rest);
    const bool may_store = s->config.stored_weights != s->config.model.weights;
    if (hr_account_needed(budget, base.page_bytes, rest.bytes, s->threads, has_away(s)) <=
        available)
        snprintf(others, sizeof others, ", or try %s%s%s%s", instead,
                 has_away(s) ? "" : ", --weights-in file", may_store ? ", --weights auto" : "",
                 s->config.train.dtype == HR_FORMAT_BF16 ? "" : ", --dtype bf16");
    return hr_fail(err, HR_NO_FIT,
                   "%s and %lld %s need at least %s, %s are available; use --budget %lld%s",
                   s->request->folder, (long long)s->config.train.seq_len, tokens,
                   hr_bytes_print(needed, wanted), hr_bytes_print(available, there),
                   (long long)needed, others);
}

/* ---- the run */

/* Bytes of weights that an iteration of a section reads. */
static int64_t read_bytes_of(const hr_inference *s, hr_loop_id section)
{
    const hr_program *program = &s->compiled.program;
    const int32_t l = hr_program_loop(program, section);
    int64_t bytes = 0;
    if (l == HR_NONE) return 0;
    for (int32_t i = program->loops[l].step_first; i <= program->loops[l].step_last; i++)
        if (hr_step_op(program, &program->steps[i])->transfer == HR_TRANSFER_FETCH_BEGIN)
            bytes += hr_weights_in_bytes_of_tensor(&s->weights, program->steps[i].in[0]);
    return bytes;
}

/* What reading weights for each use will cost, as far as the disk is concerned. */
static void tell(const hr_inference *s)
{
    char line[HR_ERROR_BYTES], size[HR_COUNT_BYTES];
    const hr_infer_request *request = s->request;
    if (!request->note) return;
    if (hr_weights_stream_note(s->stream, line)) request->note(request->working_context, line);
    const bool answers = read_bytes_of(s, HR_LOOP_ANSWER) > 0;
    const int64_t bytes = read_bytes_of(s, answers ? HR_LOOP_ANSWER : HR_LOOP_SEQUENCES);
    const double rate = hr_weights_stream_rate(s->stream);
    if (rate <= 0 || bytes == 0) return;
    const double seconds = (double)bytes / rate;
    snprintf(line, sizeof line,
             "weights stay in their files: each %s reads %s, which takes %.3g s at %.0f MB/s: "
             "at most %.3g %s",
             answers ? "token" : "pass", hr_size_print(bytes, size), seconds, 1e-6 * rate,
             answers ? 1 / seconds : 60 / seconds, answers ? "tokens/s" : "passes a minute");
    request->note(request->working_context, line);
}

static hr_status open_stream(hr_inference *s, hr_error *err)
{
    s->stream = hr_weights_stream_place(&s->tables, hr_weights_width_most(&s->config));
    if (!s->stream) return hr_fail(err, HR_FAILURE, "out of memory for reading weights");
    s->transfers.base = hr_weights_stream_source(s->stream);
    const hr_status status = hr_weights_stream_open(s->stream, &s->weights, err);
    if (status == HR_OK) tell(s);
    return status;
}

hr_status hr_inference_open(hr_inference *s, hr_error *err)
{
    const hr_program *program = &s->compiled.program;
    hr_region reading;
    hr_status status = hr_memory_region_open(s->memory, "tables of the run", tables_bytes(s),
                                             &s->tables, err);
    s->executor.program = program;
    if (status == HR_OK) status = hr_executor_place(&s->tables, &s->executor, err);
    if (status == HR_OK)
        status = hr_memory_region_open(s->memory, "reading the names of tensors", reading_bytes(s),
                                       &reading, err);
    if (status != HR_OK) return status;
    status = hr_weights_in_open(&s->weights, program, HR_PART_MODEL, s->request->folder,
                                s->cpu_mask, &s->tables, &reading, err);
    for (int32_t i = 0; i < s->request->adapter_count && status == HR_OK; i++) {
        reading.used = 0;
        status = hr_weights_in_open(&s->adapters[i], program, HR_PART_ADAPTERS + i, s->paths[i],
                                    s->cpu_mask, &s->tables, &reading, err);
    }
    hr_memory_region_close(s->memory, &reading);
    return status == HR_OK && has_away(s) ? open_stream(s, err) : status;
}

hr_status hr_inference_refuse(hr_inference *s, hr_error *err)
{
    hr_error found;
    const bool was_compiled = s->compiled.plan.process.bytes > 0;
    if (!was_compiled || hr_inference_open(s, &found) != HR_CORRUPT) return HR_NO_FIT;
    return hr_fail(err, HR_CORRUPT, "%s", found.message);
}

void hr_inference_report_progress(const hr_inference *session, const char *work, int64_t done,
                                  int64_t total)
{
    const hr_infer_request *request = session->request;
    if (request->working) request->working(request->working_context, work, done, total);
}

static hr_status load(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    hr_inference *s = context;
    (void)executor, (void)step;
    const hr_host_attr *attr = call->attr;
    hr_inference_report_progress(s, "loading weights", attr->param,
                                 s->compiled.program.param_count);
    const hr_weights_place place = { call->out[0], call->out[1], call->out[HR_LOAD_SCALES] };
    const hr_param *param = &s->compiled.program.params[attr->param];
    const hr_weights_in *source = hr_param_is_in_adapters(param) ? &s->adapters[param->rule.which]
                                                                 : &s->weights;
    const hr_status status = hr_load(source, attr->param, &s->pool, place, call->scratch,
                                     attr->staging_bytes, s->request->interrupts, err);
    if (status != HR_INTERRUPTED) return status;
    return hr_fail(err, HR_INTERRUPTED, "interrupted while reading weights");
}

static const hr_service loading[] = { { HR_OP_initialize, HR_LOOP_LOAD, load, NULL } };

static bool should_stop(void *context)
{
    return hr_inference_is_interrupted(context);
}

hr_status hr_inference_take(hr_inference *s, hr_services services, hr_error *err)
{
    const hr_plan *plan = &s->compiled.plan;
    const int32_t threads = plan->process.threads;
    const int64_t stacks_bytes = hr_pool_bytes(threads);
    void *stacks;
    hr_executor_serve(&s->executor, (hr_services){ loading, 1, s });
    if (s->stream) hr_executor_serve(&s->executor, hr_transfer_services(&s->transfers));
    hr_executor_serve(&s->executor, services);
    hr_status status = hr_executor_check_services(&s->executor, err);
    hr_inference_report_progress(s, "allocating memory", 0, 0);
    if (status == HR_OK) status = hr_memory_stacks_open(s->memory, stacks_bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&s->pool, stacks, stacks_bytes, threads, err);
    if (status == HR_OK)
        status = hr_memory_arena_open(s->memory, &plan->process, plan->arena_bytes,
                                      s->request->interrupts, err);
    if (status == HR_INTERRUPTED)
        status = hr_fail(err, HR_INTERRUPTED, "interrupted before reading weights");
    if (status == HR_OK) status = hr_memory_seal(s->memory, &plan->process, err);
    if (status == HR_OK)
        status = hr_device_open(&s->devices, s->backend, &s->pool, s->cpu_mask, &s->executor.device,
                                err);
    if (status != HR_OK) return status;
    s->executor.plan = plan;
    s->executor.memory = s->memory;
    s->executor.pool = &s->pool;
    s->executor.stop = should_stop;
    s->executor.context = s;
    return HR_OK;
}

hr_status hr_inference_run(hr_inference *s, hr_loop_id section, double *seconds, hr_error *err)
{
    const int64_t start = hr_clock_ns();
    const hr_status status = hr_executor_run(&s->executor,
                                             hr_program_loop(s->executor.program, section), err);
    *seconds = (double)(hr_clock_ns() - start) * 1e-9;
    return status;
}

hr_status hr_inference_check_peak(hr_inference *s, hr_error *err)
{
    hr_infer_result *result = s->result;
    result->arena_bytes_used = s->memory->arena_bytes_used;
    result->process_bytes_measured = hr_memory_peak_bytes(s->memory);
    if (s->stream) {
        const hr_stream_times times = hr_weights_stream_times(s->stream);
        result->read_bytes = times.bytes;
        result->read_seconds = 1e-9 * (double)times.read_ns;
        result->read_waited_seconds = 1e-9 * (double)times.waited_ns;
    }
    if (!hr_process_is_exact() || result->process_bytes_measured <= result->process_bytes_planned)
        return HR_OK;
    return hr_fail(err, HR_BROKEN, "the plan was %lld bytes, the process used %lld",
                   (long long)result->process_bytes_planned,
                   (long long)result->process_bytes_measured);
}

void hr_inference_close(hr_inference *s)
{
    hr_weights_stream_close(s->stream);
    hr_weights_in_close(&s->weights);
    for (int32_t i = 0; i < HR_INFER_ADAPTERS_MAX; i++) hr_weights_in_close(&s->adapters[i]);
    hr_pool_close(&s->pool);
}
