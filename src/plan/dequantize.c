/* SPDX-License-Identifier: Apache-2.0 */
/* plan/dequantize.c - rebuilds the step list with a dequantizing step before each reader of a
 * stored weight. */
#include "plan/dequantize.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "graph/backend.h"

typedef struct {
    hr_program *program;
    int32_t *param; /* [tensor_max] the parameter of a stored weight; HR_NONE */
    hr_step *steps; /* [step_max] the new step list */
    int32_t count;
} dequantizing;

static bool has_stored_weights(const hr_program *program)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].format != HR_WEIGHTS_COMPUTE) return true;
    return false;
}

static void find_params(dequantizing *d)
{
    const hr_program *program = d->program;
    for (int32_t t = 0; t < program->tensor_max; t++) d->param[t] = HR_NONE;
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].format != HR_WEIGHTS_COMPUTE)
            d->param[program->params[p].weight] = p;
}

/* The parameter of an operand that is stored otherwise than products read; HR_NONE: none is. */
static int32_t unreadable(const dequantizing *d, const hr_step *step, int32_t operand)
{
    if (operand == HR_NONE || hr_step_op(d->program, step)->host) return HR_NONE;
    return d->param[operand];
}

/* Declares the dequantized copy of a weight for `step`. Returns HR_NONE if there is no room. */
static int32_t copy_tensor(hr_program *program, const hr_param *param, const hr_step *step)
{
    if (program->tensor_count == program->tensor_max) return HR_NONE;
    const hr_tensor *weight = &program->tensors[param->weight];
    hr_tensor *made = &program->tensors[program->tensor_count];
    *made = *weight;
    snprintf(made->name, sizeof made->name, "dequantized %.51s", param->external_name);
    made->dtype = (uint8_t)hr_product_dtype((hr_dtype)program->dtype);
    made->role = HR_ROLE_ACTIVATION;
    made->space = HR_SPACE_HOST;
    made->fixed_bytes = weight->fixed_bytes / hr_dtype_bytes((hr_dtype)weight->dtype) *
                        hr_dtype_bytes((hr_dtype)made->dtype);
    made->home = step->loop;
    return program->tensor_count++;
}

/* Appends the step that makes the copy of a weight, and lets `step` read it. */
static bool append_copy(dequantizing *d, hr_step *step, int32_t operand, int32_t index)
{
    hr_program *program = d->program;
    const hr_param *param = &program->params[index];
    if (d->count == program->step_max) return false;
    hr_step *made = &d->steps[d->count++];
    *made = *step;
    for (int32_t i = 0; i < HR_IN_MAX; i++) made->in[i] = HR_NONE;
    for (int32_t k = 0; k < HR_OUT_MAX; k++) made->out[k] = HR_NONE;
    memset(made->attr, 0, sizeof made->attr);
    program->backend->dequantize(program, index, made);
    made->in[0] = param->weight;
    made->in[1] = param->scales;
    made->out[0] = step->in[operand] = copy_tensor(program, param, step);
    return made->out[0] != HR_NONE;
}

static bool copy_step(dequantizing *d, int32_t s)
{
    hr_program *program = d->program;
    hr_step step = program->steps[s];
    for (int32_t i = 0; i < HR_IN_MAX; i++) {
        const int32_t param = unreadable(d, &step, step.in[i]);
        if (param != HR_NONE && !append_copy(d, &step, i, param)) return false;
    }
    if (d->count == program->step_max) return false;
    d->steps[d->count++] = step;
    return true;
}

hr_status hr_dequantize(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    if (!has_stored_weights(program)) return HR_OK;
    dequantizing d = { .program = program,
                       .param = hr_region_take_raw(scratch, program->tensor_max, sizeof *d.param),
                       .steps = hr_region_take_raw(scratch, program->step_max, sizeof *d.steps) };
    bool room = d.param && d.steps;
    if (room) find_params(&d);
    for (int32_t s = 0; s < program->step_count && room; s++) room = copy_step(&d, s);
    if (!room)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations or %d tensors",
                       program->step_max, program->tensor_max);
    memcpy(program->steps, d.steps, (size_t)d.count * sizeof *d.steps);
    program->step_count = d.count;
    hr_program_span_loops(program);
    scratch->used = kept;
    return HR_OK;
}
