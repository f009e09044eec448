/* SPDX-License-Identifier: Apache-2.0 */
/* model/optimizer.c - the table of optimizers. */
#include "model/optimizer.h"

#include "ops/adafactor/adafactor_build.h"
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

static const hr_state factored[] = {
    [HR_ADAFACTOR_ROWS] = { "rows", "adafactor_rows.safetensors", HR_STATE_ROWS, HR_F32, false },
    [HR_ADAFACTOR_COLUMNS] = { "columns", "adafactor_columns.safetensors", HR_STATE_COLUMNS, HR_F32,
                               false },
    [HR_ADAFACTOR_MOMENT] = { "moment 1", "adafactor_moment.safetensors", HR_STATE_ELEMENTS, HR_F32,
                              false },
};

static hr_update_attr settings_of(const hr_config *config)
{
    return (hr_update_attr){ .beta1 = config->train.optimizer.beta1,
                             .beta2 = config->train.optimizer.beta2,
                             .eps = config->train.optimizer.eps };
}

static void adam(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_adamw, settings_of(config), MOMENTS, norm_scale, lr);
}

static void adamw(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                  int32_t lr)
{
    hr_update_attr attr = settings_of(config);
    attr.decoupled = true;
    hr_build_update(builder, param, HR_OP_adamw, attr, MOMENTS, norm_scale, lr);
}

static void sgd(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                int32_t lr)
{
    hr_build_update(builder, param, HR_OP_sgd, settings_of(config), 1, norm_scale, lr);
}

static void lion(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_lion, settings_of(config), 1, norm_scale, lr);
}

static bool has_moment(const hr_config *config)
{
    return config->train.optimizer.adafactor.beta1 > 0;
}

static void adafactor(hr_builder *builder, const hr_config *config, int32_t param,
                      int32_t norm_scale, int32_t lr)
{
    const hr_adafactor_attr attr = {
        .eps1 = config->train.optimizer.adafactor.eps1,
        .eps2 = config->train.optimizer.adafactor.eps2,
        .clip_threshold = config->train.optimizer.adafactor.clip_threshold,
        .decay_rate = config->train.optimizer.adafactor.decay_rate,
        .beta1 = config->train.optimizer.adafactor.beta1,
        .scale_parameter = config->train.optimizer.adafactor.scale_parameter,
        .relative_step = config->train.optimizer.adafactor.relative_step,
    };
    hr_build_adafactor(builder, param, attr, norm_scale, lr);
}

const hr_optimizer hr_optimizers[] = {
    [HR_OPTIMIZER_ADAM] = { "adam", moments, MOMENTS, adam },
    [HR_OPTIMIZER_ADAMW] = { "adamw", moments, MOMENTS, adamw },
    [HR_OPTIMIZER_SGD] = { "sgd", &momentum, 1, sgd },
    [HR_OPTIMIZER_LION] = { "lion", &lion_momentum, 1, lion },
    [HR_OPTIMIZER_ADAFACTOR] = { "adafactor", factored, sizeof factored / sizeof *factored,
                                 adafactor, .has_last = has_moment, .whole = true },
};

int32_t hr_config_states(const hr_config *config, hr_state states[HR_STATES_MAX])
{
    const hr_optimizer *optimizer = &hr_optimizers[config->train.optimizer.kind];
    const bool last = !optimizer->has_last || optimizer->has_last(config);
    int32_t count = 0;
    for (; count < optimizer->state_count - !last; count++) {
        states[count] = optimizer->states[count];
        if (config->memory.moments == HR_PLACE_FILE) states[count].space = HR_SPACE_FILE;
    }
    if (config->train.ema_decay > 0) states[count++] = hr_average_state;
    return count;
}
