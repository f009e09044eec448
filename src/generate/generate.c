/* SPDX-License-Identifier: Apache-2.0 */
/* generate/generate.c - generates tokens from a model directory and a prompt: plans, allocates,
 * seals, loads and runs. */
#include "headroom/generate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "generate/sampler.h"
#include "generate/stream.h"
#include "infer/inference.h"
#include "model/family.h"
#include "ops/list.h"
#include "sections/assemble.h"

enum { CHUNK_MOST = 512 };

typedef struct {
    const hr_generate_request *request;
    hr_generate_result *result;
    hr_inference session;
    int32_t chunk, token; /* loop ids */
    hr_span prompt_text;  /* memory of the request's ids, text or file */
    hr_region prompt_region, id_region;
    int64_t prompt_count, id_room, id_count;
    int32_t
        *prompt_ids; /* [id_room], the first id_count valid, from the tokenizer; null: bytes, or a
                      * list of ids */
    int64_t document_end; /* token id of the tokenizer; -1: none */
    int32_t *ids;         /* [positions] */
    int64_t count;        /* prompt and generated ids so far */
    int64_t done;         /* ids whose keys and values are in the KV cache */
    hr_stream stream;
    bool ended, rejected; /* rejected: the receiver refused the output */
} generation;

/* ---- the prompt */

enum { INPUT_BYTES = 1 << 20, WAIT_MS = 100 };

/* Standard input has no known length, so its region has the maximum size. While waiting for input,
 * a signal ends the wait; a signal just before a wait is noticed when that wait times out. */
static hr_status read_input(generation *g, hr_error *err)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    uint8_t *to = hr_region_take(&g->prompt_region, INPUT_BYTES, 1);
    int64_t used = 0;
    while (used < INPUT_BYTES) {
        if (hr_inference_is_interrupted(&g->session))
            return hr_fail(err, HR_INTERRUPTED, "interrupted while waiting for the prompt");
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
        return hr_fail(err, HR_USAGE, "standard input has 1 MiB or more; use --file");
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
    status = hr_memory_region_open(g->session.memory, "the prompt", hr_max(bytes, 1),
                                   &g->prompt_region, err);
    if (status == HR_OK) {
        uint8_t *to = hr_region_take(&g->prompt_region, hr_max(bytes, 1), 1);
        status = hr_file_read(file, path, 0, to, bytes, err);
        g->prompt_text = (hr_span){ to, bytes };
    }
    hr_file_close(&file);
    return status;
}

/* Returns the number of ids in the list; 0: it is not a list of ids. */
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

static hr_status sink_ids(void *context, const uint32_t *ids, int64_t count, hr_error *err)
{
    generation *g = context;
    if (hr_inference_is_interrupted(&g->session))
        return hr_fail(err, HR_INTERRUPTED, "interrupted while tokenizing the prompt");
    if (count > g->id_room - g->id_count)
        return hr_fail(err, HR_FAILURE, "out of memory for the token ids of the prompt");
    for (int64_t i = 0; i < count; i++) g->prompt_ids[g->id_count++] = (int32_t)ids[i];
    return HR_OK;
}

/* Every token has at least one byte, and a tokenizer adds few tokens around a text; this bounds the
 * number of ids. */
static hr_status encode_prompt(generation *g, hr_error *err)
{
    enum { AROUND = 64 };
    const int64_t width = sizeof *g->prompt_ids;
    const char *name = g->request->prompt_file ? g->request->prompt_file : "the prompt";
    g->id_room = g->prompt_text.bytes + AROUND;
    hr_status status = hr_memory_region_open(g->session.memory, "the prompt's ids",
                                             g->id_room * width, &g->id_region, err);
    if (status != HR_OK) return status;
    memset(g->id_region.base, 0, (size_t)g->id_region.bytes); /* touch all pages, because the plan
                                                               * counts all of them */
    g->prompt_ids = (int32_t *)g->id_region.base;
    status = hr_tokens_add(g->session.tokens, g->prompt_text.base, g->prompt_text.bytes, true, name,
                           0, err);
    g->prompt_count = g->id_count;
    g->id_region.used = g->id_count * width;
    hr_memory_region_trim(g->session.memory, &g->id_region);
    return status;
}

