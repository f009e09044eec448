/* SPDX-License-Identifier: Apache-2.0 */
/* report/curve.h - draws live bytes over a training step. */
#ifndef HR_REPORT_CURVE_H
#define HR_REPORT_CURVE_H

#include "base/writer.h"
#include "headroom/plan.h"

/* Draws details->curve from its minimum to its maximum, and marks the peak below.
 *   blocks  use block characters, eight steps per line; else '#' */
void hr_curve_put(hr_writer *writer, const hr_plan_details *details, bool blocks);

#endif
