/* SPDX-License-Identifier: Apache-2.0 */
/* verify_strips_test.c - plans whose updates are in loops over strips of gradients: both verifiers
 * accept them, refuse strips that miss or repeat a part of a weight, and give the same verdict on
 * random changes. */
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

enum { SEED = 350, PLANS = 6, MUTATIONS = 70, LOOPS_MOST = 64 };

/* Large enough for strips of the embedding and of the head, which do not divide them. */
static json_t *plan_with_strips(int32_t i)
{
    static const char *const optimizers[PLANS] = { "adamw train.state.moments=int8",
                                                   "lion train.state.moments=int8",
                                                   "adamw train.state.moments=bf16",
                                                   "adamw",
                                                   "sgd",
                                                   "lion" };
    static char keys[256];
    snprintf(keys, sizeof keys,
             "model.n_heads=2 model.d_model=64 model.vocab_size=5003 train.optimizer.kind=%s%s",
             optimizers[i],
             i % 3 == 0 ? "" : " memory.loss_chunk=10000 model.tie_embeddings=false");
    more_keys = keys;
    return random_plan(families[i % 3 == 0 ? 0 : 1 + i % 2], i % 2, true);
}

static bool updates(const json_t *step)
{
    const char *op = json_string_value(json_object_get(step, "op"));
    return !strcmp(op, "adamw") || !strcmp(op, "sgd") || !strcmp(op, "lion");
}

/* The steps that update a strip in each iteration of a loop. */
static int64_t updates_in_loops(json_t *plan, int64_t steps[LOOPS_MOST])
{
    int64_t found = 0;
    for (int64_t s = 0; s < count(plan, "steps") && found < LOOPS_MOST; s++) {
        json_t *step = at(plan, "steps", s), *loop = at(plan, "loops", get(step, "loop"));
        const char *name = json_string_value(json_object_get(loop, "name"));
        if (updates(step) && !strcmp(name, "gradient strip")) steps[found++] = s;
    }
    return found;
}

/* ---- wrong strips: changes of the loop of step `s`, or of what it updates */

static json_t *buffer_of(json_t *plan, int64_t s, const char *side, size_t operand)
{
    const json_t *access = json_array_get(json_object_get(at(plan, "steps", s), side), operand);
    if (json_is_array(access)) access = json_array_get(access, 0);
    return at(plan, "buffers", json_integer_value(access));
}

static void one_strip_less(json_t *plan, int64_t s)
{
    json_t *loop = at(plan, "loops", get(at(plan, "steps", s), "loop"));
    put(loop, "repeats", get(loop, "repeats") - 1);
}

static void one_strip_more(json_t *plan, int64_t s)
{
    json_t *loop = at(plan, "loops", get(at(plan, "steps", s), "loop"));
    put(loop, "repeats", get(loop, "repeats") + 1);
}

static void countless_strips(json_t *plan, int64_t s)
{
    put(at(plan, "loops", get(at(plan, "steps", s), "loop")), "repeats", INT64_MAX);
}

static void a_strip_further(json_t *plan, int64_t s)
{
    json_t *weight = buffer_of(plan, s, "writes", 0);
    put(weight, "offset", get(weight, "offset") + get(weight, "bytes"));
}

/* Of the last operand: the second moment, the scales of moments, or the weight. */
static void the_last_a_strip_further(json_t *plan, int64_t s)
{
    const json_t *writes = json_object_get(at(plan, "steps", s), "writes");
    json_t *last = buffer_of(plan, s, "writes", json_array_size(writes) - 1);
    put(last, "offset", get(last, "offset") + get(last, "bytes"));
}

static void a_shorter_strip(json_t *plan, int64_t s)
{
    json_t *moment = buffer_of(plan, s, "writes", 1);
    const char *dtype = json_string_value(json_object_get(moment, "dtype"));
    const int64_t element = !strcmp(dtype, "f32") ? 4 : !strcmp(dtype, "bf16") ? 2 : 1;
    put(moment, "bytes", get(moment, "bytes") - 64);
    json_object_set_new(moment, "shape", json_pack("[i]", (int)(get(moment, "bytes") / element)));
}

