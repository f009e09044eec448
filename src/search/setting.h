/* SPDX-License-Identifier: Apache-2.0 */
/* search/setting.h - one setting of the step-wide knobs, and the cost of every recompute set in it.
 *
 * The cost of a set is a lower bound until its proxy model is built. The bound is the sum over
 * the parts of the set, or comes from the same set with another backward order, with tiles or
 * with a larger micro-batch. So only few sets need a proxy model. */
#ifndef HR_SEARCH_SETTING_H
#define HR_SEARCH_SETTING_H

#include "search/fit.h"

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

/* The index of the reference set: the set that recomputes most. All kept bytes are relative to
 * it. */
int32_t hr_fit_reference_of(const hr_fit *fit);

/* Sequences per micro-batch; the whole batch if knobs->micro_batch is 0. */
int64_t hr_fit_sequences_of(const hr_fit *fit, const hr_strategy *knobs);

/* Resets the setting. */
void hr_setting_clear(const hr_fit *fit, hr_setting *s);

/* Resets the sets only. */
void hr_setting_forget(const hr_fit *fit, hr_setting *s);

void hr_setting_copy(const hr_fit *fit, const hr_setting *from, hr_setting *s);

/* Measures the cost outside the layers with each chunk, and the slopes. Knobs and chunks must be
 * set. */
HR_MUST_CHECK hr_status hr_setting_find_rests(hr_fit *fit, hr_setting *s, hr_error *err);

/* Fills in everything but the sets. */
HR_MUST_CHECK hr_status hr_setting_open(hr_fit *fit, int64_t micro, bool dw_first, bool consume,
                                        hr_setting *s, hr_error *err);

/* Measures set k with a proxy model, after the reference set. */
HR_MUST_CHECK hr_status hr_setting_measure(hr_fit *fit, hr_setting *s, int32_t k, hr_error *err);

/* True if the measured costs are at least the bounds in `estimate`. */
bool hr_setting_is_within(const hr_fit *fit, const hr_proxy_set *estimate,
                          const hr_proxy_set *known);

HR_MUST_CHECK hr_status hr_setting_measure_all(hr_fit *fit, hr_setting *s, hr_error *err);

/* Builds one proxy model for each combination of values that one step makes together, and those
 * of the first and the last set. For every other set it takes the sums: kept bytes, and lower
 * bounds on time and work. */
HR_MUST_CHECK hr_status hr_setting_bound_sets(hr_fit *fit, hr_setting *s, hr_error *err);

/* Measures the first set and raises the work of all unmeasured sets to the lower bound that it
 * implies. */
HR_MUST_CHECK hr_status hr_setting_bound_works(hr_fit *fit, hr_setting *s, hr_error *err);

/* Derives the bounds of a setting with the same micro-batch, in another backward order or with
 * tiles: layers keep the same bytes and are not faster. Work is reset to 0, its trivial lower
 * bound. */
void hr_setting_derive(const hr_fit *fit, const hr_setting *base, const hr_setting *rests,
                       hr_setting *s);

/* Adds the extra time of the first set to all sets. Tiles, updates and the norm pass add kernel
 * calls to every pass, so what they cost without recompute is a lower bound for every set. */
HR_MUST_CHECK hr_status hr_setting_price_tiles(hr_fit *fit, const hr_setting *base, hr_setting *s,
                                               hr_error *err);

/* Upper bound on the rounding error of a predicted step: every term of a price is rounded down
 * to a picosecond in each call. */
int64_t hr_setting_rounding_ps(const hr_fit *fit, int64_t micro);

/* Derives the bounds of a smaller micro-batch: kept bytes shrink with it, exactly when the rows
 * of a sequence are multiples of the arena alignment, and the total time does not fall. */
void hr_setting_scale(const hr_fit *fit, const hr_setting *larger, hr_setting *s);

/* After scaling: adds to all sets the extra time that kernel calls take without recompute. */
HR_MUST_CHECK hr_status hr_setting_price_micro_batches(hr_fit *fit, hr_setting *s, hr_error *err);

/* Picoseconds of everything outside the layers, with the fastest chunk. */
int64_t hr_setting_least_rest_ps(const hr_setting *s);

/* Picoseconds of all layers with one set in every layer. */
int64_t hr_fit_uniform_ps(const hr_fit *fit, const hr_proxy_set *set);

/* Writes the setting, with a chunk and the sets in fit->trial, as a strategy.
 *
 *   sets      the sets that fit->trial indexes
 *   strategy  in: recompute_set, [layers of the model] to write to. out: the strategy */
void hr_setting_write(const hr_fit *fit, const hr_setting *s, int32_t chunk,
                      const hr_proxy_set *sets, hr_strategy *strategy);

#endif
