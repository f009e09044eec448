/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_pieces.c - verifies which steps update state, and which bytes each of them updates.
 *
 * Several steps may update a parameter, each a piece of it: the same steps update its weight, its
 * master and its moments, and they cover the same elements of each, in order and without a gap. The
 * moments in another space have no other link to their parameter. A step in a loop over strips is
 * one piece: that of all iterations. */
#include "judge/judged.h"

/* The bytes of a root that an access to state updates; in strips those of all iterations, and at
 * most one more than the root has. */
typedef struct {
    int32_t root;
    int64_t first, end;
} piece;

static piece piece_of(const hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const hr_judged_buffer *buffer = &plan->buffers[access->stands_for];
    const int64_t first = buffer->offset - plan->buffers[buffer->root].offset;
    const int64_t room = plan->buffers[buffer->root].bytes - first;
    int64_t bytes = buffer->bytes;
    for (int32_t loop = plan->steps[s].loop;
         buffer->view_of >= 0 && plan->loops[loop].depth > 1 && hr_judged_in_strips(plan, s);
         loop = plan->loops[loop].parent)
        bytes = plan->loops[loop].repeats > room / bytes ? room + 1
                                                         : bytes * plan->loops[loop].repeats;
    return (piece){ buffer->root, first, first + bytes };
}

/* Returns whether an access updates state after the first section. What a transfer writes was
 * counted at the update of the window. */
static bool updates(const hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const int32_t root = plan->buffers[access->stands_for].root;
    return access->kind != HR_JUDGED_READ && hr_judged_is_state(plan, root) &&
           plan->steps[s].transfer == HR_JUDGED_NO_TRANSFER && !hr_judged_loads(plan, s);
}

static hr_status updated_too(const hr_judged_plan *plan, int32_t root, int32_t s)
{
    const int32_t before = plan->by_buffer[root];
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) updates it, and step %d (%s) too", root,
                   plan->buffers[root].name, before, plan->steps[before].op, s, plan->steps[s].op);
}

/* Version 1: one step updates all of a root. */
static hr_status find_updates_of_1(hr_judged_plan *plan)
{
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const int32_t root = plan->buffers[plan->accesses[k].buffer].root;
            if (!updates(plan, s, &plan->accesses[k])) continue;
            if (plan->by_buffer[root] >= 0) return updated_too(plan, root, s);
            plan->by_buffer[root] = s;
        }
    return HR_OK;
}

/* Returns whether a step runs once per iteration of its section, with all its strips. */
static bool runs_once(const hr_judged_plan *plan, int32_t s)
{
    return hr_judged_in_strips(plan, s) ||
           hr_judged_repeating(plan, s, hr_judged_section(plan, s)) < 0;
}

/* Checks that the piece is the next one of its root, in the same iterations as the one before. */
static hr_status check_next(const hr_judged_plan *plan, int32_t s, const piece *p)
{
    const int32_t before = plan->by_buffer[p->root];
    const hr_judged_buffer *buffer = &plan->buffers[p->root];
    if (before >= 0 && ((hr_judged_apart(plan, before, s) >= 0 &&
                         !(runs_once(plan, before) && runs_once(plan, s))) ||
                        hr_judged_section(plan, before) != hr_judged_section(plan, s)))
        return updated_too(plan, p->root, s);
    if (p->end > buffer->bytes)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): the strips of step %d (%s) reach beyond its %lld bytes",
                       p->root, buffer->name, s, plan->steps[s].op, (long long)buffer->bytes);
    if (p->first == plan->reached[p->root]) return HR_OK;
    return hr_fail(
        plan->err, HR_CORRUPT,
        "buffer %d (%s): step %d (%s) updates bytes %lld to %lld of it, but byte %lld is "
        "next",
        p->root, plan->buffers[p->root].name, s, plan->steps[s].op, (long long)p->first,
        (long long)p->end, (long long)plan->reached[p->root]);
}

/* Checks that two pieces of one step begin at the same element and follow the same step. States of
 * other shapes have no elements to compare. */
