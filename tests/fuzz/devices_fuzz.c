/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a file of devices: the result is a list of devices that can be found and
 * planned for, or an error message of one line. */
#define _GNU_SOURCE /* mkdtemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/devices.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static char folder[] = P_tmpdir "/headroom-fuzz-XXXXXX", path[64];

static void remove_folder(void)
{
    remove(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static hr_device_list list;
    hr_error err = { HR_OK, "" };
    if (!*path) {
        if (!mkdtemp(folder) || atexit(remove_folder)) abort();
        snprintf(path, sizeof path, "%s/devices.yaml", folder);
    }
    remove(path);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file)) abort();
    const hr_status status = hr_devices_read(path, &list, &err);
    if ((status != HR_OK && status != HR_USAGE) || err.status != status ||
        strchr(err.message, '\n'))
        __builtin_trap();
    if (status != HR_OK && list.count) __builtin_trap();
    for (int32_t i = 0; i < list.count; i++) {
        const hr_device_facts *row = &list.rows[i], *found;
        hr_device_choice choice;
        int32_t chosen;
        if (row->reserve_bytes < 0 || row->usable_bytes <= row->reserve_bytes ||
            row->bandwidth <= 0 || !(row->peak[HR_DEVICE_FP32] > 0))
            __builtin_trap();
        if (hr_device_find(row->name, &list, &found, &err) != HR_OK || found != row)
            __builtin_trap();
        if (hr_devices_choose(row->name, &list, 1, &choice, &chosen, &err) != HR_OK ||
            hr_device_budget(&choice) <= 0)
            __builtin_trap();
    }
    return 0;
}
