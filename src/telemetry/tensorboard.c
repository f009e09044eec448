/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/tensorboard.c - a record is a length, its checksum, an event, its checksum; an event is
 * a protocol buffer, of which these fields are needed:
 *
 *     Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *             SessionLog session_log = 7; }
 *     SessionLog { enum status = 1 { START = 1; } }
 *     Summary { repeated Value value = 1; }    Value { string tag = 1; float simple_value = 2; } */
#include "telemetry/tensorboard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/directory.h"
#include "base/path.h"

/* The wire type of a field, which is part of its key. */
enum { VARINT = 0, EIGHT_BYTES = 1, WITH_LENGTH = 2, FOUR_BYTES = 5 };
enum {
    RECORD_BYTES = HR_TENSORBOARD_RECORD_BYTES,
    EVENT_BYTES = RECORD_BYTES - 16,
    SCALARS_MAX = 9,
    TAG_BYTES = 24
};

typedef struct {
    const char *tag;
    double value;
} scalar;

typedef struct {
    uint8_t bytes[EVENT_BYTES];
    int64_t used;
} message;

/* ---- messages */

static void put(message *m, const void *bytes, int64_t count)
{
    HR_ASSERT(m->used + count <= EVENT_BYTES);
    memcpy(m->bytes + m->used, bytes, (size_t)count);
    m->used += count;
}

/* Writes seven bits per byte, lowest first. */
static void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put(m, &(uint8_t){ (uint8_t)(value | 0x80) }, 1);
    put(m, &(uint8_t){ (uint8_t)value }, 1);
}

static void put_key(message *m, int32_t field, int32_t how)
{
    put_varint(m, (uint64_t)(field << 3 | how));
}

static void put_bytes(message *m, int32_t field, const void *bytes, int64_t count)
{
    put_key(m, field, WITH_LENGTH);
    put_varint(m, (uint64_t)count);
    put(m, bytes, count);
}

/* Numbers are little-endian, like this processor. */
static message event_at(double wall_seconds, int64_t step)
{
    message m = { .used = 0 };
    put_key(&m, 1, EIGHT_BYTES);
    put(&m, &wall_seconds, sizeof wall_seconds);
    put_key(&m, 2, VARINT);
    put_varint(&m, (uint64_t)step);
    return m;
}

static void put_scalar(message *summary, const scalar *s)
{
    message value = { .used = 0 };
    const float narrow = (float)s->value;
    const int64_t tag_bytes = (int64_t)strlen(s->tag);
    HR_ASSERT(tag_bytes < TAG_BYTES);
    put_bytes(&value, 1, s->tag, tag_bytes);
    put_key(&value, 2, FOUR_BYTES);
    put(&value, &narrow, sizeof narrow);
    put_bytes(summary, 1, value.bytes, value.used);
}

/* ---- records */

/* The checksum is masked: a CRC of data that contains CRCs is weak. */
static uint32_t checksum(const hr_tensorboard *board, const void *bytes, int64_t count)
{
    const uint32_t crc = hr_crc32c(bytes, count, board->instruction);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static hr_status fail(const hr_tensorboard *board, const char *what, int code, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "%.300s/%s: cannot be %s: %s", board->directory, board->name,
                   what, hr_reason(code));
}

/* Truncates the file after its last complete record. */
static bool cut(const hr_tensorboard *board)
{
    while (ftruncate(board->fd, board->bytes) != 0)
        if (errno != EINTR) return false;
    return true;
}

hr_status hr_tensorboard_push(hr_tensorboard *board, hr_error *err)
{
    if (board->fd < 0 || board->used == 0) return HR_OK;
    int code = board->cut_due && !cut(board) ? errno : 0;
    board->cut_due = code != 0;
    for (int64_t written = 0; written < board->used && !code;) {
        const ssize_t count = write(board->fd, board->buffer + written,
                                    (size_t)(board->used - written));
        if (count < 0 && errno == EINTR) continue;
        if (count > 0) written += count;
        else code = count < 0 ? errno : ENOSPC;
        if (code) board->cut_due = !cut(board);
    }
    if (code) return fail(board, "written", code, err);
    board->bytes += board->used;
    board->used = 0;
    return HR_OK;
}

