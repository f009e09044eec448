/* SPDX-License-Identifier: Apache-2.0 */
/* cli/adapter.c - headroom adapter info and gguf. */
#include "headroom/adapter.h"

#include "headroom/evaluate.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

static const char *const forms[] = { "diagonal", "single", "dual", "triple" };

static int print_json(const hr_adapter_report *report)
{
    json_t *modules = json_array();
    const hr_config *config = &report->config;
    for (int32_t i = 0; i < report->module_count; i++) {
        const hr_adapter_module *m = &report->modules[i];
        json_array_append_new(modules, json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", m->name,
                                                 "count", (json_int_t)m->layers, "rank_least",
                                                 (json_int_t)m->rank_least, "rank_most",
                                                 (json_int_t)m->rank_most, "parameters",
                                                 (json_int_t)m->parameters));
    }
    const hr_config_adapter *adapter = &config->train.adapter;
    json_t *all = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "kind",
                            adapter->kind == HR_ADAPTER_NPT ? "npt" : "lora", "base", report->base,
                            "rank", (json_int_t)adapter->rank, "tensors",
                            (json_int_t)report->tensors, "parameters",
                            (json_int_t)report->parameters, "bytes", (json_int_t)report->bytes,
                            "dtype", report->dtype, "modules", modules);
    json_t *more = adapter->kind == HR_ADAPTER_NPT
                       ? json_pack("{s:s, s:I, s:f, s:s}", "form", forms[adapter->form], "triples",
                                   (json_int_t)adapter->triples, "scale", adapter->scale, "layers",
                                   adapter->layers)
                       : json_pack("{s:f, s:b, s:b}", "alpha", adapter->alpha, "rslora",
                                   adapter->rslora, "dora", adapter->dora);
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

int hr_cli_adapter_info(const hr_cli_arguments *arguments)
{
    hr_adapter_report report;
    hr_error err;
    char bytes[64];
    if (hr_adapter_inspect(arguments->operands[0], &report, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_JSON]) return print_json(&report);
    const hr_config *config = &report.config;
    if (config->train.adapter.kind == HR_ADAPTER_NPT)
        printf("NPT, %s, rank %lld, %s %g\n", forms[config->train.adapter.form],
               (long long)config->train.adapter.rank,
               config->train.adapter.form == HR_NPT_DIAGONAL ? "scale" : "triples",
               config->train.adapter.form == HR_NPT_DIAGONAL
                   ? config->train.adapter.scale
                   : (double)config->train.adapter.triples);
    else
        printf("%s, rank %lld, alpha %g%s\n", config->train.adapter.dora ? "DoRA" : "LoRA",
               (long long)config->train.adapter.rank, config->train.adapter.alpha,
               config->train.adapter.rslora ? ", scaled by alpha / sqrt(rank)" : "");
    printf("  base        %s\n", *report.base ? report.base : "unknown");
    printf("  parameters  %s in %lld tensors of %s, %s\n", hr_cli_count(report.parameters),
           (long long)report.tensors, report.dtype, hr_bytes_print(report.bytes, bytes));
    if (*config->train.adapter.layers) printf("  layers      %s\n", config->train.adapter.layers);
    printf("\n  %-32s %7s %9s %17s\n", "module", "count", "rank", "parameters");
    for (int32_t i = 0; i < report.module_count; i++) print_module(&report.modules[i]);
    return HR_OK;
}

int hr_cli_adapter_capture(const hr_cli_arguments *arguments)
{
    hr_evaluate_result result;
    hr_error err;
    hr_evaluate_request request = { .prompt = arguments->values[HR_OPTION_PROMPT],
                                    .tokens = arguments->values[HR_OPTION_TOKENS],
                                    .capture_out = arguments->operands[2],
                                    .positions = arguments->values[HR_OPTION_POSITIONS],
                                    .scratch = getenv("TMPDIR") };
    hr_status status = hr_cli_model(arguments, &request.model, &err);
    const char *adapter = arguments->operands[1];
    request.model.adapters = &adapter;
    request.model.adapter_count = 1;
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
