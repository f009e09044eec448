/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_test.c - compares logits, loss, every gradient and ten training steps with PyTorch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ops/rope/rope.h"
#include "require.h"
#include "support/oracle.h"
#include "support/rig.h"

/* Ten times the observed difference between two fp32 implementations. */
#define LOGIT_TOLERANCE 2e-5
#define LOSS_TOLERANCE 1e-5
#define STEP_TOLERANCE 1e-2
#define BF16_LOSS_TOLERANCE 2e-3
#define BF16_GRADIENT_TOLERANCE 3e-2

typedef struct {
    const char *weights, *golden, *json, *pattern;
    double gradient_tolerance;
} oracle_case;

static float *weight_of(void *context, const char *name)
{
    int64_t bytes = 0;
    const void *found = oracle_tensor(context, "", name, &bytes);
    if (!found) {
        fprintf(stderr, "the oracle has no %s\n", name);
        abort();
    }
    return memcpy(malloc((size_t)bytes), found, (size_t)bytes);
}

static void common(hr_config *config, int64_t T)
{
    hr_config_default(config);
    config->train.batch = 2;
    config->train.seq_len = T;
    config->train.steps = 10;
    config->train.dtype = HR_FORMAT_FP32;
    config->train.sample_tokens = 0;
    config->model.dropout = 0;
    config->model.norm_eps = 1e-5;
    snprintf(config->data.tokenizer, sizeof config->data.tokenizer, "words");
    config->train.optimizer.kind = HR_OPTIMIZER_ADAMW;
    config->train.optimizer.lr = 1e-3;
    config->train.optimizer.beta1 = 0.9;
    config->train.optimizer.beta2 = 0.95;
    config->train.optimizer.eps = 1e-8;
    config->train.optimizer.weight_decay = 0.1;
    config->train.optimizer.clip = 1;
    config->train.schedule.kind = HR_SCHEDULE_CONSTANT;
    config->train.schedule.warmup_steps = 0;
}

static hr_config gpt_neox_config(void)
{
    hr_config config;
    common(&config, 23);
    config.model.family = HR_FAMILY_GPT_NEOX;
    config.model.d_model = 48;
    config.model.n_layers = 2;
    config.model.n_heads = 3;
    config.model.d_ff = 61;
    config.model.vocab_size = 101;
    config.model.rotary_fraction = 0.25;
    config.model.rope_theta = 10000;
    config.model.parallel_residual = true;
    return config;
}

static hr_config needle_config(int32_t pattern)
{
    hr_config config;
    common(&config, 40);
    config.model.family = HR_FAMILY_NEEDLE;
    config.model.d_model = 64;
    config.model.n_layers = 2;
    config.model.n_heads = 4;
    config.model.d_ff = 128;
    config.model.vocab_size = 97;
    config.model.attention.pattern = pattern;
    config.model.attention.block = 8;
    config.model.attention.window = 1;
    return config;
}

static hr_config llama_config(void)
{
    hr_config config;
    common(&config, 23);
    config.train.batch = 3;
    config.model.family = HR_FAMILY_LLAMA;
    config.model.d_model = 40;
    config.model.n_layers = 2;
    config.model.n_heads = 4;
    config.model.n_kv_heads = 2;
    config.model.d_ff = 61;
    config.model.vocab_size = 101;
    config.model.rope_theta = 500000;
    config.model.rope_scaling.kind = HR_ROPE_LLAMA3;
    config.model.rope_scaling.original_positions = 256;
    return config;
}

static hr_config gpt2_config(void)
{
    hr_config config;
    common(&config, 23);
    config.model.family = HR_FAMILY_GPT2;
    config.model.d_model = 36;
    config.model.n_layers = 2;
    config.model.n_heads = 3;
    config.model.d_ff = 77;
    config.model.vocab_size = 101;
    config.model.positions = 32;
    return config;
}

