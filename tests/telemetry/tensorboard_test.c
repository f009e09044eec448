/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard_test.c - event files, read by an independent parser: lengths, checksums, fields, and
 * the files after a full disk and a second start. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "require.h"
#include "support/folder.h"
#include "telemetry/tensorboard.h"

enum { EVENTS_MAX = 2000, SCALARS_MAX = 8, NOBODY = 65534 };

static const double noon = 1700000000.25;
static char buffer[HR_TENSORBOARD_BYTES];
static hr_folder folder;

static int make_folder(void **state)
{
    (void)state;
    folder = hr_folder_open();
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

/* ---- the parser */

typedef struct {
    double wall_seconds;
    int64_t step;
    char version[32];
    int64_t session; /* status of a session log; -1: none */
    int32_t count;
    struct {
        char tag[32];
        float value;
    } scalars[SCALARS_MAX];
} event;

static struct {
    uint8_t bytes[1 << 20];
    int64_t count, whole_bytes; /* records and bytes that are complete */
    event events[EVENTS_MAX];
    int32_t event_count;
} file;

/* By definition, bit by bit, and masked. */
static uint32_t masked(const uint8_t *bytes, int64_t count)
{
    uint32_t crc = UINT32_MAX;
    for (int64_t i = 0; i < count * 8; i++) {
        const uint32_t bit = (crc ^ (uint32_t)(bytes[i / 8] >> i % 8)) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static uint64_t number(const uint8_t *bytes, int32_t count)
{
    uint64_t value = 0;
    for (int32_t i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int32_t shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

typedef struct {
    int32_t field, how;
    uint64_t value;       /* of a varint or fixed number; the length of a length-delimited field */
    const uint8_t *bytes; /* content of a length-delimited field */
} member;

static bool next(const uint8_t **at, const uint8_t *end, member *m)
{
    if (*at == end) return false;
    const uint64_t key = varint(at, end);
    *m = (member){ .field = (int32_t)(key >> 3), .how = (int32_t)(key & 7) };
    if (m->how == 0) {
        m->value = varint(at, end);
        return true;
    }
    assert_true(m->how == 1 || m->how == 2 || m->how == 5);
    const bool fixed = m->how != 2;
    const int64_t length = m->how == 1 ? 8 : m->how == 5 ? 4 : (int64_t)varint(at, end);
    assert_in_range(length, 0, end - *at);
    m->bytes = *at;
    m->value = fixed ? number(*at, (int32_t)length) : (uint64_t)length;
    *at += length;
    return true;
}

static void read_value(event *e, const uint8_t *at, const uint8_t *end)
{
    member m;
    assert_in_range(e->count, 0, SCALARS_MAX - 1);
    while (next(&at, end, &m)) {
        if (m.field == 1) {
            assert_true(m.how == 2 && m.value < 32);
            memcpy(e->scalars[e->count].tag, m.bytes, m.value);
        } else {
            assert_true(m.field == 2 && m.how == 5);
            const uint32_t bits = (uint32_t)m.value;
            memcpy(&e->scalars[e->count].value, &bits, sizeof bits);
        }
    }
    e->count++;
}

static void read_event(event *e, const uint8_t *at, const uint8_t *end)
{
    member m, inner;
    *e = (event){ .session = -1 };
    while (next(&at, end, &m)) {
        const uint8_t *inside = m.bytes, *inside_end = m.how == 2 ? m.bytes + m.value : m.bytes;
        if (m.field == 1 && m.how == 1) memcpy(&e->wall_seconds, &m.value, 8);
        else if (m.field == 2 && m.how == 0) e->step = (int64_t)m.value;
        else if (m.field == 3 && m.how == 2) memcpy(e->version, m.bytes, m.value);
        else if (m.field == 5 && m.how == 2)
            while (next(&inside, inside_end, &inner)) {
                assert_true(inner.field == 1 && inner.how == 2);
                read_value(e, inner.bytes, inner.bytes + inner.value);
            }
        else if (m.field == 7 && m.how == 2)
            while (next(&inside, inside_end, &inner)) {
                assert_true(inner.field == 1 && inner.how == 0);
                e->session = (int64_t)inner.value;
            }
        else fail_msg("field %d", m.field);
    }
}

/* Reads a file into `file`, up to the first incomplete record. */
static void read_events(const char *name)
{
    const int fd = open(hr_folder_path(&folder, name), O_RDONLY);
    assert_true(fd >= 0);
    file.count = read(fd, file.bytes, sizeof file.bytes);
    close(fd);
    assert_in_range(file.count, 0, sizeof file.bytes - 1);
    file.event_count = 0;
    int64_t at = 0;
    while (file.count - at >= 12) {
        const int64_t length = (int64_t)number(file.bytes + at, 8);
        assert_int_equal(number(file.bytes + at + 8, 4), masked(file.bytes + at, 8));
        assert_in_range(length, 1, 4096);
        if (file.count - at < length + 16) break;
        const uint8_t *bytes = file.bytes + at + 12;
        assert_int_equal(number(bytes + length, 4), masked(bytes, length));
        assert_in_range(file.event_count, 0, EVENTS_MAX - 1);
        read_event(&file.events[file.event_count++], bytes, bytes + length);
        at += length + 16;
    }
    file.whole_bytes = at;
}

/* Reads the file, which must end after a complete record. */
static void read_whole(const char *name)
{
    read_events(name);
    assert_int_equal(file.whole_bytes, file.count);
}

static float get(const event *e, const char *tag)
{
    for (int32_t i = 0; i < e->count; i++)
        if (!strcmp(e->scalars[i].tag, tag)) return e->scalars[i].value;
    fail_msg("no %s", tag);
    return 0;
}

/* ---- contents */

static void good(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static void open_board(hr_tensorboard *board, int64_t first_step, double wall_seconds)
{
    hr_error err;
    good(hr_tensorboard_open(board, folder.path, first_step, wall_seconds, buffer, &err), &err);
}

static hr_status step_at(hr_tensorboard *board, double wall_seconds, int64_t step, hr_error *err)
{
    const hr_metrics_step one = { .step = step, .loss = (double)step, .lr = 0.5 };
    return hr_tensorboard_write_step(board, wall_seconds, &one, err);
}

static void close_board(hr_tensorboard *board)
{
    hr_error err;
    good(hr_tensorboard_close(board, &err), &err);
}

static void same(float got, double wanted)
{
    const float narrow = (float)wanted;
    assert_true(isnan(wanted) ? isnan(got) : got == narrow);
}

static void every_number_of_every_step_is_written(void **state)
{
    (void)state;
    enum { STEPS = 600 };
    static hr_metrics_step steps[STEPS];
    const double odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1e-300, 1e30, -2.5 };
    uint64_t draw = 9;
    print_message("seed %llu\n", (unsigned long long)draw);
    hr_tensorboard board;
    hr_error err;
    open_board(&board, 1, noon);
    for (int32_t i = 0; i < STEPS; i++) {
        double values[6];
        for (int32_t v = 0; v < 6; v++) {
            const uint64_t bits = hr_random_mix(++draw);
            values[v] = bits % 7 ? (double)bits * 0x1p-60 : odd[bits / 7 % 8];
        }
        steps[i] = (hr_metrics_step){ .step = i < 300 ? i + 1 : INT64_MAX - STEPS + i,
                                      .loss = values[0],
                                      .lr = values[1],
                                      .grad_norm = values[2],
                                      .tokens_per_second = values[3],
                                      .pulls = i % 2,
                                      .z_loss = values[4],
                                      .loss_scale = i % 5 ? 0 : 65536,
                                      .fraction_of_ceiling = i % 3 ? 0 : fabs(values[5]) };
        good(hr_tensorboard_write_step(&board, noon + i * 0.01, &steps[i], &err), &err);
        if (i % 100 == 50)
            good(hr_tensorboard_write_evaluation(&board, noon + i * 0.01, steps[i].step, i, &err),
                 &err);
    }
    close_board(&board);
    read_whole(board.name);
    assert_int_equal(file.event_count, 2 + STEPS + STEPS / 100);
    assert_string_equal(file.events[0].version, "brain.Event:2");
    assert_true(file.events[0].wall_seconds == noon);
    const event *e = &file.events[2];
    for (int32_t i = 0; i < STEPS; i++, e++) {
        assert_int_equal(e->step, steps[i].step);
        assert_true(e->wall_seconds == noon + i * 0.01);
        same(get(e, "loss"), steps[i].loss);
        same(get(e, "lr"), steps[i].lr);
        same(get(e, "grad_norm"), steps[i].grad_norm);
        same(get(e, "tokens_per_second"), steps[i].tokens_per_second);
        if (i % 2) same(get(e, "z_loss"), steps[i].z_loss);
        const double fraction = steps[i].fraction_of_ceiling;
        if (fraction > 0) same(get(e, "fraction_of_ceiling"), fraction);
        if (i % 5 == 0) same(get(e, "loss_scale"), 65536);
        assert_int_equal(e->count, 4 + i % 2 + (fraction > 0) + (i % 5 == 0));
        if (i % 100 != 50) continue;
        e++;
        assert_int_equal(e->step, steps[i].step);
        assert_int_equal(e->count, 1);
        same(get(e, "valid_loss"), i);
    }
}

static void a_step_without_targets_has_no_point_for_its_loss(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error err;
    const hr_metrics_step step = {
        .step = 1, .loss = NAN, .lr = 0.5, .no_targets = true, .pulls = true
    };
    open_board(&board, 1, noon);
    good(hr_tensorboard_write_step(&board, noon, &step, &err), &err);
    close_board(&board);
    read_whole(board.name);
    assert_int_equal(file.event_count, 3);
    assert_int_equal(file.events[2].count, 3);
    same(get(&file.events[2], "lr"), 0.5);
}

static void every_start_creates_a_file_that_sorts_last_and_has_its_step(void **state)
{
    (void)state;
    static const char *const others[] = { "events.out.tfevents.1700000003.another.host",
                                          "events.out.tfevents.17000000040.eleven",
                                          "events.out.tfevents.99", "events.out.tfevents.",
                                          "metrics.jsonl" };
    const double clocks[] = { noon, noon, noon - 1e6, noon + 100, -5, NAN, 1e300, 0 };
    enum { STARTS = sizeof clocks / sizeof *clocks };
    char before[HR_TENSORBOARD_NAME_BYTES] = "events.out.tfevents.1700000003";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hr_folder_write(hr_folder_path(&folder, others[i]), "", 0);
    }
    for (int32_t i = 0; i < STARTS; i++) {
        hr_tensorboard board;
        hr_error err;
        open_board(&board, 10 * i + 1, clocks[i]);
        assert_true(strcmp(board.name, before) > 0);
        assert_memory_equal(board.name, "events.out.tfevents.", 20);
        assert_int_equal(strspn(board.name + 20, "0123456789"), 10);
        assert_true(board.name[30] == '.' && board.name[31]);
        strcpy(before, board.name);
        good(step_at(&board, clocks[i], 10 * i + 1, &err), &err);
        close_board(&board);
        read_whole(board.name);
        assert_int_equal(file.event_count, 3);
        assert_string_equal(file.events[0].version, "brain.Event:2");
        assert_int_equal(file.events[0].session, -1);
        assert_int_equal(file.events[1].session, 1);
        assert_int_equal(file.events[1].step, 10 * i + 1);
        assert_int_equal(file.events[1].count, 0);
    }
}

/* Records are written after five seconds, when the clock goes back, when the buffer is full, on
 * request, and at no other time. */
static void events_are_buffered_until_they_are_due(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error err;
    open_board(&board, 1, noon);
    good(step_at(&board, noon + 4.9, 1, &err), &err);
    assert_int_equal(board.bytes, 0);
    good(step_at(&board, noon + 5, 2, &err), &err);
    read_whole(board.name);
    assert_int_equal(file.event_count, 4);
    good(step_at(&board, noon + 9.9, 3, &err), &err);
    read_whole(board.name);
    assert_int_equal(file.event_count, 4);
    good(step_at(&board, noon - 1e5, 4, &err), &err);
    read_whole(board.name);
    assert_int_equal(file.event_count, 6);
    good(step_at(&board, noon - 1e5, 5, &err), &err);
    good(hr_tensorboard_push(&board, &err), &err);
    good(hr_tensorboard_flush(&board, &err), &err);
    read_whole(board.name);
    assert_int_equal(file.event_count, 7);
    for (int64_t step = 6; step < 500; step++) {
        const int64_t used = board.used, bytes = board.bytes;
        good(step_at(&board, noon - 1e5, step, &err), &err);
        if (board.bytes != bytes) assert_true(used > HR_TENSORBOARD_BYTES - 600);
    }
    assert_true(board.bytes > 2 * HR_TENSORBOARD_BYTES);
    close_board(&board);
    read_whole(board.name);
    assert_int_equal(file.event_count, 2 + 499);
}

static int files_there(void)
{
    return hr_folder_count(&folder, "");
}

static void a_run_without_numbers_leaves_no_file(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error err;
    open_board(&board, 1, noon);
    assert_int_equal(files_there(), 1);
    close_board(&board);
    assert_int_equal(files_there(), 0);
    close_board(&board);
    good(hr_tensorboard_open(&board, NULL, 1, noon, NULL, &err), &err);
    good(step_at(&board, noon, 1, &err), &err);
    good(hr_tensorboard_write_evaluation(&board, noon, 1, 2, &err), &err);
    good(hr_tensorboard_push(&board, &err), &err);
    good(hr_tensorboard_flush(&board, &err), &err);
    close_board(&board);
}

/* ---- refusals */

static void a_directory_without_permission_is_one_error_sentence(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error inside, there;
    assert_int_equal(chmod(folder.path, 0555), 0);
    if (geteuid() == 0 && seteuid(NOBODY) != 0)
        hr_test_skip("nobody", "root cannot become another user: %s", strerror(errno));
    const char *path = hr_folder_path(&folder, "board");
    const hr_status made = hr_tensorboard_open(&board, path, 1, noon, buffer, &inside);
    const hr_status used = hr_tensorboard_open(&board, folder.path, 1, noon, buffer, &there);
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder.path, 0700), 0);
    assert_int_equal(made, HR_FAILURE);
    assert_non_null(
        strstr(inside.message, "/board: the directory cannot be created: Permission denied"));
    assert_int_equal(used, HR_FAILURE);
    assert_memory_equal(there.message, folder.path, strlen(folder.path));
    assert_non_null(strstr(there.message, ": cannot be created: Permission denied"));
    assert_int_equal(files_there(), 0);
}

static void a_file_in_place_of_the_directory_is_refused(void **state)
{
    (void)state;
    char endless[5000];
    hr_tensorboard board;
    hr_error err;
    const char *path = hr_folder_path(&folder, "board");
    hr_folder_write(path, "mine", 4);
    assert_int_equal(hr_tensorboard_open(&board, path, 1, noon, buffer, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "is a file, a directory is needed"));
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_int_equal(hr_tensorboard_open(&board, endless, 1, noon, buffer, &err), HR_USAGE);
    assert_int_equal(files_there(), 1);
}

static void limit_files_to(int64_t bytes)
{
    struct rlimit now;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &now), 0);
    now.rlim_cur = bytes < 0 ? now.rlim_max : (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

/* A file size limit simulates a disk that is full after any byte of a record. The file stays
 * complete, and the buffered records are written when there is room. */
static void a_full_disk_loses_no_buffered_event(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error err;
    signal(SIGXFSZ, SIG_IGN);
    for (int64_t room = 0; room < 300; room++) {
        open_board(&board, 1, noon);
        const bool later = room % 2;
        if (later) good(hr_tensorboard_push(&board, &err), &err);
        const int64_t before = board.bytes;
        good(step_at(&board, noon, 1, &err), &err);
        good(step_at(&board, noon, 2, &err), &err);
        limit_files_to(before + room);
        const hr_status status = hr_tensorboard_push(&board, &err);
        const hr_status again = hr_tensorboard_push(&board, NULL);
        limit_files_to(-1);
        assert_int_equal(status, again);
        read_whole(board.name);
        if (status != HR_OK) {
            assert_int_equal(status, HR_FAILURE);
            assert_non_null(strstr(err.message, "cannot be written: File too large"));
            assert_int_equal(file.count, before);
        }
        good(step_at(&board, noon, 3, &err), &err);
        close_board(&board);
        read_whole(board.name);
        assert_int_equal(file.event_count, 5);
        for (int32_t i = 2; i < 5; i++) assert_int_equal(file.events[i].step, i - 1);
    }
}

/* When the disk stays full for longer than the buffer lasts, later events are dropped, each with an
 * error. */
static void a_disk_full_for_long_drops_events_beyond_the_buffer(void **state)
{
    (void)state;
    hr_tensorboard board;
    hr_error err;
    signal(SIGXFSZ, SIG_IGN);
    open_board(&board, 1, noon);
    limit_files_to(0);
    int32_t failures = 0, told_first = 0;
    for (int32_t step = 1; step <= 1000; step++) {
        const bool failed = step_at(&board, noon, step, &err) != HR_OK;
        if (failed && !failures) told_first = step;
        failures += failed;
    }
    limit_files_to(-1);
    assert_in_range(told_first, HR_TENSORBOARD_BYTES / 600, 999);
    assert_int_equal(failures, 1000 - told_first + 1);
    good(step_at(&board, noon, 1001, &err), &err);
    close_board(&board);
    read_whole(board.name);
    assert_int_equal(file.event_count, 2 + told_first - 1 + 1);
    assert_int_equal(file.events[file.event_count - 1].step, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_number_of_every_step_is_written, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_step_without_targets_has_no_point_for_its_loss,
                                        make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(every_start_creates_a_file_that_sorts_last_and_has_its_step,
                                        make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(events_are_buffered_until_they_are_due, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_run_without_numbers_leaves_no_file, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_directory_without_permission_is_one_error_sentence,
                                        make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(a_file_in_place_of_the_directory_is_refused, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_no_buffered_event, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_disk_full_for_long_drops_events_beyond_the_buffer,
                                        make_folder, drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
