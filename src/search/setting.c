/* SPDX-License-Identifier: Apache-2.0 */
/* search/setting.c - measures the sets of a setting, or bounds them by those of another setting. */
#include "search/setting.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "plan/plan.h"

int32_t hr_fit_reference_of(const hr_fit *fit)
{
    return fit->set_count - 1;
}

int64_t hr_fit_sequences_of(const hr_fit *fit, const hr_strategy *knobs)
{
    return knobs->micro_batch ? knobs->micro_batch : fit->config->train.batch;
}

/* Clears only the sets in use: the tables are large, and most recipes use few of their entries. */
void hr_setting_clear(const hr_fit *fit, hr_setting *s)
{
    memset(s->sets, 0, (size_t)fit->set_count * sizeof *s->sets);
    memset(s->known, 0, (size_t)fit->set_count * sizeof *s->known);
    s->reference_head = 0;
    s->chunk_count = 0;
    s->knobs = (hr_strategy){ .micro_batch = 0 };
}

void hr_setting_forget(const hr_fit *fit, hr_setting *s)
{
    memset(s->sets, 0, (size_t)fit->set_count * sizeof *s->sets);
    memset(s->known, 0, (size_t)fit->set_count * sizeof *s->known);
    s->reference_head = 0;
}

hr_status hr_setting_find_rests(hr_fit *fit, hr_setting *s, hr_error *err)
{
    return hr_proxy_rests_of(&fit->proxy, &s->knobs, fit->sets[hr_fit_reference_of(fit)], s->chunks,
                             s->chunk_count, s->rests, &s->slopes, err);
}

hr_status hr_setting_open(hr_fit *fit, int64_t micro, bool dw_first, bool consume, hr_setting *s,
                          hr_error *err)
{
    hr_setting_clear(fit, s);
    s->knobs = (hr_strategy){ .micro_batch = micro < fit->config->train.batch ? micro : 0,
                              .dw_first = dw_first,
                              .consume = consume };
    s->chunk_count = hr_fit_chunks(fit->config, micro, s->chunks);
    return hr_setting_find_rests(fit, s, err);
}

hr_status hr_setting_measure(hr_fit *fit, hr_setting *s, int32_t k, hr_error *err)
{
    const int32_t reference = hr_fit_reference_of(fit);
    if (s->known[k]) return HR_OK;
    if (!s->known[reference] && k != reference) {
        const hr_status status = hr_setting_measure(fit, s, reference, err);
        if (status != HR_OK) return status;
    }
    s->known[k] = true;
    return hr_proxy_set_of(&fit->proxy, &s->knobs, fit->sets[k], &s->reference_head, &s->sets[k],
                           err);
}

bool hr_setting_is_within(const hr_fit *fit, const hr_proxy_set *estimate,
                          const hr_proxy_set *known)
{
    bool within = known->kept >= estimate->kept;
    for (int32_t place = 0; place < fit->proxy.depth.places; place++) {
        within &= known->ps[place] >= estimate->ps[place];
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            within &= known->work[place][pass] >= estimate->work[place][pass];
    }
    return within;
}

hr_status hr_setting_measure_all(hr_fit *fit, hr_setting *s, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++)
        status = hr_setting_measure(fit, s, k, err);
    return status;
}

hr_status hr_setting_bound_works(hr_fit *fit, hr_setting *s, hr_error *err)
{
    const hr_status status = hr_setting_measure(fit, s, hr_fit_reference_of(fit), err);
    if (status != HR_OK || s->known[0] || fit->sets[0] != 0) return status;
    s->known[0] = true;
    return hr_proxy_works_of(&fit->proxy, &s->knobs, &s->reference_head, s->sets, s->known,
                             fit->set_count, err);
}

/* What recomputing one combination of values of a step saves and costs. */
typedef struct {
    hr_intermediates together, recompute_set;
    int64_t saved, ps[HR_PROXY_PLACES_MOST];
} share;

