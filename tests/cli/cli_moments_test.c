/* SPDX-License-Identifier: Apache-2.0 */
/* cli_moments_test.c - optimizer moments in a file: the weights and the checkpoints are those of
 * moments in memory, whatever interrupts the run or damages the file.
 *
 * The layers are wide enough that the states of their matrices are in the file. */
#define _GNU_SOURCE
#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

static const char recipe[] =
    "model: {d_model: 128, n_layers: 2, n_heads: 2, d_ff: 256, vocab_size: 512}\n"
    "train: {batch: 16, seq_len: 64, steps: 6, threads: 2, checkpoint_every: 2, keep_last: 3}\n";

static void shell(const char *command)
{
    if (system(command)) fail_msg("%s", command);
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", recipe);
}

/* Trains with moments in memory and in a file, and compares what the runs leave. */
static void compare(const char *settings)
{
    shell("rm -rf memory file");
    if (run("train recipe.yaml data.train=text.txt train.checkpoint_every=end %s --out memory",
            settings))
        fail_msg("%s", err);
    if (run("train recipe.yaml data.train=text.txt train.checkpoint_every=end %s "
            "memory.moments=file --out file",
            settings))
        fail_msg("%s", err);
    if (*err && !strstr(err, "(tmpfs): moments in it save no memory")) fail_msg("%s", err);
    shell("rm -r memory/checkpoints/*/recipe.yaml file/checkpoints/*/recipe.yaml "
          "memory/checkpoints/*/strategy.yaml file/checkpoints/*/strategy.yaml "
          "memory/checkpoints/*/manifest.json file/checkpoints/*/manifest.json");
    shell("diff -r memory/checkpoints file/checkpoints");
    shell("cmp memory/model.safetensors file/model.safetensors");
    shell("test ! -e file/scratch.tmp");
}

static void weights_and_checkpoints_are_those_of_moments_in_memory(void **state)
{
    static const char *const settings[] = {
        "",
        "train.dtype=bf16",
        "train.optimizer.kind=adam train.ema_decay=0.9 train.dtype=bf16",
        "train.optimizer.kind=sgd memory.micro_batch=4",
        "train.optimizer.kind=lion train.threads=1",
        "train.optimizer.clip=none memory.strategy=released.yaml",
        "memory.strategy=released.yaml train.dtype=bf16",
        "train.freeze='*embed*' memory.recompute=layers",
        "train.state.moments=int8 train.ema_decay=0.9",
        "train.state.moments=bf16 train.optimizer.kind=adam",
        "train.state.moments=int8 train.optimizer.kind=lion train.dtype=bf16",
        "model.family=wide model.expansion=512 train.optimizer.kind=adam",
    };
    (void)state;
    prepare();
    put("released.yaml", "gradient_release: yes\nlayers:\n"
                         "  - { layers: 0-1, keep: [norm, q, k, v, attention] }\n");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        print_message("%s\n", settings[i]);
        compare(settings[i]);
    }
}

/* A step that is skipped ends between its early fetches and its updates. */
static void skipped_steps_leave_the_moments_alone(void **state)
{
    static const char words[] = "train recipe.yaml data.train=text.txt train.batch=4 "
                                "train.seq_len=16 train.steps=150 train.schedule.kind=constant "
                                "train.optimizer.lr=0.01 train.detect_spikes=true "
                                "train.bad_steps=skip train.bad_steps_max=1000 "
                                "train.checkpoint_every=1000";
    (void)state;
    prepare();
    put_tiny_and_blot();
    assert_int_equal(run("%s --out memory", words), HR_OK);
    assert_non_null(strstr(err, "; the update is skipped\n"));
    assert_int_equal(run("%s memory.moments=file --out file", words), HR_OK);
    assert_non_null(strstr(err, "; the update is skipped\n"));
    shell("cmp memory/model.safetensors file/model.safetensors");
}

static int64_t number_after(const char *word)
{
    const char *at = strstr(out, word);
    int64_t number = 0;
    assert_non_null(at);
    for (at += strlen(word); (*at >= '0' && *at <= '9') || *at == ','; at++)
        if (*at != ',') number = 10 * number + *at - '0';
    return number;
}

