/* SPDX-License-Identifier: Apache-2.0 */
/* cli/audit_training.c - headroom audit of a training file: the plan of headroom, the estimate for
 * the file's own program, findings, a patch, and what was not read. */
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_files.h"

typedef struct {
    const char *path;
    const hr_audit_report *report;
    const hr_device_choice *device; /* null: none */
    const hr_cli_audit_plan *plan;
    hr_audit_estimate estimate;
    bool estimated;
} audit;

static bool is_foreign(const audit *a)
{
    return a->report->kind != HR_AUDIT_RECIPE;
}

/* ---- text */

/* "27.1 to 29.3 GiB" */
static const char *range(int64_t low, int64_t high, char text[64])
{
    const double gib = 1073741824.0;
    snprintf(text, 64, "%.2f to %.2f GiB", (double)low / gib, (double)high / gib);
    return text;
}

/* Whether the program of a file runs on a card: mlx-lm on those of Apple, all others on the
 * rest, in the formats that the file asks for. */
static bool runs_on(const audit *a, const hr_device_facts *card)
{
    const hr_audit_training *t = &a->report->training;
    const bool mlx = a->report->kind == HR_AUDIT_MLX;
    const bool bf16 = t->weights == HR_AUDIT_BF16 || t->autocast == HR_AUDIT_BF16 ||
                      t->frozen == HR_AUDIT_BF16 || (t->lora_rank && t->adapters == HR_AUDIT_BF16);
    return card->kind == HR_DEVICE_GPU && mlx == (card->group == HR_DEVICE_MAC) &&
           (mlx || !bf16 || hr_device_has(card, HR_DEVICE_BF16));
}

/* The smallest card of the table for the file and so many bytes; null: none. */
static const hr_device_facts *smallest_card(const audit *a, int64_t bytes)
{
    const hr_device_facts *found = NULL, *card;
    for (int32_t i = 0; (card = hr_device_at(i)); i++)
        if (runs_on(a, card) && card->usable_bytes >= bytes &&
            (!found || card->usable_bytes < found->usable_bytes))
            found = card;
    return found;
}

/* Why the program does not train so, for the verdict; null: it does. */
static const char *refusal_text(const hr_audit_estimate *e)
{
    static const char *const texts[] = {
        [HR_AUDIT_REFUSED_NO_BF16] = "the card has no bf16",
        [HR_AUDIT_REFUSED_FP16_WEIGHTS] = "fp16 does not train weights in fp16"
    };
    return e->refusal == HR_AUDIT_TRAINS ? NULL : texts[e->refusal];
}

/* Nobody here knows whether it fits: the file has what the estimate does not. */
static bool is_unknown(const audit *a)
{
    return is_foreign(a) && a->report->doubt_count && a->estimate.refusal == HR_AUDIT_TRAINS;
}

static const char *fits_text(const audit *a)
{
    const hr_audit_estimate *e = &a->estimate;
    if (e->refusal != HR_AUDIT_TRAINS) return "does not train on";
    if (is_unknown(a)) return "unknown whether it fits";
    return e->fits ? "fits" : e->may_fit ? "may fit" : "does not fit";
}

static void print_verdict(const audit *a)
{
    const hr_audit_estimate *e = &a->estimate;
    char bytes[64], budget[64];
    printf("%s (%s): ", a->path, hr_audit_kind_text(a->report->kind));
    if (!is_foreign(a)) {
        hr_cli_put_string(a->plan->status == HR_OK ? "fits" : a->plan->error.message);
        printf("\n");
        return;
    }
    if (!a->estimated) {
        printf("no estimate\n");
        return;
    }
    const int64_t low = e->now.low_bytes, high = e->now.high_bytes;
    const bool unknown = is_unknown(a);
    if (a->device) {
        const char *refusal = refusal_text(e);
        printf("%s %s: %s%san estimated %s of %s%s", fits_text(a), a->device->device->title,
               refusal ? refusal : "", refusal ? "; " : "", range(low, high, bytes),
               hr_size_print(e->budget_bytes, budget),
               unknown ? ", without what is listed below" : "");
        if (e->patch_fits && !unknown)
            printf("; with %d change%s it %s", e->needed_count, e->needed_count > 1 ? "s" : "",
                   e->may_fit ? "surely does" : "does");
        printf("\n");
        return;
    }
    if (unknown) {
        printf("unknown: an estimated %s on a device, without what is listed below\n",
               range(low, high, bytes));
        return;
    }
    const hr_device_facts *card = smallest_card(a, high);
    printf("an estimated %s on a device; ", range(low, high, bytes));
    if (card) printf("the smallest card that has it is %s (%s)\n", card->title, card->name);
    else printf("no card has it\n");
}

