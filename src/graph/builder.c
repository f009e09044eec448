/* SPDX-License-Identifier: Apache-2.0 */
/* graph/builder.c - appends tensors, parameters, steps and loops to a program. */
#include "graph/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/residual.h"
#include "graph/weight_format.h"

static bool full(hr_builder *builder, int32_t count, int32_t most, const char *what)
{
    if (builder->status != HR_OK) return true;
    if (count < most) return false;
    builder->status = hr_fail(builder->err, HR_FAILURE, "the program has more than %d %s", most,
                              what);
    return true;
}

static int32_t add_tensor(hr_builder *builder, const char *name, hr_tensor tensor)
{
    hr_program *program = builder->program;
    if (full(builder, program->tensor_count, program->tensor_max, "tensors")) return HR_NONE;
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    tensor.layer = builder->layer;
    program->tensors[program->tensor_count] = tensor;
    return program->tensor_count++;
}

int32_t hr_build_rows(hr_builder *builder, const char *name, hr_dtype dtype, int64_t width)
{
    return add_tensor(builder, name,
                      (hr_tensor){ .dtype = (uint8_t)dtype,
                                   .role = HR_ROLE_ACTIVATION,
                                   .layout = HR_ROWS,
                                   .dims = { builder->rows, width },
                                   .rows = builder->rows,
                                   .row_bytes = width * hr_dtype_bytes(dtype),
                                   .home = builder->loop,
                                   .view_of = HR_NONE,
                                   .view_loop = HR_NONE });
}

int32_t hr_build_mark(hr_builder *builder, int32_t tensor, hr_intermediate intermediate)
{
    if (tensor != HR_NONE && intermediate != HR_INTERMEDIATE_NONE)
        builder->program->tensors[tensor].intermediates |= (hr_intermediates)(1u << intermediate);
    return tensor;
}

int32_t hr_build_fixed(hr_builder *builder, const char *name, hr_role role, hr_dtype dtype,
                       hr_layout layout, int64_t K, int64_t N, int32_t home)
{
    const int64_t elements = N ? hr_layout_elements(layout, K, N) : K;
    return add_tensor(builder, name,
                      (hr_tensor){ .dtype = (uint8_t)dtype,
                                   .role = (uint8_t)role,
                                   .layout = (uint8_t)layout,
                                   .dims = { K, N },
                                   .fixed_bytes = elements * hr_dtype_bytes(dtype),
                                   .home = home,
                                   .view_of = HR_NONE,
                                   .view_loop = HR_NONE });
}

int32_t hr_build_view(hr_builder *builder, const char *name, int32_t of, int64_t offset_bytes,
                      int64_t dims0)
{
    if (builder->status != HR_OK) return HR_NONE;
    hr_tensor view = builder->program->tensors[of];
    view.dims[0] = dims0;
    view.dims[1] = 0;
    view.rows = view.row_bytes = 0;
    view.fixed_bytes = dims0 * hr_dtype_bytes((hr_dtype)view.dtype);
    view.view_of = of;
    view.view_offset_bytes = offset_bytes;
    return add_tensor(builder, name, view);
}

/* Parameters of the layer so far, without adapters. */
static int32_t index_in_layer(const hr_builder *builder)
{
    const hr_program *program = builder->program;
    int32_t index = 0;
    for (int32_t p = program->param_count; p-- > 0;) {
        if (program->tensors[program->params[p].weight].layer != builder->layer) break;
        index += program->params[p].adapts == HR_NONE;
    }
    return index;
}

static hr_param_rule rule_of(const hr_builder *builder, const hr_param_shape *shape,
                             const hr_param *param)
{
    if (!builder->rule) return (hr_param_rule){ .lr_scale = 1 };
    return builder->rule(builder->rule_of, builder->layer, index_in_layer(builder),
                         shape->kind == HR_PARAM_VECTOR, param->adapts != HR_NONE,
                         param->external_name);
}

