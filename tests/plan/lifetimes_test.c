/* SPDX-License-Identifier: Apache-2.0 */
/* lifetimes_test.c - lifetimes of values, and reuse of an input's bytes by an output: one small
 * program for each rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "plan/lifetimes.h"
#include "plan/pack/pack.h"

enum { ROWS = 64, WIDTH = 16, ADDEND = 2, AUX = 3 };

typedef struct {
    _Alignas(64) char memory[1 << 18];
    hr_region region;
    hr_program program;
    hr_builder builder;
    hr_plan plan;
    hr_error err;
    int32_t weight;
} scene;

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

/* A program with one weight and a value with rows that other steps read: step 0. */
static int32_t open_scene(scene *s)
{
    s->region = hr_region_over(s->memory, sizeof s->memory);
    must(hr_program_place(&s->region, &hr_cpu_backend, 32, 64, 8, 4, &s->program, &s->err),
         &s->err);
    s->builder = (hr_builder){ .program = &s->program,
                               .dtype = HR_F32,
                               .rows = ROWS,
                               .T = ROWS,
                               .layer = HR_NONE,
                               .err = &s->err };
    s->weight = hr_build_param(&s->builder, (hr_param_shape){ .K = WIDTH, .N = WIDTH }, "w");
    const int32_t first = hr_build_rows(&s->builder, "first", HR_F32, WIDTH);
    hr_build_step(&s->builder, HR_OP_prompt, 0, 0)->out[0] = first;
    return first;
}

static int32_t rows(scene *s, const char *name, int64_t width)
{
    return hr_build_rows(&s->builder, name, HR_F32, width);
}

/* made = dy W^T + addend: the output may reuse the bytes of addend or aux, never those of dy. */
static void product(scene *s, int32_t dy, int32_t addend, int32_t made)
{
    const hr_linear_attr attr = { WIDTH, WIDTH, ROWS, HR_ACT_NONE };
    hr_step *step = hr_build_step(&s->builder, HR_OP_linear_dx, &attr, sizeof attr);
    step->in[0] = dy;
    step->in[1] = s->weight;
    step->in[ADDEND] = addend;
    step->out[0] = made;
}

/* A step that only reads a value. */
static void look(scene *s, int32_t value)
{
    hr_build_step(&s->builder, HR_OP_sample, 0, 0)->in[0] = value;
}

static void derive(scene *s)
{
    must(hr_build_status(&s->builder), &s->err);
    s->plan = (hr_plan){ .process.threads = 1 };
    must(hr_lifetimes(&s->program, &s->region, &s->plan, &s->err), &s->err);
}

static const hr_buffer *buffer_of(const scene *s, int32_t tensor)
{
    return &s->plan.buffers[s->plan.buffer_of_tensor[tensor]];
}

static bool share(const scene *s, int32_t a, int32_t b)
{
    return buffer_of(s, a)->storage == buffer_of(s, b)->storage;
}

static void lives(const scene *s, int32_t tensor, int32_t first, int32_t last)
{
    assert_int_equal(buffer_of(s, tensor)->step_first, first);
    assert_int_equal(buffer_of(s, tensor)->step_last, last);
}

static void a_value_lives_from_its_first_to_its_last_access(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH);
    product(&s, a, HR_NONE, b);
    look(&s, a);
    look(&s, b);
    derive(&s);
    lives(&s, a, 0, 2);
    lives(&s, b, 1, 3);
    lives(&s, s.weight, 0, 3); /* outlives the run: every step */
}

static void an_outer_value_lives_through_a_repeating_loop(void **state)
{
    static scene s;
    (void)state;
    for (int64_t count = 1; count <= 2; count++) {
        const int32_t a = open_scene(&s);
        hr_build_loop_open(&s.builder, "outer", 1);
        look(&s, a); /* step 1 */
        hr_build_loop_open(&s.builder, "inner", count);
        const int32_t own = rows(&s, "own", WIDTH);
        look(&s, a);                  /* step 2 */
        product(&s, a, HR_NONE, own); /* step 3 */
        look(&s, own);                /* step 4 */
        look(&s, s.weight);           /* step 5 */
        hr_build_loop_close(&s.builder);
        hr_build_loop_close(&s.builder);
        derive(&s);
        lives(&s, a, 0, count > 1 ? 5 : 3); /* the next iteration reads it again */
        lives(&s, own, 3, 4);               /* belongs to one iteration */
    }
}

