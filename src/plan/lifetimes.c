/* SPDX-License-Identifier: Apache-2.0 */
/* plan/lifetimes.c - derives lifetimes, joins storages and lists buffers. */
#include "plan/lifetimes.h"

#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"

typedef struct {
    int32_t first, last; /* last < first: never accessed */
} lifetime;

typedef struct {
    const hr_program *program;
    hr_plan *plan;
    lifetime *lifetimes;         /* [tensor_count] by root */
    lifetime *storage_lifetimes; /* [tensor_count] by root, with the tensors that reuse its bytes */
    int32_t *shares; /* [tensor_count] by root: the root whose bytes it reuses, or itself */
    int32_t *roots;  /* [tensor_count] owner of the bytes; copied, as tensor records are large */
    int32_t *homes;  /* [tensor_count] by root */
} deriving;

static void widen(deriving *d, int32_t step, int32_t tensor)
{
    const hr_program *program = d->program;
    const int32_t root = d->roots[tensor], home = d->homes[root];
    lifetime *l = &d->lifetimes[root];
    lifetime access = { step, step };
    if (home == HR_NONE) access = (lifetime){ 0, program->step_count - 1 };
    for (int32_t i = program->steps[step].loop; home != HR_NONE && i != HR_NONE && i != home;
         i = program->loops[i].parent)
        if (program->loops[i].count > 1)
            access = (lifetime){ (int32_t)hr_min(access.first, program->loops[i].step_first),
                                 (int32_t)hr_max(access.last, program->loops[i].step_last) };
    if (l->last < l->first) *l = access;
    l->first = (int32_t)hr_min(l->first, access.first);
    l->last = (int32_t)hr_max(l->last, access.last);
}

static int32_t storage_root(const deriving *d, int32_t tensor)
{
    int32_t root = d->roots[tensor];
    while (d->shares[root] != root) root = d->shares[root];
    return root;
}

/* The number of operands of a step that are in the storage of `root`. */
static int32_t operands_in(const deriving *d, const hr_step *step, int32_t root)
{
    int32_t count = 0;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && storage_root(d, step->in[i]) == root) count++;
    for (int32_t i = 0; i < HR_OUT_MAX; i++)
        if (step->out[i] != HR_NONE && storage_root(d, step->out[i]) == root) count++;
    return count;
}

/* Returns whether output `out` may reuse the bytes of input `in`. Both own equal sizes and have the
 * same home. The step runs once per iteration of it, since a second run would read overwritten
 * bytes. The storage of the input is last used here and by one operand, and the output starts
 * here. */
static bool may_share(const deriving *d, int32_t s, int32_t in, int32_t out)
{
    const hr_program *program = d->program;
    const hr_tensor *from = &program->tensors[in], *to = &program->tensors[out];
    const int32_t storage = storage_root(d, in);
    if (from->view_of != HR_NONE || to->view_of != HR_NONE) return false;
    if (from->space != to->space) return false;
    if (from->home == HR_NONE || from->home != to->home) return false;
    for (int32_t l = program->steps[s].loop; l != from->home; l = program->loops[l].parent)
        if (program->loops[l].count > 1) return false;
    if (hr_tensor_bytes(from) != hr_tensor_bytes(to)) return false;
    if (d->lifetimes[out].first != s || d->shares[out] != out) return false;
    return d->storage_lifetimes[storage].last == s &&
           operands_in(d, &program->steps[s], storage) == 1;
}

static void join(deriving *d)
{
    const hr_program *program = d->program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = hr_step_op(program, step);
        for (int32_t k = 0; op->out[k]; k++)
            for (int32_t j = 0; op->in[j] && step->out[k] != HR_NONE; j++) {
                if (!(op->reuse[k] & 1 << j) || step->in[j] == HR_NONE) continue;
                if (!may_share(d, s, step->in[j], step->out[k])) continue;
                const int32_t storage = storage_root(d, step->in[j]);
                d->shares[step->out[k]] = storage;
                d->storage_lifetimes[storage].last = d->lifetimes[step->out[k]].last;
                break;
            }
    }
}

static hr_status rounded(const hr_program *program, int64_t bytes, hr_space space, const char *what,
                         int64_t *out, hr_error *err)
{
    const int64_t align = hr_program_align(program, space);
    if (bytes < 0 || bytes > INT64_MAX - align)
        return hr_fail(err, HR_NO_FIT, "%s needs 2^63 bytes or more", what);
    *out = hr_max(hr_round_up(bytes, align), align);
    return HR_OK;
}

