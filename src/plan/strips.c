/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strips.c - rebuilds the step list with loops over strips of gradients.
 *
 * When the strips do not divide the gradient, the rest follows the loop as steps of its own. */
#include "plan/strips.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"
#include "plan/pieces.h"

enum {
    ELEMENTS_LEAST = 1 << 16, /* 256 KiB: a strip takes much longer than starting its steps */
    ELEMENTS_MOST = 3 << 20,  /* 12 MiB, unless the units of a strip must be larger */
    STRIPS_MOST = 512
};

/* The accesses to a gradient. */
typedef struct {
    int32_t writer;      /* HR_NONE: none so far */
    int32_t first, last; /* readers */
    bool whole;          /* it stays whole */
    hr_strips strips;
    int64_t units; /* of a strip */
} use;

typedef struct {
    hr_program *program;
    use *uses;      /* [tensor_max] of each gradient */
    hr_step *steps; /* [step_max] the new step list */
    int32_t count;
    bool full;
} cutting;

/* One strip, or the strips of a loop. */
typedef struct {
    int64_t first_unit, units, turns;
    int64_t first, elements; /* the same in elements */
    int64_t all;             /* elements of the gradient */
    int32_t loop, gradient;
} strip;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest divisor of `units` up to `most` that is a multiple of `whole`; 0: there is none of
 * `least` or more. */
static int64_t equal_units(int64_t units, int64_t whole, int64_t least, int64_t most)
{
    for (int64_t u = most / whole * whole; u >= hr_max(least, 1); u -= whole)
        if (units % u == 0) return u;
    return 0;
}

int64_t hr_strip_units(hr_strips of, int64_t unit_elements, bool equal)
{
    const int64_t whole = HR_STRIP_QUANTUM / greatest_divisor(unit_elements, HR_STRIP_QUANTUM);
    int64_t least = hr_max(of.least, (ELEMENTS_LEAST + unit_elements - 1) / unit_elements);
    least = hr_round_up(hr_max(least, (of.units + STRIPS_MOST - 1) / STRIPS_MOST), whole);
    const int64_t most = hr_max(least,
                                hr_min(of.enough, ELEMENTS_MOST / unit_elements) / whole * whole);
    if (least >= of.units) return 0;
    const int64_t divisor = equal_units(of.units, whole, least, hr_min(most, of.units / 2));
    if (divisor) return divisor;
    if (!equal && most < of.units) return most;
    if (!equal)
        return hr_max(least, hr_round_up((of.units + 1) / 2, whole)); /* a half and a rest */
    /* larger strips, but fewer than half as many */
    for (int64_t u = most + whole; u <= hr_min(2 * most, of.units / 2); u += whole)
        if (of.units % u == 0) return u;
    return 0;
}

/* ---- which gradients */

static const hr_op *op_of(const cutting *c, int32_t s)
{
    return hr_step_op(c->program, &c->program->steps[s]);
}

static int64_t elements_of(const hr_program *program, int32_t tensor)
{
    const hr_tensor *t = &program->tensors[tensor];
    return hr_tensor_bytes(t) / hr_dtype_bytes((hr_dtype)t->dtype);
}

static use *use_of(const cutting *c, int32_t tensor)
{
    if (tensor == HR_NONE) return NULL;
    const int32_t root = hr_tensor_root(c->program, tensor);
    return c->program->tensors[root].role == HR_ROLE_GRADIENT ? &c->uses[root] : NULL;
}

static void note_writer(cutting *c, int32_t s, int32_t k)
{
    const hr_program *program = c->program;
    const hr_step *step = &program->steps[s];
    const hr_op *op = op_of(c, s);
    use *u = use_of(c, step->out[k]);
    if (!u) return;
    u->whole |= u->writer != HR_NONE || k != 0 || !op->strips ||
                program->tensors[step->out[k]].view_of != HR_NONE ||
                program->loops[step->loop].parent != 0;
    u->writer = s;
    if (u->whole) return;
    u->strips = op->strips(step->attr);
    if (u->strips.units > 0)
        u->units = hr_strip_units(u->strips, elements_of(program, step->out[0]) / u->strips.units,
                                  program->tensors[step->out[0]].layer != HR_NONE);
    u->whole = u->units == 0;
}

/* Whether an operand of a reader can be cut: it has no elements, those of the gradient,
 * the scales of their blocks, or their residuals. */
