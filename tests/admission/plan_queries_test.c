/* SPDX-License-Identifier: Apache-2.0 */
/* plan_queries_test.c - compares the largest value with brute force, budgets with the page below
 * them, and frontiers with the plans of their budgets and the verifier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "headroom/plan_queries.h"
#include "headroom/verify.h"
#include "support/random_config.h"

enum { SEED = 20261121, TEXT_BYTES = 1 << 16, PAGE = 4096 };

static char text[TEXT_BYTES];
static const hr_plan_query question = { .size = sizeof question,
                                        .text = text,
                                        .text_bytes = sizeof text,
                                        .columns = 80 };
static hr_error err;

/* Large objects are static: the stack depth is part of the plan, and must not differ between the
 * plans that are compared. */

static hr_config recipe(uint64_t round)
{
    hr_config config = random_config(SEED, round);
    config.memory.recompute = HR_RECOMPUTE_AUTO;
    config.train.threads = 2;
    config.train.out[0] = 0;
    config.model.vocab_size = 12000; /* otherwise planning is the peak of every run */
    config.model.d_model = config.model.n_heads * 64;
    return config;
}

/* Plans within the budget, as a user would, and returns the status and the bytes. */
static hr_status plan(const hr_config *config, int64_t budget, hr_plan_answer *answer)
{
    static hr_config bounded;
    const hr_plan_outputs outputs = { .size = sizeof outputs };
    bounded = *config;
    bounded.memory.budget = budget;
    return hr_plan_make(&bounded, &outputs, answer, &err);
}

static int64_t minimum(const hr_config *config)
{
    static hr_plan_answer answer;
    if (plan(config, INT64_C(1) << 40, &answer) != HR_OK) fail_msg("%s", err.message);
    return answer.minimum_bytes;
}

static void set(hr_config *config, const char *key, int64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    if (hr_config_set(config, key, digits, &err) != HR_OK) fail_msg("%s", err.message);
}

/* ---- the largest value */

/* Plans all valid values in a range, and returns the largest that fits. */
static int64_t largest_of_all(const hr_config *config, const char *key, int64_t first, int64_t most)
{
    int64_t largest = -1;
    for (int64_t value = first; value <= most; value++) {
        static hr_config other;
        static hr_plan_answer answer;
        other = *config;
        set(&other, key, value);
        if (hr_config_check(&other, NULL) != HR_OK) continue;
        const hr_status status = plan(&other, config->memory.budget, &answer);
        if (status == HR_OK) largest = value;
        else if (status != HR_NO_FIT) fail_msg("%s=%lld: %s", key, (long long)value, err.message);
    }
    return largest;
}

/* Each budget is between the smallest plans of two values, so some values fit and others do not. */
static void the_largest_value_matches_brute_force(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t low, high, first, most; /* brute force from `first` to `most` */
    } cases[] = {
        { "train.seq_len", 960, 1088, 956, 1030 }, { "model.d_model", 256, 320, 224, 352 },
        { "model.n_layers", 2, 5, 1, 6 },          { "model.vocab_size", 6000, 6020, 5995, 6030 },
        { "memory.micro_batch", 1, 12, 1, 12 },    { "model.d_ff", 700, 730, 695, 735 },
        { "model.n_heads", 1, 8, 1, 256 },         { "train.threads", 3, 9, 1, 12 },
    };
    static hr_config config, low, high, asked;
    static hr_largest answer;
    hr_config_default(&config);
    config.model.d_model = 256;
    config.model.n_heads = 4;
    config.model.n_layers = 2;
    config.model.vocab_size = 6000;
    config.train.batch = 12;
    config.train.seq_len = 192;
    config.train.threads = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *key = cases[i].key;
        low = high = asked = config;
        set(&low, key, cases[i].low);
        set(&high, key, cases[i].high);
        asked.memory.budget = (minimum(&low) + minimum(&high)) / 2;
        const hr_status status = hr_plan_largest(&asked, key, &question, &answer, &err);
        if (status != HR_OK) fail_msg("%s: %s", key, err.message);
        const int64_t expected = largest_of_all(&asked, key, cases[i].first, cases[i].most);
        const bool found = answer.outcome == HR_LARGEST_FOUND;
        if (found ? answer.value != expected : answer.value < expected)
            fail_msg("%s: %lld, of all %lld\n%s", key, (long long)answer.value, (long long)expected,
                     text);
        assert_true(answer.value_bytes <= asked.memory.budget);
        assert_true(answer.plan.process_bytes <= asked.memory.budget);
        if (found) assert_true(answer.next_bytes > asked.memory.budget);
        print_message("%s: %lld after %d plans\n", key, (long long)answer.value, answer.probes);
    }
}

