/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/trace.h - the back end `trace`: the executor runs a program, and nothing is
 * computed.
 *
 * A launch describes the call as addresses, {space, offset}, and compares it with the plan file as
 * the judge reads it: the operation, each operand in the buffer that the file names for it, alive
 * at that step, and room for its bytes. The arena is a range of addresses that no page backs and
 * that may not be accessed, so plans for larger machines run too. */
#ifndef HR_TESTS_SUPPORT_TRACE_H
#define HR_TESTS_SUPPORT_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "dev/executor.h"
#include "judge/judged.h"
#include "ops/list.h"

/* The spaces that an address can be in. AWAY: any but the host; the call has no pointer for it. */
typedef enum { TRACE_NULL, TRACE_HOST, TRACE_AWAY, TRACE_NOWHERE } trace_space;

typedef struct {
    trace_space space;
    int64_t offset;
} trace_address;

/* A call as the device got it. */
typedef struct {
    int32_t step;
    const char *op;
    trace_address in[HR_IN_MAX], out[HR_OUT_MAX], scratch;
    int64_t rows;
} trace_call;

typedef struct {
    hr_device device; /* first */
    hr_memory memory; /* the range of addresses */
    hr_executor executor;
    void *tables;
    hr_judged_plan file;
    int64_t *calls;  /* [step_count] */
    trace_call call; /* the present one */
    char wrong[400]; /* the first difference; empty: none */
} trace;

static inline trace_address trace_address_of(const trace *t, const void *pointer)
{
    const int64_t offset = (int64_t)((uintptr_t)pointer - (uintptr_t)t->memory.arena);
    if (!pointer) return (trace_address){ TRACE_NULL, 0 };
    if (offset < 0 || offset >= t->memory.arena_bytes) return (trace_address){ TRACE_NOWHERE, 0 };
    return (trace_address){ TRACE_HOST, offset };
}

static inline void trace_fail(trace *t, const char *what, const char *why, const char *buffer,
                              int64_t bytes, int64_t offset)
{
    if (t->wrong[0]) return;
    snprintf(t->wrong, sizeof t->wrong, "step %d, %s: %s, %lld bytes at %lld, %s %s", t->call.step,
             t->call.op, what, (long long)bytes, (long long)offset, why, buffer);
}

/* Compares an operand with one access of the step in the file. A view is at its offset in the first
 * call of a step, and moves by its bytes. */
static inline void trace_operand(trace *t, const char *what, trace_address at, int64_t bytes,
                                 const hr_judged_access *access, bool is_read)
{
    const hr_judged_buffer *buffer = &t->file.buffers[access->buffer];
    const hr_judged_buffer *root = &t->file.buffers[buffer->root];
    const int32_t s = t->call.step;
    const char *why = NULL;
    if (at.space == TRACE_NULL) why = "null instead of";
    else if (at.space == TRACE_NOWHERE) why = "outside of every space instead of";
    else if ((at.space == TRACE_AWAY) != (buffer->space != HR_JUDGED_HOST))
        why = "in another space than";
    else if ((access->kind == HR_JUDGED_READ) != is_read) why = "not the file's access of";
    else if (s < root->declared_first || s > root->declared_last) why = "not alive:";
    else if (at.offset < root->offset || bytes > root->bytes ||
             at.offset - root->offset > root->bytes - bytes)
        why = "not inside of";
    else if (t->calls[s] == 1 && at.offset != buffer->offset) why = "not the first byte of";
    else if ((at.offset - buffer->offset) % buffer->bytes) why = "not a whole iteration of";
    if (why) trace_fail(t, what, why, buffer->name, bytes, at.offset);
}

static inline int64_t trace_bytes(const hr_program *program, int32_t tensor, int64_t rows)
{
    const hr_tensor *shape = &program->tensors[tensor];
    return hr_min(rows, shape->rows) * shape->row_bytes + shape->fixed_bytes;
}

/* Compares the operands of one side, and returns the accesses that the file lists after them. */
static inline const hr_judged_access *trace_side(trace *t, const hr_program *program,
                                                 const int32_t *tensors, const trace_address *at,
                                                 int32_t count, const hr_judged_access *next,
                                                 const hr_judged_access *end, bool is_read)
{
    for (int32_t i = 0; i < count; i++) {
        char what[24];
        snprintf(what, sizeof what, "%s %d", is_read ? "input" : "output", i);
        if (tensors[i] == HR_NONE) {
            if (at[i].space != TRACE_NULL) trace_fail(t, what, "omitted, has", "an address", 0, 0);
            continue;
        }
        if (next == end) {
            trace_fail(t, what, "not in", "the file", 0, 0);
            return end;
        }
        trace_operand(t, what, at[i], trace_bytes(program, tensors[i], t->call.rows), next++,
                      is_read);
    }
    return next;
}

/* The address of an operand as a call has it. Services get values outside of the arena as offsets
 * from the executor. */