/* The name of its tensors: without the prefix that all names in a file of PEFT have. */
static const char *name_of(const hr_param *param)
{
    enum { BEFORE = sizeof HR_ADAPTER_PREFIX - 1 };
    const bool has = !strncmp(param->external_name, HR_ADAPTER_PREFIX, BEFORE);
    return param->external_name + (has ? BEFORE : 0);
}

static void name_in_adapters(hr_param *param)
{
    enum { BEFORE = sizeof HR_ADAPTER_PREFIX - 1 };
    memmove(param->external_name + BEFORE, param->external_name,
            sizeof param->external_name - BEFORE);
    memcpy(param->external_name, HR_ADAPTER_PREFIX, BEFORE);
    param->external_name[sizeof param->external_name - 1] = 0;
}

/* Declares the scales of a parameter's format, if it has any. */
static int32_t build_scales(hr_builder *builder, const hr_param *param)
{
    const hr_weight_format *format = hr_weight_format_of(param->format);
    const bool turned = param->external_transposed;
    char name[HR_TENSOR_NAME_BYTES];
    int64_t shape[2];
    hr_weight_scales_shape(format, param->dims[turned], param->dims[!turned], shape);
    if (shape[0] == 0) return HR_NONE;
    snprintf(name, sizeof name, "scales %.56s", param->external_name);
    return hr_build_fixed(builder, name, HR_ROLE_WEIGHT, format->scale_dtype, HR_ROWS, shape[0],
                          shape[1], HR_NONE);
}

/* Whether the weight stays in the files of the model: a frozen one, unless it is small. */
static bool stays_away(const hr_builder *builder, const hr_param_shape *shape,
                       const hr_param *param)
{
    const bool frozen = param->rule.base ||
                        (builder->weights_alone && param->adapts == HR_NONE && !param->rule.saved);
    return builder->weights_away && frozen && shape->N && builder->status == HR_OK &&
           hr_tensor_bytes(&builder->program->tensors[param->weight]) >= HR_STATE_AWAY_BYTES;
}

/* Declares the tensors of a parameter that has its names and shapes. */
static int32_t build_param(hr_builder *builder, const hr_param_shape *shape, hr_param *param)
{
    hr_program *program = builder->program;
    param->rule = rule_of(builder, shape, param);
    if (param->rule.saved) name_in_adapters(param);
    const bool frozen = (param->rule.frozen && !param->rule.rests) || builder->weights_alone;
    const bool matrix = shape->kind == HR_PARAM_MATRIX;
    const bool short_table = (builder->short_tables || frozen) && shape->kind == HR_PARAM_TABLE;
    const hr_layout layout = matrix ? program->backend->matrix_layout(builder->dtype) : HR_ROWS;
    hr_dtype dtype = matrix || short_table ? hr_product_dtype(builder->dtype) : HR_F32;
    if (matrix && frozen && builder->layer != HR_NONE && param->adapts == HR_NONE)
        param->format = (uint8_t)builder->stored_weights;
    if (param->format != HR_WEIGHTS_COMPUTE) dtype = hr_weight_format_of(param->format)->dtype;
    param->weight = hr_build_fixed(builder, name_of(param), HR_ROLE_WEIGHT, dtype, layout, shape->K,
                                   shape->N, HR_NONE);
    param->scales = build_scales(builder, param);
    param->master = param->weight;
    if (stays_away(builder, shape, param)) {
        program->tensors[param->weight].space = HR_SPACE_BASE;
        if (param->scales != HR_NONE) program->tensors[param->scales].space = HR_SPACE_BASE;
    }
    if (dtype != HR_F32 && !frozen && (!builder->no_masters || param->adapts != HR_NONE))
        param->master = hr_build_like_weight(builder, program->param_count, "master",
                                             HR_ROLE_MASTER, HR_NONE);
    if (builder->status != HR_OK) return HR_NONE;
    program->param_count++;
    return param->weight;
}

