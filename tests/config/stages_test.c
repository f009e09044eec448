/* SPDX-License-Identifier: Apache-2.0 */
/* stages_test.c - lists of stages: what they say, and that no text breaks them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "headroom/stages.h"

static hr_config config_with(const char *stages)
{
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    config.train.batch = 4;
    config.train.seq_len = 32;
    snprintf(config.train.freeze, sizeof config.train.freeze, "*embed*");
    if (hr_config_set(&config, "train.stages", stages, &err) != HR_OK) fail_msg("%s", err.message);
    return config;
}

static void a_stage_is_an_overlay_on_its_recipe(void **state)
{
    (void)state;
    const hr_config config = config_with(
        "seq_len=8; at_tokens=100 batch=2 freeze='a* b*' clip=0.25 "
        "lr_scale=0.5; at_step=9 dropout=0.1");
    hr_stages stages;
    hr_config stage;
    hr_error err;
    char word[HR_PATH_BYTES];
    assert_int_equal(hr_config_stages(&config, &stages, &err), HR_OK);
    assert_int_equal(stages.count, 3);
    assert_int_equal(stages.longest, 32);
    assert_int_equal(stages.at[1].first_step, 4); /* 4 steps of 4 x 8 tokens are the first 100 */
    assert_int_equal(stages.at[1].first_token, 128);
    assert_int_equal(stages.at[2].first_token, 128 + 5 * 2 * 32);
    for (int64_t step = 0; step < 20; step++)
        assert_int_equal(hr_stages_find(&stages, step), step < 4 ? 0 : step < 9 ? 1 : 2);
    assert_int_equal(hr_stages_tokens(&stages, 7), 128 + 3 * 64);
    assert_int_equal(hr_config_at_stage(&config, 1, &stage, &err), HR_OK);
    assert_int_equal(stage.train.seq_len, 32);
    assert_int_equal(stage.train.batch, 2);
    assert_string_equal(stage.train.freeze, "*embed* a* b*");
    assert_int_equal(stage.stage.freeze_bytes, strlen("*embed*"));
    assert_true(stage.train.optimizer.clip == 0.25);
    assert_int_equal(hr_config_longest(&stage), 32);
    assert_int_equal(hr_config_positions(&stage), 32);
    assert_int_equal(hr_config_stages(&stage, &stages, &err), HR_OK); /* as the recipe has them */
    assert_int_equal(stages.at[1].first_step, 4);
    assert_int_equal(stages.at[2].first_token, 128 + 5 * 2 * 32);
    hr_config_stage_word(&config, 1, "freeze", word);
    assert_string_equal(word, "a* b*");
    hr_config_stage_word(&config, 2, "freeze", word);
    assert_string_equal(word, "");
    assert_int_equal(hr_config_at_stage(&config, 0, &stage, &err), HR_OK);
    assert_int_equal(stage.train.seq_len, 8);
    assert_int_equal(hr_config_positions(&stage), 32);
    assert_true(hr_config_stage_sets(&stage, "train.seq_len"));
    assert_true(hr_config_stage_sets(&stage, "train.batch"));
    assert_true(hr_config_stage_sets(&stage, "model.dropout"));
    assert_false(hr_config_stage_sets(&stage, "memory.micro_batch"));
    assert_false(hr_config_stage_sets(&stage, "train.threads"));
    assert_int_equal(hr_config_stage_alone(&config, 1, &stage, &err), HR_OK);
    assert_true(stage.train.optimizer.lr == 0.5 * config.train.optimizer.lr);
    assert_int_equal(stage.train.steps, 5);
    assert_string_equal(stage.train.stages, "");
    assert_false(hr_config_stage_sets(&stage, "train.batch")); /* it may be changed */
    assert_false(hr_config_stage_sets(&config, "train.batch"));
    assert_int_equal(hr_config_stage_alone(&config, 3, &stage, &err), HR_USAGE);
}

/* Texts of random words: a list rises or is refused in one line, and what is read can be
 * applied. */
static void no_text_breaks_a_list(void **state)
{
    static const char *const words[] = { "seq_len",
                                         "batch",
                                         "at_step",
                                         "at_tokens",
                                         "lr_scale",
                                         "freeze",
                                         "data",
                                         "clip",
                                         "=",
                                         ":",
                                         " ",
                                         ";",
                                         "\"",
                                         "8",
                                         "64",
                                         "900",
                                         "-1",
                                         "nan",
                                         "1e400",
                                         "..",
                                         " over ",
                                         " steps",
                                         " tokens",
                                         " by ",
                                         "doubling",
                                         "keeping",
                                         "none",
                                         "attention",
                                         ".",
                                         "local",
                                         "99999999999999999999",
                                         "x" };
    enum { COUNT = sizeof words / sizeof *words, TEXTS = 12000, MOST = 14 };
    (void)state;
    uint32_t draw = 42;
    int32_t read = 0;
    for (int32_t n = 0; n < TEXTS; n++) {
        char text[512] = "";
        hr_config config, stage;
        hr_stages stages;
        hr_error err = { HR_OK, "" };
        for (uint32_t i = 0, count = 1 + (draw >> 8) % MOST; i < count; i++) {
            draw = draw * 1664525 + 1013904223;
            strcat(text, words[(draw >> 12) % COUNT]);
            if (i % 2 == 0 && (draw >> 28) % 2) strcat(text, "=");
        }
        draw = draw * 1664525 + 1013904223;
        config = config_with(text);
        const hr_status status = hr_config_stages(&config, &stages, &err);
        assert_true(status == HR_OK || status == HR_USAGE);
        assert_null(strchr(err.message, '\n'));
        assert_true(hr_config_longest(&config) > 0 || status == HR_OK);
        if (status != HR_OK) continue;
        read++;
        for (int32_t i = 0; i < stages.count; i++) {
            if (i) assert_true(stages.at[i].first_step > stages.at[i - 1].first_step);
            assert_true(stages.at[i].lr_scale >= 0 && stages.at[i].lr_scale <= 1000);
            const hr_status applied = hr_config_at_stage(&config, i, &stage, &err);
            assert_true(applied == HR_OK || applied == HR_USAGE);
        }
    }
    assert_true(read > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_is_an_overlay_on_its_recipe),
        cmocka_unit_test(no_text_breaks_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
