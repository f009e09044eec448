/* SPDX-License-Identifier: Apache-2.0 */
/* train_test.c - complete runs, each in its own process: their files, their end when they cannot
 * continue, and used bytes against planned bytes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mem/process.h"
#include "model/family.h"
#include "require.h"
#include "support/child.h"
#include "support/folder.h"
#include "support/oracle.h"
#include "support/rig.h"

enum { T = 24, TEXT_BYTES = 6000, VALID_BYTES = 9 * T + 7 };

static hr_folder folder;

static int make_texts(void **state)
{
    static const char *const words[] = { "the ", "red ", "cat ", "sat ", "on ", "a ", "mat.\n" };
    static char text[TEXT_BYTES + 8];
    (void)state;
    folder = hr_folder_open();
    int64_t bytes = 0;
    for (uint64_t i = 0; bytes < TEXT_BYTES; i++) {
        const char *word = words[(i + hr_random_mix(i) % 3 / 2) % 7];
        memcpy(text + bytes, word, strlen(word));
        bytes += (int64_t)strlen(word);
    }
    hr_folder_write(hr_folder_path(&folder, "train.txt"), text, TEXT_BYTES);
    hr_folder_write(hr_folder_path(&folder, "valid.txt"), text + 100, VALID_BYTES);
    return 0;
}

/* Also removes the folder of weights. */
static void drop_out(void)
{
    hr_folder out;
    snprintf(out.path, sizeof out.path, "%.200s/out", folder.path);
    hr_folder_close(&out);
}

static int drop_texts(void **state)
{
    (void)state;
    drop_out();
    hr_folder_close(&folder);
    return 0;
}

static hr_config config_of(int32_t family)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.d_model = 32;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.d_ff = 64;
    config.train.batch = 8;
    config.train.seq_len = T;
    config.train.steps = 30;
    config.train.threads = 2;
    config.train.sample_tokens = 40;
    config.train.optimizer.lr = 0.01;
    snprintf(config.data.train, sizeof config.data.train, "%s/train.txt", folder.path);
    snprintf(config.data.valid, sizeof config.data.valid, "%s/valid.txt", folder.path);
    snprintf(config.train.out, sizeof config.train.out, "%s/out", folder.path);
    drop_out();
    return config;
}

static bool out_has(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/out/%s", folder.path, name);
    return access(path, F_OK) == 0;
}

/* There are no weights, and no temporary file of weights. */
static void no_weights_are_left(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/out", folder.path);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strstr(entry->d_name, "safetensors") || strstr(entry->d_name, "config"))
            fail_msg("%s is left", entry->d_name);
    if (directory) closedir(directory);
}

static oracle_file open_weights(void)
{
    char path[512];
    oracle_file weights = { 0 };
    snprintf(path, sizeof path, "%s/out/model.safetensors", folder.path);
    assert_true(oracle_open(&weights, path));
    return weights;
}

static float *weight_of(void *context, const char *name)
{
    int64_t bytes = 0;
    const void *found = oracle_tensor(context, "", name, &bytes);
    assert_non_null(found);
    return memcpy(malloc((size_t)bytes), found, (size_t)bytes);
}

/* Every parameter is in the file under the name of the family, with its bytes, and there is nothing
 * else. */
static void weights_are_complete(const hr_config *config)
{
    oracle_file weights = open_weights();
    rig r;
    int64_t sum = 0;
    rig_build(&r, config, 1, 0, 0, 0);
    const hr_program *program = &r.compiled.program;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        int64_t bytes = 0;
        const float *values = oracle_tensor(&weights, "", param->external_name, &bytes);
        assert_non_null(values);
        assert_int_equal(bytes, rig_elements(param) * 4);
        for (int64_t i = 0; i < rig_elements(param); i++) assert_true(isfinite(values[i]));
        const json_t *shape = json_object_get(json_object_get(weights.header, param->external_name),
                                              "shape");
        assert_int_equal(json_array_size(shape), param->dims[1] ? 2 : 1);
        assert_int_equal(json_integer_value(json_array_get(shape, 0)),
                         param->dims[param->external_transposed]);
        sum += bytes;
    }
    const int64_t extra = json_object_get(weights.header, "__metadata__") != 0;
    assert_int_equal((int64_t)json_object_size(weights.header) - extra, program->param_count);
    assert_int_equal(sum, hr_program_parameters(program) * 4);
    assert_true(out_has("config.json"));
    rig_close(&r);
    oracle_close(&weights);
}

