/* SPDX-License-Identifier: Apache-2.0 */
/* cli/adapter.c - headroom adapter info and gguf. */
#include "headroom/adapter.h"

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

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
    json_t *all = json_pack(
        "{s:s, s:s, s:I, s:f, s:b, s:b, s:I, s:I, s:I, s:s, s:o}", "kind", "lora", "base",
        report->base, "rank", (json_int_t)config->train.adapter.rank, "alpha",
        config->train.adapter.alpha, "rslora", config->train.adapter.rslora, "dora",
        config->train.adapter.dora, "tensors", (json_int_t)report->tensors, "parameters",
        (json_int_t)report->parameters, "bytes", (json_int_t)report->bytes, "dtype", report->dtype,
        "modules", modules);
    const int failed = !all || json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
    return failed ? HR_FAILURE : HR_OK;
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
