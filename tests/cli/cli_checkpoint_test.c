/* SPDX-License-Identifier: Apache-2.0 */
/* cli_checkpoint_test.c - unattended runs: checkpoint retention, end conditions, signals, bad
 * steps, and locking of the run directory. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/program.h"

static const char run_words[] = "train tiny.yaml data.train=text.txt --out run train.steps=12 ";

/* Names of the checkpoints of `run`, oldest first, as steps with a blank after each. */
static const char *steps_kept(void)
{
    static char steps[PROGRAM_TEXT_BYTES];
    assert_int_equal(system("ls run/checkpoints | sed 's/step-0*//' | tr '\n' ' ' >steps.txt"), 0);
    get("steps.txt", steps);
    return steps;
}

static void the_newest_the_best_and_periodic_checkpoints_are_kept(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s --fresh train.checkpoint_every=1", run_words), HR_OK);
    assert_string_equal(steps_kept(), "11 12 ");
    assert_int_equal(run("%s --fresh train.checkpoint_every=1 train.keep_last=3", run_words),
                     HR_OK);
    assert_string_equal(steps_kept(), "10 11 12 ");
    assert_int_equal(run("%s --fresh train.checkpoint_every=2 train.keep_last=1 "
                         "train.keep_every=4",
                         run_words),
                     HR_OK);
    assert_string_equal(steps_kept(), "4 8 12 ");
    /* First both letters become likelier, then only one after the other: the best is not the
     * newest. */
    assert_int_equal(system("yes ab | head -c 6144 | tr -d '\\n' >a.txt && tr b a <a.txt >b.txt"),
                     0);
    assert_int_equal(run("%s --fresh train.checkpoint_every=1 train.keep_last=1 train.eval_every=3 "
                         "train.keep_best=true data.train=a.txt data.valid=b.txt "
                         "train.optimizer.lr=0.03",
                         run_words),
                     HR_OK);
    int64_t best = 0, newest = 0;
    assert_int_equal(sscanf(steps_kept(), "%" SCNd64 " %" SCNd64, &best, &newest), 2);
    assert_int_equal(newest, 12);
    assert_int_equal(best, 6);
    assert_int_equal(run("checkpoint list run"), HR_OK);
    char row[64];
    snprintf(row, sizeof row, "\n%12" PRId64 " ", best);
    const char *line = strstr(out, row);
    assert_non_null(line);
    assert_non_null(strstr(line, "best"));
    assert_null(strstr(strstr(out, "best") + 1, "best")); /* only one is marked best */
    assert_int_equal(run("checkpoint prune run train.steps=1"), HR_USAGE);
    assert_string_equal(err, "headroom: train.steps=1: prune takes only the train.keep_* keys\n");
    assert_int_equal(run("checkpoint prune run train.keep_best=false"), HR_OK);
    assert_string_equal(steps_kept(), "12 ");
    assert_int_equal(run("checkpoint verify run --json"), HR_OK);
    json_t *all = out_json();
    assert_int_equal(json_array_size(all), 1);
    assert_true(json_is_true(json_object_get(json_array_get(all, 0), "whole")));
    json_decref(all);
}

static void patience_and_time_limit_end_a_run(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(
        run("train tiny.yaml --fresh data.train=text.txt data.valid=text.txt --out run "
            "train.steps=100000 train.eval_every=1 train.patience=3 "
            "train.schedule.kind=constant train.optimizer.lr=0.5 "
            "train.optimizer.clip=none"),
        HR_OK);
    get("run/metrics.jsonl", out);
    int32_t evaluations = 0;
    for (const char *at = out; (at = strstr(at, "\"evaluation\"")); at++) evaluations++;
    assert_true(evaluations > 3 && evaluations < 1000);
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                         "train.steps=100000 train.eval_every=1 train.patience=3 "
                         "train.schedule.kind=constant train.optimizer.lr=0.5 "
                         "train.optimizer.clip=none"),
                     HR_OK);
    assert_non_null(strstr(out, "the run is complete"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                         "train.steps=100000 train.eval_every=1 train.patience=6 "
                         "--allow-change train.patience "
                         "train.schedule.kind=constant train.optimizer.lr=0.5 "
                         "train.optimizer.clip=none"),
                     HR_OK);
    assert_non_null(strstr(out, "validation loss")); /* with more patience it continues */

    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out run "
                         "train.steps=1000000000 train.max_seconds=1"),
                     HR_INTERRUPTED);
    assert_non_null(strstr(err, "headroom: interrupted after step "));
    assert_non_null(strstr(err, "; the weights are saved\n"));
    assert_int_equal(run("checkpoint verify run"), HR_OK);
    assert_int_equal(system("grep -q '\"signal\":\"time\"' run/metrics.jsonl"), 0);
}

