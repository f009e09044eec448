/* SPDX-License-Identifier: Apache-2.0 */
/* weights_test.c - saved weights are finite, and config.json has the keys that transformers reads.
 * train_test compares the contents of a saved file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "checkpoint/weights.h"
#include "support/folder.h"
#include "support/rig.h"

enum { STAGING_BYTES = 4096, SEED = 7 };

/* Writes all parameters as zeros, except one element. */
static hr_status write_with(const hr_program *program, const char *directory, int32_t param,
                            int64_t element, float value, hr_error *err)
{
    static char staging[STAGING_BYTES];
    const int64_t text_bytes = hr_weights_text_bytes(program);
    char *text = malloc((size_t)text_bytes);
    hr_weights_out out;
    hr_status status = hr_weights_begin(&out, program, HR_KEPT_WEIGHTS, directory, text, text_bytes,
                                        err);
    for (int32_t p = 0; p < program->param_count && status == HR_OK; p++) {
        const hr_tensor *tensor = &program->tensors[program->params[p].master];
        const int64_t K = program->params[p].dims[0], N = hr_max(program->params[p].dims[1], 1);
        float *master = calloc(1, (size_t)hr_tensor_bytes(tensor));
        if (p == param)
            master[hr_layout_index((hr_layout)tensor->layout, K, N, element / N, element % N)] =
                value;
        status = hr_weights_add(&out, p, master, staging, sizeof staging, err);
        free(master);
    }
    hr_weights_abort(&out);
    free(text);
    return status;
}

static void non_finite_weights_are_never_saved(void **state)
{
    (void)state;
    const float values[] = { NAN, -NAN, INFINITY, -INFINITY };
    hr_folder folder = hr_folder_open();
    print_message("seed %d\n", SEED);
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        rig r;
        hr_error err;
        hr_config config;
        hr_config_default(&config);
        config.model.family = family;
        config.model.d_model = 40;
        config.model.n_heads = 5;
        config.model.n_layers = 1;
        config.model.d_ff = 72;
        config.train.batch = 1;
        config.train.seq_len = 8;
        rig_build(&r, &config, 1, 0, 0, 0);
        const hr_program *program = &r.compiled.program;
        assert_int_equal(write_with(program, folder.path, HR_NONE, 0, 0, &err), HR_OK);
        for (int32_t p = 0; p < program->param_count; p++) {
            const int64_t count = rig_elements(&program->params[p]);
            const uint64_t draw = hr_random_mix((uint64_t)(SEED + p));
            const int64_t elements[] = { 0, (int64_t)(draw % (uint64_t)count), count - 1 };
            for (int32_t i = 0; i < 3; i++) {
                assert_int_equal(
                    write_with(program, folder.path, p, elements[i], values[(p + i) % 4], &err),
                    HR_DIVERGED);
                assert_non_null(strstr(err.message, program->params[p].external_name));
                assert_non_null(strstr(err.message, " has NaN or Inf values"));
            }
        }
        assert_int_equal(hr_folder_count(&folder, ""), 0);
        rig_close(&r);
    }
    hr_folder_close(&folder);
}

/* ---- config.json */

static rig small_rig(const hr_config *wanted)
{
    rig r;
    hr_config config = *wanted;
    config.model.d_model = 48;
    config.model.n_heads = 6;
    config.model.n_layers = 1;
    config.model.d_ff = 72;
    config.train.batch = 1;
    config.train.seq_len = 8;
    rig_build(&r, &config, 1, 0, 0, 0);
    return r;
}

/* Parses config.json of such a model; the caller calls json_decref. */
static json_t *config_of(const hr_config *config)
{
    rig r = small_rig(config);
    const int64_t text_bytes = hr_weights_text_bytes(&r.compiled.program);
    char *text = malloc((size_t)text_bytes);
    json_error_t where;
    const int64_t bytes = hr_weights_config(&r.config, &r.compiled.program, text, text_bytes);
    json_t *file = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &where);
    if (!file) fail_msg("config.json:%d: %s", where.line, where.text);
    free(text);
    rig_close(&r);
    return file;
}

static void expect_integer(const json_t *object, const char *key, int64_t expected)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("%s is no integer", key);
    assert_int_equal(json_integer_value(value), expected);
}

static void expect_real(const json_t *object, const char *key, double expected)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("%s is no number", key);
    assert_true(json_number_value(value) == expected);
}

static void expect_text(const json_t *object, const char *key, const char *expected)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) fail_msg("%s is no string", key);
    assert_string_equal(json_string_value(value), expected);
}

static void expect_architecture(const json_t *file, const char *expected)
{
    const json_t *all = json_object_get(file, "architectures");
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(json_string_value(json_array_get(all, 0)), expected);
}

static void expect_shape(const json_t *file, const char *family)
{
    expect_text(file, "model_type", family);
    expect_text(file, "torch_dtype", "float32");
    expect_integer(file, "hidden_size", 48);
    expect_integer(file, "num_attention_heads", 6);
    expect_integer(file, "num_hidden_layers", 1);
    expect_integer(file, "intermediate_size", 72);
    expect_integer(file, "vocab_size", 256);
    expect_integer(file, "max_position_embeddings", 8);
}