static inline trace_address trace_operand_of(const trace *t, const hr_program *program,
                                             int32_t tensor, const void *pointer)
{
    if (tensor == HR_NONE || program->tensors[tensor].space == HR_SPACE_HOST)
        return trace_address_of(t, pointer);
    if (pointer) return (trace_address){ TRACE_NOWHERE, 0 };
    return (trace_address){ TRACE_AWAY, hr_executor_offset(&t->executor, tensor) };
}

/* Records a call and compares it. */
static inline void trace_record(trace *t, const hr_program *program, int32_t s, const hr_call *call)
{
    const hr_step *step = &program->steps[s];
    const hr_op_facts *facts = hr_step_facts(program, step);
    const hr_judged_step *listed = &t->file.steps[s];
    const hr_judged_access *next = &t->file.accesses[listed->access_first];
    const hr_judged_access *end = &t->file.accesses[listed->access_end];
    t->calls[s]++;
    t->call = (trace_call){ .step = s,
                            .op = hr_step_op(program, step)->name,
                            .scratch = trace_address_of(t, call->scratch),
                            .rows = call->rows };
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        t->call.in[i] = trace_operand_of(t, program, step->in[i], call->in[i]);
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        t->call.out[k] = trace_operand_of(t, program, step->out[k], call->out[k]);
    if (strcmp(listed->op, t->call.op)) {
        trace_fail(t, "the call", "in the file it is", listed->op, 0, 0);
        return;
    }
    next = trace_side(t, program, step->in, t->call.in, HR_IN_MAX, next, end, true);
    next = trace_side(t, program, step->out, t->call.out, HR_OUT_MAX, next, end, false);
    const int64_t scratch = facts->scratch_bytes
                                ? facts->scratch_bytes(step->attr, call->rows, call->threads)
                                : 0;
    if (next != end) trace_operand(t, "scratch", t->call.scratch, scratch, next++, false);
    else if (scratch || call->scratch) trace_fail(t, "scratch", "not in", "the file", scratch, 0);
    if (next != end)
        trace_fail(t, "the call", "without the access of", t->file.buffers[next->buffer].name, 0,
                   0);
}

static inline void trace_launch(const hr_device *device, const hr_program *program, int32_t step,
                                const hr_call *call)
{
    trace_record((trace *)device, program, step, call);
}

static inline hr_status trace_host(void *context, hr_executor *executor, int32_t step,
                                   const hr_call *call, hr_error *err)
{
    (void)err;
    trace_record(context, executor->program, step, call);
    return HR_OK;
}

static const hr_service trace_services[] = { { HR_NONE, HR_LOOP_OTHER, trace_host, NULL } };

/* Opens a trace of a program with its plan, beside the plan file at `path`. */
static inline hr_status trace_open(trace *t, const hr_program *program, const hr_plan *plan,
                                   const char *path, hr_error *err)
{
    *t = (trace){ .device = { .backend = program->backend, .launch = trace_launch } };
    const hr_status status = hr_verify_open(path, &t->file, err);
    if (status != HR_OK) return status;
    if (t->file.step_count != program->step_count)
        return hr_fail(err, HR_FAILURE, "the file has %d steps, the program %d", t->file.step_count,
                       program->step_count);
    t->memory.arena_bytes = plan->arena_bytes;
    t->memory.arena = mmap(NULL, (size_t)plan->arena_bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->memory.arena == MAP_FAILED)
        return hr_fail(err, HR_FAILURE, "no range of %lld addresses", (long long)plan->arena_bytes);
    t->calls = calloc((size_t)program->step_count, sizeof *t->calls);
    t->executor = (hr_executor){
        .program = program, .plan = plan, .memory = &t->memory, .device = &t->device, .context = t
    };
    const int64_t bytes = hr_round_up(hr_executor_bytes(program) + program->tensor_count + 64, 64);
    t->tables = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(t->tables, bytes);
    const hr_status placed = hr_executor_place(&region, &t->executor, err);
    hr_executor_serve(&t->executor, (hr_services){ trace_services, 1, t });
    return placed == HR_OK ? hr_executor_check_services(&t->executor, err) : placed;
}

/* Runs every section once, two iterations of each loop whose count depends on data. */
static inline hr_status trace_run(trace *t, hr_error *err)
{
    const hr_program *program = t->executor.program;
    hr_status status = HR_OK;
    for (int32_t l = 0; l < program->loop_count; l++)
        if (t->executor.count[l] == HR_MANY) t->executor.count[l] = 2;
    for (int32_t l = 1; l < program->loop_count && status == HR_OK && !t->wrong[0]; l++)
        if (program->loops[l].parent == 0) status = hr_executor_run(&t->executor, l, err);
    return status;
}

static inline void trace_close(trace *t)
{
    hr_verify_close(&t->file);
    if (t->memory.arena && t->memory.arena != MAP_FAILED)
        munmap(t->memory.arena, (size_t)t->memory.arena_bytes);
    free(t->calls);
    free(t->tables);
}

#endif
