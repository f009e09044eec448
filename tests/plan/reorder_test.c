/* SPDX-License-Identifier: Apache-2.0 */
/* reorder_test.c - a reordered program computes the same values, in fewer bytes or unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "graph/backend.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "plan/reorder.h"
#include "sections/assemble.h"
#include "support/random_strategy.h"

enum { SEED = 20261121, CASES = 60 * HR_COUNT, LAYERS_MOST = 6, THREADS = 2 };

typedef struct {
    hr_program program;
    hr_region region;
    hr_step *before; /* the steps before reordering */
    int32_t *was;    /* [step_count] the former index of each step */
} reordered;

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static hr_region room(void)
{
    static _Alignas(64) uint8_t memory[64 << 20];
    return hr_region_over(memory, sizeof memory);
}

static int64_t floor_of(const hr_program *program, hr_region region)
{
    hr_plan plan = { .process = { .threads = THREADS, .rung = "" } };
    hr_error err;
    must(hr_lifetimes(program, &region, &plan, &err), &err);
    int64_t *alive = hr_region_take(&region, program->step_count, sizeof *alive), most = 0;
    hr_lifetimes_alive(program, &plan, alive);
    for (int32_t s = 0; s < program->step_count; s++) most = hr_max(most, alive[s]);
    return most;
}

/* Steps that are equal byte for byte keep their order, so either match is correct. */
static void find_places(reordered *r)
{
    const hr_program *program = &r->program;
    bool *taken = hr_region_take(&r->region, program->step_count, sizeof *taken);
    memset(taken, 0, (size_t)program->step_count * sizeof *taken);
    for (int32_t s = 0; s < program->step_count; s++) {
        int32_t place = 0;
        while (place < program->step_count &&
               (taken[place] || memcmp(&program->steps[s], &r->before[place], sizeof *r->before)))
            place++;
        assert_true(place < program->step_count);
        taken[place] = true;
        r->was[s] = place;
    }
}

static reordered reorder(const hr_config *config, const hr_strategy *strategy)
{
    reordered r = { .region = room() };
    hr_error err;
    const int64_t sequences = strategy->micro_batch ? strategy->micro_batch : config->train.batch;
    must(hr_model_assemble(config, &hr_cpu_backend, sequences, &r.region, &r.program, &err), &err);
    must(hr_strategy_apply(strategy, config->train.seq_len, &r.program, &r.region, &err), &err);
    const size_t bytes = (size_t)r.program.step_count * sizeof *r.before;
    r.before = hr_region_take(&r.region, 1, (int64_t)bytes);
    r.was = hr_region_take(&r.region, r.program.step_count, sizeof *r.was);
    memcpy(r.before, r.program.steps, bytes);
    const int64_t used = r.region.used;
    int32_t moves;
    must(hr_reorder(&r.program, THREADS, &r.region, &moves, &err), &err);
    assert_int_equal(moves > 0, memcmp(r.before, r.program.steps, bytes) != 0);
    assert_int_equal(r.region.used, used);
    find_places(&r);
    return r;
}

static hr_config random_case(uint64_t turn, hr_intermediates *recompute_set, hr_strategy *strategy)
{
    hr_config config = random_config(SEED, turn);
    hr_error err;
    config.model.n_layers = draw_layers(&config, SEED, turn, 29, LAYERS_MOST);
    must(hr_config_check(&config, &err), &err);
    *strategy = random_strategy(&config, SEED, turn, recompute_set);
    return config;
}

/* The last step before `place` that wrote each operand. */
static int32_t writer_before(const hr_program *program, const hr_step *steps, int32_t place,
                             int32_t tensor)
{
    const int32_t root = hr_tensor_root(program, tensor);
    for (int32_t s = place - 1; s >= 0; s--)
        for (int32_t k = 0; k < HR_OUT_MAX; k++)
            if (steps[s].out[k] != HR_NONE && hr_tensor_root(program, steps[s].out[k]) == root)
                return s;
    return HR_NONE;
}

/* ---- invariants */

/* Checks that every read and every sum gets the value of the same step as before. */
static void check_operands(const reordered *r, int32_t s)
{
    const hr_step *step = &r->program.steps[s];
    for (int32_t i = 0; i < HR_IN_MAX + HR_OUT_MAX; i++) {
        const int32_t t = i < HR_IN_MAX ? step->in[i] : step->out[i - HR_IN_MAX];
        if (t == HR_NONE) continue;
        const int32_t now = writer_before(&r->program, r->program.steps, s, t);
        const int32_t then = writer_before(&r->program, r->before, r->was[s], t);
        assert_int_equal(now == HR_NONE ? HR_NONE : r->was[now], then);
    }
}

