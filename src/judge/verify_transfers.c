/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_transfers.c - verifies the steps that move bytes between the host and another memory
 * space: pairs of a begin and a wait, with nobody at the bytes in between.
 *
 * Walks over the program once. Each root has a list of holds: ranges that are moving, and ranges of
 * the host that hold what was fetched. An update of such a window is an update of the range that it
 * was fetched from; it must be spilled to that range. */
#include <string.h>

#include "judge/verify.h"

enum { OUTLIVES_RUN = -1, BLOCK_BYTES = 4096 /* of direct I/O */, OPEN_MAX = 64, HOLDS_MAX = 64 };

/* The transfers between begin and wait at one step. */
typedef struct {
    hr_judged_plan *plan;
    int32_t *heads; /* [buffer_count] first hold of each root, or -1 */
    int32_t hold_count, open_count;
    int32_t open[OPEN_MAX]; /* their begins */
} walk;

static int32_t count_reads(const hr_judged_plan *plan, int32_t s)
{
    int32_t k = plan->steps[s].access_first;
    while (k < plan->steps[s].access_end && plan->accesses[k].kind == HR_JUDGED_READ) k++;
    return k - plan->steps[s].access_first;
}

static bool begins(const hr_judged_plan *plan, int32_t s)
{
    return plan->steps[s].transfer == HR_JUDGED_FETCH_BEGIN ||
           plan->steps[s].transfer == HR_JUDGED_SPILL_BEGIN;
}

/* The buffers of the host in a begin or a wait, as accesses. */
static const hr_judged_access *of_host(const hr_judged_plan *plan, int32_t s, int32_t *count)
{
    const hr_judged_access *first = &plan->accesses[plan->steps[s].access_first];
    *count = count_reads(plan, s);
    return plan->steps[s].transfer == HR_JUDGED_FETCH_BEGIN ? first + *count : first;
}

/* ---- form */

/* Checks who may be outside the host: moments, which are updated there through windows. */
static hr_status check_places(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        if (buffer->space == HR_JUDGED_HOST || buffer->root != b) continue;
        if (buffer->role == HR_JUDGED_MOMENT && buffer->home == OUTLIVES_RUN &&
            !hr_judged_is_average(buffer))
            continue;
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): only a moment that outlives the run, and no average, can be "
            "in the space %s",
            b, buffer->name, plan->spaces[buffer->space].name);
    }
    return HR_OK;
}

static hr_status bad_form(const hr_judged_plan *plan, int32_t s, const char *need)
{
    return hr_fail(plan->err, HR_CORRUPT, "step %d (%s): %s", s, plan->steps[s].op, need);
}

/* Checks one pair of a begin: equal bytes of the host and of another space. */
static hr_status check_pair(const hr_judged_plan *plan, int32_t s, int32_t host, int32_t far)
{
    const hr_judged_buffer *one = &plan->buffers[host], *two = &plan->buffers[far];
    if (one->space != HR_JUDGED_HOST || two->space == HR_JUDGED_HOST)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "step %d (%s): moves bytes between buffers %d (%s) and %d (%s), which must be "
            "in the host and in another space",
            s, plan->steps[s].op, host, one->name, far, two->name);
    if (one->bytes != two->bytes)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "step %d (%s): moves bytes between buffers %d (%s) of %lld bytes and %d (%s) "
            "of %lld",
            s, plan->steps[s].op, host, one->name, (long long)one->bytes, far, two->name,
            (long long)two->bytes);
    if (plan->buffers[one->root].home <= 0)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): step %d (%s) moves it, but its home is not inside a section", host,
            one->name, s, plan->steps[s].op);
    if (two->space == HR_JUDGED_FILE && one->offset % BLOCK_BYTES)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): offset %lld must be a multiple of %d, since step %d (%s) "
                       "moves it from or to a file",
                       host, one->name, (long long)one->offset, BLOCK_BYTES, s, plan->steps[s].op);
    return HR_OK;
}

static hr_status check_begin(const hr_judged_plan *plan, int32_t s)
{
    const hr_judged_step *step = &plan->steps[s];
    const int32_t reads = count_reads(plan, s), first = step->access_first;
    const bool fetch = step->transfer == HR_JUDGED_FETCH_BEGIN;
    if (reads == 0 || step->access_end - first != 2 * reads)
        return bad_form(plan, s, "a transfer needs as many writes as reads, and at least one");
    for (int32_t k = first; k < first + reads; k++) {
        const hr_judged_access *from = &plan->accesses[k], *to = &plan->accesses[k + reads];
        if (to->kind != HR_JUDGED_WRITE) return bad_form(plan, s, "a transfer only writes");
        const hr_status status = fetch ? check_pair(plan, s, to->buffer, from->buffer)
                                       : check_pair(plan, s, from->buffer, to->buffer);
        if (status) return status;
    }
    return HR_OK;
}