/* A text prompt and text output need a tokenizer. */
static hr_status read_prompt(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    const int32_t given = (request->prompt != NULL) + (request->prompt_file != NULL) +
                          (request->prompt_ids != NULL);
    hr_status status = HR_OK;
    if (given != 1)
        return hr_fail(err, HR_USAGE,
                       "give one of --prompt TEXT, --file FILE and --prompt-ids 29,1,11");
    if (!request->prompt_ids || !request->wants_ids)
        status = hr_inference_open_text(&g->session, "--prompt-ids and --print-ids", sink_ids, g,
                                        err);
    if (status != HR_OK) return status;
    g->document_end = g->session.tokens ? hr_tokens_document_end(g->session.tokens) : -1;
    if (request->prompt_ids) {
        g->prompt_count = count_ids(request->prompt_ids);
        if (!g->prompt_count)
            return hr_fail(err, HR_USAGE,
                           "--prompt-ids takes integers separated by commas, such as 29,1,11");
        return HR_OK;
    }
    if (request->prompt)
        g->prompt_text = (hr_span){ request->prompt, (int64_t)strlen(request->prompt) };
    else if (strcmp(request->prompt_file, "-") != 0) status = read_file(g, err);
    else {
        status = hr_memory_region_open(g->session.memory, "the prompt", INPUT_BYTES,
                                       &g->prompt_region, err);
        if (status == HR_OK) status = read_input(g, err);
    }
    g->prompt_count = g->prompt_text.bytes;
    if (status == HR_OK && g->session.tokens) status = encode_prompt(g, err);
    return status;
}

static hr_status take_ids(generation *g, hr_error *err)
{
    const uint8_t *text = g->prompt_text.base;
    const char *at = g->request->prompt_ids;
    char *end;
    for (; g->count < g->prompt_count; g->count++) {
        const long long id = at              ? strtoll(at, &end, 10)
                             : g->prompt_ids ? g->prompt_ids[g->count]
                                             : text[g->count];
        if (id >= g->session.config.model.vocab_size)
            return hr_fail(
                err, HR_USAGE, "token %lld of the prompt is %lld; the model has ids 0 to %lld",
                (long long)g->count + 1, id, (long long)g->session.config.model.vocab_size - 1);
        g->ids[g->count] = (int32_t)id;
        if (at) at = end + 1;
    }
    return HR_OK;
}

/* ---- the plan */

static hr_status check_length(generation *g, int64_t positions, hr_error *err)
{
    const long long held = hr_inference_longest(&g->session, positions), prompt = g->prompt_count;
    if (held == positions) return HR_OK;
    if (prompt >= held)
        return hr_fail(
            err, HR_USAGE,
            "a prompt of %lld tokens is too long: prompt and answer may have %lld tokens "
            "together; shorten the prompt",
            prompt, held);
    return hr_fail(err, HR_USAGE,
                   "%lld tokens are too many: prompt and answer may have %lld tokens together; "
                   "use --max-tokens %lld or less",
                   (long long)positions, held, held - prompt);
}

/* Sets the number of planned positions. The answer is cut at the limit of the model: its learned
 * positions, or the length its rotary embedding is known to support. */
