/* SPDX-License-Identifier: Apache-2.0 */
/* generate/generate.c - from a folder and a prompt to tokens: plan, take the memory, seal, load,
 * go. */
#include "headroom/generate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/threads.h"
#include "ckpt/weights_in.h"
#include "dev/executor.h"
#include "generate/sampler.h"
#include "generate/stream.h"
#include "mem/limits.h"
#include "model/assemble.h"
#include "model/family.h"
#include "ops/host/host.h"
#include "plan/compile.h"
#include "train/load.h"

enum { CHUNK_MOST = 512 };

typedef struct {
    const hr_generate_request *request;
    hr_generate_result *result;
    hr_config config;
    hr_memory *memory;
    hr_region planning, run_region;
    hr_compiled compiled;
    uint32_t cpu_mask;
    int32_t threads;
    hr_pool pool;
    hr_kernels kernels;
    hr_weights_in weights;
    hr_executor executor;
    int32_t load, caches, prompt, chunk, answer, token; /* loops */
    hr_span prompt_text;                                /* of the request's ids, text or file */
    hr_region prompt_region;
    int64_t prompt_count;
    bool is_text;
    int32_t *ids;  /* [positions] */
    int64_t count; /* ids so far */
    int64_t done;  /* ids whose keys and values are in the caches */
    hr_stream stream;
    bool ended;
} generation;

/* ---- the prompt */

enum { INPUT_BYTES = 1 << 20, WAIT_MS = 100 };

static bool is_interrupted(const generation *g)
{
    return g->request->interrupts && *g->request->interrupts > 0;
}

/* Standard input tells no length: a region of the most there may be. Nor when it comes: a signal
 * ends the wait, and one just before the wait is seen when that is over. */
static hr_status read_input(generation *g, hr_error *err)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    uint8_t *to = hr_region_take(&g->prompt_region, INPUT_BYTES, 1);
    int64_t used = 0;
    while (used < INPUT_BYTES) {
        if (is_interrupted(g)) return hr_fail(err, HR_INTERRUPTED, "interrupted: no prompt came");
        const int ready = poll(&input, 1, WAIT_MS);
        const bool waits = ready == 0 || (ready < 0 && errno == EINTR);
        if (waits) continue;
        const ssize_t got = ready < 0 ? -1
                                      : read(STDIN_FILENO, to + used, (size_t)(INPUT_BYTES - used));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return hr_fail(err, HR_USAGE, "standard input: %s", strerror(errno));
        if (got == 0) break;
        used += got;
    }
    if (used == INPUT_BYTES)
        return hr_fail(err, HR_USAGE, "standard input has 1 MiB or more; give --file");
    g->prompt_text = (hr_span){ to, used };
    return HR_OK;
}

static hr_status read_file(generation *g, hr_error *err)
{
    const char *path = g->request->prompt_file;
    int file;
    int64_t bytes;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    status = hr_memory_region_open(g->memory, "the prompt", hr_max(bytes, 1), &g->prompt_region,
                                   err);
    if (status == HR_OK) {
        uint8_t *to = hr_region_take(&g->prompt_region, hr_max(bytes, 1), 1);
        status = hr_file_read(file, path, 0, to, bytes, err);
        g->prompt_text = (hr_span){ to, bytes };
    }
    hr_file_close(&file);
    return status;
}

/* How many ids the list has; 0: it is none. */
static int64_t count_ids(const char *list)
{
    int64_t count = 0;
    for (const char *at = list;; at++) {
        char *end;
        if (*at < '0' || *at > '9') return 0;
        const long long id = strtoll(at, &end, 10);
        if (id > INT32_MAX || (*end && *end != ',')) return 0;
        count++;
        if (!*end) return count;
        at = end;
    }
}

