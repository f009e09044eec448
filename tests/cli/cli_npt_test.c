/* SPDX-License-Identifier: Apache-2.0 */
/* cli_npt_test.c - adapters that are a function of the token: trained in every family with the
 * bytes that were planned, resumed bit for bit, switched by layer, captured, replayed and merged;
 * and what is refused. */
#define _GNU_SOURCE
#include <math.h>

#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"

#define STEP_OF_F32 1e-5

static void prepare(const char *family)
{
    char recipe[512];
    require_program();
    put_tiny_and_text();
    snprintf(recipe, sizeof recipe,
             "model: {family: %s, d_model: 64, n_layers: 3, n_heads: 2, d_ff: 165, "
             "vocab_size: 256}\n"
             "train: {batch: 4, seq_len: 32, threads: 2, steps: 6, dtype: fp32}\n"
             "train.optimizer.lr: 1e-2\ntrain.schedule.kind: constant\ndata.train: text.txt\n",
             family);
    put("recipe.yaml", recipe);
    if (run("train recipe.yaml train.steps=2 --out base --fresh")) fail_msg("%s", err);
}

static int adapt(const char *settings)
{
    return run("train recipe.yaml model.from=base train.adapter.kind=npt train.adapter.rank=5 "
               "train.adapter.triples=2 %s",
               settings);
}

static void must_adapt(const char *settings)
{
    if (adapt(settings)) fail_msg("%s: %s", settings, *err ? err : out);
}

static void every_family_trains_within_its_plan(void **state)
{
    static const struct {
        const char *family;
        bool gates;
    } families[] = { { "llama", true },    { "mistral", true },   { "qwen2", true },
                     { "qwen3", true },    { "yxanul", true },    { "gpt2", false },
                     { "gpt_neo", false }, { "gpt_neox", false }, { "opt", false },
                     { "needle", false } };
    static const char *const forms[] = { "diagonal", "single", "dual", "triple" };
    static const char *const objectives[] = {
        "train.adapter.objective=equivalence",
        "train.adapter.objective=direct train.adapter.inputs=student train.steps=2",
        "train.adapter.objective=lm memory.recompute=layers train.steps=2",
        "train.adapter.measure=cosine train.adapter.inputs=\"teacher mixed:0.5@2 student@4\" "
        "train.dtype=bf16 memory.micro_batch=2",
    };
    (void)state;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        prepare(families[f].family);
        for (int form = 0; form < (families[f].gates ? 4 : 2); form++) {
            char settings[512];
            snprintf(settings, sizeof settings, "train.adapter.form=%s train.adapter.layers=%s %s",
                     forms[form], form % 2 ? "upper_half" : "all",
                     objectives[(f + (size_t)form) % 4]);
            must_adapt(settings);
            assert_arena_as_planned(settings);
        }
        if (families[f].gates) continue;
        assert_int_equal(adapt("train.adapter.form=dual"), HR_USAGE);
        assert_says("has no gate: use diagonal or single");
    }
}

static double number_after(const char *word)
{
    const char *at = strstr(out, word);
    if (!at) fail_msg("no \"%s\" in %s", word, out);
    return strtod(at + strlen(word), NULL);
}

/* With an average and moments in codes a checkpoint has all the files that there are. */
static void runs_resume_with_the_same_bits_on_any_threads(void **state)
{
    static const char inputs[] = "train.adapter.form=dual train.ema_decay=0.5 "
                                 "train.state.moments=int8 train.adapter.rank=64 "
                                 "train.adapter.inputs=\"teacher mixed:0.5@2 student@4\"";
    char settings[512];
    (void)state;
    prepare("llama");
    snprintf(settings, sizeof settings, "%s train.steps=6 --out whole", inputs);
    must_adapt(settings);
    snprintf(settings, sizeof settings, "%s train.steps=3 --out parts", inputs);
    must_adapt(settings);
    snprintf(
        settings, sizeof settings,
        "%s train.steps=6 train.threads=1 memory.micro_batch=2 memory.recompute=layers --out parts",
        inputs);
    must_adapt(settings);
    assert_same_file("whole/npt_model.safetensors", "parts/npt_model.safetensors");
    assert_int_equal(adapt("train.adapter.form=single train.steps=9 --out parts"), HR_USAGE);
    assert_says("that cannot go on with this recipe: its weights have another shape or format");
    assert_null(strstr(err, "--allow-change train.adapter.form"));
    /* what a run writes can be read */
    if (run("plan parts/checkpoints/step-000000000006/recipe.yaml")) fail_msg("%s", err);
}

static void layers_are_switched_at_run_time(void **state)
{
    (void)state;
    prepare("llama");
    must_adapt("train.adapter.regularisation=0 train.adapter.layers=\"0 2\" --out npt");
    if (run("eval base --file text.txt")) fail_msg("%s", err);
    const double base = number_after("loss ");
    if (run("eval base --adapter npt --npt-layers none --file text.txt")) fail_msg("%s", err);
    assert_true(number_after("loss ") == base);
    if (run("eval base --adapter npt --npt-layers 2 --file text.txt")) fail_msg("%s", err);
    const double one = number_after("loss ");
    assert_true(number_after("the base alone: loss ") == base && one != base);
    assert_null(strstr(out, "    0  mlp.gate_proj"));
    assert_non_null(strstr(out, "    2  mlp.gate_proj"));
    if (run("eval base --adapter npt --file text.txt")) fail_msg("%s", err);
    assert_non_null(strstr(out, "    0  mlp.gate_proj"));
    assert_true(number_after("loss ") != one);
    assert_int_equal(run("generate base --adapter npt --npt-layers 2 --prompt a --max-tokens 3"),
                     HR_OK);
    assert_int_equal(run("eval base --adapter npt --npt-layers 1 --file text.txt"), HR_USAGE);
    assert_says("layer 1 has no adapters");
    assert_int_equal(run("eval base --adapter npt --npt-layers 7 --file text.txt"), HR_USAGE);
    assert_int_equal(run("eval base --npt-layers 0 --file text.txt"), HR_USAGE);
    assert_int_equal(run("eval base --adapter npt --adapter npt --file text.txt"), HR_USAGE);
    assert_says("do not add up");
    assert_int_equal(run("eval npt --file text.txt"), HR_USAGE);
    assert_says("has adapters and no model");
}

