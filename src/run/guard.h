/* SPDX-License-Identifier: Apache-2.0 */
/* run/guard.h - detects bad steps: non-finite values and spikes.
 *
 * The last HR_GUARD_WINDOW losses give a level, their median m, and a spread, s = 1.4826 x the
 * median of |loss - m|, which estimates the standard deviation of normal values. A loss is a spike
 * above
 *
 *     m + 7 (s + floor),    floor = 0.01 max(|m|, 1) of a loss, 0.1 |m| of a norm
 *
 * and the same holds for gradient norms. A median ignores up to half of the window, so a single
 * step cannot move the level as it would move a mean. The floor is for losses that hardly vary,
 * with s near 0; norms have longer tails and a larger floor. Only values above the limit are
 * spikes. There are no spikes with fewer than HR_GUARD_LEAST values, or if spread and floor are 0:
 * then most batches had no gradient.
 *
 * Non-finite values do not change the state. A spike does not enter the window, except the
 * HR_GUARD_ROW-th in a row: it is not a spike, and the values of the row replace the window as the
 * new level.
 *
 * Source   the spread: Rousseeuw and Croux, "Alternatives to the median absolute deviation", JASA
 *          88 (1993); its use for outliers: Iglewicz and Hoaglin, "How to detect and handle
 *          outliers" (1993). Seven deviations: the spikes that "2 OLMo 2 Furious" (2025) counts.
 * Threads  one thread per object. Nothing here allocates, reads a clock or fails. */
#ifndef HR_RUN_GUARD_H
#define HR_RUN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_GUARD_WINDOW = 64, HR_GUARD_LEAST = 16, HR_GUARD_ROW = 8 };

/* Unused values are 0, so that equal histories have equal bytes. */
typedef struct {
    double values[HR_GUARD_WINDOW]; /* ring buffer of finite values; the next goes to [next] */
    double row[HR_GUARD_ROW];       /* consecutive spikes, oldest first */
    int64_t count, next, in_a_row;  /* used entries of values; next index; used entries of row */
} hr_guard_level;

/* Initialize with { 0 }. A plain value of HR_GUARD_WORDS doubles and int64 in the order of the
 * fields, without padding: writing and reading its bytes restores the exact state. */
typedef struct {
    hr_guard_level loss, norm;
} hr_guard;

enum { HR_GUARD_WORDS = 2 * (HR_GUARD_WINDOW + HR_GUARD_ROW + 3) };

typedef enum {
    HR_GUARD_FINE,
    HR_GUARD_NOT_FINITE, /* the loss, the norm or both */
    HR_GUARD_LOSS_SPIKE, /* the norm may be a spike too */
    HR_GUARD_NORM_SPIKE
} hr_guard_verdict;

/* Classifies a step by the steps before it, and adds it to the statistics. Call it once per step,
 * before the update is applied or skipped.
 *
 *   loss       of the step
 *   grad_norm  of its gradient, before clipping
 *
 * Repeat  the same values in the same order give the same verdicts and the same bytes.
 * Cost    about 6 microseconds. */
hr_guard_verdict hr_guard_judge(hr_guard *guard, double loss, double grad_norm);

/* Returns what hr_guard_judge would return for this loss and a normal gradient norm, and changes
 * nothing. For steps whose weights begin to change before the norm is known. */
hr_guard_verdict hr_guard_peek(const hr_guard *guard, double loss);

/* The current spike limits, for messages; infinite if no value would be a spike. */
double hr_guard_loss_limit(const hr_guard *guard);
double hr_guard_norm_limit(const hr_guard *guard);

/* Returns whether a state that was read is valid: counts in range, all values finite. */
bool hr_guard_is_valid(const hr_guard *guard);

#endif
