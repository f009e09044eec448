/* SPDX-License-Identifier: Apache-2.0 */
/* fit/fit.c - walks the knobs of the whole step; for each, the layers are chosen exactly. */
#include "fit/fit.h"

#include <string.h>

#include "base/checked.h"
#include "plan/compile.h"

/* The best so far, and what it must be below. */
typedef struct {
    hr_fit *fit;
    int64_t limit;
    hr_fit_found *found;
    bool any;
} walk;

/* What is known about one setting of the knobs. The sets are measured when they are needed. */
typedef struct {
    hr_strategy knobs;
    hr_twin_set sets[HR_FIT_SETS_MOST]; /* [0] drops nothing, or what the recipe says */
    int32_t set_count;
    hr_twin_slopes slopes;
    int64_t reference_head;
    int64_t chunks[HR_FIT_CHUNKS_MOST];
    hr_twin_rest rests[HR_FIT_CHUNKS_MOST];
    int32_t chunk_count;
} setting;

int64_t hr_fit_bytes(const hr_config *config)
{
    return hr_twin_bytes(config) + hr_layers_bytes((int32_t)config->model.n_layers) +
           config->model.n_layers + 4 * 64;
}

hr_status hr_fit_open(hr_fit *fit, const hr_config *config, const hr_rates *rates, int32_t threads,
                      hr_region *region, hr_error *err)
{
    const int64_t twin_bytes = hr_twin_bytes(config);
    fit->config = config;
    hr_status status = hr_layers_place(&fit->layers, (int32_t)config->model.n_layers, region, err);
    if (status != HR_OK) return status;
    fit->trial = hr_region_take(region, config->model.n_layers, 1);
    void *memory = hr_region_take(region, twin_bytes, 1);
    if (!memory || !fit->trial) return hr_fail(err, HR_FAILURE, "no room for small models to search with");
    fit->region = hr_region_over(memory, twin_bytes);
    hr_twin_open(&fit->twin, config, rates, threads, &fit->region);
    fit->set_count = hr_fit_sets(config, hr_strategy_intermediates(config), fit->sets);
    return HR_OK;
}

/* The keep-set that drops most: everything else is said relative to it. */
static uint8_t reference_of(const hr_fit *fit)
{
    return fit->sets[fit->set_count - 1];
}

/* Everything but the layers' sets. Chunks are looked at without tiles: they do not meet. */
static hr_status open_setting(hr_fit *fit, hr_strategy knobs, setting *s, hr_error *err)
{
    hr_status status = HR_OK;
    *s = (setting){ .knobs = knobs };
    const int64_t micro = knobs.micro_batch ? knobs.micro_batch : fit->config->train.batch;
    s->chunk_count = hr_fit_chunks(fit->config, micro, s->chunks);
    for (int32_t c = 0; c < s->chunk_count && status == HR_OK; c++) {
        knobs.loss_chunk = s->chunks[c];
        status = hr_twin_rest_of(&fit->twin, &knobs, reference_of(fit), &s->rests[c], &s->slopes,
                                 err);
    }
    return status;
}

/* Picoseconds with one set in all layers. */
static int64_t uniform_ps(const hr_fit *fit, const hr_twin_set *set)
{
    int64_t ps = 0;
    for (int32_t l = 0; l < fit->twin.depth.layers; l++)
        ps += set->ps[hr_twin_place(&fit->twin, l)];
    return ps;
}

static int64_t least_rest_ps(const setting *s)
{
    int64_t ps = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++) ps = hr_min(ps, s->rests[c].ps);
    return ps;
}

static hr_status measure_reference(hr_fit *fit, setting *s, hr_twin_set *set, hr_error *err)
{
    s->reference_head = 0;
    return hr_twin_set_of(&fit->twin, &s->knobs, reference_of(fit), &s->reference_head, set, err);
}

static hr_status measure_sets(hr_fit *fit, setting *s, hr_error *err)
{
    hr_twin_set *last = &s->sets[fit->set_count - 1];
    hr_status status = measure_reference(fit, s, last, err);
    for (int32_t k = 0; k < fit->set_count - 1 && status == HR_OK; k++)
        status = hr_twin_set_of(&fit->twin, &s->knobs, fit->sets[k], &s->reference_head,
                                &s->sets[k], err);
    if (status == HR_OK) s->set_count = hr_layers_prune(&fit->twin, s->sets, fit->set_count);
    return status;
}

