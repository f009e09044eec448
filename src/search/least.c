/* SPDX-License-Identifier: Apache-2.0 */
/* search/least.c - finds the smallest floor: knobs at the ends of their ranges, layers by binary
 * search. */
#include <string.h>

#include "base/checked.h"
#include "search/layer_choice.h"

enum { WAYS = 4 }; /* backward orders times gradient release on or off */

/* Reduces a list to its first and last value. Bytes fall with the size of a cut, so these two
 * are enough. */
static int32_t ends(int64_t *list, int32_t count)
{
    if (count > 2) list[1] = list[count - 1];
    return (int32_t)hr_min(count, 2);
}

/* Lowers `found` to the smallest floor with one chunk. Builds the proxy models of chosen sets
 * that are only bounded. */
static hr_status lower_floor(hr_fit *fit, hr_setting *s, int32_t chunk, hr_fit_found *found,
                             hr_error *err)
{
    hr_proxy_set *sets = fit->scratch->asked;
    hr_layers_task task = { .proxy = &fit->proxy, .sets = sets, .slopes = &s->slopes };
    for (bool changed = true; changed;) {
        memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
        task.set_count = hr_layers_prune(&fit->proxy, sets, fit->set_count);
        const int64_t least = hr_max(hr_layers_least(&fit->proxy, sets, task.set_count, &s->slopes,
                                                     s->rests[chunk].head, fit->trial),
                                     s->rests[chunk].other);
        if (least >= found->floor_bytes) return HR_OK;
        const hr_status status = hr_fit_confirm(fit, s, &task, false, &changed, err);
        if (status != HR_OK) return status;
        if (changed) continue;
        hr_setting_write(fit, s, chunk, fit->scratch->asked, &found->strategy);
        found->floor_bytes = least;
    }
    return HR_OK;
}

/* Takes the reference set, which is measured, in all layers if its floor is at most `enough`. */
static void try_reference(hr_fit *fit, const hr_setting *s, int32_t chunk, int64_t enough,
                          hr_fit_found *found)
{
    const hr_proxy_set *set = &s->sets[hr_fit_reference_of(fit)];
    const int64_t floor_bytes = hr_max(
        hr_layers_least(&fit->proxy, set, 1, &s->slopes, s->rests[chunk].head, fit->trial),
        s->rests[chunk].other);
    if (floor_bytes > enough) return;
    hr_setting_write(fit, s, chunk, set, &found->strategy);
    found->floor_bytes = floor_bytes;
}

/* Lowers `found` over all tiles and chunks, until it is at most `enough`. `base` is the same
 * micro-batch without tiles, with bounds for all sets; `rests` has the backward order and gradient
 * release to use. */
static hr_status least_of(hr_fit *fit, const hr_setting *base, const hr_setting *rests,
                          int64_t enough, hr_fit_found *found, hr_error *err)
{
    const int64_t micro = hr_fit_sequences_of(fit, &rests->knobs);
    int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
    const int32_t mlps = ends(mlp, hr_fit_mlp_tiles(fit->config, micro, mlp));
    const int32_t attentions = ends(attention,
                                    hr_fit_attention_tiles(fit->config, micro, attention));
    hr_status status = HR_OK;
    for (int32_t i = mlps * attentions - 1; i >= 0 && status == HR_OK; i--) {
        if (found->floor_bytes <= enough) return HR_OK;
        hr_setting *s = &fit->scratch->tiled;
        hr_setting_derive(fit, base, rests, s);
        s->knobs.mlp_tile = mlp[i / attentions];
        s->knobs.attention_tile = attention[i % attentions];
        status = hr_setting_bound_works(fit, s, err);
        for (int32_t c = 0; c < s->chunk_count && status == HR_OK && enough > 0; c++) {
            try_reference(fit, s, c, enough, found);
            if (found->floor_bytes <= enough) return HR_OK;
        }
        for (int32_t c = 0; c < s->chunk_count && status == HR_OK; c++)
            status = lower_floor(fit, s, c, found, err);
    }
    return status;
}

/* Fills in everything but the sets, with the largest and the smallest chunk. */
static hr_status open_ends(hr_fit *fit, int64_t micro, int32_t way, hr_setting *s, hr_error *err)
{
    hr_setting_clear(fit, s);
    s->knobs = (hr_strategy){ .micro_batch = micro < fit->config->train.batch ? micro : 0,
                              .dw_first = way % 2,
                              .consume = way / 2 };
    s->chunk_count = ends(s->chunks, hr_fit_chunks(fit->config, micro, s->chunks));
    return hr_setting_find_rests(fit, s, err);
}

/* Lower bound on the floor for any choice of the layers. */
static int64_t bound_of(const hr_setting *s)
{
    int64_t bound = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++)
        bound = hr_min(bound, hr_max(s->rests[c].head, s->rests[c].other));
    return bound;
}

/* A micro-batch size with a backward order and gradient release, and a lower bound on its
 * floors. */
typedef struct {
    int64_t micro, bound;
    int32_t way;
} prospect;

/* Lists the prospects by rising bound. Writes their number to *count. */
static hr_status list_prospects(hr_fit *fit, prospect *list, int32_t *count, hr_error *err)
{
    int64_t micros[HR_FIT_MICROS_MOST];
    hr_setting *s = &fit->scratch->ordered;
    *count = 0;
    for (int32_t m = ends(micros, hr_fit_micros(fit->config, micros)) - 1; m >= 0; m--)
        for (int32_t way = 0; way < WAYS; way++) {
            if (way / 2 && micros[m] < fit->config->train.batch) break;
            const hr_status status = open_ends(fit, micros[m], way, s, err);
            if (status != HR_OK) return status;
            const prospect made = { micros[m], bound_of(s), way };
            int32_t i = (*count)++;
            for (; i > 0 && list[i - 1].bound > made.bound; i--) list[i] = list[i - 1];
            list[i] = made;
        }
    return HR_OK;
}

hr_status hr_fit_least(hr_fit *fit, int64_t most, int64_t enough, hr_fit_found *found,
                       hr_error *err)
{
    prospect list[2 * WAYS];
    hr_setting *base = &fit->scratch->whole, *other = &fit->scratch->ordered;
    int64_t bounded_micro = 0;
    int32_t count = 0;
    hr_status status = list_prospects(fit, list, &count, err);
    if (status != HR_OK) return status;
    *found = (hr_fit_found){ .strategy.recompute_set = found->strategy.recompute_set,
                             .floor_bytes = INT64_MAX };
    if (list[0].bound > most) {
        found->floor_bytes = list[0].bound;
        return HR_OK;
    }
    for (int32_t i = 0; i < count && status == HR_OK; i++) {
        const prospect *p = &list[i];
        if (p->bound >= found->floor_bytes || found->floor_bytes <= enough) break;
        if (bounded_micro != p->micro) {
            bounded_micro = p->micro;
            status = open_ends(fit, p->micro, 0, base, err);
            if (status == HR_OK) status = hr_setting_bound_sets(fit, base, err);
        }
        if (status == HR_OK && p->way) status = open_ends(fit, p->micro, p->way, other, err);
        if (status == HR_OK)
            status = least_of(fit, base, p->way ? other : base, enough, found, err);
    }
    return status;
}
