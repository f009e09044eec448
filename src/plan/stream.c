/* SPDX-License-Identifier: Apache-2.0 */
/* plan/stream.c - finds the runs of steps that read a weight in a file, and rebuilds the step list
 * with transfers between them. */
#include "plan/stream.h"

#include <stdio.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/transfer.h"

/* A weight of a run, with its scales, and their windows. HR_NONE: no scales. */
typedef struct {
    int32_t away[2], window[2];
    int32_t slot;
    bool kept; /* the run before has it in this window */
} fetched;

/* A run: a step that reads weights, or a loop of tiles with such steps. */
typedef struct {
    int32_t first, last; /* steps of the program before the pass; last < first: there is none */
    int32_t loop;        /* of its transfers */
    int32_t count;
    fetched weights[HR_BASE_SLOTS / 2];
} reading;

typedef struct {
    hr_program *program;
    bool *narrow;    /* [loop_max] a loop of one block of one layer, which reads whole weights */
    int32_t *scales; /* [tensor_max] the scales of a weight; HR_NONE */
    hr_step *steps;  /* [step_max] the new step list */
    int32_t count;
    int32_t slot;        /* of the next transfer */
    int16_t begin, wait; /* operations */
    bool full;
} streaming;

/* ---- runs */

static bool reads_strip(const hr_program *program, const hr_step *step)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && program->tensors[step->in[i]].space == HR_SPACE_BASE &&
            program->tensors[step->in[i]].view_of != HR_NONE)
            return true;
    return false;
}

static void find_narrow(streaming *m)
{
    const hr_program *program = m->program;
    for (int32_t l = 0; l < program->loop_count; l++) {
        const hr_loop *loop = &program->loops[l];
        m->narrow[l] = loop->parent != HR_NONE && loop->parent != 0;
        for (int32_t s = loop->step_first; s <= loop->step_last; s++)
            m->narrow[l] &= program->steps[s].block == program->steps[loop->step_first].block &&
                            program->steps[s].layer == program->steps[loop->step_first].layer &&
                            !reads_strip(program, &program->steps[s]);
    }
}

/* Whether a kernel reads a weight that is away: a service finds it itself. */
static bool reads_away(const streaming *m, int32_t s)
{
    if (hr_step_op(m->program, &m->program->steps[s])->host) return false;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (hr_tensor_is_away(m->program, m->program->steps[s].in[i]) &&
            m->program->tensors[m->program->steps[s].in[i]].space == HR_SPACE_BASE)
            return true;
    return false;
}

/* Adds the weights that a step reads to a run. */
static void add_weights(streaming *m, int32_t s, reading *run)
{
    const hr_program *program = m->program;
    for (int32_t i = 0; i < HR_IN_MAX; i++) {
        const int32_t weight = program->steps[s].in[i];
        if (weight == HR_NONE || program->tensors[weight].space != HR_SPACE_BASE) continue;
        int32_t k = 0;
        while (k < run->count && run->weights[k].away[0] != weight &&
               run->weights[k].away[1] != weight)
            k++;
        if (k < run->count) continue;
        m->full |= k == HR_BASE_SLOTS / 2;
        if (m->full) return;
        run->weights[run->count++] = (fetched){ .away = { weight, m->scales[weight] } };
    }
}

/* The next run at or after step `s`. */
static reading find_run(streaming *m, int32_t s)
{
    const hr_program *program = m->program;
    while (s < program->step_count && !reads_away(m, s)) s++;
    reading run = { .first = s, .last = s - 1 };
    if (s == program->step_count) return run;
    run.last = s;
    run.loop = program->steps[s].loop;
    for (int32_t l = run.loop; l != HR_NONE; l = program->loops[l].parent) {
        if (!m->narrow[l]) continue;
        run.first = program->loops[l].step_first;
        run.last = program->loops[l].step_last;
        run.loop = program->loops[l].parent;
    }
    for (s = run.first; s <= run.last; s++) add_weights(m, s, &run);
    return run;
}

/* ---- the new list */

static void append(streaming *m, hr_step step)
{
    if (m->count == m->program->step_max) m->full = true;
    else m->steps[m->count++] = step;
}

static int32_t add_window(streaming *m, int32_t away, int32_t home)
{
    hr_program *program = m->program;
    m->full |= program->tensor_count == program->tensor_max;
    if (m->full || away == HR_NONE) return HR_NONE;
    hr_tensor *window = &program->tensors[program->tensor_count];
    *window = program->tensors[away];
    window->space = HR_SPACE_HOST;
    window->role = HR_ROLE_ACTIVATION;
    window->home = home;
    window->view_of = HR_NONE;
    window->view_offset_bytes = 0;
    snprintf(window->name, sizeof window->name, "%.54s, window", program->tensors[away].name);
    return program->tensor_count++;
}

