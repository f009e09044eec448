/* SPDX-License-Identifier: Apache-2.0 */
/* dev/executor.c - iterates over steps and loops. */
#include "dev/executor.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "graph/service.h"
#include "mem/poison.h"

int64_t hr_executor_bytes(const hr_program *program)
{
    return program->loop_count * (int64_t)(2 * sizeof(int64_t) + 1) + 2 * program->step_count +
           5 * 64;
}

/* The accumulator that a step writes through `tensor`: the tensor that owns the bytes, or one
 * number of a table of them. */
static int32_t accumulator_of(const hr_program *program, int32_t tensor)
{
    const int32_t root = hr_tensor_root(program, tensor);
    return program->tensors[root].role == HR_ROLE_SUM ? tensor : root;
}

/* An accumulator is cleared by the first step that writes it, in program order. */
static void find_first_writers(hr_executor *executor, uint8_t *written)
{
    const hr_program *program = executor->program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const char *letters = hr_step_op(program, step)->out;
        for (int32_t k = 0; letters[k]; k++) {
            if (step->out[k] == HR_NONE || (letters[k] != 'a' && letters[k] != 'A')) continue;
            const int32_t sum = accumulator_of(program, step->out[k]);
            if (!written[sum]) executor->clears[s] |= (uint8_t)(1 << k);
            written[sum] = 1;
        }
    }
}

bool hr_executor_commits(const hr_program *program, int32_t index)
{
    const hr_step *step = &program->steps[index];
    const char *letters = hr_step_op(program, step)->out;
    for (int32_t k = 0; letters[k]; k++) {
        if (step->out[k] == HR_NONE || (letters[k] != 'u' && letters[k] != 'U')) continue;
        if (program->tensors[hr_tensor_root(program, step->out[k])].home == HR_NONE) return true;
    }
    return false;
}

hr_status hr_executor_place(hr_region *region, hr_executor *executor, hr_error *err)
{
    const hr_program *program = executor->program;
    executor->turn = hr_region_take(region, program->loop_count, sizeof *executor->turn);
    executor->count = hr_region_take(region, program->loop_count, sizeof *executor->count);
    executor->open = hr_region_take(region, program->loop_count, 1);
    executor->clears = hr_region_take(region, program->step_count, 1);
    executor->commits = hr_region_take(region, program->step_count, 1);
    const int64_t kept = region->used;
    uint8_t *written = hr_region_take(region, program->tensor_count, 1);
    if (!executor->turn || !executor->count || !executor->open || !executor->clears ||
        !executor->commits || !written)
        return hr_fail(err, HR_FAILURE, "out of memory for %d operations", program->step_count);
    for (int32_t l = 0; l < program->loop_count; l++) executor->count[l] = program->loops[l].count;
    find_first_writers(executor, written);
    for (int32_t s = 0; s < program->step_count; s++)
        executor->commits[s] = hr_executor_commits(program, s);
    region->used = kept;
    executor->rows_here = INT64_MAX;
    return HR_OK;
}

int64_t hr_executor_offset(const hr_executor *executor, int32_t tensor)
{
    const hr_program *program = executor->program;
    int64_t offset = 0;
    for (;;) {
        const hr_tensor *described = &program->tensors[tensor];
        if (described->view_of == HR_NONE || described->view_align) break;
        offset += described->view_offset_bytes;
        if (described->view_loop != HR_NONE)
            offset += executor->turn[described->view_loop] * described->view_stride_bytes;
        tensor = described->view_of;
    }
    const int32_t buffer = executor->plan->buffer_of_tensor[tensor];
    HR_ASSERT(buffer != HR_NONE);
    return executor->plan->buffers[buffer].offset + offset;
}

void *hr_executor_address(const hr_executor *executor, int32_t tensor)
{
    HR_DEBUG_ASSERT(executor->program->tensors[tensor].space == HR_SPACE_HOST);
    return executor->memory->arena + hr_executor_offset(executor, tensor);
}