static void run_matches_its_plan(const child_outcome *run)
{
    const hr_train_result *result = &run->result;
    assert_int_equal(result->arena_bytes_used, result->arena_bytes_planned);
    if (!hr_process_is_exact()) return;
    assert_true(result->process_bytes_measured <= result->process_bytes_planned);
    assert_true(result->process_bytes_planned - result->process_bytes_measured <= 4 << 20);
}

static void training_lowers_the_loss_saves_and_matches_its_plan(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++)
        for (int32_t format = 0; format < 2; format++) {
            hr_config config = config_of(family);
            config.train.dtype = format;
            config.model.dropout = hr_family_of(&config)->traits & HR_HAS_STATES ? 0 : 0.05;
            const child_outcome *run = child_run(&config, (child_wishes){ 0 });
            if (run->status != HR_OK) fail_msg("%s", run->err.message);
            print_message("loss %.3f to %.3f, valid %.3f, arena %lld, process %lld of %lld\n",
                          run->result.first_loss, run->result.last_loss, run->result.valid_loss,
                          (long long)run->result.arena_bytes_used,
                          (long long)run->result.process_bytes_measured,
                          (long long)run->result.process_bytes_planned);
            assert_int_equal(run->result.steps, 30);
            assert_int_equal(run->step_count, 30);
            assert_true(fabs(run->result.first_loss - log(256)) < 0.3);
            assert_true(run->result.last_loss < run->result.first_loss - 2);
            assert_true(run->result.saved && run->saved_count == 1);
            assert_int_equal(run->evaluated_count, 1);
            assert_true(run->sample_bytes > 0);
            run_matches_its_plan(run);
            weights_are_complete(&config);
        }
}

/* Evaluates the saved weights again on every window of the validation text. */
static void validation_is_the_mean_over_all_windows(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        hr_config config = config_of(family);
        config.train.steps = 5;
        config.train.kernels[0] = 0;
        snprintf(config.train.kernels, sizeof config.train.kernels, "ref");
        const child_outcome *run = child_run(&config, (child_wishes){ 0 });
        if (run->status != HR_OK) fail_msg("%s", run->err.message);
        const double told = run->result.valid_loss;

        const int64_t windows = (VALID_BYTES - 1) / T;
        oracle_file weights = open_weights();
        rig r;
        int64_t bytes;
        unsigned char *text = (unsigned char *)hr_folder_read(hr_folder_path(&folder, "valid.txt"),
                                                              &bytes);
        config.train.batch = windows;
        rig_open(&r, &config, 1, 0, weight_of, &weights);
        for (int64_t i = 0; i < r.rows; i++) {
            r.ids[i] = text[i];
            r.targets[i] = text[i + 1];
        }
        rig_evaluate(&r);
        print_message("%lld windows: %.9f reported, %.9f recomputed\n", (long long)windows, told,
                      r.evaluation_loss);
        assert_true(fabs(told - r.evaluation_loss) < 1e-9 * told);
        rig_close(&r);
        oracle_close(&weights);
        free(text);
    }
}

