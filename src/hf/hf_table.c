/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_table.c - the table of options and keys. */
#include "hf/hf_table.h"

#include <stddef.h>
#include <string.h>

const hr_hf_architecture hr_hf_architectures[] = {
    { 'n', "GPTNeoXForCausalLM", "gpt_neox" },
    { 'l', "LlamaForCausalLM", "llama" },
    { 'g', "GPT2LMHeadModel", "gpt2" },
    { 'o', "OPTForCausalLM", "opt" },
    { 'm', "MistralForCausalLM", "mistral" },
    { 'q', "Qwen2ForCausalLM", "qwen2" },
    { '3', "Qwen3ForCausalLM", "qwen3" },
    { 'p', "GPTNeoForCausalLM", "gpt_neo" },
    { 'e', NULL, "needle" },
    { 'y', NULL, "yxanul" },
    { 'w', NULL, "wide" },
};

_Static_assert(sizeof hr_hf_architectures / sizeof *hr_hf_architectures == HR_HF_ARCHITECTURES,
               "the table is as long as it is said to be");

/* Defaults of an option that is absent or null. */
#define NEEDED ""    /* none: it is required */
#define DERIVED NULL /* the key's own default, derived from other keys */
#define ANY NULL     /* without a key: any value */

const hr_hf_option hr_hf_options[] = {
    { "nlomq3pyew", "hidden_size", "model.d_model", NEEDED },
    { "g", "n_embd", "model.d_model", NEEDED },
    { "nlomq3yew", "num_hidden_layers", "model.n_layers", NEEDED },
    { "g", "n_layer", "model.n_layers", NEEDED },
    { "p", "num_layers", "model.n_layers", "24" },
    { "nlomq3ye", "num_attention_heads", "model.n_heads", NEEDED },
    { "g", "n_head", "model.n_heads", NEEDED },
    { "p", "num_heads", "model.n_heads", NEEDED },
    { "nlmq3ye", "intermediate_size", "model.d_ff", NEEDED },
    { "g", "n_inner", "model.d_ff", DERIVED },
    { "p", "intermediate_size", "model.d_ff", DERIVED },
    { "o", "ffn_dim", "model.d_ff", NEEDED },
    { "nlgomq3pyew", "vocab_size", "model.vocab_size", NEEDED },
    { "nlmq3y", "max_position_embeddings", "model.positions", DERIVED },
    { "g", "n_positions", "model.positions", "1024" },
    { "op", "max_position_embeddings", "model.positions", "2048" },
    { "e", "max_position_embeddings", "model.positions", DERIVED },
    { "y", "embedding_rank", "model.embedding_rank", DERIVED },
    { "w", "expansion", "model.expansion", DERIVED },
    { "w", "decoder_rank", "model.decoder_rank", "none" },
    { "ne", "layer_norm_eps", "model.norm_eps", "1e-5" },
    { "gp", "layer_norm_epsilon", "model.norm_eps", "1e-5" },
    { "o", "", "model.norm_eps", "1e-5" },
    { "lmq3y", "rms_norm_eps", "model.norm_eps", "1e-6" },

    { "n", "hidden_act", NULL, "gelu" },
    { "lmq3y", "hidden_act", NULL, "silu" },
    { "e", "hidden_act", NULL, "relu" },
    { "gp", "activation_function", NULL, "gelu_new" },
    { "o", "activation_function", NULL, "relu" },

    { "ly", "num_key_value_heads", "model.n_kv_heads", DERIVED },
    { "m", "num_key_value_heads", "model.n_kv_heads", "8" },
    { "q3", "num_key_value_heads", "model.n_kv_heads", "32" },
    { "lmqy", "head_dim", "model.head_dim", DERIVED },
    { "3", "head_dim", "model.head_dim", "128" },
    { "n", "rotary_pct rope_parameters.partial_rotary_factor", "model.rotary_fraction", "0.25" },
    { "lmq3y", "rope_parameters.partial_rotary_factor partial_rotary_factor", NULL, "1" },
    { "n", "rotary_emb_base rope_parameters.rope_theta", "model.rope_theta", "10000" },
    { "lmq3y", "rope_theta rope_parameters.rope_theta", "model.rope_theta", "10000" },
    { "nlmq3y",
      "rope_scaling.rope_type rope_scaling.type rope_parameters.rope_type rope_parameters.type",
      "model.rope_scaling.kind", "default" },
    { "nlmq3y", "rope_scaling.factor rope_parameters.factor", "model.rope_scaling.factor", "8" },
    { "nlmq3y", "rope_scaling.low_freq_factor rope_parameters.low_freq_factor",
      "model.rope_scaling.low_freq_factor", "1" },
    { "nlmq3y", "rope_scaling.high_freq_factor rope_parameters.high_freq_factor",
      "model.rope_scaling.high_freq_factor", "4" },
    { "nlmq3y",
      "rope_scaling.original_max_position_embeddings "
      "rope_parameters.original_max_position_embeddings",
      "model.rope_scaling.original_positions", "8192" },
    { "nlmq3y", "rope_scaling.beta_fast rope_parameters.beta_fast", "model.rope_scaling.beta_fast",
      "32" },
    { "nlmq3y", "rope_scaling.beta_slow rope_parameters.beta_slow", "model.rope_scaling.beta_slow",
      "1" },
    { "nlmq3y", "rope_scaling.attention_factor rope_parameters.attention_factor",
      "model.rope_scaling.attention_factor", "auto" },
    { "y", "sliding_window", "model.attention.sliding_window", "none" },
    { "m", "sliding_window", "model.attention.sliding_window", "4096" },
    { "q3", "sliding_window", "model.attention.sliding_window", "4096" },
    { "p", "window_size", "model.attention.sliding_window", "256" },
    /* hf_layers.c reads and writes these */
    { "q3", "use_sliding_window max_window_layers", NULL, ANY },
    { "lq3", "layer_types", NULL, ANY },
    { "p", "attention_types attention_layers", NULL, ANY },

    { "n", "use_parallel_residual", "model.parallel_residual", "true" },
    { "n", "attention_bias", NULL, "true" },
    { "lm3y", "attention_bias", NULL, "false" },
    { "lmq3y", "mlp_bias", NULL, "false" },
    { "nlmq3", "tie_word_embeddings", "model.tie_embeddings", "false" },
    { "gopy", "tie_word_embeddings", "model.tie_embeddings", "true" },
    { "g", "scale_attn_weights", NULL, "true" },
    { "g", "scale_attn_by_inverse_layer_idx", NULL, "false" },
    { "g", "reorder_and_upcast_attn", NULL, "false" },
    { "g", "add_cross_attention", NULL, "false" },
    { "o", "do_layer_norm_before", NULL, "true" },
    { "o", "_remove_final_layer_norm", NULL, "false" },
    { "o", "enable_bias", NULL, "true" },
    { "o", "layer_norm_elementwise_affine", NULL, "true" },

    { "nlgomq3pye", "attention_pattern", "model.attention.pattern", "dense" },
    { "nlgomq3pye", "attention_block", "model.attention.block", "64" },
    { "nlgomq3pye", "attention_window", "model.attention.window", "1" },
    { "nlgomq3pye", "attention_stride", "model.attention.stride", "auto" },

    /* From HR_HF_WRITTEN on: accepted with one value that has no effect, not written. */
    { "l", "is_llama_config", NULL, "true" },
    { "nlmq3y", "rope_scaling.truncate rope_parameters.truncate", NULL, "true" },
    { "l", "rope_interleaved", NULL, "false" },
    { "q3", "use_mrope", NULL, "false" },
    { "g", "n_special", NULL, "0" },
    { "nlomq3p", "add_cross_attention", NULL, "false" },
    { "nlgomq3p", "tie_encoder_decoder", NULL, "false" },
    { "nlgomq3p", "use_bfloat16", NULL, "false" },
    { "nlgomq3p", "tf_legacy_loss", NULL, "false" },
    { "q", "attention_bias", NULL, "true" },
    { "nlgomp", "max_window_layers", NULL, ANY },
    { "n", "=partial_rotary_factor", "model.rotary_fraction", ANY },
    { "n", "=rope_theta", "model.rope_theta", ANY },
    { "o", "=word_embed_proj_dim", "model.d_model", ANY },
};