static int64_t peak_of(const hr_fit *fit, const setting *s, const hr_twin_rest *rest,
                       const uint8_t *dropped)
{
    int64_t kept = 0, peak = rest->other;
    for (int32_t l = 0; l < fit->twin.depth.layers; l++) {
        int32_t k = 0;
        while (s->sets[k].dropped != dropped[l]) k++;
        peak = hr_max(peak, kept + hr_twin_work(&fit->twin, &s->sets[k], &s->slopes, l));
        kept += s->sets[k].kept;
    }
    return hr_max(peak, kept + rest->head);
}

/* A plan is better that is faster, or as fast and smaller. */
static bool is_better(const walk *w, int64_t ps, int64_t bytes)
{
    if (!w->any || ps != w->found->step_ps) return !w->any || ps < w->found->step_ps;
    return bytes < w->found->floor_bytes;
}

/* The fastest choice for the layers within a limit; false: there is none as fast as `ps_most`. */
static bool choose(walk *w, const setting *s, int64_t limit, int64_t ps_most, int32_t *chunk,
                   int64_t *ps, uint8_t *dropped)
{
    hr_fit *fit = w->fit;
    const hr_layers_state *frontier;
    const int32_t count = hr_layers_choose(&fit->layers, &fit->twin, s->sets, s->set_count,
                                           &s->slopes, limit, ps_most, &frontier);
    int32_t state = 0;
    *chunk = HR_NONE;
    if (fit->layers.thinned) w->found->proven = false;
    for (int32_t c = 0; c < s->chunk_count; c++) {
        if (s->rests[c].other > limit) continue;
        int32_t i = count - 1;
        while (i >= 0 && frontier[i].kept + s->rests[c].head > limit) i--;
        if (i < 0 || (*chunk != HR_NONE && frontier[i].ps + s->rests[c].ps >= *ps)) continue;
        *chunk = c;
        *ps = frontier[i].ps + s->rests[c].ps;
        state = i;
    }
    if (*chunk == HR_NONE) return false;
    hr_layers_read(&fit->layers, &fit->twin, s->sets, state, dropped);
    return true;
}

/* Takes over what the setting has to offer, if it is better; then whether it is as fast in less. */
static void consider(walk *w, const setting *s)
{
    uint8_t *dropped = w->fit->trial;
    const int64_t rest_ps = least_rest_ps(s);
    int64_t limit = w->limit, ps = 0;
    int32_t chunk;
    for (;;) {
        const int64_t most = w->any ? w->found->step_ps - rest_ps : INT64_MAX / 2;
        if (!choose(w, s, limit, most, &chunk, &ps, dropped)) return;
        const int64_t bytes = peak_of(w->fit, s, &s->rests[chunk], dropped);
        if (!is_better(w, ps, bytes)) return;
        w->any = true;
        w->found->step_ps = ps;
        w->found->floor_bytes = bytes;
        memcpy(w->found->strategy.dropped, dropped, (size_t)w->fit->twin.depth.layers);
        uint8_t *keeps = w->found->strategy.dropped;
        w->found->strategy = s->knobs;
        w->found->strategy.loss_chunk = s->chunks[chunk];
        w->found->strategy.layer_count = w->fit->twin.depth.layers;
        w->found->strategy.dropped = keeps;
        limit = bytes - 1;
    }
}

