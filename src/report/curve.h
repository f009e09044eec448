/* SPDX-License-Identifier: Apache-2.0 */
/* report/curve.h - draws live bytes during a training step. */
#ifndef HR_REPORT_CURVE_H
#define HR_REPORT_CURVE_H

#include "base/writer.h"
#include "headroom/plan.h"

/* Draws details->curve from its minimum to its maximum, with bytes on the y axis and operations on
 * the x axis, and a mark with the text `peak` below the maximum.
 *   blocks  use block characters, eight steps per line; else '#' */
void hr_curve_put(hr_writer *writer, const hr_plan_details *details, const char *peak, bool blocks);

#endif
