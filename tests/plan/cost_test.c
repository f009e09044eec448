/* SPDX-License-Identifier: Apache-2.0 */
/* cost_test.c - the cost of a program is the sum of its calls, each with its rows. This test
 * enumerates the calls one by one, as the executor does, including short last iterations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "ops/norm/norm.h"
#include "plan/compile.h"
#include "plan/cost.h"
#include "sections/assemble.h"
#include "support/random_config.h"

enum { SEED = 20250311, PROGRAMS = 40, THREADS = 2 };

typedef struct {
    void *memory;
    hr_region region;
    hr_compiled compiled;
} built;

static void build(built *b, const hr_config *config, int64_t micro_batch)
{
    hr_error err;
    const int64_t bytes = hr_round_up(hr_compile_bytes(config), 64);
    b->memory = aligned_alloc(64, (size_t)bytes);
    b->region = hr_region_over(b->memory, bytes);
    hr_intermediates recompute_set[4096];
    const hr_strategy strategy = hr_strategy_of(config, micro_batch, recompute_set);
    if (hr_compile_floor(config, &hr_cpu_backend, &strategy, 2, &b->region, &b->compiled, &err) !=
        HR_OK)
        fail_msg("%s", err.message);
}

/* Random rates that all differ. */
static void draw_rates(uint64_t turn, hr_rates *rates)
{
    rates->threads = THREADS;
    for (int32_t op = 0; op < HR_RATE_OPS_MOST; op++) {
        for (int32_t dtype = 0; dtype < 2; dtype++) {
            hr_rate *rate = &rates->op[op][dtype];
            const uint32_t what = (uint32_t)(op * 2 + dtype) * 32;
            rate->call_ps = between(SEED, turn, what, 1, 5000000);
            for (int32_t t = 0; t < HR_TERM_COUNT; t++)
                rate->unit_as[t] = between(SEED, turn, what + 1 + (uint32_t)t, 1, 900000);
        }
    }
}

/* Enumerates all iterations of the loops around a step, outermost first, and adds the cost of each
 * call. */
typedef struct {
    const hr_program *program;
    const hr_rates *rates;
    int32_t step;
    int64_t calls, total;
} walk;

static void walk_turns(walk *w, int32_t above, int64_t rows)
{
    const hr_program *program = w->program;
    int32_t loop = program->steps[w->step].loop;
    if (loop == above) {
        const hr_work work = hr_cost_work(program, w->step, rows, false, THREADS);
        const int32_t dtype = hr_cost_dtype(program, w->step);
        w->total += hr_cost_of(&w->rates->op[program->steps[w->step].op][dtype], &work);
        w->calls++;
        return;
    }
    while (program->loops[loop].parent != above) loop = program->loops[loop].parent;
    const hr_loop *entered = &program->loops[loop];
    if (entered->rows == 0) {
        for (int64_t turn = 0; turn < entered->count; turn++) walk_turns(w, loop, rows);
        return;
    }
    for (int64_t left = hr_min(rows, entered->rows_total); left > 0; left -= entered->rows)
        walk_turns(w, loop, hr_min(left, entered->rows));
}

static void a_program_costs_the_sum_of_its_calls(void **state)
{
    (void)state;
    static const hr_loop_id sections[] = { HR_LOOP_FETCH, HR_LOOP_STEP, HR_LOOP_UPDATE };
    static hr_rates rates;
    for (uint64_t turn = 0; turn < PROGRAMS; turn++) {
        hr_config config = random_config(SEED, turn);
        config.memory.loss_chunk = config.train.seq_len % 64 ? 0 : 64;
        built b;
        build(&b, &config, turn % 2 ? 1 : config.train.batch / 2);
        const hr_program *program = &b.compiled.program;
        draw_rates(turn, &rates);
        int64_t total = 0, started = 0;
        for (int32_t i = 0; i < 3; i++) {
            const hr_loop *section = &program->loops[hr_program_loop(program, sections[i])];
            for (int32_t s = section->step_first; s <= section->step_last; s++) {
                walk w = { program, &rates, s, 0, 0 };
                walk_turns(&w, 0, INT64_MAX);
                const hr_work work = hr_cost_work(program, s, INT64_MAX, true, THREADS);
                const int32_t dtype = hr_cost_dtype(program, s);
                const hr_rate *rate = &rates.op[program->steps[s].op][dtype];
                hr_rate start = { .unit_as = { 0 } };
                start.unit_as[HR_TERM_START] = rate->unit_as[HR_TERM_START];
                assert_int_equal(hr_cost_turns(program, s), w.calls);
                assert_int_equal(hr_cost_step_total(program, &rates, s),
                                 w.total + hr_cost_of(&start, &work));
                total += w.total;
                started += hr_cost_of(&start, &work);
            }
        }
        assert_int_equal(hr_cost_program(program, &rates), total + started);
        free(b.memory);
    }
}

