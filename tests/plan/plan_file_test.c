/* SPDX-License-Identifier: Apache-2.0 */
/* plan_file_test.c - random programs, planned and written: the verifier accepts every file, reading
 * and writing gives the same bytes, and plans made without loops or without reuse are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/random.h"
#include "graph/backend.h"
#include "headroom/verify.h"
#include "plan/lifetimes.h"
#include "plan/pack/pack.h"
#include "plan/plan_file.h"

enum { SEED = 4096, MEMORY_BYTES = 64 << 20, DEPTH = 5, STEPS_MAX = 120 };

static uint64_t draws;
static uint8_t *memory;
static char folder[64], path[96];

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(hr_random_mix(SEED + ++draws) % (uint64_t)(high - low + 1));
}

static int set_up(void **state)
{
    (void)state;
    memory = aligned_alloc(64, MEMORY_BYTES);
    snprintf(folder, sizeof folder, "%s/headroom-plan-XXXXXX", P_tmpdir);
    if (!memory || !mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/plan.json", folder);
    printf("seed %d\n", SEED);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    free(memory);
    return rmdir(folder);
}

/* ---- random programs */

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    (void)attr;
    return rows % 3 ? 40 * rows * threads : 0;
}

static int64_t flops(const void *attr, int64_t rows)
{
    (void)attr;
    return 1000 * rows;
}

static const hr_op op_source = { .name = "source", .in = "", .out = "w" };
static const hr_op op_map = { .name = "map",
                              .in = "rR",
                              .out = "r",
                              .reuse = { 3 },
                              .flops = flops };
static const hr_op op_sum = { .name = "sum", .in = "r", .out = "a" };
static const hr_op op_update = { .name = "update", .in = "w", .out = "u" };
static const hr_op op_report = { .name = "report", .in = "w", .out = "" };
static const hr_op *const ops[] = { &op_source, &op_map, &op_sum, &op_update, &op_report };

static const hr_op_facts nothing = { 0 }, map_facts = { .scratch_bytes = scratch_bytes };
static const hr_op_facts *const facts[] = { &nothing, &map_facts, &nothing, &nothing, &nothing };
static const hr_backend backend = { .ops = ops, .facts = facts, .op_count = 5 };

typedef enum { SOURCE, MAP, SUM, UPDATE, REPORT } op_index;

/* A program under construction: the open loops, outermost first, and the tensors with content that
 * steps in the innermost loop may read. */
typedef struct {
    hr_program program;
    int32_t open[DEPTH], depth;
    int32_t alive[2 * STEPS_MAX], alive_count;
} making;

static int32_t add_tensor(making *m, int32_t home)
{
    hr_program *program = &m->program;
    hr_tensor *tensor = &program->tensors[program->tensor_count];
    const int64_t rows = draw(1, 4) * 16, width = draw(1, 3) * 8;
    *tensor = (hr_tensor){ .layer = HR_NONE,
                           .dtype = HR_F32,
                           .role = HR_ROLE_ACTIVATION,
                           .dims = { rows, width },
                           .rows = rows,
                           .row_bytes = width * 4,
                           .home = home,
                           .view_of = HR_NONE,
                           .view_loop = HR_NONE };
    snprintf(tensor->name, sizeof tensor->name, "value %d", program->tensor_count);
    return program->tensor_count++;
}

/* A view of 8 rows of a tensor. */
static int32_t add_view(making *m, int32_t of)
{
    hr_program *program = &m->program;
    hr_tensor *view = &program->tensors[program->tensor_count];
    *view = program->tensors[of];
    view->view_of = of;
    view->rows = view->dims[0] = 8;
    view->view_offset_bytes = draw(0, program->tensors[of].rows - 8) * view->row_bytes;
    return program->tensor_count++;
}

static int32_t any_open_loop(making *m)
{
    return m->open[draw(0, m->depth - 1)];
}

/* A tensor that was written and whose home is still open. */
static int32_t any_alive(making *m)
{
    const int32_t tensor = m->alive[draw(0, m->alive_count - 1)];
    return m->program.tensors[tensor].rows > 8 && draw(0, 3) == 0 ? add_view(m, tensor) : tensor;
}