static hr_config qwen3_config(void)
{
    hr_config config;
    common(&config, 23);
    config.model.family = HR_FAMILY_QWEN3;
    config.model.d_model = 36;
    config.model.n_layers = 2;
    config.model.n_heads = 4;
    config.model.n_kv_heads = 2;
    config.model.head_dim = 12;
    config.model.d_ff = 61;
    config.model.vocab_size = 101;
    config.model.tie_embeddings = HR_TIE_TRUE;
    config.model.rope_theta = 1e6;
    config.model.norm_eps = 1e-6;
    return config;
}

static hr_config gpt_neo_config(void)
{
    hr_config config;
    common(&config, 23);
    config.model.family = HR_FAMILY_GPT_NEO;
    config.model.d_model = 24;
    config.model.n_layers = 4;
    config.model.n_heads = 2;
    config.model.d_ff = 45;
    config.model.vocab_size = 101;
    config.model.positions = 32;
    config.model.attention.sliding_window = 5;
    strcpy(config.model.attention.layer_types, "full sliding");
    return config;
}

static hr_config qwen2_mixed_config(void)
{
    hr_config config;
    common(&config, 23);
    config.model.family = HR_FAMILY_QWEN2;
    config.model.d_model = 32;
    config.model.n_layers = 3;
    config.model.n_heads = 4;
    config.model.n_kv_heads = 2;
    config.model.d_ff = 45;
    config.model.vocab_size = 101;
    config.model.rope_theta = 1e6;
    config.model.norm_eps = 1e-6;
    config.model.attention.sliding_window = 6;
    strcpy(config.model.attention.layer_types, "full sliding*2");
    return config;
}

static hr_config yxanul_config(void)
{
    hr_config config;
    common(&config, 23);
    config.train.batch = 3;
    config.model.family = HR_FAMILY_YXANUL;
    config.model.d_model = 64;
    config.model.n_layers = 2;
    config.model.n_heads = 8;
    config.model.n_kv_heads = 2;
    config.model.d_ff = 45;
    config.model.vocab_size = 131;
    config.model.embedding_rank = 16;
    return config;
}

static hr_config wide_config(void)
{
    hr_config config;
    common(&config, 23);
    config.train.batch = 3;
    config.model.family = HR_FAMILY_WIDE;
    config.model.d_model = 36;
    config.model.n_layers = 2;
    config.model.vocab_size = 131;
    config.model.expansion = 97;
    return config;
}

static void take_batch(rig *r, const oracle_file *golden)
{
    int64_t bytes = 0;
    const int64_t *ids = oracle_tensor(golden, "", "input_ids", &bytes);
    const int64_t *labels = oracle_tensor(golden, "", "labels", &bytes);
    assert_int_equal(bytes, r->rows * 8);
    for (int64_t i = 0; i < r->rows; i++) {
        r->ids[i] = (int32_t)ids[i];
        r->targets[i] = labels[i] < 0 ? -1 : (int32_t)labels[i];
    }
}

static double worst_gradient(const rig *r, const oracle_file *golden, int32_t *compared)
{
    double worst = 0;
    int64_t at = 0, bytes = 0;
    for (int32_t p = 0; p < r->compiled.program.param_count; p++) {
        const hr_param *param = &r->compiled.program.params[p];
        const float *want = oracle_tensor(golden, "grad.", param->external_name, &bytes);
        for (int64_t i = 0; want && i < rig_elements(param); i++)
            worst = fmax(worst, fabs(r->gradients[at + i] - (double)want[i]));
        *compared += want != 0;
        at += rig_elements(param);
    }
    return worst;
}

static int is_noise(const json_t *json, const char *name)
{
    const json_t *list = json_object_get(json, "final_holds_rounding_noise");
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (!strcmp(json_string_value(item), name)) return 1;
    return 0;
}

/* Returns the largest relative difference between the change of a parameter in ten steps and that
 * of the oracle. */
