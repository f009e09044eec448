/* SPDX-License-Identifier: Apache-2.0 */
/* dev/transfer.c - hands the operands of transfers to the file, and waits for them. */
#include "dev/transfer.h"

#include "base/assert.h"
#include "base/checked.h"
#include "graph/backend.h"
#include "mem/process.h"
#include "ops/list.h"

/* ---- the file */

int64_t hr_transfer_file_bytes(int64_t file_bytes)
{
    const int64_t alignment = hr_page_bytes() + 3 * 64;
    const hr_space_file_options options = { .file.bytes = hr_round_up(file_bytes, HR_BLOCK_BYTES),
                                            .threads = HR_SPACE_THREADS };
    return (int64_t)sizeof(hr_transfer_file) + hr_space_file_bytes(&options) +
           hr_space_file_stack_bytes(&options) + alignment;
}

hr_transfer_file *hr_transfer_file_place(hr_region *region, const hr_block_file_options *of)
{
    const hr_space_file_options options = { .file = *of, .threads = HR_SPACE_THREADS };
    const int64_t page = hr_page_bytes(), tables_bytes = hr_space_file_bytes(&options);
    hr_transfer_file *file = hr_region_take(region, 1, sizeof *file);
    void *tables = hr_region_take(region, tables_bytes, 1);
    uint8_t *stacks = hr_region_take(region, hr_space_file_stack_bytes(&options) + page, 1);
    if (!file || !tables || !stacks) return NULL;
    file->options = options;
    file->tables = hr_region_over(tables, tables_bytes);
    file->stacks = stacks + (page - (int64_t)((uintptr_t)stacks % (uintptr_t)page)) % page;
    return file;
}

hr_status hr_transfer_file_open(hr_transfer_file *file, hr_error *err)
{
    hr_transfer_file_close(file);
    file->tables.used = 0;
    return hr_space_file_open(&file->file, &file->options, &file->tables, file->stacks, err);
}

hr_status hr_transfer_file_failure(hr_transfer_file *file, hr_error *failure)
{
    return hr_space_file_failure(&file->file, failure);
}

void hr_transfer_file_close(hr_transfer_file *file)
{
    if (file) hr_space_file_close(&file->file);
}

/* ---- services */

static int32_t slot_of(const hr_call *call)
{
    const hr_transfer_attr *attr = call->attr;
    HR_ASSERT(attr->slot >= 0 && attr->slot < HR_ALL_SLOTS);
    return attr->slot;
}

static bool is_of_base(const hr_call *call)
{
    return slot_of(call) >= HR_SLOTS_MOST;
}

static int32_t param_of(const hr_program *program, int32_t weight)
{
    int32_t p = 0;
    while (program->params[p].weight != weight) p++;
    return p;
}

/* A weight, or the columns of it that a view has. */
static hr_base_part part_of(const hr_program *program, int32_t weight)
{
    const hr_tensor *tensor = &program->tensors[weight];
    if (tensor->view_of == HR_NONE) return (hr_base_part){ .param = param_of(program, weight) };
    const int64_t panel = hr_layout_elements((hr_layout)tensor->layout, tensor->dims[0],
                                             HR_PANEL_WIDTH) *
                          hr_dtype_bytes((hr_dtype)tensor->dtype);
    return (hr_base_part){ .param = param_of(program, tensor->view_of),
                           .first = tensor->view_offset_bytes / panel * HR_PANEL_WIDTH,
                           .columns = tensor->dims[1] };
}

/* Begins to read one weight, with its scales. */
static void begin_base(hr_transfers_of_run *transfers, const hr_executor *executor, int32_t step,
                       const hr_call *call)
{
    const hr_base_part part = part_of(executor->program, executor->program->steps[step].in[0]);
    transfers->tickets[slot_of(call) - HR_SLOTS_MOST] = transfers->base.begin(
        transfers->base.context, part, call->out[0], call->out[1]);
}

/* Begins one transfer for each operand; their tickets follow each other. */
static hr_status begin(hr_transfer_file *file, const hr_executor *executor, const hr_call *call,
                       const int32_t *away, void *const *windows, hr_space_direction direction)
{
    for (int32_t i = 0; i < HR_IN_MAX && away[i] != HR_NONE; i++) {
        const hr_tensor *tensor = &executor->program->tensors[away[i]];
        const hr_space_transfer transfer = { .direction = direction,
                                             .memory = windows[i],
                                             .offset = hr_executor_offset(executor, away[i]),
                                             .bytes = hr_round_up(hr_tensor_bytes(tensor),
                                                                  HR_BLOCK_BYTES) };
        const int64_t ticket = hr_space_file_begin(&file->file, transfer);
        if (i == 0) file->tickets[slot_of(call)] = ticket;
    }
    return HR_OK;
}

static hr_status fetch(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                       hr_error *err)
{
    hr_transfers_of_run *transfers = context;
    (void)err;
    if (!is_of_base(call))
        return begin(transfers->file, executor, call, executor->program->steps[step].in, call->out,
                     HR_SPACE_FETCH);
    begin_base(transfers, executor, step, call);
    return HR_OK;
}

static hr_status spill(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                       hr_error *err)
{
    hr_transfers_of_run *transfers = context;
    (void)err;
    return begin(transfers->file, executor, call, executor->program->steps[step].out,
                 (void *const *)call->in, HR_SPACE_SPILL);
}

static hr_status wait_for(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                          hr_error *err)
{
    hr_transfers_of_run *transfers = context;
    hr_transfer_file *file = transfers->file;
    const int32_t *windows = executor->program->steps[step].in;
    hr_status status = HR_OK;
    if (is_of_base(call))
        return transfers->base.wait(transfers->base.context,
                                    transfers->tickets[slot_of(call) - HR_SLOTS_MOST], err);
    for (int32_t i = 0; i < HR_IN_MAX && windows[i] != HR_NONE && status == HR_OK; i++)
        status = hr_space_file_wait(&file->file, file->tickets[slot_of(call)] + i, err);
    return status;
}

static hr_status wait_for_all(void *context, hr_error *err)
{
    hr_transfers_of_run *transfers = context;
    (void)err;
    if (transfers->file && transfers->file->file.open) hr_space_file_drain(&transfers->file->file);
    if (transfers->base.drain) transfers->base.drain(transfers->base.context);
    return HR_OK;
}

static hr_status look_up(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                         hr_error *err)
{
    const hr_transfers_of_run *transfers = context;
    const int32_t p = param_of(executor->program, executor->program->steps[step].in[1]);
    return transfers->base.look_up(transfers->base.context, p, call->in[0], call->rows,
                                   call->out[0], err);
}

hr_services hr_transfer_services(hr_transfers_of_run *transfers)
{
    static const hr_service services[] = {
        { HR_OP_fetch_begin, HR_LOOP_OTHER, fetch, wait_for_all },
        { HR_OP_fetch_wait, HR_LOOP_OTHER, wait_for, NULL },
        { HR_OP_spill_begin, HR_LOOP_OTHER, spill, NULL },
        { HR_OP_spill_wait, HR_LOOP_OTHER, wait_for, NULL },
        { HR_OP_lookup, HR_LOOP_OTHER, look_up, NULL },
    };
    return (hr_services){ services, sizeof services / sizeof *services, transfers };
}