static hr_config small_config(void)
{
    hr_config config;
    hr_config_default(&config);
    config.model.d_model = 64;
    config.model.n_layers = 3;
    config.model.n_heads = 4;
    config.model.d_ff = 128;
    config.model.vocab_size = 300;
    config.train.seq_len = 64;
    config.train.batch = 8;
    config.train.dtype = HR_FORMAT_BF16;
    return config;
}

static void equal_layers_cost_the_same(void **state)
{
    (void)state;
    static hr_rates rates;
    const hr_config config = small_config();
    built b;
    build(&b, &config, 2);
    const hr_program *program = &b.compiled.program;
    draw_rates(0, &rates);
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    int64_t of_layer[3] = { 0 };
    for (int32_t s = section->step_first; s <= section->step_last; s++)
        if (program->steps[s].layer >= 0)
            of_layer[program->steps[s].layer] += hr_cost_step_total(program, &rates, s);
    assert_true(of_layer[0] > 0);
    assert_int_equal(of_layer[1], of_layer[0]);
    assert_int_equal(of_layer[2], of_layer[0]);
    free(b.memory);
}

static void sums_start_once_per_iteration_of_their_home(void **state)
{
    (void)state;
    static hr_rates rates;
    memset(&rates, 0, sizeof rates);
    rates.threads = THREADS;
    for (int32_t op = 0; op < HR_RATE_OPS_MOST; op++)
        rates.op[op][1].unit_as[HR_TERM_START] = 1000000;
    const hr_config config = small_config();
    built whole, cut;
    build(&whole, &config, 8);
    build(&cut, &config, 1);
    const int64_t once = hr_cost_program(&whole.compiled.program, &rates);
    assert_true(once > 0);
    assert_int_equal(hr_cost_program(&cut.compiled.program, &rates), once);
    free(whole.memory);
    free(cut.memory);
}

/* Computed by hand: the items that each product packs, carries and pads, and those it is not
 * charged for. */
static void products_count_the_work_of_their_blocks(void **state)
{
    (void)state;
    hr_step step = { .out = { 0, HR_NONE, HR_NONE, HR_NONE, HR_NONE } };
    const hr_linear_attr attr = { .K = 600, .N = 1000, .T = 64, .act = HR_ACT_GELU };
    memcpy(step.attr, &attr, sizeof attr);
    const struct {
        int32_t op;
        bool bf16;
        int64_t items[HR_ITEMS_MAX];
    } cases[] = {
        { HR_OP_linear, false, { 64000, 2 * 64000, 2 * 38400, 64 } },
        { HR_OP_linear, true, { 64000, 64000, 2 * 38400, 64 } },
        { HR_OP_linear_dx, false, { 38400, 3 * 38400, 2 * 64000, 64 } },
        { HR_OP_linear_dx, true, { 38400, 38400, 2 * 64000, 64 } },
        { HR_OP_linear_dw, false, { 0, 2 * 38400, 2 * 64000, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t items[HR_ITEMS_MAX] = { 0 };
        hr_cpu_backend.facts[cases[i].op]->items(&step, cases[i].bf16, 64, items);
        assert_memory_equal(items, cases[i].items, sizeof items);
    }
    int64_t items[HR_ITEMS_MAX] = { 0 };
    step.out[1] = 1; /* db */
    hr_linear_dw_cpu.items(&step, true, 1025, items);
    assert_int_equal(items[0], 1025 * 1000);
    assert_int_equal(items[3], 2 * 600 * 1000);
}

/* LayerNorm subtracts a mean, RMSNorm does not: bytes alone would give them equal costs. */
static void norms_count_the_subtraction_of_the_mean(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 4; i++) {
        hr_step step = { .op = (int16_t)(i % 2 ? HR_OP_norm_bwd : HR_OP_norm) };
        const hr_norm_attr attr = { .D = 32, .groups = 3, .T = 64, .centered = i < 2 };
        memcpy(step.attr, &attr, sizeof attr);
        int64_t items[HR_ITEMS_MAX] = { 0 };
        hr_cpu_backend.facts[step.op]->items(&step, true, 64, items);
        assert_int_equal(items[0], i < 2 ? 64 * 3 * 32 : 0);
        assert_true(!items[1] && !items[2] && !items[3]);
    }
}

/* No term is negative, and none decreases with more rows. */
static void more_rows_are_never_less_work(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < PROGRAMS; turn++) {
        const hr_config config = random_config(SEED, turn);
        built b;
        build(&b, &config, config.train.batch);
        const hr_program *program = &b.compiled.program;
        for (int32_t s = 0; s < program->step_count; s++) {
            hr_work less = { .amount = { 0 } };
            for (int64_t rows = 1; rows <= 4 * config.train.seq_len; rows += 1 + rows / 3) {
                const hr_work work = hr_cost_work(program, s, rows, false, 1);
                for (int32_t t = 0; t < HR_TERM_COUNT; t++)
                    if (work.amount[t] < less.amount[t])
                        fail_msg("%s, term %d: %lld, with more rows %lld",
                                 hr_step_op(program, &program->steps[s])->name, t,
                                 (long long)less.amount[t], (long long)work.amount[t]);
                less = work;
            }
        }
        free(b.memory);
    }
}

