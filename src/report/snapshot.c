/* SPDX-License-Identifier: Apache-2.0 */
/* report/snapshot.c - a writer of pickles, and what the viewer of PyTorch expects in one.
 *
 * Source  pickle: PEP 3154 and pickletools of Python 3; the snapshot: torch/cuda/memory.py. */
#include "report/snapshot.h"

#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/sort.h"
#include "report/labels.h"

/* Protocol 4, and the outer dictionary. */
const char hr_snapshot_begin[] = "\x80\x04}(";

enum { PIECE = 8 << 10, ADDRESS = 1 << 28 }; /* an address of 0 would look like none */

typedef struct {
    hr_file_out out;
    hr_status status;
    hr_error *err;
    int64_t held;
    char piece[PIECE];
    const hr_compiled *compiled;
    int32_t *owner;   /* [storage_count] the buffer that first uses it */
    /* [storage_count] storages of the arena by their first operation, and by their last */
    int32_t *by_first, *by_last;
} writer;

/* ---- pickle */

static void flush(writer *w)
{
    if (w->status == HR_OK) w->status = hr_file_append(&w->out, w->piece, w->held, w->err);
    w->held = 0;
}

static void put(writer *w, const void *bytes, int64_t count)
{
    if (w->held + count > PIECE) flush(w);
    memcpy(w->piece + w->held, bytes, (size_t)count);
    w->held += count;
}

static void put_op(writer *w, char op)
{
    put(w, &op, 1);
}

/* At most HR_PLAN_NAME_BYTES. */
static void put_text(writer *w, const char *text)
{
    const uint8_t bytes = (uint8_t)hr_min(strlen(text), 255);
    put_op(w, '\x8c'); /* SHORT_BINUNICODE */
    put(w, &bytes, 1);
    put(w, text, bytes);
}

static void put_number(writer *w, int64_t value)
{
    static const char long1[] = { '\x8a', 8 };
    put(w, long1, sizeof long1);
    put(w, &value, sizeof value); /* little endian, as this machine */
}

static void put_item(writer *w, const char *name, int64_t value)
{
    put_text(w, name);
    put_number(w, value);
}

static void put_word(writer *w, const char *name, const char *value)
{
    put_text(w, name);
    put_text(w, value);
}

static void begin_dictionary(writer *w)
{
    put(w, "}(", 2);
}

static void end_dictionary(writer *w)
{
    put_op(w, 'u'); /* SETITEMS */
}

static void begin_list(writer *w, const char *name)
{
    if (name) put_text(w, name);
    put(w, "](", 2);
}

static void end_list(writer *w)
{
    put_op(w, 'e'); /* APPENDS */
}

/* ---- the snapshot */

static void put_frame(writer *w, const char *name, const char *file, int64_t line)
{
    begin_dictionary(w);
    put_word(w, "name", name);
    put_word(w, "filename", file);
    put_item(w, "line", line);
    end_dictionary(w);
}

/* The tensor, and the operation that writes it first. */
static void put_frames(writer *w, int32_t storage)
{
    static const char *const roles[] = { [HR_ROLE_WEIGHT] = "weight",
                                         [HR_ROLE_MASTER] = "master weight",
                                         [HR_ROLE_STATE] = "optimizer state",
                                         [HR_ROLE_GRADIENT] = "gradient",
                                         [HR_ROLE_ACTIVATION] = "activation",
                                         [HR_ROLE_INPUT] = "batch",
                                         [HR_ROLE_SUM] = "sum",
                                         [HR_ROLE_TABLE] = "table" };
    const hr_program *program = &w->compiled->program;
    const hr_buffer *buffer = &w->compiled->plan.buffers[w->owner[storage]];
    const hr_tensor *tensor = buffer->tensor == HR_NONE ? NULL : &program->tensors[buffer->tensor];
    char name[HR_PLAN_NAME_BYTES] = "scratch";
    if (tensor) hr_label_tensor(tensor, name);
    begin_list(w, "frames");
    put_frame(w, name, tensor ? roles[tensor->role] : "workspace", buffer->step_first);
    hr_label_step(program, buffer->step_first, name);
    put_frame(w, name, "operation", buffer->step_first);
    end_list(w);
}

static void put_event(writer *w, const char *action, int32_t storage, int32_t step)
{
    const hr_storage *s = &w->compiled->plan.storages[storage];
    begin_dictionary(w);
    put_word(w, "action", action);
    put_item(w, "addr", ADDRESS + s->offset);
    put_item(w, "size", s->bytes);
    put_item(w, "stream", 0);
    put_item(w, "time_us", step);
    put_frames(w, storage);
    end_dictionary(w);
}

static void put_trace(writer *w)
{
    const hr_plan *plan = &w->compiled->plan;
    const int32_t count = plan->spaces[HR_SPACE_HOST].storage_count;
    int32_t begun = 0, ended = 0;
    begin_list(w, "device_traces");
    begin_list(w, NULL);
    for (int32_t step = 0; step <= w->compiled->program.step_count; step++) {
        for (; ended < count && plan->storages[w->by_last[ended]].step_last < step; ended++) {
            put_event(w, "free_requested", w->by_last[ended], step);
            put_event(w, "free_completed", w->by_last[ended], step);
        }
        for (; begun < count && plan->storages[w->by_first[begun]].step_first <= step; begun++)
            put_event(w, "alloc", w->by_first[begun], step);
    }
    end_list(w);
    end_list(w);
}

