/* SPDX-License-Identifier: Apache-2.0 */
/* combination_test.c - refusals of large presets: a combination of levers fits as promised, and the
 * run without any saving keeps what the recipe sets itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "config/config.h"
#include "headroom/plan.h"

static hr_config config;
static hr_plan_answer answer;
static hr_plan_details details;

static hr_status plan(void)
{
    hr_error err;
    const hr_plan_outputs outputs = { .size = sizeof outputs, .details = &details };
    const hr_status status = hr_plan_make(&config, &outputs, &answer, &err);
    if (status != HR_OK && status != HR_NO_FIT) fail_msg("%s", err.message);
    return status;
}

static void read_preset(const char *path, int64_t budget)
{
    hr_error err;
    hr_config_default(&config);
    if (hr_config_read(&config, path, &err) != HR_OK) fail_msg("%s", err.message);
    config.train.threads = 2;
    config.memory.budget = budget;
}

static void set_words(char words[HR_PLAN_CHANGE_BYTES])
{
    hr_error err;
    char *left = words;
    for (char *word = strtok_r(words, " ", &left); word; word = strtok_r(NULL, " ", &left)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = 0;
        if (*value == '\'') value[strlen(value) - 1] = 0;
        if (hr_config_set(&config, word, value + (*value == '\''), &err) != HR_OK)
            fail_msg("%s", err.message);
    }
}

/* Sets the first change of a refusal, which then fits at the bytes it promised. */
static void apply_first(char words[HR_PLAN_CHANGE_BYTES])
{
    const int64_t promised = details.changes[0].bytes;
    set_words(words);
    assert_int_equal(plan(), HR_OK);
    assert_int_equal(answer.minimum_bytes, promised);
}

/* Weights in fp32 save memory in the beginning, but frozen ones then need twice that of bf16: the
 * combination does without them, and stores what it freezes in fp8. */
static void frozen_weights_are_combined_with_their_format(void **state)
{
    (void)state;
    char words[HR_PLAN_CHANGE_BYTES];
    read_preset(HR_SOURCE "/presets/llama-3.1-8b.yaml", INT64_C(18) * 1000 * 1000 * 1000);
    config.train.state.master = HR_MASTERS_NONE; /* gentler than a format of frozen weights */
    assert_int_equal(plan(), HR_NO_FIT);
    assert_true(details.change_count > 0);
    snprintf(words, sizeof words, "%s", details.changes[0].what);
    print_message("  %s: %lld bytes\n", words, (long long)details.changes[0].bytes);
    assert_non_null(strstr(words, "train.freeze="));
    assert_non_null(strstr(words, "model.weights=f8_e4m3"));
    assert_null(strstr(words, "train.dtype"));
    apply_first(words);
}

/* 16 bits beside each weight keep every bit and are taken first; none then save what is missing,
 * and the batch stays. */
static void a_format_takes_the_place_of_a_gentler_one(void **state)
{
    (void)state;
    char words[HR_PLAN_CHANGE_BYTES];
    read_preset(HR_SOURCE "/presets/yxanul-stage-10.yaml", INT64_C(1400) << 20);
    assert_int_equal(plan(), HR_NO_FIT);
    assert_true(details.change_count > 0);
    snprintf(words, sizeof words, "%s", details.changes[0].what);
    print_message("  %s: %lld bytes\n", words, (long long)details.changes[0].bytes);
    assert_non_null(strstr(words, "train.state.master=none"));
    assert_null(strstr(words, "train.batch"));
    apply_first(words);
}

/* Half of a batch of four sequences saves nothing, one of them the sum of its gradients. What keeps
 * every bit is taken before what rounds. */
static void a_batch_of_one_sequence_is_combined_with_files(void **state)
{
    (void)state;
    char words[HR_PLAN_CHANGE_BYTES];
    read_preset(HR_SOURCE "/presets/long-4b-131k.yaml", INT64_C(22) << 30);
    assert_int_equal(plan(), HR_NO_FIT);
    assert_true(details.change_count > 0);
    snprintf(words, sizeof words, "%s", details.changes[0].what);
    assert_string_equal(words, "train.state.master=residual16 memory.moments=file "
                               "memory.spill=auto train.batch=1");
    apply_first(words);
}

/* Smallest plans of long sequences take so much work that few fit in its limit. */
static void combinations_of_long_sequences_are_found(void **state)
{
    (void)state;
    char words[HR_PLAN_CHANGE_BYTES];
    read_preset(HR_SOURCE "/presets/qwen3-0.6b.yaml", INT64_C(3) << 30);
    config.train.seq_len = 8192;
    assert_int_equal(plan(), HR_NO_FIT);
    assert_true(details.change_count > 0);
    snprintf(words, sizeof words, "%s", details.changes[0].what);
    print_message("  %s: %lld bytes\n", words, (long long)details.changes[0].bytes);
    assert_null(strstr(words, "train.freeze"));
    apply_first(words);
}

/* A change alters what the processes of all stages share, and which of them needs most. */
static void changes_of_a_run_of_stages_need_the_bytes_that_are_said(void **state)
{
    (void)state;
    enum { BUDGET = 560000000, CHANGES_MOST = 5 };
#ifdef __SANITIZE_ADDRESS__ /* its image is larger */
    enum { FEWEST = 2 };
#else
    enum { FEWEST = CHANGES_MOST };
#endif
    static hr_plan_details said;
    read_preset(HR_SOURCE "/presets/pythia-70m-length-warmup.yaml", BUDGET);
    assert_int_equal(plan(), HR_NO_FIT);
    said = details;
    assert_true(said.change_count >= FEWEST);
    for (int32_t i = 0; i < hr_min(said.change_count, CHANGES_MOST); i++) {
        char words[HR_PLAN_CHANGE_BYTES];
        snprintf(words, sizeof words, "%s", said.changes[i].what);
        print_message("  %s: %lld bytes\n", words, (long long)said.changes[i].bytes);
        assert_null(strstr(words, "train.seq_len")); /* each stage has its own */
        read_preset(HR_SOURCE "/presets/pythia-70m-length-warmup.yaml", BUDGET);
        set_words(words);
        assert_int_equal(plan(), HR_OK);
        config.memory.budget = 1;
        assert_int_equal(plan(), HR_NO_FIT);
        assert_int_equal(answer.minimum_bytes, said.changes[i].bytes);
    }
}

/* Its micro-batch of 1 stays. */
static void the_run_without_savings_keeps_what_the_recipe_sets(void **state)
{
    (void)state;
    read_preset(HR_SOURCE "/presets/long-4b-131k.yaml", INT64_C(48) << 30);
    assert_int_equal(plan(), HR_NO_FIT);
    assert_string_equal(details.whole_largest.shape, "[131,072 x 151,936] bf16 = T x V x 2");
    assert_int_equal(details.whole_largest.bytes, INT64_C(39829110784));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_weights_are_combined_with_their_format),
        cmocka_unit_test(a_format_takes_the_place_of_a_gentler_one),
        cmocka_unit_test(a_batch_of_one_sequence_is_combined_with_files),
        cmocka_unit_test(combinations_of_long_sequences_are_found),
        cmocka_unit_test(changes_of_a_run_of_stages_need_the_bytes_that_are_said),
        cmocka_unit_test(the_run_without_savings_keeps_what_the_recipe_sets),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
