/* SPDX-License-Identifier: Apache-2.0 */
/* model/llama.h - the decoder of Llama, shared by families with small differences.
 *
 *     q, k, v = rope(n_q(RMS_1(h) wq + bq)), rope(n_k(RMS_1(h) wk + bk)), RMS_1(h) wv + bv
 *     h = h + attention(q, k, v) wo
 *     h = h + (silu(RMS_2(h) wgate) o (RMS_2(h) wup)) wdown
 *
 * Several queries share a key. The biases, and the RMS norms n_q and n_k of each head, are
 * optional; an absent weight is HR_NONE. */
#ifndef HR_MODEL_LLAMA_H
#define HR_MODEL_LLAMA_H

#include "model/blocks.h"
#include "model/layer_types.h"
#include "model/nsa.h"

/* Weights of a layer. A family with its own names fills such a table. */
enum {
    HR_LLAMA_WQ,
    HR_LLAMA_WK,
    HR_LLAMA_WV,
    HR_LLAMA_WO,
    HR_LLAMA_GATE,
    HR_LLAMA_UP,
    HR_LLAMA_DOWN,
    HR_LLAMA_NORM_1,
    HR_LLAMA_NORM_2,
    HR_LLAMA_BQ,
    HR_LLAMA_BK,
    HR_LLAMA_BV,
    HR_LLAMA_NORM_Q,
    HR_LLAMA_NORM_K,
    HR_LLAMA_NSA, /* HR_NSA_WEIGHTS more (model/nsa.h) */
    HR_LLAMA_WEIGHTS = HR_LLAMA_NSA + HR_NSA_WEIGHTS
};

typedef struct {
    bool qkv_bias, head_norms;
} hr_llama_form;

/* Declares all parameters with the names of Hugging Face. */
void hr_llama_params(hr_builder *builder, const hr_config *config, hr_model *model,
                     hr_llama_form form);

/* Adds the table of RoPE angles. */
void hr_llama_tables(hr_builder *builder, const hr_config *config, hr_model *model);

/* From embedded rows to rows after the last norm. */
int32_t hr_llama_layers(hr_builder *builder, const hr_config *config, const hr_model *model,
                        int32_t h);

/* From token ids to rows after the last norm. */
int32_t hr_llama_forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                         int32_t ids);

#endif
