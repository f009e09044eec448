/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/metrics.c - each line is written with a single call, so that a reader that follows the
 * file sees complete objects. */
#define _GNU_SOURCE
#include "telemetry/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/path.h"
#include "base/writer.h"

/* ---- the file */

/* Opening a named pipe waits for its reader, but with a time limit. Only the open has a limit: a
 * slow reader loses nothing. */
static int open_there(const char *path, int flags)
{
    int fd = -1;
    for (int32_t left = 500; left > 0; left--) {
        fd = open(path, flags | O_NONBLOCK, 0666);
        if (fd >= 0 || errno != ENXIO) break;
        poll(NULL, 0, 10);
    }
    if (fd >= 0) fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

hr_status hr_metrics_open(hr_metrics *metrics, const char *path, char *line, hr_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    int fd = path ? open(path, flags | O_EXCL, 0666) : -1;
    const bool made = fd >= 0;
    if (path && !made) fd = open_there(path, flags);
    if (path && fd < 0)
        return hr_fail(err, hr_file_open_status(errno), "the metrics %s cannot be written: %s",
                       path, errno == ENXIO ? "the pipe has no reader" : hr_reason(errno));
    int file = fd;
    const hr_status status = made ? hr_directory_flush_name(path, err) : HR_OK;
    if (status != HR_OK) {
        unlink(path);
        hr_file_close(&file);
        return status;
    }
    *metrics = (hr_metrics){ .fd = fd, .path = path, .line = line, .made = made, .cut_due = true };
    return HR_OK;
}

/* First keys of each kind of line. A file has only the last kind if the run ended before its first
 * step. */
static const char *const beginnings[] = { "step", "event", "arena_bytes_planned" };
static const char save_beginning[] = "{\"event\":\"save\",";
enum { BEGINNINGS = sizeof beginnings / sizeof *beginnings };

/* Returns true when a complete line is an object with one of the keys. Modifies the text. */
static bool is_ours(char *text, int64_t bytes)
{
    hr_json json = hr_json_over(text, bytes);
    bool found = false;
    json.zeros = true;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&json);
        if (kind == HR_JSON_CLOSE) return found && hr_json_next(&json) == HR_JSON_END;
        if (kind != HR_JSON_KEY) return false;
        for (int32_t i = 0; i < BEGINNINGS; i++) found |= hr_json_is(&json, beginnings[i]);
        if (!hr_json_skip(&json, hr_json_next(&json))) return false;
    }
}

/* Returns true when a text without a newline can be the rest of our first line after a kill or a
 * power loss. After a power loss the file can have its length but contain zeros. */
static bool is_part_of_ours(const char *text, int64_t bytes)
{
    int64_t zeros = 0;
    while (zeros < bytes && !text[zeros]) zeros++;
    if (zeros == bytes) return true;
    for (int32_t i = 0; i < BEGINNINGS; i++) {
        char begin[32];
        const int64_t length = snprintf(begin, sizeof begin, "{\"%s\":", beginnings[i]);
        if (!memcmp(text, begin, (size_t)hr_min(bytes, length))) return true;
    }
    return false;
}

static hr_status check_first_line(int file, const char *path, int64_t bytes, bool may_be_torn,
                                  char *line, hr_error *err)
{
    const int64_t read = hr_min(bytes, HR_METRICS_BYTES - 1);
    const hr_status status = hr_file_read(file, path, 0, line, read, err);
    if (status != HR_OK || bytes == 0) return status;
    const char *end = memchr(line, '\n', (size_t)read);
    const bool torn = !end && read == bytes && may_be_torn;
    const bool ours = end ? is_ours(line, end - line) : torn && is_part_of_ours(line, bytes);
    if (ours) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s exists and is not a metrics file; give another path", path);
}