static hr_step *add_step(making *m, op_index op)
{
    hr_program *program = &m->program;
    const int32_t s = program->step_count++;
    hr_step *step = &program->steps[s];
    step->op = (int16_t)op;
    step->layer = HR_NONE;
    step->loop = m->open[m->depth - 1];
    for (int32_t i = 0; i < HR_IN_MAX; i++) step->in[i] = HR_NONE;
    for (int32_t i = 0; i < HR_OUT_MAX; i++) step->out[i] = HR_NONE;
    for (int32_t d = 0; d < m->depth; d++) {
        hr_loop *loop = &program->loops[m->open[d]];
        if (loop->step_last < loop->step_first) loop->step_first = s;
        loop->step_last = s;
    }
    return step;
}

static void write_new(making *m, hr_step *step)
{
    step->out[0] = add_tensor(m, any_open_loop(m));
    m->alive[m->alive_count++] = step->out[0];
}

static void emit(making *m)
{
    const op_index op = (op_index)draw(SOURCE, REPORT);
    if (op == SOURCE || m->alive_count == 0) {
        write_new(m, add_step(m, SOURCE));
        return;
    }
    const int32_t first = any_alive(m), second = any_alive(m);
    hr_step *step = add_step(m, op);
    step->in[0] = first;
    if (op == MAP && draw(0, 1)) step->in[1] = second;
    if (op == MAP || op == SUM) write_new(m, step);
    if (op == UPDATE) step->out[0] = 0;
}

static void open_loop(making *m)
{
    hr_program *program = &m->program;
    const int32_t l = program->loop_count++;
    program->loops[l] = (hr_loop){ .parent = m->open[m->depth - 1],
                                   .count = draw(1, 3),
                                   .step_last = -1 };
    snprintf(program->loops[l].name, sizeof program->loops[l].name, "loop %d", l);
    m->open[m->depth++] = l;
}

static void close_loop(making *m)
{
    int32_t kept = 0;
    const int32_t closed = m->open[m->depth - 1];
    if (m->program.loops[closed].step_last < m->program.loops[closed].step_first) emit(m);
    for (int32_t i = 0; i < m->alive_count; i++)
        if (m->program.tensors[m->alive[i]].home != closed) m->alive[kept++] = m->alive[i];
    m->alive_count = kept;
    m->depth--;
}

static hr_program make_program(hr_region *region)
{
    making m = { .depth = 1 };
    hr_error err;
    assert_int_equal(hr_program_place(region, &backend, 2 * STEPS_MAX, 6 * STEPS_MAX, STEPS_MAX, 0,
                                      &m.program, &err),
                     HR_OK);
    /* State that every step may read and update: a table, because a weight may not be read after
     * its update. */
    const int32_t table = add_tensor(&m, HR_NONE);
    m.program.tensors[table].role = HR_ROLE_TABLE;
    add_step(&m, SOURCE)->out[0] = table;
    for (int64_t left = draw(3, STEPS_MAX); left > 0; left--) {
        if (m.depth < DEPTH && draw(0, 6) == 0) open_loop(&m);
        emit(&m);
        if (m.depth > 1 && draw(0, 6) == 0) close_loop(&m);
    }
    while (m.depth > 1) close_loop(&m);
    return m.program;
}

/* ---- plans */

static hr_plan place(const hr_program *program, hr_plan plan, hr_region *region)
{
    hr_pack_result result;
    hr_error err;
    assert_int_equal(hr_pack(plan.storages, plan.storage_count, 1000000, region, &result, &err),
                     HR_OK);
    plan.arena_bytes = result.arena_bytes;
    plan.floor_bytes = result.floor_bytes;
    plan.peak_step = result.peak_step;
    for (int32_t b = 0; b < plan.buffer_count; b++) {
        hr_buffer *buffer = &plan.buffers[b];
        buffer->offset = plan.storages[buffer->storage].offset;
        if (buffer->view_of != HR_NONE)
            buffer->offset += program->tensors[buffer->tensor].view_offset_bytes;
    }
    plan.process.lines[0] = (hr_account_line){ "image", 4096 };
    const int64_t pages = hr_round_up(plan.arena_bytes, 4096);
    plan.process.lines[1] = (hr_account_line){ "arena", pages };
    plan.process.line_count = 2;
    plan.process.bytes = 4096 + pages;
    return plan;
}