static double worst_update(const rig *r, const oracle_file *weights, const oracle_file *golden,
                           const json_t *json)
{
    double worst = 0;
    int64_t bytes = 0;
    for (int32_t p = 0; p < r->compiled.program.param_count; p++) {
        const hr_param *param = &r->compiled.program.params[p];
        const float *before = oracle_tensor(weights, "", param->external_name, &bytes);
        const float *after = oracle_tensor(golden, "final.", param->external_name, &bytes);
        double apart = 0, distance = 0;
        if (!after || is_noise(json, param->external_name)) continue;
        for (int64_t i = 0; i < rig_elements(param); i++) {
            const double want = (double)after[i] - before[i];
            apart += pow((double)rig_weight(r, p, i) - before[i] - want, 2);
            distance += want * want;
        }
        worst = fmax(worst, sqrt(apart / distance));
    }
    return worst;
}

/* Sum, 2-norm, product with r and largest element, as the oracle computes them; r is defined in
 * tests/oracles/README.md. */
static void sum_up(const rig *r, int32_t index, int64_t first, bool final, double of[4])
{
    const int64_t count = rig_elements(&r->compiled.program.params[index]);
    memset(of, 0, 4 * sizeof *of);
    for (int64_t i = 0; i < count; i++) {
        const double x = final ? (double)rig_weight(r, index, i) : r->gradients[first + i];
        of[0] += x;
        of[1] += x * x;
        of[2] += x * ((double)(uint32_t)(i * 2654435761) / 2147483648.0 - 1);
        of[3] = fmax(of[3], fabs(x));
    }
    of[1] = sqrt(of[1]);
}

/* Returns the largest difference of the sums of a tensor from those of the oracle, relative to the
 * tolerance: ten times the largest element difference of two PyTorch runs, with random signs (times
 * sqrt(n) in sums). After ten steps one element may differ by 7.1e-6 more, where a gradient is near
 * Adam's epsilon. */
static double worst_sum(const rig *r, const json_t *facts, bool final)
{
    const json_t *sums = json_object_get(facts, final ? "checksum_final" : "checksum_grad");
    const json_t *observed = json_object_get(
        json_object_get(facts, "max_abs_difference_fp32_float64"), final ? "final" : "grad");
    const double stray = final ? 7.1e-5 : 0;
    double worst = 0;
    int64_t first = 0;
    for (int32_t p = 0; sums && p < r->compiled.program.param_count; p++) {
        const hr_param *param = &r->compiled.program.params[p];
        const json_t *want = json_object_get(sums, param->external_name);
        const json_t *seen = json_object_get(observed, param->external_name);
        const double element = 10 * json_number_value(seen);
        const double rows = sqrt((double)rig_elements(param));
        double of[4];
        assert_true(want && seen);
        sum_up(r, p, first, final, of);
        first += rig_elements(param);
        if (final && strstr(param->external_name, "ln_k.bias"))
            continue; /* its gradient is only noise */
        for (size_t k = 0; k < 4; k++) {
            const double value = json_number_value(json_array_get(want, k));
            const double allowed = element * (k == 3 ? 1 : rows) + stray + 1e-9 * fabs(value);
            worst = fmax(worst, fabs(of[k] - value) / allowed);
        }
    }
    return worst;
}

