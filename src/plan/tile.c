/* SPDX-License-Identifier: Apache-2.0 */
/* plan/tile.c - wraps steps in a loop over rows.
 *
 * A tensor belongs to the range if every access of its bytes, through any view, lies in it. The
 * trap is a tensor that is touched only through the views of an inner tile: it must shrink all
 * the same, or the plan grows fat while everything still computes the right numbers. */
#include "plan/tile.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/op.h"

typedef struct {
    hr_program *program;
    int32_t first, last;
    int32_t outer, loop;
    int64_t rows;
    uint8_t *cut;     /* [tensor_max] roots: rows of it are cut in the range */
    uint8_t *outside; /* [tensor_max] roots: touched outside the range too */
    int32_t *slice;   /* [tensor_max] the view that stands for a tensor in the range */
} tiling;

static bool inside(const tiling *t, int32_t step)
{
    return step >= t->first && step <= t->last;
}

static const hr_op *op_of(const tiling *t, const hr_step *step)
{
    return t->program->ops[step->op];
}

static bool is_row(char letter)
{
    return letter == 'r' || letter == 'R';
}

static void note(tiling *t, int32_t step, int32_t tensor, char letter)
{
    if (tensor == HR_NONE) return;
    const int32_t root = hr_tensor_root(t->program, tensor);
    if (!inside(t, step)) t->outside[root] = 1;
    else if (is_row(letter) && t->program->tensors[tensor].rows > 0) t->cut[root] = 1;
}

static void survey(tiling *t)
{
    const hr_program *program = t->program;
    for (int32_t i = 0; i < program->tensor_max; i++) t->slice[i] = HR_NONE;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = op_of(t, step);
        for (int32_t i = 0; op->in[i]; i++) note(t, s, step->in[i], op->in[i]);
        for (int32_t i = 0; op->out[i]; i++) note(t, s, step->out[i], op->out[i]);
    }
    for (int32_t i = 0; i < program->tensor_count; i++)
        if (!hr_loop_inside(program, program->tensors[i].home, t->outer)) t->outside[i] = 1;
}

static void shrink(tiling *t, hr_tensor *tensor)
{
    tensor->rows = hr_min(tensor->rows, t->rows);
    tensor->dims[0] = tensor->rows;
}

/* The view of `tensor` that shows one turn's rows. */
static int32_t slice_of(tiling *t, int32_t tensor)
{
    hr_program *program = t->program;
    if (t->slice[tensor] != HR_NONE) return t->slice[tensor];
    if (program->tensor_count == program->tensor_max) return HR_NONE;
    const int32_t made = program->tensor_count++;
    hr_tensor *view = &program->tensors[made];
    *view = program->tensors[tensor];
    view->view_of = tensor;
    view->view_offset_bytes = 0;
    view->view_loop = t->loop;
    view->view_stride_bytes = t->rows * view->row_bytes;
    view->fixed_bytes = 0;
    shrink(t, view);
    return t->slice[tensor] = made;
}

/* A view that an inner tile made: it moves with a loop inside the present one. */
static bool is_inner(const tiling *t, int32_t tensor)
{
    const int32_t loop = t->program->tensors[tensor].view_loop;
    return loop != HR_NONE && loop != t->loop && hr_loop_inside(t->program, loop, t->loop);
}

/* Puts one operand of a step in the range right; false when there is no room for a view. */
static bool cut_operand(tiling *t, int32_t *operand, char letter)
{
    hr_program *program = t->program;
    if (*operand == HR_NONE || !is_row(letter) || program->tensors[*operand].rows == 0) return true;
    if (!t->outside[hr_tensor_root(program, *operand)]) {
        shrink(t, &program->tensors[*operand]);
        return true;
    }
    /* Views of inner tiles stay; what the outermost of them shows now moves inside this loop's
     * view. */
    int32_t *shown = operand;
    while (is_inner(t, *shown)) shown = &program->tensors[*shown].view_of;
    if (program->tensors[*shown].view_loop != t->loop) *shown = slice_of(t, *shown);
    return *shown != HR_NONE;
}

static void wrap(tiling *t)
{
    hr_program *program = t->program;
    for (int32_t l = 1; l < program->loop_count; l++) {
        hr_loop *loop = &program->loops[l];
        if (l == t->loop || loop->step_first < t->first || loop->step_last > t->last) continue;
        if (loop->parent == t->outer) loop->parent = t->loop;
        if (loop->rows == 0) continue;
        loop->rows_total = hr_min(loop->rows_total, t->rows);
        loop->count = (loop->rows_total + loop->rows - 1) / loop->rows;
    }
    for (int32_t s = t->first; s <= t->last; s++)
        if (program->steps[s].loop == t->outer) program->steps[s].loop = t->loop;
}

