/* SPDX-License-Identifier: Apache-2.0 */
/* report/curve.h - bytes over a training step, drawn. */
#ifndef HR_REPORT_CURVE_H
#define HR_REPORT_CURVE_H

#include "base/writer.h"
#include "headroom/plan.h"

/* Draws details->curve from its least value to its most, and marks the peak below.
 *   blocks  with block characters, eight steps to a line; else with '#' */
void hr_curve_put(hr_writer *writer, const hr_plan_details *details, bool blocks);

#endif
