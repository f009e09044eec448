/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/evaluate.c - from a folder and a file to logits or losses: plan, take the memory, seal,
 * load, go. */
#include "headroom/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "ckpt/weights_in.h"
#include "dev/executor.h"
#include "evaluate/output.h"
#include "evaluate/questions.h"
#include "evaluate/sequences.h"
#include "mem/limits.h"
#include "model/assemble.h"
#include "model/family.h"
#include "ops/host/host.h"
#include "plan/compile.h"
#include "train/load.h"

/* Tokens of a turn and of logits, where there is room; and how few are worth a pass over a weight.
 * Cuts at multiples of these keep every bit. */
enum { TURN_TOKENS = 4096, CHUNK_MOST = 1024, TOKENS_LEAST = 64, CONTEXT = 1024 };

typedef struct {
    const hr_evaluate_request *request;
    hr_evaluate_result *result;
    hr_config config;
    hr_memory *memory;
    hr_sequences source;
    int64_t header_bytes;    /* of the file of tokens, while it was read */
    int64_t questions_bytes; /* of regions: a whole file, and its tables */
    hr_region planning, run_region;
    hr_compiled compiled;
    uint32_t cpu_mask;
    int32_t threads;
    hr_pool pool;
    hr_kernels kernels;
    hr_weights_in weights;
    hr_executor executor;
    int32_t load, sequences, turn; /* loops */
    int32_t *ids, *targets;        /* [length]; [at_a_time x length] of the present turn */
    int64_t first, here;           /* sequences of the present turn */
    double row_loss;
    int64_t row_tokens;
    hr_questions_best best;
    hr_file_out logits;
    hr_losses_out losses;
} evaluation;

static bool is_interrupted(const evaluation *e)
{
    return e->request->interrupts && *e->request->interrupts > 0;
}

/* ---- what is asked about */

static hr_status check_request(const evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const bool is_text = request->is_bytes || e->config.model.vocab_size == UINT8_MAX + 1;
    if ((request->tokens != NULL) + (request->text != NULL) + (request->choices != NULL) != 1)
        return hr_fail(err, HR_USAGE,
                       "give one of --tokens FILE.safetensors, --file FILE and --choices "
                       "FILE.jsonl");
    if (!request->tokens && !is_text)
        return hr_fail(err, HR_USAGE,
                       "%s: no tokenizer is known for its %lld tokens; give --tokens, or "
                       "--tokenizer bytes",
                       request->folder, (long long)e->config.model.vocab_size);
    if (request->logits_out && !request->tokens)
        return hr_fail(err, HR_USAGE, "--logits-out needs --tokens");
    if (request->logits_out && request->per_token)
        return hr_fail(err, HR_USAGE,
                       "--logits-out writes logits and no losses; leave out "
                       "--per-token, or evaluate once more");
    if (!request->text && (request->context || request->stride))
        return hr_fail(err, HR_USAGE, "--context and --stride are of the windows of --file");
    return HR_OK;
}

static hr_status open_tokens(evaluation *e, hr_error *err)
{
    hr_region header;
    e->header_bytes = hr_sequences_header_bytes(e->request->tokens);
    hr_status status = hr_memory_region_open(e->memory, "the names of tensors", e->header_bytes,
                                             &header, err);
    if (status != HR_OK) return status;
    status = hr_sequences_open_tokens(&e->source, e->request->tokens, &header, err);
    hr_memory_region_close(e->memory, &header);
    e->result->has_labels = e->source.labels.width > 0;
    return status;
}

