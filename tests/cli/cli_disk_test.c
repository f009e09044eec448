/* SPDX-License-Identifier: Apache-2.0 */
/* cli_disk_test.c - disk space of a run: the plan includes it, a run without enough is refused, and
 * a disk that becomes full later costs only checkpoints. */
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/program.h"

static const char recipe[] =
    "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
    "train: {batch: 4, seq_len: 16, steps: 6, threads: 1, checkpoint_every: 2, keep_last: 3}\n";

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", recipe);
}

/* Runs a script with a file system of this size at ./disk. */
static int run_on_disk(int64_t bytes, const char *script)
{
    char command[PROGRAM_COMMAND_BYTES];
    assert_true(mkdir("disk", 0777) == 0 || access("disk", F_OK) == 0);
    if (system("unshare -rm mount -t tmpfs none disk 2>no.txt") != 0) {
        hr_test_skip("mount", "no file system can be mounted here");
    }
    put("script.sh", script);
    snprintf(command, sizeof command,
             "unshare -rm sh -c 'mount -t tmpfs -o size=%lld none disk && . ./script.sh' "
             ">out.txt 2>err.txt",
             (long long)bytes);
    const int status = system(command);
    get("out.txt", out);
    get("err.txt", err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int64_t number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static int64_t size_of(const char *path)
{
    struct stat there;
    assert_int_equal(stat(path, &there), 0);
    return there.st_size;
}

static const char *const kinds[] = { "model", "moment_1", "moment_2", "momentum", "average" };

/* Bytes of the blocks that the files of a directory use. */
static int64_t folder_bytes(const char *folder)
{
    char command[256];
    long long bytes;
    snprintf(command, sizeof command, "du -sB1 --apparent-size %s >bytes.txt", folder);
    assert_int_equal(system(command), 0);
    get("bytes.txt", out);
    assert_int_equal(sscanf(out, "%lld", &bytes), 1);
    return bytes;
}

static void the_plan_includes_the_bytes_of_checkpoints_logs_and_shards(void **state)
{
    static const struct {
        const char *words;
        int32_t kinds;
        int64_t checkpoints;
    } cases[] = {
        { "", 3, 3 },
        { "train.keep_last=1", 3, 2 },
        { "train.checkpoint_every=0", 3, 1 },
        { "train.optimizer.kind=sgd train.keep_last=2", 2, 3 },
        { "train.ema_decay=0.9 model.family=llama train.dtype=bf16", 4, 3 },
        { "train.keep_last=1 train.checkpoint_every=1 train.keep_every=2", 3, 5 },
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("plan recipe.yaml data.train=text.txt %s --json", cases[i].words),
                         HR_OK);
        json_t *plan = json_loads(out, 0, NULL), *disk = json_object_get(plan, "disk");
        assert_non_null(disk);
        assert_int_equal(system("rm -rf run"), 0);
        assert_int_equal(run("train recipe.yaml data.train=text.txt %s --out run", cases[i].words),
                         HR_OK);
        int64_t sum = 0;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char path[128];
            snprintf(path, sizeof path, "run/checkpoints/step-000000000006/%s.safetensors",
                     kinds[k]);
            if (access(path, F_OK) == 0) sum += size_of(path);
        }
        if (number(disk, "tensor_bytes") != sum) fail_msg("%s", cases[i].words);
        assert_int_equal(number(disk, "checkpoints"), cases[i].checkpoints);
        assert_int_equal(number(disk, "steps"), 6);
        assert_true(folder_bytes("run/checkpoints/step-000000000006") <=
                    number(disk, "checkpoint_bytes"));
        assert_true(size_of("run/metrics.jsonl") + folder_bytes("run/tensorboard") <=
                    number(disk, "log_bytes"));
        assert_int_equal(system("cat run/*.tokens >shards.txt"), 0);
        assert_true(size_of("shards.txt") <= number(disk, "shard_bytes"));
        json_decref(plan);
    }
    assert_int_equal(run("plan recipe.yaml data.train=text.txt"), HR_OK);
    assert_non_null(strstr(out, "\ndisk, with --out\n  one checkpoint  "));
    assert_non_null(strstr(out, "\n  3 checkpoints  "));
    assert_non_null(strstr(out, "  all that the run writes\n"));
    assert_non_null(strstr(out, "\n  token shards  "));
    assert_int_equal(run("plan recipe.yaml train.keep_last=1"), HR_OK);
    assert_non_null(strstr(out, "  train.keep_last=1 and one being written\n"));
    assert_int_equal(run("plan recipe.yaml train.checkpoint_every=end"), HR_OK);
    assert_null(strstr(out, "\n  1 checkpoint"));
    assert_int_equal(run("plan recipe.yaml train.steps=auto train.keep_every=100"), HR_OK);
    assert_non_null(strstr(out, "and one more every 100 steps (train.keep_every)"));
    assert_non_null(strstr(out, "at most, for each step"));
}

