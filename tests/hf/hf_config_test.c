/* SPDX-License-Identifier: Apache-2.0 */
/* hf_config_test.c - config.json to the keys of a recipe; unknown options are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/config_keys.h"
#include "hf/config_case.h"
#include "model/family.h"

#define NEOX \
    "\"architectures\":[\"GPTNeoXForCausalLM\"],\"model_type\":\"gpt_neox\",\"vocab_size\":101," \
    "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":3," \
    "\"intermediate_size\":61"
#define SIZES \
    "\"vocab_size\":101,\"hidden_size\":40,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4,\"intermediate_size\":61"
#define LLAMA \
    "\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":101,\"hidden_size\":40," \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"intermediate_size\":61"
#define QWEN2 "\"architectures\":[\"Qwen2ForCausalLM\"],\"num_key_value_heads\":2," SIZES
#define NEO \
    "\"architectures\":[\"GPTNeoForCausalLM\"],\"vocab_size\":101,\"hidden_size\":40," \
    "\"num_layers\":2,\"num_heads\":4"
#define ALWAYS_4 \
    ",\"return_dict\":true,\"output_hidden_states\":false,\"torchscript\":false,\"dtype\":null," \
    "\"pruned_heads\":{},\"chunk_size_feed_forward\":0,\"is_encoder_decoder\":false," \
    "\"is_decoder\":false,\"cross_attention_hidden_size\":null,\"add_cross_attention\":false," \
    "\"tie_encoder_decoder\":false,\"finetuning_task\":null,\"id2label\":{\"0\":\"LABEL_0\"}," \
    "\"label2id\":{\"LABEL_0\":0},\"task_specific_params\":null,\"problem_type\":null," \
    "\"tokenizer_class\":null,\"prefix\":null,\"bos_token_id\":1,\"pad_token_id\":null," \
    "\"eos_token_id\":[2,3],\"sep_token_id\":null,\"decoder_start_token_id\":null," \
    "\"max_length\":20,\"min_length\":0,\"do_sample\":false,\"early_stopping\":false," \
    "\"num_beams\":1,\"temperature\":1.0,\"top_k\":50,\"top_p\":1.0,\"typical_p\":1.0," \
    "\"repetition_penalty\":1.0,\"length_penalty\":1.0,\"no_repeat_ngram_size\":0," \
    "\"encoder_no_repeat_ngram_size\":0,\"bad_words_ids\":null,\"num_return_sequences\":1," \
    "\"output_scores\":false,\"return_dict_in_generate\":false,\"forced_bos_token_id\":null," \
    "\"forced_eos_token_id\":null,\"remove_invalid_values\":false," \
    "\"exponential_decay_length_penalty\":null,\"suppress_tokens\":null," \
    "\"begin_suppress_tokens\":null,\"num_beam_groups\":1,\"diversity_penalty\":0.0," \
    "\"_name_or_path\":\"\",\"transformers_version\":\"4.57.1\",\"tf_legacy_loss\":false," \
    "\"use_bfloat16\":false,\"output_attentions\":false"

static void is_refused(const char *text, const char *said)
{
    hr_config config, before;
    hr_error err;
    hr_config_default(&before);
    const hr_status status = read_text(text, &config, &err);
    if (status != HR_CORRUPT || !strstr(err.message, said))
        fail_msg("%s: expected \"%s\", got %d \"%s\"", text, said, status,
                 status ? err.message : "");
    assert_null(strchr(err.message, '\n'));
    assert_memory_equal(&config, &before, sizeof config);
}

/* ---- accepted options */