/* Ids for a prompt, and text of an answer, need a tokenizer. */
static hr_status read_prompt(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    const int32_t given = (request->prompt != NULL) + (request->prompt_file != NULL) +
                          (request->prompt_ids != NULL);
    hr_status status = HR_OK;
    g->is_text = request->is_bytes || g->config.model.vocab_size == 256;
    if (given != 1)
        return hr_fail(err, HR_USAGE,
                       "give one of --prompt TEXT, --file FILE and --prompt-ids 29,1,11");
    if (!g->is_text && (!request->prompt_ids || !request->wants_ids))
        return hr_fail(err, HR_USAGE,
                       "%s: no tokenizer is known for its %lld tokens; give --prompt-ids and "
                       "--print-ids, or --tokenizer bytes",
                       request->folder, (long long)g->config.model.vocab_size);
    if (request->prompt_ids) {
        g->prompt_count = count_ids(request->prompt_ids);
        if (!g->prompt_count)
            return hr_fail(err, HR_USAGE,
                           "--prompt-ids takes whole numbers with commas between them, as 29,1,11");
        return HR_OK;
    }
    if (request->prompt)
        g->prompt_text = (hr_span){ request->prompt, (int64_t)strlen(request->prompt) };
    else if (strcmp(request->prompt_file, "-") != 0) status = read_file(g, err);
    else {
        status = hr_memory_region_open(g->memory, "the prompt", INPUT_BYTES, &g->prompt_region,
                                       err);
        if (status == HR_OK) status = read_input(g, err);
    }
    g->prompt_count = g->prompt_text.bytes;
    return status;
}

static hr_status take_ids(generation *g, hr_error *err)
{
    const uint8_t *text = g->prompt_text.base;
    const char *at = g->request->prompt_ids;
    char *end;
    for (; g->count < g->prompt_count; g->count++) {
        const long long id = at ? strtoll(at, &end, 10) : text[g->count];
        if (id >= g->config.model.vocab_size)
            return hr_fail(err, HR_USAGE,
                           "token %lld of the prompt is %lld; the model has ids 0 to %lld",
                           (long long)g->count + 1, id, (long long)g->config.model.vocab_size - 1);
        g->ids[g->count] = (int32_t)id;
        if (at) at = end + 1;
    }
    return HR_OK;
}

/* ---- the plan */

/* The whole text that is planned for. What the model's positions do not hold of the answer is
 * cut. */
static hr_status find_positions(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    const bool learned = hr_family_of(&g->config)->traits & HR_READS_POSITIONS;
    int64_t positions;
    if (g->prompt_count < 1)
        return hr_fail(err, HR_USAGE, "the prompt is empty; a model needs one token at least");
    if (request->tokens < 1)
        return hr_fail(err, HR_USAGE, "--max-tokens %lld: one token at least is needed",
                       (long long)request->tokens);
    if (!hr_checked_add(g->prompt_count, request->tokens, &positions) || positions > INT32_MAX / 2)
        return hr_fail(err, HR_USAGE, "--max-tokens %lld are too many", (long long)request->tokens);
    if (learned && g->prompt_count >= g->config.model.positions)
        return hr_fail(err, HR_USAGE,
                       "the prompt has %lld tokens, the model %lld positions: none is left for an "
                       "answer; shorten the prompt",
                       (long long)g->prompt_count, (long long)g->config.model.positions);
    if (learned) positions = hr_min(positions, g->config.model.positions);
    g->config.train.seq_len = positions;
    g->result->positions = positions;
    g->result->prompt_tokens = g->prompt_count;
    return HR_OK;
}

static hr_status check_stops(const hr_generate_request *request, hr_error *err)
{
    if (request->stop_count < 0 || request->stop_count > HR_STOPS_MAX)
        return hr_fail(err, HR_USAGE, "--stop may be given %d times, not %d", HR_STOPS_MAX,
                       request->stop_count);
    for (int32_t i = 0; i < request->stop_count; i++) {
        const size_t bytes = strnlen(request->stops[i], HR_STOP_BYTES);
        if (bytes == 0 || bytes == HR_STOP_BYTES)
            return hr_fail(err, HR_USAGE, "--stop takes a text of 1 to %d bytes",
                           HR_STOP_BYTES - 1);
    }
    return HR_OK;
}

static hr_status read_config(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    hr_config *config = &g->config;
    hr_config_default(config);
    hr_status status = hr_threads_choose(request->threads, &g->threads, err);
    if (status == HR_OK) status = hr_config_set(config, "model.from", request->folder, err);
    if (status == HR_OK) status = hr_config_adopt(config, err);
    if (status != HR_OK) return status;
    config->train.format = request->format;
    config->train.batch = 1;
    config->data.tokenizer = HR_TOKENIZER_WORDS; /* ids are given: any vocabulary will do */
    status = read_prompt(g, err);
    if (status == HR_OK) status = find_positions(g, err);
    if (status == HR_OK) status = hr_config_check(config, err);
    if (status == HR_OK) status = hr_sampler_check(&request->sampling, err);
    if (status == HR_OK) status = check_stops(request, err);
    return status == HR_OK ? hr_cpu_choose("--kernels", request->kernels, &g->cpu_mask, err)
                           : status;
}