static void judge(const oracle_case *c, const hr_config *config, uint32_t mask, int32_t threads)
{
    char path[512];
    oracle_file weights = { 0 }, golden = { 0 };
    rig r;
    int64_t bytes = 0;
    snprintf(path, sizeof path, HR_ORACLES "/%s", c->weights);
    assert_true(oracle_open(&weights, path));
    snprintf(path, sizeof path, HR_ORACLES "/%s", c->golden);
    assert_true(oracle_open(&golden, path));
    snprintf(path, sizeof path, HR_ORACLES "/%s", c->json);
    json_t *json = json_load_file(path, 0, 0);
    const json_t *facts = c->pattern
                              ? json_object_get(json_object_get(json, "patterns"), c->pattern)
                              : json;
    const json_t *training = json_object_get(facts, "training");

    rig_open(&r, config, threads, mask, weight_of, &weights);
    take_batch(&r, &golden);
    rig_evaluate(&r);
    const float *logits = oracle_tensor(&golden, "", "logits", &bytes);
    double worst_logit = 0, worst_loss = 0, gradient = 0;
    for (int64_t i = 0; i < bytes / 4; i++)
        worst_logit = fmax(worst_logit, fabs((double)r.logits[i] - logits[i]));
    const double loss = json_real_value(json_object_get(facts, "loss_float64"));
    assert_true(fabs(r.evaluation_loss - loss) < LOSS_TOLERANCE * loss);

    int32_t compared = 0;
    double sums = 0;
    for (size_t i = 0; i < 10; i++) {
        rig_step(&r);
        if (i == 0) gradient = worst_gradient(&r, &golden, &compared);
        if (i == 0) sums = worst_sum(&r, facts, false);
        const json_t *losses = json_object_get(training, "losses_float64");
        const double want = json_real_value(json_array_get(losses, i));
        worst_loss = fmax(worst_loss, fabs(r.loss - want) / want);
    }
    const double distance = worst_update(&r, &weights, &golden, json);
    const double final_sums = worst_sum(&r, facts, true);
    print_message("%-22s %-8s %-10s %d threads: logits %.1e, %d gradients %.1e, ten losses %.1e, "
                  "way %.1e; of what sums may differ %.2f, after ten steps %.2f\n",
                  c->golden, c->pattern ? c->pattern : "", hr_cpu_rung_name(mask), threads,
                  worst_logit, compared, gradient, worst_loss, distance, sums, final_sums);
    assert_true(worst_logit < LOGIT_TOLERANCE);
    assert_true(compared >= 5);
    assert_true(gradient < c->gradient_tolerance);
    assert_true(worst_loss < LOSS_TOLERANCE);
    assert_true(distance < STEP_TOLERANCE);
    assert_true(sums < 1 && final_sums < 1);
    rig_close(&r);
    json_decref(json);
    oracle_close(&golden);
    oracle_close(&weights);
}

#ifdef HR_EMULATE
static const char *const rungs[] = { "avx512bf16", "amx" };
#else
static const char *const rungs[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
#endif
enum { RUNGS = sizeof rungs / sizeof *rungs };

/* Sets the mask of the rung; false if this machine cannot run it. */
static bool has_rung(int32_t rung, uint32_t *mask)
{
    *mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
    return hr_test_has(rungs[rung]);
}

static void on_every_rung(const oracle_case *c, const hr_config *config)
{
    uint32_t mask;
    for (int32_t i = 0; i < RUNGS; i++)
        if (has_rung(i, &mask)) judge(c, config, mask, 1 + i % 2);
}

static void gpt_neox_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/gpt_neox/model.safetensors", "hf/gpt_neox/golden.safetensors",
                            "hf/gpt_neox/golden.json", 0, 1.7e-6 };
    const hr_config config = gpt_neox_config();
    on_every_rung(&c, &config);
}

static void llama_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/llama_gqa/model.safetensors", "hf/llama_gqa/golden.safetensors",
                            "hf/llama_gqa/golden.json", 0, 1.7e-6 };
    const hr_config config = llama_config();
    on_every_rung(&c, &config);
}

static void gpt2_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/gpt2/model.safetensors", "hf/gpt2/golden.safetensors",
                            "hf/gpt2/golden.json", 0, 1.7e-6 };
    const hr_config config = gpt2_config();
    on_every_rung(&c, &config);
}

static void qwen3_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/qwen3_tied/model.safetensors", "hf/qwen3_tied/golden.safetensors",
                            "hf/qwen3_tied/golden.json", 0, 1.7e-6 };
    const hr_config config = qwen3_config();
    on_every_rung(&c, &config);
}

static void gpt_neo_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/gpt_neo/model.safetensors", "hf/gpt_neo/golden.safetensors",
                            "hf/gpt_neo/golden.json", 0, 1.7e-6 };
    const hr_config config = gpt_neo_config();
    on_every_rung(&c, &config);
}

static void qwen2_with_two_kinds_of_layers_matches_transformers(void **state)
{
    (void)state;
    const oracle_case c = { "hf/qwen2_mixed/model.safetensors", "hf/qwen2_mixed/golden.safetensors",
                            "hf/qwen2_mixed/golden.json", 0, 3.3e-6 };
    const hr_config config = qwen2_mixed_config();
    on_every_rung(&c, &config);
}

