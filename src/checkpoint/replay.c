/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/replay.c - the change of one captured token as low-rank adapters: of a diagonal
 * adapter A and diag(m) B, of outer products the vectors themselves. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "base/words.h"
#include "base/writer.h"
#include "checkpoint/convert.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights_in.h"
#include "graph/program.h"
#include "headroom/adapter.h"
#include "hf/hf_adapter.h"
#include "mem/memory.h"

enum { NAME_SHOWN = 120, LENGTH_BYTES = 8, HEADER_ALIGN = 64, ENTRY_BYTES = 512 };

typedef struct {
    const char *capture_path;
    char adapter_path[HR_PATH_BYTES], base[HR_PATH_BYTES];
    hr_config *config;
    hr_stored capture, adapter;
    hr_region region;
    int64_t token;
    char *header; /* [header_bytes] */
    int64_t header_bytes;
    hr_file_out out;
    hr_error *err;
} replay;

/* ---- the two files */

static hr_status refuse(const replay *r, const char *name)
{
    return hr_fail(r->err, HR_CORRUPT,
                   "%.200s: tensor %.*s is not what headroom adapter capture writes of %.200s",
                   r->capture_path, NAME_SHOWN, name, r->adapter_path);
}

/* What a tensor of the capture is; null: positions, or the second of two. */
static const char *kind_of(const hr_stored_tensor *tensor)
{
    return hr_ends_with(tensor->name, ".m")    ? ".m"
           : hr_ends_with(tensor->name, ".va") ? ".va"
                                               : NULL;
}

static const hr_stored_tensor *find(const hr_stored *stored, const char *name, int32_t rank)
{
    const hr_stored_tensor *found = hr_stored_find(stored, name);
    return found && found->rank == rank && found->dtype->kind == HR_STORED_F32 ? found : NULL;
}

/* Reads `count` values of a tensor from its element `first` on. */
static hr_status read_values(replay *r, const hr_stored *stored, const hr_stored_tensor *tensor,
                             int64_t first, int64_t count, float **values)
{
    *values = hr_region_take(&r->region, count, sizeof **values);
    if (!*values) return hr_fail(r->err, HR_FAILURE, "out of memory for a capture");
    return hr_file_read(stored->files[tensor->file].file, stored->path,
                        tensor->offset + first * (int64_t)sizeof **values, *values,
                        count * (int64_t)sizeof **values, r->err);
}

/* A change: [rank, inputs] and [rank, outputs], of which each pair of rows is an outer product. */
typedef struct {
    float *a, *b;
    int64_t rank, inputs, outputs;
} change;

static hr_status read_outer(replay *r, const hr_stored_tensor *va, change *c)
{
    char name[256];
    snprintf(name, sizeof name, "%.*sb", (int)hr_min((int64_t)strlen(va->name) - 1, 250), va->name);
    const hr_stored_tensor *vb = find(&r->capture, name, 3);
    if (!vb || va->rank != 3 || va->dtype->kind != HR_STORED_F32 || vb->dims[0] != va->dims[0] ||
        vb->dims[1] != va->dims[1])
        return refuse(r, va->name);
    *c = (change){ .rank = va->dims[1], .inputs = va->dims[2], .outputs = vb->dims[2] };
    const int64_t of_a = c->rank * c->inputs, of_b = c->rank * c->outputs;
    const hr_status status = read_values(r, &r->capture, va, r->token * of_a, of_a, &c->a);
    return status == HR_OK ? read_values(r, &r->capture, vb, r->token * of_b, of_b, &c->b) : status;
}