static int64_t run_bytes(const generation *g)
{
    const hr_program *program = &g->compiled.program;
    const int64_t alignment = 4 * 64;
    return hr_executor_bytes(program) + hr_weights_in_bytes(program) +
           g->config.train.seq_len * (int64_t)sizeof(int32_t) + alignment;
}

static hr_status compile(generation *g, int64_t rows, hr_error *err)
{
    g->planning.used = 0;
    hr_status status = hr_compile_generation(&g->config, rows,
                                             hr_sampler_bytes(g->config.model.vocab_size),
                                             g->threads, &g->planning, &g->compiled, err);
    if (status != HR_OK) return status;
    const int64_t page = hr_page_bytes();
    const int64_t program_bytes = hr_round_up(g->planning.used, page);
    const int64_t prompt_bytes = hr_round_up(g->prompt_region.bytes, page);
    const int64_t tables = program_bytes + hr_round_up(run_bytes(g), page) + prompt_bytes;
    const int64_t reading = hr_round_up(hr_weights_in_scratch_bytes(g->request->folder), page);
    hr_plan *plan = &g->compiled.plan;
    plan->threads = g->threads;
    plan->rung = hr_cpu_rung_name(g->cpu_mask);
    plan->page_bytes = page;
    hr_memory_account(g->memory,
                      hr_max(hr_round_up(g->planning.bytes, page) + prompt_bytes, tables + reading),
                      tables, plan);
    return HR_OK;
}

/* As many rows of the prompt at a time as fit. */
static hr_status plan(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    const int64_t available = request->budget ? request->budget : hr_room_process_bytes();
    int64_t rows = 1, needed;
    hr_status status = hr_memory_region_open(g->memory, "planning", hr_compile_bytes(&g->config),
                                             &g->planning, err);
    if (status != HR_OK) return status;
    memset(g->planning.base, 0, (size_t)g->planning.bytes); /* touched whole, as it is accounted */
    while (!request->chunk && rows < CHUNK_MOST && rows < g->prompt_count) rows *= 2;
    if (request->chunk) rows = request->chunk;
    for (;; rows /= 2) {
        status = compile(g, hr_min(rows, g->config.train.seq_len), err);
        if (status != HR_OK) return status;
        const hr_plan *planned = &g->compiled.plan;
        needed = planned->process_bytes;
        if (!request->budget) needed += hr_process_kernel_bytes(needed, g->threads);
        if (needed <= available) break;
        if (rows > 1) continue;
        char there[64], wanted[64];
        return hr_fail(err, HR_NO_FIT,
                       "%s and %lld tokens need at least %s, there are %s; give a larger --budget, "
                       "fewer --max-tokens, or --format bf16",
                       request->folder, (long long)g->config.train.seq_len,
                       hr_bytes_print(needed, wanted), hr_bytes_print(available, there));
    }
    g->result->chunk = hr_min(rows, g->config.train.seq_len);
    hr_memory_region_trim(g->memory, &g->planning);
    return HR_OK;
}

static void describe(generation *g)
{
    const hr_program *program = &g->compiled.program;
    g->result->arena_bytes_planned = g->compiled.plan.arena_bytes;
    g->result->process_bytes_planned = g->compiled.plan.process_bytes;
    for (int32_t p = 0; p < program->param_count; p++)
        g->result->weight_bytes += hr_tensor_bytes(&program->tensors[program->params[p].weight]);
    for (int32_t s = 0; s < program->step_count; s++)
        for (int32_t k = 0; k < 2 && program->steps[s].op == HR_OP_cache_clear; k++)
            g->result->cache_bytes += hr_tensor_bytes(&program->tensors[program->steps[s].out[k]]);
}

/* ---- the steps of the host */

