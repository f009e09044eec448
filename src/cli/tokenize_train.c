/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tokenize_train.c - headroom tokenize train: trains a tokenizer. Nothing may allocate after
 * the seal, so standard output has a static buffer (main.c). */
#include "headroom/tokenize_train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"

typedef struct {
    hr_progress progress;
    bool json;
    char work[64]; /* the current work */
    int64_t begun_ns, begun_done;
} screen;

/* Estimates the remaining time from the average speed of the current work. */
static void show_progress(void *context, const char *work, int64_t done, int64_t all)
{
    screen *s = context;
    char line[HR_PROGRESS_BYTES], left[64] = "", time[HR_COUNT_BYTES];
    if (!s->progress.terminal) return;
    const int64_t now = hr_cli_now_ns();
    if (strcmp(work, s->work) != 0) {
        snprintf(s->work, sizeof s->work, "%s", work);
        s->begun_ns = now;
        s->begun_done = done;
    }
    const double seconds = (double)(now - s->begun_ns) / 1e9, part = (double)(done - s->begun_done);
    if (seconds > 0.5 && part > 0)
        snprintf(left, sizeof left, ", %s left",
                 hr_duration_print(floor(seconds / part * (double)(all - done)), time));
    snprintf(line, sizeof line, "%s: %lld of %lld%s", work, (long long)done, (long long)all, left);
    hr_progress_note(&s->progress, line, now);
}

static void planned(void *context, const hr_tokenize_train_plan *plan)
{
    screen *s = context;
    char process[64], tables[64], engine[64];
    hr_progress_end(&s->progress);
    if (s->json) return;
    printf("plan   stage %d%s: %s bytes of text in %s lines, %s %s\n", plan->stage,
           plan->resumed ? ", resumed" : "", hr_cli_count(plan->text_bytes),
           hr_cli_count(plan->lines), hr_cli_count(plan->words),
           plan->stage == 1 ? "distinct words" : "words");
    printf("plan   process memory %s: counting %s, then merging %s\n",
           hr_bytes_print(plan->process_bytes_planned, process),
           hr_bytes_print(plan->tables_bytes, tables), hr_bytes_print(plan->engine_bytes, engine));
    fflush(stdout);
}

static void print_text(const hr_tokenize_train_request *request, const hr_tokenize_train_result *r)
{
    char planned_text[64], measured[64];
    if (r->inherited)
        printf("merges %s inherited from stage 1, %s of them skipped because they cannot occur\n",
               hr_cli_count(r->inherited), hr_cli_count(r->dropped));
    printf("saved  %s/tokenizer.json, vocab.json, merges.txt: %s tokens, %s merges\n", request->out,
           hr_cli_count(r->tokens), hr_cli_count(r->merges));
    if (r->tokens < request->vocab_size)
        printf("       no more pairs occur %lld time%s or more\n",
               (long long)(request->min_frequency ? request->min_frequency : 1),
               request->min_frequency > 1 ? "s" : "");
    printf("memory planned %s, measured %s\n",
           hr_bytes_print(r->plan.process_bytes_planned, planned_text),
           hr_bytes_print(r->process_bytes_measured, measured));
}

static void print_json(const hr_tokenize_train_result *r)
{
    printf("{ \"tokens\": %lld, \"merges\": %lld, \"inherited\": %lld, \"dropped\": %lld, "
           "\"text_bytes\": %lld, \"lines\": %lld, \"words\": %lld, \"recounts\": %lld, "
           "\"process_bytes_planned\": %lld, \"process_bytes_measured\": %lld, \"clock\": { "
           "\"look_seconds\": %.6f, \"count_seconds\": %.6f, \"build_seconds\": %.6f, "
           "\"merge_seconds\": %.6f, \"write_seconds\": %.6f } }\n",
           (long long)r->tokens, (long long)r->merges, (long long)r->inherited,
           (long long)r->dropped, (long long)r->plan.text_bytes, (long long)r->plan.lines,
           (long long)r->plan.words, (long long)r->recounts,
           (long long)r->plan.process_bytes_planned, (long long)r->process_bytes_measured,
           r->look_seconds, r->count_seconds, r->build_seconds, r->merge_seconds, r->write_seconds);
}

static hr_status read_numbers(const hr_cli_arguments *a, hr_tokenize_train_request *request,
                              hr_error *err)
{
    const char *budget = a->values[HR_OPTION_BUDGET];
    const struct {
        hr_cli_option_id id;
        int64_t *value;
    } numbers[] = { { HR_OPTION_VOCAB_SIZE, &request->vocab_size },
                    { HR_OPTION_MIN_FREQUENCY, &request->min_frequency },
                    { HR_OPTION_LIMIT_ALPHABET, &request->limit_alphabet },
                    { HR_OPTION_MAX_TOKEN_LENGTH, &request->max_token_length },
                    { HR_OPTION_TRANSITION, &request->transition },
                    { HR_OPTION_THREADS, &request->threads } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const hr_status status = hr_cli_whole(a, numbers[i].id, numbers[i].value, err);
        if (status != HR_OK) return status;
    }
    hr_status status = budget ? hr_bytes_parse(budget, &request->budget, err) : HR_OK;
    if (status == HR_OK && budget && request->budget == 0)
        status = hr_fail(err, HR_USAGE, "--budget %.40s is zero; give a size", budget);
    if (status == HR_OK && (!request->out || !*request->out))
        status = hr_fail(err, HR_USAGE, "tokenize train needs --out DIR");
    return status;
}

int hr_cli_tokenize_train(const hr_cli_arguments *a)
{
    screen s = { .progress = hr_progress_begin(STDERR_FILENO),
                 .json = a->values[HR_OPTION_JSON] != NULL };
    hr_tokenize_train_request request;
    hr_tokenize_train_result result;
    hr_error err;
    hr_tokenize_train_default(&request);
    request.files = (const char *const *)a->operands;
    request.file_count = a->operand_count;
    request.out = a->values[HR_OPTION_TOKENIZER_OUT];
    request.initial_alphabet = a->values[HR_OPTION_INITIAL_ALPHABET];
    request.special_tokens = a->repeated;
    request.special_count = a->repeated_count;
    request.pattern = a->values[HR_OPTION_PATTERN];
    request.like = a->values[HR_OPTION_LIKE];
    request.prefix_space = a->values[HR_OPTION_PREFIX_SPACE] != NULL;
    request.pattern_two = a->values[HR_OPTION_PATTERN_TWO];
    request.like_two = a->values[HR_OPTION_LIKE_TWO];
    request.inherit = a->values[HR_OPTION_INHERIT];
    request.planned = planned;
    request.progress = show_progress;
    request.context = &s;
    if (read_numbers(a, &request, &err) != HR_OK) return hr_cli_fail(&err);
    request.interrupts = hr_cli_catch_signals(NULL);
    const hr_status status = hr_tokenize_train(&request, &result, &err);
    hr_progress_end(&s.progress);
    if (status == HR_OK && s.json) print_json(&result);
    else if (status == HR_OK) print_text(&request, &result);
    if (status == HR_OK) return HR_OK;
    const int code = hr_cli_fail(&err);
    return status == HR_INTERRUPTED && !result.saved ? hr_cli_signal_code() : code;
}
