/* SPDX-License-Identifier: Apache-2.0 */
/* trace_test.c - the executor, on a device that executes nothing, runs the plans of all presets:
 * each call has its operands where the plan file says. Wrong plans and wrong calls are noticed. */
#include "support/trace.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/words.h"
#include "headroom/verify.h"
#include "mem/poison.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "plan/cost.h"
#include "plan/plan_file.h"
#include "plan/strategy_file.h"

enum { THREADS = 2, RECORDED_MOST = 512 };

static char path[64];

/* A recipe and one of its plans. */
typedef struct {
    hr_config config;
    hr_region region;
    hr_intermediates *set;
    hr_compiled compiled;
} planned;

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/headroom-trace-XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    return file < 0 || close(file);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

/* `keys`: as on the command line; ends with null. */
static planned *open_recipe_with(const char *recipe, const char *const *keys)
{
    planned *p = calloc(1, sizeof *p);
    hr_error err;
    assert_non_null(p);
    hr_config_default(&p->config);
    must(hr_config_read(&p->config, recipe, &err), &err);
    for (; *keys; keys++) must(hr_config_set_word(&p->config, *keys, &err), &err);
    must(hr_config_check(&p->config, &err), &err);
    const int64_t bytes = hr_round_up(hr_compile_bytes(&p->config), 64);
    p->region = hr_region_over(aligned_alloc(64, (size_t)bytes), bytes);
    p->set = calloc((size_t)p->config.model.n_layers, sizeof *p->set);
    return p;
}

static planned *open_recipe(const char *recipe)
{
    static const char *const none[] = { NULL };
    return open_recipe_with(recipe, none);
}

static void close_recipe(planned *p)
{
    free(p->region.base);
    free(p->set);
    free(p);
}

/* Gives the plan what the file needs beside it, writes the file, and has the judge read it. */
static void write_plan(planned *p)
{
    hr_plan *plan = &p->compiled.plan;
    hr_error err;
    hr_verify_report report;
    plan->process.rung = "avx2";
    plan->process.page_bytes = 4096;
    plan->process.lines[0] = (hr_account_line){ "arena", hr_round_up(plan->arena_bytes, 4096) };
    plan->process.line_count = 1;
    plan->process.bytes = plan->process.lines[0].bytes;
    must(hr_plan_file_write(path, &p->compiled.program, plan, &err), &err);
    must(hr_verify_file(path, &report, &err), &err);
}

static void plan_with(planned *p, const hr_strategy *strategy)
{
    hr_error err;
    p->region.used = 0;
    must(hr_compile(&p->config, &hr_cpu_backend, strategy, THREADS, &p->region, &p->compiled, &err),
         &err);
    write_plan(p);
}

/* Calls of the whole run; the first difference is in t->wrong. */
static int64_t run_trace(const planned *p, trace *t)
{
    const hr_program *program = &p->compiled.program;
    int64_t calls = 0;
    hr_error err;
    must(trace_open(t, program, &p->compiled.plan, path, &err), &err);
    must(trace_run(t, &err), &err);
    for (int32_t s = 0; s < program->step_count; s++) calls += t->calls[s];
    return calls;
}

/* Every step is called, in a training step as often as the cost model says. */
static void check_counts(const planned *p, const trace *t)
{
    const hr_program *program = &p->compiled.program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_loop_id section = hr_step_section(program, s);
        assert_true(t->calls[s] > 0);
        if (section == HR_LOOP_STEP || section == HR_LOOP_UPDATE || section == HR_LOOP_FETCH ||
            section == HR_LOOP_NORM || section == HR_LOOP_LOAD)
            assert_int_equal(t->calls[s], hr_cost_turns(program, s));
    }
}

static int64_t check_plan(const planned *p)
{
    trace t;
    const int64_t calls = run_trace(p, &t);
    if (t.wrong[0]) fail_msg("%s", t.wrong);
    check_counts(p, &t);
    trace_close(&t);
    return calls;
}

/* ---- plans of presets: the strategies that `plan` gives within all, 75 % and 50 % of the memory,
 * as tests/house/ratchets.jsonl records them */

typedef struct {
    char *preset, *strategy;
    int64_t floor_bytes;
} recorded;

static recorded list[RECORDED_MOST];
static int32_t count;

/* The same strategy is recorded for several sets of kernels. */
static bool is_new(const char *preset, const char *strategy)
{
    for (int32_t i = 0; i < count; i++)
        if (!strcmp(list[i].preset, preset) && !strcmp(list[i].strategy, strategy)) return false;
    return true;
}

