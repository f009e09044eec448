/* SPDX-License-Identifier: Apache-2.0 */
/* file_rate_test.c - the rates of the file space are measured, or why they are not is clear. The
 * figures are not tested. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mount.h>

#include "calibrate/file_rate.h"
#include "require.h"
#include "support/file_calls.h"
#include "support/folder.h"

static hr_memory memory;
static hr_folder folder;
static hr_error err;
static double write_rate, read_rate;

static int start(void **state)
{
    (void)state;
    folder = hr_folder_open();
    memset(&calls, 0, sizeof calls);
    write_rate = read_rate = -1;
    return hr_memory_open(&memory, &err) == HR_OK ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    memset(&calls, 0, sizeof calls);
    hr_memory_close(&memory);
    hr_folder_close(&folder);
    return 0;
}

static hr_status measure(const char *directory)
{
    const hr_status status = hr_file_rate_measure(directory, &memory, &write_rate, &read_rate,
                                                  &err);
    assert_int_equal(memory.region_count, 0);
    return status;
}

static void both_rates_are_measured(void **state)
{
    (void)state;
    if (measure(folder.path) != HR_OK) fail_msg("%s", err.message);
    print_message("write %.0f MB/s, read %.0f MB/s\n", 1e-6 * write_rate, 1e-6 * read_rate);
    assert_true(write_rate > 0 && read_rate > 0);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

static void a_disk_without_room_is_not_measured(void **state)
{
    (void)state;
    if (mount("none", folder.path, "tmpfs", 0, "size=200m") != 0)
        hr_test_skip("mount", "mount: %s", strerror(errno));
    const hr_status status = measure(folder.path);
    const int left = hr_folder_count(&folder, "");
    assert_int_equal(umount(folder.path), 0);
    assert_int_equal(status, HR_OK);
    assert_true(write_rate == 0 && read_rate == 0);
    assert_int_equal(left, 0);
}

static void failures_leave_rates_and_folder_alone(void **state)
{
    (void)state;
    assert_int_equal(measure(hr_folder_path(&folder, "missing")), HR_USAGE);
    assert_non_null(strstr(err.message, "missing/calibration.scratch: cannot be created: No such"));
    calls.code = EIO;
    for (int32_t reads = 0; reads <= 1; reads++) {
        calls.reads = calls.writes = 0;
        calls.read_fails = reads ? 20 : 0;
        calls.write_fails = reads ? 0 : 20;
        assert_int_equal(measure(folder.path), HR_FAILURE);
        assert_non_null(strstr(err.message, reads ? "cannot be read at" : "cannot be written at"));
        assert_int_equal(hr_folder_count(&folder, ""), 0);
    }
    assert_true(write_rate == -1 && read_rate == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_rates_are_measured, start, finish),
        cmocka_unit_test_setup_teardown(a_disk_without_room_is_not_measured, start, finish),
        cmocka_unit_test_setup_teardown(failures_leave_rates_and_folder_alone, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
