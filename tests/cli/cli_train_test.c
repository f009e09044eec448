/* SPDX-License-Identifier: Apache-2.0 */
/* cli_train_test.c - runs of the program and how they end: completed, refused, diverged, disk full,
 * interrupted. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "config/config.h"
#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

static void a_run_ends_with_metrics_weights_and_its_memory_figures(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(
        run("train tiny.yaml --fresh data.train=text.txt data.valid=text.txt --out run "
            "--metrics m.jsonl train.sample_tokens=8"),
        HR_OK);
    assert_string_equal(err, "");
    assert_non_null(strstr(out, "\nsaved  run at step 3\nmemory planned "));
    assert_null(strstr(out, "out    none"));
    assert_int_equal(access("run/model.safetensors", F_OK), 0);
    FILE *metrics = fopen("m.jsonl", "r");
    char line[1024];
    int32_t lines = 0;
    assert_non_null(metrics);
    while (fgets(line, sizeof line, metrics)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        const char *const name = lines < 3 ? "step" : "process_bytes_measured";
        assert_non_null(json_object_get(object, name));
        json_decref(object);
        lines++;
    }
    fclose(metrics);
    assert_int_equal(lines, 4);
}

/* Without --out, tokens are in the directory of calibrations, and nothing else is kept. */
static void without_out_the_tokens_are_in_the_cache(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char command[] =
        "XDG_CACHE_HOME=$PWD/cache \"$HEADROOM\" train tiny.yaml data.train=text.txt >out.txt "
        "2>err.txt";
    assert_int_equal(WEXITSTATUS(system(command)), HR_OK);
    assert_int_equal(system("ls cache/headroom/*.tokens >list.txt"), 0);
    assert_int_equal(WEXITSTATUS(system(command)), HR_OK);
    get("out.txt", out);
    assert_non_null(strstr(out, "(cached)"));
    assert_non_null(strstr(out, "\nout    none: no weights are saved; use --out DIR to save them\n"
                                "train  "));
    assert_non_null(strstr(out, "\nsaved  nothing: the run had no --out DIR\nmemory planned "));
    assert_int_equal(system("test $(ls | wc -l) = 6"), 0); /* recipe, text, three outputs, cache */
}

/* Every path is checked before planning: with an impossible budget, the path is still the error,
 * and no `run` is created. */