static bool is_at_peak(const hr_plan *plan, int32_t storage)
{
    const hr_storage *s = &plan->storages[storage];
    return s->step_first <= plan->peak_step && plan->peak_step <= s->step_last;
}

/* The next storage at the peak from an offset on; -1: none. */
static int32_t next_at_peak(const hr_plan *plan, int64_t offset)
{
    int32_t next = HR_NONE;
    for (int32_t i = 0; i < plan->spaces[HR_SPACE_HOST].storage_count; i++)
        if (is_at_peak(plan, i) && plan->storages[i].offset >= offset &&
            (next == HR_NONE || plan->storages[i].offset < plan->storages[next].offset))
            next = i;
    return next;
}

static void put_block(writer *w, int64_t offset, int64_t bytes, int32_t storage)
{
    begin_dictionary(w);
    put_item(w, "address", ADDRESS + offset);
    put_item(w, "size", bytes);
    put_item(w, "requested_size", bytes);
    put_word(w, "state", storage == HR_NONE ? "inactive" : "active_allocated");
    if (storage == HR_NONE) {
        put_text(w, "frames");
        put_op(w, ']');
    } else put_frames(w, storage);
    end_dictionary(w);
}

static void put_segment(writer *w)
{
    const hr_plan *plan = &w->compiled->plan;
    int64_t at = 0;
    begin_list(w, "segments");
    begin_dictionary(w);
    put_item(w, "device", 0);
    put_item(w, "address", ADDRESS);
    put_item(w, "total_size", plan->arena_bytes);
    put_item(w, "allocated_size", plan->floor_bytes);
    put_item(w, "active_size", plan->floor_bytes);
    put_item(w, "requested_size", plan->floor_bytes);
    put_item(w, "stream", 0);
    put_word(w, "segment_type", "large");
    put_text(w, "frames");
    put_op(w, ']');
    begin_list(w, "blocks");
    for (int32_t i; (i = next_at_peak(plan, at)) != HR_NONE;) {
        const hr_storage *s = &plan->storages[i];
        if (s->offset > at) put_block(w, at, s->offset - at, HR_NONE);
        put_block(w, s->offset, s->bytes, i);
        at = s->offset + s->bytes;
    }
    if (at < plan->arena_bytes) put_block(w, at, plan->arena_bytes - at, HR_NONE);
    end_list(w);
    end_dictionary(w);
    end_list(w);
}

static bool ends_before(const void *table, int32_t a, int32_t b)
{
    const hr_storage *storages = table;
    return storages[a].step_last != storages[b].step_last
               ? storages[a].step_last < storages[b].step_last
               : a < b;
}

static bool begins_before(const void *table, int32_t a, int32_t b)
{
    const hr_storage *storages = table;
    return storages[a].step_first != storages[b].step_first
               ? storages[a].step_first < storages[b].step_first
               : a < b;
}

static void find_owners(writer *w)
{
    const hr_plan *plan = &w->compiled->plan;
    const int32_t count = plan->spaces[HR_SPACE_HOST].storage_count;
    for (int32_t i = 0; i < plan->storage_count; i++) w->owner[i] = HR_NONE;
    for (int32_t b = plan->buffer_count - 1; b >= 0; b--)
        if (plan->buffers[b].view_of == HR_NONE) w->owner[plan->buffers[b].storage] = b;
    for (int32_t i = 0; i < count; i++) w->by_first[i] = w->by_last[i] = i;
    hr_sort(plan->storages, begins_before, w->by_first, count);
    hr_sort(plan->storages, ends_before, w->by_last, count);
}

hr_status hr_snapshot_write(const char *path, const hr_compiled *compiled, hr_region *scratch,
                            hr_error *err)
{
    const int64_t used = scratch->used;
    const int32_t count = compiled->plan.storage_count;
    writer w = { .err = err, .compiled = compiled };
    w.owner = hr_region_take(scratch, count, sizeof *w.owner);
    w.by_first = hr_region_take(scratch, count, sizeof *w.by_first);
    w.by_last = hr_region_take(scratch, count, sizeof *w.by_last);
    scratch->used = used;
    if (!w.owner || !w.by_first || !w.by_last)
        return hr_fail(err, HR_FAILURE, "no memory for a snapshot of %d ranges", count);
    find_owners(&w);
    w.status = hr_file_begin_path(&w.out, path, err);
    if (w.status != HR_OK) return w.status;
    put(&w, hr_snapshot_begin, (int64_t)sizeof hr_snapshot_begin - 1);
    put_segment(&w);
    put_trace(&w);
    put_word(&w, "about", "a plan of headroom: times are numbers of operations");
    end_dictionary(&w);
    put_op(&w, '.');
    flush(&w);
    return w.status == HR_OK ? hr_file_commit(&w.out, err) : w.status;
}
