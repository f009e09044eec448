/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a training file of another program: a config that headroom accepts, with every
 * key in one of three states, or one sentence. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "headroom/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static hr_audit_report report;
    static _Alignas(64) unsigned char memory[HR_AUDIT_MEMORY_BYTES];
    const hr_audit_request request = { .size = sizeof request,
                                       .memory = memory,
                                       .memory_bytes = sizeof memory,
                                       .model = "Qwen/Qwen2.5-0.5B" };
    hr_error err = { HR_OK, "" };
    char path[64];
    const int file = memfd_create("fuzz", 0);
    if (file < 0 || write(file, bytes, count) != (ssize_t)count) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const hr_status status = hr_audit_file(path, &request, &report, &err);
    if (status != HR_OK && (status != HR_USAGE || !err.message[0] || strchr(err.message, '\n')))
        abort();
    const bool training = report.kind > HR_AUDIT_RECIPE;
    if (status == HR_OK && training && hr_config_check(report.config, &err) != HR_OK) abort();
    for (int32_t i = 0; status == HR_OK && i < report.key_count; i++)
        if (report.keys[i].state > HR_AUDIT_UNREAD) abort();
    hr_config_free(report.config);
    close(file);
    return 0;
}
