/* SPDX-License-Identifier: Apache-2.0 */
/* hash_cache_test.c - the hash of a large file is remembered until the file changes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "checkpoint/hash_cache.h"

static const char hash[] = "0123456789abcdef0123456789abcdef";

static int open_file(const char *path, int64_t bytes)
{
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, bytes), 0);
    return file;
}

static void a_hash_is_known_until_the_file_changes(void **state)
{
    char folder[] = "/tmp/hash_cache_XXXXXX", cache[64], path[64], other[64], found[HR_HASH_BYTES];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(path, sizeof path, "%s/model", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    const int file = open_file(path, HR_HASH_CACHE_LEAST);
    const int small = open_file(other, HR_HASH_CACHE_LEAST - 1);
    hr_hash_cache_keep(cache, file, path, time(NULL), hash); /* changed a moment ago */
    assert_false(hr_hash_cache_find(cache, file, path, found));
    sleep(3);
    assert_false(hr_hash_cache_find(NULL, file, path, found));
    hr_hash_cache_keep(NULL, file, path, time(NULL), hash);
    hr_hash_cache_keep(cache, small, other, time(NULL), hash);
    assert_false(hr_hash_cache_find(cache, small, other, found));
    hr_hash_cache_keep(cache, file, path, time(NULL) - 5, hash); /* changed while it was hashed */
    assert_false(hr_hash_cache_find(cache, file, path, found));
    hr_hash_cache_keep(cache, file, path, time(NULL), hash);
    assert_true(hr_hash_cache_find(cache, file, path, found));
    assert_string_equal(found, hash);
    /* The same size and time of content, but written. */
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };
    assert_int_equal(futimens(file, times), 0);
    assert_false(hr_hash_cache_find(cache, file, path, found));
    assert_false(hr_hash_cache_find("/proc/none", file, path, found));
    hr_hash_cache_keep("/proc/none", file, path, time(NULL), hash);
    close(file);
    close(small);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_hash_is_known_until_the_file_changes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
