/* SPDX-License-Identifier: Apache-2.0 */
/* plan/verify_values.c - the judge of values: nothing is read that was not written, byte for byte;
 * a gradient is complete when it is read; after its update a weight is left alone.
 *
 * The first turn of every loop decides what was written: later turns find at least as much. There,
 * views lie at the offsets that the file gives; when a loop is over, a view that moved with it has
 * shown as many times its bytes as the loop turned. */
#include <stdlib.h>
#include <string.h>

#include "plan/verify.h"

enum { OUTLIVES_RUN = -1 };

/* The child of the run around a step; the run itself where there is none. */
static int32_t section_of(const hr_judged_plan *plan, int32_t s)
{
    int32_t loop = plan->steps[s].loop;
    while (plan->loops[loop].depth > 1) loop = plan->loops[loop].parent;
    return loop;
}

/* The outermost loop around step `s`, inside `home`, that turns more than once; -1: none. */
static int32_t outermost_turning(const hr_judged_plan *plan, int32_t s, int32_t home)
{
    int32_t found = -1;
    for (int32_t loop = plan->steps[s].loop; loop > 0 && loop != home;
         loop = plan->loops[loop].parent)
        if (plan->loops[loop].repeats > 1) found = loop;
    return found;
}

static const hr_judged_buffer *root_of(const hr_judged_plan *plan, const hr_judged_access *access)
{
    return &plan->buffers[plan->buffers[access->buffer].root];
}

static bool has_role(const hr_judged_buffer *buffer, const char *role)
{
    return !strcmp(buffer->role, role);
}

/* ---- names */

static int compare_names(const void *a, const void *b)
{
    const hr_judged_buffer *one = *(const hr_judged_buffer *const *)a;
    const hr_judged_buffer *two = *(const hr_judged_buffer *const *)b;
    const int order = strcmp(one->name, two->name);
    return order ? order : one < two ? -1 : one > two;
}

static hr_status check_names(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_name[b] = &plan->buffers[b];
    qsort(plan->by_name, (size_t)plan->buffer_count, sizeof *plan->by_name, compare_names);
    for (int32_t i = 1; i < plan->buffer_count; i++)
        if (!strcmp(plan->by_name[i - 1]->name, plan->by_name[i]->name))
            return hr_fail(plan->err, HR_CORRUPT, "buffers %d and %d have one name, %s",
                           (int)(plan->by_name[i - 1] - plan->buffers),
                           (int)(plan->by_name[i] - plan->buffers), plan->by_name[i]->name);
    return HR_OK;
}

/* ---- nothing is read unwritten */

/* Something that happens to the bytes of one root. Sorted by root, then step, then kind: the end
 * of a loop comes before the step after it, and a step reads before it writes. */
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

static void add_event(hr_judged_plan *plan, int64_t *count, const hr_judged_access *access,
                      int32_t step, int32_t kind, int64_t bytes)
{
    const hr_judged_buffer *buffer = &plan->buffers[access->buffer];
    const hr_judged_buffer *owner = &plan->buffers[buffer->root];
    const int64_t first = buffer->offset - owner->offset;
    const int64_t end = bytes > owner->bytes - first ? owner->bytes : first + bytes;
    plan->events[(*count)++] = (hr_judged_event){ buffer->root,   step,  kind,
                                                  access->buffer, first, end };
}

/* A write through a view, once for its step and once for the end of each loop that turns. */
static void add_writes(hr_judged_plan *plan, int64_t *count, const hr_judged_access *access,
                       int32_t s)
{
    const hr_judged_buffer *buffer = &plan->buffers[access->buffer];
    const int32_t home = root_of(plan, access)->home;
    int64_t bytes = buffer->bytes;
    add_event(plan, count, access, s, WRITTEN, bytes);
    if (buffer->view_of < 0) return;
    for (int32_t loop = plan->steps[s].loop; loop > 0 && loop != home;
         loop = plan->loops[loop].parent) {
        const int64_t turns = plan->loops[loop].repeats;
        if (turns < 2) continue;
        bytes = turns > root_of(plan, access)->bytes / bytes ? root_of(plan, access)->bytes
                                                             : bytes * turns;
        add_event(plan, count, access, plan->loops[loop].last + 1, LOOP_ENDED, bytes);
    }
}

static int64_t list_events(hr_judged_plan *plan)
{
    int64_t count = 0;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            /* What outlives the run begins no turn in which a sum could be cleared. */
            const bool adds = access->kind == HR_JUDGED_ACCUMULATE &&
                              root_of(plan, access)->home == OUTLIVES_RUN;
            if (access->kind == HR_JUDGED_READ || access->kind == HR_JUDGED_UPDATE || adds)
                add_event(plan, &count, access, s, READ, plan->buffers[access->buffer].shape_bytes);
            else add_writes(plan, &count, access, s);
        }
    qsort(plan->events, (size_t)count, sizeof *plan->events, compare_events);
    return count;
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

