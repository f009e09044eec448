/* SPDX-License-Identifier: Apache-2.0 */
/* plan/reorder.c - moves steps near the peak to its other side.
 *
 * A step before the peak may move behind it, together with all steps that depend on it; a step
 * after the peak may move before it, together with all steps that it depends on. The accesses in a
 * window around the peak give an estimate of the gain. Lifetimes are derived again only for
 * promising moves. */
#include "plan/reorder.h"

#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"
#include "plan/lifetimes.h"

enum {
    REACH = 24, /* steps on either side of the peak */
    WINDOW = 2 * REACH + 1,
    MOVES_MOST = 64,
    OPERANDS = HR_IN_MAX + HR_OUT_MAX
};

/* The maximum of live bytes, its first step, and the number of steps that have it. */
typedef struct {
    int64_t bytes;
    int32_t at, steps;
} peak;

/* Adjacent steps in one loop around a peak. */
typedef struct {
    hr_step steps[WINDOW];
    int32_t first, count, peak; /* index of the first step; index of the peak in the window */
} window;

typedef struct {
    hr_program *program;
    hr_region *region;
    int32_t threads;
    hr_plan plan; /* buffers and lifetimes before the move under test */
    window around;
} reordering;

static hr_status measure(reordering *r, hr_plan *plan, peak *out, hr_error *err)
{
    const hr_program *program = r->program;
    *plan = (hr_plan){ .process = { .threads = r->threads, .rung = "" } };
    const hr_status status = hr_lifetimes(program, r->region, plan, err);
    if (status != HR_OK) return status;
    int64_t *alive = hr_region_take(r->region, program->step_count, sizeof *alive);
    if (!alive)
        return hr_fail(err, HR_FAILURE, "out of memory for the lifetimes of %d operations",
                       program->step_count);
    hr_lifetimes_alive(program, plan, alive);
    *out = (peak){ -1, 0, 0 };
    for (int32_t s = 0; s < program->step_count; s++) {
        if (alive[s] > out->bytes) *out = (peak){ alive[s], s, 0 };
        if (alive[s] == out->bytes) out->steps++;
    }
    return HR_OK;
}

static bool lower(const peak *a, const peak *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->steps < b->steps;
}

/* Operand i of a step, inputs first; HR_NONE: absent. */
static int32_t operand(const hr_step *step, int32_t i)
{
    return i < HR_IN_MAX ? step->in[i] : step->out[i - HR_IN_MAX];
}

static bool touches(const hr_program *program, const hr_step *step, int32_t root)
{
    for (int32_t i = 0; i < OPERANDS; i++)
        if (operand(step, i) != HR_NONE && hr_tensor_root(program, operand(step, i)) == root)
            return true;
    return false;
}

/* Returns whether one step writes a value that the other accesses. */
static bool must_keep_order(const hr_program *program, const hr_step *a, const hr_step *b)
{
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        if (a->out[k] != HR_NONE && touches(program, b, hr_tensor_root(program, a->out[k])))
            return true;
        if (b->out[k] != HR_NONE && touches(program, a, hr_tensor_root(program, b->out[k])))
            return true;
    }
    return false;
}

/* Host steps have accesses that are not operands, so no step may move across them. */
static bool movable(const hr_program *program, int32_t s, int32_t loop)
{
    return s >= 0 && s < program->step_count && program->steps[s].loop == loop &&
           !hr_step_op(program, &program->steps[s])->host;
}

static void fill_window(reordering *r, int32_t at)
{
    const hr_program *program = r->program;
    const int32_t loop = program->steps[at].loop;
    int32_t first = at, last = at;
    while (at - first < REACH && movable(program, first - 1, loop)) first--;
    while (last - at < REACH && movable(program, last + 1, loop)) last++;
    r->around.first = first;
    r->around.count = last - first + 1;
    r->around.peak = at - first;
    memcpy(r->around.steps, &program->steps[first],
           (size_t)r->around.count * sizeof *r->around.steps);
}

/* Marks a step and all steps that must move with it. False if the peak step is one of them. */
static bool mark_dependents(const reordering *r, int32_t step, bool *moves)
{
    const window *w = &r->around;
    const int32_t towards = step < w->peak ? 1 : -1;
    memset(moves, 0, WINDOW * sizeof *moves);
    moves[step] = true;
    for (int32_t t = step + towards; t != w->peak + towards; t += towards)
        for (int32_t u = step; u != t && !moves[t]; u += towards)
            moves[t] = moves[u] && must_keep_order(r->program, &w->steps[u], &w->steps[t]);
    return !moves[w->peak];
}

/* Returns whether a value is live exactly from its first to its last access, for accesses in this
 * loop. */
