/* SPDX-License-Identifier: Apache-2.0 */
/* model/layer_schema.c - builds the forward pass of one layer and collects its marks. */
#include "model/layer_schema.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/backend.h"
#include "model/adapter.h"
#include "model/blocks.h"
#include "model/family.h"
#include "model/nsa.h"
#include "ops/linear/linear.h"
#include "ops/list.h"

/* Limits for one layer with the embedding and the last norm, and what adapters add. */
enum { STEPS_MOST = 30, TENSORS_MOST = 64, LOOPS_MOST = 4, PARAMS_MOST = 26 };
enum { NSA_STEPS = 12, NSA_TENSORS = 40, NSA_PARAMS = 16 };
enum { ADAPTED_STEPS = 22, ADAPTED_TENSORS = 36, ADAPTED_PARAMS = 14 };

/* What adapters of keys and values of each branch add. No more: the tables are on the stack. */
enum { OWN_STEPS = 26, OWN_TENSORS = 38, OWN_PARAMS = 14 };

/* What DoRA with dropout adds to each product: three steps, of which each makes a tensor. */
enum { PARTS_MOST = 3 * 9 };

/* Magnitudes of DoRA beyond those of the matrices of a layer: of tables and the head, which are
 * refused later. */
enum { MAGNITUDES_MOST = 12 };

static int32_t parts_of(const hr_config *config)
{
    return config->train.adapter.dora && config->train.adapter.dropout > 0 ? PARTS_MOST : 0;
}

/* The capacities of a program for one layer of one kind. */
typedef struct {
    int32_t steps, tensors, loops, params;
} capacities;

static capacities limits_for(const hr_config *config)
{
    const bool adapts = config->train.adapter.kind != HR_ADAPTER_NONE, nsa = hr_nsa_is_on(config);
    const bool own = adapts && nsa && config->model.attention.nsa.own_keys;
    const int32_t parts = parts_of(config);
    const int32_t magnitudes = config->train.adapter.dora ? MAGNITUDES_MOST : 0;
    return (capacities){ .steps = STEPS_MOST + parts + magnitudes + (adapts ? ADAPTED_STEPS : 0) +
                                  (nsa ? NSA_STEPS : 0) + (own ? OWN_STEPS : 0),
                         .tensors = TENSORS_MOST + parts + (adapts ? ADAPTED_TENSORS : 0) +
                                    (nsa ? NSA_TENSORS : 0) + (own ? OWN_TENSORS : 0) + magnitudes,
                         .loops = LOOPS_MOST,
                         .params = PARAMS_MOST + (adapts ? ADAPTED_PARAMS : 0) +
                                   (nsa ? NSA_PARAMS : 0) + (own ? OWN_PARAMS : 0) + magnitudes };
}

/* Bytes of the memory for it. */
static int64_t bytes_for(const hr_config *config)
{
    const capacities most = limits_for(config);
    return most.steps * (int64_t)sizeof(hr_step) + most.tensors * (int64_t)sizeof(hr_tensor) +
           most.loops * (int64_t)sizeof(hr_loop) +
           most.params * (int64_t)(sizeof(hr_param) + sizeof(int32_t)) + (int64_t)sizeof(hr_layer) +
           8 * 64;
}

/* Adds a set to disjoint sets and merges those that it intersects. */
static int32_t add(hr_intermediates set, hr_intermediates *sets, int32_t count)
{
    int32_t left = 0;
    if (!set) return count;
    for (int32_t i = 0; i < count; i++) {
        if (sets[i] & set) set |= sets[i];
        else sets[left++] = sets[i];
    }
    sets[left++] = set;
    return left;
}

/* The marks of a layer are the same for every back end. */
static const hr_backend none = { .name = "none",
                                 .ops = hr_op_table,
                                 .op_count = HR_OP_COUNT,
                                 .matrix_layout = hr_linear_layout };

/* For hr_builder.adapter: one layer stands for all, and the first adapter for the others, which
 * hr_layer_size_of counts. */
