/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify.c - the verifier. Derives every lifetime from reads, writes, loops and homes, then
 * looks for bytes that two buffers use at once, then checks every claim of the file.
 *
 * Overlaps come first: a run would use these bytes whatever else is wrong with the file. */
#include "judge/judged.h"

#include <stdio.h>
#include <string.h>

#include "headroom/verify.h"
#include "judge/verify_live.h"

enum { ALIGNMENT = 64, BLOCK_BYTES = 4096 /* of direct I/O */, OUTLIVES_RUN = -1 };

/* Returns whether loop `inner` is loop `outer` or inside it. */
static bool inside(const hr_judged_plan *plan, int32_t inner, int32_t outer)
{
    while (plan->loops[inner].depth > plan->loops[outer].depth) inner = plan->loops[inner].parent;
    return inner == outer;
}

/* ---- lifetimes */

/* Widens the lifetime of the owner by one access at step `s`: to all of every loop inside the home
 * that iterates more than once, because each iteration needs the value. */
static hr_status add_access(hr_judged_plan *plan, int32_t s, int32_t root)
{
    hr_judged_buffer *buffer = &plan->buffers[root];
    int32_t first = s, last = s, loop = plan->steps[s].loop;
    if (buffer->home == OUTLIVES_RUN) {
        first = 0;
        last = plan->step_count - 1;
    } else if (!inside(plan, loop, buffer->home)) {
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d uses it outside its home loop %d (%s)", root,
                       buffer->name, s, buffer->home, plan->loops[buffer->home].name);
    } else {
        for (; loop != buffer->home; loop = plan->loops[loop].parent) {
            if (plan->loops[loop].repeats < 2) continue;
            first = plan->loops[loop].first;
            last = plan->loops[loop].last;
        }
    }
    if (!buffer->touched || first < buffer->first) buffer->first = first;
    if (!buffer->touched || last > buffer->last) buffer->last = last;
    buffer->touched = true;
    return HR_OK;
}

static hr_status derive_lifetimes(hr_judged_plan *plan)
{
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            const hr_status status = add_access(plan, s, plan->buffers[access->buffer].root);
            if (status) return status;
        }
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        hr_judged_buffer *buffer = &plan->buffers[b];
        const hr_judged_buffer *owner = &plan->buffers[buffer->root];
        if (!owner->touched)
            return hr_fail(plan->err, HR_CORRUPT, "buffer %d (%s): no step reads or writes it",
                           buffer->root, owner->name);
        buffer->first = owner->first;
        buffer->last = owner->last;
    }
    return HR_OK;
}

static hr_status check_declared_lives(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        if (buffer->declared_first != buffer->first || buffer->declared_last != buffer->last)
            return hr_fail(
                plan->err, HR_CORRUPT,
                "buffer %d (%s): declared live from step %d to %d, but its reads and writes "
                "span %d to %d",
                b, buffer->name, buffer->declared_first, buffer->declared_last, buffer->first,
                buffer->last);
    }
    return HR_OK;
}

/* ---- overlaps */

/* Returns whether a loop between step `s` and the home of a buffer iterates more than once. If so,
 * the next iteration needs the buffer too. */
static bool repeats_inside_home(const hr_judged_plan *plan, int32_t s,
                                const hr_judged_buffer *buffer)
{
    if (buffer->home == OUTLIVES_RUN) return true;
    for (int32_t loop = plan->steps[s].loop; loop != buffer->home; loop = plan->loops[loop].parent)
        if (plan->loops[loop].repeats > 1) return true;
    return false;
}

/* Returns whether buffer `to` may take over the bytes of buffer `from` at step `s`. The step must
 * read the one once, write the other once, and access the storage in no other way. */
