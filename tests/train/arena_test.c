/* SPDX-License-Identifier: Apache-2.0 */
/* arena_test.c - the arena as it is after a run: its end is the planned one by the pointers that steps
 * were given and by the bytes that were written, and nothing below it was planned in vain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mem/pattern.h"
#include "require.h"
#include "support/random_config.h"
#include "support/rig.h"

enum { SEED = 20250215 };

/* Every section, as hr_train runs them. */
static void run_all(rig *r)
{
    rig_section(r, "load");
    rig_step(r);
    rig_step(r);
    rig_evaluate(r);
    if (hr_program_loop(&r->compiled.program, "sample") != HR_NONE) rig_section(r, "sample");
    if (hr_program_loop(&r->compiled.program, "save") != HR_NONE) rig_section(r, "save");
}

/* One past the last planned byte of a step's operands and scratch. */
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

/* Looks at each step alone: what it was given must end where its own buffers end. */
static void watch_step(void *context, const hr_executor *executor, int32_t s)
{
    rig *r = context;
    (void)executor;
    if (r->memory.arena_bytes_used > planned_end(r, s))
        fail_msg("step %d (%s) was given bytes up to %lld, its buffers end at %lld", s,
                 r->compiled.program.ops[r->compiled.program.steps[s].op]->name,
                 (long long)r->memory.arena_bytes_used, (long long)planned_end(r, s));
    used_most = hr_max(used_most, r->memory.arena_bytes_used);
    r->memory.arena_bytes_used = 0;
}

static void steps_are_given_the_arena_to_its_end_and_no_further(void **state)
{
    (void)state;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        int64_t micro = between(SEED, turn, 20, 1, config.train.batch);
        while (config.train.batch % micro) micro--;
        config.train.seq_len = between(SEED, turn, 23, 2, 40);
        config.memory.micro_batch = micro;
        config.memory.loss_chunk = between(SEED, turn, 21, 1, micro * config.train.seq_len);
        rig r;
        rig_build(&r, &config, (int32_t)between(SEED, turn, 22, 1, 2), hr_cpu_detect(), 0, 0);
        r.executor.watch = watch_step;
        used_most = 0;
        run_all(&r);
        if (used_most != r.compiled.plan.arena_bytes)
            fail_msg("turn %llu: used %lld of %lld planned", (unsigned long long)turn,
                     (long long)used_most, (long long)r.compiled.plan.arena_bytes);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_given_the_arena_to_its_end_and_no_further),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