static hr_plan lives_of(const hr_program *program, hr_region *region)
{
    hr_plan plan = { .process = { .threads = 2, .page_bytes = 4096, .rung = "ref" } };
    hr_error err;
    assert_int_equal(hr_lifetimes(program, region, &plan, &err), HR_OK);
    return plan;
}

static void write_plan(const char *to, const hr_program *program, const hr_plan *plan)
{
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_plan_file_write(to, program, plan, &err), HR_OK);
}

static void the_verifier_accepts_every_random_plan(void **state)
{
    (void)state;
    int64_t steps = 0, shared = 0, gaps = 0;
    for (int32_t i = 0; i < 200 * HR_COUNT; i++) {
        hr_region region = hr_region_over(memory, MEMORY_BYTES);
        const hr_program program = make_program(&region);
        const hr_plan plan = place(&program, lives_of(&program, &region), &region);
        hr_verify_report report;
        hr_error err = { HR_OK, "" };
        write_plan(path, &program, &plan);
        if (hr_verify_file(path, &report, &err)) fail_msg("program %d: %s", i, err.message);
        assert_int_equal(report.floor_bytes, plan.floor_bytes);
        assert_int_equal(report.peak_step, plan.peak_step);
        assert_int_equal(report.buffer_count, plan.buffer_count);
        assert_int_equal(report.storage_count, plan.storage_count);
        steps += program.step_count;
        gaps += report.gap_bytes > 0;
        for (int32_t b = 0; b < plan.buffer_count; b++)
            shared += plan.buffers[b].view_of == HR_NONE;
        shared -= plan.storage_count;
    }
    printf("%d programs, %lld steps, %lld storages handed over, %lld above their floor\n",
           200 * HR_COUNT, (long long)steps, (long long)shared, (long long)gaps);
    assert_true(shared > 0);
}

static char *read_all(const char *from, size_t *bytes)
{
    static char content[2][1 << 20];
    static int32_t turn;
    FILE *file = fopen(from, "r");
    assert_non_null(file);
    turn = !turn;
    *bytes = fread(content[turn], 1, sizeof content[0], file);
    fclose(file);
    return content[turn];
}

/* A tensor that the next step in the innermost open loop writes. */
static int32_t made(making *m, const char *name, int32_t layer)
{
    const int32_t tensor = add_tensor(m, m->open[m->depth - 1]);
    snprintf(m->program.tensors[tensor].name, HR_TENSOR_NAME_BYTES, "%s", name);
    m->program.tensors[tensor].layer = (int16_t)layer;
    add_step(m, SOURCE)->out[0] = tensor;
    return tensor;
}

static void every_name_is_complete_and_unique(void **state)
{
    (void)state;
    static const char parameter[] = "transformer.a_name_of_eighty_characters.layers.3.attention."
                                    "query_key_value.weight";
    static const char *const names[] = { "",
                                         "master ",
                                         "layers.3.up",
                                         "layers.3.up.2",
                                         "evaluation.ids",
                                         "evaluation.layers.3.up",
                                         "evaluation.ids.slice",
                                         "evaluation.layers.3.up.2" };
    making m = { .depth = 1 };
    hr_region region = hr_region_over(memory, MEMORY_BYTES);
    hr_verify_report report;
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_program_place(&region, &backend, 20, 20, 20, 1, &m.program, &err), HR_OK);
    m.program.param_count = 1;
    hr_param *param = &m.program.params[0];
    *param = (hr_param){ .gradient = HR_NONE };
    snprintf(param->external_name, sizeof param->external_name, "%s", parameter);
    param->weight = made(&m, "cut", 3);
    param->master = made(&m, "cut", 3);
    m.program.tensors[param->weight].role = HR_ROLE_WEIGHT;
    m.program.tensors[param->master].role = HR_ROLE_MASTER;
    open_loop(&m);
    snprintf(m.program.loops[1].name, sizeof m.program.loops[1].name, "step");
    m.program.loops[1].id = HR_LOOP_STEP;
    made(&m, "up", 3);
    made(&m, "up", 3);
    close_loop(&m);
    open_loop(&m);
    snprintf(m.program.loops[2].name, sizeof m.program.loops[2].name, "evaluation");
    const int32_t ids = made(&m, "evaluation ids", HR_NONE);
    made(&m, "up", 3);
    const int32_t slice = add_view(&m, ids);
    m.program.tensors[slice].view_loop = 2;
    add_step(&m, REPORT)->in[0] = slice;
    made(&m, "up", 3);
    close_loop(&m);
    const hr_plan plan = place(&m.program, lives_of(&m.program, &region), &region);
    write_plan(path, &m.program, &plan);
    size_t bytes;
    char *text = read_all(path, &bytes);
    text[bytes] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char field[256];
        snprintf(field, sizeof field, "{\"name\":\"%s%s\",", names[i], i < 2 ? parameter : "");
        const char *found = strstr(text, field);
        if (!found || strstr(found + 1, field)) fail_msg("%s", field);
    }
    if (hr_verify_file(path, &report, &err)) fail_msg("%s", err.message);
}

