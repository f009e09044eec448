/* SPDX-License-Identifier: Apache-2.0 */
/* fit/setting.h - one setting of the knobs of the whole step, and what is known about it.
 *
 * What a set takes is a bound from below until its proxy model was built: the sum over its parts,
 * or what it takes with the same micro-batch in another order or with tiles, or with a larger one.
 * So few of the sets need proxy models. */
#ifndef HR_FIT_SETTING_H
#define HR_FIT_SETTING_H

#include "fit/fit.h"

typedef struct {
    hr_strategy knobs;
    hr_proxy_set sets[HR_FIT_SETS_MOST];
    bool known[HR_FIT_SETS_MOST];
    int64_t reference_head;
    hr_proxy_slopes slopes;
    int64_t chunks[HR_FIT_CHUNKS_MOST];
    hr_proxy_rest rests[HR_FIT_CHUNKS_MOST];
    int32_t chunk_count;
} hr_setting;

/* The keep-set that drops most: everything else is said relative to it. */
int32_t hr_fit_reference_of(const hr_fit *fit);

/* Sequences of a turn: the batch's where it is not cut. */
int64_t hr_fit_sequences_of(const hr_fit *fit, const hr_strategy *knobs);

/* Nothing is known of it. */
void hr_setting_clear(const hr_fit *fit, hr_setting *s);

/* Nothing is known of its sets. */
void hr_setting_forget(const hr_fit *fit, hr_setting *s);

void hr_setting_copy(const hr_fit *fit, const hr_setting *from, hr_setting *s);

/* What its chunks take outside the layers, and the slopes; knobs and chunks are there. */
HR_MUST_CHECK hr_status hr_setting_find_rests(hr_fit *fit, hr_setting *s, hr_error *err);

/* Everything but the sets. */
HR_MUST_CHECK hr_status hr_setting_open(hr_fit *fit, int64_t micro, bool dw_first, bool consume,
                                        hr_setting *s, hr_error *err);

/* Builds the proxy model of set k, and before it the reference's. */
HR_MUST_CHECK hr_status hr_setting_know(hr_fit *fit, hr_setting *s, int32_t k, hr_error *err);

/* Whether a set is as far from the reference as it was thought to be at least. */
bool hr_setting_is_within(const hr_fit *fit, const hr_proxy_set *thought,
                          const hr_proxy_set *known);

HR_MUST_CHECK hr_status hr_setting_know_all(hr_fit *fit, hr_setting *s, hr_error *err);

/* Builds the proxy models of what steps make together, one for each choice of it, and the first and
 * the last set's; of all other sets the sum: what they keep, and a bound from below of the time and
 * of the bytes that layers work with. */
HR_MUST_CHECK hr_status hr_setting_foresee(hr_fit *fit, hr_setting *s, hr_error *err);

/* Builds the first set's proxy model and raises what layers work with in all that are not known to
 * what it says they do at least. */
HR_MUST_CHECK hr_status hr_setting_bound_works(hr_fit *fit, hr_setting *s, hr_error *err);

/* The same micro-batch in another order or with tiles: layers keep the same bytes and take no less
 * time; what they work with is not known, but that it is not less than nothing. */
void hr_setting_derive(const hr_fit *fit, const hr_setting *base, const hr_setting *rests,
                       hr_setting *s);

/* Tiles add calls to every pass, and so do updates and the pass of a norm: what they cost where
 * nothing is recomputed they cost everywhere, at least. */
HR_MUST_CHECK hr_status hr_setting_price_tiles(hr_fit *fit, const hr_setting *base, hr_setting *s,
                                               hr_error *err);

/* Every amount of a price is rounded down, to a picosecond, in each call of a step. */
int64_t hr_setting_rounding_ps(const hr_fit *fit, int64_t micro);

/* A smaller micro-batch: what layers keep shrinks with it, to the byte where rows of a sequence are
 * multiples of the arena's alignment, and calls, in more turns, take no less time together. False:
 * they do not divide. */
bool hr_setting_scale(const hr_fit *fit, const hr_setting *larger, hr_setting *s);

/* After scaling: what calls take more where nothing is recomputed they take more everywhere. */
HR_MUST_CHECK hr_status hr_setting_price_turns(hr_fit *fit, hr_setting *s, hr_error *err);

/* Picoseconds of all that is no layer, with the fastest chunk. */
int64_t hr_setting_least_rest_ps(const hr_setting *s);

/* Picoseconds with one set in all layers. */
int64_t hr_fit_uniform_ps(const hr_fit *fit, const hr_proxy_set *set);

/* The setting with a chunk and the sets of the fit's trial as a strategy.
 *   sets      what the trial's indices are of
 *   strategy  in: recomputed [layers of the model], to be written. out */
void hr_setting_write(const hr_fit *fit, const hr_setting *s, int32_t chunk,
                      const hr_proxy_set *sets, hr_strategy *strategy);

#endif