static hr_adapter_rule widest(const void *of, int32_t which, int16_t layer, int32_t index,
                              const char *name)
{
    (void)index;
    return which ? (hr_adapter_rule){ .rank = 0 } : hr_adapter_widest(of, which, layer, name);
}

static void build(const hr_config *config, int32_t kind, hr_region *region, hr_program *program)
{
    hr_model model;
    hr_error err;
    const hr_family_spec *family = hr_family_of(config);
    const capacities most = limits_for(config);
    hr_status status = hr_program_place(region, &none, most.steps, most.tensors, most.loops,
                                        most.params, program, &err);
    if (status == HR_OK) status = hr_model_open(config, 1, region, &model, &err);
    HR_ASSERT(status == HR_OK);
    model.layers[0].kind = kind;
    hr_builder builder = { .program = program,
                           .dtype = hr_config_dtype(config),
                           .rows = config->train.seq_len,
                           .T = config->train.seq_len,
                           .training = true,
                           .weights_alone = true, /* masters have no marks */
                           .layer = HR_NONE,
                           .direction = HR_DIR_FORWARD,
                           .adapter_dropout = config->train.adapter.dropout,
                           .adapter = widest,
                           .rule_of = config,
                           .err = &err };
    family->params(&builder, config, &model);
    if (family->tables) family->tables(&builder, config, &model);
    const int32_t ids = hr_build_rows(&builder, "ids", HR_I32, 1);
    hr_teaching teaching = hr_teaching_of(config, &model, program);
    teaching.labels = ids;
    teaching.scale = HR_NONE;
    if (teaching.count) {
        teaching.sums = hr_build_fixed(&builder, "sums", HR_ROLE_SUM, HR_F64, HR_ROWS,
                                       teaching.slots, 0, 0);
        builder.teaching = &teaching;
    }
    family->forward(&builder, config, &model, ids);
    status = hr_build_status(&builder);
    HR_ASSERT(status == HR_OK);
}

/* The sets of intermediates that one step makes: disjoint. */
typedef struct {
    hr_intermediates sets[HR_INTERMEDIATES];
    int32_t count;
} shared;

static void look(const hr_program *program, hr_layer_schema *schema, shared *together)
{
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const hr_intermediates is = program->tensors[t].intermediates;
        schema->part_count = add(is, schema->parts, schema->part_count);
        schema->present |= is;
    }
    for (int32_t s = 0; s < program->step_count; s++) {
        hr_intermediates made = 0;
        for (int32_t k = 0; k < HR_OUT_MAX; k++)
            if (program->steps[s].out[k] != HR_NONE)
                made |= program->tensors[program->steps[s].out[k]].intermediates;
        together->count = add(made, together->sets, together->count);
    }
}

static int64_t bytes_of(const hr_program *program)
{
    int64_t bytes = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        bytes += hr_tensor_bytes(&program->tensors[t]);
    return bytes;
}

/* Memory for one layer of one kind, and the kinds that were built. The memory is a part of the
 * frame, only as large as needed, because the stack size is planned. */
typedef struct {
    void *memory;
    int64_t bytes;
    uint32_t seen;
    int64_t layer;
} kinds;

/* Builds a layer of the next kind. Returns false after the last. */
static bool build_next(const hr_config *config, kinds *all, hr_program *program)
{
    for (; all->layer < config->model.n_layers; all->layer++) {
        const int32_t kind = hr_family_kind(config, all->layer);
        if (all->seen >> kind & 1) continue;
        hr_region region = hr_region_over(all->memory, all->bytes);
        all->seen |= 1U << kind;
        build(config, kind, &region, program);
        return true;
    }
    return false;
}

/* Adapters after the first. */
static int32_t further_adapters(const hr_config *config)
{
    int32_t count = 0;
    for (const hr_config_adapter *a = config->train.adapter.next; a; a = a->next) count++;
    return count;
}

/* Adds adapters of every matrix: each has two parameters and three steps. */
static void add_adapters(hr_layer_size *size, int32_t adapters)
{
    size->params += 2 * adapters * size->bases;
    size->matrices += 2 * adapters * size->bases;
    size->steps += 3 * adapters * size->bases;
    size->rest_params = 2 * 2 * adapters;
}

