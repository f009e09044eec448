/* SPDX-License-Identifier: Apache-2.0 */
/* device_plan_test.c - plans for machines that are not here: their bytes, their times, what they
 * refuse, and that nothing of this machine enters them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "config/config.h"
#include "headroom/plan_queries.h"

enum { TEXT_BYTES = 1 << 16, CARD_PAGE = 2 << 20 };

static char text[TEXT_BYTES];
static hr_plan_details details;
static hr_largest largest; /* static, so that the stack stays as deep */
static hr_frontier frontier;
static hr_smallest smallest;

static hr_config small(void)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    config.model.d_model = 256;
    config.model.n_heads = 4;
    config.model.d_ff = 1024;
    config.model.n_layers = 4;
    config.model.vocab_size = 32000;
    config.train.batch = 16;
    config.train.seq_len = 512;
    config.train.dtype = HR_FORMAT_BF16;
    return config;
}

static hr_device_choice choose(const char *words)
{
    hr_device_choice choice;
    hr_error err;
    int32_t count;
    if (hr_devices_choose(words, NULL, 1, &choice, &count, &err) != HR_OK)
        fail_msg("%s", err.message);
    return choice;
}

static hr_status plan(const hr_config *config, const hr_device_choice *device,
                      hr_plan_answer *answer, hr_error *err)
{
    const hr_plan_outputs outputs = { .size = sizeof outputs,
                                      .text = text,
                                      .text_bytes = sizeof text,
                                      .details = &details,
                                      .device = device };
    return hr_plan_make(config, &outputs, answer, err);
}

static hr_plan_answer planned(const hr_config *config, const hr_device_choice *device)
{
    static hr_plan_answer answer;
    hr_error err;
    if (plan(config, device, &answer, &err) != HR_OK) fail_msg("%s", err.message);
    return answer;
}

/* ---- bytes */

static void a_card_holds_the_arena_alone(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_choice card = choose("rtx-3060");
    const hr_plan_answer there = planned(&config, &card);
    assert_int_equal(there.process_bytes, hr_round_up(there.arena_bytes, CARD_PAGE));
    assert_int_equal(there.available_bytes, (int64_t)(12032 - 768) << 20);
    assert_int_equal(there.kernel_bytes, 0);
    assert_int_equal(details.line_count, 1);
    assert_string_equal(there.device.name, "rtx-3060");
    assert_non_null(strstr(text, "usable on rtx-3060"));
    assert_non_null(strstr(text, "estimated from published figures"));
    /* The smallest arena does not depend on rates, so it is that of one thread here. */
    config.train.threads = 1;
    const hr_plan_answer here = planned(&config, NULL);
    config.memory.budget = here.minimum_bytes;
    const hr_plan_answer least = planned(&config, NULL);
    assert_int_equal(there.minimum_bytes, hr_round_up(least.arena_bytes, CARD_PAGE));
}

static void budgets_below_the_device_count_and_those_above_do_not(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_choice card = choose("rtx-4060,reserve=1GiB");
    const int64_t whole = (int64_t)(7813 - 1024) << 20;
    config.memory.budget = INT64_C(64) << 30;
    assert_int_equal(planned(&config, &card).available_bytes, whole);
    config.memory.budget = INT64_C(1) << 30;
    const hr_plan_answer answer = planned(&config, &card);
    assert_int_equal(answer.available_bytes, INT64_C(1) << 30);
    assert_true(answer.process_bytes <= answer.available_bytes);
    assert_true(answer.arena_bytes < planned(&config, NULL).process_bytes);
}

static void a_disk_limits_the_file_of_moments(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    static hr_plan_answer answer;
    hr_error err;
    config.memory.moments = HR_PLACE_FILE;
    hr_device_choice card = choose("rtx-4090,disk=64MiB");
    assert_int_equal(plan(&config, &card, &answer, &err), HR_NO_FIT);
    assert_non_null(
        strstr(err.message, "disk= of the device is 67,108,864 bytes (64.0 MiB); type disk="));
    card = choose("rtx-4090,disk=1GiB");
    answer = planned(&config, &card);
    assert_true(answer.file_bytes > 64 << 20 && answer.file_bytes <= 1 << 30);
}

/* The text, or the sentence of a refusal. */
static const char *said(const hr_config *config, const char *device, hr_status expected)
{
    static hr_plan_answer answer;
    static hr_error err;
    const hr_device_choice choice = choose(device);
    assert_int_equal(plan(config, &choice, &answer, &err), expected);
    if (expected != HR_OK) assert_false(answer.fits);
    return expected == HR_OK ? text : err.message;
}

