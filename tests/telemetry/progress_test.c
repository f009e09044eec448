/* SPDX-License-Identifier: Apache-2.0 */
/* progress_test.c - the progress line on a pseudo-terminal, and none on a pipe. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "headroom/progress.h"
#include "require.h"

static const hr_progress_line middle = { 40, 300, 3.25, 18400.7, 83.9, 62000000, 62914560 };

/* Opens a terminal of this width; output to *terminal is read from the returned descriptor. Skips
 * the test when there is no /dev/ptmx or /dev/pts, as in a bare chroot. */
static int open_terminal(int *terminal, unsigned short columns)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    char name[64] = "";
    *terminal = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 &&
        ptsname_r(master, name, sizeof name) == 0)
        *terminal = open(name, O_RDWR | O_NOCTTY);
    if (*terminal < 0) {
        const int reason = errno;
        if (master >= 0) close(master);
        hr_test_skip("terminal", "no pseudo-terminal (%s); is /dev/pts mounted?", strerror(reason));
    }
    const struct winsize size = { .ws_row = 24, .ws_col = columns };
    assert_int_equal(ioctl(*terminal, TIOCSWINSZ, &size), 0);
    assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
    return master;
}

static int64_t drain(int fd, char *text, size_t bytes)
{
    const ssize_t count = read(fd, text, bytes - 1);
    text[count > 0 ? count : 0] = 0;
    return count;
}

/* Means of equal numbers of losses, whatever their number. */
static void a_curve_keeps_the_shape_of_a_run(void **state)
{
    (void)state;
    hr_progress_curve curve = { 0 };
    for (int32_t i = 0; i < 1000; i++) {
        hr_progress_curve_add(&curve, i == 3 ? NAN : 1000 - i);
        assert_true(curve.count <= HR_PROGRESS_CURVE);
    }
    assert_true(curve.count > HR_PROGRESS_CURVE / 2);
    for (int32_t i = 1; i < curve.count; i++) {
        const double fall = curve.means[i - 1] - curve.means[i];
        assert_true(fabs(fall - (double)curve.each) < 1.01); /* one is missing */
    }
    hr_progress_line line = middle;
    char text[HR_PROGRESS_BYTES];
    line.curve = &(hr_progress_curve){ .means = { 4, 3, 2, 0 }, .count = 4 };
    line.fraction_of_ceiling = 0.812;
    line.valid = 3.5;
    line.saved = 30;
    const int32_t length = hr_progress_print(&line, text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(
        text, "step 40/300  loss 3.2500 \xe2\x96\x88\xe2\x96\x87\xe2\x96\x85\xe2\x96\x81  "
              "18,401 tokens/s (81 % of the ceiling)  83 s left  memory 59.1 MiB of "
              "60.0 MiB  validation 3.5000  saved at 30");
}

/* Never in the middle of a character. */
static void a_curve_is_cut_at_characters(void **state)
{
    (void)state;
    char text[4 * HR_PROGRESS_BYTES];
    hr_progress_line line = middle;
    line.curve = &(hr_progress_curve){ .means = { 4, 3, 2, 0 }, .count = 4 };
    for (unsigned short columns = 26; columns < 32; columns++) {
        int terminal;
        const int master = open_terminal(&terminal, columns);
        hr_progress progress = hr_progress_begin(terminal);
        hr_progress_show(&progress, &line, 1);
        const int64_t bytes = drain(master, text, sizeof text);
        const int32_t blocks = (int32_t)columns - 1 - 25 < 4 ? columns - 1 - 25 : 4;
        const int32_t others = columns - 1 - blocks;
        assert_int_equal(bytes, 1 + others + 3 * blocks);
        assert_int_equal(progress.columns_shown, columns - 1);
        close(master);
        close(terminal);
    }
}

static void the_line_has_every_figure(void **state)
{
    (void)state;
    char text[HR_PROGRESS_BYTES];
    const int32_t length = hr_progress_print(&middle, text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text,
                        "step 40/300  loss 3.2500  18,401 tokens/s  83 s left  memory 59.1 MiB "
                        "of 60.0 MiB");
}

static void extreme_figures_fit_the_line(void **state)
{
    (void)state;
    const hr_progress_line lines[] = {
        { INT64_MAX, INT64_MAX, -1e308, 1e308, 1e300, INT64_MAX, INT64_MAX },
        { 0, 0, NAN, INFINITY, NAN, 0, 0 },
        { 1, 2, 1, 1, 3723, 0, 0 },
        { 1, 2, 1, 1, -1, 0, 0 },
    };
    char text[HR_PROGRESS_BYTES];
    assert_true(hr_progress_print(&lines[0], text) < HR_PROGRESS_BYTES);
    assert_non_null(strstr(text, "  loss -1e+308  "));
    hr_progress_print(&lines[1], text);
    assert_non_null(strstr(text, "loss nan"));
    assert_non_null(strstr(text, "  ? left"));
    hr_progress_print(&lines[2], text);
    assert_non_null(strstr(text, "  1 h 2 min left"));
    hr_progress_print(&lines[3], text);
    assert_non_null(strstr(text, "  ? left"));
}

static void nothing_is_written_to_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    char text[8];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    hr_progress progress = hr_progress_begin(ends[1]);
    hr_progress_show(&progress, &middle, 1000000000);
    hr_progress_end(&progress);
    assert_int_equal(drain(ends[0], text, sizeof text), -1);
    close(ends[0]);
    close(ends[1]);
}

