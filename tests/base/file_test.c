/* SPDX-License-Identifier: Apache-2.0 */
/* file_test.c - files are complete or absent, and errors name the file and the reason. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "require.h"
#include "support/in_folder.h"

enum { NOBODY = 65534 };

static void assert_refused(const char *path, hr_status status, const char *sentence)
{
    int file = -7;
    int64_t bytes = -7;
    hr_error err;
    assert_int_equal(hr_file_open(path, &file, &bytes, &err), status);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, sentence));
    assert_int_equal(file, -7);
    assert_int_equal(bytes, -7);
}

static void opening_names_a_missing_or_irregular_file(void **state)
{
    (void)state;
    assert_refused(hr_folder_path(&folder, "absent"), HR_USAGE, "no such file");
    assert_refused(folder.path, HR_USAGE, "is a directory, a file is needed");
    assert_refused("/dev/null", HR_USAGE, "is a device or pipe, a file is needed");
    const char *pipe_path = hr_folder_path(&folder, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_refused(pipe_path, HR_USAGE, "is a device or pipe");
    assert_refused(hr_folder_path(&folder, "pipe/below"), HR_USAGE,
                   "cannot be read: Not a directory");
}

static void a_link_to_nothing_is_named_with_its_target(void **state)
{
    static const char said[] = "link: is a symbolic link to no/where, which does not exist";
    static const char *const names[] = { "link", "link/", "link/below", "link/below/that" };
    (void)state;
    hr_error err;
    assert_int_equal(symlink("no/where", hr_folder_path(&folder, "link")), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int file = -1;
        int64_t bytes;
        const char *path = hr_folder_path(&folder, names[i]);
        assert_int_equal(hr_file_open(path, &file, &bytes, &err), HR_USAGE);
        assert_non_null(strstr(err.message, said));
        assert_int_equal(hr_directory_check(path, &err), HR_USAGE);
        assert_non_null(strstr(err.message, said));
    }
    assert_int_equal(mkdir(hr_folder_path(&folder, "no"), 0700), 0);
    assert_int_equal(mkdir(hr_folder_path(&folder, "no/where"), 0700), 0);
    assert_int_equal(hr_directory_check(hr_folder_path(&folder, "link/below"), &err), HR_OK);
}

static void files_without_permission_are_refused(void **state)
{
    (void)state;
    hr_file_out out;
    hr_error err;
    const char *path = hr_folder_path(&folder, "secret");
    hr_folder_write(path, "x", 1);
    chmod(path, 0);
    chmod(folder.path, 0555);
    if (geteuid() == 0 && seteuid(NOBODY) != 0)
        hr_test_skip("nobody", "root cannot become another user: %s", strerror(errno));
    assert_refused(path, HR_USAGE, "cannot be read: Permission denied");
    assert_int_equal(hr_file_begin(&out, folder.path, "new", &err), HR_FAILURE);
    assert_non_null(strstr(err.message, "new cannot be written there: Permission denied"));
    const char *below = hr_folder_path(&folder, "below");
    assert_int_equal(hr_directory_make(below, &err), HR_FAILURE);
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
    chmod(folder.path, 0700);
}

static void a_short_read_reports_where_the_file_ends(void **state)
{
    (void)state;
    char content[8] = "........";
    int file;
    int64_t bytes;
    hr_error err;
    const char *path = hr_folder_path(&folder, "six");
    hr_folder_write(path, "abcdef", 6);
    assert_int_equal(hr_file_open(path, &file, &bytes, &err), HR_OK);
    assert_int_equal(bytes, 6);
    assert_int_equal(hr_file_read(file, path, 2, content, 4, &err), HR_OK);
    assert_memory_equal(content, "cdef....", 8);
    assert_int_equal(hr_file_read(file, path, 2, content, 5, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "has 6 bytes, 7 are needed"));
    hr_file_close(&file);
    assert_int_equal(file, -1);
    hr_file_close(&file);
}

static void a_file_appears_only_when_it_is_committed(void **state)
{
    (void)state;
    hr_file_out out;
    hr_error err;
    int64_t bytes;
    const char *path = hr_folder_path(&folder, "new");
    hr_folder_write(path, "old", 3);
    assert_int_equal(hr_file_begin(&out, folder.path, "new", &err), HR_OK);
    assert_int_equal(hr_file_append(&out, "....body", 8, &err), HR_OK);
    assert_int_equal(hr_file_rewrite(&out, 0, "head", 4, &err), HR_OK);
    assert_int_equal(out.bytes, 8);
    char *content = hr_folder_read(path, &bytes);
    assert_string_equal(content, "old");
    free(content);
    assert_int_equal(hr_file_commit(&out, &err), HR_OK);
    content = hr_folder_read(path, &bytes);
    assert_string_equal(content, "headbody");
    free(content);
    assert_int_equal(hr_folder_count(&folder, ""), 1);
    hr_file_abort(&out);
    assert_true(hr_file_exists(path));
}

static void an_abort_leaves_the_old_file(void **state)
{
    (void)state;
    hr_file_out out;
    hr_error err;
    hr_folder_write(hr_folder_path(&folder, "kept"), "old", 3);
    assert_int_equal(hr_file_begin(&out, folder.path, "kept", &err), HR_OK);
    assert_int_equal(hr_file_append(&out, "new", 3, &err), HR_OK);
    assert_int_equal(hr_folder_count(&folder, ".partial-"), out.named ? 1 : 0);
    hr_file_abort(&out);
    hr_file_abort(&out);
    assert_int_equal(hr_folder_count(&folder, ""), 1);
    assert_int_equal(hr_file_begin(&out, hr_folder_path(&folder, "kept"), "x", &err), HR_USAGE);
    assert_int_equal(hr_file_begin(&out, folder.path, "a/b", &err), HR_USAGE);
    assert_int_equal(hr_file_begin(&out, folder.path, "", &err), HR_USAGE);
}

static void only_a_regular_file_is_replaced(void **state)
{
    (void)state;
    hr_file_out out;
    hr_error err;
    struct stat before, after;
    static const char *const names[] = { "directory", "pipe", "link" };
    static const char *const reasons[] = { ": is a directory, a file cannot be written there",
                                           ": is a device or a pipe, a file cannot be wr",
                                           ": is a symbolic link, a file cannot be writ" };
    assert_int_equal(mkdir(hr_folder_path(&folder, names[0]), 0700), 0);
    assert_int_equal(mkfifo(hr_folder_path(&folder, names[1]), 0700), 0);
    assert_int_equal(symlink("/dev/full", hr_folder_path(&folder, names[2])), 0);
    for (int32_t i = 0; i < 3; i++) {
        const char *path = hr_folder_path(&folder, names[i]);
        assert_int_equal(lstat(path, &before), 0);
        assert_int_equal(hr_file_begin(&out, folder.path, names[i], &err), HR_USAGE);
        assert_non_null(strstr(err.message, reasons[i]));
        assert_int_equal(out.directory, -1);
        assert_int_equal(hr_file_begin_path(&out, path, &err), HR_USAGE);
        assert_int_equal(hr_file_check_place(path, &err), HR_USAGE);
        assert_non_null(strstr(err.message, reasons[i]));
        assert_int_equal(lstat(path, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
    }
    assert_int_equal(hr_file_begin(&out, folder.path, "late", &err), HR_OK);
    assert_int_equal(mkdir(hr_folder_path(&folder, "late"), 0700), 0);
    assert_int_equal(hr_file_commit(&out, &err), HR_FAILURE);
    assert_non_null(strstr(err.message, "late: cannot be renamed after 0 bytes, and was removed"));
    assert_int_equal(hr_folder_count(&folder, ""), 4);
}

/* Runs the check as an unprivileged user; root can write everywhere. */
static hr_status checked_by_another(hr_status (*check)(const char *, hr_error *), const char *path)
{
    hr_error err;
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(geteuid() == 0 && setuid(NOBODY) != 0 ? 99 : (int)check(path, &err));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (hr_status)WEXITSTATUS(status);
}

