/* SPDX-License-Identifier: Apache-2.0 */
/* generate/sampler.c - with top_k, top_p or min_p, candidates are in a heap, so that only the
 * likeliest are sorted. Without them, the logits are turned into weights in place, four at a time,
 * and the token is found by block sums: for a model of 100 MB, an exp of libm for each of 50,000
 * logits takes an eighth of a thread's time. */
#include "generate/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "base/number.h"
#include "base/random.h"

int64_t hr_sampler_bytes(int64_t V)
{
    return V * (int64_t)sizeof(hr_candidate);
}

/* Prints the number as it was given, so that a value just outside the range is not rounded into
 * it. */
static hr_status wrong(const char *option, double value, const char *range, hr_error *err)
{
    char text[HR_REAL_BYTES];
    return hr_fail(err, HR_USAGE, "%s %s is not %s", option, hr_real_print(value, text), range);
}

hr_status hr_sampler_check(const hr_sampling *s, hr_error *err)
{
    if (!(s->temperature >= 0 && s->temperature <= 100))
        return wrong("--temperature", s->temperature, "from 0 to 100", err);
    if (s->top_k < 0) return hr_fail(err, HR_USAGE, "--top-k %lld is below 0", (long long)s->top_k);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return wrong("--top-p", s->top_p, "above 0 and at most 1", err);
    if (!(s->min_p >= 0 && s->min_p <= 1)) return wrong("--min-p", s->min_p, "from 0 to 1", err);
    if (!(s->repetition_penalty >= 0.01 && s->repetition_penalty <= 100))
        return wrong("--repetition-penalty", s->repetition_penalty, "from 0.01 to 100", err);
    return HR_OK;
}