/* The same model with the spellings of two versions of transformers. */
static void both_spellings_give_the_same_model(void **state)
{
    (void)state;
    static const char *const names[] = { "gpt_neox", "llama_gqa", "qwen3_tied" };
    for (int32_t i = 0; i < 3; i++) {
        char path[512];
        int64_t bytes;
        hr_config five, four;
        snprintf(path, sizeof path, HR_ORACLES "/hf/%s/config.json", names[i]);
        char *text = hr_folder_read(path, &bytes);
        is_taken(text, &five);
        free(text);
        snprintf(path, sizeof path, HR_ORACLES "/hf/%s/config.v4.json", names[i]);
        text = hr_folder_read(path, &bytes);
        is_taken(text, &four);
        free(text);
        assert_memory_equal(&five.model, &four.model, sizeof five.model);
        key_is(&five, "model.n_layers", "2");
        key_is(&five, "model.d_ff", "61");
        key_is(&five, "model.vocab_size", "101");
        if (i == 0) {
            key_is(&five, "model.family", "gpt_neox");
            key_is(&five, "model.rotary_fraction", "0.25");
            key_is(&five, "model.rope_theta", "10000");
            key_is(&five, "model.parallel_residual", "true");
            continue;
        }
        key_is(&five, "model.n_kv_heads", "2");
        if (i == 2) key_is(&five, "model.tie_embeddings", "true");
        if (i == 2) key_is(&five, "model.head_dim", "12");
        if (i == 2) continue;
        key_is(&five, "model.family", "llama");
        key_is(&five, "model.head_dim", "10");
        key_is(&five, "model.rope_theta", "500000");
        key_is(&five, "model.rope_scaling.kind", "llama3");
        key_is(&five, "model.rope_scaling.original_positions", "256");
    }
}