static void only_a_file_of_the_same_kind_may_be_replaced(void **state)
{
    (void)state;
    hr_error err;
    static const struct {
        const char *text;
        hr_status status;
    } cases[] = { { "", HR_OK },      { "{\"plan\":", HR_OK },    { "{\"plan\": 1}", HR_OK },
                  { "{", HR_USAGE },  { "{\"plan\"", HR_USAGE },  { "{\"plam\":1}", HR_USAGE },
                  { "\n", HR_USAGE }, { " {\"plan\":", HR_USAGE } };
    char path[sizeof folder.path + 8];
    snprintf(path, sizeof path, "%s/file", folder.path);
    assert_int_equal(hr_file_check_kind(path, "{\"plan\":", "plan", &err), HR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_folder_write(path, cases[i].text, (int64_t)strlen(cases[i].text));
        assert_int_equal(hr_file_check_kind(path, "{\"plan\":", "plan", &err), cases[i].status);
        if (cases[i].status == HR_OK) continue;
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, "exists and is not a plan"));
    }
    assert_int_equal(hr_file_check_kind(folder.path, "{", "plan", &err), HR_USAGE);
}

static void paths_are_checked_without_creating_anything(void **state)
{
    (void)state;
    hr_error err;
    char file[sizeof folder.path + 8];
    snprintf(file, sizeof file, "%s/file", folder.path);
    hr_folder_write(file, "kept", 4);
    assert_int_equal(hr_file_check_place(file, &err), HR_OK);
    assert_int_equal(hr_file_check_open(file, &err), HR_OK);
    assert_int_equal(hr_file_check_open("/dev/full", &err), HR_OK);
    assert_int_equal(hr_file_check_open(folder.path, &err), HR_USAGE);
    assert_int_equal(hr_directory_check(folder.path, &err), HR_OK);
    assert_int_equal(hr_directory_check("a/b//c/", &err), HR_OK);
    assert_int_equal(hr_directory_check(file, &err), HR_USAGE);
    static const struct {
        const char *name;
        hr_status place, open, directory;
    } cases[] = {
        { "new", HR_OK, HR_OK, HR_OK },
        { "none/new", HR_USAGE, HR_USAGE, HR_OK },
        { "none//deep/new/", HR_USAGE, HR_USAGE, HR_OK },
        { "file/new", HR_USAGE, HR_USAGE, HR_USAGE },
        { "file/deep/new", HR_USAGE, HR_USAGE, HR_USAGE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = hr_folder_path(&folder, cases[i].name);
        assert_int_equal(hr_file_check_place(path, &err), cases[i].place);
        assert_int_equal(hr_file_check_open(path, &err), cases[i].open);
        assert_int_equal(hr_directory_check(path, &err), cases[i].directory);
    }
    const char *locked = hr_folder_path(&folder, "locked");
    assert_int_equal(mkdir(locked, 0555), 0);
    assert_int_equal(chmod(folder.path, 0755), 0);
    assert_int_equal(chmod(file, 0444), 0);
    const char *inside = hr_folder_path(&folder, "locked/new");
    assert_int_equal(checked_by_another(hr_directory_check, locked), HR_FAILURE);
    assert_int_equal(checked_by_another(hr_directory_check, inside), HR_FAILURE);
    assert_int_equal(checked_by_another(hr_file_check_place, inside), HR_FAILURE);
    assert_int_equal(checked_by_another(hr_file_check_open, inside), HR_FAILURE);
    assert_int_equal(checked_by_another(hr_file_check_open, file), HR_FAILURE);
    assert_int_equal(hr_folder_count(&folder, ""), 2);
}

/* Writes until an error; one must occur. */
static void fill(const char *directory, hr_error *err)
{
    enum { PART = 64 * 1024, PARTS = 64 };
    static char part[PART];
    hr_file_out out;
    hr_status status = hr_file_begin(&out, directory, "big", err);
    for (int i = 0; i < PARTS && status == HR_OK; i++)
        status = hr_file_append(&out, part, sizeof part, err);
    assert_int_equal(status, HR_FAILURE);
    assert_int_equal(out.file, -1);
}

static void a_file_beyond_its_size_limit_is_removed(void **state)
{
    (void)state;
    struct rlimit before;
    hr_error err;
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit limit = { 100000, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    fill(folder.path, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    char expected[PATH_MAX + 128];
    snprintf(expected, sizeof expected,
             "big: cannot be written after 100,000 bytes, and was removed: File too large; in %s",
             folder.path);
    assert_string_equal(err.message, expected);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

/* Gives the file its temporary name, as on file systems without unnamed files. */
static void take_name(hr_file_out *out, const char *directory)
{
    hr_error err;
    assert_int_equal(hr_file_begin(out, directory, "big", &err), HR_OK);
    hr_file_close(&out->file);
    out->file = openat(out->directory, out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                       0666);
    assert_true(out->file >= 0);
    out->named = true;
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    hr_error err;
    if (mount("none", folder.path, "tmpfs", 0, "size=256k") != 0) {
        hr_test_skip("mount", "a tmpfs cannot be mounted: %s", strerror(errno));
    }
    hr_file_out out;
    hr_error early;
    fill(folder.path, &err);
    const int left = hr_folder_count(&folder, "");
    assert_int_equal(hr_file_begin(&out, folder.path, "big", &early), HR_OK);
    assert_int_equal(hr_file_reserve(&out, 100000, &early), HR_OK);
    assert_int_equal(hr_file_append(&out, "x", 1, &early), HR_OK);
    assert_int_equal(hr_file_commit(&out, &early), HR_OK);
    assert_int_equal(unlink(hr_folder_path(&folder, "big")), 0);
    assert_int_equal(hr_file_begin(&out, folder.path, "big", &early), HR_OK);
    assert_int_equal(hr_file_reserve(&out, 262145, &early), HR_FAILURE);
    static const char block[8192];
    hr_error named;
    take_name(&out, folder.path);
    assert_int_equal(hr_file_append(&out, block, sizeof block, &named), HR_OK);
    assert_int_equal(hr_file_reserve(&out, 262145, &named), HR_FAILURE);
    const int left_early = hr_folder_count(&folder, "");
    assert_int_equal(umount(folder.path), 0);
    static const char sentence[] = "No space left on device; 262,144 bytes are free in ";
    assert_non_null(strstr(err.message, sentence));
    assert_non_null(strstr(err.message, ": free some space, or give another place"));
    assert_int_equal(left, 0);
    assert_non_null(strstr(early.message, "big: needs 262,145 bytes: "));
    assert_non_null(strstr(early.message, sentence));
    assert_non_null(strstr(named.message, sentence));
    assert_int_equal(left_early, 0);
}

static void directories_are_created_with_their_parents(void **state)
{
    (void)state;
    hr_error err;
    const char *deep = hr_folder_path(&folder, "a/b//c/");
    assert_int_equal(hr_directory_make(deep, &err), HR_OK);
    assert_int_equal(hr_directory_make(deep, &err), HR_OK);
    assert_true(hr_file_exists(hr_folder_path(&folder, "a/b/c")));
    rmdir(hr_folder_path(&folder, "a/b/c"));
    rmdir(hr_folder_path(&folder, "a/b"));
    hr_folder_write(hr_folder_path(&folder, "file"), "", 0);
    assert_int_equal(hr_directory_make(hr_folder_path(&folder, "file"), &err), HR_USAGE);
    assert_non_null(strstr(err.message, "is a file, a directory is needed"));
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s", hr_folder_path(&folder, "link"));
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(hr_directory_make(link, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "is a link to nothing, a directory is needed"));
}

static void joined_paths_fit_their_buffer(void **state)
{
    (void)state;
    char path[8];
    hr_error err;
    assert_int_equal(hr_path_join("ab", "cd", path, sizeof path, &err), HR_OK);
    assert_string_equal(path, "ab/cd");
    assert_int_equal(hr_path_join("ab/", "cdef", path, sizeof path, &err), HR_OK);
    assert_string_equal(path, "ab/cdef");
    assert_int_equal(hr_path_join("", "cd", path, sizeof path, &err), HR_OK);
    assert_string_equal(path, "cd");
    assert_int_equal(hr_path_join("abc", "defg", path, sizeof path, &err), HR_USAGE);
    assert_string_equal(path, "cd");
    assert_non_null(strstr(err.message, "needs 9 bytes, the limit is 8"));
}

static void the_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t before = hr_clock_ns();
    for (int i = 0; i < 1000; i++) {
        const int64_t now = hr_clock_ns();
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(opening_names_a_missing_or_irregular_file),
        TEST(a_link_to_nothing_is_named_with_its_target),
        TEST(files_without_permission_are_refused),
        TEST(a_short_read_reports_where_the_file_ends),
        TEST(a_file_appears_only_when_it_is_committed),
        TEST(an_abort_leaves_the_old_file),
        TEST(only_a_regular_file_is_replaced),
        TEST(only_a_file_of_the_same_kind_may_be_replaced),
        TEST(paths_are_checked_without_creating_anything),
        TEST(a_file_beyond_its_size_limit_is_removed),
        TEST(a_full_disk_leaves_nothing),
        TEST(directories_are_created_with_their_parents),
        cmocka_unit_test(joined_paths_fit_their_buffer),
        cmocka_unit_test(the_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
