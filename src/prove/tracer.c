/* SPDX-License-Identifier: Apache-2.0 */
/* prove/tracer.c - observes a run and writes its trace, or compares it with one.
 *
 * A gradient is read when its update has just read it: nothing may change it later, and there every
 * strategy has the sum over the whole batch. Weights and states are read as the operands of saving,
 * where those that are in a file pass through the arena. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/path.h"
#include "base/residual.h"
#include "ops/host/host.h"
#include "ops/list.h"
#include "prove/trace.h"
#include "prove/trace_layout.h"
#include "prove/values.h"

/* A piece of an array of the trace, as it passes in the arena. */
typedef struct {
    const hr_trace_array *array;
    const char *name, *kind; /* "wq", "gradient" */
    int64_t step;            /* of training, from 0; -1: at the end */
    int64_t first_byte;      /* of the array */
    const uint8_t *memory;
    int64_t bytes;
} piece;

static int64_t place_of(const hr_tracer *w, const piece *p)
{
    return p->array->offset + hr_max(p->step, 0) * w->trace->gradients_bytes + p->first_byte;
}

static void fail(hr_tracer *w, hr_status status, const hr_error *err)
{
    if (w->status != HR_OK) return;
    w->status = status;
    w->err = *err;
}

static void write_piece(hr_tracer *w, const piece *p)
{
    hr_error err;
    int64_t done = 0;
    while (done < p->bytes && w->status == HR_OK) {
        const ssize_t wrote = pwrite(w->trace->file, p->memory + done, (size_t)(p->bytes - done),
                                     place_of(w, p) + done);
        if (wrote > 0) done += wrote;
        else if (wrote < 0 && errno != EINTR)
            fail(w,
                 hr_fail(&err, HR_FAILURE,
                         "the trace of the reference run cannot be written: %s; --dir gives "
                         "another directory",
                         hr_reason(errno)),
                 &err);
    }
}

/* ---- comparing */

static double element(hr_dtype dtype, const uint8_t *memory, int64_t i)
{
    if (dtype == HR_F32) return (double)((const float *)memory)[i];
    if (dtype == HR_U8) return memory[i]; /* a code */
    return (double)hr_bf16_to_f32(((const hr_bf16 *)memory)[i]);
}

