/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_transfers.c - verifies the steps that move bytes between the host and another memory
 * space: pairs of a begin and a wait, with nobody at the bytes in between.
 *
 * Walks over the program once, with the set of holds: ranges that are moving, and ranges of the
 * host that hold what was fetched. They never overlap. An update of such a window is an update of
 * the range that it was fetched from; it must be spilled to that range. */
#include <string.h>

#include "judge/judged.h"
#include "judge/verify_live.h"

enum { OUTLIVES_RUN = -1, BLOCK_BYTES = 4096 /* of direct I/O */ };

typedef struct {
    hr_judged_plan *plan;
    hr_judged_hold *holds;                 /* [buffer_count] */
    int32_t *spilled;                      /* [buffer_count] last spill to each root after the first
                                              section, or -1 */
    hr_judged_live held[HR_JUDGED_SPACES]; /* the buffers that have a hold */
    int64_t met;                           /* holds that accesses have met */
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

/* Whether a root outside the host holds an activation from its spill to its fetch. */
static bool is_spilled(const hr_judged_buffer *root)
{
    return root->space == HR_JUDGED_FILE && root->role == HR_JUDGED_ACTIVATION && root->home >= 0;
}

/* Checks who may be outside the host: moments, which are updated there through windows, weights in
 * files that are only read, and activations of an iteration. */
static hr_status check_places(const hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        if (buffer->space == HR_JUDGED_HOST || buffer->root != b) continue;
        if (buffer->space == HR_JUDGED_BASE && buffer->role == HR_JUDGED_WEIGHT &&
            buffer->home == OUTLIVES_RUN)
            continue;
        if (buffer->space != HR_JUDGED_BASE && buffer->role == HR_JUDGED_MOMENT &&
            buffer->home == OUTLIVES_RUN && !hr_judged_is_average(buffer))
            continue;
        if (is_spilled(buffer)) continue;
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): only a moment that outlives the run, and no average, or in the file "
            "an activation of an iteration, can be in the space %s",
            b, buffer->name, plan->spaces[buffer->space].name);
    }
    return HR_OK;
}

static hr_status bad_form(const hr_judged_plan *plan, int32_t s, const char *need)
{
    return hr_fail(plan->err, HR_CORRUPT, "step %d (%s): %s", s, plan->steps[s].op, need);
}

/* The bytes that a transfer of a buffer of the host moves: an activation in whole blocks. */
static int64_t moved_bytes(const hr_judged_buffer *host, const hr_judged_buffer *far)
{
    if (!is_spilled(far)) return host->bytes;
    return (host->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* Checks one pair of a begin: equal bytes of the host and of another space. */
static hr_status check_pair(const hr_judged_plan *plan, int32_t s, int32_t host, int32_t far)
{
    const hr_judged_buffer *one = &plan->buffers[host], *two = &plan->buffers[far];
    const hr_judged_buffer *owner = &plan->buffers[one->root];
    const int64_t moved = moved_bytes(one, two);
    if (one->space != HR_JUDGED_HOST || two->space == HR_JUDGED_HOST)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "step %d (%s): moves bytes between buffers %d (%s) and %d (%s), which must be "
            "in the host and in another space",
            s, plan->steps[s].op, host, one->name, far, two->name);
    if (moved != two->bytes)
        return hr_fail(
            plan->err, HR_CORRUPT,
            "step %d (%s): moves bytes between buffers %d (%s) of %lld bytes and %d (%s) "
            "of %lld",
            s, plan->steps[s].op, host, one->name, (long long)one->bytes, far, two->name,
            (long long)two->bytes);
    if (one->offset + moved > owner->offset + owner->bytes)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) moves whole blocks of it, but buffer %d (%s) "
                       "ends before",
                       host, one->name, s, plan->steps[s].op, one->root, owner->name);
    if (owner->home == OUTLIVES_RUN)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) moves it, but it outlives the run", host,
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

/* Checks that nothing is written to the files of a model. */
static hr_status check_base(const hr_judged_plan *plan, int32_t s)
{
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_access *access = &plan->accesses[k];
        const hr_judged_buffer *buffer = &plan->buffers[access->buffer];
        if (buffer->space == HR_JUDGED_BASE && access->kind != HR_JUDGED_READ)
            return hr_fail(
                plan->err, HR_CORRUPT,
                "buffer %d (%s): step %d (%s) writes it, but the space base is only read",
                access->buffer, buffer->name, s, plan->steps[s].op);
    }
    return HR_OK;
}

