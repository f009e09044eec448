/* SPDX-License-Identifier: Apache-2.0 */
/* cli/generate.c - headroom generate: prints text while it is generated. Nothing may allocate after
 * the seal, so standard output has a static buffer (main.c). */
#include "headroom/generate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct {
    bool ids, json, terminal;
    int64_t printed;
    int lost; /* errno of a failed write; 0: none */
    hr_progress progress;
    hr_cli_work work;
} answer;

static void show_working(void *context, const char *work, int64_t done, int64_t total)
{
    answer *a = context;
    hr_cli_show_work(&a->progress, &a->work, work, done, total);
}

/* Writes the bytes unchanged to files and pipes, and only printable text to a terminal. */
static bool print_text(void *context, int32_t id, const char *text, int64_t bytes)
{
    answer *a = context;
    hr_progress_end(&a->progress);
    if (a->json && !a->printed) printf(a->ids ? "{ \"ids\": [" : "{ \"text\": \"");
    if (a->ids && id >= 0) printf(a->printed ? ",%d" : "%d", id);
    if (!a->ids && a->json) hr_cli_put_json_text(text, bytes);
    else if (!a->ids && a->terminal) hr_cli_put_text(text, bytes);
    else if (!a->ids) fwrite(text, 1, (size_t)bytes, stdout);
    a->printed++;
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    a->lost = errno;
    return false;
}

static hr_status read_request(const hr_cli_arguments *arguments, hr_infer_request *model,
                              hr_generate_request *request, hr_error *err)
{
    hr_sampling *s = &request->sampling;
    int64_t seed = 0;
    hr_status status = hr_cli_model(arguments, model, err);
    if (status == HR_OK)
        status = hr_cli_whole(arguments, HR_OPTION_MAX_TOKENS, &request->tokens, err);
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_CHUNK, &request->chunk, err);
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_TOP_K, &s->top_k, err);
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_SEED, &seed, err);
    if (status == HR_OK)
        status = hr_cli_number(arguments, HR_OPTION_TEMPERATURE, &s->temperature, err);
    if (status == HR_OK) status = hr_cli_number(arguments, HR_OPTION_TOP_P, &s->top_p, err);
    if (status == HR_OK) status = hr_cli_number(arguments, HR_OPTION_MIN_P, &s->min_p, err);
    if (status == HR_OK)
        status = hr_cli_number(arguments, HR_OPTION_REPETITION_PENALTY, &s->repetition_penalty,
                               err);
    s->seed = (uint64_t)seed;
    return status;
}

static const char *const ends[] = { [HR_END_TOKENS] = "tokens",
                                    [HR_END_POSITIONS] = "positions",
                                    [HR_END_STOP] = "stop",
                                    [HR_END_DOCUMENT] = "document",
                                    [HR_END_INTERRUPT] = "interrupt" };

static void print_json(const hr_generate_result *r)
{
    printf(", \"end\": \"%s\", \"prompt_tokens\": %lld, \"tokens\": %lld, \"positions\": %lld, "
           "\"chunk\": %lld, \"cache_bytes\": %lld, ",
           ends[r->end], (long long)r->prompt_tokens, (long long)r->tokens, (long long)r->positions,
           (long long)r->chunk, (long long)r->cache_bytes);
    hr_cli_put_json_run(&r->run);
    printf(", \"prompt_seconds\": %.6f, \"answer_seconds\": %.6f } }\n", r->prompt_seconds,
           r->answer_seconds);
}

/* Printed to standard error, separate from the text. */
static void print_report(const hr_generate_result *r)
{
    if (r->end == HR_END_POSITIONS)
        fprintf(stderr, "generation stopped at the %s positions of the model\n",
                hr_cli_count(r->positions));
    const double rate = r->answer_seconds > 0 ? (double)(r->tokens - 1) / r->answer_seconds : 0;
    if (rate > 0)
        fprintf(stderr, "%s tokens, %.*f tokens/s; ", hr_cli_count(r->tokens), rate < 1 ? 3 : 1,
                rate);
    hr_cli_put_run(stderr, &r->run);
}

int hr_cli_generate(const hr_cli_arguments *arguments)
{
    answer a = { .ids = arguments->values[HR_OPTION_PRINT_IDS] != NULL,
                 .json = arguments->values[HR_OPTION_JSON] != NULL,
                 .terminal = isatty(STDOUT_FILENO),
                 .progress = hr_progress_begin(STDERR_FILENO) };
    int32_t stop_count;
    const char *const *stops = hr_cli_repeated(arguments, HR_OPTION_STOP, &stop_count);
    hr_infer_request model;
    hr_generate_request request = {
        .size = sizeof request,
        .model = &model,
        .prompt = arguments->values[HR_OPTION_PROMPT],
        .prompt_file = arguments->values[HR_OPTION_FILE],
        .prompt_ids = arguments->values[HR_OPTION_PROMPT_IDS],
        .tokens = 128,
        .sampling = { .repetition_penalty = 1, .temperature = 0.8, .top_p = 1 },
        .stops = stops,
        .stop_count = stop_count,
        .wants_ids = a.ids,
        .ignores_end = arguments->values[HR_OPTION_IGNORE_EOS] != NULL,
        .on_text = print_text,
        .context = &a
    };
    hr_generate_result result;
    hr_error err;
    if (read_request(arguments, &model, &request, &err) != HR_OK) return hr_cli_fail(&err);
    model.working = show_working;
    model.working_context = &a;
    const hr_status status = hr_generate(&request, &result, &err);
    hr_progress_end(&a.progress);
    if (a.lost) { /* main.c reports write errors on standard output, for all commands */
        errno = a.lost;
        return HR_FAILURE;
    }
    if (a.json && a.printed) printf(a.ids ? "]" : "\"");
    else if (a.printed) putchar('\n');
    const bool finished = status == HR_OK || status == HR_BROKEN;
    if (a.json && a.printed && finished) print_json(&result);
    else if (a.json && a.printed) printf(" }\n");
    fflush(stdout);
    if (status != HR_OK) {
        const int code = hr_cli_fail(&err);
        return status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
    }
    if (result.end == HR_END_INTERRUPT)
        fprintf(stderr, "headroom: interrupted after %lld tokens\n", (long long)result.tokens);
    if (!a.json) print_report(&result);
    return result.end == HR_END_INTERRUPT ? hr_cli_signal_code() : HR_OK;
}