static hr_status read_diagonal(replay *r, const hr_stored_tensor *m, change *c)
{
    char name[64];
    float *values, *turned;
    snprintf(name, sizeof name, "layers.%d.A", (int)hr_name_layer(m->name));
    const hr_stored_tensor *a = find(&r->adapter, name, 2);
    name[strlen(name) - 1] = 'B';
    const hr_stored_tensor *b = find(&r->adapter, name, 2);
    if (!a || !b || m->rank != 2 || m->dtype->kind != HR_STORED_F32 || a->dims[1] != m->dims[1] ||
        b->dims[0] != m->dims[1])
        return refuse(r, m->name);
    *c = (change){ .rank = m->dims[1], .inputs = a->dims[0], .outputs = b->dims[1] };
    hr_status status = read_values(r, &r->capture, m, r->token * c->rank, c->rank, &values);
    if (status == HR_OK) status = read_values(r, &r->adapter, a, 0, c->rank * c->inputs, &turned);
    if (status == HR_OK) status = read_values(r, &r->adapter, b, 0, c->rank * c->outputs, &c->b);
    if (status != HR_OK) return status;
    c->a = hr_region_take(&r->region, c->rank * c->inputs, sizeof *c->a);
    if (!c->a) return hr_fail(r->err, HR_FAILURE, "out of memory for a capture");
    for (int64_t k = 0; k < c->rank; k++) {
        for (int64_t i = 0; i < c->inputs; i++) c->a[k * c->inputs + i] = turned[i * c->rank + k];
        for (int64_t n = 0; n < c->outputs; n++) c->b[k * c->outputs + n] *= values[k];
    }
    return HR_OK;
}

static hr_status read_change(replay *r, const hr_stored_tensor *tensor, change *c)
{
    if (tensor->rank < 2 || hr_name_layer(tensor->name) < 0) return refuse(r, tensor->name);
    if (r->token >= tensor->dims[0])
        return hr_fail(r->err, HR_USAGE, "--token %lld: the capture has tokens 0 to %lld",
                       (long long)r->token, (long long)tensor->dims[0] - 1);
    return *strrchr(tensor->name, '.') && hr_ends_with(tensor->name, ".m")
               ? read_diagonal(r, tensor, c)
               : read_outer(r, tensor, c);
}

/* ---- the folder of PEFT */

static int module_length(const hr_stored_tensor *tensor)
{
    return (int)(strrchr(tensor->name, '.') - tensor->name);
}

static void put_entry(hr_writer *w, const hr_stored_tensor *tensor, const char *part, int64_t rows,
                      int64_t width, int64_t *offset)
{
    const int64_t bytes = rows * width * (int64_t)sizeof(float);
    hr_put(w,
           ",\"%s%.*s.%s\":{\"dtype\":\"F32\",\"shape\":[%lld,%lld],\"data_offsets\":[%lld,%lld]}",
           HR_ADAPTER_PREFIX, module_length(tensor), tensor->name, part, (long long)rows,
           (long long)width, (long long)*offset, (long long)(*offset + bytes));
    *offset += bytes;
}

/* The header, from the shapes alone. */
static hr_status put_header(replay *r, int64_t *used)
{
    hr_writer w = { r->header + LENGTH_BYTES, r->header_bytes - LENGTH_BYTES };
    int64_t offset = 0;
    hr_put(&w, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int32_t t = 0; t < r->capture.tensor_count; t++) {
        const hr_stored_tensor *tensor = &r->capture.tensors[t];
        const int64_t kept = r->region.used;
        change c;
        if (!kind_of(tensor)) continue;
        const hr_status status = read_change(r, tensor, &c);
        r->region.used = kept;
        if (status != HR_OK) return status;
        put_entry(&w, tensor, "lora_A.weight", c.rank, c.inputs, &offset);
        put_entry(&w, tensor, "lora_B.weight", c.outputs, c.rank, &offset);
    }
    hr_put(&w, "}");
    while ((w.used + LENGTH_BYTES) % HEADER_ALIGN && !w.cut) hr_put(&w, " ");
    if (w.cut)
        return hr_fail(r->err, HR_FAILURE, "%.200s: its names are too long", r->capture_path);
    for (int32_t i = 0; i < LENGTH_BYTES; i++) r->header[i] = (char)((uint64_t)w.used >> (8 * i));
    *used = w.used + LENGTH_BYTES;
    return HR_OK;
}

