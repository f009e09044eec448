/* SPDX-License-Identifier: Apache-2.0 */
/* dev/cpu.c - calls an operation on every thread, phase by phase. */
#include "dev/cpu.h"

#include "base/assert.h"

#include "ops/cpu.h"
#include "ops/cpu_run.h"

typedef struct {
    const hr_call *call;
    hr_run_fn *run;
} phase_call;

static void run_phase(void *context, int32_t thread, int32_t threads)
{
    const phase_call *phase = context;
    hr_call call = *phase->call;
    call.thread = thread;
    call.threads = threads;
    phase->run(&call);
}

static void launch(const hr_device *device, const hr_program *program, int32_t step,
                   const hr_call *call)
{
    const hr_cpu_device *cpu = (const hr_cpu_device *)device;
    const hr_op_run *run = hr_cpu_runs[program->steps[step].op];
    hr_call each = *call;
    const int32_t phases = run->phases_of ? run->phases_of(call) : run->phases;
    HR_ASSERT(run->run && phases > 0);
    each.kernels = &cpu->kernels;
    for (each.phase = 0; each.phase < phases; each.phase++)
        hr_pool_run(cpu->pool, run_phase, &(phase_call){ &each, run->run });
}

void hr_cpu_device_open(hr_cpu_device *cpu, hr_pool *pool, uint32_t cpu_mask)
{
    cpu->device = (hr_device){ .backend = &hr_cpu_backend, .launch = launch };
    cpu->pool = pool;
    hr_kernels_fill(&cpu->kernels, cpu_mask);
}