/* The first piece from `piece` on that nobody wrote; the way there is shortened for the next. */
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

/* The events of one root, in order. Its bytes are cut into pieces at every end of an event; pieces
 * that are written join the next one that is not. */
static hr_status check_written(hr_judged_plan *plan, const hr_judged_event *events, int64_t count)
{
    int32_t cuts = 0, pieces = 0;
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
    const int64_t count = list_events(plan);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && plan->events[end].root == plan->events[i].root;) end++;
        const hr_status status = check_written(plan, &plan->events[i], end - i);
        if (status) return status;
    }
    return HR_OK;
}

/* ---- state */

/* Does the step update a master? Then it may write the weight that follows it. */
static bool updates_master(const hr_judged_plan *plan, int32_t s)
{
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++)
        if (plan->accesses[k].kind == HR_JUDGED_UPDATE &&
            has_role(root_of(plan, &plan->accesses[k]), "master"))
            return true;
    return false;
}

/* What outlives the run is made in the first section, where the run loads. After that it is
 * updated; or, a weight, written by the step that updates its master. */
static hr_status check_state(const hr_judged_plan *plan)
{
    const int32_t load = section_of(plan, 0);
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            const hr_judged_buffer *root = root_of(plan, access);
            if (root->home != OUTLIVES_RUN || access->kind == HR_JUDGED_READ ||
                access->kind == HR_JUDGED_UPDATE || section_of(plan, s) == load)
                continue;
            if (access->kind == HR_JUDGED_WRITE && has_role(root, "weight") &&
                updates_master(plan, s))
                continue;
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): step %d (%s) writes it over, but it outlives the run: "
                           "after loop %d (%s) it may only be updated",
                           access->buffer, plan->buffers[access->buffer].name, s, plan->steps[s].op,
                           load, plan->loops[load].name);
        }
    return HR_OK;
}

/* ---- updates */

static bool is_state(const hr_judged_buffer *root)
{
    return has_role(root, "weight") || has_role(root, "master") || has_role(root, "moment");
}

/* Is this the new value of a weight or of its master, outside the section that makes them? */
static bool renews(const hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const hr_judged_buffer *root = root_of(plan, access);
    if (access->kind == HR_JUDGED_READ || section_of(plan, s) == section_of(plan, 0)) return false;
    return has_role(root, "weight") || has_role(root, "master");
}

/* The loop once in whose turn an update belongs: that of the gradients it consumes. */
static int32_t turn_of_update(const hr_judged_plan *plan, int32_t s)
{
    int32_t loop = section_of(plan, s);
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_buffer *root = root_of(plan, &plan->accesses[k]);
        if (has_role(root, "gradient") && root->home >= 0) loop = root->home;
    }
    return loop;
}

/* Within its section a weight is updated once and then left alone: what is computed from it after
 * that would mix the weights of two steps. `by_buffer` has the step that renewed a root, or -1. */
static hr_status check_renewed(const hr_judged_plan *plan, int32_t s, int32_t k)
{
    const hr_judged_access *access = &plan->accesses[k];
    const int32_t root = plan->buffers[access->buffer].root, before = plan->by_buffer[root];
    const char *name = plan->buffers[access->buffer].name;
    if (before >= 0 && section_of(plan, before) == section_of(plan, s))
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) %s it after step %d (%s) has updated it, in "
                       "one turn of loop %d (%s)",
                       access->buffer, name, s, plan->steps[s].op,
                       access->kind == HR_JUDGED_READ ? "reads" : "writes", before,
                       plan->steps[before].op, section_of(plan, s),
                       plan->loops[section_of(plan, s)].name);
    const int32_t turning = renews(plan, s, access)
                                ? outermost_turning(plan, s, turn_of_update(plan, s))
                                : -1;
    if (turning < 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) updates it in each turn of loop %d (%s)",
                   access->buffer, name, s, plan->steps[s].op, turning, plan->loops[turning].name);
}

static hr_status check_updates(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = -1;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const hr_judged_step *step = &plan->steps[s];
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const hr_status status = check_renewed(plan, s, k);
            if (status) return status;
        }
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const int32_t b = plan->accesses[k].buffer, root = plan->buffers[b].root;
            if (!renews(plan, s, &plan->accesses[k])) continue;
            if (plan->by_buffer[root] == s)
                return hr_fail(plan->err, HR_CORRUPT,
                               "buffer %d (%s): step %d (%s) updates it twice", b,
                               plan->buffers[b].name, s, plan->steps[s].op);
            plan->by_buffer[root] = s;
        }
    }
    return HR_OK;
}