static void signals_save_and_report_and_the_run_continues(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const int asked[] = { SIGUSR1, SIGUSR2, SIGHUP };
    assert_int_equal(run_signalled("train tiny.yaml --fresh data.train=text.txt --out run "
                                   "train.steps=300 train.keep_last=9",
                                   "step 30/", asked, 3),
                     HR_OK);
    assert_non_null(strstr(out, "step 300/300"));
    assert_non_null(strstr(out, "memory after step "));
    int64_t asked_for = 0, last = 0;
    assert_int_equal(sscanf(steps_kept(), "%" SCNd64 " %" SCNd64, &asked_for, &last), 2);
    assert_true(asked_for >= 30 && asked_for < 300);
    assert_int_equal(last, 300);
    assert_int_equal(system("grep -q '\"signal\":\"SIGUSR1\"' run/metrics.jsonl && "
                            "grep -q '\"signal\":\"SIGUSR2\"' run/metrics.jsonl"),
                     0);
    get("run/memory.txt", out);
    assert_non_null(strstr(out, "planned\n"));
    assert_non_null(strstr(out, "the most so far\n"));
}

static const char *text_of_weights(char *text, int64_t *bytes)
{
    FILE *file = fopen("run/model.safetensors", "rb");
    assert_non_null(file);
    *bytes = (int64_t)fread(text, 1, PROGRAM_TEXT_BYTES, file);
    fclose(file);
    return text;
}

static void a_resumed_run_equals_an_uninterrupted_run(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static char whole[PROGRAM_TEXT_BYTES], parts[PROGRAM_TEXT_BYTES];
    int64_t whole_bytes, parts_bytes;
    static const char words[] = "train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                                "train.steps=60 train.eval_every=20 model.dropout=0.2 "
                                "train.ema_decay=0.9";
    assert_int_equal(run("%s --fresh", words), HR_OK);
    text_of_weights(whole, &whole_bytes);
    assert_int_equal(system("cp run/average/model.safetensors average"), 0);
    char fresh[512];
    snprintf(fresh, sizeof fresh, "%s --fresh", words);
    assert_int_equal(run_interrupted(fresh, "step 12/", false), HR_INTERRUPTED);
    assert_int_equal(run("%s train.threads=1 memory.micro_batch=1", words), HR_OK);
    assert_non_null(strstr(out, "resume "));
    text_of_weights(parts, &parts_bytes);
    assert_int_equal(parts_bytes, whole_bytes);
    assert_memory_equal(parts, whole, (size_t)whole_bytes);
    assert_int_equal(system("cmp run/average/model.safetensors average"), 0);
    assert_int_equal(run("%s", words), HR_OK);
    assert_non_null(strstr(out, "the run is complete, at step 60; use --fresh to start over\n"));
}

static void another_recipe_or_text_is_refused_unless_allowed(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s --fresh", run_words), HR_OK);
    assert_int_equal(run("%s train.optimizer.lr=0.02 train.seed=7", run_words), HR_USAGE);
    assert_non_null(strstr(err, "train.seed was \"0\" and is \"7\"\n"));
    assert_non_null(strstr(err, "train.optimizer.lr was \""));
    assert_non_null(
        strstr(err, "the run in run has another recipe, at step 12: 2 changes are not allowed; "));
    assert_int_equal(run("%s train.optimizer.lr=0.02 --allow-change train.optimizer.lr "
                         "train.steps=14 --allow-change train.steps",
                         run_words),
                     HR_OK);
    assert_non_null(strstr(out, "step 14/14"));
    assert_int_equal(run("%s --allow-change train.optimiser.lr", run_words), HR_USAGE);
    assert_non_null(strstr(err, "train.optimizer.lr"));
    put("text.txt", "another text, as long as the batches need it to be: ");
    for (int32_t i = 0; i < 8; i++)
        assert_int_equal(system("cat text.txt text.txt >more.txt && mv more.txt text.txt"), 0);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=20 "
                         "train.optimizer.lr=0.02 --allow-change train.steps"),
                     HR_USAGE);
    assert_non_null(strstr(err, "data.train: the text has changed since the run began"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=20 "
                         "train.optimizer.lr=0.02 --allow-change train.steps "
                         "--allow-change data.train"),
                     HR_OK);
}