/* The states of the matrices leave the arena, except for their windows. */
static void the_arena_loses_the_bytes_of_the_moments(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("plan recipe.yaml data.train=text.txt --json"), HR_OK);
    json_t *memory = out_json();
    assert_int_equal(run("plan recipe.yaml data.train=text.txt memory.moments=file --json "
                         "--out plan.json"),
                     HR_OK);
    json_t *file = out_json();
    const json_t *space = json_array_get(json_object_get(file, "spaces"), 1);
    assert_string_equal(json_string_value(json_object_get(space, "name")), "file");
    const int64_t moved = json_integer_value(json_object_get(space, "bytes"));
    /* A header, 512 x 128 twice, and 128 x (384 + 128 + 256 + 256) in each layer, in two states. */
    assert_int_equal(moved, 4096 + 2 * 4 * (2 * 512 * 128 + 2 * 128 * (384 + 128 + 256 + 256)));
    const int64_t saved = json_integer_value(json_object_get(memory, "arena_bytes")) -
                          json_integer_value(json_object_get(file, "arena_bytes"));
    const int64_t window = 2 * 4 * 512 * 128; /* the largest piece */
    assert_true(saved >= moved - 3 * window - 4096);
    json_decref(memory);
    json_decref(file);
    assert_int_equal(run("verify plan.json"), HR_OK);
    assert_int_equal(run("train recipe.yaml data.train=text.txt memory.moments=file --out run"),
                     HR_OK);
    assert_int_equal(number_after("arena  planned "), number_after("bytes, used "));
    if (HR_ADDRESS_SANITIZER || HR_THREAD_SANITIZER) return;
    assert_true(number_after("measured ") <= number_after("memory planned "));
}

/* ---- interruptions */

static const char train[] = "train recipe.yaml data.train=text.txt memory.moments=file --out run";

/* The weights of a run that nothing disturbed. */
static void train_undisturbed(void)
{
    assert_int_equal(run("%s", train), HR_OK);
    shell("cp run/model.safetensors expected && rm -r run");
}

static void send(pid_t child, const void *context)
{
    assert_int_equal(kill(child, *(const int *)context), 0);
}

static void meddle(pid_t child, const void *command)
{
    assert_int_equal(kill(child, SIGSTOP), 0);
    shell(command);
    assert_int_equal(kill(child, SIGCONT), 0);
}

static void a_run_that_is_stopped_or_killed_resumes(void **state)
{
    static const int signals[] = { SIGTERM, SIGKILL };
    static const int codes[] = { 75, -SIGKILL };
    (void)state;
    prepare();
    train_undisturbed();
    for (int32_t i = 0; i < 2; i++) {
        shell("rm -rf run");
        assert_int_equal(run_acting(train, "step 3/", send, &signals[i]), codes[i]);
        /* What a killed run leaves is worth nothing, and is replaced. */
        assert_int_equal(access("run/scratch.tmp", F_OK), signals[i] == SIGKILL ? 0 : -1);
        if (signals[i] == SIGKILL) shell("truncate -s 8192 run/scratch.tmp");
        assert_int_equal(run("%s", train), HR_OK);
        shell("cmp run/model.safetensors expected");
        assert_int_equal(access("run/scratch.tmp", F_OK), -1);
    }
}

/* The file of a killed run is of no use: it goes when the run resumes without one, and when its
 * checkpoints are pruned. */
static void the_file_of_a_killed_run_is_removed(void **state)
{
    static const int signal = SIGKILL;
    char resumed[512];
    (void)state;
    prepare();
    snprintf(resumed, sizeof resumed, "%s memory.moments=host", train);
    for (int32_t i = 0; i < 2; i++) {
        shell("rm -rf run");
        assert_int_equal(run_acting(train, "step 3/", send, &signal), -SIGKILL);
        assert_int_equal(access("run/scratch.tmp", F_OK), 0);
        assert_int_equal(run("%s", i ? "checkpoint prune run" : resumed), HR_OK);
        assert_int_equal(access("run/scratch.tmp", F_OK), -1);
    }
}

static void interrupt_twice(pid_t child, const void *context)
{
    (void)context;
    send(child, &(int){ SIGINT });
    send(child, &(int){ SIGTERM });
}

static void a_second_interrupt_names_the_file_that_is_left(void **state)
{
    (void)state;
    prepare();
    const int code = run_acting("train recipe.yaml data.train=text.txt memory.moments=file "
                                "train.steps=1000 train.checkpoint_every=end --out run",
                                "step 1/", interrupt_twice, NULL);
    assert_true(code == 128 + SIGINT || code == 128 + SIGTERM);
    assert_string_equal(err, "\nheadroom: stopped at once; steps since the last checkpoint are "
                             "lost, and the file of moments is left: scratch*.tmp, in "
                             "memory.file_dir or --out\n");
    assert_int_equal(access("run/scratch.tmp", F_OK), 0);
}

