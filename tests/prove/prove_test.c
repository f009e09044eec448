/* SPDX-License-Identifier: Apache-2.0 */
/* prove_test.c - every proof passes on every family, and fails when the compared run is changed by
 * one bit, with the tensor named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/family.h"
#include "ops/attention/attention.h"
#include "ops/list.h"
#include "prove/proofs.h"
#include "prove/prove.h"
#include "prove/trace_layout.h"
#include "require.h"
#include "support/folder.h"

#define require(condition, ...) \
    do { \
        if (!(condition)) fail_msg(__VA_ARGS__); \
    } while (0)

static hr_folder folder;
static hr_prove_report report;

static int make_folder(void **state)
{
    (void)state;
    folder = hr_folder_open();
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

/* The small preset of a family, with fewer layers and sequences. Recipes are static here: the stack
 * of a run is planned, and frames of this test would count. */
static void small(hr_config *config, const char *family)
{
    hr_error err;
    char path[512];
    hr_config_default(config);
    snprintf(path, sizeof path, HR_SOURCE "/presets/small/%s.yaml", family);
    require(hr_config_read(config, path, &err) == HR_OK, "%s", err.message);
    config->model.d_model = 64;
    config->model.d_ff = 192;
    config->model.n_layers = 2;
    config->train.batch = 4;
    config->train.seq_len = 64;
    config->train.threads = 2;
    config->memory.budget = INT64_C(400) << 20;
}

static hr_status prove(const hr_config *config, const char *only, const hr_prove_fault *fault,
                       hr_error *err)
{
    const hr_prove_options options = { .size = sizeof options,
                                       .only = only,
                                       .directory = folder.path };
    return hr_prove_with(config, &options, fault, &report, err);
}

static const hr_proof *proof_of(const char *name)
{
    for (int32_t i = 0; i < report.proof_count; i++)
        if (!strcmp(report.proofs[i].name, name)) return &report.proofs[i];
    fail_msg("there is no proof %s", name);
    return NULL;
}

static int32_t files_left(void)
{
    int32_t count = 0;
    DIR *directory = opendir(folder.path);
    for (const struct dirent *entry; (entry = readdir(directory));) count += *entry->d_name != '.';
    closedir(directory);
    return count;
}

/* ---- all pass */

static void every_proof_that_applies_passes_on_every_family(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        static hr_config config;
        hr_error err;
        hr_config_default(&config);
        config.model.family = family;
        const char *name = hr_family_of(&config)->name;
        small(&config, name);
        config.train.optimizer.kind = family % HR_OPTIMIZERS;
        config.train.dtype = family % 2 ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
        require(prove(&config, NULL, NULL, &err) == HR_OK, "%s: %s", name, err.message);
        const int32_t all = report.passed + report.not_applicable;
        require(report.proof_count == all && report.passed >= 10 && !report.failed &&
                    !report.not_run,
                "%s: %d of %d proofs passed, %d do not apply", name, report.passed,
                report.proof_count, report.not_applicable);
        require(!*report.reduced, "%s was reduced: %s", name, report.reduced);
        require(files_left() == 0, "%s left %d files", name, files_left());
        const hr_proof *plan = proof_of("plan");
        require(plan->steps == 2 && plan->tensors > 2 * 2 && plan->bound == 0, "%s: %d tensors",
                name, plan->tensors);
    }
}

/* Two proofs compute in fp32, whose weights have no other masters. */
static void proofs_in_fp32_take_recipes_with_other_masters(void **state)
{
    static const char *const names[] = { "pattern", "factors" };
    (void)state;
    for (int32_t i = 0; i < 4; i++) {
        static hr_config config;
        hr_error err;
        small(&config, "yxanul");
        config.train.dtype = HR_FORMAT_BF16;
        config.train.state.master = i / 2 ? HR_MASTERS_NONE : HR_MASTERS_RESIDUAL16;
        config.model.attention.pattern = HR_ATTENTION_LOCAL;
        config.model.attention.block = 8;
        require(prove(&config, names[i % 2], NULL, &err) == HR_OK, "%s", err.message);
        assert_int_equal(report.passed, 1);
    }
}

