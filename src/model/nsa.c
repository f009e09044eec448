/* SPDX-License-Identifier: Apache-2.0 */
/* model/nsa.c - the branches of native sparse attention, and their sizes. */
#include "model/nsa.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/attention/attention_build.h"
#include "ops/choose/choose_build.h"
#include "ops/compress/compress_build.h"
#include "ops/gates/gates_build.h"

#define LAYER "model.layers.%lld.self_attn."
#define STD 0.02

bool hr_nsa_is_on(const hr_config *config)
{
    return config->model.attention.kind == HR_ATTENTION_NSA;
}

bool hr_nsa_compresses(const hr_config *config)
{
    return hr_nsa_is_on(config) && strstr(config->model.attention.nsa.branches, "compressed");
}

/* ---- sizes */

static bool has_only(const char *text, const char *const *words, int32_t count)
{
    static const char between[] = ", ";
    int32_t at = 0;
    for (text += strspn(text, between); *text; at++) {
        const size_t length = strcspn(text, between);
        if (at == count || strlen(words[at]) != length || strncmp(text, words[at], length))
            return false;
        text += length;
        text += strspn(text, between);
    }
    return at == count;
}

static hr_status check_branches(const hr_config *config, hr_error *err)
{
    static const char *const all[] = { "compressed", "selected", "window" };
    const char *text = config->model.attention.nsa.branches;
    if (has_only(text, all, 3) || has_only(text, all + 1, 2)) return HR_OK;
    return hr_fail(
        err, HR_USAGE,
        "model.attention.nsa.branches is \"compressed, selected, window\" or \"selected, "
        "window\", not \"%.100s\"",
        text);
}

static hr_status check_rest(const hr_config *config, hr_error *err)
{
    const int64_t heads = config->model.n_heads, groups = hr_config_kv_heads(config);
    if (config->model.attention.pattern || config->model.attention.sliding_window)
        return hr_fail(err, HR_USAGE,
                       "model.attention.kind nsa has windows and blocks of its own: "
                       "model.attention.pattern must be dense, and sliding_window none");
    if (config->data.documents)
        return hr_fail(err, HR_USAGE,
                       "model.attention.kind nsa compresses across documents: data.documents must "
                       "be joined");
    if (config->model.dropout > 0)
        return hr_fail(err, HR_USAGE, "model.attention.kind nsa has no dropout");
    if (config->model.attention.nsa.own_keys && config->model.family == HR_FAMILY_QWEN3)
        return hr_fail(err, HR_USAGE,
                       "model.family qwen3 has one norm for the keys of all heads: "
                       "model.attention.nsa.own_keys must be false");
    if (heads % groups)
        return hr_fail(err, HR_USAGE,
                       "model.n_kv_heads %lld does not divide model.n_heads %lld: heads of a group "
                       "share their blocks",
                       (long long)groups, (long long)heads);
    return HR_OK;
}

hr_status hr_nsa_check(const hr_config *config, hr_error *err)
{
    const int64_t length = config->model.attention.nsa.compress_block,
                  stride = config->model.attention.nsa.compress_stride,
                  block = config->model.attention.nsa.select_block,
                  count = config->model.attention.nsa.select_count,
                  first = config->model.attention.nsa.select_first,
                  local = config->model.attention.nsa.select_local;
    if (!hr_nsa_is_on(config)) return HR_OK;
    hr_status status = check_branches(config, err);
    if (status == HR_OK) status = check_rest(config, err);
    if (status != HR_OK) return status;
    int64_t whole = stride;
    while (length % whole || block % whole) whole--;
    if (whole != stride)
        return hr_fail(err, HR_USAGE,
                       "model.attention.nsa.compress_stride %lld must divide compress_block %lld "
                       "and select_block %lld; the nearest below it that does is %lld",
                       (long long)stride, (long long)length, (long long)block, (long long)whole);
    if (first + local > count)
        return hr_fail(
            err, HR_USAGE,
            "model.attention.nsa.select_count %lld has no room for select_first %lld and "
            "select_local %lld: use select_count %lld or more",
            (long long)count, (long long)first, (long long)local, (long long)(first + local));
    return HR_OK;
}

