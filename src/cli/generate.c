/* SPDX-License-Identifier: Apache-2.0 */
/* cli/generate.c - headroom generate: text as it comes. After the seal nothing may allocate:
 * standard output has a buffer of its own (main.c). */
#include "headroom/generate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct {
    bool ids, json, terminal;
    int64_t told;
} answer;

static volatile sig_atomic_t interrupts;

/* The first ends the answer; the second does not wait for that. */
static void interrupted(int signal_number)
{
    interrupts = interrupts + 1;
    if (interrupts > 1) _exit(128 + signal_number);
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupted, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* A file or a program gets the bytes as they are, a terminal what it can show. */
static void told(void *context, int32_t id, const char *text, int64_t bytes)
{
    answer *a = context;
    if (a->json && !a->told) printf(a->ids ? "{ \"ids\": [" : "{ \"text\": \"");
    if (a->ids && id >= 0) printf(a->told ? ",%d" : "%d", id);
    if (!a->ids && a->json) hr_cli_put_json_text(text, bytes);
    else if (!a->ids && a->terminal) hr_cli_put_text(text, bytes);
    else if (!a->ids) fwrite(text, 1, (size_t)bytes, stdout);
    a->told++;
    fflush(stdout);
}

hr_status hr_cli_number(const hr_cli_arguments *arguments, hr_cli_option_id id, double *value,
                        hr_error *err)
{
    const char *text = arguments->values[id];
    char *end;
    if (!text) return HR_OK;
    *value = strtod(text, &end);
    if (end != text && !*end) return HR_OK;
    return hr_fail(err, HR_USAGE, "--%s %.40s is not a number", hr_cli_option_at((int32_t)id)->name,
                   text);
}

hr_status hr_cli_whole(const hr_cli_arguments *arguments, hr_cli_option_id id, int64_t *value,
                       hr_error *err)
{
    double wide = (double)*value;
    const hr_status status = hr_cli_number(arguments, id, &wide, err);
    if (status != HR_OK) return status;
    if (!(wide >= 0 && wide <= 1e15) || wide != (double)(int64_t)wide)
        return hr_fail(err, HR_USAGE, "--%s %.40s is not a whole number from 0 on",
                       hr_cli_option_at((int32_t)id)->name, arguments->values[id]);
    *value = (int64_t)wide;
    return HR_OK;
}

hr_status hr_cli_model_words(const hr_cli_arguments *arguments, int32_t *numbers, bool *is_bytes,
                             int64_t *bytes, hr_error *err)
{
    const char *format = arguments->values[HR_OPTION_FORMAT];
    const char *tokenizer = arguments->values[HR_OPTION_TOKENIZER];
    const char *budget = arguments->values[HR_OPTION_BUDGET];
    if (format && strcmp(format, "fp32") != 0 && strcmp(format, "bf16") != 0)
        return hr_fail(err, HR_USAGE, "--format %.40s is none of fp32, bf16", format);
    if (tokenizer && strcmp(tokenizer, "bytes") != 0)
        return hr_fail(err, HR_USAGE, "--tokenizer %.40s is not known; there is bytes", tokenizer);
    *numbers = format && !strcmp(format, "bf16") ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
    *is_bytes = tokenizer != NULL;
    if (!budget) return HR_OK;
    const hr_status status = hr_bytes_parse(budget, bytes, err);
    if (status == HR_OK && *bytes == 0)
        return hr_fail(err, HR_USAGE, "--budget %.40s is no room at all; give a size", budget);
    return status;
}

static hr_status read_request(const hr_cli_arguments *arguments, hr_generate_request *request,
                              hr_error *err)
{
    hr_sampling *s = &request->sampling;
    int64_t seed = 0;
    hr_status status = hr_cli_model_words(arguments, &request->format, &request->is_bytes,
                                          &request->budget, err);
    if (status == HR_OK)
        status = hr_cli_whole(arguments, HR_OPTION_MAX_TOKENS, &request->tokens, err);
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_CHUNK, &request->chunk, err);
    if (status == HR_OK)
        status = hr_cli_whole(arguments, HR_OPTION_THREADS, &request->threads, err);
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
                                    [HR_END_INTERRUPT] = "interrupt" };

