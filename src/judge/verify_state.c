/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_state.c - verifies values that outlive the run. The load section creates them and
 * later sections update them; after its update, only the average reads a weight.
 *
 * All state that one step of the first section creates belongs to one parameter, and so does all
 * state that one step updates: verify_pieces.c. The file does not say more about parameters, and
 * the checks need no more. */
#include <string.h>

#include "judge/judged.h"

enum { OUTLIVES_RUN = -1 };

/* ---- state */

/* Returns whether the step updates a master weight. If so, it may write the derived weight. */
static bool updates_master(const hr_judged_plan *plan, int32_t s)
{
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++)
        if (plan->accesses[k].kind == HR_JUDGED_UPDATE &&
            hr_judged_root(plan, &plan->accesses[k])->role == HR_JUDGED_MASTER)
            return true;
    return false;
}

/* Checks that state is created in the first section, which loads it. Later steps may only update
 * it, or write a weight while they update its master. Spills to another space: see
 * verify_transfers.c. */
static hr_status check_state(const hr_judged_plan *plan)
{
    const int32_t load = hr_judged_section(plan, 0);
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
            const hr_judged_access *access = &plan->accesses[k];
            const hr_judged_buffer *root = hr_judged_root(plan, access);
            if (root->home != OUTLIVES_RUN || access->kind == HR_JUDGED_READ ||
                access->kind == HR_JUDGED_UPDATE || hr_judged_section(plan, s) == load ||
                root->space != HR_JUDGED_HOST)
                continue;
            if (access->kind == HR_JUDGED_WRITE && root->role == HR_JUDGED_WEIGHT &&
                updates_master(plan, s))
                continue;
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): step %d (%s) overwrites it, but it outlives the run: "
                           "after loop %d (%s) it may only be updated",
                           access->buffer, plan->buffers[access->buffer].name, s, plan->steps[s].op,
                           load, plan->loops[load].name);
        }
    return HR_OK;
}

/* ---- averages */

/* State that one step of the first section creates: an average, and its source, which is the master
 * weight or, without one, the weight. -1: none. */
typedef struct {
    int32_t average, of;
    bool twice; /* the step creates two averages or two sources */
} parameter_state;

static parameter_state made_by(const hr_judged_plan *plan, int32_t s)
{
    enum { WEIGHT, MASTER, AVERAGE, OTHERS, KINDS };
    int32_t found[KINDS] = { -1, -1, -1, -1 };
    bool twice[KINDS] = { false };
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_buffer *root = hr_judged_root(plan, &plan->accesses[k]);
        if (plan->accesses[k].kind != HR_JUDGED_WRITE) continue;
        const int32_t kind = hr_judged_is_average(root)       ? AVERAGE
                             : root->role == HR_JUDGED_MASTER ? MASTER
                             : root->role == HR_JUDGED_WEIGHT ? WEIGHT
                                                              : OTHERS;
        twice[kind] |= found[kind] >= 0;
        found[kind] = (int32_t)(root - plan->buffers);
    }
    const int32_t of = found[MASTER] >= 0 ? MASTER : WEIGHT;
    return (parameter_state){ found[AVERAGE], found[of], twice[AVERAGE] || twice[of] };
}

/* Fills `averages`: for each weight or master its average, for each average its source, else -1. */
static hr_status pair_averages(hr_judged_plan *plan)
{
    int32_t *pairs = plan->averages;
    for (int32_t b = 0; b < plan->buffer_count; b++) pairs[b] = -1;
    for (int32_t s = 0; s < plan->step_count; s++) {
        if (!hr_judged_loads(plan, s)) continue;
        const parameter_state made = made_by(plan, s);
        if (made.average < 0) continue;
        if (made.of < 0 || made.twice || pairs[made.of] >= 0 || pairs[made.average] >= 0)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): step %d (%s) must make this average alone, with the "
                           "one weight that it is of",
                           made.average, plan->buffers[made.average].name, s, plan->steps[s].op);
        pairs[made.of] = made.average;
        pairs[made.average] = made.of;
    }
    for (int32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].root == b && hr_judged_is_average(&plan->buffers[b]) && pairs[b] < 0)
            return hr_fail(plan->err, HR_CORRUPT,
                           "buffer %d (%s): no step of loop %d (%s) makes this average", b,
                           plan->buffers[b].name, hr_judged_section(plan, 0),
                           plan->loops[hr_judged_section(plan, 0)].name);
    return HR_OK;
}

