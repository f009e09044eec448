/* SPDX-License-Identifier: Apache-2.0 */
/* stored_weights_test.c - training over frozen weights that are stored as f16 or f8_e4m3.
 *
 * Each recipe trains for a step with the stored weights, and with the same numbers in the dtype of
 * products. The loss, the gradients and the new weights have the same bits, for every family and
 * under random strategies. Dequantized copies live for one step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/e4m3.h"
#include "base/f16.h"
#include "graph/weight_format.h"
#include "model/family.h"
#include "require.h"
#include "support/random_freeze.h"
#include "support/random_strategy.h"
#include "support/rig.h"

#define require(condition, ...) \
    do { \
        if (!(condition)) fail_msg(__VA_ARGS__); \
    } while (0)

enum { SEED = 20261123, LAYERS_MOST = 4 };

/* Element i of a parameter, in file order, as products read it. */
static float weight_of(const rig *r, int32_t index, int64_t i)
{
    const hr_program *program = &r->compiled.program;
    const hr_param *param = &program->params[index];
    if (param->format == HR_WEIGHTS_COMPUTE) return rig_weight(r, index, i);
    const void *weight = hr_executor_address(&r->executor, param->weight);
    const int64_t at = rig_place(r, index, i);
    if (param->format == HR_WEIGHTS_BF16) return hr_bf16_to_f32(((const hr_bf16 *)weight)[at]);
    if (param->scales == HR_NONE) return hr_f16_to_f32(((const uint16_t *)weight)[at]);
    const float *scales = hr_executor_address(&r->executor, param->scales);
    return hr_e4m3_to_f32(((const uint8_t *)weight)[at]) * scales[0]; /* all are equal */
}

/* The weights of the other run, whose stored ones are dequantized. */
static float *weights_of(void *context, const char *name)
{
    const rig *r = context;
    const hr_program *program = &r->compiled.program;
    int32_t p = 0;
    while (strcmp(program->params[p].external_name, name)) p++;
    const int64_t count = rig_elements(&program->params[p]);
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = weight_of(r, p, i);
    return values;
}

/* A dequantized copy is written by one step and read by the next, in the same loop. */
static void check_copies(const rig *r)
{
    const hr_program *program = &r->compiled.program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (step->op != HR_OP_dequantize) continue;
        const int32_t copy = step->out[0], buffer = r->compiled.plan.buffer_of_tensor[copy];
        bool read = false;
        for (int32_t i = 0; i < HR_IN_MAX; i++) read |= step[1].in[i] == copy;
        require(read && step[1].loop == step->loop, "step %d is not followed by its reader", s);
        require(program->tensors[copy].home == step->loop, "the home of step %d", s);
        require(r->compiled.plan.buffers[buffer].step_first == s &&
                    r->compiled.plan.buffers[buffer].step_last == s + 1,
                "the copy of step %d lives from %d to %d", s,
                r->compiled.plan.buffers[buffer].step_first,
                r->compiled.plan.buffers[buffer].step_last);
    }
}

static void same_results(const rig *stored, const rig *wide)
{
    const hr_program *program = &stored->compiled.program;
    require(!memcmp(&stored->loss, &wide->loss, sizeof wide->loss), "loss: %.17g, not %.17g",
            stored->loss, wide->loss);
    require(!memcmp(stored->gradients, wide->gradients,
                    (size_t)stored->gradient_count * sizeof *wide->gradients),
            "other gradients");
    for (int32_t p = 0; p < program->param_count; p++)
        for (int64_t i = 0; i < rig_elements(&program->params[p]); i++) {
            float expected = weight_of(wide, p, i), found = weight_of(stored, p, i);
            const bool is_short =
                wide->compiled.program.tensors[wide->compiled.program.params[p].master].dtype ==
                HR_BF16;
            if (is_short) found = hr_bf16_to_f32(hr_bf16_from_f32(found));
            require(!memcmp(&expected, &found, sizeof found), "%s: element %lld is %g, not %g",
                    program->params[p].external_name, (long long)i, (double)found,
                    (double)expected);
        }
}

static void stored_weights_train_the_others_bit_for_bit(void **state)
{
    (void)state;
    int32_t stored = 0, smaller = 0;
    print_message("seed %d\n", SEED);
    for (uint64_t round = 0; round < (uint64_t)(6 * HR_FAMILIES * hr_min(HR_COUNT, 8)); round++) {
        hr_config config = random_config_of((int32_t)(round % HR_FAMILIES), SEED, round);
        config.train.seq_len = between(SEED, round, 61, 4, 70);
        config.train.steps = 1;
        config.train.sample_tokens = 0;
        random_freeze(&config, 1 + (int32_t)(round / HR_FAMILIES % (FREEZES - 1)), SEED, round);
        if (!random_stored(&config, SEED, round)) continue;
        stored++;
        hr_intermediates recompute_set[2][LAYERS_MOST];
        rig narrow, wide;
        const hr_strategy first = random_strategy(&config, SEED, round, recompute_set[0]);
        rig_build_with(&narrow, &config, &first, 2, hr_cpu_detect(), NULL, NULL);
        check_copies(&narrow);
        rig_section(&narrow, HR_LOOP_LOAD);
        config.model.weights = HR_WEIGHTS_COMPUTE;
        const hr_strategy second = random_strategy(&config, SEED, round + 1000, recompute_set[1]);
        rig_build_with(&wide, &config, &second, 2, hr_cpu_detect(), weights_of, &narrow);
        rig_section(&wide, HR_LOOP_LOAD);
        smaller += narrow.compiled.plan.arena_bytes < wide.compiled.plan.arena_bytes;
        rig_step(&narrow);
        rig_step(&wide);
        same_results(&narrow, &wide);
        rig_close(&narrow);
        rig_close(&wide);
    }
    print_message("%d recipes, %d with a smaller arena\n", stored, smaller);
    require(stored > HR_FAMILIES, "only %d recipes store weights", stored);
}

