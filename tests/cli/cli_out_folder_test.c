/* SPDX-License-Identifier: Apache-2.0 */
/* cli_out_folder_test.c - another model in the --out directory: it is not deleted without --fresh,
 * and never mixed with the weights of the run. */
#include "headroom/status.h"
#include "support/program.h"

static const char train[] = "train tiny.yaml data.train=text.txt --out";

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static void prepare(const char *command)
{
    put_tiny_and_text();
    shell("rm -rf folder && mkdir folder");
    shell(command);
    shell("rm -rf kept && cp -a folder kept");
}

static void expect_left(const char *arguments, const char *said)
{
    const int code = run("%s folder %s", train, arguments);
    if (code != HR_USAGE || !strstr(err, said)) fail_msg("%d: %s", code, err);
    shell("diff -r --no-dereference folder kept");
}

#define ANOTHER_MODEL "cd folder && echo '{}' >config.json && echo weights >model.safetensors"

static void another_model_is_replaced_only_by_fresh(void **state)
{
    (void)state;
    require_program();
    prepare(ANOTHER_MODEL);
    expect_left("", "headroom: folder has model.safetensors, which is not this run's; give another "
                    "--out, or type --fresh to replace it\n");
    assert_int_equal(run("%s folder --fresh", train), HR_OK);
    assert_string_equal(err, "headroom: --fresh: this run replaces folder/model.safetensors, which "
                             "is another model's\n");
    assert_int_equal(run("%s folder", train), HR_OK);
    assert_non_null(strstr(out, "the run is complete"));
    assert_int_equal(run("%s folder --fresh", train), HR_OK); /* for the run's own model there is no
                                                               * message */
    assert_string_equal(err, "");
}

static void files_that_a_run_would_replace_are_refused(void **state)
{
    static const char *const names[] = { "config.json", "model.safetensors" };
    (void)state;
    require_program();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[128], said[128];
        snprintf(command, sizeof command, "echo >folder/%s", names[i]);
        prepare(command);
        snprintf(said, sizeof said, "headroom: folder has %s, which is not this run's; give ",
                 names[i]);
        expect_left("", said);
    }
}

/* With or without --fresh: it would be impossible to tell which files belong together. */
static void files_that_a_run_would_mix_with_its_own_are_refused(void **state)
{
    static const char *const names[] = { "model-00001-of-00002.safetensors",
                                         "model.safetensors.index.json",
                                         "pytorch_model.bin",
                                         "pytorch_model-00001-of-00002.bin",
                                         "adapter_model.safetensors",
                                         "tokenizer.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "tokenizer.model",
                                         "tokenizer_config.json",
                                         "generation_config.json" };
    (void)state;
    require_program();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[128], said[256];
        snprintf(command, sizeof command, "%s && echo >%s", ANOTHER_MODEL, names[i]);
        prepare(command);
        snprintf(said, sizeof said,
                 "headroom: folder has %s, which is not this run's: training would mix it with the "
                 "new weights; move it away or give another --out\n",
                 names[i]);
        expect_left("", said);
        expect_left("--fresh", said);
    }
}

static void links_to_another_model_are_refused(void **state)
{
    static const struct {
        const char *command, *said;
    } cases[] = {
        { "echo >there && ln -s ../there folder/model.safetensors",
          "folder/model.safetensors: is a symbolic link" },
        { "ln -s /nowhere folder/config.json", "folder/config.json: is a symbolic link" },
        { "ln -s /nowhere folder/tokenizer.json", "folder has tokenizer.json, which is not" },
        { "ln -s /nowhere folder/pytorch_model.bin", "folder has pytorch_model.bin, which is not" },
    };
    (void)state;
    require_program();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prepare(cases[i].command);
        expect_left("", cases[i].said);
        expect_left("--fresh", cases[i].said);
    }
    /* A model is treated the same through a link to its directory. */
    prepare(ANOTHER_MODEL);
    shell("ln -sfn folder link");
    assert_int_equal(run("%s link", train), HR_USAGE);
    shell("diff -r folder kept");
}

static void the_ema_of_another_model_is_refused(void **state)
{
    (void)state;
    require_program();
    prepare("mkdir folder/average && echo '{}' >folder/average/config.json");
    expect_left("train.ema_decay=0.9", "headroom: folder/average has config.json, which is not");
    assert_int_equal(run("%s folder", train), HR_OK);
}

static void texts_and_other_files_are_allowed_in_the_directory(void **state)
{
    (void)state;
    require_program();
    prepare("echo notes >folder/notes.txt && echo >folder/other.json && cp text.txt folder");
    assert_int_equal(run("train tiny.yaml data.train=folder/text.txt --out folder"), HR_OK);
    assert_string_equal(err, "");
    assert_int_equal(run("%s .", train), HR_OK);
}