static hr_status check_form(const hr_judged_plan *plan, int32_t s)
{
    const hr_judged_step *step = &plan->steps[s];
    const hr_status status = check_base(plan, s);
    if (status) return status;
    if (begins(plan, s)) return check_begin(plan, s);
    for (int32_t k = step->access_first; k < step->access_end; k++) {
        const hr_judged_buffer *buffer = &plan->buffers[plan->accesses[k].buffer];
        if (buffer->space == HR_JUDGED_BASE && !strcmp(step->op, "lookup")) continue;
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
static void add_hold(walk *w, int32_t s, int32_t b, int32_t other)
{
    const hr_judged_buffer *buffer = &w->plan->buffers[b];
    hr_judged_hold *hold = &w->holds[b];
    *hold = (hr_judged_hold){ HR_JUDGED_MOVING, other, s, -1, 0, 0 };
    find_range(w->plan, b, s, &hold->first, &hold->end);
    hr_judged_live_add(&w->held[buffer->space], b);
}

static void remove_hold(walk *w, int32_t b)
{
    w->holds[b].state = HR_JUDGED_FREE;
    hr_judged_live_remove(&w->held[w->plan->buffers[b].space], b);
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

/* Ends the hold of a buffer whose content is overwritten or no longer needed. */
static hr_status drop(walk *w, int32_t b)
{
    const hr_judged_plan *plan = w->plan;
    const hr_judged_hold *hold = &w->holds[b];
    if (hold->state == HR_JUDGED_MOVING)
        return bad_form(plan, hold->begin, "begins a transfer that no step waits for");
    if (hold->updated >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) updates what was fetched from buffer %d (%s), "
                       "but no step spills it",
                       b, plan->buffers[b].name, hold->updated, plan->steps[hold->updated].op,
                       hold->other, plan->buffers[hold->other].name);
    remove_hold(w, b);
    return HR_OK;
}

/* Updates a window: the access counts as one of the range that it was fetched from. */
static hr_status update_window(walk *w, int32_t s, hr_judged_access *access, int32_t held)
{
    const hr_judged_plan *plan = w->plan;
    hr_judged_hold *hold = &w->holds[held];
    if (access->buffer == held && hold->updated < 0 && hr_judged_apart(plan, hold->begin, s) < 0) {
        hold->updated = s;
        access->stands_for = hold->other;
        return HR_OK;
    }
    return hr_fail(
        plan->err, HR_CORRUPT,
        "buffer %d (%s): step %d (%s) updates it, but not exactly once what step %d (%s) "
        "fetches into buffer %d (%s)",
        access->buffer, plan->buffers[access->buffer].name, s, plan->steps[s].op, hold->begin,
        plan->steps[hold->begin].op, held, plan->buffers[held].name);
}

/* Checks that what was fetched is still what the moment is. */
static hr_status check_fresh(const walk *w, int32_t s, int32_t b, const hr_judged_hold *hold)
{
    const hr_judged_plan *plan = w->plan;
    const int32_t of = plan->buffers[hold->other].root, spilled = w->spilled[of];
    if (spilled < hold->begin) return HR_OK;
    return hr_fail(
        plan->err, HR_CORRUPT,
        "buffer %d (%s): step %d (%s) reads what step %d (%s) has fetched from buffer %d "
        "(%s), but step %d (%s) has spilled to that since",
        b, plan->buffers[b].name, s, plan->steps[s].op, hold->begin, plan->steps[hold->begin].op,
        of, plan->buffers[of].name, spilled, plan->steps[spilled].op);
}

/* An access meets the hold of buffer `held` if both have a byte. Holds of buffers that are dead are
 * dropped. */
static hr_status meet(walk *w, int32_t s, hr_judged_access *access, int32_t held)
{
    const hr_judged_plan *plan = w->plan;
    const hr_judged_hold *hold = &w->holds[held];
    if (plan->buffers[held].last < s) return drop(w, held);
    if (++w->met > plan->file_bytes)
        return hr_fail(plan->err, HR_CORRUPT,
                       "plan file: up to step %d, accesses meet more windows and transfers than it "
                       "has bytes",
                       s);
    if (hold->state == HR_JUDGED_MOVING) return is_moving(w, s, access->buffer, hold);
    switch (access->kind) {
    case HR_JUDGED_READ: return check_fresh(w, s, access->buffer, hold);
    case HR_JUDGED_UPDATE: return update_window(w, s, access, held);
    default: return drop(w, held);
    }
}

/* Compares one access with all holds. */
static hr_status check_holds(walk *w, int32_t s, hr_judged_access *access)
{
    const hr_judged_plan *plan = w->plan;
    const hr_judged_buffer *buffers = plan->buffers, *buffer = &buffers[access->buffer];
    const hr_judged_live *held = &w->held[buffer->space];
    const int32_t low = hr_judged_live_lowest(held, access->buffer);
    int64_t first, end;
    find_range(plan, access->buffer, s, &first, &end);
    for (int32_t h, from = low; (h = hr_judged_live_above(held, from)) >= 0;) {
        if (buffers[h].offset - buffers[buffer->root].offset >= end) break;
        const hr_status status = meet(w, s, access, h);
        if (status) return status;
        from = held->rank_of[h] + 1;
    }
    for (int32_t h, below = low; (h = hr_judged_live_below(held, below)) >= 0;) {
        const int64_t held_end = w->holds[h].end + buffers[buffers[h].root].offset;
        const bool dead = buffers[h].last < s;
        if (!dead && held_end <= buffer->offset) break;
        const hr_status status = meet(w, s, access, h);
        if (status || !dead) return status;
        below = held->rank_of[h];
    }
    return HR_OK;
}

static hr_status check_access(walk *w, int32_t s, hr_judged_access *access)
{
    const hr_judged_plan *plan = w->plan;
    const hr_status status = check_holds(w, s, access);
    if (!status && access->kind == HR_JUDGED_UPDATE && access->stands_for == access->buffer &&
        hr_judged_is_window(plan, plan->buffers[access->buffer].root) && !hr_judged_loads(plan, s))
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
    const hr_judged_hold *hold = &w->holds[from];
    if (hold->state == HR_JUDGED_MOVING) return is_moving(w, s, from, hold);
    if (hold->state == HR_JUDGED_FREE || hold->other != to ||
        hr_judged_apart(plan, hold->begin, s) >= 0)
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
    remove_hold(w, from);
    return HR_OK;
}

/* Checks that an activation is spilled from one of the same iterations, where it is not in another
 * transfer. */
static hr_status check_activation(walk *w, int32_t s, int32_t from, int32_t to)
{
    const hr_judged_plan *plan = w->plan;
    const hr_judged_buffer *one = &plan->buffers[plan->buffers[from].root];
    const hr_judged_buffer *two = &plan->buffers[plan->buffers[to].root];
    if (one->role == HR_JUDGED_ACTIVATION && one->home == two->home &&
        two->bytes == plan->buffers[to].bytes)
        return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) spills it to buffer %d (%s), which is no "
                   "activation of the same iterations",
                   from, plan->buffers[from].name, s, plan->steps[s].op, to,
                   plan->buffers[to].name);
}