static hr_status check_form(const hr_judged_plan *plan, int32_t s)
{
    const hr_judged_step *step = &plan->steps[s];
    if (begins(plan, s)) return check_begin(plan, s);
    for (int32_t k = step->access_first; k < step->access_end; k++) {
        const hr_judged_buffer *buffer = &plan->buffers[plan->accesses[k].buffer];
        if (buffer->space != HR_JUDGED_HOST)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): step %d (%s) accesses it in the space %s, but only "
                           "fetch_begin and spill_begin do",
                           plan->accesses[k].buffer, buffer->name, s, step->op,
                           plan->spaces[buffer->space].name);
    }
    if (step->transfer != HR_JUDGED_NO_TRANSFER &&
        count_reads(plan, s) != step->access_end - step->access_first)
        return bad_form(plan, s, "a wait writes nothing");
    return HR_OK;
}

/* ---- holds */

/* The bytes of its root that a buffer covers at step `s`; a view covers those of all iterations of
 * the loops inside home and section. */
static void find_range(const hr_judged_plan *plan, int32_t b, int32_t s, int64_t *first,
                       int64_t *end)
{
    const hr_judged_buffer *buffer = &plan->buffers[b], *owner = &plan->buffers[buffer->root];
    int64_t bytes = buffer->bytes;
    for (int32_t loop = plan->steps[s].loop;
         buffer->view_of >= 0 && plan->loops[loop].depth > 1 && loop != owner->home;
         loop = plan->loops[loop].parent)
        bytes = plan->loops[loop].repeats > owner->bytes / bytes
                    ? owner->bytes
                    : bytes * plan->loops[loop].repeats;
    *first = buffer->offset - owner->offset;
    *end = bytes > owner->bytes - *first ? owner->bytes : *first + bytes;
}

/* Begins a hold of buffer `b` at step `s`; `other` is the buffer at the other end of the
 * transfer. */
static hr_status add_hold(walk *w, int32_t s, int32_t b, int32_t other)
{
    hr_judged_plan *plan = w->plan;
    const int32_t root = plan->buffers[b].root, made = w->hold_count++;
    hr_judged_hold *hold = &plan->holds[made];
    int32_t others = 0;
    for (int32_t h = w->heads[root]; h >= 0; h = plan->holds[h].next) others++;
    if (others == HOLDS_MAX)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): more than %d of its ranges are in transfers or hold fetched "
            "bytes at step %d",
            root, plan->buffers[root].name, HOLDS_MAX, s);
    *hold = (hr_judged_hold){ .next = w->heads[root],
                              .buffer = b,
                              .other = other,
                              .begin = s,
                              .updated = -1,
                              .moving = true };
    find_range(plan, b, s, &hold->first, &hold->end);
    w->heads[root] = made;
    return HR_OK;
}

static void remove_hold(walk *w, int32_t root, int32_t gone)
{
    int32_t *at = &w->heads[root];
    while (*at != gone) at = &w->plan->holds[*at].next;
    *at = w->plan->holds[gone].next;
}

/* The hold of exactly this buffer; -1: none. */
static int32_t find_hold(const walk *w, int32_t b)
{
    int32_t h = w->heads[w->plan->buffers[b].root];
    while (h >= 0 && w->plan->holds[h].buffer != b) h = w->plan->holds[h].next;
    return h;
}

/* ---- accesses */

static hr_status is_moving(const walk *w, int32_t s, int32_t b, const hr_judged_hold *hold)
{
    const hr_judged_plan *plan = w->plan;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) accesses bytes of it that the transfer of step %d "
                   "(%s) moves until its wait",
                   b, plan->buffers[b].name, s, plan->steps[s].op, hold->begin,
                   plan->steps[hold->begin].op);
}

static hr_status lost(const walk *w, const hr_judged_hold *hold)
{
    const hr_judged_plan *plan = w->plan;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) updates what was fetched from buffer %d (%s), but "
                   "no step spills it",
                   hold->buffer, plan->buffers[hold->buffer].name, hold->updated,
                   plan->steps[hold->updated].op, hold->other, plan->buffers[hold->other].name);
}

/* Updates a window: the access counts as one of the range that it was fetched from. */
static hr_status update_window(walk *w, int32_t s, hr_judged_access *access, hr_judged_hold *hold)
{
    const hr_judged_plan *plan = w->plan;
    if (access->buffer == hold->buffer && hold->updated < 0 &&
        hr_judged_apart(plan, hold->begin, s) < 0) {
        hold->updated = s;
        access->stands_for = hold->other;
        return HR_OK;
    }
    return hr_fail(
        plan->err, HR_CORRUPT,
        "buffer %d (%s): step %d (%s) updates it, but not exactly once what step %d (%s) "
        "fetches into buffer %d (%s)",
        access->buffer, plan->buffers[access->buffer].name, s, plan->steps[s].op, hold->begin,
        plan->steps[hold->begin].op, hold->buffer, plan->buffers[hold->buffer].name);
}

