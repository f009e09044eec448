/* SPDX-License-Identifier: Apache-2.0 */
/* plan/consume.c - rebuilds the step list with updates inside the backward pass.
 *
 * The operands of an update step determine its kind. It completes a gradient (of a weight that is
 * used twice); or it reads a gradient and updates state; or it reads one and updates none (a term
 * of the norm); or it does none of these and stays in its section. */
#include "plan/consume.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"

typedef struct {
    hr_program *program;
    int32_t section, update; /* loops */
    int32_t begin, end;      /* first and last step of the section "update" */
    int32_t *touched; /* [tensor_max] by root: last step of the section that accesses it; HR_NONE */
    bool *written;    /* [tensor_max] by root: written in the section or by a completing step */
    bool *late;    /* [tensor_max] by root: written in "update" by a step that updates no state */
    int32_t *copy; /* [tensor_max] its replacement in the norm; HR_NONE: not known yet */
    int32_t *loop_copy;    /* [loop_max] the same for loops */
    int32_t *first, *last; /* [step_max] list of update steps to insert after a step; HR_NONE */
    int32_t *next;         /* [step_max] next update step of that list */
    int32_t *place;        /* [step_max] new index of an old step */
    hr_step *steps;        /* [step_max] the new step list */
    int32_t count;
    bool full;
} consuming;

static const hr_op *op_of(const consuming *c, int32_t s)
{
    return hr_step_op(c->program, &c->program->steps[s]);
}

static int32_t root_of(const consuming *c, int32_t tensor)
{
    return hr_tensor_root(c->program, tensor);
}

/* ---- kinds of update steps */

static bool is_gradient(const consuming *c, int32_t tensor)
{
    return tensor != HR_NONE && c->program->tensors[root_of(c, tensor)].role == HR_ROLE_GRADIENT;
}

static bool reads_gradient(const consuming *c, int32_t s)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (is_gradient(c, c->program->steps[s].in[i])) return true;
    return false;
}

static bool completes(const consuming *c, int32_t s)
{
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (is_gradient(c, c->program->steps[s].out[k])) return true;
    return false;
}

static bool updates_state(const consuming *c, int32_t s)
{
    const char *letters = op_of(c, s)->out;
    for (int32_t k = 0; letters[k]; k++)
        if ((letters[k] == 'u' || letters[k] == 'U') && c->program->steps[s].out[k] != HR_NONE)
            return !completes(c, s);
    return false;
}

/* Returns whether the step reads a value that "update" computes from all gradients. */
static bool depends_on_all(const consuming *c, int32_t s)
{
    const hr_step *step = &c->program->steps[s];
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && c->late[root_of(c, step->in[i])]) return true;
    return false;
}

static bool needs_norm(const consuming *c)
{
    for (int32_t s = c->begin; s <= c->end; s++)
        if (updates_state(c, s) && depends_on_all(c, s)) return true;
    return false;
}

static void survey(consuming *c)
{
    const hr_program *program = c->program;
    const hr_loop *section = &program->loops[c->section];
    for (int32_t t = 0; t < program->tensor_max; t++) c->touched[t] = c->copy[t] = HR_NONE;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            if (step->in[i] != HR_NONE) c->touched[root_of(c, step->in[i])] = s;
        for (int32_t k = 0; k < HR_OUT_MAX; k++) {
            if (step->out[k] == HR_NONE) continue;
            c->touched[root_of(c, step->out[k])] = s;
            c->written[root_of(c, step->out[k])] = true;
        }
    }
    for (int32_t s = c->begin; s <= c->end; s++)
        for (int32_t k = 0; k < HR_OUT_MAX && !updates_state(c, s); k++)
            if (program->steps[s].out[k] != HR_NONE)
                (completes(c, s) ? c->written
                                 : c->late)[root_of(c, program->steps[s].out[k])] = true;
}

/* ---- insertion points */

/* The step of the section after which all operands of step `s` are complete; HR_NONE: it accesses
 * nothing there. */
static int32_t complete_at(const consuming *c, int32_t s)
{
    const hr_program *program = c->program;
    const hr_step *step = &program->steps[s];
    int32_t at = HR_NONE;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE) at = (int32_t)hr_max(at, c->touched[root_of(c, step->in[i])]);
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (step->out[k] != HR_NONE) at = (int32_t)hr_max(at, c->touched[root_of(c, step->out[k])]);
    if (at == HR_NONE) return HR_NONE;
    for (int32_t l = program->steps[at].loop; l != c->section; l = program->loops[l].parent)
        at = program->loops[l].step_last;
    return at;
}