/* Checks that a line ends at `keep_bytes` and that the file is ours. */
static hr_status check_kept(int file, const char *path, int64_t bytes, int64_t keep_bytes,
                            char *line, hr_error *err)
{
    char end = '\n';
    if (keep_bytes < 0 || keep_bytes > bytes)
        return hr_fail(err, HR_CORRUPT,
                       "the metrics file %s has %lld bytes, the run needs its first %lld", path,
                       (long long)bytes, (long long)keep_bytes);
    hr_status status = check_first_line(file, path, bytes, keep_bytes == 0, line, err);
    if (status == HR_OK && keep_bytes)
        status = hr_file_read(file, path, keep_bytes - 1, &end, 1, err);
    if (status == HR_OK && end != '\n')
        return hr_fail(err, HR_CORRUPT,
                       "the metrics file %s has no end of line at byte %lld, where the run resumes",
                       path, (long long)keep_bytes);
    return status;
}

/* Returns true for regular files: only these can be checked. */
static bool is_file(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && (S_ISREG(there.st_mode) || S_ISDIR(there.st_mode));
}

hr_status hr_metrics_check(const char *path, char *line, hr_error *err)
{
    int file = -1;
    int64_t bytes;
    if (!path || !is_file(path)) return HR_OK;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status == HR_OK) status = check_first_line(file, path, bytes, true, line, err);
    hr_file_close(&file);
    return status;
}

bool hr_metrics_has_save(const char *path)
{
    enum { OVERLAP = sizeof save_beginning - 2 };
    char text[16 << 10];
    int file;
    int64_t bytes;
    bool found = false;
    hr_error ignored;
    if (hr_file_open(path, &file, &bytes, &ignored) != HR_OK) return false;
    for (int64_t at = 0; at < bytes && !found; at += (int64_t)sizeof text - OVERLAP) {
        const int64_t part = hr_min((int64_t)sizeof text, bytes - at);
        if (hr_file_read(file, path, at, text, part, &ignored) != HR_OK) break;
        found = memmem(text, (size_t)part, save_beginning, sizeof save_beginning - 1) != NULL;
    }
    hr_file_close(&file);
    return found;
}

hr_status hr_metrics_continue(hr_metrics *metrics, const char *path, int64_t keep_bytes, char *line,
                              hr_error *err)
{
    int file = -1;
    int64_t bytes = 0;
    hr_status status = HR_OK;
    if (!path) return hr_metrics_open(metrics, path, line, err);
    const bool there = hr_file_exists(path), regular = is_file(path);
    if (regular) status = hr_file_open(path, &file, &bytes, err);
    if (status == HR_OK && (regular || !there))
        status = check_kept(file, path, bytes, keep_bytes, line, err);
    hr_file_close(&file);
    if (status == HR_OK) status = hr_metrics_open(metrics, path, line, err);
    if (status == HR_OK && regular) metrics->bytes = keep_bytes;
    return status;
}