/* Compares one access with the holds of its root. */
static hr_status check_access(walk *w, int32_t s, hr_judged_access *access)
{
    hr_judged_plan *plan = w->plan;
    const int32_t root = plan->buffers[access->buffer].root;
    int64_t first, end;
    hr_status status = HR_OK;
    find_range(plan, access->buffer, s, &first, &end);
    for (int32_t h = w->heads[root], next; h >= 0 && !status; h = next) {
        hr_judged_hold *hold = &plan->holds[h];
        next = hold->next;
        if (hold->end <= first || end <= hold->first) continue;
        if (hold->moving) return is_moving(w, s, access->buffer, hold);
        if (access->kind == HR_JUDGED_READ) continue;
        if (access->kind == HR_JUDGED_UPDATE) status = update_window(w, s, access, hold);
        else if (hold->updated >= 0) return lost(w, hold);
        else remove_hold(w, root, h);
    }
    if (!status && access->kind == HR_JUDGED_UPDATE && access->stands_for == access->buffer &&
        hr_judged_is_window(plan, root) && !hr_judged_loads(plan, s))
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) updates it, but it holds no moment that was "
                       "fetched",
                       access->buffer, plan->buffers[access->buffer].name, s, plan->steps[s].op);
    return status;
}

/* ---- transfers */

/* Checks that a spill of the first section writes the next bytes of a moment, from a window. */
static hr_status check_filling(walk *w, int32_t s, int32_t from, int32_t to)
{
    hr_judged_plan *plan = w->plan;
    const hr_judged_buffer *buffer = &plan->buffers[to];
    const int64_t first = buffer->offset - plan->buffers[buffer->root].offset;
    if (!hr_judged_is_window(plan, plan->buffers[from].root))
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) spills it, but only a moment that does not "
                       "outlive the run can be spilled",
                       from, plan->buffers[from].name, s, plan->steps[s].op);
    if (first != plan->reached[buffer->root])
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): step %d (%s) spills to its buffer %d from byte %lld on, but "
            "byte %lld is next",
            to, buffer->name, s, plan->steps[s].op, buffer->root, (long long)first,
            (long long)plan->reached[buffer->root]);
    plan->reached[buffer->root] = first + buffer->bytes;
    return HR_OK;
}

/* Checks that a window holds the range that it is spilled to, with one update since. Ends its
 * hold. */
static hr_status check_spilled(walk *w, int32_t s, int32_t from, int32_t to)
{
    const hr_judged_plan *plan = w->plan;
    const int32_t h = find_hold(w, from);
    const hr_judged_hold *hold = h < 0 ? NULL : &plan->holds[h];
    if (hold && hold->moving) return is_moving(w, s, from, hold);
    if (!hold || hold->other != to || hr_judged_apart(plan, hold->begin, s) >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) spills it to buffer %d (%s), but it does not "
                       "hold what was fetched from there",
                       from, plan->buffers[from].name, s, plan->steps[s].op, to,
                       plan->buffers[to].name);
    if (hold->updated < 0)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): step %d (%s) spills it, but no step has updated it since it "
            "was fetched",
            from, plan->buffers[from].name, s, plan->steps[s].op);
    remove_hold(w, plan->buffers[from].root, h);
    return HR_OK;
}

static hr_status begin_spill(walk *w, int32_t s)
{
    hr_judged_plan *plan = w->plan;
    const int32_t first = plan->steps[s].access_first, reads = count_reads(plan, s);
    const int32_t repeating = hr_judged_repeating(plan, s, hr_judged_section(plan, s));
    if (repeating >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "step %d (%s): spills in each iteration of loop %d (%s)", s,
                       plan->steps[s].op, repeating, plan->loops[repeating].name);
    for (int32_t k = first; k < first + reads; k++) {
        const int32_t from = plan->accesses[k].buffer, to = plan->accesses[k + reads].buffer;
        hr_status status = hr_judged_loads(plan, s) ? check_filling(w, s, from, to)
                                                    : check_spilled(w, s, from, to);
        if (!status) status = check_access(w, s, &plan->accesses[k]);
        if (!status) status = check_access(w, s, &plan->accesses[k + reads]);
        if (!status) status = add_hold(w, s, from, to);
        if (!status) status = add_hold(w, s, to, from);
        if (status) return status;
    }
    return HR_OK;
}