/* The next parameter, with an empty name; null: there is no room. */
static hr_param *next_param(hr_builder *builder, const hr_param_shape *shape)
{
    hr_program *program = builder->program;
    if (full(builder, program->param_count, program->param_max, "parameters")) return NULL;
    hr_param *param = &program->params[program->param_count];
    *param = (hr_param){ .dims = { shape->K, shape->N },
                         .external_transposed = shape->transposed,
                         .init_scale = shape->init_scale,
                         .init_constant = shape->init_constant,
                         .init_uniform = shape->init_uniform,
                         .adapter = HR_NONE,
                         .adapts = HR_NONE,
                         .lengths = HR_NONE,
                         .gradient = HR_NONE,
                         .gradient_again = HR_NONE };
    for (int32_t i = 0; i < HR_STATES_MAX; i++) param->states[i] = HR_NONE;
    return param;
}

/* Declares a part of the adapter of parameter `of`. Returns it; null: there is no room. */
static HR_PRINTF(4, 5) hr_param *build_part(hr_builder *builder, int32_t of,
                                            const hr_param_shape *shape, const char *name, ...)
{
    hr_param *param = next_param(builder, shape);
    if (!param) return NULL;
    param->adapts = of;
    builder->program->adapts = true;
    va_list list;
    va_start(list, name);
    vsnprintf(param->external_name, sizeof param->external_name, name, list);
    va_end(list);
    return build_param(builder, shape, param) == HR_NONE ? NULL : param;
}

/* The same under the names of PEFT. */
static void build_low(hr_builder *builder, int32_t of, const hr_param_shape *shape,
                      const char *what)
{
    const char *name = builder->program->params[of].external_name;
    build_part(builder, of, shape, "%s%.*s.%s", HR_ADAPTER_PREFIX, hr_module_length(name), name,
               what);
}

/* Declares a tensor of a parameter, with the parameter's layer. */
static int32_t build_for(hr_builder *builder, int32_t index, const char *what, hr_role role,
                         hr_dtype dtype, hr_layout layout, int64_t K, int64_t N, int32_t home)
{
    const hr_param *param = &builder->program->params[index];
    char name[HR_TENSOR_NAME_BYTES];
    if (builder->status != HR_OK) return HR_NONE;
    const int16_t layer = builder->program->tensors[param->weight].layer;
    /* Large enough for the longest parameter name of a model of 4096 layers. */
    snprintf(name, sizeof name, "%.8s %.54s", what, name_of(param));
    const int32_t made = hr_build_fixed(builder, name, role, dtype, layout, K, N, home);
    if (made != HR_NONE) builder->program->tensors[made].layer = layer;
    return made;
}

/* An adapter of the rows of a table [V, D], with the initial values of PEFT: A 0, B normal. */
static void build_lookup_adapter(hr_builder *builder, int32_t of, int64_t R)
{
    const hr_param *param = &builder->program->params[of];
    const bool turned = param->external_transposed;
    const hr_param_shape a = { HR_PARAM_TABLE,     param->dims[turned], R, 0, .init_constant = true,
                               .transposed = true, .plain = true };
    const hr_param_shape b = { HR_PARAM_MATRIX, R, param->dims[!turned], 1, .transposed = true,
                               .plain = true };
    build_low(builder, of, &a, "lora_embedding_A");
    build_low(builder, of, &b, "lora_embedding_B");
}

/* An adapter of products with a matrix, with the initial values of PEFT: A from Kaiming's uniform
 * distribution with a = sqrt(5), B 0. */
static void build_product_adapter(hr_builder *builder, int32_t of, int64_t R)
{
    const hr_param *param = &builder->program->params[of];
    const hr_param_shape a = { HR_PARAM_MATRIX,
                               param->dims[0],
                               R,
                               1 / sqrt((double)param->dims[0]),
                               .transposed = true,
                               .plain = true,
                               .init_uniform = true };
    const hr_param_shape b = { HR_PARAM_MATRIX,       R,
                               param->dims[1],        0,
                               .init_constant = true, .transposed = true,
                               .plain = true };
    build_low(builder, of, &a, "lora_A.weight");
    build_low(builder, of, &b, "lora_B.weight");
}