static void expect_scaling(const json_t *file, const char *kind)
{
    const json_t *scaling = json_object_get(file, "rope_scaling");
    if (!strcmp(kind, "none")) {
        assert_null(scaling);
        return;
    }
    const bool is_llama3 = !strcmp(kind, "llama3");
    expect_text(scaling, "rope_type", kind);
    expect_real(scaling, "factor", 2.5);
    assert_int_equal(json_object_size(scaling), is_llama3 ? 5 : 2);
    if (!is_llama3) return;
    expect_real(scaling, "low_freq_factor", 1.25);
    expect_real(scaling, "high_freq_factor", 6.5);
    expect_integer(scaling, "original_max_position_embeddings", 4096);
}

static void the_config_of_llama_has_its_heads_and_rope_options(void **state)
{
    static const char *const kinds[] = { "none", "linear", "llama3" };
    (void)state;
    for (int32_t k = 0; k < 6; k++) {
        const char *kind = kinds[k % 3];
        const bool grouped = k < 3;
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        config.model.family = HR_FAMILY_LLAMA;
        config.model.n_kv_heads = grouped ? 2 : 0;
        config.model.head_dim = grouped ? 10 : 0;
        config.model.norm_eps = 3e-6;
        config.model.rope_theta = 500000.5;
        config.model.attention.sliding_window = grouped ? 5 : 0;
        rig_must(hr_config_set(&config, "model.rope_scaling.kind", kind, &err), &err);
        config.model.rope_scaling.factor = 2.5;
        config.model.rope_scaling.low_freq_factor = 1.25;
        config.model.rope_scaling.high_freq_factor = 6.5;
        config.model.rope_scaling.original_positions = 4096;
        json_t *file = config_of(&config);
        expect_shape(file, grouped ? "mistral" : "llama"); /* a sliding window makes it a mistral */
        expect_architecture(file, grouped ? "MistralForCausalLM" : "LlamaForCausalLM");
        expect_text(file, "hidden_act", "silu");
        expect_integer(file, "num_key_value_heads", grouped ? 2 : 6);
        expect_integer(file, "head_dim", grouped ? 10 : 8);
        if (grouped) expect_integer(file, "sliding_window", 5);
        else assert_null(json_object_get(file, "sliding_window"));
        expect_real(file, "rms_norm_eps", 3e-6);
        expect_real(file, "rope_theta", 500000.5);
        assert_true(json_is_false(json_object_get(file, "tie_word_embeddings")));
        assert_true(json_is_false(json_object_get(file, "attention_bias")));
        assert_true(json_is_false(json_object_get(file, "mlp_bias")));
        expect_scaling(file, kind);
        json_decref(file);
    }
}

static void the_config_of_gpt_neox_has_its_rope_and_residual_options(void **state)
{
    (void)state;
    for (int32_t parallel = 0; parallel < 2; parallel++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = HR_FAMILY_GPT_NEOX;
        config.model.norm_eps = 3e-6;
        config.model.rope_theta = 500000.5;
        config.model.rotary_fraction = 0.5;
        config.model.parallel_residual = parallel;
        json_t *file = config_of(&config);
        expect_shape(file, "gpt_neox");
        expect_architecture(file, "GPTNeoXForCausalLM");
        expect_text(file, "hidden_act", "gelu");
        expect_real(file, "layer_norm_eps", 3e-6);
        expect_real(file, "rotary_emb_base", 500000.5);
        expect_real(file, "rotary_pct", 0.5);
        assert_true(json_is_true(json_object_get(file, "attention_bias")));
        const json_t *residual = json_object_get(file, "use_parallel_residual");
        assert_true(parallel ? json_is_true(residual) : json_is_false(residual));
        assert_null(json_object_get(file, "rope_scaling"));
        json_decref(file);
    }
}

/* transformers has no needle, so its config has no architectures. */
static void the_config_of_needle_names_no_architecture(void **state)
{
    (void)state;
    hr_config config;
    hr_config_default(&config);
    config.model.norm_eps = 3e-6;
    config.model.family = HR_FAMILY_NEEDLE;
    json_t *file = config_of(&config);
    expect_shape(file, "needle");
    assert_null(json_object_get(file, "architectures"));
    expect_text(file, "hidden_act", "relu");
    expect_real(file, "layer_norm_eps", 3e-6);
    json_decref(file);
}

/* ---- destinations */

static void a_directory_in_place_of_a_file_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = { "model.safetensors", "config.json" };
    hr_folder folder = hr_folder_open();
    hr_config config;
    hr_config_default(&config);
    hr_error err;
    assert_int_equal(hr_weights_check(&config, folder.path, &err), HR_OK);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(mkdir(hr_folder_path(&folder, names[i]), 0700), 0);
        assert_int_equal(hr_weights_check(&config, folder.path, &err), HR_USAGE);
        assert_non_null(strstr(err.message, names[i]));
        assert_int_equal(rmdir(hr_folder_path(&folder, names[i])), 0);
    }
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(non_finite_weights_are_never_saved),
        cmocka_unit_test(the_config_of_llama_has_its_heads_and_rope_options),
        cmocka_unit_test(the_config_of_gpt_neox_has_its_rope_and_residual_options),
        cmocka_unit_test(the_config_of_needle_names_no_architecture),
        cmocka_unit_test(a_directory_in_place_of_a_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