static hr_status begin_spill(walk *w, int32_t s)
{
    hr_judged_plan *plan = w->plan;
    const int32_t first = plan->steps[s].access_first, reads = count_reads(plan, s);
    const hr_judged_buffer *far = &plan->buffers[plan->accesses[first + reads].buffer];
    const bool spilled = is_spilled(&plan->buffers[far->root]);
    const int32_t home = spilled ? plan->buffers[far->root].home : hr_judged_section(plan, s);
    const int32_t repeating = hr_judged_repeating(plan, s, home);
    if (repeating >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "step %d (%s): spills in each iteration of loop %d (%s)", s,
                       plan->steps[s].op, repeating, plan->loops[repeating].name);
    for (int32_t k = first; k < first + reads; k++) {
        const int32_t from = plan->accesses[k].buffer, to = plan->accesses[k + reads].buffer;
        const bool fills = hr_judged_loads(plan, s);
        hr_judged_access taken = { from, from, HR_JUDGED_WRITE }; /* nothing else is held there */
        hr_status status = is_spilled(&plan->buffers[plan->buffers[to].root])
                               ? check_activation(w, s, from, to)
                           : fills ? check_filling(w, s, from, to)
                                   : check_spilled(w, s, from, to);
        if (!status) status = check_access(w, s, &taken);
        if (!status) status = check_access(w, s, &plan->accesses[k + reads]);
        if (status) return status;
        add_hold(w, s, from, to);
        add_hold(w, s, to, from);
        if (!fills) w->spilled[plan->buffers[to].root] = s;
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
        if (status) return status;
        add_hold(w, s, from, to);
        add_hold(w, s, to, from);
    }
    return HR_OK;
}