static void tables_cost_only_the_rows_looked_up(void **state)
{
    (void)state;
    hr_config config = small_config();
    built few, many;
    build(&few, &config, 2);
    config.model.vocab_size = 30000;
    build(&many, &config, 2);
    int32_t compared = 0;
    for (int32_t s = 0; s < few.compiled.program.step_count; s++) {
        const int16_t op = few.compiled.program.steps[s].op;
        if (op != HR_OP_embed && op != HR_OP_embed_bwd) continue;
        const hr_work one = hr_cost_work(&few.compiled.program, s, INT64_MAX, false, THREADS);
        const hr_work other = hr_cost_work(&many.compiled.program, s, INT64_MAX, false, THREADS);
        assert_int_equal(many.compiled.program.steps[s].op, op);
        assert_memory_equal(&one, &other, sizeof one);
        compared++;
    }
    assert_true(compared >= 2);
    free(few.memory);
    free(many.memory);
}

static void costs_saturate(void **state)
{
    (void)state;
    hr_rate rate = { .call_ps = HR_RATE_CALL_PS_MOST };
    for (int32_t t = 0; t < HR_TERM_COUNT; t++) rate.unit_as[t] = HR_RATE_UNIT_AS_MOST;
    hr_work work = { .amount = { [HR_TERM_FLOPS] = INT64_MAX } };
    assert_int_equal(hr_cost_of(&rate, &work), INT64_MAX);
    for (int32_t t = 0; t < HR_TERM_COUNT; t++) work.amount[t] = INT64_MAX;
    assert_int_equal(hr_cost_of(&rate, &work), INT64_MAX);
    work = (hr_work){ .amount = { [HR_TERM_FLOPS] = 1999999 } };
    rate = (hr_rate){ .unit_as = { [HR_TERM_FLOPS] = 3 } };
    assert_int_equal(hr_cost_of(&rate, &work), 5); /* floor(1999999 x 3 / 10^6) */
}

static void every_kernel_has_an_estimate_and_a_higher_rung_never_costs_more(void **state)
{
    (void)state;
    static const char *const rungs[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
    static hr_rates lower, rates;
    const hr_config config = small_config();
    built b;
    build(&b, &config, 4);
    for (int32_t r = 0; r < 5; r++) {
        hr_rates_guess(&hr_cpu_backend, (uint32_t)hr_cpu_mask_of(rungs[r]), 2, &rates);
        const hr_loop *section = &b.compiled.program.loops[2];
        for (int32_t s = section->step_first; s <= section->step_last; s++)
            if (!hr_op_table[b.compiled.program.steps[s].op]->host)
                assert_true(hr_cost_step(&b.compiled.program, &rates, s) > 0);
        if (r > 0)
            assert_true(hr_cost_program(&b.compiled.program, &rates) <=
                        hr_cost_program(&b.compiled.program, &lower));
        lower = rates;
    }
    hr_rates_guess(&hr_cpu_backend, (uint32_t)hr_cpu_mask_of("amx"), 1, &rates);
    assert_true(hr_cost_program(&b.compiled.program, &rates) >
                hr_cost_program(&b.compiled.program, &lower));
    free(b.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_costs_the_sum_of_its_calls),
        cmocka_unit_test(equal_layers_cost_the_same),
        cmocka_unit_test(sums_start_once_per_iteration_of_their_home),
        cmocka_unit_test(products_count_the_work_of_their_blocks),
        cmocka_unit_test(norms_count_the_subtraction_of_the_mean),
        cmocka_unit_test(more_rows_are_never_less_work),
        cmocka_unit_test(tables_cost_only_the_rows_looked_up),
        cmocka_unit_test(costs_saturate),
        cmocka_unit_test(every_kernel_has_an_estimate_and_a_higher_rung_never_costs_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