static bool follows_accesses(const hr_program *program, int32_t root, int32_t loop)
{
    const int32_t home = program->tensors[root].home;
    for (int32_t l = loop; l != home; l = program->loops[l].parent)
        if (l == HR_NONE || program->loops[l].count > 1) return false;
    return home != HR_NONE;
}

/* Change of a value's live bytes at the peak by the move. */
static int64_t change_of(const reordering *r, int32_t root, const bool *moves)
{
    const window *w = &r->around;
    const hr_buffer *buffer = &r->plan.buffers[r->plan.buffer_of_tensor[root]];
    const bool outside_before = buffer->step_first < w->first;
    const bool outside_after = buffer->step_last >= w->first + w->count;
    bool before = outside_before, after = outside_after;
    for (int32_t t = 0; t < w->count; t++) {
        if (!touches(r->program, &w->steps[t], root)) continue;
        const bool was_before = t < w->peak, is_before = was_before != moves[t];
        if (t == w->peak) before = after = true;
        else if (is_before) before = true;
        else after = true;
    }
    const int32_t peak_step = w->first + w->peak;
    const bool was_alive = buffer->step_first <= peak_step && buffer->step_last >= peak_step;
    return ((before && after) - was_alive) * buffer->bytes;
}

/* Sum of the changes over all values that the moved steps access. */
static int64_t change(const reordering *r, const bool *moves)
{
    const window *w = &r->around;
    int32_t seen[WINDOW * OPERANDS], count = 0;
    int64_t sum = 0;
    for (int32_t t = 0; t < w->count; t++)
        for (int32_t i = 0; i < OPERANDS && moves[t]; i++) {
            if (operand(&w->steps[t], i) == HR_NONE) continue;
            const int32_t root = hr_tensor_root(r->program, operand(&w->steps[t], i));
            bool known = !follows_accesses(r->program, root, w->steps[t].loop);
            for (int32_t k = 0; k < count && !known; k++) known = seen[k] == root;
            if (known) continue;
            seen[count++] = root;
            sum += change_of(r, root, moves);
        }
    return sum;
}

/* Writes the window's steps back to the program, the marked ones on the other side of the peak. */
static void place(reordering *r, const bool *moves)
{
    const window *w = &r->around;
    hr_step *to = &r->program->steps[w->first];
    for (int32_t t = 0; t < w->peak; t++)
        if (!moves[t]) *to++ = w->steps[t];
    for (int32_t t = w->peak + 1; t < w->count; t++)
        if (moves[t]) *to++ = w->steps[t];
    *to++ = w->steps[w->peak];
    for (int32_t t = 0; t < w->peak; t++)
        if (moves[t]) *to++ = w->steps[t];
    for (int32_t t = w->peak + 1; t < w->count; t++)
        if (!moves[t]) *to++ = w->steps[t];
}

/* Tries to move a step across the peak; restores the program if the peak is not lower. */
static hr_status try(reordering *r, const peak *now, int32_t step, bool *moved, hr_error *err)
{
    static const bool none[WINDOW];
    bool moves[WINDOW];
    if (!mark_dependents(r, step, moves) || change(r, moves) >= 0) return HR_OK;
    const int64_t mark = r->region->used;
    hr_plan plan;
    peak then;
    place(r, moves);
    const hr_status status = measure(r, &plan, &then, err);
    r->region->used = mark;
    *moved = status == HR_OK && lower(&then, now);
    if (!*moved) place(r, none);
    return status;
}

/* Makes one move: that of the nearest step which lowers the peak. */
static hr_status move_one(reordering *r, bool *moved, hr_error *err)
{
    peak now;
    hr_status status = measure(r, &r->plan, &now, err);
    if (status != HR_OK) return status;
    if (hr_step_op(r->program, &r->program->steps[now.at])->host) return HR_OK;
    fill_window(r, now.at);
    for (int32_t far = 1; far <= REACH; far++)
        for (int32_t side = -1; side <= 1; side += 2) {
            const int32_t step = r->around.peak + side * far;
            if (step < 0 || step >= r->around.count) continue;
            status = try(r, &now, step, moved, err);
            if (status != HR_OK || *moved) return status;
        }
    return HR_OK;
}

hr_status hr_reorder(hr_program *program, int32_t threads, hr_region *region, int32_t *moves,
                     hr_error *err)
{
    reordering r = { .program = program, .region = region, .threads = threads };
    const int64_t mark = region->used;
    hr_status status = HR_OK;
    bool moved = true;
    *moves = 0;
    while (*moves < MOVES_MOST && moved && status == HR_OK) {
        moved = false;
        status = move_one(&r, &moved, err);
        *moves += moved;
        region->used = mark;
    }
    return status;
}
