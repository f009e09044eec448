/* SPDX-License-Identifier: Apache-2.0 */
/* plan/spill.c - rebuilds the step list with the transfers of layer inputs. */
#include "plan/spill.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"
#include "graph/transfer.h"
#include "plan/lifetimes.h"

enum { FETCHES_MOST = 3 };

/* What the pass knows of a tensor that is spilled. */
typedef struct {
    int32_t tensor;
    int32_t after;                 /* the last forward step, or the end of the loop around it */
    int32_t away;                  /* in the file */
    int32_t fetches;               /* it is fetched before the first of these steps, or the begin */
    int32_t before[FETCHES_MOST];  /* of the loop around it, */
    int32_t windows[FETCHES_MOST]; /* to these tensors */
    int32_t reader;                /* the last step so far that reads it again */
} spilled;

typedef struct {
    hr_program *program;
    const hr_intermediates *sets; /* [layers] */
    spilled *list;
    int32_t *of;    /* [tensor_max] index in the list; HR_NONE */
    int32_t *copy;  /* [tensor_max] what backward reads instead; HR_NONE: not made yet */
    int32_t *roots; /* [tensor_max] */
    hr_step *steps; /* [step_max] the new step list */
    int32_t spilled_count, count;
    int16_t ops[HR_TRANSFERS];
    bool full;
} spilling;

static bool is_wanted(const spilling *m, int32_t t)
{
    const hr_tensor *tensor = &m->program->tensors[t];
    return tensor->view_of == HR_NONE && tensor->layer != HR_NONE && tensor->home != HR_NONE &&
           tensor->intermediates >> HR_INTERMEDIATE_INPUT &
               m->sets[tensor->layer] >> HR_INTERMEDIATE_INPUT & 1;
}

/* ---- where */

/* The outermost loop around a step that is inside the home of a tensor; HR_NONE: there is none. */
static int32_t outermost(const hr_program *program, int32_t s, int32_t home)
{
    int32_t found = HR_NONE;
    for (int32_t l = program->steps[s].loop; l != home && l != HR_NONE;
         l = program->loops[l].parent)
        found = l;
    return found;
}

/* Whether a step needs a fetch of its own, after another that read the value: if programs fetch
 * again, between blocks, and between recomputing and the backward pass. */
static bool fetches_again(const hr_program *program, int32_t reader, int32_t s)
{
    bool apart = program->steps[s].direction != program->steps[reader].direction;
    for (int32_t i = reader; i < s && !apart; i++)
        apart = program->steps[i].block != program->steps[s].block;
    return program->again && apart;
}

static void note_reader(const hr_program *program, spilled *one, int32_t s, int32_t first)
{
    const bool more = one->fetches > 0 && one->fetches < FETCHES_MOST &&
                      first > one->before[one->fetches - 1] &&
                      fetches_again(program, one->reader, s);
    if (one->fetches == 0 || more) one->before[one->fetches++] = first;
    one->reader = s;
}

static void look_at(spilling *m, int32_t s, int32_t tensor)
{
    const hr_program *program = m->program;
    if (tensor == HR_NONE || m->of[m->roots[tensor]] == HR_NONE) return;
    spilled *one = &m->list[m->of[m->roots[tensor]]];
    const int32_t loop = outermost(program, s, program->tensors[one->tensor].home);
    const int32_t first = loop == HR_NONE ? s : program->loops[loop].step_first;
    const int32_t last = loop == HR_NONE ? s : program->loops[loop].step_last;
    if (program->steps[s].direction == HR_DIR_FORWARD)
        one->after = (int32_t)hr_max(one->after, last);
    else note_reader(program, one, s, first);
}

/* Finds the steps around each value. Drops those that backward does not read, or reads before the
 * forward pass has ended with them. */