/* Settings of the tiles for one micro-batch and order, whose rests and slopes are known. */
static hr_status try_tiles(walk *w, const setting *open, bool untiled, hr_error *err)
{
    hr_fit *fit = w->fit;
    const int64_t batch = fit->config->train.batch;
    const int64_t micro = open->knobs.micro_batch ? open->knobs.micro_batch : batch;
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    const int32_t mlps = hr_fit_mlp_tiles(fit->config, micro, mlp);
    const int32_t attentions = hr_fit_attention_tiles(fit->config, micro, attention);
    hr_status status = HR_OK;
    for (int32_t i = 0; i < mlps; i++)
        for (int32_t j = 0; j < attentions && status == HR_OK; j++) {
            if ((i == 0 && j == 0) != untiled) continue;
            setting s = *open;
            hr_twin_set fastest;
            s.knobs.mlp_tile = mlp[i];
            s.knobs.attention_tile = attention[j];
            status = measure_reference(fit, &s, &fastest, err);
            if (status == HR_OK)
                status = hr_twin_set_of(&fit->twin, &s.knobs, fit->sets[0], &s.reference_head,
                                        &fastest, err);
            const int64_t bound = uniform_ps(fit, &fastest) + least_rest_ps(&s);
            if (status != HR_OK || (w->any && bound > w->found->step_ps)) continue;
            status = measure_sets(fit, &s, err);
            if (status == HR_OK) consider(w, &s);
        }
    return status;
}

hr_status hr_fit_fastest(hr_fit *fit, int64_t limit, hr_fit_found *found, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    const int32_t count = hr_fit_micros(fit->config, micros);
    const int64_t batch = fit->config->train.batch;
    walk w = { .fit = fit, .limit = limit, .found = found };
    hr_status status = HR_OK;
    found->proven = true;
    for (int32_t m = 0; m < count && status == HR_OK; m++)
        for (int32_t tiled = 0; tiled < 2; tiled++)
            for (int32_t order = 0; order < 2 && status == HR_OK; order++) {
                const hr_strategy knobs = { .micro_batch = micros[m] < batch ? micros[m] : 0,
                                            .dw_first = order };
                setting s;
                status = open_setting(fit, knobs, &s, err);
                if (status == HR_OK) status = try_tiles(&w, &s, !tiled, err);
            }
    if (status != HR_OK || w.any) return status;
    return hr_fail(err, HR_NO_FIT, "no strategy keeps within %lld bytes of arena",
                   (long long)limit);
}

/* Bytes fall with the size of a cut, so the ends of each list are enough. */
static int32_t ends(int64_t *list, int32_t count)
{
    if (count > 2) list[1] = list[count - 1];
    return (int32_t)hr_min(count, 2);
}

static hr_status least_of(hr_fit *fit, const setting *open, int64_t *bytes, hr_error *err)
{
    const int64_t batch = fit->config->train.batch;
    const int64_t micro = open->knobs.micro_batch ? open->knobs.micro_batch : batch;
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    const int32_t mlps = ends(mlp, hr_fit_mlp_tiles(fit->config, micro, mlp));
    const int32_t attentions = ends(attention,
                                    hr_fit_attention_tiles(fit->config, micro, attention));
    hr_status status = HR_OK;
    int64_t bound = INT64_MAX;
    for (int32_t c = 0; c < open->chunk_count; c++)
        bound = hr_min(bound, hr_max(open->rests[c].head, open->rests[c].other));
    for (int32_t i = 0; i < mlps * attentions && bound < *bytes && status == HR_OK; i++) {
        setting s = *open;
        s.knobs.mlp_tile = mlp[mlps - 1 - i / attentions];
        s.knobs.attention_tile = attention[attentions - 1 - i % attentions];
        status = measure_sets(fit, &s, err);
        for (int32_t c = 0; c < s.chunk_count && status == HR_OK; c++) {
            const int64_t least = hr_layers_least(&fit->twin, s.sets, s.set_count, &s.slopes,
                                                  s.rests[c].head);
            *bytes = hr_min(*bytes, hr_max(least, s.rests[c].other));
        }
    }
    return status;
}

hr_status hr_fit_least(hr_fit *fit, int64_t *bytes, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    const int32_t count = ends(micros, hr_fit_micros(fit->config, micros));
    const int64_t batch = fit->config->train.batch;
    hr_status status = HR_OK;
    *bytes = INT64_MAX;
    for (int32_t m = count - 1; m >= 0; m--)
        for (int32_t order = 0; order < 2 && status == HR_OK; order++) {
            const hr_strategy knobs = { .micro_batch = micros[m] < batch ? micros[m] : 0,
                                        .dw_first = order };
            setting s;
            status = open_setting(fit, knobs, &s, err);
            if (status == HR_OK) status = least_of(fit, &s, bytes, err);
        }
    return status;
}