static bool hands_over(const hr_judged_plan *plan, int32_t from, int32_t to, int32_t s)
{
    const hr_judged_buffer *old = &plan->buffers[from], *new = &plan->buffers[to];
    int32_t reads = 0, writes = 0, others = 0;
    if (old->storage != new->storage || old->last != s || new->first != s) return false;
    if (repeats_inside_home(plan, s, old) || repeats_inside_home(plan, s, new)) return false;
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_access *access = &plan->accesses[k];
        const int32_t root = plan->buffers[access->buffer].root;
        if (plan->buffers[root].storage != old->storage) continue;
        if (root == from && access->kind == HR_JUDGED_READ) reads++;
        else if (root == to && access->kind == HR_JUDGED_WRITE) writes++;
        else others++;
    }
    return reads == 1 && writes == 1 && others == 0;
}

static hr_status collision(const hr_judged_plan *plan, int32_t a, int32_t b, int32_t s)
{
    const hr_judged_buffer *one = &plan->buffers[a], *two = &plan->buffers[b];
    return hr_fail(
        plan->err, HR_BROKEN,
        "buffers %d (%s) and %d (%s) are both in use at step %d (%s) and share bytes%s%s: "
        "%lld to %lld and %lld to %lld%s",
        a, one->name, b, two->name, s, plan->steps[s].op,
        one->space == HR_JUDGED_HOST ? "" : " of the space ",
        one->space == HR_JUDGED_HOST ? "" : plan->spaces[one->space].name, (long long)one->offset,
        (long long)(one->offset + one->bytes), (long long)two->offset,
        (long long)(two->offset + two->bytes),
        one->storage == two->storage ? "; they share a storage, but the step does not hand it over"
                                     : "");
}

/* Adds buffer `b`, whose lifetime starts at step `s`, to the live buffers. They never overlap, so
 * only the nearest live buffer on each side can overlap it. Removes the dead buffers that it
 * finds. */
static hr_status enter(hr_judged_plan *plan, hr_judged_live *live, int32_t b, int32_t s)
{
    const hr_judged_buffer *buffers = plan->buffers, *born = &buffers[b];
    const int32_t low = hr_judged_live_lowest(live, b);
    for (int32_t other; (other = hr_judged_live_above(live, low)) >= 0;) {
        if (buffers[other].last >= s) {
            if (buffers[other].offset >= born->offset + born->bytes) break;
            if (!hands_over(plan, other, b, s)) return collision(plan, other, b, s);
        }
        hr_judged_live_remove(live, other);
    }
    for (int32_t other; (other = hr_judged_live_below(live, low)) >= 0;) {
        if (buffers[other].last >= s) {
            if (buffers[other].offset + buffers[other].bytes <= born->offset) break;
            if (!hands_over(plan, other, b, s)) return collision(plan, other, b, s);
        }
        hr_judged_live_remove(live, other);
    }
    hr_judged_live_add(live, b);
    return HR_OK;
}

static hr_status check_collisions(hr_judged_plan *plan, hr_judged_space space)
{
    int32_t *born_at = plan->by_step, *next = plan->by_buffer;
    hr_judged_live live;
    if (plan->spaces[space].buffer_count == 0) return HR_OK;
    hr_status status = hr_judged_live_open(plan, &live);
    for (int32_t s = 0; s < plan->step_count; s++) born_at[s] = -1;
    for (int32_t b = plan->buffer_count - 1; b >= 0; b--) {
        if (plan->buffers[b].root != b || plan->buffers[b].space != space) continue;
        next[b] = born_at[plan->buffers[b].first];
        born_at[plan->buffers[b].first] = b;
    }
    for (int32_t s = 0; s < plan->step_count && !status; s++)
        for (int32_t b = born_at[s]; b >= 0 && !status; b = next[b])
            status = enter(plan, &live, b, s);
    hr_judged_live_close(&live);
    return status;
}

/* ---- offsets and storages */