static void find_places(spilling *m)
{
    const hr_program *program = m->program;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        m->of[t] = m->copy[t] = HR_NONE;
        m->roots[t] = hr_tensor_root(program, t);
        if (!is_wanted(m, t)) continue;
        m->of[t] = m->spilled_count;
        m->list[m->spilled_count++] = (spilled){ .tensor = t, .after = HR_NONE };
    }
    for (int32_t s = 0; s < program->step_count; s++) {
        for (int32_t i = 0; i < HR_IN_MAX; i++) look_at(m, s, program->steps[s].in[i]);
        for (int32_t k = 0; k < HR_OUT_MAX; k++) look_at(m, s, program->steps[s].out[k]);
    }
    for (int32_t i = 0; i < m->spilled_count; i++) {
        spilled *one = &m->list[i];
        if (one->after != HR_NONE && one->fetches > 0 && one->before[0] > one->after) continue;
        m->of[one->tensor] = one->after = HR_NONE;
        one->fetches = 0;
    }
}

/* ---- tensors */

static int32_t add_tensor(spilling *m, const hr_tensor *tensor)
{
    hr_program *program = m->program;
    m->full |= program->tensor_count == program->tensor_max;
    if (m->full) return 0;
    const int32_t made = program->tensor_count++;
    program->tensors[made] = *tensor;
    m->of[made] = m->copy[made] = m->roots[made] = HR_NONE;
    return made;
}

static int32_t rename_tensor(spilling *m, int32_t of, hr_tensor tensor, const char *what)
{
    snprintf(tensor.name, sizeof tensor.name, "%.52s, %s", m->program->tensors[of].name, what);
    return add_tensor(m, &tensor);
}

static void make_tensors(spilling *m)
{
    for (int32_t i = 0; i < m->spilled_count && !m->full; i++) {
        spilled *one = &m->list[i];
        if (one->after == HR_NONE) continue;
        hr_tensor away = m->program->tensors[one->tensor];
        away.space = HR_SPACE_FILE;
        one->away = rename_tensor(m, one->tensor, away, "spilled");
        for (int32_t k = 0; k < one->fetches; k++)
            one->windows[k] = rename_tensor(m, one->tensor, m->program->tensors[one->tensor],
                                            "fetched");
    }
}

/* What a backward step reads instead of a tensor: the window, or the same view of it. */
static int32_t fetched(spilling *m, int32_t tensor)
{
    const hr_program *program = m->program;
    int32_t chain[8], depth = 0;
    if (tensor == HR_NONE || m->of[m->roots[tensor]] == HR_NONE) return tensor;
    for (int32_t t = tensor; m->copy[t] == HR_NONE; t = program->tensors[t].view_of)
        chain[depth++] = t;
    while (depth-- > 0 && !m->full) {
        hr_tensor view = program->tensors[chain[depth]];
        view.view_of = m->copy[view.view_of];
        m->copy[chain[depth]] = rename_tensor(m, chain[depth], view, "fetched");
    }
    return m->full ? tensor : m->copy[tensor];
}

/* ---- steps */

static void append(spilling *m, const hr_step *step)
{
    m->full |= m->count == m->program->step_max;
    if (!m->full) m->steps[m->count++] = *step;
}

/* Appends a transfer between `from` and `to`, both halves, beside step `s`. */
static void append_pair(spilling *m, int32_t s, hr_transfer begin, int32_t from, int32_t to,
                        int32_t home)
{
    const bool fetches = begin == HR_TRANSFER_FETCH_BEGIN;
    const hr_transfer_attr attr = { fetches ? HR_UNSPILL_SLOT : HR_SPILL_SLOT };
    hr_step step = m->program->steps[s];
    step.loop = home;
    step.in_parts = false;
    if (fetches) step.direction = HR_DIR_RECOMPUTED;
    memset(step.attr, 0, sizeof step.attr);
    memcpy(step.attr, &attr, sizeof attr);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = HR_NONE;
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = HR_NONE;
    step.op = m->ops[begin];
    step.in[0] = from;
    step.out[0] = to;
    append(m, &step);
    step.op = m->ops[begin + 1]; /* its wait */
    step.in[0] = fetches ? to : from;
    step.out[0] = HR_NONE;
    append(m, &step);
}

