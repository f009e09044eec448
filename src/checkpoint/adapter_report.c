/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/adapter_report.c - counts the tensors of a folder of adapters by the place of their
 * modules in layers. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/words.h"
#include "checkpoint/names.h"
#include "checkpoint/weights_in.h"
#include "headroom/adapter.h"
#include "hf/hf_adapter.h"
#include "mem/memory.h"

enum { NAME_SHOWN = 120 };

/* Parts of an adapter, and the dimension of each that is the rank. */
static const struct {
    const char *end;
    int32_t rank; /* HR_NONE: it has none */
} parts[] = { { ".lora_A.weight", 0 },
              { ".lora_B.weight", 1 },
              { ".lora_embedding_A", 0 },
              { ".lora_embedding_B", 1 },
              { ".lora_magnitude_vector", HR_NONE } };
enum { PARTS = sizeof parts / sizeof *parts };

/* The same of an adapter of a token. */
static const struct {
    const char *end;
    int32_t rank, dims;
} modulating[] = { { ".A", 1, 2 },
                   { ".B", 0, 2 },
                   { ".Wi", 2, 3 },
                   { ".Wa", 1, 3 },
                   { ".Wb", 1, 3 } };
enum { MODULATING = sizeof modulating / sizeof *modulating };

/* The row of the modules with a name, made if it is new; null: there is no room. */
static hr_adapter_module *row_of(hr_adapter_report *report, const char *name)
{
    for (int32_t i = 0; i < report->module_count; i++)
        if (!strcmp(report->modules[i].name, name)) return &report->modules[i];
    if (report->module_count == HR_ADAPTER_MODULES_MAX) return NULL;
    hr_adapter_module *made = &report->modules[report->module_count++];
    *made = (hr_adapter_module){ .rank_least = INT64_MAX };
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

/* Adds a tensor whose part of the name after the module is `part`; PARTS: trained whole. */
static void count(hr_adapter_report *report, const hr_stored_tensor *tensor, int32_t part)
{
    char module[128];
    const char *bare = tensor->name + sizeof HR_ADAPTER_PREFIX - 1;
    const size_t end = part < PARTS ? strlen(parts[part].end) : 0;
    int64_t elements = 1;
    for (int32_t d = 0; d < tensor->rank; d++) elements *= tensor->dims[d];
    report->tensors++;
    report->parameters += elements;
    report->bytes += tensor->bytes;
    snprintf(module, sizeof module, "%.*s", (int)(strlen(bare) - end), bare);
    module[hr_module_length(module)] = 0;
    hr_adapter_module *row = row_of(report, hr_name_in_layer(module));
    if (!row) return;
    row->parameters += elements;
    const int64_t rank = part < PARTS && parts[part].rank != HR_NONE
                             ? tensor->dims[parts[part].rank]
                             : 0;
    row->layers += part == PARTS || part == 0 || part == 2;
    if (part == PARTS) row->rank_least = 0;
    if (rank) row->rank_least = hr_min(row->rank_least, rank);
    row->rank_most = hr_max(row->rank_most, rank);
}

/* Adds a tensor "layers.0.gate.Wi" or "layers.0.A". */
static hr_status add_modulating(hr_adapter_report *report, const hr_stored_tensor *tensor,
                                const char *path, hr_error *err)
{
    int32_t part = 0;
    char place[128];
    int64_t elements = 1;
    while (part < MODULATING && !hr_ends_with(tensor->name, modulating[part].end)) part++;
    if (part == MODULATING || tensor->rank != modulating[part].dims ||
        strncmp(tensor->name, "layers.", 7) != 0)
        return hr_fail(err, HR_CORRUPT, "%.200s: tensor %.*s is no part of an adapter", path,
                       NAME_SHOWN, tensor->name);
    for (int32_t d = 0; d < tensor->rank; d++) elements *= tensor->dims[d];
    report->tensors++;
    report->parameters += elements;
    report->bytes += tensor->bytes;
    const size_t end = strlen(modulating[part].end);
    snprintf(place, sizeof place, "%.*s", (int)(strlen(tensor->name) - end), tensor->name);
    const char *name = hr_name_in_layer(place);
    hr_adapter_module *row = row_of(report, tensor->rank == 2 ? "gate" : name);
    if (!row) return HR_OK;
    row->parameters += elements;
    row->layers += part == 0 || part == 2;
    row->rank_least = hr_min(row->rank_least, tensor->dims[modulating[part].rank]);
    row->rank_most = hr_max(row->rank_most, tensor->dims[modulating[part].rank]);
    return HR_OK;
}

static hr_status add(hr_adapter_report *report, const hr_stored_tensor *tensor, const char *path,
                     hr_error *err)
{
    const size_t prefix = sizeof HR_ADAPTER_PREFIX - 1;
    int32_t part = 0;
    snprintf(report->dtype, sizeof report->dtype, "%s",
             !*report->dtype || !strcmp(report->dtype, tensor->dtype->name) ? tensor->dtype->name
                                                                            : "mixed");
    if (report->config->train.adapter.kind == HR_ADAPTER_NPT)
        return add_modulating(report, tensor, path, err);
    if (hr_ends_with(tensor->name, ".base_layer.weight")) return HR_OK; /* the base's */
    while (part < PARTS && !hr_ends_with(tensor->name, parts[part].end)) part++;
    const bool known = part < PARTS ? tensor->rank == (parts[part].rank == HR_NONE ? 1 : 2)
                                    : *report->config->train.adapter.modules_to_save != 0;
    if (!known || strncmp(tensor->name, HR_ADAPTER_PREFIX, prefix))
        return hr_fail(err, HR_CORRUPT, "%.200s: tensor %.*s is no part of an adapter", path,
                       NAME_SHOWN, tensor->name);
    count(report, tensor, part);
    return HR_OK;
}

static hr_status read_tensors(const char *path, hr_region *region, hr_adapter_report *report,
                              hr_error *err)
{
    hr_stored stored;
    hr_status status = hr_stored_open(&stored, path, region, err);
    if (status != HR_OK) return status;
    for (int32_t t = 0; t < stored.tensor_count && status == HR_OK; t++)
        status = add(report, &stored.tensors[t], path, err);
    hr_stored_close(&stored);
    return status;
}

hr_status hr_adapter_inspect(const char *folder, hr_adapter_report *report, hr_error *err)
{
    char path[HR_PATH_BYTES];
    hr_memory memory = { 0 };
    hr_region region;
    memset(report, 0, sizeof *report);
    report->config = hr_config_new();
    if (!report->config) return hr_fail(err, HR_NO_FIT, "no memory for what the adapters are");
    hr_status status = hr_hf_adapter_read(folder, report->config, report->base, err);
    if (status == HR_OK) status = hr_adapter_path(folder, path, err);
    if (status == HR_OK) status = hr_stored_check(path, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status != HR_OK) return status;
    status = hr_memory_region_open(&memory, "names of tensors", hr_stored_bytes(path) + 64, &region,
                                   err);
    if (status == HR_OK) status = read_tensors(path, &region, report, err);
    hr_memory_close(&memory);
    return status;
}