/* Checks that a view is inside its root, with the same space, storage and home. */
static hr_status check_views(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b], *owner = &plan->buffers[buffer->root];
        if (buffer->space != owner->space)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): a view in the space %s of buffer %d (%s) in the space "
                           "%s",
                           b, buffer->name, plan->spaces[buffer->space].name, buffer->root,
                           owner->name, plan->spaces[owner->space].name);
        if (buffer->storage != owner->storage || buffer->home != owner->home)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): a view has the storage and home of its buffer %d (%s)",
                           b, buffer->name, buffer->root, owner->name);
        if (buffer->offset < owner->offset ||
            buffer->offset + buffer->bytes > owner->offset + owner->bytes)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): bytes %lld to %lld lie outside buffer %d (%s), "
                           "which it is a view of",
                           b, buffer->name, (long long)buffer->offset,
                           (long long)(buffer->offset + buffer->bytes), buffer->root, owner->name);
    }
    return HR_OK;
}

/* Checks that each buffer of a storage but the first starts at the step at which the one before it
 * ends. Their lifetimes overlap at no other step, so they add up to the lifetime of the storage. */
static hr_status check_chains(hr_judged_plan *plan)
{
    for (int32_t i = 0; i < plan->buffer_count; i++) plan->by_buffer[i] = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].root == b)
            plan->by_buffer[plan->buffers[b].storage] += plan->buffers[b].last -
                                                         plan->buffers[b].first;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        const hr_judged_storage *storage = &plan->storages[buffer->storage];
        if (plan->by_buffer[buffer->storage] == storage->last - storage->first) continue;
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): storage %d is not handed from buffer to buffer without a "
                       "gap, from step %d to %d",
                       b, buffer->name, buffer->storage, storage->first, storage->last);
    }
    return HR_OK;
}

/* Views too are aligned in a file. */
static hr_status check_alignment(const hr_judged_plan *plan, int32_t b)
{
    const hr_judged_buffer *buffer = &plan->buffers[b];
    const int32_t unit = buffer->space == HR_JUDGED_FILE ? BLOCK_BYTES
                         : buffer->root == b             ? ALIGNMENT
                                                         : 1;
    if (buffer->offset % unit == 0 && buffer->bytes % unit == 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): offset %lld and bytes %lld must be multiples of %d", b,
                   buffer->name, (long long)buffer->offset, (long long)buffer->bytes, unit);
}

/* Checks the alignment, and that all buffers of a storage have one space and offset. Fills the
 * table of storages. */
static hr_status check_storages(hr_judged_plan *plan)
{
    for (int32_t i = 0; i < plan->buffer_count; i++) plan->storages[i].buffer = -1;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        hr_judged_storage *storage = &plan->storages[buffer->storage];
        const hr_status status = check_alignment(plan, b);
        if (status) return status;
        if (buffer->root != b) continue;
        if (storage->buffer < 0) {
            *storage = (hr_judged_storage){ b, buffer->first, buffer->last };
            plan->storage_count++;
            continue;
        }
        const hr_judged_buffer *same = &plan->buffers[storage->buffer];
        if (buffer->space != same->space)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s) and buffer %d (%s) have storage %d, but are in the "
                           "spaces %s and %s",
                           storage->buffer, same->name, b, buffer->name, buffer->storage,
                           plan->spaces[same->space].name, plan->spaces[buffer->space].name);
        if (buffer->offset != same->offset || buffer->bytes != same->bytes)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s) and buffer %d (%s) have storage %d, but not the same "
                           "offset and bytes",
                           storage->buffer, same->name, b, buffer->name, buffer->storage);
        if (buffer->first < storage->first) storage->first = buffer->first;
        if (buffer->last > storage->last) storage->last = buffer->last;
    }
    return check_chains(plan);
}