/* A diagonal adapter of a token. B is 0, so that the layer starts from a known point. */
static void build_diagonal_adapter(hr_builder *builder, int32_t of, const hr_adapter_rule *rule)
{
    const hr_param *param = &builder->program->params[of];
    const int64_t D = param->dims[0], R = rule->rank;
    const hr_param_shape a = { HR_PARAM_MATRIX,     D, R, 1 / sqrt((double)D), .plain = true,
                               .init_uniform = true };
    const hr_param_shape b = { HR_PARAM_MATRIX,      R, param->dims[1], 0, .plain = true,
                               .init_constant = true };
    build_part(builder, of, &a, "layers.%d.A", builder->layer);
    build_part(builder, of, &b, "layers.%d.B", builder->layer);
}

/* Adapters of outer products: the triples are beside each other, in columns of Wi and Wa and in
 * rows of Wb. */
static void build_outer_adapter(hr_builder *builder, int32_t of, hr_mlp_place place,
                                const hr_adapter_rule *rule)
{
    static const char *const places[] = { "", "gate", "up", "down" };
    const hr_param *param = &builder->program->params[of];
    const int64_t D = rule->width, K = param->dims[0], N = (int64_t)rule->triples * rule->rank;
    const hr_param_shape wi = { HR_PARAM_MATRIX,     D, N, 1 / sqrt((double)D), .plain = true,
                                .init_uniform = true };
    const hr_param_shape wb = { HR_PARAM_MATRIX,      N, param->dims[1], 0, .plain = true,
                                .init_constant = true };
    const hr_param_shape wa = {
        HR_PARAM_MATRIX,     K, N, 1 / sqrt((double)K), .plain = true, .transposed = true,
        .init_uniform = true
    };
    const hr_param_shape *const shapes[] = { &wi, &wb, &wa };
    static const char *const names[] = { "Wi", "Wb", "Wa" };
    for (int32_t i = 0; i < 3; i++) {
        hr_param *part = build_part(builder, of, shapes[i], "layers.%d.%s.%s", builder->layer,
                                    places[place], names[i]);
        if (!part) return;
        part->rule.stack = rule->triples;
        part->rule.stacks_columns = i == 0;
    }
}

/* Declares an adapter of a parameter, behind those that it has. New magnitudes are NaN: the
 * operation `length` finds them. */
static void build_adapter(hr_builder *builder, int32_t of, int32_t which,
                          const hr_param_shape *shape, const hr_adapter_rule *rule)
{
    hr_program *program = builder->program;
    hr_param *param = &program->params[of];
    const int64_t R = rule->rank;
    const int32_t first = program->param_count;
    int32_t *link = &param->adapter;
    while (*link != HR_NONE) link = &program->params[*link].adapter;
    *link = first;
    if (rule->form == HR_ADAPTER_DIAGONAL) build_diagonal_adapter(builder, of, rule);
    else if (rule->form == HR_ADAPTER_OUTER) build_outer_adapter(builder, of, shape->place, rule);
    else if (shape->kind != HR_PARAM_MATRIX || shape->looked_up)
        build_lookup_adapter(builder, of, R);
    else build_product_adapter(builder, of, R);
    if (builder->status != HR_OK) return;
    program->params[first].adapter_scale = rule->scale;
    if (rule->magnitudes) {
        const hr_param_shape m = { HR_PARAM_VECTOR, param->dims[1], 0, NAN, .init_constant = true };
        build_low(builder, of, &m, "lora_magnitude_vector");
        param->lengths = build_for(builder, of, "lengths", HR_ROLE_TABLE, HR_F32, HR_ROWS,
                                   param->dims[1], 0, HR_NONE);
    }
    program->modulates |= rule->form != HR_ADAPTER_LOW_RANK;
    for (int32_t p = first; p < program->param_count; p++) {
        hr_param_rule *part = &program->params[p].rule;
        part->which = (uint8_t)which;
        part->form = rule->form;
        part->off = rule->off;
    }
}