static hr_status find_positions(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    const bool learned = hr_family_of(&g->session.config)->traits & HR_LEARNS_POSITIONS;
    const int64_t own = g->session.config.model.positions;
    const bool ends = learned || own > 0;
    int64_t positions;
    if (g->prompt_count < 1)
        return hr_fail(err, HR_USAGE, "%s; at least one token is needed",
                       g->prompt_text.bytes
                           ? "the tokenizer has no token for any part of the prompt"
                           : "the prompt is empty");
    if (request->tokens < 1)
        return hr_fail(err, HR_USAGE, "--max-tokens %lld: at least 1 is needed",
                       (long long)request->tokens);
    if (!hr_checked_add(g->prompt_count, request->tokens, &positions) || positions > INT32_MAX / 2)
        return hr_fail(err, HR_USAGE, "--max-tokens %lld: the limit is %d",
                       (long long)request->tokens, INT32_MAX / 2);
    if (ends && g->prompt_count >= own)
        return hr_fail(
            err, HR_USAGE,
            "the prompt has %lld tokens and the model %lld positions: none is left for "
            "an answer; shorten the prompt%s",
            (long long)g->prompt_count, (long long)own,
            learned ? ""
                    : ", or increase max_position_embeddings in config.json (model.positions in "
                      "training)");
    if (ends) positions = hr_min(positions, own);
    const hr_status status = check_length(g, positions, err);
    if (status != HR_OK) return status;
    g->session.config.train.seq_len = positions;
    g->result->positions = positions;
    g->result->prompt_tokens = g->prompt_count;
    return HR_OK;
}

static bool is_text(const char *text, int64_t bytes)
{
    int64_t at = 0, here = 1;
    while (at < bytes && here > 0) at += here = hr_json_character(text + at, bytes - at);
    return here > 0;
}

/* A stop text that begins inside a character would leave half of that character in the output. */
static hr_status check_stops(const hr_generate_request *request, hr_error *err)
{
    if (request->stop_count < 0 || request->stop_count > HR_STOPS_MAX)
        return hr_fail(err, HR_USAGE, "--stop may be given %d times, not %d", HR_STOPS_MAX,
                       request->stop_count);
    if (request->stop_count && request->wants_ids)
        return hr_fail(err, HR_USAGE, "--stop and --print-ids exclude each other");
    for (int32_t i = 0; i < request->stop_count; i++) {
        const size_t bytes = strnlen(request->stops[i], HR_STOP_BYTES);
        if (bytes == 0 || bytes == HR_STOP_BYTES)
            return hr_fail(err, HR_USAGE, "--stop takes 1 to %d bytes", HR_STOP_BYTES - 1);
        if (!is_text(request->stops[i], (int64_t)bytes))
            return hr_fail(err, HR_USAGE, "--stop number %d is not UTF-8", i + 1);
    }
    return HR_OK;
}

static hr_status read_request(generation *g, hr_error *err)
{
    hr_status status = hr_inference_begin(&g->session, err);
    if (status == HR_OK) status = hr_inference_find_ends(&g->session, err);
    if (status == HR_OK) status = read_prompt(g, err);
    hr_inference_end_text(&g->session);
    if (status == HR_OK) status = find_positions(g, err);
    if (status == HR_OK) status = hr_sampler_check(&g->request->sampling, err);
    return status == HR_OK ? check_stops(g->request, err) : status;
}

static void describe(generation *g)
{
    const hr_program *program = &g->session.compiled.program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        for (int32_t k = 0; k < 2 && step->op == HR_OP_cache_clear; k++)
            if (step->out[k] != HR_NONE)
                g->result->cache_bytes += hr_tensor_bytes(&program->tensors[step->out[k]]);
    }
}

/* Plans with the largest prompt chunk that fits, at most the prompt. */
static hr_status plan(generation *g, hr_error *err)
{
    hr_inference *session = &g->session;
    const hr_config *config = &session->config;
    const int64_t ids_bytes = config->train.seq_len * (int64_t)sizeof *g->ids;
    const int64_t scratch_bytes = hr_sampler_bytes(config->model.vocab_size);
    const int64_t asked = hr_min(g->request->chunk, g->prompt_count);
    int64_t rows = hr_max(asked, 1);
    hr_status status = hr_inference_plan(session, err);
    while (!asked && rows < CHUNK_MOST && rows < g->prompt_count) rows *= 2;
    for (bool done = status != HR_OK; !done; rows /= 2) {
        g->result->chunk = hr_min(rows, g->prompt_count);
        session->planning.used = 0;
        status = hr_compile_generation(config, session->backend, g->result->chunk, scratch_bytes,
                                       session->threads, &session->planning, &session->compiled,
                                       err);
        if (status == HR_OK)
            status = hr_inference_fit(session, ids_bytes, "tokens", "fewer --max-tokens", err);
        done = status != HR_NO_FIT || rows == 1;
    }
    if (status == HR_OK) describe(g);
    return status == HR_NO_FIT ? hr_inference_refuse(session, err) : status;
}