static void add_record(hr_tensorboard *board, const message *m)
{
    const uint64_t length = (uint64_t)m->used;
    const uint32_t of_length = checksum(board, &length, sizeof length);
    const uint32_t of_event = checksum(board, m->bytes, m->used);
    char *at = board->buffer + board->used;
    memcpy(at, &length, sizeof length);
    memcpy(at + 8, &of_length, sizeof of_length);
    memcpy(at + 12, m->bytes, (size_t)m->used);
    memcpy(at + 12 + m->used, &of_event, sizeof of_event);
    board->used += m->used + 16;
    HR_ASSERT(board->used <= HR_TENSORBOARD_BYTES);
}

/* Flushes also when the clock was set back. */
static bool is_due(const hr_tensorboard *board, double wall_seconds)
{
    const double passed = wall_seconds - board->tried_seconds;
    return !(passed >= 0 && passed < HR_TENSORBOARD_SECONDS);
}

static hr_status write_scalars(hr_tensorboard *board, double wall_seconds, int64_t step,
                               const scalar *scalars, int32_t count, hr_error *err)
{
    message event = event_at(wall_seconds, step), summary = { .used = 0 };
    for (int32_t i = 0; i < count; i++) put_scalar(&summary, &scalars[i]);
    put_bytes(&event, 5, summary.bytes, summary.used);
    board->any = true;
    const bool full = board->used + RECORD_BYTES > HR_TENSORBOARD_BYTES;
    if (!full) add_record(board, &event);
    if (!full && !is_due(board, wall_seconds)) return HR_OK;
    board->tried_seconds = wall_seconds;
    const hr_status status = hr_tensorboard_push(board, err);
    if (full && status == HR_OK) add_record(board, &event);
    return status;
}

hr_status hr_tensorboard_write_step(hr_tensorboard *board, double wall_seconds,
                                    const hr_metrics_step *step, hr_error *err)
{
    if (board->fd < 0) return HR_OK;
    scalar scalars[SCALARS_MAX];
    int32_t count = 0;
    if (!step->no_targets) scalars[count++] = (scalar){ "loss", step->loss };
    scalars[count++] = (scalar){ "lr", step->lr };
    scalars[count++] = (scalar){ "grad_norm", step->grad_norm };
    scalars[count++] = (scalar){ "tokens_per_second", step->tokens_per_second };
    if (step->fraction_of_ceiling > 0)
        scalars[count++] = (scalar){ "fraction_of_ceiling", step->fraction_of_ceiling };
    if (step->stage) {
        scalars[count++] = (scalar){ "stage", (double)step->stage };
        scalars[count++] = (scalar){ "padding", step->padding };
    }
    if (step->loss_scale > 0) scalars[count++] = (scalar){ "loss_scale", step->loss_scale };
    if (step->pulls && !step->no_targets) scalars[count++] = (scalar){ "z_loss", step->z_loss };
    return write_scalars(board, wall_seconds, step->step, scalars, count, err);
}

hr_status hr_tensorboard_write_evaluation(hr_tensorboard *board, double wall_seconds, int64_t step,
                                          double valid_loss, hr_error *err)
{
    if (board->fd < 0) return HR_OK;
    const scalar one = { "valid_loss", valid_loss };
    return write_scalars(board, wall_seconds, step, &one, 1, err);
}

/* ---- the file */

static const char prefix[] = "events.out.tfevents.";

/* Returns the seconds in a file name of ours (ten digits); 0 for other names. */
static int64_t seconds_of(const char *name)
{
    int64_t seconds = 0;
    if (strncmp(name, prefix, sizeof prefix - 1)) return 0;
    name += sizeof prefix - 1;
    for (int32_t i = 0; i < 10; i++) {
        if (name[i] < '0' || name[i] > '9') return 0;
        seconds = seconds * 10 + name[i] - '0';
    }
    return name[10] >= '0' && name[10] <= '9' ? 0 : seconds;
}

