/* SPDX-License-Identifier: Apache-2.0 */
/* threads_test.c - affinity and quota; cgroups of both versions are files in a directory. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cgroup.h"
#include "base/small_file.h"
#include "base/threads.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.40s/threads_XXXXXX", parent ? parent : P_tmpdir);
    return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    char *slash = path + strlen(root);
    while ((slash = strchr(slash + 1, '/'))) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_machine_without_cgroups_has_no_limit(void **state)
{
    (void)state;
    const hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.cpu_thousandths, -1);
    assert_int_equal(bounds.memory_max, -1);
}

static void the_smallest_limit_of_all_parent_groups_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "900000\n");
    put("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/outer/memory.max", "max\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.cpu_thousandths, 1500);
    assert_int_equal(bounds.memory_max, 900000);
    put("/sys/fs/cgroup/memory.max", "700000\n");
    bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_max, 700000);
}

static void cgroup_version_1_is_read_at_its_mounts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:cpu,cpuacct:/job/7\n4:memory:/job/7\n1:name=systemd:/job\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/7/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/7/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.cpu_thousandths, 500);
    assert_int_equal(bounds.memory_max, -1);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "123456\n");
    bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_max, 123456);
}

/* A memory.stat file in the order of the kernel, after other lines. */
static void unmapped_page_cache_counts_as_memory_left(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "900000\n");
    put("/sys/fs/cgroup/outer/inner/memory.current", "500000\n");
    hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_left, 400000);
    put("/sys/fs/cgroup/outer/inner/memory.stat",
        "anon 1\nfile_mapped 50000\ninactive_anon 7\ninactive_file 100000\nactive_file 20000\n");
    bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_left, 470000);
    assert_int_equal(bounds.memory_left_of, 900000);

    /* The parent group has a higher limit and less left. */
    put("/sys/fs/cgroup/outer/memory.max", "2000000\n");
    put("/sys/fs/cgroup/outer/memory.current", "1900000\n");
    bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_max, 900000);
    assert_int_equal(bounds.memory_left, 100000);
    assert_int_equal(bounds.memory_left_of, 2000000);
    put("/sys/fs/cgroup/outer/memory.current", "2100000\n");
    assert_int_equal(hr_cgroup_read(root).memory_left, 0);
}

static void memory_left_is_read_from_version_1_files(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/job\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "800000\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "300000\n");
    put("/sys/fs/cgroup/memory/job/memory.stat",
        "inactive_file 9\ntotal_inactive_file 4000\ntotal_active_file 300\n"
        "total_mapped_file 200\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    const hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_left, 504100);
    assert_int_equal(bounds.memory_left_of, 800000);
}

static void damaged_files_set_no_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "no colons\n0:only one\n0::/bad\n::::\n");
    put("/sys/fs/cgroup/cpu.max", "0 0\n");
    put("/sys/fs/cgroup/memory.max", "lots\n");
    put("/sys/fs/cgroup/bad/cpu.max", "9223372036854775807 1\n");
    put("/sys/fs/cgroup/bad/memory.max", "");
    hr_cgroup bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.cpu_thousandths, -1);
    assert_int_equal(bounds.memory_max, -1);
    assert_int_equal(bounds.memory_left, -1);
    put("/sys/fs/cgroup/memory.max", "4096\n");
    put("/sys/fs/cgroup/memory.current", "some\n");
    bounds = hr_cgroup_read(root);
    assert_int_equal(bounds.memory_max, 4096);
    assert_int_equal(bounds.memory_left, -1);
}

static void a_quota_is_rounded_up_and_never_below_one(void **state)
{
    (void)state;
    assert_int_equal(hr_threads_within(8, -1), 8);
    assert_int_equal(hr_threads_within(8, 1), 1);
    assert_int_equal(hr_threads_within(8, 1000), 1);
    assert_int_equal(hr_threads_within(8, 1001), 2);
    assert_int_equal(hr_threads_within(2, 64000), 2);
    assert_int_equal(hr_threads_within(0, -1), 1);
}

static void one_core_of_affinity_gives_one_thread(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(hr_threads_affinity(), CPU_COUNT(&before));
    int32_t core = 0;
    while (!CPU_ISSET(core, &before)) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hr_threads_affinity(), 1);
    assert_int_equal(hr_threads_default(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void the_number_of_threads_is_limited_to_that_of_a_pool(void **state)
{
    (void)state;
    hr_error err;
    int32_t threads = -7;
    assert_int_equal(hr_threads_choose(0, &threads, &err), HR_OK);
    assert_int_equal(threads, hr_threads_default());
    for (int64_t asked = 1; asked <= HR_THREADS_MOST; asked += HR_THREADS_MOST - 1) {
        assert_int_equal(hr_threads_choose(asked, &threads, &err), HR_OK);
        assert_int_equal(threads, asked);
    }
    const int64_t bad[] = { -1, HR_THREADS_MOST + 1, INT64_C(1) << 32, INT64_MIN, INT64_MAX };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char given[128];
        snprintf(given, sizeof given,
                 "from 0 to 256 (0: as many as affinity and quota allow); got %lld",
                 (long long)bad[i]);
        assert_int_equal(hr_threads_choose(bad[i], &threads, &err), HR_USAGE);
        assert_non_null(strstr(err.message, given));
        assert_int_equal(threads, HR_THREADS_MOST);
    }
}

static void a_small_file_is_truncated_to_its_buffer(void **state)
{
    (void)state;
    char path[128], text[6];
    put("/word", "abcdefgh");
    snprintf(path, sizeof path, "%s/word", root);
    assert_int_equal(hr_small_file_read(path, text, sizeof text), 5);
    assert_string_equal(text, "abcde");
    assert_int_equal(hr_small_file_read(root, text, sizeof text), -1);
    assert_string_equal(text, "");
}

static void a_number_is_found_at_the_start_of_a_line_only(void **state)
{
    (void)state;
    const char *text = "total_cache 7\ncache 12 kB\nmax\n";
    assert_int_equal(hr_small_file_number(text, "cache "), 12);
    assert_int_equal(hr_small_file_number(text, "total_cache"), 7);
    assert_int_equal(hr_small_file_number(text, "max"), -1);
    assert_int_equal(hr_small_file_number("", ""), -1);
    assert_int_equal(hr_small_file_number("42\n", ""), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_without_cgroups_has_no_limit, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(the_smallest_limit_of_all_parent_groups_counts, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(cgroup_version_1_is_read_at_its_mounts, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(unmapped_page_cache_counts_as_memory_left, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(memory_left_is_read_from_version_1_files, make_root,
                                        drop_root),
        cmocka_unit_test_setup_teardown(damaged_files_set_no_limit, make_root, drop_root),
        cmocka_unit_test(a_quota_is_rounded_up_and_never_below_one),
        cmocka_unit_test(one_core_of_affinity_gives_one_thread),
        cmocka_unit_test(the_number_of_threads_is_limited_to_that_of_a_pool),
        cmocka_unit_test_setup_teardown(a_small_file_is_truncated_to_its_buffer, make_root,
                                        drop_root),
        cmocka_unit_test(a_number_is_found_at_the_start_of_a_line_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
