/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/convert.h - hr_convert in memory of the caller. */
#ifndef HR_CHECKPOINT_CONVERT_H
#define HR_CHECKPOINT_CONVERT_H

#include "base/region.h"
#include "headroom/convert.h"

/* Bytes of a region that a conversion needs at most. */
int64_t hr_convert_bytes(const hr_convert_request *request);

/* Refuses a destination with weights: loaders could read the old files instead of the new ones. A
 * folder that does not exist has none. Errors USAGE. */
HR_MUST_CHECK hr_status hr_convert_check_destination(const char *path, hr_error *err);

/* As hr_convert. FAILURE also if the region is too small. */
HR_MUST_CHECK hr_status hr_convert_in(const hr_convert_request *request, hr_region *region,
                                      hr_convert_report *report, hr_error *err);

#endif