/* A recipe with each of the features that not every recipe has. */
static void config_for(hr_config *config, const char *proof)
{
    small(config, !strcmp(proof, "factors") ? "yxanul" : "needle");
    if (!strcmp(proof, "pattern")) {
        config->model.attention.pattern = HR_ATTENTION_MIXED;
        config->model.attention.block = 8;
        config->train.dtype = HR_FORMAT_FP32;
    }
    if (!strcmp(proof, "nsa")) {
        small(config, "llama");
        config->model.dropout = 0;
        config->train.dtype = HR_FORMAT_FP32;
        config->model.attention.kind = HR_ATTENTION_NSA;
        config->model.attention.nsa.compress_block = 8;
        config->model.attention.nsa.compress_stride = 4;
        config->model.attention.nsa.select_block = 8;
    }
    if (!strcmp(proof, "weights")) {
        small(config, "llama");
        config->model.weights = HR_WEIGHTS_F8_E4M3;
        snprintf(config->train.freeze, sizeof config->train.freeze, "*.mlp.*");
    }
    if (!strcmp(proof, "adapter")) {
        small(config, "llama");
        config->train.adapter.kind = HR_ADAPTER_LORA;
        config->train.adapter.rank = 3;
    }
    if (!strcmp(proof, "npt")) {
        small(config, "llama");
        config->train.adapter.kind = HR_ADAPTER_NPT;
        config->train.adapter.form = HR_NPT_DUAL;
        config->train.adapter.triples = 2;
        config->train.adapter.rank = 3;
    }
    if (!strcmp(proof, "masters")) {
        config->train.dtype = HR_FORMAT_BF16;
        config->train.state.master = HR_MASTERS_RESIDUAL16;
    }
    if (!strcmp(proof, "moments")) config->model.d_ff = 512; /* 128 KiB of each moment */
}

/* ---- faults */

typedef struct {
    int64_t step;      /* of training */
    const char *param; /* whose gradient is changed */
    float added;       /* 0: one bit */
    bool at_end;       /* changes the weight at the end, not a gradient */
    int32_t changes;   /* done */
} change;

static int32_t param_named(const hr_program *program, const char *name)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (!strcmp(program->params[p].external_name, name)) return p;
    return HR_NONE;
}

static void apply(change *c, float *element)
{
    uint32_t bits;
    memcpy(&bits, element, sizeof bits);
    bits ^= 1;
    if (c->added != 0) *element += c->added;
    else memcpy(element, &bits, sizeof bits);
    c->changes++;
}

/* Changes the gradient that the update of a parameter has just read, or a weight that is saved. */
static void disturb(void *context, const hr_executor *executor, int32_t s)
{
    change *c = context;
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    const int32_t param = param_named(program, c->param);
    if (param == HR_NONE) return;
    const int32_t gradient = program->params[param].gradient;
    if (c->at_end) {
        if (step->op == HR_OP_save && step->in[0] == program->params[param].master)
            apply(c, hr_executor_address(executor, step->in[0]));
    } else if (executor->clock == c->step && step->in[0] != HR_NONE &&
               hr_tensor_root(program, step->in[0]) == gradient &&
               hr_executor_commits(program, s)) {
        apply(c, hr_executor_address(executor, gradient));
    }
}

