/* SPDX-License-Identifier: Apache-2.0 */
/* probe_test.c - a probe times every call of a step, and the recipes of the calibration cover every
 * operation. No measured time is compared with another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "calibrate/probe.h"
#include "calibrate/recipes.h"
#include "ops/cpu.h"
#include "plan/cost.h"
#include "sections/assemble.h"

enum { MEGABYTES_MOST = 1536 }; /* memory of a small machine */

static hr_error err;

static void must(hr_status status)
{
    if (status != HR_OK) fail_msg("%s", err.message);
}

static void every_call_of_a_step_is_timed(void **state)
{
    (void)state;
    static const hr_recipe recipe = { HR_FAMILY_GPT_NEOX,
                                      HR_FORMAT_BF16,
                                      HR_OPTIMIZER_ADAMW,
                                      HR_RECOMPUTE_LAYERS,
                                      32,
                                      2,
                                      2,
                                      64,
                                      300,
                                      64,
                                      6,
                                      2,
                                      0,
                                      0 };
    enum { STEPS = 2 };
    hr_config config;
    hr_probe probe;
    hr_step_time time;
    hr_recipe_config(&recipe, &config);
    must(hr_config_check(&config, &err));
    must(hr_probe_open(&probe, &config, &hr_cpu_backend, 2, hr_cpu_detect(), &err));
    const hr_program *program = &probe.compiled.program;
    must(hr_probe_step(&probe, false, &time, &err));
    for (int32_t i = 0; i < 2 * program->step_count; i++) assert_int_equal(probe.times[i].count, 0);
    for (int32_t i = 0; i < STEPS; i++) must(hr_probe_step(&probe, true, &time, &err));
    assert_true(time.wall_ns > 0 && time.cpu_ns > 0);
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_probe_times *times = &probe.times[2 * s];
        const hr_loop_id section = hr_step_section(program, s);
        const bool trains = section == HR_LOOP_FETCH || section == HR_LOOP_STEP ||
                            section == HR_LOOP_UPDATE;
        const int64_t calls = trains ? STEPS * hr_cost_turns(program, s) : 0;
        assert_int_equal(times[0].count + times[1].count, calls);
        assert_int_equal(times[1].count, trains ? STEPS : 0);
    }
    hr_probe_close(&probe);
    hr_probe_close(&probe);
}

/* Marks the operations, by dtype, of the training steps of a recipe. */
static void note_operations(const hr_recipe *recipe, bool seen[][2])
{
    hr_config config;
    hr_compiled compiled;
    hr_intermediates recompute_set[4096];
    hr_recipe_config(recipe, &config);
    must(hr_config_check(&config, &err));
    const int64_t bytes = hr_round_up(hr_compile_bytes(&config), 64);
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    const hr_strategy strategy = hr_probe_strategy(&config, recompute_set);
    must(hr_compile_floor(&config, &hr_cpu_backend, &strategy, 2, &region, &compiled, &err));
    if (compiled.plan.floor_bytes > (int64_t)MEGABYTES_MOST << 20)
        fail_msg("%lld bytes", (long long)compiled.plan.floor_bytes);
    const hr_program *program = &compiled.program;
    static const hr_loop_id sections[] = { HR_LOOP_STEP, HR_LOOP_UPDATE };
    for (int32_t i = 0; i < 2; i++) {
        const hr_loop *section = &program->loops[hr_program_loop(program, sections[i])];
        for (int32_t s = section->step_first; s <= section->step_last; s++)
            seen[program->steps[s].op][hr_cost_dtype(program, s)] = true;
    }
    free(memory);
}

static void calibration_covers_every_operation_of_the_check(void **state)
{
    (void)state;
    static bool first[HR_RATE_OPS_MOST][2], calibrated[HR_RATE_OPS_MOST][2];
    static bool checked[HR_RATE_OPS_MOST][2];
    bool unseen;
    int32_t tests = 0;
    for (int32_t i = 0; hr_recipe_of_calibration(i); i++) {
        if (i < HR_RECIPES_REQUIRED) note_operations(hr_recipe_of_calibration(i), first);
        note_operations(hr_recipe_of_calibration(i), calibrated);
    }
    assert_memory_equal(first, calibrated,
                        sizeof first); /* for a calibration that skips the others */
    for (; hr_recipe_of_check(tests, &unseen); tests++)
        note_operations(hr_recipe_of_check(tests, &unseen), checked);
    assert_int_equal(tests, 40);
    for (int32_t op = 0; op < HR_OP_COUNT; op++)
        for (int32_t dtype = 0; dtype < 2; dtype++)
            if (checked[op][dtype] && !calibrated[op][dtype])
                fail_msg("%s, dtype %d: checked, never calibrated", hr_op_table[op]->name, dtype);
    assert_true(calibrated[HR_OP_sgd][0] && calibrated[HR_OP_sgd][1]);
    assert_true(calibrated[HR_OP_lion][0] && calibrated[HR_OP_lion][1]);
    assert_true(calibrated[HR_OP_adafactor][0] && calibrated[HR_OP_adafactor][1]);
    assert_true(calibrated[HR_OP_muon][0] && calibrated[HR_OP_muon][1]);
    assert_true(calibrated[HR_OP_dequantize][0] && calibrated[HR_OP_dequantize][1]);
    assert_true(calibrated[HR_OP_activation][0] && calibrated[HR_OP_activation][1]);
    assert_true(calibrated[HR_OP_dropout][0] && calibrated[HR_OP_dropout][1]);
    assert_true(calibrated[HR_OP_glu_bwd][0] && calibrated[HR_OP_glu_bwd][1]);
}

static void unseen_recipes_have_shapes_that_no_calibration_runs(void **state)
{
    (void)state;
    bool unseen;
    int32_t count = 0;
    const hr_recipe *test;
    for (int32_t i = 0; (test = hr_recipe_of_check(i, &unseen)); i++) {
        count += unseen;
        for (int32_t k = 0; unseen && hr_recipe_of_calibration(k); k++) {
            assert_int_not_equal(test->d_model, hr_recipe_of_calibration(k)->d_model);
            assert_int_not_equal(test->vocab_size, hr_recipe_of_calibration(k)->vocab_size);
            assert_int_not_equal(test->seq_len, hr_recipe_of_calibration(k)->seq_len);
        }
    }
    assert_true(count >= 10);
}

/* With equal rows everywhere, a pass over a weight could not be separated from its product. */
static void calibration_recipes_differ_in_their_rows(void **state)
{
    (void)state;
    int64_t least[2] = { INT64_MAX, INT64_MAX }, most[2] = { 0 };
    const hr_recipe *recipe;
    for (int32_t i = 0; (recipe = hr_recipe_of_calibration(i)); i++) {
        const int32_t type = recipe->format == HR_FORMAT_BF16;
        const int64_t rows = recipe->micro_batch * recipe->seq_len;
        assert_true(i < HR_RECIPES_MAX);
        assert_int_equal(recipe->batch % recipe->micro_batch,
                         0); /* shorter last iterations are not timed */
        least[type] = hr_min(least[type], rows);
        most[type] = hr_max(most[type], rows);
    }
    for (int32_t type = 0; type < 2; type++) assert_true(most[type] >= 32 * least[type]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_a_step_is_timed),
        cmocka_unit_test(calibration_covers_every_operation_of_the_check),
        cmocka_unit_test(unseen_recipes_have_shapes_that_no_calibration_runs),
        cmocka_unit_test(calibration_recipes_differ_in_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
