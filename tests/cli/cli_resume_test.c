/* SPDX-License-Identifier: Apache-2.0 */
/* cli_resume_test.c - directories in which a run cannot resume: one error, an exit code, and no
 * changes; and damaged checkpoints that are skipped for an older one.
 *
 * The run of six steps has checkpoints after steps two and four, and computes the last two
 * again. */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "checkpoint/manifest.h"
#include "headroom/status.h"
#include "support/program.h"

static const char recipe[] =
    "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
    "train: {batch: 4, seq_len: 16, steps: 6, threads: 1, checkpoint_every: 2, keep_last: 3}\n";

static const char train[] = "train recipe.yaml data.train=text.txt --out run";

#define STEP_2 "run/checkpoints/step-000000000002"
#define STEP_4 "run/checkpoints/step-000000000004"

static char weights[PROGRAM_TEXT_BYTES], text[PROGRAM_TEXT_BYTES];
static size_t weights_bytes;

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static size_t get_bytes(const char *name, char *bytes)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, PROGRAM_TEXT_BYTES, file);
    fclose(file);
    assert_true(count > 0 && count < PROGRAM_TEXT_BYTES);
    return count;
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", recipe);
    assert_int_equal(run("%s", train), HR_OK);
    weights_bytes = get_bytes("run/model.safetensors", weights);
    shell("rm -r run/checkpoints/step-000000000006 && mv run kept");
}

static void restore(void)
{
    shell("rm -rf run && cp -a kept run");
}

/* ---- damage */

static void sign(const char *place, hr_manifest *manifest)
{
    static char printed[HR_MANIFEST_BYTES];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", place, hr_manifest_name);
    const int64_t bytes = hr_manifest_print(manifest, printed);
    put_bytes(path, printed, (size_t)bytes);
}

static hr_manifest manifest_of(const char *place)
{
    char path[256];
    hr_manifest manifest;
    snprintf(path, sizeof path, "%s/%s", place, hr_manifest_name);
    const size_t bytes = get_bytes(path, text);
    assert_int_equal(hr_manifest_read(&manifest, path, text, (int64_t)bytes, NULL), HR_OK);
    return manifest;
}

/* Updates the manifest entry of a changed file. */
static void sign_file(const char *place, const char *name)
{
    char path[256];
    hr_hash hash;
    hr_manifest manifest = manifest_of(place);
    snprintf(path, sizeof path, "%s/%s", place, name);
    const size_t bytes = get_bytes(path, text);
    hr_hash_begin(&hash);
    hr_hash_add(&hash, text, (int64_t)bytes);
    hr_manifest_file *file = (hr_manifest_file *)(uintptr_t)hr_manifest_find(&manifest, name);
    assert_non_null(file);
    file->bytes = (int64_t)bytes;
    hr_hash_print(&hash, file->hash);
    sign(place, &manifest);
}

/* Replaces a part of a manifest, with a correct hash. */
static void replace(const char *place, const char *part, const char *by)
{
    static char changed[PROGRAM_TEXT_BYTES];
    char path[256], digits[HR_HASH_BYTES];
    hr_hash hash;
    snprintf(path, sizeof path, "%s/%s", place, hr_manifest_name);
    text[get_bytes(path, text)] = 0;
    char *tail = NULL;
    for (char *at = text; (at = strstr(at, ",\"xxh3_128\":")); at++) tail = at;
    assert_non_null(tail);
    *tail = 0;
    const char *found = strstr(text, part);
    assert_non_null(found);
    int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(found - text), text, by,
                          found + strlen(part));
    hr_hash_begin(&hash);
    hr_hash_add(&hash, changed, length);
    length += snprintf(changed + length, sizeof changed - (size_t)length, ",\"xxh3_128\":\"%s\"}\n",
                       hr_hash_print(&hash, digits));
    put_bytes(path, changed, (size_t)length);
}

static void another_version(void)
{
    replace(STEP_4, "{\"headroom_checkpoint\":2,", "{\"headroom_checkpoint\":1,");
}

