/* SPDX-License-Identifier: Apache-2.0 */
/* report/metrics.c - lines are formatted whole and written with one call each, so that a reader
 * that follows the file sees whole objects. */
#include "report/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/number.h"

hr_status hr_metrics_open(hr_metrics *metrics, const char *path, char *line, hr_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    int fd = path ? open(path, flags | O_EXCL, 0666) : -1;
    const bool made = fd >= 0;
    if (path && !made) fd = open(path, flags, 0666);
    if (path && fd < 0)
        return hr_fail(err, HR_USAGE, "the metrics %s cannot be written: %s", path,
                       strerror(errno));
    *metrics = (hr_metrics){ .fd = fd, .path = path, .line = line, .made = made };
    return HR_OK;
}

/* JSON has no word for what is not finite. */
static const char *print_json(double value, char text[HR_REAL_BYTES])
{
    return isfinite(value) ? hr_real_print(value, text) : "null";
}

/* Cuts the file behind its whole lines. A pipe or a device cannot be cut, and need not be. */
static void keep_whole_lines(const hr_metrics *metrics)
{
    const int error = errno;
    if (ftruncate(metrics->fd, metrics->bytes) == 0)
        (void)!lseek(metrics->fd, metrics->bytes, SEEK_SET);
    errno = error;
}

static hr_status write_line(hr_metrics *metrics, int length, hr_error *err)
{
    HR_ASSERT(length > 0 && length < HR_METRICS_BYTES);
    if (metrics->bytes == 0) keep_whole_lines(metrics);
    for (int written = 0; written < length;) {
        const ssize_t count = write(metrics->fd, metrics->line + written,
                                    (size_t)(length - written));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            keep_whole_lines(metrics);
            return hr_fail(err, HR_FAILURE, "the metrics %s cannot be written: %s", metrics->path,
                           strerror(errno));
        }
        written += (int)count;
    }
    metrics->bytes += length;
    return HR_OK;
}

hr_status hr_metrics_write_step(hr_metrics *metrics, const hr_metrics_step *step, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char loss[HR_REAL_BYTES], lr[HR_REAL_BYTES], norm[HR_REAL_BYTES];
    char speed[HR_REAL_BYTES], seconds[HR_REAL_BYTES];
    char z_loss[HR_REAL_BYTES], beside[HR_REAL_BYTES + 16] = "";
    if (step->pulls)
        snprintf(beside, sizeof beside, "\"z_loss\":%s,", print_json(step->z_loss, z_loss));
    const int length = snprintf(
        metrics->line, HR_METRICS_BYTES,
        "{\"step\":%lld,\"loss\":%s,%s\"lr\":%s,\"grad_norm\":%s,\"tokens\":%lld,"
        "\"clock\":{\"tokens_per_second\":%s,\"seconds\":%s}}\n",
        (long long)step->step, print_json(step->loss, loss), beside, print_json(step->lr, lr),
        print_json(step->grad_norm, norm), (long long)step->tokens,
        print_json(step->tokens_per_second, speed), print_json(step->seconds, seconds));
    return write_line(metrics, length, err);
}

hr_status hr_metrics_write_last(hr_metrics *metrics, const hr_metrics_last *last, hr_error *err)
{
    if (metrics->fd < 0) return HR_OK;
    char loss[HR_REAL_BYTES];
    const int length = snprintf(
        metrics->line, HR_METRICS_BYTES,
        "{\"arena_bytes_planned\":%lld,\"arena_bytes_used\":%lld,\"process_bytes_planned\":%lld,"
        "\"process_bytes_measured\":%lld,\"valid_loss\":%s}\n",
        (long long)last->arena_bytes_planned, (long long)last->arena_bytes_used,
        (long long)last->process_bytes_planned, (long long)last->process_bytes_measured,
        print_json(last->valid_loss, loss));
    return write_line(metrics, length, err);
}

hr_status hr_metrics_close(hr_metrics *metrics, hr_error *err)
{
    const int fd = metrics->fd;
    metrics->fd = -1;
    if (fd < 0) return HR_OK;
    if (metrics->made && metrics->bytes == 0) unlink(metrics->path);
    if (close(fd) == 0) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the metrics %s cannot be written: %s", metrics->path,
                   strerror(errno));
}
