/* SPDX-License-Identifier: Apache-2.0 */
/* generate/sampler.h - samples a token from logits. */
#ifndef HR_GENERATE_SAMPLER_H
#define HR_GENERATE_SAMPLER_H

#include "base/dtype.h"
#include "headroom/generate.h"

/* A candidate token. */
typedef struct {
    float logit;
    int32_t id;
} hr_candidate;

/* Bytes of scratch for V logits: one candidate each. */
int64_t hr_sampler_bytes(int64_t V);

/* Checks the combination of options. Errors USAGE. */
HR_MUST_CHECK hr_status hr_sampler_check(const hr_sampling *sampling, hr_error *err);

/* Samples the next token; returns -1 when a logit is not finite, also after the penalty.
 *
 *   logits      [V] fp32 or bf16
 *   before      [count] all tokens so far
 *   scratch     hr_sampler_bytes(V)
 *
 * Of equal logits, the lower id ranks higher. The random number is a function of (seed, count).
 * Cost: V, plus log V for each remaining candidate. */
int32_t hr_sampler_sample(const hr_sampling *sampling, const void *logits, hr_dtype dtype,
                          int64_t V, const int32_t *before, int64_t count, void *scratch);

#endif
