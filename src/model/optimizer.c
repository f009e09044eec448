/* SPDX-License-Identifier: Apache-2.0 */
/* model/optimizer.c - the table of optimizers. */
#include "model/optimizer.h"

#include <stddef.h>

#include "model/rules.h"
#include "ops/adafactor/adafactor_build.h"
#include "ops/list.h"
#include "ops/muon/muon_build.h"

enum { MOMENTS = 2 };

#define ELEMENTS(name, file) \
    { \
        name, file, HR_STATE_ELEMENTS, HR_F32, 0, false, false, HR_SPACE_HOST \
    }
#define FACTOR(name, file, shape) \
    { \
        name, file, shape, HR_F32, 0, false, false, HR_SPACE_HOST \
    }
#define SCALES(name, file) \
    { \
        name, file, HR_STATE_BLOCKS, HR_F32, 0, false, false, HR_SPACE_HOST \
    }

static const hr_state moments[MOMENTS] = {
    ELEMENTS("moment 1", "moment_1.safetensors"),
    ELEMENTS("moment 2", "moment_2.safetensors"),
};
static const hr_state moment_scales[MOMENTS] = {
    SCALES("scales 1", "moment_1_scales.safetensors"),
    SCALES("scales 2", "moment_2_root_scales.safetensors"),
};
static const hr_state momentum = ELEMENTS("momentum", "momentum.safetensors");
static const hr_state momentum_scales = SCALES("scales", "momentum_scales.safetensors");
static const hr_state lion_momentum = ELEMENTS("momentum", "lion_momentum.safetensors");
static const hr_state lion_scales = SCALES("scales", "lion_momentum_scales.safetensors");
const hr_state hr_average_state = { .name = "average",
                                    .file = "average.safetensors",
                                    .shape = HR_STATE_ELEMENTS,
                                    .dtype = HR_F32,
                                    .average = true };

static const hr_state residual = { .name = "residual",
                                   .shape = HR_STATE_RESIDUAL,
                                   .dtype = HR_U16 };
static const hr_state residual_bytes = { .name = "residual",
                                         .shape = HR_STATE_RESIDUAL_BYTES,
                                         .dtype = HR_U16 };

static const hr_state factored[] = {
    [HR_ADAFACTOR_ROWS] = FACTOR("rows", "adafactor_rows.safetensors", HR_STATE_ROWS),
    [HR_ADAFACTOR_COLUMNS] = FACTOR("columns", "adafactor_columns.safetensors", HR_STATE_COLUMNS),
    [HR_ADAFACTOR_MOMENT] = ELEMENTS("moment 1", "adafactor_moment.safetensors"),
};

/* Matrices of layers have a momentum, what else is trained the moments of AdamW. */
static const hr_state muon_states[MOMENTS] = {
    ELEMENTS("moment 1", "muon_moment_1.safetensors"),
    { .name = "moment 2",
      .file = "muon_moment_2.safetensors",
      .shape = HR_STATE_ELEMENTS,
      .outside = true },
};
static const hr_state muon_scales[MOMENTS] = {
    SCALES("scales 1", "muon_moment_1_scales.safetensors"),
    { .name = "scales 2",
      .file = "muon_moment_2_root_scales.safetensors",
      .shape = HR_STATE_BLOCKS,
      .outside = true },
};

static int64_t missed_by(const hr_builder *builder, const hr_config *config, int32_t param)
{
    return hr_rules_missed(config, builder->program->params[param].external_name);
}

static hr_update_attr settings_of(const hr_builder *builder, const hr_config *config, int32_t param)
{
    return (hr_update_attr){ .beta1 = config->train.optimizer.beta1,
                             .beta2 = config->train.optimizer.beta2,
                             .eps = config->train.optimizer.eps,
                             .missed = missed_by(builder, config, param) };
}

static void adam(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_adamw, settings_of(builder, config, param), MOMENTS,
                    MOMENTS, norm_scale, lr);
}

static void adamw(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                  int32_t lr)
{
    hr_update_attr attr = settings_of(builder, config, param);
    attr.decoupled = true;
    hr_build_update(builder, param, HR_OP_adamw, attr, MOMENTS, MOMENTS, norm_scale, lr);
}

