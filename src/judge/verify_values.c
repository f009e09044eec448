/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_values.c - verifies that every byte is written before it is read, and that gradients
 * are complete when they are read.
 *
 * The first iteration of every loop decides: later ones find at least as much written. In the first
 * iteration, views are at the offsets of the file. After a loop, a view that moves with it has
 * covered its size times the number of iterations. */
#include <stdlib.h>
#include <string.h>

#include "judge/judged.h"

enum { OUTLIVES_RUN = -1 };

/* ---- names */

static int compare_names(const void *a, const void *b)
{
    const hr_judged_buffer *one = *(const hr_judged_buffer *const *)a;
    const hr_judged_buffer *two = *(const hr_judged_buffer *const *)b;
    const int order = strcmp(one->name, two->name);
    return order ? order : one < two ? -1 : one > two;
}

/* Hash list of a name (FNV-1a). */
static int32_t list_of(const char *name, int32_t lists)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (int32_t)((hash >> 32) % (uint64_t)lists);
}

static hr_status check_list(const hr_judged_plan *plan, hr_judged_buffer **list, int32_t count)
{
    if (count > 1) qsort(list, (size_t)count, sizeof *list, compare_names);
    for (int32_t i = 1; i < count; i++)
        if (!strcmp(list[i - 1]->name, list[i]->name))
            return hr_fail(plan->err, HR_CORRUPT, "buffers %d and %d have one name, %s",
                           (int)(list[i - 1] - plan->buffers), (int)(list[i] - plan->buffers),
                           list[i]->name);
    return HR_OK;
}

/* Checks that names are unique, with as many hash lists as buffers, so that most lists are short.
 * The worst case, whatever the names, is one sort. `by_buffer` has the end of each list. */
static hr_status check_names(hr_judged_plan *plan)
{
    const int32_t count = plan->buffer_count;
    int32_t *ends = plan->by_buffer, first = 0;
    hr_status status = HR_OK;
    for (int32_t i = 0; i <= count; i++) ends[i] = 0;
    for (int32_t b = 0; b < count; b++) ends[list_of(plan->buffers[b].name, count) + 1]++;
    for (int32_t i = 0; i < count; i++) ends[i + 1] += ends[i];
    for (int32_t b = 0; b < count; b++)
        plan->by_name[ends[list_of(plan->buffers[b].name, count)]++] = &plan->buffers[b];
    for (int32_t i = 0; i < count && !status; first = ends[i++])
        status = check_list(plan, &plan->by_name[first], ends[i] - first);
    return status;
}

/* ---- reads of unwritten bytes */

/* Kinds of events on the bytes of one root. Events are sorted by root, then step, then kind: the
 * end of a loop precedes the step after it, and a step reads before it writes. */
enum { LOOP_ENDED, READ, WRITTEN };

static int compare_events(const void *a, const void *b)
{
    const hr_judged_event *one = a, *two = b;
    if (one->root != two->root) return one->root < two->root ? -1 : 1;
    if (one->step != two->step) return one->step < two->step ? -1 : 1;
    return one->kind - two->kind;
}

static int compare_bytes(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;
    return one < two ? -1 : one > two;
}

/* `by_buffer` has the next free event of each root. */
static void add_event(hr_judged_plan *plan, const hr_judged_access *access, int32_t step,
                      int32_t kind, int64_t bytes)
{
    const hr_judged_buffer *buffer = &plan->buffers[access->buffer];
    const hr_judged_buffer *owner = &plan->buffers[buffer->root];
    const int64_t first = buffer->offset - owner->offset;
    const int64_t end = bytes > owner->bytes - first ? owner->bytes : first + bytes;
    plan->events[plan->by_buffer[buffer->root]++] = (hr_judged_event){ buffer->root,   step,  kind,
                                                                       access->buffer, first, end };
}

/* Accumulating counts as a read if the value outlives the run, because no iteration of a home loop
 * can clear it. */
static bool is_read(const hr_judged_plan *plan, const hr_judged_access *access)
{
    return access->kind == HR_JUDGED_READ || access->kind == HR_JUDGED_UPDATE ||
           (access->kind == HR_JUDGED_ACCUMULATE &&
            hr_judged_root(plan, access)->home == OUTLIVES_RUN);
}

/* Returns whether a write reaches other bytes in other iterations: through a view, but not through
 * that of a sum. */
static bool moves(const hr_judged_plan *plan, const hr_judged_access *access)
{
    return plan->buffers[access->buffer].view_of >= 0 &&
           hr_judged_root(plan, access)->role != HR_JUDGED_SUM;
}

