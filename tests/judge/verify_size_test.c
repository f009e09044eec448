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

enum { PIECES = 10000, PIECE_BYTES = 4096, PIECE_STEPS = 5 };

static const char a_buffer[] =
    "%s{\"name\":\"%s%d\",\"dtype\":\"f32\",\"shape\":[%d],\"role\":\"%s\",\"space\":\"%s\","
    "\"bytes\":%d,\"offset\":%d,\"step_first\":%d,\"step_last\":%d,\"home\":%d,\"storage\":%d,"
    "\"view_of\":%s}";

/* A weight and its moment in the file, updated in many pieces. All are fetched before the first is
 * updated, into one window each. `readers`: so many steps at the end read the whole window of all
 * pieces, of which the windows are views. */
static char *plan_of_pieces(int32_t pieces, int32_t readers)
{
    const int32_t bytes = pieces * PIECE_BYTES, updates = readers ? 2 : PIECE_STEPS;
    const int32_t steps = 3 + updates * pieces + readers, last = steps - 1;
    char *text = malloc((size_t)pieces * 2000 + (size_t)readers * 200 + 10000);
    assert_non_null(text);
    char *at = text;
    at += sprintf(at,
                  "{\"version\":2,\"machine\":{\"kernels\":\"avx2\",\"threads\":2,"
                  "\"page_bytes\":4096},\"arena_bytes\":%d,\"floor_bytes\":%d,"
                  "\"process_bytes\":%d,\"process\":[{\"name\":\"arena\",\"bytes\":%d}],"
                  "\"spaces\":[{\"name\":\"file\",\"bytes\":%d,\"floor_bytes\":%d}],"
                  "\"loops\":[{\"name\":\"run\",\"parent\":-1,\"step_first\":0,\"step_last\":%d,"
                  "\"repeats\":1},{\"name\":\"load\",\"parent\":0,\"step_first\":0,\"step_last\":2,"
                  "\"repeats\":1},{\"name\":\"step\",\"parent\":0,\"step_first\":3,"
                  "\"step_last\":%d,\"repeats\":1}],\"buffers\":[",
                  3 * bytes, 2 * bytes, 3 * bytes, 3 * bytes, bytes, bytes, last, last);
    const int32_t count = bytes / 4;
    at += sprintf(at, a_buffer, "", "w", 0, count, "weight", "host", bytes, 0, 0, last, -1, 0,
                  "null");
    at += sprintf(at, a_buffer, ",", "m", 0, count, "moment", "file", bytes, 0, 0, last, -1, 1,
                  "null");
    at += sprintf(at, a_buffer, ",", "load", 0, count, "moment", "host", bytes, bytes, 0, 2, 1, 2,
                  "null");
    at += sprintf(at, a_buffer, ",", "windows", 0, count, "moment", "host", bytes, 2 * bytes, 3,
                  last, 2, 3, "null");
    for (int32_t i = 0; i < pieces; i++) {
        const int32_t from = i * PIECE_BYTES, part = PIECE_BYTES / 4;
        at += sprintf(at, a_buffer, ",", "w.", i, part, "weight", "host", PIECE_BYTES, from, 0,
                      last, -1, 0, "0");
        at += sprintf(at, a_buffer, ",", "m.", i, part, "moment", "file", PIECE_BYTES, from, 0,
                      last, -1, 1, "1");
        at += sprintf(at, a_buffer, ",", "window.", i, part, "moment", "host", PIECE_BYTES,
                      2 * bytes + from, 3, last, 2, 3, "3");
    }
    static const char a_step[] =
        "%s{\"index\":%d,\"loop\":%d,\"layer\":-1,\"op\":\"%s\",\"reads\":[%s],\"writes\":[%s],"
        "\"flops\":0}";
    at += sprintf(at, "],\"steps\":[");
    at += sprintf(at, a_step, "", 0, 1, "initialize", "", "[0,\"write\"],[2,\"write\"]");
    at += sprintf(at, a_step, ",", 1, 1, "spill_begin", "2", "[1,\"write\"]");
    at += sprintf(at, a_step, ",", 2, 1, "spill_wait", "2", "");
    int32_t s = 3;
    for (int32_t i = 0; i < updates * pieces; i++) {
        static const char *const ops[] = { "fetch_begin", "fetch_wait", "adamw", "spill_begin",
                                           "spill_wait" };
        const int32_t op = i < pieces ? 0 : 1 + (i - pieces) % (updates - 1);
        const int32_t piece = i < pieces ? i : (i - pieces) / (updates - 1);
        const int32_t weight = 4 + 3 * piece, moment = weight + 1, window = weight + 2;
        char reads[32] = "", writes[80] = "";
        if (op != 2) sprintf(reads, "%d", op ? window : moment);
        if (op == 2) sprintf(writes, "[%d,\"update\"],[%d,\"update\"]", weight, window);
        if (op == 0 || op == 3) sprintf(writes, "[%d,\"write\"]", op ? moment : window);
        at += sprintf(at, a_step, ",", s++, 2, ops[op], reads, writes);
    }
    for (int32_t i = 0; i < readers; i++) at += sprintf(at, a_step, ",", s++, 2, "save", "3", "");
    sprintf(at, "]}");
    return text;
}

static void a_plan_of_many_transfers_at_once_is_verified(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    char *text = plan_of_pieces(PIECES, 0);
    if (judge_bytes(text, strlen(text), &report, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(report.space_count, 1);
    assert_int_equal(report.spaces[0].bytes, PIECES * PIECE_BYTES);
    free(text);
}

/* Their number would grow with the square of the file. */
static void a_plan_of_many_readers_of_many_windows_is_refused(void **state)
{
    (void)state;
    hr_verify_report report;
    hr_error err;
    char *text = plan_of_pieces(PIECES, PIECES);
    assert_int_equal(judge_bytes(text, strlen(text), &report, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "accesses meet more windows and transfers than it has "
                                        "bytes"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_of_many_records_is_verified),
        cmocka_unit_test(a_plan_of_many_transfers_at_once_is_verified),
        cmocka_unit_test(a_plan_of_many_readers_of_many_windows_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
