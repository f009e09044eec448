/* SPDX-License-Identifier: Apache-2.0 */
/* report/listing.h - a step program as text for people. */
#ifndef HR_REPORT_LISTING_H
#define HR_REPORT_LISTING_H

#include "graph/program.h"

/* A line a step, indented by loop; before the first step of a loop its name, how often it turns and
 * how many token rows it has a turn.
 *
 *   text  [bytes] out, terminated; cut where it is full */
void hr_listing(const hr_program *program, char *text, int64_t bytes);

#endif