/* Returns the rows in the current iteration of a loop, and the global index of the first row. The
 * last iteration can have fewer rows at every depth: it has the remaining rows of the loop around
 * it. */
static int64_t rows_of_loop(const hr_executor *executor, int32_t loop, int64_t *first)
{
    enum { DEPTH_MOST = 16 };
    const hr_loop *loops = executor->program->loops;
    int32_t path[DEPTH_MOST], depth = 0;
    for (int32_t l = loop; l != HR_NONE; l = loops[l].parent) {
        HR_ASSERT(depth < DEPTH_MOST);
        if (loops[l].rows > 0) path[depth++] = l;
    }
    int64_t held = executor->rows_here;
    *first = 0;
    while (depth-- > 0) {
        const hr_loop *outer = &loops[path[depth]];
        const int64_t begin = executor->turn[path[depth]] * outer->rows;
        *first += begin;
        held = hr_min(hr_min(held, outer->rows_total) - begin, outer->rows);
    }
    return held;
}

static bool sums_start(const hr_executor *executor, int32_t step, int32_t tensor)
{
    const hr_program *program = executor->program;
    const int32_t home = program->tensors[hr_tensor_root(program, tensor)].home;
    for (int32_t l = program->steps[step].loop; l != HR_NONE && l != home;
         l = program->loops[l].parent)
        if (executor->turn[l] != 0) return false;
    return true;
}

/* The buffer in which a view lies at a block, wherever the plan has placed it; HR_NONE: the operand
 * is no such view. */
static int32_t aligned_in(const hr_program *program, int32_t tensor)
{
    for (; tensor != HR_NONE; tensor = program->tensors[tensor].view_of)
        if (program->tensors[tensor].view_align) return program->tensors[tensor].view_of;
    return HR_NONE;
}

/* Returns the address of an operand, null outside of the arena, and records its bytes as used, and
 * with an aligned view the room for its alignment. In a short last iteration a step gets only the
 * rows that exist, although its view covers more. Bytes are rounded up as in the plan. */
static void *operand(hr_executor *executor, int32_t tensor, int64_t rows)
{
    if (tensor == HR_NONE) return 0;
    const hr_tensor *described = &executor->program->tensors[tensor];
    if (described->space != HR_SPACE_HOST) return 0;
    uint8_t *address = hr_executor_address(executor, tensor);
    const int64_t bytes = hr_min(rows, described->rows) * described->row_bytes +
                          described->fixed_bytes;
    const int64_t first = address - executor->memory->arena;
    const int64_t align = hr_program_align(executor->program, HR_SPACE_HOST);
    hr_arena_note(executor->memory, address, hr_round_up(first + bytes, align) - first);
    const int32_t around = aligned_in(executor->program, tensor);
    if (around != HR_NONE)
        hr_arena_note(executor->memory, hr_executor_address(executor, around),
                      executor->program->tensors[around].fixed_bytes);
    return address;
}

/* Returns the rows that a step processes: the rows of its first row operand, or fewer in a short
 * last iteration. */
static int64_t rows_of_step(const hr_program *program, const hr_step *step, int64_t rows)
{
    const hr_op *op = hr_step_op(program, step);
    for (int32_t i = 0; op->in[i]; i++)
        if (step->in[i] != HR_NONE && program->tensors[step->in[i]].rows > 0)
            return hr_min(rows, program->tensors[step->in[i]].rows);
    for (int32_t i = 0; op->out[i]; i++)
        if (step->out[i] != HR_NONE && program->tensors[step->out[i]].rows > 0)
            return hr_min(rows, program->tensors[step->out[i]].rows);
    return 0;
}

/* The rows of an operand that a step with so many rows accesses. */
static int64_t rows_shown(const hr_step *step, const char *letters, int32_t index, int64_t rows)
{
    if (!step->in_parts || index >= (int32_t)strlen(letters)) return rows;
    return hr_letter_is_sequence(letters[index]) ? INT64_MAX : rows;
}