int32_t hr_build_param(hr_builder *builder, hr_param_shape shape, const char *name, ...)
{
    hr_param *param = next_param(builder, &shape);
    if (!param) return HR_NONE;
    const int32_t index = builder->program->param_count, in_layer = index_in_layer(builder);
    va_list list;
    va_start(list, name);
    vsnprintf(param->external_name, sizeof param->external_name, name, list);
    va_end(list);
    const int32_t weight = build_param(builder, &shape, param);
    const bool adapts = builder->adapter && shape.N && !shape.plain && !param->rule.saved;
    for (int32_t which = 0; which < HR_ADAPTERS_MAX && adapts && weight != HR_NONE; which++) {
        const hr_adapter_rule rule = builder->adapter(builder->rule_of, which, builder->layer,
                                                      in_layer, param->external_name);
        const bool has = rule.rank && (!rule.places || rule.places >> shape.place & 1);
        if (has) build_adapter(builder, index, which, &shape, &rule);
    }
    return weight;
}

int32_t hr_build_adapter_of(const hr_builder *builder, int32_t weight)
{
    const hr_program *program = builder->program;
    for (int32_t p = 0; p < program->param_count && program->adapts; p++)
        if (program->params[p].weight == weight) return program->params[p].adapter;
    return HR_NONE;
}

int32_t hr_build_like_weight(hr_builder *builder, int32_t index, const char *what, hr_role role,
                             int32_t home)
{
    const hr_param *param = &builder->program->params[index];
    const uint8_t layout = builder->program->tensors[param->weight].layout;
    return build_for(builder, index, what, role, HR_F32, (hr_layout)layout, param->dims[0],
                     param->dims[1], home);
}

/* Adapters are trained in fp32 masters, whatever a model has. */
static bool has_residual(const hr_program *program, const hr_param *param)
{
    return program->tensors[param->weight].dtype == HR_BF16 && param->master == param->weight;
}

/* Whether states of 8-bit codes are codes for this parameter. */
static bool is_coded(const hr_param *param)
{
    return param->dims[0] * hr_max(param->dims[1], 1) >= HR_STATE_CODED_ELEMENTS;
}

static int64_t rows_of_state(const hr_program *program, const hr_param *param,
                             const hr_state *state)
{
    enum { BLOCK = HR_STATE_BLOCK_ELEMENTS };
    const hr_tensor *weight = &program->tensors[param->weight];
    const int64_t elements = hr_tensor_bytes(weight) / hr_dtype_bytes((hr_dtype)weight->dtype);
    if (hr_state_is_residual(state))
        return hr_residual_halves(elements, state->shape == HR_STATE_RESIDUAL_BYTES);
    if (state->shape == HR_STATE_BLOCKS) return (elements + BLOCK - 1) / BLOCK;
    return state->shape == HR_STATE_COLUMNS ? hr_max(param->dims[1], 1) : param->dims[0];
}

void hr_build_states(hr_builder *builder, int32_t index)
{
    hr_program *program = builder->program;
    hr_param *param = &program->params[index];
    const hr_layout layout = (hr_layout)program->tensors[param->weight].layout;
    for (int32_t i = 0; i < program->state_count && builder->status == HR_OK; i++) {
        const hr_state *state = &program->states[i];
        const bool whole = state->shape == HR_STATE_ELEMENTS;
        const int64_t K = rows_of_state(program, param, state);
        if (param->rule.frozen && !param->rule.rests) {
            param->states[i] = state->average ? param->master : HR_NONE;
            continue;
        }
        if (state->outside && hr_program_is_matrix(program, index)) continue;
        if (state->shape == HR_STATE_BLOCKS && !is_coded(param)) continue; /* it has no scales */
        if (hr_state_is_residual(state) && !has_residual(program, param)) continue;
        const bool wide = state->dtype == HR_U8 && !is_coded(param);
        const int32_t made = build_for(
            builder, index, state->name, HR_ROLE_STATE, wide ? HR_F32 : (hr_dtype)state->dtype,
            whole ? layout : HR_ROWS, K, whole ? param->dims[1] : 0, HR_NONE);
        if (made != HR_NONE && hr_tensor_bytes(&program->tensors[made]) >= HR_STATE_AWAY_BYTES)
            program->tensors[made].space = state->space;
        param->states[i] = made;
    }
}

