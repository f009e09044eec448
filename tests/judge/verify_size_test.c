/* SPDX-License-Identifier: Apache-2.0 */
/* verify_size_test.c - a plan of thousands of layers is verified: only the size of the file has a
 * limit. */
#include <stdbool.h>

#include "judge/edited_plan.h"

enum { MANY = 70000 }; /* buffers; with twice as many steps, more than 2^17 records */

/* One step writes each buffer and one reads it. Every buffer lies below all earlier ones, and all
 * are live in the middle. The first buffer is `shift` bytes from its place. */
static char *plan_of_many(int32_t shift)
{
    char *text = malloc((size_t)MANY * 400);
    assert_non_null(text);
    size_t at = (size_t)sprintf(
        text,
        "{\"version\":1,\"machine\":{\"kernels\":\"avx2\",\"threads\":2,\"page_bytes\":64},"
        "\"arena_bytes\":%d,\"floor_bytes\":%d,\"process_bytes\":%d,"
        "\"process\":[{\"name\":\"arena\",\"bytes\":%d}],\"loops\":[{\"name\":\"run\","
        "\"parent\":-1,\"step_first\":0,\"step_last\":%d,\"repeats\":1}],\"buffers\":[",
        64 * MANY, 64 * MANY, 64 * MANY, 64 * MANY, 2 * MANY - 1);
    for (int32_t i = 0; i < MANY; i++)
        at += (size_t)sprintf(
            text + at,
            "%s{\"name\":\"x%d\",\"dtype\":\"f32\",\"shape\":[16],\"role\":\"activation\","
            "\"bytes\":64,\"offset\":%d,\"step_first\":%d,\"step_last\":%d,\"home\":0,"
            "\"storage\":%d,\"view_of\":null}",
            i ? "," : "", i, 64 * (MANY - 1 - i) - (i ? 0 : shift), i, MANY + i, i);
    at += (size_t)sprintf(text + at, "],\"steps\":[");
    for (int32_t s = 0; s < 2 * MANY; s++) {
        const bool reads = s >= MANY;
        at += (size_t)sprintf(text + at,
                              "%s{\"index\":%d,\"loop\":0,\"layer\":-1,\"op\":\"%s\","
                              "\"reads\":[",
                              s ? "," : "", s, reads ? "use" : "make");
        at += (size_t)(reads ? sprintf(text + at, "%d],\"writes\":[],\"flops\":0}", s - MANY)
                             : sprintf(text + at, "],\"writes\":[[%d,\"write\"]],\"flops\":0}", s));
    }
    sprintf(text + at, "]}");
    return text;
}

static void a_plan_of_many_records_is_verified(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    char *text = plan_of_many(0);
    if (judge_bytes(text, strlen(text), &report, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(report.alive_count, MANY);
    assert_int_equal(report.floor_bytes, 64 * MANY);
    free(text);
    text = plan_of_many(64);
    assert_int_equal(judge_bytes(text, strlen(text), &report, &err), HR_BROKEN);
    assert_non_null(strstr(err.message, "buffers 0 (x0) and 1 (x1) are both in use at step 1"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_plan_of_many_records_is_verified) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