static hr_status append(replay *r, const change *c)
{
    hr_status status = hr_file_append(&r->out, c->a, c->rank * c->inputs * (int64_t)sizeof(float),
                                      r->err);
    for (int64_t n = 0; n < c->outputs && status == HR_OK; n++)
        for (int64_t k = 0; k < c->rank && status == HR_OK; k++)
            status = hr_file_append(&r->out, &c->b[k * c->outputs + n], sizeof(float), r->err);
    return status;
}

static hr_status write_weights(replay *r, const char *folder, int64_t *rank, int64_t *modules)
{
    int64_t used = 0;
    hr_status status = put_header(r, &used);
    if (status == HR_OK)
        status = hr_file_begin(&r->out, folder, "adapter_model.safetensors", r->err);
    if (status == HR_OK) status = hr_file_append(&r->out, r->header, used, r->err);
    *modules = 0;
    for (int32_t t = 0; t < r->capture.tensor_count && status == HR_OK; t++) {
        const hr_stored_tensor *tensor = &r->capture.tensors[t];
        const int64_t kept = r->region.used;
        change c;
        if (!kind_of(tensor)) continue;
        status = read_change(r, tensor, &c);
        if (status == HR_OK) status = append(r, &c);
        r->region.used = kept;
        *rank = c.rank;
        ++*modules;
    }
    if (status == HR_OK && !*modules) return refuse(r, "positions");
    return status == HR_OK ? hr_file_commit(&r->out, r->err) : status;
}

/* Whether a tensor before t has the same layer, or the same place in its layer. */
static bool is_repeated(const replay *r, int32_t t, bool layer)
{
    const hr_stored_tensor *tensor = &r->capture.tensors[t];
    for (int32_t i = 0; i < t; i++) {
        const hr_stored_tensor *other = &r->capture.tensors[i];
        if (!kind_of(other)) continue;
        if (layer ? hr_name_layer(other->name) == hr_name_layer(tensor->name)
                  : !strcmp(hr_name_in_layer(other->name), hr_name_in_layer(tensor->name)))
            return true;
    }
    return false;
}

static hr_status write_config(replay *r, const char *folder, int64_t rank)
{
    hr_writer w = { r->header, r->header_bytes };
    char quoted[6 * HR_PATH_BYTES];
    int64_t taken;
    const char *between = "";
    const int64_t bytes = hr_json_escape(quoted, sizeof quoted, r->base, (int64_t)strlen(r->base),
                                         &taken);
    hr_put(&w, "{\n  \"base_model_name_or_path\": \"%.*s\",\n  \"bias\": \"none\",\n", (int)bytes,
           quoted);
    hr_put(&w, "  \"inference_mode\": true,\n  \"layers_to_transform\": [");
    for (int32_t t = 0; t < r->capture.tensor_count; t++) {
        if (!kind_of(&r->capture.tensors[t]) || is_repeated(r, t, true)) continue;
        hr_put(&w, "%s%d", between, (int)hr_name_layer(r->capture.tensors[t].name));
        between = ", ";
    }
    hr_put(&w,
           "],\n  \"lora_alpha\": %lld,\n  \"lora_dropout\": 0,\n  \"peft_type\": \"LORA\",\n"
           "  \"r\": %lld,\n  \"target_modules\": [",
           (long long)rank, (long long)rank);
    between = "";
    for (int32_t t = 0; t < r->capture.tensor_count; t++) {
        const hr_stored_tensor *tensor = &r->capture.tensors[t];
        if (!kind_of(tensor) || is_repeated(r, t, false)) continue;
        char module[256];
        snprintf(module, sizeof module, "%.*s", (int)hr_min(module_length(tensor), 255),
                 tensor->name);
        const char *dot = strrchr(module, '.');
        hr_put(&w, "%s\"%s\"", between, dot ? dot + 1 : module);
        between = ", ";
    }
    hr_put(&w, "],\n  \"task_type\": \"CAUSAL_LM\"\n}\n");
    hr_status status = hr_file_begin(&r->out, folder, "adapter_config.json", r->err);
    if (status == HR_OK) status = hr_file_append(&r->out, r->header, w.used, r->err);
    return status == HR_OK ? hr_file_commit(&r->out, r->err) : status;
}

