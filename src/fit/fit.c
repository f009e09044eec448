/* SPDX-License-Identifier: Apache-2.0 */
/* fit/fit.c - walks the knobs of the whole step; for each, the layers are chosen exactly. */
#include "fit/fit.h"

#include <string.h>

#include "base/checked.h"
#include "fit/alike.h"
#include "fit/parts.h"
#include "fit/setting.h"
#include "plan/compile.h"

/* The best so far, and what it must be within. */
typedef struct {
    hr_fit *fit;
    int64_t limit;
    hr_fit_found *found;
    bool any;
    int64_t bound; /* picoseconds: no strategy that was not looked at takes less */
    int32_t looks; /* choices for which counts of parts were not enough */
} walk;

/* What each function of the walk has of its own; none calls itself. */
struct hr_fit_desk {
    hr_setting whole, dx_first, dw_first, dx_rests, dw_rests, ordered, tiled;
    hr_twin_set asked[HR_FIT_SETS_MOST], bounded[HR_FIT_SETS_MOST];
};

int64_t hr_fit_bytes(const hr_config *config)
{
    return hr_twin_bytes(config) + hr_layers_bytes((int32_t)config->model.n_layers) +
           2 * config->model.n_layers * (int64_t)sizeof(uint16_t) + (int64_t)sizeof(hr_fit_desk) +
           6 * 64;
}

hr_status hr_fit_open(hr_fit *fit, const hr_config *config, const hr_rates *rates, int32_t threads,
                      hr_region *region, hr_error *err)
{
    const int64_t twin_bytes = hr_twin_bytes(config);
    fit->config = config;
    hr_status status = hr_layers_place(&fit->layers, (int32_t)config->model.n_layers, region, err);
    if (status != HR_OK) return status;
    fit->trial = hr_region_take(region, config->model.n_layers, sizeof *fit->trial);
    fit->spare = hr_region_take(region, config->model.n_layers, sizeof *fit->spare);
    fit->desk = hr_region_take(region, 1, sizeof *fit->desk);
    void *memory = hr_region_take(region, twin_bytes, 1);
    if (!memory || !fit->trial || !fit->spare || !fit->desk)
        return hr_fail(err, HR_FAILURE, "no room for small models to search with");
    fit->region = hr_region_over(memory, twin_bytes);
    status = hr_twin_open(&fit->twin, config, rates, threads, &fit->region, err);
    if (status != HR_OK) return status;
    fit->form = hr_form_of(config);
    fit->set_count = hr_fit_sets(config, &fit->form, fit->sets);
    return HR_OK;
}

/* ---- the best choice within a setting ---- */

typedef struct {
    int32_t chunk;
    int64_t ps;
} choice;

static int64_t peak_of(const hr_layers_task *task, const hr_twin_rest *rest, const uint16_t *chosen)
{
    int64_t kept = 0, peak = rest->other;
    for (int32_t l = 0; l < task->twin->depth.layers; l++) {
        const hr_twin_set *set = &task->sets[chosen[l]];
        peak = hr_max(peak, kept + hr_twin_work(task->twin, set, task->slopes, l));
        kept += set->kept;
    }
    return hr_max(peak, kept + rest->head);
}

/* The fastest chunk and end of a frontier within the task's limit; chunk HR_NONE: none. */
static choice choose_chunk(const hr_setting *s, int64_t limit, const hr_layers_state *frontier,
                           int32_t count, int32_t *state)
{
    choice best = { HR_NONE, INT64_MAX };
    for (int32_t c = 0; c < s->chunk_count; c++) {
        if (s->rests[c].other > limit) continue;
        int32_t i = count - 1;
        while (i >= 0 && frontier[i].kept + s->rests[c].head > limit) i--;
        if (i < 0 || frontier[i].ps + s->rests[c].ps >= best.ps) continue;
        best = (choice){ c, frontier[i].ps + s->rests[c].ps };
        *state = i;
    }
    return best;
}

/* Layer by layer: for models that are their own twins, and where counts do not decide. First a
 * coarse look: what it finds is a bound that leaves the exact one little to do. */