static void print_plan(const audit *a)
{
    const hr_plan_answer *p = &a->plan->answer;
    const hr_config *config = a->report->config;
    const char *here = a->device ? "" : " this machine";
    char needed[64], available[64];
    if (a->plan->status == HR_OK && p->stage_count)
        printf("headroom: fits%s: %s, all %d stages; stage %d is the largest\n", here,
               hr_bytes_print(p->process_bytes, needed), p->stage_count, p->stage + 1);
    else if (a->plan->status == HR_OK)
        printf("headroom: fits%s: %s, %s sequence%s of %s tokens at a time, batch %s\n", here,
               hr_bytes_print(p->process_bytes, needed), hr_cli_count(p->micro_batch),
               p->micro_batch == 1 ? "" : "s",
               hr_cli_count(hr_config_integer(config, "train.seq_len")),
               hr_cli_count(hr_config_integer(config, "train.batch")));
    else if (a->plan->status == HR_NO_FIT && p->minimum_bytes > 0)
        printf("headroom: does not fit%s: at least %s of %s\n", here,
               hr_bytes_print(p->minimum_bytes, needed),
               hr_size_print(p->available_bytes, available));
    else {
        printf("headroom: no plan: ");
        hr_cli_put_string(a->plan->error.message);
        printf("\n");
    }
}

static void print_estimate(const audit *a)
{
    const hr_estimate_answer *e = &a->estimate.now;
    char size[HR_COUNT_BYTES], bytes[64];
    const hr_audit_training *t = &a->report->training;
    printf("%s: estimate, not a plan: %s; %s parameters, %s trained; peak in %s\n",
           hr_audit_kind_text(a->report->kind), range(e->low_bytes, e->high_bytes, bytes),
           hr_cli_count(t->parameters), hr_cli_count(e->trained_parameters), e->peak);
    for (int32_t c = 0; c < HR_ESTIMATE_COMPONENTS; c++)
        if (e->components[c] > 0)
            printf("  %-24s %12s\n", hr_estimate_component_name(c),
                   hr_size_print(e->components[c], size));
}

/* The sentence about a format that the device lacks, and its line; false: none is missing. */
static bool find_missing(const audit *a, char text[HR_AUDIT_SENTENCE_BYTES], int64_t *line)
{
    if (a->estimate.refusal != HR_AUDIT_REFUSED_NO_BF16) return false;
    *line = 0;
    for (int32_t i = 0; i < a->report->key_count && !*line; i++)
        if (!strcmp(a->report->keys[i].ours, "train.dtype")) *line = a->report->keys[i].line;
    snprintf(
        text, HR_AUDIT_SENTENCE_BYTES,
        "%s has no bf16, which the file asks for: the trainer refuses it, or emulates it slowly",
        a->device->device->title);
    return true;
}

static void print_sentence(int64_t line, const char *text)
{
    if (line) printf("  line %-4lld ", (long long)line);
    else printf("            ");
    hr_cli_put_string(text);
    printf("\n");
}

static void print_unread(const hr_audit_key *k)
{
    printf("  line %-4lld ", (long long)k->line);
    hr_cli_put_string(k->key);
    printf(": ");
    hr_cli_put_string(k->value);
    printf(" is not known here");
    if (*k->near) printf("   (did you mean %s?)", k->near);
    printf("\n");
}

/* Why the verdict is open. */
static void print_doubts(const hr_audit_report *report)
{
    if (!report->doubt_count) return;
    printf("not in the estimate, so whether it fits is unknown:\n");
    for (int32_t i = 0; i < report->finding_count; i++)
        if (report->findings[i].decides)
            print_sentence(report->findings[i].line, report->findings[i].text);
    for (int32_t i = 0; i < report->key_count; i++)
        if (report->keys[i].state == HR_AUDIT_UNREAD) print_unread(&report->keys[i]);
}

static void print_findings(const audit *a)
{
    const hr_audit_report *report = a->report;
    char text[HR_AUDIT_SENTENCE_BYTES];
    int64_t line;
    const bool missing = find_missing(a, text, &line);
    int32_t count = missing;
    for (int32_t i = 0; i < report->finding_count; i++) count += !report->findings[i].decides;
    if (count) printf("findings:\n");
    if (missing) print_sentence(line, text);
    for (int32_t i = 0; i < report->finding_count; i++)
        if (!report->findings[i].decides)
            print_sentence(report->findings[i].line, report->findings[i].text);
    if (report->findings_left_out) printf("  %d more findings\n", report->findings_left_out);
}

