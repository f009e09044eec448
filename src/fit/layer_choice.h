/* SPDX-License-Identifier: Apache-2.0 */
/* fit/layer_choice.h - the best choice for the layers within one setting of the knobs.
 *
 * What most sets take is a bound from below until their proxy models are built. So a choice is made
 * on trust, the proxy models of what it chose are built, and it is made again, until all that it
 * rests on is known. */
#ifndef HR_FIT_LAYER_CHOICE_H
#define HR_FIT_LAYER_CHOICE_H

#include "fit/parts.h"
#include "fit/setting.h"

/* The best so far, and what it must be within. */
typedef struct {
    hr_fit *fit;
    int64_t limit;
    hr_fit_found *found;
    bool any;
    int64_t bound;      /* picoseconds: no strategy that was not looked at takes less */
    int32_t looks;      /* choices for which counts of parts were not enough */
    int64_t steps_most; /* of proxy models: with more of them built the walk ends, if it found
                           anything */
} hr_fit_walk;

/* What each function of a walk has of its own; none calls itself. */
struct hr_fit_desk {
    hr_setting whole, dx_first, dw_first, dx_rests, dw_rests, ordered, tiled;
    hr_proxy_set asked[HR_FIT_SETS_MOST], bounded[HR_FIT_SETS_MOST];
};

typedef struct {
    int32_t chunk; /* HR_NONE: nothing was chosen */
    int64_t ps;
} hr_fit_choice;

/* A question about a setting, and the answer: the best choice lies in the fit's trial. */
typedef struct {
    int64_t limit, ps_most;
    int32_t turns_most;      /* 0: until all is known that was chosen; else a bound is enough */
    const hr_setting *times; /* layers take what they take there; null: what they take here */
    hr_layers_task task;
    hr_parts parts;
    hr_fit_choice best;
    bool found;
} hr_fit_question;

/* Chooses, on trust at first, until the proxy models of all sets that are chosen were built. */
HR_MUST_CHECK hr_status hr_fit_choose_layers(hr_fit_walk *w, hr_setting *s, hr_fit_question *q,
                                             hr_error *err);

/* Takes over what the setting has that is faster; then what is as fast in fewer bytes. */
HR_MUST_CHECK hr_status hr_fit_explore(hr_fit_walk *w, hr_setting *s, hr_error *err);

/* Builds the proxy models of sets that were chosen on trust; or of all that were there to choose
 * from: a choice among many layers can take longer than all these proxy models. */
HR_MUST_CHECK hr_status hr_fit_confirm(hr_fit *fit, hr_setting *s, const hr_layers_task *task,
                                       bool all, bool *changed, hr_error *err);

/* No choice for the layers keeps within the task's limit, with any chunk. */
bool hr_fit_has_no_room(const hr_setting *s, const hr_layers_task *task);

#endif