/* Each run has a file of its own name in a directory that they share. */
static void runs_may_share_a_directory_for_their_files(void **state)
{
    (void)state;
    prepare();
    shell("mkdir disk");
    train_undisturbed();
    assert_int_equal(run_acting("train recipe.yaml data.train=text.txt memory.moments=file "
                                "memory.file_dir=disk --out other",
                                "step 3/", send, &(int){ SIGKILL }),
                     -SIGKILL);
    assert_int_equal(run("%s memory.file_dir=disk", train), HR_OK);
    shell("cmp run/model.safetensors expected && test $(ls disk | wc -l) = 1");
    assert_int_equal(run("train recipe.yaml data.train=text.txt memory.moments=file "
                         "memory.file_dir=disk --out other"),
                     HR_OK);
    shell("cmp other/model.safetensors expected && test $(ls disk | wc -l) = 0");
}

static const char train_homeless[] = "train recipe.yaml data.train=text.txt memory.moments=file "
                                     "memory.file_dir=disk data.cache=cache";

/* Without folders that tell them apart. */
static void runs_without_a_folder_may_share_a_directory(void **state)
{
    char command[PROGRAM_COMMAND_BYTES];
    (void)state;
    prepare();
    shell("mkdir disk");
    snprintf(command, sizeof command, "\"$HEADROOM\" %s >other.txt 2>&1", train_homeless);
    if (run_acting(train_homeless, "step 1/", meddle, command) != HR_OK) fail_msg("%s", err);
    shell("grep -q '^step 6/6' other.txt && test $(ls disk | wc -l) = 0");
}

static void the_place_of_the_moments_may_change(void **state)
{
    (void)state;
    prepare();
    train_undisturbed();
    assert_int_equal(run_acting(train, "step 3/", send, &(int){ SIGTERM }), 75);
    assert_int_equal(run("train recipe.yaml data.train=text.txt --out run"), HR_OK);
    shell("cmp run/model.safetensors expected");
}

/* ---- damage */

/* Damages after step 5, the first after the checkpoint of step 4. */
static void a_damaged_file_is_reported_and_the_run_continues_from_its_checkpoint(void **state)
{
    static const struct {
        const char *command, *sentence;
    } cases[] = {
        { "dd if=/dev/urandom of=run/scratch.tmp bs=4096 seek=1 count=640 conv=notrunc 2>no.txt",
          "damaged" },
        { "truncate -s 8192 run/scratch.tmp", "truncated" },
        { "rm run/scratch.tmp", "removed" },
        { "head -c 3149824 /dev/zero >other && cp other run/scratch.tmp", "damaged" },
    };
    (void)state;
    prepare();
    train_undisturbed();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shell("rm -rf run");
        const int code = run_acting(train, "step 5/", meddle, cases[i].command);
        if (code != HR_OK || !strstr(err, cases[i].sentence) ||
            !strstr(err, "step 6: the run continues from the checkpoint of step 4"))
            fail_msg("%s: exit code %d: %s", cases[i].command, code, err);
        shell("cmp run/model.safetensors expected");
        assert_int_equal(access("run/scratch.tmp", F_OK), -1);
    }
}

/* The last save reads the whole file. */
static void damage_that_the_last_save_finds_costs_only_time(void **state)
{
    (void)state;
    prepare();
    train_undisturbed();
    const int code = run_acting(train, "step 6/", meddle,
                                "dd if=/dev/urandom of=run/scratch.tmp bs=4096 seek=1 count=768 "
                                "conv=notrunc 2>no.txt");
    if (code != HR_OK) fail_msg("exit code %d: %s", code, err);
    shell("cmp run/model.safetensors expected");
    assert_int_equal(run("checkpoint verify run"), HR_OK);
}

/* Removes the file, and sends SIGTERM when the run says so. */
static void remove_and_interrupt(pid_t child, const void *context)
{
    (void)context;
    meddle(child, "rm run/scratch.tmp");
    for (int32_t i = 0; i < 1000; i++) {
        get("err.txt", err);
        if (strstr(err, "scratch.tmp")) break;
        usleep(1000);
    }
    assert_int_equal(kill(child, SIGTERM), 0);
}

static void an_interrupt_while_the_file_is_made_anew_keeps_the_checkpoint(void **state)
{
    (void)state;
    prepare();
    train_undisturbed();
    const int code = run_acting(train, "step 5/", remove_and_interrupt, NULL);
    if (code != 75) fail_msg("exit code %d: %s", code, err);
    assert_int_equal(run("checkpoint verify run"), HR_OK);
    assert_int_equal(run("%s", train), HR_OK);
    shell("cmp run/model.safetensors expected");
}