/* Position on the line of all fp32 numbers, in order. */
static int64_t rank(double value)
{
    const float narrow = (float)value;
    int32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

/* The sums over one tensor. */
typedef struct {
    double difference, reference; /* sums of squares */
    int64_t count;                /* of elements */
    double most;                  /* largest difference of two elements */
    int64_t ulps, k, n;           /* of that */
    double expected, found;
} sums;

static void add_element(sums *s, const piece *p, int64_t at, double expected, double found)
{
    int64_t k, n;
    if (!hr_layout_place((hr_layout)p->array->layout, p->array->K, p->array->N, at, &k, &n)) return;
    const double difference = isnan(expected) && isnan(found) ? 0 : fabs(expected - found);
    const double most = isnan(difference) ? (double)INFINITY : difference;
    s->count++;
    s->reference += expected * expected;
    s->difference += most * most;
    if (most == 0 && !(signbit(expected) ^ signbit(found))) return;
    const int64_t ulps = isfinite(most) ? llabs(rank(expected) - rank(found)) : INT64_MAX;
    s->ulps = hr_max(s->ulps, hr_max(ulps, 1)); /* 1: zeros of different signs */
    if (most < s->most) return;
    s->most = most;
    s->k = k;
    s->n = n;
    s->expected = expected;
    s->found = found;
}

void hr_difference_add(hr_difference *found, double difference, double reference,
                       const char *tensor)
{
    double relative = difference > 0 ? difference / reference : 0;
    if (isnan(relative)) relative = (double)INFINITY;
    found->tensors++;
    found->different += difference > 0;
    if (relative <= found->relative) return;
    found->relative = relative;
    snprintf(found->tensor, sizeof found->tensor, "%s", tensor);
}

static void describe(const piece *p, char text[HR_PROOF_TEXT_BYTES])
{
    if (p->step < 0) snprintf(text, HR_PROOF_TEXT_BYTES, "%s of %s at the end", p->kind, p->name);
    else
        snprintf(text, HR_PROOF_TEXT_BYTES, "%s of %s at step %lld", p->kind, p->name,
                 (long long)p->step + 1);
}

/* Adds the sums of a piece that has been compared. Zeros of different signs count: bits are
 * promised. A gradient that cancels (a constant added to all keys has none) is only rounding, so
 * its norm counts as that of small elements. */
static void add_sums(hr_tracer *w, const piece *p, const sums *s)
{
    char text[HR_PROOF_TEXT_BYTES];
    const double before = w->found.relative;
    describe(p, text);
    const double least = w->floor * sqrt((double)s->count);
    hr_difference_add(&w->found, sqrt(s->difference), fmax(sqrt(s->reference), least), text);
    if (s->difference == 0 && s->ulps > 0) w->found.different++;
    w->found.absolute = fmax(w->found.absolute, s->most);
    w->found.ulps = hr_max(w->found.ulps, s->ulps);
    if (w->found.relative == before && *w->found.where) return;
    if (s->difference == 0 && s->ulps == 0) return;
    if (!*w->found.tensor) snprintf(w->found.tensor, sizeof w->found.tensor, "%s", text);
    snprintf(w->found.where, sizeof w->found.where,
             "%s: element [%lld, %lld] is %.9g, in the reference %.9g", text, (long long)s->k,
             (long long)s->n, s->found, s->expected);
}

/* Compares element by element. */
static void measure_piece(hr_tracer *w, const piece *p)
{
    const hr_dtype dtype = (hr_dtype)p->array->dtype;
    const int64_t width = hr_dtype_bytes(dtype);
    sums s = { 0 };
    hr_error err;
    for (int64_t done = 0, count; done < p->bytes && w->status == HR_OK; done += count) {
        count = hr_min(p->bytes - done, HR_TRACE_BUFFER_BYTES);
        const hr_status status = hr_file_read(w->trace->file, "the trace", place_of(w, p) + done,
                                              w->buffer, count, &err);
        if (status != HR_OK) fail(w, status, &err);
        for (int64_t i = 0; status == HR_OK && i < count / width; i++)
            add_element(&s, p, (p->first_byte + done) / width + i, element(dtype, w->buffer, i),
                        element(dtype, p->memory + done, i));
    }
    add_sums(w, p, &s);
}

static bool is_equal(hr_tracer *w, const piece *p)
{
    hr_error err;
    bool equal = true;
    for (int64_t done = 0, count; done < p->bytes && equal; done += count) {
        count = hr_min(p->bytes - done, HR_TRACE_BUFFER_BYTES);
        const hr_status status = hr_file_read(w->trace->file, "the trace", place_of(w, p) + done,
                                              w->buffer, count, &err);
        if (status != HR_OK) fail(w, status, &err);
        equal = status == HR_OK && !memcmp(w->buffer, p->memory + done, (size_t)count);
    }
    return equal;
}

static void take(hr_tracer *w, const piece *p)
{
    w->seen_bytes += p->bytes;
    if (w->writes) {
        write_piece(w, p);
        return;
    }
    if (p->step >= 0 && p->step < w->first_step) return;
    w->found.elements += p->bytes / hr_dtype_bytes((hr_dtype)p->array->dtype);
    if (!w->norm_wise && is_equal(w, p)) w->found.tensors++;
    else if (w->status == HR_OK) measure_piece(w, p);
    if (p->first_byte > 0) w->found.tensors--; /* a further piece of the same tensor */
}

/* ---- what passes */

/* The parameter that a step updates with a gradient, or with a piece or strip of it; HR_NONE: it
 * updates none. */
static int32_t param_of_update(const hr_executor *executor, int32_t s)
{
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    if (step->in[0] == HR_NONE || step->out[0] == HR_NONE) return HR_NONE;
    const hr_role role = (hr_role)program->tensors[hr_tensor_root(program, step->in[0])].role;
    if (role != HR_ROLE_GRADIENT || !hr_executor_commits(program, s)) return HR_NONE;
    const int32_t master = hr_tensor_root(program, step->out[0]);
    for (int32_t p = 0; p < program->param_count; p++)
        if (!program->params[p].rule.frozen && program->params[p].master == master) return p;
    return HR_NONE;
}

/* Takes the gradient that an update has read, or a piece of it. */
static void take_gradient(hr_tracer *w, const hr_executor *executor, int32_t s)
{
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    const int32_t param = param_of_update(executor, s);
    if (param == HR_NONE) return;
    const hr_trace_param *traced = &w->trace->params[param];
    const int32_t master = program->params[param].master;
    const int64_t updated = hr_executor_offset(executor, step->out[0]) -
                            hr_executor_offset(executor, master);
    const int64_t first = updated / hr_dtype_bytes((hr_dtype)program->tensors[master].dtype);
    const piece p = { .array = &traced->gradient,
                      .name = traced->name,
                      .kind = "gradient",
                      .step = executor->clock,
                      .first_byte = first * hr_dtype_bytes((hr_dtype)traced->gradient.dtype),
                      .memory = hr_executor_address(executor, step->in[0]),
                      .bytes = hr_tensor_bytes(&program->tensors[step->in[0]]) };
    take(w, &p);
}

/* Takes the fp32 numbers of a bf16 weight with a residual, in chunks on the stack. */
static void take_joined(hr_tracer *w, const piece *all, const hr_bf16 *weight, hr_residual residual)
{
    enum { CHUNK = 2048 };
    float values[CHUNK];
    const int64_t elements = all->bytes / (int64_t)sizeof *values;
    piece p = *all;
    p.memory = (const uint8_t *)values;
    for (int64_t first = 0, count; first < elements; first += count) {
        count = hr_min(CHUNK, elements - first);
        for (int64_t i = 0; i < count; i++)
            values[i] = hr_residual_value(weight, residual, first + i);
        p.first_byte = first * (int64_t)sizeof *values;
        p.bytes = count * (int64_t)sizeof *values;
        take(w, &p);
    }
}

/* Takes the master and the states that a step of saving reads. */
static void take_values(hr_tracer *w, const hr_executor *executor, int32_t s)
{
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    if (step->op != HR_OP_save) return;
    const hr_host_attr *attr = (const hr_host_attr *)step->attr;
    const hr_trace_param *traced = &w->trace->params[attr->param];
    const int32_t residual = hr_program_residual(program, attr->param);
    for (int32_t i = 0; traced->trained && i <= w->trace->state_count; i++) {
        if (step->in[i] == HR_NONE) continue;
        const piece p = { .array = &traced->kept[i],
                          .name = traced->name,
                          .kind = i ? w->trace->state_names[i - 1] : "weight",
                          .step = -1,
                          .memory = hr_executor_address(executor, step->in[i]),
                          .bytes = traced->kept[i].bytes };
        if (i == 0 && residual != HR_NONE)
            take_joined(w, &p, hr_executor_address(executor, step->in[0]),
                        hr_program_residual_at(program, hr_executor_address(executor, residual)));
        else take(w, &p);
    }
}

static void watch(void *context, const hr_executor *executor, int32_t step)
{
    hr_tracer *w = context;
    if (w->status != HR_OK) return;
    hr_error err;
    const hr_status status = w->notes ? hr_values_note(w->notes, executor, step, &err) : HR_OK;
    if (status != HR_OK) fail(w, status, &err);
    if (w->look) w->look(w->looking, executor, step);
    if (w->disturb) w->disturb(w->disturbing, executor, step);
    if (w->is_last) take_values(w, executor, step);
    else if (executor->clock < w->trace->steps) take_gradient(w, executor, step);
}

/* ---- the run */

static hr_status placed(void *context, const hr_executor *executor, const hr_rates *rates,
                        hr_error *err)
{
    hr_tracer *w = context;
    (void)rates;
    if (!w->writes) return hr_trace_check(w->trace, executor->program, err);
    return hr_trace_describe(w->trace, executor->program, w->trace->steps, err);
}

static hr_status check_seen(const hr_tracer *w, int64_t expected, const char *what, hr_error *err)
{
    if (w->status != HR_OK) return hr_fail(err, w->status, "%s", w->err.message);
    if (w->seen_bytes == expected) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the proof saw %lld bytes of %s, and there are %lld",
                   (long long)w->seen_bytes, what, (long long)expected);
}