static void a_terminal_shows_one_line_that_is_cleared_at_the_end(void **state)
{
    (void)state;
    int terminal;
    char text[1024], line[HR_PROGRESS_BYTES];
    const int master = open_terminal(&terminal, 120);
    const int32_t length = hr_progress_print(&middle, line);
    hr_progress progress = hr_progress_begin(terminal);
    hr_progress_show(&progress, &middle, 1000000000);
    drain(master, text, sizeof text);
    assert_int_equal(text[0], '\r');
    assert_string_equal(text + 1, line);
    hr_progress_end(&progress);
    assert_int_equal(drain(master, text, sizeof text), length + 2);
    assert_int_equal(strspn(text + 1, " "), length);
    assert_true(text[0] == '\r' && text[length + 1] == '\r');
    hr_progress_end(&progress);
    assert_int_equal(drain(master, text, sizeof text), -1);
    close(terminal);
    close(master);
}

static void a_shorter_line_covers_the_longer_one(void **state)
{
    (void)state;
    int terminal;
    char text[1024];
    const int master = open_terminal(&terminal, 200);
    hr_progress_line longer = middle;
    longer.tokens_per_second = 123456789;
    hr_progress progress = hr_progress_begin(terminal);
    hr_progress_show(&progress, &longer, 1000000000);
    const int64_t before = drain(master, text, sizeof text);
    hr_progress_show(&progress, &middle, 2000000000);
    assert_int_equal(drain(master, text, sizeof text), before);
    close(terminal);
    close(master);
}

static void a_narrow_terminal_gets_a_line_that_does_not_wrap(void **state)
{
    (void)state;
    int terminal;
    char text[1024];
    const int master = open_terminal(&terminal, 20);
    hr_progress progress = hr_progress_begin(terminal);
    hr_progress_show(&progress, &middle, 1000000000);
    assert_int_equal(drain(master, text, sizeof text), 1 + 19);
    close(terminal);
    close(master);
}

static void the_line_changes_five_times_a_second_and_at_the_last_step(void **state)
{
    (void)state;
    int terminal;
    char text[1024];
    const int master = open_terminal(&terminal, 120);
    hr_progress progress = hr_progress_begin(terminal);
    int32_t shown = 0;
    for (int64_t now_ns = 1000000000; now_ns < 2000000000; now_ns += 10000000) {
        hr_progress_show(&progress, &middle, now_ns);
        shown += drain(master, text, sizeof text) > 0;
    }
    assert_int_equal(shown, 5);
    hr_progress_line last = middle;
    last.step = last.steps;
    hr_progress_show(&progress, &last, 2000000001);
    assert_true(drain(master, text, sizeof text) > 0);
    close(terminal);
    close(master);
}

static void a_note_replaces_the_progress_line(void **state)
{
    (void)state;
    int terminal;
    char text[1024];
    const int master = open_terminal(&terminal, 120);
    hr_progress progress = hr_progress_begin(terminal);
    hr_progress_note(&progress, "counting words", 1000000000);
    hr_progress_note(&progress, "too soon", 1100000000);
    drain(master, text, sizeof text);
    assert_string_equal(text, "\rcounting words");
    close(terminal);
    close(master);
}

static void resident_bytes_grow_when_memory_is_touched(void **state)
{
    (void)state;
    enum { BYTES = 8 << 20 };
    const int64_t before = hr_progress_resident_bytes();
    char *memory = malloc(BYTES);
    assert_non_null(memory);
    memset(memory, 1, BYTES);
    assert_true(before > 0 && hr_progress_resident_bytes() >= before + BYTES / 2);
    free(memory);
}

static void work_is_shown_with_its_remaining_time(void **state)
{
    static const struct {
        int64_t done, total;
        double seconds;
        const char *said;
    } cases[] = {
        { 0, 0, 9, "evaluating" },
        { 1, 0, 0.9, "evaluating" },
        { 1, 0, 62.9, "evaluating, 62 s so far" },
        { 0, 200, 9, "evaluating: 0 %" },
        { 90, 200, 0.5, "evaluating: 45 %" },
        { 50, 200, 30, "evaluating: 25 %, 90 s left" },
        { 200, 200, 30, "evaluating: 100 %, 0 s left" },
        { 1, INT64_MAX, 30, "evaluating: 0 %, ? left" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[HR_PROGRESS_BYTES];
        const int32_t length = hr_progress_work_print("evaluating", cases[i].done, cases[i].total,
                                                      cases[i].seconds, text);
        assert_string_equal(text, cases[i].said);
        assert_int_equal(length, strlen(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_has_every_figure),
        cmocka_unit_test(a_curve_keeps_the_shape_of_a_run),
        cmocka_unit_test(a_curve_is_cut_at_characters),
        cmocka_unit_test(extreme_figures_fit_the_line),
        cmocka_unit_test(nothing_is_written_to_a_pipe),
        cmocka_unit_test(a_terminal_shows_one_line_that_is_cleared_at_the_end),
        cmocka_unit_test(a_shorter_line_covers_the_longer_one),
        cmocka_unit_test(a_narrow_terminal_gets_a_line_that_does_not_wrap),
        cmocka_unit_test(the_line_changes_five_times_a_second_and_at_the_last_step),
        cmocka_unit_test(a_note_replaces_the_progress_line),
        cmocka_unit_test(resident_bytes_grow_when_memory_is_touched),
        cmocka_unit_test(work_is_shown_with_its_remaining_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
