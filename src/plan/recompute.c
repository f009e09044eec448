/* SPDX-License-Identifier: Apache-2.0 */
/* plan/recompute.c - rebuilds the step list with clones for recomputed values. */
#include "plan/recompute.h"

#include <string.h>

#include "graph/backend.h"

enum { DEPTH_MOST = 32 }; /* longest chain of recomputed values in a layer */

typedef struct {
    hr_program *program;
    const hr_intermediates *recompute_set; /* [layers] */
    uint32_t whole;                        /* bit b: steps of block b stay adjacent */
    int32_t *producer; /* [tensor_max] forward step that writes a dropped tensor; HR_NONE */
    int32_t *clone;    /* [tensor_max] its replacement in the backward pass; HR_NONE: none yet */
    hr_step *steps;    /* [step_max] the new step list */
    int32_t count;
    int32_t *place; /* [step_max] new index of an old step */
} cloning;

static bool is_dropped(const cloning *c, int32_t tensor)
{
    const hr_tensor *t = &c->program->tensors[tensor];
    if (t->intermediates >> HR_INTERMEDIATE_INPUT & 1) return false; /* of the layer before */
    return t->layer != HR_NONE && t->intermediates &&
           (t->intermediates & ~c->recompute_set[t->layer]) == 0;
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
    static const char again[] = "again.";
    enum { NAME_MOST = HR_TENSOR_NAME_BYTES - sizeof again + 1 };
    hr_program *program = c->program;
    if (program->tensor_count == program->tensor_max) return HR_NONE;
    hr_tensor *made = &program->tensors[program->tensor_count];
    *made = program->tensors[tensor];
    memcpy(made->name, again, sizeof again - 1);
    memcpy(made->name + sizeof again - 1, program->tensors[tensor].name, NAME_MOST);
    made->name[sizeof made->name - 1] = 0;
    return program->tensor_count++;
}

/* The first dropped tensor of a list without a clone; HR_NONE: all have one. */
static int32_t missing(const cloning *c, const int32_t *tensors, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (tensors[i] != HR_NONE && c->producer[tensors[i]] != HR_NONE &&
            c->clone[tensors[i]] == HR_NONE)
            return tensors[i];
    return HR_NONE;
}

/* Returns whether `tensor` is the first output of its step and can be derived from the second,
 * which is saved. */
static bool is_remade(const cloning *c, int32_t tensor)
{
    const hr_step *step = &c->program->steps[c->producer[tensor]];
    const hr_op *op = hr_step_op(c->program, step);
    if (!op->remade_by || step->out[0] != tensor || step->out[1] == HR_NONE) return false;
    if (op->residual && step->in[op->residual - 1] != HR_NONE) return false;
    return c->producer[step->out[1]] == HR_NONE;
}

/* A dropped tensor to clone before the clone of `tensor`; HR_NONE: no more. */
static int32_t missing_for(const cloning *c, int32_t tensor)
{
    if (is_remade(c, tensor)) return HR_NONE;
    return missing(c, c->program->steps[c->producer[tensor]].in, HR_IN_MAX);
}

static void read_clones(const cloning *c, hr_step *step)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && c->producer[step->in[i]] != HR_NONE)
            step->in[i] = c->clone[step->in[i]];
}

/* Replaces the outputs of a copied step: dropped tensors by clones, all others by HR_NONE. */
static bool write_clones(cloning *c, hr_step *step)
{
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        const int32_t tensor = step->out[k];
        if (tensor == HR_NONE) continue;
        step->out[k] = HR_NONE;
        if (c->producer[tensor] == HR_NONE) continue;
        step->out[k] = c->clone[tensor] = clone_tensor(c, tensor);
        if (step->out[k] == HR_NONE) return false;
    }
    return true;
}

/* Appends the clone of the step that writes `tensor`. All its inputs exist. */
static bool append_clone(cloning *c, int32_t tensor)
{
    if (c->count == c->program->step_max) return false;
    hr_step *made = &c->steps[c->count++];
    *made = c->program->steps[c->producer[tensor]];
    made->direction = HR_DIR_RECOMPUTED;
    const hr_op *op = hr_step_op(c->program, made);
    if (is_remade(c, tensor)) {
        for (int32_t i = 1; i < HR_IN_MAX; i++) made->in[i] = HR_NONE;
        made->in[0] = made->out[1];
        made->op = (int16_t)(op->remade_by - 1);
    } else read_clones(c, made);
    if (!write_clones(c, made)) return false;
    if (made->out[0] == HR_NONE && op->without_first) op->without_first(made);
    return true;
}

