/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/ids_file.c - a file of int32 values. */
#define _GNU_SOURCE /* mkostemp, strerrordesc_np */
#include "evaluate/ids_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "headroom/config.h"

static hr_status fail_file(const hr_ids_file *ids, int code, hr_error *err)
{
    return hr_fail(err, HR_FAILURE,
                   "%.300s: %s; a temporary file for token ids is needed there, 4 bytes per token: "
                   "set TMPDIR to another directory",
                   ids->directory, strerrordesc_np(code));
}

hr_status hr_ids_file_open(hr_ids_file *ids, const char *directory, hr_error *err)
{
    char path[HR_PATH_BYTES];
    ids->directory = directory && *directory ? directory : "/tmp";
    const hr_status status = hr_path_join(ids->directory, "headroom-ids-XXXXXX", path, sizeof path,
                                          err);
    if (status != HR_OK) return status;
    ids->count = ids->held_count = 0;
    ids->file = mkostemp(path, O_CLOEXEC);
    if (ids->file < 0) return fail_file(ids, errno, err);
    unlink(path);
    return HR_OK;
}

hr_status hr_ids_file_flush(hr_ids_file *ids, hr_error *err)
{
    const char *at = (const char *)ids->held;
    for (size_t left = (size_t)ids->held_count * sizeof *ids->held; left;) {
        const ssize_t wrote = write(ids->file, at, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail_file(ids, errno, err);
        at += wrote;
        left -= (size_t)wrote;
    }
    ids->held_count = 0;
    return HR_OK;
}

hr_status hr_ids_file_add(void *context, const uint32_t *more, int64_t count, hr_error *err)
{
    hr_ids_file *ids = context;
    for (int64_t i = 0; i < count; i++) {
        ids->held[ids->held_count++] = (int32_t)more[i];
        ids->count++;
        if (ids->held_count < HR_IDS_FILE_HELD) continue;
        const hr_status status = hr_ids_file_flush(ids, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_status hr_ids_file_cut(hr_ids_file *ids, int64_t count, hr_error *err)
{
    const hr_status status = hr_ids_file_flush(ids, err);
    if (status != HR_OK) return status;
    if (lseek(ids->file, count * (int64_t)sizeof *ids->held, SEEK_SET) < 0)
        return fail_file(ids, errno, err);
    ids->count = count;
    return HR_OK;
}

hr_status hr_ids_file_read(const hr_ids_file *ids, int64_t first, int64_t count, int32_t *out,
                           hr_error *err)
{
    const int64_t width = sizeof *out;
    return hr_file_read(ids->file, ids->directory, first * width, out, count * width, err);
}

void hr_ids_file_close(hr_ids_file *ids)
{
    hr_file_close(&ids->file);
}
