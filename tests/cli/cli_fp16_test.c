/* SPDX-License-Identifier: Apache-2.0 */
/* cli_fp16_test.c - runs with train.dtype=fp16: losses beside fp32, bytes as planned, gradients
 * that overflow, and the loss scale in checkpoints and in the log. */
#include <jansson.h>
#include <math.h>

#include "headroom/status.h"
#include "support/program.h"

static void put_recipe(void)
{
    require_program();
    put_tiny_and_text();
    assert_int_equal(system("cat text.txt text.txt text.txt >long.txt"), 0);
    put("recipe.yaml",
        "model: {d_model: 48, n_layers: 2, n_heads: 4, d_ff: 96, vocab_size: 300}\n"
        "data: {train: long.txt}\n"
        "train: {steps: 12, batch: 4, seq_len: 37, threads: 3, sample_tokens: none}\n");
}

/* The member of a step of the log; NaN: it is null or missing. */
static double logged(const char *folder, int32_t step, const char *member)
{
    char path[64], line[4096];
    double value = NAN;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL);
        if (json_integer_value(json_object_get(object, "step")) == step &&
            json_object_get(object, "loss"))
            value = json_is_number(json_object_get(object, member))
                        ? json_number_value(json_object_get(object, member))
                        : NAN;
        json_decref(object);
    }
    fclose(file);
    return value;
}

static void losses_are_those_of_fp32(void **state)
{
    static const char *const ways[] = {
        "model.family=llama",
        "model.family=gpt_neox model.d_model=64 train.optimizer.kind=sgd train.optimizer.lr=0.1",
        "model.family=gpt2 model.positions=37 train.optimizer.kind=lion train.optimizer.lr=0.0003",
        "model.family=qwen3 model.attention.kind=nsa train.state.moments=int8",
        "model.family=needle model.d_model=64 train.optimizer.kind=adafactor",
        "model.family=yxanul model.embedding_rank=8 train.optimizer.kind=muon",
        "model.family=wide train.optimizer.clip=none memory.moments=file",
        "model.family=wide model.trunk=lif model.lif.block=48 model.lif.winners=8 "
        "model.lif.synapses=16",
        "model.family=llama train.adapter.kind=lora train.adapter.rank=4 train.adapter.dora=true",
        "model.family=llama train.adapter.kind=npt train.adapter.rank=4",
        "model.family=llama train.optimizer.clip=none memory.product_norm=true "
        "memory.recompute=layers",
    };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(system("rm -rf wide half"), 0);
        if (run("train recipe.yaml %s --out wide", ways[i]) ||
            run("train recipe.yaml %s train.dtype=fp16 --out half", ways[i]))
            fail_msg("%s: %s", ways[i], err);
        assert_arena_as_planned(ways[i]);
        for (int32_t step = 1; step <= 12; step++) {
            const double a = logged("wide", step, "loss"), b = logged("half", step, "loss");
            const double na = logged("wide", step, "grad_norm"),
                         nb = logged("half", step, "grad_norm");
            if (!(fabs(a - b) < 2e-3 * a) || !(fabs(na - nb) < 0.02 * na))
                fail_msg("%s: step %d: loss %g, in fp32 %g; norm %g, in fp32 %g", ways[i], step, b,
                         a, nb, na);
            assert_true(logged("half", step, "loss_scale") == 65536);
            assert_true(isnan(logged("wide", step, "loss_scale")));
        }
    }
}

/* The z-loss makes gradients that do not fit in f16 until the scale is some hundreds. */
static const char large[] = "model.family=llama train.dtype=fp16 train.z_loss=1000";

static void an_overflow_skips_the_update_and_halves_the_scale(void **state)
{
    (void)state;
    put_recipe();
    assert_int_equal(run("train recipe.yaml %s train.checkpoint_every=1 train.keep_last=20 "
                         "--out run",
                         large),
                     HR_OK);
    assert_non_null(strstr(out, "step 1: the gradient overflows fp16 at a loss scale of 65536; the "
                                "update is skipped, the loss scale is 32768"));
    int32_t first = 0, overflows = 0;
    for (int32_t step = 1; step <= 12; step++) {
        assert_true(logged("run", step, "loss_scale") == ldexp(65536, -overflows));
        if (isnan(logged("run", step, "grad_norm"))) overflows++;
        else if (!first) first = step;
    }
    assert_in_range(first, 3, 11);
    /* No update: the weights of step 2 are those of step 1; the first update changes them. */
    assert_same_file("run/checkpoints/step-000000000001/model.safetensors",
                     "run/checkpoints/step-000000000002/model.safetensors");
    char changed[256];
    snprintf(changed, sizeof changed,
             "cmp -s run/checkpoints/step-%012d/model.safetensors "
             "run/checkpoints/step-%012d/model.safetensors",
             first - 1, first);
    assert_int_not_equal(system(changed), 0);
    /* From a checkpoint between two overflows the run goes on with the scale that it had. */
    assert_int_equal(system("cp -r run again && rm -rf again/checkpoints/step-00000000000[3-9] "
                            "again/checkpoints/step-00000000001* again/model.safetensors"),
                     0);
    assert_int_equal(run("train recipe.yaml %s train.checkpoint_every=1 train.keep_last=20 "
                         "--out again",
                         large),
                     HR_OK);
    assert_same_file("run/model.safetensors", "again/model.safetensors");
}

