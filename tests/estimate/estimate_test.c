/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_test.c - the simulated step: sums, what each assumption moves, closed forms of small
 * cases, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "headroom/estimate.h"

static hr_config config_of(const char *family)
{
    hr_config config;
    hr_error err;
    char word[64];
    static const char *const words[] = { "model.d_model=64",     "model.n_layers=3",
                                         "model.n_heads=4",      "model.d_ff=192",
                                         "model.vocab_size=320", "train.batch=2",
                                         "train.seq_len=32" };
    hr_config_default(&config);
    snprintf(word, sizeof word, "model.family=%s", family);
    assert_int_equal(hr_config_set_word(&config, word, &err), HR_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(hr_config_set_word(&config, words[i], &err), HR_OK);
    return config;
}

static hr_status make(const hr_config *config, const hr_estimate_settings *settings,
                      hr_estimate_answer *answer, hr_error *err)
{
    const int64_t bytes = hr_estimate_bytes(config);
    void *memory = malloc((size_t)bytes);
    const hr_status status = hr_estimate_make(config, settings, memory, bytes, answer, err);
    free(memory);
    return status;
}

/* `words` are assumptions separated by blanks. */
static hr_estimate_answer estimate(const hr_config *config, int32_t framework, const char *words)
{
    hr_estimate_settings settings;
    hr_estimate_answer answer;
    hr_error err;
    char copy[256], *rest = copy;
    hr_estimate_settings_of(config, framework, &settings);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && hr_estimate_assume(&settings, word, &err) != HR_OK)
            fail_msg("%s", err.message);
    if (make(config, &settings, &answer, &err) != HR_OK) fail_msg("%s", err.message);
    return answer;
}

static hr_estimate_answer pytorch(const char *family, const char *words)
{
    const hr_config config = config_of(family);
    return estimate(&config, HR_FRAMEWORK_PYTORCH, words);
}

static const char *const families[] = { "needle", "gpt_neox", "llama",  "gpt2", "opt",    "mistral",
                                        "qwen2",  "qwen3",    "yxanul", "wide", "gpt_neo" };
enum { FAMILIES = sizeof families / sizeof *families };

static void components_sum_to_the_tensors_of_the_peak(void **state)
{
    (void)state;
    static const char *const words[] = {
        "", "checkpointing=on", "autocast=bf16", "weights=bf16", "attention=eager", "accumulation=2"
    };
    for (int32_t f = 0; f < FAMILIES; f++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            const hr_estimate_answer answer = pytorch(families[f], words[w]);
            int64_t sum = 0;
            for (int32_t i = 0; i < HR_ESTIMATE_COMPONENTS; i++) {
                assert_true(answer.components[i] >= 0);
                assert_true(answer.components[i] <= answer.most[i]);
                sum += answer.components[i];
            }
            assert_int_equal(sum, answer.tensor_bytes);
            assert_true(answer.tensor_bytes >= answer.forward_bytes);
            assert_true(answer.tensor_bytes >= answer.backward_bytes);
            assert_true(answer.tensor_bytes >= answer.update_bytes);
            assert_true(answer.low_bytes < answer.high_bytes);
        }
}

/* After the backward pass only weights, states, gradients and token ids are left: 4 + 8 + 4 bytes a
 * parameter, and in the update two temporaries of the largest one at least. */
static void the_update_starts_with_sixteen_bytes_per_parameter(void **state)
{
    (void)state;
    for (int32_t f = 0; f < FAMILIES; f++) {
        const hr_estimate_answer answer = pytorch(families[f], "update=foreach");
        const int64_t ids = 2 * 32 * 8;
        const int64_t masks = strcmp(families[f], "gpt_neo") ? 0 : 3 * 32 * 32;
        const int64_t kept = answer.parameters * (4 + 8 + 4) + ids + masks;
        assert_int_equal(answer.update_bytes, kept + answer.parameters * 4);
        assert_int_equal(pytorch(families[f], "update=fused").update_bytes, kept);
    }
}

static void parameters_are_those_of_the_model(void **state)
{
    (void)state;
    hr_config config = config_of("gpt_neox");
    hr_error err;
    static const char *const pythia[] = { "model.d_model=512", "model.n_layers=6",
                                          "model.n_heads=8", "model.d_ff=2048",
                                          "model.vocab_size=50304" };
    for (size_t i = 0; i < sizeof pythia / sizeof *pythia; i++)
        assert_int_equal(hr_config_set_word(&config, pythia[i], &err), HR_OK);
    assert_int_equal(estimate(&config, HR_FRAMEWORK_PYTORCH, "").parameters, 70426624);
}

