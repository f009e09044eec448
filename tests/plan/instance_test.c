/* SPDX-License-Identifier: Apache-2.0 */
/* instance_test.c - packing instances as files: reading, refusing, packing and writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "headroom/pack.h"
#include "plan/instance.h"
#include "support/folder.h"

static hr_folder folder;
static char in[512], out[512];
static hr_error err;

static int make_folder(void **state)
{
    (void)state;
    folder = hr_folder_open();
    strcpy(in, hr_folder_path(&folder, "in.csv"));
    strcpy(out, hr_folder_path(&folder, "out.csv"));
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

static void put(const char *text, size_t bytes)
{
    hr_folder_write(in, text, (int64_t)bytes);
}

static const char *written(void)
{
    static char text[4096];
    FILE *file = fopen(out, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static hr_status pack(int64_t capacity, double seconds, hr_pack_report *report)
{
    const hr_pack_request request = { sizeof request, in, out, capacity, seconds };
    unlink(out);
    err = (hr_error){ HR_OK, "" };
    return hr_pack_file(&request, report, &err);
}

static void columns_may_have_any_order(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbfsize, id ,offset,upper,lower\r\n"
                               "4,weights of 3,,20,-10\r\n"
                               "\r\n"
                               "0,\"b\",77,5,4";
    hr_instance instance;
    put(text, sizeof text - 1);
    assert_int_equal(hr_instance_read(in, &instance, &err), HR_OK);
    assert_int_equal(instance.count, 2);
    assert_memory_equal(instance.text + instance.rows[0].id, "weights of 3", 12);
    assert_int_equal(instance.rows[0].id_bytes, 12);
    assert_int_equal(instance.rows[0].lower, -10);
    assert_int_equal(instance.rows[0].upper, 20);
    assert_int_equal(instance.rows[0].bytes, 4);
    assert_int_equal(instance.rows[1].bytes, 0);
    assert_int_equal(instance.rows[1].line, 4);
    instance.rows[1].offset = INT64_MAX;
    assert_int_equal(hr_instance_write(out, &instance, &err), HR_OK);
    assert_string_equal(written(), "id,lower,upper,size,offset\n"
                                   "weights of 3,-10,20,4,0\n"
                                   "\"b\",4,5,0,9223372036854775807\n");
    hr_instance_close(&instance);
    hr_instance_close(&instance);
}

#define HEADER "id,lower,upper,size\n"

static void an_invalid_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        { "", "line 1: no header; it must name id,lower,upper,size" },
        { "hello\x1b[2J world\n", "line 1: unknown column \"hello?[2J world\"; the columns are "
                                  "id,lower,upper,size and optionally offset" },
        { "id,lower,upper\n1,0,1\n", "line 1: column size is missing from the header" },
        { "id,lower,id,upper,size\n", "line 1: column id occurs twice" },
        { HEADER "a,0,1,3\n\nb,2,3\n", "line 4: 3 values, the header has 4 columns" },
        { HEADER "a,0,1,3,4,5,6,7\n", "line 2: 8 values, the header has 4 columns" },
        { HEADER "a,0,1,3\nb,0,1,3\na,1,2,3\n", "line 4: id \"a\" is already used in line 2" },
        { HEADER ",0,1,3\n", "line 2: the id is empty" },
        { HEADER "a,0,1,-3\n", "line 2: size -3 is negative" },
        { HEADER "a,0,1,3.5\n", "line 2: size \"3.5\" is not an integer below 2^63" },
        { HEADER "a,0,,3\n", "line 2: upper \"\" is not an integer below 2^63" },
        { HEADER "a,0,1,9223372036854775808\n",
          "line 2: size \"9223372036854775808\" is not an integer below 2^63" },
        { HEADER "a,0,1,9223372036854775807\nb,5,6,1\n",
          "line 3: with size 1 all sizes add up to 2^63 bytes or more" },
        { HEADER "a,5,4,3\n", "line 2: a lifetime that starts at 5 must end after it, not at 4" },
        { HEADER "a,5,5,3\n", "line 2: a lifetime that starts at 5 must end after it, not at 5" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_pack_report report;
        put(cases[i].text, strlen(cases[i].text));
        assert_int_equal(pack(-1, 1, &report), HR_CORRUPT);
        assert_memory_equal(err.message, in, strlen(in));
        assert_string_equal(err.message + strlen(in) + 2, cases[i].sentence);
        assert_int_equal(access(out, F_OK), -1);
    }
}

static void binary_data_is_refused(void **state)
{
    (void)state;
    char noise[4096];
    hr_pack_report report;
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)(i * 2654435761u >> 13);
    put(noise, sizeof noise);
    assert_int_equal(pack(-1, 1, &report), HR_CORRUPT);
    put(HEADER "a,0,1,3\0,\n", sizeof HEADER + 9);
    assert_int_equal(pack(-1, 1, &report), HR_CORRUPT);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    const hr_pack_request request = { sizeof request, "nowhere.csv", NULL, -1, 1 };
    hr_pack_report report;
    assert_int_equal(hr_pack_file(&request, &report, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "nowhere.csv"));
}

static void too_many_rows_are_refused(void **state)
{
    (void)state;
    FILE *file = fopen(in, "w");
    hr_pack_report report;
    assert_non_null(file);
    fputs(HEADER, file);
    for (int32_t i = 0; i <= HR_PACK_ROWS_MAX; i++) fprintf(file, "%d,0,1,1\n", i);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(pack(-1, 1, &report), HR_CORRUPT);
    assert_non_null(strstr(err.message, "line 1048578: more than 1048576 rows, the limit"));
}

/* Seven rows with 5 bytes live at most that need 6. */
static const char unreachable[] = HEADER
    "0,0,1,3\n1,0,4,1\n2,1,3,2\n3,2,5,2\n4,3,6,1\n5,4,5,2\n6,5,6,3\n";