bool hr_metrics_are_one(const hr_metrics *a, const hr_metrics *b)
{
    struct stat first, second;
    return fstat(a->fd, &first) == 0 && fstat(b->fd, &second) == 0 && S_ISREG(first.st_mode) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

hr_status hr_metrics_claim(const hr_metrics *metrics, hr_error *err)
{
    struct stat what;
    if (metrics->fd < 0 || fstat(metrics->fd, &what) != 0 || !S_ISREG(what.st_mode)) return HR_OK;
    if (flock(metrics->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s: another run writes to it; wait until it ends, or give another file",
                   metrics->path);
}

hr_status hr_metrics_check_name(const hr_metrics *metrics, hr_error *err)
{
    struct stat what;
    if (metrics->fd < 0 || fstat(metrics->fd, &what) != 0 || what.st_nlink) return HR_OK;
    return hr_fail(err, HR_FAILURE,
                   "the metrics file %s was deleted; what is written to it is lost", metrics->path);
}

void hr_metrics_cut(hr_metrics *metrics, int64_t bytes)
{
    metrics->bytes = hr_min(metrics->bytes, bytes);
    metrics->cut_due = true;
}

hr_status hr_metrics_flush(const hr_metrics *metrics, hr_error *err)
{
    if (metrics->fd < 0 || fdatasync(metrics->fd) == 0 || errno == EINVAL || errno == EROFS)
        return HR_OK;
    return hr_fail(err, HR_FAILURE, "the metrics %s cannot be flushed: %s", metrics->path,
                   hr_reason(errno));
}

hr_status hr_metrics_close(hr_metrics *metrics, hr_error *err)
{
    const int fd = metrics->fd;
    metrics->fd = -1;
    if (fd < 0) return HR_OK;
    if (metrics->made && metrics->bytes == 0) unlink(metrics->path);
    if (close(fd) == 0) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the metrics %s cannot be written: %s", metrics->path,
                   hr_reason(errno));
}

/* ---- a line */

/* Truncates the file after its last complete line. Pipes and devices need no truncation. */
static bool cut(const hr_metrics *metrics)
{
    while (ftruncate(metrics->fd, metrics->bytes) != 0)
        if (errno != EINTR) return errno == EINVAL;
    return true;
}

static hr_status write_line(hr_metrics *metrics, int64_t length, hr_error *err)
{
    HR_ASSERT(length > 0 && length < HR_METRICS_BYTES && metrics->line[length - 1] == '\n');
    int code = metrics->cut_due && !cut(metrics) ? errno : 0;
    metrics->cut_due = code != 0;
    for (int64_t written = 0; written < length && !code;) {
        const ssize_t count = write(metrics->fd, metrics->line + written,
                                    (size_t)(length - written));
        if (count < 0 && errno == EINTR) continue;
        if (count > 0) written += count;
        else code = count < 0 ? errno : ENOSPC;
        if (code) metrics->cut_due = !cut(metrics);
    }
    if (code)
        return hr_fail(err, HR_FAILURE, "the metrics %s cannot be written: %s", metrics->path,
                       hr_reason(code));
    /* Flush the empty file, so that after a power loss no line follows zeros. */
    if (metrics->bytes == 0) (void)!fdatasync(metrics->fd);
    metrics->bytes += length;
    return HR_OK;
}

/* Non-finite numbers become null, because JSON has no words for them. */
static const char *print_json(double value, char text[HR_REAL_BYTES])
{
    return isfinite(value) ? hr_real_print(value, text) : "null";
}

static hr_writer begin(const hr_metrics *metrics)
{
    return (hr_writer){ metrics->line, HR_METRICS_BYTES };
}

static hr_status end(hr_metrics *metrics, const hr_writer *w, hr_error *err)
{
    HR_ASSERT(!w->cut);
    return write_line(metrics, w->used, err);
}

hr_status hr_metrics_write_step(hr_metrics *metrics, const hr_metrics_step *step, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char loss[HR_REAL_BYTES], lr[HR_REAL_BYTES], norm[HR_REAL_BYTES], z_loss[HR_REAL_BYTES];
    char speed[HR_REAL_BYTES], fraction[HR_REAL_BYTES], seconds[HR_REAL_BYTES];
    hr_writer w = begin(metrics);
    hr_put(&w, "{\"step\":%lld,\"loss\":%s,", (long long)step->step,
           print_json(step->no_targets ? (double)NAN : step->loss, loss));
    if (step->pulls)
        hr_put(&w, "\"z_loss\":%s,",
               print_json(step->no_targets ? (double)NAN : step->z_loss, z_loss));
    if (step->loss_scale > 0)
        hr_put(&w, "\"loss_scale\":%s,", print_json(step->loss_scale, z_loss));
    if (step->stage)
        hr_put(&w, "\"stage\":%lld,\"padding\":%s,", (long long)step->stage,
               print_json(step->padding, z_loss));
    hr_put(&w,
           "\"lr\":%s,\"grad_norm\":%s,\"tokens\":%lld,\"clock\":{\"tokens_per_second\":%s,"
           "\"fraction_of_ceiling\":%s,\"seconds\":%s}}\n",
           print_json(step->lr, lr), print_json(step->grad_norm, norm), (long long)step->tokens,
           print_json(step->tokens_per_second, speed),
           print_json(step->fraction_of_ceiling > 0 ? step->fraction_of_ceiling : (double)NAN,
                      fraction),
           print_json(step->seconds, seconds));
    HR_ASSERT(w.used <= HR_METRICS_STEP_BYTES + (step->stage ? HR_METRICS_STAGE_BYTES : 0) +
                            (step->loss_scale > 0 ? HR_METRICS_SCALE_BYTES : 0));
    return end(metrics, &w, err);
}

hr_status hr_metrics_write_last(hr_metrics *metrics, const hr_metrics_last *last, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char loss[HR_REAL_BYTES];
    hr_writer w = begin(metrics);
    hr_put(&w,
           "{\"arena_bytes_planned\":%lld,\"arena_bytes_used\":%lld,\"process_bytes_planned\":%lld,"
           "\"process_bytes_measured\":%lld,\"valid_loss\":%s}\n",
           (long long)last->arena_bytes_planned, (long long)last->arena_bytes_used,
           (long long)last->process_bytes_planned, (long long)last->process_bytes_measured,
           print_json(last->valid_loss, loss));
    return end(metrics, &w, err);
}

/* ---- events */

/* Writes a text as a value, and "cut" if it was truncated; leaves room for the end of the line. */
static void put_text(hr_writer *w, const char *name, const char *text, int64_t bytes)
{
    const int64_t end_bytes = 128;
    int64_t taken;
    hr_put(w, "\"%s\":\"", name);
    w->used += hr_json_escape(w->text + w->used, w->bytes - w->used - end_bytes, text, bytes,
                              &taken);
    hr_put(w, taken < bytes ? "\",\"cut\":true" : "\"");
}

hr_status hr_metrics_write_evaluation(hr_metrics *metrics, int64_t step, double valid_loss,
                                      int64_t tokens, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char loss[HR_REAL_BYTES];
    hr_writer w = begin(metrics);
    hr_put(&w, "{\"event\":\"evaluation\",\"step\":%lld,\"valid_loss\":%s,\"tokens\":%lld}\n",
           (long long)step, print_json(valid_loss, loss), (long long)tokens);
    return end(metrics, &w, err);
}

hr_status hr_metrics_write_sample(hr_metrics *metrics, int64_t step, const char *text,
                                  int64_t bytes, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    hr_writer w = begin(metrics);
    hr_put(&w, "{\"event\":\"sample\",\"step\":%lld,", (long long)step);
    put_text(&w, "text", text, bytes);
    hr_put(&w, "}\n");
    return end(metrics, &w, err);
}

hr_status hr_metrics_write_save(hr_metrics *metrics, int64_t step, const char *path, double seconds,
                                hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char text[HR_REAL_BYTES];
    hr_writer w = begin(metrics);
    hr_put(&w, "%s\"step\":%lld,", save_beginning, (long long)step);
    put_text(&w, "path", path, (int64_t)strlen(path));
    hr_put(&w, ",\"clock\":{\"seconds\":%s}}\n", print_json(seconds, text));
    return end(metrics, &w, err);
}

hr_status hr_metrics_write_signal(hr_metrics *metrics, int64_t step, const char *signal,
                                  hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    hr_writer w = begin(metrics);
    hr_put(&w, "{\"event\":\"signal\",\"signal\":\"%s\",\"step\":%lld}\n", signal, (long long)step);
    return end(metrics, &w, err);
}

hr_status hr_metrics_write_trouble(hr_metrics *metrics, int64_t step, const char *what,
                                   hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    hr_writer w = begin(metrics);
    hr_put(&w, "{\"event\":\"trouble\",\"step\":%lld,", (long long)step);
    put_text(&w, "what", what, (int64_t)strlen(what));
    hr_put(&w, "}\n");
    return end(metrics, &w, err);
}
