/* SPDX-License-Identifier: Apache-2.0 */
/* cli/data.c - headroom data inspect: summarizes the texts of a recipe. */
#include "headroom/data.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"
#include "headroom/stages.h"

typedef struct {
    hr_progress progress;
    json_t *texts, *samples; /* null: print text immediately */
    int32_t sample;
    bool staged; /* each stage has rows of its own: no shares of the run */
} screen;

static void show_preparing(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    screen *s = context;
    hr_cli_show_bytes(&s->progress, work, bytes_done, bytes_total);
}

/* Prints notes to standard error, because standard output may be JSON. */
static void show_note(void *context, const char *line)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    fprintf(stderr, "%s\n", line);
}

/* ---- text */

static double share_of(int64_t part, int64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_text(const hr_data_text *text)
{
    char bytes[64];
    printf("%s  %s\n", text->key, text->name);
    if (text->files)
        printf("  files      %s, %s\n", hr_cli_count(text->files),
               hr_bytes_print(text->bytes, bytes));
    printf("  documents  %s", hr_cli_count(text->documents));
    if (text->documents)
        printf(", mean length %s tokens, longest %s",
               hr_cli_count((text->tokens + text->documents / 2) / text->documents),
               hr_cli_count(text->longest));
    printf("\n  tokens     %s, %.2f %% in the vocabulary", hr_cli_count(text->tokens),
           share_of(text->covered, text->tokens));
    if (text->masked)
        printf(", %.2f %% masked from the loss", share_of(text->masked, text->tokens));
    printf("\n");
    if (text->bad_lines) printf("  bad lines  %s, skipped\n", hr_cli_count(text->bad_lines));
    printf("  windows    %s", hr_cli_count(text->windows));
    if (text->share > 0) printf(", %.4f epochs in this run", text->passes);
    if (text->share > 0 && text->share < 1)
        printf(", %.4f %% of all training rows", 100 * text->share);
    printf("\n  shard      %s%s\n", text->shard, text->reused ? " (cached)" : "");
}

static void print_sample(screen *s, const hr_data_sample *sample)
{
    printf("\nsample %d  %s, %s at token %s\n", ++s->sample, sample->name,
           sample->begins ? "document" : "inside a document", hr_cli_count(sample->token));
    if (sample->prompt_bytes) {
        printf("[prompt] ");
        fflush(stdout);
        hr_cli_put_text(sample->prompt, sample->prompt_bytes);
        printf("\n[completion] ");
    }
    hr_cli_put_text(sample->text, sample->text_bytes);
    printf("\n");
}

/* ---- JSON */

static void add_text(screen *s, const hr_data_text *text)
{
    json_array_append_new(
        s->texts,
        json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b}",
                  "key", text->key, "name", hr_cli_json_string(text->name), "shard",
                  hr_cli_json_string(text->shard), "files", (json_int_t)text->files, "bytes",
                  (json_int_t)text->bytes, "documents", (json_int_t)text->documents, "tokens",
                  (json_int_t)text->tokens, "covered", (json_int_t)text->covered, "longest",
                  (json_int_t)text->longest, "masked", (json_int_t)text->masked, "bad_lines",
                  (json_int_t)text->bad_lines, "windows", (json_int_t)text->windows, "share",
                  text->share, "passes", text->passes, "reused", text->reused));
}

/* Text of a shard can be cut inside a character: invalid UTF-8 is omitted from JSON. */
static json_t *text_of(const char *text, int64_t bytes)
{
    json_t *string = json_stringn(text, (size_t)bytes);
    for (int64_t cut = 1; !string && cut < 4 && cut <= bytes; cut++)
        string = json_stringn(text, (size_t)(bytes - cut));
    return string ? string : json_null();
}

static void add_sample(screen *s, const hr_data_sample *sample)
{
    json_array_append_new(s->samples,
                          json_pack("{s:s, s:I, s:b, s:o, s:o}", "name", sample->name, "token",
                                    (json_int_t)sample->token, "begins", sample->begins, "prompt",
                                    text_of(sample->prompt, sample->prompt_bytes), "text",
                                    text_of(sample->text, sample->text_bytes)));
}

static void show_text(void *context, const hr_data_text *text)
{
    screen *s = context;
    hr_data_text shown = *text;
    if (s->staged) shown.share = shown.passes = 0;
    hr_progress_end(&s->progress);
    if (s->texts) add_text(s, &shown);
    else print_text(&shown);
}

static void show_sample(void *context, const hr_data_sample *sample)
{
    screen *s = context;
    if (s->samples) add_sample(s, sample);
    else print_sample(s, sample);
}

static void print_json(screen *s)
{
    json_t *all = json_pack("{s:o, s:o}", "texts", s->texts, "samples", s->samples);
    (void)hr_cli_print_json(all, 0);
}

static int inspect(const hr_cli_arguments *arguments, hr_config *config)
{
    hr_error err;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    int64_t cache_limit_bytes;
    if (hr_cli_recipe(arguments, config, &err) != HR_OK) return hr_cli_fail(&err);
    s.staged = hr_config_has_stages(config);
    if (hr_cli_take_cache(config, &cache_limit_bytes, &err) != HR_OK ||
        hr_cli_leave_stages(config, &err) != HR_OK)
        return hr_cli_fail(&err);
    const bool json = arguments->values[HR_OPTION_JSON];
    if (json) s.texts = json_array();
    if (json) s.samples = json_array();
    const hr_data_events events = {
        .context = &s,
        .preparing = show_preparing,
        .text = show_text,
        .sample = show_sample,
        .note = show_note,
        .cache_limit_bytes = cache_limit_bytes,
        .interrupts = hr_cli_catch_signals(NULL),
    };
    const hr_status status = hr_data_inspect(config, &events, &err);
    hr_progress_end(&s.progress);
    if (json && status == HR_OK) print_json(&s);
    if (status == HR_OK) return HR_OK;
    const int code = hr_cli_fail(&err);
    return status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
}

int hr_cli_data(const hr_cli_arguments *arguments)
{
    return hr_cli_with_config(arguments, inspect);
}
