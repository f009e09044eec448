/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/gguf_adapter.c - renames the tensors of adapters as llama.cpp does, and writes them
 * behind a header of GGUF. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/words.h"
#include "checkpoint/low_rank.h"
#include "checkpoint/names.h"
#include "graph/program.h"
#include "headroom/adapter.h"
#include "mem/memory.h"
#include "model/family.h"

enum {
    NAME_SHOWN = 120,
    ALIGN = 32,
    STRING = 8,
    FLOAT32 = 6,
    ENTRY_BYTES = 160,
    KEYS_BYTES = 1024
};
enum { PIECE_BYTES = 1 << 20 };

/* How the rows of a product of queries or keys are stored there. */
enum { AS_IS, TURNED_HEADS /* halves of a head alternate */, PARTED /* all q, then all k and v */ };

typedef struct {
    const char *module, *name;
    int32_t order, heads_of; /* 1: of keys */
} renaming;

static const renaming llama_like[] = {
    { "self_attn.q_proj", "attn_q", TURNED_HEADS, 0 },
    { "self_attn.k_proj", "attn_k", TURNED_HEADS, 1 },
    { "self_attn.v_proj", "attn_v", AS_IS, 0 },
    { "self_attn.o_proj", "attn_output", AS_IS, 0 },
    { "mlp.gate_proj", "ffn_gate", AS_IS, 0 },
    { "mlp.up_proj", "ffn_up", AS_IS, 0 },
    { "mlp.down_proj", "ffn_down", AS_IS, 0 },
    { NULL, NULL, 0, 0 },
};
static const renaming gpt2[] = { { "attn.c_attn", "attn_qkv", AS_IS, 0 },
                                 { "attn.c_proj", "attn_output", AS_IS, 0 },
                                 { "mlp.c_fc", "ffn_up", AS_IS, 0 },
                                 { "mlp.c_proj", "ffn_down", AS_IS, 0 },
                                 { NULL, NULL, 0, 0 } };
static const renaming gpt_neox[] = { { "attention.query_key_value", "attn_qkv", PARTED, 0 },
                                     { "attention.dense", "attn_output", AS_IS, 0 },
                                     { "mlp.dense_h_to_4h", "ffn_up", AS_IS, 0 },
                                     { "mlp.dense_4h_to_h", "ffn_down", AS_IS, 0 },
                                     { NULL, NULL, 0, 0 } };

static const struct {
    int32_t family;
    const char *architecture;
    const renaming *names;
    bool turns; /* heads of q and k */
} families[] = { { HR_FAMILY_LLAMA, "llama", llama_like, true },
                 { HR_FAMILY_MISTRAL, "llama", llama_like, true },
                 { HR_FAMILY_QWEN2, "qwen2", llama_like, false },
                 { HR_FAMILY_QWEN3, "qwen3", llama_like, false },
                 { HR_FAMILY_GPT2, "gpt2", gpt2, false },
                 { HR_FAMILY_GPT_NEOX, "gptneox", gpt_neox, false } };

typedef struct {
    hr_low_rank low;
    const char *folder, *architecture;
    const renaming *names;
    bool turns;
    hr_file_out out;
    char *header; /* [header_bytes] */
    int64_t header_bytes, used;
    int64_t offset; /* of the next tensor in the data */
    float *values;  /* [room]: a tensor, and its rows in another order */
    double alpha;   /* of all adapters */
    hr_error *err;
} gguf;

/* ---- header */

static void put(gguf *g, const void *bytes, int64_t count)
{
    if (g->used + count <= g->header_bytes) memcpy(g->header + g->used, bytes, (size_t)count);
    g->used += count;
}

static void put_u32(gguf *g, uint32_t value)
{
    put(g, &value, sizeof value);
}

static void put_u64(gguf *g, uint64_t value)
{
    put(g, &value, sizeof value);
}

static void put_text(gguf *g, const char *text)
{
    put_u64(g, strlen(text));
    put(g, text, (int64_t)strlen(text));
}

static void put_key(gguf *g, const char *key, const char *text)
{
    put_text(g, key);
    put_u32(g, STRING);
    put_text(g, text);
}

/* By which files of adapters are told from those of models, whose first key is another. */
static const char first_key[] = "general.type";
enum { FIRST_KEY_AT = 32 };

static void put_keys(gguf *g, int64_t tensors)
{
    const float alpha = (float)g->alpha;
    put(g, "GGUF", 4);
    put_u32(g, 3);
    put_u64(g, (uint64_t)tensors);
    put_u64(g, 5);
    put_key(g, first_key, "adapter");
    put_key(g, "general.architecture", g->architecture);
    put_key(g, "general.name", "LoRA");
    put_key(g, "adapter.type", "lora");
    put_text(g, "adapter.lora.alpha");
    put_u32(g, FLOAT32);
    put(g, &alpha, sizeof alpha);
}