static void a_sum_lives_from_the_first_iteration_to_its_reader(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s);
    const int32_t sum = hr_build_fixed(&s.builder, "sum", HR_ROLE_GRADIENT, HR_F32, HR_PANEL, WIDTH,
                                       WIDTH, 0);
    hr_build_loop_open(&s.builder, "turns", HR_MANY);
    look(&s, a); /* step 1: the loop starts before the first write of the sum */
    const hr_linear_attr attr = { WIDTH, WIDTH, ROWS, HR_ACT_NONE };
    hr_step *step = hr_build_step(&s.builder, HR_OP_linear_dw, &attr, sizeof attr); /* step 2 */
    step->in[0] = step->in[1] = a;
    step->out[0] = sum;
    look(&s, a); /* step 3 */
    hr_build_loop_close(&s.builder);
    look(&s, sum); /* step 4 */
    derive(&s);
    lives(&s, sum, 1, 4);
}

static void an_output_reuses_the_bytes_of_an_addend_in_its_last_read(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH), c = rows(&s, "c", WIDTH);
    product(&s, a, HR_NONE, b); /* 1 */
    product(&s, a, b, c);       /* 2: the lifetime of b ends, c reuses its bytes */
    look(&s, a);
    look(&s, c); /* 4 */
    derive(&s);
    assert_true(share(&s, b, c));
    assert_false(share(&s, a, c));
    const hr_storage *storage = &s.plan.storages[buffer_of(&s, b)->storage];
    assert_int_equal(storage->step_first, 1);
    assert_int_equal(storage->step_last, 4);
}

static void bytes_that_are_read_again_are_not_reused(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH), c = rows(&s, "c", WIDTH);
    product(&s, a, HR_NONE, b);
    product(&s, a, b, c);
    look(&s, b);
    look(&s, c);
    derive(&s);
    assert_false(share(&s, b, c));
}

/* made = dy W^T + dy: the product still reads dy while it writes made. */
static void an_operand_used_twice_in_a_step_is_not_overwritten(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), made = rows(&s, "made", WIDTH);
    product(&s, a, a, made);
    look(&s, made);
    derive(&s);
    assert_false(share(&s, a, made));
}

static void two_outputs_or_two_inputs_never_share(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH), c = rows(&s, "c", WIDTH);
    const int32_t made = rows(&s, "made", WIDTH);
    product(&s, a, HR_NONE, b);
    product(&s, a, HR_NONE, c);
    product(&s, a, b, made); /* the lifetimes of addend and aux both end: made reuses one of them */
    s.program.steps[3].in[AUX] = c;
    look(&s, made);
    derive(&s);
    assert_int_equal(share(&s, b, made) + share(&s, c, made), 1);
    assert_false(share(&s, b, c));
}

static void bytes_of_another_size_are_not_reused(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", 2 * WIDTH), c = rows(&s, "c", WIDTH);
    product(&s, a, HR_NONE, b);
    product(&s, a, b, c);
    look(&s, c);
    derive(&s);
    assert_false(share(&s, b, c));
}

/* The addend belongs to the run, the output to one iteration: the second iteration reads the addend
 * again. */
static void bytes_of_an_outer_loop_are_not_reused(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH);
    product(&s, a, HR_NONE, b);
    hr_build_loop_open(&s.builder, "turns", 2);
    const int32_t c = rows(&s, "c", WIDTH);
    product(&s, a, b, c);
    hr_build_loop_close(&s.builder);
    derive(&s);
    assert_false(share(&s, b, c));
}

/* Both belong to the run, but the step that reads one and writes the other runs twice. */
static void a_repeated_step_reuses_no_bytes(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH), c = rows(&s, "c", WIDTH);
    product(&s, a, HR_NONE, b);
    hr_build_loop_open(&s.builder, "turns", 2);
    product(&s, a, b, c);
    hr_build_loop_close(&s.builder);
    look(&s, c);
    derive(&s);
    assert_false(share(&s, b, c));
}

static void a_chain_of_reuses_is_one_storage(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s);
    int32_t value[6] = { rows(&s, "v", WIDTH) };
    product(&s, a, HR_NONE, value[0]);
    for (int32_t i = 1; i < 6; i++) {
        value[i] = rows(&s, "v", WIDTH);
        product(&s, a, value[i - 1], value[i]);
    }
    look(&s, value[5]);
    derive(&s);
    for (int32_t i = 1; i < 6; i++) assert_true(share(&s, value[0], value[i]));
    const hr_storage *storage = &s.plan.storages[buffer_of(&s, value[0])->storage];
    assert_int_equal(storage->step_first, 1);
    assert_int_equal(storage->step_last, 7);
}