static void without_a_checkpoint_damage_ends_the_run(void **state)
{
    (void)state;
    prepare();
    train_undisturbed();
    static const char *const damages[] = { "truncate -s 8192 run/scratch.tmp",
                                           "rm run/scratch.tmp" };
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(run_acting(train, "step 1/", meddle, damages[i]), HR_CORRUPT);
        assert_non_null(strstr(err, "there is no checkpoint yet: the same command starts over"));
        assert_int_equal(run("%s", train), HR_OK);
        shell("cmp run/model.safetensors expected && rm -r run");
    }
}

static void a_file_that_cannot_be_made_anew_ends_the_run_as_damage(void **state)
{
    (void)state;
    prepare();
    shell("rm -rf run && mkdir away");
    char command[1024];
    snprintf(command, sizeof command, "%s memory.file_dir=away", train);
    assert_int_equal(run_acting(command, "step 5/", meddle, "rm -r away"), HR_CORRUPT);
    assert_non_null(strstr(err, "No such file or directory; the same command resumes at step 4"));
    assert_int_equal(run("checkpoint verify run"), HR_OK);
}

/* ---- refusals */

static void a_run_without_a_place_for_the_file_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("train recipe.yaml data.train=text.txt memory.moments=file"), HR_USAGE);
    assert_said("memory.moments=file needs a directory for the file: give --out DIR or "
                "memory.file_dir=DIR");
    assert_int_equal(run("%s memory.file_dir=none", train), HR_USAGE);
    assert_said("none: no such directory");
    shell("mkdir cache run && echo mine > run/scratch.tmp");
    assert_int_equal(run("%s data.cache=cache", train), HR_USAGE);
    assert_said("run/scratch.tmp: exists and is not a scratch file of headroom; remove it or "
                "move it away");
    shell("grep -q mine run/scratch.tmp && rm -r run");
    assert_int_equal(access("run", F_OK), -1);
    assert_int_equal(run("%s memory.file_budget=1MiB", train), HR_NO_FIT);
    assert_non_null(strstr(err, "memory.file_budget is 1,048,576 bytes (1.0 MiB); type "
                                "memory.file_budget=3149824"));
    assert_int_equal(run("plan recipe.yaml memory.moments=file memory.file_budget=3149824"), HR_OK);
    assert_int_equal(run("%s memory.file_budget=3149824", train), HR_OK);
    shell("rm -r run");
    assert_int_equal(run("%s memory.file_dir=none --budget 1MiB", train), HR_USAGE);
    assert_said("none: no such directory");
}

static void an_update_of_whole_matrices_refuses_a_file(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("%s train.optimizer.kind=adafactor", train), HR_USAGE);
    assert_said("train.optimizer.kind adafactor updates whole matrices, so its states stay in "
                "memory: use memory.moments=host");
    assert_int_equal(run("plan recipe.yaml train.optimizer.kind=adafactor"), HR_OK);
}

/* States below 64 KiB stay in memory. */
static void a_plan_without_a_file_needs_no_directory_and_says_so(void **state)
{
    static const char small[] =
        "recipe.yaml data.train=text.txt model.d_model=32 model.d_ff=64 model.n_heads=2 "
        "model.vocab_size=300 train.batch=4 train.steps=1 memory.moments=file data.cache=cache";
    (void)state;
    prepare();
    assert_int_equal(run("plan %s", small), HR_OK);
    assert_non_null(strstr(out, "  0       0.0 KiB  all in memory: no state has 64 KiB\n"));
    if (run("train %s", small) != HR_OK) fail_msg("%s", err);
    assert_non_null(strstr(out, "plan   memory.moments=file has no effect: no optimizer state has "
                                "64 KiB or more, all stay in memory\n"));
    assert_int_equal(run("plan recipe.yaml memory.moments=file"), HR_OK);
    assert_null(strstr(out, "64 KiB"));
}

/* ---- full disks */

/* Runs a script with a file system in memory at ./disk. Returns its exit code. */
static int run_on_disk(const char *size, const char *script)
{
    char command[PROGRAM_COMMAND_BYTES];
    shell("mkdir -p disk");
    if (system("unshare -rm mount -t tmpfs none disk 2>no.txt") != 0)
        hr_test_skip("mount", "no file system can be mounted here");
    put("script.sh", script);
    snprintf(command, sizeof command,
             "unshare -rm sh -c 'mount -t tmpfs -o size=%s none disk && . ./script.sh' >out.txt "
             "2>err.txt",
             size);
    const int code = WEXITSTATUS(system(command));
    get("out.txt", out);
    get("err.txt", err);
    return code;
}

