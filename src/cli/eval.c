/* SPDX-License-Identifier: Apache-2.0 */
/* cli/eval.c - headroom eval: builds the request from options, prints the results as text or
 * JSON. */
#include "headroom/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

static hr_status read_request(const hr_cli_arguments *arguments, hr_infer_request *model,
                              hr_evaluate_request *request, hr_error *err)
{
    static const hr_cli_option_id windows[] = { HR_OPTION_CONTEXT, HR_OPTION_STRIDE };
    int64_t *const sizes[] = { &request->context, &request->stride };
    hr_status status = hr_cli_model(arguments, model, err);
    for (int32_t i = 0; i < 2 && status == HR_OK; i++) {
        const char *given = arguments->values[windows[i]];
        status = hr_cli_whole(arguments, windows[i], sizes[i], err);
        if (status == HR_OK && given && *sizes[i] == 0)
            status = hr_fail(err, HR_USAGE, "--%s takes at least 1",
                             hr_cli_option_at((int32_t)windows[i])->name);
    }
    return status;
}

/* Not finite: null. */
static void put_real(const char *name, double value)
{
    printf(isfinite(value) ? ", \"%s\": %.12g" : ", \"%s\": null", name, value);
}

static void print_json(const hr_evaluate_request *q, const hr_evaluate_result *r)
{
    printf("{ \"sequences\": %lld, \"length\": %lld, \"at_a_time\": %lld, \"chunk\": %lld, "
           "\"mlp_tile\": %lld",
           (long long)r->sequences, (long long)r->length, (long long)r->at_a_time,
           (long long)r->chunk, (long long)r->mlp_tile);
    if (r->positions) printf(", \"positions\": %lld", (long long)r->positions);
    if (q->text)
        printf(", \"stride\": %lld, \"bad_lines\": %lld", (long long)r->stride,
               (long long)r->bad_lines);
    if (q->tokens) printf(", \"labels\": %s", r->has_labels ? "true" : "false");
    if (!q->logits_out) printf(", \"tokens\": %lld", (long long)r->tokens);
    if (r->tokens) {
        put_real("loss_sum", r->loss_sum);
        put_real("loss", r->loss);
        put_real("perplexity", r->perplexity);
    }
    if (q->text || r->bits_per_byte > 0) put_real("bits_per_byte", r->bits_per_byte);
    if (q->choices)
        printf(", \"questions\": %lld, \"right\": %lld, \"right_by_length\": %lld",
               (long long)r->questions, (long long)r->right, (long long)r->right_by_length);
    if (r->change_count) {
        put_real("base_loss", r->base_loss);
        put_real("base_perplexity", r->base_perplexity);
    }
    for (int32_t i = 0; i < r->change_count; i++)
        printf("%s{ \"layer\": %lld, \"module\": \"%s\", \"error\": %.9g, \"change\": %.9g }",
               i ? ", " : ", \"npt\": [", (long long)r->changes[i].layer, r->changes[i].module,
               r->changes[i].error, r->changes[i].norm);
    printf(r->change_count ? "], " : ", ");
    hr_cli_put_json_run(&r->run);
    printf(", \"run_seconds\": %.6f } }\n", r->run_seconds);
}

