/* SPDX-License-Identifier: Apache-2.0 */
/* directory_test.c - listing and removing directories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "base/directory.h"
#include "support/folder.h"

enum { MANY = 700 }; /* more names than one getdents64 call returns */

static void put(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

typedef struct {
    uint8_t seen[MANY];
    int32_t count, most;
} names;

static bool see(void *context, const char *name)
{
    names *n = context;
    int32_t number = -1;
    assert_int_equal(sscanf(name, "file-with-a-rather-long-name-%d", &number), 1);
    assert_in_range(number, 0, MANY - 1);
    assert_int_equal(n->seen[number]++, 0);
    return ++n->count < n->most;
}

static void every_name_is_listed_once(void **state)
{
    (void)state;
    hr_error err;
    char name[64];
    names all = { .most = MANY + 1 }, some = { .most = 3 };
    const hr_folder folder = hr_folder_open();
    for (int32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file-with-a-rather-long-name-%d", i);
        put(hr_folder_path(&folder, name));
    }
    assert_int_equal(hr_directory_list(folder.path, see, &all, &err), HR_OK);
    assert_int_equal(all.count, MANY);
    assert_int_equal(hr_directory_list(folder.path, see, &some, &err), HR_OK);
    assert_int_equal(some.count, 3);
    assert_int_equal(hr_directory_list(hr_folder_path(&folder, "none"), see, &some, &err), HR_OK);
    assert_int_equal(hr_directory_list(hr_folder_path(&folder, "file-with-a-rather-long-name-0"),
                                       see, &some, &err),
                     HR_USAGE);
    assert_int_equal(some.count, 3);
    hr_folder_close(&folder);
}

static void a_directory_is_removed_with_its_files_and_no_others(void **state)
{
    (void)state;
    hr_error err;
    char name[64], inside[300];
    const hr_folder folder = hr_folder_open();
    put(hr_folder_path(&folder, "outside"));
    snprintf(inside, sizeof inside, "%s/inside", folder.path);
    assert_int_equal(mkdir(inside, 0700), 0);
    for (int32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "inside/%d", i);
        put(hr_folder_path(&folder, name));
    }
    assert_int_equal(symlink("../outside", hr_folder_path(&folder, "inside/link")), 0);
    assert_int_equal(hr_directory_remove(inside, "41", &err), HR_OK);
    assert_int_equal(access(inside, F_OK), -1);
    assert_int_equal(access(hr_folder_path(&folder, "outside"), F_OK), 0);
    assert_int_equal(hr_directory_remove(inside, "41", &err), HR_OK); /* already removed */
    assert_int_equal(hr_directory_flush(folder.path, &err), HR_OK);

    /* A subdirectory is not removed, and neither is the target of a link. */
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(mkdir(hr_folder_path(&folder, "inside/deeper"), 0700), 0);
    put(hr_folder_path(&folder, "inside/key"));
    assert_int_equal(hr_directory_remove(inside, "key", &err), HR_FAILURE);
    assert_non_null(strstr(err.message, "deeper"));
    assert_int_equal(access(hr_folder_path(&folder, "inside/key"), F_OK), -1);
    assert_int_equal(symlink("inside", hr_folder_path(&folder, "way")), 0);
    assert_int_equal(hr_directory_remove(hr_folder_path(&folder, "way"), NULL, &err), HR_FAILURE);
    assert_int_equal(access(hr_folder_path(&folder, "inside/deeper"), F_OK), 0);
    remove(hr_folder_path(&folder, "inside/deeper"));
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_listed_once),
        cmocka_unit_test(a_directory_is_removed_with_its_files_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
