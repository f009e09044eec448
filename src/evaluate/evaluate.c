/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/evaluate.c - computes logits or losses from a model directory and a file: plans,
 * allocates, seals, loads and runs. */
#include "headroom/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "base/options.h"
#include "evaluate/modulation.h"
#include "evaluate/multiple_choice.h"
#include "evaluate/output.h"
#include "evaluate/place.h"
#include "evaluate/sequences.h"
#include "evaluate/text.h"
#include "infer/inference.h"
#include "model/family.h"
#include "ops/host/host.h"
#include "ops/list.h"
#include "ops/match/match.h"
#include "sections/assemble.h"

/* TURN_TOKENS and CHUNK_MOST: tokens per iteration and per chunk of logits, if memory allows;
 * TOKENS_LEAST: fewer tokens are not worth a pass over a weight. Chunks of multiples of this size
 * give bit-identical results. */
enum { TURN_TOKENS = 4096, CHUNK_MOST = 1024, TOKENS_LEAST = 64, CONTEXT = 1024 };

typedef struct {
    const hr_evaluate_request *request;
    hr_evaluate_result *result;
    hr_inference session;
    hr_sequences source;
    int32_t turn;           /* loop id */
    int32_t *ids, *targets; /* [length]; [at_a_time x length] of the current iteration */
    hr_loss_part *parts;    /* [chunk] of the strips of logits so far, ... */
    int64_t column;         /* ... which end before this one */
    int64_t first, here;    /* sequences of the current iteration: first and count */
    double row_loss;
    int64_t row_tokens;
    hr_multiple_choice_best best;
    hr_file_out logits;
    hr_losses_out losses;
    hr_modulation modulation;
    int64_t positions[HR_CAPTURED_MOST];
    hr_file_out captured;
} evaluation;

/* ---- input */

/* Checks for interrupts, because tokenizing a long text takes time. */
static hr_status add_ids(void *context, const uint32_t *ids, int64_t count, hr_error *err)
{
    evaluation *e = context;
    if (hr_inference_is_interrupted(&e->session)) return HR_INTERRUPTED;
    hr_inference_report_progress(&e->session, "tokenizing", 0, 0);
    if (e->request->text || e->request->prompt)
        return hr_sequences_add(&e->source, ids, count, err);
    return hr_ids_file_add(&e->source.ids, ids, count, err);
}

/* Progress callback (hr_text_progress) while the text is read. Returns true to stop. */
static bool is_stopped(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    const evaluation *e = context;
    (void)work, (void)bytes_done, (void)bytes_total;
    return hr_inference_is_interrupted(&e->session);
}

static hr_status check_request(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    if ((request->tokens != NULL) + (request->text != NULL) + (request->choices != NULL) +
            (request->prompt != NULL) !=
        1)
        return hr_fail(err, HR_USAGE,
                       "give one of --tokens FILE.safetensors, --file FILE and --choices "
                       "FILE.jsonl");
    if (request->logits_out && !request->tokens)
        return hr_fail(err, HR_USAGE, "--logits-out needs --tokens");
    if (request->logits_out && request->per_token)
        return hr_fail(err, HR_USAGE,
                       "--logits-out and --per-token exclude each other: evaluate twice");
    if (request->capture_out && e->session.config.train.adapter.kind != HR_ADAPTER_NPT)
        return hr_fail(err, HR_USAGE, "only adapters of NPT can be captured");
    if (request->context < 0 || request->stride < 0)
        return hr_fail(err, HR_USAGE, "--context and --stride are 0 or more");
    if (!request->text && (request->context || request->stride))
        return hr_fail(err, HR_USAGE, "--context and --stride need --file");
    hr_status status = HR_OK;
    if (!request->tokens && !(request->text && hr_evaluate_is_ids(request->text)))
        status = hr_inference_open_text(&e->session, "--tokens", add_ids, e, err);
    if (status == HR_OK && request->prompt)
        return hr_ids_file_open(&e->source.ids, request->scratch, err);
    const bool direct = request->text && !e->session.tokens && hr_evaluate_is_plain(request->text);
    if (status == HR_OK && !direct && (e->session.tokens || request->text))
        status = hr_ids_file_open(&e->source.ids, request->scratch, err);
    return status;
}