/* One half of a transfer, beside the first step of its run. `to` null: a half that waits. */
static void append_half(streaming *m, const reading *run, int16_t op, const fetched *weight,
                        const int32_t *from, const int32_t *to)
{
    hr_step step = m->program->steps[run->first];
    const hr_transfer_attr attr = { weight->slot };
    step.op = op;
    step.loop = run->loop;
    memset(step.attr, 0, sizeof step.attr);
    memcpy(step.attr, &attr, sizeof attr);
    for (int32_t i = 0; i < HR_IN_MAX; i++) step.in[i] = i < 2 ? from[i] : HR_NONE;
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step.out[k] = to && k < 2 ? to[k] : HR_NONE;
    append(m, step);
}

/* Takes over the windows that the run before has of the same weights. */
static void keep(const reading *before, reading *run)
{
    for (int32_t k = 0; k < run->count; k++)
        for (int32_t i = 0; i < before->count; i++)
            if (before->weights[i].away[0] == run->weights[k].away[0]) {
                run->weights[k] = before->weights[i];
                run->weights[k].kept = true;
            }
}

static void begin(streaming *m, reading *run)
{
    for (int32_t k = 0; k < run->count && !m->full; k++) {
        fetched *weight = &run->weights[k];
        if (weight->kept) continue;
        for (int32_t i = 0; i < 2; i++)
            weight->window[i] = add_window(m, weight->away[i], run->loop);
        weight->slot = HR_SLOTS_MOST + m->slot++ % HR_BASE_SLOTS;
        append_half(m, run, m->begin, weight, weight->away, weight->window);
    }
}

static void wait_for(streaming *m, const reading *run)
{
    for (int32_t k = 0; k < run->count; k++)
        if (!run->weights[k].kept)
            append_half(m, run, m->wait, &run->weights[k], run->weights[k].window, NULL);
}

/* Appends the steps of a run, which read its windows. */
static void append_run(streaming *m, const reading *run)
{
    for (int32_t s = run->first; s <= run->last; s++) {
        hr_step step = m->program->steps[s];
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            for (int32_t k = 0; k < run->count && step.in[i] != HR_NONE; k++)
                for (int32_t part = 0; part < 2; part++)
                    if (step.in[i] == run->weights[k].away[part])
                        step.in[i] = run->weights[k].window[part];
        append(m, step);
    }
}

static void stream_all(streaming *m)
{
    const hr_program *program = m->program;
    const int32_t count = program->step_count;
    reading run = find_run(m, 0), next;
    bool begun = false;
    for (int32_t s = 0; s < count && !m->full; run = next) {
        while (s < run.first) append(m, program->steps[s++]);
        if (s == count) return;
        next = find_run(m, run.last + 1);
        if (!begun) begin(m, &run);
        wait_for(m, &run);
        begun = next.first < count && next.loop == run.loop;
        if (begun) keep(&run, &next);
        if (begun) begin(m, &next);
        append_run(m, &run);
        s = run.last + 1;
    }
}

static bool has_base_away(const hr_program *program)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->tensors[program->params[p].weight].space == HR_SPACE_BASE) return true;
    return false;
}

hr_status hr_stream(hr_program *program, hr_region *scratch, hr_error *err)
{
    const int64_t kept = scratch->used;
    if (!has_base_away(program)) return HR_OK;
    streaming m = { .program = program,
                    .narrow = hr_region_take(scratch, program->loop_max, sizeof *m.narrow),
                    .scales = hr_region_take_raw(scratch, program->tensor_max, sizeof *m.scales),
                    .steps = hr_region_take_raw(scratch, program->step_max, sizeof *m.steps) };
    if (!m.narrow || !m.scales || !m.steps)
        return hr_fail(err, HR_FAILURE, "out of memory for the transfers of %d operations",
                       program->step_max);
    for (int32_t t = 0; t < program->tensor_max; t++) m.scales[t] = HR_NONE;
    for (int32_t p = 0; p < program->param_count; p++)
        m.scales[program->params[p].weight] = program->params[p].scales;
    for (int32_t op = 0; op < program->backend->op_count; op++) {
        if (program->backend->ops[op]->transfer == HR_TRANSFER_FETCH_BEGIN) m.begin = (int16_t)op;
        if (program->backend->ops[op]->transfer == HR_TRANSFER_FETCH_WAIT) m.wait = (int16_t)op;
    }
    find_narrow(&m);
    stream_all(&m);
    if (m.full)
        return hr_fail(err, HR_FAILURE, "the program has more than %d operations and %d tensors",
                       program->step_max, program->tensor_max);
    memcpy(program->steps, m.steps, (size_t)m.count * sizeof *m.steps);
    program->step_count = m.count;
    hr_program_span_loops(program);
    scratch->used = kept;
    return HR_OK;
}