/* Most rows that a step of the range works on. */
static int64_t rows_of_range(const tiling *t)
{
    const hr_program *program = t->program;
    int64_t rows = 0;
    for (int32_t s = t->first; s <= t->last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = op_of(t, step);
        for (int32_t i = 0; op->in[i]; i++)
            if (is_row(op->in[i]) && step->in[i] != HR_NONE)
                rows = hr_max(rows, program->tensors[step->in[i]].rows);
        for (int32_t i = 0; op->out[i]; i++)
            if (is_row(op->out[i]) && step->out[i] != HR_NONE)
                rows = hr_max(rows, program->tensors[step->out[i]].rows);
    }
    return rows;
}

/* Some operations work on whole sequences: they say what rows must be a multiple of. */
static bool may_be_cut(const tiling *t)
{
    for (int32_t s = t->first; s <= t->last; s++) {
        const hr_step *step = &t->program->steps[s];
        const hr_op *op = op_of(t, step);
        if (op->row_quantum && t->rows % op->row_quantum(step->attr)) return false;
    }
    return true;
}

/* The innermost loop that holds the whole range. */
static int32_t loop_around(const hr_program *program, int32_t first, int32_t last)
{
    int32_t loop = program->steps[first].loop;
    while (program->loops[loop].step_last < last || program->loops[loop].step_first > first ||
           (loop != 0 && program->loops[loop].rows > 0 &&
            program->loops[loop].step_first == first && program->loops[loop].step_last <= last))
        loop = program->loops[loop].parent;
    return loop;
}

hr_status hr_tile(hr_program *program, int32_t first, int32_t last, const char *name, int64_t rows,
                  hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    tiling t = { .program = program,
                 .first = first,
                 .last = last,
                 .outer = loop_around(program, first, last),
                 .loop = program->loop_count,
                 .rows = rows,
                 .cut = hr_region_take(scratch, program->tensor_max, 1),
                 .outside = hr_region_take(scratch, program->tensor_max, 1),
                 .slice = hr_region_take(scratch, program->tensor_max, sizeof *t.slice) };
    if (!t.cut || !t.outside || !t.slice || program->loop_count == program->loop_max)
        return hr_fail(err, HR_FAILURE, "no room to cut steps %d to %d by %lld rows", first, last,
                       (long long)rows);
    const int64_t rows_total = rows_of_range(&t);
    HR_ASSERT(rows > 0 && rows < rows_total && may_be_cut(&t));
    survey(&t);

    hr_loop loop = { .parent = t.outer,
                     .count = (rows_total + rows - 1) / rows,
                     .rows = rows,
                     .rows_total = rows_total,
                     .step_first = first,
                     .step_last = last };
    snprintf(loop.name, sizeof loop.name, "%s", name);
    program->loops[program->loop_count++] = loop;
    wrap(&t);

    bool room = true;
    for (int32_t s = first; s <= last && room; s++) {
        hr_step *step = &program->steps[s];
        const hr_op *op = op_of(&t, step);
        for (int32_t i = 0; op->in[i] && room; i++) room = cut_operand(&t, &step->in[i], op->in[i]);
        for (int32_t i = 0; op->out[i] && room; i++)
            room = cut_operand(&t, &step->out[i], op->out[i]);
    }
    for (int32_t i = 0; i < program->tensor_count; i++) {
        hr_tensor *tensor = &program->tensors[i];
        if (tensor->view_of != HR_NONE || t.outside[i] || !t.cut[i]) continue;
        shrink(&t, tensor);
        if (tensor->home == t.outer) tensor->home = t.loop; /* else an inner loop's own */
    }
    scratch->used = kept;
    if (room) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the step program has room for %d tensors and needs more",
                   program->tensor_max);
}

static bool comes_before(const hr_loop *a, const hr_loop *b)
{
    if (a->step_first != b->step_first) return a->step_first < b->step_first;
    return a->step_last > b->step_last;
}

void hr_tile_sort_loops(hr_program *program)
{
    enum { LOOPS_MOST = 64 };
    int32_t order[LOOPS_MOST], place[LOOPS_MOST];
    hr_loop sorted[LOOPS_MOST];
    HR_ASSERT(program->loop_count <= LOOPS_MOST);
    for (int32_t l = 0; l < program->loop_count; l++) {
        int32_t at = l;
        /* Of loops over the same steps the one that was there first in the tree is the outer. */
        while (at > 1 && (comes_before(&program->loops[l], &program->loops[order[at - 1]]) ||
                          program->loops[order[at - 1]].parent == l)) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = l;
    }
    for (int32_t l = 0; l < program->loop_count; l++) {
        place[order[l]] = l;
        sorted[l] = program->loops[order[l]];
    }
    for (int32_t l = 0; l < program->loop_count; l++) {
        program->loops[l] = sorted[l];
        if (sorted[l].parent != HR_NONE) program->loops[l].parent = place[sorted[l].parent];
    }
    for (int32_t s = 0; s < program->step_count; s++)
        program->steps[s].loop = place[program->steps[s].loop];
    for (int32_t i = 0; i < program->tensor_count; i++) {
        hr_tensor *tensor = &program->tensors[i];
        if (tensor->home != HR_NONE) tensor->home = place[tensor->home];
        if (tensor->view_loop != HR_NONE) tensor->view_loop = place[tensor->view_loop];
    }
}