static void another_length(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.files[0].bytes++;
    sign(STEP_4, &manifest);
}

static void another_hash(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.files[0].hash[0] = manifest.files[0].hash[0] == '0' ? '1' : '0';
    sign(STEP_4, &manifest);
}

static void another_step(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.state.step = 5;
    sign(STEP_4, &manifest);
}

static void a_file_outside(void)
{
    replace(STEP_4, "\"name\":\"config.json\"", "\"name\":\"../../config.json\"");
}

/* Same length, different header: two sizes are exchanged. */
static void another_shape(void)
{
    const char *name = STEP_4 "/model.safetensors";
    const size_t bytes = get_bytes(name, text);
    char *shape = memmem(text, bytes, "[32,16]", 7);
    if (!shape) shape = memmem(text, bytes, "[16,32]", 7);
    assert_non_null(shape);
    memcpy(shape, shape[1] == '3' ? "[16,32]" : "[32,16]", 7);
    put_bytes(name, text, bytes);
    sign_file(STEP_4, "model.safetensors");
}

static void a_file_that_is_longer(void)
{
    const char *name = STEP_4 "/moment_1.safetensors";
    const size_t bytes = get_bytes(name, text);
    memset(text + bytes, 0, 64);
    put_bytes(name, text, bytes + 64);
    sign_file(STEP_4, "moment_1.safetensors");
}

/* Missing in the directory and in the manifest. */
static void a_moment_less(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    int32_t kept = 0;
    for (int32_t i = 0; i < manifest.file_count; i++)
        if (strcmp(manifest.files[i].name, "moment_2.safetensors"))
            manifest.files[kept++] = manifest.files[i];
    assert_int_equal(kept, manifest.file_count - 1);
    manifest.file_count = kept;
    sign(STEP_4, &manifest);
    assert_int_equal(unlink(STEP_4 "/moment_2.safetensors"), 0);
}

static void no_recipe(void)
{
    replace(STEP_4, "\"name\":\"recipe.yaml\"", "\"name\":\"strategy.yaml\"");
    assert_int_equal(unlink(STEP_4 "/recipe.yaml"), 0);
    sign_file(STEP_4, "strategy.yaml");
}

static void a_recipe_that_is_none(void)
{
    put(STEP_4 "/recipe.yaml", "model: [\n");
    sign_file(STEP_4, "recipe.yaml");
}

static void a_batch_out_of_reach(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.state.batch_shift = INT64_MAX;
    sign(STEP_4, &manifest);
}

static void a_log_out_of_reach(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.state.log_bytes = INT64_MAX;
    sign(STEP_4, &manifest);
}

static void statistics_that_are_none(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    for (int64_t i = 0; i < manifest.state.level_count; i++) manifest.state.levels[i] = 1e300;
    sign(STEP_4, &manifest);
}

static void too_few_statistics(void)
{
    hr_manifest manifest = manifest_of(STEP_4);
    manifest.state.level_count--;
    sign(STEP_4, &manifest);
}

static void more_steps_than_there_are(void)
{
    shell("mv " STEP_4 " run/checkpoints/step-000000000400");
    hr_manifest manifest = manifest_of("run/checkpoints/step-000000000400");
    manifest.state.step = 400;
    sign("run/checkpoints/step-000000000400", &manifest);
}

/* ---- mismatches */

static void another_model(void)
{
    shell("rm -rf other && \"$HEADROOM\" train recipe.yaml model.d_model=32 data.train=text.txt "
          "--out other >out.txt && rm -r run/checkpoints && mv other/checkpoints run && rm -r "
          "run/checkpoints/step-000000000006");
}

static void half_deleted(void)
{
    shell("rm " STEP_4 "/m*");
}

static void no_manifest(void)
{
    shell("rm " STEP_4 "/manifest.json");
}

static void a_manifest_of_nothing(void)
{
    shell(": >" STEP_4 "/manifest.json");
}

static void all_half_deleted(void)
{
    shell("rm run/checkpoints/*/model.safetensors");
}