static hr_status open_tokens(evaluation *e, hr_error *err)
{
    hr_region header;
    const int64_t bytes = hr_sequences_header_bytes(e->request->tokens);
    hr_status status = hr_memory_region_open(e->session.memory, "the names of tensors", bytes,
                                             &header, err);
    if (status != HR_OK) return status;
    status = hr_sequences_open_tokens(&e->source, e->request->tokens, &header, err);
    hr_memory_region_close(e->session.memory, &header);
    e->result->has_labels = e->source.tokens.labels.width > 0;
    return status;
}

/* Checks that no output file is an input file. */
static hr_status check_files(const evaluation *e, const hr_corpus *corpus, hr_error *err)
{
    const hr_corpus_text *text = &hr_corpus_texts(corpus)->valid;
    const char *path, *per_token = e->request->per_token;
    for (int64_t i = 0; per_token && (path = hr_corpus_file(corpus, text, i)); i++)
        if (hr_file_is_one(path, per_token))
            return hr_fail(err, HR_USAGE, "--per-token %.200s is a file of --file; name another",
                           per_token);
    return HR_OK;
}

static hr_status read_text(evaluation *e, hr_error *err)
{
    const char *text = e->request->text;
    const hr_text_progress progress = { is_stopped, e };
    const hr_corpus_desc desc = hr_evaluate_corpus(&e->session.config, text);
    hr_corpus *corpus = NULL;
    hr_region region;
    e->source.path = text;
    if (!e->session.tokens && hr_evaluate_is_plain(text))
        return hr_sequences_open_text(&e->source, text, err);
    hr_status status = *text ? hr_corpus_check(&desc, err)
                             : hr_fail(err, HR_USAGE, "--file is empty; give a file");
    if (status == HR_OK)
        status = hr_memory_region_open(e->session.memory, "reading the text",
                                       hr_corpus_bytes(&desc), &region, err);
    if (status != HR_OK) return status;
    status = hr_corpus_open(&corpus, region.base, region.bytes, &desc, err);
    if (status == HR_OK) status = check_files(e, corpus, err);
    if (status == HR_OK)
        status = hr_evaluate_read(&e->source, corpus, e->session.tokens, &progress,
                                  &e->result->bad_lines, err);
    hr_corpus_close(&corpus);
    hr_memory_region_close(e->session.memory, &region);
    return status;
}

static hr_status open_text(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const bool learned = hr_family_of(&e->session.config)->traits & HR_LEARNS_POSITIONS;
    const int64_t positions = e->session.config.model.positions;
    const bool shorter = learned || (positions && positions < CONTEXT);
    const int64_t own = shorter ? positions : CONTEXT;
    const int64_t context = request->context ? request->context : own;
    const int64_t stride = request->stride ? request->stride : context;
    if (learned && context > own)
        return hr_fail(err, HR_USAGE, "--context %lld is more than the model's %lld positions",
                       (long long)context, (long long)own);
    if (stride > context)
        return hr_fail(err, HR_USAGE,
                       "--stride %lld is larger than the window of %lld tokens: tokens would be "
                       "skipped",
                       (long long)stride, (long long)context);
    const hr_status status = read_text(e, err);
    if (status == HR_OK) hr_sequences_cut(&e->source, context, stride);
    if (status == HR_OK) e->result->stride = e->source.stride;
    return status;
}

