/* SPDX-License-Identifier: Apache-2.0 */
/* arena_test.c - the arena after a run: its end is the planned one, by the pointers of the
 * operations and by the bytes that were written, and no planned byte below it is unused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mem/poison.h"
#include "ops/linear/linear_scratch.h"
#include "require.h"
#include "support/pattern.h"
#include "support/random_freeze.h"
#include "support/random_strategy.h"
#include "support/rig.h"

enum { SEED = 20250215 };

/* Runs all sections, as hr_train does. */
static void run_all(rig *r)
{
    rig_section(r, HR_LOOP_LOAD);
    rig_step(r);
    rig_step(r);
    rig_evaluate(r);
    if (hr_program_loop(&r->compiled.program, HR_LOOP_SAMPLE) != HR_NONE)
        rig_section(r, HR_LOOP_SAMPLE);
    if (hr_program_loop(&r->compiled.program, HR_LOOP_SAVE) != HR_NONE)
        rig_section(r, HR_LOOP_SAVE);
}

/* One past the last planned byte of the operands and scratch of a step. */
static int64_t planned_end(const rig *r, int32_t s)
{
    const hr_plan *plan = &r->compiled.plan;
    const hr_step *step = &r->compiled.program.steps[s];
    int32_t buffers[HR_IN_MAX + HR_OUT_MAX + 1], count = 0;
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE) buffers[count++] = plan->buffer_of_tensor[step->in[i]];
    for (int32_t i = 0; i < HR_OUT_MAX; i++)
        if (step->out[i] != HR_NONE) buffers[count++] = plan->buffer_of_tensor[step->out[i]];
    if (plan->scratch_of_step[s] != HR_NONE) buffers[count++] = plan->scratch_of_step[s];
    int64_t end = 0;
    for (int32_t i = 0; i < count; i++) {
        const hr_storage *storage = &plan->storages[plan->buffers[buffers[i]].storage];
        end = hr_max(end, storage->offset + storage->bytes);
    }
    return end;
}

static int64_t used_most; /* over all steps */

/* Checks each step separately: what it is given must end where its own buffers end. */
static void watch_step(void *context, const hr_executor *executor, int32_t s)
{
    rig *r = context;
    (void)executor;
    if (r->memory.arena_bytes_used > planned_end(r, s))
        fail_msg("step %d (%s) was given bytes up to %lld, its buffers end at %lld", s,
                 hr_step_op(&r->compiled.program, &r->compiled.program.steps[s])->name,
                 (long long)r->memory.arena_bytes_used, (long long)planned_end(r, s));
    used_most = hr_max(used_most, r->memory.arena_bytes_used);
    r->memory.arena_bytes_used = 0;
}

static void operands_end_at_the_planned_end_of_the_arena(void **state)
{
    (void)state;
    int32_t consumed = 0;
    print_message("seed %d\n", SEED);
    for (uint64_t round = 0; round < 60 * HR_COUNT; round++) {
        hr_config config = random_config(SEED, round);
        int64_t micro = between(SEED, round, 20, 1, config.train.batch);
        while (config.train.batch % micro) micro--;
        config.train.seq_len = between(SEED, round, 23, 2, 40);
        random_freeze(&config, (int32_t)(round % FREEZES), SEED, round);
        (void)random_stored(&config, SEED, round);
        config.memory.micro_batch = micro;
        config.memory.loss_chunk = between(SEED, round, 21, 1, micro * config.train.seq_len);
        /* Two of three with the strategy of the recipe, one with a random one. */
        hr_intermediates recompute_set[4];
        hr_strategy strategy = random_strategy(&config, SEED, round, recompute_set);
        consumed += round % 3 == 0 && strategy.consume;
        rig r;
        rig_build_with(&r, &config, round % 3 ? NULL : &strategy,
                       (int32_t)between(SEED, round, 22, 1, 2), hr_cpu_detect(), 0, 0);
        r.executor.watch = watch_step;
        used_most = 0;
        run_all(&r);
        if (used_most != r.compiled.plan.arena_bytes)
            fail_msg("case %llu: used %lld of %lld planned", (unsigned long long)round,
                     (long long)used_most, (long long)r.compiled.plan.arena_bytes);
        rig_close(&r);
    }
    print_message("%d with gradients consumed\n", consumed);
    assert_true(consumed > 0);
}