static void every_proof_fails_when_its_run_is_changed(void **state)
{
    (void)state;
    const char *name;
    for (int32_t i = 0; (name = hr_proof_name(i)); i++) {
        const bool factors = !strcmp(name, "factors"), adapter = !strcmp(name, "adapter");
        const bool npt = !strcmp(name, "npt");
        if (!strcmp(name, "base")) continue; /* needs a folder: tests/cli/cli_stream_test.c */
        const bool nsa = !strcmp(name, "nsa");
        const bool rounds = factors || adapter || npt || nsa || !strcmp(name, "pattern");
        const char *param = npt       ? "layers.1.up.Wa"
                            : adapter ? "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"
                            : factors || nsa || !strcmp(name, "weights") ? "model.norm.weight"
                                                                         : "layers.1.w2";
        static hr_config config;
        config_for(&config, name);
        change c = { .step = rounds ? 0 : 1, .param = param, .added = rounds ? 1.0F : 0 };
        const hr_prove_fault fault = { name, disturb, &c };
        hr_error err;
        require(prove(&config, name, NULL, &err) == HR_OK, "%s: %s", name, err.message);
        require(report.passed == 1, "%s passed %d times", name, report.passed);
        require(prove(&config, name, &fault, &err) == HR_BROKEN, "%s passed with a change", name);
        require(c.changes >= 1, "%s: nothing was changed", name);
        const hr_proof *proof = proof_of(name);
        require(proof->outcome == HR_PROOF_FAILED && report.failed == 1, "%s: outcome %d", name,
                proof->outcome);
        require(strstr(err.message, name) == err.message, "%s: %s", name, err.message);
        /* The tensor of a factorized model has another name. */
        require(strstr(err.message, factors ? "norm_f" : param), "%s: %s", name, err.message);
        require(files_left() == 0, "%s left %d files", name, files_left());
    }
}

/* A weight that differs in one bit at the end, after equal gradients. */
static void a_changed_weight_is_found(void **state)
{
    (void)state;
    hr_error err;
    static hr_config config;
    config_for(&config, "threads");
    change c = { .param = "layers.0.wq", .at_end = true };
    const hr_prove_fault fault = { "threads", disturb, &c };
    assert_int_equal(prove(&config, "threads", &fault, &err), HR_BROKEN);
    require(strstr(err.message, "threads failed: weight of layers.0.wq at the end: element [0, 0]"),
            "%s", err.message);
    assert_int_equal(proof_of("threads")->largest_ulps, 1);
    assert_int_equal(c.changes, 1);
}

/* ---- sensitivity of the proofs with a bound */

/* A loss chunk of an odd number of tokens splits pairs of tokens. The promised bound holds, and
 * where a kernel multiplies pairs the bits differ, by a choice of the recipe and not by a change of
 * a test. The others widen bf16 to fp32, and add one token after the other. */
static void a_chunk_that_rounds_differently_is_within_its_bound(void **state)
{
    (void)state;
    for (int32_t format = HR_FORMAT_FP32; format <= HR_FORMAT_BF16; format++) {
        hr_error err;
        static hr_config config;
        small(&config, "needle");
        config.train.dtype = format;
        config.memory.loss_chunk = 64;
        require(prove(&config, "plan", NULL, &err) == HR_OK, "%s", err.message);
        assert_true(proof_of("plan")->bound == 0 && proof_of("plan")->steps == 2);
        config.memory.loss_chunk = 37;
        require(prove(&config, "plan", NULL, &err) == HR_OK, "%s", err.message);
        const hr_proof *plan = proof_of("plan");
        assert_true(plan->bound == (format == HR_FORMAT_BF16 ? 1e-3 : 1e-6) && plan->steps == 1);
        assert_true(plan->largest_relative <= plan->bound);
        const bool pairs = format == HR_FORMAT_BF16 && hr_cpu_detect() & HR_CPU_AVX512BF16;
        if (pairs) assert_true(plan->largest_relative > 0);
    }
}

/* Narrows the window of one layer of the compared run by a token. */
static void narrow(void *context, const hr_executor *executor, int32_t s)
{
    (void)context;
    for (int32_t i = 0; i < executor->program->step_count; i++) {
        hr_step *step = &executor->program->steps[i];
        hr_attention_attr *attr = (hr_attention_attr *)step->attr;
        if (s != 0 || step->layer != 1) continue;
        if (step->op == HR_OP_attention || step->op == HR_OP_attention_bwd) attr->mask.window--;
    }
}

