/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights_stream.c - a ring of weights to read, and the thread that reads them. */
#define _GNU_SOURCE
#include "checkpoint/weights_stream.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/path.h"
#include "checkpoint/names.h"

enum { PIECE_BYTES = 4 << 20, ROOM = 2 * HR_FILE_BLOCK };
#define ENOUGH_NS INT64_C(100000000)

static int64_t piece_bytes(int64_t width)
{
    return hr_round_up(hr_max(PIECE_BYTES, width * (int64_t)sizeof(float)), HR_FILE_BLOCK);
}

static int64_t row_bytes(int64_t width)
{
    return hr_round_up(width * (int64_t)sizeof(float), HR_FILE_BLOCK) + ROOM;
}

int64_t hr_weights_stream_bytes(int64_t width)
{
    const int64_t alignment = hr_page_bytes() + 2 * HR_FILE_BLOCK + 4 * 64;
    return (int64_t)sizeof(hr_weights_stream) + HR_STORED_FILES_MAX * (int64_t)sizeof(int) +
           piece_bytes(width) + ROOM + row_bytes(width) + HR_STACK_BYTES + alignment;
}

static void *take_aligned(hr_region *region, int64_t bytes, int64_t align)
{
    uint8_t *taken = hr_region_take(region, bytes + align, 1);
    return taken ? taken + (align - (int64_t)((uintptr_t)taken % (uintptr_t)align)) % align : NULL;
}

hr_weights_stream *hr_weights_stream_place(hr_region *region, int64_t width)
{
    hr_weights_stream *stream = hr_region_take(region, 1, sizeof *stream);
    if (!stream) return NULL;
    stream->staging_bytes = piece_bytes(width);
    stream->direct = hr_region_take(region, HR_STORED_FILES_MAX, sizeof *stream->direct);
    stream->staging = take_aligned(region, stream->staging_bytes + ROOM, HR_FILE_BLOCK);
    stream->row = take_aligned(region, row_bytes(width), HR_FILE_BLOCK);
    stream->stack = take_aligned(region, HR_STACK_BYTES, hr_page_bytes());
    return stream->direct && stream->staging && stream->row && stream->stack ? stream : NULL;
}

/* ---- the thread */

static void *work(void *argument)
{
    hr_weights_stream *stream = argument;
    pthread_mutex_lock(&stream->mutex);
    while (!stream->closing) {
        if (stream->done == stream->begun || stream->failure.status != HR_OK) {
            pthread_cond_wait(&stream->moved, &stream->mutex);
            continue;
        }
        const hr_stream_job job = stream->jobs[stream->done % HR_STREAM_JOBS];
        hr_error err = { .status = HR_OK };
        hr_status status = HR_OK;
        pthread_mutex_unlock(&stream->mutex);
        const int64_t begin_ns = hr_clock_ns();
        const int64_t pieces = hr_weights_in_pieces(&stream->in, job.param, job.place,
                                                    stream->staging_bytes);
        for (int64_t piece = 0; piece < pieces && status == HR_OK; piece++)
            status = hr_weights_in_take(&stream->in, job.param, piece, job.place, stream->staging,
                                        stream->staging_bytes, &err);
        pthread_mutex_lock(&stream->mutex);
        stream->times.read_ns += hr_clock_ns() - begin_ns;
        stream->times.bytes += hr_weights_in_bytes_of(&stream->in, job.param, job.place);
        if (status != HR_OK) stream->failure = err;
        stream->done++;
        pthread_cond_broadcast(&stream->moved);
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

/* ---- files */

/* Opens the files again for direct I/O, all or none, and reads a block of each. */
static bool open_direct(hr_weights_stream *stream)
{
    hr_error ignored;
    bool all = true;
    for (int32_t f = 0; f < stream->in.file_count; f++) stream->direct[f] = -1;
    for (int32_t f = 0; f < stream->in.file_count && all; f++) {
        stream->direct[f] = hr_file_open_direct(stream->in.files[f]);
        all = stream->direct[f] >= 0 && hr_file_read_direct(stream->direct[f], stream->in.path, 0,
                                                            stream->staging, 8, &ignored);
    }
    return all;
}

static void close_direct(hr_weights_stream *stream)
{
    for (int32_t f = 0; f < stream->in.file_count; f++) hr_file_close(&stream->direct[f]);
    stream->in.direct = NULL;
}

hr_status hr_weights_stream_open(hr_weights_stream *stream, const hr_weights_in *in, hr_error *err)
{
    HR_ASSERT(!stream->open);
    stream->in = *in;
    stream->in.streams = true;
    stream->times = (hr_stream_times){ 0 };
    stream->begun = stream->done = 0;
    stream->failure.status = HR_OK;
    stream->closing = false;
    stream->is_direct = open_direct(stream);
    if (stream->is_direct) stream->in.direct = stream->direct;
    else close_direct(stream);
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->moved, NULL);
    const int code = hr_thread_start(&stream->thread, stream->stack, work, stream);
    stream->open = code == 0;
    if (stream->open) return HR_OK;
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->mutex);
    close_direct(stream);
    return hr_fail(err, HR_FAILURE, "cannot create the thread that reads %s: %s", in->path,
                   hr_reason(code));
}

