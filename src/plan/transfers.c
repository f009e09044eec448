/* SPDX-License-Identifier: Apache-2.0 */
/* plan/transfers.c - rebuilds the step list with transfers. */
#include "plan/transfers.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/backend.h"

enum { BLOCK = 4096 }; /* of direct I/O: windows start at and consist of whole blocks */

_Static_assert(HR_PIECE_BYTES % BLOCK == 0, "a piece is whole blocks");

/* A piece of an update: elements [first, first + count) of all arrays of step `step`. */
typedef struct {
    int32_t step; /* HR_NONE: there is no piece */
    int64_t first, count;
} piece;

/* A piece in its slot, with its windows and the ranges of the states that they are copies of. */
typedef struct {
    piece of;
    int32_t count;
    int32_t window[HR_OUT_MAX], away[HR_OUT_MAX];
} slot;

typedef struct {
    hr_program *program;
    hr_step *steps; /* [step_max] the new step list */
    int32_t count;
    int32_t *first, *last; /* [step_max] new indices of an old step and its transfers */
    int32_t turn;          /* pieces updated so far */
    int32_t buffer;        /* the slots, aligned */
    int64_t slot_bytes;
    piece fetched; /* the next piece to fetch */
    slot slots[HR_SLOTS];
    int16_t ops[HR_TRANSFERS]; /* the operations of the halves of transfers */
    bool full;
} moving;

/* ---- program */

static bool is_away(const hr_program *program, int32_t tensor)
{
    return tensor != HR_NONE && program->tensors[tensor].space != HR_SPACE_HOST;
}

/* Returns how many of a step's operands are outside of the arena. */
static int32_t operands_away(const hr_program *program, const int32_t *operands, int32_t most)
{
    int32_t count = 0;
    for (int32_t i = 0; i < most; i++) count += is_away(program, operands[i]);
    return count;
}

static bool updates_away(const hr_program *program, int32_t s)
{
    const hr_step *step = &program->steps[s];
    return hr_step_op(program, step)->split && operands_away(program, step->out, HR_OUT_MAX) > 0;
}

static int32_t add_tensor(moving *m, hr_tensor tensor)
{
    if (m->program->tensor_count == m->program->tensor_max) {
        m->full = true;
        return 0;
    }
    m->program->tensors[m->program->tensor_count] = tensor;
    return m->program->tensor_count++;
}

/* Adds a buffer of `bytes` in the arena that starts at a block. */
static int32_t add_buffer(moving *m, const char *name, hr_tensor like, int64_t bytes, int32_t home)
{
    hr_tensor buffer = like;
    snprintf(buffer.name, sizeof buffer.name, "%s", name);
    buffer.space = HR_SPACE_HOST;
    buffer.home = home;
    hr_tensor aligned = buffer;
    snprintf(buffer.name, sizeof buffer.name, "%.48s, unaligned", name);
    buffer.layout = HR_ROWS;
    buffer.fixed_bytes = bytes + BLOCK - hr_space_align(HR_SPACE_HOST);
    buffer.dims[0] = buffer.fixed_bytes / hr_dtype_bytes((hr_dtype)buffer.dtype);
    buffer.dims[1] = 0;
    aligned.fixed_bytes = bytes;
    aligned.view_of = add_tensor(m, buffer);
    aligned.view_align = BLOCK;
    return add_tensor(m, aligned);
}

/* Adds a view of elements [first, first + count) of an array, in whole blocks if it is transferred.
 * The blocks of an array outside of the arena are its own. */
static int32_t add_view(moving *m, int32_t of, int64_t offset_bytes, int64_t count, bool in_blocks)
{
    hr_tensor view = m->program->tensors[of];
    view.view_of = of;
    view.view_offset_bytes = offset_bytes;
    view.view_align = 0;
    view.layout = HR_ROWS;
    view.dims[0] = count;
    view.dims[1] = 0;
    view.fixed_bytes = count * hr_dtype_bytes((hr_dtype)view.dtype);
    if (in_blocks) view.fixed_bytes = hr_round_up(view.fixed_bytes, BLOCK);
    return add_tensor(m, view);
}

static void append(moving *m, hr_step step)
{
    if (m->count == m->program->step_max) m->full = true;
    else m->steps[m->count++] = step;
}

/* Appends one half of a transfer beside a step. `to` null: a half that waits. */
static void append_transfer(moving *m, const hr_step *beside, hr_transfer half, int32_t slot_index,
                            const int32_t *from, const int32_t *to, int32_t count)
{
    const hr_transfer_attr attr = { slot_index };
    hr_step step = *beside;
    step.op = m->ops[half];
    memset(step.attr, 0, sizeof step.attr);
    memcpy(step.attr, &attr, sizeof attr);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = i < count ? from[i] : HR_NONE;
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = to && k < count ? to[k] : HR_NONE;
    append(m, step);
}