static void yxanul_matches_pytorch(void **state)
{
    (void)state;
    const oracle_case c = { "systems/yxanul/weights.safetensors",
                            "systems/yxanul/golden.safetensors", "systems/yxanul/golden.json", 0,
                            3.4e-6 };
    const hr_config config = yxanul_config();
    on_every_rung(&c, &config);
}

static void wide_matches_pytorch(void **state)
{
    (void)state;
    const oracle_case c = { "systems/wide/weights.safetensors", "systems/wide/golden.safetensors",
                            "systems/wide/golden.json", 0, 1.2e-7 };
    const hr_config config = wide_config();
    on_every_rung(&c, &config);
}

static void spiking_neurons_match_pytorch(void **state)
{
    (void)state;
    const oracle_case c = { "systems/lif/weights.safetensors", "systems/lif/golden.safetensors",
                            "systems/lif/golden.json", 0, 1e-6 };
    hr_config config = wide_config();
    config.model.d_model = 48;
    config.model.trunk = HR_TRUNK_LIF;
    config.model.lif.block = 16;
    config.model.lif.winners = 5;
    config.model.lif.synapses = 7;
    on_every_rung(&c, &config);
}

/* The decoder of the oracle as the product of two factors. */
static float *factor_of(void *context, const char *name)
{
    enum { X = 97 };
    if (strcmp(name, "decoder.a") != 0)
        return weight_of(context, strcmp(name, "decoder.b") ? name : "decoder");
    float *one = calloc(X * X, sizeof *one);
    for (int32_t i = 0; i < X; i++) one[i * X + i] = 1;
    return one;
}

/* The extra factor changes neither the logits nor the gradients of the other parameters. */
static void two_decoder_factors_equal_their_product(void **state)
{
    (void)state;
    uint32_t mask;
    hr_config config = wide_config();
    config.model.decoder_rank = config.model.expansion;
    for (int32_t i = 0; i < RUNGS; i++) {
        if (!has_rung(i, &mask)) continue;
        oracle_file weights = { 0 }, golden = { 0 };
        rig r;
        int64_t bytes = 0, at = 0;
        double worst = 0;
        int32_t compared = 0;
        assert_true(oracle_open(&weights, HR_ORACLES "/systems/wide/weights.safetensors"));
        assert_true(oracle_open(&golden, HR_ORACLES "/systems/wide/golden.safetensors"));
        rig_open(&r, &config, 2, mask, factor_of, &weights);
        take_batch(&r, &golden);
        rig_evaluate(&r);
        const float *logits = oracle_tensor(&golden, "", "logits", &bytes);
        for (int64_t e = 0; e < bytes / 4; e++)
            assert_true(fabs((double)r.logits[e] - logits[e]) < LOGIT_TOLERANCE);
        rig_step(&r);
        for (int32_t p = 0; p < r.compiled.program.param_count; p++) {
            const hr_param *param = &r.compiled.program.params[p];
            const char *name = param->external_name;
            const float *want = oracle_tensor(&golden, "grad.",
                                              strcmp(name, "decoder.b") ? name : "decoder", &bytes);
            for (int64_t e = 0; want && e < rig_elements(param); e++)
                worst = fmax(worst, fabs(r.gradients[at + e] - (double)want[e]));
            compared += want != 0;
            at += rig_elements(param);
        }
        print_message("two factors %-10s: %d gradients %.1e\n", rungs[i], compared, worst);
        assert_true(compared == 8 && worst < 1.2e-7);
        rig_close(&r);
        oracle_close(&golden);
        oracle_close(&weights);
    }
}