static void checkpointing_keeps_less_and_moves_no_weight(void **state)
{
    (void)state;
    for (int32_t f = 0; f < FAMILIES; f++) {
        const hr_estimate_answer all = pytorch(families[f], "");
        const hr_estimate_answer few = pytorch(families[f], "checkpointing=on");
        assert_true(few.most[HR_ESTIMATE_ACTIVATIONS] < all.most[HR_ESTIMATE_ACTIVATIONS]);
        assert_int_equal(few.components[HR_ESTIMATE_WEIGHTS], all.components[HR_ESTIMATE_WEIGHTS]);
        assert_int_equal(few.update_bytes, all.update_bytes);
    }
}

/* bf16 halves weights, gradients and states; autocast halves none of them. */
static void states_follow_the_dtype_of_the_weights(void **state)
{
    (void)state;
    const hr_estimate_answer wide = pytorch("llama", ""), low = pytorch("llama", "weights=bf16");
    const hr_estimate_answer cast = pytorch("llama", "autocast=bf16");
    assert_int_equal(wide.components[HR_ESTIMATE_STATES], 8 * wide.parameters);
    assert_int_equal(low.components[HR_ESTIMATE_STATES], 4 * wide.parameters);
    assert_int_equal(cast.components[HR_ESTIMATE_STATES], 8 * wide.parameters);
    assert_int_equal(cast.components[HR_ESTIMATE_WEIGHTS], 4 * wide.parameters);
}

/* Adapters of q and v: 2 x (64 x 8 + 8 x 64) in each of 3 layers, in fp32 whatever the weights. */
static void adapters_are_trained_alone_and_in_fp32(void **state)
{
    (void)state;
    const hr_estimate_answer answer = pytorch("llama", "weights=bf16 lora=8:q_proj,v_proj");
    assert_int_equal(answer.trained_parameters, 3 * 2 * 2 * 64 * 8);
    assert_int_equal(answer.components[HR_ESTIMATE_STATES], 8 * answer.trained_parameters);
    assert_int_equal(answer.most[HR_ESTIMATE_GRADIENTS], 4 * answer.trained_parameters);
}

/* The matrices of 3 layers in four bits, with an fp32 scale for each 64 weights. */
static void a_quantized_base_has_four_bits_and_scales(void **state)
{
    (void)state;
    const int64_t layers = 3 * (4 * 64 * 64 + 3 * 64 * 192);
    const hr_estimate_answer full = pytorch("llama", "weights=bf16 lora=8:q_proj");
    const hr_estimate_answer four = pytorch("llama", "weights=bf16 lora=8:q_proj base=nf4");
    assert_int_equal(full.components[HR_ESTIMATE_WEIGHTS] - four.components[HR_ESTIMATE_WEIGHTS],
                     2 * layers - layers / 2 - layers / 64 * 4);
}

/* A base in bf16 is the whole frozen model in bf16: embeddings, norms and head, too. */
static void a_base_in_one_dtype_is_the_whole_model(void **state)
{
    (void)state;
    const hr_estimate_answer wide = pytorch("llama", "lora=8:q_proj");
    const hr_estimate_answer base = pytorch("llama", "lora=8:q_proj base=bf16");
    const hr_estimate_answer loaded = pytorch("llama", "lora=8:q_proj weights=bf16");
    const int64_t frozen = base.parameters - base.trained_parameters;
    assert_int_equal(base.most[HR_ESTIMATE_WEIGHTS], loaded.most[HR_ESTIMATE_WEIGHTS]);
    assert_int_equal(base.tensor_bytes, loaded.tensor_bytes);
    assert_int_equal(wide.most[HR_ESTIMATE_WEIGHTS] - base.most[HR_ESTIMATE_WEIGHTS], 2 * frozen);
    assert_int_equal(base.most[HR_ESTIMATE_STATES], 8 * base.trained_parameters);
}

static void more_processes_share_the_states_of_deepspeed(void **state)
{
    (void)state;
    const hr_config config = config_of("llama");
    const hr_estimate_answer one = estimate(&config, HR_FRAMEWORK_DEEPSPEED_Z2, "weights=bf16");
    const hr_estimate_answer four = estimate(&config, HR_FRAMEWORK_DEEPSPEED_Z2,
                                             "weights=bf16 world=4");
    const hr_estimate_answer away = estimate(&config, HR_FRAMEWORK_DEEPSPEED_Z2,
                                             "weights=bf16 offload-optimizer=on");
    assert_int_equal(one.most[HR_ESTIMATE_STATES], (8 * one.parameters + 511) / 512 * 512);
    assert_int_equal(one.most[HR_ESTIMATE_MASTERS], (4 * one.parameters + 511) / 512 * 512);
    assert_true(four.most[HR_ESTIMATE_STATES] <= one.most[HR_ESTIMATE_STATES] / 4 + 512);
    assert_int_equal(away.most[HR_ESTIMATE_STATES], 0);
    assert_int_equal(away.most[HR_ESTIMATE_MASTERS], 0);
    /* Gradients move to the host as well, but those of the largest layer. */
    const int64_t layer = 2 * (one.trained_parameters - 2 * 320 * 64) / 3;
    assert_true(away.components[HR_ESTIMATE_GRADIENTS] >= layer - 2 * 4 * 64);
    assert_true(away.most[HR_ESTIMATE_GRADIENTS] < one.most[HR_ESTIMATE_GRADIENTS]);
}

