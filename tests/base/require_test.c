/* SPDX-License-Identifier: Apache-2.0 */
/* require_test.c - which skips HR_REQUIRE turns into failures. */
#include "require.h"

static void required(const char *list, const char *name, bool expected)
{
    if (list) setenv("HR_REQUIRE", list, 1);
    else unsetenv("HR_REQUIRE");
    if (hr_test_required(name) != expected)
        fail_msg("HR_REQUIRE=%s: %s is%s required", list ? list : "(none)", name,
                 expected ? " not" : "");
}

static void names_all_and_exclusions_are_parsed(void **state)
{
    (void)state;
    required(NULL, "amx", false);
    required("", "amx", false);
    required("amx", "amx", true);
    required("avx512,amx", "amx", true);
    required("avx512,amx", "avx512", true);
    required("avx512bf16", "avx512", false);
    required("avx", "avx512", false);
    required("all", "amx", true);
    required("all,-amx", "amx", false);
    required("all,-amx", "mount", true);
    required("-amx,all", "amx", true);
    required(",,all", "amx", true);
    required("all,-", "amx", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_all_and_exclusions_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