/* A preset with fewer and narrower layers. */
static hr_config small_preset(const char *name)
{
    hr_config config;
    hr_error err;
    char path[512];
    hr_config_default(&config);
    snprintf(path, sizeof path, HR_SOURCE "/presets/%s.yaml", name);
    rig_must(hr_config_read(&config, path, &err), &err);
    config.model.d_model = 128;
    config.model.d_ff = 512;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.vocab_size = 2000;
    config.train.seq_len = 128;
    config.train.batch = 16;
    config.train.steps = 2;
    config.memory.micro_batch = 8;
    config.memory.loss_chunk = 512;
    return config;
}

/* Prints the buffers that have unwritten bytes, and returns how many of those are in the arena. The
 * only ones are padding in the scratch of products, whose blocks have the size of the largest
 * tile. */
static int64_t list_untouched(const rig *r)
{
    const hr_plan *plan = &r->compiled.plan;
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        if (buffer->view_of != HR_NONE) continue;
        const int64_t bytes = pattern_untouched_bytes(r->arena_memory, buffer->offset,
                                                      buffer->bytes);
        if (bytes > plan->arena_bytes / 10000)
            print_message(
                "  %lld of %lld bytes of %s, steps %d to %d (%s)\n", (long long)bytes,
                (long long)buffer->bytes,
                buffer->tensor == HR_NONE ? "scratch"
                                          : r->compiled.program.tensors[buffer->tensor].name,
                buffer->step_first, buffer->step_last,
                hr_step_op(&r->compiled.program, &r->compiled.program.steps[buffer->step_first])
                    ->name);
    }
    return pattern_untouched_bytes(r->arena_memory, 0, plan->arena_bytes);
}

/* A plan is the same for all kernels, so in the scratch of a thread a copied strip of a product has
 * the rows of AMX tiles; those of the other kernels have at most this many fewer. */
static int64_t padding_of_strips(void)
{
    enum { ROWS = 32, ROWS_AVX2 = 6 };
    return hr_cpu_detect() & HR_CPU_AMX ? 0 : (ROWS - ROWS_AVX2) * HR_LINEAR_STRIP_BYTES;
}

static void written_bytes_end_at_the_planned_end(void **state)
{
    static const char *const names[] = { "needle-70m", "pythia-70m" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int32_t format = 0; format < 2; format++) {
            hr_config config = small_preset(names[i]);
            config.train.dtype = format;
            rig r;
            rig_build(&r, &config, 2, hr_cpu_detect(), 0, 0);
            const int64_t arena = r.compiled.plan.arena_bytes;
            pattern_fill(r.arena_memory, arena);
            run_all(&r);
            hr_arena_unpoison(r.arena_memory, arena);
            const int64_t untouched = list_untouched(&r);
            print_message("%s %s: %lld bytes, %lld (%.3f %%) never written\n", names[i],
                          format ? "bf16" : "fp32", (long long)arena, (long long)untouched,
                          100.0 * (double)untouched / (double)arena);
            assert_int_equal(r.memory.arena_bytes_used, arena);
            /* Panels of the scratch of a product are one cache line apart: the last line may be
             * such a gap. */
            assert_true(pattern_end(r.arena_memory, arena) > arena - 2 * HR_ARENA_ALIGN);
            assert_true(untouched - 2 * padding_of_strips() <= arena / 1000);
            rig_close(&r);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_end_at_the_planned_end_of_the_arena),
        cmocka_unit_test(written_bytes_end_at_the_planned_end),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