/* ---- services */

void hr_executor_serve(hr_executor *executor, hr_services services)
{
    HR_ASSERT(executor->services_count < HR_SERVICES_MAX);
    executor->services[executor->services_count++] = services;
}

/* Returns how closely a handler matches; 0: not at all. */
static int32_t match(const hr_service *service, int32_t op, hr_loop_id section)
{
    const bool in_section = service->section == section;
    if (!in_section && service->section != HR_LOOP_OTHER) return 0;
    if (service->op != op && service->op != HR_NONE) return 0;
    return 1 + in_section + 2 * (service->op == op);
}

/* Returns the handler that matches an operation in a section most closely; null: there is none. */
static const hr_service *find_service(const hr_executor *executor, int32_t op, hr_loop_id section,
                                      void **context)
{
    const hr_service *found = NULL;
    for (int32_t i = executor->services_count - 1; i >= 0 && !found; i--) {
        const hr_services *from = &executor->services[i];
        int32_t best = 0;
        for (int32_t k = 0; k < from->count; k++) {
            const int32_t matched = match(&from->services[k], op, section);
            if (matched > best) found = &from->services[k];
            best = hr_max(best, matched);
        }
        *context = from->context;
    }
    return found;
}

hr_status hr_executor_check_services(const hr_executor *executor, hr_error *err)
{
    const hr_program *program = executor->program;
    void *context;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_op *op = hr_step_op(program, &program->steps[s]);
        const hr_loop_id section = hr_step_section(program, s);
        if (op->host && !find_service(executor, program->steps[s].op, section, &context))
            return hr_fail(err, HR_FAILURE, "no handler for the service %s in the section \"%s\"",
                           op->name, hr_loop_name(section));
    }
    return hr_service_check_sections(program, err);
}

hr_status hr_executor_wait(const hr_executor *executor, int32_t op, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; i < executor->services_count; i++)
        for (int32_t k = 0; k < executor->services[i].count && status == HR_OK; k++) {
            const hr_service *service = &executor->services[i].services[k];
            if (service->op == op && service->wait)
                status = service->wait(executor->services[i].context, err);
        }
    return status;
}

/* After an error or an interrupt: no transfer that a step has begun may still access the arena when
 * another section runs. Their errors are found by the next transfer. */
static void end_transfers(const hr_executor *executor)
{
    const hr_backend *backend = executor->program->backend;
    hr_error ignored;
    for (int32_t op = 0; op < backend->op_count; op++)
        if (backend->ops[op]->transfer) (void)!hr_executor_wait(executor, op, &ignored);
}

static hr_status begin_service(hr_executor *executor, int32_t s, const hr_call *call, hr_error *err)
{
    void *context;
    const hr_service *service = find_service(executor, executor->program->steps[s].op,
                                             hr_step_section(executor->program, s), &context);
    HR_ASSERT(service); /* hr_executor_check_services has found it */
    return service->begin(context, executor, s, call, err);
}

/* ---- steps */

/* In builds with AddressSanitizer, poisons every arena byte that is not live at this step.
 * Transfers end first: they would find their windows poisoned for a moment. */
static void poison_dead_bytes(const hr_executor *executor, int32_t step)
{
#ifdef HR_POISONS
    const hr_plan *plan = executor->plan;
    end_transfers(executor);
    hr_arena_poison(executor->memory->arena, plan->arena_bytes);
    for (int32_t i = 0; i < plan->spaces[HR_SPACE_HOST].storage_count; i++) {
        const hr_storage *storage = &plan->storages[i];
        if (storage->step_first <= step && step <= storage->step_last)
            hr_arena_unpoison(executor->memory->arena + storage->offset, storage->bytes);
    }
#else
    (void)executor, (void)step;
#endif
}