hr_layer_size hr_layer_size_of(const hr_config *config)
{
    kinds all = { .bytes = bytes_for(config) };
    hr_program program;
    hr_layer_size most = { 0 };
    all.memory = __builtin_alloca_with_align((size_t)all.bytes, 8 * 64);
    while (build_next(config, &all, &program)) {
        hr_layer_size size = { 0 };
        for (int32_t p = 0; p < program.param_count; p++) {
            const hr_tensor *weight = &program.tensors[program.params[p].weight];
            const int64_t elements = hr_tensor_bytes(weight) /
                                     hr_dtype_bytes((hr_dtype)weight->dtype);
            size.params += weight->layer != HR_NONE;
            size.bases += weight->layer != HR_NONE && weight->layout != HR_ROWS &&
                          program.params[p].adapts == HR_NONE;
            size.matrices += weight->layer != HR_NONE && weight->layout != HR_ROWS;
            const int64_t count = program.params[p].dims[0] * hr_max(program.params[p].dims[1], 1);
            *(weight->layer != HR_NONE ? &size.elements : &size.rest_elements) += elements;
            *(weight->layer != HR_NONE ? &size.count : &size.rest_count) += count;
            most.largest = hr_max(most.largest, elements);
        }
        for (int32_t s = 0; s < program.step_count; s++)
            size.steps += program.steps[s].layer != HR_NONE;
        add_adapters(&size, further_adapters(config));
        most.rest_params = size.rest_params;
        most.params = (int32_t)hr_max(most.params, size.params);
        most.matrices = (int32_t)hr_max(most.matrices, size.matrices);
        most.steps = (int32_t)hr_max(most.steps, size.steps);
        most.elements = hr_max(most.elements, size.elements);
        most.rest_elements = size.rest_elements;
        most.count = hr_max(most.count, size.count);
        most.rest_count = size.rest_count;
    }
    return most;
}

hr_layer_schema hr_layer_schema_of(const hr_config *config)
{
    kinds all = { .bytes = bytes_for(config) };
    hr_program program;
    hr_layer_schema schema = { .present = 0 };
    shared together = { .count = 0 };
    int64_t bytes = 0;
    all.memory = __builtin_alloca_with_align((size_t)all.bytes, 8 * 64);
    while (build_next(config, &all, &program)) {
        /* Kinds of layers differ in what they compute, not in bytes: the search relies on it. */
        HR_ASSERT(bytes == 0 || bytes == bytes_of(&program));
        bytes = bytes_of(&program);
        look(&program, &schema, &together);
    }
    for (int32_t i = 0; i < schema.part_count; i++)
        for (int32_t j = 0; j < together.count; j++)
            if (together.sets[j] & schema.parts[i]) schema.made[i] = together.sets[j];
    return schema;
}

hr_intermediates hr_layer_schema_within(const hr_layer_schema *schema, hr_intermediates set)
{
    hr_intermediates closed = 0;
    for (int32_t i = 0; i < schema->part_count; i++)
        if ((schema->parts[i] & ~set) == 0) closed |= schema->parts[i];
    return closed;
}

const char *hr_intermediate_name(hr_intermediate intermediate)
{
    static const char *const names[] = { [HR_INTERMEDIATE_NONE] = "",
                                         [HR_INTERMEDIATE_NORM] = "norm",
                                         [HR_INTERMEDIATE_Q] = "q",
                                         [HR_INTERMEDIATE_K] = "k",
                                         [HR_INTERMEDIATE_V] = "v",
                                         [HR_INTERMEDIATE_ATTENTION] = "attention",
                                         [HR_INTERMEDIATE_MID] = "mlp_input",
                                         [HR_INTERMEDIATE_GATE] = "gate",
                                         [HR_INTERMEDIATE_UP] = "up",
                                         [HR_INTERMEDIATE_ACTIVATION] = "activation",
                                         [HR_INTERMEDIATE_INPUT] = "layer_input" };
    return names[intermediate];
}