static void a_missing_path_is_reported_before_planning(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(mkdir("taken", 0700), 0);
    assert_int_equal(mkdir("taken/model.safetensors", 0700), 0);
    assert_int_equal(symlink("none.txt", "gone"), 0);
    static const struct {
        const char *words, *reason;
    } cases[] = {
        { "data.train=none.txt --out run", "none.txt: no such file" },
        { "data.train=. --out run", ".: is a directory; add a slash to use the texts in it" },
        { "data.train=text.txt data.valid=none.txt --out run", "none.txt: no such file" },
        { "data.train=gone --out run",
          "gone: is a symbolic link to none.txt, which does not exist" },
        { "data.train=text.txt --out gone",
          "gone: is a symbolic link to none.txt, which does not exist" },
        { "data.train=text.txt --out text.txt", "text.txt: is a file, a directory is needed" },
        { "data.train=text.txt --out text.txt/a/b", "text.txt: is a file, a directory is needed" },
        { "data.train=text.txt --out taken",
          "taken/model.safetensors: is a directory, a file cannot be written there" },
        { "data.train=text.txt --out run data.cache=text.txt",
          "text.txt: is a file, a directory is needed" },
        { "data.train=text.txt --out run --metrics none/m.jsonl",
          "none: no such directory; create it, or give another" },
        { "data.train=text.txt --out run --metrics run/deep/m.jsonl",
          "run/deep: no such directory; create it, or give another" },
        { "data.train=text.txt --out run --metrics .",
          ".: is a directory, a file cannot be written there" },
        { "--out run", "no text to train on; give data.train=FILE, or data.train=synthetic" },
        { "data.train=text.txt",
          "no directory for the tokens of text.txt; use --out DIR or data.cache=DIR" },
    };
    unsetenv("XDG_CACHE_HOME"); /* in this test's process only */
    unsetenv("HOME");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("train tiny.yaml --fresh --budget 1 %s", cases[i].words), HR_USAGE);
        assert_said(cases[i].reason);
        assert_string_equal(out, "");
    }
    assert_int_equal(
        run("train tiny.yaml --fresh --budget 1 data.train=text.txt --out run --metrics m"),
        HR_NO_FIT);
    assert_non_null(strstr(err, "the run needs at least "));
    assert_non_null(strstr(err, "the budget is 1 byte"));
    long long least = 0;
    assert_non_null(strstr(err, "; use --budget "));
    assert_int_equal(sscanf(strstr(err, "; use --budget "), "; use --budget %lld", &least), 1);
    assert_non_null(strstr(err, ", or look for other changes with headroom plan\n"));
    assert_int_equal(access("run", F_OK), -1);
    assert_int_equal(access("m", F_OK), -1);
    assert_int_equal(
        run("train tiny.yaml --fresh --budget %lld data.train=text.txt --out run", least), 0);
    put("short.txt", "too short");
    assert_int_equal(run("train tiny.yaml --fresh data.train=short.txt --out run"), HR_CORRUPT);
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out made/deep --metrics "
                         "made/deep/m.jsonl"),
                     HR_OK);
    assert_int_equal(access("made/deep/m.jsonl", F_OK), 0);
}

/* The prompt of samples is shorter than a window; the error is about the window and the file. */
static void a_text_that_is_too_short_is_named_with_the_fix(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("short.txt", "nine bytes");
    static const char *const words[] = { "data.train=short.txt",
                                         "data.train=text.txt data.valid=short.txt" };
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(
            run("train tiny.yaml --fresh %s --out run train.seq_len=64 train.sample_tokens=%d",
                words[i % 2], i),
            HR_CORRUPT);
        assert_said("short.txt: has 10 tokens, but one window of train.seq_len=64 needs 65: give "
                    "a longer text or use train.seq_len=9");
    }
    assert_int_equal(
        run("train tiny.yaml --fresh data.train=text.txt --out run train.batch=100000"),
        HR_CORRUPT);
    assert_non_null(strstr(err, "headroom: text.txt: has "));
    assert_non_null(strstr(err, " windows of train.seq_len=16, but one batch needs 100000: "));
}

/* The largest word table that a plan accepts must also work for counting. */
static void the_largest_vocabulary_of_words_can_be_counted(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char words[] = "data.tokenizer=words model.vocab_size=300 --budget 64MiB "
                                "data.train=text.txt data.words_max=";
    const hr_key *key = NULL;
    for (int32_t i = 0; (key = hr_config_key(i)) && strcmp(key->name, "data.words_max"); i++)
        continue;
    assert_non_null(key);
    assert_int_equal(run("plan tiny.yaml %s%.0f", words, key->high), HR_NO_FIT);
    assert_int_equal(run("train tiny.yaml --fresh --out run %s%.0f", words, key->high), HR_NO_FIT);
    assert_int_equal(run("train tiny.yaml --fresh --out run %s%.0f", words, key->high + 1),
                     HR_USAGE);
    assert_string_equal(out, "");
}

/* A read-only directory is usable if it has the shards. root can write everywhere except on a
 * read-only file system. */