/* Returns whether the step only reads the weight or master `of`, and perhaps the other half of it,
 * and updates its average. */
static bool follows(const hr_judged_plan *plan, int32_t s, int32_t of)
{
    const hr_judged_step *step = &plan->steps[s];
    const hr_judged_access *access = &plan->accesses[step->access_first];
    const int32_t count = step->access_end - step->access_first, last = count - 1;
    if (plan->averages[of] < 0 || count < 2 || count > 3) return false;
    if (count == 3) {
        const hr_judged_buffer *half = &plan->buffers[access[1].buffer];
        if (access[1].kind != HR_JUDGED_READ || half->root != access[1].buffer ||
            half->role != HR_JUDGED_MOMENT || hr_judged_is_average(half))
            return false;
    }
    return access[0].kind == HR_JUDGED_READ && access[0].buffer == of &&
           access[last].kind == HR_JUDGED_UPDATE && access[last].buffer == plan->averages[of];
}

/* Returns whether all that the average at step `s` reads was updated by step `before`. */
static bool reads_one_parameter(const hr_judged_plan *plan, int32_t s, int32_t before)
{
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++)
        if (plan->accesses[k].kind == HR_JUDGED_READ &&
            plan->by_buffer[plan->buffers[plan->accesses[k].buffer].root] != before)
            return false;
    return true;
}

/* ---- updates */

/* Returns whether the access writes a new value of a weight or its master, outside the load
 * section. */
static bool sets_weight(const hr_judged_plan *plan, int32_t s, const hr_judged_access *access)
{
    const hr_judged_buffer *root = hr_judged_root(plan, access);
    if (access->kind == HR_JUDGED_READ || hr_judged_loads(plan, s)) return false;
    return root->role == HR_JUDGED_WEIGHT || root->role == HR_JUDGED_MASTER;
}

/* The loop in whose iteration an update runs once: the home of the gradients that it reads. */
static int32_t loop_of_update(const hr_judged_plan *plan, int32_t s)
{
    int32_t loop = hr_judged_section(plan, s);
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        const hr_judged_buffer *root = hr_judged_root(plan, &plan->accesses[k]);
        if (root->role == HR_JUDGED_GRADIENT && root->home >= 0) loop = root->home;
    }
    return loop;
}

/* Returns whether the step only updates tables: numbers that are computed from weights. */
static bool derives(const hr_judged_plan *plan, int32_t s)
{
    bool found = false;
    for (int32_t k = plan->steps[s].access_first; k < plan->steps[s].access_end; k++) {
        if (plan->accesses[k].kind == HR_JUDGED_READ) continue;
        found = true;
        if (plan->accesses[k].kind != HR_JUDGED_UPDATE ||
            hr_judged_root(plan, &plan->accesses[k])->role != HR_JUDGED_TABLE)
            return false;
    }
    return found;
}

/* Checks that a section updates a weight once and does not use it afterwards: later results would
 * mix the weights of two training steps. Only the average and tables of weights read the new
 * weight, and later pieces of the update write it. `by_buffer` has the step that updated a root, or
 * -1. */
static hr_status check_weight_use(const hr_judged_plan *plan, int32_t s, int32_t k)
{
    const hr_judged_access *access = &plan->accesses[k];
    const int32_t root = plan->buffers[access->buffer].root, before = plan->by_buffer[root];
    const char *name = plan->buffers[access->buffer].name;
    const bool next_piece = plan->version > 1 && access->kind != HR_JUDGED_READ;
    if (before >= 0 && hr_judged_section(plan, before) == hr_judged_section(plan, s) &&
        !next_piece && !follows(plan, s, root) && !derives(plan, s))
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): step %d (%s) %s it after step %d (%s) has updated it, in "
                       "one iteration of loop %d (%s)",
                       access->buffer, name, s, plan->steps[s].op,
                       access->kind == HR_JUDGED_READ ? "reads" : "writes", before,
                       plan->steps[before].op, hr_judged_section(plan, s),
                       plan->loops[hr_judged_section(plan, s)].name);
    const int32_t repeating = sets_weight(plan, s, access)
                                  ? hr_judged_repeating(plan, s, loop_of_update(plan, s))
                                  : -1;
    if (repeating < 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s): step %d (%s) updates it in each iteration of loop %d (%s)",
                   access->buffer, name, s, plan->steps[s].op, repeating,
                   plan->loops[repeating].name);
}