hr_status hr_nsa_check_length(const hr_config *config, hr_error *err)
{
    const int64_t length = config->model.attention.nsa.compress_block,
                  block = config->model.attention.nsa.select_block, T = config->train.seq_len;
    const int64_t blocks = (T + block - 1) / block, most = HR_ATTENTION_NO_BLOCK;
    if (!hr_nsa_is_on(config)) return HR_OK;
    if (T < length)
        return hr_fail(err, HR_USAGE,
                       "train.seq_len %lld is below model.attention.nsa.compress_block %lld: no "
                       "group of tokens would be whole; use train.seq_len %lld or more",
                       (long long)T, (long long)length, (long long)length);
    if (blocks <= most) return HR_OK;
    return hr_fail(
        err, HR_USAGE,
        "train.seq_len %lld has %lld blocks of model.attention.nsa.select_block %lld, at "
        "most %lld can be chosen from: use train.seq_len %lld or less, or larger blocks",
        (long long)T, (long long)blocks, (long long)block, (long long)most,
        (long long)(most * block));
}

/* ---- weights */

static const char *const names[HR_NSA_WEIGHTS] = {
    [HR_NSA_GATE] = LAYER "gate.weight",
    [HR_NSA_GATE_BIAS] = LAYER "gate.bias",
    [HR_NSA_KEY_POSITION] = LAYER "compress_k.position",
    [HR_NSA_KEY_W1] = LAYER "compress_k.w1",
    [HR_NSA_KEY_B1] = LAYER "compress_k.b1",
    [HR_NSA_KEY_W2] = LAYER "compress_k.w2",
    [HR_NSA_KEY_B2] = LAYER "compress_k.b2",
    [HR_NSA_VALUE_POSITION] = LAYER "compress_v.position",
    [HR_NSA_VALUE_W1] = LAYER "compress_v.w1",
    [HR_NSA_VALUE_B1] = LAYER "compress_v.b1",
    [HR_NSA_VALUE_W2] = LAYER "compress_v.w2",
    [HR_NSA_VALUE_B2] = LAYER "compress_v.b2",
    [HR_NSA_COMPRESSED_K] = LAYER "compressed.k_proj.weight",
    [HR_NSA_COMPRESSED_V] = LAYER "compressed.v_proj.weight",
    [HR_NSA_WINDOW_K] = LAYER "window.k_proj.weight",
    [HR_NSA_WINDOW_V] = LAYER "window.v_proj.weight",
};

static int64_t hidden_of(const hr_config *config)
{
    const int64_t hidden = config->model.attention.nsa.compress_hidden;
    return hidden ? hidden : hr_config_head_dim(config);
}

void hr_nsa_weights(const hr_config *config, hr_layer_weight *weights)
{
    const int64_t D = config->model.d_model, H = config->model.n_heads;
    const int64_t K = hr_config_head_dim(config), M = hidden_of(config);
    const int64_t U = config->model.attention.nsa.compress_block * K;
    const int64_t width = hr_config_kv_heads(config) * K;
    const bool compresses = hr_nsa_compresses(config);
    const bool own = hr_nsa_is_on(config) && config->model.attention.nsa.own_keys;
    const hr_param_shape zeros = { HR_PARAM_VECTOR, 0, 0, 0, true, false };
    hr_param_shape shapes[HR_NSA_WEIGHTS] = {
        [HR_NSA_GATE] = { HR_PARAM_MATRIX, D, (compresses ? 3 : 2) * H, STD, false, true },
        [HR_NSA_GATE_BIAS] = zeros,
    };
    shapes[HR_NSA_GATE_BIAS].K = 3 * H;
    for (int32_t i = HR_NSA_KEY_POSITION; i <= HR_NSA_VALUE_POSITION;
         i += HR_NSA_VALUE_POSITION - HR_NSA_KEY_POSITION) {
        shapes[i] = (hr_param_shape){ HR_PARAM_VECTOR, U, 0, STD };
        shapes[i + 1] = (hr_param_shape){ HR_PARAM_MATRIX, U, M, 1 / sqrt((double)U),
                                          .plain = true };
        shapes[i + 2] = shapes[i + 4] = zeros;
        shapes[i + 2].K = M;
        shapes[i + 3] = (hr_param_shape){ HR_PARAM_MATRIX, M, K, 1 / sqrt((double)M),
                                          .plain = true };
        shapes[i + 4].K = K;
    }
    for (int32_t i = HR_NSA_COMPRESSED_K; i < HR_NSA_WEIGHTS; i++)
        shapes[i] = (hr_param_shape){ HR_PARAM_MATRIX, D, width, STD, false, true };
    for (int32_t i = 0; i < HR_NSA_WEIGHTS; i++) {
        bool has = hr_nsa_is_on(config);
        if (i >= HR_NSA_GATE_BIAS && i <= HR_NSA_VALUE_B2) has = compresses;
        if (i >= HR_NSA_COMPRESSED_K) has = own && (i >= HR_NSA_WINDOW_K || compresses);
        weights[i] = (hr_layer_weight){ has ? names[i] : NULL, shapes[i] };
    }
}