static void print_lines(const char *lines)
{
    for (const char *at = lines; *at;) {
        const size_t length = strcspn(at, "\n");
        printf("    ");
        hr_cli_put_text(at, (int64_t)length);
        printf("\n");
        at += length + (at[length] == '\n');
    }
}

static void print_changes(const hr_audit_estimate *e, bool needed)
{
    char bytes[64];
    for (int32_t i = 0; i < e->change_count; i++) {
        const hr_audit_change *c = &e->changes[i];
        if (c->needed != needed) continue;
        if (*c->file) {
            printf("    in ");
            hr_cli_put_string(c->file);
            printf(":\n");
        }
        print_lines(c->lines);
        printf("      # %s; alone %s%s\n", c->price, range(c->low_bytes, c->high_bytes, bytes),
               c->fits ? ", fits" : "");
    }
}

static void print_patch(const audit *a)
{
    const hr_audit_estimate *e = &a->estimate;
    char bytes[64];
    if (!a->device) printf("patch: give --device NAME for changes that fit it\n");
    if (!a->device || e->fits || is_unknown(a)) return;
    if (!e->change_count) {
        printf("patch: no key of this file would help\n");
        return;
    }
    printf("%s, in the keys of this file, cheapest first: %s\n",
           e->patch_fits ? "patch" : "changes that together do not fit yet",
           range(e->patch_low_bytes, e->patch_high_bytes, bytes));
    print_changes(e, true);
    if (e->needed_count < e->change_count) printf("other changes:\n");
    print_changes(e, false);
}

static void print_keys(const hr_audit_report *report)
{
    int32_t counts[HR_AUDIT_KEY_STATES] = { 0 };
    for (int32_t i = 0; i < report->key_count; i++) counts[report->keys[i].state]++;
    printf("keys: %d read, %d without effect on a training step, %d not read\n",
           counts[HR_AUDIT_READ], counts[HR_AUDIT_NO_EFFECT], counts[HR_AUDIT_UNREAD]);
    if (report->keys_left_out)
        printf("  %d more keys of the file are neither counted nor listed\n",
               report->keys_left_out);
}

static void print_text(const audit *a)
{
    print_verdict(a);
    print_doubts(a->report);
    print_plan(a);
    if (a->estimated) print_estimate(a);
    print_findings(a);
    if (a->estimated) print_patch(a);
    if (is_foreign(a)) print_keys(a->report);
}

/* ---- JSON */

/* A text of the file, or null where it is not UTF-8. */
static json_t *json_of_text(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_null();
}

static json_t *json_of_changes(const hr_audit_estimate *e)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < e->change_count; i++) {
        const hr_audit_change *c = &e->changes[i];
        json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:I, s:I, s:b, s:b}", "lines",
                                              c->lines, "file", json_of_text(c->file), "price",
                                              c->price, "low_bytes", (json_int_t)c->low_bytes,
                                              "high_bytes", (json_int_t)c->high_bytes, "fits",
                                              c->fits, "needed", c->needed));
    }
    return list;
}

static json_t *json_of_patch(const hr_audit_estimate *e)
{
    if (!e->change_count) return json_null();
    return json_pack("{s:b, s:I, s:I, s:o}", "fits", e->patch_fits, "low_bytes",
                     (json_int_t)e->patch_low_bytes, "high_bytes", (json_int_t)e->patch_high_bytes,
                     "changes", json_of_changes(e));
}

/* "yes", "may", "unknown" or "no", which is also what does not train; null without a device. */
static json_t *json_of_fits(const audit *a)
{
    const hr_audit_estimate *e = &a->estimate;
    if (!a->device) return json_null();
    if (is_unknown(a)) return json_string("unknown");
    return json_string(e->fits ? "yes" : e->may_fit ? "may" : "no");
}

static json_t *json_of_estimate(const audit *a)
{
    if (!a->estimated) return json_null();
    const hr_audit_estimate *e = &a->estimate;
    json_t *components = json_object();
    for (int32_t c = 0; c < HR_ESTIMATE_COMPONENTS; c++)
        json_object_set_new(components, hr_estimate_component_name(c),
                            json_integer(e->now.components[c]));
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o}", "fits", json_of_fits(a),
                     "budget_bytes", (json_int_t)e->budget_bytes, "low_bytes",
                     (json_int_t)e->now.low_bytes, "high_bytes", (json_int_t)e->now.high_bytes,
                     "tensor_bytes", (json_int_t)e->now.tensor_bytes, "trained_parameters",
                     (json_int_t)e->now.trained_parameters, "peak", e->now.peak, "components",
                     components, "patch", is_unknown(a) ? json_null() : json_of_patch(e));
}