static void print_json(const hr_generate_result *r)
{
    printf(", \"end\": \"%s\", \"prompt_tokens\": %lld, \"tokens\": %lld, \"positions\": %lld, "
           "\"chunk\": %lld, \"weight_bytes\": %lld, \"cache_bytes\": %lld, "
           "\"arena_bytes_planned\": %lld, \"arena_bytes_used\": %lld, "
           "\"process_bytes_planned\": %lld, \"process_bytes_measured\": %lld, "
           "\"clock\": { \"load_seconds\": %.6f, \"prompt_seconds\": %.6f, "
           "\"answer_seconds\": %.6f } }\n",
           ends[r->end], (long long)r->prompt_tokens, (long long)r->tokens, (long long)r->positions,
           (long long)r->chunk, (long long)r->weight_bytes, (long long)r->cache_bytes,
           (long long)r->arena_bytes_planned, (long long)r->arena_bytes_used,
           (long long)r->process_bytes_planned, (long long)r->process_bytes_measured,
           r->load_seconds, r->prompt_seconds, r->answer_seconds);
}

/* Beside the text, not in it. */
static void print_report(const hr_generate_result *r)
{
    char planned[64], measured[64];
    if (r->end == HR_END_POSITIONS)
        fprintf(stderr, "the answer was cut: the model has %lld positions\n",
                (long long)r->positions);
    if (r->tokens > 1 && r->answer_seconds > 0)
        fprintf(stderr, "%lld tokens, %.1f a second; ", (long long)r->tokens,
                (double)(r->tokens - 1) / r->answer_seconds);
    fprintf(stderr, "memory planned %s, measured %s\n",
            hr_bytes_print(r->process_bytes_planned, planned),
            hr_bytes_print(r->process_bytes_measured, measured));
}

int hr_cli_generate(const hr_cli_arguments *arguments)
{
    const char *stop = arguments->values[HR_OPTION_STOP];
    answer a = { .ids = arguments->values[HR_OPTION_PRINT_IDS] != NULL,
                 .json = arguments->values[HR_OPTION_JSON] != NULL,
                 .terminal = isatty(STDOUT_FILENO) };
    hr_generate_request request = {
        .folder = arguments->operands[0],
        .prompt = arguments->values[HR_OPTION_PROMPT],
        .prompt_file = arguments->values[HR_OPTION_FILE],
        .prompt_ids = arguments->values[HR_OPTION_PROMPT_IDS],
        .tokens = 128,
        .sampling = { .repetition_penalty = 1, .temperature = 0.8, .top_p = 1 },
        .stops = &stop,
        .stop_count = stop != NULL,
        .wants_ids = a.ids,
        .kernels = arguments->values[HR_OPTION_KERNELS],
        .told = told,
        .context = &a
    };
    hr_generate_result result;
    hr_error err;
    if (stop && (!*stop || strlen(stop) >= HR_STOP_BYTES)) {
        (void)hr_fail(&err, HR_USAGE, "--stop takes a text of 1 to %d bytes", HR_STOP_BYTES - 1);
        return hr_cli_fail(&err);
    }
    if (read_request(arguments, &request, &err) != HR_OK) return hr_cli_fail(&err);
    catch_signals();
    request.interrupts = &interrupts;
    const hr_status status = hr_generate(&request, &result, &err);
    if (a.json && a.told) printf(a.ids ? "]" : "\"");
    else if (a.told) putchar('\n');
    if (a.json && a.told) print_json(&result);
    fflush(stdout);
    if (status != HR_OK) return hr_cli_fail(&err);
    if (!a.json) print_report(&result);
    return result.end == HR_END_INTERRUPT ? 130 : 0;
}