static void insert(consuming *c, int32_t s)
{
    const int32_t at = complete_at(c, s);
    if (at == HR_NONE) return;
    c->next[s] = HR_NONE;
    if (c->first[at] == HR_NONE) c->first[at] = s;
    else c->next[c->last[at]] = s;
    c->last[at] = s;
    for (int32_t k = 0; k < HR_OUT_MAX && (completes(c, s) || updates_state(c, s)); k++)
        if (c->program->steps[s].out[k] != HR_NONE)
            c->touched[root_of(c, c->program->steps[s].out[k])] = at;
}

/* Kinds of update steps to insert into the section that is written next. */
enum { REPORTS = 1, NORM_TERMS = 2, UPDATES = 4 };

/* Steps that complete a gradient are always inserted. Reports come before all updates at the same
 * place. */
static void insert_all(consuming *c, uint32_t wanted)
{
    for (int32_t s = 0; s < c->program->step_count; s++) c->first[s] = HR_NONE;
    for (int32_t s = c->begin; s <= c->end; s++)
        if (completes(c, s)) insert(c, s);
    for (int32_t s = c->begin; s <= c->end && wanted & REPORTS; s++)
        if (op_of(c, s)->host) insert(c, s);
    for (int32_t s = c->begin; s <= c->end; s++)
        if (updates_state(c, s) ? wanted & UPDATES
                                : wanted & NORM_TERMS && reads_gradient(c, s) && !completes(c, s))
            insert(c, s); /* an average follows the update of its weight */
}

/* ---- copies */

static int32_t loop_in_norm(const consuming *c, int32_t loop)
{
    return loop == HR_NONE || c->loop_copy[loop] == HR_NONE ? loop : c->loop_copy[loop];
}

/* The replacement of a tensor in the norm: a copy if the step writes it or if it moves with a
 * copied loop, else the tensor itself. */
static int32_t in_norm(consuming *c, int32_t tensor)
{
    hr_program *program = c->program;
    if (tensor == HR_NONE) return HR_NONE;
    if (c->copy[tensor] != HR_NONE) return c->copy[tensor];
    const hr_tensor *from = &program->tensors[tensor];
    const int32_t of = in_norm(c, from->view_of), moves = loop_in_norm(c, from->view_loop);
    c->copy[tensor] = tensor;
    if (from->view_of == HR_NONE ? !c->written[tensor]
                                 : of == from->view_of && moves == from->view_loop)
        return tensor;
    if (program->tensor_count == program->tensor_max) {
        c->full = true;
        return tensor;
    }
    const int32_t made = program->tensor_count++;
    program->tensors[made] = *from;
    program->tensors[made].view_of = of;
    program->tensors[made].view_loop = moves;
    /* A gradient whose home was the run is needed only in the norm. */
    program->tensors[made].home = from->home == 0 ? c->update : loop_in_norm(c, from->home);
    return c->copy[tensor] = made;
}

/* Copies the loops inside the section "step". The section "update" becomes the section "norm". */
static void copy_loops(consuming *c)
{
    hr_program *program = c->program;
    const int32_t count = program->loop_count;
    hr_loop *norm = &program->loops[c->update];
    norm->id = HR_LOOP_NORM;
    snprintf(norm->name, sizeof norm->name, "%s", hr_loop_name(HR_LOOP_NORM));
    for (int32_t l = 0; l < program->loop_max; l++) c->loop_copy[l] = HR_NONE;
    for (int32_t l = 1; l < count; l++) {
        if (l == c->section || !hr_loop_inside(program, l, c->section)) continue;
        if (program->loop_count == program->loop_max) {
            c->full = true;
            return;
        }
        program->loops[program->loop_count] = program->loops[l];
        c->loop_copy[l] = program->loop_count++;
    }
    c->loop_copy[c->section] = c->update;
    for (int32_t l = 1; l < count; l++)
        if (l != c->section && c->loop_copy[l] != HR_NONE)
            program->loops[c->loop_copy[l]].parent = c->loop_copy[program->loops[l].parent];
}

/* ---- new step list */

static void append(consuming *c, hr_step step)
{
    if (c->count == c->program->step_max) c->full = true;
    else c->steps[c->count++] = step;
}

static hr_step step_in_norm(consuming *c, hr_step step)
{
    step.loop = loop_in_norm(c, step.loop);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = in_norm(c, step.in[i]);
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = in_norm(c, step.out[k]);
    return step;
}

/* Step `s` of "update", adjusted to its place after step `at`. */
static hr_step moved(const consuming *c, int32_t s, int32_t at)
{
    const hr_step *before = &c->program->steps[at];
    hr_step step = c->program->steps[s];
    step.loop = c->section;
    step.layer = before->layer;
    step.block = before->block;
    step.direction = before->direction;
    for (int32_t i = 0; i < HR_IN_MAX && op_of(c, s)->host; i++)
        if (step.in[i] != HR_NONE && c->late[root_of(c, step.in[i])]) step.in[i] = HR_NONE;
    return step;
}