static void a_cache_without_shards_must_be_writable(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char words[] =
        "train tiny.yaml --fresh data.train=text.txt --out run data.cache=cache";
    assert_int_equal(mkdir("cache", 0555), 0);
    const bool root = geteuid() == 0;
    if (root && mount("none", "cache", "tmpfs", MS_RDONLY, NULL) != 0) {
        hr_test_skip("mount", "a tmpfs cannot be mounted: %s", strerror(errno));
    }
    const int code = run("%s --budget 1", words);
    if (root) assert_int_equal(umount("cache"), 0);
    assert_int_equal(code, HR_FAILURE);
    assert_non_null(strstr(err, "headroom: cache: directory is not writable: "));
    assert_non_null(strstr(err, "; change its permissions, or give another\n"));
    assert_string_equal(out, "");
    assert_int_equal(chmod("cache", 0755), 0);
    assert_int_equal(run("%s", words), HR_OK);
    assert_int_equal(chmod("cache", 0555), 0);
    if (root) {
        assert_int_equal(mount("cache", "cache", "", MS_BIND, NULL), 0);
        assert_int_equal(mount("", "cache", "", MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    }
    const int again = run("%s", words);
    if (root) assert_int_equal(umount("cache"), 0);
    assert_int_equal(again, HR_OK);
    assert_int_equal(chmod("cache", 0755), 0);
}

/* Without a budget, a run uses what its cgroup leaves, including the memory that it already has:
 * the smallest plan fits in little more than itself. */
static void a_run_uses_the_memory_that_its_cgroup_leaves(void **state)
{
    (void)state;
    require_program();
    if (HR_ADDRESS_SANITIZER || HR_THREAD_SANITIZER)
        hr_test_skip("no-sanitizer", "a sanitizer has memory of its own");
    put_tiny_and_text();
    static const char train[] = "train tiny.yaml --fresh data.train=text.txt --out run";
    static const char *const groups[] = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                          "/sys/fs/cgroup", "memory.max" };
    assert_int_equal(run("%s", train), HR_OK); /* the text is in shards, and in the page cache */
    assert_int_equal(run("plan tiny.yaml --json"), HR_OK);
    json_t *plan = out_json();
    const int64_t needed = json_integer_value(json_object_get(plan, "minimum_bytes")) +
                           json_integer_value(json_object_get(plan, "kernel_bytes"));
    json_decref(plan);
    for (int32_t i = 0; i < 4; i += 2) {
        int codes[2];
        char folder[64], command[PROGRAM_COMMAND_BYTES];
        snprintf(folder, sizeof folder, "%s/headroom-test-%d", groups[i], (int)getpid());
        if (mkdir(folder, 0755) != 0) continue;
        for (int32_t k = 0; k < 2; k++) {
            snprintf(
                command, sizeof command,
                "echo %lld 2>no.txt >%s/%s && echo $$ >%s/cgroup.procs && exec \"$HEADROOM\" %s "
                ">out.txt 2>err.txt",
                (long long)(k ? needed : needed - (1 << 20)), folder, groups[i + 1], folder, train);
            codes[k] = WEXITSTATUS(system(command));
            get("err.txt", err);
            if (k == 0 && codes[0] == HR_NO_FIT)
                assert_non_null(strstr(err, " with page tables, this machine has "));
        }
        while (rmdir(folder) != 0 && errno == EBUSY) continue;
        if (codes[0] == 2 && codes[1] == 2) continue; /* the group has no such limit */
        assert_int_equal(codes[0], HR_NO_FIT);
        assert_int_equal(codes[1], HR_OK);
        return;
    }
    hr_test_skip("cgroup", "no cgroup with a memory limit can be made");
}

/* The numbers of closed streams would be used for the first files that the run opens. */
static void closed_standard_streams_are_not_mistaken_for_files(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out run"), HR_OK);
    const int status = system("\"$HEADROOM\" train tiny.yaml --fresh data.train=text.txt --out run "
                              "--metrics m.jsonl <&- >&- 2>&-");
    assert_int_equal(WEXITSTATUS(status), HR_FAILURE); /* its output was not written */
    get("m.jsonl", out);
    int32_t lines = 0;
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        json_decref(object);
    }
    assert_int_equal(lines, 4);
}