static void copy_step(spilling *m, int32_t s)
{
    hr_step step = m->program->steps[s];
    if (step.direction != HR_DIR_FORWARD)
        for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = fetched(m, step.in[i]);
    append(m, &step);
}

/* Fetches a value before step `s`; steps and views of it then read the new window. */
static void fetch(spilling *m, const spilled *one, int32_t window, int32_t s)
{
    const hr_program *program = m->program;
    append_pair(m, s, HR_TRANSFER_FETCH_BEGIN, one->away, window,
                program->tensors[one->tensor].home);
    for (int32_t t = 0; t < program->tensor_count && m->copy[one->tensor] != HR_NONE; t++)
        if (m->roots[t] == one->tensor && t != one->tensor) m->copy[t] = HR_NONE;
    m->copy[one->tensor] = window;
}

static void rebuild(spilling *m)
{
    const hr_program *program = m->program;
    for (int32_t s = 0; s < program->step_count && !m->full; s++) {
        for (int32_t i = 0; i < m->spilled_count; i++) {
            const spilled *one = &m->list[i];
            for (int32_t k = 0; k < one->fetches; k++)
                if (one->before[k] == s) fetch(m, one, one->windows[k], s);
        }
        copy_step(m, s);
        for (int32_t i = 0; i < m->spilled_count; i++) {
            const spilled *one = &m->list[i];
            if (one->after == s)
                append_pair(m, s, HR_TRANSFER_SPILL_BEGIN, one->tensor, one->away,
                            program->tensors[one->tensor].home);
        }
    }
}

hr_status hr_spill(hr_program *program, const hr_intermediates *sets, hr_region *scratch,
                   hr_error *err)
{
    const int64_t kept = scratch->used;
    int64_t most = 0;
    spilling m = { .program = program, .sets = sets };
    for (int32_t t = 0; t < program->tensor_count; t++) most += is_wanted(&m, t);
    if (most == 0) return HR_OK;
    m.list = hr_region_take(scratch, most, sizeof *m.list);
    m.of = hr_region_take_raw(scratch, program->tensor_max, sizeof *m.of);
    m.copy = hr_region_take_raw(scratch, program->tensor_max, sizeof *m.copy);
    m.roots = hr_region_take_raw(scratch, program->tensor_max, sizeof *m.roots);
    m.steps = hr_region_take_raw(scratch, program->step_max, sizeof *m.steps);
    if (!m.list || !m.of || !m.copy || !m.roots || !m.steps)
        return hr_fail(err, HR_FAILURE, "out of memory for the transfers of %d operations",
                       program->step_max);
    for (int32_t op = 0; op < program->backend->op_count; op++)
        m.ops[program->backend->ops[op]->transfer] = (int16_t)op;
    find_places(&m);
    make_tensors(&m);
    if (!m.full) rebuild(&m);
    if (m.full)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations and %d tensors",
                       program->step_max, program->tensor_max);
    memcpy(program->steps, m.steps, (size_t)m.count * sizeof *m.steps);
    program->step_count = m.count;
    hr_program_span_loops(program);
    scratch->used = kept;
    return HR_OK;
}

/* ---- overlap */

typedef struct {
    hr_program *program;
    int64_t *alive; /* [step_count] live bytes at each step */
    int64_t floor_bytes;
} moving;

/* The half of a transfer of an activation that a step is. */
static hr_transfer half_of(const hr_program *program, int32_t s)
{
    const hr_step *step = &program->steps[s];
    const int32_t slot = ((const hr_transfer_attr *)step->attr)->slot;
    const uint8_t half = hr_step_op(program, step)->transfer;
    return half && (slot == HR_SPILL_SLOT || slot == HR_UNSPILL_SLOT) ? (hr_transfer)half
                                                                      : HR_TRANSFER_NONE;
}

/* Whether a transfer of a value with this home may be inserted before step `s`: outside of the
 * loops that are inside the home. */
