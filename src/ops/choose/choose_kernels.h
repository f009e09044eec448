/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_kernels.h - scores of blocks, and the best of them: for one query of a group.
 * The same bits with every instruction set. */
#ifndef HR_OPS_CHOOSE_KERNELS_H
#define HR_OPS_CHOOSE_KERNELS_H

#include "ops/choose/choose.h"

/* How the score of block j is made: the sum over k < apart + overlap - 1, in this order, of
 * weights[k] p[apart j - (overlap - 1) + k], without those before the first or after the last. */
typedef struct {
    int64_t apart, overlap;
    const float *weights;
} hr_choose_sum;

static inline float hr_choose_score_of(const hr_choose_sum *sum, const float *p, int64_t keys,
                                       int64_t block)
{
    const int64_t at = sum->apart * block - (sum->overlap - 1);
    const int64_t first = at < 0 ? -at : 0, most = sum->apart + sum->overlap - 1;
    const int64_t last = keys - at < most ? keys - at : most;
    float score = 0;
    for (int64_t k = first; k < last; k++) score += sum->weights[k] * p[at + k];
    return score;
}

/* The scores of blocks [0, count). */
typedef void hr_choose_score_fn(const hr_choose_sum *sum, const float *p, int64_t keys,
                                int64_t count, float *scores);

/* The best `room` <= HR_CHOOSE_COUNT_MOST of blocks [first, last), the lower of two with equal
 * scores; ascending. Returns how many there are. No score is NaN, or negative. */
typedef int64_t hr_choose_best_fn(const float *scores, int64_t first, int64_t last, int64_t room,
                                  uint16_t *best);

typedef struct {
    hr_choose_score_fn *score;
    hr_choose_best_fn *best;
} hr_choose_kernels;

/* One function per instruction set, each in its own file. */
void hr_choose_fill_ref(hr_choose_kernels *kernels);
void hr_choose_fill_avx2(hr_choose_kernels *kernels);
void hr_choose_fill_avx512(hr_choose_kernels *kernels);

#endif
