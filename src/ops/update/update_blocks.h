/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_blocks.h - what a thread updates: its runs of elements, and the stored moments
 * and masters of a block of them. For operations whose attributes begin with hr_update_attr. */
#ifndef HR_OPS_UPDATE_BLOCKS_H
#define HR_OPS_UPDATE_BLOCKS_H

#include "base/checked.h"
#include "ops/kernels.h"
#include "ops/update/masters.h"
#include "ops/update/moments.h"

/* The elements of this thread's runs. */
static inline void hr_update_share(const hr_call *call, int64_t elements, int64_t *first,
                                   int64_t *last)
{
    hr_share(hr_update_runs(elements), call->thread, call->threads, first, last);
    *first *= HR_UPDATE_RUN_ELEMENTS;
    *last = hr_min(*last * HR_UPDATE_RUN_ELEMENTS, elements);
}

/* Moment 0 or 1 of the update: output 1 + index, with scales in output `scales` + index. */
static inline hr_moment hr_update_moment(const hr_call *call, int32_t index, int32_t scales)
{
    const hr_update_attr *attr = call->attr;
    return (hr_moment){ .stored = call->out[1 + index],
                        .scales = call->out[scales + index],
                        .map = hr_moment_map_of(index == 0),
                        .stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                      HR_SITE_MOMENTS, (uint32_t)attr->param),
                        .second = index == 1,
                        .element_first = attr->first + call->turn * attr->elements };
}

static inline hr_master hr_update_master(const hr_call *call, int32_t residual)
{
    const hr_update_attr *attr = call->attr;
    return (hr_master){ .kind = (hr_master_kind)attr->master,
                        .stored = call->out[0],
                        .residual = call->out[residual],
                        .stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                      HR_SITE_MASTERS, (uint32_t)attr->param),
                        .element_first = attr->first + call->turn * attr->elements };
}

/* fp32 moments are updated in place. Returns where they are. */
static inline float *hr_update_unpack(const hr_call *call, const hr_moment *moment, int64_t first,
                                      int64_t count, float *values)
{
    const hr_update_attr *attr = call->attr;
    if (attr->moments == HR_F32) return (float *)moment->stored + first;
    hr_moment_unpack(&call->kernels->update, moment, first, count, values);
    return values;
}

static inline void hr_update_pack(const hr_call *call, const hr_moment *moment, int64_t first,
                                  int64_t count, const float *values)
{
    const hr_update_attr *attr = call->attr;
    if (attr->moments != HR_F32)
        hr_moment_pack(&call->kernels->update, moment, first, count, values);
}

/* The number of this update of the parameter, from 1. */
static inline double hr_update_number(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    return (double)(call->clock + 1 - hr_max(attr->missed, call->uncounted));
}

static inline double hr_update_scale(const hr_call *call)
{
    const double *norm_scale = call->in[1];
    return norm_scale ? norm_scale[1] : 1;
}

#endif
