/* SPDX-License-Identifier: Apache-2.0 */
/* writer_test.c - text appended to buffers of every size, followed by a guard byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/writer.h"

static const char whole[] = "one 2, three";

static hr_writer write_whole(char *text, int64_t bytes)
{
    hr_writer writer = { text, bytes };
    hr_put(&writer, "%s %d", "one", 2);
    hr_put(&writer, "%s", "");
    hr_put(&writer, ", %s", "three");
    return writer;
}

static void text_is_truncated_at_the_end_of_the_buffer(void **state)
{
    (void)state;
    const int64_t length = sizeof whole - 1;
    for (int64_t bytes = 1; bytes < length + 4; bytes++) {
        char text[32];
        memset(text, '#', sizeof text);
        const hr_writer writer = write_whole(text, bytes);
        const int64_t kept = bytes > length ? length : bytes - 1;
        assert_int_equal(writer.used, kept);
        assert_memory_equal(text, whole, (size_t)kept);
        assert_int_equal(text[kept], 0);
        assert_int_equal(text[bytes], '#');
        assert_int_equal(writer.cut, bytes <= length);
    }
}

static void nothing_is_appended_after_truncation(void **state)
{
    (void)state;
    char text[8];
    hr_writer writer = { text, sizeof text };
    hr_put(&writer, "123456789");
    hr_put(&writer, "%s", "");
    hr_put(&writer, "a");
    assert_true(writer.cut && writer.used == 7);
    assert_string_equal(text, "1234567");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_truncated_at_the_end_of_the_buffer),
        cmocka_unit_test(nothing_is_appended_after_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
