/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/disk.c - writes and flushes a file and reads the clock. */
#include "calibrate/disk.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"

enum {
    FLUSHED_BYTES = 8 << 20
}; /* bytes between two flushes: a slow disk ends the measurement early */
#define ENOUGH_NS INT64_C(1000000000)

/* Random words: a file system that compresses cannot make them smaller. */
static void fill(uint64_t *words, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) words[i] = hr_random_mix(seed + (uint64_t)i);
}

hr_status hr_disk_measure(const char *directory, void *buffer, double *bytes_per_second,
                          hr_error *err)
{
    hr_file_out out;
    hr_status status = hr_file_begin(&out, directory, "calibration.disk", err);
    int64_t spent_ns = 0;
    while (status == HR_OK && out.bytes < HR_DISK_BYTES && spent_ns < ENOUGH_NS) {
        fill(buffer, HR_DISK_PIECE_BYTES / 8, (uint64_t)out.bytes);
        const int64_t begin_ns = hr_clock_ns();
        status = hr_file_append(&out, buffer, HR_DISK_PIECE_BYTES, err);
        if (status == HR_OK && out.bytes % FLUSHED_BYTES == 0 && fdatasync(out.file) != 0)
            status = hr_fail(err, HR_FAILURE, "%s: a file cannot be flushed there", directory);
        spent_ns += hr_clock_ns() - begin_ns;
    }
    if (status != HR_OK) {
        hr_file_abort(&out);
        return status;
    }
    const int64_t begin_ns = hr_clock_ns();
    const bool flushed = fdatasync(out.file) == 0;
    spent_ns += hr_clock_ns() - begin_ns;
    *bytes_per_second = 1e9 * (double)out.bytes / (double)hr_max(spent_ns, 1);
    hr_file_abort(&out);
    return flushed ? HR_OK
                   : hr_fail(err, HR_FAILURE, "%s: a file cannot be flushed there", directory);
}
