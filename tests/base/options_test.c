/* SPDX-License-Identifier: Apache-2.0 */
/* options_test.c - options of callers begin with their size: those of an older version of the
 * library are completed with zeros, those of a newer one are refused if they ask for more, and
 * every function of the library refuses options without a size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"
#include "headroom/audit.h"
#include "headroom/calibrate.h"
#include "headroom/config.h"
#include "headroom/convert.h"
#include "headroom/evaluate.h"
#include "headroom/generate.h"
#include "headroom/pack.h"
#include "headroom/plan.h"
#include "headroom/plan_grid.h"
#include "headroom/plan_queries.h"
#include "headroom/profile.h"
#include "headroom/prove.h"
#include "headroom/tokenize.h"
#include "headroom/tokenize_train.h"
#include "headroom/train.h"

typedef struct {
    size_t size;
    int64_t first;
} older;

typedef struct {
    size_t size;
    int64_t first, second;
} options;

typedef struct {
    size_t size;
    int64_t first, second, third;
} newer;

static void options_of_an_older_version_are_completed(void **state)
{
    (void)state;
    hr_error err;
    options own;
    memset(&own, 0xa5, sizeof own);
    assert_int_equal(
        hr_options_take(&own, sizeof own, &(older){ .size = sizeof(older), .first = 7 }, &err),
        HR_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 7);
    assert_int_equal(own.second, 0);
    memset(&own, 0xa5, sizeof own);
    assert_int_equal(hr_options_take(&own, sizeof own, NULL, &err), HR_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first + own.second, 0);
}

static void options_of_a_newer_version_are_taken_if_they_ask_for_nothing_new(void **state)
{
    (void)state;
    hr_error err;
    options own;
    newer given = { .size = sizeof given, .first = 7, .second = 8 };
    assert_int_equal(hr_options_take(&own, sizeof own, &given, &err), HR_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 7);
    assert_int_equal(own.second, 8);
    given.third = 1;
    assert_int_equal(hr_options_take(&own, sizeof own, &given, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "32 bytes, of which this version of the library knows 24"));
    given.size = sizeof given.size - 1;
    assert_int_equal(hr_options_take(&own, sizeof own, &given, &err), HR_USAGE);
}

/* The sentence about a size of 0, from each function that takes options. */
static void every_function_refuses_options_without_a_size(void **state)
{
    (void)state;
    static hr_audit_report audit;
    hr_config *config = hr_config_new();
    assert_non_null(config);
    assert_int_equal(hr_config_set(config, "train.out", "", NULL), HR_OK);
    const hr_train_options train = { 0 };
    const hr_prove_options prove = { 0 };
    const hr_plan_outputs outputs = { 0 };
    const hr_plan_query question = { 0 };
    const hr_grid_request grid = { 0 };
    const hr_calibrate_request calibrate = { .checks = 1 };
    const hr_convert_request convert = { 0 };
    const hr_infer_request model = { 0 };
    const hr_evaluate_request evaluate = { .size = sizeof evaluate, .model = &model },
                              unsized_evaluate = { 0 };
    const hr_generate_request generate = { .size = sizeof generate, .model = &model },
                              unsized_generate = { 0 };
    const hr_pack_request pack = { 0 };
    const hr_tokenize_train_request merge = { 0 };
    const hr_audit_request claims = { 0 };
    hr_train_result trained;
    hr_prove_report proved;
    hr_profile_report profiled;
    hr_plan_answer answer;
    hr_largest largest;
    hr_smallest smallest;
    hr_frontier frontier;
    hr_calibrate_report calibrated;
    hr_calibrate_verdict verdict;
    hr_convert_report converted;
    hr_evaluate_result evaluated;
    hr_generate_result generated;
    hr_pack_report packed;
    hr_tokenize_train_result merged;
    char said[HR_ERROR_BYTES];
    hr_error err;
#define REFUSED(call) \
    do { \
        assert_int_equal(call, HR_USAGE); \
        assert_non_null(strstr(err.message, "the member size of options is 0")); \
    } while (0)
    REFUSED(hr_train(config, &train, &trained, &err));
    REFUSED(hr_profile(config, &train, 1, NULL, &profiled, &err));
    REFUSED(hr_prove(config, &prove, &proved, &err));
    REFUSED(hr_plan_make(config, &outputs, &answer, &err));
    REFUSED(hr_plan_largest(config, "train.batch", &question, &largest, &err));
    REFUSED(hr_plan_smallest(config, 2, &question, &smallest, &err));
    REFUSED(hr_plan_frontier(config, NULL, &question, &frontier, &err));
    REFUSED(hr_plan_grid(&grid, &err));
    REFUSED(hr_calibrate(&calibrate, &calibrated, &err));
    REFUSED(hr_calibrate_check(&calibrate, &verdict, &err));
    REFUSED(hr_convert(&convert, &converted, &err));
    REFUSED(hr_evaluate(&unsized_evaluate, &evaluated, &err));
    REFUSED(hr_evaluate(&evaluate, &evaluated, &err));
    REFUSED(hr_generate(&unsized_generate, &generated, &err));
    REFUSED(hr_generate(&generate, &generated, &err));
    REFUSED(hr_pack_file(&pack, &packed, &err));
    REFUSED(hr_tokenize_train(&merge, &merged, &err));
    REFUSED(hr_audit_file("nowhere", &claims, &audit, &err));
    assert_int_equal(hr_config_set(config, "train.state.moments", "auto", &err), HR_OK);
    REFUSED(hr_plan_choose_states(config, &outputs, true, said, &err));
    hr_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_an_older_version_are_completed),
        cmocka_unit_test(options_of_a_newer_version_are_taken_if_they_ask_for_nothing_new),
        cmocka_unit_test(every_function_refuses_options_without_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
