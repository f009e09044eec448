/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt.h - the decoder of GPT-2, shared by families with small differences.
 *
 *     h = h + attention(q, k, v) out + out_bias, with q, k, v of LN_1(h)
 *     h = h + act(LN_2(h) up + up_bias) down + down_bias
 *
 * Positions are learned. Queries, keys and values are one product or three; an absent weight is
 * HR_NONE. */
#ifndef HR_MODEL_GPT_H
#define HR_MODEL_GPT_H

#include "model/blocks.h"
#include "ops/linear/linear.h"

typedef enum {
    HR_GPT_LN_1,
    HR_GPT_LN_1_BIAS,
    HR_GPT_QKV, /* all queries, all keys, all values */
    HR_GPT_QKV_BIAS,
    HR_GPT_WQ,
    HR_GPT_WK,
    HR_GPT_WV,
    HR_GPT_BQ,
    HR_GPT_BK,
    HR_GPT_BV,
    HR_GPT_OUT,
    HR_GPT_OUT_BIAS,
    HR_GPT_LN_2,
    HR_GPT_LN_2_BIAS,
    HR_GPT_UP,
    HR_GPT_UP_BIAS,
    HR_GPT_DOWN,
    HR_GPT_DOWN_BIAS,
    HR_GPT_WEIGHTS
} hr_gpt_weight;

typedef struct hr_gpt_form {
    struct {
        hr_gpt_weight weight;
        const char *name;          /* format with one %lld for the layer */
    } weights[HR_GPT_WEIGHTS + 1]; /* in file order; ends with a null name */
    const char *table, *positions, *final_gain, *final_bias;
    int32_t positions_skipped; /* rows of the table of positions before that of position 0 */
    hr_act act;
    bool scales_out;   /* initial weights of out and down are divided by sqrt(2 n_layers) */
    bool plain_scores; /* not divided by the square root of the head width */
} hr_gpt_form;

/* hr_family_spec.params and .forward of a family with a form. */
void hr_gpt_params(hr_builder *builder, const hr_config *config, hr_model *model);
int32_t hr_gpt_forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids);

#endif
