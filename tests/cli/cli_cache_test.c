/* SPDX-License-Identifier: Apache-2.0 */
/* cli_cache_test.c - the cache of runs without --out: one directory for all commands, damaged files
 * are rebuilt, and the size limit spares files in use. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <utime.h>

#include "headroom/status.h"
#include "support/program.h"

/* The cache is inside the test directory. */
static int set_up(void **state)
{
    char path[128];
    if (make_folder(state) != 0) return -1;
    snprintf(path, sizeof path, "%s/c", program_folder);
    unsetenv("HEADROOM_CACHE_LIMIT");
    return setenv("XDG_CACHE_HOME", path, 1);
}

#define WITH_A_CACHE(name) cmocka_unit_test_setup_teardown(name, set_up, drop_folder)

/* The path of the one file in the cache with this suffix. */
static const char *find(const char *ending)
{
    static char line[256];
    char command[128];
    snprintf(command, sizeof command, "ls c/headroom/*%s >found.txt", ending);
    assert_int_equal(system(command), 0);
    FILE *file = fopen("found.txt", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void every_command_uses_the_same_cache(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("data inspect tiny.yaml data.train=text.txt"), HR_OK);
    assert_non_null(strstr(out, "/c/headroom/bytes-"));
    assert_null(strstr(out, "(cached)"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt"), HR_OK);
    assert_non_null(strstr(out, "(cached)"));
    assert_int_equal(run("data inspect tiny.yaml data.train=text.txt"), HR_OK);
    assert_non_null(strstr(out, "(cached)"));
    assert_int_equal(run("cache path"), HR_OK);
    char expected[128];
    snprintf(expected, sizeof expected, "%s/c/headroom\n", program_folder);
    assert_string_equal(out, expected);
    assert_int_equal(run("cache path --json"), HR_OK);
    json_t *object = out_json();
    assert_non_null(json_object_get(object, "path"));
    json_decref(object);
    assert_int_equal(setenv("XDG_CACHE_HOME", "", 1) | setenv("HOME", "", 1), 0);
    assert_int_equal(run("cache list"), HR_USAGE);
    assert_string_equal(err,
                        "headroom: neither XDG_CACHE_HOME nor HOME says where the cache is; set "
                        "one of them\n");
}

/* Flips a bit in the middle of a file. */
static void damage(const char *path)
{
    struct stat what;
    char byte;
    const int file = open(path, O_RDWR);
    assert_true(file >= 0 && fstat(file, &what) == 0);
    assert_int_equal(pread(file, &byte, 1, what.st_size / 2), 1);
    byte ^= 4;
    assert_int_equal(pwrite(file, &byte, 1, what.st_size / 2), 1);
    close(file);
}

/* After damage to the file with this suffix, the next run reports it once and rebuilds the file. */
static void is_made_again(const char *recipe, const char *ending)
{
    char line[512], path[256];
    assert_int_equal(run("train %s", recipe), HR_OK);
    snprintf(path, sizeof path, "%s", find(ending));
    damage(path);
    assert_int_equal(run("train %s", recipe), HR_OK);
    snprintf(line, sizeof line, "cache: %s/%s is damaged and is rebuilt\n", program_folder, path);
    const char *said = strstr(out, line);
    if (!said) fail_msg("%s: %s%s", line, out, err);
    assert_null(strstr(said + strlen(line), "is damaged"));
    assert_int_equal(run("train %s", recipe), HR_OK);
    assert_null(strstr(out, "is damaged"));
    assert_int_equal(run("data inspect %s", recipe), HR_OK);
    damage(path);
    assert_int_equal(run("data inspect %s --json", recipe), HR_OK);
    assert_string_equal(err, line);
    json_decref(out_json());
    assert_int_equal(run("cache clear"), HR_OK);
}

static void a_damaged_file_is_rebuilt(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    is_made_again("tiny.yaml data.train=text.txt", ".tokens");
    is_made_again("tiny.yaml data.train=text.txt data.tokenizer=words model.vocab_size=200",
                  ".vocabulary");
    assert_int_equal(run("tokenize train text.txt --vocab-size 300 --out t"), HR_OK);
    is_made_again("tiny.yaml data.train=text.txt data.tokenizer=t model.vocab_size=300", ".tokens");
    is_made_again("tiny.yaml data.train=text.txt data.tokenizer=t model.vocab_size=300",
                  ".vocabulary");
}

/* An empty text has no tokens; this is not reported as damage. */
static void a_text_without_tokens_is_not_damage(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("empty.jsonl", "{\"text\": \"\"}\n");
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(run("train tiny.yaml data.train=empty.jsonl"), HR_CORRUPT);
        assert_non_null(strstr(err, "has no document with text"));
        assert_null(strstr(out, "is damaged"));
    }
}

static void the_least_recently_used_are_removed_first_and_those_in_use_stay(void **state)
{
    (void)state;
    require_program();
    static const char *const names[] = { "bytes-a.tokens", "words-b.tokens", "words-c.vocabulary",
                                         "tokens-d.tokens" };
    assert_int_equal(mkdir("c", 0700) | mkdir("c/headroom", 0700), 0);
    for (int32_t i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "c/headroom/%s", names[i]);
        put(path, "0123456789");
        const struct utimbuf used = { 1000 + i, 1000 + i };
        assert_int_equal(utime(path, &used), 0);
    }
    put("c/headroom/notes.txt", "somebody's");
    put("c/headroom/calibration-e.json", "{}");
    assert_int_equal(symlink("../../notes", "c/headroom/bytes-f.tokens"), 0);
    const int held = open("c/headroom/words-b.tokens", O_RDONLY);
    assert_int_equal(flock(held, LOCK_SH), 0);
    assert_int_equal(run("cache list"), HR_OK);
    assert_non_null(strstr(out, "            bytes  last used             kind         file\n"));
    assert_non_null(strstr(out, "  tokens       words-b.tokens  in use\n"));
    assert_non_null(strstr(out, "1970-01-01T00:16:43Z"));
    assert_non_null(strstr(out, "5 files, 42 bytes"));
    assert_null(strstr(out, "notes"));
    assert_true(strstr(out, "tokens-d.tokens") < strstr(out, "bytes-a.tokens"));
    assert_int_equal(run("cache prune --limit 25"), HR_OK);
    assert_non_null(strstr(out, "removed 2 files, 20 bytes"));
    assert_false(is_there("c/headroom/bytes-a.tokens"));
    assert_true(is_there("c/headroom/words-b.tokens"));
    assert_false(is_there("c/headroom/words-c.vocabulary"));
    assert_true(is_there("c/headroom/tokens-d.tokens"));
    assert_int_equal(run("cache prune --limit none"), HR_OK);
    assert_non_null(strstr(out, "removed 0 files"));
    assert_int_equal(run("cache clear --json"), HR_OK);
    json_t *report = out_json();
    assert_int_equal(json_integer_value(json_object_get(report, "removed")), 1);
    assert_int_equal(json_integer_value(json_object_get(report, "in_use")), 1);
    assert_int_equal(json_integer_value(json_object_get(report, "kept_bytes")), 10);
    json_decref(report);
    close(held);
    assert_int_equal(run("cache clear"), HR_OK);
    assert_false(is_there("c/headroom/words-b.tokens"));
    assert_true(is_there("c/headroom/notes.txt") && is_there("c/headroom/calibration-e.json"));
    assert_int_equal(run("cache list --json"), HR_OK);
    json_t *list = out_json();
    assert_int_equal(json_array_size(json_object_get(list, "files")), 1);
    json_decref(list);
    assert_int_equal(run("cache prune --limit lots"), HR_USAGE);
    assert_string_equal(err, "headroom: --limit takes a size such as 16GiB, or none; it was given "
                             "\"lots\"\n");
}

static void a_run_keeps_the_cache_within_its_limit(void **state)
{
    (void)state;
    require_program();
    char first[256];
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt"), HR_OK);
    snprintf(first, sizeof first, "%s", find(".tokens"));
    assert_int_equal(system("rev text.txt >other.txt"), 0);
    assert_int_equal(setenv("HEADROOM_CACHE_LIMIT", "1", 1), 0);
    assert_int_equal(run("train tiny.yaml data.train=other.txt"), HR_OK);
    assert_non_null(strstr(out, "cache: removed 1 unused file, "));
    assert_false(is_there(first));
    assert_true(is_there(find(".tokens"))); /* used by this run */
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out o"), HR_OK);
    assert_null(strstr(out, "cache:"));
    assert_int_equal(setenv("HEADROOM_CACHE_LIMIT", "plenty", 1), 0);
    assert_int_equal(run("train tiny.yaml data.train=text.txt"), HR_USAGE);
    assert_string_equal(err,
                        "headroom: HEADROOM_CACHE_LIMIT takes a size such as 16GiB, or none; it "
                        "was given \"plenty\"\n");
}

static void a_run_continues_while_its_cache_is_cleared(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("data inspect tiny.yaml data.train=text.txt"), HR_OK);
    char shard[256];
    snprintf(shard, sizeof shard, "%s", find(".tokens"));
    assert_int_equal(mkfifo("metrics", 0600), 0);
    /* More steps than a pipe has room for lines: the run cannot end before it is read. */
    put("clear.sh", "\"$HEADROOM\" train tiny.yaml data.train=text.txt train.steps=100000 "
                    "--metrics metrics >run.txt 2>&1 &\n"
                    "exec 3<metrics; read line <&3\n"
                    "\"$HEADROOM\" cache clear >cleared.txt\n"
                    "kill -TERM $!; cat <&3 >/dev/null; wait\n");
    assert_int_equal(system("sh clear.sh"), 0);
    get("cleared.txt", out);
    assert_non_null(strstr(out, "1 of them is in use by a running process"));
    assert_true(is_there(shard));
    get("run.txt", out);
    assert_non_null(strstr(out, "step 1/100000"));
    assert_null(strstr(out, "delete the file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_A_CACHE(every_command_uses_the_same_cache),
        WITH_A_CACHE(a_damaged_file_is_rebuilt),
        WITH_A_CACHE(a_text_without_tokens_is_not_damage),
        WITH_A_CACHE(the_least_recently_used_are_removed_first_and_those_in_use_stay),
        WITH_A_CACHE(a_run_keeps_the_cache_within_its_limit),
        WITH_A_CACHE(a_run_continues_while_its_cache_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