/* One sequence can be cut at multiples of 64 whatever its length. */
static void a_token_more_in_one_sequence_takes_bytes_in_proportion(void **state)
{
    (void)state;
    static hr_config config, longer;
    static hr_largest answer;
    config = recipe(1);
    config.train.batch = 1;
    config.train.seq_len = 1024;
    longer = config;
    longer.train.seq_len = 1088;
    const int64_t low = minimum(&config), high = minimum(&longer);
    for (int64_t T = 1025; T < 1088; T += 31) {
        longer.train.seq_len = T;
        const int64_t bytes = minimum(&longer);
        if (bytes < low || bytes > high)
            fail_msg("%lld bytes with %lld tokens, %lld with 1024, %lld with 1088",
                     (long long)bytes, (long long)T, (long long)low, (long long)high);
    }
    config.memory.budget = (low + high) / 2;
    if (hr_plan_largest(&config, "train.seq_len", &question, &answer, &err) != HR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(answer.value, largest_of_all(&config, "train.seq_len", 1020, 1090));
    assert_true(answer.value % 64 != 0 && answer.beyond == -1);
}

static void keys_that_do_not_change_the_bytes_are_reported(void **state)
{
    (void)state;
    static hr_config config;
    config = recipe(1);
    hr_largest *answer = malloc(sizeof *answer);
    config.memory.budget = minimum(&config);
    assert_int_equal(hr_plan_largest(&config, "train.seed", &question, answer, &err), HR_OK);
    assert_int_equal(answer->outcome, HR_LARGEST_FREE);
    assert_int_equal(answer->free_from, -1);
    assert_int_equal(answer->value, INT64_C(9007199254740992));
    assert_non_null(
        strstr(text, "largest train.seed that fits: 9,007,199,254,740,992, its maximum\n"));
    free(answer);
}

/* Beyond the largest micro-batch, a larger batch only has more micro-batches. */
static void the_largest_batch_reports_the_largest_micro_batch(void **state)
{
    (void)state;
    static hr_config config, at_once;
    config = recipe(3);
    hr_largest *answer = malloc(sizeof *answer);
    config.train.batch = 6;
    config.memory.budget = 2 * minimum(&config);
    assert_int_equal(hr_plan_largest(&config, "train.batch", &question, answer, &err), HR_OK);
    assert_int_equal(answer->outcome, HR_LARGEST_FREE);
    char first[128], count[HR_COUNT_BYTES];
    snprintf(
        first, sizeof first,
        "largest train.batch that fits: %s without gradient accumulation, any up to 16,777,216 "
        "with it\n",
        hr_count_print(answer->at_once, count));
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    assert_non_null(strstr(text, "  memory does not grow beyond train.batch="));
    assert_true(answer->at_once > 0);
    assert_int_equal(answer->tokens_at_once, answer->at_once * config.train.seq_len);
    at_once = config;
    at_once.train.batch = at_once.memory.micro_batch = answer->at_once;
    assert_int_equal(minimum(&at_once), answer->at_once_bytes);
    assert_true(answer->at_once_bytes <= config.memory.budget);
    at_once.train.batch = ++at_once.memory.micro_batch;
    assert_true(minimum(&at_once) > config.memory.budget);
    free(answer);
}

static void if_nothing_fits_the_smallest_value_is_reported(void **state)
{
    (void)state;
    static hr_config config;
    config = recipe(2);
    hr_largest *answer = malloc(sizeof *answer);
    config.memory.budget = 1;
    assert_int_equal(hr_plan_largest(&config, "model.n_layers", &question, answer, &err),
                     HR_NO_FIT);
    assert_int_equal(answer->outcome, HR_LARGEST_NONE);
    assert_int_equal(answer->next, 1);
    assert_true(answer->next_bytes > 1);
    assert_non_null(strstr(err.message, "no model.n_layers fits: with 1 the run needs at least "));
    free(answer);
}

static void keys_without_integer_values_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = { "model.dropout",
                                        "model.family",
                                        "data.train",
                                        "memory.budget",
                                        "model.parallel_residual",
                                        "seq_len",
                                        "" };
    static hr_config config;
    config = recipe(3);
    hr_largest *answer = malloc(sizeof *answer);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(hr_plan_largest(&config, keys[i], &question, answer, &err), HR_USAGE);
    free(answer);
}

