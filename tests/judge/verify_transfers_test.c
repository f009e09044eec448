/* SPDX-License-Identifier: Apache-2.0 */
/* verify_transfers_test.c - memory spaces, transfers and updates in pieces: the verifier accepts a
 * plan of version 2, and finds every way in which it can be wrong, with its sentence. */
#include <sys/stat.h>

#include "judge/edited_plan.h"
#include "judge/wrong_transfers.h"

static void a_plan_with_a_file_passes_with_its_report(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    json_t *root = plan_with_file();
    if (judge(root, &report, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(report.arena_bytes, 40960);
    assert_int_equal(report.floor_bytes, 37056);
    assert_int_equal(report.storage_count, 15);
    assert_int_equal(report.alive_count, 10);
    assert_int_equal(report.space_count, 1);
    assert_string_equal(report.spaces[0].name, "file");
    assert_int_equal(report.spaces[0].bytes, 16384);
    assert_int_equal(report.spaces[0].floor_bytes, 16384);
    json_decref(root);
}

/* Both fit in the longest input of the target. */
static void the_seeds_of_the_fuzz_target_are_valid(void **state)
{
    (void)state;
    static const char *const seeds[] = { "hand.json", "file.json" };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char seed[256];
        hr_verify_report report;
        hr_error err;
        struct stat about;
        snprintf(seed, sizeof seed, "%s/tests/fuzz/plans/%s", HR_SOURCE, seeds[i]);
        if (hr_verify_file(seed, &report, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(stat(seed, &about), 0);
        assert_in_range(about.st_size, 1, 4096);
        assert_int_equal(report.space_count, (int32_t)i);
    }
}

static void each_wrong_transfer_is_found_with_its_sentence(void **state)
{
    (void)state;
    int32_t missed = 0;
    for (size_t i = 0; i < LIES; i++) {
        hr_verify_report report;
        hr_error err;
        json_t *root = plan_of_lie(&lies[i]);
        const hr_status status = judge(root, &report, &err);
        json_decref(root);
        assert_null(strchr(err.message, '\n'));
        if (status == lies[i].status && strstr(err.message, lies[i].sentence)) continue;
        print_error("%s: status %d: %s\n", lies[i].name, status, err.message);
        missed++;
    }
    assert_int_equal(missed, 0);
    printf("%d lies found\n", LIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_with_a_file_passes_with_its_report),
        cmocka_unit_test(the_seeds_of_the_fuzz_target_are_valid),
        cmocka_unit_test(each_wrong_transfer_is_found_with_its_sentence),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
