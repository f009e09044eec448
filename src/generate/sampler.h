/* SPDX-License-Identifier: Apache-2.0 */
/* generate/sampler.h - one token out of logits. */
#ifndef HR_GENERATE_SAMPLER_H
#define HR_GENERATE_SAMPLER_H

#include "base/dtype.h"
#include "headroom/generate.h"

/* A token that may be chosen. */
typedef struct {
    float logit;
    int32_t id;
} hr_candidate;

/* Bytes of scratch for V logits: a candidate for each. */
int64_t hr_sampler_bytes(int64_t V);

/* Checks what no single number tells. Errors USAGE: one sentence. */
HR_MUST_CHECK hr_status hr_sampler_check(const hr_sampling *sampling, hr_error *err);

/* The next token; -1 where a logit is not finite, or is none after the penalty.
 *
 *   logits      [V] fp32 or bf16
 *   before      [count] all tokens so far
 *   scratch     hr_sampler_bytes(V)
 *
 * Of equal logits the lower id is the likelier. What is drawn is a function of (seed, count) and
 * the logits. Cost: V, and log V for each candidate that is left. */
int32_t hr_sampler_sample(const hr_sampling *sampling, const void *logits, hr_dtype dtype,
                          int64_t V, const int32_t *before, int64_t count, void *scratch);

#endif