static void read_recorded(void)
{
    FILE *file = fopen(HR_SOURCE "/tests/house/ratchets.jsonl", "r");
    json_t *row;
    assert_non_null(file);
    while ((row = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL))) {
        const char *preset = json_string_value(json_object_get(row, "preset"));
        const char *strategy = json_string_value(json_object_get(row, "strategy"));
        const bool away = json_object_get(row, "moments") || json_object_get(row, "weights");
        if (strategy && !away && is_new(preset, strategy)) {
            assert_true(count < RECORDED_MOST);
            list[count++] = (recorded){ strdup(preset), strdup(strategy),
                                        json_integer_value(json_object_get(row, "floor_bytes")) };
        }
        json_decref(row);
    }
    fclose(file);
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int64_t check_recorded(const recorded *of, hr_place moments)
{
    char recipe[512];
    hr_error err;
    snprintf(recipe, sizeof recipe, "%s/%s", HR_SOURCE, of->preset);
    /* Rows that are older than the 8-bit moments of their preset, as in tools/ratchets. */
    const bool older = hr_ends_with(of->preset, "/yxanul-197m.yaml");
    const char *keys[3] = { NULL };
    int32_t given = 0;
    if (older) keys[given++] = "train.state.moments=fp32";
    if (moments == HR_PLACE_FILE) keys[given++] = "memory.moments=file";
    planned *p = open_recipe_with(recipe, keys);
    hr_strategy strategy = { .recompute_set = p->set };
    write_text(of->strategy);
    must(hr_strategy_read(&p->config, path, &strategy, &err), &err);
    plan_with(p, &strategy);
    if (moments == HR_PLACE_HOST) assert_int_equal(p->compiled.plan.floor_bytes, of->floor_bytes);
    else /* small adapters have states that stay in the arena */
        assert_true(p->compiled.plan.spaces[HR_SPACE_FILE].bytes > 0 ||
                    p->config.train.adapter.kind != HR_ADAPTER_NONE);
    const int64_t calls = check_plan(p);
    close_recipe(p);
    return calls;
}

/* Under AddressSanitizer the executor marks the whole arena at each call. */
#ifdef HR_POISONS
static const int64_t arena_most = 19 << 20;
#else
static const int64_t arena_most = INT64_MAX;
#endif

static void the_plans_of_all_presets_pass(void **state)
{
    int64_t plans = 0, calls = 0, largest = 0;
    (void)state;
    read_recorded();
    for (int32_t i = 0; i < count; i++) {
        if (list[i].floor_bytes > arena_most) continue;
        calls += check_recorded(&list[i], HR_PLACE_HOST);
        /* Every third plan also with its moments in a file. */
        if (i % 3 == 0) calls += check_recorded(&list[i], HR_PLACE_FILE);
        largest = hr_max(largest, list[i].floor_bytes);
        plans++;
    }
    printf("%lld of %d plans, arenas of up to %lld bytes, %lld calls\n", (long long)plans, count,
           (long long)largest, (long long)calls);
    assert_true(plans > 0);
    for (int32_t i = 0; i < count; i++) {
        free(list[i].preset);
        free(list[i].strategy);
    }
}

/* Programs of `generate` and `eval`, and of training with tiles and recompute, for every format of
 * stored weights. */
static void the_plans_of_inference_and_over_stored_weights_pass(void **state)
{
    static const char *const formats[] = { "model.weights=compute", "model.weights=f16",
                                           "model.weights=f8_e4m3" };
    (void)state;
    for (int32_t f = 0; f < 3; f++) {
        const char *const keys[] = { formats[f], "train.freeze=*.mlp.* *.0.*", NULL };
        planned *p = open_recipe_with(HR_SOURCE "/presets/small/llama.yaml", keys);
        hr_error err;
        must(hr_compile_generation(&p->config, &hr_cpu_backend, 16, 4096, THREADS, &p->region,
                                   &p->compiled, &err),
             &err);
        write_plan(p);
        assert_true(check_plan(p) > 0);
        p->region.used = 0;
        must(hr_compile_evaluation(&p->config, &hr_cpu_backend, 4, 48, 64, 4096, false, THREADS,
                                   &p->region, &p->compiled, &err),
             &err);
        write_plan(p);
        assert_true(check_plan(p) > 0);
        p->config.memory.recompute = HR_RECOMPUTE_LAYERS;
        hr_strategy strategy = hr_strategy_of(&p->config, 4, p->set);
        strategy.mlp_tile = p->config.train.seq_len;
        plan_with(p, &strategy);
        assert_true(check_plan(p) > 0);
        int32_t copies = 0;
        for (int32_t s = 0; s < p->compiled.program.step_count; s++)
            copies += p->compiled.program.steps[s].op == HR_OP_dequantize;
        assert_int_equal(copies > 0, f > 0);
        close_recipe(p);
    }
}

/* ---- mistakes: each is made in the program or plan that the executor has, after the file of the
 * right one was written; or in the file */

static planned *right_plan(void)
{
    planned *p = open_recipe(HR_SOURCE "/presets/small/gpt2.yaml");
    p->config.train.batch = 8;
    p->config.train.seq_len = 64;
    hr_strategy strategy = hr_strategy_of(&p->config, 4, p->set);
    strategy.mlp_tile = p->config.train.seq_len;
    plan_with(p, &strategy);
    assert_true(check_plan(p) > 0);
    return p;
}

static void check_noticed(planned *p, const char *what)
{
    trace t;
    run_trace(p, &t);
    if (!strstr(t.wrong, what)) fail_msg("\"%s\" instead of: %s", t.wrong, what);
    trace_close(&t);
    close_recipe(p);
}