/* Compares a number of a step: the same bits, or the same NaN. */
static void compare_number(hr_tracer *w, const char *name, int64_t step, double expected,
                           double found)
{
    char text[HR_PROOF_TEXT_BYTES];
    const bool same = isnan(expected) ? isnan(found) : expected == found;
    snprintf(text, sizeof text, "%s of step %lld", name, (long long)step + 1);
    const double before = w->found.relative;
    hr_difference_add(&w->found, same ? 0 : fabs(expected - found), fabs(expected), text);
    w->found.tensors--; /* a number is none */
    if (!same && !(w->found.relative == before && *w->found.where))
        snprintf(w->found.where, sizeof w->found.where, "%s: %.17g, in the reference %.17g", text,
                 found, expected);
}

static hr_status stepped(void *context, const hr_run_state *state, const hr_measures *measures,
                         hr_error *err)
{
    hr_tracer *w = context;
    const int64_t step = state->step - 1;
    const hr_status status = check_seen(w, w->trace->gradients_bytes, "gradients", err);
    w->seen_bytes = 0;
    if (status != HR_OK) return status;
    if (w->writes) {
        w->trace->loss[step] = measures->loss;
        w->trace->grad_norm[step] = measures->grad_norm;
        if (step == 0) w->trace->scale = measures->loss_scale > 0 ? measures->loss_scale : 1;
        w->steps_done = state->step;
    } else if (step >= w->first_step) {
        compare_number(w, "loss", step, w->trace->loss[step], measures->loss);
        compare_number(w, "gradient norm", step, w->trace->grad_norm[step], measures->grad_norm);
    }
    return HR_OK;
}

static hr_status last(void *context, const hr_executor *executor, hr_error *err)
{
    hr_tracer *w = context;
    (void)executor, (void)err;
    w->is_last = !w->ignores_values;
    return HR_OK;
}

hr_status hr_tracer_finish(hr_tracer *w, hr_error *err)
{
    int64_t expected = 0;
    for (int32_t p = 0; p < w->trace->param_count; p++)
        for (int32_t i = 0; i < HR_TRACE_KEPT && w->is_last; i++)
            expected += w->trace->params[p].kept[i].bytes;
    if (w->writes) w->trace->steps = w->steps_done; /* a text may have fewer */
    return check_seen(w, expected, "weights and states", err);
}

hr_observer hr_tracer_observer(hr_tracer *tracer, int64_t last_step)
{
    return (hr_observer){ .context = tracer,
                          .last_step = last_step,
                          .placed = placed,
                          .watch = watch,
                          .stepped = stepped,
                          .last = last };
}
