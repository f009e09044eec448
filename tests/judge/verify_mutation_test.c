/* SPDX-License-Identifier: Apache-2.0 */
/* verify_mutation_test.c - random changes, one at a time, to plans of random small recipes.
 * headroom verify and tools/soak, which share no code, must both accept or both refuse each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "judge/mutations.h"

enum { SEED = 300, PLANS = 5, MUTATIONS = 100 };

/* Writes a plan with everything in the host in the format of this version. */
static void set_version(json_t *plan, int32_t version)
{
    size_t i;
    json_t *buffer;
    put(plan, "version", version);
    if (version > 1) json_object_set_new(plan, "spaces", json_array());
    else json_object_del(plan, "spaces");
    json_array_foreach(json_object_get(plan, "buffers"), i, buffer)
    {
        if (version > 1) json_object_set_new(buffer, "space", json_string("host"));
        else json_object_del(buffer, "space");
    }
}

static void both_verifiers_give_the_same_verdict(void **state)
{
    (void)state;
    tally counts[KINDS] = { { 0 } }, whole = { 0 };
    json_t *plans[PLANS * 20];
    const int32_t plan_count = HR_COUNT < 20 ? PLANS * HR_COUNT : PLANS * 20;
    begin(SEED);
    for (int32_t i = 0; i < plan_count; i++) {
        plans[i] = random_plan(families[draw(0, 1)], ANY, ANY);
        set_version(plans[i], 1 + i % 2);
        judge_twice(plans[i], "untouched", &whole);
    }
    for (int32_t i = 0; i < MUTATIONS * HR_COUNT; i++) {
        const int32_t kind = i % KINDS;
        json_t *plan = json_deep_copy(plans[draw(0, plan_count - 1)]);
        for (int32_t tries = 0; !mutations[kind].apply(plan) && tries < 1000;) tries++;
        judge_twice(plan, mutations[kind].name, &counts[kind]);
        json_decref(plan);
    }
    printf("%d plans, %d refused\n", whole.tried, whole.refused);
    assert_int_equal(whole.refused + whole.split, 0);
    for (int32_t k = 0; k < KINDS; k++) {
        printf("  %-24s %5d, refused by both %5d, by one %d\n", mutations[k].name, counts[k].tried,
               counts[k].refused, counts[k].split);
        whole.split += counts[k].split;
    }
    for (int32_t i = 0; i < plan_count; i++) json_decref(plans[i]);
    assert_int_equal(whole.split, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_verifiers_give_the_same_verdict),
    };
    return cmocka_run_group_tests(tests, open_judges, close_judges);
}
