/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/file_rate.h - measures the read and write rates of the file space of a run. */
#ifndef HR_CALIBRATE_FILE_RATE_H
#define HR_CALIBRATE_FILE_RATE_H

#include "headroom/status.h"
#include "mem/memory.h"

/* Size of the file that is written and read back, in a circle. */
enum { HR_FILE_RATE_BYTES = 256 << 20 };

/* Measures the bytes per second that a file in `directory` takes and gives: direct, with checksums,
 * as the moments of a run move (dev/space_file.h). About a second each; the file is removed
 * afterwards.
 *
 *   memory  open; has room for one more region meanwhile
 *   write_rate, read_rate  out; 0, not measured, where the file does not fit on the disk
 *
 * Errors as hr_space_file_open and _wait, and hr_memory_region_open. */
HR_MUST_CHECK hr_status hr_file_rate_measure(const char *directory, hr_memory *memory,
                                             double *write_rate, double *read_rate, hr_error *err);

#endif