static void host_memory_holds_the_process_outside_the_arena(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_choice card = choose("rtx-4090,host=64GiB");
    const hr_plan_answer answer = planned(&config, &card);
    /* The program and its stacks alone take 15 MiB, and a small model needs few tables. */
    const int64_t needed = answer.device.host_needed_bytes;
    assert_true(needed > 15 << 20 && needed < 256 << 20);
    assert_non_null(strstr(text, "needed outside the arena; no tensor is kept there"));
    char words[64];
    snprintf(words, sizeof words, "rtx-4090,host=%lld", (long long)needed);
    assert_non_null(strstr(said(&config, words, HR_OK), "fits"));
    snprintf(words, sizeof words, "rtx-4090,host=%lld", (long long)needed - 1);
    assert_non_null(strstr(said(&config, words, HR_NO_FIT),
                           "of host memory outside its arena, host= of rtx-4090 is "));
}

static void a_disk_holds_what_the_run_writes(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    assert_non_null(strstr(said(&config, "rtx-4090,disk=1MiB", HR_OK),
                           "nothing is kept there: moments are in memory, train.out is not set"));
    strcpy(config.train.out, "runs/never-written");
    config.train.steps = 10;
    const hr_device_choice card = choose("rtx-4090,disk=100GiB");
    const hr_plan_answer answer = planned(&config, &card);
    assert_int_equal(answer.device.disk_needed_bytes, answer.disk.bytes);
    assert_true(answer.disk.bytes > answer.disk.tensor_bytes && answer.disk.tensor_bytes > 1 << 20);
    char words[64];
    snprintf(words, sizeof words, "rtx-4090,disk=%lld", (long long)answer.disk.bytes - 1);
    assert_non_null(strstr(said(&config, words, HR_NO_FIT), "disk= of rtx-4090 is "));
    snprintf(words, sizeof words, "rtx-4090,disk=%lld", (long long)answer.disk.bytes);
    assert_non_null(strstr(said(&config, words, HR_OK), "of it needed"));
}

static void kernels_are_those_of_the_device(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    strcpy(config.train.kernels, "avx512");
    assert_string_equal(said(&config, "laptop-8gb", HR_USAGE),
                        "train.kernels: laptop-8gb has no avx512; the best available is avx2 (or "
                        "use auto)");
}

/* ---- independence of this machine */

static void the_plan_is_that_of_the_device_wherever_it_is_made(void **state)
{
    (void)state;
    static const char *const devices[] = { "h100", "laptop-8gb" };
    for (size_t i = 0; i < 2; i++) {
        const hr_device_choice device = choose(devices[i]);
        static hr_config config;
        config = small();
        const hr_plan_answer one = planned(&config, &device);
        /* Threads and kernels of this machine belong to no card. */
        config.train.threads = i == 0 ? 7 : 4;
        strcpy(config.train.kernels, i == 0 ? "avx2" : "auto");
        static hr_plan_answer other;
        hr_error err;
        hr_plan_outputs outputs = { .size = sizeof outputs,
                                    .device = &device,
                                    .calibrations = "/nowhere" };
        assert_int_equal(hr_plan_make(&config, &outputs, &other, &err), HR_OK);
        assert_int_equal(one.process_bytes, other.process_bytes);
        assert_int_equal(one.minimum_bytes, other.minimum_bytes);
        assert_true(one.step_seconds == other.step_seconds);
        assert_string_equal(one.strategy, other.strategy);
        assert_string_equal(one.rung, i == 0 ? "none" : "avx2");
        assert_int_equal(one.threads, i == 0 ? 1 : 4);
    }
}

/* The constants of planning/target.c, added up here. */
static void a_laptop_holds_the_whole_process(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_choice laptop = choose("laptop-8gb");
    const hr_plan_answer answer = planned(&config, &laptop);
    int64_t sum = 0, image = 0, stacks = 0;
    for (int32_t i = 0; i < details.line_count; i++) {
        sum += details.lines[i].bytes;
        if (!strcmp(details.lines[i].name, "image")) image = details.lines[i].bytes;
        if (!strcmp(details.lines[i].name, "stacks")) stacks = details.lines[i].bytes;
    }
    assert_int_equal(sum, answer.process_bytes);
    assert_int_equal(image, 14 << 20);
    assert_int_equal(stacks, 4 * (256 << 10));
    assert_true(answer.process_bytes > answer.arena_bytes + image + stacks);
}