/* After three steps a byte model generates arbitrary bytes; the output is valid text. */
static void a_sample_is_printed_as_valid_text(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(
        run("train tiny.yaml --fresh data.train=text.txt --out run train.sample_tokens=2000 "
            "train.sample_temperature=100"),
        HR_OK);
    assert_non_null(strstr(out, "\nsample\n"));
    json_t *text = json_stringn(out, strlen(out)); /* null when it is not UTF-8 */
    assert_non_null(text);
    json_decref(text);
    for (const char *at = out; *at; at++)
        assert_true(*at == '\n' || *at == '\t' || (unsigned char)*at >= ' ');
}

/* Metrics are written immediately, so the name can be a named pipe. */
static void metrics_are_written_to_pipes_and_a_full_device_is_a_failure(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    struct stat there;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(
        system("cat pipe >got.txt & \"$HEADROOM\" train tiny.yaml --fresh "
               "data.train=text.txt --out run --metrics pipe >out.txt 2>err.txt; code=$?; wait; "
               "exit $code"),
        0);
    get("got.txt", out);
    assert_non_null(strstr(out, "\"process_bytes_measured\""));
    assert_int_equal(stat("pipe", &there), 0);
    assert_true(S_ISFIFO(there.st_mode));
    assert_int_equal(
        run("train tiny.yaml --fresh data.train=text.txt --out run --metrics /dev/full"),
        HR_FAILURE);
    assert_said("the metrics /dev/full cannot be written: No space left on device");
    assert_int_equal(stat("/dev/full", &there), 0);
    assert_true(S_ISCHR(there.st_mode));
}

/* A pipe without a reader ends the run, without a kill. */
static void metrics_do_not_wait_forever(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(mkfifo("unread", 0600), 0);
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out run --metrics unread"),
                     HR_USAGE);
    assert_said("the metrics unread cannot be written: the pipe has no reader");
    assert_int_equal(unlink("unread"), 0);
}

static const char diverging[] =
    "train tiny.yaml --fresh data.train=text.txt --out run train.steps=30 "
    "train.optimizer.lr=1000 train.optimizer.weight_decay=1000";

/* Bytes of a file, at most those of `text`. */
static int64_t read_bytes(const char *name, char *text)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    const int64_t bytes = (int64_t)fread(text, 1, PROGRAM_TEXT_BYTES, file);
    assert_true(bytes < PROGRAM_TEXT_BYTES);
    fclose(file);
    return bytes;
}

static void a_non_finite_validation_loss_ends_the_run_and_saves_nothing(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static char before[PROGRAM_TEXT_BYTES], after[PROGRAM_TEXT_BYTES];
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out run"), HR_OK);
    const int64_t bytes = read_bytes("run/model.safetensors", before);
    assert_int_equal(run("%s data.valid=text.txt train.eval_every=1 --metrics m.jsonl", diverging),
                     HR_DIVERGED);
    assert_non_null(strstr(out, "validation loss nan over"));
    assert_non_null(strstr(err, ": the validation loss is nan over "));
    assert_non_null(strstr(err, " tokens; no weights are saved; try a lower train.optimizer.lr"));
    assert_null(strstr(out, "saved"));
    get("m.jsonl", out);
    assert_non_null(strstr(out, "\"valid_loss\":null}\n"));
    assert_int_equal(read_bytes("run/model.safetensors", after), bytes);
    assert_memory_equal(before, after, (size_t)bytes);
    /* Also in the only evaluation, at the end of a run. */
    int64_t step = 0;
    assert_int_equal(sscanf(err, "headroom: step %" SCNd64, &step), 1);
    assert_int_equal(run("%s data.valid=text.txt train.steps=%" PRId64, diverging, step),
                     HR_DIVERGED);
    assert_non_null(strstr(err, ": the validation loss is nan over "));
    assert_int_equal(read_bytes("run/model.safetensors", after), bytes);
    assert_memory_equal(before, after, (size_t)bytes);
}