void hr_weights_stream_close(hr_weights_stream *stream)
{
    if (!stream || !stream->open) return;
    pthread_mutex_lock(&stream->mutex);
    stream->closing = true;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->mutex);
    hr_thread_join(&stream->thread);
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->mutex);
    close_direct(stream);
    stream->open = false;
}

/* ---- the caller */

static const struct {
    long type;
    const char *name;
    bool in_memory;
} slow_places[] = { { TMPFS_MAGIC, "tmpfs", true }, { RAMFS_MAGIC, "ramfs", true },
                    { NFS_SUPER_MAGIC, "NFS" },     { SMB_SUPER_MAGIC, "SMB" },
                    { CIFS_SUPER_MAGIC, "SMB" },    { SMB2_SUPER_MAGIC, "SMB" },
                    { V9FS_MAGIC, "9p" },           { CEPH_SUPER_MAGIC, "Ceph" },
                    { FUSE_SUPER_MAGIC, "FUSE" },   { AFS_SUPER_MAGIC, "AFS" } };

bool hr_weights_stream_note(const hr_weights_stream *stream, char line[HR_ERROR_BYTES])
{
    const char *shown = hr_path_shown(stream->in.path);
    struct statfs system;
    if (statfs(stream->in.path, &system) != 0) system.f_type = 0;
    for (size_t i = 0; i < sizeof slow_places / sizeof *slow_places; i++) {
        if (system.f_type != slow_places[i].type) continue;
        snprintf(
            line, HR_ERROR_BYTES,
            slow_places[i].in_memory
                ? "%s: is in memory (%s): weights that stay there save no memory"
                : "%s: is on a network file system (%s), from which each step reads its weights",
            shown, slow_places[i].name);
        return true;
    }
    if (stream->is_direct) return false;
    snprintf(line, HR_ERROR_BYTES,
             "%s: its file system refuses direct I/O: weights are read through the page cache",
             shown);
    return true;
}

double hr_weights_stream_rate(hr_weights_stream *stream)
{
    const int64_t begin_ns = hr_clock_ns();
    struct stat there;
    const int64_t size = fstat(stream->in.files[0], &there) == 0 ? there.st_size : 0;
    const int64_t bytes = hr_min(stream->staging_bytes, size / HR_FILE_BLOCK * HR_FILE_BLOCK);
    int64_t done = 0, spent_ns = 0;
    for (int64_t at = 0; bytes && at + bytes <= size && spent_ns < ENOUGH_NS; at += bytes) {
        hr_error ignored;
        const bool read = stream->is_direct
                              ? hr_file_read_direct(stream->direct[0], "", at, stream->staging,
                                                    bytes, &ignored) != NULL
                              : hr_file_read(stream->in.files[0], "", at, stream->staging, bytes,
                                             &ignored) == HR_OK;
        if (!read) return 0;
        done += bytes;
        spent_ns = hr_clock_ns() - begin_ns;
    }
    return spent_ns ? 1e9 * (double)done / (double)spent_ns : 0;
}