/* Returns the newest seconds of all files; 0: no file. */
static int64_t newest_seconds(const char *path)
{
    int64_t newest = 0;
    DIR *directory = opendir(path);
    if (!directory) return 0;
    for (const struct dirent *entry; (entry = readdir(directory));)
        newest = hr_max(newest, seconds_of(entry->d_name));
    closedir(directory);
    return newest;
}

/* Creates a file with a new name. TensorBoard reads files in the order of their names. */
static hr_status make_file(hr_tensorboard *board, double wall_seconds, hr_error *err)
{
    enum { ATTEMPTS = 100 };
    const int64_t least = 1000000000, most = 9999999999; /* ten digits */
    char path[PATH_MAX], host[64] = "";
    const bool sane = wall_seconds >= (double)least && wall_seconds <= (double)most;
    const int64_t newest = newest_seconds(board->directory);
    int64_t seconds = hr_max(sane ? (int64_t)wall_seconds : least, newest + 1);
    if (gethostname(host, sizeof host - 1) != 0 || !*host || strchr(host, '/'))
        strcpy(host, "localhost");
    for (int32_t i = 0; i < ATTEMPTS; i++, seconds++) {
        snprintf(board->name, sizeof board->name, "%s%010lld.%s", prefix,
                 (long long)hr_min(seconds, most), host);
        const hr_status status = hr_path_join(board->directory, board->name, path, sizeof path,
                                              err);
        if (status != HR_OK) return status;
        board->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (board->fd >= 0) return HR_OK;
        if (errno != EEXIST) break;
    }
    return fail(board, "created", errno, err);
}

static message session_at(double wall_seconds, int64_t first_step)
{
    static const uint8_t start[] = { 1 << 3 | VARINT, 1 };
    message event = event_at(wall_seconds, first_step);
    put_bytes(&event, 7, start, sizeof start);
    return event;
}

static void begin(hr_tensorboard *board, int64_t first_step, double wall_seconds)
{
    static const char version[] = "brain.Event:2";
    message event = event_at(wall_seconds, 0);
    put_bytes(&event, 3, version, sizeof version - 1);
    add_record(board, &event);
    event = session_at(wall_seconds, first_step);
    add_record(board, &event);
}

hr_status hr_tensorboard_restart(hr_tensorboard *board, double wall_seconds, int64_t first_step,
                                 hr_error *err)
{
    if (board->fd < 0) return HR_OK;
    const hr_status status = hr_tensorboard_push(board, err);
    if (status != HR_OK) return status;
    const message event = session_at(wall_seconds, first_step);
    add_record(board, &event);
    return HR_OK;
}

hr_status hr_tensorboard_open(hr_tensorboard *board, const char *directory, int64_t first_step,
                              double wall_seconds, char *buffer, hr_error *err)
{
    hr_tensorboard made = { .fd = -1,
                            .directory = directory,
                            .buffer = buffer,
                            .tried_seconds = wall_seconds,
                            .instruction = hr_crc32c_has_instruction() };
    hr_status status = directory ? hr_directory_make(directory, err) : HR_OK;
    if (status == HR_OK && directory) status = make_file(&made, wall_seconds, err);
    if (status != HR_OK) return status;
    if (directory) begin(&made, first_step, wall_seconds);
    *board = made;
    return HR_OK;
}

hr_status hr_tensorboard_flush(const hr_tensorboard *board, hr_error *err)
{
    if (board->fd < 0 || fdatasync(board->fd) == 0) return HR_OK;
    return fail(board, "flushed", errno, err);
}

hr_status hr_tensorboard_close(hr_tensorboard *board, hr_error *err)
{
    if (board->fd < 0) return HR_OK;
    char path[PATH_MAX];
    const hr_status status = board->any ? hr_tensorboard_push(board, err) : HR_OK;
    const int closed = close(board->fd) == 0 ? 0 : errno;
    board->fd = -1;
    if (board->bytes == 0 &&
        hr_path_join(board->directory, board->name, path, sizeof path, NULL) == HR_OK &&
        unlink(path) == 0)
        rmdir(board->directory); /* unless it has files of earlier runs */
    if (status != HR_OK || !closed) return status;
    return fail(board, "closed", closed, err);
}
