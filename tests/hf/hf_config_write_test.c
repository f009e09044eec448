/* SPDX-License-Identifier: Apache-2.0 */
/* hf_config_write_test.c - a written config.json reads back equal, for every family. */
#include "config/config_keys.h"
#include "hf/config_case.h"
#include "model/family.h"

static void a_written_config_reads_back_equal(void **state)
{
    (void)state;
    static const char *const kinds[] = { "none", "linear", "llama3", "yarn", "dynamic" };
    for (int32_t i = 0; i < HR_FAMILIES * 12; i++) {
        const int32_t family = i / 12, turn = i % 12;
        const uint32_t neox = family == HR_FAMILY_GPT_NEOX;
        hr_config config, back;
        hr_error err;
        char text[4096];
        hr_writer writer = { text, sizeof text };
        hr_config_default(&config);
        config.model.family = family;
        const uint32_t traits = hr_family_of(&config)->traits;
        config.model.d_model = 48;
        config.model.n_heads = 6;
        config.model.n_layers = 3;
        config.model.d_ff = 77;
        config.model.vocab_size = 300;
        config.model.norm_eps = family == HR_FAMILY_OPT ? 1e-5 : 3e-7;
        config.model.attention.pattern = turn % 4;
        config.model.attention.window = turn % 4 ? 3 : 1; /* no effect with a dense pattern */
        if (neox) config.model.rotary_fraction = 0.5;
        if (neox) config.model.parallel_residual = turn % 2;
        if (neox || traits & HR_READS_GROUPS) config.model.rope_theta = 12345.5;
        config.model.tie_embeddings = HR_TIE_FALSE;
        if (traits & HR_MAY_TIE && turn % 2) config.model.tie_embeddings = HR_TIE_TRUE;
        if (!(traits & HR_MAY_TIE)) config.model.tie_embeddings = HR_TIE_AUTO;
        if (!(traits & HR_HAS_STATES)) config.model.positions = 999;
        if (traits & HR_READS_RANK) config.model.embedding_rank = 7;
        if (traits & HR_READS_GROUPS) {
            config.model.n_kv_heads = 2;
            config.model.head_dim = 10;
            assert_int_equal(
                hr_config_set(&config, "model.rope_scaling.kind", kinds[turn % 5], &err), HR_OK);
            if (turn % 5) config.model.rope_scaling.factor = 2.5;
            if (turn % 5 == 4) config.model.positions = 0; /* dynamic: no limit */
        }
        if (family == HR_FAMILY_MISTRAL && !(turn % 4))
            config.model.attention.sliding_window = turn / 4 * 5;
        if (traits & HR_MIXES_ATTENTION && !(turn % 4)) {
            static const char *const lists[] = { "", "full sliding", "sliding full*2",
                                                 "full*2 sliding", "full sliding*2" };
            config.model.n_layers = 3 + turn % 3;
            config.model.attention.sliding_window = 7;
            strcpy(config.model.attention.layer_types, lists[(turn / 4 + family) % 5]);
        }
        if (traits & HR_READS_EXPANSION) config.model.expansion = 123;
        if (traits & HR_READS_EXPANSION && turn % 2) config.model.decoder_rank = 9;
        if (traits & HR_HAS_STATES) { /* no heads, norms or MLP */
            config.model.n_heads = 4;
            config.model.d_ff = 4 * config.model.d_model;
            config.model.norm_eps = 1e-5;
            config.model.attention.pattern = 0;
            config.model.attention.window = 1;
        }
        hr_hf_config_write(&config, HR_WEIGHTS_COMPUTE, &writer);
        assert_false(writer.cut);
        is_taken(text, &back);
        for (int32_t k = 0; k < hr_config_row_count(); k++) {
            char mine[HR_PATH_BYTES];
            const char *name = hr_config_key(k)->name;
            if (strncmp(name, "model.", 6) != 0) continue;
            assert_int_equal(hr_config_get(&config, name, mine, sizeof mine, &err), HR_OK);
            key_is(&back, name, mine);
        }
    }
}

/* Other software has no window for llama: with one, the model is a mistral and otherwise the
 * same. */
static void a_llama_with_a_window_is_written_as_a_mistral(void **state)
{
    (void)state;
    static const char *const kinds[] = { "none", "linear", "llama3", "yarn", "dynamic" };
    for (int32_t turn = 0; turn < 12; turn++) {
        hr_config config, back;
        hr_error err;
        char text[4096];
        hr_writer writer = { text, sizeof text };
        hr_config_default(&config);
        config.model.family = HR_FAMILY_LLAMA;
        config.model.tie_embeddings = turn % 2 ? HR_TIE_TRUE : HR_TIE_FALSE;
        config.model.n_kv_heads = 2;
        config.model.head_dim = 10;
        config.model.positions = 999;
        config.model.rope_scaling.factor = 2.5;
        assert_int_equal(hr_config_set(&config, "model.rope_scaling.kind", kinds[turn % 5], &err),
                         HR_OK);
        if (!(turn % 5)) config.model.rope_scaling.factor = 8; /* no effect */
        if (turn % 5 == 4) config.model.positions = 0;         /* dynamic: no limit */
        config.model.attention.sliding_window = 5 + turn;
        hr_hf_config_write(&config, HR_WEIGHTS_COMPUTE, &writer);
        assert_non_null(strstr(text, "\"architectures\": [\"MistralForCausalLM\"]"));
        assert_non_null(strstr(text, "\"model_type\": \"mistral\""));
        assert_null(strstr(text, "llama\""));
        is_taken(text, &back);
        config.model.family = HR_FAMILY_MISTRAL;
        assert_memory_equal(&back.model, &config.model, sizeof back.model);
    }
}

static void a_pattern_unknown_to_other_software_is_noted(void **state)
{
    (void)state;
    hr_config config;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    strcpy(config.train.out, "out");
    assert_null(hr_hf_config_note(&config));
    config.model.attention.pattern = 1;
    assert_non_null(strstr(hr_hf_config_note(&config), "other software will use dense attention"));
    config.model.family = HR_FAMILY_NEEDLE; /* unknown to other software */
    assert_null(hr_hf_config_note(&config));
    config.model.family = HR_FAMILY_LLAMA;
    config.train.out[0] = 0; /* no output */
    assert_null(hr_hf_config_note(&config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_config_reads_back_equal),
        cmocka_unit_test(a_llama_with_a_window_is_written_as_a_mistral),
        cmocka_unit_test(a_pattern_unknown_to_other_software_is_noted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
