/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stopped_test.c - runs that resume in unusual states: with damaged checkpoints, between the
 * last step and its log line, before the last sample, with another micro-batch. */
#include <signal.h>

#include "headroom/status.h"
#include "support/program.h"

static const char words[] = "train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                            "train.steps=12 train.checkpoint_every=4 train.keep_best=false "
                            "train.sample_tokens=2000 train.sample_temperature=1";

/* A run was killed or got a signal there, or was killed within its last line. */
static void a_missing_last_line_of_the_log_is_added(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char *const changes[] = {
        "sed -i '$d' run/metrics.jsonl",
        "sed -i '$i {\"event\":\"signal\",\"signal\":\"SIGTERM\",\"step\":12}' run/metrics.jsonl",
        "sed -i '$d' run/metrics.jsonl && printf '{\"arena_by' >>run/metrics.jsonl",
        "truncate -s -1 run/metrics.jsonl",
    };
    static const char all_but_bytes[] = "sed 's/\"arena_bytes.*,/,/' run/metrics.jsonl >left.txt";
    assert_int_equal(run("%s", words), HR_OK);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        static char before[PROGRAM_TEXT_BYTES];
        assert_int_equal(system(all_but_bytes), 0);
        get("left.txt", before);
        assert_int_equal(system(changes[i]), 0);
        assert_int_equal(run("%s", words), HR_OK);
        assert_null(strstr(out, "the run is complete"));
        assert_null(strstr(out, "step 12/12"));
        assert_int_equal(system(all_but_bytes), 0);
        get("left.txt", out);
        assert_string_equal(out, before);
        assert_int_equal(run("%s", words), HR_OK);
        assert_non_null(strstr(out, "the run is complete"));
    }
    assert_int_equal(unlink("run/metrics.jsonl"), 0); /* a deleted log is not an error */
    assert_int_equal(run("%s", words), HR_OK);
    assert_non_null(strstr(out, "the run is complete"));
}

/* Only the sample is left of the run, without another step. */
static void a_sample_right_after_resuming_is_the_same(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s", words), HR_OK);
    assert_int_equal(system("grep '\"sample\"' run/metrics.jsonl >whole.txt"), 0);
    char fresh[512];
    snprintf(fresh, sizeof fresh, "%s --fresh", words);
    assert_int_equal(run_interrupted(fresh, "step 12  validation", false), HR_INTERRUPTED);
    assert_int_not_equal(system("grep '\"sample\"' run/metrics.jsonl >parts.txt"), 0);
    assert_int_equal(run("%s", words), HR_OK);
    assert_int_equal(system("grep '\"sample\"' run/metrics.jsonl >parts.txt"), 0);
    assert_int_equal(system("cmp whole.txt parts.txt"), 0);
}

/* The checkpoint that the run rolled back from does not count as newer. */
static void a_damaged_checkpoint_does_not_displace_a_new_one(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("%s", words), HR_OK);
    assert_int_equal(system("echo >>run/checkpoints/step-000000000012/recipe.yaml"), 0);
    char again[512];
    /* So many threads that the signal arrives during a step. */
    snprintf(again, sizeof again, "%s train.keep_last=1 train.threads=32", words);
    assert_int_equal(run_interrupted(again, "step 9/", false), HR_INTERRUPTED);
    assert_non_null(strstr(err, "/recipe.yaml: has "));
    assert_non_null(strstr(err, "; trying an older checkpoint\n"));
    assert_int_equal(run("checkpoint verify run --json"), HR_OK);
    json_t *all = out_json();
    assert_int_equal(json_array_size(all), 1);
    assert_in_range(json_integer_value(json_object_get(json_array_get(all, 0), "step")), 9, 11);
    json_decref(all);
}

/* An evaluation reads the first windows of the validation text, independent of the micro-batch: the
 * best checkpoint and the end of patience are the same for every budget. */
static void a_partial_evaluation_reads_the_same_windows_with_any_micro_batch(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static char whole[PROGRAM_TEXT_BYTES];
    for (int32_t micro = 4; micro > 0; micro /= 2) {
        assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt data.valid=text.txt "
                             "--out run train.eval_batches=3 memory.micro_batch=%d",
                             micro),
                         HR_OK);
        assert_int_equal(system("grep '\"evaluation\"' run/metrics.jsonl >out.txt"), 0);
        get("out.txt", out);
        assert_non_null(strstr(out, "\"tokens\":192}")); /* 3 batches of 4 windows of 16 */
        if (micro == 4) strcpy(whole, out);
        assert_string_equal(out, whole);
    }
}

/* A step is bad after a checkpoint that a signal caused: the run rolls back to the one before that,
 * which was due, as it would without the signal. With this seed, such a step comes after step
 * 42. */
static void a_rollback_does_not_use_the_checkpoint_of_a_signal(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_blot();
    static const char rewinding[] = "train tiny.yaml data.train=text.txt --out run train.steps=60 "
                                    "train.schedule.kind=constant train.optimizer.lr=0.01 "
                                    "train.checkpoint_every=40 train.keep_last=1 "
                                    "train.detect_spikes=true train.bad_steps=rewind "
                                    "train.bad_steps_max=1000 train.seed=11";
    assert_int_equal(run("%s", rewinding), HR_OK);
    assert_non_null(strstr(err, ": rewound to step 40, the batch is skipped\n"));
    assert_int_equal(system("cp run/model.safetensors whole"), 0);
    char fresh[512];
    snprintf(fresh, sizeof fresh, "%s --fresh", rewinding);
    const int code = run_interrupted(fresh, "step 42/", false);
    if (code == HR_OK) print_message("the signal came late\n");
    else assert_int_equal(code, HR_INTERRUPTED);
    assert_int_equal(run("%s", rewinding), HR_OK);
    assert_int_equal(system("cmp run/model.safetensors whole"), 0);
    /* In other formats there is no older one to go back to. */
    if (run_interrupted(fresh, "step 42/", false) != HR_INTERRUPTED) return;
    assert_int_equal(
        run("%s train.state.moments=bf16 --allow-change train.state.moments", rewinding), HR_OK);
    assert_non_null(strstr(err, ": rewound to step 4"));
    assert_null(strstr(err, ": rewound to step 40,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_missing_last_line_of_the_log_is_added),
        IN_A_FOLDER(a_sample_right_after_resuming_is_the_same),
        IN_A_FOLDER(a_damaged_checkpoint_does_not_displace_a_new_one),
        IN_A_FOLDER(a_rollback_does_not_use_the_checkpoint_of_a_signal),
        IN_A_FOLDER(a_partial_evaluation_reads_the_same_windows_with_any_micro_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