/* Lists the buffer of a tensor at its first use, after the buffer of its root. */
static hr_status list_tensor(deriving *d, int32_t *storage_of, int32_t tensor, hr_error *err)
{
    hr_plan *plan = d->plan;
    int32_t chain[8], depth = 0;
    for (int32_t t = tensor; t != HR_NONE && plan->buffer_of_tensor[t] == HR_NONE && depth < 8;
         t = d->program->tensors[t].view_of)
        chain[depth++] = t;
    while (depth-- > 0) {
        const int32_t t = chain[depth];
        const hr_tensor *described = &d->program->tensors[t];
        const int32_t root = d->roots[t], storage = storage_root(d, t);
        int64_t bytes = 0;
        const hr_status status = rounded(d->program, hr_tensor_bytes(described), described->space,
                                         described->name, &bytes, err);
        if (status != HR_OK) return status;
        if (storage_of[storage] == HR_NONE) {
            storage_of[storage] = plan->storage_count++;
            plan->storages[storage_of[storage]] = (hr_storage){
                bytes, 0, d->storage_lifetimes[storage].first, d->storage_lifetimes[storage].last
            };
        }
        plan->buffer_of_tensor[t] = plan->buffer_count;
        const bool view = described->view_of != HR_NONE;
        plan->buffers[plan->buffer_count++] = (hr_buffer){
            .tensor = t,
            .storage = storage_of[storage],
            .view_of = view ? plan->buffer_of_tensor[described->view_of] : HR_NONE,
            .bytes = view ? hr_tensor_bytes(described) : bytes,
            .step_first = d->lifetimes[root].first,
            .step_last = d->lifetimes[root].last
        };
    }
    return HR_OK;
}

static bool is_unlisted(const deriving *d, int32_t tensor)
{
    return tensor != HR_NONE && d->plan->buffer_of_tensor[tensor] == HR_NONE;
}

static hr_status list_scratch(deriving *d, int32_t s, hr_error *err)
{
    hr_plan *plan = d->plan;
    const hr_program *program = d->program;
    const hr_step *step = &program->steps[s];
    const hr_op *op = hr_step_op(program, step);
    const hr_op_facts *facts = hr_step_facts(program, step);
    int64_t rows = 0, bytes = 0;
    if (!facts->scratch_bytes) return HR_OK;
    for (int32_t i = 0; op->in[i]; i++)
        if (step->in[i] != HR_NONE) rows = hr_max(rows, program->tensors[step->in[i]].rows);
    for (int32_t i = 0; op->out[i]; i++)
        if (step->out[i] != HR_NONE) rows = hr_max(rows, program->tensors[step->out[i]].rows);
    const int64_t needed = facts->scratch_bytes(step->attr, rows, plan->process.threads);
    if (needed == 0) return HR_OK;
    const hr_status status = rounded(program, needed, HR_SPACE_HOST, op->name, &bytes, err);
    if (status != HR_OK) return status;
    plan->scratch_of_step[s] = plan->buffer_count;
    plan->buffers[plan->buffer_count++] = (hr_buffer){ .tensor = HR_NONE,
                                                       .storage = plan->storage_count,
                                                       .view_of = HR_NONE,
                                                       .bytes = bytes,
                                                       .step_first = s,
                                                       .step_last = s };
    plan->storages[plan->storage_count++] = (hr_storage){ bytes, 0, s, s };
    return HR_OK;
}

static hr_space space_of(const deriving *d, int32_t tensor)
{
    return tensor == HR_NONE ? HR_SPACE_HOST : (hr_space)d->program->tensors[tensor].space;
}

/* Numbers the storages by space, and in one space by first use.
 *
 *   number  [storage_count] scratch */
static void sort_by_space(deriving *d, int32_t *number)
{
    hr_plan *plan = d->plan;
    int32_t next[HR_SPACES];
    memset(plan->spaces, 0, sizeof plan->spaces);
    for (int32_t b = 0; b < plan->buffer_count; b++)
        number[plan->buffers[b].storage] = (int32_t)space_of(d, plan->buffers[b].tensor);
    for (int32_t i = 0; i < plan->storage_count; i++) plan->spaces[number[i]].storage_count++;
    for (int32_t k = 0, first = 0; k < HR_SPACES; k++) {
        plan->spaces[k].storage_first = next[k] = first;
        first += plan->spaces[k].storage_count;
    }
    for (int32_t i = 0; i < plan->storage_count; i++) number[i] = next[number[i]]++;
    for (int32_t b = 0; b < plan->buffer_count; b++)
        plan->buffers[b].storage = number[plan->buffers[b].storage];
    for (int32_t i = 0; i < plan->storage_count; i++)
        while (number[i] != i) { /* each exchange puts one storage into its place */
            const int32_t to = number[i];
            const hr_storage moved = plan->storages[to];
            plan->storages[to] = plan->storages[i];
            plan->storages[i] = moved;
            number[i] = number[to];
            number[to] = to;
        }
}