static json_t *json_of_training(const hr_audit_report *report)
{
    static const char *const dtypes[] = { "fp32", "bf16", "fp16", "int8", "nf4", "none" };
    static const char *const optimizers[] = { "adamw", "adamw_8bit", "paged_adamw_8bit",
                                              "sgd",   "lion",       "adafactor" };
    static const char *const losses[] = { "whole", "loop", "chunked", "fused" };
    const hr_audit_training *t = &report->training;
    json_t *object = json_pack(
        "{s:o, s:I, s:s, s:s, s:s, s:b, s:b, s:s, s:b, s:s, s:I, s:I, s:I, s:I}", "model",
        hr_cli_json_string(t->model), "parameters", (json_int_t)t->parameters, "weights",
        dtypes[t->weights], "autocast", dtypes[t->autocast], "base", dtypes[t->base],
        "checkpointing", t->checkpointing, "packing", t->packing, "loss", losses[t->loss],
        "preference", t->preference, "optimizer", optimizers[t->optimizer], "micro_batch",
        (json_int_t)t->micro_batch, "accumulation", (json_int_t)t->accumulation, "processes",
        (json_int_t)t->world, "seq_len", (json_int_t)t->seq_len);
    json_t *more = json_pack(
        "{s:I, s:f, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:b}", "lora_rank", (json_int_t)t->lora_rank,
        "lora_alpha", t->lora_alpha, "lora_targets", t->lora_targets, "lora_saved", t->lora_saved,
        "adapters", dtypes[t->adapters], "frozen", dtypes[t->frozen], "adapter_parameters",
        (json_int_t)t->adapter_parameters, "zero_stage", (json_int_t)t->zero_stage,
        "offload_optimizer", t->offload_optimizer, "offload_weights", t->offload_weights);
    json_object_update(object, more);
    json_decref(more);
    return object;
}

static json_t *json_of_keys(const hr_audit_report *report)
{
    static const char *const states[] = {
        [HR_AUDIT_READ] = "read", [HR_AUDIT_NO_EFFECT] = "no effect", [HR_AUDIT_UNREAD] = "not read"
    };
    json_t *list = json_array();
    for (int32_t i = 0; i < report->key_count; i++) {
        const hr_audit_key *k = &report->keys[i];
        json_array_append_new(
            list, json_pack("{s:I, s:o, s:o, s:s, s:s, s:s}", "line", (json_int_t)k->line, "key",
                            json_of_text(k->key), "value", json_of_text(k->value), "state",
                            states[k->state], "headroom", k->ours, "near", k->near));
    }
    return list;
}

static void print_json(const audit *a)
{
    json_t *findings = json_array();
    char text[HR_AUDIT_SENTENCE_BYTES];
    int64_t line;
    if (find_missing(a, text, &line))
        json_array_append_new(findings, json_pack("{s:I, s:s, s:b}", "line", (json_int_t)line,
                                                  "text", text, "decides", false));
    for (int32_t i = 0; i < a->report->finding_count; i++)
        json_array_append_new(findings, json_pack("{s:I, s:o, s:b}", "line",
                                                  (json_int_t)a->report->findings[i].line, "text",
                                                  json_of_text(a->report->findings[i].text),
                                                  "decides", a->report->findings[i].decides));
    const bool planned = a->plan->status == HR_OK || a->plan->status == HR_NO_FIT;
    json_t *plan = planned
                       ? json_pack("{s:b, s:I, s:I, s:I}", "fits", a->plan->status == HR_OK,
                                   "process_bytes", (json_int_t)a->plan->answer.process_bytes,
                                   "minimum_bytes", (json_int_t)a->plan->answer.minimum_bytes,
                                   "available_bytes", (json_int_t)a->plan->answer.available_bytes)
                       : json_null();
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o}", "kind", hr_audit_kind_word(a->report->kind), "device",
        a->device ? a->device->device->name : "", "plan", plan, "estimate", json_of_estimate(a),
        "findings", findings, "keys", json_of_keys(a->report));
    json_object_set_new(object, "keys_left_out", json_integer(a->report->keys_left_out));
    json_object_set_new(object, "findings_left_out", json_integer(a->report->findings_left_out));
    if (is_foreign(a)) json_object_set_new(object, "settings", json_of_training(a->report));
    if (a->estimate.refusal == HR_AUDIT_REFUSED_NO_BF16)
        json_object_set_new(object, "missing_format", json_string("bf16"));
    (void)hr_cli_print_json(object, 0);
}

