/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a plan file: the verifier returns a status and a message of one line, and
 * accesses only its own memory. libFuzzer starts from the plan of the tests and a dictionary of its
 * words. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "headroom/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int file = -1;
    static char path[64];
    hr_verify_report report;
    hr_error err = { HR_OK, "" };
    if (file < 0) {
        file = memfd_create("plan", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return -1;
    const hr_status status = hr_verify_file(path, &report, &err);
    const int known = status == HR_OK || status == HR_BROKEN || status == HR_CORRUPT;
    if (!known || err.status != status || strchr(err.message, '\n')) __builtin_trap();
    if (status == HR_OK && (report.alive_listed > HR_VERIFY_ALIVE_MAX || report.gap_bytes < 0 ||
                            report.peak_step >= report.step_count))
        __builtin_trap();
    return 0;
}
