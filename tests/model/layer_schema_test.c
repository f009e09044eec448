/* SPDX-License-Identifier: Apache-2.0 */
/* layer_schema_test.c - sizes of layers and of the table of gradient norms, against counts by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/layer_schema.h"

static void sizes_of_layers_are_counted(void **state)
{
    static const struct {
        int32_t family, params, steps;
    } cases[] = { { HR_FAMILY_GPT2, 12, 7 },    /* two norms, four products, attention */
                  { HR_FAMILY_LLAMA, 9, 13 },   /* two norms, seven products, two rotations,
                                                    attention, a gate */
                  { HR_FAMILY_GPT_NEO, 13, 9 }, /* two norms, six products, attention */
                  { HR_FAMILY_WIDE, 2, 2 } };   /* a product, a recurrence */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = cases[i].family;
        hr_layer_size size = hr_layer_size_of(&config);
        assert_int_equal(size.params, cases[i].params);
        assert_int_equal(size.steps, cases[i].steps);
        if (cases[i].family != HR_FAMILY_GPT_NEO) continue;
        config.model.attention.sliding_window = 8;
        strcpy(config.model.attention.layer_types, "full sliding");
        size = hr_layer_size_of(&config);
        assert_int_equal(size.params, cases[i].params);
        assert_int_equal(size.steps, cases[i].steps);
    }
}

/* The tables of one layer hold whatever may be added to it. */
static void the_largest_layers_are_counted(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++)
        for (int32_t turn = 0; turn < 8; turn++) {
            const bool nsa = turn & 1, dora = turn & 2, npt = turn & 4;
            hr_config config;
            hr_config_default(&config);
            config.model.family = family;
            config.train.z_loss = 1e-3;
            if (nsa) config.model.attention.kind = HR_ATTENTION_NSA;
            config.model.attention.nsa.own_keys = true;
            config.train.adapter.kind = npt ? HR_ADAPTER_NPT : HR_ADAPTER_LORA;
            config.train.adapter.dora = dora && !npt;
            config.train.adapter.dropout = npt ? 0 : 0.1;
            hr_error err;
            if (hr_config_check(&config, &err) != HR_OK) continue;
            assert_true(hr_layer_size_of(&config).steps > 0);
        }
}

enum { PARAMS = 80 };

/* Trained parameters of a program whose parameter p is in layer layers[p], with `more` layers. */
static int64_t trained_of(const int16_t *layers, int32_t count, const bool *frozen, int64_t more)
{
    hr_tensor tensors[PARAMS];
    hr_param params[PARAMS];
    hr_program program = { .tensors = tensors, .params = params, .param_count = count };
    for (int32_t p = 0; p < count; p++) {
        tensors[p] = (hr_tensor){ .layer = layers[p] };
        params[p] = (hr_param){ .weight = p, .rule.frozen = frozen[p] };
    }
    return hr_program_trained(&program, more);
}

static void trained_parameters_are_counted_for_a_deeper_model(void **state)
{
    int16_t layers[PARAMS];
    bool frozen[PARAMS] = { false };
    (void)state;
    for (int16_t p = 0; p < PARAMS; p++) layers[p] = p / 24; /* the last layer has 8 */
    assert_int_equal(trained_of(layers, PARAMS, frozen, 0), PARAMS);
    assert_int_equal(trained_of(layers, PARAMS, frozen, 3), PARAMS + 3 * 8);
    for (int32_t p = 0; p < 30; p++) frozen[p] = true;
    frozen[79] = true;
    assert_int_equal(trained_of(layers, PARAMS, frozen, 3), 49 + 3 * 7);
    for (int16_t p = 0; p < PARAMS; p++) layers[p] = p % 2 ? (int16_t)(p / 8) : HR_NONE;
    memset(frozen, 0, sizeof frozen);
    assert_int_equal(trained_of(layers, PARAMS, frozen, 1), PARAMS + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_layers_are_counted),
        cmocka_unit_test(the_largest_layers_are_counted),
        cmocka_unit_test(trained_parameters_are_counted_for_a_deeper_model),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