/* The begin that this step waits for, by its buffers of the host; -1: none. */
static int32_t awaited(const walk *w, int32_t s)
{
    const hr_judged_plan *plan = w->plan;
    int32_t count, waited;
    const hr_judged_access *list = of_host(plan, s, &waited);
    const hr_judged_hold *hold = waited ? &w->holds[list[0].buffer] : NULL;
    if (!hold || hold->state != HR_JUDGED_MOVING) return -1;
    const hr_judged_access *moved = of_host(plan, hold->begin, &count);
    bool same = count == waited &&
                plan->steps[s].transfer == plan->steps[hold->begin].transfer + 1; /* its wait */
    for (int32_t k = 0; k < count && same; k++) same = moved[k].buffer == list[k].buffer;
    return same ? hold->begin : -1;
}

static hr_status end_transfer(walk *w, int32_t s)
{
    const hr_judged_plan *plan = w->plan;
    const int32_t begin = awaited(w, s);
    if (begin < 0) return bad_form(plan, s, "waits for a transfer that has not begun");
    const int32_t apart = hr_judged_apart(plan, begin, s);
    if (apart >= 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "step %d (%s): waits for the transfer of step %d (%s), but only one of them "
                       "is in loop %d (%s)",
                       s, plan->steps[s].op, begin, plan->steps[begin].op, apart,
                       plan->loops[apart].name);
    for (int32_t k = plan->steps[begin].access_first; k < plan->steps[begin].access_end; k++) {
        const int32_t b = plan->accesses[k].buffer;
        if (plan->steps[s].transfer == HR_JUDGED_FETCH_WAIT &&
            plan->buffers[b].space == HR_JUDGED_HOST)
            w->holds[b].state = HR_JUDGED_FETCHED;
        else remove_hold(w, b);
    }
    return HR_OK;
}

/* ---- the walk */

static hr_status walk_step(walk *w, int32_t s)
{
    const hr_judged_step *step = &w->plan->steps[s];
    hr_status status = check_form(w->plan, s);
    if (status) return status;
    if (step->transfer == HR_JUDGED_FETCH_BEGIN) return begin_fetch(w, s);
    if (step->transfer == HR_JUDGED_SPILL_BEGIN) return begin_spill(w, s);
    if (step->transfer != HR_JUDGED_NO_TRANSFER) return end_transfer(w, s);
    for (int32_t k = step->access_first; k < step->access_end && !status; k++)
        status = check_access(w, s, &w->plan->accesses[k]);
    return status;
}

/* Checks what is left: transfers without a wait, updates that stay in a window, and moments that
 * the first section has not filled. */
static hr_status check_rest(walk *w)
{
    const hr_judged_plan *plan = w->plan;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_judged_buffer *buffer = &plan->buffers[b];
        const hr_status status = w->holds[b].state == HR_JUDGED_FREE ? HR_OK : drop(w, b);
        if (status) return status;
        if (buffer->root == b && buffer->space != HR_JUDGED_HOST &&
            buffer->space != HR_JUDGED_BASE && !is_spilled(buffer) &&
            plan->reached[b] != buffer->bytes)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): the first section spills %lld of its %lld bytes", b,
                           buffer->name, (long long)plan->reached[b], (long long)buffer->bytes);
    }
    return HR_OK;
}

hr_status hr_verify_transfers(hr_judged_plan *plan)
{
    walk w = { .plan = plan, .holds = plan->holds, .spilled = plan->averages };
    if (plan->version == 1) return HR_OK;
    hr_status status = check_places(plan);
    for (int32_t i = 0; i < HR_JUDGED_SPACES && !status; i++)
        if (plan->spaces[i].buffer_count) status = hr_judged_live_open(plan, &w.held[i]);
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        w.spilled[b] = -1;
        plan->reached[b] = 0;
    }
    for (int32_t s = 0; s < plan->step_count && !status; s++) status = walk_step(&w, s);
    if (!status) status = check_rest(&w);
    for (int32_t i = 0; i < HR_JUDGED_SPACES; i++) hr_judged_live_close(&w.held[i]);
    return status;
}
