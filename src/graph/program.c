/* SPDX-License-Identifier: Apache-2.0 */
/* graph/program.c - creates an empty program, and queries that need only the program. */
#include "graph/program.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

hr_status hr_program_place(hr_region *region, const struct hr_backend *backend, int32_t step_max,
                           int32_t tensor_max, int32_t loop_max, int32_t param_max,
                           hr_program *program, hr_error *err)
{
    hr_program made = { .backend = backend,
                        .tensor_max = tensor_max,
                        .step_max = step_max,
                        .loop_max = loop_max,
                        .param_max = param_max };
    made.tensors = hr_region_take_raw(region, tensor_max, sizeof *made.tensors);
    made.steps = hr_region_take_raw(region, step_max, sizeof *made.steps);
    made.loops = hr_region_take_raw(region, loop_max, sizeof *made.loops);
    made.params = hr_region_take_raw(region, param_max, sizeof *made.params);
    if (!made.tensors || !made.steps || !made.loops || !made.params)
        return hr_fail(err, HR_FAILURE, "the program needs more than %lld bytes",
                       (long long)region->bytes);
    made.loops[0] = (hr_loop){ .name = "run", .parent = HR_NONE, .count = 1, .step_last = -1 };
    made.loop_count = 1;
    *program = made;
    return HR_OK;
}

const char *hr_space_name(hr_space space)
{
    static const char *const names[HR_SPACES] = { "host", "device", "pinned", "file", "base" };
    return names[space];
}

int64_t hr_program_trained(const hr_program *program, int64_t more)
{
    int64_t all = 0, last = 0;
    int16_t layer = HR_NONE;
    for (int32_t p = 0; p < program->param_count; p++) {
        const int16_t of = program->tensors[program->params[p].weight].layer;
        if (program->params[p].rule.frozen) continue;
        all++;
        if (of == HR_NONE) continue;
        last = of == layer ? last + 1 : 1;
        layer = of;
    }
    return all + more * last;
}

bool hr_program_is_matrix(const hr_program *program, int32_t param)
{
    const hr_tensor *weight = &program->tensors[program->params[param].weight];
    return weight->layer != HR_NONE && weight->layout != HR_ROWS;
}

int32_t hr_program_average(const hr_program *program)
{
    for (int32_t i = 0; i < program->state_count; i++)
        if (program->states[i].average) return i;
    return HR_NONE;
}

int32_t hr_program_residual_state(const hr_program *program)
{
    for (int32_t i = 0; i < program->state_count; i++)
        if (hr_state_is_residual(&program->states[i])) return i;
    return HR_NONE;
}

int32_t hr_program_residual(const hr_program *program, int32_t param)
{
    const int32_t state = hr_program_residual_state(program);
    return state == HR_NONE ? HR_NONE : program->params[param].states[state];
}

int64_t hr_tensor_bytes(const hr_tensor *tensor)
{
    return tensor->rows * tensor->row_bytes + tensor->fixed_bytes;
}

const char *hr_loop_name(hr_loop_id id)
{
    static const char *const names[HR_LOOP_IDS] = {
        [HR_LOOP_OTHER] = "",
        [HR_LOOP_LOAD] = "load",
        [HR_LOOP_FETCH] = "fetch",
        [HR_LOOP_NORM] = "norm",
        [HR_LOOP_STEP] = "step",
        [HR_LOOP_UPDATE] = "update",
        [HR_LOOP_STRIP] = "gradient strip",
        [HR_LOOP_EVALUATION] = "evaluation",
        [HR_LOOP_EVALUATION_BATCH] = "evaluation batch",
        [HR_LOOP_SAMPLE] = "sample",
        [HR_LOOP_SAVE] = "save",
        [HR_LOOP_CACHES] = "caches",
        [HR_LOOP_PROMPT] = "prompt",
        [HR_LOOP_PROMPT_CHUNK] = "chunk",
        [HR_LOOP_ANSWER] = "answer",
        [HR_LOOP_ANSWER_TOKEN] = "token",
        [HR_LOOP_SEQUENCES] = "sequences",
        [HR_LOOP_SEQUENCES_BATCH] = "turn",
    };
    return names[id];
}

void hr_program_span_loops(hr_program *program)
{
    for (int32_t l = 0; l < program->loop_count; l++) {
        program->loops[l].step_first = 0;
        program->loops[l].step_last = -1;
    }
    for (int32_t s = 0; s < program->step_count; s++)
        for (int32_t l = program->steps[s].loop; l != HR_NONE; l = program->loops[l].parent) {
            hr_loop *loop = &program->loops[l];
            if (loop->step_last < 0) loop->step_first = s;
            loop->step_last = s;
        }
}

int32_t hr_program_loop(const hr_program *program, hr_loop_id id)
{
    for (int32_t l = 0; l < program->loop_count; l++)
        if (program->loops[l].id == (int32_t)id) return l;
    return HR_NONE;
}

int32_t hr_loop_section(const hr_program *program, int32_t loop)
{
    while (loop > 0 && program->loops[loop].parent > 0) loop = program->loops[loop].parent;
    return loop;
}

hr_loop_id hr_step_section(const hr_program *program, int32_t step)
{
    const int32_t section = hr_loop_section(program, program->steps[step].loop);
    return section == HR_NONE ? HR_LOOP_OTHER : (hr_loop_id)program->loops[section].id;
}

bool hr_loop_inside(const hr_program *program, int32_t inner, int32_t outer)
{
    if (outer == HR_NONE) return true;
    while (inner != HR_NONE && inner != outer) inner = program->loops[inner].parent;
    return inner == outer;
}

int32_t hr_module_length(const char *name)
{
    static const char end[] = ".weight";
    const int32_t length = (int32_t)strlen(name), tail = (int32_t)sizeof end - 1;
    return length > tail && !strcmp(name + length - tail, end) ? length - tail : length;
}

void hr_module_of(const char *name, char module[HR_MODULE_BYTES])
{
    snprintf(module, HR_MODULE_BYTES, "%.*s", hr_module_length(name), name);
}
