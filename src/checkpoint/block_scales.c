/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/block_scales.c - finds scales by the name of their matrix, and reads them in rows. */
#include "checkpoint/block_scales.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/words.h"
#include "checkpoint/names.h"

enum { NAME_BYTES = 1024, NAME_SHOWN = 120 };

/* In the order of preference. */
static const char *const suffixes[] = { HR_SCALES_SUFFIX, "_scale" };

enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

static const hr_stored_tensor *find(const hr_stored *stored, const char *name)
{
    const hr_stored_tensor *tensor = NULL;
    for (int32_t i = 0; i < SUFFIXES && !tensor; i++) {
        char scale_name[NAME_BYTES];
        const int32_t bytes = snprintf(scale_name, sizeof scale_name, "%s%s", name, suffixes[i]);
        if (bytes < NAME_BYTES) tensor = hr_stored_find(stored, scale_name);
    }
    return tensor;
}

static hr_status check(const hr_stored *stored, const hr_stored_tensor *tensor,
                       const hr_stored_tensor *scales, hr_error *err)
{
    const hr_stored_tensor expected = {
        .rank = 2, .dims = { hr_scale_blocks(tensor->dims[0]), hr_scale_blocks(tensor->dims[1]) }
    };
    const hr_stored_kind kind = scales->dtype->kind;
    char is[64], needed[64];
    if (scales->rank != 2 || scales->dims[0] != expected.dims[0] ||
        scales->dims[1] != expected.dims[1])
        return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s is %s, %s is needed for %.*s",
                       hr_path_shown(stored->path), NAME_SHOWN, scales->name,
                       hr_stored_shape(scales, is, sizeof is),
                       hr_stored_shape(&expected, needed, sizeof needed), NAME_SHOWN, tensor->name);
    if (kind != HR_STORED_F32 && kind != HR_STORED_BF16)
        return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s is %s; scales are F32 or BF16",
                       hr_path_shown(stored->path), NAME_SHOWN, scales->name, scales->dtype->name);
    if (expected.dims[0] > 0 && expected.dims[1] == 0)
        return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s is F8_E4M3 without columns",
                       hr_path_shown(stored->path), NAME_SHOWN, tensor->name);
    if (expected.dims[1] <= HR_SCALES_MAX) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s has %lld columns, the limit for F8_E4M3 is %d",
                   hr_path_shown(stored->path), NAME_SHOWN, tensor->name,
                   (long long)tensor->dims[1], HR_SCALES_MAX * HR_SCALE_BLOCK);
}

static hr_status check_values(const hr_stored *stored, const hr_stored_tensor *tensor,
                              const hr_block_scales *scales, hr_error *err)
{
    float row[HR_SCALES_MAX];
    for (int64_t r = 0; r < tensor->dims[0]; r++) {
        const hr_status status = hr_block_scales_read(scales, stored->files[scales->file].file,
                                                      stored->path, r, row, err);
        if (status != HR_OK) return status;
        for (int32_t i = 0; i < scales->columns; i++)
            if (!(row[i] >= 0 && isfinite(row[i])))
                return hr_fail(err, HR_CORRUPT,
                               "%s: tensor %.*s has a scale that is negative, NaN or Inf",
                               hr_path_shown(stored->path), NAME_SHOWN, tensor->name);
    }
    return HR_OK;
}

hr_status hr_block_scales_find(const hr_stored *stored, const hr_stored_tensor *tensor,
                               hr_block_scales *scales, const hr_stored_tensor **found,
                               hr_error *err)
{
    if (tensor->rank != 2)
        return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s is F8_E4M3, but not a matrix",
                       hr_path_shown(stored->path), NAME_SHOWN, tensor->name);
    *found = find(stored, tensor->name);
    if (!*found)
        return hr_fail(err, HR_CORRUPT,
                       "%s: tensor %.*s is F8_E4M3, but has no scales: %.*s%s is missing",
                       hr_path_shown(stored->path), NAME_SHOWN, tensor->name, NAME_SHOWN,
                       tensor->name, suffixes[0]);
    const hr_status status = check(stored, tensor, *found, err);
    if (status != HR_OK) return status;
    *scales = (hr_block_scales){ .offset = (*found)->offset,
                                 .file = (*found)->file,
                                 .columns = (int32_t)(*found)->dims[1],
                                 .kind = (*found)->dtype->kind };
    return check_values(stored, *found, scales, err);
}

bool hr_block_scales_is(const hr_stored *stored, const hr_stored_tensor *tensor)
{
    for (int32_t i = 0; i < SUFFIXES; i++) {
        char name[NAME_BYTES];
        if (!hr_ends_with(tensor->name, suffixes[i])) continue;
        const size_t bytes = strlen(tensor->name) - strlen(suffixes[i]);
        if (bytes >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)bytes, tensor->name);
        const hr_stored_tensor *owner = hr_stored_find(stored, name);
        if (owner && owner->dtype->kind == HR_STORED_E4M3) return find(stored, name) == tensor;
    }
    return false;
}

hr_status hr_block_scales_read(const hr_block_scales *scales, int file, const char *path,
                               int64_t block_row, float *to, hr_error *err)
{
    const int64_t row_bytes = scales->columns * hr_stored_kind_bytes(scales->kind);
    const hr_status status = hr_file_read(file, path, scales->offset + block_row * row_bytes, to,
                                          row_bytes, err);
    if (status != HR_OK || scales->kind == HR_STORED_F32) return status;
    const hr_bf16 *halves = (const hr_bf16 *)to;
    for (int32_t i = scales->columns - 1; i >= 0; i--) {
        hr_bf16 half;
        memcpy(&half, halves + i, sizeof half);
        to[i] = hr_bf16_to_f32(half);
    }
    return HR_OK;
}
