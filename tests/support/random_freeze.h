/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/random_freeze.h - random frozen parameters by (seed, turn): the same in every
 * layer, everything up to some layer, or any. */
#ifndef HR_TESTS_SUPPORT_RANDOM_FREEZE_H
#define HR_TESTS_SUPPORT_RANDOM_FREEZE_H

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "sections/assemble.h"
#include "support/random_config.h"

enum { FREEZE_NOTHING, FREEZE_KINDS, FREEZE_BOTTOM, FREEZE_BOTTOM_AND_KINDS, FREEZE_ANY, FREEZES };

static inline void freeze_add(hr_config *config, const char *pattern)
{
    const size_t length = strlen(config->train.freeze);
    if (length + strlen(pattern) + 2 > sizeof config->train.freeze) return;
    snprintf(config->train.freeze + length, sizeof config->train.freeze - length, "%s%s",
             length ? " " : "", pattern);
}

/* Freezes the parameter in all layers, by * for the layer's number. */
static inline void freeze_in_all_layers(hr_config *config, const hr_program *program, int32_t p)
{
    const hr_param *param = &program->params[p];
    const int32_t layer = program->tensors[param->weight].layer;
    char number[16], pattern[sizeof param->external_name + 8];
    snprintf(number, sizeof number, ".%d.", layer);
    const char *at = layer == HR_NONE ? NULL : strstr(param->external_name, number);
    if (!at) snprintf(pattern, sizeof pattern, "%s", param->external_name);
    else
        snprintf(pattern, sizeof pattern, "%.*s.*.%s", (int)(at - param->external_name),
                 param->external_name, at + strlen(number));
    freeze_add(config, pattern);
}

/* Freezes everything before the layers, and the layers up to `layer`, a digit. */
static inline void freeze_bottom(hr_config *config, const hr_program *program, int64_t layer)
{
    char pattern[32];
    for (int32_t p = 0; program->tensors[program->params[p].weight].layer == HR_NONE; p++)
        freeze_add(config, program->params[p].external_name);
    snprintf(pattern, sizeof pattern, "*.[0-%lld].*", (long long)layer);
    if (layer >= 0) freeze_add(config, pattern);
}

/* Writes train.freeze; at least one parameter is always trained. Weights are not stored. */
static inline void random_freeze(hr_config *config, int32_t kind, uint64_t seed, uint64_t turn)
{
    hr_error err;
    const int64_t bytes = (hr_compile_bytes(config) + 63) / 64 * 64;
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_program program;
    config->train.freeze[0] = 0;
    config->model.weights = HR_WEIGHTS_COMPUTE;
    hr_status status = hr_model_assemble(config, &hr_cpu_backend, 1, &region, &program, &err);
    if (status != HR_OK) abort();
    if (kind == FREEZE_BOTTOM || kind == FREEZE_BOTTOM_AND_KINDS)
        freeze_bottom(config, &program,
                      between(seed, turn, 70, -1, hr_min(config->model.n_layers, 10) - 1));
    for (uint32_t i = 0; kind != FREEZE_BOTTOM && kind && i <= draw(seed, turn, 71) % 5; i++) {
        const int32_t p = (int32_t)between(seed, turn, 72 + i, 0, program.param_count - 1);
        if (kind == FREEZE_ANY) freeze_add(config, program.params[p].external_name);
        else freeze_in_all_layers(config, &program, p);
    }
    region.used = 0;
    status = hr_model_assemble(config, &hr_cpu_backend, 1, &region, &program, &err);
    if (status != HR_OK) config->train.freeze[0] = 0;
    free(memory);
}

/* Draws the format of frozen weights. Returns whether any weight is stored in it. */
static inline bool random_stored(hr_config *config, uint64_t seed, uint64_t turn)
{
    config->model.weights = (int32_t)(draw(seed, turn, 90) % HR_WEIGHTS_AUTO);
    const int64_t bytes = (hr_compile_bytes(config) + 63) / 64 * 64;
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_program program;
    if (hr_model_assemble(config, &hr_cpu_backend, 1, &region, &program, NULL) != HR_OK)
        config->model.weights = HR_WEIGHTS_COMPUTE;
    free(memory);
    return config->model.weights != HR_WEIGHTS_COMPUTE;
}

#endif