static hr_status open_choices(evaluation *e, hr_error *err)
{
    const char *path = e->request->choices;
    int file;
    int64_t bytes;
    hr_region text, tables;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    status = hr_memory_region_open(e->session.memory, "the questions", hr_max(bytes, 1), &text,
                                   err);
    if (status == HR_OK) status = hr_file_read(file, path, 0, text.base, bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    const int64_t table_bytes = hr_multiple_choice_bytes((const char *)text.base, bytes);
    status = hr_memory_region_open(e->session.memory, "the tables of questions", table_bytes,
                                   &tables, err);
    if (status != HR_OK) return status;
    status = hr_multiple_choice_open(&e->source, path, (char *)text.base, bytes, &tables, err);
    if (status != HR_OK || !e->session.tokens) return status;
    return hr_multiple_choice_encode(&e->source, e->session.tokens, err);
}

/* A text as one window, with a token behind it that no target needs. */
static hr_status open_prompt(evaluation *e, hr_error *err)
{
    const uint8_t *text = (const uint8_t *)e->request->prompt;
    const int64_t bytes = (int64_t)strlen(e->request->prompt);
    const uint32_t end = 0;
    hr_status status = HR_OK;
    e->source.path = "the prompt";
    e->source.is_text = true;
    if (e->session.tokens)
        status = hr_tokens_add(e->session.tokens, text, bytes, true, e->source.path, 0, err);
    for (int64_t i = 0; i < bytes && !e->session.tokens && status == HR_OK; i++)
        status = hr_sequences_add(&e->source, &(uint32_t){ text[i] }, 1, err);
    if (status == HR_OK && e->source.ids.count == 0)
        return hr_fail(err, HR_USAGE,
                       bytes ? "the tokenizer has no token for any part of the prompt"
                             : "the prompt is empty");
    if (status == HR_OK) status = hr_sequences_add(&e->source, &end, 1, err);
    if (status == HR_OK) status = hr_ids_file_flush(&e->source.ids, err);
    e->source.count = e->source.ids.count;
    if (status == HR_OK) hr_sequences_cut(&e->source, e->source.count, e->source.count);
    return status;
}

static hr_status open_source(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const bool learned = hr_family_of(&e->session.config)->traits & HR_LEARNS_POSITIONS;
    hr_status status;
    e->source.vocabulary = e->session.config.model.vocab_size;
    if (request->tokens) status = open_tokens(e, err);
    else if (request->text) status = open_text(e, err);
    else if (request->prompt) status = open_prompt(e, err);
    else status = open_choices(e, err);
    if (status != HR_OK) return status;
    if (learned && e->source.length > e->session.config.model.positions)
        return hr_fail(err, HR_USAGE,
                       "%s has sequences of %lld tokens, the model has %lld positions",
                       e->source.path, (long long)e->source.length,
                       (long long)e->session.config.model.positions);
    const int64_t longest = hr_inference_longest(&e->session, e->source.length);
    if (longest < e->source.length)
        return hr_fail(err, HR_USAGE,
                       "%s has sequences of %lld tokens, at most %lld can be planned; %s",
                       e->source.path, (long long)e->source.length, (long long)longest,
                       request->text ? "give a smaller --context" : "make them shorter");
    e->result->sequences = e->source.rows;
    e->result->positions = e->session.config.model.positions;
    e->result->length = e->session.config.train.seq_len = e->source.length;
    return HR_OK;
}

static hr_status read_request(evaluation *e, hr_error *err)
{
    hr_status status = hr_inference_begin(&e->session, err);
    if (status == HR_OK) status = check_request(e, err);
    if (status == HR_OK) status = hr_evaluate_set_keys(e->request, &e->session.config, err);
    if (status == HR_OK)
        status = hr_place_check(
            e->request, "--logits-out", e->request->logits_out,
            (hr_place_kind){ HR_LOGITS_FIRST_AT, hr_logits_first, "file of logits" }, err);
    if (status == HR_OK)
        status = hr_place_check(e->request, "--per-token", e->request->per_token,
                                (hr_place_kind){ 0, hr_losses_first, "file of losses" }, err);
    e->session.config.train.adapter.reports = e->session.config.train.adapter.kind ==
                                                  HR_ADAPTER_NPT &&
                                              !e->request->logits_out && !e->request->choices;
    if (status == HR_OK && e->request->capture_out)
        status = hr_place_check(e->request, "the output", e->request->capture_out,
                                (hr_place_kind){ HR_CAPTURE_FIRST_AT, hr_capture_first, "capture" },
                                err);
    if (status == HR_OK) status = open_source(e, err);
    if (status == HR_OK && e->request->capture_out)
        status = hr_modulation_positions(e->request->positions, e->source.length, e->positions,
                                         &e->result->captured, err);
    hr_inference_end_text(&e->session);
    return status;
}

/* ---- the plan */

static int64_t half_of(int64_t tokens)
{
    return hr_max(hr_round_up(tokens / 2, TOKENS_LEAST), TOKENS_LEAST);
}

/* A head in a file is read for each chunk: then there is one, of strips of columns. */
static void set_sequences_at_a_time(hr_evaluate_result *result, int64_t sequences, bool streams)
{
    result->at_a_time = sequences;
    result->chunk = hr_min(sequences * result->length, streams ? TURN_TOKENS : CHUNK_MOST);
}

/* Reduces memory for the next attempt: first the logits chunk, then the sequences per iteration,
 * then the MLP tile. Returns false at the minimum. Results are bit-identical. */
static bool reduce_memory(hr_evaluate_result *result, bool streams)
{
    const int64_t tile = result->mlp_tile ? result->mlp_tile : result->length;
    if (result->chunk > TOKENS_LEAST) result->chunk = half_of(result->chunk);
    else if (result->at_a_time > 1) set_sequences_at_a_time(result, result->at_a_time / 2, streams);
    else if (tile > TOKENS_LEAST) result->mlp_tile = half_of(tile);
    else return false;
    return true;
}

static int64_t own_bytes(const evaluation *e)
{
    const int64_t rows = (e->result->at_a_time + 1) * e->source.length;
    int64_t bytes = rows * (int64_t)sizeof(int32_t) + HR_LOSSES_TEXT_BYTES +
                    e->result->chunk * (int64_t)sizeof(hr_loss_part) + 64;
    if (e->session.config.train.adapter.reports)
        bytes += hr_modulation_bytes(&e->session.compiled.program, e->result->captured);
    return bytes;
}

static hr_status plan(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    hr_evaluate_result *result = e->result;
    hr_inference *session = &e->session;
    const bool streams = request->model->place == HR_PLACE_FILE && !request->logits_out;
    const bool widens = request->logits_out && request->model->format != HR_FORMAT_FP32;
    hr_status status = hr_inference_plan(session, err);
    set_sequences_at_a_time(
        result, hr_min(hr_max(TURN_TOKENS / result->length, 1), result->sequences), streams);
    for (bool done = status != HR_OK; !done;) {
        const int64_t losses = result->chunk * (int64_t)sizeof(double);
        session->planning.used = 0;
        status = hr_compile_evaluation(
            &session->config, session->backend, result->at_a_time, result->chunk, result->mlp_tile,
            widens ? HR_LOGITS_STAGING_BYTES : losses, !request->logits_out, session->threads,
            &session->planning, &session->compiled, err);
        if (status == HR_OK)
            status = hr_inference_fit(session, own_bytes(e), "tokens at a time",
                                      "shorter sequences", err);
        done = status != HR_NO_FIT || !reduce_memory(result, streams);
    }
    return status == HR_NO_FIT ? hr_inference_refuse(session, err) : status;
}

/* ---- services */

/* Provides the sequences of an iteration; the last one may have fewer. */
static hr_status prompt(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    evaluation *e = context;
    (void)step;
    const int64_t length = e->source.length;
    int32_t *ids = call->out[0], *targets = call->out[2];
    e->first = executor->turn[e->turn] * e->result->at_a_time;
    hr_inference_report_progress(&e->session, "evaluating", e->first, e->source.rows);
    e->here = hr_min(e->result->at_a_time, e->source.rows - e->first);
    executor->rows_here = e->here * length;
    for (int64_t i = 0; i < e->here; i++) {
        const hr_status status = hr_sequences_read(&e->source, e->first + i, ids + i * length,
                                                   e->targets + i * length, err);
        if (status != HR_OK) return status;
    }
    if (targets) memcpy(targets, e->targets, (size_t)(e->here * length) * sizeof *targets);
    return HR_OK;
}

/* Columns [first, first + V) of logits, of all rows of a call. */
typedef struct {
    const hr_loss_kernels *kernels;
    const hr_call *call;
    const int32_t *targets; /* [call->rows] */
    hr_loss_part *parts;    /* [call->rows] */
    double *losses;         /* [call->rows] with the last column */
    int64_t first, V;
} scoring;

static void score_some(void *context, int32_t thread, int32_t threads)
{
    const scoring *s = context;
    const int64_t row_bytes = s->V * hr_dtype_bytes(s->call->dtype);
    for (int64_t i = thread; i < s->call->rows; i += threads) {
        if (s->targets[i] < 0) continue;
        const hr_loss_columns columns = { (const char *)s->call->in[0] + i * row_bytes, s->first,
                                          s->V, s->targets[i], s->call->dtype };
        if (s->first == 0) s->parts[i] = (hr_loss_part){ 0, -INFINITY, 0 };
        s->kernels->add(&columns, &s->parts[i]);
        s->losses[i] = hr_loss_log_sum(&s->parts[i]) - s->parts[i].logit;
    }
}

static hr_status fail_logits(const evaluation *e, int64_t sequence, int64_t place, hr_error *err)
{
    return hr_fail(err, HR_DIVERGED, "%s, sequence %lld: the logits of token %lld are NaN or Inf",
                   e->source.path, (long long)sequence, (long long)place);
}

/* Adds a loss in token order, so that the sum does not depend on chunks. */
static hr_status count_loss(evaluation *e, int64_t sequence, int64_t t, int32_t target, double loss,
                            hr_error *err)
{
    if (target >= 0) {
        const int64_t place = hr_sequences_place(&e->source, sequence, t);
        if (!isfinite(loss)) return fail_logits(e, sequence, place, err);
        e->row_loss += loss;
        e->row_tokens++;
        if (e->request->per_token) {
            const hr_status status = hr_losses_add(&e->losses, sequence, place, target, loss, err);
            if (status != HR_OK) return status;
        }
    }
    if (t < e->source.length - 1) return HR_OK;
    e->result->loss_sum += e->row_loss;
    e->result->tokens += e->row_tokens;
    if (e->source.choices)
        hr_multiple_choice_record(&e->source, sequence, e->row_loss, e->row_tokens, &e->best,
                                  e->result);
    e->row_loss = 0;
    e->row_tokens = 0;
    return HR_OK;
}

static hr_status add_logits(evaluation *e, const hr_call *call, hr_error *err)
{
    const int64_t V = e->session.config.model.vocab_size, length = e->source.length;
    for (int64_t i = 0; i < call->rows; i++) {
        const void *logits = hr_element_at((void *)call->in[0], i * V, call->dtype);
        const int64_t row = call->row_first + i, sequence = e->first + row / length;
        bool finite = true;
        for (int64_t v = 0; v < V && finite; v++)
            finite = isfinite(hr_element_get(logits, v, call->dtype));
        if (!finite)
            return fail_logits(e, sequence, hr_sequences_place(&e->source, sequence, row % length),
                               err);
    }
    return hr_logits_add(&e->logits, call->in[0], call->dtype, call->rows * V, call->scratch, err);
}

static hr_status emit(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    evaluation *e = context;
    const int32_t param = ((const hr_host_attr *)call->attr)->param;
    if (param >= 0) {
        hr_modulation_take(&e->modulation, param, call->in[0], call->dtype,
                           e->first * e->source.length + call->row_first, call->rows,
                           e->targets + call->row_first);
        return HR_OK;
    }
    const int64_t length = e->source.length, vocabulary = e->session.config.model.vocab_size;
    if (e->request->logits_out) return add_logits(e, call, err);
    const hr_program *program = executor->program;
    const scoring s = { .kernels = &e->session.devices.cpu.kernels.loss,
                        .call = call,
                        .targets = e->targets + call->row_first,
                        .parts = e->parts,
                        .losses = call->scratch,
                        .first = e->column,
                        .V = program->tensors[program->steps[step].in[0]].dims[1] };
    hr_status status = HR_OK;
    hr_pool_run(&e->session.pool, score_some, (void *)&s);
    e->column = (s.first + s.V) % vocabulary;
    if (e->column) return HR_OK;
    if (param == HR_EMIT_BASE) {
        for (int64_t i = 0; i < call->rows; i++)
            e->result->base_loss_sum += s.targets[i] >= 0 ? s.losses[i] : 0;
        return HR_OK;
    }
    for (int64_t i = 0; i < call->rows && status == HR_OK; i++) {
        const int64_t row = call->row_first + i;
        status = count_loss(e, e->first + row / length, row % length, s.targets[i], s.losses[i],
                            err);
    }
    return status;
}

static const hr_service services[] = {
    { HR_OP_prompt, HR_LOOP_SEQUENCES, prompt, NULL },
    { HR_OP_emit, HR_LOOP_SEQUENCES, emit, NULL },
};

/* ---- the run */

static hr_status open_run(evaluation *e, hr_error *err)
{
    hr_region *tables = &e->session.tables;
    const int64_t length = e->source.length;
    const hr_status status = hr_inference_open(&e->session, err);
    if (status != HR_OK) return status;
    e->ids = hr_region_take(tables, length, sizeof *e->ids);
    e->targets = hr_region_take(tables, e->result->at_a_time * length, sizeof *e->targets);
    e->parts = hr_region_take(tables, e->result->chunk, sizeof *e->parts);
    if (!e->parts) return hr_fail(err, HR_FAILURE, "out of memory for the tables of the run");
    e->losses.text = hr_region_take(tables, HR_LOSSES_TEXT_BYTES, 1);
    if (!e->losses.text) return hr_fail(err, HR_FAILURE, "out of memory for the tables of the run");
    if (e->session.config.train.adapter.reports) {
        const hr_status opened = hr_modulation_open(&e->modulation, &e->session.compiled.program,
                                                    e->positions, e->result->captured, tables, err);
        if (opened != HR_OK) return opened;
    }
    e->turn = hr_program_loop(&e->session.compiled.program, HR_LOOP_SEQUENCES_BATCH);
    hr_inference_report_progress(&e->session, "checking the tokens", 0, 0);
    return hr_sequences_check(&e->source, e->ids, e->targets, err);
}

/* The errors of layers lie in the arena, where their operation added them up. */
static void report_changes(evaluation *e)
{
    const hr_program *program = &e->session.compiled.program;
    hr_evaluate_result *result = e->result;
    if (!e->modulation.count) return;
    result->change_count = hr_modulation_report(&e->modulation, result->changes,
                                                HR_EVALUATE_CHANGES_MAX);
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (step->op != HR_OP_match) continue;
        const double *sums = hr_executor_address(&e->session.executor, step->out[0]);
        const hr_match_attr *attr = (const hr_match_attr *)step->attr;
        for (int32_t i = 0; i < result->change_count; i++)
            if (result->changes[i].layer == step->layer)
                result->changes[i].error = sums[attr->slot] / attr->weight / (double)result->tokens;
    }
}