static void frozen_parameters_have_no_gradient(void **state)
{
    (void)state;
    hr_config config = config_of("llama");
    hr_error err;
    const hr_estimate_answer all = estimate(&config, HR_FRAMEWORK_PYTORCH, "");
    assert_int_equal(hr_config_set_word(&config, "train.freeze=*mlp*", &err), HR_OK);
    const hr_estimate_answer some = estimate(&config, HR_FRAMEWORK_PYTORCH, "");
    assert_int_equal(all.trained_parameters - some.trained_parameters, 3 * 3 * 64 * 192);
    assert_int_equal(some.components[HR_ESTIMATE_STATES], 8 * some.trained_parameters);
}

/* The count without a simulation is that of the simulation, and of the shapes: d_model 64, d_ff
 * 192, three layers, a vocabulary of 320. */
static void adapters_are_counted_as_they_are_placed(void **state)
{
    (void)state;
    static const struct {
        const char *family, *targets;
        int64_t sides;
    } cases[] = {
        { "opt", "q_proj,out_proj", 3 * 2 * 128 },
        { "opt", "all-linear", 3 * (4 * 128 + 2 * 256) },
        { "llama", "all-linear", 3 * (4 * 128 + 3 * 256) },
        { "llama", "q_proj,lm_head", 3 * 128 + 64 + 320 },
        { "gpt2", "c_proj", 3 * (128 + 256) },
        { "gpt_neox", "query_key_value", 3 * (64 + 192) },
        { "llama", "proj", 0 },
    };
    enum { RANK = 8 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hr_config config = config_of(cases[i].family);
        const int64_t count = hr_estimate_adapter_parameters(&config, RANK, cases[i].targets);
        assert_int_equal(count, RANK * cases[i].sides);
        if (!count) continue;
        char word[96];
        snprintf(word, sizeof word, "lora=%d:%s", RANK, cases[i].targets);
        assert_int_equal(pytorch(cases[i].family, word).trained_parameters, count);
    }
}

static void frameworks_have_their_defaults(void **state)
{
    (void)state;
    hr_config config = config_of("llama");
    hr_estimate_settings s;
    hr_error err;
    assert_int_equal(hr_config_set_word(&config, "train.dtype=bf16", &err), HR_OK);
    hr_estimate_settings_of(&config, HR_FRAMEWORK_HF_TRAINER, &s);
    assert_int_equal(s.weights, HR_ESTIMATE_FP32);
    assert_int_equal(s.autocast, HR_ESTIMATE_BF16);
    assert_int_equal(s.update, HR_ESTIMATE_UPDATE_FUSED);
    assert_false(s.checkpointing);
    hr_estimate_settings_of(&config, HR_FRAMEWORK_TRL, &s);
    assert_int_equal(s.weights, HR_ESTIMATE_FP32);
    assert_true(s.checkpointing);
    assert_int_equal(s.loss, HR_ESTIMATE_LOSS_CHUNKED);
    hr_estimate_settings_of(&config, HR_FRAMEWORK_AXOLOTL, &s);
    assert_int_equal(s.weights, HR_ESTIMATE_BF16);
    hr_estimate_settings_of(&config, HR_FRAMEWORK_DEEPSPEED_Z3, &s);
    assert_int_equal(s.zero_stage, 3);
}

/* Every assumption accepts the value that it prints. */
static void assumptions_read_what_they_print(void **state)
{
    (void)state;
    const hr_config config = config_of("llama");
    const hr_estimate_assumption *one;
    char value[HR_ESTIMATE_VALUE_BYTES], again[HR_ESTIMATE_VALUE_BYTES];
    char word[HR_ESTIMATE_VALUE_BYTES + 32];
    hr_estimate_settings settings;
    hr_error err;
    hr_estimate_settings_of(&config, HR_FRAMEWORK_PYTORCH, &settings);
    for (int32_t i = 0; (one = hr_estimate_assumption_at(i)); i++) {
        snprintf(word, sizeof word, "%s=%s", one->name, hr_estimate_value(&settings, i, value));
        if (hr_estimate_assume(&settings, word, &err) != HR_OK) fail_msg("%s", err.message);
        assert_string_equal(hr_estimate_value(&settings, i, again), value);
    }
}

