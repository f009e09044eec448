/* SPDX-License-Identifier: Apache-2.0 */
/* list_test.c - the files that a file name, a folder or a pattern selects. */
#include "corpus_case.h"

#include <errno.h>

#include "corpus/list.h"
#include "require.h"

static hr_folder folder;

static void make(const char *name)
{
    hr_folder_write(hr_folder_path(&folder, name), "x", 1);
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(hr_folder_path(&folder, name), 0777), 0);
}

static int set_up(void **state)
{
    static const char *const folders[] = { "a", "a/deep", "a/deep/er", "b", ".hidden" };
    static const char *const files[] = { "2.txt",         "10.txt",           "1.jsonl.gz",
                                         "README.md",     "a/x.txt",          "a/deep/y.txt.zst",
                                         "a/deep/z.md",   "a/deep/er/y2.txt", "b/x.txt",
                                         ".hidden/x.txt", ".not.txt",         "t1.bin" };
    (void)state;
    folder = hr_folder_open();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) make_folder(folders[i]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) make(files[i]);
    return 0;
}

static int tear_down(void **state)
{
    char command[512];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder.path);
    return system(command);
}

/* The files of a part, as names relative to the folder, each followed by a blank. */
static hr_status list(const char *path, char *names, hr_error *err)
{
    char text[1024];
    hr_spec spec, none = { .count = 0 };
    hr_guard guard;
    snprintf(text, sizeof text, "%s/%s", folder.path, path);
    assert_int_equal(hr_spec_read(&spec, "data.train", text, err), HR_OK);
    const int64_t bytes = hr_list_bytes(&spec, &none);
    hr_region region = hr_region_over(hr_guard_open(&guard, bytes), bytes);
    hr_list found = hr_list_place(&region, &spec, &none);
    *names = 0;
    const hr_status status = hr_list_add(&found, &spec.parts[0], err);
    for (int32_t i = 0; i < found.count && status == HR_OK; i++) {
        const char *file = hr_list_path(&found, i);
        assert_memory_equal(file, folder.path, strlen(folder.path));
        assert_int_equal(found.files[i].bytes, 1);
        sprintf(names + strlen(names), "%s ", file + strlen(folder.path) + 1);
    }
    hr_guard_close(&guard);
    return status;
}

static void assert_listed(const char *path, const char *wanted)
{
    char names[4096];
    hr_error err = { HR_OK, "" };
    if (list(path, names, &err) != HR_OK) fail_msg("%s: %s", path, err.message);
    assert_string_equal(names, wanted);
}

static void assert_refused(const char *path, const char *sentence)
{
    char names[4096];
    hr_error err = { HR_OK, "" };
    const hr_status status = list(path, names, &err);
    hr_corpus_case_assert_refused(status, &err, HR_USAGE, sentence);
}

static void names_match_patterns_as_in_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        { "", "", true },
        { "a", "a", true },
        { "a", "ab", false },
        { "*", "anything", true },
        { "*", ".hidden", false },
        { ".*", ".hidden", true },
        { "?", "a", true },
        { "?", "", false },
        { "a*b*c", "axxbyyc", true },
        { "a*b*c", "axxbyy", false },
        { "*.txt", "a.txt.txt", true },
        { "[a-c]x", "bx", true },
        { "[!a-c]x", "bx", false },
        { "[!a-c]x", "dx", true },
        { "[]]", "]", true },
        { "[a", "[a", true },
        { "[-a]", "-", true },
        { "*[0-9]", "a7", true },
        { "**", "ab", true },
        { "[a-]", "-", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (hr_list_matches(cases[i].pattern, (int64_t)strlen(cases[i].pattern), cases[i].name) !=
            cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].name);
    /* Takes exponential time if every star tries every length. */
    char pattern[128] = "", name[2048];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 40; i++) strcat(pattern, "*a");
    strcat(pattern, "*b");
    assert_false(hr_list_matches(pattern, (int64_t)strlen(pattern), name));
}

static void files_are_sorted_by_the_bytes_of_their_paths(void **state)
{
    (void)state;
    assert_listed("2.txt", "2.txt ");
    assert_listed("README.md", "README.md ");
    assert_listed("*.txt", "10.txt 2.txt ");
    assert_listed("*", "1.jsonl.gz 10.txt 2.txt README.md t1.bin ");
    assert_listed("*/*.txt", "a/x.txt b/x.txt ");
    assert_listed("[ab]/x.txt", "a/x.txt b/x.txt ");
    assert_listed("**/*.txt", "10.txt 2.txt a/deep/er/y2.txt a/x.txt b/x.txt ");
    assert_listed("a/**", "a/deep/er/y2.txt a/deep/y.txt.zst a/deep/z.md a/x.txt ");
    assert_listed("**/er/*", "a/deep/er/y2.txt ");
    assert_listed("a/**.txt", "a/deep/er/y2.txt a/x.txt ");
    assert_listed("**r/y2*", "a/deep/er/y2.txt ");
    assert_listed(".[n]*", ".not.txt ");
}

static void a_folder_selects_the_texts_in_it_and_its_subfolders(void **state)
{
    (void)state;
    assert_listed("", "1.jsonl.gz 10.txt 2.txt a/deep/er/y2.txt a/deep/y.txt.zst a/x.txt b/x.txt ");
    assert_listed("a/", "a/deep/er/y2.txt a/deep/y.txt.zst a/x.txt ");
    assert_listed("*/", "a/deep/er/y2.txt a/deep/y.txt.zst a/x.txt b/x.txt ");
}

