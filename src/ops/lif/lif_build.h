/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_build.h - adds leaky integrate-and-fire neurons to a program. */
#ifndef HR_OPS_LIF_BUILD_H
#define HR_OPS_LIF_BUILD_H

#include "graph/builder.h"
#include "ops/lif/lif.h"

/* y = x + spikes of neurons with input u; backward needs only u. If the builder has caches, the
 * first cache of the layer is the initial state. Returns y.
 *   attr  block, winners and synapses are given; the rest is set here
 *   w     tensor of [synapses * C] */
int32_t hr_build_lif(hr_builder *builder, const char *name, int32_t u, int32_t x, int32_t w,
                     hr_lif_attr attr);

#endif