static bool is_cut(const hr_program *program, int32_t operand, int32_t gradient)
{
    if (operand == HR_NONE) return true;
    const hr_tensor *tensor = &program->tensors[operand];
    if (tensor->space != HR_SPACE_HOST) return false;
    if (!hr_piece_is_array(tensor)) return true;
    const int64_t all = elements_of(program, gradient);
    return tensor->view_of == HR_NONE && hr_piece_own_elements(tensor, all, all) > 0;
}

static void note_reader(cutting *c, int32_t s, int32_t i)
{
    const hr_program *program = c->program;
    const hr_step *step = &program->steps[s];
    use *u = use_of(c, step->in[i]);
    if (!u) return;
    u->whole |= u->writer == HR_NONE || i != 0 || !op_of(c, s)->split;
    if (u->whole) return;
    u->whole = program->steps[u->writer].loop != step->loop ||
               program->steps[u->writer].out[0] != step->in[i];
    for (int32_t k = 0; k < HR_IN_MAX; k++) u->whole |= !is_cut(program, step->in[k], step->in[0]);
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        u->whole |= !is_cut(program, step->out[k], step->in[0]);
    if (u->first == HR_NONE) u->first = s;
    u->last = s;
}

static bool reads(const hr_program *program, int32_t s, int32_t root)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++) {
        const int32_t in = program->steps[s].in[i];
        if (in != HR_NONE && hr_tensor_root(program, in) == root) return true;
    }
    return false;
}

/* Whether a reader may move behind the steps up to the last reader: none of them reads what it
 * writes. */
static bool may_move(const hr_program *program, int32_t s, int32_t last)
{
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        const int32_t out = program->steps[s].out[k];
        for (int32_t after = s + 1; out != HR_NONE && after < last; after++)
            if (reads(program, after, hr_tensor_root(program, out))) return false;
    }
    return true;
}

static bool is_reader(const cutting *c, const use *u, int32_t s)
{
    return use_of(c, c->program->steps[s].in[0]) == u;
}

/* Returns how many gradients are cut. */
static int32_t survey(cutting *c)
{
    const hr_program *program = c->program;
    int32_t count = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        c->uses[t] = (use){ .writer = HR_NONE, .first = HR_NONE, .last = HR_NONE };
    for (int32_t s = 0; s < program->step_count; s++) {
        for (int32_t i = 0; i < HR_IN_MAX; i++) note_reader(c, s, i);
        for (int32_t k = 0; k < HR_OUT_MAX; k++) note_writer(c, s, k);
    }
    for (int32_t t = 0; t < program->tensor_count; t++) {
        use *u = &c->uses[t];
        u->whole |= u->writer == HR_NONE || u->first == HR_NONE;
        for (int32_t s = u->first; !u->whole && s < u->last; s++)
            if (is_reader(c, u, s)) u->whole = !may_move(program, s, u->last);
        count += !u->whole;
    }
    return count;
}

/* ---- the new step list */

static void append(cutting *c, hr_step step)
{
    if (c->count == c->program->step_max) c->full = true;
    else c->steps[c->count++] = step;
}

static int32_t add_tensor(cutting *c, hr_tensor tensor)
{
    if (c->program->tensor_count == c->program->tensor_max) {
        c->full = true;
        return 0;
    }
    c->program->tensors[c->program->tensor_count] = tensor;
    return c->program->tensor_count++;
}

static int32_t add_loop(cutting *c, int32_t parent, int64_t turns)
{
    hr_program *program = c->program;
    if (program->loop_count == program->loop_max) {
        c->full = true;
        return parent;
    }
    hr_loop *loop = &program->loops[program->loop_count];
    *loop = (hr_loop){ .parent = parent, .id = HR_LOOP_STRIP, .count = turns };
    snprintf(loop->name, sizeof loop->name, "%s", hr_loop_name(HR_LOOP_STRIP));
    return program->loop_count++;
}

/* An array like `tensor`, with what belongs to the elements of one strip. */
static hr_tensor part_of(const hr_tensor *tensor, const strip *of)
{
    const int64_t elements = hr_piece_own_elements(tensor, of->all, of->elements);
    hr_tensor part = *tensor;
    part.layout = HR_ROWS;
    part.dims[0] = elements;
    part.dims[1] = 0;
    part.fixed_bytes = elements * hr_dtype_bytes((hr_dtype)tensor->dtype);
    return part;
}

