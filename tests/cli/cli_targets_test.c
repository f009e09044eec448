/* SPDX-License-Identifier: Apache-2.0 */
/* cli_targets_test.c - text without targets: a corpus without any is refused, and a step or an
 * evaluation without any has no loss. */
#include "headroom/status.h"
#include "support/program.h"

static void put_completions(const char *name, int32_t first_empty, int32_t others)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    for (int32_t i = 0; i < first_empty; i++)
        fputs("{\"prompt\":\"some words of a prompt that is long\",\"completion\":\"\"}\n", file);
    for (int32_t i = 0; i < others; i++)
        fputs("{\"prompt\":\"and\",\"completion\":\"an answer\"}\n", file);
    assert_int_equal(fclose(file), 0);
}

static void a_corpus_without_targets_is_refused(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put_completions("empty.jsonl", 50, 0);
    assert_int_equal(run("train tiny.yaml data.train=empty.jsonl --out run"), HR_CORRUPT);
    assert_non_null(strstr(err, "headroom: empty.jsonl: has 1750 tokens and no target: each token "
                                "is masked, such as those of a prompt"));
    assert_null(strstr(out, "step "));
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=empty.jsonl "
                         "train.eval_every=1 train.keep_best=true --out run"),
                     HR_CORRUPT);
    assert_non_null(strstr(err, "headroom: empty.jsonl: has 1750 tokens and no target: "));
    assert_int_equal(access("run/model.safetensors", F_OK), -1);
    /* Without a target the length does not matter: shorter than a window, and than a batch. */
    put("short.jsonl", "{\"prompt\":\"abc\",\"completion\":\"\"}\n");
    assert_int_equal(run("train tiny.yaml data.train=short.jsonl --out short"), HR_CORRUPT);
    assert_non_null(strstr(err, "headroom: short.jsonl: has 3 tokens and no target: "));
    put_completions("few.jsonl", 1, 0);
    assert_int_equal(run("train tiny.yaml data.train=few.jsonl --out short"), HR_CORRUPT);
    assert_non_null(strstr(err, "headroom: few.jsonl: has 35 tokens and no target: "));
    put("short.jsonl", "{\"prompt\":\"abc\",\"completion\":\"d\"}\n");
    assert_int_equal(run("train tiny.yaml data.train=short.jsonl --out short"), HR_CORRUPT);
    assert_non_null(strstr(err, "short.jsonl: has 4 tokens, but one window of train.seq_len=16"));
    put_completions("one.jsonl", 50, 1);
    assert_int_equal(run("train tiny.yaml data.train=one.jsonl --out run"), HR_OK);
}

/* Rows of ids and labels, of which `learned` are targets. */
static void put_rows(const char *name, int32_t rows, int32_t learned)
{
    enum { T = 16 };
    char header[256];
    const int32_t half = rows * T * 4, zero = 0, ignored = -100;
    int length = snprintf(header, sizeof header,
                          "{\"input_ids\":{\"dtype\":\"I32\",\"shape\":[%d,%d],\"data_offsets\":"
                          "[0,%d]},\"labels\":{\"dtype\":\"I32\",\"shape\":[%d,%d],"
                          "\"data_offsets\":[%d,%d]}}",
                          rows, T, half, rows, T, half, 2 * half);
    while (length % 8) header[length++] = ' ';
    const uint64_t bytes = (uint64_t)length;
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    fwrite(&bytes, sizeof bytes, 1, file);
    fwrite(header, 1, (size_t)length, file);
    for (int32_t i = 0; i < rows * T; i++) fwrite(&zero, sizeof zero, 1, file);
    for (int32_t i = 0; i < rows * T; i++)
        fwrite(rows * T - i <= learned ? &zero : &ignored, sizeof zero, 1, file);
    assert_int_equal(fclose(file), 0);
}

static void rows_without_targets_are_refused(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put_rows("none.safetensors", 8, 0);
    put_rows("one.safetensors", 8, 1);
    assert_int_equal(run("train tiny.yaml data.train=none.safetensors --out run"), HR_CORRUPT);
    assert_non_null(strstr(err, "all 128 labels are -100: there is nothing to learn"));
    assert_int_equal(run("train tiny.yaml data.train=one.safetensors --out run"), HR_OK);
}

static void a_step_without_targets_has_no_loss(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put_completions("few.jsonl", 20, 1);
    assert_int_equal(run("train tiny.yaml data.train=few.jsonl train.batch=1 train.epochs=1 "
                         "train.steps=auto train.z_loss=0.0001 train.checkpoint_every=1 "
                         "--out run"),
                     HR_OK);
    assert_non_null(strstr(out, "/44  no targets  0 tokens/s"));
    assert_null(strstr(out, "loss 0.0000"));
    get("run/metrics.jsonl", out);
    assert_non_null(strstr(out, "\"loss\":null,\"z_loss\":null,\"lr\":"));
    assert_null(strstr(out, "\"loss\":0,"));
    int32_t with_loss = 0;
    for (const char *at = out; (at = strstr(at, "\"loss\":")); at++)
        with_loss += strncmp(at, "\"loss\":null", 11) != 0;
    assert_int_equal(with_loss, 1); /* the answer is in one window */
    assert_int_equal(run("checkpoint list run"), HR_OK);
    assert_null(strstr(out, "nan"));
}

static void an_evaluation_without_targets_is_never_the_best(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put_completions("late.jsonl", 20, 1);
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=late.jsonl "
                         "train.eval_every=1 train.eval_batches=1 train.keep_best=true "
                         "train.patience=1 --out run"),
                     HR_OK);
    assert_non_null(strstr(out, "step 1  no validation loss: no token was a target\n"));
    assert_non_null(strstr(out, "step 3/3")); /* it does not count towards patience */
    assert_null(strstr(out, "validation loss 0"));
    get("run/metrics.jsonl", out);
    assert_non_null(strstr(out, "{\"event\":\"evaluation\",\"step\":1,\"valid_loss\":null,"
                                "\"tokens\":0}"));
    assert_non_null(strstr(out, "\"valid_loss\":null}\n"));
    assert_int_equal(run("checkpoint list run --json"), HR_OK);
    assert_non_null(strstr(out, "\"valid_loss\": null"));
    assert_null(strstr(out, "\"best\": true"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_corpus_without_targets_is_refused),
        IN_A_FOLDER(rows_without_targets_are_refused),
        IN_A_FOLDER(a_step_without_targets_has_no_loss),
        IN_A_FOLDER(an_evaluation_without_targets_is_never_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