static hr_step made(const hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes)
{
    hr_step step = { .op = (int16_t)op,
                     .block = builder->block,
                     .direction = builder->direction,
                     .layer = builder->layer,
                     .loop = builder->loop };
    HR_ASSERT(attr_bytes <= HR_ATTR_BYTES);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = HR_NONE;
    for (int32_t i = 0; i < HR_OUT_MAX; i++) step.out[i] = HR_NONE;
    if (attr) memcpy(step.attr, attr, (size_t)attr_bytes);
    return step;
}

hr_step *hr_build_step(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes)
{
    static _Thread_local hr_step dummy;
    hr_program *program = builder->program;
    if (full(builder, program->step_count, program->step_max, "steps")) return &dummy;
    const int32_t index = program->step_count++;
    program->steps[index] = made(builder, op, attr, attr_bytes);
    for (int32_t l = builder->loop; l != HR_NONE; l = program->loops[l].parent) {
        hr_loop *loop = &program->loops[l];
        if (loop->step_last < loop->step_first) loop->step_first = index;
        loop->step_last = index;
    }
    return &program->steps[index];
}

hr_step *hr_build_late(hr_builder *builder, int32_t op, const void *attr, int64_t attr_bytes)
{
    HR_ASSERT(builder->late_count < HR_LATE_MAX);
    hr_step *step = &builder->late[builder->late_count++];
    *step = made(builder, op, attr, attr_bytes);
    return step;
}

void hr_build_late_steps(hr_builder *builder)
{
    hr_tensor *tensors = builder->program->tensors;
    for (int32_t l = 0; l < builder->late_count && builder->status == HR_OK; l++) {
        const hr_step *late = &builder->late[l];
        hr_step *step = hr_build_step(builder, late->op, late->attr, HR_ATTR_BYTES);
        for (int32_t i = 0; i < HR_IN_MAX; i++) {
            step->in[i] = late->in[i];
            if (late->in[i] != HR_NONE)
                tensors[hr_tensor_root(builder->program, late->in[i])].home = 0;
        }
        for (int32_t k = 0; k < HR_OUT_MAX; k++) step->out[k] = late->out[k];
    }
    builder->late_count = 0;
}

int32_t hr_build_loop_open(hr_builder *builder, const char *name, int64_t count)
{
    hr_program *program = builder->program;
    if (full(builder, program->loop_count, program->loop_max, "loops")) return HR_NONE;
    hr_loop loop = { .parent = builder->loop, .count = count, .step_last = -1 };
    snprintf(loop.name, sizeof loop.name, "%s", name);
    builder->loop = program->loop_count++;
    program->loops[builder->loop] = loop;
    return builder->loop;
}

int32_t hr_build_known_loop_open(hr_builder *builder, hr_loop_id id, int64_t count)
{
    const int32_t made = hr_build_loop_open(builder, hr_loop_name(id), count);
    if (made != HR_NONE) builder->program->loops[made].id = id;
    return made;
}

void hr_build_loop_close(hr_builder *builder)
{
    if (builder->status != HR_OK) return;
    builder->loop = builder->program->loops[builder->loop].parent;
}

hr_status hr_build_status(const hr_builder *builder)
{
    return builder->status;
}
