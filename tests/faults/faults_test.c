/* SPDX-License-Identifier: Apache-2.0 */
/* tests/faults/faults_test.c - the n-th system call fails, for n = 1, 2, 3 ... until a run has no
 * such call: every n with HR_COUNT of at least 10, some of them below. */
#include "headroom/status.h"
#include "support/program.h"

#ifdef HR_FAULTS_LIBRARY

static const char faulty_recipe[] =
    "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
    "train: {batch: 4, seq_len: 16, steps: 6, threads: 1, checkpoint_every: 2, keep_last: 2,\n"
    "  eval_every: 3, eval_batches: 2}\n";

static const char train[] = "train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                            "--metrics m.jsonl";

static char weights[PROGRAM_TEXT_BYTES], again[PROGRAM_TEXT_BYTES]; /* of the run without faults */
static size_t weights_bytes;

static size_t get_bytes(const char *name, char *bytes)
{
    FILE *file = fopen(name, "rb");
    if (!file) return 0;
    const size_t count = fread(bytes, 1, PROGRAM_TEXT_BYTES, file);
    fclose(file);
    assert_true(count < PROGRAM_TEXT_BYTES);
    return count;
}

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static void start_over(void)
{
    shell("rm -rf run m.jsonl told.txt");
}

/* Returns the exit code under a fault, above 127 after a signal; -1 if no call failed. */
static int run_faulty(const char *fault, const char *arguments)
{
    char command[PROGRAM_COMMAND_BYTES];
    unlink("told.txt");
    snprintf(command, sizeof command,
             "LD_PRELOAD='" HR_FAULTS_LIBRARY
             "' HR_FAULTS=%s HR_FAULTS_TOLD=told.txt \"$HEADROOM\" %s >out.txt 2>err.txt",
             fault, arguments);
    const int status = system(command);
    get("out.txt", out);
    get("err.txt", err);
    if (access("told.txt", F_OK) != 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns the number of checkpoints that verify reports as intact; -1 if one is not. */
static int32_t count_intact(void)
{
    int32_t intact = 0;
    const int code = run("checkpoint verify run");
    for (const char *at = out; (at = strstr(at, "  intact")); at++) intact++;
    return code == HR_OK || strstr(err, "has no checkpoints") ? intact : -1;
}

/* Prepares the folder `begun` with a run that was killed soon after its first checkpoint. */
static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("tiny.yaml", faulty_recipe);
    assert_int_equal(run("%s", train), HR_OK);
    weights_bytes = get_bytes("run/model.safetensors", weights);
    assert_true(weights_bytes > 0);
    for (int32_t n = 50; n == 50 || count_intact() < 1; n += 10) {
        char fault[64];
        snprintf(fault, sizeof fault, "change:%d:KILL", n);
        start_over();
        assert_int_equal(run_faulty(fault, train), 128 + SIGKILL);
    }
    assert_null(strstr(out, "\n           6 "));
    shell("mkdir begun && mv run m.jsonl begun");
}

static int32_t stride(int32_t coarse)
{
    return HR_COUNT < 10 && coarse > HR_COUNT ? coarse / HR_COUNT : 1;
}

static int32_t count_lines(const char *text)
{
    int32_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static void assert_sentences(const char *fault)
{
    for (const char *line = err; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, "headroom: ", 10) || !strchr(line, '\n'))
            fail_msg("%s: is not an error message: %s", fault, line);
}

/* ---- calls that change files */

/* Every renamed checkpoint is complete, and so are the weights. A run that is refused before its
 * first step leaves no folder. */
static void assert_nothing_is_partial(const char *fault)
{
    if (access("run", F_OK) != 0) return;
    const int code = run("checkpoint verify run");
    if (code != HR_OK && !strstr(err, "has no checkpoints"))
        fail_msg("%s: verify says %d: %s%s", fault, code, err, out);
    int64_t header = 0;
    const size_t bytes = get_bytes("run/model.safetensors", again);
    if (!bytes) return;
    memcpy(&header, again, sizeof header);
    assert_int_equal(bytes, weights_bytes);
    assert_memory_equal(again, weights, (size_t)header + 8);
}

/* The next run without faults completes with the same weights. */
static void assert_the_next_run_completes(const char *fault, bool removes)
{
    const int code = run("%s", train);
    if (code != HR_OK) fail_msg("%s: afterwards %d: %s", fault, code, err);
    assert_int_equal(get_bytes("run/model.safetensors", again), weights_bytes);
    assert_memory_equal(again, weights, weights_bytes);
    if (removes && system("test -z \"$(find run -name '*partial*')\"") != 0)
        fail_msg("%s: unfinished files remain in run", fault);
}

/* A run that started its steps computes all of them. It succeeds unless its start or its last
 * checkpoint failed. */
static void assert_it_continued(const char *fault, int code)
{
    const bool began = strstr(out, "\nstep "), ended = strstr(out, "\nstep 6/6");
    assert_sentences(fault);
    if (began && !ended) fail_msg("%s: the run ended in between: %s", fault, err);
    if (code != HR_OK && code != HR_FAILURE && code != HR_USAGE)
        fail_msg("%s: exit code %d: %s", fault, code, err);
    if (code != HR_OK) assert_true(count_lines(err) > 0);
    if (code != HR_OK) return;
    assert_int_equal(get_bytes("run/model.safetensors", again), weights_bytes);
    assert_memory_equal(again, weights, weights_bytes);
}

static void fail_changes(const char *kind, const char *error, int32_t coarse, bool continues)
{
    int32_t failed = 0, ended_well = 0;
    const int32_t step = stride(coarse);
    for (int32_t n = 1 + (int32_t)strlen(error) % step;; n += step) {
        char fault[64];
        snprintf(fault, sizeof fault, "%s:%d:%s", kind, n, error);
        start_over();
        if (continues) shell("cp -a begun/run begun/m.jsonl .");
        const int code = run_faulty(fault, train);
        if (code < 0) break;
        failed++;
        ended_well += code == HR_OK;
        assert_it_continued(fault, code);
        assert_nothing_is_partial(fault);
        assert_the_next_run_completes(fault, true);
    }
    print_message("%s, %s%s: %d failed, one each; %d runs ended well\n", kind, error,
                  continues ? ", in a resumed run" : "", failed, ended_well);
    assert_true(failed > 0);
}

static void a_failed_call_ends_no_run_and_leaves_no_partial_file(void **state)
{
    (void)state;
    prepare();
    fail_changes("change", "ENOSPC", 37, false);
    fail_changes("change", "EIO", 31, false);
    fail_changes("change", "ENOSPC", 41, true);
    fail_changes("change", "EIO", 29, true);
    fail_changes("write", "ENOSPC", 17, false);
    fail_changes("flush", "EIO", 13, false);
    fail_changes("rename", "EIO", 5, false);
}

/* Files from before the disk became full are unchanged afterwards. */
static void a_full_disk_ends_the_run_and_keeps_earlier_files(void **state)
{
    (void)state;
    prepare();
    /* On a read-only disk, unfinished files cannot be removed either. */
    static const struct {
        const char *kind, *error;
    } disks[] = { { "grow", "ENOSPC" }, { "grow", "EIO" }, { "change", "EROFS" } };
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        const bool removes = !strcmp(disks[i].kind, "grow");
        int32_t failed = 0;
        const int32_t step = stride(43);
        for (int32_t n = 1 + (int32_t)i;; n += step) {
            char fault[64];
            snprintf(fault, sizeof fault, "%s:%d:%s:on", disks[i].kind, n, disks[i].error);
            start_over();
            if (n % 2) shell("cp -a begun/run begun/m.jsonl .");
            const int code = run_faulty(fault, train);
            if (code < 0) break;
            failed++;
            assert_sentences(fault);
            if (code != HR_FAILURE && code != HR_USAGE)
                fail_msg("%s: exit code %d: %s", fault, code, err);
            if (n % 2 && count_intact() < 1) fail_msg("%s: %s%s", fault, err, out);
            assert_nothing_is_partial(fault);
            assert_the_next_run_completes(fault, removes);
        }
        print_message("%s from a call on: %d runs\n", disks[i].error, failed);
        assert_true(failed > 0);
    }
}

