/* SPDX-License-Identifier: Apache-2.0 */
/* search/layer_choice.c - chooses recompute sets, builds the proxy models of the chosen sets, and
 * repeats until all chosen sets are measured. */
#include "search/layer_choice.h"

#include <string.h>

#include "base/checked.h"
#include "search/uniform_layers.h"

static int64_t peak_of(const hr_layers_task *task, const hr_proxy_rest *rest,
                       const uint16_t *chosen)
{
    int64_t kept = 0, peak = rest->other;
    for (int32_t l = 0; l < task->proxy->depth.layers; l++) {
        const hr_proxy_set *set = &task->sets[chosen[l]];
        peak = hr_max(peak, kept + hr_proxy_work(task->proxy, set, task->slopes, l));
        kept += set->kept;
    }
    return hr_max(peak, kept + rest->head);
}

/* Returns the fastest pair of loss chunk and frontier state within the limit; chunk HR_NONE if
 * there is none. */
static hr_fit_choice choose_chunk(const hr_setting *s, int64_t limit,
                                  const hr_layers_state *frontier, int32_t count, int32_t *state)
{
    hr_fit_choice best = { HR_NONE, INT64_MAX };
    for (int32_t c = 0; c < s->chunk_count; c++) {
        if (s->rests[c].other > limit) continue;
        int32_t i = count - 1;
        while (i >= 0 && frontier[i].kept + s->rests[c].head > limit) i--;
        if (i < 0 || frontier[i].ps + s->rests[c].ps >= best.ps) continue;
        best = (hr_fit_choice){ c, frontier[i].ps + s->rests[c].ps };
        *state = i;
    }
    return best;
}

/* Bytes that the head needs at least within a limit; INT64_MAX: no chunk fits. */
static int64_t least_head(const hr_setting *s, int64_t limit)
{
    int64_t head = INT64_MAX;
    for (int32_t c = 0; c < s->chunk_count; c++)
        if (s->rests[c].other <= limit) head = hr_min(head, s->rests[c].head);
    return head;
}

/* Chooses layer by layer: for models that are their own proxy, and where counts do not decide. A
 * coarse pass comes first: its result is a bound that prunes most of the exact pass. */
static bool choose_by_layer(hr_fit_search *w, const hr_setting *s, hr_layers_task *task,
                            hr_fit_choice *best)
{
    const int64_t rest_ps = hr_setting_least_rest_ps(s), ps_most = task->ps_most;
    const hr_layers_state *frontier;
    hr_layers *layers = &w->fit->layers;
    int32_t state = 0;
    task->head = least_head(s, task->limit);
    if (task->head == INT64_MAX) return false;
    task->ps_most = ps_most - rest_ps;
    const int64_t bound = hr_layers_bound(layers, task);
    if (bound == INT64_MAX || bound > task->ps_most) return false;
    int32_t count = hr_layers_choose(layers, task, HR_LAYERS_COARSE, &frontier);
    *best = choose_chunk(s, task->limit, frontier, count, &state);
    if (best->chunk != HR_NONE) hr_layers_read(layers, task, state, w->fit->trial);
    if (layers->thinned && hr_layers_spent(layers)) {
        w->bound = hr_min(w->bound, hr_max(bound + rest_ps, task->ps_least));
    } else if (layers->thinned) {
        if (best->chunk != HR_NONE) task->ps_most = hr_min(task->ps_most, best->ps - rest_ps);
        count = hr_layers_choose(layers, task, HR_LAYERS_STATES, &frontier);
        const hr_fit_choice finer = choose_chunk(s, task->limit, frontier, count, &state);
        if (layers->thinned) w->bound = hr_min(w->bound, hr_max(bound + rest_ps, task->ps_least));
        /* When states are dropped, the exact pass may miss what the coarse pass found. */
        if (finer.chunk != HR_NONE && finer.ps <= best->ps) {
            *best = finer;
            hr_layers_read(layers, task, state, w->fit->trial);
        }
    }
    return best->chunk != HR_NONE && best->ps <= ps_most;
}

/* Gaps of choose_mixed: the first guess is that the best time exceeds the bound by this fraction of
 * it. */
enum { GAP_FIRST = 1 << 14, GAP_GROWTH = 4 };

/* Chooses among many layers of several kinds: layer by layer within a small gap above the bound,
 * which grows until it holds a choice. A gap that holds too many states ends that. */