static hr_status load(generation *g, const hr_call *call, hr_error *err)
{
    const hr_host_attr *attr = call->attr;
    if (is_interrupted(g)) return HR_INTERRUPTED;
    return hr_load(&g->weights, attr->param, &g->pool, call->out[0], call->out[1], call->scratch,
                   attr->staging_bytes, g->request->interrupts, err);
}

/* The next rows: of the prompt, or the last token. */
static hr_status prompt(generation *g, hr_executor *executor, int32_t loop, const hr_call *call)
{
    const int64_t most = loop == g->chunk ? g->result->chunk : 1;
    const int64_t rows = hr_min(most, g->count - g->done);
    if (is_interrupted(g)) return HR_INTERRUPTED;
    executor->rows_here = rows;
    memcpy(call->out[0], g->ids + g->done, (size_t)rows * sizeof *g->ids);
    *(int32_t *)call->out[1] = (int32_t)g->done;
    g->done += rows;
    return HR_OK;
}

static void tell(generation *g, int32_t id)
{
    const hr_generate_request *request = g->request;
    int32_t certain = 0;
    bool stopped = false;
    if (g->is_text && !request->wants_ids) certain = hr_stream_add(&g->stream, (char)id, &stopped);
    if (request->told) request->told(request->context, id, g->stream.held, certain);
    hr_stream_drop(&g->stream, certain);
    if (!stopped) return;
    g->result->end = HR_END_STOP;
    g->stream.held_bytes = 0;
    g->ended = true;
}

/* Only the last chunk of a prompt is followed by a choice. */
static hr_status pick(generation *g, hr_executor *executor, int32_t loop, const hr_call *call,
                      hr_error *err)
{
    const hr_generate_request *request = g->request;
    if (g->done < g->count) return HR_OK;
    const int32_t id = hr_sampler_pick(&request->sampling, call->in[0], call->dtype,
                                       g->config.model.vocab_size, g->ids, g->count, call->scratch);
    if (id < 0)
        return hr_fail(err, HR_DIVERGED, "%s: the logits for token %lld are not finite",
                       request->folder, (long long)g->count + 1);
    g->ids[g->count++] = id;
    g->result->tokens++;
    tell(g, id);
    g->ended = g->ended || g->count == g->config.train.seq_len;
    if (g->ended && loop == g->token) executor->count[loop] = executor->turn[loop] + 1;
    return HR_OK;
}

static hr_status host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    generation *g = context;
    const int32_t loop = executor->program->steps[step].loop;
    switch (executor->program->steps[step].op) {
    case HR_OP_initialise: return load(g, call, err);
    case HR_OP_prompt: return prompt(g, executor, loop, call);
    case HR_OP_pick: return pick(g, executor, loop, call, err);
    default: return hr_fail(err, HR_FAILURE, "step %d is no step of the host", step);
    }
}

/* ---- the run */

static hr_status open_run(generation *g, hr_error *err)
{
    const hr_program *program = &g->compiled.program;
    hr_region reading;
    hr_status status = hr_memory_region_open(g->memory, "tables of the run", run_bytes(g),
                                             &g->run_region, err);
    g->executor.program = program;
    if (status == HR_OK) status = hr_executor_place(&g->run_region, &g->executor, err);
    if (status == HR_OK)
        status = hr_memory_region_open(g->memory, "reading the names of tensors",
                                       hr_weights_in_scratch_bytes(g->request->folder), &reading,
                                       err);
    if (status != HR_OK) return status;
    status = hr_weights_in_open(&g->weights, program, g->request->folder, &g->run_region, &reading,
                                err);
    hr_memory_region_close(g->memory, &reading);
    g->ids = hr_region_take(&g->run_region, g->config.train.seq_len, sizeof *g->ids);
    if (status == HR_OK && !g->ids)
        status = hr_fail(err, HR_FAILURE, "no room for the run's tables");
    if (status != HR_OK) return status;
    status = take_ids(g, err);
    if (status != HR_OK) return status;
    g->load = hr_program_loop(program, "load");
    g->caches = hr_program_loop(program, "caches");
    g->prompt = hr_program_loop(program, "prompt");
    g->chunk = hr_program_loop(program, "chunk");
    g->answer = hr_program_loop(program, "answer");
    g->token = hr_program_loop(program, "token");
    return HR_OK;
}