static void a_disk_without_room_is_refused_before_texts_are_read(void **state)
{
    (void)state;
    prepare();
    const int code = run_on_disk("1m", "\"$HEADROOM\" train recipe.yaml data.train=text.txt "
                                       "memory.moments=file memory.file_dir=disk --out run\n");
    if (code != HR_NO_FIT ||
        !strstr(err, "disk: the file of moments needs 3,149,824 bytes, 1,048,576 are free there"))
        fail_msg("exit code %d: %s", code, err);
    assert_int_equal(access("run", F_OK), -1);
}

/* 16 MiB are enough for three checkpoints of 4.7 MB, but not with 3.1 MB of moments. */
static void the_disk_of_the_run_needs_room_for_checkpoints_and_moments(void **state)
{
    static const char command[] = "\"$HEADROOM\" train recipe.yaml data.train=text.txt "
                                  "data.cache=cache --out disk/run memory.moments=";
    char script[PROGRAM_COMMAND_BYTES];
    (void)state;
    prepare();
    snprintf(script, sizeof script, "%shost\n", command);
    if (run_on_disk("16m", script) != HR_OK) fail_msg("%s", err);
    assert_string_equal(err, "");
    for (int32_t elsewhere = 0; elsewhere <= 1; elsewhere++) {
        snprintf(script, sizeof script, "mkdir disk/moments\n%sfile %s\n", command,
                 elsewhere ? "memory.file_dir=disk/moments" : "");
        assert_int_equal(run_on_disk("16m", script), HR_NO_FIT);
        assert_non_null(strstr(err, " and 3,149,824 for the moments, and "));
    }
    snprintf(script, sizeof script,
             "mkdir disk/run\n"
             "(printf 'headroom scratch file '; head -c 3149802 /dev/zero) "
             ">disk/run/scratch.tmp\n%sfile\n",
             command);
    if (run_on_disk("18m", script) != HR_OK) fail_msg("%s", err);
    assert_non_null(strstr(err, "disk/run: is in memory (tmpfs): moments in it save no memory"));
}

/* No state of so small a model has codes, so there is no file of scales. */
static void a_model_that_is_too_small_for_codes_resumes(void **state)
{
    static const char *const kinds[] = { "adamw", "lion", "muon", "sgd" };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char words[256];
        snprintf(words, sizeof words,
                 "train recipe.yaml data.train=text.txt model.d_model=16 model.d_ff=24 "
                 "model.vocab_size=256 train.state.moments=int8 train.optimizer.kind=%s",
                 kinds[i]);
        if (run("%s --out whole", words) || run("%s --out parts", words)) fail_msg("%s", err);
        shell("rm -r parts/checkpoints/step-*6 parts/model.safetensors");
        if (run("%s --out parts", words)) fail_msg("%s: %s", kinds[i], err);
        shell("cmp whole/model.safetensors parts/model.safetensors && rm -r whole parts");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(weights_and_checkpoints_are_those_of_moments_in_memory),
        IN_A_FOLDER(skipped_steps_leave_the_moments_alone),
        IN_A_FOLDER(the_arena_loses_the_bytes_of_the_moments),
        IN_A_FOLDER(a_run_that_is_stopped_or_killed_resumes),
        IN_A_FOLDER(the_file_of_a_killed_run_is_removed),
        IN_A_FOLDER(a_second_interrupt_names_the_file_that_is_left),
        IN_A_FOLDER(runs_may_share_a_directory_for_their_files),
        IN_A_FOLDER(runs_without_a_folder_may_share_a_directory),
        IN_A_FOLDER(the_place_of_the_moments_may_change),
        IN_A_FOLDER(a_damaged_file_is_reported_and_the_run_continues_from_its_checkpoint),
        IN_A_FOLDER(damage_that_the_last_save_finds_costs_only_time),
        IN_A_FOLDER(an_interrupt_while_the_file_is_made_anew_keeps_the_checkpoint),
        IN_A_FOLDER(without_a_checkpoint_damage_ends_the_run),
        IN_A_FOLDER(a_file_that_cannot_be_made_anew_ends_the_run_as_damage),
        IN_A_FOLDER(a_run_without_a_place_for_the_file_is_refused_and_leaves_nothing),
        IN_A_FOLDER(an_update_of_whole_matrices_refuses_a_file),
        IN_A_FOLDER(a_model_that_is_too_small_for_codes_resumes),
        IN_A_FOLDER(a_plan_without_a_file_needs_no_directory_and_says_so),
        IN_A_FOLDER(a_disk_without_room_is_refused_before_texts_are_read),
        IN_A_FOLDER(the_disk_of_the_run_needs_room_for_checkpoints_and_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