static hr_status check_updates(hr_judged_plan *plan)
{
    for (int32_t b = 0; b < plan->buffer_count; b++) plan->by_buffer[b] = -1;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const hr_judged_step *step = &plan->steps[s];
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const hr_status status = check_weight_use(plan, s, k);
            if (status) return status;
        }
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const int32_t b = plan->accesses[k].buffer, root = plan->buffers[b].root;
            if (!sets_weight(plan, s, &plan->accesses[k])) continue;
            if (plan->by_buffer[root] == s)
                return hr_fail(plan->err, HR_CORRUPT,
                               "buffer %d (%s): step %d (%s) updates it twice", b,
                               plan->buffers[b].name, s, plan->steps[s].op);
            plan->by_buffer[root] = s;
        }
    }
    return HR_OK;
}

/* Returns whether step `s` runs once, after the update at step `before` and in the same
 * iteration. */
static bool same_iteration(const hr_judged_plan *plan, int32_t before, int32_t s)
{
    const int32_t turn = hr_judged_in_strips(plan, before) ? hr_judged_section(plan, before)
                                                           : loop_of_update(plan, before);
    int32_t loop = plan->steps[s].loop;
    while (loop != turn && loop > 0) loop = plan->loops[loop].parent;
    return before < s && hr_judged_section(plan, before) == hr_judged_section(plan, s) &&
           loop == turn && hr_judged_repeating(plan, s, turn) < 0;
}

/* Checks that the average follows each update of its weight, or approaches one that rests, and that
 * all weights have an average or none. `by_buffer` has the step that updates a root, or -1. */
static hr_status check_averages(const hr_judged_plan *plan)
{
    int32_t with = -1, without = -1;
    for (int32_t s = 0; s < plan->step_count; s++) {
        if (!hr_judged_loads(plan, s)) continue;
        const parameter_state made = made_by(plan, s);
        const int32_t before = made.of < 0 ? -1 : plan->by_buffer[made.of];
        const int32_t after = made.average < 0 ? -1 : plan->by_buffer[made.average];
        if (before >= 0 && made.average >= 0) with = made.of;
        if (before >= 0 && made.average < 0) without = made.of;
        if (made.average < 0 || (before < 0 && after < 0)) continue;
        if (before < 0 && follows(plan, after, made.of)) continue; /* the weight rests */
        if (before >= 0 && after >= 0 && follows(plan, after, made.of) &&
            reads_one_parameter(plan, after, before) && same_iteration(plan, before, after))
            continue;
        return hr_fail(plan->err, HR_CORRUPT,
                       "buffer %d (%s): after the update of buffer %d (%s), no step in the same "
                       "iteration reads it and updates only this average",
                       made.average, plan->buffers[made.average].name, made.of,
                       plan->buffers[made.of].name);
    }
    if (with < 0 || without < 0) return HR_OK;
    return hr_fail(plan->err, HR_CORRUPT,
                   "buffer %d (%s) is updated and has no average, but buffer %d (%s) has one",
                   without, plan->buffers[without].name, with, plan->buffers[with].name);
}

/* Checks that the state that one step of the first section creates (weight, master and moments) is
 * updated as one parameter: all of it by one step, or none at all. The average follows. */
static hr_status check_parameters(hr_judged_plan *plan)
{
    hr_status status = hr_verify_pieces(plan);
    if (!status) status = check_averages(plan);
    if (status) return status;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const hr_judged_step *step = &plan->steps[s];
        int32_t before = -1;
        for (int32_t k = step->access_first; k < step->access_end; k++) {
            const int32_t root = plan->buffers[plan->accesses[k].buffer].root;
            if (!hr_judged_loads(plan, s)) return HR_OK;
            if (step->transfer != HR_JUDGED_NO_TRANSFER) break;
            if (!hr_judged_is_state(plan, root) || hr_judged_is_average(&plan->buffers[root]) ||
                plan->accesses[k].kind == HR_JUDGED_READ)
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

hr_status hr_verify_state(hr_judged_plan *plan)
{
    hr_status status = check_state(plan);
    if (!status) status = pair_averages(plan);
    if (!status) status = check_updates(plan);
    if (!status) status = check_parameters(plan);
    return status;
}