static hr_status check_together(const hr_judged_plan *plan, int32_t s, const piece *a,
                                const piece *b)
{
    const hr_judged_buffer *one = &plan->buffers[a->root], *two = &plan->buffers[b->root];
    const int64_t bytes_a = one->element_bytes, bytes_b = two->element_bytes;
    const int32_t before_a = plan->by_buffer[a->root], before_b = plan->by_buffer[b->root];
    if (before_a != before_b)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffers %d (%s) and %d (%s): step %d (%s) updates both, but only one was "
                       "updated by step %d",
                       a->root, one->name, b->root, two->name, s, plan->steps[s].op,
                       before_a > before_b ? before_a : before_b);
    if (one->shape_bytes / bytes_a != two->shape_bytes / bytes_b) return HR_OK;
    if (a->first * bytes_b == b->first * bytes_a) return HR_OK; /* below 2^60 */
    return hr_fail(
        plan->err, HR_CORRUPT,
        "buffers %d (%s) and %d (%s): step %d (%s) updates them from bytes %lld and %lld "
        "on, which is not the same element",
        a->root, one->name, b->root, two->name, s, plan->steps[s].op, (long long)a->first,
        (long long)b->first);
}

/* Compares a piece with those before it in the accesses of one step. */
static hr_status check_pairs(const hr_judged_plan *plan, int32_t s, int32_t k)
{
    const piece p = piece_of(plan, s, &plan->accesses[k]);
    hr_status status = HR_OK;
    for (int32_t i = plan->steps[s].access_first; i < k && !status; i++) {
        if (!updates(plan, s, &plan->accesses[i])) continue;
        const piece q = piece_of(plan, s, &plan->accesses[i]);
        if (!hr_judged_is_average(&plan->buffers[q.root])) status = check_together(plan, s, &q, &p);
    }
    return status;
}

static int64_t elements_of(const hr_judged_buffer *buffer)
{
    return buffer->shape_bytes / buffer->element_bytes;
}

/* Returns whether a root has one element for each of the weights that the step updates too. Scales
 * and the rest of a rounded weight do not. */
static bool has_weight_shape(const hr_judged_plan *plan, int32_t s, int32_t root)
{
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_buffer *other = hr_judged_root(plan, &plan->accesses[k]);
        if (updates(plan, s, &plan->accesses[k]) && other->role != HR_JUDGED_MOMENT &&
            elements_of(other) != elements_of(&plan->buffers[root]))
            return false;
    }
    return true;
}

/* Checks that the gradient of a strip, which is new in each iteration, has as many elements as the
 * strip of the state that access `k` updates. */
static hr_status check_strip(const hr_judged_plan *plan, int32_t s, int32_t k,
                             const hr_judged_buffer *gradient)
{
    const hr_judged_buffer *part = &plan->buffers[plan->accesses[k].stands_for];
    const int64_t elements = elements_of(part), found = elements_of(gradient);
    if (!hr_judged_in_strips(plan, s) || found >= elements) return HR_OK;
    if (!has_weight_shape(plan, s, part->root)) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) updates %lld elements in an iteration, with %lld "
                   "elements of buffer %d (%s)",
                   plan->accesses[k].buffer, part->name, s, plan->steps[s].op, (long long)elements,
                   (long long)found, (int)(gradient - plan->buffers), gradient->name);
}

/* Checks that the gradients that a step reads are those of the piece `p` of access `updated`: the
 * range that is read begins at the same element, and reaches as far, or to the end of the shape. */
static hr_status check_gradients(const hr_judged_plan *plan, int32_t s, int32_t updated,
                                 const piece *p)
{
    const hr_judged_buffer *of = &plan->buffers[p->root];
    const int64_t of_element = of->element_bytes;
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_access *access = &plan->accesses[k];
        const hr_judged_buffer *root = hr_judged_root(plan, access);
        const int64_t element = root->element_bytes;
        const piece read = piece_of(plan, s, access);
        if (access->kind != HR_JUDGED_READ || root->role != HR_JUDGED_GRADIENT) continue;
        const hr_status status = check_strip(plan, s, updated, &plan->buffers[access->buffer]);
        if (status) return status;
        if (root->shape_bytes / element != of->shape_bytes / of_element) continue;
        if (read.first * of_element == p->first * element &&
            (read.end >= root->shape_bytes || read.end * of_element >= p->end * element))
            continue;
        return hr_fail(
            plan->err, HR_CORRUPT,
            "buffer %d (%s): step %d (%s) updates its bytes %lld to %lld with bytes %lld "
            "to %lld of buffer %d (%s), which are not the same elements",
            p->root, of->name, s, plan->steps[s].op, (long long)p->first, (long long)p->end,
            (long long)read.first, (long long)read.end, plan->buffers[access->buffer].root,
            root->name);
    }
    return HR_OK;
}