static hr_status ask_share(hr_fit *fit, hr_setting *s, share *part, hr_error *err)
{
    hr_proxy_set set;
    int32_t k = 0;
    while (k < fit->set_count && fit->sets[k] != part->recompute_set) k++;
    hr_status status;
    if (k < fit->set_count) {
        status = hr_setting_measure(fit, s, k, err);
        set = s->sets[k];
    } else {
        status = hr_proxy_set_of(&fit->proxy, &s->knobs, part->recompute_set, &s->reference_head,
                                 &set, err);
    }
    if (status != HR_OK) return status;
    part->saved = s->sets[0].kept - set.kept;
    for (int32_t place = 0; place < fit->proxy.depth.places; place++)
        part->ps[place] = set.ps[place] - s->sets[0].ps[place];
    return HR_OK;
}

enum { SHARES_MOST = 64 }; /* a step makes at most three values */

/* Lists every combination of the values that one step makes, for each step. Returns how many. */
static int32_t list_shares(const hr_fit *fit, share list[SHARES_MOST])
{
    int32_t count = 0;
    for (int32_t k = 1; k < 1 << fit->form.part_count; k++) {
        share one = { .recompute_set = 0 };
        bool apart = false;
        for (int32_t p = 0; p < fit->form.part_count; p++) {
            if (!(k >> p & 1)) continue;
            apart |= one.together && one.together != fit->form.made[p];
            one.together = fit->form.made[p];
            one.recompute_set |= fit->form.parts[p];
        }
        if (apart) continue;
        HR_ASSERT(count < SHARES_MOST);
        list[count++] = one;
    }
    return count;
}

hr_status hr_setting_bound_sets(hr_fit *fit, hr_setting *s, hr_error *err)
{
    share list[SHARES_MOST];
    const int32_t count = list_shares(fit, list);
    hr_status status = hr_setting_measure(fit, s, hr_fit_reference_of(fit), err);
    if (status != HR_OK) return status;
    if (fit->set_count == 1 || fit->sets[0] != 0 || !hr_proxy_adds_up(&fit->proxy))
        return hr_setting_measure_all(fit, s, err);
    for (int32_t k = 0; k < fit->set_count; k++)
        if (!s->known[k]) s->sets[k].recompute_set = fit->sets[k];
    status = hr_setting_bound_works(fit, s, err);
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        status = ask_share(fit, s, &list[i], err);
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++) {
        hr_proxy_set *set = &s->sets[k];
        if (s->known[k]) continue;
        set->kept = s->sets[0].kept;
        memcpy(set->ps, s->sets[0].ps, sizeof set->ps);
        for (int32_t i = 0; i < count; i++) {
            if ((set->recompute_set & list[i].together) != list[i].recompute_set) continue;
            set->kept -= list[i].saved;
            for (int32_t place = 0; place < fit->proxy.depth.places; place++)
                set->ps[place] += list[i].ps[place];
        }
    }
    return status;
}

static void copy_rests(const hr_setting *from, hr_setting *s)
{
    s->knobs = from->knobs;
    s->slopes = from->slopes;
    s->chunk_count = from->chunk_count;
    memcpy(s->chunks, from->chunks, sizeof s->chunks);
    memcpy(s->rests, from->rests, sizeof s->rests);
}

void hr_setting_copy(const hr_fit *fit, const hr_setting *from, hr_setting *s)
{
    copy_rests(from, s);
    s->reference_head = from->reference_head;
    memcpy(s->sets, from->sets, (size_t)fit->set_count * sizeof *s->sets);
    memcpy(s->known, from->known, (size_t)fit->set_count * sizeof *s->known);
}

void hr_setting_derive(const hr_fit *fit, const hr_setting *base, const hr_setting *rests,
                       hr_setting *s)
{
    hr_setting_clear(fit, s);
    copy_rests(rests, s);
    for (int32_t k = 0; k < fit->set_count; k++) {
        s->sets[k] = base->sets[k];
        memset(s->sets[k].work, 0, sizeof s->sets[k].work);
    }
}