/* A captured change merged into the base gives what its replay gives. */
static void captured_tokens_are_replayed_and_merged(void **state)
{
    static const char *const forms[] = { "diagonal", "triple" };
    (void)state;
    prepare("qwen3");
    for (int f = 0; f < 2; f++) {
        char settings[256];
        snprintf(settings, sizeof settings,
                 "train.adapter.form=%s train.adapter.regularisation=0 --out npt%d", forms[f], f);
        must_adapt(settings);
        if (run("adapter capture base npt%d tokens%d --prompt \"some words\" --positions \"1 4-6\"",
                f, f))
            fail_msg("%s", err);
        assert_non_null(
            strstr(out, f ? "4 of 10 tokens, 9 matrices" : "4 of 10 tokens, 3 matrices"));
        if (run("adapter replay npt%d tokens%d replayed%d --token 2", f, f, f)) fail_msg("%s", err);
        if (run("adapter merge base replayed%d=0.5 merged%d", f, f)) fail_msg("%s", err);
        if (run("eval base --adapter replayed%d=0.5 --file text.txt", f)) fail_msg("%s", err);
        const double replayed = number_after("loss ");
        if (run("eval merged%d --file text.txt", f)) fail_msg("%s", err);
        assert_true(fabs(number_after("loss ") - replayed) < STEP_OF_F32 * replayed);
        if (run("eval base --file text.txt")) fail_msg("%s", err);
        assert_true(number_after("loss ") != replayed);
        assert_int_equal(run("adapter replay npt%d tokens%d replayed%d", f, f, f), HR_USAGE);
        assert_int_equal(run("adapter replay npt%d tokens%d other --token 4", f, f), HR_USAGE);
        assert_int_equal(run("adapter merge base npt%d other", f), HR_USAGE);
    }
    assert_int_equal(run("adapter replay npt0 base/model.safetensors other"), HR_CORRUPT);
    assert_int_equal(access("other", F_OK), -1); /* nothing is left */
    assert_int_equal(run("adapter capture base npt0 other --prompt ab --positions 3"), HR_USAGE);
    assert_int_equal(run("adapter capture base npt0 tokens0 --prompt ab"), HR_OK);
    assert_int_equal(run("adapter capture base npt0 npt0/npt_model.safetensors --prompt ab"),
                     HR_USAGE);
    assert_non_null(strstr(err, "exists and is not a capture"));
    assert_int_equal(run("adapter capture base npt0 other --prompt \"\""), HR_USAGE);
    assert_int_equal(run("adapter info npt1"), HR_OK);
    assert_non_null(strstr(out, "NPT, triple, rank 5, triples 2"));
    assert_int_equal(run("adapter info npt0 --json"), HR_OK);
    assert_non_null(strstr(out, "\"form\": \"diagonal\""));
}

static void bad_input_is_refused_with_one_sentence(void **state)
{
    static const struct {
        const char *settings, *said;
    } cases[] = {
        { "train.adapter.objective=lm train.adapter.inputs=teacher", "the loss is of the whole" },
        { "train.adapter.inputs=mixed:1.5", "a share from 0 to 1" },
        { "train.adapter.inputs=\"student@5\"", "begins at step 0" },
        { "train.adapter.inputs=\"teacher detached@2\"", "is not teacher, student, detached" },
        { "train.adapter.layers=3", "layers from 0 to 2" },
        { "model.dropout=0.1", "cannot learn to equal one that drops" },
        { "train.z_loss=1e-4", "is of logits" },
        { "train.adapter.dora=true", "is a key of kind lora" },
        { "train.adapter.targets=q_proj", "is a key of kind lora" },
        { "train.schedule.warmup_steps=7", "warmup_steps 7 is more than train.steps 6" },
        { "train.freeze=*norm*", "leave train.freeze out" },
    };
    (void)state;
    prepare("llama");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (adapt(cases[i].settings) != HR_USAGE) fail_msg("%s: taken", cases[i].settings);
        if (!strstr(err, cases[i].said)) fail_msg("%s: %s", cases[i].settings, err);
    }
    must_adapt("train.adapter.layers=1 --out npt");
    assert_int_equal(adapt("train.adapter.form=single train.adapter.from=npt"), HR_USAGE);
    assert_says("has diagonal");
    must_adapt("train.adapter.from=npt train.adapter.layers=1");
    put("npt/npt_config.json", "{\"form\": \"diagonal\", \"rank\": 4, \"layers\": [1]}");
    assert_int_equal(run("eval base --adapter npt --file text.txt"), HR_CORRUPT);
    put("npt/npt_config.json", "{\"form\": \"square\", \"rank\": 5, \"layers\": [1]}");
    assert_int_equal(run("eval base --adapter npt --file text.txt"), HR_CORRUPT);
    put("npt/npt_config.json", "{\"form\": \"diagonal\", \"rank\": 5, \"layers\": []}");
    assert_int_equal(run("eval base --adapter npt --file text.txt"), HR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_family_trains_within_its_plan, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(runs_resume_with_the_same_bits_on_any_threads, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(layers_are_switched_at_run_time, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(captured_tokens_are_replayed_and_merged, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(bad_input_is_refused_with_one_sentence, make_folder,
                                        drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
