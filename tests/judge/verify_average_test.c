/* SPDX-License-Identifier: Apache-2.0 */
/* verify_average_test.c - averages of weights in both verifiers: plans of every family, with and
 * without gradient release, are accepted. Each way in which an average does not follow its weight
 * is refused by both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "judge/two_judges.h"

enum { SEED = 301, AVERAGES_MAX = 256 };

/* The number of steps that update averages; their indices in `steps`. */
static int64_t averages_of(json_t *plan, int64_t *steps)
{
    int64_t found = 0;
    for (int64_t s = 0; s < count(plan, "steps"); s++)
        if (!strcmp(json_string_value(json_object_get(at(plan, "steps", s), "op")), "average")) {
            assert_in_range(found, 0, AVERAGES_MAX - 1);
            steps[found++] = s;
        }
    return found;
}

static json_t *list_of(json_t *plan, int64_t step, const char *key)
{
    return json_object_get(at(plan, "steps", step), key);
}

static int64_t read_of(json_t *plan, int64_t step)
{
    return json_integer_value(json_array_get(list_of(plan, step, "reads"), 0));
}

static json_t *write_of(json_t *plan, int64_t step)
{
    return json_array_get(list_of(plan, step, "writes"), 0);
}

static int64_t average_of(json_t *plan, int64_t step)
{
    return json_integer_value(json_array_get(write_of(plan, step), 0));
}

/* The step before `step` that updates the weight or master that it reads. */
static int64_t renewal_of(json_t *plan, int64_t step)
{
    size_t k;
    json_t *pair;
    const int64_t of = read_of(plan, step);
    for (int64_t s = step - 1; s >= 0; s--) json_array_foreach(list_of(plan, s, "writes"), k, pair)
        {
            if (json_integer_value(json_array_get(pair, 0)) == of) return s;
        }
    fail_msg("nothing renews buffer %lld", (long long)of);
    return 0;
}

/* With gradient release, averages are updated during the backward pass. */
static void stands_in(json_t *plan, int64_t step, const char *section)
{
    json_t *loop = at(plan, "loops", get(at(plan, "steps", step), "loop"));
    assert_string_equal(json_string_value(json_object_get(loop, "name")), section);
}

/* Corrupts the average of step `s`; `other` is the step of another average. */
typedef void lie(json_t *plan, int64_t s, int64_t other);

static void stands_before_the_update(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    exchange(plan, renewal_of(plan, s), s);
}

static void is_missing(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_clear(list_of(plan, s, "reads"));
    json_array_clear(list_of(plan, s, "writes"));
}

static void is_no_moment(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_object_set_new(at(plan, "buffers", average_of(plan, s)), "role", json_string("table"));
}

/* The former average is kept and saved under another name. */
static void is_missing_and_no_average(json_t *plan, int64_t s, int64_t other)
{
    is_no_moment(plan, s, other);
    is_missing(plan, s, other);
}

static void reads_another_weight(json_t *plan, int64_t s, int64_t other)
{
    json_array_set_new(list_of(plan, s, "reads"), 0, json_integer(read_of(plan, other)));
}

static void reads_two_weights(json_t *plan, int64_t s, int64_t other)
{
    json_array_append_new(list_of(plan, s, "reads"), json_integer(read_of(plan, other)));
}

static void reads_nothing(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_clear(list_of(plan, s, "reads"));
}

static void is_renewed_twice(json_t *plan, int64_t s, int64_t other)
{
    json_array_append(list_of(plan, other, "writes"), write_of(plan, s));
}

static void is_renewed_twice_at_once(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_append(list_of(plan, s, "writes"), write_of(plan, s));
}

static void is_renewed_with_the_weight(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_append(list_of(plan, renewal_of(plan, s), "writes"), write_of(plan, s));
    is_missing(plan, s, 0);
}

static void is_written_over(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_set_new(write_of(plan, s), 1, json_string("write"));
}

