/* SPDX-License-Identifier: Apache-2.0 */
/* report/curve.c - draws four lines of bars. The lowest bar is the minimum of live bytes and not
 * zero, so that changes are visible above the constant part. */
#include "report/curve.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "report/labels.h"

enum { LINES = 4 };

/* Height of a bar in units of 1 / `most` of the full height, 1 to `most`. */
static int64_t height_of(int64_t bytes, int64_t least, int64_t peak, int64_t most)
{
    if (peak == least) return most;
    return 1 +
           (int64_t)((double)(bytes - least) / (double)(peak - least) * (double)(most - 1) + 0.5);
}

/* The x axis: a line, the mark of the peak, the first and the last operation. */
static void put_axis(hr_writer *writer, const hr_plan_details *details, const char *peak)
{
    const int columns = HR_WORDS_BYTES_COLUMNS, width = details->curve_count;
    char first[HR_COUNT_BYTES], last[HR_COUNT_BYTES];
    const int length = (int)strlen(hr_count_print(details->curve_first, first));
    hr_put(writer, "%*s +", columns, "");
    for (int32_t i = 0; i < width; i++) hr_put(writer, "-");
    const int at = details->curve_peak, text = (int)strlen(peak);
    if (at + text < width || at < text)
        hr_put(writer, "\n%*s  %*s %s\n", columns, "", at + 1, "^", peak);
    else hr_put(writer, "\n%*s  %*s ^\n", columns, "", at - 1, peak);
    hr_put(writer, "%*s  %s%*s\n", columns, "operation", first, (int)hr_max(width - length, 0),
           hr_count_print(details->curve_last, last));
}

void hr_curve_put(hr_writer *writer, const hr_plan_details *details, const char *peak, bool blocks)
{
    static const char *const eighths[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                           "\u2585", "\u2586", "\u2587", "\u2588" };
    const int64_t steps = blocks ? 8 : 1;
    const int64_t most = details->curve_count ? details->curve[details->curve_peak] : 0;
    int64_t least = most;
    for (int32_t i = 0; i < details->curve_count; i++) least = hr_min(least, details->curve[i]);
    for (int32_t line = LINES - 1; line >= 0; line--) {
        char digits[HR_COUNT_BYTES] = "";
        if (line == LINES - 1) hr_count_print(most, digits);
        else if (line == LINES - 2) snprintf(digits, sizeof digits, "bytes");
        else if (line == 0) hr_count_print(least, digits);
        hr_put(writer, "%*s |", HR_WORDS_BYTES_COLUMNS, digits);
        int32_t columns = details->curve_count; /* no trailing blanks */
        while (columns > 0 &&
               height_of(details->curve[columns - 1], least, most, LINES * steps) <= line * steps)
            columns--;
        for (int32_t i = 0; i < columns; i++) {
            const int64_t height = height_of(details->curve[i], least, most, LINES * steps);
            const int64_t here = hr_min(hr_max(height - line * steps, 0), steps);
            hr_put(writer, "%s", blocks ? eighths[here] : here ? "#" : " ");
        }
        hr_put(writer, "\n");
    }
    put_axis(writer, details, peak);
}