static void a_capacity_below_the_live_bytes_is_refused(void **state)
{
    (void)state;
    hr_pack_report report;
    put(unreachable, sizeof unreachable - 1);
    assert_int_equal(pack(4, 10, &report), HR_NO_FIT);
    assert_non_null(strstr(err.message, "no placement in 4 bytes exists, 5 are alive at time 2"));
    assert_int_equal(report.floor_bytes, 5);
    assert_int_equal(report.nodes, 0);
    assert_int_equal(access(out, F_OK), -1);
}

static void an_impossible_capacity_is_refuted_by_search(void **state)
{
    (void)state;
    hr_pack_report report;
    put(unreachable, sizeof unreachable - 1);
    assert_int_equal(pack(5, 10, &report), HR_NO_FIT);
    assert_non_null(strstr(err.message, "no placement in 5 bytes exists, the search tried all; the "
                                        "best one found takes 6"));
    assert_int_equal(access(out, F_OK), -1);
}

static void the_lowest_arena_is_written_with_its_proof(void **state)
{
    (void)state;
    hr_pack_report report;
    put(unreachable, sizeof unreachable - 1);
    assert_int_equal(pack(-1, 10, &report), HR_OK);
    assert_int_equal(report.rows, 7);
    assert_int_equal(report.arena_bytes, 6);
    assert_int_equal(report.bound_bytes, 6);
    assert_string_equal(report.proof, "proven lowest");
    assert_memory_equal(written(), "id,lower,upper,size,offset\n0,0,1,3,", 35);
    assert_int_equal(pack(6, 10, &report), HR_OK);
    assert_int_equal(report.arena_bytes, 6);
}

static void without_time_the_answer_is_undecided_and_valid(void **state)
{
    (void)state;
    hr_pack_report report;
    put(unreachable, sizeof unreachable - 1);
    assert_int_equal(pack(-1, 0, &report), HR_UNDECIDED);
    assert_string_equal(report.proof, "open");
    assert_true(report.arena_bytes > 5);
    assert_memory_equal(written(), "id,lower,upper,size,offset\n", 27);
    assert_int_equal(pack(5, 0, &report), HR_UNDECIDED);
    assert_non_null(strstr(err.message, "no placement in 5 bytes was found in 0 seconds"));
    assert_int_equal(access(out, F_OK), -1);
}

/* Whether two rows overlap depends on the order of their times, not on the distances. */
static void times_may_span_the_range_of_64_bits(void **state)
{
    (void)state;
    static const char text[] = HEADER "a,-9223372036854775808,9223372036854775807,5\n"
                                      "b,-9223372036854775808,0,3\n"
                                      "c,0,9223372036854775807,2\n"
                                      "d,1,2,1\n";
    hr_pack_report report;
    put(text, sizeof text - 1);
    assert_int_equal(pack(-1, 10, &report), HR_OK);
    assert_int_equal(report.arena_bytes, 8);
    assert_string_equal(report.proof, "at the floor");
}

static void no_rows_need_no_bytes(void **state)
{
    (void)state;
    hr_pack_report report;
    put(HEADER, sizeof HEADER - 1);
    assert_int_equal(pack(0, 1, &report), HR_OK);
    assert_int_equal(report.arena_bytes, 0);
    assert_string_equal(written(), "id,lower,upper,size,offset\n");
}

static void a_row_of_nearly_2_63_bytes_is_packed(void **state)
{
    (void)state;
    static const char text[] = HEADER "a,0,1,9223372036854775807\n";
    hr_pack_report report;
    put(text, sizeof text - 1);
    assert_int_equal(pack(-1, 1, &report), HR_OK);
    assert_int_equal(report.arena_bytes, INT64_MAX);
}

static void a_written_file_reads_back_equal(void **state)
{
    (void)state;
    char first[4096];
    hr_pack_report report;
    hr_instance instance;
    put(unreachable, sizeof unreachable - 1);
    assert_int_equal(pack(-1, 10, &report), HR_OK);
    strcpy(first, written());
    put(first, strlen(first));
    assert_int_equal(hr_instance_read(in, &instance, &err), HR_OK);
    assert_int_equal(instance.count, 7);
    hr_instance_close(&instance);
    assert_int_equal(pack(-1, 10, &report), HR_OK);
    assert_string_equal(written(), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_may_have_any_order),
        cmocka_unit_test(an_invalid_file_is_refused_with_its_line),
        cmocka_unit_test(binary_data_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(a_capacity_below_the_live_bytes_is_refused),
        cmocka_unit_test(an_impossible_capacity_is_refuted_by_search),
        cmocka_unit_test(the_lowest_arena_is_written_with_its_proof),
        cmocka_unit_test(without_time_the_answer_is_undecided_and_valid),
        cmocka_unit_test(times_may_span_the_range_of_64_bits),
        cmocka_unit_test(no_rows_need_no_bytes),
        cmocka_unit_test(a_row_of_nearly_2_63_bytes_is_packed),
        cmocka_unit_test(a_written_file_reads_back_equal),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
