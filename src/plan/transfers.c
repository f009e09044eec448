/* SPDX-License-Identifier: Apache-2.0 */
/* plan/transfers.c - rebuilds the step list with transfers. */
#include "plan/transfers.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/residual.h"
#include "graph/backend.h"

enum { BLOCK = 4096 }; /* of direct I/O: windows start at and consist of whole blocks */

_Static_assert(HR_PIECE_ELEMENTS % BLOCK == 0, "a piece is whole blocks, also of 8-bit codes");
_Static_assert(HR_PIECE_ELEMENTS % HR_RESIDUAL_RUN == 0, "a run belongs to one piece");
_Static_assert(HR_PIECE_ELEMENTS % HR_STATE_BLOCK_ELEMENTS == 0, "a scale belongs to one piece");

/* A piece in its slot, with its windows and the ranges of the states that they are copies of. */
typedef struct {
    hr_piece of;
    int32_t count;
    int32_t window[HR_OUT_MAX], away[HR_OUT_MAX];
} slot;

typedef struct {
    hr_program *program;
    const hr_prefetch *prefetch;
    hr_step *steps; /* [step_max] the new step list */
    int32_t count;
    int32_t fetched; /* pieces whose fetch has begun */
    int32_t updated; /* pieces whose update is in the list */
    hr_piece next;   /* the next piece to fetch */
    hr_slots shared; /* by pieces that are not fetched early */
    int32_t buffer;  /* their memory, aligned; HR_NONE: none yet */
    slot slots[HR_SLOTS_MOST];
    int16_t ops[HR_TRANSFERS]; /* the operations of the halves of transfers */
    bool full;
} moving;

/* ---- program */

