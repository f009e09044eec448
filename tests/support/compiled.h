/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/compiled.h - a program and its plan, in separate memory with random initial
 * content. */
#ifndef HR_TESTS_SUPPORT_COMPILED_H
#define HR_TESTS_SUPPORT_COMPILED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ops/cpu.h"
#include "plan/compile.h"

typedef struct {
    void *memory; /* the caller frees it */
    hr_region region;
    hr_compiled of;
} compiled;

static inline void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static inline void open_region(compiled *c, int64_t bytes)
{
    c->memory = aligned_alloc(64, (size_t)hr_round_up(bytes, 64));
    memset(c->memory, 0x5a, (size_t)bytes);
    c->region = hr_region_over(c->memory, bytes);
}

/* Packs a plan with lifetimes; its process consists of the arena only. */
static inline void pack(compiled *c)
{
    hr_error err;
    hr_plan *plan = &c->of.plan;
    must(hr_compile_pack(&c->region, HR_COMPILE_PACK_WORK, &c->of, &err), &err);
    plan->process.rung = "ref";
    plan->process.page_bytes = 4096;
    plan->process.bytes = hr_round_up(plan->arena_bytes, 4096);
    plan->process.lines[0] = (hr_account_line){ "arena", plan->process.bytes };
    plan->process.line_count = 1;
}

/* Compiles for two threads. */
static inline void compile(compiled *c, const hr_config *config, const hr_strategy *strategy)
{
    hr_error err;
    open_region(c, hr_compile_bytes(config));
    must(hr_config_check(config, &err), &err);
    must(hr_compile_floor(config, &hr_cpu_backend, strategy, 2, &c->region, &c->of, &err), &err);
    pack(c);
}

#endif