static void two_equal_runs_have_equal_bits_and_metrics(void **state)
{
    static const char *const fields[] = { "step", "loss", "lr", "grad_norm", "tokens" };
    static const char *const last[] = { "arena_bytes_planned", "arena_bytes_used",
                                        "process_bytes_planned", "process_bytes_measured",
                                        "valid_loss" };
    (void)state;
    json_t *lines[2][32];
    hr_train_step steps[2][12];
    for (int32_t twice = 0; twice < 2; twice++) {
        child_wishes wishes = { 0 };
        hr_config config = config_of(HR_FAMILY_GPT_NEOX);
        config.train.steps = 12;
        config.model.dropout = 0.1;
        snprintf(wishes.metrics, sizeof wishes.metrics, "%s/metrics.jsonl", folder.path);
        const child_outcome *run = child_run(&config, wishes);
        if (run->status != HR_OK) fail_msg("%s", run->err.message);
        memcpy(steps[twice], run->steps, sizeof steps[twice]);
        FILE *file = fopen(wishes.metrics, "r");
        char line[4096];
        int32_t count = 0;
        while (fgets(line, sizeof line, file)) {
            assert_true(count < 13);
            lines[twice][count] = json_loads(line, 0, 0);
            assert_non_null(lines[twice][count++]);
        }
        fclose(file);
        assert_int_equal(count, 13);
    }
    for (int32_t i = 0; i < 12; i++) {
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            json_t *a = json_object_get(lines[0][i], fields[f]);
            assert_true(json_is_number(a));
            assert_true(json_equal(a, json_object_get(lines[1][i], fields[f])));
        }
        const json_t *clock = json_object_get(lines[0][i], "clock");
        assert_true(json_is_number(json_object_get(clock, "tokens_per_second")));
        assert_true(json_is_number(json_object_get(clock, "seconds")));
        assert_int_equal(json_integer_value(json_object_get(lines[0][i], "step")), i + 1);
        assert_int_equal(json_integer_value(json_object_get(lines[0][i], "tokens")),
                         (i + 1) * 8 * T);
        assert_true(steps[0][i].loss == steps[1][i].loss);
        assert_true(steps[0][i].grad_norm == steps[1][i].grad_norm);
        assert_true(json_number_value(json_object_get(lines[0][i], "loss")) == steps[0][i].loss);
    }
    for (size_t f = 0; f < sizeof last / sizeof *last; f++)
        assert_true(json_is_number(json_object_get(lines[0][12], last[f])));
    for (int32_t i = 0; i < 26; i++) json_decref(lines[i / 13][i % 13]);
}

/* Nothing is saved, and the whole arena is still used: the plan does not depend on the folder. */
static void a_run_that_saves_nothing_uses_its_whole_arena(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        hr_config config = config_of(family);
        config.model.d_model = 8;
        config.model.rotary_fraction = 0.5;
        config.train.steps = 2;
        config.train.batch = 1;
        config.train.sample_tokens = 0;
        config.train.out[0] = 0;
        config.data.valid[0] = 0;
        snprintf(config.data.cache, sizeof config.data.cache, "%s", folder.path);
        const child_outcome *run = child_run(&config, (child_wishes){ 0 });
        if (run->status != HR_OK) fail_msg("%s", run->err.message);
        assert_false(run->result.saved);
        assert_true(isnan(run->result.valid_loss));
        run_matches_its_plan(run);
    }
}

/* ---- how runs end */

static void a_program_with_memory_of_its_own_trains(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_LLAMA);
    config.train.steps = 2;
    const child_outcome *alone = child_run(&config, (child_wishes){ 0 });
    const int64_t planned = alone->result.process_bytes_planned;
    drop_out();
    const child_outcome *run = child_run(&config, (child_wishes){ .host_bytes = 6 << 20 });
    if (run->status != HR_OK) fail_msg("%s", run->err.message);
    if (!HR_THREAD_SANITIZER) /* no plan counts its memory */
        assert_true(run->result.process_bytes_measured <= run->result.process_bytes_planned);
    if (!HR_ADDRESS_SANITIZER && !HR_THREAD_SANITIZER) /* theirs is another heap */
        assert_true(run->result.process_bytes_planned >= planned + (6 << 20) - (1 << 20));
    assert_int_equal(run->mode_after, run->mode_before);
}