/* Checks all that one step updates, and adds it to what is updated. */
static hr_status add_step(hr_judged_plan *plan, int32_t s)
{
    const hr_judged_step *step = &plan->steps[s];
    int32_t moment = -1;
    bool weight = false;
    hr_status status = HR_OK;
    for (int32_t k = step->access_first; k < step->access_end && !status; k++) {
        if (!updates(plan, s, &plan->accesses[k])) continue;
        const piece p = piece_of(plan, s, &plan->accesses[k]);
        status = check_next(plan, s, &p);
        if (status || hr_judged_is_average(&plan->buffers[p.root])) continue;
        if (plan->buffers[p.root].role == HR_JUDGED_MOMENT) moment = p.root;
        else weight = true;
        status = check_pairs(plan, s, k);
        if (!status) status = check_gradients(plan, s, k, &p);
    }
    if (!status && moment >= 0 && !weight)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) updates it without a weight", moment,
                       plan->buffers[moment].name, s, step->op);
    for (int32_t k = step->access_first; k < step->access_end && !status; k++) {
        if (!updates(plan, s, &plan->accesses[k])) continue;
        const piece p = piece_of(plan, s, &plan->accesses[k]);
        if (plan->by_buffer[p.root] == s) return updated_too(plan, p.root, s);
        plan->by_buffer[p.root] = s;
        plan->reached[p.root] = p.end;
    }
    return status;
}

/* Checks that the roots that a step updates have the same last piece. With the same piece before
 * every piece, they have the same list of pieces. */
static hr_status check_last(const hr_judged_plan *plan, int32_t s)
{
    int32_t first = -1;
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const int32_t root = plan->buffers[plan->accesses[k].stands_for].root;
        if (!updates(plan, s, &plan->accesses[k]) || hr_judged_is_average(&plan->buffers[root]))
            continue;
        if (first < 0) first = root;
        const int32_t one = plan->by_buffer[first], two = plan->by_buffer[root];
        if (one != two)
            return hr_fail(
                plan->err, HR_CORRUPT,
                "buffers %d (%s) and %d (%s): step %d (%s) updates both, but step %d only "
                "one of them",
                first, plan->buffers[first].name, root, plan->buffers[root].name, s,
                plan->steps[s].op, one > two ? one : two);
    }
    return HR_OK;
}

static hr_status check_covered(const hr_judged_plan *plan, int32_t b)
{
    const hr_judged_buffer *buffer = &plan->buffers[b];
    const int32_t last = plan->by_buffer[b];
    const bool may_stay = buffer->space == HR_JUDGED_HOST || buffer->space == HR_JUDGED_BASE ||
                          buffer->role != HR_JUDGED_MOMENT;
    if (buffer->root != b || (last < 0 && may_stay)) return HR_OK;
    if (last < 0)
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): no step updates it in a window, but it is in the space %s",
                       b, buffer->name, plan->spaces[buffer->space].name);
    if (plan->reached[b] >= buffer->shape_bytes) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): the updates up to step %d (%s) cover %lld of its %lld bytes", b,
                   buffer->name, last, plan->steps[last].op, (long long)plan->reached[b],
                   (long long)buffer->shape_bytes);
}

hr_status hr_verify_pieces(hr_judged_plan *plan)
{
    hr_status status = HR_OK;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        plan->by_buffer[b] = -1;
        plan->reached[b] = 0;
    }
    if (plan->version == 1) return find_updates_of_1(plan);
    for (int32_t s = 0; s < plan->step_count && !status; s++) status = add_step(plan, s);
    for (int32_t s = 0; s < plan->step_count && !status; s++) status = check_last(plan, s);
    for (int32_t b = 0; b < plan->buffer_count && !status; b++) status = check_covered(plan, b);
    return status;
}