static void a_shorter_gradient(json_t *plan, int64_t s)
{
    json_t *gradient = buffer_of(plan, s, "reads", 0);
    json_object_set_new(gradient, "shape", json_pack("[i]", (int)(get(gradient, "bytes") / 4 - 1)));
}

static void the_whole_weight(json_t *plan, int64_t s)
{
    json_t *writes = json_object_get(at(plan, "steps", s), "writes");
    json_t *first = json_array_get(writes, 0);
    const int64_t root = get(buffer_of(plan, s, "writes", 0), "view_of");
    json_array_set_new(first, 0, json_integer(root));
}

static const struct {
    const char *name;
    void (*tell)(json_t *plan, int64_t s);
} lies[] = { { "one strip less", one_strip_less },
             { "one strip more", one_strip_more },
             { "countless strips", countless_strips },
             { "a strip further", a_strip_further },
             { "the last a strip further", the_last_a_strip_further },
             { "a shorter strip", a_shorter_strip },
             { "a shorter gradient", a_shorter_gradient },
             { "the whole weight", the_whole_weight } };

enum { LIES = sizeof lies / sizeof *lies };

static void both_verifiers_refuse_wrong_strips(void **state)
{
    (void)state;
    tally told[LIES] = { { 0 } }, whole = { 0 };
    int64_t steps[LOOPS_MOST];
    begin(SEED);
    for (int32_t i = 0; i < PLANS; i++) {
        json_t *plan = plan_with_strips(i);
        judge_twice(plan, "untouched", &whole);
        const int64_t found = updates_in_loops(plan, steps);
        assert_true(found >= 2);
        for (int32_t k = 0; k < LIES; k++) {
            json_t *wrong = json_deep_copy(plan);
            lies[k].tell(wrong, steps[draw(0, found - 1)]);
            judge_twice(wrong, lies[k].name, &told[k]);
            json_decref(wrong);
        }
        json_decref(plan);
    }
    assert_int_equal(whole.refused + whole.split, 0);
    for (int32_t k = 0; k < LIES; k++) {
        printf("  %-24s %5d, refused by both %5d\n", lies[k].name, told[k].tried, told[k].refused);
        whole.split += told[k].split + told[k].tried - told[k].refused;
    }
    assert_int_equal(whole.split, 0);
}

static void both_verifiers_give_the_same_verdict_on_strips(void **state)
{
    (void)state;
    tally counts[KINDS] = { { 0 } };
    int32_t split = 0;
    json_t *plans[PLANS];
    begin(SEED + 1);
    for (int32_t i = 0; i < PLANS; i++) plans[i] = plan_with_strips(i);
    for (int32_t i = 0; i < MUTATIONS * HR_COUNT; i++) {
        const int32_t kind = i % KINDS;
        json_t *plan = json_deep_copy(plans[draw(0, PLANS - 1)]);
        for (int32_t tries = 0; !mutations[kind].apply(plan) && tries < 1000;) tries++;
        judge_twice(plan, mutations[kind].name, &counts[kind]);
        json_decref(plan);
    }
    for (int32_t k = 0; k < KINDS; k++) {
        printf("  %-24s %5d, refused by both %5d, by one %d\n", mutations[k].name, counts[k].tried,
               counts[k].refused, counts[k].split);
        split += counts[k].split;
    }
    for (int32_t i = 0; i < PLANS; i++) json_decref(plans[i]);
    assert_int_equal(split, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_verifiers_refuse_wrong_strips),
        cmocka_unit_test(both_verifiers_give_the_same_verdict_on_strips),
    };
    return cmocka_run_group_tests(tests, open_judges, close_judges);
}
