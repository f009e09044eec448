/* SPDX-License-Identifier: Apache-2.0 */
/* search/layer_choice.h - chooses the best recompute set of every layer for one setting of the
 * knobs.
 *
 * The cost of most recompute sets is only a lower bound until their proxy models are built. So the
 * search chooses with the bounds, builds the proxy models of the chosen sets, and chooses again
 * until every chosen set is measured. */
#ifndef HR_SEARCH_LAYER_CHOICE_H
#define HR_SEARCH_LAYER_CHOICE_H

#include "search/parts.h"
#include "search/setting.h"

/* The state of one search: its limit and the best strategy so far. */
typedef struct {
    hr_fit *fit;
    int64_t limit;
    hr_fit_found *found;
    bool any;
    int64_t bound; /* picoseconds: a lower bound for all strategies that the search skipped */
    int32_t looks; /* choices that counts of parts did not decide */
    /* of proxy models: once more steps than this are built, the search ends if it has found a
     * strategy */
    int64_t steps_most;
} hr_fit_search;

/* Scratch space of the search. Each function uses its own members, and none is recursive. */
struct hr_fit_scratch {
    hr_setting whole, dx_first, dw_first, dx_rests, dw_rests, ordered, tiled;
    hr_proxy_set asked[HR_FIT_SETS_MOST], bounded[HR_FIT_SETS_MOST];
};

typedef struct {
    int32_t chunk; /* HR_NONE: no choice */
    int64_t ps;
} hr_fit_choice;

/* A request for the best choice in a setting, and its result. The chosen sets are in fit->trial. */
typedef struct {
    int64_t limit, ps_most;
    /* maximum iterations: 0 repeats until all chosen sets are measured; otherwise the result may
     * be a bound */
    int32_t iterations_most;
    /* the setting that layer times are taken from; null: the setting itself */
    const hr_setting *times;
    hr_layers_task task;
    hr_parts parts;
    hr_fit_choice best;
    bool found;
} hr_fit_question;

/* Chooses recompute sets, first with lower bounds, until the proxy models of all chosen sets are
 * built. */
HR_MUST_CHECK hr_status hr_fit_choose_layers(hr_fit_search *w, hr_setting *s, hr_fit_question *q,
                                             hr_error *err);

/* Replaces the best strategy so far with a faster one of this setting, or with one as fast that
 * needs fewer bytes. */
HR_MUST_CHECK hr_status hr_fit_explore(hr_fit_search *w, hr_setting *s, hr_error *err);

/* Builds the proxy models of chosen sets that are only bounded. With `all`, builds those of
 * every candidate set: a choice among many layers can take longer than building all of them.
 * *changed tells whether any was built. */
HR_MUST_CHECK hr_status hr_fit_confirm(hr_fit *fit, hr_setting *s, const hr_layers_task *task,
                                       bool all, bool *changed, hr_error *err);

/* Lower bound in picoseconds of a step with any choice for the layers, ignoring their working
 * memory; INT64_MAX: none is within the task's limit. Ignores task->head. */
int64_t hr_fit_bound_layers(hr_fit *fit, const hr_setting *s, const hr_layers_task *task);

/* True if no choice for the layers is within the task's limit, with any loss chunk. */
bool hr_fit_has_no_room(const hr_setting *s, const hr_layers_task *task);

#endif
