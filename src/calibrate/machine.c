/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/machine.c - compares the requested kernels with the instruction sets of the
 * processor. */
#include "calibrate/machine.h"

#include <string.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "dev/pool.h"
#include "ops/backends.h"

hr_status hr_calibrate_machine(const hr_calibrate_request *request, const hr_backend **backend,
                               uint32_t *mask, int32_t *threads, hr_error *err)
{
    *backend = hr_backend_find(HR_BACKEND_DEFAULT);
    *mask = hr_cpu_detect();
    *threads = request->threads ? request->threads : hr_threads_default();
    if (*threads < 1 || *threads > HR_POOL_THREADS_MAX)
        return hr_fail(err, HR_USAGE, "calibration runs on 1 to %d threads, not on %d",
                       HR_POOL_THREADS_MAX, *threads);
    if (!request->kernels || !strcmp(request->kernels, "auto")) return HR_OK;
    const int64_t wanted = hr_cpu_mask_of(request->kernels);
    if (wanted < 0)
        return hr_fail(err, HR_USAGE,
                       "no kernels are named \"%.40s\"; the choices are ref, avx2, avx512, "
                       "avx512bf16 and amx",
                       request->kernels);
    if ((uint32_t)wanted & ~*mask)
        return hr_fail(err, HR_USAGE, "this processor has no %.40s; its kernels are %s",
                       request->kernels, hr_cpu_rung_name(*mask));
    *mask = (uint32_t)wanted;
    return HR_OK;
}