static void needle_matches_pytorch_with_every_pattern(void **state)
{
    (void)state;
    static const char *const patterns[] = { "dense", "local", "global", "mixed" };
    for (int32_t i = 0; i < 4; i++) {
        char golden[96];
        snprintf(golden, sizeof golden, "systems/needle/golden.%s.safetensors", patterns[i]);
        const oracle_case c = { "systems/needle/weights.safetensors", golden,
                                "systems/needle/golden.json", patterns[i], 5.3e-7 };
        const hr_config config = needle_config(i);
        on_every_rung(&c, &config);
    }
}

/* bf16 keeps 8 bits: one rounding is 2^-9, and rounding errors of a sum grow with its root. Over a
 * dozen roundings per layer that is about 1 % of the norm of a gradient; the loss and the updates
 * average it out. fp16 keeps 11. */
static void half_is_within_rounding_of_the_oracle(int32_t format, double share)
{
    uint32_t mask;
    for (int32_t i = 0; i < RUNGS; i++) {
        if (!has_rung(i, &mask)) continue;
        oracle_file weights = { 0 }, golden = { 0 };
        rig r;
        hr_config config = gpt_neox_config();
        int64_t bytes = 0, at = 0;
        double worst = 0, worst_loss = 0;
        config.train.dtype = format;
        assert_true(oracle_open(&weights, HR_ORACLES "/hf/gpt_neox/model.safetensors"));
        assert_true(oracle_open(&golden, HR_ORACLES "/hf/gpt_neox/golden.safetensors"));
        json_t *json = json_load_file(HR_ORACLES "/hf/gpt_neox/golden.json", 0, 0);
        const json_t *losses = json_object_get(json_object_get(json, "training"), "losses_float64");
        rig_open(&r, &config, 2, mask, weight_of, &weights);
        take_batch(&r, &golden);
        for (size_t step = 0; step < 10; step++) {
            rig_step(&r);
            const double want = json_real_value(json_array_get(losses, step));
            worst_loss = fmax(worst_loss, fabs(r.loss - want) / want);
            for (int32_t p = 0; step == 0 && p < r.compiled.program.param_count; p++) {
                const hr_param *param = &r.compiled.program.params[p];
                const float *grad = oracle_tensor(&golden, "grad.", param->external_name, &bytes);
                double apart = 0, norm = 0;
                for (int64_t e = 0; e < rig_elements(param); e++, at++) {
                    apart += pow(r.gradients[at] / rig_loss_scale(&r) - (double)grad[e], 2);
                    norm += pow(grad[e], 2);
                }
                worst = fmax(worst, sqrt(apart / norm));
            }
        }
        print_message("%s %-10s: ten losses %.1e, gradients %.1e of their norm\n",
                      hr_format_name(format), rungs[i], worst_loss, worst);
        assert_true(worst_loss < BF16_LOSS_TOLERANCE * share &&
                    worst < BF16_GRADIENT_TOLERANCE * share);
        rig_close(&r);
        json_decref(json);
        oracle_close(&golden);
        oracle_close(&weights);
    }
}

static void bf16_is_within_rounding_of_the_oracle(void **state)
{
    (void)state;
    half_is_within_rounding_of_the_oracle(HR_FORMAT_BF16, 1);
}

static void fp16_is_within_rounding_of_the_oracle(void **state)
{
    (void)state;
    half_is_within_rounding_of_the_oracle(HR_FORMAT_FP16, 1.0 / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt_neox_matches_transformers),
        cmocka_unit_test(llama_matches_transformers),
        cmocka_unit_test(gpt2_matches_transformers),
        cmocka_unit_test(qwen3_matches_transformers),
        cmocka_unit_test(gpt_neo_matches_transformers),
        cmocka_unit_test(qwen2_with_two_kinds_of_layers_matches_transformers),
        cmocka_unit_test(yxanul_matches_pytorch),
        cmocka_unit_test(wide_matches_pytorch),
        cmocka_unit_test(spiking_neurons_match_pytorch),
        cmocka_unit_test(two_decoder_factors_equal_their_product),
        cmocka_unit_test(needle_matches_pytorch_with_every_pattern),
        cmocka_unit_test(bf16_is_within_rounding_of_the_oracle),
        cmocka_unit_test(fp16_is_within_rounding_of_the_oracle),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