static void absent_options_have_the_defaults_of_transformers(void **state)
{
    (void)state;
    hr_config config;
    is_taken("{" LLAMA "}", &config);
    key_is(&config, "model.n_kv_heads", "auto");
    key_is(&config, "model.head_dim", "auto");
    key_is(&config, "model.norm_eps", "1e-06");
    key_is(&config, "model.rope_theta", "10000");
    key_is(&config, "model.rope_scaling.kind", "none");
    is_taken("{" LLAMA ",\"rope_scaling\":null,\"head_dim\":null,\"num_key_value_heads\":null,"
             "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5},"
             "\"pad_token_id\":null,\"mlp_bias\":null,\"_name_or_path\":\"x\"}",
             &config);
    key_is(&config, "model.rope_theta", "500000");
    is_taken("{" LLAMA
             ",\"quantization_config\":{\"activation_scheme\":\"dynamic\",\"fmt\":\"e4m3\","
             "\"modules_to_not_convert\":[\"lm_head\"],\"quant_method\":\"fp8\","
             "\"weight_block_size\":[128,128]}}",
             &config);
    is_taken("{" LLAMA ",\"quantization_config\":null}", &config);
    is_taken("{" LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", &config);
    key_is(&config, "model.rope_scaling.kind", "linear");
    key_is(&config, "model.rope_scaling.factor", "2");
    is_taken("{" LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,\"beta_fast\":16,"
             "\"original_max_position_embeddings\":128,\"truncate\":true}}",
             &config);
    key_is(&config, "model.rope_scaling.kind", "yarn");
    key_is(&config, "model.rope_scaling.original_positions", "128");
    key_is(&config, "model.rope_scaling.beta_fast", "16");
    key_is(&config, "model.rope_scaling.attention_factor", "auto");
    is_taken("{" LLAMA ",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\","
             "\"factor\":2}}",
             &config);
    key_is(&config, "model.rope_scaling.original_positions", "512");
    key_is(&config, "model.positions", "auto");
    is_taken("{" NEOX "}", &config);
    key_is(&config, "model.norm_eps", "1e-05");
    key_is(&config, "model.rotary_fraction", "0.25");
    is_taken("{" NEOX ",\"rotary_pct\":1.0,\"use_parallel_residual\":false}", &config);
    key_is(&config, "model.rotary_fraction", "1");
    key_is(&config, "model.parallel_residual", "false");
    key_is(&config, "model.dropout", "0");
    is_taken("{\"architectures\":[\"GPT2LMHeadModel\"],\"n_embd\":36,\"n_head\":3,\"n_layer\":2,"
             "\"vocab_size\":101,\"n_inner\":null,\"attn_pdrop\":0.1}",
             &config);
    key_is(&config, "model.d_ff", "144");
    key_is(&config, "model.positions", "1024");
    key_is(&config, "model.tie_embeddings", "true");
    is_taken("{\"architectures\":[\"OPTForCausalLM\"],\"hidden_size\":36,\"ffn_dim\":77,"
             "\"num_attention_heads\":3,\"num_hidden_layers\":2,\"vocab_size\":101,"
             "\"word_embed_proj_dim\":36,\"do_layer_norm_before\":true,\"prefix\":\"</s>\"}",
             &config);
    key_is(&config, "model.positions", "2048");
    is_taken("{\"architectures\":[\"MistralForCausalLM\"],\"vocab_size\":101,\"hidden_size\":64,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":16,\"intermediate_size\":61}",
             &config);
    key_is(&config, "model.attention.sliding_window", "4096");
    key_is(&config, "model.n_kv_heads", "8");
    is_taken("{\"architectures\":[\"MistralForCausalLM\"]," SIZES ",\"sliding_window\":null,"
             "\"num_key_value_heads\":2,\"hidden_act\":\"swish\"}",
             &config);
    key_is(&config, "model.attention.sliding_window", "none");
    is_taken("{\"architectures\":[\"Qwen2ForCausalLM\"]," SIZES ",\"sliding_window\":131072,"
             "\"use_sliding_window\":false,\"max_window_layers\":21,\"num_key_value_heads\":2,"
             "\"tie_word_embeddings\":true}",
             &config);
    key_is(&config, "model.attention.sliding_window", "none");
    key_is(&config, "model.tie_embeddings", "true");
    is_taken("{\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":101,\"hidden_size\":40,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":64,\"intermediate_size\":61}",
             &config);
    key_is(&config, "model.head_dim", "128");
    key_is(&config, "model.n_kv_heads", "32");
}

static void window_is(const char *text, const char *window, const char *layer_types)
{
    hr_config config;
    is_taken(text, &config);
    key_is(&config, "model.attention.sliding_window", window);
    key_is(&config, "model.attention.layer_types", layer_types);
}

#define FOUR \
    "\"num_hidden_layers\":4,\"vocab_size\":101,\"hidden_size\":40," \
    "\"num_attention_heads\":4,\"intermediate_size\":61,\"num_key_value_heads\":2"
#define WINDOW "{\"model_type\":\"qwen2\"," FOUR ",\"use_sliding_window\":true"
#define NEO_HEAD \
    "{\"model_type\":\"gpt_neo\",\"vocab_size\":101,\"hidden_size\":40,\"num_layers\":4," \
    "\"num_heads\":4,\"intermediate_size\":null,"
#define NEO_4 NEO_HEAD "\"attention_types\":"

static void layers_with_a_window_are_those_of_transformers(void **state)
{
    (void)state;
    window_is(WINDOW "}", "none", ""); /* from layer 28 on */
    window_is(WINDOW ",\"max_window_layers\":3,\"sliding_window\":9}", "9", "full*3 sliding");
    window_is(WINDOW ",\"max_window_layers\":0}", "4096", "");
    window_is(WINDOW ",\"max_window_layers\":4}", "none", "");
    window_is(WINDOW ",\"max_window_layers\":0,\"sliding_window\":null}", "none", "");
    window_is(WINDOW ",\"max_window_layers\":0,\"layer_types\":[\"sliding_attention\","
                     "\"full_attention\",\"sliding_attention\",\"full_attention\"]}",
              "4096", "sliding full");
    window_is("{\"model_type\":\"qwen3\"," FOUR ",\"use_sliding_window\":true,"
              "\"max_window_layers\":1,\"layer_types\":null}",
              "4096", "full sliding*3");
    window_is(NEO_4 "[[[\"global\",\"local\"],2]]}", "256", "full sliding");
    window_is(NEO_4 "[[[\"global\"],1],[[\"local\"],3]],\"window_size\":7}", "7", "full sliding*3");
    window_is(NEO_4 "[[[\"global\"],4]],\"attention_layers\":[\"global\",\"global\",\"global\","
                    "\"global\"]}",
              "none", "");
    window_is(NEO_4 "[[[\"local\"],4]]}", "256", "");
    window_is(NEO_HEAD "\"attention_layers\":[\"global\",\"local\",\"global\",\"local\"]}", "256",
              "full sliding");
}

/* Options that transformers 4.57 writes for every model, 5.23 for fewer, and others of published
 * folders. */
static void options_without_effect_are_ignored(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        { "{" LLAMA, ",\"is_llama_config\":true,\"rope_interleaved\":false,\"pretraining_tp\":1,"
                     "\"transformers.js_config\":{\"dtype\":\"q4\"},\"unsloth_fixed\":true,"
                     "\"sliding_window\":null" },
        { "{" NEOX, ",\"attention_bias\":true,\"classifier_dropout\":0.1,\"rope_scaling\":null,"
                    "\"rope_theta\":1e4,\"partial_rotary_factor\":0.25,\"custom_pipelines\":{}" },
        { "{\"model_type\":\"mistral\",\"architectures\":null," SIZES,
          ",\"num_key_value_heads\":2,\"partial_rotary_factor\":null" },
        { "{\"model_type\":\"qwen2\"," SIZES, ",\"num_key_value_heads\":2,\"use_mrope\":false,"
                                              "\"attention_bias\":true,\"layer_types\":"
                                              "[\"full_attention\",\"full_attention\"]" },
        { "{\"model_type\":\"qwen3\"," SIZES, ",\"num_key_value_heads\":2,"
                                              "\"attention_bias\":false,\"use_mrope\":false" },
        { "{\"model_type\":\"gpt2\",\"n_embd\":36,\"n_head\":3,\"n_layer\":2,\"vocab_size\":101",
          ",\"n_special\":0,\"predict_special_tokens\":true,\"summary_type\":\"cls_index\"" },
        { "{\"model_type\":\"opt\",\"hidden_size\":36,\"ffn_dim\":77,\"num_attention_heads\":3,"
          "\"num_hidden_layers\":2,\"vocab_size\":101",
          ",\"enable_bias\":true,\"_remove_final_layer_norm\":false,\"layerdrop\":0.0" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char plain[512], full[4096];
        hr_config bare, rich;
        snprintf(plain, sizeof plain, "%s%s}", texts[i][0],
                 strstr(texts[i][1], "num_key_value_heads") ? ",\"num_key_value_heads\":2" : "");
        snprintf(full, sizeof full, "%s%s" ALWAYS_4 "}", texts[i][0], texts[i][1]);
        is_taken(plain, &bare);
        is_taken(full, &rich);
        assert_memory_equal(&bare.model, &rich.model, sizeof bare.model);
    }
}

/* Other software ends its texts with these ids; values that are no ids are dropped. */
static void token_ids_are_kept(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { ",\"bos_token_id\":11,\"eos_token_id\":[ 7,\n 9 ],\"pad_token_id\":null",
          "  \"bos_token_id\": 11,\n  \"eos_token_id\": [7, 9],\n  \"pad_token_id\": null,\n" },
        { "", "" },
        { ",\"eos_token_id\":\"7\",\"pad_token_id\":3,\"bos_token_id\":{\"a\":[1]}",
          "  \"pad_token_id\": 3,\n" },
        { ",\"eos_token_id\":[1,\"x\",2],\"bos_token_id\":-1,\"pad_token_id\":true", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], written[8192];
        hr_config config, again;
        hr_writer writer = { written, sizeof written };
        snprintf(text, sizeof text, "{" LLAMA "%s}", cases[i][0]);
        is_taken(text, &config);
        assert_string_equal(config.token_ids, cases[i][1]);
        hr_hf_config_write(&config, HR_WEIGHTS_COMPUTE, &writer);
        assert_non_null(strstr(written, cases[i][1]));
        is_taken(written, &again);
        assert_string_equal(again.token_ids, cases[i][1]);
    }
    char many[2048] = "{" LLAMA ",\"pad_token_id\":3,\"eos_token_id\":[1";
    for (int32_t i = 0; i < 100; i++) strcat(many, ",100000");
    hr_config config;
    is_taken(strcat(many, "],\"bos_token_id\":1}"), &config);
    assert_string_equal(config.token_ids, "  \"pad_token_id\": 3,\n  \"bos_token_id\": 1,\n");
}