/* Weights of a base that are away have their windows (plan/stream.h). */
static bool any_away(const hr_program *program, const int32_t *operands, int32_t most)
{
    for (int32_t i = 0; i < most; i++)
        if (hr_tensor_is_away(program, operands[i]) &&
            program->tensors[operands[i]].space != HR_SPACE_BASE)
            return true;
    return false;
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

/* Adds a window: `bytes` in the arena from a block on, for values like those of `like`. */
static int32_t add_window(moving *m, const char *name, hr_tensor like, int64_t bytes, int32_t home)
{
    hr_tensor window = like;
    window.space = HR_SPACE_HOST;
    window.home = home;
    window.fixed_bytes = bytes;
    window.view_align = BLOCK;
    snprintf(window.name, sizeof window.name, "%s", name);
    hr_tensor buffer = window;
    buffer.fixed_bytes = hr_window_bytes(m->program, bytes);
    buffer.layout = HR_ROWS;
    buffer.dims[0] = buffer.fixed_bytes / hr_dtype_bytes((hr_dtype)buffer.dtype);
    buffer.dims[1] = 0;
    buffer.view_align = 0;
    snprintf(buffer.name, sizeof buffer.name, "%.48s, unaligned", name);
    window.view_of = add_tensor(m, buffer);
    return add_tensor(m, window);
}

/* Adds a view of `count` elements of an array. */
static int32_t add_view(moving *m, int32_t of, int64_t offset_bytes, int64_t count)
{
    hr_tensor view = m->program->tensors[of];
    view.view_of = of;
    view.view_offset_bytes = offset_bytes;
    view.view_align = 0;
    view.layout = HR_ROWS;
    view.dims[0] = count;
    view.dims[1] = 0;
    view.fixed_bytes = count * hr_dtype_bytes((hr_dtype)view.dtype);
    return add_tensor(m, view);
}

/* The same in whole blocks, for a transfer. */
static int32_t add_blocks(moving *m, int32_t of, int64_t offset_bytes, int64_t count)
{
    const int32_t made = add_view(m, of, offset_bytes, count);
    hr_tensor *view = &m->program->tensors[made];
    if (!m->full) view->fixed_bytes = hr_round_up(view->fixed_bytes, BLOCK);
    return made;
}

static void append(moving *m, hr_step step)
{
    if (m->count == m->program->step_max) m->full = true;
    else m->steps[m->count++] = step;
}

/* Appends one half of a transfer beside a step. `to` null: a half that waits. */
static void append_half(moving *m, const hr_step *beside, hr_transfer half, int32_t slot_index,
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

/* Replaces the operands outside of the arena by windows. Returns how many. */
static int32_t give_windows(moving *m, int32_t *operands, int32_t most, int32_t home, int32_t *away,
                            int32_t *windows)
{
    int32_t count = 0;
    for (int32_t i = 0; i < most; i++) {
        if (!hr_tensor_is_away(m->program, operands[i])) continue;
        const hr_tensor like = m->program->tensors[operands[i]];
        char name[HR_TENSOR_NAME_BYTES];
        snprintf(name, sizeof name, "%.54s, window", like.name);
        away[count] = operands[i];
        operands[i] = add_window(m, name, like, hr_round_up(hr_tensor_bytes(&like), BLOCK), home);
        windows[count++] = operands[i];
    }
    return count;
}

/* Gives a step that reads or writes whole values outside of the arena a window for each. */
static void move_whole(moving *m, hr_step step)
{
    const hr_step beside = step;
    const char *letters = hr_step_op(m->program, &step)->out;
    int32_t from[HR_IN_MAX], in[HR_IN_MAX], to[HR_OUT_MAX], out[HR_OUT_MAX];
    for (int32_t k = 0; letters[k]; k++) /* what is updated whole would have to be fetched too */
        HR_ASSERT(letters[k] == 'w' || letters[k] == 'W' ||
                  !hr_tensor_is_away(m->program, step.out[k]));
    const int32_t fetches = give_windows(m, step.in, HR_IN_MAX, step.loop, from, in);
    const int32_t spills = give_windows(m, step.out, HR_OUT_MAX, step.loop, to, out);
    if (fetches) append_half(m, &beside, HR_TRANSFER_FETCH_BEGIN, 0, from, in, fetches);
    if (fetches) append_half(m, &beside, HR_TRANSFER_FETCH_WAIT, 0, in, NULL, fetches);
    append(m, step);
    if (spills) append_half(m, &beside, HR_TRANSFER_SPILL_BEGIN, 0, out, to, spills);
    if (spills) append_half(m, &beside, HR_TRANSFER_SPILL_WAIT, 0, out, NULL, spills);
}

/* ---- updates in pieces */

static bool is_early(const moving *m, int32_t piece)
{
    return m->prefetch && piece < m->prefetch->count;
}

/* The slot of a piece: one of those that pieces share, or one of its own. */
static int32_t slot_of(const moving *m, int32_t piece)
{
    const int32_t early = m->prefetch ? m->prefetch->count : 0;
    return piece < early ? HR_SLOTS + piece : (piece - early) % HR_SLOTS;
}

/* A tensor like the states of an update, of `bytes`. */
static hr_tensor like_states(const moving *m, int32_t step, int64_t bytes)
{
    const int32_t *out = m->program->steps[step].out;
    int32_t k = 0;
    while (!hr_tensor_is_away(m->program, out[k])) k++;
    hr_tensor like = m->program->tensors[out[k]];
    like.layer = HR_NONE;
    like.layout = HR_ROWS;
    like.dims[0] = bytes / hr_dtype_bytes((hr_dtype)like.dtype);
    like.dims[1] = 0;
    return like;
}

/* Begins to fetch the next piece; does nothing after the last. */
static void fetch_next(moving *m, const hr_step *beside)
{
    const hr_program *program = m->program;
    const hr_piece piece = m->next;
    const int32_t index = slot_of(m, m->fetched);
    slot *to = &m->slots[index];
    if (piece.step == HR_NONE || m->full) return;
    const int64_t bytes = hr_piece_bytes(program, piece), all = m->shared.count * m->shared.bytes;
    int32_t buffer = m->buffer;
    int64_t offset = index * m->shared.bytes;
    if (is_early(m, m->fetched)) {
        buffer = add_window(m, "early moments", like_states(m, piece.step, bytes), bytes, 0);
        offset = 0;
    } else if (buffer == HR_NONE) {
        buffer = add_window(m, "moments", like_states(m, piece.step, all), all, 0);
        m->buffer = buffer;
    }
    *to = (slot){ .of = piece };
    for (int32_t k = 0; k < HR_OUT_MAX && !m->full; k++) {
        const int32_t state = program->steps[piece.step].out[k];
        if (!hr_tensor_is_away(program, state)) continue;
        const int64_t element = hr_dtype_bytes((hr_dtype)program->tensors[state].dtype);
        to->away[to->count] = add_blocks(m, state, piece.first * element, piece.count);
        to->window[to->count] = add_blocks(m, buffer, offset, piece.count);
        offset += hr_round_up(piece.count * element, BLOCK);
        to->count++;
    }
    append_half(m, beside, HR_TRANSFER_FETCH_BEGIN, index, to->away, to->window, to->count);
    m->next = hr_piece_next(program, piece);
    m->fetched++;
}

/* The operand of one piece: its window, a part of an array, or the operand itself. */
static int32_t operand_of(moving *m, int32_t operand, const slot *at, int32_t *window)
{
    const hr_program *program = m->program;
    if (operand == HR_NONE) return HR_NONE;
    if (hr_tensor_is_away(program, operand)) return at->window[(*window)++];
    const hr_tensor *tensor = &program->tensors[operand];
    const int64_t element = hr_dtype_bytes((hr_dtype)tensor->dtype);
    const int64_t all = hr_piece_elements_of(program, at->of.step);
    const int64_t own = hr_piece_own_elements(tensor, all, at->of.count);
    if (own < 0 || at->of.count == all) return operand;
    return add_view(m, operand, hr_piece_own_elements(tensor, all, at->of.first) * element, own);
}

static void append_update(moving *m, hr_step step, const slot *at)
{
    int32_t window = 0;
    hr_step_op(m->program, &step)->split(&step, at->of.first, at->of.count);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = operand_of(m, step.in[i], at, &window);
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = operand_of(m, step.out[k], at, &window);
    append(m, step);
}

static void append_wait(moving *m, const hr_step *beside, hr_transfer half, int32_t piece)
{
    const slot *at = &m->slots[slot_of(m, piece)];
    append_half(m, beside, half, slot_of(m, piece), at->window, NULL, at->count);
}

/* Replaces an update by its pieces. */
static void move_pieces(moving *m, int32_t s)
{
    const hr_step step = m->program->steps[s];
    if (m->updated == 0)
        for (int32_t i = 0; i < HR_SLOTS; i++) fetch_next(m, &step);
    while (m->updated < m->fetched && !m->full) {
        const int32_t piece = m->updated;
        const slot *at = &m->slots[slot_of(m, piece)];
        if (at->of.step != s) return;
        append_wait(m, &step, HR_TRANSFER_FETCH_WAIT, piece);
        append_update(m, step, at);
        append_half(m, &step, HR_TRANSFER_SPILL_BEGIN, slot_of(m, piece), at->window, at->away,
                    at->count);
        if (piece > 0) append_wait(m, &step, HR_TRANSFER_SPILL_WAIT, piece - 1);
        if (piece > 0 && !is_early(m, piece - 1)) fetch_next(m, &step); /* its slot is free */
        m->updated++;
    }
    if (m->next.step == HR_NONE && m->updated == m->fetched && !m->full)
        append_wait(m, &step, HR_TRANSFER_SPILL_WAIT, m->updated - 1);
}

/* ---- the pass */

/* Begins the early fetches before step `s`, in the section of that step. */
static void fetch_early(moving *m, int32_t s)
{
    hr_program *program = m->program;
    while (is_early(m, m->fetched) && m->prefetch->before[m->fetched] == s && !m->full) {
        hr_step beside = program->steps[s];
        beside.loop = hr_loop_section(program, beside.loop);
        fetch_next(m, &beside);
    }
}

static void move_all(moving *m)
{
    hr_program *program = m->program;
    for (int32_t s = 0; s < program->step_count && !m->full; s++) {
        const hr_step step = program->steps[s];
        fetch_early(m, s);
        if (hr_step_op(program, &step)->transfer) append(m, step); /* plan/spill.h, plan/stream.h */
        else if (hr_piece_has(program, s)) move_pieces(m, s);
        else if (any_away(program, step.in, HR_IN_MAX) || any_away(program, step.out, HR_OUT_MAX))
            move_whole(m, step);
        else append(m, step);
    }
}

static bool has_states_away(const hr_program *program)
{
    for (int32_t i = 0; i < program->state_count; i++)
        if (program->states[i].space != HR_SPACE_HOST) return true;
    return false;
}

hr_status hr_transfers(hr_program *program, const hr_prefetch *prefetch, hr_region *scratch,
                       hr_error *err)
{
    const int64_t kept = scratch->used;
    if (!has_states_away(program)) return HR_OK;
    moving *m = hr_region_take(scratch, 1, sizeof *m);
    hr_step *steps = hr_region_take_raw(scratch, program->step_max, sizeof *steps);
    if (!m || !steps)
        return hr_fail(err, HR_FAILURE, "out of memory for the transfers of %d operations",
                       program->step_max);
    m->program = program;
    m->prefetch = prefetch;
    m->steps = steps;
    m->buffer = HR_NONE;
    m->next = hr_piece_first(program);
    m->shared = hr_slots_of(program);
    for (int32_t op = 0; op < program->backend->op_count; op++)
        m->ops[program->backend->ops[op]->transfer] = (int16_t)op;
    move_all(m);
    if (m->full)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations and %d tensors",
                       program->step_max, program->tensor_max);
    memcpy(program->steps, steps, (size_t)m->count * sizeof *steps);
    program->step_count = m->count;
    hr_program_span_loops(program);
    scratch->used = kept;
    return HR_OK;
}
