/* SPDX-License-Identifier: Apache-2.0 */
/* cli_data_test.c - runs on rows of tokens: compared with PyTorch step by step, compared with the
 * same tokens as a text, and refusals. */
#include <math.h>
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"
#include "support/stored.h"

static const char *const families[] = { "gpt_neox",   "gpt2",    "llama_gqa",
                                        "qwen3_tied", "gpt_neo", "qwen2_mixed" };
enum { FAMILIES = sizeof families / sizeof *families, STEPS = 10, T = 16 };

#define LOSS_TOLERANCE 1e-5

/* Losses of the steps in a metrics file. */
static int32_t read_losses(const char *name, double losses[STEPS])
{
    FILE *metrics = fopen(name, "r");
    char line[1024];
    int32_t count = 0;
    assert_non_null(metrics);
    while (fgets(line, sizeof line, metrics)) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *loss = json_object_get(object, "loss");
        if (loss && count < STEPS) losses[count++] = json_number_value(loss);
        json_decref(object);
    }
    fclose(metrics);
    return count;
}

static double read_last(const char *name, const char *key)
{
    FILE *metrics = fopen(name, "r");
    char line[1024];
    double value = NAN;
    assert_non_null(metrics);
    while (fgets(line, sizeof line, metrics)) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *found = json_object_get(object, key);
        if (json_is_number(found)) value = json_number_value(found);
        json_decref(object);
    }
    fclose(metrics);
    return value;
}

/* ---- compared with PyTorch */

static double worst_loss(const char *family, const double losses[STEPS])
{
    char path[512];
    double worst = 0;
    snprintf(path, sizeof path, HR_ORACLES "/hf/%s/golden.json", family);
    json_t *facts = json_load_file(path, 0, NULL);
    const json_t *wanted = json_object_get(json_object_get(facts, "training"), "losses_float64");
    assert_int_equal(json_array_size(wanted), STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        const double want = json_number_value(json_array_get(wanted, i));
        worst = fmax(worst, fabs(losses[i] - want) / want);
    }
    json_decref(facts);
    return worst;
}

/* Some rows have more ignored labels than others, so the mean of the micro-batch means would
 * differ. */
static void a_fixed_batch_gives_the_losses_of_pytorch_with_any_micro_batch(void **state)
{
    static const char *const cuts[] = { "", "memory.micro_batch=1",
                                        "memory.micro_batch=1 "
                                        "memory.loss_chunk=23 "
                                        "train.threads=2" };
    (void)state;
    require_program();
    put("fixed.yaml", "train: {steps: 10, threads: 1, schedule.kind: constant}\n");
    for (int32_t f = 0; f < FAMILIES; f++) {
        double losses[STEPS], others[STEPS];
        char path[256];
        snprintf(path, sizeof path, HR_ORACLES "/hf/%s", families[f]);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            assert_int_equal(run("train fixed.yaml model.from=%s "
                                 "data.fixed_batch=%s/golden.safetensors --metrics m.jsonl %s",
                                 path, path, cuts[c]),
                             HR_OK);
            assert_int_equal(read_losses("m.jsonl", c ? others : losses), STEPS);
            if (c) assert_memory_equal(others, losses, sizeof losses);
        }
        const double worst = worst_loss(families[f], losses);
        print_message("%s: ten losses apart by %.1e at most\n", families[f], worst);
        assert_true(worst < LOSS_TOLERANCE);
    }
}

/* No step may allocate after the run has begun: the trap ends a run that does. */
static void rows_are_read_without_allocating(void **state)
{
    (void)state;
    require_program();
    hr_test_require_trap();
    put("fixed.yaml", "train: {steps: 2, threads: 2}\n");
    const int status = system("LD_PRELOAD=\"$HR_TRAP\" \"$HEADROOM\" train fixed.yaml "
                              "model.from=" HR_ORACLES "/hf/gpt2 "
                              "data.fixed_batch=" HR_ORACLES "/hf/gpt2/golden.safetensors "
                              "data.valid=" HR_ORACLES "/hf/gpt2/golden.safetensors "
                              ">out.txt 2>err.txt");
    get("err.txt", err);
    if (status != 0) fail_msg("%d: %s", status, err);
}

/* ---- compared with a text */

/* The windows of a text as rows: the bytes, and the byte after each. */
static void put_rows(const char *name, const char *text, int64_t bytes)
{
    const int64_t rows = (bytes - 1) / T;
    int64_t *ids = malloc((size_t)(rows * T) * sizeof *ids);
    int32_t *labels = malloc((size_t)(rows * T) * sizeof *labels);
    char shape[64];
    for (int64_t i = 0; i < rows * T; i++) {
        ids[i] = (uint8_t)text[i];
        labels[i] = (uint8_t)text[i + 1];
    }
    snprintf(shape, sizeof shape, "[%lld,%d]", (long long)rows, T);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", shape, ids, rows * T * 8);
    stored_add(&file, "labels", "I32", shape, labels, rows * T * 4);
    stored_end(&file, name);
    free(labels);
    free(ids);
}

