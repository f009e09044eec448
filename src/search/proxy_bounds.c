/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_bounds.c - splits the live bytes of each step by what a recompute set decides. */
#include "search/proxy_bounds.h"

#include <string.h>

enum { VALUES_MOST = 24 }; /* recomputable values of a layer that are live at one step */

/* The live bytes of one step of a layer, split by what a set decides. */
typedef struct {
    int64_t base; /* live bytes with any set */
    struct {
        /* values in this storage; kept only if none of them is recomputed */
        hr_intermediates kinds;
        int32_t storage;
        int64_t kept, again; /* bytes if kept; bytes if recomputed */
    } values[VALUES_MOST];
    int32_t count;
} outline;

static bool reads(const hr_step *step, int32_t tensor)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] == tensor) return true;
    return false;
}

/* Adds a value. Two values in one storage count once, and are kept only if both are. */
static void put_value(outline *o, const hr_buffer *buffer, hr_intermediates kinds, bool again)
{
    for (int32_t i = 0; i < o->count; i++)
        if (o->values[i].storage == buffer->storage) {
            o->values[i].kinds |= kinds;
            o->values[i].again = 0;
            return;
        }
    o->base -= buffer->bytes;
    if (o->count == VALUES_MOST) return;
    o->values[o->count].kinds = kinds;
    o->values[o->count].storage = buffer->storage;
    o->values[o->count].kept = buffer->bytes;
    o->values[o->count++].again = again ? buffer->bytes : 0;
}

/* Lists the buffers of recomputable values. Returns how many. */
static int32_t list_droppable(const hr_program *program, const hr_plan *plan, int32_t *list)
{
    int32_t count = 0;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        if (buffer->tensor == HR_NONE || buffer->view_of != HR_NONE) continue;
        if (program->tensors[buffer->tensor].intermediates) list[count++] = b;
    }
    return count;
}

static outline outline_of(const hr_program *program, const hr_plan *plan, const int32_t *list,
                          int32_t count, int32_t s, int64_t alive, bool tiled)
{
    const hr_step *step = &program->steps[s];
    outline o = { .base = alive };
    for (int32_t i = 0; i < count; i++) {
        const hr_buffer *buffer = &plan->buffers[list[i]];
        if (buffer->step_first > s || buffer->step_last < s) continue;
        const hr_tensor *tensor = &program->tensors[buffer->tensor];
        if (tensor->layer != step->layer) continue;
        put_value(&o, buffer, tensor->intermediates,
                  step->direction == HR_DIR_BACKWARD && !tiled && reads(step, buffer->tensor));
    }
    return o;
}

static int64_t alive_without(const outline *o, hr_intermediates recompute_set)
{
    int64_t bytes = o->base;
    for (int32_t i = 0; i < o->count; i++)
        bytes += o->values[i].kinds & recompute_set ? o->values[i].again : o->values[i].kept;
    return bytes;
}

/* True if the sets are complete and in the order of hr_fit_sets: set k recomputes the union of
 * the sets k & (k - 1) and k & -k. */
static bool are_all(const hr_proxy_set *sets, int32_t count)
{
    for (int32_t k = 1; k < count; k++) {
        const int32_t before = k & (k - 1);
        if (sets[k].recompute_set != (sets[before].recompute_set | sets[k ^ before].recompute_set))
            return false;
    }
    return true;
}

/* Computes the live bytes with each set. When the sets are complete, the bits of k are the parts
 * of set k, and values that belong to one part add up. */
static void alive_with(const outline *o, const hr_proxy_set *sets, int32_t count, bool all,
                       int64_t *alive)
{
    int64_t of_part[HR_FIT_PARTS_MOST] = { 0 };
    uint32_t parts[VALUES_MOST];
    alive[0] = alive_without(o, 0);
    for (int32_t k = 1; k < count && !all; k++) alive[k] = alive_without(o, sets[k].recompute_set);
    if (!all) return;
    for (int32_t i = 0; i < o->count; i++) {
        parts[i] = 0;
        for (int32_t k = 1; k < count; k *= 2)
            if (o->values[i].kinds & sets[k].recompute_set) parts[i] |= (uint32_t)k;
        if (parts[i] && (parts[i] & (parts[i] - 1)) == 0)
            of_part[__builtin_ctz(parts[i])] += o->values[i].again - o->values[i].kept;
    }
    for (int32_t part = 0, k = 1; k < count; part++, k *= 2)
        for (int32_t i = 0; i < k && k + i < count; i++) alive[k + i] = alive[i] + of_part[part];
    for (int32_t i = 0; i < o->count; i++) {
        if ((parts[i] & (parts[i] - 1)) == 0) continue;
        for (int32_t k = 1; k < count; k++)
            if ((uint32_t)k & parts[i]) alive[k] += o->values[i].again - o->values[i].kept;
    }
}

void hr_proxy_bound_works(const hr_proxy_model *proxy, const hr_program *program,
                          const hr_plan *plan, const int64_t *alive, int32_t *list, bool tiled,
                          const hr_proxy_set *sets, int32_t count, hr_proxy_bounds *bounds)
{
    const bool all = are_all(sets, count);
    const int32_t droppable = list_droppable(program, plan, list);
    memset(bounds->most, 0, sizeof bounds->most);
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (step->layer == HR_NONE || !hr_proxy_trains(program, s)) continue;
        /* Sets change nothing in frozen layers. */
        const bool is_frozen = step->layer < proxy->trained.frozen_in_proxy;
        const int32_t place = hr_proxy_place_of(proxy, step),
                      pass = step->direction == HR_DIR_BACKWARD;
        const outline o = outline_of(program, plan, list, is_frozen ? 0 : droppable, s,
                                     alive[s] - place * sets[0].kept, tiled);
        alive_with(&o, sets, count, all, bounds->alive);
        for (int32_t k = 1; k < count; k++)
            hr_proxy_raise(&bounds->most[place][pass][k], bounds->alive[k]);
    }
}

bool hr_proxy_is_independent(const hr_program *program, int32_t tensor)
{
    const hr_intermediates own = program->tensors[tensor].intermediates;
    bool needed = false, apart = true;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (!reads(step, tensor)) continue;
        needed |= step->direction == HR_DIR_BACKWARD;
        for (int32_t k = 0; k < HR_OUT_MAX && step->direction == HR_DIR_FORWARD; k++)
            if (step->out[k] != HR_NONE)
                apart &= (program->tensors[step->out[k]].intermediates & ~own) == 0;
    }
    return needed || apart;
}