/* ---- the branches */

static hr_attention_attr with_mask(const hr_attention_attr *attr, int32_t kind, int64_t block,
                                   int64_t window, int64_t stride)
{
    hr_attention_attr made = *attr;
    made.mask = (hr_attention_mask){ kind, (int32_t)block, (int32_t)window, (int32_t)stride };
    return made;
}

static hr_compress_attr shape_of(const hr_config *config, const hr_attention_attr *attr)
{
    return (hr_compress_attr){ .G = attr->G,
                               .head_width = attr->head_width,
                               .length = (int32_t)config->model.attention.nsa.compress_block,
                               .stride = (int32_t)config->model.attention.nsa.compress_stride,
                               .hidden = (int32_t)hidden_of(config) };
}

/* Places of the caches of a layer: keys and values of each branch, or of all; compressed ones. */
enum { CACHE_BRANCH = 2, CACHE_COMPRESSED = 6 };

static int32_t compress(hr_builder *builder, const hr_config *config, const char *name,
                        const int32_t *weights, int32_t first, int32_t x, int32_t q,
                        const hr_attention_attr *attr, hr_intermediate mark)
{
    hr_compress_weights of = { HR_NONE, HR_NONE, HR_NONE, HR_NONE, HR_NONE };
    if (hr_nsa_compresses(config))
        of = (hr_compress_weights){ weights[first], weights[first + 1], weights[first + 2],
                                    weights[first + 3], weights[first + 4] };
    if (!builder->caches)
        return hr_build_mark(builder,
                             hr_build_compress(builder, name, x, of, shape_of(config, attr)), mark);
    const int32_t place = CACHE_COMPRESSED + (mark == HR_INTERMEDIATE_V);
    const int32_t y = builder->caches[builder->layer][place];
    hr_build_compress_cached(builder, x, q, of, shape_of(config, attr), y);
    return y;
}

/* Appends the keys and values of the branches to their caches, which take their place. */
static void build_appended(hr_builder *builder, const hr_attention_attr *attr, hr_nsa_keys *keys)
{
    const int32_t *caches = builder->caches[builder->layer], shared = CACHE_BRANCH;
    const int32_t width = attr->G * attr->head_width;
    for (int32_t b = 0; b < 3; b++) {
        const int32_t at = caches[CACHE_BRANCH * b] == HR_NONE ? shared : CACHE_BRANCH * b;
        const hr_kv_cache cache = { caches[at], caches[at + 1], 1, width, builder->T };
        if (at == CACHE_BRANCH * b)
            hr_build_cache_append(
                builder, keys->k[b], keys->v[b], builder->position, &cache,
                (hr_kv_cache_attr){ .k_head_stride = width, .v_head_stride = width });
        keys->k[b] = cache.keys;
        keys->v[b] = cache.values;
    }
}

