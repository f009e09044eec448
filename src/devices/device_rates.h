/* SPDX-License-Identifier: Apache-2.0 */
/* devices/device_rates.h - predicted rates of a device, from its published figures. */
#ifndef HR_DEVICES_DEVICE_RATES_H
#define HR_DEVICES_DEVICE_RATES_H

#include "graph/rates.h"
#include "headroom/devices.h"

/* Shares of the published peaks that are assumed, in per cent, and the time to start a kernel. */
enum { HR_DEVICE_PEAK_SHARE = 50, HR_DEVICE_BANDWIDTH_SHARE = 80, HR_DEVICE_CALL_PS = 5000000 };

/* Rates of a card: a call takes HR_DEVICE_CALL_PS, and FLOP / (share of the peak of the format)
 * plus bytes / (share of the bandwidth). The sum is at most twice the roofline, the larger of the
 * two. fp32 products take the peak of fp32, not of tf32. Rates of a cpu: the estimates of the back
 * end for its instruction set.
 *
 *   rates   out
 *   source  [bytes] out; the words of hr_plan_answer.times */
void hr_device_rates(const hr_device_facts *device, const hr_backend *backend, int32_t threads,
                     hr_rates *rates, char *source, int64_t bytes);

/* The mask of base/cpu.h that plans for the device use; cards have every rung, since kernels of the
 * CPU are not used there. */
uint32_t hr_device_mask(const hr_device_facts *device);

#endif