/* ---- whole states */

/* Gives a step that reads or writes whole values outside of the arena a window for each. */
static void move_whole(moving *m, const hr_step *of)
{
    hr_program *program = m->program;
    hr_step step = *of;
    int32_t away[2][HR_IN_MAX], windows[2][HR_IN_MAX], counts[2] = { 0, 0 };
    for (int32_t side = 0; side < 2; side++) {
        int32_t *operands = side ? step.out : step.in;
        for (int32_t i = 0; i < HR_IN_MAX; i++) {
            if (!is_away(program, operands[i])) continue;
            const hr_tensor like = program->tensors[operands[i]];
            char name[HR_TENSOR_NAME_BYTES];
            snprintf(name, sizeof name, "%.54s, window", like.name);
            away[side][counts[side]] = operands[i];
            operands[i] = add_buffer(m, name, like, hr_round_up(hr_tensor_bytes(&like), BLOCK),
                                     step.loop);
            windows[side][counts[side]++] = operands[i];
        }
    }
    if (counts[0]) {
        append_transfer(m, of, HR_TRANSFER_FETCH_BEGIN, 0, away[0], windows[0], counts[0]);
        append_transfer(m, of, HR_TRANSFER_FETCH_WAIT, 0, windows[0], NULL, counts[0]);
    }
    append(m, step);
    if (counts[1]) {
        append_transfer(m, of, HR_TRANSFER_SPILL_BEGIN, 0, windows[1], away[1], counts[1]);
        append_transfer(m, of, HR_TRANSFER_SPILL_WAIT, 0, windows[1], NULL, counts[1]);
    }
}

/* ---- updates in pieces */

static int64_t elements_of(const hr_program *program, int32_t s)
{
    const hr_step *step = &program->steps[s];
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (is_away(program, step->out[k])) {
            const hr_tensor *state = &program->tensors[step->out[k]];
            return hr_tensor_bytes(state) / hr_dtype_bytes((hr_dtype)state->dtype);
        }
    return 0;
}

/* The piece after this one; the first of the program after { -1 }. */
static piece next_piece(const hr_program *program, piece before)
{
    piece next = { before.step, before.first + before.count, 0 };
    if (next.step < 0 || next.first == elements_of(program, next.step)) {
        next.first = 0;
        do next.step++;
        while (next.step < program->step_count && !updates_away(program, next.step));
        if (next.step == program->step_count) return (piece){ HR_NONE, 0, 0 };
    }
    next.count = hr_min(elements_of(program, next.step) - next.first, HR_PIECE_ELEMENTS);
    return next;
}

/* The buffer of the slots, with room for the states of the step that has most of them there. */
static void add_slots(moving *m)
{
    const hr_program *program = m->program;
    int64_t states = 0;
    const hr_tensor *like = NULL;
    for (int32_t s = 0; s < program->step_count; s++) {
        if (!updates_away(program, s)) continue;
        const hr_step *step = &program->steps[s];
        states = hr_max(states, operands_away(program, step->out, HR_OUT_MAX));
        for (int32_t k = 0; k < HR_OUT_MAX && !like; k++)
            if (is_away(program, step->out[k])) like = &program->tensors[step->out[k]];
    }
    if (!like) return;
    hr_tensor plain = *like;
    plain.layer = HR_NONE;
    plain.layout = HR_ROWS;
    m->slot_bytes = states * HR_PIECE_BYTES;
    plain.dims[0] = HR_SLOTS * m->slot_bytes / hr_dtype_bytes((hr_dtype)plain.dtype);
    plain.dims[1] = 0;
    m->buffer = add_buffer(m, "moment windows", plain, HR_SLOTS * m->slot_bytes, 0);
}

/* Begins to fetch the next piece into a slot; does nothing after the last. */
static void fetch_next(moving *m, const hr_step *beside, int32_t index)
{
    hr_program *program = m->program;
    slot *to = &m->slots[index];
    *to = (slot){ .of = m->fetched };
    if (m->fetched.step == HR_NONE) return;
    const hr_step *step = &program->steps[m->fetched.step];
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        if (!is_away(program, step->out[k])) continue;
        const int64_t bytes = hr_dtype_bytes((hr_dtype)program->tensors[step->out[k]].dtype);
        to->away[to->count] = add_view(m, step->out[k], to->of.first * bytes, to->of.count, true);
        to->window[to->count] = add_view(
            m, m->buffer, index * m->slot_bytes + to->count * HR_PIECE_BYTES, to->of.count, true);
        to->count++;
    }
    append_transfer(m, beside, HR_TRANSFER_FETCH_BEGIN, index, to->away, to->window, to->count);
    m->fetched = next_piece(program, m->fetched);
}

