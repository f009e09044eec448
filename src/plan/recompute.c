/* SPDX-License-Identifier: Apache-2.0 */
/* plan/recompute.c - writes the steps of a program anew, with clones between them. */
#include "plan/recompute.h"

#include <stdio.h>
#include <string.h>

#include "graph/op.h"

typedef struct {
    hr_program *program;
    uint32_t dropped;
    int32_t *producer; /* [tensor_max] forward step that wrote a dropped tensor; HR_NONE */
    int32_t *clone;    /* [tensor_max] what stands for it in the backward pass; HR_NONE: not yet */
    hr_step *steps;    /* [step_max] the new list */
    int32_t count;
    int32_t *place; /* [step_max] where an old step is in the new list */
} cloning;

static bool is_dropped(const cloning *c, int32_t tensor)
{
    const hr_tensor *t = &c->program->tensors[tensor];
    return t->layer != HR_NONE && t->intermediate && (c->dropped & 1u << t->intermediate);
}

static void find_producers(cloning *c, const hr_loop *section)
{
    const hr_program *program = c->program;
    for (int32_t t = 0; t < program->tensor_max; t++) c->producer[t] = c->clone[t] = HR_NONE;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        for (int32_t k = 0; k < HR_OUT_MAX && step->direction == HR_DIR_FORWARD; k++)
            if (step->out[k] != HR_NONE && is_dropped(c, step->out[k]))
                c->producer[step->out[k]] = s;
    }
}

static int32_t clone_tensor(cloning *c, int32_t tensor)
{
    hr_program *program = c->program;
    if (program->tensor_count == program->tensor_max) return HR_NONE;
    hr_tensor *made = &program->tensors[program->tensor_count];
    *made = program->tensors[tensor];
    snprintf(made->name, sizeof made->name, "again.%.57s", program->tensors[tensor].name);
    return program->tensor_count++;
}

/* A dropped tensor that a step reads and that has no clone yet; HR_NONE when it may be emitted. */
static int32_t missing(const cloning *c, const hr_step *step)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && c->producer[step->in[i]] != HR_NONE &&
            c->clone[step->in[i]] == HR_NONE)
            return step->in[i];
    return HR_NONE;
}

static void read_clones(const cloning *c, hr_step *step)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && c->producer[step->in[i]] != HR_NONE)
            step->in[i] = c->clone[step->in[i]];
}

/* Appends a clone of forward step `s`, whose inputs are there, in the block of its reader. */
static bool append_clone(cloning *c, int32_t s, const hr_step *reader)
{
    if (c->count == c->program->step_max) return false;
    hr_step *made = &c->steps[c->count++];
    *made = c->program->steps[s];
    made->direction = HR_DIR_AGAIN;
    made->block = reader->block;
    read_clones(c, made);
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        const int32_t tensor = made->out[k];
        if (tensor == HR_NONE) continue;
        made->out[k] = HR_NONE;
        if (c->producer[tensor] == HR_NONE) continue;
        made->out[k] = c->clone[tensor] = clone_tensor(c, tensor);
        if (made->out[k] == HR_NONE) return false;
    }
    return true;
}

/* Clones what makes `tensor`, and before that whatever of its own inputs was dropped. */
static bool emit_clone(cloning *c, int32_t tensor, const hr_step *reader)
{
    enum { DEPTH_MOST = 16 };
    int32_t chain[DEPTH_MOST], depth = 0;
    chain[depth++] = tensor;
    while (depth > 0) {
        const int32_t s = c->producer[chain[depth - 1]];
        const int32_t before = missing(c, &c->program->steps[s]);
        if (before != HR_NONE) {
            if (depth == DEPTH_MOST) return false;
            chain[depth++] = before;
            continue;
        }
        if (!append_clone(c, s, reader)) return false;
        depth--;
    }
    return true;
}

static bool copy_step(cloning *c, int32_t s)
{
    hr_program *program = c->program;
    hr_step step = program->steps[s];
    if (step.direction == HR_DIR_BACKWARD) {
        int32_t tensor;
        while ((tensor = missing(c, &step)) != HR_NONE)
            if (!emit_clone(c, tensor, &step)) return false;
        read_clones(c, &step);
    }
    if (c->count == program->step_max) return false;
    c->place[s] = c->count;
    c->steps[c->count++] = step;
    return true;
}

hr_status hr_recompute(hr_program *program, int32_t loop, uint32_t dropped, hr_region *scratch,
                       hr_error *err)
{
    const int64_t kept = scratch->used;
    cloning c = { .program = program,
                  .dropped = dropped,
                  .producer = hr_region_take(scratch, program->tensor_max, sizeof *c.producer),
                  .clone = hr_region_take(scratch, program->tensor_max, sizeof *c.clone),
                  .steps = hr_region_take(scratch, program->step_max, sizeof *c.steps),
                  .place = hr_region_take(scratch, program->step_max, sizeof *c.place) };
    bool room = c.producer && c.clone && c.steps && c.place;
    if (room) find_producers(&c, &program->loops[loop]);
    for (int32_t s = 0; s < program->step_count && room; s++) room = copy_step(&c, s);
    if (!room)
        return hr_fail(err, HR_FAILURE, "the step program has room for %d steps and needs more",
                       program->step_max);
    /* A section begins with a forward step or with no clone before it: its first step keeps its
     * place. */
    for (int32_t l = 0; l < program->loop_count; l++) {
        program->loops[l].step_first = c.place[program->loops[l].step_first];
        program->loops[l].step_last = c.place[program->loops[l].step_last];
    }
    memcpy(program->steps, c.steps, (size_t)c.count * sizeof *c.steps);
    program->step_count = c.count;
    scratch->used = kept;
    return HR_OK;
}
