/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c - which parameters train, with which learning rate and weight decay, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "headroom/stages.h"
#include "model/rules.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "sections/assemble.h"

static hr_config recipe(const char *freeze, const char *groups)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_GPT2;
    config.model.n_layers = 3;
    config.train.optimizer.weight_decay = 0.25;
    snprintf(config.train.freeze, sizeof config.train.freeze, "%s", freeze);
    snprintf(config.train.param_groups, sizeof config.train.param_groups, "%s", groups);
    return config;
}

/* The rule in the assembled program. */
static hr_param_rule rule_of(const hr_config *config, const char *name)
{
    hr_error err;
    hr_program program;
    const int64_t bytes = (hr_compile_bytes(config) + 63) / 64 * 64;
    hr_param_rule rule = { .lr_scale = -1 };
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    if (hr_config_check(config, &err) != HR_OK) fail_msg("%s", err.message);
    if (hr_model_assemble(config, &hr_cpu_backend, 1, &region, &program, &err) != HR_OK)
        fail_msg("%s", err.message);
    for (int32_t p = 0; p < program.param_count; p++)
        if (!strcmp(program.params[p].external_name, name)) rule = program.params[p].rule;
    free(memory);
    return rule;
}

static void any_matching_pattern_freezes(void **state)
{
    const hr_config config = recipe("*.h.[01].mlp.*, *wpe*\n transformer.ln_f.bia?", "");
    (void)state;
    assert_true(rule_of(&config, "transformer.h.0.mlp.c_fc.weight").frozen);
    assert_true(rule_of(&config, "transformer.h.1.mlp.c_proj.bias").frozen);
    assert_false(rule_of(&config, "transformer.h.2.mlp.c_fc.weight").frozen);
    assert_false(rule_of(&config, "transformer.h.0.attn.c_attn.weight").frozen);
    assert_true(rule_of(&config, "transformer.wpe.weight").frozen);
    assert_false(rule_of(&config, "transformer.wte.weight").frozen);
    assert_true(rule_of(&config, "transformer.ln_f.bias").frozen);
    assert_false(rule_of(&config, "transformer.ln_f.weight").frozen);
}

static void assert_rule(const hr_config *config, const char *name, double lr_scale, double decay)
{
    const hr_param_rule rule = rule_of(config, name);
    if (rule.lr_scale != lr_scale || rule.decay != decay)
        fail_msg("%s: lr %g, decay %g", name, rule.lr_scale, rule.decay);
}

static void the_first_group_that_matches_decides(void **state)
{
    const hr_config plain = recipe("", "");
    const hr_config config = recipe("", "*ln_1*, *ln_2* decay=0.5 lr=2; *bias lr=0.125;"
                                        "*wte* decay=0");
    (void)state;
    assert_rule(&plain, "transformer.wte.weight", 1, 0.25);
    assert_rule(&plain, "transformer.h.0.ln_1.bias", 1, 0);
    assert_rule(&config, "transformer.h.0.ln_1.bias", 2, 0.5);
    assert_rule(&config, "transformer.h.2.ln_2.weight", 2, 0.5);
    assert_rule(&config, "transformer.h.2.mlp.c_fc.bias", 0.125, 0);
    assert_rule(&config, "transformer.h.2.mlp.c_fc.weight", 1, 0.25);
    assert_rule(&config, "transformer.wte.weight", 1, 0);
}

/* AdamW corrects for the updates that a parameter has had, whatever the steps of the run. */
static void updates_are_counted_from_the_first(void **state)
{
    hr_config config = recipe("*wpe*", ""), stage;
    hr_error err;
    const char *const names[] = { "transformer.wte.weight", "transformer.h.0.ln_1.weight",
                                  "transformer.wpe.weight" };
    const int64_t missed[][3] = { { 0, 0, 0 }, { 10, 10, 0 }, { 10, 25, 0 }, { 14, 25, 0 } };
    (void)state;
    if (hr_config_set(
            &config, "train.stages",
            "freeze='*wte* *ln_1*'; at_step=10 freeze='*.h.0.*'; at_step=25 freeze=*wte*; "
            "at_step=29",
            &err) != HR_OK)
        fail_msg("%s", err.message);
    for (int32_t s = 0; s < 4; s++)
        for (int32_t i = 0; i < 3; i++) {
            assert_int_equal(hr_config_at_stage(&config, s, &stage, &err), HR_OK);
            assert_int_equal(hr_rules_missed(&stage, names[i]), missed[s][i]);
            assert_int_equal(hr_rules_missed(&config, names[i]), 0);
        }
}

static void assert_refused(const char *freeze, const char *groups, const char *sentence)
{
    hr_error err;
    hr_program program;
    const hr_config config = recipe(freeze, groups);
    const int64_t bytes = (hr_compile_bytes(&config) + 63) / 64 * 64;
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_status status = hr_config_check(&config, &err);
    if (status == HR_OK)
        status = hr_model_assemble(&config, &hr_cpu_backend, 1, &region, &program, &err);
    free(memory);
    assert_int_equal(status, HR_USAGE);
    assert_string_equal(err.message, sentence);
}

static void invalid_rules_are_refused(void **state)
{
    (void)state;
    assert_refused("*.mpl.*", "",
                   "train.freeze: no parameter matches \"*.mpl.*\"; the first of 40 parameters "
                   "is transformer.wte.weight");
    assert_refused("*", "", "train.freeze freezes all 40 parameters");
    assert_refused(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "*******************************************************",
        "", "train.freeze: a word has more than 126 characters: aaaaaaaaaaaaaaaaaaaa...");
    assert_refused("lr=1", "", "train.freeze takes name patterns only, not \"lr=1\"");
    assert_refused("*ln*; *mlp*", "", "train.freeze takes name patterns only, not \";\"");
    assert_refused("", "*bias",
                   "train.param_groups: a group has patterns but neither lr= nor decay=; write "
                   "\"*.bias decay=0; head lr=0.1\"");
    assert_refused("", "decay=0",
                   "train.param_groups: a group has no pattern; write \"*.bias decay=0; "
                   "head lr=0.1\"");
    assert_refused("", "*bias rate=2",
                   "train.param_groups: \"rate=2\" is not a setting; the settings are lr= and "
                   "decay=");
    assert_refused("", "*bias lr=-1",
                   "train.param_groups: \"lr=-1\" must be a number from 0 to 1000");
    assert_refused("", "*bias lr=nan",
                   "train.param_groups: \"lr=nan\" must be a number from 0 to 1000");
    assert_refused("", "*.head lr=2",
                   "train.param_groups: no parameter matches \"*.head\"; the first of 40 "
                   "parameters is transformer.wte.weight");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_matching_pattern_freezes),
        cmocka_unit_test(the_first_group_that_matches_decides),
        cmocka_unit_test(updates_are_counted_from_the_first),
        cmocka_unit_test(invalid_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