/* ---- refused options */

static void unknown_options_are_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "{}", "has neither \"architectures\" nor \"model_type\"" },
        { "{\"architectures\":[\"MambaForCausalLM\"]}",
          "architecture MambaForCausalLM is not supported" },
        { "{\"architectures\":[\"LlamaModel\"]}", "architecture LlamaModel is not supported" },
        { "{\"model_type\":\"mamba\"}", "architecture mamba is not supported" },
        { "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"gpt_neox\"}",
          "model_type is gpt_neox, but LlamaForCausalLM is a llama" },
        { "{\"architectures\":[\"LlamaForCausalLM\",\"X\"]}", "names more than one architecture" },
        { "{\"architectures\":7}", "\"architectures\" is not a list with one name" },
        { "{\"architectures\":[]}", "\"architectures\" is not a list with one name" },
        { "{" LLAMA ",\"architectures\":[\"OPTForCausalLM\"]}", "has \"architectures\" twice" },
        { "{" LLAMA ",\"word_embed_proj_dim\":40}",
          "\"word_embed_proj_dim\" is not a known option" },
        { "{" LLAMA ",\"rope_parameters.rope_theta\":9}", "\"rope_parameters.rope_theta\" is no" },
        { "{" LLAMA ",\"quantization_config\":7}", "\"quantization_config\" is not a mapping" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}",
          "quantization_config with quant_method \"gptq\" is not supported; headroom reads" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":5,"
          "\"weight_block_size\":[128,128]}}",
          "quant_method \"fp8\" and another \"" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":"
          "[\"a\",128]}}",
          "quant_method \"fp8\" and another \"" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"fp8\"}}",
          "quant_method \"fp8\" and another \"" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\","
          "\"weight_block_size\":[128,128]}}",
          "quant_method \"fp8\" and another \"" },
        { "{" LLAMA ",\"quantization_config\":{\"quant_method\":\"fp8\","
          "\"weight_block_size\":[128,64]}}",
          "quant_method \"fp8\" and another \"" },
        { "{" LLAMA ",\"rope_scaling\":[]}", "\"rope_scaling\" is not a mapping" },
        { "{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"none\"}}",
          "\"rope_type\" cannot be the text none" },
        { "{" LLAMA ",\"rope_scaling\":{\"short_factor\":[1,2]}}",
          "\"rope_scaling.short_factor\" has several values, only one is supported" },
        { "{" LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{"
          "\"rope_type\":\"linear\",\"rope_theta\":9}}",
          "\"rope_scaling\" has \"factor\", but \"rope_parameters\" has not" },
        { "{" LLAMA ",\"layer_types\":[\"full_attention\"]}",
          "\"layer_types\" has 1 entries for 2 layers" },
        { "{" NEOX ",\"rope_theta\":500}",
          "\"rope_theta\" is 500, but the other options make model.rope_theta 10000" },
        { "{" NEOX ",\"rotary_pct\":0.5,\"partial_rotary_factor\":0.25}",
          "\"partial_rotary_factor\" is 0.25, but the other options make "
          "model.rotary_fraction 0.5" },
        { "{" LLAMA ",\"logit_scale\":2}", "\"logit_scale\" is not a known option of llama" },
        { "{" LLAMA ",\"quantization_config\":{\"bits\":4}}",
          "quant_method \"\" is not supported" },
        { "{" LLAMA ",\"attention_bias\":true}",
          "\"attention_bias\" is true, only false is supported" },
        { "{" LLAMA ",\"mlp_bias\":true}", "\"mlp_bias\" is true, only false is supported" },
        { "{" LLAMA ",\"hidden_act\":\"gelu\"}", "\"hidden_act\" is gelu, only silu is supported" },
        { "{" LLAMA ",\"hidden_act\":null}", "\"hidden_act\" cannot be null" },
        { "{" LLAMA ",\"layer_types\":[\"full_attention\",\"chunked_attention\"]}",
          "\"layer_types\" has a type of layer that is not supported" },
        { "{" LLAMA ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
          "\"layer_types\" has layers with a sliding window, but there is none" },
        { "{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"longrope\",\"factor\":2}}",
          "\"rope_type\": model.rope_scaling.kind takes one of none, linear, llama3, yarn, "
          "dynamic; got \"longrope\"" },
        { "{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"linear\"}}",
          "rope type linear has no \"factor\"" },
        { "{" LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}}",
          "rope type llama3 has no \"low_freq_factor\"" },
        { "{" LLAMA ",\"rope_scaling\":{\"mscale\":32}}", "\"mscale\" is not a known option" },
        { "{" LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"rope_type\":\"llama3\"}}",
          "\"rope_scaling.type\" is linear, but \"rope_scaling.rope_type\" is llama3" },
        { "{" LLAMA ",\"rope_theta\":1e4,\"rope_parameters\":{\"rope_theta\":1e6}}",
          "\"rope_theta\" is 1e4, but \"rope_parameters.rope_theta\" is 1e6" },
        { "{" LLAMA ",\"rope_parameters\":{\"partial_rotary_factor\":0.5}}",
          "\"partial_rotary_factor\" is 0.5, only 1 is supported" },
        { "{" LLAMA ",\"sliding_window\":7}", "\"sliding_window\" is not a known option of llama" },
        { "{" LLAMA ",\"is_llama_config\":false}", "\"is_llama_config\" is false, only true is" },
        { "{" LLAMA ",\"rope_interleaved\":true}", "\"rope_interleaved\" is true, only false" },
        { "{" LLAMA ",\"pruned_heads\":{\"0\":[1]}}", "\"pruned_heads\" is not a known option" },
        { "{" LLAMA ",\"pruned_heads\":{", "no quoted key" },
        { "{" LLAMA ",\"add_cross_attention\":true}", "\"add_cross_attention\" is true, only" },
        { "{\"architectures\":[\"Qwen2ForCausalLM\"]," SIZES ",\"use_mrope\":true}",
          "\"use_mrope\" is true, only false is supported" },
        { "{" LLAMA ",\"use_mrope\":false}", "\"use_mrope\" is not a known option of llama" },
        { "{" LLAMA ",\"head_dim\":3}", "config.json: RoPE needs an even head width, not 3" },
        { "{" LLAMA ",\"num_key_value_heads\":3}",
          "config.json: model.n_kv_heads 3 does not divide model.n_heads 4" },
        { "{" NEOX ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2}}",
          "config.json: model.family gpt_neox has no model.rope_scaling.kind" },
        { "{" NEOX ",\"rotary_pct\":0.2}",
          "config.json: model.rotary_fraction 0.2 of a head of 16 is 3 elements" },
        { "{" LLAMA ",\"num_key_value_heads\":0}", "\"num_key_value_heads\" cannot be 0" },
        { "{" LLAMA ",\"num_key_value_heads\":\"2\"}",
          "\"num_key_value_heads\" cannot be the text 2" },
        { "{" LLAMA ",\"num_key_value_heads\":2.5}", "\"num_key_value_heads\": model.n_kv_heads" },
        { "{" LLAMA ",\"rope_theta\":null}", "\"rope_theta\" cannot be null" },
        { "{" LLAMA ",\"hidden_size\":40}", "has \"hidden_size\" twice" },
        { "{" LLAMA ",\"tie_word_embeddings\":\"false\"}", "\"tie_word_embeddings\" cannot be" },
        { "{" LLAMA ",\"tie_word_embeddings\":1}", "\"tie_word_embeddings\" cannot be 1" },
        { "{" QWEN2 ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
          "\"layer_types\" has sliding_attention, but \"use_sliding_window\" is false" },
        { "{" QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":null,\"layer_types\":["
          "\"full_attention\",\"sliding_attention\"]}",
          "\"layer_types\" has layers with a sliding window, but there is none" },
        { "{" QWEN2 ",\"use_sliding_window\":\"yes\"}",
          "\"use_sliding_window\" cannot be the text yes" },
        { "{" QWEN2 ",\"max_window_layers\":-1}", "\"max_window_layers\" cannot be -1" },
        { "{" QWEN2 ",\"layer_types\":\"full_attention\"}", "\"layer_types\" is not a list" },
        { "{" QWEN2 ",\"attention_layers\":[\"global\",\"local\"]}",
          "\"attention_layers\" is not a known option of qwen2" },
        { "{" NEO "}", "\"attention_types\" has 24 entries for 2 layers" },
        { "{" NEO ",\"attention_types\":[[[\"global\"],2]],\"attention_layers\":[\"global\","
          "\"local\"]}",
          "\"attention_types\" and \"attention_layers\" are different lists of layers" },
        { "{" NEO ",\"attention_types\":[[[\"global\"]]]}",
          "\"attention_types\" is not a list of types of layers" },
        { "{" NEO ",\"attention_types\":[[[\"global\"],-1]]}",
          "\"attention_types\" is not a list of types of layers" },
        { "{" NEO ",\"attention_types\":[[[\"global\"],4097]]}", "lists more than 4,096 layers" },
        { "{" NEO ",\"attention_types\":[[[\"mid\"],2]]}", "has a type of layer that is not" },
        { "{\"architectures\":[\"OPTForCausalLM\"],\"hidden_size\":36,"
          "\"word_embed_proj_dim\":18}",
          "\"num_hidden_layers\"" },
        { "{\"architectures\":[\"OPTForCausalLM\"],\"hidden_size\":36,\"ffn_dim\":77,"
          "\"num_attention_heads\":3,\"num_hidden_layers\":2,\"vocab_size\":101,"
          "\"word_embed_proj_dim\":18}",
          "\"word_embed_proj_dim\" is 18, but the other options make model.d_model 36" },
        { "{" NEOX ",\"use_parallel_residual\":\"true\"}", "\"use_parallel_residual\" cannot" },
        { "{" NEOX ",\"attention_bias\":false}",
          "\"attention_bias\" is false, only true is supported" },
        { "{" NEOX ",\"hidden_act\":\"gelu_fast\"}", "\"hidden_act\" is gelu_fast, only gelu is" },
        { "{\"model_type\":\"gpt_neox\",\"hidden_size\":8}", "has no \"num_hidden_layers\"" },
        { "{\"model_type\":\"gpt_neox\",\"hidden_size\":-8}", "\"hidden_size\": model.d_model" },
        { "{\"model_type\":\"gpt_neox\",\"hidden_size\":[8]}",
          "\"hidden_size\" has several values" },
        { "{\"model_type\":\"gpt_neox\",\"rope_scaling\":{\"a\":{}}}",
          "\"rope_scaling.a\" has several values" },
        { "{" LLAMA, "neither a comma nor the closing bracket" },
        { "[]", "wrong type of value" },
        { "", "unexpected end" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) is_refused(cases[i][0], cases[i][1]);
    char *large = calloc(1, 70000);
    memset(large, ' ', 69999);
    is_refused(large, "has more than 65,536 bytes, the limit");
    free(large);
    hr_config config;
    hr_error err;
    remove(hr_folder_path(&folder, "config.json"));
    assert_int_equal(hr_hf_config_read(folder.path, &config, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "config.json: no such file"));
}

