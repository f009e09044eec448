/* SPDX-License-Identifier: Apache-2.0 */
/* cli_pack_test.c - `headroom pack` in scripts: one exit code per kind of result. */
#include "headroom/status.h"
#include "support/program.h"

#define HEADER "id,lower,upper,size\n"

/* Seven rows with a lower bound of 5 bytes that need 6. */
static const char unreachable[] = HEADER
    "0,0,1,3\n1,0,4,1\n2,1,3,2\n3,2,5,2\n4,3,6,1\n5,4,5,2\n6,5,6,3\n";

static void every_result_has_its_exit_code(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *text, *options;
        int code;
        const char *sentence; /* a part of the output */
    } cases[] = {
        { unreachable, "", HR_OK, "" },
        { unreachable, "--capacity 6", HR_OK, "" },
        { unreachable, "--capacity 5", HR_NO_FIT, "no placement in 5 bytes exists, the search" },
        { unreachable, "--capacity 4", HR_NO_FIT, "5 are alive at time 2" },
        { unreachable, "--capacity 5 --seconds 0", HR_UNDECIDED, "none is excluded" },
        { unreachable, "--seconds 0", HR_UNDECIDED, "the lowest arena found in 0 seconds" },
        { unreachable, "--seconds -1", HR_USAGE, "--seconds takes a number from 0 to 86400" },
        { unreachable, "--seconds nan", HR_USAGE, "--seconds takes a number" },
        { unreachable, "--seconds 1e9", HR_USAGE, "--seconds takes a number" },
        { unreachable, "--seconds ''", HR_USAGE, "--seconds takes a number" },
        { unreachable, "--capacity lots", HR_USAGE, "\"lots\" is not a size" },
        { unreachable, "--capacity -1", HR_USAGE, "\"-1\" is not a size" },
        { unreachable, "twice.csv", HR_USAGE, "\"twice.csv\" is one too many" },
        { unreachable, "--out nowhere/o.csv", HR_USAGE, "nowhere: no such directory" },
        { HEADER, "", HR_OK, "" },
        { "", "", HR_CORRUPT, "line 1: no header" },
        { "\n \r\n", "", HR_CORRUPT, "no header" },
        { "id,lower,size\na,0,1\n", "", HR_CORRUPT, "column upper is missing" },
        { HEADER "a,0,1,1\na,1,2,1\n", "", HR_CORRUPT,
          "line 3: id \"a\" is already used in line 2" },
        { HEADER "a,0,1,-1\n", "", HR_CORRUPT, "line 2: size -1 is negative" },
        { HEADER "a,3,1,1\n", "", HR_CORRUPT, "line 2: a lifetime that starts at 3 must end" },
        { HEADER "a,0,1,9223372036854775807\n", "", HR_OK, "" },
        { HEADER "a,0,1,9223372036854775808\n", "", HR_CORRUPT, "integer below 2^63" },
        { HEADER "a,0,1,9223372036854775807\nb,1,2,1\n", "", HR_CORRUPT, "add up to 2^63" },
        { "\r\n size , id,upper ,lower\t\r\n3, a ,5,0\r\n\r\n4,b,9,5\r\n", "", HR_OK, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("rows.csv", cases[i].text);
        const int code = run("pack rows.csv %s", cases[i].options);
        if (code != cases[i].code || !strstr(err, cases[i].sentence))
            fail_msg("case %d: %d, %s", (int)i, code, err);
        if (code == HR_OK) assert_string_equal(err, "");
        else assert_memory_equal(err, "headroom: ", 10);
        assert_int_equal(*out == 0, code == HR_USAGE || code == HR_CORRUPT);
    }
    assert_int_equal(run("pack nowhere.csv"), HR_USAGE);
    assert_int_equal(run("pack ."), HR_USAGE);
    assert_int_equal(run("pack"), HR_USAGE);
}

static int64_t number(const json_t *answer, const char *name)
{
    const json_t *value = json_object_get(answer, name);
    if (!json_is_integer(value)) fail_msg("no %s in the answer", name);
    return json_integer_value(value);
}

static void the_result_says_what_is_proven(void **state)
{
    (void)state;
    require_program();
    put("rows.csv", unreachable);
    for (int32_t seconds = 0; seconds <= 10; seconds += 10) {
        run("pack rows.csv --json --seconds %d", seconds);
        json_t *answer = json_loads(out, 0, NULL);
        assert_non_null(answer);
        const int64_t arena = number(answer, "arena_bytes");
        assert_int_equal(number(answer, "rows"), 7);
        assert_int_equal(number(answer, "floor_bytes"), 5);
        assert_int_equal(number(answer, "gap_bytes"), arena - 5);
        assert_int_equal(number(answer, "bound_bytes"), seconds ? 6 : 5);
        assert_string_equal(json_string_value(json_object_get(answer, "proof")),
                            seconds ? "proven lowest" : "open");
        json_decref(answer);
    }
}

/* Far more rows than any plan has, in random order: the result is unproven, and the time limit is
 * respected. */
static void a_million_rows_respect_the_time_limit(void **state)
{
    (void)state;
    require_program();
    FILE *file = fopen("rows.csv", "w");
    assert_non_null(file);
    fputs(HEADER, file);
    for (uint64_t i = 0; i < 1000000; i++) {
        const uint64_t first = i * UINT64_C(2654435761) % 1000003, life = i * 40503 % 5000 + 1;
        fprintf(file, "%llu,%llu,%llu,%llu\n", (unsigned long long)i, (unsigned long long)first,
                (unsigned long long)(first + life), (unsigned long long)(i * 69069 % 1048573 + 1));
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(run("pack rows.csv --json --seconds 0.1"), HR_UNDECIDED);
    assert_non_null(strstr(err, "the lowest arena found in 0.1 seconds"));
    assert_non_null(strstr(err, " bytes is open; give it more --seconds\n"));
    json_t *answer = json_loads(out, 0, NULL);
    assert_non_null(answer);
    assert_int_equal(number(answer, "rows"), 1000000);
    assert_true(number(answer, "arena_bytes") > number(answer, "floor_bytes"));
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_result_has_its_exit_code),
        IN_A_FOLDER(the_result_says_what_is_proven),
        IN_A_FOLDER(a_million_rows_respect_the_time_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