/* Checkpoints of a run that diverges contain only finite numbers. */
static void a_non_finite_training_loss_ends_the_run(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static char text[PROGRAM_TEXT_BYTES];
    assert_int_equal(run("%s", diverging), HR_DIVERGED);
    assert_non_null(strstr(err, ": the loss is nan and the gradient norm nan; no weights are "
                                "saved; try a lower"));
    assert_int_equal(access("run/model.safetensors", F_OK), -1);
    assert_int_equal(run("%s train.checkpoint_every=1", diverging), HR_DIVERGED);
    assert_non_null(strstr(err, "; run has the weights of step "));
    const int64_t bytes = read_bytes("run/model.safetensors", text);
    int64_t header = 0;
    memcpy(&header, text, sizeof header);
    for (int64_t i = 8 + header; i < bytes; i += (int64_t)sizeof(float)) {
        float value;
        memcpy(&value, text + i, sizeof value);
        assert_true(isfinite(value));
    }
}

/* There are tokens, logs and the lock, but no weights and no named checkpoint. */
static void assert_nothing_is_saved(void)
{
    assert_int_equal(system("ls -A run | grep -vE 'tokens$|^metrics.jsonl$|^lock$|^checkpoints$' "
                            "| grep -v '^tensorboard$' >left.txt"),
                     256);
    assert_int_equal(system("ls run/checkpoints 2>none.txt | grep . >left.txt"), 256);
}

/* With a limit of 40 blocks of 512 bytes (1,024 in some shells), the shard fits and the weights do
 * not. */
static void a_file_above_ulimit_is_a_failure_and_leaves_nothing(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    put("text.txt", tiny);
    const int status = system(
        "ulimit -f 40 && \"$HEADROOM\" train tiny.yaml --fresh "
        "data.train=text.txt --out run model.d_ff=512 train.steps=1 >out.txt 2>err.txt");
    get("err.txt", err);
    assert_int_equal(WEXITSTATUS(status), HR_FAILURE);
    assert_non_null(strstr(err, "model.safetensors"));
    assert_non_null(strstr(err, "File too large"));
    assert_nothing_is_saved();
}

static const char long_run[] =
    "train tiny.yaml --fresh data.train=text.txt data.valid=text.txt --out run "
    "train.steps=1000000000";

/* After a step; during validation over many windows; during sampling of more tokens than any test
 * waits for. */
static void an_interrupted_run_saves_and_is_exit_75(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    static const char *const phases[] = { "", "train.eval_every=1",
                                          "train.sample_every=1 train.sample_tokens=1000000" };
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        char words[256];
        snprintf(words, sizeof words, "%s %s", long_run, phases[i]);
        unlink("run/model.safetensors");
        assert_int_equal(run_interrupted(words, "step 1/", false), HR_INTERRUPTED);
        assert_non_null(strstr(err, "headroom: interrupted after step "));
        assert_non_null(strstr(err, " of 1000000000; the weights are saved\n"));
        assert_int_equal(access("run/model.safetensors", F_OK), 0);
        assert_non_null(strstr(out, "\nsaved  run at step "));
    }
}

/* The validation loss of the last step is printed, and only saving is left. */
static void a_run_interrupted_at_its_end_is_saved_once(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(
        run_interrupted("train tiny.yaml --fresh data.train=text.txt data.valid=text.txt "
                        "--out run",
                        "step 3  validation", false),
        HR_INTERRUPTED);
    assert_said("interrupted after step 3 of 3; the weights are saved");
    const char *saved = strstr(out, "saved  run at step 3\n");
    assert_non_null(saved);
    assert_null(strstr(saved + 1, "saved  run at step 3\n"));
}