static void an_interrupt_finishes_the_step_saves_and_is_reported(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_NEEDLE);
    const child_outcome *run = child_run(&config, (child_wishes){ .interrupt_after = 3 });
    assert_true(run->planning_count >= 2); /* at least once for its floor and once for packing */
    assert_int_equal(run->status, HR_INTERRUPTED);
    assert_int_equal(run->result.steps, 3);
    assert_true(run->result.saved);
    assert_non_null(strstr(run->err.message, "after step 3 of 30"));
    run_matches_its_plan(run);
    weights_are_complete(&config);
}

static void an_interrupt_before_the_first_step_leaves_no_weights(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_NEEDLE);
    const child_outcome *run = child_run(&config, (child_wishes){ .interrupt_after = -1 });
    assert_int_equal(run->status, HR_INTERRUPTED);
    assert_int_equal(run->result.steps, 0);
    assert_false(run->result.saved);
    no_weights_are_left();
}

/* A job queue kills a run that exceeds its time, also during preparation. */
static void max_seconds_ends_the_preparation(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_NEEDLE);
    config.train.max_seconds = 1;
    const child_outcome *run = child_run(&config, (child_wishes){ .preparing_ms = 1000 });
    assert_int_equal(run->status, HR_INTERRUPTED);
    assert_non_null(strstr(run->err.message, "what was unfinished is removed"));
    assert_int_equal(run->result.steps, 0);
    no_weights_are_left();
}

/* Uses a strategy that keeps few activations, with the given gradients. */
static void take_strategy(hr_config *config, const char *gradients)
{
    char text[200];
    const char *path = hr_folder_path(&folder, "strategy.yaml");
    const int length = snprintf(text, sizeof text,
                                "gradients: %s\nlayers:\n - { layers: 0-%lld, keep: [] }\n",
                                gradients, (long long)config->model.n_layers - 1);
    hr_folder_write(path, text, length);
    snprintf(config->memory.strategy, sizeof config->memory.strategy, "%s", path);
}

static void released_gradients_train_to_the_same_loss(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 4; i++) {
        hr_config config = config_of(i % 2);
        config.train.optimizer.clip = i / 2;
        take_strategy(&config, "kept");
        const child_outcome kept = *child_run(&config, (child_wishes){ 0 });
        take_strategy(&config, "consumed");
        const child_outcome consumed = *child_run(&config, (child_wishes){ 0 });
        assert_int_equal(kept.status, HR_OK);
        assert_int_equal(consumed.status, HR_OK);
        assert_memory_equal(&kept.result.last_loss, &consumed.result.last_loss, sizeof(double));
        assert_memory_equal(&kept.result.valid_loss, &consumed.result.valid_loss, sizeof(double));
    }
}

static void a_non_finite_loss_ends_the_run(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < 6; kind++) {
        hr_config config = config_of(kind % 2);
        config.train.optimizer.kind = kind % 3;
        if (kind >= 3) take_strategy(&config, "consumed");
        config.train.optimizer.lr = 1e30;
        config.train.optimizer.clip = 0;
        const child_outcome *run = child_run(&config, (child_wishes){ 0 });
        assert_int_equal(run->status, HR_DIVERGED);
        assert_null(strstr(run->err.message, "-nan"));
        assert_true(run->result.steps >= 1 && run->result.steps <= 3);
        assert_false(run->result.saved);
        no_weights_are_left();
    }
}

static void the_minimum_budget_runs_and_a_page_less_is_refused(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_GPT_NEOX);
    config.train.steps = 2;
    config.memory.budget = 1;
    const hr_plan_answer plan = child_plan(&config)->result.plan;
    assert_false(plan.fits);
    config.memory.budget = plan.minimum_bytes - 4096;
    const child_outcome *run = child_run(&config, (child_wishes){ 0 });
    assert_int_equal(run->status, HR_NO_FIT);
    assert_int_equal(run->result.plan.minimum_bytes, plan.minimum_bytes);
    print_message("%s\n", run->err.message);
    no_weights_are_left();
    config.memory.budget = plan.minimum_bytes;
    run = child_run(&config, (child_wishes){ 0 });
    if (run->status != HR_OK) fail_msg("%s", run->err.message);
    assert_int_equal(run->result.process_bytes_planned, plan.minimum_bytes);
    run_matches_its_plan(run);
}