static hr_status begin_fetch(walk *w, int32_t s)
{
    hr_judged_plan *plan = w->plan;
    const int32_t first = plan->steps[s].access_first, reads = count_reads(plan, s);
    for (int32_t k = first; k < first + reads; k++) {
        const int32_t from = plan->accesses[k].buffer, to = plan->accesses[k + reads].buffer;
        hr_status status = check_access(w, s, &plan->accesses[k]);
        if (!status) status = check_access(w, s, &plan->accesses[k + reads]);
        if (!status) status = add_hold(w, s, from, to);
        if (!status) status = add_hold(w, s, to, from);
        if (status) return status;
    }
    return HR_OK;
}

static hr_status begin_transfer(walk *w, int32_t s)
{
    if (w->open_count == OPEN_MAX)
        return hr_fail(w->plan->err, HR_CORRUPT,
                       "step %d (%s): more than %d transfers at once, the limit", s,
                       w->plan->steps[s].op, OPEN_MAX);
    w->open[w->open_count++] = s;
    return w->plan->steps[s].transfer == HR_JUDGED_FETCH_BEGIN ? begin_fetch(w, s)
                                                               : begin_spill(w, s);
}

/* The open transfer that this step waits for, by its buffers of the host; -1: none. */
static int32_t awaited(const walk *w, int32_t s)
{
    const hr_judged_plan *plan = w->plan;
    const bool fetch = plan->steps[s].transfer == HR_JUDGED_FETCH_WAIT;
    int32_t count, waited;
    const hr_judged_access *list = of_host(plan, s, &waited);
    for (int32_t i = 0; i < w->open_count; i++) {
        const hr_judged_access *moved = of_host(plan, w->open[i], &count);
        bool same = count == waited &&
                    fetch == (plan->steps[w->open[i]].transfer == HR_JUDGED_FETCH_BEGIN);
        for (int32_t k = 0; k < count && same; k++) same = moved[k].buffer == list[k].buffer;
        if (same) return i;
    }
    return -1;
}

static hr_status end_transfer(walk *w, int32_t s)
{
    const hr_judged_plan *plan = w->plan;
    const int32_t i = awaited(w, s), begin = i < 0 ? -1 : w->open[i];
    if (begin < 0) return bad_form(plan, s, "waits for a transfer that has not begun");
    const int32_t apart = hr_judged_apart(plan, begin, s);
    if (apart >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "step %d (%s): waits for the transfer of step %d (%s), but only one of them "
                       "is in loop %d (%s)",
                       s, plan->steps[s].op, begin, plan->steps[begin].op, apart,
                       plan->loops[apart].name);
    w->open[i] = w->open[--w->open_count];
    for (int32_t k = plan->steps[begin].access_first; k < plan->steps[begin].access_end; k++) {
        const int32_t b = plan->accesses[k].buffer, h = find_hold(w, b);
        plan->holds[h].moving = false;
        if (plan->steps[s].transfer != HR_JUDGED_FETCH_WAIT ||
            plan->buffers[b].space != HR_JUDGED_HOST)
            remove_hold(w, plan->buffers[b].root, h);
    }
    return HR_OK;
}

/* ---- the walk */

static hr_status walk_step(walk *w, int32_t s)
{
    const hr_judged_step *step = &w->plan->steps[s];
    hr_status status = check_form(w->plan, s);
    if (status) return status;
    if (begins(w->plan, s)) return begin_transfer(w, s);
    if (step->transfer != HR_JUDGED_NO_TRANSFER) return end_transfer(w, s);
    for (int32_t k = step->access_first; k < step->access_end && !status; k++)
        status = check_access(w, s, &w->plan->accesses[k]);
    return status;
}

/* Checks what is left: transfers without a wait, updates that stay in a window, and moments that
 * the first section has not filled. */
static hr_status check_rest(const walk *w)
{
    const hr_judged_plan *plan = w->plan;
    if (w->open_count)
        return bad_form(plan, w->open[0], "begins a transfer that no step waits for");
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        for (int32_t h = w->heads[b]; h >= 0; h = plan->holds[h].next)
            if (plan->holds[h].updated >= 0) return lost(w, &plan->holds[h]);
        if (buffer->root == b && buffer->space != HR_JUDGED_HOST &&
            plan->reached[b] != buffer->bytes)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): the first section spills %lld of its %lld bytes", b,
                           buffer->name, (long long)plan->reached[b], (long long)buffer->bytes);
    }
    return HR_OK;
}

hr_status hr_verify_transfers(hr_judged_plan *plan)
{
    walk w = { .plan = plan, .heads = plan->by_buffer };
    if (plan->version == 1) return HR_OK;
    hr_status status = check_places(plan);
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        w.heads[b] = -1;
        plan->reached[b] = 0;
    }
    for (int32_t s = 0; s < plan->step_count && !status; s++) status = walk_step(&w, s);
    return status ? status : check_rest(&w);
}