/* The limit is one of counted work, so equal limits give equal answers. The search without a limit
 * takes about as much work as HR_QUERY_WORK allows, more or less by the optimizer of the recipe. */
static void a_largest_value_at_the_limit_of_work_says_so(void **state)
{
    (void)state;
    static hr_config config;
    static hr_largest whole, part;
    const int64_t work_most = INT64_C(1) << 45;
    hr_plan_query limited = question;
    config = recipe(2);
    config.memory.budget = 2 * minimum(&config);
    limited.work_most = work_most;
    if (hr_plan_largest(&config, "train.seq_len", &limited, &whole, &err) != HR_OK)
        fail_msg("%s", err.message);
    assert_false(whole.cut);
    assert_null(strstr(text, "limit of work"));
    int32_t cut = 0;
    int64_t value = 0;
    for (int64_t most = 1; most <= work_most; most *= 8) {
        limited.work_most = most;
        if (hr_plan_largest(&config, "train.seq_len", &limited, &part, &err) != HR_OK)
            fail_msg("%s", err.message);
        if (!part.cut) break;
        cut++;
        assert_true(part.value >= value && part.value <= whole.value);
        assert_true(part.below < 0 || part.below > part.value);
        assert_true(part.probes < whole.probes);
        assert_true(part.plan.process_bytes <= config.memory.budget);
        char said[128];
        snprintf(said, sizeof said, "the search ended at its limit of work, after %d plans; ",
                 part.probes);
        assert_non_null(strstr(text, said));
        value = part.value;
    }
    assert_true(cut >= 3);
    assert_false(part.cut);
    assert_int_equal(part.value, whole.value);
    limited.work_most = 1; /* it begins at the value of the recipe */
    set(&config, "train.seq_len", whole.value);
    assert_int_equal(hr_plan_largest(&config, "train.seq_len", &limited, &part, &err), HR_OK);
    assert_true(part.cut);
    assert_true(part.value >= whole.value / 64 * 64);
}

/* ---- the smallest budget */

