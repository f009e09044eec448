/* SPDX-License-Identifier: Apache-2.0 */
/* cli/adapter.c - headroom adapter info and gguf. */
#include "headroom/adapter.h"

#include "headroom/evaluate.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The word of a choice. */
static const char *word_of(const hr_config *config, const char *key, char text[HR_TAKES_BYTES])
{
    return hr_config_get(config, key, text, HR_TAKES_BYTES, NULL) == HR_OK ? text : "unknown";
}

static bool is_npt(const hr_config *config)
{
    char kind[HR_TAKES_BYTES];
    return !strcmp(word_of(config, "train.adapter.kind", kind), "npt");
}

static int print_json(const hr_adapter_report *report)
{
    json_t *modules = json_array();
    const hr_config *config = report->config;
    char form[HR_TAKES_BYTES];
    for (int32_t i = 0; i < report->module_count; i++) {
        const hr_adapter_module *m = &report->modules[i];
        json_array_append_new(modules, json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", m->name,
                                                 "count", (json_int_t)m->layers, "rank_least",
                                                 (json_int_t)m->rank_least, "rank_most",
                                                 (json_int_t)m->rank_most, "parameters",
                                                 (json_int_t)m->parameters));
    }
    json_t *all = json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:s, s:o}", "kind", is_npt(config) ? "npt" : "lora", "base",
        hr_cli_json_string(report->base), "rank",
        (json_int_t)hr_config_integer(config, "train.adapter.rank"), "tensors",
        (json_int_t)report->tensors, "parameters", (json_int_t)report->parameters, "bytes",
        (json_int_t)report->bytes, "dtype", report->dtype, "modules", modules);
    json_t *more = is_npt(config)
                       ? json_pack("{s:s, s:I, s:f, s:s}", "form",
                                   word_of(config, "train.adapter.form", form), "triples",
                                   (json_int_t)hr_config_integer(config, "train.adapter.triples"),
                                   "scale", hr_config_real(config, "train.adapter.scale"), "layers",
                                   hr_config_text(config, "train.adapter.layers"))
                       : json_pack("{s:f, s:b, s:b}", "alpha",
                                   hr_config_real(config, "train.adapter.alpha"), "rslora",
                                   (int)hr_config_integer(config, "train.adapter.rslora"), "dora",
                                   (int)hr_config_integer(config, "train.adapter.dora"));
    json_object_update(all, more);
    json_decref(more);
    return hr_cli_print_json(all, JSON_REAL_PRECISION(9));
}

static void print_module(const hr_adapter_module *m)
{
    char rank[48];
    if (m->rank_most == 0) snprintf(rank, sizeof rank, "whole");
    else if (m->rank_least == m->rank_most)
        snprintf(rank, sizeof rank, "%lld", (long long)m->rank_most);
    else
        snprintf(rank, sizeof rank, "%lld-%lld", (long long)m->rank_least, (long long)m->rank_most);
    printf("  %-32s %7lld %9s %17s\n", m->name, (long long)m->layers, rank,
           hr_cli_count(m->parameters));
}

static void print_text(const hr_adapter_report *report)
{
    const hr_config *config = report->config;
    char bytes[64], form[HR_TAKES_BYTES];
    const long long rank = hr_config_integer(config, "train.adapter.rank");
    const char *layers = hr_config_text(config, "train.adapter.layers");
    if (is_npt(config)) {
        const bool diagonal = !strcmp(word_of(config, "train.adapter.form", form), "diagonal");
        printf("NPT, %s, rank %lld, %s %g\n", form, rank, diagonal ? "scale" : "triples",
               diagonal ? hr_config_real(config, "train.adapter.scale")
                        : (double)hr_config_integer(config, "train.adapter.triples"));
    } else {
        printf("%s, rank %lld, alpha %g%s\n",
               hr_config_integer(config, "train.adapter.dora") ? "DoRA" : "LoRA", rank,
               hr_config_real(config, "train.adapter.alpha"),
               hr_config_integer(config, "train.adapter.rslora") ? ", scaled by alpha / sqrt(rank)"
                                                                 : "");
    }
    printf("  base        %s\n", *report->base ? report->base : "unknown");
    printf("  parameters  %s in %lld tensors of %s, %s\n", hr_cli_count(report->parameters),
           (long long)report->tensors, report->dtype, hr_bytes_print(report->bytes, bytes));
    if (*layers) printf("  layers      %s\n", layers);
    printf("\n  %-32s %7s %9s %17s\n", "module", "count", "rank", "parameters");
    for (int32_t i = 0; i < report->module_count; i++) print_module(&report->modules[i]);
}

int hr_cli_adapter_info(const hr_cli_arguments *arguments)
{
    hr_adapter_report report;
    hr_error err;
    int code = HR_OK;
    if (hr_adapter_inspect(arguments->operands[0], &report, &err) != HR_OK)
        code = hr_cli_fail(&err);
    else if (arguments->values[HR_OPTION_JSON]) code = print_json(&report);
    else print_text(&report);
    hr_config_free(report.config);
    return code;
}

int hr_cli_adapter_capture(const hr_cli_arguments *arguments)
{
    hr_evaluate_result result;
    hr_error err;
    hr_infer_request model;
    hr_evaluate_request request = { .size = sizeof request,
                                    .model = &model,
                                    .prompt = arguments->values[HR_OPTION_PROMPT],
                                    .tokens = arguments->values[HR_OPTION_TOKENS],
                                    .capture_out = arguments->operands[2],
                                    .positions = arguments->values[HR_OPTION_POSITIONS],
                                    .scratch = getenv("TMPDIR") };
    hr_status status = hr_cli_model(arguments, &model, &err);
    const char *adapter = arguments->operands[1];
    model.adapters = &adapter;
    model.adapter_count = 1;
    if (status == HR_OK && !request.prompt == !request.tokens)
        status = hr_fail(&err, HR_USAGE, "give one of --prompt TEXT and --tokens FILE.safetensors");
    if (status == HR_OK) status = hr_evaluate(&request, &result, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    printf("%s: %d of %lld tokens, %d matrices\n", request.capture_out, (int)result.captured,
           (long long)result.length, (int)result.change_count);
    hr_cli_put_run(stdout, &result.run);
    return HR_OK;
}

int hr_cli_adapter_replay(const hr_cli_arguments *arguments)
{
    int64_t modules, token = 0;
    hr_error err;
    const char *folder = arguments->operands[2];
    hr_status status = hr_cli_whole(arguments, HR_OPTION_TOKEN, &token, &err);
    if (status == HR_OK)
        status = hr_adapter_replay(arguments->operands[0], arguments->operands[1], token, folder,
                                   &modules, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    printf("%s: adapters of %lld modules\n", folder, (long long)modules);
    return HR_OK;
}

int hr_cli_adapter_gguf(const hr_cli_arguments *arguments)
{
    int64_t tensors;
    hr_error err;
    const char *path = arguments->operands[2];
    if (hr_adapter_to_gguf(arguments->operands[0], arguments->operands[1], path, &tensors, &err) !=
        HR_OK)
        return hr_cli_fail(&err);
    printf("%s: %lld tensors\n", path, (long long)tensors);
    return HR_OK;
}
