/* SPDX-License-Identifier: Apache-2.0 */
/* cli/audit.c - headroom audit: checks what a file states about memory. */
#include "audit_files.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kind */

static hr_status read_kind(const char *word, hr_audit_kind *kind, hr_error *err)
{
    int32_t least = INT32_MAX, nearest = HR_AUDIT_CLAIMS;
    *kind = HR_AUDIT_AUTO;
    if (!word) return HR_OK;
    for (int32_t k = HR_AUDIT_CLAIMS; k < HR_AUDIT_KINDS; k++) {
        const int32_t distance = hr_word_distance(word, hr_audit_kind_word((hr_audit_kind)k));
        if (distance >= least) continue;
        least = distance;
        nearest = k;
    }
    *kind = (hr_audit_kind)nearest;
    if (!least) return HR_OK;
    return hr_fail(err, HR_USAGE, "--kind %.40s is not known; the nearest is %s", word,
                   hr_audit_kind_word(*kind));
}

/* ---- text */

static void print_claim(const hr_audit_claim *claim)
{
    static const char *const marks[] = {
        [HR_VERDICT_TRUE] = "true ", [HR_VERDICT_UNIT] = "UNIT ", [HR_VERDICT_WRONG] = "WRONG"
    };
    printf("  line %-4lld %s  ", (long long)claim->line, marks[claim->verdict]);
    hr_cli_put_string(claim->stated);
    printf(" = ");
    hr_cli_put_string(claim->formula);
    if (*claim->where) {
        printf("  [");
        hr_cli_put_string(claim->where);
        printf("]");
    }
    /* A true claim takes one line. */
    const bool plain = !strncmp(claim->sentence, "true: ", 6);
    if (plain) printf(": %s\n", claim->right);
    else printf("\n             %s\n", claim->sentence);
}

/* Lines with numbers that were not checked. */
static int32_t unread_of(const hr_audit_report *report)
{
    return report->unread_count + report->unread_left_out;
}

static void print_claims(const char *path, const hr_audit_report *report)
{
    const int32_t *n = report->verdicts;
    const int32_t count = n[HR_VERDICT_TRUE] + n[HR_VERDICT_UNIT] + n[HR_VERDICT_WRONG];
    printf("%s (%s): checked %d of %d: %d true, %d in the wrong unit, %d wrong\n", path,
           hr_audit_kind_text(report->kind), count, count + unread_of(report), n[HR_VERDICT_TRUE],
           n[HR_VERDICT_UNIT], n[HR_VERDICT_WRONG]);
    for (int32_t v = HR_VERDICT_WRONG; v >= 0; v--)
        for (int32_t i = 0; i < report->claim_count; i++)
            if ((int32_t)report->claims[i].verdict == v) print_claim(&report->claims[i]);
    if (report->claims_left_out) printf("  %d more claims\n", report->claims_left_out);
    if (report->unread_count)
        printf("not checked, since nothing says what they are computed from:\n");
    for (int32_t i = 0; i < report->unread_count; i++) {
        printf("  line %-4lld ", (long long)report->unread[i].line);
        hr_cli_put_string(report->unread[i].text);
        printf("\n");
    }
    if (report->unread_left_out) printf("  %d more lines\n", report->unread_left_out);
}

/* ---- JSON */

