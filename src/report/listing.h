/* SPDX-License-Identifier: Apache-2.0 */
/* report/listing.h - prints a program as text. */
#ifndef HR_REPORT_LISTING_H
#define HR_REPORT_LISTING_H

#include "graph/program.h"

/* Prints one line per step, indented by loop. A line before the first step of a loop has its name,
 * iterations and token rows per iteration.
 *
 *   text  [bytes] out, null-terminated; truncated if full */
void hr_listing(const hr_program *program, char *text, int64_t bytes);

#endif