/* Adds a write: one event for its step and, if it moves, one for the end of each loop that iterates
 * more than once. */
static void add_writes(hr_judged_plan *plan, const hr_judged_access *access, int32_t s)
{
    const hr_judged_buffer *buffer = &plan->buffers[access->buffer];
    const int32_t home = hr_judged_root(plan, access)->home;
    int64_t bytes = buffer->bytes;
    add_event(plan, access, s, WRITTEN, bytes);
    if (!moves(plan, access)) return;
    for (int32_t loop = plan->steps[s].loop; loop > 0 && loop != home;
         loop = plan->loops[loop].parent) {
        const int64_t turns = plan->loops[loop].repeats;
        if (turns < 2) continue;
        bytes = turns > hr_judged_root(plan, access)->bytes / bytes
                    ? hr_judged_root(plan, access)->bytes
                    : bytes * turns;
        add_event(plan, access, plan->loops[loop].last + 1, LOOP_ENDED, bytes);
    }
}

/* The number of events of one access. */
static int32_t events_of(const hr_judged_plan *plan, const hr_judged_access *access, int32_t s)
{
    const int32_t home = hr_judged_root(plan, access)->home;
    int32_t count = 1;
    if (is_read(plan, access) || !moves(plan, access)) return 1;
    for (int32_t loop = plan->steps[s].loop; loop > 0 && loop != home;
         loop = plan->loops[loop].parent)
        count += plan->loops[loop].repeats > 1;
    return count;
}

/* Lists events by root in the order of steps. `by_buffer`: one past the last event of each root. */
static void list_events(hr_judged_plan *plan)
{
    for (int32_t b = 0; b <= plan->buffer_count; b++) plan->by_buffer[b] = 0;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            plan->by_buffer[plan->buffers[access->buffer].root + 1] += events_of(plan, access, s);
        }
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b + 1] += plan->by_buffer[b];
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            if (is_read(plan, access))
                add_event(plan, access, s, READ, plan->buffers[access->buffer].shape_bytes);
            else add_writes(plan, access, s);
        }
}

/* Only ends of loops can be out of order. */
static void sort_events(hr_judged_event *events, int64_t count)
{
    int64_t i = 1;
    while (i < count && compare_events(&events[i - 1], &events[i]) <= 0) i++;
    if (i < count) qsort(events, (size_t)count, sizeof *events, compare_events);
}

static int32_t piece_at(const hr_judged_plan *plan, int32_t pieces, int64_t byte)
{
    int32_t low = 0, high = pieces;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (plan->cuts[middle] < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The first unwritten piece from `piece` on. Shortens the path for the next search. */
static int32_t unwritten_from(int32_t *next, int32_t piece)
{
    int32_t end = piece;
    while (next[end] != end) end = next[end];
    while (next[piece] != end) {
        const int32_t after = next[piece];
        next[piece] = end;
        piece = after;
    }
    return end;
}

static hr_status unwritten(const hr_judged_plan *plan, const hr_judged_event *event)
{
    const hr_judged_buffer *buffer = &plan->buffers[event->buffer];
    const int32_t home = plan->buffers[event->root].home;
    if (home == OUTLIVES_RUN)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) reads it before any step writes all of it",
                       event->buffer, buffer->name, event->step, plan->steps[event->step].op);
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) reads it before any step of its home, "
                   "loop %d (%s), writes all of it",
                   event->buffer, buffer->name, event->step, plan->steps[event->step].op, home,
                   plan->loops[home].name);
}

/* Checks the events of one root, in order. Splits its bytes into pieces at the bounds of all
 * events. A written piece links to the next unwritten one. */
static hr_status check_written(hr_judged_plan *plan, const hr_judged_event *events, int64_t count)
{
    int32_t cuts = 0, pieces = 0;
    if (count == 0 || plan->buffers[events->root].space == HR_JUDGED_BASE) return HR_OK;
    if (events->kind == WRITTEN && events->first == 0 &&
        events->end == plan->buffers[events->root].bytes)
        return HR_OK; /* the first event writes all bytes */
    for (int64_t i = 0; i < count; i++) {
        plan->cuts[cuts++] = events[i].first;
        plan->cuts[cuts++] = events[i].end;
    }
    qsort(plan->cuts, (size_t)cuts, sizeof *plan->cuts, compare_bytes);
    for (int32_t i = 0; i < cuts; i++)
        if (pieces == 0 || plan->cuts[i] != plan->cuts[pieces - 1])
            plan->cuts[pieces++] = plan->cuts[i];
    for (int32_t i = 0; i < pieces; i++) plan->next[i] = i;
    for (int64_t i = 0; i < count; i++) {
        const int32_t from = piece_at(plan, pieces, events[i].first);
        const int32_t end = piece_at(plan, pieces, events[i].end);
        if (events[i].kind == READ) {
            if (unwritten_from(plan->next, from) < end) return unwritten(plan, &events[i]);
            continue;
        }
        for (int32_t at = unwritten_from(plan->next, from); at < end;
             at = unwritten_from(plan->next, at))
            plan->next[at] = at + 1;
    }
    return HR_OK;
}

