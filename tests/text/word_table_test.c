/* SPDX-License-Identifier: Apache-2.0 */
/* word_table_test.c - compares the table with a linear list and the ranking with a sort; tests the
 * limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "guard.h"
#include "text/word_table.h"

static int64_t add(hr_word_table *table, const char *word)
{
    const uint8_t *bytes = (const uint8_t *)word;
    const int64_t length = (int64_t)strlen(word);
    return hr_words_add(table, bytes, length, hr_words_hash(bytes, length));
}

static int64_t find(const hr_word_table *table, const char *word)
{
    const uint8_t *bytes = (const uint8_t *)word;
    const int64_t length = (int64_t)strlen(word);
    return hr_words_find(table, bytes, length, hr_words_hash(bytes, length));
}

static void words_are_numbered_by_first_occurrence(void **state)
{
    (void)state;
    hr_guard guard;
    hr_word_table table = hr_words_place(hr_guard_open(&guard, hr_words_bytes(8)), 8);
    assert_int_equal(add(&table, "the"), 0);
    assert_int_equal(add(&table, "cat"), 1);
    assert_int_equal(add(&table, "the"), 0);
    assert_int_equal(add(&table, "ca"), 2);
    assert_int_equal(find(&table, "cat"), 1);
    assert_int_equal(find(&table, "dog"), -1);
    assert_int_equal(table.word_count, 3);
    assert_int_equal(table.text_bytes, 8);
    hr_words_clear(&table);
    assert_int_equal(find(&table, "cat"), -1);
    assert_int_equal(add(&table, "cat"), 0);
    hr_guard_close(&guard);
}

static void a_full_table_finds_words_and_adds_none(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    hr_guard guard;
    char word[16];
    hr_word_table table = hr_words_place(hr_guard_open(&guard, hr_words_bytes(MOST)), MOST);
    for (int i = 0; i < MOST; i++) {
        snprintf(word, sizeof word, "w%d", i);
        assert_int_equal(add(&table, word), i);
    }
    assert_int_equal(add(&table, "another"), -1);
    assert_int_equal(find(&table, "another"), -1);
    for (int i = 0; i < MOST; i++) {
        snprintf(word, sizeof word, "w%d", i);
        assert_int_equal(add(&table, word), i);
    }
    hr_guard_close(&guard);
}

static void the_text_of_all_words_is_bounded(void **state)
{
    (void)state;
    hr_guard guard;
    hr_word_table table = hr_words_place(hr_guard_open(&guard, hr_words_bytes(2)), 2);
    assert_int_equal(add(&table, "123456789012345678901234567890123"), -1);
    assert_int_equal(add(&table, "12345678901234567890123456789012"), 0);
    assert_int_equal(add(&table, "1"), -1);
    hr_guard_close(&guard);
}

static const hr_word_table *sorted_table;

static int by_rank(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const int64_t l = sorted_table->words[left].count, r = sorted_table->words[right].count;
    if (l != r) return l < r ? 1 : -1;
    return left < right ? -1 : left > right;
}

static void ranking_is_by_count_and_then_by_first_occurrence(void **state)
{
    (void)state;
    enum { MOST = 300 };
    const uint64_t seed = 20241121;
    uint32_t expected[MOST], order[MOST + 1];
    char word[24];
    void *memory = malloc((size_t)hr_words_bytes(MOST));
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t turn = 0; turn < 200 * HR_COUNT; turn++) {
        const uint64_t draw = hr_random_mix(seed + turn);
        const int64_t count = (int64_t)(draw % MOST), spread = 1 + (int64_t)(draw >> 32) % 20;
        hr_word_table table = hr_words_place(memory, MOST);
        for (int64_t i = 0; i < count; i++) {
            snprintf(word, sizeof word, "%lld", (long long)i);
            assert_int_equal(add(&table, word), i);
            table.words[i].count = (int64_t)(hr_random_mix(draw + (uint64_t)i) % (uint64_t)spread);
            expected[i] = (uint32_t)i;
        }
        sorted_table = &table;
        qsort(expected, (size_t)count, sizeof *expected, by_rank);
        for (int64_t most = 0; most <= count + 1; most += 1 + count / 7) {
            order[most < count ? most : count] = 77;
            const int64_t ranked = hr_words_rank(&table, order, most);
            assert_int_equal(ranked, most < count ? most : count);
            assert_memory_equal(order, expected, (size_t)ranked * sizeof *order);
            assert_int_equal(order[ranked], 77);
        }
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_numbered_by_first_occurrence),
        cmocka_unit_test(a_full_table_finds_words_and_adds_none),
        cmocka_unit_test(the_text_of_all_words_is_bounded),
        cmocka_unit_test(ranking_is_by_count_and_then_by_first_occurrence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