/* Checks how many bytes a space has: those up to the last byte of a buffer. */
static hr_status check_bytes(const hr_judged_plan *plan, hr_judged_space which)
{
    const hr_judged_space_size *space = &plan->spaces[which];
    const bool host = which == HR_JUDGED_HOST;
    int64_t end = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].space == which &&
            plan->buffers[b].offset + plan->buffers[b].bytes > end)
            end = plan->buffers[b].offset + plan->buffers[b].bytes;
    if (!space->listed && end)
        return hr_fail(plan->err, HR_CORRUPT,
                       "the space %s has buffers that end at %lld, but spaces does not list it",
                       space->name, (long long)end);
    if (!host && space->listed && !end)
        return hr_fail(plan->err, HR_CORRUPT, "spaces lists %s, but no buffer is in it",
                       space->name);
    if (end == space->bytes) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT, "%s%s is %lld, but the buffers end at %lld",
                   host ? "arena_bytes" : "bytes of the space ", host ? "" : space->name,
                   (long long)space->bytes, (long long)end);
}

static hr_status check_process(const hr_judged_plan *plan)
{
    if (plan->process_sum != plan->process_bytes)
        return hr_fail(plan->err, HR_CORRUPT,
                       "process_bytes is %lld, but the process lines add up to %lld",
                       (long long)plan->process_bytes, (long long)plan->process_sum);
    const int64_t arena_bytes = plan->spaces[HR_JUDGED_HOST].bytes;
    const int64_t pages = (arena_bytes + plan->page_bytes - 1) / plan->page_bytes;
    if (plan->arena_lines != 1)
        return hr_fail(plan->err, HR_CORRUPT,
                       "process has %d lines named arena, exactly one is needed",
                       plan->arena_lines);
    if (plan->arena_line_bytes != pages * plan->page_bytes)
        return hr_fail(plan->err, HR_CORRUPT,
                       "process line arena is %lld bytes, arena_bytes %lld in pages of %lld are "
                       "%lld",
                       (long long)plan->arena_line_bytes, (long long)arena_bytes,
                       (long long)plan->page_bytes, (long long)(pages * plan->page_bytes));
    return HR_OK;
}

/* Checks the largest sum of live bytes of a space, and finds the first step that has it. */
static hr_status check_floor(hr_judged_plan *plan, hr_judged_space which)
{
    hr_judged_space_size *space = &plan->spaces[which];
    int64_t alive = 0, most = 0;
    for (int32_t s = 0; s <= plan->step_count; s++) plan->change[s] = 0;
    for (int32_t i = 0; i < plan->buffer_count; i++) {
        const hr_judged_storage *storage = &plan->storages[i];
        if (storage->buffer < 0 || plan->buffers[storage->buffer].space != which) continue;
        plan->change[storage->first] += plan->buffers[storage->buffer].bytes;
        plan->change[storage->last + 1] -= plan->buffers[storage->buffer].bytes;
    }
    for (int32_t s = 0; s < plan->step_count; s++) {
        alive += plan->change[s];
        if (alive <= most) continue;
        most = alive;
        space->peak_step = s;
    }
    if (most == space->floor_bytes) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "floor_bytes%s%s is %lld, but the most live bytes are %lld, at step %d",
                   which == HR_JUDGED_HOST ? "" : " of the space ",
                   which == HR_JUDGED_HOST ? "" : space->name, (long long)space->floor_bytes,
                   (long long)most, space->peak_step);
}

/* ---- report */

/* The buffer that uses a storage at a step. */
static int32_t holder(const hr_judged_plan *plan, int32_t storage, int32_t s)
{
    for (int32_t b = plan->storages[storage].buffer; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        if (buffer->root == b && buffer->storage == storage && buffer->first <= s &&
            s <= buffer->last)
            return b;
    }
    return plan->storages[storage].buffer;
}