static hr_status open_text(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const bool learned = hr_family_of(&e->config)->traits & HR_READS_POSITIONS;
    const int64_t own = learned ? e->config.model.positions : CONTEXT;
    const int64_t context = request->context ? request->context : own;
    const int64_t stride = request->stride ? request->stride : context;
    if (learned && context > own)
        return hr_fail(err, HR_USAGE, "--context %lld is more than the model's %lld positions",
                       (long long)context, (long long)own);
    if (stride > context)
        return hr_fail(err, HR_USAGE,
                       "--stride %lld would leave out tokens between windows of %lld",
                       (long long)stride, (long long)context);
    const hr_status status = hr_sequences_open_text(&e->source, request->text, err);
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
    status = hr_memory_region_open(e->memory, "the questions", hr_max(bytes, 1), &text, err);
    if (status == HR_OK) status = hr_file_read(file, path, 0, text.base, bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    const int64_t table_bytes = hr_questions_bytes((const char *)text.base, bytes);
    status = hr_memory_region_open(e->memory, "the tables of questions", table_bytes, &tables, err);
    e->questions_bytes = hr_round_up(hr_max(bytes, 1), hr_page_bytes()) +
                         hr_round_up(table_bytes, hr_page_bytes());
    if (status != HR_OK) return status;
    return hr_questions_open(&e->source, path, (char *)text.base, bytes, &tables, err);
}

static hr_status open_source(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const bool learned = hr_family_of(&e->config)->traits & HR_READS_POSITIONS;
    hr_status status;
    e->source.vocabulary = e->config.model.vocab_size;
    if (request->tokens) status = open_tokens(e, err);
    else if (request->text) status = open_text(e, err);
    else status = open_choices(e, err);
    if (status != HR_OK) return status;
    if (learned && e->source.length > e->config.model.positions)
        return hr_fail(err, HR_USAGE, "%s has sequences of %lld tokens, the model %lld positions",
                       e->source.path, (long long)e->source.length,
                       (long long)e->config.model.positions);
    e->result->sequences = e->source.rows;
    e->result->length = e->config.train.seq_len = e->source.length;
    return HR_OK;
}

static hr_status check_outputs(const hr_evaluate_request *request, hr_error *err)
{
    hr_status status = HR_OK;
    if (request->logits_out) status = hr_file_check_place(request->logits_out, err);
    if (status == HR_OK && request->per_token)
        status = hr_file_check_place(request->per_token, err);
    return status;
}

static hr_status read_config(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    hr_config *config = &e->config;
    hr_config_default(config);
    hr_status status = hr_threads_choose(request->threads, &e->threads, err);
    if (status == HR_OK) status = hr_config_set(config, "model.from", request->folder, err);
    if (status == HR_OK) status = hr_config_adopt(config, err);
    if (status != HR_OK) return status;
    config->train.format = request->format;
    config->train.batch = 1;
    config->data.tokenizer = HR_TOKENIZER_WORDS; /* ids are given: any vocabulary will do */
    status = check_request(e, err);
    if (status == HR_OK) status = check_outputs(request, err);
    if (status == HR_OK) status = open_source(e, err);
    if (status == HR_OK) status = hr_config_check(config, err);
    return status == HR_OK ? hr_cpu_choose("--kernels", request->kernels, &e->cpu_mask, err)
                           : status;
}

/* ---- the plan */

static int64_t run_bytes(const evaluation *e)
{
    const hr_program *program = &e->compiled.program;
    const int64_t alignment = 6 * 64;
    const int64_t rows = (e->result->at_a_time + 1) * e->source.length;
    return hr_executor_bytes(program) + hr_weights_in_bytes(program) +
           rows * (int64_t)sizeof(int32_t) + HR_LOSSES_TEXT_BYTES + alignment;
}

static hr_status compile(evaluation *e, hr_error *err)
{
    const int64_t sequences = e->result->at_a_time, chunk = e->result->chunk;
    const bool widens = e->request->logits_out && e->request->format == HR_FORMAT_BF16;
    const int64_t losses = chunk * (int64_t)sizeof(double);
    e->planning.used = 0;
    hr_status status = hr_compile_evaluation(&e->config, sequences, chunk, e->result->mlp_tile,
                                             widens ? HR_LOGITS_STAGING_BYTES : losses, e->threads,
                                             &e->planning, &e->compiled, err);
    if (status != HR_OK) return status;
    const int64_t page = hr_page_bytes();
    const int64_t asked = e->questions_bytes;
    const int64_t tables = hr_round_up(e->planning.used, page) + hr_round_up(run_bytes(e), page) +
                           asked;
    const int64_t reading = hr_round_up(hr_weights_in_scratch_bytes(e->request->folder), page);
    const int64_t planning = hr_round_up(e->planning.bytes, page) + asked;
    hr_plan *plan = &e->compiled.plan;
    plan->threads = e->threads;
    plan->rung = hr_cpu_rung_name(e->cpu_mask);
    plan->page_bytes = page;
    hr_memory_account(
        e->memory, hr_max(hr_max(planning, hr_round_up(e->header_bytes, page)), tables + reading),
        tables, plan);
    return HR_OK;
}

static int64_t half_of(int64_t tokens)
{
    return hr_max(hr_round_up(tokens / 2, TOKENS_LEAST), TOKENS_LEAST);
}

static void begin_turns(hr_evaluate_result *result, int64_t sequences)
{
    result->at_a_time = sequences;
    result->chunk = hr_min(sequences * result->length, CHUNK_MOST);
}

/* First fewer logits at a time, then fewer sequences, then an MLP for fewer tokens: as few as need
 * be. None of it changes a bit. */
static bool is_less(hr_evaluate_result *result)
{
    const int64_t tile = result->mlp_tile ? result->mlp_tile : result->length;
    if (result->chunk > TOKENS_LEAST) result->chunk = half_of(result->chunk);
    else if (result->at_a_time > 1) begin_turns(result, result->at_a_time / 2);
    else if (tile > TOKENS_LEAST) result->mlp_tile = half_of(tile);
    else return false;
    return true;
}

static hr_status plan(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    const int64_t available = request->budget ? request->budget : hr_room_process_bytes();
    const int64_t length = e->source.length;
    hr_status status = hr_memory_region_open(e->memory, "planning", hr_compile_bytes(&e->config),
                                             &e->planning, err);
    if (status != HR_OK) return status;
    memset(e->planning.base, 0, (size_t)e->planning.bytes); /* touched whole, as it is accounted */
    begin_turns(e->result, hr_min(hr_max(TURN_TOKENS / length, 1), e->source.rows));
    for (;;) {
        status = compile(e, err);
        if (status != HR_OK) return status;
        int64_t needed = e->compiled.plan.process_bytes;
        if (!request->budget) needed += hr_process_kernel_bytes(needed, e->threads);
        if (needed <= available) break;
        if (is_less(e->result)) continue;
        char there[64], wanted[64];
        return hr_fail(err, HR_NO_FIT,
                       "%s and %lld tokens at a time need at least %s, there are %s; give a larger "
                       "--budget, shorter sequences, or --format bf16",
                       request->folder, (long long)length, hr_bytes_print(needed, wanted),
                       hr_bytes_print(available, there));
    }
    hr_memory_region_trim(e->memory, &e->planning);
    return HR_OK;
}

static void describe(evaluation *e)
{
    const hr_program *program = &e->compiled.program;
    e->result->arena_bytes_planned = e->compiled.plan.arena_bytes;
    e->result->process_bytes_planned = e->compiled.plan.process_bytes;
    for (int32_t p = 0; p < program->param_count; p++)
        e->result->weight_bytes += hr_tensor_bytes(&program->tensors[program->params[p].weight]);
}

/* ---- the steps of the host */

static hr_status load(evaluation *e, const hr_call *call, hr_error *err)
{
    const hr_host_attr *attr = call->attr;
    return hr_load(&e->weights, attr->param, &e->pool, call->out[0], call->out[1], call->scratch,
                   attr->staging_bytes, e->request->interrupts, err);
}

/* The sequences of a turn; the last may have fewer. */
static hr_status prompt(evaluation *e, hr_executor *executor, const hr_call *call, hr_error *err)
{
    const int64_t length = e->source.length;
    int32_t *ids = call->out[0];
    e->first = executor->turn[e->turn] * e->result->at_a_time;
    e->here = hr_min(e->result->at_a_time, e->source.rows - e->first);
    executor->rows_here = e->here * length;
    for (int64_t i = 0; i < e->here; i++) {
        const hr_status status = hr_sequences_read(&e->source, e->first + i, ids + i * length,
                                                   e->targets + i * length, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

typedef struct {
    hr_loss_row_fn *loss_of;
    const hr_call *call;
    const int32_t *targets; /* [call->rows] */
    double *losses;         /* [call->rows] */
    int64_t vocabulary;
} scoring;

static void score_some(void *context, int32_t thread, int32_t threads)
{
    const scoring *s = context;
    const int64_t row_bytes = s->vocabulary * hr_dtype_bytes(s->call->dtype);
    for (int64_t i = thread; i < s->call->rows; i += threads)
        if (s->targets[i] >= 0)
            s->losses[i] = s->loss_of((const char *)s->call->in[0] + i * row_bytes, NULL,
                                      s->vocabulary, s->targets[i], 1, 0, s->call->dtype)
                               .loss;
}

/* Sums run in the order of tokens, whatever cuts there are. */
static hr_status count_loss(evaluation *e, int64_t sequence, int64_t t, int32_t target, double loss,
                            hr_error *err)
{
    if (target >= 0) {
        const int64_t place = hr_sequences_place(&e->source, sequence, t);
        if (!isfinite(loss))
            return hr_fail(err, HR_DIVERGED,
                           "%s, sequence %lld: the logits for token %lld are not finite",
                           e->source.path, (long long)sequence, (long long)place);
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
        hr_questions_tell(&e->source, sequence, e->row_loss, e->row_tokens, &e->best, e->result);
    e->row_loss = 0;
    e->row_tokens = 0;
    return HR_OK;
}

static hr_status emit(evaluation *e, const hr_call *call, hr_error *err)
{
    const int64_t length = e->source.length, vocabulary = e->config.model.vocab_size;
    if (e->request->logits_out)
        return hr_logits_add(&e->logits, call->in[0], call->dtype, call->rows * vocabulary,
                             call->scratch, err);
    scoring s = { e->kernels.loss.row, call, e->targets + call->row_first, call->scratch,
                  vocabulary };
    hr_status status = HR_OK;
    hr_pool_run(&e->pool, score_some, &s);
    for (int64_t i = 0; i < call->rows && status == HR_OK; i++) {
        const int64_t row = call->row_first + i;
        status = count_loss(e, e->first + row / length, row % length, s.targets[i], s.losses[i],
                            err);
    }
    return status;
}

static hr_status host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    evaluation *e = context;
    if (is_interrupted(e)) return hr_fail(err, HR_INTERRUPTED, "interrupted; no file was written");
    switch (executor->program->steps[step].op) {
    case HR_OP_initialise: return load(e, call, err);
    case HR_OP_prompt: return prompt(e, executor, call, err);
    case HR_OP_emit: return emit(e, call, err);
    default: return hr_fail(err, HR_FAILURE, "step %d is no step of the host", step);
    }
}

/* ---- the run */

static hr_status open_run(evaluation *e, hr_error *err)
{
    const hr_program *program = &e->compiled.program;
    hr_region reading;
    hr_status status = hr_memory_region_open(e->memory, "tables of the run", run_bytes(e),
                                             &e->run_region, err);
    e->executor.program = program;
    if (status == HR_OK) status = hr_executor_place(&e->run_region, &e->executor, err);
    if (status == HR_OK)
        status = hr_memory_region_open(e->memory, "reading the names of tensors",
                                       hr_weights_in_scratch_bytes(e->request->folder), &reading,
                                       err);
    if (status != HR_OK) return status;
    status = hr_weights_in_open(&e->weights, program, e->request->folder, &e->run_region, &reading,
                                err);
    hr_memory_region_close(e->memory, &reading);
    e->ids = hr_region_take(&e->run_region, e->source.length, sizeof *e->ids);
    e->targets = hr_region_take(&e->run_region, e->result->at_a_time * e->source.length,
                                sizeof *e->targets);
    e->losses.text = hr_region_take(&e->run_region, HR_LOSSES_TEXT_BYTES, 1);
    if (status == HR_OK && !e->losses.text)
        status = hr_fail(err, HR_FAILURE, "no room for the run's tables");
    if (status == HR_OK) status = hr_sequences_check(&e->source, e->ids, e->targets, err);
    e->load = hr_program_loop(program, "load");
    e->sequences = hr_program_loop(program, "sequences");
    e->turn = hr_program_loop(program, "turn");
    return status;
}

static hr_status take_memory(evaluation *e, hr_error *err)
{
    const hr_plan *planned = &e->compiled.plan;
    const int64_t stacks_bytes = hr_pool_bytes(planned->threads);
    void *stacks;
    hr_status status = hr_memory_stacks_open(e->memory, stacks_bytes, &stacks, err);
    if (status == HR_OK)
        status = hr_pool_open(&e->pool, stacks, stacks_bytes, planned->threads, err);
    if (status == HR_OK)
        status = hr_memory_arena_open(e->memory, planned, e->request->interrupts, err);
    if (status == HR_OK) status = hr_memory_seal(e->memory, planned, err);
    if (status != HR_OK) return status;
    hr_kernels_fill(&e->kernels, e->cpu_mask);
    e->executor.plan = planned;
    e->executor.memory = e->memory;
    e->executor.pool = &e->pool;
    e->executor.kernels = &e->kernels;
    e->executor.dtype = e->config.train.format == HR_FORMAT_BF16 ? HR_BF16 : HR_F32;
    e->executor.host = host;
    e->executor.context = e;
    return HR_OK;
}

static hr_status run_section(evaluation *e, int32_t section, double *seconds, hr_error *err)
{
    const int64_t start = hr_clock_ns();
    const hr_status status = hr_executor_run(&e->executor, section, err);
    *seconds = (double)(hr_clock_ns() - start) * 1e-9;
    return status;
}

static void sum_up(evaluation *e)
{
    hr_evaluate_result *result = e->result;
    const double nats_of_a_bit = log(2);
    if (!result->tokens) return;
    result->loss = result->loss_sum / (double)result->tokens;
    result->perplexity = exp(result->loss);
    if (!e->request->tokens) result->bits_per_byte = result->loss / nats_of_a_bit;
}

/* Files get their names when all that goes into them is there. */
static hr_status run(evaluation *e, hr_error *err)
{
    const hr_evaluate_request *request = e->request;
    hr_evaluate_result *result = e->result;
    hr_status status = HR_OK;
    if (request->logits_out)
        status = hr_logits_begin(&e->logits, request->logits_out, result->sequences, result->length,
                                 e->config.model.vocab_size, err);
    if (status == HR_OK && request->per_token)
        status = hr_file_begin_path(&e->losses.file, request->per_token, err);
    e->executor.count[e->turn] = (result->sequences + result->at_a_time - 1) / result->at_a_time;
    if (status == HR_OK) status = run_section(e, e->load, &result->load_seconds, err);
    if (status == HR_OK) status = run_section(e, e->sequences, &result->run_seconds, err);
    if (status == HR_OK && request->logits_out) status = hr_file_commit(&e->logits, err);
    if (status == HR_OK && request->per_token) status = hr_losses_commit(&e->losses, err);
    if (status == HR_OK) sum_up(e);
    return status;
}

static hr_status settle(evaluation *e, hr_error *err)
{
    hr_evaluate_result *result = e->result;
    result->arena_bytes_used = e->memory->arena_bytes_used;
    result->process_bytes_measured = hr_memory_peak_bytes(e->memory);
    if (!hr_process_is_exact() || result->process_bytes_measured <= result->process_bytes_planned)
        return HR_OK;
    return hr_fail(err, HR_BROKEN, "the process was planned at %lld bytes and used %lld",
                   (long long)result->process_bytes_planned,
                   (long long)result->process_bytes_measured);
}

/* Not inlined: what lies on the stack when the memory is opened is in the plan. */
static __attribute__((noinline)) hr_status evaluate_in(hr_memory *memory,
                                                       const hr_evaluate_request *request,
                                                       hr_evaluate_result *result, hr_error *err)
{
    evaluation e = { .request = request,
                     .result = result,
                     .memory = memory,
                     .source = { .file = -1 },
                     .logits = { .directory = -1, .file = -1 },
                     .losses = { .file = { .directory = -1, .file = -1 } } };
    hr_status status = read_config(&e, err);
    if (status == HR_OK) status = plan(&e, err);
    if (status == HR_OK) describe(&e);
    if (status == HR_OK) status = open_run(&e, err);
    if (status == HR_OK) status = take_memory(&e, err);
    if (status == HR_OK) status = run(&e, err);
    if (status == HR_OK) status = settle(&e, err);
    hr_file_abort(&e.logits);
    hr_file_abort(&e.losses.file);
    hr_sequences_close(&e.source);
    hr_weights_in_close(&e.weights);
    hr_pool_close(&e.pool);
    return status;
}

hr_status hr_evaluate(const hr_evaluate_request *request, hr_evaluate_result *result, hr_error *err)
{
    hr_memory memory = { 0 };
    *result = (hr_evaluate_result){ 0 };
    hr_status status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = evaluate_in(&memory, request, result, err);
    hr_memory_close(&memory);
    return status;
}