static void scratch_lives_for_one_step_and_is_counted_in_lines(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH);
    product(&s, a, HR_NONE, b);
    derive(&s);
    const int32_t scratch = s.plan.scratch_of_step[1];
    assert_true(scratch != HR_NONE);
    assert_int_equal(s.plan.scratch_of_step[0], HR_NONE);
    const hr_buffer *buffer = &s.plan.buffers[scratch];
    const hr_linear_attr attr = { WIDTH, WIDTH, ROWS, HR_ACT_NONE };
    const int64_t needed = hr_linear_dx_cpu.scratch_bytes(&attr, ROWS, 1);
    assert_int_equal(buffer->tensor, HR_NONE);
    assert_int_equal(buffer->step_first, 1);
    assert_int_equal(buffer->step_last, 1);
    assert_true(buffer->bytes >= needed && buffer->bytes < needed + HR_ARENA_ALIGN);
    assert_int_equal(buffer->bytes % HR_ARENA_ALIGN, 0);
}

static void unused_tensors_take_no_bytes(void **state)
{
    static scene s;
    (void)state;
    const int32_t a = open_scene(&s), unused = rows(&s, "unused", 1 << 20);
    look(&s, a);
    derive(&s);
    assert_int_equal(s.plan.buffer_of_tensor[unused], HR_NONE);
    assert_int_equal(s.plan.buffer_of_tensor[s.weight], HR_NONE);
    assert_int_equal(s.plan.storage_count, 1);
}

/* Steps 0 to 5 with a sum, a reuse and a loop: the test adds the live bytes storage by storage. */
static void live_bytes_are_the_sum_of_live_storages_and_the_floor_their_maximum(void **state)
{
    static scene s;
    int64_t alive[8];
    hr_pack_result result;
    (void)state;
    const int32_t a = open_scene(&s), b = rows(&s, "b", WIDTH), c = rows(&s, "c", WIDTH);
    const int32_t odd = hr_build_fixed(&s.builder, "odd", HR_ROLE_SUM, HR_F32, HR_ROWS, 3, 0, 0);
    product(&s, a, HR_NONE, b); /* 1 */
    product(&s, a, b, c);       /* 2: c reuses the bytes of b, and the lifetime of a ends */
    hr_build_loop_open(&s.builder, "turns", 2);
    look(&s, c);   /* 3 */
    look(&s, odd); /* 4: live from 3; its size counts as a whole line */
    hr_build_loop_close(&s.builder);
    look(&s, odd); /* 5 */
    derive(&s);
    hr_lifetimes_alive(&s.program, &s.plan, alive);

    const int64_t row = (int64_t)ROWS * WIDTH * 4, weight = (int64_t)WIDTH * WIDTH * 4;
    const int64_t scratch1 = s.plan.buffers[s.plan.scratch_of_step[1]].bytes;
    const int64_t scratch2 = s.plan.buffers[s.plan.scratch_of_step[2]].bytes;
    assert_int_equal(alive[0], weight + row);
    assert_int_equal(alive[1], weight + 2 * row + scratch1);
    assert_int_equal(alive[2], weight + 2 * row + scratch2);
    assert_int_equal(alive[3], weight + row + HR_ARENA_ALIGN);
    assert_int_equal(alive[4], weight + row + HR_ARENA_ALIGN);
    assert_int_equal(alive[5], weight + HR_ARENA_ALIGN);

    must(hr_pack_floor(s.plan.storages, s.plan.storage_count, &s.region, &result, &s.err), &s.err);
    int32_t peak = 0;
    for (int32_t k = 1; k < s.program.step_count; k++)
        if (alive[k] > alive[peak]) peak = k;
    assert_int_equal(result.floor_bytes, alive[peak]);
    assert_int_equal(result.peak_step, peak);
    for (int32_t first = 0; first < s.program.step_count; first++) {
        int64_t most = 0;
        for (int32_t last = first; last < s.program.step_count; last++) {
            most = hr_max(most, alive[last]);
            assert_int_equal(hr_lifetimes_most(&s.plan, first, last), most);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_lives_from_its_first_to_its_last_access),
        cmocka_unit_test(an_outer_value_lives_through_a_repeating_loop),
        cmocka_unit_test(a_sum_lives_from_the_first_iteration_to_its_reader),
        cmocka_unit_test(an_output_reuses_the_bytes_of_an_addend_in_its_last_read),
        cmocka_unit_test(bytes_that_are_read_again_are_not_reused),
        cmocka_unit_test(an_operand_used_twice_in_a_step_is_not_overwritten),
        cmocka_unit_test(two_outputs_or_two_inputs_never_share),
        cmocka_unit_test(bytes_of_another_size_are_not_reused),
        cmocka_unit_test(bytes_of_an_outer_loop_are_not_reused),
        cmocka_unit_test(a_repeated_step_reuses_no_bytes),
        cmocka_unit_test(a_chain_of_reuses_is_one_storage),
        cmocka_unit_test(scratch_lives_for_one_step_and_is_counted_in_lines),
        cmocka_unit_test(unused_tensors_take_no_bytes),
        cmocka_unit_test(live_bytes_are_the_sum_of_live_storages_and_the_floor_their_maximum),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
