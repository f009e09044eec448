/* SPDX-License-Identifier: Apache-2.0 */
/* regex_test.c - expected values are those of Python's re.fullmatch. */
#include "base/regex.h"

#include <string.h>

#include "require.h"

static void expressions_match_whole_texts_as_in_python(void **state)
{
    static const struct {
        const char *expression, *text;
        bool matches;
    } cases[] = {
        { ".*\\.(q_proj|v_proj)", "model.layers.0.self_attn.q_proj", true },
        { ".*\\.(q_proj|v_proj)", "model.layers.0.self_attn.k_proj", false },
        { ".*\\.(q_proj|v_proj)", "q_proj", false },
        { "(.*\\.)?(q_proj)", "q_proj", true },
        { "model\\.layers\\.([0-9]|1[0-5])\\..*_proj", "model.layers.15.mlp.up_proj", true },
        { "model\\.layers\\.([0-9]|1[0-5])\\..*_proj", "model.layers.16.mlp.up_proj", false },
        { "^.*layers.\\d+.mlp.*$", "model.layers.7.mlp.up_proj", true },
        { "model.layers.(?!0\\.).*", "model.layers.10.x", true },
        { "model.layers.(?!0\\.).*", "model.layers.0.x", false },
        { "(?:a|b)+c?", "ababc", true },
        { "(?:a|b){2,3}", "abab", false },
        { "(?:a|b){2,3}", "aba", true },
        { "[^.]+\\.[a-z_]*?", "x1.ab_c", true },
        { "[]a]", "]", true },
        { "(a*)*b", "aaaaaaac", false },
        { "a|", "", true },
        { "", "", true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int length = (int)strlen(cases[i].expression);
        assert_true(hr_regex_is_valid(cases[i].expression, length));
        if (hr_regex_matches(cases[i].expression, length, cases[i].text) != cases[i].matches)
            fail_msg("%s on %s", cases[i].expression, cases[i].text);
    }
}

static void expressions_that_are_not_read_are_invalid(void **state)
{
    static const char *const wrong[] = { "(",
                                         ")",
                                         "(a",
                                         "a)",
                                         "[a",
                                         "*a",
                                         "a**",
                                         "\\",
                                         "\\bq",
                                         "(?=a)",
                                         "(?P<n>a)",
                                         "\\1",
                                         "a{2",
                                         "a{3,2}",
                                         "[z-a]",
                                         "a{999}",
                                         "((((((((((a))))))))))",
                                         "(((a?){9}){9}){9}" };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (hr_regex_is_valid(wrong[i], (int)strlen(wrong[i]))) fail_msg("%s", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_match_whole_texts_as_in_python),
        cmocka_unit_test(expressions_that_are_not_read_are_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
