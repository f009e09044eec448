/* SPDX-License-Identifier: Apache-2.0 */
/* search/fit.c - searches the knobs of the whole step; for each setting, the layers are chosen
 * exactly. */
#include "search/fit.h"

#include <string.h>

#include "base/checked.h"
#include "plan/compile.h"
#include "search/layer_choice.h"
#include "search/uniform_layers.h"

/* STEPS_MOST: total steps of all proxy models of one search. Most searches need a thirtieth of
 * it; building that many takes about half a second. */
enum { BOUNDING_ITERATIONS = 3, STEPS_MOST = 1 << 21 };

/* True if the search has reached its work limit. The strategies that it then skips take at least
 * `bound`. */
static bool is_spent(hr_fit_search *w, int64_t bound)
{
    if (!w->any || w->fit->proxy.steps < w->steps_most) return false;
    w->bound = hr_min(w->bound, bound);
    return true;
}

int64_t hr_fit_bytes(const hr_config *config)
{
    return hr_proxy_bytes(config) + hr_layers_bytes((int32_t)config->model.n_layers) +
           2 * config->model.n_layers * (int64_t)sizeof(uint16_t) +
           (int64_t)sizeof(hr_fit_scratch) + 6 * 64;
}

hr_status hr_fit_open(hr_fit *fit, const hr_config *config, const hr_rates *rates, int32_t threads,
                      hr_region *region, hr_error *err)
{
    const int64_t proxy_bytes = hr_proxy_bytes(config);
    fit->config = config;
    hr_status status = hr_layers_place(&fit->layers, (int32_t)config->model.n_layers, region, err);
    if (status != HR_OK) return status;
    fit->trial = hr_region_take(region, config->model.n_layers, sizeof *fit->trial);
    fit->spare = hr_region_take(region, config->model.n_layers, sizeof *fit->spare);
    fit->scratch = hr_region_take(region, 1, sizeof *fit->scratch);
    void *memory = hr_region_take(region, proxy_bytes, 1);
    if (!memory || !fit->trial || !fit->spare || !fit->scratch)
        return hr_fail(err, HR_FAILURE, "out of memory for the search");
    fit->region = hr_region_over(memory, proxy_bytes);
    status = hr_proxy_open(&fit->proxy, config, rates, threads, &fit->region, err);
    if (status != HR_OK) return status;
    fit->form = hr_layer_schema_of(config);
    fit->values_most = hr_layer_size_of(config).steps * HR_OUT_MAX;
    fit->set_count = hr_fit_sets(config, &fit->form, fit->sets);
    return HR_OK;
}

/* One kind of tiling: of the MLP, of attention, or of both. */
typedef struct {
    const hr_setting *base, *rests;
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    int32_t mlps, attentions; /* the last tile is the smallest; 1: this kind does not tile it */
    /* lower bound in picoseconds of a step of this kind, without the cost of tiles */
    int64_t bound;
} tiling;

/* Computes the bound: the working memory of the smallest tiles with the time of no tiles. */
static hr_status bound_tiling(hr_fit_search *w, tiling *t, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->scratch->tiled;
    hr_fit_question q = { .limit = w->limit,
                          .ps_most = w->any ? w->found->step_ps - 1 : INT64_MAX,
                          .iterations_most = BOUNDING_ITERATIONS,
                          .times = t->base };
    hr_setting_derive(fit, t->base, t->rests, s);
    s->knobs.mlp_tile = t->mlp[t->mlps - 1];
    s->knobs.attention_tile = t->attention[t->attentions - 1];
    hr_status status = hr_setting_bound_works(fit, s, err);
    if (status == HR_OK) status = hr_fit_choose_layers(w, s, &q, err);
    t->bound = q.found ? q.best.ps : INT64_MAX;
    return status;
}

/* Lower bound in picoseconds of a step of any strategy with the layers of `base` and the rest of
 * `rests`, with or without tiles: the time without recompute. */
static int64_t least_ps(const hr_fit *fit, const hr_setting *base, const hr_setting *rests)
{
    return hr_fit_uniform_ps(fit, &base->sets[0]) + hr_setting_least_rest_ps(rests);
}

/* Lower bound on the picoseconds that tiles add to a step. */
static int64_t tiles_ps(const hr_fit *fit, const hr_setting *base, const hr_setting *s)
{
    return hr_fit_uniform_ps(fit, &s->sets[0]) - hr_fit_uniform_ps(fit, &base->sets[0]);
}