/* Texts of others may be cut inside a character. */
static json_t *json_of_text(const char *text)
{
    json_t *value = json_string(text);
    if (value) return value;
    char plain[HR_AUDIT_SENTENCE_BYTES];
    size_t n = 0;
    for (; text[n] && n + 1 < sizeof plain; n++)
        plain[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
    plain[n] = 0;
    return json_string(plain);
}

static json_t *json_of_claims(const hr_audit_report *report)
{
    static const char *const verdicts[] = {
        [HR_VERDICT_TRUE] = "true", [HR_VERDICT_UNIT] = "unit", [HR_VERDICT_WRONG] = "wrong"
    };
    static const char *const dimensions[] = {
        [HR_AUDIT_PLAIN] = "count", [HR_AUDIT_BYTES] = "bytes", [HR_AUDIT_SECONDS] = "seconds"
    };
    json_t *list = json_array();
    for (int32_t i = 0; i < report->claim_count; i++) {
        const hr_audit_claim *c = &report->claims[i];
        json_t *right = c->right_whole >= 0 ? json_integer(c->right_whole)
                                            : json_real(c->right_value);
        json_array_append_new(list,
                              json_pack("{s:I, s:s, s:o, s:o, s:o, s:s, s:f, s:o, s:o}", "line",
                                        (json_int_t)c->line, "verdict", verdicts[c->verdict],
                                        "claim", json_of_text(c->stated), "is",
                                        json_of_text(c->formula), "where", json_of_text(c->where),
                                        "unit", dimensions[c->dimension], "stated", c->stated_value,
                                        "right", right, "sentence", json_of_text(c->sentence)));
    }
    return list;
}

static int print_json(const hr_audit_report *report)
{
    json_t *unread = json_array();
    for (int32_t i = 0; i < report->unread_count; i++)
        json_array_append_new(
            unread, json_pack("{s:I, s:o, s:s}", "line", (json_int_t)report->unread[i].line, "text",
                              json_of_text(report->unread[i].text), "why", report->unread[i].why));
    json_t *object = json_pack(
        "{s:s, s:i, s:i, s:i, s:o, s:i, s:o, s:i}", "kind", hr_audit_kind_word(report->kind),
        "true", report->verdicts[HR_VERDICT_TRUE], "unit", report->verdicts[HR_VERDICT_UNIT],
        "wrong", report->verdicts[HR_VERDICT_WRONG], "claims", json_of_claims(report),
        "claims_left_out", report->claims_left_out, "not_checked", unread, "not_checked_left_out",
        report->unread_left_out);
    return hr_cli_print_json(object, 0);
}

/* ---- the command */

static hr_status refuse_options(const hr_cli_arguments *arguments, const hr_audit_report *report,
                                hr_error *err)
{
    static const hr_cli_option_id of_training[] = { HR_OPTION_MODEL, HR_OPTION_PROCESSES,
                                                    HR_OPTION_LENGTH, HR_OPTION_CHECKPOINTING,
                                                    HR_OPTION_DEVICE };
    enum { OF_TRAINING = sizeof of_training / sizeof *of_training };
    const bool recipe = report->kind == HR_AUDIT_RECIPE;
    for (int32_t i = 0; i < OF_TRAINING - recipe; i++)
        if (arguments->values[of_training[i]])
            return hr_fail(err, HR_USAGE, "--%s is for training files, and %s is a %s",
                           hr_cli_option_at(of_training[i])->name, arguments->operands[0],
                           hr_audit_kind_text(report->kind));
    return HR_OK;
}

static hr_status print_checked(const hr_cli_arguments *arguments, const hr_audit_report *report,
                               hr_error *err)
{
    const char *path = arguments->operands[0];
    const int32_t wrong = report->verdicts[HR_VERDICT_UNIT] + report->verdicts[HR_VERDICT_WRONG];
    const int32_t count = wrong + report->verdicts[HR_VERDICT_TRUE];
    if (arguments->values[HR_OPTION_JSON]) print_json(report);
    else print_claims(path, report);
    if (!wrong && unread_of(report))
        return hr_fail(
            err, HR_UNDECIDED,
            "%s: %d of %d claims were checked; to check the others, write a list of claims "
            "with their formulas (docs/audit.md)",
            path, count, count + unread_of(report));
    if (!wrong) return HR_OK;
    return hr_fail(err, HR_BROKEN, "%s: %d of %d claim%s %s wrong", path, wrong, count,
                   count == 1 ? "" : "s", wrong == 1 ? "is" : "are");
}

/* Reads the file, for a device if it is not null. The report is for free(), and its config
 * for hr_config_free(). */
static hr_status read_report(const hr_cli_arguments *arguments, const hr_device_choice *device,
                             hr_audit_report **report, hr_error *err)
{
    hr_audit_request request = { .size = sizeof request,
                                 .lacks_bf16 = device &&
                                               !hr_device_has(device->device, HR_DEVICE_BF16),
                                 .memory = aligned_alloc(64, HR_AUDIT_MEMORY_BYTES),
                                 .memory_bytes = HR_AUDIT_MEMORY_BYTES,
                                 .model = arguments->values[HR_OPTION_MODEL] };
    const hr_cli_preset *model = request.model ? hr_cli_preset_find(request.model) : NULL;
    const char *path = arguments->operands[0];
    const hr_cli_preset *recipe = hr_cli_preset_find(path);
    if (model) request.model_recipe = model->text;
    *report = calloc(1, sizeof **report);
    hr_status status = *report && request.memory
                           ? read_kind(arguments->values[HR_OPTION_KIND], &request.kind, err)
                           : hr_fail(err, HR_FAILURE, "out of memory for an audit");
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_PROCESSES, &request.world, err);
    if (status == HR_OK) status = hr_cli_whole(arguments, HR_OPTION_LENGTH, &request.seq_len, err);
    if (status == HR_OK && ((arguments->values[HR_OPTION_PROCESSES] && request.world < 1) ||
                            (arguments->values[HR_OPTION_LENGTH] && request.seq_len < 1)))
        status = hr_fail(err, HR_USAGE, "--processes and --length take numbers from 1");
    request.checkpointing = arguments->values[HR_OPTION_CHECKPOINTING];
    if (status == HR_OK && request.checkpointing && strcmp(request.checkpointing, "on") != 0 &&
        strcmp(request.checkpointing, "off") != 0)
        status = hr_fail(err, HR_USAGE, "--checkpointing takes on or off");
    if (status == HR_OK && request.seq_len > 1000000000)
        status = hr_fail(err, HR_USAGE, "--length takes 1 to 1,000,000,000");
    if (status == HR_OK && request.world > 65536)
        status = hr_fail(err, HR_USAGE, "--processes takes 1 to 65536");
    if (recipe && (request.kind == HR_AUDIT_AUTO || request.kind == HR_AUDIT_RECIPE))
        request.recipe = recipe->text;
    if (status == HR_OK) status = hr_audit_file(path, &request, *report, err);
    if (status == HR_OK &&
        ((*report)->kind <= HR_AUDIT_MARKDOWN || (*report)->kind == HR_AUDIT_RECIPE))
        status = refuse_options(arguments, *report, err);
    free(request.memory);
    return status;
}

/* Plans while nothing of the file is in memory, then reads it again. */
static hr_status plan_and_print(const hr_cli_arguments *arguments, hr_audit_report **report,
                                hr_error *err)
{
    hr_cli_audit_plan plan;
    hr_config *config = (*report)->config;
    free(*report);
    *report = NULL;
    hr_status status = hr_cli_audit_make_plan(arguments, config, &plan, err);
    hr_config_free(config);
    if (status == HR_OK) status = read_report(arguments, plan.device, report, err);
    if (status == HR_OK) status = hr_cli_audit_print(arguments, *report, &plan, err);
    free(plan.own);
    return status;
}

int hr_cli_audit(const hr_cli_arguments *arguments)
{
    hr_error err;
    hr_audit_report *report;
    hr_status status = read_report(arguments, NULL, &report, &err);
    if (status == HR_OK && report->kind <= HR_AUDIT_MARKDOWN)
        status = print_checked(arguments, report, &err);
    else if (status == HR_OK) status = plan_and_print(arguments, &report, &err);
    if (report) hr_config_free(report->config);
    free(report);
    return status == HR_OK ? HR_OK : hr_cli_fail(&err);
}
