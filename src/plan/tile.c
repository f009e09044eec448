/* SPDX-License-Identifier: Apache-2.0 */
/* plan/tile.c - wraps steps in a loop over rows.
 *
 * A tensor belongs to the range if every access to its bytes, through any view, is in it. This
 * includes a tensor that is only accessed through the views of an inner tile: it must shrink too,
 * or the plan gets larger while all results remain correct. */
#include "plan/tile.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/backend.h"

/* First and last step that access a tensor's bytes. */
typedef struct {
    int32_t first, last; /* last < first: none */
} span;

/* The view of a tensor in one tile. */
typedef struct {
    int32_t cut, view;
} slice;

typedef struct {
    hr_program *program;
    int32_t first, last;
    int32_t outer, loop;
    int32_t cut; /* number of the tile, from 1; older slices are ignored */
    int64_t rows;
    bool parts;    /* of a sequence */
    span *touched; /* [tensor_max] by root; tiling does not change it */
    slice *slices; /* [tensor_max] */
} tiling;

static const hr_op *op_of(const tiling *t, const hr_step *step)
{
    return hr_step_op(t->program, step);
}

static bool is_row(const tiling *t, char letter)
{
    return letter == 'r' || letter == 'R' || (!t->parts && hr_letter_is_sequence(letter));
}

static void note(tiling *t, int32_t step, int32_t tensor)
{
    if (tensor == HR_NONE) return;
    span *touched = &t->touched[hr_tensor_root(t->program, tensor)];
    if (touched->last < touched->first) touched->first = step;
    touched->last = step;
}

static void survey(tiling *t)
{
    const hr_program *program = t->program;
    for (int32_t i = 0; i < program->tensor_count; i++) t->touched[i] = (span){ 0, -1 };
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = op_of(t, step);
        for (int32_t i = 0; op->in[i]; i++) note(t, s, step->in[i]);
        for (int32_t i = 0; op->out[i]; i++) note(t, s, step->out[i]);
    }
}

/* Returns whether anything outside of the range uses the bytes of this root. */
static bool is_outside(const tiling *t, int32_t root)
{
    const span *touched = &t->touched[root];
    return touched->first < t->first || touched->last > t->last ||
           !hr_loop_inside(t->program, t->program->tensors[root].home, t->outer);
}

static void shrink(tiling *t, hr_tensor *tensor)
{
    tensor->rows = hr_min(tensor->rows, t->rows);
    tensor->dims[0] = tensor->rows;
}

/* The view of `tensor` with the rows of one iteration. */
static int32_t slice_of(tiling *t, int32_t tensor)
{
    hr_program *program = t->program;
    if (t->slices[tensor].cut == t->cut) return t->slices[tensor].view;
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
    t->slices[tensor] = (slice){ t->cut, made };
    return made;
}

/* Returns whether `tensor` is a view of an inner tile: it moves with a loop inside the range. */
static bool is_inner(const tiling *t, int32_t tensor)
{
    const int32_t loop = t->program->tensors[tensor].view_loop;
    return loop != HR_NONE && loop != t->loop && loop != t->outer &&
           hr_loop_inside(t->program, loop, t->outer);
}

/* A value that one step writes completely and only the range reads belongs to the loop. */
static void move_home(tiling *t, int32_t tensor)
{
    hr_tensor *root = &t->program->tensors[hr_tensor_root(t->program, tensor)];
    if (root->home == t->outer && !is_outside(t, hr_tensor_root(t->program, tensor)))
        root->home = t->loop;
}