static hr_status list(deriving *d, int32_t *storage_of, hr_error *err)
{
    const hr_program *program = d->program;
    hr_status status = HR_OK;
    for (int32_t s = 0; s < program->step_count && status == HR_OK; s++) {
        const hr_step *step = &program->steps[s];
        for (int32_t i = 0; i < HR_IN_MAX && status == HR_OK; i++)
            if (is_unlisted(d, step->in[i])) status = list_tensor(d, storage_of, step->in[i], err);
        for (int32_t i = 0; i < HR_OUT_MAX && status == HR_OK; i++)
            if (is_unlisted(d, step->out[i]))
                status = list_tensor(d, storage_of, step->out[i], err);
        if (status == HR_OK) status = list_scratch(d, s, err);
    }
    return status;
}

hr_status hr_lifetimes(const hr_program *program, hr_region *region, hr_plan *plan, hr_error *err)
{
    const int64_t tensors = program->tensor_count, most = tensors + program->step_count;
    deriving d = { .program = program, .plan = plan };
    plan->buffers = hr_region_take_raw(region, most, sizeof *plan->buffers);
    plan->storages = hr_region_take_raw(region, most, sizeof *plan->storages);
    plan->buffer_of_tensor = hr_region_take_raw(region, tensors, sizeof *plan->buffer_of_tensor);
    plan->scratch_of_step = hr_region_take_raw(region, program->step_count,
                                               sizeof *plan->scratch_of_step);
    const int64_t kept = region->used;
    d.lifetimes = hr_region_take_raw(region, tensors, sizeof *d.lifetimes);
    d.storage_lifetimes = hr_region_take_raw(region, tensors, sizeof *d.storage_lifetimes);
    d.shares = hr_region_take_raw(region, tensors, sizeof *d.shares);
    d.roots = hr_region_take_raw(region, tensors, sizeof *d.roots);
    d.homes = hr_region_take_raw(region, tensors, sizeof *d.homes);
    int32_t *storage_of = hr_region_take_raw(region, tensors, sizeof *storage_of);
    if (!plan->buffers || !plan->storages || !plan->buffer_of_tensor || !plan->scratch_of_step ||
        !d.lifetimes || !d.storage_lifetimes || !d.shares || !d.roots || !d.homes || !storage_of)
        return hr_fail(err, HR_FAILURE, "out of memory for a plan of %lld tensors",
                       (long long)tensors);

    plan->buffer_count = plan->storage_count = 0;
    for (int32_t t = 0; t < tensors; t++) {
        d.lifetimes[t] = (lifetime){ 0, -1 };
        d.shares[t] = t;
        d.roots[t] = hr_tensor_root(program, t);
        d.homes[t] = program->tensors[t].home;
        storage_of[t] = plan->buffer_of_tensor[t] = HR_NONE;
    }
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        plan->scratch_of_step[s] = HR_NONE;
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            if (step->in[i] != HR_NONE) widen(&d, s, step->in[i]);
        for (int32_t i = 0; i < HR_OUT_MAX; i++)
            if (step->out[i] != HR_NONE) widen(&d, s, step->out[i]);
    }
    for (int32_t t = 0; t < tensors; t++) d.storage_lifetimes[t] = d.lifetimes[t];
    join(&d);
    const hr_status status = list(&d, storage_of, err);
    region->used = kept;
    if (status != HR_OK) return status;
    int32_t *number = hr_region_take_raw(region, plan->storage_count, sizeof *number);
    if (!number)
        return hr_fail(err, HR_FAILURE, "out of memory for a plan of %lld tensors",
                       (long long)tensors);
    sort_by_space(&d, number);
    region->used = kept;
    return HR_OK;
}

void hr_lifetimes_alive(const hr_program *program, const hr_plan *plan, int64_t *alive)
{
    const int32_t steps = program->step_count;
    for (int32_t s = 0; s < steps; s++) alive[s] = 0;
    for (int32_t i = 0; i < plan->spaces[HR_SPACE_HOST].storage_count; i++) {
        const hr_storage *storage = &plan->storages[i];
        alive[storage->step_first] += storage->bytes;
        if (storage->step_last + 1 < steps) alive[storage->step_last + 1] -= storage->bytes;
    }
    for (int32_t s = 1; s < steps; s++) alive[s] += alive[s - 1];
}

int64_t hr_lifetimes_most(const hr_plan *plan, int32_t first, int32_t last)
{
    enum { AT_A_TIME = 512 };
    int64_t most = 0;
    for (int32_t begin = first; begin <= last; begin += AT_A_TIME) {
        const int32_t end = (int32_t)hr_min(last, begin + AT_A_TIME - 1);
        int64_t alive[AT_A_TIME + 1] = { 0 };
        for (int32_t i = 0; i < plan->spaces[HR_SPACE_HOST].storage_count; i++) {
            const hr_storage *storage = &plan->storages[i];
            if (storage->step_last < begin || storage->step_first > end) continue;
            alive[hr_max(storage->step_first, begin) - begin] += storage->bytes;
            alive[hr_min(storage->step_last, end) + 1 - begin] -= storage->bytes;
        }
        for (int32_t s = 0; s <= end - begin; s++) {
            if (s) alive[s] += alive[s - 1];
            most = hr_max(most, alive[s]);
        }
    }
    return most;
}