/* The first step of an operation in the training step. */
static int32_t step_of(const hr_program *program, int32_t op)
{
    const int32_t first = program->loops[hr_program_loop(program, HR_LOOP_STEP)].step_first;
    for (int32_t s = first; s < program->step_count; s++)
        if (program->steps[s].op == op) return s;
    fail_msg("no step of %s", hr_op_table[op]->name);
    return HR_NONE;
}

static void a_buffer_at_another_offset_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    const hr_step *step = &p->compiled.program.steps[step_of(&p->compiled.program, HR_OP_loss)];
    const int32_t tensor = hr_tensor_root(&p->compiled.program, step->in[0]);
    p->compiled.plan.buffers[p->compiled.plan.buffer_of_tensor[tensor]].offset += HR_ARENA_ALIGN;
    check_noticed(p, ", linear: output 0, ");
}

static void scratch_in_other_bytes_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    const int32_t s = step_of(&p->compiled.program, HR_OP_linear_dw);
    hr_buffer *buffer = &p->compiled.plan.buffers[p->compiled.plan.scratch_of_step[s]];
    buffer->offset = buffer->offset ? 0 : p->compiled.plan.arena_bytes - buffer->bytes;
    check_noticed(p, "not inside of scratch");
}

static void an_address_outside_of_the_arena_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    trace t;
    hr_error err;
    must(trace_open(&t, &p->compiled.program, &p->compiled.plan, path, &err), &err);
    const hr_call call = { .out = { t.memory.arena + t.memory.arena_bytes } };
    trace_record(&t, &p->compiled.program, 0, &call); /* initialize */
    if (!strstr(t.wrong, "outside of every space instead of")) fail_msg("\"%s\"", t.wrong);
    trace_close(&t);
    close_recipe(p);
}

static void exchanged_operands_are_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    hr_step *step = &p->compiled.program.steps[step_of(&p->compiled.program, HR_OP_adamw)];
    const int32_t first = step->out[1];
    step->out[1] = step->out[2];
    step->out[2] = first;
    check_noticed(p, ", adamw: output 1, ");
}

static void a_view_that_moves_too_far_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    hr_program *program = &p->compiled.program;
    int32_t moved = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].view_loop != HR_NONE && ++moved)
            program->tensors[t].view_stride_bytes *= 2;
    assert_true(moved > 0);
    check_noticed(p, "not inside of");
}

static void more_rows_than_planned_are_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    hr_program *program = &p->compiled.program;
    const hr_step *step = &program->steps[step_of(program, HR_OP_attention)];
    program->tensors[step->out[0]].row_bytes *= 2;
    check_noticed(p, ", attention: output 0, ");
}

static void another_operation_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    p->compiled.program.steps[step_of(&p->compiled.program, HR_OP_attention)].op = HR_OP_glu;
    check_noticed(p, "glu: the call, 0 bytes at 0, in the file it is attention");
}

static int64_t twice(const void *attr, int64_t rows, int32_t threads)
{
    return 2 * hr_linear_cpu.scratch_bytes(attr, rows, threads);
}

/* A back end whose kernels need more scratch than those that the plan was made for. */
static void less_scratch_than_needed_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    const hr_op_facts *table[HR_OP_COUNT];
    hr_op_facts facts = hr_linear_cpu;
    hr_backend backend = hr_cpu_backend;
    memcpy(table, hr_cpu_backend.facts, sizeof table);
    facts.scratch_bytes = twice;
    table[HR_OP_linear] = &facts;
    backend.facts = table;
    p->compiled.program.backend = &backend;
    check_noticed(p, ", linear: scratch, ");
}

/* In the file, the gradient of a weight dies at the step after the one that writes it first. */
static void a_buffer_that_dies_early_is_found(void **state)
{
    (void)state;
    planned *p = right_plan();
    trace t;
    hr_error err;
    const hr_program *program = &p->compiled.program;
    must(trace_open(&t, program, &p->compiled.plan, path, &err), &err);
    const int32_t tensor = program->steps[step_of(program, HR_OP_linear_dw)].out[0];
    hr_judged_buffer *dies = &t.file.buffers[p->compiled.plan.buffer_of_tensor[tensor]];
    dies->declared_last = dies->declared_first;
    must(trace_run(&t, &err), &err);
    if (!strstr(t.wrong, "not alive: grad ")) fail_msg("\"%s\"", t.wrong);
    trace_close(&t);
    close_recipe(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plans_of_all_presets_pass),
        cmocka_unit_test(the_plans_of_inference_and_over_stored_weights_pass),
        cmocka_unit_test(a_buffer_at_another_offset_is_found),
        cmocka_unit_test(scratch_in_other_bytes_is_found),
        cmocka_unit_test(an_address_outside_of_the_arena_is_found),
        cmocka_unit_test(exchanged_operands_are_found),
        cmocka_unit_test(a_view_that_moves_too_far_is_found),
        cmocka_unit_test(more_rows_than_planned_are_found),
        cmocka_unit_test(another_operation_is_found),
        cmocka_unit_test(less_scratch_than_needed_is_found),
        cmocka_unit_test(a_buffer_that_dies_early_is_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
