/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_scratch.h - the runs of elements in which updates and sums are computed. */
#ifndef HR_OPS_UPDATE_SCRATCH_H
#define HR_OPS_UPDATE_SCRATCH_H

#include <stdint.h>

enum { HR_UPDATE_RUN_ELEMENTS = 4096 };

static inline int64_t hr_update_runs(int64_t elements)
{
    return (elements + HR_UPDATE_RUN_ELEMENTS - 1) / HR_UPDATE_RUN_ELEMENTS;
}

#endif