static void a_window_that_is_a_token_short_is_found(void **state)
{
    (void)state;
    hr_error err;
    static hr_config config;
    small(&config, "mistral");
    config.model.attention.sliding_window = 40;
    const hr_prove_fault fault = { "pattern", narrow, NULL };
    assert_int_equal(prove(&config, "pattern", NULL, &err), HR_OK);
    const double right = proof_of("pattern")->largest_relative;
    assert_int_equal(prove(&config, "pattern", &fault, &err), HR_BROKEN);
    const double wrong = proof_of("pattern")->largest_relative;
    print_message("relative difference %.1e, with a window of 39 tokens %.1e\n", right, wrong);
    assert_true(right < 1e-5 && wrong > 1e-3);
}

/* ---- applicability, limits */

static void what_does_not_apply_says_why(void **state)
{
    (void)state;
    hr_error err;
    static hr_config config;
    small(&config, "wide");
    config.train.batch = 1;
    assert_int_equal(prove(&config, NULL, NULL, &err), HR_OK);
    static const char *const names[] = { "micro-batch", "mlp-tile", "attention-tile",
                                         "loss-chunk",  "pattern",  "factors",
                                         "weights",     "adapter",  "npt" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hr_proof *proof = proof_of(names[i]);
        require(proof->outcome == HR_PROOF_DOES_NOT_APPLY && *proof->reason && !proof->tensors,
                "%s: outcome %d, %s", names[i], proof->outcome, proof->reason);
    }
    assert_string_equal(proof_of("micro-batch")->reason, "train.batch is one sequence");
    small(&config, "needle");
    config.model.attention.pattern = HR_ATTENTION_LOCAL;
    config.model.attention.block = 64;
    assert_int_equal(prove(&config, "pattern", NULL, &err), HR_USAGE);
    assert_string_equal(proof_of("pattern")->reason,
                        "the pattern masks nothing at train.seq_len 64: attention is dense");
    assert_string_equal(err.message, "pattern does not apply to this recipe: the pattern masks "
                                     "nothing at train.seq_len 64: attention is dense");
    const hr_prove_options one = {
        .size = sizeof one, .only = "resume", .steps = 1, .directory = folder.path
    };
    assert_int_equal(hr_prove(&config, &one, &report, &err), HR_USAGE);
    assert_string_equal(proof_of("resume")->reason, "it takes two steps, and there is one");
}

static void what_does_not_fit_is_reduced_or_refused(void **state)
{
    (void)state;
    hr_error err;
    static hr_config config;
    small(&config, "llama");
    const hr_plan_outputs outputs = { .size = sizeof outputs };
    hr_plan_answer answer;
    require(hr_plan_make(&config, &outputs, &answer, &err) == HR_OK, "%s", err.message);
    config.model.n_layers = 40;
    config.train.batch = 16;
    config.memory.budget = answer.minimum_bytes + (INT64_C(16) << 20);
    require(prove(&config, "order", NULL, &err) == HR_OK, "%s", err.message);
    require(strstr(report.reduced, "proven on 2 layers instead of 40"), "%s", report.reduced);
    config.memory.budget = 1 << 20;
    assert_int_equal(prove(&config, "order", NULL, &err), HR_NO_FIT);
    require(strstr(err.message, "the reference keeps everything and does not fit"), "%s",
            err.message);
    assert_int_equal(files_left(), 0);
}

static void unknown_names_and_steps_are_refused(void **state)
{
    (void)state;
    hr_error err;
    static hr_config config;
    small(&config, "llama");
    assert_int_equal(prove(&config, "micro-bach", NULL, &err), HR_USAGE);
    assert_string_equal(err.message, "there is no proof micro-bach; the nearest is micro-batch");
    const hr_prove_options many = { .size = sizeof many,
                                    .steps = HR_PROVE_STEPS_MOST + 1,
                                    .directory = folder.path };
    assert_int_equal(hr_prove(&config, &many, &report, &err), HR_USAGE);
    const hr_prove_options nowhere = { .size = sizeof nowhere, .directory = "/nowhere" };
    assert_int_equal(hr_prove(&config, &nowhere, &report, &err), HR_USAGE);
    static volatile sig_atomic_t interrupts = 1;
    const hr_prove_options stopped = { .size = sizeof stopped,
                                       .directory = folder.path,
                                       .interrupts = &interrupts };
    assert_int_equal(hr_prove(&config, &stopped, &report, &err), HR_INTERRUPTED);
    assert_int_equal(files_left(), 0);
}