/* ---- */

static int64_t file_bytes(const char *path)
{
    int file;
    int64_t bytes;
    hr_error ignored;
    if (hr_file_open(path, &file, &bytes, &ignored) != HR_OK) return 0;
    hr_file_close(&file);
    return bytes;
}

static hr_status open_files(replay *r, const char *adapter, hr_memory *memory)
{
    hr_status status = hr_hf_adapter_read(adapter, r->config, r->base, r->err);
    if (status == HR_OK && r->config->train.adapter.kind != HR_ADAPTER_NPT)
        return hr_fail(r->err, HR_USAGE, "%.300s: has no NPT adapters", adapter);
    if (status == HR_OK) status = hr_adapter_path(adapter, r->adapter_path, r->err);
    if (status == HR_OK) status = hr_stored_check(r->adapter_path, r->err);
    if (status == HR_OK) status = hr_stored_check(r->capture_path, r->err);
    if (status != HR_OK) return status;
    const int64_t headers = hr_stored_bytes(r->adapter_path) + hr_stored_bytes(r->capture_path);
    r->header_bytes = 16 * headers + (64 << 10);
    status = hr_memory_region_open(memory, "a capture",
                                   headers + r->header_bytes + file_bytes(r->capture_path) +
                                       2 * file_bytes(r->adapter_path) + 16 * 64,
                                   &r->region, r->err);
    if (status == HR_OK) status = hr_stored_open(&r->capture, r->capture_path, &r->region, r->err);
    if (status == HR_OK) status = hr_stored_open(&r->adapter, r->adapter_path, &r->region, r->err);
    if (status != HR_OK) return status;
    r->header = hr_region_take(&r->region, r->header_bytes, 1);
    return r->header ? HR_OK : hr_fail(r->err, HR_FAILURE, "out of memory for a capture");
}

/* Not inlined: a config is large. */
static __attribute__((noinline)) hr_status replay_in(hr_memory *memory, const char *adapter,
                                                     const char *capture, int64_t token,
                                                     const char *folder, int64_t *modules,
                                                     hr_error *err)
{
    hr_config config;
    int64_t rank = 0;
    replay r = { .capture_path = capture,
                 .config = &config,
                 .token = token,
                 .out = { .directory = -1, .file = -1 },
                 .err = err };
    hr_config_default(&config);
    hr_status status = open_files(&r, adapter, memory);
    if (status == HR_OK) status = hr_directory_check(folder, err);
    if (status == HR_OK) status = hr_convert_check_destination(folder, err);
    const bool is_new = status == HR_OK && !hr_file_exists(folder);
    if (status == HR_OK) status = hr_directory_make(folder, err);
    if (status == HR_OK) status = write_weights(&r, folder, &rank, modules);
    if (status == HR_OK) status = write_config(&r, folder, rank);
    hr_file_abort(&r.out);
    if (status != HR_OK && is_new) rmdir(folder); /* unless something is in it */
    hr_stored_close(&r.capture);
    hr_stored_close(&r.adapter);
    return status;
}

hr_status hr_adapter_replay(const char *adapter, const char *capture, int64_t token,
                            const char *folder, int64_t *modules, hr_error *err)
{
    hr_memory memory = { 0 };
    hr_status status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = replay_in(&memory, adapter, capture, token, folder, modules, err);
    hr_memory_close(&memory);
    return status;
}
