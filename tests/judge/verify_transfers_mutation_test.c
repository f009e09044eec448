/* SPDX-License-Identifier: Apache-2.0 */
/* verify_transfers_mutation_test.c - a plan with moments in a file, given to both verifiers: every
 * lie about a transfer; random plans of that kind; and random changes, one and two at a time. */
#include "judge/mutations.h"
#include "judge/random_file_plan.h"
#include "judge/wrong_transfers.h"

enum { SEED = 303, PLANS = 300, CHANGES = 1500, RECIPES = 6 };

static void both_verifiers_refuse_a_wrong_transfer(void **state)
{
    (void)state;
    tally whole = { 0 }, told = { 0 };
    begin(SEED);
    json_t *plan = plan_with_file();
    judge_twice(plan, "untouched", &whole);
    json_decref(plan);
    for (int32_t i = 0; i < LIES; i++) {
        plan = plan_of_lie(&lies[i]);
        judge_twice(plan, lies[i].name, &told);
        json_decref(plan);
    }
    assert_int_equal(whole.refused + whole.split, 0);
    assert_int_equal(told.split, 0);
    assert_int_equal(told.refused, LIES);
}

static void both_verifiers_accept_random_plans_with_a_file(void **state)
{
    (void)state;
    tally whole = { 0 };
    begin(SEED + 1);
    for (int32_t i = 0; i < PLANS * HR_COUNT; i++) {
        json_t *plan = random_file_plan();
        judge_twice(plan, "untouched", &whole);
        json_decref(plan);
    }
    assert_int_equal(whole.refused + whole.split, 0);
}

/* Plans of the planner: the embedding has several pieces of 4 MiB. */
static json_t *planned_with_a_file(void)
{
    more_keys = "memory.moments=file memory.budget=1GiB train.optimizer.kind=adamw "
                "model.d_model=128 model.vocab_size=20000";
    json_t *plan = random_plan(families[draw(0, FAMILIES - 1)], ANY, ANY);
    more_keys = "";
    return plan;
}

static void both_verifiers_agree_on_plans_of_recipes_with_a_file(void **state)
{
    (void)state;
    tally counts[KINDS] = { { 0 } }, whole = { 0 };
    begin(SEED + 3);
    for (int32_t i = 0; i < RECIPES * HR_COUNT; i++) {
        json_t *plan = planned_with_a_file();
        judge_twice(plan, "untouched", &whole);
        assert_int_equal(count(plan, "spaces"), 1);
        for (int32_t k = 0; k < KINDS; k++) {
            json_t *changed = json_deep_copy(plan);
            for (int32_t tries = 0; !mutations[k].apply(changed) && tries < 1000;) tries++;
            judge_twice(changed, mutations[k].name, &counts[k]);
            json_decref(changed);
        }
        json_decref(plan);
    }
    assert_int_equal(whole.refused + whole.split, 0);
    for (int32_t k = 0; k < KINDS; k++) whole.split += counts[k].split;
    assert_int_equal(whole.split, 0);
}

static void both_verifiers_give_the_same_verdict_on_transfers(void **state)
{
    (void)state;
    tally counts[KINDS] = { { 0 } }, whole = { 0 };
    begin(SEED + 2);
    for (int32_t i = 0; i < CHANGES * HR_COUNT; i++) {
        const int32_t kind = i % KINDS;
        json_t *plan = i % 2 ? plan_with_file() : random_file_plan();
        for (int64_t changes = draw(1, 2); changes > 0; changes--)
            for (int32_t tries = 0; !mutations[kind].apply(plan) && tries < 1000;) tries++;
        judge_twice(plan, mutations[kind].name, &counts[kind]);
        json_decref(plan);
    }
    for (int32_t k = 0; k < KINDS; k++) {
        printf("  %-24s %5d, refused by both %5d, by one %d\n", mutations[k].name, counts[k].tried,
               counts[k].refused, counts[k].split);
        whole.split += counts[k].split;
    }
    assert_int_equal(whole.split, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_verifiers_refuse_a_wrong_transfer),
        cmocka_unit_test(both_verifiers_accept_random_plans_with_a_file),
        cmocka_unit_test(both_verifiers_agree_on_plans_of_recipes_with_a_file),
        cmocka_unit_test(both_verifiers_give_the_same_verdict_on_transfers),
    };
    return cmocka_run_group_tests(tests, open_judges, close_judges);
}