static void a_run_without_enough_disk_space_is_refused(void **state)
{
    static const char script[] = "\"$HEADROOM\" train recipe.yaml data.train=text.txt "
                                 "--out disk/run; code=$?; rm -f disk/run/*.tokens; find disk; "
                                 "exit $code\n";
    (void)state;
    prepare();
    assert_int_equal(run_on_disk(500000, script), HR_NO_FIT);
    const char *told = strstr(err, "headroom: disk/run: the run needs ");
    assert_non_null(told);
    assert_non_null(strstr(told, " bytes of disk for up to 3 checkpoints of "));
    assert_non_null(strstr(told, " are free; free "));
    assert_non_null(strstr(told, ", type train.keep_last=1, or give --out on another disk\n"));
    assert_null(strstr(out, "step 1/6"));
    assert_non_null(strstr(out, "\ndisk\ndisk/run\n")); /* nothing but token shards was written */
    assert_null(strstr(out, "disk/run/"));
    assert_int_equal(run_on_disk(100000, script), HR_NO_FIT);
    assert_null(strstr(err, "keep_last=1"));
    assert_int_equal(run_on_disk(2000000, script), HR_OK);
    /* A log that may exceed the disk ends neither the run nor a checkpoint. */
    assert_int_equal(run_on_disk(1000000, "\"$HEADROOM\" train recipe.yaml data.train=text.txt "
                                          "train.steps=4000 train.checkpoint_every=1000 "
                                          "train.keep_last=1 --out disk/run\n"),
                     HR_OK);
    assert_non_null(strstr(out, "disk   the log may grow to "));
    assert_non_null(strstr(err, "metrics.jsonl: has no more room beside the checkpoints: later "
                                "steps are left out"));
    assert_null(strstr(err, "no checkpoint"));
    /* A resumed run does not count its existing checkpoints again. */
    assert_int_equal(run_on_disk(1000000, "run=\"$HEADROOM train recipe.yaml data.train=text.txt "
                                          "train.schedule.kind=constant --out disk/run\"\n"
                                          "$run train.steps=6 && $run train.steps=12\n"),
                     HR_OK);
    assert_non_null(strstr(out, "step 12/12"));
}

/* The disk is filled after the first checkpoint, and emptied after a save has failed. */
static void a_disk_that_fills_up_loses_checkpoints_but_not_the_run(void **state)
{
    (void)state;
    prepare();
    const int code = run_on_disk(
        16000000,
        "mkfifo lines\n"
        "\"$HEADROOM\" train recipe.yaml data.train=text.txt train.steps=8000 train.keep_last=1 "
        "train.checkpoint_every=100 --out disk/run >lines 2>told.txt &\n"
        "while read line; do case $line in saved*) break ;; esac; done <lines &\n"
        "reader=$!\n"
        "wait $reader\n"
        "dd if=/dev/zero of=disk/big bs=4096 2>no.txt\n"
        "until grep -q 'a checkpoint needs' told.txt; do sleep 0.05; done\n"
        "rm disk/big\n"
        "wait %1; code=$?\n"
        "find disk/run/checkpoints -name '.*'\n"
        "\"$HEADROOM\" checkpoint verify disk/run >no.txt || exit 9\n"
        "cat told.txt >&2\n"
        "exit $code\n");
    if (code != HR_OK) fail_msg("%d: %s", code, err);
    const char *told = strstr(err, "no checkpoint: disk/run/checkpoints: a checkpoint needs ");
    assert_non_null(told);
    assert_non_null(strstr(told, " bytes of disk, and "));
    assert_string_equal(out, "");
}

/* The disk is filled before SIGTERM ends the run. */
static void a_disk_that_is_full_at_the_end_loses_the_weights(void **state)
{
#define FULL "dd if=/dev/zero of=disk/big bs=4096 2>no.txt; kill -TERM $run"
    static const struct {
        const char *at_first_step, *at_save, *said, *advice;
    } cases[] = {
        { FULL, ":", ": the weights of this run are lost: disk/run/checkpoints: a checkpoint needs",
          " bytes; the same command then starts over\n" },
        { "kill -USR1 $run", FULL, ": the weights after step ",
          " bytes; the same command then resumes at step " },
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[1024];
        snprintf(script, sizeof script,
                 "mkfifo lines\n"
                 "\"$HEADROOM\" train recipe.yaml data.train=text.txt train.steps=100000000 "
                 "train.checkpoint_every=0 --out disk/run >lines 2>told.txt &\n"
                 "run=$!\n"
                 "while read line; do case $line in \"step 1/\"*) %s ;; saved*) %s ;; esac; done "
                 "<lines\n"
                 "wait $run; code=$?\n"
                 "rm lines\n"
                 "cat told.txt >&2\n"
                 "exit $code\n",
                 cases[i].at_first_step, cases[i].at_save);
        const int code = run_on_disk(16000000, script);
        const char *told = strstr(err, cases[i].said);
        if (code != HR_FAILURE || !told || !strstr(told, cases[i].advice))
            fail_msg("%d: %s", code, err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(the_plan_includes_the_bytes_of_checkpoints_logs_and_shards),
        IN_A_FOLDER(a_run_without_enough_disk_space_is_refused),
        IN_A_FOLDER(a_disk_that_fills_up_loses_checkpoints_but_not_the_run),
        IN_A_FOLDER(a_disk_that_is_full_at_the_end_loses_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