static void a_link_for_a_file(void)
{
    shell("cp " STEP_4 "/model.safetensors outside && ln -sf ../../../outside " STEP_4
          "/model.safetensors");
}

static void a_link_for_a_manifest(void)
{
    shell("cp " STEP_4 "/manifest.json outside && ln -sf ../../../outside " STEP_4
          "/manifest.json");
}

static void a_link_for_a_step(void)
{
    shell("rm -rf outside && mv " STEP_4 " outside && ln -s ../../outside " STEP_4);
}

static void a_link_for_the_last_step(void)
{
    shell("mkdir -p outside/kept && ln -s ../../outside run/checkpoints/step-000000000006");
}

static void a_pipe_for_a_file(void)
{
    shell("rm " STEP_4 "/config.json && mkfifo " STEP_4 "/config.json");
}

static void a_file_for_a_step(void)
{
    shell("rm -r " STEP_4 " && echo notes >" STEP_4);
}

static void a_file_for_all(void)
{
    shell("rm -r run/checkpoints && echo notes >run/checkpoints");
}

static void notes_for_a_log(void)
{
    put("run/metrics.jsonl", "my notes\n");
}

static void a_log_that_is_shorter(void)
{
    shell("head -n 1 kept/metrics.jsonl >run/metrics.jsonl");
}

static void a_directory_for_a_log(void)
{
    shell("rm run/metrics.jsonl && mkdir run/metrics.jsonl");
}

static void all_gone(void)
{
    shell("rm -r run/checkpoints");
}

static void none_left(void)
{
    shell("rm -r run/checkpoints/step-*");
}

static void only_begun(void)
{
    shell("rm -r run/checkpoints/step-* && head -n 1 kept/metrics.jsonl >run/metrics.jsonl");
}

static const struct {
    void (*spoil)(void);
    int code;
    const char *said;
} cases[] = {
    /* resumes from an older one */
    { another_length, HR_OK, "bytes, its manifest says" },
    { another_hash, HR_OK, "damaged: its hash is" },
    { another_step, HR_OK, "is the manifest of step 5" },
    { a_file_outside, HR_OK, "not a checkpoint manifest" },
    { statistics_that_are_none, HR_OK, "its manifest has incomplete statistics" },
    { a_moment_less, HR_OK, "its manifest has no moment_2.safetensors" },
    { too_few_statistics, HR_OK, "its manifest has incomplete statistics" },
    { no_recipe, HR_OK, "its manifest has no recipe.yaml" },
    { a_batch_out_of_reach, HR_OK, "its run state is incomplete" },
    { more_steps_than_there_are, HR_OK, "its run state is incomplete" },
    { half_deleted, HR_OK, "No such file or directory" },
    { no_manifest, HR_OK, "No such file or directory" },
    { a_manifest_of_nothing, HR_OK, "damaged manifest" },
    { a_link_for_a_file, HR_OK, "is a symbolic link" },
    { a_link_for_a_manifest, HR_OK, "is a symbolic link" },
    { a_link_for_a_step, HR_OK, "cannot be opened as a directory" },
    { a_link_for_the_last_step, HR_OK, "cannot be opened as a directory" },
    { a_pipe_for_a_file, HR_OK, "config.json: is not a regular file" },
    { a_file_for_a_step, HR_OK, "cannot be opened as a directory" },
    /* refused */
    { another_version, HR_USAGE, "has version 1, whose runs drew random numbers from another" },
    { another_model, HR_USAGE,
      "at step 4, that cannot go on with this recipe: its weights have another shape or format; "
      "use --fresh" },
    { another_shape, HR_CORRUPT, "model.safetensors" },
    { a_file_that_is_longer, HR_CORRUPT, "moment_1.safetensors" },
    { a_recipe_that_is_none, HR_CORRUPT, "recipe.yaml" },
    { a_log_out_of_reach, HR_CORRUPT, "metrics.jsonl" },
    { all_half_deleted, HR_CORRUPT, "has no intact checkpoint; use --fresh" },
    { a_file_for_all, HR_USAGE, "run/checkpoints: cannot be opened as a directory" },
    { notes_for_a_log, HR_CORRUPT, "metrics.jsonl" },
    { a_log_that_is_shorter, HR_CORRUPT, "metrics.jsonl" },
    { only_begun, HR_OK, NULL }, /* the files when --fresh is killed at once */
    { all_gone, HR_USAGE, "has the weights and the log of a run but no checkpoint" },
    { none_left, HR_USAGE, "restore checkpoints/ to resume, use --fresh to start over" },
    { a_directory_for_a_log, HR_USAGE, "metrics.jsonl" },
};