/* Adapts one operand of a step in the range. False if there is no room for a view. */
static bool cut_operand(tiling *t, int32_t *operand, char letter)
{
    hr_program *program = t->program;
    if (*operand == HR_NONE || !is_row(t, letter) || program->tensors[*operand].rows == 0)
        return true;
    const int32_t owner = hr_tensor_root(program, *operand);
    if (!is_outside(t, owner)) {
        hr_tensor *root = &program->tensors[owner];
        shrink(t, &program->tensors[*operand]);
        shrink(t, root);
        if (root->home == t->outer) root->home = t->loop; /* else it belongs to an inner loop */
        return true;
    }
    /* Views of inner tiles remain. The outermost of them becomes a view of this loop's view. */
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

/* Rows of an operand per iteration of the enclosing loop, ignoring inner tiles. */
static int64_t rows_of_operand(const tiling *t, int32_t operand, char letter)
{
    const hr_program *program = t->program;
    if (operand == HR_NONE || !is_row(t, letter)) return 0;
    while (is_inner(t, operand)) operand = program->tensors[operand].view_of;
    return program->tensors[operand].rows;
}

/* The maximum of rows of the range's operands. */
static int64_t rows_of_range(const tiling *t)
{
    int64_t rows = 0;
    for (int32_t s = t->first; s <= t->last; s++) {
        const hr_step *step = &t->program->steps[s];
        const hr_op *op = op_of(t, step);
        for (int32_t i = 0; op->in[i]; i++)
            rows = hr_max(rows, rows_of_operand(t, step->in[i], op->in[i]));
        for (int32_t i = 0; op->out[i]; i++)
            rows = hr_max(rows, rows_of_operand(t, step->out[i], op->out[i]));
    }
    return rows;
}

/* Operations on whole sequences require rows in multiples of row_quantum, or parts of one. */
static bool may_be_cut(const tiling *t)
{
    for (int32_t s = t->first; s <= t->last; s++) {
        const hr_step *step = &t->program->steps[s];
        const hr_op_facts *facts = hr_step_facts(t->program, step);
        const hr_op *op = op_of(t, step);
        const bool parts = t->parts && op->has_parts && op->has_parts(step->attr);
        const int64_t quantum = parts                ? HR_PART_ROWS
                                : facts->row_quantum ? facts->row_quantum(step->attr)
                                                     : 1;
        if (t->rows % quantum) return false;
    }
    return true;
}

/* The innermost loop that contains the whole range. */
static int32_t loop_around(const hr_program *program, int32_t first, int32_t last)
{
    int32_t loop = program->steps[first].loop;
    while (program->loops[loop].step_last < last || program->loops[loop].step_first > first ||
           (loop != 0 && program->loops[loop].rows > 0 &&
            program->loops[loop].step_first == first && program->loops[loop].step_last <= last))
        loop = program->loops[loop].parent;
    return loop;
}

static bool cut_operands(tiling *t, hr_step *step)
{
    const hr_op *op = op_of(t, step);
    for (int32_t i = 0; op->in[i]; i++)
        if (!cut_operand(t, &step->in[i], op->in[i])) return false;
    for (int32_t i = 0; op->out[i]; i++)
        if (!cut_operand(t, &step->out[i], op->out[i])) return false;
    if (op->out[0] == 'w' && step->out[0] != HR_NONE) move_home(t, step->out[0]);
    return true;
}

/* Makes a step of the range one over parts of a sequence. Its accumulator lives as long as the
 * loop. False if there is no room for that. */
static bool make_parts(tiling *t, hr_step *step)
{
    hr_program *program = t->program;
    const hr_op *op = op_of(t, step);
    if (!t->parts || !op->into_parts) return true;
    const int64_t count = op->into_parts(step);
    step->in_parts = true;
    if (count == 0) return true;
    if (program->tensor_count == program->tensor_max) return false;
    const int32_t made = program->tensor_count++;
    const int64_t bytes = count * (int64_t)sizeof(float);
    hr_tensor *sum = &program->tensors[made];
    *sum = (hr_tensor){ .layer = step->layer,
                        .dtype = HR_F32,
                        .role = HR_ROLE_ACTIVATION,
                        .dims = { count },
                        .fixed_bytes = bytes,
                        .home = t->outer,
                        .view_of = HR_NONE,
                        .view_loop = HR_NONE };
    snprintf(sum->name, sizeof sum->name, "%s sums", op->name);
    step->out[strlen(op->out) - 1] = made;
    t->touched[made] = (span){ t->first, t->last };
    return true;
}

static hr_status cut(tiling *t, const hr_tile_cut *what, hr_error *err)
{
    hr_program *program = t->program;
    const int64_t rows = what->rows;
    if (program->loop_count == program->loop_max)
        return hr_fail(err, HR_FAILURE, "out of memory for tiling operations %d to %d by %lld rows",
                       what->first, what->last, (long long)rows);
    t->cut++;
    t->rows = rows;
    t->parts = what->parts;
    t->first = what->first;
    t->last = what->last;
    t->outer = loop_around(program, t->first, t->last);
    t->loop = program->loop_count;
    const int64_t rows_total = rows_of_range(t);
    HR_ASSERT(rows > 0 && rows < rows_total && may_be_cut(t));

    hr_loop loop = { .parent = t->outer,
                     .count = (rows_total + rows - 1) / rows,
                     .rows = rows,
                     .rows_total = rows_total,
                     .step_first = t->first,
                     .step_last = t->last };
    snprintf(loop.name, sizeof loop.name, "%s", what->name);
    program->loops[program->loop_count++] = loop;
    wrap(t);
    for (int32_t s = t->first; s <= t->last; s++)
        if (!make_parts(t, &program->steps[s]) || !cut_operands(t, &program->steps[s]))
            return hr_fail(err, HR_FAILURE, "the program has more than %d tensors",
                           program->tensor_max);
    return HR_OK;
}

hr_status hr_tile(hr_program *program, const hr_tile_cut *cuts, int32_t count, hr_region *scratch,
                  hr_error *err)
{
    const int64_t kept = scratch->used;
    tiling t = { .program = program,
                 .touched = hr_region_take(scratch, program->tensor_max, sizeof *t.touched),
                 .slices = hr_region_take(scratch, program->tensor_max, sizeof *t.slices) };
    hr_status status = HR_OK;
    if (!t.touched || !t.slices)
        status = hr_fail(err, HR_FAILURE, "out of memory for tiling %d tensors",
                         program->tensor_max);
    else survey(&t);
    for (int32_t i = 0; i < count && status == HR_OK; i++) status = cut(&t, &cuts[i], err);
    scratch->used = kept;
    return status;
}

/* Numbers the loops around a step that have no number yet, outer before inner. The outer loops of
 * the chain are numbered first, so the unnumbered ones are the innermost. */
static int32_t number_chain(hr_program *program, int32_t innermost, int32_t next)
{
    int32_t fresh = 0;
    for (int32_t l = innermost; l != HR_NONE && program->loops[l].place == HR_NONE;
         l = program->loops[l].parent)
        fresh++;
    next += fresh;
    for (int32_t l = innermost, place = next; fresh > 0; l = program->loops[l].parent, fresh--)
        program->loops[l].place = --place;
    return next;
}

/* Numbers all loops in the order of the steps. */
static void number_loops(hr_program *program)
{
    int32_t next = 0;
    for (int32_t l = 0; l < program->loop_count; l++) program->loops[l].place = HR_NONE;
    next = number_chain(program, 0, next);
    for (int32_t s = 0; s < program->step_count; s++)
        next = number_chain(program, program->steps[s].loop, next);
    for (int32_t l = 0; l < program->loop_count; l++) next = number_chain(program, l, next);
}

void hr_tile_sort_loops(hr_program *program)
{
    hr_loop *loops = program->loops;
    number_loops(program);
    for (int32_t s = 0; s < program->step_count; s++)
        program->steps[s].loop = loops[program->steps[s].loop].place;
    for (int32_t i = 0; i < program->tensor_count; i++) {
        hr_tensor *tensor = &program->tensors[i];
        if (tensor->home != HR_NONE) tensor->home = loops[tensor->home].place;
        if (tensor->view_loop != HR_NONE) tensor->view_loop = loops[tensor->view_loop].place;
    }
    for (int32_t l = 0; l < program->loop_count; l++)
        if (loops[l].parent != HR_NONE) loops[l].parent = loops[loops[l].parent].place;
    for (int32_t l = 0; l < program->loop_count; l++)
        while (loops[l].place != l) {
            const hr_loop other = loops[loops[l].place];
            loops[loops[l].place] = loops[l];
            loops[l] = other;
        }
}