static void sum_up(evaluation *e)
{
    hr_evaluate_result *result = e->result;
    const double nats_of_a_bit = log(2);
    if (!result->tokens) return;
    result->loss = result->loss_sum / (double)result->tokens;
    result->perplexity = exp(result->loss);
    result->base_loss = result->base_loss_sum / (double)result->tokens;
    result->base_perplexity = exp(result->base_loss);
    report_changes(e);
    if (e->request->text) /* windows predict every token of the text once */
        result->bits_per_byte = e->source.text_bytes ? result->loss_sum / nats_of_a_bit /
                                                           (double)e->source.text_bytes
                                                     : NAN;
    else if (!e->request->tokens && !e->session.tokens)
        result->bits_per_byte = result->loss / nats_of_a_bit;
}

static hr_status write_capture(evaluation *e, hr_error *err)
{
    hr_status status = hr_file_begin_path(&e->captured, e->request->capture_out, err);
    if (status == HR_OK)
        status = hr_modulation_write(&e->modulation, &e->session.executor, &e->captured, err);
    return status == HR_OK ? hr_file_commit(&e->captured, err) : status;
}

/* Output files get their names after all data is written. */
static hr_status run(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    hr_evaluate_result *result = e->result;
    hr_status status = HR_OK;
    if (request->logits_out)
        status = hr_logits_begin(&e->logits, request->logits_out, result->sequences, result->length,
                                 e->session.config.model.vocab_size, err);
    if (status == HR_OK && request->per_token)
        status = hr_file_begin_path(&e->losses.file, request->per_token, err);
    e->session.executor.count[e->turn] = (result->sequences + result->at_a_time - 1) /
                                         result->at_a_time;
    if (status == HR_OK)
        status = hr_inference_run(&e->session, HR_LOOP_LOAD, &result->run.load_seconds, err);
    if (status == HR_OK && e->modulation.count)
        hr_modulation_measure(&e->modulation, &e->session.executor);
    if (status == HR_OK)
        status = hr_inference_run(&e->session, HR_LOOP_SEQUENCES, &result->run_seconds, err);
    if (status == HR_OK && request->capture_out) status = write_capture(e, err);
    if (status == HR_OK && request->logits_out) status = hr_file_commit(&e->logits, err);
    if (status == HR_OK && request->per_token) status = hr_losses_commit(&e->losses, err);
    if (status == HR_OK) sum_up(e);
    return status;
}