hr_stream_times hr_weights_stream_times(const hr_weights_stream *stream)
{
    return stream->times;
}

/* Where a parameter without master is loaded: fp32 is the master of itself. */
static hr_weights_place place_of(const hr_weights_stream *stream, hr_base_part part, void *window,
                                 float *scales)
{
    const hr_program *program = stream->in.program;
    const bool wide = program->tensors[program->params[part.param].weight].dtype == HR_F32;
    return (hr_weights_place){ .master = wide ? window : NULL,
                               .weight = wide ? NULL : window,
                               .scales = scales,
                               .first_row = part.first,
                               .rows = part.columns };
}

static int64_t begin(void *context, hr_base_part part, void *window, float *scales)
{
    hr_weights_stream *stream = context;
    HR_ASSERT(stream->open && window);
    pthread_mutex_lock(&stream->mutex);
    while (stream->begun - stream->done == HR_STREAM_JOBS && stream->failure.status == HR_OK)
        pthread_cond_wait(&stream->moved, &stream->mutex);
    const int64_t ticket = stream->begun;
    if (stream->failure.status == HR_OK) {
        stream->jobs[ticket % HR_STREAM_JOBS] = (hr_stream_job){
            part.param, place_of(stream, part, window, scales)
        };
        stream->begun++;
        pthread_cond_broadcast(&stream->moved);
    }
    pthread_mutex_unlock(&stream->mutex);
    return ticket;
}

static hr_status wait_for(void *context, int64_t ticket, hr_error *err)
{
    hr_weights_stream *stream = context;
    HR_ASSERT(stream->open);
    pthread_mutex_lock(&stream->mutex);
    const int64_t begin_ns = hr_clock_ns();
    while (stream->done <= ticket && stream->failure.status == HR_OK)
        pthread_cond_wait(&stream->moved, &stream->mutex);
    stream->times.waited_ns += hr_clock_ns() - begin_ns;
    const hr_status status = stream->failure.status;
    if (status != HR_OK && err) *err = stream->failure;
    pthread_mutex_unlock(&stream->mutex);
    return status;
}

static void drain(void *context)
{
    hr_weights_stream *stream = context;
    if (!stream->open) return;
    pthread_mutex_lock(&stream->mutex);
    while (stream->done < stream->begun && stream->failure.status == HR_OK)
        pthread_cond_wait(&stream->moved, &stream->mutex);
    pthread_mutex_unlock(&stream->mutex);
}

/* The last place of an id among the ids before `at`, as far back as a search is much faster than a
 * read; -1: none. */
static int64_t seen_before(const int32_t *ids, int64_t at)
{
    enum { FAR = 16384 };
    for (int64_t i = at - 1; i >= 0 && i >= at - FAR; i--)
        if (ids[i] == ids[at]) return i;
    return -1;
}

/* Most tokens of a text are there more than once: their rows are read once. */
static hr_status look_up(void *context, int32_t param, const int32_t *ids, int64_t count, void *to,
                         hr_error *err)
{
    hr_weights_stream *stream = context;
    const hr_param *of = &stream->in.program->params[param];
    const hr_tensor *weight = &stream->in.program->tensors[of->weight];
    const int64_t width = of->dims[of->external_transposed ? 0 : 1];
    const int64_t bytes = width * hr_dtype_bytes((hr_dtype)weight->dtype);
    hr_status status = HR_OK;
    for (int64_t r = 0; r < count && status == HR_OK; r++) {
        uint8_t *row = (uint8_t *)to + r * bytes;
        const int64_t same = seen_before(ids, r);
        if (same >= 0) memcpy(row, (uint8_t *)to + same * bytes, (size_t)bytes);
        else status = hr_weights_in_take_row(&stream->in, param, ids[r], row, stream->row, err);
    }
    return status;
}

hr_base_source hr_weights_stream_source(hr_weights_stream *stream)
{
    return (hr_base_source){ begin, wait_for, drain, look_up, stream };
}