static hr_status run_step(hr_executor *executor, int32_t s, hr_error *err)
{
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    hr_call call = { .attr = step->attr,
                     .turn = executor->turn[step->loop],
                     .clock = executor->clock,
                     .uncounted = executor->uncounted,
                     .seed = executor->seed,
                     .dtype = (hr_dtype)program->dtype,
                     .threads = executor->plan->process.threads };
    const int64_t rows = rows_of_loop(executor, step->loop, &call.row_first);
    call.rows = rows_of_step(program, step, rows);
    const hr_op *op = hr_step_op(program, step);
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        call.in[i] = operand(executor, step->in[i], rows_shown(step, op->in, i, call.rows));
    for (int32_t k = 0; k < HR_OUT_MAX; k++) {
        call.out[k] = operand(executor, step->out[k], rows_shown(step, op->out, k, call.rows));
        if ((executor->clears[s] & 1 << k) && sums_start(executor, s, step->out[k]))
            call.clear |= 1u << k;
    }
    const int32_t scratch = executor->plan->scratch_of_step[s];
    if (scratch != HR_NONE) {
        const hr_buffer *buffer = &executor->plan->buffers[scratch];
        call.scratch = executor->memory->arena + buffer->offset;
        hr_arena_note(executor->memory, call.scratch, buffer->bytes);
    }

    hr_status status = HR_OK;
    poison_dead_bytes(executor, s);
    if (executor->before) executor->before(executor->context, executor, s);
    if (op->host) status = begin_service(executor, s, &call, err);
    else executor->device->launch(executor->device, program, s, &call);
    if (executor->watch) executor->watch(executor->context, executor, s);
    return status;
}

static int64_t iterations_of(const hr_executor *executor, int32_t loop)
{
    const hr_loop *described = &executor->program->loops[loop];
    if (described->rows == 0) return executor->count[loop];
    int64_t first;
    const int64_t around = rows_of_loop(executor, described->parent, &first);
    const int64_t rows = hr_min(around, described->rows_total);
    return (rows + described->rows - 1) / described->rows;
}

/* Opens the loops that this step is the first step of. */
static void open_loops(hr_executor *executor, int32_t step)
{
    const hr_program *program = executor->program;
    for (int32_t l = program->steps[step].loop; l != HR_NONE && !executor->open[l];
         l = program->loops[l].parent) {
        executor->open[l] = 1;
        executor->turn[l] = 0;
    }
}

static hr_status run_steps(hr_executor *executor, int32_t loop, hr_error *err)
{
    const hr_program *program = executor->program;
    const hr_loop *section = &program->loops[loop];
    HR_ASSERT(executor->device->backend == program->backend);
    memset(executor->open, 0, (size_t)program->loop_count);
    memset(executor->turn, 0, (size_t)program->loop_count * sizeof *executor->turn);
    for (int32_t l = section->parent; l != HR_NONE; l = program->loops[l].parent)
        executor->open[l] = 1;
    executor->rows_here = INT64_MAX;

    int32_t s = section->step_first;
    while (s <= section->step_last) {
        if (executor->stop && !executor->committed && executor->stop(executor->context))
            return hr_fail(err, HR_INTERRUPTED, "interrupted");
        open_loops(executor, s);
        executor->committed |= executor->commits[s];
        const hr_status status = run_step(executor, s, err);
        if (status != HR_OK) return status;
        int32_t next = s + 1;
        for (int32_t l = program->steps[s].loop;
             l != section->parent && program->loops[l].step_last == s;
             l = program->loops[l].parent) {
            if (++executor->turn[l] < iterations_of(executor, l)) {
                next = program->loops[l].step_first;
                break;
            }
            executor->open[l] = 0;
        }
        s = next;
    }
    return HR_OK;
}

hr_status hr_executor_run(hr_executor *executor, int32_t loop, hr_error *err)
{
    const hr_status status = run_steps(executor, loop, err);
    if (status != HR_OK) end_transfers(executor);
    return status;
}