/* ---- the command */

static hr_status make_estimate(audit *a, hr_error *err)
{
    const int64_t bytes = hr_estimate_bytes(a->report->config);
    const int64_t budget = a->device ? hr_cli_estimate_memory(a->device) : 0;
    void *memory = malloc((size_t)bytes);
    if (!memory) return hr_fail(err, HR_FAILURE, "out of memory for an estimate");
    const hr_status status = hr_audit_estimate_make(a->report, budget, memory, bytes, &a->estimate,
                                                    err);
    a->estimated = status == HR_OK;
    free(memory);
    return status;
}

static hr_status finish(const audit *a, hr_error *err)
{
    if (!is_foreign(a)) {
        *err = a->plan->error;
        return a->plan->status;
    }
    if (is_unknown(a))
        return hr_fail(
            err, HR_UNDECIDED,
            "%s: whether it fits is unknown: the estimate lacks %d thing%s that decide%s it",
            a->path, a->report->doubt_count, a->report->doubt_count == 1 ? "" : "s",
            a->report->doubt_count == 1 ? "s" : "");
    if (!a->device || a->estimate.fits) return HR_OK;
    const hr_audit_estimate *e = &a->estimate;
    char least[64], most[64], there[64];
    if (e->refusal != HR_AUDIT_TRAINS && e->now.low_bytes <= e->budget_bytes)
        return hr_fail(err, HR_NO_FIT, "%s: %s does not train on %s: %s", a->path,
                       hr_audit_kind_text(a->report->kind), a->device->device->title,
                       refusal_text(e));
    hr_bytes_print(e->now.low_bytes, least);
    hr_bytes_print(e->budget_bytes, there);
    if (e->may_fit)
        return hr_fail(err, HR_NO_FIT,
                       "%s: %s may not fit: it is estimated to need %s to %s, and %s has %s",
                       a->path, hr_audit_kind_text(a->report->kind), least,
                       hr_bytes_print(e->now.high_bytes, most), a->device->device->title, there);
    return hr_fail(err, HR_NO_FIT, "%s: %s is estimated to need at least %s, and %s has %s",
                   a->path, hr_audit_kind_text(a->report->kind), least, a->device->device->title,
                   there);
}

hr_status hr_cli_audit_make_plan(const hr_cli_arguments *arguments, const hr_config *config,
                                 hr_cli_audit_plan *plan, hr_error *err)
{
    const char *device = arguments->values[HR_OPTION_DEVICE];
    char directory[HR_PATH_BYTES];
    int32_t count;
    hr_cli_planning planning;
    plan->own = NULL;
    plan->device = NULL;
    hr_status status = hr_cli_own_devices(arguments->values[HR_OPTION_DEVICE_FILE], &plan->own,
                                          err);
    if (status == HR_OK && device)
        status = hr_devices_choose(device, plan->own, 1, &plan->choice, &count, err);
    if (status != HR_OK) return status;
    if (device) plan->device = &plan->choice;
    const hr_plan_outputs outputs = { .size = sizeof outputs,
                                      .calibrations = hr_cli_calibrations(directory,
                                                                          sizeof directory),
                                      .device = plan->device,
                                      .progress = { hr_cli_planning_show, &planning } };
    mallopt(M_MMAP_MAX, 0); /* as for headroom plan */
    hr_cli_planning_begin(&planning);
    plan->status = hr_plan_make(config, &outputs, &plan->answer, &plan->error);
    hr_cli_planning_end(&planning);
    return HR_OK;
}

hr_status hr_cli_audit_print(const hr_cli_arguments *arguments, const hr_audit_report *report,
                             const hr_cli_audit_plan *plan, hr_error *err)
{
    audit *a = calloc(1, sizeof *a);
    if (!a) return hr_fail(err, HR_FAILURE, "out of memory for an audit");
    a->path = arguments->operands[0];
    a->report = report;
    a->plan = plan;
    a->device = plan->device;
    hr_status status = is_foreign(a) ? make_estimate(a, err) : HR_OK;
    if (status == HR_OK) {
        if (arguments->values[HR_OPTION_JSON]) print_json(a);
        else print_text(a);
        status = finish(a, err);
    }
    free(a);
    return status;
}