/* ---- services */

/* Provides the next rows: a chunk of the prompt, or the last token. */
static hr_status prompt(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    generation *g = context;
    (void)err;
    const int64_t most = hr_step_section(executor->program, step) == HR_LOOP_PROMPT
                             ? g->result->chunk
                             : 1;
    const int64_t rows = hr_min(most, g->count - g->done);
    executor->rows_here = rows;
    memcpy(call->out[0], g->ids + g->done, (size_t)rows * sizeof *g->ids);
    *(int32_t *)call->out[1] = (int32_t)g->done;
    g->done += rows;
    return HR_OK;
}

/* Passes an id, or -1, to the receiver with the text that is now final. */
static void emit_text(generation *g, int32_t id, const char *text, int64_t bytes)
{
    const hr_generate_request *request = g->request;
    for (int64_t i = 0; i < hr_max(bytes, 1) && !g->ended; i++) {
        bool stopped = false;
        const int32_t certain = bytes ? hr_stream_add(&g->stream, text[i], &stopped) : 0;
        if (request->on_text && (i == 0 || certain))
            g->rejected |= !request->on_text(request->context, i ? -1 : id, g->stream.held,
                                             certain);
        g->ended |= g->rejected;
        hr_stream_drop(&g->stream, certain);
        if (!stopped) continue;
        g->result->end = HR_END_STOP;
        g->stream.held_bytes = 0;
        g->ended = true;
    }
}

static bool ends_answer(const generation *g, int32_t id)
{
    return !g->request->ignores_end &&
           (id == g->document_end || hr_end_ids_have(&g->session.ends, id));
}

/* In a byte model with a larger vocabulary, ids above 255 have no text. */
static void emit_token(generation *g, int32_t id)
{
    const char byte = (char)id, *text = &byte;
    int64_t bytes = 1;
    if (g->request->wants_ids || ends_answer(g, id)) bytes = 0;
    else if (g->session.tokens) text = hr_tokens_decode(g->session.tokens, id, &bytes);
    else if (id > UINT8_MAX) {
        text = "\xef\xbf\xbd"; /* U+FFFD */
        bytes = 3;
    }
    emit_text(g, id, text, bytes);
    if (g->ended || !ends_answer(g, id)) return;
    g->result->end = HR_END_DOCUMENT;
    g->ended = true;
}

static hr_status fail_rejected(hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "the answer ends: its output is closed");
}

/* Passes the rest of the held text. */
static hr_status emit_rest(generation *g, hr_error *err)
{
    const hr_generate_request *request = g->request;
    int64_t bytes;
    if (g->session.tokens && !request->wants_ids && g->result->end != HR_END_STOP) {
        const char *text = hr_tokens_decode(g->session.tokens, -1, &bytes);
        g->ended = false;
        if (bytes) emit_text(g, -1, text, bytes);
    }
    hr_stream_end(&g->stream);
    if (request->on_text && !g->rejected)
        g->rejected = !request->on_text(request->context, -1, g->stream.held, g->stream.held_bytes);
    return g->rejected ? fail_rejected(err) : HR_OK;
}

