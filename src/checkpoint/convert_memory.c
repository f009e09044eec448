/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/convert_memory.c - allocates the memory of a conversion. */
#include "base/options.h"
#include "checkpoint/convert.h"
#include "mem/memory.h"

hr_status hr_convert(const hr_convert_request *given, hr_convert_report *report, hr_error *err)
{
    hr_memory memory = { 0 };
    hr_region region;
    hr_convert_request request;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK)
        status = hr_memory_region_open(&memory, "converting", hr_convert_bytes(&request), &region,
                                       err);
    if (status == HR_OK) status = hr_convert_in(&request, &region, report, err);
    hr_memory_close(&memory);
    return status;
}