static bool choose_by_layer(walk *w, const hr_setting *s, hr_layers_task *task, choice *best)
{
    enum { COARSE_STATES = 32 };
    const int64_t rest_ps = hr_setting_least_rest_ps(s), ps_most = task->ps_most;
    const hr_layers_state *frontier;
    hr_layers *layers = &w->fit->layers;
    int32_t state = 0;
    task->head = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++)
        if (s->rests[c].other <= task->limit) task->head = hr_min(task->head, s->rests[c].head);
    if (task->head == INT64_MAX) return false;
    task->ps_most = ps_most - rest_ps;
    const int64_t bound = hr_layers_bound(task);
    if (bound == INT64_MAX || bound > task->ps_most) return false;
    int32_t count = hr_layers_choose(layers, task, COARSE_STATES, &frontier);
    *best = choose_chunk(s, task->limit, frontier, count, &state);
    if (best->chunk != HR_NONE) hr_layers_read(layers, task, state, w->fit->trial);
    if (layers->thinned) {
        if (best->chunk != HR_NONE) task->ps_most = hr_min(task->ps_most, best->ps - rest_ps);
        count = hr_layers_choose(layers, task, HR_LAYERS_STATES, &frontier);
        const choice finer = choose_chunk(s, task->limit, frontier, count, &state);
        if (layers->thinned) w->bound = hr_min(w->bound, hr_max(bound + rest_ps, task->ps_least));
        /* Where room is short the exact look may lose what the coarse one found. */
        if (finer.chunk != HR_NONE && finer.ps <= best->ps) {
            *best = finer;
            hr_layers_read(layers, task, state, w->fit->trial);
        }
    }
    return best->chunk != HR_NONE && best->ps <= ps_most;
}

/* No choice for the layers keeps within the limit, with any chunk. */
static bool has_no_room(const hr_setting *s, const hr_layers_task *task)
{
    hr_layers_task least = *task;
    least.head = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++)
        if (s->rests[c].other <= task->limit) least.head = hr_min(least.head, s->rests[c].head);
    return !hr_layers_have_room(&least);
}

/* Among many layers that are alike: by counts, or layer by layer. */
static bool choose_alike(walk *w, const hr_setting *s, hr_layers_task *task, choice *best)
{
    hr_fit *fit = w->fit;
    hr_alike_best alike;
    w->looks++;
    if (task->set_count > HR_ALIKE_SETS_MOST) return choose_by_layer(w, s, task, best);
    if (hr_alike_choose(&fit->layers, task, s->rests, s->chunk_count, &alike, fit->trial)) {
        *best = (choice){ alike.chunk, alike.ps };
        if (peak_of(task, &s->rests[alike.chunk], fit->trial) <= task->limit) return true;
    } else if (!alike.out_of_room) {
        return false;
    }
    return choose_by_layer(w, s, task, best);
}

/* The fastest of all, no slower than task->ps_most, written to the fit's trial; false: there is
 * none. */
static bool choose(walk *w, const hr_setting *s, hr_layers_task *task, choice *best)
{
    hr_fit *fit = w->fit;
    hr_parts_best parts;
    if (fit->twin.depth.exact) return choose_by_layer(w, s, task, best);
    if (has_no_room(s, task)) return false;
    if (!task->parts->add_up) return choose_alike(w, s, task, best);
    hr_parts_choose(&fit->layers, task, s->rests, s->chunk_count, &parts, fit->spare);
    if (parts.bound > task->ps_most) return false;
    task->ps_least = parts.bound;
    if (!parts.found) return choose_alike(w, s, task, best);
    /* What was found lies in the spare list until nothing is known to be faster. */
    task->ps_most = parts.ps - 1;
    if (parts.ps > parts.bound && choose_alike(w, s, task, best)) return true;
    memcpy(fit->trial, fit->spare, (size_t)fit->twin.depth.layers * sizeof *fit->trial);
    *best = (choice){ parts.chunk, parts.ps };
    return true;
}

static bool is_chosen(const hr_fit *fit, int32_t set)
{
    for (int32_t l = 0; l < fit->twin.depth.layers; l++)
        if (fit->trial[l] == set) return true;
    return false;
}

/* Builds the twins of sets that were chosen on trust; or of all that were there to choose from: a
 * choice among many layers can take longer than all these twins. */