static hr_status check_reads(hr_judged_plan *plan)
{
    hr_status status = HR_OK;
    list_events(plan);
    for (int32_t b = 0; b < plan->buffer_count && !status; b++) {
        const int64_t first = b ? plan->by_buffer[b - 1] : 0, count = plan->by_buffer[b] - first;
        sort_events(&plan->events[first], count);
        status = check_written(plan, &plan->events[first], count);
    }
    return status;
}

/* ---- gradients and sums */

/* Checks, in step order, that a gradient or other sum is complete before it is read. A sum inside a
 * loop is complete after the loop: see check_iterations. `by_buffer` has the first read, or -1. */
static hr_status check_gradient(hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const int32_t b = plan->buffers[access->buffer].root;
    const int32_t repeating = hr_judged_repeating(plan, s, plan->buffers[b].home);
    const char *name = plan->buffers[access->buffer].name;
    if (access->kind == HR_JUDGED_READ) {
        if (plan->by_buffer[b] < 0) plan->by_buffer[b] = s;
        return HR_OK;
    }
    if (access->kind != HR_JUDGED_ACCUMULATE && repeating >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) overwrites a %s in each iteration of loop "
                       "%d (%s)",
                       access->buffer, name, s, plan->steps[s].op, plan->buffers[b].role_name,
                       repeating, plan->loops[repeating].name);
    const int32_t read = plan->by_buffer[b];
    if (read < 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) adds to a %s that step %d (%s) has read",
                   access->buffer, name, s, plan->steps[s].op, plan->buffers[b].role_name, read,
                   plan->steps[read].op);
}

/* Checks for a gradient that is read and accumulated in iterations of one loop. */
static hr_status check_iterations(hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const int32_t b = plan->buffers[access->buffer].root, read = plan->by_buffer[b];
    const int32_t repeating = hr_judged_repeating(plan, s, plan->buffers[b].home);
    if (access->kind == HR_JUDGED_READ || repeating < 0 || read < 0 ||
        read > plan->loops[repeating].last)
        return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) reads a %s to which step %d (%s) adds in "
                   "the next iteration of loop %d (%s)",
                   b, plan->buffers[b].name, read, plan->steps[read].op, plan->buffers[b].role_name,
                   s, plan->steps[s].op, repeating, plan->loops[repeating].name);
}

typedef hr_status check_fn(hr_judged_plan *plan, int32_t s, const hr_judged_access *access);

static hr_status for_sums(hr_judged_plan *plan, check_fn *check)
{
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_buffer *root = hr_judged_root(plan, &plan->accesses[k]);
            if (root->role != HR_JUDGED_GRADIENT && root->role != HR_JUDGED_SUM) continue;
            const hr_status status = check(plan, s, &plan->accesses[k]);
            if (status) return status;
        }
    return HR_OK;
}

static hr_status check_gradients(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = -1;
    hr_status status = for_sums(plan, check_gradient);
    if (!status) status = for_sums(plan, check_iterations);
    return status;
}

/* ---- scratch */

/* Checks that only one step uses a scratch buffer and writes it once. */
static hr_status check_scratch(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = 0;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            if (hr_judged_root(plan, access)->role != HR_JUDGED_SCRATCH) continue;
            if (access->kind == HR_JUDGED_WRITE &&
                plan->by_buffer[plan->buffers[access->buffer].root]++ == 0)
                continue;
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): scratch is written by one step and read by none, step "
                           "%d (%s) uses it too",
                           access->buffer, plan->buffers[access->buffer].name, s,
                           plan->steps[s].op);
        }
    return HR_OK;
}

hr_status hr_verify_values(hr_judged_plan *plan)
{
    hr_status status = check_reads(plan);
    if (!status) status = check_scratch(plan);
    if (!status) status = hr_verify_state(plan);
    if (!status) status = check_gradients(plan);
    if (!status) status = check_names(plan);
    return status;
}