/* ---- tensors */

static int64_t elements_of(const hr_stored_tensor *tensor)
{
    return tensor->dims[0] * tensor->dims[1];
}

/* The part of a name after the module: 0 of A, 1 of B; HR_NONE: no part of these. */
static int32_t part_of(const char *name)
{
    return hr_ends_with(name, ".lora_A.weight")   ? 0
           : hr_ends_with(name, ".lora_B.weight") ? 1
                                                  : HR_NONE;
}

/* Finds what a tensor is called, or refuses it. */
static hr_status rename_tensor(const gguf *g, const hr_stored_tensor *tensor, char name[96],
                               const renaming **found)
{
    enum { BEFORE = sizeof HR_ADAPTER_PREFIX - 1, AFTER = sizeof ".lora_A.weight" - 1 };
    const int32_t part = part_of(tensor->name);
    char module[128];
    *found = NULL;
    if (part != HR_NONE && tensor->rank == 2 && strlen(tensor->name) > BEFORE + AFTER) {
        snprintf(module, sizeof module, "%.*s", (int)strlen(tensor->name) - BEFORE - AFTER,
                 tensor->name + BEFORE);
        const char *place = hr_name_in_layer(module);
        for (const renaming *r = g->names; r->module && place != module; r++)
            if (!strcmp(r->module, place)) *found = r;
        if (*found) {
            snprintf(name, 96, "blk.%d.%s.weight.lora_%c", (int)hr_name_layer(module),
                     (*found)->name, part ? 'b' : 'a');
            return HR_OK;
        }
    }
    return hr_fail(g->err, HR_USAGE,
                   "%.200s: GGUF has no adapter such as %.*s: only A and B of matrices "
                   "that layers of the base have",
                   g->folder, NAME_SHOWN, tensor->name);
}

static bool is_written(const hr_stored_tensor *tensor)
{
    return !hr_ends_with(tensor->name, ".base_layer.weight");
}

static hr_status put_tensors(gguf *g, int64_t *count)
{
    hr_status status = HR_OK;
    for (int32_t t = 0; t < g->low.stored.tensor_count && status == HR_OK; t++) {
        const hr_stored_tensor *tensor = &g->low.stored.tensors[t];
        const renaming *found;
        char name[96];
        if (!is_written(tensor)) continue;
        status = rename_tensor(g, tensor, name, &found);
        if (status != HR_OK) return status;
        put_text(g, name);
        put_u32(g, 2);
        put_u64(g, (uint64_t)tensor->dims[1]);
        put_u64(g, (uint64_t)tensor->dims[0]);
        put_u32(g, 0); /* F32 */
        put_u64(g, (uint64_t)g->offset);
        g->offset += hr_round_up(elements_of(tensor) * 4, ALIGN);
        ++*count;
    }
    return status;
}

/* The row of the base's B that row `row` of the file's is. */
static int64_t source_row(const gguf *g, const renaming *r, int64_t row)
{
    const hr_config *config = g->low.config;
    const int64_t H = hr_config_head_dim(config), heads = config->model.n_heads;
    const int64_t head = row / H, in_head = row % H;
    if (r->order == PARTED) return (head % heads * 3 + head / heads) * H + in_head;
    if (r->order == TURNED_HEADS && g->turns) return head * H + in_head % 2 * (H / 2) + in_head / 2;
    return row;
}

/* Writes the values of a tensor; B times what alpha / rank lacks of its scale. */
static hr_status write_tensor(gguf *g, const hr_stored_tensor *tensor)
{
    static const char zeros[ALIGN] = { 0 };
    const int64_t rows = tensor->dims[0], width = tensor->dims[1], bytes = rows * width * 4;
    const renaming *found;
    char name[96];
    float *ordered = g->values + rows * width;
    hr_status status = rename_tensor(g, tensor, name, &found);
    if (status == HR_OK) status = hr_low_rank_read(&g->low, tensor, g->values, g->err);
    if (status != HR_OK) return status;
    const bool b = part_of(tensor->name) == 1;
    const double factor = b ? hr_low_rank_scale(&g->low, tensor) * (double)width / g->alpha : 1;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++)
            ordered[row * width + i] =
                (float)(factor *
                        (double)g->values[(b ? source_row(g, found, row) : row) * width + i]);
    status = hr_file_append(&g->out, ordered, bytes, g->err);
    if (status != HR_OK) return status;
    return hr_file_append(&g->out, zeros, hr_round_up(bytes, ALIGN) - bytes, g->err);
}