static hr_status confirm(hr_fit *fit, hr_setting *s, const hr_layers_task *task, bool all,
                         bool *changed, hr_error *err)
{
    hr_status status = HR_OK;
    *changed = false;
    for (int32_t i = 0; i < task->set_count && status == HR_OK; i++) {
        int32_t k = 0;
        while (fit->sets[k] != task->sets[i].dropped) k++;
        if (s->known[k] || !(all || is_chosen(fit, i))) continue;
        const hr_twin_set thought = s->sets[k];
        status = hr_setting_know(fit, s, k, err);
        if (status == HR_OK && !hr_setting_is_within(fit, &thought, &s->sets[k]))
            status = hr_setting_know_all(fit, s, err);
        *changed = true;
    }
    return status;
}

static void take(walk *w, const hr_setting *s, const hr_layers_task *task, const choice *best,
                 int64_t bytes)
{
    hr_fit_found *found = w->found;
    hr_intermediates *dropped = found->strategy.dropped;
    const int32_t depth = w->fit->twin.depth.layers;
    for (int32_t l = 0; l < depth; l++) dropped[l] = task->sets[w->fit->trial[l]].dropped;
    found->strategy = s->knobs;
    found->strategy.loss_chunk = s->chunks[best->chunk];
    found->strategy.layer_count = depth;
    found->strategy.dropped = dropped;
    found->step_ps = best->ps;
    found->floor_bytes = bytes;
    w->any = true;
}

/* A question about a setting, and the answer: the best choice lies in the fit's trial. */
typedef struct {
    int64_t limit, ps_most;
    int32_t turns_most;      /* 0: until all is known that was chosen; else a bound is enough */
    const hr_setting *times; /* layers take what they take there; null: what they take here */
    hr_layers_task task;
    hr_parts parts;
    choice best;
    bool found;
} question;

/* By counts of parts a choice takes no longer than a twin or two, else as long as many. */
enum { TRUSTING_LOOKS = 8, BOUNDING_TURNS = 3 };

