/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as an axis of a grid: the result is an axis whose keys accept each of its values,
 * or an error. */
#include <stdint.h>
#include <string.h>

#include "config/config.h"
#include "headroom/plan_grid.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    enum { POINTS_SEEN = 40 };
    static char text[4097];
    static hr_config config;
    hr_grid_axis axis;
    hr_error err = { HR_OK, "" };
    if (count >= sizeof text) return 0;
    memcpy(text, bytes, count);
    text[count] = 0;
    const hr_status status = hr_grid_axis_parse(text, &axis, &err);
    if ((status != HR_OK && status != HR_USAGE) || err.status != status) __builtin_trap();
    if (status != HR_OK) return 0;
    if (axis.count < 1 || axis.count > HR_GRID_CELLS_MOST || axis.key_count < 1) __builtin_trap();
    hr_config_default(&config);
    for (int32_t p = 0; p < axis.count && p < POINTS_SEEN; p++)
        for (int32_t k = 0; k < axis.key_count; k++) {
            char value[HR_GRID_VALUE_BYTES];
            hr_grid_axis_value(&axis, p, k, value);
            if (hr_config_set(&config, axis.keys[k]->name, value, &err) != HR_OK) __builtin_trap();
        }
    return 0;
}
