/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon_build.h - adds the update of Muon to a program. */
#ifndef HR_OPS_MUON_BUILD_H
#define HR_OPS_MUON_BUILD_H

#include "graph/builder.h"
#include "ops/muon/muon.h"

/* Factors of the learning rate for a matrix of A outputs and B inputs:
 *     ORIGINAL   sqrt(max(1, A / B))
 *     MATCH_RMS  0.2 sqrt(max(A, B)), so that the root mean square of an update is about that of
 *                AdamW. Liu et al. 2025, arXiv:2502.16982 */
typedef enum { HR_MUON_MATCH_RMS, HR_MUON_ORIGINAL } hr_muon_scale;

/* Adds the update of parameter `index`, a matrix, unless it is frozen. Its first state is the
 * momentum, whose scales are the state `scales`.
 *   attr        update.beta1, steps and nesterov are given; the rest is set here
 *   norm_scale  tensor of hr_build_norm_scale; HR_NONE: no scaling */
void hr_build_muon(hr_builder *builder, int32_t index, hr_muon_attr attr, hr_muon_scale scale,
                   int32_t scales, int32_t norm_scale, int32_t lr);

#endif