static void values_loops_and_host_steps_are_unchanged(void **state)
{
    (void)state;
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_strategy strategy;
    for (uint64_t turn = 0; turn < CASES; turn++) {
        const hr_config config = random_case(turn, recompute_set, &strategy);
        const reordered r = reorder(&config, &strategy);
        for (int32_t s = 0; s < r.program.step_count; s++) {
            check_operands(&r, s);
            assert_int_equal(r.program.steps[s].loop, r.before[s].loop);
            if (hr_step_op(&r.program, &r.program.steps[s])->host) assert_int_equal(r.was[s], s);
        }
    }
}

/* ---- gains */

static void the_floor_never_grows_and_often_falls(void **state)
{
    (void)state;
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_strategy strategy;
    int32_t lower = 0, untouched = 0;
    double gained = 0, most = 0;
    for (uint64_t turn = 0; turn < CASES; turn++) {
        const hr_config config = random_case(turn, recompute_set, &strategy);
        const reordered r = reorder(&config, &strategy);
        hr_program original = r.program;
        original.steps = r.before;
        const int64_t now = floor_of(&r.program, r.region);
        const int64_t then = floor_of(&original, r.region);
        assert_true(now <= then);
        lower += now < then;
        gained += 100 * (double)(then - now) / (double)then;
        most = fmax(most, 100 * (double)(then - now) / (double)then);
        untouched += !memcmp(r.program.steps, r.before,
                             (size_t)r.program.step_count * sizeof *r.before);
    }
    print_message("%d of %d floors lower, %.2f %% in the mean of all, %.1f %% at most\n", lower,
                  CASES, gained / CASES, most);
    assert_true(lower >= CASES / 10);
    assert_true(untouched >= CASES / 10);
}

/* With a large vocabulary, the gradient of the head is large. If it were computed first, it would
 * be live through the whole backward pass. Delaying it keeps only the gradient of the logits
 * live. */
static void the_head_gradient_is_delayed_if_that_lowers_the_floor(void **state)
{
    (void)state;
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_GPT_NEOX;
    config.model.d_model = 128;
    config.model.n_heads = 2;
    config.model.n_layers = 2;
    config.model.d_ff = 256;
    config.model.vocab_size = 512;
    config.train.seq_len = 64;
    config.train.batch = 1;
    must(hr_config_check(&config, &err), &err);
    const hr_strategy strategy = hr_strategy_of(&config, 1, recompute_set);
    const reordered r = reorder(&config, &strategy);
    hr_program original = r.program;
    original.steps = r.before;
    assert_true(floor_of(&r.program, r.region) < floor_of(&original, r.region));
}

/* Operands name a step; padding within its attributes is indeterminate and not compared. */
static void assert_steps_equal(const hr_program *a, const hr_program *b)
{
    assert_int_equal(a->step_count, b->step_count);
    for (int32_t s = 0; s < a->step_count; s++) {
        const hr_step *x = &a->steps[s], *y = &b->steps[s];
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->layer, y->layer);
        assert_int_equal(x->direction, y->direction);
        assert_int_equal(x->loop, y->loop);
        assert_memory_equal(x->in, y->in, sizeof x->in);
        assert_memory_equal(x->out, y->out, sizeof x->out);
    }
}

/* The search for the smallest plan reorders a plan that is compiled and packed already. */
static void a_compiled_plan_is_reordered_as_if_compiled_so(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t memory[64 << 20];
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_strategy strategy;
    hr_error err;
    int32_t moved_count = 0;
    for (uint64_t turn = 0; turn < CASES / 2; turn++) {
        const hr_config config = random_case(turn, recompute_set, &strategy);
        hr_region region = room(), other = hr_region_over(memory, sizeof memory);
        hr_compiled compiled, expected;
        bool moved;
        must(hr_compile(&config, &hr_cpu_backend, &strategy, THREADS, &region, &compiled, &err),
             &err);
        const int64_t arena_bytes = compiled.plan.arena_bytes;
        must(hr_compile_reorder(&region, &compiled, &moved, &err), &err);
        strategy.reorder = true;
        must(
            hr_compile_floor(&config, &hr_cpu_backend, &strategy, THREADS, &other, &expected, &err),
            &err);
        assert_int_equal(compiled.plan.floor_bytes, expected.plan.floor_bytes);
        assert_steps_equal(&compiled.program, &expected.program);
        assert_int_equal(compiled.strategy.reorder, moved);
        if (!moved) assert_int_equal(compiled.plan.arena_bytes, arena_bytes);
        moved_count += moved;
    }
    assert_in_range(moved_count, 1, CASES / 2 - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_loops_and_host_steps_are_unchanged),
        cmocka_unit_test(the_floor_never_grows_and_often_falls),
        cmocka_unit_test(the_head_gradient_is_delayed_if_that_lowers_the_floor),
        cmocka_unit_test(a_compiled_plan_is_reordered_as_if_compiled_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