/* The arena shrinks by what the stored weights save, but for the largest copy. */
static void the_plan_shrinks_by_what_the_format_saves(void **state)
{
    (void)state;
    static const int32_t formats[] = { HR_WEIGHTS_F16, HR_WEIGHTS_F8_E4M3 };
    hr_config config;
    int64_t arena[3], weights[3], copy = 0;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    config.model.d_model = 256;
    config.model.d_ff = 768;
    config.model.n_layers = 8;
    config.train.batch = 1;
    config.train.seq_len = 16;
    snprintf(config.train.freeze, sizeof config.train.freeze, "*.self_attn.* *.mlp.*");
    for (int32_t i = 0; i < 3; i++) {
        rig r;
        config.model.weights = i ? formats[i - 1] : HR_WEIGHTS_COMPUTE;
        rig_build_with(&r, &config, NULL, 1, hr_cpu_detect(), NULL, NULL);
        const hr_program *program = &r.compiled.program;
        arena[i] = r.compiled.plan.arena_bytes;
        weights[i] = 0;
        for (int32_t b = 0; b < r.compiled.plan.buffer_count; b++) {
            const hr_buffer *buffer = &r.compiled.plan.buffers[b];
            if (buffer->tensor == HR_NONE) continue;
            const hr_tensor *tensor = &program->tensors[buffer->tensor];
            if (tensor->role == HR_ROLE_WEIGHT) weights[i] += buffer->bytes;
        }
        for (int32_t s = 0; s < program->step_count; s++)
            if (program->steps[s].op == HR_OP_dequantize)
                copy = hr_max(copy, hr_tensor_bytes(&program->tensors[program->steps[s].out[0]]));
        rig_section(&r, HR_LOOP_LOAD);
        rig_step(&r);
        require(r.memory.arena_bytes_used <= arena[i], "used %lld of %lld",
                (long long)r.memory.arena_bytes_used, (long long)arena[i]);
        rig_close(&r);
    }
    require(copy == 256 * 768 * 4, "the largest copy has %lld bytes", (long long)copy);
    const int64_t elements = 8 * (4 * 256 * 256 + 3 * 256 * 768), scales = 8 * (4 * 4 + 3 * 12) * 4;
    require(weights[0] - weights[1] == 2 * elements, "f16 saves %lld bytes",
            (long long)(weights[0] - weights[1]));
    const int64_t padding = 8 * 7 * 64; /* of each table of scales, at most */
    require(weights[0] - weights[2] >= 3 * elements - scales - padding &&
                weights[0] - weights[2] <= 3 * elements - scales,
            "f8_e4m3 saves %lld bytes", (long long)(weights[0] - weights[2]));
    for (int32_t i = 1; i < 3; i++)
        require(arena[0] - arena[i] >= weights[0] - weights[i] - copy,
                "the arena shrinks by %lld bytes, the weights by %lld",
                (long long)(arena[0] - arena[i]), (long long)(weights[0] - weights[i]));
}

static void only_frozen_weights_are_stored(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    config.model.weights = HR_WEIGHTS_F8_E4M3;
    const int64_t bytes = hr_round_up(hr_compile_bytes(&config), 64);
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)bytes), bytes);
    hr_program program;
    assert_int_equal(hr_model_assemble(&config, &hr_cpu_backend, 1, &region, &program, &err),
                     HR_USAGE);
    assert_string_equal(err.message,
                        "gpt_neox.layers.0.attention.query_key_value.weight is trained, as all "
                        "matrices of layers are, and model.weights=f8_e4m3 is for frozen weights; "
                        "freeze some with train.freeze, or use model.weights=compute");
    hr_backend without = hr_cpu_backend;
    without.dequantize = NULL;
    snprintf(config.train.freeze, sizeof config.train.freeze, "*.mlp.*");
    region.used = 0;
    assert_int_equal(hr_model_assemble(&config, &without, 1, &region, &program, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "does not run linear with operands of f8_e4m3 (gpt_neox."));
    free(region.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_weights_train_the_others_bit_for_bit),
        cmocka_unit_test(the_plan_shrinks_by_what_the_format_saves),
        cmocka_unit_test(only_frozen_weights_are_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
