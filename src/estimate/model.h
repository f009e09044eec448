/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/model.h - the models as PyTorch runs them: their parameters, and the operations of a
 * forward pass. Families that transformers has follow its code; needle, wide and yxanul follow the
 * same style. */
#ifndef HR_ESTIMATE_MODEL_H
#define HR_ESTIMATE_MODEL_H

#include "estimate/torch.h"

/* Parameters of a layer, of any family. */
enum {
    HR_WEIGHT_NORM_1,
    HR_WEIGHT_NORM_1_BIAS,
    HR_WEIGHT_NORM_2,
    HR_WEIGHT_NORM_2_BIAS,
    HR_WEIGHT_Q, /* or q, k and v in one */
    HR_WEIGHT_Q_BIAS,
    HR_WEIGHT_K,
    HR_WEIGHT_K_BIAS,
    HR_WEIGHT_V,
    HR_WEIGHT_V_BIAS,
    HR_WEIGHT_O,
    HR_WEIGHT_O_BIAS,
    HR_WEIGHT_GATE,
    HR_WEIGHT_UP,
    HR_WEIGHT_UP_BIAS,
    HR_WEIGHT_DOWN,
    HR_WEIGHT_DOWN_BIAS,
    HR_WEIGHT_NORM_Q, /* of heads; needle: of the inputs of k and v */
    HR_WEIGHT_NORM_Q_BIAS,
    HR_WEIGHT_NORM_K,
    HR_WEIGHT_NORM_K_BIAS,
    HR_WEIGHTS_OF_LAYER
};

typedef struct hr_estimate_model {
    hr_torch torch;
    const hr_config *config;
    const hr_estimate_settings *settings;
    int64_t D, F, V, L, H, G, head, B, T;
    hr_torch_parameter (*layers)[HR_WEIGHTS_OF_LAYER];
    hr_torch_parameter (*adapters)[HR_ADAPTER_PARTS * HR_WEIGHTS_OF_LAYER];
    hr_torch_parameter table_adapters[HR_ADAPTER_PARTS], head_adapters[HR_ADAPTER_PARTS];
    hr_torch_parameter table, positions, final_norm, final_bias, head_weight, factor, expansion,
        expansion_bias;
    bool tied;
    int64_t parameters, trained; /* elements */
    int64_t width_hidden;        /* bytes of an element of the residual stream */
    int64_t gathered;            /* elements of the largest layer */
    hr_tape_layer layer;
    int32_t mask; /* storage that checkpointing holds through the backward pass */
} hr_estimate_model;

/* Calls `each` for every trained parameter in the order of the model. */
typedef void (*hr_estimate_each)(void *context, const hr_torch_parameter *parameter);
void hr_estimate_parameters(const hr_estimate_model *model, hr_estimate_each each, void *context);

/* Declares the parameters of a model on its tape. Errors USAGE. */
HR_MUST_CHECK hr_status hr_estimate_model_open(const hr_config *config,
                                               const hr_estimate_settings *settings, hr_tape *tape,
                                               hr_region *region, hr_estimate_model *model,
                                               hr_error *err);

/* Runs a layer: hr_tape_layer with a hr_estimate_model. */
hr_value hr_estimate_layer_llama(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_gpt_neox(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_gpt2(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_gpt_neo(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_opt(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_needle(hr_tape *tape, const void *model, int64_t layer, hr_value x);
hr_value hr_estimate_layer_wide(hr_tape *tape, const void *model, int64_t layer, hr_value x);

/* From token ids to the loss; the logits are held, if any. */
hr_value hr_estimate_forward(hr_estimate_model *model, hr_value *logits);

#endif