/* Only the last chunk of a prompt is followed by sampling. */
static hr_status sample_token(void *context, hr_executor *executor, int32_t step,
                              const hr_call *call, hr_error *err)
{
    generation *g = context;
    const int32_t loop = executor->program->steps[step].loop;
    const hr_generate_request *request = g->request;
    if (g->done < g->count) return HR_OK;
    const int32_t id = hr_sampler_sample(&request->sampling, call->in[0], call->dtype,
                                         g->session.config.model.vocab_size, g->ids, g->count,
                                         call->scratch);
    if (id < 0)
        return hr_fail(err, HR_DIVERGED, "%s: the logits of token %lld are NaN or Inf",
                       request->model->folder, (long long)g->count + 1);
    g->ids[g->count++] = id;
    g->result->tokens++;
    emit_token(g, id);
    if (g->rejected) return fail_rejected(err);
    g->ended = g->ended || g->count == g->result->positions;
    if (g->ended && loop == g->token) executor->count[loop] = executor->turn[loop] + 1;
    return HR_OK;
}

static const hr_service services[] = {
    { HR_OP_prompt, HR_LOOP_OTHER, prompt, NULL },
    { HR_OP_sample, HR_LOOP_OTHER, sample_token, NULL },
};

/* ---- the run */

static hr_status open_run(generation *g, hr_error *err)
{
    hr_inference *session = &g->session;
    const hr_program *program = &session->compiled.program;
    const hr_status status = hr_inference_open(session, err);
    if (status != HR_OK) return status;
    g->ids = hr_region_take(&session->tables, session->config.train.seq_len, sizeof *g->ids);
    if (!g->ids) return hr_fail(err, HR_FAILURE, "out of memory for the tables of the run");
    g->chunk = hr_program_loop(program, HR_LOOP_PROMPT_CHUNK);
    g->token = hr_program_loop(program, HR_LOOP_ANSWER_TOKEN);
    return take_ids(g, err);
}

static hr_status run(generation *g, hr_error *err)
{
    hr_inference *session = &g->session;
    hr_generate_result *result = g->result;
    double clearing;
    session->executor.count[g->chunk] = (g->count + result->chunk - 1) / result->chunk;
    session->executor.count[g->token] = result->positions - g->count;
    result->end = result->positions < g->count + g->request->tokens ? HR_END_POSITIONS
                                                                    : HR_END_TOKENS;
    hr_status status = hr_inference_run(session, HR_LOOP_LOAD, &result->run.load_seconds, err);
    if (status == HR_OK) status = hr_inference_run(session, HR_LOOP_CACHES, &clearing, err);
    if (status == HR_OK)
        status = hr_inference_run(session, HR_LOOP_PROMPT, &result->prompt_seconds, err);
    if (status == HR_OK && !g->ended)
        status = hr_inference_run(session, HR_LOOP_ANSWER, &result->answer_seconds, err);
    if (status == HR_INTERRUPTED) {
        result->end = HR_END_INTERRUPT;
        status = HR_OK;
    }
    return status == HR_OK ? emit_rest(g, err) : status;
}

/* Not inlined: the stack in use when the memory is opened is part of the plan. */
static __attribute__((noinline)) hr_status generate_in(hr_memory *memory,
                                                       const hr_generate_request *request,
                                                       hr_generate_result *result, hr_error *err)
{
    generation g = { .request = request,
                     .result = result,
                     .session = { request->model, &result->run, memory },
                     .stream = { .stops = request->stops, .stop_count = request->stop_count } };
    hr_status status = read_request(&g, err);
    if (status == HR_OK) hr_inference_report_progress(&g.session, "planning", 0, 0);
    if (status == HR_OK) status = plan(&g, err);
    if (status == HR_OK) status = open_run(&g, err);
    if (status == HR_OK)
        status = hr_inference_take(&g.session, (hr_services){ services, 2, &g }, err);
    if (status == HR_OK) status = run(&g, err);
    if (status == HR_OK) status = hr_inference_check_peak(&g.session, err);
    hr_inference_close(&g.session);
    return status;
}

hr_status hr_generate(const hr_generate_request *given, hr_generate_result *result, hr_error *err)
{
    hr_generate_request request;
    hr_infer_request model;
    hr_memory memory = { 0 };
    *result = (hr_generate_result){ .end = HR_END_TOKENS };
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = hr_options_take(&model, sizeof model, request.model, err);
    request.model = &model;
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = generate_in(&memory, &request, result, err);
    hr_memory_close(&memory);
    return status;
}