/* Tells whether some choice for the layers, by lower bounds, is within the limit with the tiles
 * i and j. */
static hr_status try_tiles(hr_fit_search *w, const tiling *t, int32_t i, int32_t j, bool *has_room,
                           hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->scratch->tiled;
    hr_proxy_set *sets = fit->scratch->asked;
    hr_setting_derive(fit, t->base, t->rests, s);
    s->knobs.mlp_tile = t->mlp[i];
    s->knobs.attention_tile = t->attention[j];
    const hr_status status = hr_setting_bound_works(fit, s, err);
    if (status != HR_OK) return status;
    memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
    const hr_layers_task task = { .proxy = &fit->proxy,
                                  .sets = sets,
                                  .set_count = fit->set_count,
                                  .slopes = &s->slopes,
                                  .limit = w->limit };
    *has_room = !hr_fit_has_no_room(s, &task);
    return HR_OK;
}

/* Raises *i, or *j if `mlps` is false, to the index of the largest tile that fits, or to the
 * last. A binary search is enough: smaller tiles need fewer bytes. */
static hr_status skip_tiles(hr_fit_search *w, const tiling *t, bool mlps, int32_t *i, int32_t *j,
                            hr_error *err)
{
    int32_t *at = mlps ? i : j, low = *at, high = mlps ? t->mlps - 1 : t->attentions - 1;
    hr_status status = HR_OK;
    /* Usually the largest tile fits, or only a few small ones do. */
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

/* Tiles cost time and save working memory, more of both the smaller they are. They help only if
 * working memory decides the peak. */
static hr_status explore_tiling(hr_fit_search *w, tiling *t, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->scratch->tiled;
    int32_t i = t->mlps > 1, last = t->attentions - 1;
    if (is_spent(w, least_ps(fit, t->base, t->rests))) return HR_OK;
    hr_status status = bound_tiling(w, t, err);
    if (t->bound == INT64_MAX || (w->any && t->bound >= w->found->step_ps)) return status;
    if (status == HR_OK) status = skip_tiles(w, t, true, &i, &last, err);
    for (; i < t->mlps && status == HR_OK; i++) {
        int32_t j = t->attentions > 1;
        status = skip_tiles(w, t, false, &i, &j, err);
        for (; j < t->attentions && status == HR_OK; j++) {
            if (w->any && t->bound >= w->found->step_ps) return HR_OK;
            if (is_spent(w, t->bound)) return HR_OK;
            hr_setting_derive(fit, t->base, t->rests, s);
            s->knobs.mlp_tile = t->mlp[i];
            s->knobs.attention_tile = t->attention[j];
            status = hr_setting_price_tiles(fit, t->base, s, err);
            if (status != HR_OK) return status;
            if (w->any && t->bound + tiles_ps(fit, t->base, s) > w->found->step_ps) continue;
            hr_setting_forget(fit, s);
            status = hr_setting_bound_sets(fit, s, err);
            if (status == HR_OK) status = hr_fit_explore(w, s, err);
        }
    }
    return status;
}

static hr_status explore_tiles(hr_fit_search *w, const hr_setting *base, const hr_setting *rests,
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

/* Lower bound in picoseconds of a step with any choice of sets, ignoring working memory. */
static int64_t bound_setting(hr_fit_search *w, const hr_setting *s)
{
    hr_fit *fit = w->fit;
    hr_proxy_set *sets = fit->scratch->bounded;
    memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
    const hr_layers_task task = { .proxy = &fit->proxy,
                                  .sets = sets,
                                  .set_count = hr_layers_prune(&fit->proxy, sets, fit->set_count),
                                  .slopes = &s->slopes,
                                  .limit = w->limit };
    if (fit->proxy.depth.exact || hr_proxy_is_mixed(&fit->proxy))
        return hr_fit_bound_layers(fit, s, &task);
    if (task.set_count > HR_UNIFORM_SETS_MOST)
        return hr_fit_uniform_ps(fit, &s->sets[0]) + hr_setting_least_rest_ps(s);
    return hr_uniform_bound(&fit->layers, &task, s->rests, s->chunk_count);
}

/* True if the bound of a setting shows that it cannot improve on the best strategy so far. */
static bool is_beaten(hr_fit_search *w, const hr_setting *s)
{
    const int64_t bound = bound_setting(w, s);
    return bound == INT64_MAX || (w->any && bound > w->found->step_ps);
}

/* Searches one micro-batch size. `whole` is the setting of the largest micro-batch with dX first
 * and with bounds or measurements of all sets. */
static hr_status explore_micro(hr_fit_search *w, int64_t micro, const hr_setting *whole,
                               hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *dx_first = &fit->scratch->dx_first, *dw_first = &fit->scratch->dw_first,
               *s = &fit->scratch->ordered;
    hr_status status = HR_OK;
    if (micro == hr_fit_sequences_of(fit, &whole->knobs)) hr_setting_copy(fit, whole, dx_first);
    else status = hr_setting_open(fit, micro, false, false, dx_first, err);
    if (status == HR_OK) status = hr_setting_open(fit, micro, true, false, dw_first, err);
    if (status != HR_OK) return status;
    if (!dx_first->known[0]) {
        hr_setting_scale(fit, whole, dx_first);
        hr_setting_derive(fit, dx_first, dw_first, s);
        if (is_beaten(w, dx_first) && is_beaten(w, s)) return HR_OK;
        hr_setting_forget(fit, dx_first);
        status = hr_setting_bound_sets(fit, dx_first, err);
    }
    if (status == HR_OK) status = hr_fit_explore(w, dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, dx_first, dw_first, s);
    status = hr_setting_bound_works(fit, s, err);
    if (status == HR_OK) status = hr_fit_explore(w, s, err);
    if (status == HR_OK) status = explore_tiles(w, dx_first, dx_first, err);
    if (status == HR_OK) status = explore_tiles(w, dx_first, dw_first, err);
    return status;
}

/* Searches gradient release, which needs the whole batch as one micro-batch. Layers keep the
 * same bytes and are not faster than in `whole`. */
static hr_status explore_consumed(hr_fit_search *w, const hr_setting *whole, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_fit_scratch *scratch = fit->scratch;
    const int64_t micro = hr_fit_sequences_of(fit, &whole->knobs);
    if (whole->knobs.micro_batch) return HR_OK;
    hr_status status = hr_setting_open(fit, micro, false, true, &scratch->dx_rests, err);
    if (status == HR_OK) status = hr_setting_open(fit, micro, true, true, &scratch->dw_rests, err);
    if (status != HR_OK || is_spent(w, hr_min(least_ps(fit, whole, &scratch->dx_rests),
                                              least_ps(fit, whole, &scratch->dw_rests))))
        return status;
    hr_setting_derive(fit, whole, &scratch->dx_rests, &scratch->dx_first);
    status = hr_setting_price_tiles(fit, whole, &scratch->dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, &scratch->dx_first, &scratch->dx_rests, &scratch->ordered);
    hr_setting_derive(fit, &scratch->dx_first, &scratch->dw_rests, &scratch->dw_first);
    if (is_beaten(w, &scratch->ordered) && is_beaten(w, &scratch->dw_first)) return HR_OK;
    hr_setting_forget(fit, &scratch->dx_first);
    status = hr_setting_bound_sets(fit, &scratch->dx_first, err);
    if (status != HR_OK) return status;
    hr_setting_derive(fit, &scratch->dx_first, &scratch->dw_rests, &scratch->dw_first);
    status = hr_setting_bound_works(fit, &scratch->dw_first, err);
    if (status == HR_OK) status = hr_fit_explore(w, &scratch->dx_first, err);
    if (status == HR_OK) status = hr_fit_explore(w, &scratch->dw_first, err);
    if (status == HR_OK) status = explore_tiles(w, &scratch->dx_first, &scratch->dx_rests, err);
    if (status == HR_OK) status = explore_tiles(w, &scratch->dx_first, &scratch->dw_rests, err);
    return status;
}

/* A micro-batch size with its estimate; the search visits them in order of `guess`. */
typedef struct {
    int64_t micro;
    int64_t guess; /* picoseconds: the sort key */
    int64_t bound; /* picoseconds: lower bound over both backward orders */
} prospect;

/* Lower bound over both backward orders for a setting whose largest and smallest chunks are
 * measured. It combines the least time with the fewest bytes of all, and layers without working
 * memory. */
static int64_t bound_prospect(hr_fit_search *w, hr_setting *s, const hr_proxy_rest *ordered,
                              int64_t micro)
{
    const int64_t rounding_ps = hr_setting_rounding_ps(w->fit, micro) * HR_FIT_CHUNKS_MOST;
    hr_proxy_rest least = s->rests[0];
    least.ps = hr_max(0, hr_min(least.ps, ordered[0].ps) - rounding_ps);
    for (int32_t c = 0; c < s->chunk_count; c++) {
        least.head = hr_min(least.head, hr_min(s->rests[c].head, ordered[c].head));
        least.other = hr_min(least.other, hr_min(s->rests[c].other, ordered[c].other));
    }
    s->rests[0] = least;
    s->chunk_count = 1;
    s->slopes = (hr_proxy_slopes){ .step = { 0 } };
    for (int32_t k = 0; k < w->fit->set_count; k++)
        memset(s->sets[k].work, 0, sizeof s->sets[k].work);
    return bound_setting(w, s);
}

static hr_status look_at(hr_fit_search *w, const hr_setting *whole, prospect *p, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_setting *s = &fit->scratch->ordered;
    int64_t chunks[HR_FIT_CHUNKS_MOST];
    hr_proxy_rest ordered[HR_FIT_CHUNKS_MOST];
    const int32_t count = hr_fit_chunks(fit->config, p->micro, chunks);
    hr_setting_clear(fit, s);
    s->knobs.micro_batch = p->micro;
    s->chunks[s->chunk_count++] = chunks[0];
    if (count > 1) s->chunks[s->chunk_count++] = chunks[count - 1];
    hr_status status = hr_setting_find_rests(fit, s, err);
    hr_setting_scale(fit, whole, s);
    if (status == HR_OK && fit->sets[0] == 0) status = hr_setting_price_micro_batches(fit, s, err);
    if (status != HR_OK) return status;
    hr_strategy dw_first = s->knobs;
    hr_proxy_slopes ignored;
    dw_first.dw_first = true;
    status = hr_proxy_rests_of(&fit->proxy, &dw_first, fit->sets[hr_fit_reference_of(fit)],
                               s->chunks, s->chunk_count, ordered, &ignored, err);
    if (status != HR_OK) return status;
    p->guess = bound_setting(w, s);
    p->bound = hr_fit_uniform_ps(fit, &s->sets[0]) + s->rests[0].ps -
               hr_setting_rounding_ps(fit, p->micro) * HR_FIT_CHUNKS_MOST;
    p->bound = hr_max(p->bound, bound_prospect(w, s, ordered, p->micro));
    return HR_OK;
}

hr_status hr_fit_fastest(hr_fit *fit, int64_t limit, hr_fit_found *found, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    prospect prospects[HR_FIT_MICROS_MOST];
    const int32_t count = hr_fit_micros(fit->config, micros);
    hr_fit_search w = { .fit = fit, .limit = limit, .found = found, .bound = INT64_MAX };
    fit->layers.work = 0;
    w.steps_most = fit->proxy.steps + STEPS_MOST;
    hr_setting *whole = &fit->scratch->whole;
    hr_status status = hr_setting_open(fit, micros[0], false, false, whole, err);
    if (status == HR_OK) status = hr_setting_bound_sets(fit, whole, err);
    if (status != HR_OK) return status;
    for (int32_t m = 0; m < count && status == HR_OK; m++) {
        prospect p = { micros[m], bound_setting(&w, whole), 0 };
        if (m) status = look_at(&w, whole, &p, err);
        int32_t i = m;
        for (; i > 0 && prospects[i - 1].guess > p.guess; i--) prospects[i] = prospects[i - 1];
        prospects[i] = p;
    }
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        if (prospects[i].bound < INT64_MAX && (!w.any || prospects[i].bound <= found->step_ps) &&
            !is_spent(&w, prospects[i].bound))
            status = explore_micro(&w, prospects[i].micro, whole, err);
    if (status == HR_OK) status = explore_consumed(&w, whole, err);
    if (status != HR_OK) return status;
    if (w.any) {
        /* Layers that train different parameters are costed as if they trained all of them, so
         * nothing is proven. */
        const bool is_exact = fit->proxy.trained.uniform;
        found->bound_ps = is_exact ? hr_min(found->step_ps, w.bound) : 0;
        found->proven = is_exact && w.bound == INT64_MAX;
        return HR_OK;
    }
    return hr_fail(err, HR_NO_FIT, "no strategy fits an arena of %lld bytes", (long long)limit);
}