hr_status hr_setting_price_tiles(hr_fit *fit, const hr_setting *base, hr_setting *s, hr_error *err)
{
    hr_status status = hr_setting_bound_works(fit, s, err);
    if (status == HR_OK) status = hr_setting_measure(fit, s, 0, err);
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++)
        for (int32_t place = 0; place < fit->proxy.depth.places && !s->known[k]; place++)
            s->sets[k].ps[place] += s->sets[0].ps[place] - base->sets[0].ps[place];
    return status;
}

int64_t hr_setting_rounding_ps(const hr_fit *fit, int64_t micro)
{
    enum { CALLS_OF_LAYER = 160 };
    return CALLS_OF_LAYER * HR_TERM_COUNT * (fit->config->train.batch / micro);
}

/* Kept bytes are proportional to the micro-batch, but those of each value are rounded up to the
 * alignment of the arena, unless the rows of a sequence always fill it. */
static int64_t rounding_bytes(const hr_fit *fit)
{
    const hr_space space = fit->config->memory.spill == HR_SPILL_AUTO ? HR_SPACE_FILE
                                                                      : HR_SPACE_HOST;
    const int64_t align = hr_space_align(space);
    return fit->config->train.seq_len % align ? fit->values_most * align : 0;
}

void hr_setting_scale(const hr_fit *fit, const hr_setting *larger, hr_setting *s)
{
    const int64_t from = hr_fit_sequences_of(fit, &larger->knobs),
                  to = hr_fit_sequences_of(fit, &s->knobs), rounding = rounding_bytes(fit);
    for (int32_t k = 0; k < fit->set_count; k++) {
        const int64_t kept = larger->sets[k].kept;
        s->sets[k] = larger->sets[k];
        s->sets[k].kept = hr_max(0, kept / from * to + kept % from * to / from - rounding);
        memset(s->sets[k].work, 0, sizeof s->sets[k].work);
        for (int32_t place = 0; place < fit->proxy.depth.places; place++)
            s->sets[k].ps[place] -= hr_setting_rounding_ps(fit, to);
    }
}

hr_status hr_setting_price_micro_batches(hr_fit *fit, hr_setting *s, hr_error *err)
{
    const hr_proxy_set estimate = s->sets[0];
    const int64_t rounding = hr_setting_rounding_ps(fit, hr_fit_sequences_of(fit, &s->knobs));
    const hr_status status = hr_setting_measure(fit, s, 0, err);
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++)
        for (int32_t place = 0; place < fit->proxy.depth.places && !s->known[k]; place++)
            s->sets[k].ps[place] += hr_max(0, s->sets[0].ps[place] - estimate.ps[place] - rounding);
    return status;
}

int64_t hr_setting_least_rest_ps(const hr_setting *s)
{
    int64_t ps = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++) ps = hr_min(ps, s->rests[c].ps);
    return ps;
}

int64_t hr_fit_uniform_ps(const hr_fit *fit, const hr_proxy_set *set)
{
    int64_t ps = 0;
    for (int32_t l = 0; l < fit->proxy.depth.layers; l++)
        ps += set->ps[hr_proxy_place(&fit->proxy, l)];
    return ps;
}

void hr_setting_write(const hr_fit *fit, const hr_setting *s, int32_t chunk,
                      const hr_proxy_set *sets, hr_strategy *strategy)
{
    hr_intermediates *recompute_set = strategy->recompute_set;
    const int32_t frozen = fit->proxy.trained.frozen, depth = fit->proxy.depth.layers;
    memset(recompute_set, 0, (size_t)frozen * sizeof *recompute_set);
    for (int32_t l = 0; l < depth; l++)
        recompute_set[frozen + l] = sets[fit->trial[l]].recompute_set;
    *strategy = s->knobs;
    strategy->loss_chunk = s->chunks[chunk];
    strategy->layer_count = frozen + depth;
    strategy->recompute_set = recompute_set;
}