/* Weights of a model file, which are fp32; returns their number. */
static int64_t read_weights(int32_t step, float *weights, int64_t most)
{
    char path[96];
    uint64_t header;
    snprintf(path, sizeof path, "run/checkpoints/step-%012d/model.safetensors", step);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(&header, sizeof header, 1, file), 1);
    assert_int_equal(fseek(file, (long)header, SEEK_CUR), 0);
    const int64_t count = (int64_t)fread(weights, sizeof *weights, (size_t)most, file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(count, 1, most - 1);
    return count;
}

/* AdamW's first update moves a weight by the learning rate at most, and those with a large gradient
 * by just that: skipped steps are not counted. */
static void the_first_update_after_overflows_is_the_first(void **state)
{
    enum { MOST = 1 << 17 };
    static float before[MOST], after[MOST];
    (void)state;
    put_recipe();
    assert_int_equal(run("train recipe.yaml %s train.checkpoint_every=1 train.keep_last=20 "
                         "train.schedule.kind=constant train.schedule.warmup_steps=0 "
                         "train.optimizer.lr=0.25 train.optimizer.weight_decay=0 --out run",
                         large),
                     HR_OK);
    int32_t first = 1;
    while (isnan(logged("run", first, "grad_norm"))) first++;
    assert_in_range(first, 3, 11);
    const int64_t count = read_weights(first - 1, before, MOST);
    assert_int_equal(read_weights(first, after, MOST), count);
    float most = 0;
    for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(after[i] - before[i]));
    assert_true(most > 0.249f && most < 0.251f);
}

static void an_overflow_without_end_is_exit_6(void **state)
{
    (void)state;
    put_recipe();
    assert_int_equal(run("train recipe.yaml %s train.bad_steps_max=1 --out run", large),
                     HR_DIVERGED);
    assert_says("step 2: the gradient overflows fp16 for 2 steps in a row, now at a loss scale of "
                "32768; use train.dtype=bf16, or a lower train.optimizer.lr");
}

static void the_plan_says_what_is_in_f16(void **state)
{
    (void)state;
    put_recipe();
    assert_int_equal(run("plan recipe.yaml model.family=llama train.dtype=fp16"), HR_OK);
    assert_non_null(strstr(out, "activations in fp16"));
    assert_int_equal(run("plan recipe.yaml model.family=llama train.dtype=fp16 --out plan.json"),
                     HR_OK);
    assert_int_equal(run("verify plan.json"), HR_OK);
    assert_int_equal(
        run("plan recipe.yaml model.family=llama train.dtype=fp16 train.state.master=none"),
        HR_USAGE);
    assert_says("train.state.master is for bf16 weights, and with train.dtype=fp16 they are fp32");
}

/* The gradient of the biases of keys is nothing but rounding, which is compared with the other
 * gradients: both have the scale of the loss. */
static void patterns_are_proven_beside_a_loss_scale(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("opt.yaml",
        "model: {family: opt, d_model: 32, n_layers: 2, n_heads: 4, d_ff: 155, vocab_size: 430,\n"
        "  attention: {pattern: global, block: 16, window: 0, stride: 4}}\n"
        "data: {train: text.txt, tokenizer: bytes}\n"
        "train: {dtype: fp16, batch: 1, seq_len: 192, steps: 4, threads: 1}\n");
    if (run("prove opt.yaml --dir . --only pattern")) fail_msg("%s%s", out, err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(patterns_are_proven_beside_a_loss_scale),
        IN_A_FOLDER(losses_are_those_of_fp32),
        IN_A_FOLDER(an_overflow_skips_the_update_and_halves_the_scale),
        IN_A_FOLDER(the_first_update_after_overflows_is_the_first),
        IN_A_FOLDER(an_overflow_without_end_is_exit_6),
        IN_A_FOLDER(the_plan_says_what_is_in_f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