/* A row for each token, as the branches read keys and values of the same call. */
void hr_build_nsa_caches(hr_builder *builder, const hr_config *config,
                         const hr_attention_attr *attr, int32_t caches[HR_CACHES_MAX])
{
    const hr_compress_attr shape = shape_of(config, attr);
    const int32_t width = attr->G * attr->head_width;
    const int32_t y_width = (int32_t)hr_compress_width(&shape);
    const bool compresses = hr_nsa_compresses(config), own = config->model.attention.nsa.own_keys;
    for (int32_t i = 0; i < HR_CACHES_MAX; i++) caches[i] = HR_NONE;
    for (int32_t b = 0; b < 3; b++) {
        if (b != 1 && !(own && (b == 2 || compresses))) continue;
        const hr_kv_cache cache = hr_build_kv_cache(builder, 1, width, builder->T, 0);
        caches[CACHE_BRANCH * b] = cache.keys;
        caches[CACHE_BRANCH * b + 1] = cache.values;
    }
    const hr_kv_cache cache = compresses ? hr_build_kv_cache(builder, 1, y_width, builder->T, 0)
                                         : hr_build_key_cache(builder, 1, y_width, builder->T, 0);
    caches[CACHE_COMPRESSED] = cache.keys;
    caches[CACHE_COMPRESSED + 1] = cache.values;
}

int32_t hr_build_nsa(hr_builder *builder, const hr_config *config, const int32_t *weights,
                     int32_t x, int32_t q, hr_nsa_keys keys, const hr_attention_attr *attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    if (builder->caches) build_appended(builder, attr, &keys);
    const int64_t length = config->model.attention.nsa.compress_block,
                  stride = config->model.attention.nsa.compress_stride,
                  block = config->model.attention.nsa.select_block,
                  count = config->model.attention.nsa.select_count;
    const bool compresses = hr_nsa_compresses(config);
    const hr_attention_attr compressed = with_mask(attr, HR_PATTERN_COMPRESSED, 1, length, stride),
                            selected = with_mask(attr, HR_PATTERN_SELECTED, block, count, 1),
                            window = with_mask(attr, HR_PATTERN_SLIDING, 1,
                                               config->model.attention.nsa.window, 1);
    const int32_t scored = compresses ? 0 : 1;
    int32_t lse = HR_NONE, branches[HR_GATES_MOST], made = 0;
    const int32_t z = hr_block_project(builder, "gate_logits", x, weights[HR_NSA_GATE],
                                       weights[HR_NSA_GATE_BIAS], HR_INTERMEDIATE_Q);
    const int32_t kc = compress(builder, config, "compressed_k", weights, HR_NSA_KEY_POSITION,
                                keys.k[scored], q, attr, HR_INTERMEDIATE_K);
    if (compresses) {
        const int32_t vc = compress(builder, config, "compressed_v", weights, HR_NSA_VALUE_POSITION,
                                    keys.v[0], q, attr, HR_INTERMEDIATE_V);
        branches[made++] = hr_build_attention_branch(builder, "compressed", q, kc, vc, HR_NONE,
                                                     compressed, &lse);
    }
    const hr_choose_attr choice = { .H = attr->H,
                                    .G = attr->G,
                                    .head_width = attr->head_width,
                                    .q_offset = attr->q_offset,
                                    .q_head_stride = attr->q_head_stride,
                                    .length = (int32_t)length,
                                    .stride = (int32_t)stride,
                                    .block = (int32_t)block,
                                    .count = (int32_t)count,
                                    .first = (int32_t)config->model.attention.nsa.select_first,
                                    .local = (int32_t)config->model.attention.nsa.select_local,
                                    .scale = attr->scale };
    const int32_t blocks = hr_build_mark(
        builder, hr_build_choose(builder, "selected_blocks", q, kc, lse, choice),
        HR_INTERMEDIATE_ATTENTION);
    branches[made++] = hr_build_attention_branch(builder, "selected", q, keys.k[1], keys.v[1],
                                                 blocks, selected, NULL);
    branches[made++] = hr_build_attention_branch(builder, "window", q, keys.k[2], keys.v[2],
                                                 HR_NONE, window, NULL);
    return hr_build_mark(builder,
                         hr_build_gates(builder, "attention", z, branches,
                                        (hr_gates_attr){ attr->H, attr->head_width, made }),
                         HR_INTERMEDIATE_ATTENTION);
}
