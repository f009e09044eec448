/* SPDX-License-Identifier: Apache-2.0 */
/* layer_types_test.c - lists of layer types are read back as they were set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/layer_types.h"
#include "support/random_config.h"

enum { SEED = 20261123, LAYERS_MOST = 40, TURNS = 2000 * HR_COUNT };

/* Blocks of layers that repeat. */
static int64_t draw_types(uint64_t turn, uint8_t types[LAYERS_MOST])
{
    const int64_t count = between(SEED, turn, 0, 1, LAYERS_MOST);
    const int64_t period = between(SEED, turn, 1, 1, count), block = between(SEED, turn, 2, 1, 5);
    for (int64_t l = 0; l < count; l++)
        types[l] = draw(SEED, turn, (uint32_t)(3 + l % period / block)) % 2;
    return count;
}

static void a_list_is_read_back_as_it_was_set(void **state)
{
    int32_t mixed = 0;
    (void)state;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        uint8_t types[LAYERS_MOST];
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        config.model.family = HR_FAMILY_GPT_NEO;
        config.model.attention.sliding_window = 7;
        config.model.n_layers = draw_types(turn, types);
        assert_int_equal(hr_layer_types_set(&config, types, config.model.n_layers, &err), HR_OK);
        for (int64_t l = 0; l < config.model.n_layers; l++)
            assert_int_equal(hr_layer_type(&config, l), types[l]);
        if (!memchr(types, HR_LAYER_SLIDING, (size_t)config.model.n_layers)) continue;
        assert_int_equal(hr_layer_types_check(&config, &err), HR_OK);
        mixed += memchr(types, HR_LAYER_FULL, (size_t)config.model.n_layers) != NULL;
    }
    assert_true(mixed > TURNS / 2);
}

static void the_shortest_list_is_written(void **state)
{
    static const struct {
        const char *types, *list;
    } cases[] = { { "fsfsfs", "full sliding" },     { "fsfsf", "full sliding" },
                  { "ffffss", "full*4 sliding*2" }, { "sffsff", "sliding full*2" },
                  { "ssssss", "sliding" },          { "f", "full" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t types[LAYERS_MOST];
        hr_config config;
        hr_error err;
        const int64_t count = (int64_t)strlen(cases[i].types);
        hr_config_default(&config);
        for (int64_t l = 0; l < count; l++) types[l] = cases[i].types[l] == 's';
        assert_int_equal(hr_layer_types_set(&config, types, count, &err), HR_OK);
        assert_string_equal(config.model.attention.layer_types, cases[i].list);
    }
}

static void a_list_that_changes_too_often_is_refused(void **state)
{
    enum { MANY = 300 };
    uint8_t types[MANY];
    hr_config config;
    hr_error err;
    (void)state;
    hr_config_default(&config);
    for (uint32_t l = 0; l < MANY; l++) types[l] = draw(SEED, 1, l) % 2;
    assert_int_equal(hr_layer_types_set(&config, types, MANY, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "no room for a list"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_back_as_it_was_set),
        cmocka_unit_test(the_shortest_list_is_written),
        cmocka_unit_test(a_list_that_changes_too_often_is_refused),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
