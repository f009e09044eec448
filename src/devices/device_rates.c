/* SPDX-License-Identifier: Apache-2.0 */
/* devices/device_rates.c - a roofline for every operation: products by the peak of their format,
 * bytes by the bandwidth. */
#include "devices/device_rates.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"

uint32_t hr_device_mask(const hr_device_facts *device)
{
    const int64_t mask = hr_cpu_mask_of(device->kind == HR_DEVICE_CPU ? device->kernels : "amx");
    return mask < 0 ? 0 : (uint32_t)mask;
}

/* Attoseconds per operation at a share of a peak in 10^12 per second, at least 1. */
static int64_t flop_as(double peak)
{
    const double per_second = 1e12 * peak * HR_DEVICE_PEAK_SHARE / 100;
    return hr_max(1, (int64_t)(1e18 / per_second + 0.5));
}

static hr_rate rate_of(const hr_op *op, int64_t product_as, int64_t byte_as)
{
    hr_rate rate = { .call_ps = HR_DEVICE_CALL_PS };
    if (op->flops) rate.unit_as[HR_TERM_FLOPS] = product_as;
    for (int32_t i = 0; op->in[i]; i++) rate.unit_as[HR_TERM_IN + i] = byte_as;
    for (int32_t k = 0; op->out[k]; k++) {
        rate.unit_as[HR_TERM_OUT + k] = byte_as;
        if (op->out[k] == 'a' || op->out[k] == 'A') rate.unit_as[HR_TERM_START] = byte_as;
    }
    return rate;
}

void hr_device_rates(const hr_device_facts *device, const hr_backend *backend, int32_t threads,
                     hr_rates *rates, char *source, int64_t bytes)
{
    if (device->kind == HR_DEVICE_CPU) {
        *rates = (hr_rates){ .backend = backend, .threads = threads };
        backend->guess(hr_device_mask(device), rates);
        snprintf(source, (size_t)bytes, "estimated from typical rates of %s kernels on %d threads",
                 device->kernels, threads);
        return;
    }
    *rates = (hr_rates){ .backend = backend, .threads = 1 };
    const double bandwidth = (double)device->bandwidth * HR_DEVICE_BANDWIDTH_SHARE / 100;
    const int64_t byte_as = hr_max(1, (int64_t)(1e18 / bandwidth + 0.5));
    const double fp32 = device->peak[HR_DEVICE_FP32], bf16 = device->peak[HR_DEVICE_BF16];
    const double peaks[HR_COMPUTES] = {
        [HR_COMPUTE_F32] = fp32, [HR_COMPUTE_BF16] = bf16 > 0 ? bf16 : fp32
    };
    for (int32_t i = 0; i < backend->op_count && i < HR_RATE_OPS_MOST; i++) {
        if (backend->ops[i]->host || !backend->facts[i]) continue;
        for (int32_t c = 0; c < HR_COMPUTES; c++)
            rates->op[i][c] = rate_of(backend->ops[i], flop_as(peaks[c]), byte_as);
    }
    /* Moments in a file pass the disk and the link to the host. */
    if (device->link) rates->file_read_rate = hr_min(HR_FILE_RATE_ESTIMATE, device->link);
    rates->file_write_rate = rates->file_read_rate;
    snprintf(source, (size_t)bytes,
             "estimated from published figures, at %d %% of peak FLOP/s and %d %% of bandwidth",
             HR_DEVICE_PEAK_SHARE, HR_DEVICE_BANDWIDTH_SHARE);
}