/* The average starts from the current weights. A deprecated key name is no change. */
static void the_ema_can_be_enabled_later(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s", run_words), HR_OK);
    for (int32_t steps = 14; steps <= 16; steps += 2)
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run %s=0.5 "
                             "train.steps=%d --allow-change train.steps %s",
                             steps == 14 ? "train.ema_decay" : "train.average", steps,
                             steps == 14 ? "--allow-change train.average" : ""),
                         HR_OK);
    assert_int_equal(system("cmp -s run/average/model.safetensors run/model.safetensors"), 256);
    assert_null(strstr(err, "run/average"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=18 "
                         "--allow-change train.steps --allow-change train.ema_decay"),
                     HR_OK);
    assert_non_null(strstr(err, "run/average/model.safetensors: is from an earlier run with "));
}

static void a_second_run_in_a_folder_is_refused(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("\"$HEADROOM\" train tiny.yaml --fresh data.train=text.txt --out run "
                            "train.steps=1000000000 >first.txt 2>&1 & echo $! >pid; "
                            "while ! grep -q 'step 1/' first.txt; do sleep 0.05; done"),
                     0);
    assert_int_equal(run("%s", run_words), HR_USAGE);
    assert_non_null(strstr(err, "run: another run (process "));
    assert_int_equal(run("%s --fresh", run_words), HR_USAGE);
    assert_int_equal(system("kill -9 $(cat pid); while kill -0 $(cat pid) 2>none.txt; do sleep "
                            "0.05; done"),
                     0);
    assert_int_equal(run("%s --fresh", run_words), HR_OK); /* the lock of a dead process is free */
}

static void a_bad_step_is_skipped_or_rolled_back(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_blot();
    static const char words[] = "train tiny.yaml --fresh data.train=text.txt --out run "
                                "train.steps=300 train.schedule.kind=constant "
                                "train.optimizer.lr=0.01 train.detect_spikes=true ";
    assert_int_equal(run("%s", words), HR_DIVERGED);
    assert_non_null(strstr(err, ", in the steps before at most "));
    assert_int_equal(run("%s train.bad_steps=skip train.bad_steps_max=1000", words), HR_OK);
    assert_non_null(strstr(err, "; the update is skipped\n"));
    assert_int_equal(run("%s train.bad_steps=rewind train.checkpoint_every=5 "
                         "train.bad_steps_max=1000",
                         words),
                     HR_OK);
    assert_non_null(strstr(err, ", the batch is skipped\n"));
    get("run/metrics.jsonl", out);
    assert_non_null(strstr(out, "\"event\":\"trouble\""));
    /* No step is in the log twice, although some were repeated. */
    int64_t expected = 0, step;
    for (const char *at = out; (at = strstr(at, "{\"step\":")); at++) {
        assert_int_equal(sscanf(at, "{\"step\":%" SCNd64, &step), 1);
        assert_int_equal(step, ++expected);
    }
    assert_int_equal(expected, 300);
}

/* Damaged weights stay damaged: skipping steps and rolling back are limited. */
static void a_run_with_only_bad_steps_ends(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char words[] = "train tiny.yaml --fresh data.train=text.txt --out run "
                                "train.steps=40 train.optimizer.lr=1000 "
                                "train.optimizer.weight_decay=1000 train.bad_steps_max=4 ";
    assert_int_equal(run("%s train.bad_steps=skip", words), HR_DIVERGED);
    assert_non_null(strstr(err, "; the update is skipped\n"));
    assert_non_null(strstr(err, "the loss is nan"));
    assert_int_equal(run("%s train.bad_steps=rewind", words), HR_DIVERGED);
    assert_non_null(strstr(err, "there is no checkpoint to rewind to"));
    assert_int_equal(run("%s train.bad_steps=rewind train.checkpoint_every=1", words), HR_DIVERGED);
    assert_non_null(strstr(err, ", the batch is skipped\n"));
    assert_int_equal(run("checkpoint verify run"), HR_OK); /* all of them are finite */
}

/* Returns true when the first tensors of two checkpoints are equal; the others follow. */
static bool begin_alike(const char *one, const char *other)
{
    char command[512];
    snprintf(command, sizeof command,
             "cmp -s -n 16384 run/checkpoints/step-%012d/model.safetensors "
             "run/checkpoints/step-%012d/model.safetensors",
             atoi(one), atoi(other));
    return system(command) == 0;
}

