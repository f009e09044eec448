/* SPDX-License-Identifier: Apache-2.0 */
/* generate/sampler.c - candidates as a heap, the likeliest on top: only those that are left are
 * ever in order. */
#include "generate/sampler.h"

#include <math.h>

#include "base/random.h"
#include "ops/element.h"

enum { SITE = 0x47454e }; /* of random numbers, apart from those of training */

int64_t hr_sampler_bytes(int64_t V)
{
    return V * (int64_t)sizeof(hr_candidate);
}

hr_status hr_sampler_check(const hr_sampling *s, hr_error *err)
{
    if (!(s->temperature >= 0 && s->temperature <= 100))
        return hr_fail(err, HR_USAGE, "--temperature %g is not from 0 to 100", s->temperature);
    if (s->top_k < 0) return hr_fail(err, HR_USAGE, "--top-k %lld is below 0", (long long)s->top_k);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return hr_fail(err, HR_USAGE, "--top-p %g is not above 0 and at most 1", s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return hr_fail(err, HR_USAGE, "--min-p %g is not from 0 to 1", s->min_p);
    if (!(s->repetition_penalty > 0 && s->repetition_penalty <= 1000))
        return hr_fail(err, HR_USAGE, "--repetition-penalty %g is not above 0 and at most 1000",
                       s->repetition_penalty);
    return HR_OK;
}

static bool is_likelier(hr_candidate a, hr_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sink(hr_candidate *heap, int64_t count, int64_t at)
{
    const hr_candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_likelier(heap[child + 1], heap[child])) child++;
        if (!is_likelier(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Takes the likeliest off the heap and puts it behind: the last `taken` of the array are those that
 * were taken, the first one last. */
static hr_candidate take(hr_candidate *heap, int64_t *count)
{
    const hr_candidate top = heap[0];
    heap[0] = heap[--*count];
    if (*count > 0) sink(heap, *count, 0);
    heap[*count] = top;
    return top;
}

/* Each token once, however often it was there. Tokens that were there stand at their own index
 * still. */
static void penalise(hr_candidate *all, const hr_sampling *s, const void *logits, hr_dtype dtype,
                     const int32_t *before, int64_t count)
{
    for (int64_t i = 0; i < count && s->repetition_penalty != 1; i++) {
        const float logit = hr_element_get(logits, before[i], dtype);
        const double penalty = s->repetition_penalty;
        all[before[i]].logit = (float)(logit > 0 ? logit / penalty : logit * penalty);
    }
}

static double weight(hr_candidate c, float top, double temperature)
{
    return exp((c.logit - top) / temperature);
}

/* Puts the likeliest that are left at the end of the array, the likeliest last, and returns how
 * many there are; *sum: of their weights. top_p is a share of what top_k leaves. */
static int64_t keep_likeliest(hr_candidate *all, int64_t V, const hr_sampling *s, float top,
                              double *sum)
{
    const int64_t most = s->top_k > 0 && s->top_k < V ? s->top_k : V;
    int64_t heap = V, kept = 0;
    double whole = 0, held = 0;
    for (int64_t v = 0; v < V && most == V; v++) whole += weight(all[v], top, s->temperature);
    for (int64_t v = V / 2 - 1; v >= 0; v--) sink(all, V, v);
    while (most < V && V - heap < most) whole += weight(take(all, &heap), top, s->temperature);
    for (; kept < most; kept++) {
        if (V - heap == kept) (void)take(all, &heap);
        const double w = weight(all[V - 1 - kept], top, s->temperature);
        if (kept > 0 && (held >= s->top_p * whole || w < s->min_p)) break;
        held += w;
    }
    *sum = held;
    return kept;
}

int32_t hr_sampler_pick(const hr_sampling *s, const void *logits, hr_dtype dtype, int64_t V,
                        const int32_t *before, int64_t count, void *scratch)
{
    hr_candidate *all = scratch, best;
    bool finite = true;
    for (int64_t v = 0; v < V; v++) {
        all[v] = (hr_candidate){ hr_element_get(logits, v, dtype), (int32_t)v };
        finite &= isfinite(all[v].logit);
    }
    if (!finite) return -1;
    penalise(all, s, logits, dtype, before, count);
    best = all[0];
    for (int64_t v = 1; v < V; v++)
        if (is_likelier(all[v], best)) best = all[v];
    if (s->temperature == 0) return best.id;

    const bool cut = (s->top_k > 0 && s->top_k < V) || s->top_p < 1 || s->min_p > 0;
    double sum = 0;
    int64_t first = 0;
    if (cut) first = V - keep_likeliest(all, V, s, best.logit, &sum);
    for (int64_t v = 0; v < V && !cut; v++) sum += weight(all[v], best.logit, s->temperature);
    const uint64_t key = hr_random_row_key(s->seed, 0, SITE, 0, (uint64_t)count);
    double drawn = sum * (hr_random_element(key, 0) / 4294967296.0);
    for (int64_t v = V - 1; v > first; v--) {
        drawn -= weight(all[v], best.logit, s->temperature);
        if (drawn < 0) return all[v].id;
    }
    return all[first].id;
}