static hr_status take_memory(generation *g, hr_error *err)
{
    const hr_plan *planned = &g->compiled.plan;
    const int64_t stacks_bytes = hr_pool_bytes(planned->threads);
    void *stacks;
    hr_status status = hr_memory_stacks_open(g->memory, stacks_bytes, &stacks, err);
    if (status == HR_OK)
        status = hr_pool_open(&g->pool, stacks, stacks_bytes, planned->threads, err);
    if (status == HR_OK)
        status = hr_memory_arena_open(g->memory, planned, g->request->interrupts, err);
    if (status == HR_OK) status = hr_memory_seal(g->memory, planned, err);
    if (status != HR_OK) return status;
    hr_kernels_fill(&g->kernels, g->cpu_mask);
    g->executor.plan = planned;
    g->executor.memory = g->memory;
    g->executor.pool = &g->pool;
    g->executor.kernels = &g->kernels;
    g->executor.dtype = g->config.train.format == HR_FORMAT_BF16 ? HR_BF16 : HR_F32;
    g->executor.host = host;
    g->executor.context = g;
    return HR_OK;
}

static hr_status run_section(generation *g, int32_t section, double *seconds, hr_error *err)
{
    const int64_t start = hr_clock_ns();
    const hr_status status = hr_executor_run(&g->executor, section, err);
    *seconds = (double)(hr_clock_ns() - start) * 1e-9;
    return status;
}

static hr_status run(generation *g, hr_error *err)
{
    hr_generate_result *result = g->result;
    double clearing;
    g->executor.count[g->chunk] = (g->count + result->chunk - 1) / result->chunk;
    g->executor.count[g->token] = g->config.train.seq_len - g->count;
    result->end = g->config.train.seq_len < g->count + g->request->tokens ? HR_END_POSITIONS
                                                                          : HR_END_TOKENS;
    hr_status status = run_section(g, g->load, &result->load_seconds, err);
    if (status == HR_OK) status = run_section(g, g->caches, &clearing, err);
    if (status == HR_OK) status = run_section(g, g->prompt, &result->prompt_seconds, err);
    if (status == HR_OK && !g->ended)
        status = run_section(g, g->answer, &result->answer_seconds, err);
    if (status == HR_INTERRUPTED) {
        result->end = HR_END_INTERRUPT;
        status = HR_OK;
    }
    if (status == HR_OK && g->request->told)
        g->request->told(g->request->context, -1, g->stream.held, g->stream.held_bytes);
    return status;
}

static hr_status settle(generation *g, hr_error *err)
{
    hr_generate_result *result = g->result;
    result->arena_bytes_used = g->memory->arena_bytes_used;
    result->process_bytes_measured = hr_memory_peak_bytes(g->memory);
    if (!hr_process_is_exact() || result->process_bytes_measured <= result->process_bytes_planned)
        return HR_OK;
    return hr_fail(err, HR_BROKEN, "the process was planned at %lld bytes and used %lld",
                   (long long)result->process_bytes_planned,
                   (long long)result->process_bytes_measured);
}

/* Not inlined: what lies on the stack when the memory is opened is in the plan. */
static __attribute__((noinline)) hr_status generate_in(hr_memory *memory,
                                                       const hr_generate_request *request,
                                                       hr_generate_result *result, hr_error *err)
{
    generation g = { .request = request,
                     .result = result,
                     .memory = memory,
                     .stream = { .stops = request->stops, .stop_count = request->stop_count } };
    hr_status status = read_config(&g, err);
    if (status == HR_OK) status = plan(&g, err);
    if (status == HR_OK) describe(&g);
    if (status == HR_OK) status = open_run(&g, err);
    if (status == HR_OK) status = take_memory(&g, err);
    if (status == HR_OK) status = run(&g, err);
    if (status == HR_OK) status = settle(&g, err);
    hr_weights_in_close(&g.weights);
    hr_pool_close(&g.pool);
    return status;
}

hr_status hr_generate(const hr_generate_request *request, hr_generate_result *result, hr_error *err)
{
    hr_memory memory = { 0 };
    *result = (hr_generate_result){ .end = HR_END_TOKENS };
    hr_status status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = generate_in(&memory, request, result, err);
    hr_memory_close(&memory);
    return status;
}