/* Names and hashes of all files, except the lock and TensorBoard's start event. */
static void list_into(const char *name)
{
    char command[256];
    snprintf(command, sizeof command,
             "{ find run -not -name lock -not -name 'events.*' -not -name tensorboard | sort; "
             "find run outside -type f -not -name lock -not -name 'events.*' 2>no.txt "
             "| sort | xargs cksum; } >%s",
             name);
    shell(command);
}

static bool is_same(void)
{
    list_into("after.txt");
    return system("cmp -s before.txt after.txt") == 0;
}

static void unusable_checkpoints_are_reported_and_refused_or_skipped(void **state)
{
    (void)state;
    prepare();
    int32_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        restore();
        cases[i].spoil();
        list_into("before.txt");
        const int verified = run("checkpoint verify run");
        const int code = run("%s", train);
        const bool refused = cases[i].code != HR_OK;
        const char *last = strstr(err, "headroom: ");
        for (const char *next; last && (next = strstr(last + 1, "\nheadroom: ")); last = next + 1)
            continue;
        bool fine = code == cases[i].code;
        fine &= !cases[i].said || (last && strstr(err, cases[i].said));
        if (refused) fine &= is_same();
        else
            fine &= (!cases[i].said || verified == HR_CORRUPT) &&
                    get_bytes("run/model.safetensors", text) == weights_bytes &&
                    !memcmp(text, weights, weights_bytes);
        if (!fine)
            print_message("case %zu (%s): code %d, verify %d, %s: %s", i,
                          cases[i].said ? cases[i].said : "", code, verified,
                          is_same() ? "same" : "changed", err);
        wrong += !fine;
    }
    assert_int_equal(wrong, 0);
}

static void a_missing_log_is_reported_and_started_again(void **state)
{
    (void)state;
    prepare();
    restore();
    assert_int_equal(unlink("run/metrics.jsonl"), 0);
    assert_int_equal(run("%s", train), HR_OK);
    assert_non_null(strstr(err, "run/metrics.jsonl: is missing (it had "));
    get("run/metrics.jsonl", (char *)text);
    assert_int_equal(strncmp((char *)text, "{\"step\":5,", 10), 0);
}

/* A link that leads out of the directory and its target are unchanged. */
static void the_target_of_a_link_is_unchanged(void **state)
{
    (void)state;
    prepare();
    static const char *const names[] = { "step-000000000002", "step-000000000004",
                                         "step-000000000009", ".step-000000000006.partial" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[512];
        restore();
        snprintf(command, sizeof command,
                 "rm -rf outside run/checkpoints/%s && cp -a kept/checkpoints/step-000000000004 "
                 "outside && ln -s ../../outside run/checkpoints/%s",
                 names[i], names[i]);
        shell(command);
        const int code = run("%s train.keep_last=1", train);
        shell("diff -r kept/checkpoints/step-000000000004 outside");
        if (code != HR_OK && code != HR_FAILURE) fail_msg("%s: %d: %s", names[i], code, err);
        if (code != HR_OK) assert_non_null(strstr(err, "cannot be removed"));
        assert_true(get_bytes("run/model.safetensors", text) == weights_bytes);
    }
}