static void sgd(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                int32_t lr)
{
    hr_build_update(builder, param, HR_OP_sgd, settings_of(builder, config, param), 1, 1,
                    norm_scale, lr);
}

static void lion(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                 int32_t lr)
{
    hr_build_update(builder, param, HR_OP_lion, settings_of(builder, config, param), 1, 1,
                    norm_scale, lr);
}

static bool has_moment(const hr_config *config)
{
    return config->train.optimizer.adafactor.beta1 > 0;
}

static void adafactor(hr_builder *builder, const hr_config *config, int32_t param,
                      int32_t norm_scale, int32_t lr)
{
    const hr_adafactor_attr attr = {
        .update.beta1 = config->train.optimizer.adafactor.beta1,
        .update.missed = missed_by(builder, config, param),
        .eps1 = config->train.optimizer.adafactor.eps1,
        .eps2 = config->train.optimizer.adafactor.eps2,
        .clip_threshold = config->train.optimizer.adafactor.clip_threshold,
        .decay_rate = config->train.optimizer.adafactor.decay_rate,
        .scale_parameter = config->train.optimizer.adafactor.scale_parameter,
        .relative_step = config->train.optimizer.adafactor.relative_step,
    };
    hr_build_adafactor(builder, param, attr, norm_scale, lr);
}

static void muon(hr_builder *builder, const hr_config *config, int32_t param, int32_t norm_scale,
                 int32_t lr)
{
    const hr_muon_attr attr = { .update.beta1 = config->train.optimizer.muon.momentum,
                                .steps = (uint8_t)config->train.optimizer.muon.steps,
                                .nesterov = config->train.optimizer.muon.nesterov };
    if (!hr_program_is_matrix(builder->program, param))
        adamw(builder, config, param, norm_scale, lr);
    else
        hr_build_muon(builder, param, attr, (hr_muon_scale)config->train.optimizer.muon.scale,
                      MOMENTS, norm_scale, lr);
}

const hr_optimizer hr_optimizers[] = {
    [HR_OPTIMIZER_ADAM] = { "adam", moments, moment_scales, MOMENTS, adam },
    [HR_OPTIMIZER_ADAMW] = { "adamw", moments, moment_scales, MOMENTS, adamw },
    [HR_OPTIMIZER_SGD] = { "sgd", &momentum, &momentum_scales, 1, sgd },
    [HR_OPTIMIZER_LION] = { "lion", &lion_momentum, &lion_scales, 1, lion },
    [HR_OPTIMIZER_ADAFACTOR] = { "adafactor", factored, NULL, sizeof factored / sizeof *factored,
                                 adafactor, .has_last = has_moment, .whole = true },
    [HR_OPTIMIZER_MUON] = { "muon", muon_states, muon_scales, MOMENTS, muon, .whole = true },
};

int32_t hr_config_states(const hr_config *config, hr_state states[HR_STATES_MAX])
{
    const hr_optimizer *optimizer = &hr_optimizers[config->train.optimizer.kind];
    const bool last = !optimizer->has_last || optimizer->has_last(config);
    static const hr_dtype dtypes[] = { HR_F32, HR_BF16, HR_U8, HR_F32 /* not chosen yet */ };
    const hr_dtype dtype = dtypes[config->train.state.moments];
    int32_t count = 0;
    for (; count < optimizer->state_count - !last; count++) {
        states[count] = optimizer->states[count];
        states[count].dtype = (uint8_t)dtype;
        if (dtype == HR_U8)
            states[count].zero = count == 0 ? HR_ZERO_CODE_SIGNED : HR_ZERO_CODE_UNSIGNED;
        if (config->memory.moments == HR_PLACE_FILE) states[count].space = HR_SPACE_FILE;
    }
    for (int32_t i = 0; i < optimizer->state_count && dtype == HR_U8; i++)
        states[count++] = optimizer->scales[i];
    if (config->train.ema_decay > 0) states[count++] = hr_average_state;
    if (config->train.state.master == HR_MASTERS_RESIDUAL16) states[count++] = residual;
    if (config->train.state.master == HR_MASTERS_RESIDUAL8) states[count++] = residual_bytes;
    return count;
}