/* Steps beyond an epoch and evaluations with a partial batch: bit-identical. */
static void rows_train_like_the_windows_of_a_text(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    double of_text[STEPS], of_rows[STEPS];
    (void)state;
    require_program();
    put_tiny_and_text();
    get("text.txt", text);
    text[601] = 0; /* 37 windows, 9 batches of 4 */
    put("short.txt", text);
    put_rows("train.safetensors", text, 601);
    put_rows("valid.safetensors", text, 200);
    text[200] = 0;
    put("valid.txt", text);
    static const char words[] = "train tiny.yaml train.steps=30 train.eval_every=7 "
                                "memory.micro_batch=2 train.seed=3";
    assert_int_equal(run("%s data.train=short.txt data.valid=valid.txt data.cache=cache "
                         "--metrics text.jsonl",
                         words),
                     HR_OK);
    assert_int_equal(run("%s data.train=train.safetensors data.valid=valid.safetensors "
                         "--metrics rows.jsonl",
                         words),
                     HR_OK);
    assert_non_null(strstr(out, "\n"
                                "train  37 rows of 16 tokens, 592 targets\n"
                                "valid  12 rows of 16 tokens, 192 targets\n"));
    assert_int_equal(read_losses("text.jsonl", of_text), STEPS);
    assert_int_equal(read_losses("rows.jsonl", of_rows), STEPS);
    assert_memory_equal(of_text, of_rows, sizeof of_text);
    assert_true(read_last("text.jsonl", "loss") == read_last("rows.jsonl", "loss"));
    assert_true(read_last("text.jsonl", "valid_loss") == read_last("rows.jsonl", "valid_loss"));
    assert_true(read_last("rows.jsonl", "valid_loss") > 0);
    assert_int_equal(read_last("rows.jsonl", "tokens"), 30 * 4 * T);
    assert_int_equal(
        run("%s data.train=train.safetensors \"train.stages=batch=4; at_step=9 batch=2\"", words),
        HR_USAGE);
    assert_says("train.stages reads texts, and the data are rows of one length");
}

/* Validation on a text, training on rows; sampling works too. */
static void a_text_can_be_used_beside_rows(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    put_tiny_and_text();
    get("text.txt", text);
    put_rows("four.safetensors", text, 4 * T + 1);
    assert_int_equal(run("train tiny.yaml data.fixed_batch=four.safetensors data.valid=text.txt "
                         "data.train=nowhere.txt data.cache=cache train.sample_tokens=5 "
                         "--metrics m.jsonl"),
                     HR_OK);
    assert_non_null(
        strstr(out, "\n"
                    "fixed_batch  4 rows of 16 tokens, 64 targets; used as the batch of every "
                    "step\n"));
    assert_non_null(strstr(out, "\nsample\n"));
    assert_true(read_last("m.jsonl", "valid_loss") > 0);
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=four.safetensors "
                         "data.cache=cache"),
                     HR_OK);
    assert_non_null(strstr(out, "validation loss"));
    /* Without a text there are no shards, so no directory for them is needed. */
    assert_int_equal(run("train tiny.yaml data.fixed_batch=four.safetensors"), HR_OK);
}

/* The recipe can omit the length of rows and the batch of a fixed batch. */
static void a_plan_has_the_shape_of_its_rows(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    put_tiny_and_text();
    get("text.txt", text);
    put("open.yaml", "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n");
    put_rows("six.safetensors", text, 6 * T + 1);
    assert_int_equal(run("plan open.yaml data.fixed_batch=six.safetensors"), HR_OK);
    assert_non_null(strstr(out, "\n  batch 6 x 16 tokens,"));
    assert_int_equal(run("plan open.yaml data.train=six.safetensors"), HR_OK);
    assert_non_null(strstr(out, "\n  batch 16 x 16 tokens,"));
    assert_int_equal(run("plan open.yaml data.train=six.safetensors train.batch=3"), HR_OK);
    assert_non_null(strstr(out, "\n  batch 3 x 16 tokens,"));
}

/* ---- refusals */

static void put_labels(const char *name, int64_t id, int64_t label)
{
    int64_t ids[4 * T], labels[4 * T];
    for (int32_t i = 0; i < 4 * T; i++) {
        ids[i] = i;
        labels[i] = label;
    }
    ids[17] = id;
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", "[4,16]", ids, sizeof ids);
    stored_add(&file, "labels", "I64", "[4,16]", labels, sizeof labels);
    stored_end(&file, name);
}