/* ---- times */

static hr_device_facts card_of(double peak, double bandwidth)
{
    hr_device_facts card = { .name = "card",
                             .title = "a card",
                             .usable_bytes = INT64_C(64) << 30,
                             .bandwidth = (int64_t)bandwidth,
                             .link = 32000000000 };
    card.peak[HR_DEVICE_FP32] = peak / 2;
    card.peak[HR_DEVICE_BF16] = peak;
    return card;
}

static double seconds_on(double peak, double bandwidth)
{
    static hr_config config;
    config = small();
    const hr_device_facts card = card_of(peak, bandwidth);
    const hr_device_choice choice = { .device = &card };
    return planned(&config, &choice).step_seconds;
}

/* With bandwidth without end only FLOP and calls take time, with FLOP without end only bytes. */
static void times_follow_from_the_published_figures(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_facts slow = card_of(0.01, 9e13);
    const hr_device_choice choice = { .device = &slow };
    const hr_plan_answer answer = planned(&config, &choice);
    const double flop = (double)answer.flops_per_token *
                        (double)(config.train.batch * config.train.seq_len);
    /* 3 x forward, at half of the peak; recomputing and gradients of attention add to it. */
    const double least = flop / (0.5 * 0.01e12);
    assert_true(answer.step_seconds > 0.99 * least && answer.step_seconds < 1.35 * least);
    const double one = seconds_on(1e5, 1e11), two = seconds_on(1e5, 2e11);
    assert_true(two > 0.5 * one && two < 0.55 * one);
    assert_true(seconds_on(100, 1e12) > seconds_on(200, 1e12));
    assert_true(seconds_on(100, 1e12) < seconds_on(100, 9e13) + seconds_on(1e5, 1e12));
}

/* ---- refusals */

static void a_card_without_the_format_is_refused(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    static hr_plan_answer answer;
    hr_error err;
    const hr_device_choice t4 = choose("t4");
    assert_int_equal(plan(&config, &t4, &answer, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "train.dtype=bf16: t4 (NVIDIA T4 16 GB) has no bf16"));
    config.train.dtype = HR_FORMAT_FP32;
    assert_int_equal(plan(&config, &t4, &answer, &err), HR_OK);
}

/* bf16 would save the most, but the card lacks it. */
static void a_refusal_offers_only_what_the_device_has(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    static hr_plan_answer answer;
    hr_error err;
    config.train.dtype = HR_FORMAT_FP32;
    config.memory.budget = 400 << 20;
    config.memory.micro_batch = 16;
    config.memory.loss_chunk = 16 * 512;
    static const char *const names[] = { "gtx-1650", "rtx-4060" };
    for (size_t i = 0; i < 2; i++) {
        const hr_device_choice card = choose(names[i]);
        bool offered = false;
        assert_int_equal(plan(&config, &card, &answer, &err), HR_NO_FIT);
        assert_true(details.change_count > 0);
        for (int32_t k = 0; k < details.change_count; k++)
            offered |= strstr(details.changes[k].what, "bf16") != NULL;
        if (i == 0) assert_false(offered);
        assert_non_null(strstr(text, "cheapest change"));
    }
    config.memory.budget = 0;
    config.model.vocab_size = 400000;
    config.model.d_model = 4096;
    config.model.n_heads = 32;
    const hr_device_choice card = choose("gtx-1650");
    assert_int_equal(plan(&config, &card, &answer, &err), HR_NO_FIT);
    assert_non_null(
        strstr(err.message, "gtx-1650 has 3,092,250,624 bytes (2,949.0 MiB) after its"));
}

/* Its smallest plan is the same on every card, so the named card holds it. */
static void a_refusal_names_the_smallest_card_that_holds_the_plan(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    static hr_plan_answer answer;
    hr_error err;
    config.model.d_model = 4096;
    config.model.n_heads = 32;
    hr_device_choice card = choose("rtx-4060");
    assert_int_equal(plan(&config, &card, &answer, &err), HR_NO_FIT);
    const int64_t least = answer.minimum_bytes;
    const char *named = strstr(text, "\n  --device ");
    assert_non_null(named);
    char name[HR_DEVICE_NAME_BYTES];
    assert_int_equal(sscanf(named + 12, "%31s", name), 1);
    card = choose(name);
    assert_int_equal(planned(&config, &card).minimum_bytes, least);
    for (int32_t i = 0; hr_device_at(i); i++) {
        const hr_device_facts *other = hr_device_at(i);
        if (other->group == HR_DEVICE_DISPLAY && other->usable_bytes < card.device->usable_bytes)
            assert_true(other->usable_bytes - other->reserve_bytes < least ||
                        !hr_device_has(other, HR_DEVICE_BF16));
    }
    /* A limit below the device is lifted first. */
    config = small();
    config.memory.budget = 64 << 20;
    assert_int_equal(plan(&config, &card, &answer, &err), HR_NO_FIT);
    assert_non_null(strstr(text, "\n  --budget "));
}

