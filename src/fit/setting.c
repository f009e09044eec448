/* SPDX-License-Identifier: Apache-2.0 */
/* fit/setting.c - measures sets of a setting, or bounds them by those of another. */
#include "fit/setting.h"

#include <string.h>

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

hr_status hr_setting_open(hr_fit *fit, int64_t micro, bool dw_first, bool consume, hr_setting *s,
                          hr_error *err)
{
    *s = (hr_setting){ .knobs = { .micro_batch = micro < fit->config->train.batch ? micro : 0,
                                  .dw_first = dw_first,
                                  .consume = consume } };
    s->chunk_count = hr_fit_chunks(fit->config, micro, s->chunks);
    return hr_twin_rests_of(&fit->twin, &s->knobs, fit->sets[hr_fit_reference_of(fit)], s->chunks,
                            s->chunk_count, s->rests, &s->slopes, err);
}

hr_status hr_setting_know(hr_fit *fit, hr_setting *s, int32_t k, hr_error *err)
{
    const int32_t reference = hr_fit_reference_of(fit);
    if (s->known[k]) return HR_OK;
    if (!s->known[reference] && k != reference) {
        const hr_status status = hr_setting_know(fit, s, reference, err);
        if (status != HR_OK) return status;
    }
    s->known[k] = true;
    return hr_twin_set_of(&fit->twin, &s->knobs, fit->sets[k], &s->reference_head, &s->sets[k],
                          err);
}

bool hr_setting_is_within(const hr_fit *fit, const hr_twin_set *thought, const hr_twin_set *known)
{
    bool within = known->kept >= thought->kept;
    for (int32_t place = 0; place < fit->twin.depth.places; place++)
        within &= known->ps[place] >= thought->ps[place];
    return within;
}

hr_status hr_setting_know_all(hr_fit *fit, hr_setting *s, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++)
        status = hr_setting_know(fit, s, k, err);
    return status;
}

hr_setting hr_setting_derive(const hr_setting *base, const hr_setting *rests)
{
    hr_setting s = *rests;
    s.reference_head = 0;
    memset(s.known, 0, sizeof s.known);
    memcpy(s.sets, base->sets, sizeof s.sets);
    for (int32_t k = 0; k < HR_FIT_SETS_MOST; k++) memset(s.sets[k].work, 0, sizeof s.sets[k].work);
    return s;
}

hr_status hr_setting_price_tiles(hr_fit *fit, const hr_setting *base, hr_setting *s, hr_error *err)
{
    const hr_status status = hr_setting_know(fit, s, 0, err);
    for (int32_t k = 0; k < fit->set_count && status == HR_OK; k++)
        for (int32_t place = 0; place < fit->twin.depth.places && !s->known[k]; place++)
            s->sets[k].ps[place] += s->sets[0].ps[place] - base->sets[0].ps[place];
    return status;
}

int64_t hr_setting_rounding_ps(const hr_fit *fit, int64_t micro)
{
    enum { CALLS_OF_LAYER = 160 };
    return CALLS_OF_LAYER * HR_TERM_COUNT * (fit->config->train.batch / micro);
}

bool hr_setting_scale(const hr_fit *fit, const hr_setting *larger, hr_setting *s)
{
    const int64_t from = hr_fit_sequences_of(fit, &larger->knobs),
                  to = hr_fit_sequences_of(fit, &s->knobs);
    bool divides = fit->config->train.seq_len % HR_ARENA_ALIGN == 0;
    for (int32_t k = 0; k < fit->set_count; k++) {
        s->sets[k] = larger->sets[k];
        divides &= s->sets[k].kept % from == 0;
        s->sets[k].kept = s->sets[k].kept / from * to;
        memset(s->sets[k].work, 0, sizeof s->sets[k].work);
        for (int32_t place = 0; place < fit->twin.depth.places; place++)
            s->sets[k].ps[place] -= hr_setting_rounding_ps(fit, to);
    }
    return divides;
}

hr_status hr_setting_price_turns(hr_fit *fit, hr_setting *s, hr_error *err)
{
    const hr_twin_set thought = s->sets[0];
    const hr_status status = hr_setting_know(fit, s, 0, err);
    if (status != HR_OK) return status;
    bool within = hr_setting_is_within(fit, &thought, &s->sets[0]);
    const int64_t rounding = hr_setting_rounding_ps(fit, hr_fit_sequences_of(fit, &s->knobs));
    for (int32_t k = 0; k < fit->set_count; k++)
        for (int32_t place = 0; place < fit->twin.depth.places && !s->known[k]; place++)
            s->sets[k].ps[place] += hr_max(0, s->sets[0].ps[place] - thought.ps[place] - rounding);
    return within ? HR_OK : hr_setting_know_all(fit, s, err);
}

int64_t hr_setting_least_rest_ps(const hr_setting *s)
{
    int64_t ps = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++) ps = hr_min(ps, s->rests[c].ps);
    return ps;
}

int64_t hr_fit_uniform_ps(const hr_fit *fit, const hr_twin_set *set)
{
    int64_t ps = 0;
    for (int32_t l = 0; l < fit->twin.depth.layers; l++)
        ps += set->ps[hr_twin_place(&fit->twin, l)];
    return ps;
}