static void links_are_followed_and_a_cycle_is_refused(void **state)
{
    (void)state;
    assert_int_equal(symlink("../10.txt", hr_folder_path(&folder, "b/link.txt")), 0);
    assert_int_equal(symlink("../a/deep", hr_folder_path(&folder, "b/other")), 0);
    assert_listed("b/", "b/link.txt b/other/er/y2.txt b/other/y.txt.zst b/x.txt ");
    assert_int_equal(symlink("nowhere", hr_folder_path(&folder, "b/gone")), 0);
    assert_refused("b/", "b/gone: is a link that leads nowhere");
    assert_refused("**/*.txt", "b/gone: is a link that leads nowhere");
    assert_listed("b/*.txt", "b/link.txt b/x.txt ");
    assert_int_equal(symlink("nowhere", hr_folder_path(&folder, "b/gone.txt")), 0);
    assert_refused("b/*.txt", "b/gone.txt: is a link that leads nowhere");
    assert_int_equal(unlink(hr_folder_path(&folder, "b/gone")), 0);
    assert_int_equal(unlink(hr_folder_path(&folder, "b/gone.txt")), 0);
    assert_int_equal(symlink("..", hr_folder_path(&folder, "a/deep/back")), 0);
    assert_refused("a/", "a/deep/back: is a link to one of its parent folders");
    assert_refused("**/*.txt", "/back: is a link to one of its parent folders");
    assert_listed("a/*.txt", "a/x.txt ");
}

static void a_part_without_files_is_refused(void **state)
{
    (void)state;
    make_folder("empty");
    make("b/data.parquet");
    make_folder("tables");
    make("tables/data.parquet");
    assert_refused("none.txt", "none.txt: no such file");
    assert_refused("*.nothing", "*.nothing: no file matches");
    assert_refused("none/*.txt", "none/: no such folder");
    assert_refused("2.txt/", "2.txt/: is a file; remove the slash");
    assert_refused("empty/", "empty/: has no .txt, .jsonl, .ndjson or .json file, plain, .gz or "
                             ".zst");
    assert_refused("a", "is a directory; add a slash");
    assert_refused("b/data.parquet", "to_json(sys.argv[2], orient='records', lines=True)");
    assert_refused("b/*", "is a table of columns, which is not read");
    assert_refused("tables/", "is a table of columns, which is not read");
    assert_listed("b/", "b/x.txt ");
    assert_refused("**/**/x", "** may occur once in a pattern");
    assert_int_equal(mkfifo(hr_folder_path(&folder, "pipe.txt"), 0666), 0);
    assert_refused("pipe.txt", "is a device or pipe, a file is needed");
    assert_refused("*.txt", "pipe.txt: is not a file");
    assert_refused("", "pipe.txt: is not a file");
    assert_listed("1*", "1.jsonl.gz 10.txt ");
}

/* Even if the name, as a pattern, would match other files or none. */
static void an_existing_name_is_not_a_pattern(void **state)
{
    (void)state;
    make("br[1].txt");
    make("br1.txt");
    make("what?.txt");
    make("whats.txt");
    make_folder("d[1]");
    make("d[1]/x.txt");
    make_folder("d1");
    make("d1/x.txt");
    make("d1/y.txt");
    assert_listed("br[1].txt", "br[1].txt ");
    assert_listed("what?.txt", "what?.txt ");
    assert_listed("d[1]/", "d[1]/x.txt ");
    assert_listed("d[1]/*.txt", "d[1]/x.txt ");
    assert_listed("br[12].txt", "br1.txt ");
    assert_listed("d[12]/", "d1/x.txt d1/y.txt ");
    assert_refused("d[1]", "is a directory; add a slash to use the texts in it");
}

static void a_folder_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    enum { NOBODY = 65534 }; /* root reads every folder */
    assert_int_equal(chmod(folder.path, 0755), 0);
    assert_int_equal(chmod(hr_folder_path(&folder, "a/deep"), 0), 0);
    if (geteuid() == 0 && seteuid(NOBODY) != 0)
        hr_test_skip("nobody", "root cannot become another user: %s", strerror(errno));
    assert_refused("a/", "a/deep: cannot be read as a folder: Permission denied");
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(hr_folder_path(&folder, "a/deep"), 0777), 0);
}

static void too_many_files_are_refused(void **state)
{
    (void)state;
    char name[300];
    make_folder("many");
    /* Fills the pool of 4 MiB with some hundred long names in nested folders. */
    memset(name, 'n', sizeof name);
    char place[4096] = "many";
    for (int depth = 0; depth < 12; depth++) {
        name[240] = 0;
        snprintf(place + strlen(place), sizeof place - strlen(place), "/%s", name);
        char whole[4500];
        snprintf(whole, sizeof whole, "%s/%s", folder.path, place);
        assert_int_equal(mkdir(whole, 0777), 0);
        for (int i = 0; i < 300; i++) {
            char file[5200];
            snprintf(file, sizeof file, "%s/%d-%.200s.txt", whole, i, name);
            if (strlen(file) >= 4090) break;
            hr_folder_write(file, "x", 1);
        }
    }
    assert_refused("many/", "many/: more than 65536 files, 8192 folders or 4194304 bytes");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names_match_patterns_as_in_a_shell),
        TEST(files_are_sorted_by_the_bytes_of_their_paths),
        TEST(a_folder_selects_the_texts_in_it_and_its_subfolders),
        TEST(links_are_followed_and_a_cycle_is_refused),
        TEST(a_part_without_files_is_refused),
        TEST(an_existing_name_is_not_a_pattern),
        TEST(a_folder_that_cannot_be_read_is_named),
        TEST(too_many_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
