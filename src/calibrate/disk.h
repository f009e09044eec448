/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/disk.h - measures the write rate of a disk, flushes included. */
#ifndef HR_CALIBRATE_DISK_H
#define HR_CALIBRATE_DISK_H

#include <stdint.h>

#include "headroom/status.h"

enum { HR_DISK_PIECE_BYTES = 1 << 20, HR_DISK_BYTES = 64 << 20 };

/* Measures the bytes per second that a file in `directory` takes, written and flushed. Writes
 * HR_DISK_BYTES, or less if that takes longer than a second or two. The file has no name and is
 * removed afterwards.
 *   buffer  [HR_DISK_PIECE_BYTES]
 * Errors as hr_file_begin, hr_file_append. */
HR_MUST_CHECK hr_status hr_disk_measure(const char *directory, void *buffer,
                                        double *bytes_per_second, hr_error *err);

#endif
