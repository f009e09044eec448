/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/names.c - one table per family. */
#include "estimate/names.h"

#include "config/config.h"

static const hr_estimate_names llama = { .prefix = "model.layers.%lld.",
                                         .parts = { [HR_WEIGHT_NORM_1] = "input_layernorm",
                                                    [HR_WEIGHT_NORM_2] = "post_attention_layernorm",
                                                    [HR_WEIGHT_Q] = "self_attn.q_proj",
                                                    [HR_WEIGHT_K] = "self_attn.k_proj",
                                                    [HR_WEIGHT_V] = "self_attn.v_proj",
                                                    [HR_WEIGHT_O] = "self_attn.o_proj",
                                                    [HR_WEIGHT_GATE] = "mlp.gate_proj",
                                                    [HR_WEIGHT_UP] = "mlp.up_proj",
                                                    [HR_WEIGHT_DOWN] = "mlp.down_proj",
                                                    [HR_WEIGHT_NORM_Q] = "self_attn.q_norm",
                                                    [HR_WEIGHT_NORM_K] = "self_attn.k_norm" },
                                         .table = "model.embed_tokens",
                                         .norm = "model.norm",
                                         .head = "lm_head" };
static const hr_estimate_names gpt_neox = {
    .prefix = "gpt_neox.layers.%lld.",
    .parts = { [HR_WEIGHT_NORM_1] = "input_layernorm",
               [HR_WEIGHT_NORM_2] = "post_attention_layernorm",
               [HR_WEIGHT_Q] = "attention.query_key_value",
               [HR_WEIGHT_O] = "attention.dense",
               [HR_WEIGHT_UP] = "mlp.dense_h_to_4h",
               [HR_WEIGHT_DOWN] = "mlp.dense_4h_to_h" },
    .table = "gpt_neox.embed_in",
    .norm = "gpt_neox.final_layer_norm",
    .head = "embed_out"
};
static const hr_estimate_names gpt2 = { .prefix = "transformer.h.%lld.",
                                        .parts = { [HR_WEIGHT_NORM_1] = "ln_1",
                                                   [HR_WEIGHT_NORM_2] = "ln_2",
                                                   [HR_WEIGHT_Q] = "attn.c_attn",
                                                   [HR_WEIGHT_O] = "attn.c_proj",
                                                   [HR_WEIGHT_UP] = "mlp.c_fc",
                                                   [HR_WEIGHT_DOWN] = "mlp.c_proj" },
                                        .table = "transformer.wte",
                                        .positions = "transformer.wpe",
                                        .norm = "transformer.ln_f",
                                        .head = "lm_head" };
static const hr_estimate_names gpt_neo = { .prefix = "transformer.h.%lld.",
                                           .parts = { [HR_WEIGHT_NORM_1] = "ln_1",
                                                      [HR_WEIGHT_NORM_2] = "ln_2",
                                                      [HR_WEIGHT_Q] = "attn.attention.q_proj",
                                                      [HR_WEIGHT_K] = "attn.attention.k_proj",
                                                      [HR_WEIGHT_V] = "attn.attention.v_proj",
                                                      [HR_WEIGHT_O] = "attn.attention.out_proj",
                                                      [HR_WEIGHT_UP] = "mlp.c_fc",
                                                      [HR_WEIGHT_DOWN] = "mlp.c_proj" },
                                           .table = "transformer.wte",
                                           .positions = "transformer.wpe",
                                           .norm = "transformer.ln_f",
                                           .head = "lm_head" };
static const hr_estimate_names opt = { .prefix = "model.decoder.layers.%lld.",
                                       .parts = { [HR_WEIGHT_NORM_1] = "self_attn_layer_norm",
                                                  [HR_WEIGHT_NORM_2] = "final_layer_norm",
                                                  [HR_WEIGHT_Q] = "self_attn.q_proj",
                                                  [HR_WEIGHT_K] = "self_attn.k_proj",
                                                  [HR_WEIGHT_V] = "self_attn.v_proj",
                                                  [HR_WEIGHT_O] = "self_attn.out_proj",
                                                  [HR_WEIGHT_UP] = "fc1",
                                                  [HR_WEIGHT_DOWN] = "fc2" },
                                       .table = "model.decoder.embed_tokens",
                                       .positions = "model.decoder.embed_positions",
                                       .norm = "model.decoder.final_layer_norm",
                                       .head = "lm_head" };
static const hr_estimate_names needle = { .prefix = "layers.%lld.",
                                          .parts = { [HR_WEIGHT_NORM_1] = "ln_q",
                                                     [HR_WEIGHT_NORM_2] = "ln_mlp",
                                                     [HR_WEIGHT_NORM_Q] = "ln_k",
                                                     [HR_WEIGHT_NORM_K] = "ln_v",
                                                     [HR_WEIGHT_Q] = "wq",
                                                     [HR_WEIGHT_K] = "wk",
                                                     [HR_WEIGHT_V] = "wv",
                                                     [HR_WEIGHT_O] = "wo",
                                                     [HR_WEIGHT_UP] = "w1",
                                                     [HR_WEIGHT_DOWN] = "w2" },
                                          .table = "tok_emb",
                                          .positions = "pos_emb",
                                          .norm = "ln_f",
                                          .head = "head" };
static const hr_estimate_names wide = {
    .prefix = "layers.%lld.",
    .parts = { [HR_WEIGHT_UP] = "w_in", [HR_WEIGHT_NORM_1] = "alpha" },
    .table = "tok_emb",
    .factor = "decoder.a",
    .expansion = "w_expand",
    .expansion_bias = "b_expand",
    .head = "decoder"
};
static const hr_estimate_names yxanul = { .prefix = "layers.%lld.",
                                          .parts = { [HR_WEIGHT_NORM_1] = "norm_attn",
                                                     [HR_WEIGHT_NORM_2] = "norm_mlp",
                                                     [HR_WEIGHT_Q] = "wq",
                                                     [HR_WEIGHT_K] = "wk",
                                                     [HR_WEIGHT_V] = "wv",
                                                     [HR_WEIGHT_O] = "wo",
                                                     [HR_WEIGHT_GATE] = "gate",
                                                     [HR_WEIGHT_UP] = "up",
                                                     [HR_WEIGHT_DOWN] = "down" },
                                          .table = "E",
                                          .factor = "P",
                                          .norm = "norm_f",
                                          .head = "head" };

const hr_estimate_names *hr_estimate_names_of(int32_t family)
{
    switch (family) {
    case HR_FAMILY_GPT_NEOX: return &gpt_neox;
    case HR_FAMILY_GPT2: return &gpt2;
    case HR_FAMILY_GPT_NEO: return &gpt_neo;
    case HR_FAMILY_OPT: return &opt;
    case HR_FAMILY_NEEDLE: return &needle;
    case HR_FAMILY_WIDE: return &wide;
    case HR_FAMILY_YXANUL: return &yxanul;
    default: return &llama;
    }
}