static void a_second_interrupt_ends_the_run_immediately(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    const int code = run_interrupted(long_run, "step 1/", true);
    assert_true(code == 128 + SIGINT || code == 128 + SIGTERM);
    assert_string_equal(err, "\nheadroom: stopped at once; steps since the last checkpoint are "
                             "lost\n");
    assert_nothing_is_saved();
}

/* As timeout(1) sends them, to the process and to its group. */
static void the_same_signal_within_a_second_is_one_request(void **state)
{
    (void)state;
    static const int signals[][2] = { { SIGINT, SIGINT }, { SIGTERM, SIGTERM } };
    require_program();
    put_tiny_and_text();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int code = 0;
        for (int32_t turn = 0; turn < 3 && code != HR_INTERRUPTED;
             turn++) /* on a stalled machine */
            code = run_signalled(long_run, "step 1/", signals[i], 2);
        assert_int_equal(code, HR_INTERRUPTED);
        assert_non_null(strstr(out, "\nsaved  run at step "));
    }
}

/* The signal comes when the text is ready, before a large table is initialized: almost certainly
 * before the first step. Then there is no memory to report. */
static void a_run_interrupted_early_prints_one_sentence(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    const int code = run_interrupted("train tiny.yaml --fresh data.train=text.txt --out run "
                                     "model.vocab_size=100000",
                                     "train  ", false);
    const bool early = strstr(err, "before the first step");
    if (!early) print_message("the signal came late: %s", err);
    else assert_said("interrupted before the first step; nothing was saved");
    assert_int_equal(code, early ? 128 + SIGINT : HR_INTERRUPTED);
    assert_true(early == !strstr(out, "\nmemory planned"));
}

/* The budget allows a plan that the machine has no memory for. */
static void a_plan_larger_than_the_machine_is_refused_before_texts_are_read(void **state)
{
    (void)state;
    require_program();
    put("text.txt", "a few words\n");
    assert_int_equal(run("train " HR_SOURCE "/presets/long-32b.yaml data.train=text.txt "
                         "data.tokenizer=bytes train.batch=64 --budget 8192TiB --out run"),
                     HR_NO_FIT);
    assert_non_null(strstr(err, "headroom: run"));
    assert_null(strstr(out, "\ntrain  "));
    assert_int_equal(system("ls run/*.tokens >left.txt 2>&1"), 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_run_ends_with_metrics_weights_and_its_memory_figures),
        IN_A_FOLDER(a_missing_path_is_reported_before_planning),
        IN_A_FOLDER(without_out_the_tokens_are_in_the_cache),
        IN_A_FOLDER(a_text_that_is_too_short_is_named_with_the_fix),
        IN_A_FOLDER(the_largest_vocabulary_of_words_can_be_counted),
        IN_A_FOLDER(a_cache_without_shards_must_be_writable),
        IN_A_FOLDER(a_run_uses_the_memory_that_its_cgroup_leaves),
        IN_A_FOLDER(closed_standard_streams_are_not_mistaken_for_files),
        IN_A_FOLDER(a_sample_is_printed_as_valid_text),
        IN_A_FOLDER(metrics_do_not_wait_forever),
        IN_A_FOLDER(metrics_are_written_to_pipes_and_a_full_device_is_a_failure),
        IN_A_FOLDER(a_non_finite_validation_loss_ends_the_run_and_saves_nothing),
        IN_A_FOLDER(a_non_finite_training_loss_ends_the_run),
        IN_A_FOLDER(a_file_above_ulimit_is_a_failure_and_leaves_nothing),
        IN_A_FOLDER(an_interrupted_run_saves_and_is_exit_75),
        IN_A_FOLDER(a_run_interrupted_at_its_end_is_saved_once),
        IN_A_FOLDER(a_second_interrupt_ends_the_run_immediately),
        IN_A_FOLDER(the_same_signal_within_a_second_is_one_request),
        IN_A_FOLDER(a_run_interrupted_early_prints_one_sentence),
        IN_A_FOLDER(a_plan_larger_than_the_machine_is_refused_before_texts_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