/* The step that renews each root of a parameter's state into `by_buffer`; -1: none. */
static hr_status find_renewals(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = -1;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            const int32_t root = plan->buffers[access->buffer].root;
            if (!is_state(&plan->buffers[root]) || access->kind == HR_JUDGED_READ ||
                section_of(plan, s) == section_of(plan, 0))
                continue;
            if (plan->by_buffer[root] >= 0)
                return hr_fail(plan->err, HR_CORRUPT,
                               "buffer %d (%s): step %d (%s) updates it, and step %d (%s) too",
                               root, plan->buffers[root].name, plan->by_buffer[root],
                               plan->steps[plan->by_buffer[root]].op, s, plan->steps[s].op);
            plan->by_buffer[root] = s;
        }
    return HR_OK;
}

/* What one step of the first section makes is the state of one parameter: its weight, master and
 * moments. They are renewed by one step, all of them, or none ever is. */
static hr_status check_parameters(hr_judged_plan *plan)
{
    const hr_status status = find_renewals(plan);
    if (status) return status;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const hr_judged_step *step = &plan->steps[s];
        int32_t before = -1;
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const int32_t root = plan->buffers[plan->accesses[k].buffer].root;
            if (section_of(plan, s) != section_of(plan, 0)) return HR_OK;
            if (!is_state(&plan->buffers[root]) || plan->accesses[k].kind == HR_JUDGED_READ)
                continue;
            if (before >= 0 && plan->by_buffer[before] != plan->by_buffer[root])
                return hr_fail(plan->err, HR_CORRUPT,
                               "buffers %d (%s) and %d (%s) belong to one parameter, but no step "
                               "updates both",
                               before, plan->buffers[before].name, root, plan->buffers[root].name);
            before = root;
        }
    }
    return HR_OK;
}

/* ---- gradients and sums */

/* A gradient is summed, and then it is read; so is any sum. Here, in the order of steps; a sum
 * inside a loop is done when the loop is: check_turns. `by_buffer` has the first read, or -1. */
static hr_status check_gradient(hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const int32_t b = plan->buffers[access->buffer].root;
    const int32_t turning = outermost_turning(plan, s, plan->buffers[b].home);
    const char *name = plan->buffers[access->buffer].name;
    if (access->kind == HR_JUDGED_READ) {
        if (plan->by_buffer[b] < 0) plan->by_buffer[b] = s;
        return HR_OK;
    }
    if (access->kind != HR_JUDGED_ACCUMULATE && turning >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) writes over a %s in each turn of loop "
                       "%d (%s)",
                       access->buffer, name, s, plan->steps[s].op, plan->buffers[b].role, turning,
                       plan->loops[turning].name);
    const int32_t read = plan->by_buffer[b];
    if (read < 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) adds to a %s that step %d (%s) has read",
                   access->buffer, name, s, plan->steps[s].op, plan->buffers[b].role, read,
                   plan->steps[read].op);
}

/* A gradient that is read and added to in turns of one loop. */
static hr_status check_turns(hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const int32_t b = plan->buffers[access->buffer].root, read = plan->by_buffer[b];
    const int32_t turning = outermost_turning(plan, s, plan->buffers[b].home);
    if (access->kind == HR_JUDGED_READ || turning < 0 || read < 0 ||
        read > plan->loops[turning].last)
        return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) reads a %s to which step %d (%s) adds in "
                   "the next turn of loop %d (%s)",
                   b, plan->buffers[b].name, read, plan->steps[read].op, plan->buffers[b].role, s,
                   plan->steps[s].op, turning, plan->loops[turning].name);
}

typedef hr_status check_fn(hr_judged_plan *plan, int32_t s, const hr_judged_access *access);

static hr_status for_sums(hr_judged_plan *plan, check_fn *check)
{
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_buffer *root = root_of(plan, &plan->accesses[k]);
            if (!has_role(root, "gradient") && !has_role(root, "sum")) continue;
            const hr_status status = check(plan, s, &plan->accesses[k]);
            if (status) return status;
        }
    return HR_OK;
}

static hr_status check_gradients(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = -1;
    hr_status status = for_sums(plan, check_gradient);
    if (!status) status = for_sums(plan, check_turns);
    return status;
}

/* ---- scratch */

/* Scratch is one step's: written by it, once, and nobody's after. */
static hr_status check_scratch(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = 0;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            if (!has_role(root_of(plan, access), "scratch")) continue;
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
    if (!status) status = check_state(plan);
    if (!status) status = check_updates(plan);
    if (!status) status = check_parameters(plan);
    if (!status) status = check_gradients(plan);
    if (!status) status = check_names(plan);
    return status;
}