/* ---- parts */

/* The mask as a table that was written by hand: rows are queries, and x is seen. */
static void the_explicit_mask_is_that_of_the_documentation(void **state)
{
    static const struct {
        int32_t pattern;
        int64_t window, stride;
        const char *rows[6];
    } cases[] = {
        { HR_ATTENTION_DENSE, 1, 2, { "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx" } },
        { HR_ATTENTION_LOCAL, 1, 2, { "x", "xx", "xxx", "xxxx", "..xxx", "..xxxx" } },
        { HR_ATTENTION_LOCAL, 0, 2, { "x", "xx", "..x", "..xx", "....x", "....xx" } },
        { HR_ATTENTION_GLOBAL, 1, 2, { "x", "xx", "xxx", "xxxx", "xx..x", "xx..xx" } },
        { HR_ATTENTION_GLOBAL, 1, 3, { "x", "xx", "xxx", "xxxx", "xx..x", "xx..xx" } },
        { HR_ATTENTION_MIXED, 0, 2, { "x", "xx", "xxx", "xxxx", "xx..x", "xx..xx" } },
        { HR_ATTENTION_MIXED, 1, 4, { "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx" } },
    };
    (void)state;
    static hr_config config;
    small(&config, "needle");
    config.model.attention.block = 2;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        config.model.attention.pattern = cases[c].pattern;
        config.model.attention.window = cases[c].window;
        config.model.attention.stride = cases[c].stride;
        for (int64_t query = 0; query < 6; query++)
            for (int64_t key = 0; key < 6; key++) {
                const char *row = cases[c].rows[query];
                const bool expected = key < (int64_t)strlen(row) && row[key] == 'x';
                require(hr_masked_sees(&config, 0, query, key) == expected,
                        "case %zu: query %d, key %d", c, (int)query, (int)key);
            }
    }
    small(&config, "mistral");
    config.model.attention.sliding_window = 3;
    assert_true(hr_masked_sees(&config, 0, 5, 3) && !hr_masked_sees(&config, 0, 5, 2));
}

static void places_invert_layouts(void **state)
{
    (void)state;
    for (int32_t layout = HR_ROWS; layout <= HR_PANEL_PAIR; layout++)
        for (int64_t K = 1; K < 6; K++)
            for (int64_t N = 1; N < 40; N++) {
                int64_t k, n, count = 0;
                for (int64_t i = 0; i < hr_layout_elements((hr_layout)layout, K, N); i++) {
                    if (!hr_layout_place((hr_layout)layout, K, N, i, &k, &n)) continue;
                    assert_int_equal(hr_layout_index((hr_layout)layout, K, N, k, n), i);
                    count++;
                }
                assert_int_equal(count, K * N);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_explicit_mask_is_that_of_the_documentation),
        cmocka_unit_test(places_invert_layouts),
        cmocka_unit_test(every_proof_that_applies_passes_on_every_family),
        cmocka_unit_test(proofs_in_fp32_take_recipes_with_other_masters),
        cmocka_unit_test(every_proof_fails_when_its_run_is_changed),
        cmocka_unit_test(a_changed_weight_is_found),
        cmocka_unit_test(a_chunk_that_rounds_differently_is_within_its_bound),
        cmocka_unit_test(a_window_that_is_a_token_short_is_found),
        cmocka_unit_test(what_does_not_apply_says_why),
        cmocka_unit_test(what_does_not_fit_is_reduced_or_refused),
        cmocka_unit_test(unknown_names_and_steps_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