/* Appends clones that recompute `tensor`, preceded by those of its dropped inputs. */
static bool emit_clone(cloning *c, int32_t tensor)
{
    int32_t chain[DEPTH_MOST], depth = 0;
    chain[depth++] = tensor;
    while (depth > 0) {
        const int32_t before = missing_for(c, chain[depth - 1]);
        if (before != HR_NONE) {
            if (depth == DEPTH_MOST) return false;
            chain[depth++] = before;
            continue;
        }
        if (!append_clone(c, chain[depth - 1])) return false;
        depth--;
    }
    return true;
}

/* Appends clones from other blocks that `step`, or the clones in its own block, will read. */
static bool emit_from_outside(cloning *c, const hr_step *step)
{
    const hr_program *program = c->program;
    int32_t wanted[DEPTH_MOST * HR_IN_MAX], count = 0;
    for (int32_t i = 0; i < HR_IN_MAX; i++) wanted[count++] = step->in[i];
    while (count > 0) {
        const int32_t tensor = wanted[--count];
        if (missing(c, &tensor, 1) == HR_NONE) continue;
        const hr_step *maker = &program->steps[c->producer[tensor]];
        if (maker->block != step->block) {
            if (!emit_clone(c, tensor)) return false;
        } else if (!is_remade(c, tensor)) {
            if (count > (DEPTH_MOST - 1) * HR_IN_MAX) return false;
            for (int32_t i = 0; i < HR_IN_MAX; i++) wanted[count++] = maker->in[i];
        }
    }
    return true;
}

static bool same_run(const hr_step *a, const hr_step *b)
{
    return a->block == b->block && a->layer == b->layer && a->direction == b->direction;
}

/* Before the first step of a run that must stay adjacent, appends all clones that would split
 * it. */
static bool begin_run(cloning *c, int32_t s)
{
    const hr_program *program = c->program;
    const hr_step *first = &program->steps[s];
    if (!(c->whole >> first->block & 1)) return true;
    if (s > 0 && same_run(first - 1, first)) return true;
    for (; s < program->step_count && same_run(&program->steps[s], first); s++)
        if (!emit_from_outside(c, &program->steps[s])) return false;
    return true;
}

static bool copy_step(cloning *c, int32_t s)
{
    hr_program *program = c->program;
    hr_step step = program->steps[s];
    if (step.direction == HR_DIR_BACKWARD) {
        int32_t tensor;
        if (program->again && s > 0 && !same_run(&program->steps[s - 1], &program->steps[s]))
            for (int32_t t = 0; t < program->tensor_count; t++) c->clone[t] = HR_NONE;
        if (!begin_run(c, s)) return false;
        while ((tensor = missing(c, step.in, HR_IN_MAX)) != HR_NONE)
            if (!emit_clone(c, tensor)) return false;
        read_clones(c, &step);
    }
    if (c->count == program->step_max) return false;
    c->place[s] = c->count;
    c->steps[c->count++] = step;
    return true;
}

hr_status hr_recompute(hr_program *program, int32_t loop, const hr_intermediates *recompute_set,
                       uint32_t whole, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    cloning c = { .program = program,
                  .recompute_set = recompute_set,
                  .whole = whole,
                  .producer = hr_region_take_raw(scratch, program->tensor_max, sizeof *c.producer),
                  .clone = hr_region_take_raw(scratch, program->tensor_max, sizeof *c.clone),
                  .steps = hr_region_take_raw(scratch, program->step_max, sizeof *c.steps),
                  .place = hr_region_take_raw(scratch, program->step_max, sizeof *c.place) };
    bool room = c.producer && c.clone && c.steps && c.place;
    if (room) find_producers(&c, &program->loops[loop]);
    for (int32_t s = 0; s < program->step_count && room; s++) room = copy_step(&c, s);
    if (!room)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations",
                       program->step_max);
    /* A section starts with a forward step, or with a step that needs no clone before it, so the
     * new index of its first step is the new start of the section. */
    for (int32_t l = 0; l < program->loop_count; l++) {
        program->loops[l].step_first = c.place[program->loops[l].step_first];
        program->loops[l].step_last = c.place[program->loops[l].step_last];
    }
    memcpy(program->steps, c.steps, (size_t)c.count * sizeof *c.steps);
    program->step_count = c.count;
    scratch->used = kept;
    return HR_OK;
}