/* ---- with given keys */

static void keys_that_contradict_the_folder_are_named(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    is_taken("{" LLAMA "}", &config);
    for (int32_t i = 0; i < 4; i++) {
        static const char *const given[][2] = { { "model.n_layers", "2" },
                                                { "model.n_layers", "4" }, /* also the default */
                                                { "model.family", "gpt_neox" },
                                                { "model.dropout", "0.5" } };
        hr_config_default(&config);
        assert_int_equal(hr_config_set(&config, "model.from", folder.path, &err), HR_OK);
        assert_int_equal(hr_config_set(&config, given[i][0], given[i][1], &err), HR_OK);
        const hr_status status = hr_config_adopt(&config, &err);
        assert_int_equal(status, i == 1 || i == 2 ? HR_USAGE : HR_OK);
        if (i == 1) assert_non_null(strstr(err.message, "model.n_layers is 4, but the model in"));
        if (i == 2) assert_non_null(strstr(err.message, "has llama; remove the key"));
        if (status != HR_OK) continue;
        key_is(&config, "model.family", "llama");
        key_is(&config, "model.d_model", "40");
        key_is(&config, "model.from", folder.path);
        key_is(&config, "model.dropout", i == 3 ? "0.5" : "0");
        assert_int_equal(hr_config_adopt(&config, &err), HR_OK); /* a second call changes nothing */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_spellings_give_the_same_model),
        cmocka_unit_test(absent_options_have_the_defaults_of_transformers),
        cmocka_unit_test(layers_with_a_window_are_those_of_transformers),
        cmocka_unit_test(options_without_effect_are_ignored),
        cmocka_unit_test(token_ids_are_kept),
        cmocka_unit_test(unknown_options_are_named),
        cmocka_unit_test(keys_that_contradict_the_folder_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