static bool is_array(const hr_tensor *tensor)
{
    return tensor->role == HR_ROLE_WEIGHT || tensor->role == HR_ROLE_MASTER ||
           tensor->role == HR_ROLE_STATE || tensor->role == HR_ROLE_GRADIENT;
}

/* The operand of one piece: its window, a part of an array, or the operand itself. */
static int32_t operand_of(moving *m, int32_t operand, const slot *at, int32_t *window)
{
    const hr_program *program = m->program;
    if (operand == HR_NONE) return HR_NONE;
    if (is_away(program, operand)) return at->window[(*window)++];
    const hr_tensor *tensor = &program->tensors[operand];
    const int64_t bytes = hr_dtype_bytes((hr_dtype)tensor->dtype);
    if (!is_array(tensor) || at->of.count * bytes >= hr_tensor_bytes(tensor)) return operand;
    return add_view(m, operand, at->of.first * bytes, at->of.count, false);
}

static void append_piece(moving *m, hr_step step, const slot *at)
{
    int32_t window = 0;
    hr_step_op(m->program, &step)->split(&step, at->of.count);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = operand_of(m, step.in[i], at, &window);
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = operand_of(m, step.out[k], at, &window);
    append(m, step);
}

static void append_wait(moving *m, const hr_step *beside, hr_transfer half, int32_t index)
{
    const slot *at = &m->slots[index];
    append_transfer(m, beside, half, index, at->window, NULL, at->count);
}

/* Replaces an update by its pieces. */
static void move_pieces(moving *m, int32_t s)
{
    const hr_step step = m->program->steps[s];
    if (m->turn == 0)
        for (int32_t i = 0; i < HR_SLOTS; i++) fetch_next(m, &step, i);
    while (!m->full) {
        const int32_t index = m->turn % HR_SLOTS, before = (m->turn + HR_SLOTS - 1) % HR_SLOTS;
        const slot *at = &m->slots[index];
        if (at->of.step != s) return;
        append_wait(m, &step, HR_TRANSFER_FETCH_WAIT, index);
        append_piece(m, step, at);
        append_transfer(m, &step, HR_TRANSFER_SPILL_BEGIN, index, at->window, at->away, at->count);
        if (m->turn > 0) {
            append_wait(m, &step, HR_TRANSFER_SPILL_WAIT, before);
            fetch_next(m, &step, before);
        }
        m->turn++;
        if (m->slots[m->turn % HR_SLOTS].of.step == HR_NONE) { /* that was the last piece */
            append_wait(m, &step, HR_TRANSFER_SPILL_WAIT, index);
            return;
        }
    }
}

/* ---- the pass */

static void move_all(moving *m)
{
    hr_program *program = m->program;
    const int32_t steps = program->step_count;
    for (int32_t s = 0; s < steps && !m->full; s++) {
        const hr_step step = program->steps[s];
        m->first[s] = m->count;
        if (updates_away(program, s)) move_pieces(m, s);
        else if (operands_away(program, step.in, HR_IN_MAX) ||
                 operands_away(program, step.out, HR_OUT_MAX))
            move_whole(m, &step);
        else append(m, step);
        m->last[s] = m->count - 1;
    }
    for (int32_t l = 0; l < program->loop_count && !m->full; l++) {
        hr_loop *loop = &program->loops[l];
        if (loop->step_last < loop->step_first) continue;
        loop->step_first = m->first[loop->step_first];
        loop->step_last = m->last[loop->step_last];
    }
}

static bool has_states_away(const hr_program *program)
{
    for (int32_t i = 0; i < program->state_count; i++)
        if (program->states[i].space != HR_SPACE_HOST) return true;
    return false;
}

hr_status hr_transfers(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used, steps = program->step_max;
    if (!has_states_away(program)) return HR_OK;
    moving m = { .program = program,
                 .steps = hr_region_take_raw(scratch, steps, sizeof *m.steps),
                 .first = hr_region_take_raw(scratch, steps, sizeof *m.first),
                 .last = hr_region_take_raw(scratch, steps, sizeof *m.last) };
    if (!m.steps || !m.first || !m.last)
        return hr_fail(err, HR_FAILURE, "out of memory for the transfers of %d operations",
                       program->step_max);
    for (int32_t op = 0; op < program->backend->op_count; op++)
        m.ops[program->backend->ops[op]->transfer] = (int16_t)op;
    m.fetched = next_piece(program, (piece){ -1, 0, 0 });
    add_slots(&m);
    move_all(&m);
    if (m.full)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations and %d tensors",
                       program->step_max, program->tensor_max);
    memcpy(program->steps, m.steps, (size_t)m.count * sizeof *m.steps);
    program->step_count = m.count;
    scratch->used = kept;
    return HR_OK;
}