static void check_least(const hr_config *config, const hr_plan_point *point)
{
    static hr_plan_answer answer;
    if (plan(config, point->process_bytes, &answer) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(answer.process_bytes, point->process_bytes);
    assert_true(answer.step_seconds == point->step_seconds);
    assert_string_equal(answer.strategy, point->strategy);
}

static void a_page_below_the_smallest_budget_is_refused(void **state)
{
    (void)state;
    hr_smallest *answer = malloc(sizeof *answer);
    for (uint64_t round = 0; round < 4 * HR_COUNT; round++) {
        static hr_config config;
        static hr_plan_answer below;
        config = recipe(round);
        const double slowdown = 0.01 * (double)(round % 4);
        if (hr_plan_smallest(&config, slowdown, &question, answer, &err) != HR_OK)
            fail_msg("%s", err.message);
        check_least(&config, &answer->least);
        check_least(&config, &answer->within);
        assert_int_equal(answer->within_bound, 0);
        assert_int_equal(plan(&config, answer->least.process_bytes - PAGE, &below), HR_NO_FIT);
        const double most = answer->fastest.step_seconds * (1 + slowdown);
        assert_true(answer->within.step_seconds <= most * (1 + 1e-9));
        if (plan(&config, answer->within.process_bytes - PAGE, &below) == HR_OK)
            assert_true(below.step_seconds > most);
    }
    free(answer);
}

static void an_invalid_slowdown_is_refused(void **state)
{
    (void)state;
    static hr_config config;
    config = recipe(0);
    hr_smallest *answer = malloc(sizeof *answer);
    const double wrong[] = { -0.1, 0.0 / 0.0, 1.0 / 0.0 };
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(hr_plan_smallest(&config, wrong[i], &question, answer, &err), HR_USAGE);
    free(answer);
}

/* ---- the frontier */

/* Makes the plan of the budget of a point, and verifies its file. */
static void judge(const hr_config *config, const hr_plan_point *point, const char *file)
{
    static hr_config bounded;
    static hr_plan_answer answer;
    static hr_verify_report report;
    bounded = *config;
    const hr_plan_outputs outputs = { .size = sizeof outputs, .file = file };
    bounded.memory.budget = point->process_bytes;
    if (hr_plan_make(&bounded, &outputs, &answer, &err) != HR_OK) fail_msg("%s", err.message);
    if (hr_verify_file(file, &report, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(report.process_bytes, point->process_bytes);
    assert_int_equal(report.arena_bytes, point->arena_bytes);
    assert_int_equal(report.floor_bytes, point->floor_bytes);
    assert_true(answer.step_seconds == point->step_seconds);
}

static void every_frontier_point_is_a_plan_and_none_is_dominated(void **state)
{
    (void)state;
    hr_frontier *frontier = malloc(sizeof *frontier);
    char file[64];
    const char *parent = getenv("TMPDIR");
    snprintf(file, sizeof file, "%.30s/frontier_%d.json", parent ? parent : P_tmpdir, getpid());
    int32_t most = 0;
    for (uint64_t round = 0; round < 3 * HR_COUNT; round++) {
        static hr_config config;
        config = recipe(round);
        config.model.d_ff = 600;
        config.train.seq_len = 256;
        if (hr_plan_frontier(&config, NULL, &question, frontier, &err) != HR_OK)
            fail_msg("%s", err.message);
        assert_true(frontier->count >= 1 && frontier->count <= HR_POINTS_MOST);
        if (frontier->count > most) most = frontier->count;
        for (int32_t i = 0; i < frontier->count; i++) {
            const hr_plan_point *point = &frontier->points[i];
            judge(&config, point, file);
            if (i == 0) continue;
            assert_true(point[-1].process_bytes < point->process_bytes);
            assert_true(point[-1].step_seconds > point->step_seconds);
        }
        static hr_plan_answer ends;
        const hr_plan_point *last = &frontier->points[frontier->count - 1];
        assert_int_equal(frontier->points[0].process_bytes, minimum(&config));
        assert_int_equal(plan(&config, INT64_C(1) << 40, &ends), HR_OK);
        assert_int_equal(ends.process_bytes, last->process_bytes);
    }
    remove(file);
    print_message("%d points at most\n", most);
    assert_true(most >= 8);
    free(frontier);
}

static void a_frontier_that_ends_at_its_limit_says_so(void **state)
{
    (void)state;
    static hr_config config;
    hr_frontier *whole = malloc(sizeof *whole), *part = malloc(sizeof *part);
    config = recipe(1);
    hr_plan_query limited = question;
    limited.work_most = 1;
    if (hr_plan_frontier(&config, NULL, &question, whole, &err) != HR_OK)
        fail_msg("%s", err.message);
    assert_false(whole->cut);
    assert_null(strstr(text, "limit of work"));
    if (hr_plan_frontier(&config, NULL, &limited, part, &err) != HR_OK) fail_msg("%s", err.message);
    assert_true(part->cut && part->probes < whole->probes);
    assert_non_null(strstr(text, "the search ended at its limit of work, after "));
    /* Both ends are there. */
    assert_int_equal(part->count, 2);
    assert_int_equal(part->points[0].process_bytes, whole->points[0].process_bytes);
    assert_int_equal(part->points[1].process_bytes, whole->points[whole->count - 1].process_bytes);
    free(whole);
    free(part);
}

#define END_OF(text, words) \
    (strlen(text) >= strlen(words) && !strcmp((text) + strlen(text) - strlen(words), words))

static void a_plot_is_complete_or_absent(void **state)
{
    (void)state;
    hr_frontier *frontier = malloc(sizeof *frontier);
    static char svg[TEXT_BYTES];
    char path[96];
    static hr_config config;
    config = recipe(0);
    config.train.seq_len = 256;
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.30s/frontier_%d.svg", parent ? parent : P_tmpdir, getpid());
    assert_int_equal(hr_plan_frontier(&config, path, &question, frontier, &err), HR_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = 0;
    fclose(file);
    remove(path);
    assert_int_equal(strncmp(svg, "<svg ", 5), 0);
    assert_true(END_OF(svg, "</svg>\n"));
    int32_t circles = 0;
    for (const char *at = svg; (at = strstr(at, "<circle ")); at++) circles++;
    assert_int_equal(circles, frontier->count);
    assert_int_equal(hr_plan_frontier(&config, "/nonexistent/f.svg", &question, frontier, &err),
                     HR_USAGE);
    free(frontier);
}

static void a_strategy_file_leaves_nothing_to_search(void **state)
{
    (void)state;
    static hr_config config;
    config = recipe(0);
    static hr_plan_answer answer;
    hr_frontier *frontier = malloc(sizeof *frontier);
    hr_smallest *smallest = malloc(sizeof *smallest);
    const char *parent = getenv("TMPDIR");
    assert_int_equal(plan(&config, INT64_C(1) << 40, &answer), HR_OK);
    snprintf(config.memory.strategy, sizeof config.memory.strategy, "%.30s/strategy_%d.yaml",
             parent ? parent : P_tmpdir, getpid());
    FILE *file = fopen(config.memory.strategy, "w");
    assert_non_null(file);
    fputs(answer.strategy, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(hr_plan_frontier(&config, NULL, &question, frontier, &err), HR_OK);
    assert_non_null(strstr(text, "there is only this plan"));
    assert_int_equal(frontier->count, 1);
    assert_true(frontier->named);
    assert_int_equal(frontier->points[0].process_bytes, answer.process_bytes);
    assert_int_equal(hr_plan_smallest(&config, 0.1, &question, smallest, &err), HR_OK);
    assert_non_null(strstr(text, "there is only this plan"));
    assert_int_equal(smallest->least.process_bytes, answer.process_bytes);
    static hr_largest largest;
    assert_int_equal(hr_plan_largest(&config, "model.n_layers", &question, &largest, &err), HR_OK);
    assert_int_equal(largest.outcome, HR_LARGEST_END);
    assert_int_equal(largest.value, config.model.n_layers);
    assert_non_null(strstr(largest.reason, config.memory.strategy));
    remove(config.memory.strategy);
    free(smallest);
    free(frontier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_value_matches_brute_force),
        cmocka_unit_test(a_token_more_in_one_sequence_takes_bytes_in_proportion),
        cmocka_unit_test(keys_that_do_not_change_the_bytes_are_reported),
        cmocka_unit_test(the_largest_batch_reports_the_largest_micro_batch),
        cmocka_unit_test(if_nothing_fits_the_smallest_value_is_reported),
        cmocka_unit_test(keys_without_integer_values_are_refused),
        cmocka_unit_test(a_largest_value_at_the_limit_of_work_says_so),
        cmocka_unit_test(a_frontier_that_ends_at_its_limit_says_so),
        cmocka_unit_test(a_page_below_the_smallest_budget_is_refused),
        cmocka_unit_test(an_invalid_slowdown_is_refused),
        cmocka_unit_test(every_frontier_point_is_a_plan_and_none_is_dominated),
        cmocka_unit_test(a_plot_is_complete_or_absent),
        cmocka_unit_test(a_strategy_file_leaves_nothing_to_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