static void unreadable_and_unwritable_paths_are_refused(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_GPT_NEOX);
    snprintf(config.data.train, sizeof config.data.train, "%s/nothing.txt", folder.path);
    const child_outcome *run = child_run(&config, (child_wishes){ 0 });
    assert_int_equal(run->status, HR_USAGE);
    assert_non_null(strstr(run->err.message, "nothing.txt"));

    config = config_of(HR_FAMILY_GPT_NEOX);
    config.train.seq_len = TEXT_BYTES;
    run = child_run(&config, (child_wishes){ 0 });
    print_message("%s\n", run->err.message);
    assert_int_equal(run->status, HR_CORRUPT);
    no_weights_are_left();

    config = config_of(HR_FAMILY_GPT_NEOX);
    snprintf(config.train.out, sizeof config.train.out, "%s/train.txt/out", folder.path);
    run = child_run(&config, (child_wishes){ 0 });
    print_message("%s\n", run->err.message);
    assert_int_equal(run->status, HR_USAGE);
}

/* Tokens fit below the file size limit, weights do not. */
static void a_full_disk_leaves_no_partial_file(void **state)
{
    (void)state;
    hr_config config = config_of(HR_FAMILY_GPT_NEOX);
    config.train.steps = 2;
    const child_outcome *run = child_run(&config, (child_wishes){ .file_bytes_most = 50000 });
    print_message("%s\n", run->err.message);
    assert_int_equal(run->status, HR_FAILURE);
    assert_int_equal(run->result.steps, 2);
    assert_false(run->result.saved);
    no_weights_are_left();
}

/* ---- schedules */

static void schedules_match_their_documentation(void **state)
{
    (void)state;
    enum { STEPS = 100, WARM = 10 };
    hr_config config;
    hr_config_default(&config);
    config.train.optimizer.lr = 0.5;
    config.train.schedule.warmup_steps = WARM;
    config.train.schedule.final_fraction = 0.2;
    config.train.schedule.decay_fraction = 0.25;
    for (int64_t step = 0; step < STEPS; step++) {
        const double rise = step < WARM ? (double)(step + 1) / WARM : 1;
        const double x = (double)step / STEPS;
        const double want[] = {
            [HR_SCHEDULE_CONSTANT] = 0.5 * rise,
            [HR_SCHEDULE_LINEAR] = 0.5 * rise * (1 - 0.8 * x),
            [HR_SCHEDULE_COSINE] = 0.5 * rise * (0.2 + 0.8 * pow(cos(acos(-1) * x / 2), 2)),
            [HR_SCHEDULE_WSD] = 0.5 * rise * (x < 0.75 ? 1 : 0.2 + 0.8 * (1 - x) / 0.25),
        };
        for (int32_t kind = 0; kind < 4; kind++) {
            config.train.schedule.kind = kind;
            assert_true(fabs(hr_schedule_lr(&config, NULL, step, STEPS) - want[kind]) < 1e-14);
        }
    }
    config.train.schedule.warmup_steps = 0;
    config.train.schedule.decay_fraction = 0; /* must not divide by it */
    config.train.schedule.kind = HR_SCHEDULE_WSD;
    for (int64_t step = 0; step < STEPS; step++)
        assert_true(hr_schedule_lr(&config, NULL, step, STEPS) == 0.5);
}

/* Two stages of 32 and 64 tokens a step: the decay counts tokens, and each stage has a warm-up that
 * begins at the factor before. */
