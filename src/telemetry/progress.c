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
#include "base/writer.h"
#include "headroom/config.h"

static const int64_t period_ns = 200000000;

hr_progress hr_progress_begin(int fd)
{
    return (hr_progress){ .fd = fd, .terminal = isatty(fd) == 1 };
}

/* A mean of all losses so far: when there is no room, two means become one of twice as many. */
void hr_progress_curve_add(hr_progress_curve *c, double loss)
{
    if (!isfinite(loss)) return;
    if (c->count == HR_PROGRESS_CURVE) {
        for (int32_t i = 0; i < HR_PROGRESS_CURVE / 2; i++)
            c->means[i] = (c->means[2 * i] + c->means[2 * i + 1]) / 2;
        c->count /= 2;
        c->each *= 2;
    }
    if (!c->each) c->each = 1;
    c->sum += loss;
    if (++c->added < c->each) return;
    c->means[c->count++] = c->sum / (double)c->added;
    c->sum = 0;
    c->added = 0;
}

static void put_curve(const hr_progress_curve *c, hr_writer *writer)
{
    enum { LEVELS = 8 };
    double low = c->means[0], high = c->means[0];
    for (int32_t i = 1; i < c->count; i++) {
        low = fmin(low, c->means[i]);
        high = fmax(high, c->means[i]);
    }
    hr_put(writer, " ");
    for (int32_t i = 0; i < c->count; i++) {
        const double share = high > low ? (c->means[i] - low) / (high - low) : 0;
        /* U+2581 and above: one eighth to a full block */
        hr_put(writer, "\xe2\x96%c", (char)(0x81 + (int)fmin(share * LEVELS, LEVELS - 1)));
    }
}

int32_t hr_progress_print(const hr_progress_line *line, char text[HR_PROGRESS_BYTES])
{
    char left[HR_COUNT_BYTES], used[HR_COUNT_BYTES], planned[HR_COUNT_BYTES], rate[HR_COUNT_BYTES];
    hr_writer w = { text, HR_PROGRESS_BYTES };
    const double tokens = line->tokens_per_second;
    const bool counted = tokens >= 0 && tokens < 1e15;
    hr_put(&w, "step %lld/%lld  ", (long long)line->step, (long long)line->steps);
    if (line->no_targets) hr_put(&w, "no targets");
    else hr_put(&w, fabs(line->loss) < 1e9 ? "loss %.4f" : "loss %.4g", line->loss);
    if (line->curve && line->curve->count > 1) put_curve(line->curve, &w);
    hr_put(&w, "  %s tokens/s", hr_count_print(counted ? (int64_t)(tokens + 0.5) : 0, rate));
    if (line->fraction_of_ceiling > 0)
        hr_put(&w, " (%.0f %% of the ceiling)", 100 * line->fraction_of_ceiling);
    hr_put(&w, "  %s left  memory %s of %s", hr_duration_print(floor(line->seconds_left), left),
           hr_size_print(line->used_bytes, used), hr_size_print(line->planned_bytes, planned));
    if (line->valid > 0) hr_put(&w, "  validation %.4f", line->valid);
    if (line->saved > 0) hr_put(&w, "  saved at %lld", (long long)line->saved);
    return (int32_t)w.used;
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

/* The bytes of a text that fit in so many columns, and their columns: a character of UTF-8 is one
 * column. */
static int32_t cut(const char *text, int64_t columns, int32_t *shown)
{
    int32_t bytes = 0;
    for (*shown = 0; text[bytes]; bytes++) {
        const bool begins = ((uint8_t)text[bytes] & 0xc0) != 0x80;
        if (begins && *shown == columns) break;
        *shown += begins;
    }
    return bytes;
}

/* Writes `\r`, the text, enough blanks to cover the previous line, and then `behind`. */
static void rewrite(hr_progress *progress, const char *text, int64_t columns, const char *behind)
{
    char out[2 * HR_PROGRESS_BYTES + 4];
    int32_t shown;
    const int32_t length = cut(text, columns, &shown);
    const int32_t blanks = (int32_t)hr_max(progress->columns_shown - shown, 0);
    const int count = snprintf(out, sizeof out, "\r%.*s%*s%s", length, text, blanks, "", behind);
    progress->columns_shown = shown;
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
    rewrite(progress, text, columns, "");
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