static bool choose_mixed(hr_fit_search *w, const hr_setting *s, hr_layers_task *task,
                         hr_fit_choice *best)
{
    const int64_t rest_ps = hr_setting_least_rest_ps(s);
    const hr_layers_state *frontier;
    hr_layers *layers = &w->fit->layers;
    hr_layers_task within = *task;
    int32_t state = 0;
    within.head = least_head(s, task->limit);
    if (within.head == INT64_MAX) return false;
    const int64_t bound = hr_layers_bound(layers, &within), most = task->ps_most - rest_ps - bound;
    if (bound == INT64_MAX || most < 0) return false;
    for (int64_t gap = hr_min(bound / GAP_FIRST + 1, most); !hr_layers_spent(layers);) {
        within.ps_most = bound + gap;
        const int32_t count = hr_layers_choose(layers, &within, HR_LAYERS_STATES, &frontier);
        if (layers->thinned) break;
        *best = choose_chunk(s, task->limit, frontier, count, &state);
        if (best->chunk != HR_NONE && best->ps - rest_ps <= within.ps_most) {
            hr_layers_read(layers, task, state, w->fit->trial);
            return true;
        }
        if (gap == most) return false;
        task->ps_least = within.ps_most + rest_ps + 1;
        gap = gap >= most / GAP_GROWTH ? most : gap * GAP_GROWTH;
    }
    return choose_by_layer(w, s, task, best);
}

int64_t hr_fit_bound_layers(hr_fit *fit, const hr_setting *s, const hr_layers_task *task)
{
    hr_layers_task least = *task;
    least.head = least_head(s, task->limit);
    const int64_t bound = least.head == INT64_MAX ? INT64_MAX
                                                  : hr_layers_bound(&fit->layers, &least);
    return bound == INT64_MAX ? INT64_MAX : bound + hr_setting_least_rest_ps(s);
}

bool hr_fit_has_no_room(const hr_setting *s, const hr_layers_task *task)
{
    hr_layers_task least = *task;
    least.head = least_head(s, task->limit);
    return !hr_layers_have_room(&least);
}

/* Chooses among many layers: by counts if the middle layers are equal, or else layer by layer. */
static bool choose_many(hr_fit_search *w, const hr_setting *s, hr_layers_task *task,
                        hr_fit_choice *best)
{
    hr_fit *fit = w->fit;
    hr_uniform_best uniform;
    w->looks++;
    if (hr_proxy_is_mixed(&fit->proxy)) return choose_mixed(w, s, task, best);
    if (task->set_count > HR_UNIFORM_SETS_MOST) return choose_by_layer(w, s, task, best);
    if (hr_uniform_choose(&fit->layers, task, s->rests, s->chunk_count, &uniform, fit->trial)) {
        *best = (hr_fit_choice){ uniform.chunk, uniform.ps };
        if (peak_of(task, &s->rests[uniform.chunk], fit->trial) <= task->limit) return true;
    } else if (!uniform.out_of_room) {
        return false;
    }
    return choose_by_layer(w, s, task, best);
}

/* Writes the fastest choice, at most task->ps_most, to fit->trial. Returns false if there is
 * none. */
static bool choose(hr_fit_search *w, const hr_setting *s, hr_layers_task *task, hr_fit_choice *best)
{
    hr_fit *fit = w->fit;
    hr_parts_best parts;
    if (fit->proxy.depth.exact) return choose_by_layer(w, s, task, best);
    if (hr_fit_has_no_room(s, task)) return false;
    if (!task->parts->add_up) return choose_many(w, s, task, best);
    hr_parts_choose(&fit->layers, task, s->rests, s->chunk_count, &parts, fit->spare);
    if (parts.bound > task->ps_most) return false;
    task->ps_least = parts.bound;
    if (!parts.found) return choose_many(w, s, task, best);
    /* The choice found so far stays in fit->spare until the search for a faster one ends. */
    task->ps_most = parts.ps - 1;
    if (parts.ps > parts.bound && choose_many(w, s, task, best)) return true;
    memcpy(fit->trial, fit->spare, (size_t)fit->proxy.depth.layers * sizeof *fit->trial);
    *best = (hr_fit_choice){ parts.chunk, parts.ps };
    return true;
}

