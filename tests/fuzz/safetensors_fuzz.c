/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a safetensors file: the tensors are inside the file and do not overlap, or the
 * file is refused with a message of one line. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void look(const hr_stored *stored, int64_t count)
{
    int64_t sum = stored->files[0].data_offset;
    for (int32_t i = 0; i < stored->tensor_count; i++) {
        const hr_stored_tensor *tensor = &stored->tensors[i];
        char shape[64];
        hr_stored_shape(tensor, shape, sizeof shape);
        sum += tensor->bytes;
        if (tensor->bytes < 0 || tensor->offset < stored->files[0].data_offset ||
            tensor->offset + tensor->bytes > count ||
            hr_stored_find(stored, tensor->name) != tensor)
            __builtin_trap();
    }
    if (sum != count) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int file = -1;
    static char path[64];
    hr_stored stored;
    hr_error err = { HR_OK, "" };
    if (file < 0) {
        file = memfd_create("tensors", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, bytes, count, 0) != (ssize_t)count)
        return -1;
    const int64_t room = (hr_stored_bytes(path) + 63) / 64 * 64;
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)room), room);
    const hr_status status = hr_stored_open(&stored, path, &region, &err);
    if ((status != HR_OK && status != HR_CORRUPT) || err.status != status ||
        strchr(err.message, '\n'))
        __builtin_trap();
    if (status == HR_OK) look(&stored, (int64_t)count);
    hr_stored_close(&stored);
    free(region.base);
    return 0;
}