_Static_assert(sizeof hr_hf_options / sizeof *hr_hf_options == HR_HF_OPTIONS,
               "the table is as long as it is said to be");

/* Options about the origin of the file, the original training, tokenizers or sampling, which do not
 * change what the model computes. Dropout comes from the recipe. Names with a leading underscore
 * are internal to transformers. */
static const char *const without_effect[] = {
    "transformers_version",
    "torch_dtype",
    "dtype",
    "use_cache",
    "initializer_range",
    "initializer_factor",
    "init_std",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "tokenizer_class",
    "n_ctx",
    "hidden_dropout",
    "attention_dropout",
    "classifier_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "resid_dropout",
    "embed_dropout",
    "dropout",
    "activation_dropout",
    "layerdrop",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "is_decoder",
    "is_encoder_decoder",
    "id2label",
    "label2id",
    "num_labels",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "prefix",
    "pretraining_tp",
    "gradient_checkpointing",
    "output_past",
    "chunk_size_feed_forward",
    "architectures",
    "model_type",
    "finetuning_task",
    "torchscript",
    "problem_type",
    "name_or_path",
    "attn_implementation",
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "predict_special_tokens",
    "max_sequence_length",
    "transformers.js_config",
    "custom_pipelines",
    "unsloth_fixed",
    "unsloth_version",
    "sep_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "exponential_decay_length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "output_scores",
    "return_dict_in_generate",
    "remove_invalid_values",
};

bool hr_hf_has(const hr_hf_option *row, int32_t architecture)
{
    return strchr(row->letters, hr_hf_architectures[architecture].letter) != NULL;
}

bool hr_hf_has_no_effect(const char *name)
{
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (!strcmp(without_effect[i], name)) return true;
    return *name == '_' && strcmp(name, "_remove_final_layer_norm") != 0;
}