/* The strip's part of an operand of a reader. */
static int32_t operand_of(cutting *c, int32_t operand, const strip *of)
{
    if (operand == HR_NONE) return HR_NONE;
    const hr_tensor *whole = &c->program->tensors[operand];
    if (!hr_piece_is_array(whole)) return operand;
    if (whole->role == HR_ROLE_GRADIENT) return of->gradient;
    const int64_t before = hr_piece_own_elements(whole, of->all, of->first);
    hr_tensor view = part_of(whole, of);
    view.view_of = operand;
    view.view_offset_bytes = before * hr_dtype_bytes((hr_dtype)view.dtype);
    view.view_loop = of->turns > 1 ? of->loop : HR_NONE;
    view.view_stride_bytes = of->turns > 1 ? view.fixed_bytes : 0;
    return add_tensor(c, view);
}

static void append_reader(cutting *c, hr_step step, const strip *of)
{
    hr_step_op(c->program, &step)->split(&step, of->first, of->elements);
    step.loop = of->loop;
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = operand_of(c, step.in[i], of);
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = operand_of(c, step.out[k], of);
    append(c, step);
}

/* Appends the steps of `of->turns` strips: a loop, or one strip without a loop. */
static void append_strips(cutting *c, const use *u, strip of)
{
    hr_program *program = c->program;
    hr_step writer = program->steps[u->writer];
    hr_tensor gradient = part_of(&program->tensors[writer.out[0]], &of);
    of.loop = of.turns > 1 ? add_loop(c, writer.loop, of.turns) : writer.loop;
    gradient.home = of.loop;
    of.gradient = add_tensor(c, gradient);
    hr_step_op(program, &writer)->cut_strip(&writer, of.first_unit, of.units);
    writer.loop = of.loop;
    writer.out[0] = of.gradient;
    append(c, writer);
    for (int32_t s = u->first; s <= u->last && !c->full; s++)
        if (is_reader(c, u, s)) append_reader(c, program->steps[s], &of);
}

static void append_all_strips(cutting *c, const use *u)
{
    const int64_t all = elements_of(c->program, c->program->steps[u->writer].out[0]);
    const int64_t unit = all / u->strips.units;
    const int64_t turns = u->strips.units / u->units, done = turns * u->units;
    const int64_t rest = u->strips.units - done;
    append_strips(
        c, u,
        (strip){ .units = u->units, .turns = turns, .elements = u->units * unit, .all = all });
    if (rest && !c->full)
        append_strips(c, u,
                      (strip){ .first_unit = done,
                               .units = rest,
                               .turns = 1,
                               .first = done * unit,
                               .elements = rest * unit,
                               .all = all });
}

static void rebuild(cutting *c)
{
    const hr_program *program = c->program;
    for (int32_t s = 0; s < program->step_count && !c->full; s++) {
        const use *written = use_of(c, program->steps[s].out[0]);
        const use *read = use_of(c, program->steps[s].in[0]);
        hr_step step = program->steps[s];
        if (written && !written->whole) {
            if (hr_step_drop_first(program, &step)) append(c, step);
        } else if (!read || read->whole) append(c, step);
        else if (read->last == s) append_all_strips(c, read);
    }
}

hr_status hr_strips_cut(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    cutting c = { .program = program,
                  .uses = hr_region_take_raw(scratch, program->tensor_max, sizeof *c.uses),
                  .steps = hr_region_take_raw(scratch, program->step_max, sizeof *c.steps) };
    if (!c.uses || !c.steps)
        return hr_fail(err, HR_FAILURE, "out of memory for the gradients of %d operations",
                       program->step_max);
    if (survey(&c)) {
        rebuild(&c);
        if (c.full)
            return hr_fail(err, HR_FAILURE,
                           "the program has more than %d operations, %d tensors and %d loops",
                           program->step_max, program->tensor_max, program->loop_max);
        memcpy(program->steps, c.steps, (size_t)c.count * sizeof *c.steps);
        program->step_count = c.count;
        hr_program_span_loops(program);
    }
    scratch->used = kept;
    return HR_OK;
}

int64_t hr_strips_largest(const hr_program *program)
{
    int64_t most = 0;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const hr_tensor *tensor = &program->tensors[t];
        if (tensor->role == HR_ROLE_GRADIENT && tensor->home > 0 &&
            program->loops[tensor->home].id == HR_LOOP_STRIP)
            most = hr_max(most, hr_tensor_bytes(tensor));
    }
    return most;
}