static void is_of_another_weight(json_t *plan, int64_t s, int64_t other)
{
    json_t *kept = json_deep_copy(list_of(plan, s, "writes"));
    json_object_set(at(plan, "steps", s), "writes", list_of(plan, other, "writes"));
    json_object_set_new(at(plan, "steps", other), "writes", kept);
}

static void is_read_from_by_another(json_t *plan, int64_t s, int64_t other)
{
    const int64_t behind = s > other ? s : other, of = s > other ? other : s;
    json_array_append_new(list_of(plan, behind, "reads"), json_integer(read_of(plan, of)));
}

static void has_a_loop_that_turns(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_array_append_new(json_object_get(plan, "loops"),
                          json_pack("{ss sI sI sI si}", "name", "again", "parent",
                                    (json_int_t)get(at(plan, "steps", s), "loop"), "step_first",
                                    (json_int_t)s, "step_last", (json_int_t)s, "repeats", 2));
    put(at(plan, "steps", s), "loop", count(plan, "loops") - 1);
}

static void is_called_otherwise(json_t *plan, int64_t s, int64_t other)
{
    (void)other;
    json_object_set_new(at(plan, "buffers", average_of(plan, s)), "name", json_string("mean"));
}

static const struct {
    const char *name;
    lie *tell;
} lies[] = {
    { "average: before the update", stands_before_the_update },
    { "average: missing", is_missing },
    { "average: missing and no average", is_missing_and_no_average },
    { "average: another weight read", reads_another_weight },
    { "average: two weights read", reads_two_weights },
    { "average: nothing read", reads_nothing },
    { "average: renewed twice", is_renewed_twice },
    { "average: renewed twice at once", is_renewed_twice_at_once },
    { "average: renewed with the weight", is_renewed_with_the_weight },
    { "average: written over", is_written_over },
    { "average: of another weight", is_of_another_weight },
    { "average: a weight that another reads", is_read_from_by_another },
    { "average: a loop that turns", has_a_loop_that_turns },
    { "average: called otherwise", is_called_otherwise },
    { "average: no moment", is_no_moment },
};

enum { LIES = sizeof lies / sizeof *lies };

/* Plans of all families, with and without gradient release. */
static void both_verifiers_refuse_an_average_that_does_not_follow_its_weight(void **state)
{
    (void)state;
    tally told[LIES] = { { 0 } }, whole = { 0 };
    int64_t steps[AVERAGES_MAX];
    begin(SEED);
    for (int32_t i = 0; i < 2 * FAMILIES; i++) {
        json_t *plan = random_plan(families[i / 2], true, i % 2);
        judge_twice(plan, families[i / 2], &whole);
        const int64_t averages = averages_of(plan, steps);
        assert_true(averages > 1);
        for (int64_t k = 0; k < averages; k++) stands_in(plan, steps[k], i % 2 ? "step" : "update");
        for (int32_t k = 0; k < LIES; k++) {
            const int64_t one = draw(0, averages - 1);
            const int64_t two = (one + draw(1, averages - 1)) % averages;
            json_t *wrong = json_deep_copy(plan);
            lies[k].tell(wrong, steps[one], steps[two]);
            judge_twice(wrong, lies[k].name, &told[k]);
            json_decref(wrong);
        }
        json_decref(plan);
    }
    printf("%d plans with averages, %d refused\n", whole.tried, whole.refused);
    assert_int_equal(whole.refused + whole.split, 0);
    for (int32_t k = 0; k < LIES; k++) {
        printf("  %-36s %5d, refused by both %5d\n", lies[k].name, told[k].tried, told[k].refused);
        whole.split += told[k].split + told[k].tried - told[k].refused;
    }
    assert_int_equal(whole.split, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_verifiers_refuse_an_average_that_does_not_follow_its_weight),
    };
    return cmocka_run_group_tests(tests, open_judges, close_judges);
}