static bool is_chosen(const hr_fit *fit, int32_t set)
{
    for (int32_t l = 0; l < fit->proxy.depth.layers; l++)
        if (fit->trial[l] == set) return true;
    return false;
}

hr_status hr_fit_confirm(hr_fit *fit, hr_setting *s, const hr_layers_task *task, bool all,
                         bool *changed, hr_error *err)
{
    hr_status status = HR_OK;
    *changed = false;
    for (int32_t i = 0; i < task->set_count && status == HR_OK; i++) {
        int32_t k = 0;
        while (fit->sets[k] != task->sets[i].recompute_set) k++;
        if (s->known[k] || !(all || is_chosen(fit, i))) continue;
        const hr_proxy_set estimate = s->sets[k];
        status = hr_setting_measure(fit, s, k, err);
        if (status == HR_OK && !hr_setting_is_within(fit, &estimate, &s->sets[k]))
            status = hr_setting_measure_all(fit, s, err);
        *changed = true;
    }
    return status;
}

static void take(hr_fit_search *w, const hr_setting *s, const hr_layers_task *task,
                 const hr_fit_choice *best, int64_t bytes)
{
    hr_setting_write(w->fit, s, best->chunk, task->sets, &w->found->strategy);
    w->found->step_ps = best->ps;
    w->found->floor_bytes = bytes;
    w->any = true;
}

/* Choices by counts of parts take no longer than a proxy model or two. Other choices take as
 * long as many proxy models: after this many, all candidates are measured. */
enum { TRUSTING_LOOKS = 8 };

/* Beyond this multiple of the work limit, even coarse lists stop if any strategy was found. */
enum { SPENT_TIMES = 2 };

/* True if the work limit leaves nothing for this setting. The bound of its strategies is then
 * the time without recompute. */
static bool is_spent(hr_fit_search *w, const hr_setting *s)
{
    const hr_layers *layers = &w->fit->layers;
    if (!w->any || layers->work / SPENT_TIMES < layers->work_most) return false;
    w->bound = hr_min(w->bound,
                      hr_fit_uniform_ps(w->fit, &s->sets[0]) + hr_setting_least_rest_ps(s));
    return true;
}

hr_status hr_fit_choose_layers(hr_fit_search *w, hr_setting *s, hr_fit_question *q, hr_error *err)
{
    hr_fit *fit = w->fit;
    hr_proxy_set *sets = fit->scratch->asked;
    const int32_t looks = w->looks;
    bool changed = true;
    for (int32_t iteration = 0; changed; iteration++) {
        memcpy(sets, s->sets, (size_t)fit->set_count * sizeof *sets);
        for (int32_t k = 0; k < fit->set_count && q->times; k++)
            memcpy(sets[k].ps, q->times->sets[k].ps, sizeof sets[k].ps);
        if (!fit->proxy.depth.exact) hr_parts_of(&fit->proxy, sets, fit->set_count, &q->parts);
        q->task = (hr_layers_task){ .proxy = &fit->proxy,
                                    .sets = sets,
                                    .set_count = hr_layers_prune(&fit->proxy, sets, fit->set_count),
                                    .slopes = &s->slopes,
                                    .limit = q->limit,
                                    .ps_most = q->ps_most,
                                    .parts = &q->parts };
        q->found = !is_spent(w, s) && choose(w, s, &q->task, &q->best);
        if (!q->found || iteration + 1 == q->iterations_most) return HR_OK;
        const hr_status status = hr_fit_confirm(fit, s, &q->task, w->looks - looks > TRUSTING_LOOKS,
                                                &changed, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_status hr_fit_explore(hr_fit_search *w, hr_setting *s, hr_error *err)
{
    hr_fit_found *found = w->found;
    hr_fit_question q = { .limit = w->limit };
    for (;;) {
        q.ps_most = w->any ? found->step_ps : INT64_MAX;
        const hr_status status = hr_fit_choose_layers(w, s, &q, err);
        if (status != HR_OK || !q.found) return status;
        const int64_t bytes = peak_of(&q.task, &s->rests[q.best.chunk], w->fit->trial);
        if (!w->any || q.best.ps < found->step_ps || bytes < found->floor_bytes)
            take(w, s, &q.task, &q.best, bytes);
        if (hr_layers_spent(&w->fit->layers)) return HR_OK;
        q.limit = found->floor_bytes - 1;
    }
}