/* Chooses, on trust at first, until the twins of all sets that are chosen were built. */
static hr_status settle(walk *w, hr_setting *s, question *q, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_twin_set *sets = fit->desk->asked;
    const int32_t looks = w->looks;
    bool changed = true;
    for (int32_t turn = 0; changed; turn++) {
        memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
        for (int32_t k = 0; k < fit->set_count && q->times; k++)
            memcpy(sets[k].ps, q->times->sets[k].ps, sizeof sets[k].ps);
        if (!fit->twin.depth.exact) hr_parts_of(&fit->twin, sets, fit->set_count, &q->parts);
        q->task = (hr_layers_task){ .twin = &fit->twin,
                                    .sets = sets,
                                    .set_count = hr_layers_prune(&fit->twin, sets, fit->set_count),
                                    .slopes = &s->slopes,
                                    .limit = q->limit,
                                    .ps_most = q->ps_most,
                                    .parts = &q->parts };
        q->found = choose(w, s, &q->task, &q->best);
        if (!q->found || turn + 1 == q->turns_most) return HR_OK;
        const hr_status status = confirm(fit, s, &q->task, w->looks - looks > TRUSTING_LOOKS,
                                         &changed, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Takes over what the setting has that is faster; then what is as fast in fewer bytes. */
static hr_status explore(walk *w, hr_setting *s, hr_error *err)
{
    hr_fit_found *found = w->found;
    question q = { .limit = w->limit };
    for (;;) {
        q.ps_most = w->any ? found->step_ps : INT64_MAX;
        const hr_status status = settle(w, s, &q, err);
        if (status != HR_OK || !q.found) return status;
        const int64_t bytes = peak_of(&q.task, &s->rests[q.best.chunk], w->fit->trial);
        if (!w->any || q.best.ps < found->step_ps || bytes < found->floor_bytes)
            take(w, s, &q.task, &q.best, bytes);
        q.limit = found->floor_bytes - 1;
    }
}

/* ---- all settings ---- */

/* What is known of a kind of tiling: of the MLP, of attention, of both. */
typedef struct {
    const hr_setting *base, *rests;
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    int32_t mlps, attentions; /* the last is the smallest; 1: the kind does not cut it */
    int64_t bound; /* picoseconds of a step that none of the kind beats, tiles being free */
} tiling;

/* The bound: layers work with the bytes that the smallest tiles leave, in the time of no tiles. */
static hr_status bound_tiling(walk *w, tiling *t, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->desk->tiled;
    question q = { .limit = w->limit,
                   .ps_most = w->any ? w->found->step_ps - 1 : INT64_MAX,
                   .turns_most = BOUNDING_TURNS,
                   .times = t->base };
    hr_setting_derive(fit, t->base, t->rests, s);
    s->knobs.mlp_tile = t->mlp[t->mlps - 1];
    s->knobs.attention_tile = t->attention[t->attentions - 1];
    hr_status status = hr_setting_bound_works(fit, s, err);
    if (status == HR_OK) status = settle(w, s, &q, err);
    t->bound = q.found ? q.best.ps : INT64_MAX;
    return status;
}

/* Picoseconds that tiles add to a step at least. */
static int64_t tiles_ps(const hr_fit *fit, const hr_setting *base, const hr_setting *s)
{
    return hr_fit_uniform_ps(fit, &s->sets[0]) - hr_fit_uniform_ps(fit, &base->sets[0]);
}

/* Whether some layers, chosen on trust, keep within the limit with the tiles i and j. */
static hr_status try_tiles(walk *w, const tiling *t, int32_t i, int32_t j, bool *has_room,
                           hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->desk->tiled;
    hr_twin_set *sets = fit->desk->asked;
    hr_setting_derive(fit, t->base, t->rests, s);
    s->knobs.mlp_tile = t->mlp[i];
    s->knobs.attention_tile = t->attention[j];
    const hr_status status = hr_setting_bound_works(fit, s, err);
    if (status != HR_OK) return status;
    memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
    const hr_layers_task task = { .twin = &fit->twin,
                                  .sets = sets,
                                  .set_count = fit->set_count,
                                  .slopes = &s->slopes,
                                  .limit = w->limit };
    *has_room = !has_no_room(s, &task);
    return HR_OK;
}

/* Raises *i, or where `mlps` is false *j, to the largest tile with which there is room, or to the
 * last: bytes fall with the size of a tile. */
static hr_status skip_tiles(walk *w, const tiling *t, bool mlps, int32_t *i, int32_t *j,
                            hr_error *err)
{
    int32_t *at = mlps ? i : j, low = *at, high = mlps ? t->mlps - 1 : t->attentions - 1;
    hr_status status = HR_OK;
    /* Mostly there is room with the largest, or only with few. */
    for (bool is_first = true; low < high && status == HR_OK; is_first = false) {
        bool has_room = false;
        *at = is_first ? low : low + (high - low) / 2;
        status = try_tiles(w, t, *i, *j, &has_room, err);
        if (has_room) high = *at;
        else low = *at + 1;
    }
    *at = high;
    return status;
}

/* Tiles cost time and save working bytes, the smaller the more: none is of use unless these are
 * what binds. */
static hr_status explore_tiling(walk *w, tiling *t, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->desk->tiled;
    int32_t i = t->mlps > 1, last = t->attentions - 1;
    hr_status status = bound_tiling(w, t, err);
    if (t->bound == INT64_MAX || (w->any && t->bound >= w->found->step_ps)) return status;
    if (status == HR_OK) status = skip_tiles(w, t, true, &i, &last, err);
    for (; i < t->mlps && status == HR_OK; i++) {
        int32_t j = t->attentions > 1;
        status = skip_tiles(w, t, false, &i, &j, err);
        for (; j < t->attentions && status == HR_OK; j++) {
            if (w->any && t->bound >= w->found->step_ps) return HR_OK;
            hr_setting_derive(fit, t->base, t->rests, s);
            s->knobs.mlp_tile = t->mlp[i];
            s->knobs.attention_tile = t->attention[j];
            status = hr_setting_price_tiles(fit, t->base, s, err);
            if (status != HR_OK) return status;
            if (w->any && t->bound + tiles_ps(fit, t->base, s) > w->found->step_ps) continue;
            hr_setting_forget(fit, s);
            status = hr_setting_foresee(fit, s, err);
            if (status == HR_OK) status = explore(w, s, err);
        }
    }
    return status;
}

static hr_status explore_tiles(walk *w, const hr_setting *base, const hr_setting *rests,
                               hr_error *err)
{
    hr_fit *fit = w->fit;
    const int64_t micro = hr_fit_sequences_of(fit, &base->knobs);
    tiling all = { .base = base, .rests = rests };
    all.mlps = hr_fit_mlp_tiles(fit->config, micro, all.mlp);
    all.attentions = hr_fit_attention_tiles(fit->config, micro, all.attention);
    hr_status status = HR_OK;
    for (int32_t kind = 1; kind < 4 && status == HR_OK; kind++) {
        tiling t = all;
        if (!(kind & 1)) t.mlps = 1;
        if (!(kind & 2)) t.attentions = 1;
        if ((kind & 1 && all.mlps == 1) || (kind & 2 && all.attentions == 1)) continue;
        status = explore_tiling(w, &t, err);
    }
    return status;
}

/* Picoseconds of a step that no choice of sets beats, whatever layers work with. */
static int64_t bound_setting(walk *w, const hr_setting *s)
{
    hr_fit *fit = w->fit;
    hr_twin_set *sets = fit->desk->bounded;
    if (fit->twin.depth.exact)
        return hr_fit_uniform_ps(fit, &s->sets[0]) + hr_setting_least_rest_ps(s);
    memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
    const hr_layers_task task = { .twin = &fit->twin,
                                  .sets = sets,
                                  .set_count = hr_layers_prune(&fit->twin, sets, fit->set_count),
                                  .slopes = &s->slopes,
                                  .limit = w->limit };
    if (task.set_count > HR_ALIKE_SETS_MOST)
        return hr_fit_uniform_ps(fit, &s->sets[0]) + hr_setting_least_rest_ps(s);
    return hr_alike_bound(&fit->layers, &task, s->rests, s->chunk_count);
}

/* True if the bound of a setting leaves it no chance. */
static bool is_beaten(walk *w, const hr_setting *s)
{
    const int64_t bound = bound_setting(w, s);
    return bound == INT64_MAX || (w->any && bound > w->found->step_ps);
}

/* `whole`: the largest micro-batch, dX first, all sets known. */
static hr_status explore_micro(walk *w, int64_t micro, const hr_setting *whole, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *dx_first = &fit->desk->dx_first, *dw_first = &fit->desk->dw_first,
               *s = &fit->desk->ordered;
    hr_status status = HR_OK;
    if (micro == hr_fit_sequences_of(fit, &whole->knobs)) hr_setting_copy(fit, whole, dx_first);
    else status = hr_setting_open(fit, micro, false, false, dx_first, err);
    if (status == HR_OK) status = hr_setting_open(fit, micro, true, false, dw_first, err);
    if (status != HR_OK) return status;
    if (!dx_first->known[0]) {
        const bool scales = hr_setting_scale(fit, whole, dx_first);
        hr_setting_derive(fit, dx_first, dw_first, s);
        if (scales && is_beaten(w, dx_first) && is_beaten(w, s)) return HR_OK;
        hr_setting_forget(fit, dx_first);
        status = hr_setting_foresee(fit, dx_first, err);
    }
    if (status == HR_OK) status = explore(w, dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, dx_first, dw_first, s);
    status = hr_setting_bound_works(fit, s, err);
    if (status == HR_OK) status = explore(w, s, err);
    if (status == HR_OK) status = explore_tiles(w, dx_first, dx_first, err);
    if (status == HR_OK) status = explore_tiles(w, dx_first, dw_first, err);
    return status;
}

/* The whole batch at once with gradients consumed: layers keep the same bytes and take no less
 * time. */
static hr_status explore_consumed(walk *w, const hr_setting *whole, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_fit_desk *desk = fit->desk;
    const int64_t micro = hr_fit_sequences_of(fit, &whole->knobs);
    if (whole->knobs.micro_batch) return HR_OK;
    hr_status status = hr_setting_open(fit, micro, false, true, &desk->dx_rests, err);
    if (status == HR_OK) status = hr_setting_open(fit, micro, true, true, &desk->dw_rests, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, whole, &desk->dx_rests, &desk->dx_first);
    status = hr_setting_price_tiles(fit, whole, &desk->dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, &desk->dx_first, &desk->dx_rests, &desk->ordered);
    hr_setting_derive(fit, &desk->dx_first, &desk->dw_rests, &desk->dw_first);
    if (is_beaten(w, &desk->ordered) && is_beaten(w, &desk->dw_first)) return HR_OK;
    hr_setting_forget(fit, &desk->dx_first);
    status = hr_setting_foresee(fit, &desk->dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, &desk->dx_first, &desk->dw_rests, &desk->dw_first);
    status = hr_setting_bound_works(fit, &desk->dw_first, err);
    if (status == HR_OK) status = explore(w, &desk->dx_first, err);
    if (status == HR_OK) status = explore(w, &desk->dw_first, err);
    if (status == HR_OK) status = explore_tiles(w, &desk->dx_first, &desk->dx_rests, err);
    if (status == HR_OK) status = explore_tiles(w, &desk->dx_first, &desk->dw_rests, err);
    return status;
}

/* A micro-batch in the order of what may come of it. */
typedef struct {
    int64_t micro;
    int64_t guess; /* picoseconds: where it is in the order */
    int64_t bound; /* picoseconds: in either order of dW and dX nothing takes less */
} prospect;

/* Of a setting of which the largest and the smallest chunk are known, in both orders of dW and dX:
 * the least time of the one with the least bytes of all, in layers that work with nothing. */
static int64_t bound_prospect(walk *w, hr_setting *s, const hr_twin_rest *ordered, int64_t micro)
{
    const int64_t rounding_ps = hr_setting_rounding_ps(w->fit, micro) * HR_FIT_CHUNKS_MOST;
    hr_twin_rest least = s->rests[0];
    least.ps = hr_max(0, hr_min(least.ps, ordered[0].ps) - rounding_ps);
    for (int32_t c = 0; c < s->chunk_count; c++) {
        least.head = hr_min(least.head, hr_min(s->rests[c].head, ordered[c].head));
        least.other = hr_min(least.other, hr_min(s->rests[c].other, ordered[c].other));
    }
    s->rests[0] = least;
    s->chunk_count = 1;
    s->slopes = (hr_twin_slopes){ .step = { 0 } };
    for (int32_t k = 0; k < w->fit->set_count; k++)
        memset(s->sets[k].work, 0, sizeof s->sets[k].work);
    return bound_setting(w, s);
}

static hr_status look_at(walk *w, const hr_setting *whole, prospect *p, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->desk->ordered;
    int64_t chunks[HR_FIT_CHUNKS_MOST];
    hr_twin_rest ordered[HR_FIT_CHUNKS_MOST];
    const int32_t count = hr_fit_chunks(fit->config, p->micro, chunks);
    hr_setting_clear(fit, s);
    s->knobs.micro_batch = p->micro;
    s->chunks[s->chunk_count++] = chunks[0];
    if (count > 1) s->chunks[s->chunk_count++] = chunks[count - 1];
    hr_status status = hr_twin_rests_of(&fit->twin, &s->knobs, fit->sets[hr_fit_reference_of(fit)],
                                        s->chunks, s->chunk_count, s->rests, &s->slopes, err);
    const bool scales = hr_setting_scale(fit, whole, s);
    if (status == HR_OK && scales && fit->sets[0] == 0)
        status = hr_setting_price_turns(fit, s, err);
    if (status != HR_OK) return status;
    hr_strategy dw_first = s->knobs;
    hr_twin_slopes ignored;
    dw_first.dw_first = true;
    status = hr_twin_rests_of(&fit->twin, &dw_first, fit->sets[hr_fit_reference_of(fit)], s->chunks,
                              s->chunk_count, ordered, &ignored, err);
    if (status != HR_OK) return status;
    p->guess = bound_setting(w, s);
    p->bound = hr_fit_uniform_ps(fit, &s->sets[0]) + s->rests[0].ps -
               hr_setting_rounding_ps(fit, p->micro) * HR_FIT_CHUNKS_MOST;
    if (scales) p->bound = hr_max(p->bound, bound_prospect(w, s, ordered, p->micro));
    return HR_OK;
}

hr_status hr_fit_fastest(hr_fit *fit, int64_t limit, hr_fit_found *found, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    prospect prospects[HR_FIT_MICROS_MOST];
    const int32_t count = hr_fit_micros(fit->config, micros);
    walk w = { .fit = fit, .limit = limit, .found = found, .bound = INT64_MAX };
    hr_setting *whole = &fit->desk->whole;
    hr_status status = hr_setting_open(fit, micros[0], false, false, whole, err);
    if (status == HR_OK) status = hr_setting_foresee(fit, whole, err);
    if (status != HR_OK) return status;
    for (int32_t m = 0; m < count && status == HR_OK; m++) {
        prospect p = { micros[m], bound_setting(&w, whole), 0 };
        if (m) status = look_at(&w, whole, &p, err);
        int32_t i = m;
        for (; i > 0 && prospects[i - 1].guess > p.guess; i--) prospects[i] = prospects[i - 1];
        prospects[i] = p;
    }
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        if (prospects[i].bound < INT64_MAX && (!w.any || prospects[i].bound <= found->step_ps))
            status = explore_micro(&w, prospects[i].micro, whole, err);
    if (status == HR_OK) status = explore_consumed(&w, whole, err);
    if (status != HR_OK) return status;
    if (w.any) {
        found->bound_ps = hr_min(found->step_ps, w.bound);
        found->proven = w.bound == INT64_MAX;
        return HR_OK;
    }
    return hr_fail(err, HR_NO_FIT, "no strategy keeps within %lld bytes of arena",
                   (long long)limit);
}

/* ---- the least ---- */

/* Bytes fall with the size of a cut, so the ends of each list are enough. */
static int32_t ends(int64_t *list, int32_t count)
{
    if (count > 2) list[1] = list[count - 1];
    return (int32_t)hr_min(count, 2);
}

/* Lowers *bytes to the least floor with one chunk; twins of what is chosen on trust are built. */
static hr_status settle_least(hr_fit *fit, hr_setting *s, int32_t chunk, int64_t *bytes,
                              hr_error *err)
{
    hr_twin_set *sets = fit->desk->asked;
    hr_layers_task task = { .twin = &fit->twin, .sets = sets, .slopes = &s->slopes };
    for (bool changed = true; changed;) {
        memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
        task.set_count = hr_layers_prune(&fit->twin, sets, fit->set_count);
        const int64_t least = hr_max(hr_layers_least(&fit->twin, sets, task.set_count, &s->slopes,
                                                     s->rests[chunk].head, fit->trial),
                                     s->rests[chunk].other);
        if (least >= *bytes) return HR_OK;
        const hr_status status = confirm(fit, s, &task, false, &changed, err);
        if (status != HR_OK) return status;
        if (!changed) *bytes = least;
    }
    return HR_OK;
}

/* `base`: the same micro-batch without tiles, all sets foreseen; `rests`: with some order and
 * lifetime of gradients. */
static hr_status least_of(hr_fit *fit, const hr_setting *base, const hr_setting *rests,
                          int64_t *bytes, hr_error *err)
{
    const int64_t micro = hr_fit_sequences_of(fit, &rests->knobs);
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    const int32_t mlps = ends(mlp, hr_fit_mlp_tiles(fit->config, micro, mlp));
    const int32_t attentions = ends(attention,
                                    hr_fit_attention_tiles(fit->config, micro, attention));
    hr_status status = HR_OK;
    int64_t bound = INT64_MAX;
    for (int32_t c = 0; c < rests->chunk_count; c++)
        bound = hr_min(bound, hr_max(rests->rests[c].head, rests->rests[c].other));
    for (int32_t i = mlps * attentions - 1; i >= 0 && bound < *bytes && status == HR_OK; i--) {
        hr_setting *s = &fit->desk->tiled;
        hr_setting_derive(fit, base, rests, s);
        s->knobs.mlp_tile = mlp[i / attentions];
        s->knobs.attention_tile = attention[i % attentions];
        status = hr_setting_bound_works(fit, s, err);
        for (int32_t c = 0; c < s->chunk_count && status == HR_OK; c++)
            status = settle_least(fit, s, c, bytes, err);
    }
    return status;
}

hr_status hr_fit_least(hr_fit *fit, int64_t *bytes, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    const int32_t count = ends(micros, hr_fit_micros(fit->config, micros));
    hr_status status = HR_OK;
    *bytes = INT64_MAX;
    for (int32_t m = count - 1; m >= 0 && status == HR_OK; m--) {
        hr_setting *base = &fit->desk->whole, *other = &fit->desk->ordered;
        status = hr_setting_open(fit, micros[m], false, false, base, err);
        if (status == HR_OK) status = hr_setting_foresee(fit, base, err);
        if (status == HR_OK) status = least_of(fit, base, base, bytes, err);
        for (int32_t way = 1; way < 4 && status == HR_OK; way++) {
            const bool consume = way / 2;
            if (consume && micros[m] < fit->config->train.batch) break;
            status = hr_setting_open(fit, micros[m], way % 2, consume, other, err);
            if (status == HR_OK) status = least_of(fit, base, other, bytes, err);
        }
    }
    return status;
}