static void write_section(consuming *c, bool norm)
{
    const hr_loop section = c->program->loops[c->section];
    for (int32_t s = section.step_first; s <= section.step_last; s++) {
        const hr_step step = c->program->steps[s];
        c->place[s] = c->count;
        append(c, norm ? step_in_norm(c, step) : step);
        for (int32_t u = c->first[s]; u != HR_NONE; u = c->next[u]) {
            const hr_step after = moved(c, u, s);
            append(c, norm ? step_in_norm(c, after) : after);
        }
    }
}

/* Appends the remaining steps of "update", which access no gradient. */
static void write_rest(consuming *c, bool norm)
{
    for (int32_t s = c->begin; s <= c->end; s++)
        if (!reads_gradient(c, s) && !completes(c, s) && !updates_state(c, s))
            append(c, norm ? step_in_norm(c, c->program->steps[s]) : c->program->steps[s]);
}

static void write_norm(consuming *c)
{
    hr_program *program = c->program;
    const int32_t begin = c->count;
    copy_loops(c);
    insert_all(c, NORM_TERMS);
    if (c->full) return;
    write_section(c, true);
    write_rest(c, true);
    for (int32_t l = 1; l < program->loop_count; l++) {
        if (l == c->section || c->loop_copy[l] == HR_NONE) continue;
        hr_loop *made = &program->loops[c->loop_copy[l]];
        made->step_first = c->place[program->loops[l].step_first];
        made->step_last = c->place[program->loops[l].step_last];
    }
    program->loops[c->update].step_first = begin;
    program->loops[c->update].step_last = c->count - 1;
}

static void write_all(consuming *c)
{
    hr_program *program = c->program;
    const hr_loop section = program->loops[c->section];
    const bool norm = needs_norm(c);
    const int32_t old_loops = program->loop_count;
    for (int32_t s = 0; s < section.step_first; s++) {
        c->place[s] = c->count;
        append(c, program->steps[s]);
    }
    if (norm) write_norm(c);
    const int32_t begin = c->count;
    insert_all(c, norm ? UPDATES : REPORTS | NORM_TERMS | UPDATES);
    write_section(c, false);
    const int32_t end = c->count;
    if (!norm) {
        write_rest(c, false);
        program->loops[c->update].step_first = end;
        program->loops[c->update].step_last = c->count - 1;
    }
    for (int32_t s = c->end + 1; s < program->step_count; s++) {
        c->place[s] = c->count;
        append(c, program->steps[s]);
    }
    for (int32_t l = 1; l < old_loops && !c->full; l++) {
        hr_loop *loop = &program->loops[l];
        if (l == c->section || l == c->update) continue;
        loop->step_first = c->place[loop->step_first];
        loop->step_last = c->place[loop->step_last];
    }
    program->loops[c->section].step_first = begin;
    program->loops[c->section].step_last = end - 1;
    program->loops[0].step_last = c->count - 1;
}

hr_status hr_consume(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used, steps = program->step_max, tensors = program->tensor_max;
    consuming c = { .program = program,
                    .section = hr_program_loop(program, HR_LOOP_STEP),
                    .update = hr_program_loop(program, HR_LOOP_UPDATE),
                    .touched = hr_region_take(scratch, tensors, sizeof *c.touched),
                    .written = hr_region_take(scratch, tensors, sizeof *c.written),
                    .late = hr_region_take(scratch, tensors, sizeof *c.late),
                    .copy = hr_region_take(scratch, tensors, sizeof *c.copy),
                    .loop_copy = hr_region_take(scratch, program->loop_max, sizeof *c.loop_copy),
                    .first = hr_region_take(scratch, steps, sizeof *c.first),
                    .last = hr_region_take(scratch, steps, sizeof *c.last),
                    .next = hr_region_take(scratch, steps, sizeof *c.next),
                    .place = hr_region_take(scratch, steps, sizeof *c.place),
                    .steps = hr_region_take(scratch, steps, sizeof *c.steps) };
    if (!c.touched || !c.written || !c.late || !c.copy || !c.loop_copy || !c.first || !c.last ||
        !c.next || !c.place || !c.steps)
        return hr_fail(err, HR_FAILURE, "out of memory for moving the updates of %d operations",
                       program->step_max);
    if (c.section == HR_NONE || c.update == HR_NONE) {
        scratch->used = kept;
        return HR_OK;
    }
    c.begin = program->loops[c.update].step_first;
    c.end = program->loops[c.update].step_last;
    survey(&c);
    write_all(&c);
    if (c.full)
        return hr_fail(err, HR_FAILURE,
                       "the program has more than %d operations, %d tensors and %d loops",
                       program->step_max, program->tensor_max, program->loop_max);
    memcpy(program->steps, c.steps, (size_t)c.count * sizeof *c.steps);
    program->step_count = c.count;
    scratch->used = kept;
    return HR_OK;
}