/* The recipe of a run that rolls back often: every fifth step is bad. */
static void put_ruined(int32_t checkpoint_every)
{
    char recipe[512];
    put_tiny_and_text();
    snprintf(recipe, sizeof recipe,
             "model: {d_model: 256, n_layers: 8, n_heads: 2, d_ff: 512}\n"
             "train: {batch: 1, seq_len: 8, steps: 1000000, threads: 1, "
             "optimizer: {lr: 1, weight_decay: 10, clip: none}, schedule: {kind: constant}, "
             "checkpoint_every: %d, keep_last: 3, bad_steps: rewind, bad_steps_max: 1000000}\n",
             checkpoint_every);
    put("tiny.yaml", recipe);
}

/* During a rollback, the weights in memory are of two steps and are not a checkpoint. */
static void a_signal_during_a_rollback_keeps_its_checkpoint(void **state)
{
    (void)state;
    require_program();
    put_ruined(3);
    for (int32_t i = 0; i < 12; i++) {
        char command[512];
        snprintf(
            command, sizeof command,
            "echo >err.txt; \"$HEADROOM\" train tiny.yaml --fresh data.train=text.txt --out run "
            ">out.txt 2>>err.txt & p=$!; "
            "while kill -0 $p && ! grep -q 'rewound to' err.txt; do sleep 0.01; done; "
            "sleep 0.%03d; kill $p; wait $p",
            i * 37 % 200);
        assert_int_equal(WEXITSTATUS(system(command)), HR_INTERRUPTED);
        const char *kept = steps_kept();
        for (const char *next; *kept && *(next = strchr(kept, ' ') + 1); kept = next)
            assert_false(begin_alike(kept, next));
    }
    assert_int_equal(run("checkpoint verify run"), HR_OK);
}

/* The run uses the directory that has the name: no other run can enter it, and the log is there. */
static void a_directory_that_was_moved_away_is_created_again(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char begin[] =
        "rm -rf run gone; echo >out.txt; echo >err.txt; "
        "\"$HEADROOM\" train tiny.yaml data.train=text.txt --out run train.steps=1000000000 "
        "train.checkpoint_every=50 >>out.txt 2>>err.txt & p=$!; "
        "await() { while kill -0 $p && ! ls $1 >none.txt 2>&1; do sleep 0.01; done; }; "
        "await 'run/checkpoints/step-*'; mv run gone; await 'run/checkpoints/step-*'; "
        "\"$HEADROOM\" train tiny.yaml data.train=text.txt --out run >none.txt 2>second.txt; "
        "code=$?; kill $p; wait $p; test $? = 75 && exit $code";
    assert_int_equal(WEXITSTATUS(system(begin)), HR_USAGE);
    get("second.txt", err);
    assert_non_null(strstr(err, "writes to it"));
    get("err.txt", err);
    assert_non_null(strstr(err, "run: the output folder has changed"));
    get("run/metrics.jsonl", out);
    assert_non_null(strstr(out, "the output folder has changed"));
    assert_int_equal(run("checkpoint verify run"), HR_OK);
    assert_int_equal(run("checkpoint verify gone"), HR_OK);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=1000000000 "
                         "train.max_seconds=1 train.checkpoint_every=50"),
                     HR_INTERRUPTED);
    assert_non_null(strstr(out, "\nresume run/checkpoints/step-"));
}

/* The newest of several checkpoints is damaged while the run is stopped, repeated until the damage
 * falls between its creation and the next rollback. */
static void a_rollback_uses_an_undamaged_checkpoint(void **state)
{
    (void)state;
    require_program();
    put_ruined(1);
    put("damage.sh", "for turn in $(seq 300); do\n"
                     "    sleep 0.0$((turn % 7 + 1))\n"
                     "    kill -STOP $1\n"
                     "    grep -q 'moment_1.safetensors: damaged' err.txt && break\n"
                     "    newest=$(ls -d run/checkpoints/step-* | tail -n 1)\n"
                     "    dd if=/dev/zero of=$newest/moment_1.safetensors bs=1 count=64 seek=9000 "
                     "conv=notrunc 2>>dd.txt\n"
                     "    kill -CONT $1\n"
                     "done\n"
                     "kill -CONT $1\n");
    const int code = system(
        "echo >err.txt; \"$HEADROOM\" train tiny.yaml --fresh data.train=text.txt --out run "
        ">out.txt 2>>err.txt & p=$!; "
        "while kill -0 $p && ! grep -q 'rewound to' err.txt; do sleep 0.01; done; "
        "sh damage.sh $p; kill $p; wait $p");
    get("err.txt", err);
    if (WEXITSTATUS(code) != HR_INTERRUPTED) fail_msg("code %d: %s", WEXITSTATUS(code), err);
    assert_non_null(strstr(err, "moment_1.safetensors: damaged"));
    assert_int_equal(run("checkpoint verify run"), HR_OK);
}

