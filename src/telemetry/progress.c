/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/progress.c - pads the line over the previous one, so that no escape codes are needed.
 * */
#include "headroom/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/small_file.h"
#include "headroom/config.h"

static const int64_t period_ns = 200000000;

hr_progress hr_progress_begin(int fd)
{
    return (hr_progress){ .fd = fd, .terminal = isatty(fd) == 1 };
}

int32_t hr_progress_print(const hr_progress_line *line, char text[HR_PROGRESS_BYTES])
{
    char left[HR_COUNT_BYTES], used[HR_COUNT_BYTES], planned[HR_COUNT_BYTES],
        loss[48] = "no targets", rate[HR_COUNT_BYTES];
    hr_duration_print(floor(line->seconds_left), left);
    if (!line->no_targets)
        snprintf(loss, sizeof loss, fabs(line->loss) < 1e9 ? "loss %.4f" : "loss %.4g", line->loss);
    const double tokens = line->tokens_per_second;
    const bool counted = tokens >= 0 && tokens < 1e15;
    hr_count_print(counted ? (int64_t)(tokens + 0.5) : 0, rate);
    const int32_t length = snprintf(
        text, HR_PROGRESS_BYTES, "step %lld/%lld  %s  %s tokens/s  %s left  memory %s of %s",
        (long long)line->step, (long long)line->steps, loss, rate, left,
        hr_size_print(line->used_bytes, used), hr_size_print(line->planned_bytes, planned));
    return (int32_t)hr_min(length, HR_PROGRESS_BYTES - 1);
}

int32_t hr_progress_work_print(const char *work, int64_t done, int64_t total, double seconds,
                               char text[HR_PROGRESS_BYTES])
{
    char left[HR_COUNT_BYTES];
    int32_t length = snprintf(text, HR_PROGRESS_BYTES, "%.100s", work);
    if (total <= 0 && done > 0 && seconds >= 1) {
        hr_duration_print(floor(seconds), left);
        return length +
               snprintf(text + length, (size_t)(HR_PROGRESS_BYTES - length), ", %s so far", left);
    }
    if (total <= 0) return length;
    length += snprintf(text + length, (size_t)(HR_PROGRESS_BYTES - length), ": %lld %%",
                       (long long)((double)done * 100 / (double)total));
    if (done <= 0 || seconds < 1) return length;
    hr_duration_print(floor(seconds * (double)(total - done) / (double)done), left);
    return length +
           snprintf(text + length, (size_t)(HR_PROGRESS_BYTES - length), ", %s left", left);
}

static int32_t terminal_columns(int fd)
{
    struct winsize size;
    const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

/* Writes `\r`, the text, enough blanks to cover the previous line, and then `behind`. */
static void rewrite(hr_progress *progress, const char *text, int32_t length, const char *behind)
{
    char out[2 * HR_PROGRESS_BYTES + 4];
    const int32_t blanks = (int32_t)hr_max(progress->columns_shown - length, 0);
    const int count = snprintf(out, sizeof out, "\r%.*s%*s%s", length, text, blanks, "", behind);
    progress->columns_shown = length;
    if (write(progress->fd, out, (size_t)count) != count) progress->terminal = false;
}

static bool is_due(const hr_progress *progress, int64_t now_ns)
{
    const bool soon = progress->shown_ns && now_ns - progress->shown_ns < period_ns;
    return progress->terminal && !soon;
}

/* The last column stays free: a full line would wrap, and the next one would be written below. */
static void show(hr_progress *progress, const char *text, int64_t now_ns)
{
    const int64_t columns = hr_min(terminal_columns(progress->fd) - 1, HR_PROGRESS_BYTES - 1);
    rewrite(progress, text, (int32_t)hr_min((int64_t)strlen(text), columns), "");
    progress->shown_ns = now_ns;
}

void hr_progress_show(hr_progress *progress, const hr_progress_line *line, int64_t now_ns)
{
    char text[HR_PROGRESS_BYTES];
    const bool last = progress->terminal && line->step >= line->steps;
    if (!last && !is_due(progress, now_ns)) return;
    hr_progress_print(line, text);
    show(progress, text, now_ns);
}

void hr_progress_note(hr_progress *progress, const char *text, int64_t now_ns)
{
    if (is_due(progress, now_ns)) show(progress, text, now_ns);
}

void hr_progress_end(hr_progress *progress)
{
    if (progress->terminal && progress->columns_shown) rewrite(progress, "", 0, "\r");
    progress->columns_shown = 0;
}

int64_t hr_progress_resident_bytes(void)
{
    char text[128];
    long long pages, resident;
    hr_small_file_read("/proc/self/statm", text, sizeof text);
    if (sscanf(text, "%lld %lld", &pages, &resident) != 2) return -1;
    return resident * sysconf(_SC_PAGESIZE);
}