/* The group of the device that a refusal offers, and what the plan is there. */
static hr_device_group offered(const hr_config *config, const char *refused_on)
{
    static hr_plan_answer answer;
    hr_error err;
    const hr_device_choice device = choose(refused_on);
    assert_int_equal(plan(config, &device, &answer, &err), HR_NO_FIT);
    assert_true(*answer.device.larger);
    char words[96];
    snprintf(words, sizeof words, "\n  --device %s ", answer.device.larger);
    assert_non_null(strstr(text, words));
    const int64_t bytes = answer.device.larger_bytes;
    const hr_device_choice larger = choose(answer.device.larger);
    assert_int_equal(planned(config, &larger).minimum_bytes, bytes);
    return larger.device->group;
}

/* Nobody puts a board into the slot of a card, or a card into a laptop before trying a larger one.
 */
static void a_refusal_offers_a_device_that_replaces_the_one_named(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    config.train.dtype = HR_FORMAT_FP32;
    config.model.d_model = 2048; /* about 10 GiB */
    config.model.d_ff = 8192;
    config.model.n_heads = 16;
    config.model.n_layers = 12;
    assert_int_equal(offered(&config, "gtx-1650"), HR_DEVICE_DISPLAY);
    assert_int_equal(offered(&config, "laptop-8gb"), HR_DEVICE_LAPTOP);
    assert_int_equal(offered(&config, "jetson-orin-nano-8gb"), HR_DEVICE_BOARD);
    config.model.n_layers = 72; /* about 60 GiB */
    assert_int_equal(offered(&config, "m1-16gb"), HR_DEVICE_MAC);
    assert_int_equal(offered(&config, "rtx-5090"), HR_DEVICE_DATA_CENTER);
    assert_int_equal(offered(&config, "laptop-32gb"), HR_DEVICE_DATA_CENTER);
}

/* ---- questions */

static void questions_are_about_the_device_too(void **state)
{
    (void)state;
    static hr_config config;
    config = small();
    const hr_device_choice card = choose("rtx-4060,reserve=7GiB");
    const hr_plan_query question = { .size = sizeof question, .device = &card };
    hr_error err;
    assert_int_equal(hr_plan_largest(&config, "train.seq_len", &question, &largest, &err), HR_OK);
    assert_int_equal(largest.available_bytes, (int64_t)(7813 - 7168) << 20);
    config.train.seq_len = largest.value;
    const hr_plan_answer fits = planned(&config, &card);
    assert_int_equal(fits.process_bytes, largest.plan.process_bytes);
    config = small();
    assert_int_equal(hr_plan_frontier(&config, NULL, &question, &frontier, &err), HR_OK);
    assert_int_equal(frontier.points[0].process_bytes, planned(&config, &card).minimum_bytes);
    assert_int_equal(frontier.available_bytes, largest.available_bytes);
    assert_int_equal(hr_plan_smallest(&config, 0.1, &question, &smallest, &err), HR_OK);
    assert_int_equal(smallest.least.process_bytes, frontier.points[0].process_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_holds_the_arena_alone),
        cmocka_unit_test(budgets_below_the_device_count_and_those_above_do_not),
        cmocka_unit_test(a_disk_limits_the_file_of_moments),
        cmocka_unit_test(host_memory_holds_the_process_outside_the_arena),
        cmocka_unit_test(a_disk_holds_what_the_run_writes),
        cmocka_unit_test(kernels_are_those_of_the_device),
        cmocka_unit_test(the_plan_is_that_of_the_device_wherever_it_is_made),
        cmocka_unit_test(a_laptop_holds_the_whole_process),
        cmocka_unit_test(times_follow_from_the_published_figures),
        cmocka_unit_test(a_card_without_the_format_is_refused),
        cmocka_unit_test(a_refusal_offers_only_what_the_device_has),
        cmocka_unit_test(a_refusal_names_the_smallest_card_that_holds_the_plan),
        cmocka_unit_test(a_refusal_offers_a_device_that_replaces_the_one_named),
        cmocka_unit_test(questions_are_about_the_device_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