/* The directory of a run, into which another model was copied later. */
static void another_model_beside_checkpoints_is_not_deleted(void **state)
{
    (void)state;
    require_program();
    prepare("true");
    assert_int_equal(run("%s folder", train), HR_OK);
    shell("cd folder && rm config.json model.safetensors && cd .. && " ANOTHER_MODEL
          " && cp config.json model.safetensors ..");
    assert_int_equal(run("%s folder train.steps=5", train), HR_USAGE);
    assert_non_null(strstr(err, "headroom: folder has model.safetensors of another model than its "
                                "checkpoints have; move it and its config.json away, or give "
                                "another --out\n"));
    shell("cmp folder/config.json config.json && cmp folder/model.safetensors model.safetensors");
    assert_int_equal(run("%s folder --fresh", train), HR_OK);
    assert_non_null(strstr(err, "--fresh: this run replaces folder/model.safetensors"));
}

/* The files after a kill before the first checkpoint: a lock and a log. */
static void a_run_without_a_checkpoint_starts_again(void **state)
{
    (void)state;
    require_program();
    prepare("true");
    assert_int_equal(run("%s folder", train), HR_OK);
    shell("cd folder && rm -r checkpoints model.safetensors config.json && "
          "head -n 1 metrics.jsonl >kept.jsonl && mv kept.jsonl metrics.jsonl");
    assert_int_equal(run("%s folder", train), HR_OK);
    assert_string_equal(err, "");
}

/* Token shards stay: they may have taken minutes. */
static void a_refused_run_leaves_no_folder(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("short.txt", "hi");
    shell("mkdir folder");
    assert_int_equal(run("train tiny.yaml data.train=short.txt data.cache=c --out new/deep/run"),
                     HR_CORRUPT);
    assert_int_equal(access("new", F_OK), -1);
    assert_int_equal(run("train tiny.yaml data.train=short.txt data.cache=c --out folder/new/"),
                     HR_CORRUPT);
    assert_int_equal(run("train tiny.yaml data.train=short.txt data.cache=c --out folder"),
                     HR_CORRUPT);
    shell("rmdir folder");
    assert_int_equal(run("train tiny.yaml data.train=short.txt data.tokenizer=words --out run "
                         "model.vocab_size=8"),
                     HR_CORRUPT);
    shell("cd run && rm *.tokens *.vocabulary && cd .. && rmdir run");
    /* Weights are read after the log is opened. */
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.steps=1 --out base"), HR_OK);
    shell("printf '\\377\\377\\377\\377' | dd of=base/model.safetensors conv=notrunc bs=1 "
          "seek=$(($(stat -c %s base/model.safetensors) - 4)) 2>dd.txt");
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.cache=c model.from=base "
                         "--out new"),
                     HR_CORRUPT);
    assert_non_null(strstr(err, "has NaN or Inf values"));
    assert_int_equal(access("new", F_OK), -1);
    /* The lock of a killed run stays. */
    shell("mkdir folder && : >folder/lock");
    assert_int_equal(run("train tiny.yaml data.train=short.txt data.cache=c --out folder"),
                     HR_CORRUPT);
    assert_int_equal(access("folder/lock", F_OK), 0);
}

static void a_run_in_a_folder_that_it_reads_is_refused(void **state)
{
    static const char *const read[] = { "texts/", "texts/../", "./", "text.txt; texts/" };
    (void)state;
    require_program();
    prepare("mkdir -p texts/deep && cp text.txt texts");
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        assert_int_equal(run("train tiny.yaml 'data.train=%s' --out texts/deep/new", read[i]),
                         HR_USAGE);
        assert_non_null(strstr(err, "headroom: --out texts/deep/new is in "));
    }
    assert_int_equal(access("texts/deep/new", F_OK), -1);
    assert_int_equal(run("train tiny.yaml data.train=texts/ --metrics texts/log.jsonl"), HR_USAGE);
    assert_non_null(strstr(err, "headroom: --metrics texts/log.jsonl is in texts/, which "));
    assert_int_equal(access("texts/log.jsonl", F_OK), -1);
    assert_int_equal(run("train tiny.yaml data.train=texts/ --metrics texts/log --out textsnew"),
                     HR_OK);
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out ''"), HR_USAGE);
}

static void the_log_of_another_run_is_no_file_of_metrics(void **state)
{
    (void)state;
    require_program();
    prepare("true");
    assert_int_equal(run("%s other", train), HR_OK);
    shell("rm -rf kept && cp -a other kept");
    assert_int_equal(run("%s new --metrics other/metrics.jsonl", train), HR_USAGE);
    assert_int_equal(access("new", F_OK), -1);
    assert_string_equal(err, "headroom: --metrics other/metrics.jsonl: is the log of another run; "
                             "give another file\n");
    shell("diff -r other kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(another_model_is_replaced_only_by_fresh),
        IN_A_FOLDER(files_that_a_run_would_replace_are_refused),
        IN_A_FOLDER(files_that_a_run_would_mix_with_its_own_are_refused),
        IN_A_FOLDER(links_to_another_model_are_refused),
        IN_A_FOLDER(the_ema_of_another_model_is_refused),
        IN_A_FOLDER(texts_and_other_files_are_allowed_in_the_directory),
        IN_A_FOLDER(another_model_beside_checkpoints_is_not_deleted),
        IN_A_FOLDER(a_run_without_a_checkpoint_starts_again),
        IN_A_FOLDER(a_refused_run_leaves_no_folder),
        IN_A_FOLDER(a_run_in_a_folder_that_it_reads_is_refused),
        IN_A_FOLDER(the_log_of_another_run_is_no_file_of_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