/* Not inlined: the stack in use when the memory is opened is part of the plan. */
static __attribute__((noinline)) hr_status evaluate_in(hr_memory *memory,
                                                       const hr_evaluate_request *request,
                                                       hr_evaluate_result *result, hr_error *err)
{
    evaluation e = { .request = request,
                     .result = result,
                     .session = { request->model, &result->run, memory },
                     .source = { .file = -1, .tokens.file = -1, .ids.file = -1 },
                     .logits = { .directory = -1, .file = -1 },
                     .losses = { .file = { .directory = -1, .file = -1 } },
                     .captured = { .directory = -1, .file = -1 } };
    hr_status status = read_request(&e, err);
    if (status == HR_OK) hr_inference_report_progress(&e.session, "planning", 0, 0);
    if (status == HR_OK) status = plan(&e, err);
    if (status == HR_OK) status = open_run(&e, err);
    if (status == HR_OK)
        status = hr_inference_take(&e.session, (hr_services){ services, 2, &e }, err);
    if (status == HR_OK) status = run(&e, err);
    if (status == HR_OK) status = hr_inference_check_peak(&e.session, err);
    if (status == HR_INTERRUPTED) status = hr_fail(err, status, "interrupted; no file was written");
    hr_file_abort(&e.logits);
    hr_file_abort(&e.losses.file);
    hr_file_abort(&e.captured);
    hr_sequences_close(&e.source);
    hr_inference_close(&e.session);
    return status;
}

hr_status hr_evaluate(const hr_evaluate_request *given, hr_evaluate_result *result, hr_error *err)
{
    hr_evaluate_request request;
    hr_infer_request model;
    hr_memory memory = { 0 };
    *result = (hr_evaluate_result){ 0 };
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = hr_options_take(&model, sizeof model, request.model, err);
    request.model = &model;
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = evaluate_in(&memory, &request, result, err);
    hr_memory_close(&memory);
    return status;
}