static void bad_assumptions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word, *message;
    } cases[] = {
        { "attention", "--assume takes NAME=VALUE, such as checkpointing=on; got \"attention\"" },
        { "=eager", "--assume takes NAME=VALUE, such as checkpointing=on; got \"=eager\"" },
        { "attentoin=eager",
          "--assume: \"attentoin\" is not an assumption; the nearest is attention" },
        { "foo=1", "--assume: \"foo\" is not an assumption; headroom plan --as NAME lists all" },
        { "attention=flash",
          "--assume attention takes one of sdpa, eager, broadcast; got \"flash\"" },
        { "weights=int8", "--assume weights: trained weights are fp32, bf16, fp16; int8 is for "
                          "frozen ones: base=int8 with lora" },
        { "weights=fp64", "--assume weights takes one of fp32, bf16, fp16; got \"fp64\"" },
        { "batch=0", "--assume batch takes a number of sequences from 1 to 1073741824; got \"0\"" },
        { "batch=-4",
          "--assume batch takes a number of sequences from 1 to 1073741824; got \"-4\"" },
        { "world=99999999999999999999", "--assume world takes a number of processes from 1 to "
                                        "1073741824; got \"99999999999999999999\"" },
        { "zero=4", "--assume zero takes 0 to 3; got \"4\"" },
        { "block=0", "--assume block takes 1 to 65536; got \"0\"" },
        { "lora=8", "--assume lora takes RANK:MODULES, or none, such as 16:q_proj,v_proj; got "
                    "\"8\"" },
        { "lora=0:q_proj", "--assume lora takes RANK:MODULES, or none, such as 16:q_proj,v_proj; "
                           "got \"0:q_proj\"" },
        { "lora-dropout=nan", "--assume lora-dropout takes 0 to 1; got \"nan\"" },
        { "checkpointing=yes", "--assume checkpointing takes one of on, off; got \"yes\"" },
        { "npt=materialized", "--assume npt takes materialized:RANK[:LAYERS], or none, such as "
                              "materialized:16; got \"materialized\"" },
    };
    const hr_config config = config_of("llama");
    hr_estimate_settings settings, before;
    hr_error err;
    hr_estimate_settings_of(&config, HR_FRAMEWORK_PYTORCH, &settings);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        before = settings;
        assert_int_equal(hr_estimate_assume(&settings, cases[i].word, &err), HR_USAGE);
        assert_string_equal(err.message, cases[i].message);
        assert_memory_equal(&before, &settings, sizeof before);
    }
}

static void impossible_estimates_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word, *message;
    } cases[] = {
        { "accumulation=3", "accumulation=3 does not divide the batch of 2 sequences" },
        { "base=nf4", "base: only frozen weights can have a dtype of their own; set lora too" },
        { "lora=8:c_attn", "lora: no module of the llama family is named \"c_attn\"" },
        { "seq-len=1073741824",
          "the estimate is beyond what can be counted; use a smaller model, batch or sequence" },
    };
    const hr_config config = config_of("llama");
    hr_estimate_settings settings;
    hr_estimate_answer answer;
    hr_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_estimate_settings_of(&config, HR_FRAMEWORK_PYTORCH, &settings);
        settings.attention = HR_ESTIMATE_EAGER;
        assert_int_equal(hr_estimate_assume(&settings, cases[i].word, &err), HR_OK);
        assert_int_equal(make(&config, &settings, &answer, &err), HR_USAGE);
        assert_string_equal(err.message, cases[i].message);
    }
    hr_estimate_settings_of(&config, HR_FRAMEWORK_PYTORCH, &settings);
    assert_int_equal(hr_estimate_make(&config, &settings, &answer, 1, &answer, &err), HR_FAILURE);
    int32_t framework;
    assert_int_equal(hr_estimate_framework("jax", &framework, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "\"jax\" is not a known framework; known are pytorch"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_sum_to_the_tensors_of_the_peak),
        cmocka_unit_test(the_update_starts_with_sixteen_bytes_per_parameter),
        cmocka_unit_test(parameters_are_those_of_the_model),
        cmocka_unit_test(checkpointing_keeps_less_and_moves_no_weight),
        cmocka_unit_test(states_follow_the_dtype_of_the_weights),
        cmocka_unit_test(adapters_are_trained_alone_and_in_fp32),
        cmocka_unit_test(adapters_are_counted_as_they_are_placed),
        cmocka_unit_test(a_quantized_base_has_four_bits_and_scales),
        cmocka_unit_test(a_base_in_one_dtype_is_the_whole_model),
        cmocka_unit_test(more_processes_share_the_states_of_deepspeed),
        cmocka_unit_test(frozen_parameters_have_no_gradient),
        cmocka_unit_test(frameworks_have_their_defaults),
        cmocka_unit_test(assumptions_read_what_they_print),
        cmocka_unit_test(bad_assumptions_are_refused),
        cmocka_unit_test(impossible_estimates_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
