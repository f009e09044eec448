/* SPDX-License-Identifier: Apache-2.0 */
/* sections/generation.c - builds the sections of a generation. Families need no code for it: the
 * builder has a KV cache and a position, so their attention reads the cache.
 *
 * Rows of a table are rounded when read, so a rounded table gives equal values, unless a position
 * is added first. */
#include "sections/generation.h"

#include "base/checked.h"
#include "model/blocks.h"
#include "model/nsa.h"
#include "ops/kv_cache/kv_cache_build.h"
#include "ops/last_row/last_row_build.h"
#include "ops/list.h"
#include "ops/recurrence/recurrence_build.h"
#include "sections/assembly.h"
#include "sections/head.h"

static void build_caches(hr_assembly *a, int64_t rows, int32_t (*caches)[HR_CACHES_MAX])
{
    const hr_config *config = a->config;
    hr_assembly_section(a, HR_LOOP_CACHES, 0, false);
    for (int32_t l = 0; l < config->model.n_layers; l++) {
        const hr_attention_attr attr = hr_block_attention(config, &a->model.layers[l]);
        const bool slides = attr.mask.kind == HR_PATTERN_SLIDING;
        const int64_t capacity = hr_kv_cache_rows(config->train.seq_len, rows,
                                                  slides ? attr.mask.window : 0);
        a->builder.layer = (int16_t)l;
        if (hr_nsa_is_on(config)) {
            hr_build_nsa_caches(&a->builder, config, &attr, caches[l]);
            continue;
        }
        const hr_kv_cache cache = hr_build_kv_cache(&a->builder, attr.G, attr.head_width, capacity,
                                                    0);
        caches[l][0] = cache.keys;
        caches[l][1] = cache.values;
    }
    a->builder.layer = HR_NONE;
    hr_build_loop_close(&a->builder);
}

static void build_states(hr_assembly *a, int32_t (*caches)[HR_CACHES_MAX])
{
    hr_assembly_section(a, HR_LOOP_CACHES, 0, false);
    for (int32_t l = 0; l < a->config->model.n_layers; l++) {
        a->builder.layer = (int16_t)l;
        const int64_t states = a->config->model.trunk == HR_TRUNK_LIF ? 3 : 1; /* of a channel */
        caches[l][0] = hr_build_recurrence_state(&a->builder, states * a->config->model.d_model, 0);
        caches[l][1] = HR_NONE;
    }
    a->builder.layer = HR_NONE;
    hr_build_loop_close(&a->builder);
}

/* Builds a section that processes some rows of the text and samples the next token. */
static void build_rows(hr_assembly *a, hr_loop_id section, hr_loop_id turn, int64_t rows,
                       int64_t sampling_bytes)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, section, rows, false);
    hr_build_known_loop_open(builder, turn, HR_MANY);
    const int32_t ids = hr_assembly_tokens(a, "ids", builder->loop);
    builder->position = hr_build_fixed(builder, "position", HR_ROLE_INPUT, HR_I32, HR_ROWS, 1, 0,
                                       builder->loop);
    hr_step *step = hr_assembly_host(a, HR_OP_prompt, HR_NONE, 0);
    step->out[0] = ids;
    step->out[1] = builder->position;
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, ids);
    const int32_t last = rows > 1 ? hr_build_last_row(builder, "last hidden", hidden) : hidden;
    hr_assembly_head(a, last, HR_NONE, HR_NONE, HR_NONE, sampling_bytes);
    hr_build_loop_close(builder);
    hr_build_loop_close(builder);
}

hr_status hr_model_assemble_generation(const hr_config *config, const hr_backend *backend,
                                       int64_t rows, int64_t sampling_bytes, hr_region *region,
                                       hr_program *program, hr_error *err)
{
    const int64_t layers = config->model.n_layers;
    hr_assembly a;
    const hr_status status = hr_assembly_begin(&a, config, backend, true, region, program, err);
    if (status != HR_OK) return status;
    int32_t(*caches)[HR_CACHES_MAX] = hr_region_take(region, layers, sizeof *caches);
    if (!caches)
        return hr_fail(err, HR_FAILURE, "out of memory for a model of %lld layers",
                       (long long)layers);
    a.family->params(&a.builder, config, &a.model);
    hr_assembly_load(&a);
    if (a.family->traits & HR_HAS_STATES) build_states(&a, caches);
    else build_caches(&a, rows, caches);
    a.builder.caches = (const int32_t(*)[HR_CACHES_MAX])caches;
    build_rows(&a, HR_LOOP_PROMPT, HR_LOOP_PROMPT_CHUNK, rows, sampling_bytes);
    build_rows(&a, HR_LOOP_ANSWER, HR_LOOP_ANSWER_TOKEN, 1, sampling_bytes);
    const hr_status ended = hr_assembly_end(&a, err);
    return ended == HR_OK && a.builder.weights_away ? hr_head_cut(program, err) : ended;
}