/* The alpha of the first adapter with a scale, which all share. */
static void find_alpha(gguf *g)
{
    g->alpha = 0;
    for (int32_t t = 0; t < g->low.stored.tensor_count && g->alpha == 0; t++) {
        const hr_stored_tensor *tensor = &g->low.stored.tensors[t];
        if (part_of(tensor->name) == 1 && tensor->rank == 2)
            g->alpha = hr_low_rank_scale(&g->low, tensor) * (double)tensor->dims[1];
    }
    if (g->alpha == 0) g->alpha = 1; /* B becomes 0 */
}

/* Checks every adapter against the matrix of the base that it belongs to. */
static hr_status check_shapes(gguf *g, const char *base, hr_region *region)
{
    hr_stored stored;
    hr_status status = hr_stored_open(&stored, base, region, g->err);
    if (status != HR_OK) return status;
    for (int32_t t = 0; t < stored.tensor_count && status == HR_OK; t++)
        if (hr_low_rank_has(&g->low, &stored.tensors[t]))
            status = hr_low_rank_load(&g->low, &stored.tensors[t], g->err);
    hr_stored_close(&stored);
    return status == HR_OK ? hr_low_rank_check(&g->low, g->err) : status;
}

static hr_status write_all(gguf *g, const char *base, const char *path, hr_region *region,
                           int64_t *tensors)
{
    *tensors = 0;
    find_alpha(g);
    put_keys(g, 0);
    hr_status status = put_tensors(g, tensors);
    if (status == HR_OK) status = check_shapes(g, base, region);
    if (status != HR_OK) return status;
    if (g->used + ALIGN > g->header_bytes)
        return hr_fail(g->err, HR_FAILURE, "%.200s: out of memory for the header", path);
    memcpy(g->header + 8, &(uint64_t){ (uint64_t)*tensors }, 8);
    const int64_t padded = hr_round_up(g->used, ALIGN);
    memset(g->header + g->used, 0, (size_t)(padded - g->used));
    status = hr_file_begin_path(&g->out, path, g->err);
    if (status == HR_OK) status = hr_file_reserve(&g->out, padded + g->offset, g->err);
    if (status == HR_OK) status = hr_file_append(&g->out, g->header, padded, g->err);
    for (int32_t t = 0; t < g->low.stored.tensor_count && status == HR_OK; t++)
        if (is_written(&g->low.stored.tensors[t]))
            status = write_tensor(g, &g->low.stored.tensors[t]);
    if (status == HR_OK) status = hr_file_commit(&g->out, g->err);
    hr_file_abort(&g->out);
    return status;
}

static hr_status choose_names(gguf *g)
{
    const hr_config *config = g->low.config;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i].family == config->model.family) {
            g->architecture = families[i].architecture;
            g->names = families[i].names;
            g->turns = families[i].turns;
        }
    if (!g->names)
        return hr_fail(g->err, HR_USAGE, "GGUF has no adapters of the %s family",
                       hr_family_of(config)->name);
    if (config->train.adapter.dora)
        return hr_fail(g->err, HR_USAGE,
                       "%.200s: has magnitudes (DoRA), which GGUF adapters do not have; merge it "
                       "instead",
                       g->folder);
    return HR_OK;
}

static hr_status convert(gguf *g, const char *base, const char *adapter, const char *path,
                         hr_region *region, int64_t *tensors)
{
    void *piece = hr_region_take(region, PIECE_BYTES, 1);
    if (!piece) return hr_fail(g->err, HR_FAILURE, "%.200s: out of memory", adapter);
    hr_status status = hr_low_rank_open(&g->low, adapter, base, piece, PIECE_BYTES, region, g->err);
    if (status != HR_OK) return status;
    g->folder = g->low.folder;
    g->values = g->low.factors;
    g->header_bytes = g->low.stored.tensor_count * (int64_t)ENTRY_BYTES + KEYS_BYTES;
    g->header = hr_region_take(region, g->header_bytes, 1);
    if (!g->header) status = hr_fail(g->err, HR_FAILURE, "%.200s: out of memory", adapter);
    if (status == HR_OK) status = choose_names(g);
    if (status == HR_OK) status = write_all(g, base, path, region, tensors);
    hr_stored_close(&g->low.stored);
    return status;
}

hr_status hr_adapter_to_gguf(const char *base, const char *adapter, const char *path,
                             int64_t *tensors, hr_error *err)
{
    gguf g = { .err = err };
    hr_memory memory = { 0 };
    hr_region region;
    const int64_t low = hr_low_rank_bytes(adapter);
    hr_status status = hr_file_check_kind_at(path, FIRST_KEY_AT, first_key, "GGUF file of adapters",
                                             err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status != HR_OK) return status;
    status = hr_memory_region_open(
        &memory, "adapters", 2 * low + hr_stored_bytes(base) + PIECE_BYTES + KEYS_BYTES + 64 * 8,
        &region, err);
    if (status == HR_OK) status = convert(&g, base, adapter, path, &region, tensors);
    hr_memory_close(&memory);
    return status;
}