static bool is_likelier(hr_candidate a, hr_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sift_down(hr_candidate *heap, int64_t count, int64_t at)
{
    const hr_candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_likelier(heap[child + 1], heap[child])) child++;
        if (!is_likelier(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Removes the likeliest candidate from the heap and stores it behind the heap. So the end of the
 * array holds the removed candidates, the likeliest last. */
static hr_candidate take_likeliest(hr_candidate *heap, int64_t *count)
{
    const hr_candidate top = heap[0];
    heap[0] = heap[--*count];
    if (*count > 0) sift_down(heap, *count, 0);
    heap[*count] = top;
    return top;
}

static float penalized(const hr_sampling *s, float logit)
{
    return (float)(logit > 0 ? logit / s->repetition_penalty : logit * s->repetition_penalty);
}

static double weight(hr_candidate c, float top, double temperature)
{
    return exp((c.logit - top) / temperature);
}

/* Sorts the candidates that remain to the end of the array, the likeliest last, and returns their
 * number; *sum: the sum of their weights. top_p applies to the candidates that top_k keeps. */
static int64_t keep_likeliest(hr_candidate *all, int64_t V, const hr_sampling *s, float top,
                              double *sum)
{
    const int64_t most = s->top_k > 0 && s->top_k < V ? s->top_k : V;
    int64_t heap = V, kept = 0;
    double whole = 0, held = 0;
    for (int64_t v = 0; v < V && most == V; v++) whole += weight(all[v], top, s->temperature);
    for (int64_t v = V / 2 - 1; v >= 0; v--) sift_down(all, V, v);
    while (most < V && V - heap < most)
        whole += weight(take_likeliest(all, &heap), top, s->temperature);
    for (; kept < most; kept++) {
        if (V - heap == kept) (void)take_likeliest(all, &heap);
        const double w = weight(all[V - 1 - kept], top, s->temperature);
        if (kept > 0 && (held >= s->top_p * whole || w < s->min_p)) break;
        held += w;
    }
    *sum = held;
    return kept;
}

/* Uniform in [0, 1), a function of the seed and the number of tokens so far. */
static double uniform_of(const hr_sampling *s, int64_t count)
{
    const hr_random_stream stream = hr_random_stream_of(s->seed, 0, HR_SITE_GENERATE, 0);
    const hr_random_row row = hr_random_row_of(stream, 0, (uint32_t)count);
    return hr_random_unit(hr_random_wide(&row, 0));
}

static int32_t sample_truncated(const hr_sampling *s, const void *logits, hr_dtype dtype, int64_t V,
                                const int32_t *before, int64_t count, hr_candidate *all)
{
    bool finite = true;
    for (int64_t v = 0; v < V; v++) {
        all[v] = (hr_candidate){ hr_element_get(logits, v, dtype), (int32_t)v };
        finite &= isfinite(all[v].logit);
    }
    if (!finite) return -1;
    /* Penalizes each token once, however often it occurred. */
    for (int64_t i = 0; i < count && s->repetition_penalty != 1; i++) {
        all[before[i]].logit = penalized(s, hr_element_get(logits, before[i], dtype));
        if (!isfinite(all[before[i]].logit)) return -1;
    }
    float top = all[0].logit;
    for (int64_t v = 1; v < V; v++) top = all[v].logit > top ? all[v].logit : top;
    double sum = 0;
    const int64_t first = V - keep_likeliest(all, V, s, top, &sum);
    double drawn = sum * uniform_of(s, count);
    for (int64_t v = V - 1; v > first; v--) {
        drawn -= weight(all[v], top, s->temperature);
        if (drawn < 0) return all[v].id;
    }
    return all[first].id;
}

/* ---- no cut: all tokens, as an array of floats */

enum { BLOCK = 64 };

typedef float four __attribute__((vector_size(16)));
typedef uint32_t four_bits __attribute__((vector_size(16)));

static four spread(float value)
{
    return (four){ value, value, value, value };
}

static four load_four(const float *at)
{
    four x;
    memcpy(&x, at, sizeof x);
    return x;
}

/* e^x for x <= 0: relative error 3e-7 near 0, at most 1e-5; zero below 2^-126. Adding 1.5 * 2^23
 * rounds x to an integer, in the low bits of the sum: the power of two. */
static four exp_four(four x)
{
    const four t = x * 1.44269504f, big = t + 12582912.0f, f = t - (big - 12582912.0f);
    four p = f * 0.00132647145f + 0.00967151392f;
    p = p * f + 0.0555073395f;
    p = p * f + 0.240222424f;
    p = p * f + 0.693147004f;
    p = p * f + 1.0f;
    return (four)(((four_bits)p + ((four_bits)big << 23)) & (four_bits)(t > -126.0f));
}

/* w[v] = e^((w[v] - top) / temperature) */
static void weigh(float *w, int64_t V, float top, float temperature)
{
    int64_t v = 0;
    for (; v + 4 <= V; v += 4) {
        const four x = exp_four((load_four(w + v) - top) / temperature);
        memcpy(w + v, &x, sizeof x);
    }
    for (; v < V; v++) w[v] = exp_four(spread((w[v] - top) / temperature))[0];
}

static double sum_of_block(const float *w, int64_t count)
{
    four sums = spread(0);
    int64_t v = 0;
    for (; v + 4 <= count; v += 4) sums += load_four(w + v);
    for (; v < count; v++) sums[v % 4] += w[v];
    return ((double)sums[0] + sums[1]) + ((double)sums[2] + sums[3]);
}

/* Finds the token where the cumulative weight, counted from the last token, exceeds `share` of the
 * sum. */
static int32_t sample_by_weight(const float *w, int64_t V, double share)
{
    int64_t first, chosen = 0;
    double drawn = 0;
    for (int64_t b = 0; b < V; b += BLOCK) drawn += sum_of_block(w + b, hr_min(BLOCK, V - b));
    drawn *= share;
    for (first = (V - 1) / BLOCK * BLOCK; first > 0; first -= BLOCK) {
        const double sum = sum_of_block(w + first, hr_min(BLOCK, V - first));
        if (drawn < sum) break;
        drawn -= sum;
    }
    for (int64_t v = hr_min(first + BLOCK, V) - 1; v >= first && drawn >= 0; v--) {
        drawn -= w[v];
        if (w[v] > 0) chosen = v;
    }
    return (int32_t)chosen;
}

/* Returns the largest logit; NaN when any logit is not finite. */
static float largest_logit(const float *w, int64_t V)
{
    four tops = spread(w[0]), wrong = spread(0);
    int64_t v = 0;
    for (; v + 4 <= V; v += 4) {
        const four x = load_four(w + v);
        const four_bits higher = (four_bits)(x > tops);
        tops = (four)(((four_bits)x & higher) | ((four_bits)tops & ~higher));
        wrong += x - x;
    }
    float top = tops[0], sum = wrong[0] + wrong[1] + wrong[2] + wrong[3];
    for (int32_t i = 1; i < 4; i++) top = tops[i] > top ? tops[i] : top;
    for (; v < V; v++) {
        top = w[v] > top ? w[v] : top;
        sum += w[v] - w[v];
    }
    return top + sum;
}

int32_t hr_sampler_sample(const hr_sampling *s, const void *logits, hr_dtype dtype, int64_t V,
                          const int32_t *before, int64_t count, void *scratch)
{
    const bool cut = (s->top_k > 0 && s->top_k < V) || s->top_p < 1 || s->min_p > 0;
    if (cut && s->temperature > 0)
        return sample_truncated(s, logits, dtype, V, before, count, scratch);
    float *w = scratch;
    if (dtype == HR_F32) memcpy(w, logits, (size_t)V * sizeof *w);
    else
        for (int64_t v = 0; v < V; v++) w[v] = hr_element_get(logits, v, dtype);
    float top = largest_logit(w, V);
    if (!isfinite(top)) return -1;
    if (s->repetition_penalty != 1) {
        for (int64_t i = 0; i < count; i++)
            w[before[i]] = penalized(s, hr_element_get(logits, before[i], dtype));
        top = largest_logit(w, V);
        if (!isfinite(top)) return -1;
    }
    if (s->temperature > 0) {
        weigh(w, V, top, fmaxf((float)s->temperature, FLT_MIN));
        return sample_by_weight(w, V, uniform_of(s, count));
    }
    for (int32_t v = 0;; v++)
        if (w[v] == top) return v;
}
