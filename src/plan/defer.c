/* SPDX-License-Identifier: Apache-2.0 */
/* plan/defer.c - rebuilds the step list with gradients computed at their update. */
#include "plan/defer.h"

#include <string.h>

#include "graph/backend.h"
#include "graph/op.h"

typedef struct {
    hr_program *program;
    int32_t section, update; /* loops */
    int32_t *writer;         /* [tensor_max] the first step that writes a tensor; HR_NONE */
    int32_t *reader;         /* [tensor_max] the first step that reads it; HR_NONE */
    int32_t *late;  /* [step_max] the step whose first output is computed before this; HR_NONE */
    hr_step *steps; /* [step_max] the new step list */
    int32_t count;
    bool full;
} deferring;

/* The parameter whose gradient a step measures; HR_NONE: none. */
static int32_t measured(const hr_program *program, int32_t s)
{
    const hr_op *op = hr_step_op(program, &program->steps[s]);
    return op->measures ? op->measures(program->steps[s].attr) : HR_NONE;
}

bool hr_defers(const hr_program *program)
{
    for (int32_t s = 0; s < program->step_count; s++)
        if (measured(program, s) != HR_NONE) return true;
    return false;
}

static void find_first(deferring *d)
{
    const hr_program *program = d->program;
    for (int32_t t = 0; t < program->tensor_max; t++) d->writer[t] = d->reader[t] = HR_NONE;
    for (int32_t s = program->step_count - 1; s >= 0; s--) {
        const hr_step *step = &program->steps[s];
        for (int32_t i = 0; i < HR_OUT_MAX; i++)
            if (step->out[i] != HR_NONE) d->writer[step->out[i]] = s;
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            if (step->in[i] != HR_NONE) d->reader[step->in[i]] = s;
    }
}

/* Values of the step live until the update. */
static void keep(deferring *d, int32_t tensor)
{
    for (; tensor != HR_NONE; tensor = d->program->tensors[tensor].view_of)
        if (d->program->tensors[tensor].home == d->section) d->program->tensors[tensor].home = 0;
}

/* Notes the step that computes the gradient which step `s` measures, unless it is in a loop over
 * tokens. */
static void note(deferring *d, int32_t s)
{
    hr_program *program = d->program;
    const int32_t gradient = program->params[measured(program, s)].gradient;
    const int32_t writer = d->writer[gradient], reader = d->reader[gradient];
    if (writer == HR_NONE || reader == HR_NONE || program->steps[writer].loop != d->section ||
        program->steps[reader].loop != d->update)
        return;
    d->late[reader] = writer;
    for (int32_t i = 0; i < HR_IN_MAX; i++) keep(d, program->steps[writer].in[i]);
    for (int32_t i = 0; i < 2; i++) program->steps[s].in[i] = program->steps[writer].in[i];
}

static void append(deferring *d, hr_step step)
{
    if (d->count == d->program->step_max) d->full = true;
    else d->steps[d->count++] = step;
}

static void append_late(deferring *d, hr_step step)
{
    for (int32_t k = 1; k < HR_OUT_MAX; k++) step.out[k] = HR_NONE;
    step.loop = d->update;
    append(d, step);
}

static void rebuild(deferring *d)
{
    const hr_program *program = d->program;
    for (int32_t s = 0; s < program->step_count; s++) {
        hr_step step = program->steps[s];
        const int32_t reader = step.out[0] == HR_NONE ? HR_NONE : d->reader[step.out[0]];
        if (reader != HR_NONE && d->late[reader] == s) {
            if (hr_step_drop_first(program, &step)) append(d, step);
            continue;
        }
        if (d->late[s] != HR_NONE) append_late(d, program->steps[d->late[s]]);
        append(d, step);
    }
}

hr_status hr_defer(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    deferring d = { .program = program,
                    .section = hr_program_loop(program, HR_LOOP_STEP),
                    .update = hr_program_loop(program, HR_LOOP_UPDATE),
                    .writer = hr_region_take_raw(scratch, program->tensor_max, sizeof *d.writer),
                    .reader = hr_region_take_raw(scratch, program->tensor_max, sizeof *d.reader),
                    .late = hr_region_take_raw(scratch, program->step_max, sizeof *d.late),
                    .steps = hr_region_take_raw(scratch, program->step_max, sizeof *d.steps) };
    if (!d.writer || !d.reader || !d.late || !d.steps)
        return hr_fail(err, HR_FAILURE, "out of memory for the gradients of %d operations",
                       program->step_max);
    for (int32_t s = 0; s < program->step_count; s++) d.late[s] = HR_NONE;
    find_first(&d);
    for (int32_t s = 0; s < program->step_count; s++)
        if (measured(program, s) != HR_NONE) note(&d, s);
    rebuild(&d);
    if (d.full)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations",
                       program->step_max);
    memcpy(program->steps, d.steps, (size_t)d.count * sizeof *d.steps);
    program->step_count = d.count;
    hr_program_span_loops(program);
    scratch->used = kept;
    return HR_OK;
}
