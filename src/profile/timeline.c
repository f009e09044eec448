/* SPDX-License-Identifier: Apache-2.0 */
/* profile/timeline.c - calls are kept until the buffer is full, so that a short step has no output
 * inside.
 *
 * Source  the Trace Event Format of Chromium. */
#include "profile/timeline.h"

#include <string.h>

#include "base/writer.h"
#include "graph/backend.h"
#include "plan/cost.h"
#include "plan/lifetimes.h"
#include "profile/names.h"

const char hr_timeline_begin[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

enum { CALLS = 2048, STEPS_MOST = 1 << 15, TEXT_BYTES = 16 << 10, EVENT_BYTES = 768 };

typedef struct {
    int64_t begun_ns, ended_ns, resident;
    int32_t step;
} call;

struct hr_timeline {
    hr_file_out out;
    hr_status status;
    hr_error err;
    const hr_program *program;
    const hr_rates *rates;
    int64_t first_ns, last_ns; /* of the first and the last call; 0: none yet */
    int64_t alive[STEPS_MOST]; /* planned, for each step; of longer programs none */
    int64_t resident;          /* written last */
    int32_t count;
    call calls[CALLS];
    char text[TEXT_BYTES];
};

_Static_assert(sizeof(struct hr_timeline) <= HR_PROFILE_TRACE_BYTES, "callers have that much");

hr_status hr_timeline_open(hr_timeline **trace, const hr_profile_file *where, hr_error *err)
{
    hr_timeline *t = where->memory;
    *trace = NULL;
    hr_status status = hr_file_check_kind(where->path, hr_timeline_begin, "trace", err);
    if (status != HR_OK) return status;
    memset(t, 0, sizeof *t);
    status = hr_file_begin_path(&t->out, where->path, err);
    if (status == HR_OK) *trace = t;
    return status;
}

static void append(hr_timeline *t, const hr_writer *w)
{
    if (t->status == HR_OK) t->status = hr_file_append(&t->out, w->text, w->used, &t->err);
}

void hr_timeline_place(hr_timeline *t, const hr_program *program, const hr_plan *plan,
                       const hr_rates *rates)
{
    hr_writer w = { t->text, TEXT_BYTES };
    t->program = program;
    t->rates = rates;
    if (program->step_count <= STEPS_MOST) hr_lifetimes_alive(program, plan, t->alive);
    hr_put(&w,
           "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":"
           "\"headroom\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{"
           "\"name\":\"operations\"}}",
           hr_timeline_begin);
    append(t, &w);
}

static double micros(const hr_timeline *t, int64_t ns)
{
    return 1e-3 * (double)(ns - t->first_ns);
}

/* Names consist of letters of this program, which JSON takes as they are. */
static void put_call(hr_timeline *t, const call *c, hr_writer *w)
{
    const hr_program *program = t->program;
    const hr_step *step = &program->steps[c->step];
    const int32_t out = step->out[0];
    const int32_t layer = out == HR_NONE ? HR_NONE : program->tensors[out].layer;
    hr_put(w, ",\n{\"name\":\"%s, %s", program->backend->ops[step->op]->name,
           hr_profile_part(step->block));
    if (layer != HR_NONE) hr_put(w, " of layer %d", layer);
    hr_put(w,
           "\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
           "\"operation\":%d,\"flops\":%.0f}}",
           hr_profile_direction(step->direction), micros(t, c->begun_ns),
           1e-3 * (double)(c->ended_ns - c->begun_ns), c->step, hr_cost_flops(program, c->step));
    if (program->step_count <= STEPS_MOST)
        hr_put(
            w,
            ",\n{\"name\":\"arena\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"args\":{\"live\":%lld}}",
            micros(t, c->begun_ns), (long long)t->alive[c->step]);
    if (c->resident == t->resident) return;
    t->resident = c->resident;
    hr_put(
        w,
        ",\n{\"name\":\"process\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"args\":{\"measured\":%lld}}",
        micros(t, c->ended_ns), (long long)c->resident);
}

void hr_timeline_flush(hr_timeline *t)
{
    hr_writer w = { t->text, TEXT_BYTES };
    for (int32_t i = 0; i < t->count; i++) {
        put_call(t, &t->calls[i], &w);
        if (i + 1 < t->count && w.used + EVENT_BYTES < TEXT_BYTES) continue;
        append(t, &w);
        w.used = 0;
    }
    t->count = 0;
}

void hr_timeline_add(hr_timeline *t, int32_t step, int64_t begun_ns, int64_t ended_ns,
                     int64_t resident)
{
    if (!t->first_ns) t->first_ns = begun_ns;
    t->last_ns = ended_ns;
    t->calls[t->count++] = (call){ begun_ns, ended_ns, resident, step };
    if (t->count == CALLS) hr_timeline_flush(t);
}

hr_status hr_timeline_finish(hr_timeline *t, int64_t planned, int64_t measured, int64_t budget,
                             hr_error *err)
{
    hr_writer w = { t->text, TEXT_BYTES };
    const double ends[] = { 0, micros(t, t->last_ns) };
    for (int32_t i = 0; i < 2; i++) {
        hr_put(&w,
               ",\n{\"name\":\"process\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"args\":{\"planned\":"
               "%lld,\"measured\":%lld",
               ends[i], (long long)planned, (long long)measured);
        if (budget) hr_put(&w, ",\"budget\":%lld", (long long)budget);
        hr_put(&w, "}}");
    }
    hr_put(&w, "\n]}\n");
    append(t, &w);
    if (t->status != HR_OK) return hr_fail(err, t->status, "%s", t->err.message);
    return hr_file_commit(&t->out, err);
}

void hr_timeline_close(hr_timeline *t)
{
    if (t) hr_file_abort(&t->out);
}
