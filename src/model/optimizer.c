/* SPDX-License-Identifier: Apache-2.0 */
/* model/optimizer.c - the table of optimizers. */
#include "model/optimizer.h"

#include "ops/list.h"

enum { MOMENTS = 2 };

static const hr_state moments[MOMENTS] = {
    { "moment 1", "moment_1.safetensors", HR_STATE_ELEMENTS, HR_F32, false },
    { "moment 2", "moment_2.safetensors", HR_STATE_ELEMENTS, HR_F32, false },
};
static const hr_state momentum = { "momentum", "momentum.safetensors", HR_STATE_ELEMENTS, HR_F32,
                                   false };
static const hr_state lion_momentum = { "momentum", "lion_momentum.safetensors", HR_STATE_ELEMENTS,
                                        HR_F32, false };
const hr_state hr_average_state = { "average", "average.safetensors", HR_STATE_ELEMENTS, HR_F32,
                                    true };

static void adam(hr_builder *builder, int32_t param, hr_update_attr attr, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_adamw, attr, MOMENTS, norm_scale, lr);
}

static void adamw(hr_builder *builder, int32_t param, hr_update_attr attr, int32_t norm_scale,
                  int32_t lr)
{
    attr.decoupled = true;
    adam(builder, param, attr, norm_scale, lr);
}

static void sgd(hr_builder *builder, int32_t param, hr_update_attr attr, int32_t norm_scale,
                int32_t lr)
{
    hr_build_update(builder, param, HR_OP_sgd, attr, 1, norm_scale, lr);
}

static void lion(hr_builder *builder, int32_t param, hr_update_attr attr, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_lion, attr, 1, norm_scale, lr);
}

const hr_optimizer hr_optimizers[] = {
    [HR_OPTIMIZER_ADAM] = { "adam", moments, MOMENTS, adam },
    [HR_OPTIMIZER_ADAMW] = { "adamw", moments, MOMENTS, adamw },
    [HR_OPTIMIZER_SGD] = { "sgd", &momentum, 1, sgd },
    [HR_OPTIMIZER_LION] = { "lion", &lion_momentum, 1, lion },
};

int32_t hr_config_states(const hr_config *config, hr_state states[HR_STATES_MAX])
{
    const hr_optimizer *optimizer = &hr_optimizers[config->train.optimizer.kind];
    int32_t count = 0;
    for (; count < optimizer->state_count; count++) {
        states[count] = optimizer->states[count];
        if (config->memory.moments == HR_PLACE_FILE) states[count].space = HR_SPACE_FILE;
    }
    if (config->train.ema_decay > 0) states[count++] = hr_average_state;
    return count;
}
