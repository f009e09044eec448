/* SPDX-License-Identifier: Apache-2.0 */
/* model/nsa.h - native sparse attention of the llama-like families (model.attention.kind=nsa).
 *
 *     o = g_c attention(q, kc, vc) + g_s attention(q, k, v, blocks) + g_w window(q, k, v)
 *
 * kc and vc are keys and values of groups of tokens (ops/compress/), blocks are chosen by the
 * attention to kc (ops/choose/), and g = sigmoid(x wg + bg) for each head. Without the compressed
 * branch, blocks are chosen by the attention to the mean of the keys of each group, which has no
 * weights, and the gates have no bias.
 *
 * Source   Yuan et al. 2025, arXiv:2502.11089. */
#ifndef HR_MODEL_NSA_H
#define HR_MODEL_NSA_H

#include "model/blocks.h"

/* Weights of a layer beside those of dense attention; an absent one is HR_NONE. */
enum {
    HR_NSA_GATE,
    HR_NSA_GATE_BIAS,
    HR_NSA_KEY_POSITION,
    HR_NSA_KEY_W1,
    HR_NSA_KEY_B1,
    HR_NSA_KEY_W2,
    HR_NSA_KEY_B2,
    HR_NSA_VALUE_POSITION,
    HR_NSA_VALUE_W1,
    HR_NSA_VALUE_B1,
    HR_NSA_VALUE_W2,
    HR_NSA_VALUE_B2,
    HR_NSA_COMPRESSED_K, /* with nsa.own_keys, as the next three */
    HR_NSA_COMPRESSED_V,
    HR_NSA_WINDOW_K,
    HR_NSA_WINDOW_V,
    HR_NSA_WEIGHTS
};

/* Whether a recipe has it, and with the compressed branch. Pure. */
bool hr_nsa_is_on(const hr_config *config);
bool hr_nsa_compresses(const hr_config *config);

/* Checks the sizes of a recipe with it.
 * Errors   USAGE  one sentence: the size and what is possible. */
HR_MUST_CHECK hr_status hr_nsa_check(const hr_config *config, hr_error *err);

/* The same of the length of training. A trained model takes shorter texts.
 * Errors   USAGE  no group is whole, or there are too many blocks. */
HR_MUST_CHECK hr_status hr_nsa_check_length(const hr_config *config, hr_error *err);

/* The names and shapes of the weights, [HR_NSA_WEIGHTS]; what the recipe lacks has no name. */
void hr_nsa_weights(const hr_config *config, hr_layer_weight *weights);

/* Keys and values of the branches: rotated keys. */
typedef struct {
    int32_t k[3], v[3]; /* compressed, selected, window; may be the same */
} hr_nsa_keys;

/* o of rotated queries q. x: the rows that the projections read. */
int32_t hr_build_nsa(hr_builder *builder, const hr_config *config, const int32_t *weights,
                     int32_t x, int32_t q, hr_nsa_keys keys, const hr_attention_attr *attr);

/* The caches of a layer for generating text, and the steps that clear them. */
void hr_build_nsa_caches(hr_builder *builder, const hr_config *config,
                         const hr_attention_attr *attr, int32_t caches[HR_CACHES_MAX]);

#endif