static void stages_multiply_the_schedule(void **state)
{
    (void)state;
    enum { STEPS = 40, FIRST = 10 };
    const double all = FIRST * 32 + (STEPS - FIRST) * 64;
    hr_config config = config_of(HR_FAMILY_GPT2);
    hr_stages stages;
    hr_error err;
    config.train.batch = 4;
    config.train.optimizer.lr = 0.5;
    config.train.schedule.kind = HR_SCHEDULE_LINEAR;
    config.train.schedule.final_fraction = 0.2;
    config.train.schedule.unit = HR_SCHEDULE_TOKENS;
    config.train.schedule.warmup_tokens = 96;
    assert_int_equal(
        hr_config_set(&config, "train.stages",
                      "seq_len=8 lr_scale=0.5 warmup_steps=4; at_tokens=300 seq_len=16 "
                      "lr_scale=2 warmup_steps=5",
                      &err),
        HR_OK);
    assert_int_equal(hr_config_stages(&config, &stages, &err), HR_OK);
    assert_int_equal(stages.at[1].first_step, FIRST);
    for (int64_t step = 0; step < STEPS; step++) {
        const double tokens = step < FIRST ? 32.0 * step : 32.0 * FIRST + 64.0 * (step - FIRST);
        const double after = tokens + (step < FIRST ? 32 : 64);
        const double factor = step < FIRST ? 0.5 * fmin((step + 1) / 4.0, 1)
                                           : 0.5 + 1.5 * fmin((step - FIRST + 1) / 5.0, 1);
        const double want = 0.5 * fmin(after / 96, 1) * (1 - 0.8 * tokens / all) * factor;
        assert_true(fabs(hr_schedule_lr(&config, &stages, step, STEPS) - want) < 1e-14);
    }
}

/* ---- the trap */

static void a_run_allocates_nothing_after_its_seal(void **state)
{
    (void)state;
    hr_test_require_trap();
    for (int32_t i = 0; i < 2 * HR_FAMILIES; i++) {
        const int32_t family = i / 2;
        hr_config config = config_of(family);
        if (i % 2)
            snprintf(config.train.stages, sizeof config.train.stages,
                     "seq_len=%d batch=16; at_step=13 freeze=*.1.*; at_step=22 batch=4 clip=none",
                     T / 2);
        config.train.dtype = family % 2;
        config.model.dropout = hr_family_of(&config)->traits & HR_HAS_STATES ? 0 : 0.1;
        config.train.eval_every = 10;
        config.train.sample_every = 10;
        config.train.checkpoint_every = 10;
        child_wishes wishes = { .trapped = true };
        snprintf(wishes.metrics, sizeof wishes.metrics, "%s/metrics.jsonl", folder.path);
        const child_outcome *run = child_run(&config, wishes);
        if (run->status != HR_OK) fail_msg("%s", run->err.message);
        assert_string_equal(run->said, "trap: no allocation after the seal\n");
        assert_int_equal(run->evaluated_count, 3);
        assert_int_equal(run->saved_count, 3);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) return child_main(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_lowers_the_loss_saves_and_matches_its_plan),
        cmocka_unit_test(validation_is_the_mean_over_all_windows),
        cmocka_unit_test(two_equal_runs_have_equal_bits_and_metrics),
        cmocka_unit_test(a_run_that_saves_nothing_uses_its_whole_arena),
        cmocka_unit_test(a_program_with_memory_of_its_own_trains),
        cmocka_unit_test(an_interrupt_finishes_the_step_saves_and_is_reported),
        cmocka_unit_test(an_interrupt_before_the_first_step_leaves_no_weights),
        cmocka_unit_test(max_seconds_ends_the_preparation),
        cmocka_unit_test(released_gradients_train_to_the_same_loss),
        cmocka_unit_test(a_non_finite_loss_ends_the_run),
        cmocka_unit_test(the_minimum_budget_runs_and_a_page_less_is_refused),
        cmocka_unit_test(unreadable_and_unwritable_paths_are_refused),
        cmocka_unit_test(a_full_disk_leaves_no_partial_file),
        cmocka_unit_test(schedules_match_their_documentation),
        cmocka_unit_test(stages_multiply_the_schedule),
        cmocka_unit_test(a_run_allocates_nothing_after_its_seal),
    };
    return cmocka_run_group_tests(tests, make_texts, drop_texts);
}