static bool is_between(const hr_program *program, int32_t s, int32_t home)
{
    int32_t loop = program->steps[s].loop;
    while (loop != home && loop != HR_NONE && program->loops[loop].step_first == s)
        loop = program->loops[loop].parent;
    return loop == home;
}

static int64_t window_of(const hr_program *program, int32_t tensor)
{
    return hr_round_up(hr_tensor_bytes(&program->tensors[tensor]), hr_space_align(HR_SPACE_FILE));
}

/* Moves the wait at step `s` behind later steps, as far as the bytes of its value have room, and
 * before the next spill. */
static void wait_later(const moving *m, int32_t s)
{
    hr_program *program = m->program;
    const hr_step wait = program->steps[s];
    const int64_t bytes = window_of(program, wait.in[0]);
    int32_t to = s;
    for (int32_t p = s + 1; p < program->step_count; p++) {
        const hr_transfer half = half_of(program, p);
        if (is_between(program, p, wait.loop)) to = p - 1;
        if (half == HR_TRANSFER_SPILL_BEGIN || half == HR_TRANSFER_FETCH_BEGIN) break;
        if (!hr_loop_inside(program, program->steps[p].loop, wait.loop)) break;
        if (m->alive[p] + bytes > m->floor_bytes) break;
    }
    for (int32_t p = s; p < to; p++) {
        program->steps[p] = program->steps[p + 1];
        m->alive[p] = m->alive[p + 1] + bytes;
    }
    program->steps[to] = wait;
    hr_program_span_loops(program);
}

/* Moves the begin at step `s` before earlier steps, as far as its window has room, and behind the
 * transfer before it. */
static void begin_earlier(const moving *m, int32_t s)
{
    hr_program *program = m->program;
    const hr_step begin = program->steps[s];
    const int64_t bytes = window_of(program, begin.out[0]);
    int32_t to = s;
    for (int32_t p = s - 1; p >= 0; p--) {
        if (half_of(program, p) || !hr_loop_inside(program, program->steps[p].loop, begin.loop))
            break;
        if (m->alive[p] + bytes > m->floor_bytes) break;
        if (is_between(program, p, begin.loop)) to = p;
    }
    for (int32_t p = s; p > to; p--) {
        program->steps[p] = program->steps[p - 1];
        m->alive[p] = m->alive[p - 1] + bytes;
    }
    program->steps[to] = begin;
    hr_program_span_loops(program);
}

static void move_all(moving *m)
{
    const hr_program *program = m->program;
    int64_t largest = 0;
    for (int32_t s = 0; s < program->step_count; s++) {
        m->floor_bytes = hr_max(m->floor_bytes, m->alive[s]);
        if (half_of(program, s) == HR_TRANSFER_FETCH_BEGIN)
            largest = hr_max(largest, window_of(program, program->steps[s].out[0]));
    }
    m->floor_bytes -= largest; /* room for a window makes packing easy */
    for (int32_t s = program->step_count - 1; s >= 0; s--)
        if (half_of(program, s) == HR_TRANSFER_SPILL_WAIT) wait_later(m, s);
    for (int32_t s = 0; s < program->step_count; s++)
        if (half_of(program, s) == HR_TRANSFER_FETCH_BEGIN) begin_earlier(m, s);
}

hr_status hr_spill_overlap(hr_program *program, int32_t threads, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    hr_plan plan = { .process = { .threads = threads, .rung = "" } };
    moving m = { .program = program };
    int32_t s = 0;
    while (s < program->step_count && !half_of(program, s)) s++;
    if (s == program->step_count) return HR_OK;
    const hr_status status = hr_lifetimes(program, scratch, &plan, err);
    if (status != HR_OK) return status;
    m.alive = hr_region_take_raw(scratch, program->step_count, sizeof *m.alive);
    if (!m.alive)
        return hr_fail(err, HR_FAILURE, "out of memory for the transfers of %d operations",
                       program->step_count);
    hr_lifetimes_alive(program, &plan, m.alive);
    move_all(&m);
    scratch->used = kept;
    return HR_OK;
}