/* A path can be short enough itself but too long for the files in it. */
static void a_path_that_is_too_long_is_refused_before_anything_is_created(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", recipe);
    static char path[3000];
    for (int32_t length = 900; length < 1200; length += length < 960 || length > 1040 ? 20 : 1) {
        for (int32_t i = 0; i < length; i++) path[i] = (char)(i % 200 == 199 ? '/' : 'a');
        path[length] = 0;
        if (path[length - 1] == '/') path[length - 1] = 'b';
        const int code = run("train recipe.yaml data.train=text.txt data.cache=cache --out %s",
                             path);
        if (code == HR_OK) {
            shell("test -e a*/a*/a*/a*/*/checkpoints/step-000000000006/manifest.json -o "
                  "-e a*/a*/a*/a*/*/*/checkpoints/step-000000000006/manifest.json && rm -r aaa*");
            continue;
        }
        assert_int_equal(code, HR_USAGE);
        assert_non_null(strstr(err, "headroom: "));
        assert_null(strchr(strchr(err, '\n') + 1, '\n'));
        assert_int_not_equal(system("ls -d aaa* >left.txt 2>&1"), 0);
    }
}

/* root drops its privileges for this. */
static void a_directory_without_permission_is_refused_and_unchanged(void **state)
{
    (void)state;
    prepare();
    char command[PROGRAM_COMMAND_BYTES];
    const char *become = geteuid() ? "" : "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    restore();
    shell("chmod -R a+rwX . && chmod 0777 .");
    snprintf(command, sizeof command, "%s\"$HEADROOM\" keys >out.txt 2>&1", become);
    if (system(command) != 0) {
        hr_test_skip("nobody", "root cannot become another user with setpriv");
    }
    static const char *const places[] = {
        "000 run/checkpoints",          "000 " STEP_4,
        "000 " STEP_4 "/manifest.json", "000 " STEP_4 "/model.safetensors",
        "000 run/metrics.jsonl",        "555 run/checkpoints"
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        restore();
        snprintf(command, sizeof command,
                 "chmod -R a+rwX . && chown -R 65534 run 2>no.txt; chmod %s", places[i]);
        shell(command);
        list_into("before.txt");
        snprintf(command, sizeof command, "%s\"$HEADROOM\" %s >out.txt 2>err.txt", become, train);
        const int code = WEXITSTATUS(system(command));
        get("err.txt", err);
        if ((code != HR_FAILURE && code != HR_USAGE) || !strstr(err, "Permission denied") ||
            strchr(strchr(err, '\n') + 1, '\n'))
            fail_msg("%s: exit code %d: %s", places[i], code, err);
        if (!geteuid()) assert_true(is_same());
        snprintf(command, sizeof command, "chmod 755 %s", places[i] + 4);
        shell(command);
    }
}

/* Fewer steps than are done leave a checkpoint that can be read; a file of the user stays. */
static void a_run_with_fewer_steps_than_are_done_stays_readable(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.steps=6 --out fewer"), HR_OK);
    put("fewer/scratch.tmp", "notes");
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.steps=3 train.sample_tokens=4 "
                         "train.sample_every=6 --allow-change train.sample_tokens "
                         "--allow-change train.sample_every --out fewer"),
                     HR_OK);
    assert_int_equal(run("checkpoint verify fewer"), HR_OK);
    assert_non_null(strstr(out, "intact"));
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.steps=8 train.sample_tokens=4 "
                         "train.sample_every=6 --out fewer"),
                     HR_OK);
    assert_non_null(strstr(out, "step 8/8"));
    assert_int_equal(run("checkpoint prune fewer"), HR_OK);
    assert_int_equal(access("fewer/scratch.tmp", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(unusable_checkpoints_are_reported_and_refused_or_skipped),
        IN_A_FOLDER(a_missing_log_is_reported_and_started_again),
        IN_A_FOLDER(the_target_of_a_link_is_unchanged),
        IN_A_FOLDER(a_path_that_is_too_long_is_refused_before_anything_is_created),
        IN_A_FOLDER(a_directory_without_permission_is_refused_and_unchanged),
        IN_A_FOLDER(a_run_with_fewer_steps_than_are_done_stays_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