static void rows_that_do_not_fit_the_run_are_refused(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    put_tiny_and_text();
    get("text.txt", text);
    put("open.yaml", "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n");
    put_rows("four.safetensors", text, 4 * T + 1);
    put_labels("large.safetensors", 256, 1);
    put_labels("label.safetensors", 1, 300);
    put_labels("none.safetensors", 1, -100);
    const int64_t longer[24] = { 1, 2, 3, 4, 5, 6 };
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", "[1,24]", longer, sizeof longer);
    stored_add(&file, "labels", "I64", "[1,24]", longer, sizeof longer);
    stored_end(&file, "longer.safetensors");
    static const struct {
        const char *words, *sentence;
        int code;
    } cases[] = {
        { "train tiny.yaml data.fixed_batch=gone", "gone: no such file", HR_USAGE },
        { "plan tiny.yaml data.fixed_batch=gone", "gone: no such file", HR_USAGE },
        { "plan tiny.yaml data.train=gone.safetensors", "gone.safetensors: no such file",
          HR_USAGE },
        { "train tiny.yaml data.fixed_batch=four.safetensors train.batch=3",
          "train.batch is 3, but data.fixed_batch four.safetensors has 4 rows: use "
          "train.batch=4",
          HR_USAGE },
        { "train tiny.yaml data.fixed_batch=longer.safetensors",
          "train.seq_len is 16, but data.fixed_batch longer.safetensors has rows of 24 "
          "tokens: use train.seq_len=24",
          HR_USAGE },
        { "plan tiny.yaml data.valid=longer.safetensors",
          "train.seq_len is 16, but data.valid longer.safetensors has rows of 24 "
          "tokens: use train.seq_len=24",
          HR_USAGE },
        { "plan open.yaml data.train=four.safetensors data.valid=longer.safetensors",
          "data.valid longer.safetensors has rows of 24 tokens, the training data has "
          "16; they must be equal",
          HR_USAGE },
        { "train tiny.yaml data.train=four.safetensors train.batch=8",
          "four.safetensors: has 4 rows of train.seq_len=16, but one batch needs 8: "
          "give more rows or use train.batch=4",
          HR_CORRUPT },
        { "train tiny.yaml data.fixed_batch=large.safetensors",
          "large.safetensors: input_ids[1, 1] is 256; the model has ids 0 to 255", HR_CORRUPT },
        { "train tiny.yaml data.fixed_batch=label.safetensors",
          "label.safetensors: labels[0, 0] is 300; the model has ids 0 to 255, and -100 is ignored",
          HR_CORRUPT },
        { "train tiny.yaml data.fixed_batch=none.safetensors",
          "none.safetensors: all 64 labels are -100: there is nothing to learn", HR_CORRUPT },
        { "train tiny.yaml data.train=text.txt data.cache=cache data.valid=none.safetensors",
          "none.safetensors: all 64 labels are -100: there is nothing to learn", HR_CORRUPT },
        { "train tiny.yaml data.fixed_batch=four.safetensors train.sample_tokens=9",
          "train.sample_tokens is 9, but the tokenizer of the ids in four.safetensors "
          "is not known: use train.sample_tokens=none",
          HR_USAGE },
        { "train tiny.yaml data.fixed_batch=four.safetensors data.valid=text.txt "
          "data.tokenizer=words",
          "data.tokenizer words needs training text, but four.safetensors has token "
          "ids; give data.valid as a safetensors file too",
          HR_USAGE },
        { "train tiny.yaml data.fixed_batch=four.safetensors data.valid=text.txt",
          "no directory for the tokens of text.txt; use --out DIR or data.cache=DIR", HR_USAGE },
        { "train tiny.yaml", "no text to train on; give data.train=FILE, or data.train=synthetic",
          HR_USAGE },
    };
    unsetenv("XDG_CACHE_HOME"); /* in this test's process only */
    unsetenv("HOME");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("%s", cases[i].words), cases[i].code);
        assert_said(cases[i].sentence);
    }
    /* Without a text, the vocabulary can be smaller than that of the tokenizer. */
    assert_int_equal(run("train tiny.yaml data.fixed_batch=four.safetensors model.vocab_size=128"),
                     HR_OK);
    assert_int_equal(run("train tiny.yaml data.fixed_batch=four.safetensors model.vocab_size=64"),
                     HR_CORRUPT);
}

static void a_fixed_batch_of_other_rows_is_refused_by_its_key(void **state)
{
    static char text[PROGRAM_TEXT_BYTES];
    static const char words[] = "train tiny.yaml data.fixed_batch=four.safetensors --out run "
                                "--allow-change train.steps";
    (void)state;
    require_program();
    put_tiny_and_text();
    get("text.txt", text);
    put_rows("four.safetensors", text, 4 * T + 1);
    assert_int_equal(run("%s train.steps=2", words), HR_OK);
    put_rows("four.safetensors", text + 1, 4 * T + 1);
    assert_int_equal(run("%s train.steps=4 --allow-change data.train", words), HR_USAGE);
    assert_non_null(strstr(err, "data.fixed_batch: the text has changed since the run began; use "
                                "--allow-change data.fixed_batch"));
    assert_int_equal(run("%s train.steps=4 --allow-change data.fixed_batch", words), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_fixed_batch_gives_the_losses_of_pytorch_with_any_micro_batch),
        IN_A_FOLDER(rows_are_read_without_allocating),
        IN_A_FOLDER(rows_train_like_the_windows_of_a_text),
        IN_A_FOLDER(a_text_can_be_used_beside_rows),
        IN_A_FOLDER(a_plan_has_the_shape_of_its_rows),
        IN_A_FOLDER(rows_that_do_not_fit_the_run_are_refused),
        IN_A_FOLDER(a_fixed_batch_of_other_rows_is_refused_by_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