static double share(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_changes(const hr_evaluate_result *r)
{
    printf("the base alone: loss %.6f, perplexity %.4f\n\n", r->base_loss, r->base_perplexity);
    printf("  %5s  %-20s %17s %17s\n", "layer", "module", "error", "||change||");
    for (int32_t i = 0; i < r->change_count; i++)
        printf("  %5lld  %-20s %17.6g %17.6g\n", (long long)r->changes[i].layer,
               r->changes[i].module, r->changes[i].error, r->changes[i].norm);
    printf("error: mean squared, of the layer against the standard one on the same input; "
           "||change||:\nFrobenius norm of the change of the matrix, mean over tokens\n");
}

static void print_words(const hr_evaluate_request *q, const hr_evaluate_result *r)
{
    const int64_t length = r->length;
    if (q->logits_out)
        printf("%s: logits of %s x %s token%s\n", q->logits_out, hr_cli_count(r->sequences),
               hr_cli_count(r->length), r->length == 1 ? "" : "s");
    else if (q->choices)
        printf("%s question%s: accuracy %.2f %%, length-normalized accuracy %.2f %%\n",
               hr_cli_count(r->questions), r->questions == 1 ? "" : "s",
               share(r->right, r->questions), share(r->right_by_length, r->questions));
    else if (!r->tokens) printf("no token has a target: there is no loss\n");
    else printf("loss %.6f nats per token, perplexity %.4f", r->loss, r->perplexity);
    if (r->tokens && q->text && isfinite(r->bits_per_byte))
        printf(", %.6f bits per byte", r->bits_per_byte);
    if (r->tokens && !q->choices)
        printf("\n%s token%s in %s %s%s of %s token%s", hr_cli_count(r->tokens),
               r->tokens == 1 ? "" : "s", hr_cli_count(r->sequences),
               q->text ? "window" : "sequence", r->sequences == 1 ? "" : "s",
               hr_cli_count(r->length), r->length == 1 ? "" : "s");
    if (r->tokens && q->text && r->stride < r->length)
        printf(", stride %s", hr_cli_count(r->stride));
    else if (r->tokens && q->text) printf(", no overlap");
    else if (r->tokens && q->tokens)
        printf(r->has_labels ? ", targets: labels" : ", targets: next tokens");
    if (r->bad_lines)
        printf(", %s bad line%s skipped", hr_cli_count(r->bad_lines), r->bad_lines == 1 ? "" : "s");
    if (r->tokens && !q->choices) putchar('\n');
    if (r->change_count) print_changes(r);
    if (r->positions && length > r->positions)
        printf("warning: sequences of %s tokens exceed the %s positions of the model\n",
               hr_cli_count(length), hr_cli_count(r->positions));
    hr_cli_put_run(stdout, &r->run);
}

typedef struct {
    hr_progress progress;
    hr_cli_work work;
} screen;

static void show_working(void *context, const char *work, int64_t done, int64_t total)
{
    screen *s = context;
    hr_cli_show_work(&s->progress, &s->work, work, done, total);
}

/* The file of a corpus, or the text as it is. Not inlined: the stack is planned. */
static __attribute__((noinline)) const char *find_corpus(const char *text)
{
    static char found[HR_PATH_BYTES];
    hr_config *config = hr_config_new();
    if (config && hr_config_set(config, "data.valid", text, NULL) == HR_OK) {
        hr_cli_find_corpora(config);
        snprintf(found, sizeof found, "%s", hr_config_text(config, "data.valid"));
        text = found;
    }
    hr_config_free(config);
    return text;
}

int hr_cli_eval(const hr_cli_arguments *arguments)
{
    hr_infer_request model;
    hr_evaluate_request request = { .size = sizeof request,
                                    .model = &model,
                                    .tokens = arguments->values[HR_OPTION_TOKENS],
                                    .text = arguments->values[HR_OPTION_TEXT_FILE],
                                    .choices = arguments->values[HR_OPTION_CHOICES],
                                    .keys = (const char *const *)arguments->operands + 1,
                                    .key_count = arguments->operand_count - 1,
                                    .logits_out = arguments->values[HR_OPTION_LOGITS_OUT],
                                    .per_token = arguments->values[HR_OPTION_PER_TOKEN],
                                    .scratch = getenv("TMPDIR") };
    hr_evaluate_result result;
    hr_error err;
    if (request.text) request.text = find_corpus(request.text);
    hr_status status = read_request(arguments, &model, &request, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    model.working = show_working;
    model.working_context = &s;
    status = hr_evaluate(&request, &result, &err);
    hr_progress_end(&s.progress);
    int code = HR_OK;
    if (status != HR_OK) code = hr_cli_fail(&err);
    else if (arguments->values[HR_OPTION_JSON]) print_json(&request, &result);
    else print_words(&request, &result);
    return status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
}