/* Lists the live buffers of the host at its peak, the largest first. */
static void list_alive(const hr_judged_plan *plan, hr_verify_report *report)
{
    int32_t listed[HR_VERIFY_ALIVE_MAX], count = 0;
    for (int32_t i = 0; i < plan->buffer_count; i++) {
        const hr_judged_storage *storage = &plan->storages[i];
        if (storage->buffer < 0 || storage->first > report->peak_step ||
            storage->last < report->peak_step ||
            plan->buffers[storage->buffer].space != HR_JUDGED_HOST)
            continue;
        report->alive_count++;
        const int64_t bytes = plan->buffers[storage->buffer].bytes;
        int32_t at = count;
        while (at > 0 && plan->buffers[plan->storages[listed[at - 1]].buffer].bytes < bytes) at--;
        if (at == HR_VERIFY_ALIVE_MAX) continue;
        if (count < HR_VERIFY_ALIVE_MAX) count++;
        memmove(&listed[at + 1], &listed[at], (size_t)(count - 1 - at) * sizeof *listed);
        listed[at] = i;
    }
    for (int32_t i = 0; i < count; i++) {
        const int32_t b = holder(plan, listed[i], report->peak_step);
        hr_verify_alive *line = &report->alive[i];
        snprintf(line->name, sizeof line->name, "%s", plan->buffers[b].name);
        snprintf(line->role, sizeof line->role, "%s", plan->buffers[b].role_name);
        line->bytes = plan->buffers[b].bytes;
    }
    report->alive_listed = count;
}

_Static_assert(HR_JUDGED_SPACES - 1 == HR_VERIFY_SPACES_MAX, "a report has all spaces");

static void list_spaces(const hr_judged_plan *plan, hr_verify_report *report)
{
    for (int32_t i = HR_JUDGED_HOST + 1; i < HR_JUDGED_SPACES; i++) {
        const hr_judged_space_size *space = &plan->spaces[i];
        if (!space->listed) continue;
        hr_verify_space *line = &report->spaces[report->space_count++];
        *line = (hr_verify_space){ .bytes = space->bytes, .floor_bytes = space->floor_bytes };
        snprintf(line->name, sizeof line->name, "%s", space->name);
    }
}

static hr_status judge(hr_judged_plan *plan, hr_verify_report *report)
{
    hr_status status = derive_lifetimes(plan);
    for (int32_t i = 0; i < HR_JUDGED_SPACES && !status; i++)
        status = check_collisions(plan, (hr_judged_space)i);
    if (!status) status = check_views(plan);
    if (!status) status = hr_verify_transfers(plan);
    if (!status) status = hr_verify_values(plan);
    if (!status) status = check_declared_lives(plan);
    if (!status) status = check_storages(plan);
    for (int32_t i = 0; i < HR_JUDGED_SPACES && !status; i++)
        status = check_bytes(plan, (hr_judged_space)i);
    for (int32_t i = 0; i < HR_JUDGED_SPACES && !status; i++)
        status = check_floor(plan, (hr_judged_space)i);
    if (!status) status = check_process(plan);
    if (status) return status;
    const hr_judged_space_size *host = &plan->spaces[HR_JUDGED_HOST];
    *report = (hr_verify_report){ .loop_count = plan->loop_count,
                                  .buffer_count = plan->buffer_count,
                                  .storage_count = plan->storage_count,
                                  .step_count = plan->step_count,
                                  .arena_bytes = host->bytes,
                                  .process_bytes = plan->process_bytes,
                                  .floor_bytes = host->floor_bytes,
                                  .gap_bytes = host->bytes - host->floor_bytes,
                                  .peak_step = host->peak_step };
    snprintf(report->peak_op, sizeof report->peak_op, "%s", plan->steps[host->peak_step].op);
    list_spaces(plan, report);
    list_alive(plan, report);
    return HR_OK;
}

hr_status hr_verify_file(const char *path, hr_verify_report *report, hr_error *err)
{
    hr_judged_plan plan;
    hr_error unread;
    hr_status status = hr_verify_open(path, &plan, err ? err : &unread);
    if (!status) status = judge(&plan, report);
    hr_verify_close(&plan);
    return status;
}
