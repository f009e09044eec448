/* SPDX-License-Identifier: Apache-2.0 */
/* train/guard.h - which steps went wrong: what is not finite, and what stands far above the steps
 * before it.
 *
 * The last HR_GUARD_WINDOW losses make a level, their median m, and a spread, s = 1.4826 x the
 * median of |loss - m|, which estimates the standard deviation where they are normal. A loss is a
 * spike above
 *
 *     m + 7 (s + floor),    floor = 0.01 max(|m|, 1) of a loss, 0.1 |m| of a norm
 *
 * and so for norms of the gradient. Half of the window may be anything before a median is, so no
 * single step moves the level, which a mean would not stand. The floor is for losses that hardly
 * differ, of which s is 0; norms have longer tails and a wider floor. Only what is above is a
 * spike, and nothing is while there are fewer than HR_GUARD_LEAST values, nor above a level whose
 * spread and floor are 0: most batches had no gradient.
 *
 * What is not finite changes nothing here at all. A spike does not enter its window; but the
 * HR_GUARD_ROW-th in a row is no spike any more: those of the row are the level from there on, in
 * place of what was.
 *
 * Source   the spread: Rousseeuw and Croux, "Alternatives to the median absolute deviation", JASA
 *          88 (1993); its use for outliers: Iglewicz and Hoaglin, "How to detect and handle
 *          outliers" (1993). Seven deviations: the spikes that "2 OLMo 2 Furious" (2025) counts.
 * Threads  one thread per object. Nothing here allocates, reads a clock or fails. */
#ifndef HR_TRAIN_GUARD_H
#define HR_TRAIN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_GUARD_WINDOW = 64, HR_GUARD_LEAST = 16, HR_GUARD_ROW = 8 };

/* Unused values are 0, so that equal histories are equal bytes. */
typedef struct {
    double values[HR_GUARD_WINDOW]; /* a ring of finite ones; the next goes to [next] */
    double row[HR_GUARD_ROW];       /* spikes one after the other, the oldest first */
    int64_t count, next, in_a_row;  /* used of values; where; used of row */
} hr_guard_level;

/* Begin with { 0 }. A plain value: HR_GUARD_WORDS doubles and int64 in the order of the fields,
 * nothing between them; its bytes, written and read back, go on as it would have. */
typedef struct {
    hr_guard_level loss, norm;
} hr_guard;

enum { HR_GUARD_WORDS = 2 * (HR_GUARD_WINDOW + HR_GUARD_ROW + 3) };

typedef enum {
    HR_GUARD_FINE,
    HR_GUARD_NOT_FINITE, /* the loss, the norm or both */
    HR_GUARD_LOSS_SPIKE, /* the norm may be one too */
    HR_GUARD_NORM_SPIKE
} hr_guard_verdict;

/* Judges a step by what came before it, and remembers it: to be called once for each step, before
 * its update is made or left out.
 *
 *   loss       of the step
 *   grad_norm  of its gradient, before clipping
 *
 * Repeat  the same values in the same order give the same verdicts and the same bytes.
 * Cost    some 6 microseconds. */
hr_guard_verdict hr_guard_judge(hr_guard *guard, double loss, double grad_norm);

/* What hr_guard_judge would say of a loss beside a norm that is fine; remembers nothing. For steps
 * whose weights begin to change before the norm is known. */
hr_guard_verdict hr_guard_peek(const hr_guard *guard, double loss);

/* Above which a value would be a spike now; infinite where nothing would be. For sentences. */
double hr_guard_loss_limit(const hr_guard *guard);
double hr_guard_norm_limit(const hr_guard *guard);

/* Whether bytes that were read can be one: counts in their range, every value finite. */
bool hr_guard_is_valid(const hr_guard *guard);

#endif