static void plans_made_without_loops_are_refused(void **state)
{
    (void)state;
    int32_t refused = 0, different = 0;
    for (int32_t i = 0; i < 40 * HR_COUNT; i++) {
        hr_region region = hr_region_over(memory, MEMORY_BYTES);
        hr_program program = make_program(&region);
        const hr_plan truth = lives_of(&program, &region);
        int64_t counts[STEPS_MAX];
        for (int32_t l = 0; l < program.loop_count; l++) {
            counts[l] = program.loops[l].count;
            program.loops[l].count = 1;
        }
        const hr_plan plan = place(&program, lives_of(&program, &region), &region);
        for (int32_t l = 0; l < program.loop_count; l++) program.loops[l].count = counts[l];
        bool differs = false;
        for (int32_t b = 0; b < plan.buffer_count; b++)
            differs |= plan.buffers[b].step_first != truth.buffers[b].step_first ||
                       plan.buffers[b].step_last != truth.buffers[b].step_last;
        hr_verify_report report;
        hr_error err;
        write_plan(path, &program, &plan);
        const hr_status status = hr_verify_file(path, &report, &err);
        assert_true((status != HR_OK) == differs);
        refused += status == HR_BROKEN;
        different += differs;
    }
    printf("%d of %d plans without loops collide, the others declare a wrong life\n", refused,
           different);
    assert_true(refused > 0);
}

static void plans_without_reuse_are_refused(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 40 * HR_COUNT; i++) {
        hr_region region = hr_region_over(memory, MEMORY_BYTES);
        const hr_program program = make_program(&region);
        hr_plan plan = lives_of(&program, &region);
        bool differs = false;
        for (int32_t k = 0; k < plan.storage_count; k++) {
            plan.storages[k].step_first = 0;
            plan.storages[k].step_last = program.step_count - 1;
        }
        for (int32_t b = 0; b < plan.buffer_count; b++) {
            differs |= plan.buffers[b].step_first > 0 ||
                       plan.buffers[b].step_last < program.step_count - 1;
            plan.buffers[b].step_first = 0;
            plan.buffers[b].step_last = program.step_count - 1;
        }
        plan = place(&program, plan, &region);
        hr_verify_report report;
        hr_error err;
        write_plan(path, &program, &plan);
        assert_int_equal(hr_verify_file(path, &report, &err), differs ? HR_CORRUPT : HR_OK);
    }
}

static void a_file_that_cannot_be_written_leaves_nothing(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, MEMORY_BYTES);
    const hr_program program = make_program(&region);
    const hr_plan plan = place(&program, lives_of(&program, &region), &region);
    char missing[128], part[128];
    struct stat about;
    hr_error err;
    snprintf(missing, sizeof missing, "%s/none/plan.json", folder);
    assert_int_equal(hr_plan_file_write(missing, &program, &plan, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "none: cannot be opened as a directory: No such file"));
    assert_int_equal(hr_plan_file_write(folder, &program, &plan, &err), HR_USAGE);
    snprintf(part, sizeof part, "%s.part", folder);
    assert_int_not_equal(stat(part, &about), 0);
    assert_int_equal(hr_plan_file_write("/dev/full", &program, &plan, &err), HR_USAGE);
    assert_int_equal(stat("/dev/full", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verifier_accepts_every_random_plan),
        cmocka_unit_test(every_name_is_complete_and_unique),
        cmocka_unit_test(plans_made_without_loops_are_refused),
        cmocka_unit_test(plans_without_reuse_are_refused),
        cmocka_unit_test(a_file_that_cannot_be_written_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
