/* SPDX-License-Identifier: Apache-2.0 */
/* freeze_test.c - freezing parameters does not change the others.
 *
 * Each recipe trains for a step with and without frozen parameters. Gradients and new weights of
 * all other parameters have the same bits, and the frozen ones are unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/family.h"
#include "require.h"
#include "support/random_freeze.h"
#include "support/random_strategy.h"
#include "support/rig.h"

#define require(condition, ...) \
    do { \
        if (!(condition)) fail_msg(__VA_ARGS__); \
    } while (0)

enum { SEED = 20261122, LAYERS_MOST = 5 };

/* Values that bf16 cannot represent exactly. */
static float *weights_of(void *context, const char *name)
{
    const rig *r = context;
    const hr_program *program = &r->compiled.program;
    int32_t p = 0;
    while (strcmp(program->params[p].external_name, name)) p++;
    const int64_t count = rig_elements(&program->params[p]);
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        const double shift = program->params[p].init_constant ? program->params[p].init_scale : 0;
        const uint64_t bits = hr_random_mix(SEED + ((uint64_t)p << 32) + (uint64_t)i);
        const double noise = hr_random_unit(bits) - 0.5;
        values[i] = (float)(shift + 0.2 * noise);
    }
    return values;
}

static hr_config config_of(int32_t family, uint64_t round)
{
    hr_config config = random_config_of(family, SEED, round);
    config.model.n_layers = draw_layers(&config, SEED, round, 60, LAYERS_MOST);
    config.train.seq_len = between(SEED, round, 61, 4, 70);
    config.train.optimizer.clip = 0; /* the norm depends on which parameters are frozen */
    config.train.optimizer.lr = 0.01;
    config.train.steps = 1;
    config.memory.recompute = HR_RECOMPUTE_NONE;
    config.train.sample_tokens = 0;
    return config;
}

static void train(rig *r, const hr_config *config, const hr_strategy *strategy)
{
    rig_build_with(r, config, strategy, 2, (uint32_t)hr_cpu_detect(), weights_of, r);
    rig_section(r, HR_LOOP_LOAD);
    rig_step(r);
}

static void same_but_frozen(const rig *all, const rig *some)
{
    const hr_program *program = &some->compiled.program;
    int64_t at = 0;
    require(program->param_count == all->compiled.program.param_count, "parameters");
    require(!memcmp(&all->loss, &some->loss, sizeof all->loss), "loss: %.17g, not %.17g",
            some->loss, all->loss);
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const int64_t count = rig_elements(param);
        const bool frozen = param->rule.frozen;
        const bool is_short = program->tensors[param->weight].dtype == HR_BF16;
        float *before = weights_of((void *)some, param->external_name);
        require(frozen == (param->gradient == HR_NONE), "%s: gradient", param->external_name);
        require(frozen == (param->states[0] == HR_NONE), "%s: moment", param->external_name);
        require(!frozen || param->master == param->weight, "%s: master", param->external_name);
        if (!frozen)
            require(!memcmp(all->gradients + at, some->gradients + at,
                            (size_t)count * sizeof *all->gradients),
                    "%s: another gradient", param->external_name);
        for (int64_t i = 0; i < count; i++) {
            const float kept = is_short ? hr_bf16_to_f32(hr_bf16_from_f32(before[i])) : before[i];
            const float expected = frozen ? kept : rig_weight(all, p, i);
            const float found = rig_weight(some, p, i);
            require(!memcmp(&expected, &found, sizeof found), "%s: element %lld is %g, not %g",
                    param->external_name, (long long)i, found, expected);
        }
        free(before);
        at += count;
    }
}

static void frozen_parameters_do_not_change_the_others(void **state)
{
    (void)state;
    int32_t frozen = 0;
    for (int32_t round = 0; round < 4 * HR_FAMILIES * hr_min(HR_COUNT, 8); round++) {
        hr_config config = config_of(round % HR_FAMILIES, (uint64_t)round);
        hr_intermediates recompute_set[2][LAYERS_MOST];
        rig all, some;
        const hr_strategy first = random_strategy(&config, SEED, (uint64_t)round, recompute_set[0]);
        train(&all, &config, &first);
        random_freeze(&config, 1 + round / HR_FAMILIES % (FREEZES - 1), SEED, (uint64_t)round);
        frozen += config.train.freeze[0] != 0;
        const hr_strategy second = random_strategy(&config, SEED, (uint64_t)round,
                                                   recompute_set[1]);
        train(&some, &config, &second);
        same_but_frozen(&all, &some);
        rig_close(&all);
        rig_close(&some);
    }
    require(frozen > 3 * HR_FAMILIES * hr_min(HR_COUNT, 8), "only %d recipes freeze", frozen);
}

/* Layers below the lowest trained parameter have no backward pass, and none of their values is
 * kept. */
static void backward_stops_at_the_lowest_trained_parameter(void **state)
{
    (void)state;
    hr_config config;
    rig r;
    hr_config_default(&config);
    config.model.n_layers = 6;
    config.train.batch = 2;
    snprintf(config.train.freeze, sizeof config.train.freeze, "*embed_in* *.[0-3].*");
    train(&r, &config, NULL);
    const hr_program *program = &r.compiled.program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const bool back = step->direction == HR_DIR_BACKWARD ||
                          step->direction == HR_DIR_RECOMPUTED;
        require(!back || step->layer != 3, "layer 3 has a backward pass");
        require(!back || step->layer == HR_NONE || step->layer > 3, "layer %d", step->layer);
        require(!back || step->block != HR_BLOCK_EMBED, "the embedding has a backward pass");
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_parameters_do_not_change_the_others),
        cmocka_unit_test(backward_stops_at_the_lowest_trained_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