/* ---- before the seal */

/* Either one error message and a documented exit code, or success despite the refused call: a run
 * then says what it could not do, such as to remove what a killed one left. */
static void assert_clean_error(const char *fault, int code)
{
    assert_sentences(fault);
    if (code == HR_OK) return;
    if ((code != HR_FAILURE && code != HR_USAGE && code != HR_NO_FIT) || count_lines(err) != 1)
        fail_msg("%s: exit code %d: %s", fault, code, err);
}

static void refuse(const char *kind, const char *error, const char *arguments, int32_t coarse)
{
    int32_t refused = 0, ended_well = 0;
    const int32_t step = stride(coarse);
    for (int32_t n = 1 + (int32_t)strlen(arguments) % step;; n += step) {
        char fault[64];
        snprintf(fault, sizeof fault, "%s:%d:%s", kind, n, error);
        start_over();
        if (n % 2) shell("cp -a begun/run begun/m.jsonl .");
        const int code = run_faulty(fault, arguments);
        if (code < 0) break;
        refused++;
        ended_well += code == HR_OK;
        assert_clean_error(fault, code);
        assert_nothing_is_partial(fault);
        shell("test -z \"$(find . -name '*partial*')\"");
        if (*arguments == 't') assert_the_next_run_completes(fault, true);
    }
    print_message("%s, %s, %.5s: %d refused, one each; %d ended well\n", kind, error, arguments,
                  refused, ended_well);
    assert_true(refused > 0);
}

static void refusals_before_the_seal_give_one_error_message(void **state)
{
    (void)state;
    prepare();
    static const char *const commands[] = { "plan tiny.yaml", train };
    for (int32_t i = 0; i < 2; i++) {
        refuse("memory", "ENOMEM", commands[i], 11);
        refuse("memory", "ENOMEM:on", commands[i], 13);
        refuse("map", "ENOMEM", commands[i], 1);
        refuse("open", "EMFILE", commands[i], 61);
        refuse("open", "EMFILE:on", commands[i], 67);
        refuse("open", "EACCES", commands[i], 71);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_failed_call_ends_no_run_and_leaves_no_partial_file),
        IN_A_FOLDER(a_full_disk_ends_the_run_and_keeps_earlier_files),
        IN_A_FOLDER(refusals_before_the_seal_give_one_error_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    const bool required = hr_test_required("trap");
    printf("skip trap: in a build with a sanitizer no call is made to fail\n");
    return required;
}

#endif