/* Like timeout(1): to the process, and to its group. */
static void two_sigterms_in_a_row_are_one_request(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    for (int32_t i = 0; i < 10; i++)
        assert_int_equal(
            WEXITSTATUS(system("echo >out.txt; \"$HEADROOM\" train tiny.yaml --fresh "
                               "data.train=text.txt --out run "
                               "train.steps=1000000000 >>out.txt 2>err.txt & p=$!; "
                               "while ! grep -q 'step 1/' out.txt; do sleep 0.01; done; "
                               "kill $p $p; kill $p $p 2>none.txt; wait $p")),
            HR_INTERRUPTED);
}

static void a_failed_removal_is_reported_and_the_run_continues(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s --fresh train.checkpoint_every=4", run_words), HR_OK);
    assert_string_equal(steps_kept(), "8 12 ");
    assert_int_equal(mkdir("run/checkpoints/step-000000000008/notes", 0777), 0);
    put("run/checkpoints/step-000000000099", "newer than all of them, and no directory");
    for (int32_t steps = 16; steps <= 20; steps += 4) {
        assert_int_equal(run("train tiny.yaml data.train=text.txt --out run train.steps=%d "
                             "train.checkpoint_every=4 --allow-change train.steps",
                             steps),
                         HR_OK);
        assert_non_null(strstr(err, "notes cannot be removed: "));
    }
    assert_string_equal(steps_kept(), "16 20 99 ");
}

/* Every line would be duplicated, and the length in checkpoints would be wrong. */
static void a_second_metrics_file_must_differ_from_the_log(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s --metrics run/metrics.jsonl", run_words), HR_USAGE);
    assert_non_null(strstr(err, "--metrics run/metrics.jsonl: is the log of --out"));
    assert_int_not_equal(access("run/metrics.jsonl", F_OK), 0);
    assert_int_equal(run("%s --metrics run/steps.jsonl", run_words), HR_OK);
    assert_int_equal(link("run/metrics.jsonl", "same.jsonl"), 0);
    assert_int_equal(run("%s --fresh --metrics same.jsonl", run_words), HR_USAGE);
    assert_int_equal(run("checkpoint verify run"), HR_OK);
    const int file = open("run/steps.jsonl", O_RDONLY);
    assert_int_equal(flock(file, LOCK_EX), 0);
    assert_int_equal(run("%s --fresh --metrics run/steps.jsonl", run_words), HR_USAGE);
    assert_non_null(strstr(err, "run/steps.jsonl: another run writes to it; wait"));
    assert_int_equal(close(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(the_newest_the_best_and_periodic_checkpoints_are_kept),
        IN_A_FOLDER(patience_and_time_limit_end_a_run),
        IN_A_FOLDER(signals_save_and_report_and_the_run_continues),
        IN_A_FOLDER(a_resumed_run_equals_an_uninterrupted_run),
        IN_A_FOLDER(another_recipe_or_text_is_refused_unless_allowed),
        IN_A_FOLDER(the_ema_can_be_enabled_later),
        IN_A_FOLDER(a_second_run_in_a_folder_is_refused),
        IN_A_FOLDER(a_bad_step_is_skipped_or_rolled_back),
        IN_A_FOLDER(a_run_with_only_bad_steps_ends),
        IN_A_FOLDER(a_directory_that_was_moved_away_is_created_again),
        IN_A_FOLDER(a_rollback_uses_an_undamaged_checkpoint),
        IN_A_FOLDER(two_sigterms_in_a_row_are_one_request),
        IN_A_FOLDER(a_failed_removal_is_reported_and_the_run_continues),
        IN_A_FOLDER(a_second_metrics_file_must_differ_from_the_log),
        IN_A_FOLDER(a_signal_during_a_rollback_keeps_its_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
