/* SPDX-License-Identifier: Apache-2.0 */
/* consume_test.c - gradient release: the places of the updates, the memory it saves, and that the
 * verifier refuses an update one step earlier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/verify.h"
#include "model/optimizer.h"
#include "ops/cpu.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "ops/update/update_build.h"
#include "plan/compile.h"
#include "plan/consume.h"
#include "plan/lifetimes.h"
#include "plan/plan_file.h"
#include "sections/assemble.h"
#include "support/by_hand.h"
#include "support/compiled.h"
#include "support/folder.h"
#include "support/random_strategy.h"

enum { SEED = 20261122, LAYERS_MOST = 4 };

static hr_status judged(const compiled *c, const hr_folder *folder, hr_error *err)
{
    const char *path = hr_folder_path(folder, "plan.json");
    hr_verify_report report;
    must(hr_plan_file_write(path, &c->of.program, &c->of.plan, err), err);
    return hr_verify_file(path, &report, err);
}

static hr_config some_config(uint64_t turn, double clip)
{
    hr_config config = random_config(SEED, turn);
    config.train.optimizer.clip = clip;
    if (turn % 2) config.train.seq_len = 64 * (1 + turn % 3);
    return config;
}

static hr_strategy some_strategy(const hr_config *config, uint64_t turn,
                                 hr_intermediates *recompute_set)
{
    hr_strategy strategy = random_strategy(config, SEED, turn, recompute_set);
    strategy.micro_batch = 0;
    strategy.loss_chunk = random_tile(config, SEED, turn, 41, config->train.batch);
    strategy.mlp_tile = random_tile(config, SEED, turn, 42, config->train.batch);
    strategy.consume = true;
    hr_strategy_canonical(config, &strategy);
    return strategy;
}

static bool updates(const hr_program *program, int32_t s)
{
    const int32_t op = program->steps[s].op;
    return op == HR_OP_adamw || op == HR_OP_sgd || op == HR_OP_lion || op == HR_OP_adafactor ||
           op == HR_OP_muon;
}

static bool averages(const hr_program *program, int32_t s)
{
    return program->steps[s].op == HR_OP_average;
}

static bool is_in(const hr_program *program, int32_t s, hr_loop_id section)
{
    return hr_step_section(program, s) == section;
}

static bool touches(const hr_program *program, int32_t s, int32_t tensor)
{
    const hr_step *step = &program->steps[s];
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && hr_tensor_root(program, step->in[i]) == tensor) return true;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (step->out[k] != HR_NONE && hr_tensor_root(program, step->out[k]) == tensor) return true;
    return false;
}

/* The gradient of a weight that is used twice. */
static bool completes(const hr_program *program, int32_t s)
{
    return program->steps[s].op == HR_OP_merge || program->steps[s].op == HR_OP_embed_bwd;
}

/* ---- places */

/* The step that computes the strip of an update. */
static const hr_step *strip_of(const hr_program *program, int32_t s)
{
    const hr_step *writer = &program->steps[s - 1];
    while (writer->op == HR_OP_sumsq) writer--;
    assert_true(writer->op == HR_OP_linear_dw || writer->op == HR_OP_embed_bwd);
    return writer;
}

/* Elements that an update in strips covers in all iterations; 0 for the update of a whole
 * gradient. */
static int64_t in_strips(const hr_program *program, int32_t s, const hr_param *param)
{
    const hr_step *step = &program->steps[s];
    const hr_tensor *gradient = &program->tensors[step->in[0]];
    const int64_t elements = hr_tensor_bytes(gradient) / (int64_t)sizeof(float);
    if (step->in[0] == param->gradient) return 0;
    assert_int_equal(strip_of(program, s)->out[0], step->in[0]);
    assert_int_equal(strip_of(program, s)->loop, step->loop);
    assert_int_equal(gradient->home, step->loop);
    return program->loops[step->loop].count * elements;
}

/* Checks that every parameter is updated once, in the step and outside of inner loops, or in
 * strips, directly after the last step that reads its weight or adds to its gradient. Its average
 * follows the update. */
static void judge_places(const hr_program *program)
{
    const int32_t state = hr_program_average(program);
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        int32_t at = HR_NONE, last = HR_NONE, average = HR_NONE, gap = 0;
        int64_t strips = 0;
        for (int32_t s = 0; s < program->step_count; s++) {
            if (!is_in(program, s, HR_LOOP_STEP)) continue;
            if (updates(program, s) &&
                hr_tensor_root(program, program->steps[s].out[0]) == param->master) {
                assert_int_equal(at != HR_NONE, strips > 0);
                strips += in_strips(program, s, param);
                if (at == HR_NONE) at = s;
            } else if (averages(program, s)) {
                if (program->steps[s].in[0] != param->master) continue;
                assert_int_equal(average, HR_NONE);
                assert_int_equal(program->steps[s].out[0], param->states[state]);
                average = s;
            } else if (touches(program, s, param->weight) || touches(program, s, param->gradient))
                last = s;
        }
        for (int32_t s = last + 1; strips > 0 && s < at; s++)
            if (touches(program, s, strip_of(program, at)->in[1]) &&
                program->loops[program->steps[s].loop].id == HR_LOOP_STEP)
                last = s;
        assert_true(at > last && last != HR_NONE);
        const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
        const hr_tensor *whole = &program->tensors[param->gradient];
        if (strips == 0) assert_int_equal(program->steps[at].loop, section);
        else assert_int_equal(strips, hr_tensor_bytes(whole) / (int64_t)sizeof(float));
        assert_int_equal(average != HR_NONE, state != HR_NONE);
        if (average != HR_NONE) {
            assert_true(average > at);
            assert_int_equal(program->steps[average].loop, section);
        }
        for (int32_t l = program->steps[last].loop; l != hr_program_loop(program, HR_LOOP_STEP);
             l = program->loops[l].parent)
            last = program->loops[l].step_last;
        for (int32_t s = last + 1; s < hr_max(at, average); s++)
            gap += !updates(program, s) && !averages(program, s) && !completes(program, s) &&
                   program->loops[program->steps[s].loop].parent == 0 &&
                   program->steps[s].op != HR_OP_sumsq && program->steps[s].op != HR_OP_report;
        assert_int_equal(gap, 0);
    }
}

static int32_t first_of(const hr_program *program, int16_t op, hr_loop_id section)
{
    for (int32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].op == op && is_in(program, s, section)) return s;
    return HR_NONE;
}

static void judge_sections(const hr_program *program, bool clips)
{
    const int32_t report = first_of(program, HR_OP_report, clips ? HR_LOOP_NORM : HR_LOOP_STEP);
    assert_int_equal(hr_program_loop(program, HR_LOOP_NORM) != HR_NONE, clips);
    assert_int_equal(hr_program_loop(program, HR_LOOP_UPDATE) != HR_NONE, !clips);
    assert_true(report != HR_NONE);
    for (int32_t s = 0; s <= report; s++) assert_false(updates(program, s));
    /* With a norm section the report has both numbers, otherwise only the loss. */
    assert_int_equal(program->steps[report].in[1] != HR_NONE, clips);
    assert_int_not_equal(program->steps[report].in[0], HR_NONE);
    assert_int_equal(first_of(program, HR_OP_clip, clips ? HR_LOOP_STEP : HR_LOOP_NORM), HR_NONE);
    for (int32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].op == HR_OP_sumsq)
            assert_true(is_in(program, s, clips ? HR_LOOP_NORM : HR_LOOP_STEP));
}

static void updates_follow_the_last_use_of_weight_and_gradient(void **state)
{
    const hr_folder folder = hr_folder_open();
    hr_error err;
    (void)state;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        const bool clips = turn / 2 % 2;
        const hr_config config = some_config(turn, clips ? 0.5 : 0);
        hr_intermediates recompute_set[LAYERS_MOST];
        const hr_strategy strategy = some_strategy(&config, turn, recompute_set);
        compiled c;
        compile(&c, &config, &strategy);
        judge_places(&c.of.program);
        judge_sections(&c.of.program, hr_config_needs_norm(&config));
        if (judged(&c, &folder, &err) != HR_OK)
            fail_msg("turn %llu: %s", (unsigned long long)turn, err.message);
        free(c.memory);
    }
    hr_folder_close(&folder);
}

/* The norm section equals the step: the same operations in the same order and loops. Updates that
 * need whole matrices are left out: their gradients are in strips in the norm alone. */
static void the_norm_section_repeats_the_step(void **state)
{
    int32_t compared = 0;
    (void)state;
    for (uint64_t turn = 0; turn < 40 * HR_COUNT; turn++) {
        const hr_config config = some_config(turn, 1);
        if (hr_optimizers[config.train.optimizer.kind].whole) continue;
        hr_intermediates recompute_set[LAYERS_MOST];
        const hr_strategy strategy = some_strategy(&config, turn, recompute_set);
        compiled c;
        compile(&c, &config, &strategy);
        const hr_program *program = &c.of.program;
        const hr_loop *norm = &program->loops[hr_program_loop(program, HR_LOOP_NORM)];
        const hr_loop *step = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
        int32_t a = norm->step_first, b = step->step_first;
        for (;; a++, b++) {
            while (a <= norm->step_last &&
                   (program->steps[a].op == HR_OP_sumsq || program->steps[a].op == HR_OP_clip ||
                    program->steps[a].op == HR_OP_report))
                a++;
            while (b <= step->step_last && (updates(program, b) || averages(program, b))) b++;
            if (a > norm->step_last || b > step->step_last) break;
            const hr_step *one = &program->steps[a], *two = &program->steps[b];
            assert_int_equal(one->op, two->op);
            const hr_op *op = hr_step_op(program, one);
            const int64_t rows = program->loops[one->loop].rows;
            if (op->flops) assert_int_equal(op->flops(one->attr, rows), op->flops(two->attr, rows));
            assert_int_equal(program->loops[one->loop].count, program->loops[two->loop].count);
            assert_int_equal(program->loops[one->loop].rows, program->loops[two->loop].rows);
        }
        assert_true(a > norm->step_last && b > step->step_last);
        compared++;
        free(c.memory);
    }
    assert_true(compared >= 20);
}

/* ---- one step too early */

/* Returns whether a step must precede the update: it accesses the gradient that the update reads,
 * or state that it writes. */
static bool holds_up(const hr_step *step, const hr_step *update)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        for (int32_t k = 0; k < HR_OUT_MAX && step->in[i] != HR_NONE; k++)
            if (step->in[i] == update->in[0] || step->in[i] == update->out[k]) return true;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (step->out[k] != HR_NONE && step->out[k] == update->in[0]) return true;
    return false;
}

/* Moves update `s` before the last step of the model that must precede it, into its loop. */
static void take_up(hr_program *program, int32_t s)
{
    const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
    int32_t at = s - 1;
    while (updates(program, at) || program->steps[at].op == HR_OP_sumsq ||
           !holds_up(&program->steps[at], &program->steps[s]))
        at--;
    hr_step step = program->steps[s];
    step.loop = program->steps[at].loop;
    memmove(&program->steps[at + 1], &program->steps[at], (size_t)(s - at) * sizeof step);
    program->steps[at] = step;
    for (int32_t l = step.loop; l != section; l = program->loops[l].parent)
        program->loops[l].step_last++;
}

static void an_update_one_step_too_early_is_refused(void **state)
{
    const hr_folder folder = hr_folder_open();
    int32_t tried = 0;
    (void)state;
    for (uint64_t turn = 0; turn < 30 * HR_COUNT; turn++) {
        const hr_config config = some_config(turn, turn % 2);
        hr_intermediates recompute_set[LAYERS_MOST];
        const hr_strategy strategy = some_strategy(&config, turn, recompute_set);
        for (int32_t k = 0; k < 3; k++) {
            hr_error err;
            compiled c;
            int32_t wanted = (int32_t)between(SEED, turn, 200 + (uint32_t)k, 0, 40), s;
            open_region(&c, hr_compile_bytes(&config));
            must(hr_compile_floor(&config, &hr_cpu_backend, &strategy, 2, &c.region, &c.of, &err),
                 &err);
            hr_program *program = &c.of.program;
            for (s = 1; s < program->step_count; s++)
                if (updates(program, s) && wanted-- == 0) break;
            if (s < program->step_count) {
                take_up(program, s);
                c.of.plan = (hr_plan){ .process = { .threads = 2, .rung = "" } };
                must(hr_lifetimes(program, &c.region, &c.of.plan, &err), &err);
                must(hr_pack_floor(c.of.plan.storages, c.of.plan.storage_count, &c.region,
                                   &c.of.packing, &err),
                     &err);
                c.of.plan.floor_bytes = c.of.packing.floor_bytes;
                c.of.plan.peak_step = c.of.packing.peak_step;
                pack(&c);
                if (judged(&c, &folder, &err) != HR_CORRUPT)
                    fail_msg("turn %llu: the update in step %d is accepted earlier",
                             (unsigned long long)turn, s);
                tried++;
            }
            free(c.memory);
        }
    }
    print_message("%d updates moved\n", tried);
    assert_true(tried > 50);
    hr_folder_close(&folder);
}

/* ---- floors computed by hand
 *
 * 256 token rows (R): x [32] from the fetch; a layer with an MLP only, out = relu(x W1) W2 with
 * W1 [32, 512], W2 [512, 32]; logits = out W3, W3 [32, 96]; loss. fp32, SGD with a moment, no
 * scratch. Bytes:
 *
 *   state    W1, W2 65536 each, W3 12288, and a moment of each: 286720
 *   rows     x, out and its gradient 128 R; targets 4 R; up, d.up 2048 R; logits and d.logits,
 *            which share memory, 384 R
 *   lines    1/tokens, learning rate, loss sum, terms of the norm, norm and scale: 64 each
 *
 * Steps: up, out; logits, loss, dW3, d.out; dW2, d.up, dW1. There is no d.x, since x is an
 * input. */

enum { R = 256, V = 96, D = 32, F = 512, T = 64 };
enum { STATE = 286720, G_W3 = 12288, G_W = 65536, LINE = 64, TARGETS = 4 };
enum { STREAM = 128, WIDE = 2048, LOGITS = 384 }; /* bytes per row */

static int32_t matrix(hr_builder *b, int64_t K, int64_t N, const char *name)
{
    const int32_t made = weight(b, HR_PARAM_MATRIX, K, N, name);
    hr_param *param = &b->program->params[b->program->param_count - 1];
    param->states[0] = hr_build_like_weight(b, b->program->param_count - 1, "moment 1",
                                            HR_ROLE_STATE, HR_NONE);
    return made;
}

static void build_by_hand(compiled *c, double clip)
{
    hr_error err;
    hr_program *program = &c->of.program;
    open_region(c, 1 << 20);
    hr_builder b = by_hand(program, &c->region, R, T, &err);
    const int32_t w1 = matrix(&b, D, F, "W1"), w2 = matrix(&b, F, D, "W2");
    const int32_t w3 = matrix(&b, D, V, "W3");
    const int32_t x = hr_build_rows(&b, "x", HR_F32, D);
    const int32_t targets = hr_build_rows(&b, "targets", HR_I32, 1);
    const int32_t scale = hr_build_fixed(&b, "scale", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t lr = hr_build_fixed(&b, "lr", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t loss = hr_build_fixed(&b, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, 1, 0, 0);
    hr_build_known_loop_open(&b, HR_LOOP_FETCH, 1);
    const int32_t fetched[] = { x, targets, scale, lr };
    memcpy(hr_build_step(&b, HR_OP_batch, 0, 0)->out, fetched, sizeof fetched);
    hr_build_loop_close(&b);

    hr_build_known_loop_open(&b, HR_LOOP_STEP, 1);
    b.direction = HR_DIR_FORWARD;
    const int32_t first = program->step_count;
    b.block = HR_BLOCK_MLP;
    b.layer = 0;
    const int32_t up = hr_build_linear(&b, "up", x, w1, HR_NONE, HR_ACT_RELU, HR_NONE);
    const int32_t out = hr_build_linear(&b, "out", up, w2, HR_NONE, HR_ACT_NONE, HR_NONE);
    b.block = HR_BLOCK_HEAD;
    b.layer = HR_NONE;
    const int32_t logits = hr_build_linear(&b, "logits", out, w3, HR_NONE, HR_ACT_NONE, HR_NONE);
    hr_build_loss(&b, logits, targets, scale, 0, loss);
    must(hr_build_derivative(&b, first, program->step_count - 1, &c->region, &err), &err);
    hr_build_loop_close(&b);
    assert_int_equal(program->step_count - first, 9);

    hr_build_known_loop_open(&b, HR_LOOP_UPDATE, 1);
    const int32_t norm_scale = hr_build_norm_scale(&b, clip, false, HR_NONE, &(hr_region){ 0 });
    hr_step *step = hr_build_step(&b, HR_OP_report, 0, 0);
    step->in[0] = loss;
    step->in[1] = norm_scale;
    for (int32_t p = 0; p < program->param_count; p++)
        hr_build_update(&b, p, HR_OP_sgd, (hr_update_attr){ 0 }, 1, 1,
                        clip > 0 ? norm_scale : HR_NONE, lr);
    hr_build_loop_close(&b);
    must(hr_build_status(&b), &err);
}

static void floor_is(double clip, hr_strategy strategy, int64_t bytes)
{
    compiled c;
    hr_error err;
    hr_intermediates set[] = { 0 };
    strategy.layer_count = 1;
    strategy.recompute_set = set;
    strategy.dw_first = true;
    build_by_hand(&c, clip);
    must(hr_strategy_apply(&strategy, T, &c.of.program, &c.region, &err), &err);
    c.of.plan = (hr_plan){ .process = { .threads = 1, .rung = "ref" } };
    must(hr_lifetimes(&c.of.program, &c.region, &c.of.plan, &err), &err);
    must(hr_pack(c.of.plan.storages, c.of.plan.storage_count, HR_PACK_WORK_DEFAULT, &c.region,
                 &c.of.packing, &err),
         &err);
    assert_int_equal(c.of.packing.floor_bytes, bytes);
    assert_int_equal(c.of.packing.arena_bytes, bytes);
    free(c.memory);
}

/* With loss chunks of 64 tokens the head is small, and the peak is at dW1: x, d.up in place of up,
 * all gradients. The learning rate and the loss are live until the update. */
static void without_release_the_floor_is_as_computed_by_hand(void **state)
{
    const hr_strategy kept = { .loss_chunk = 64 };
    (void)state;
    floor_is(0, kept, STATE + R * (STREAM + WIDE) + G_W3 + 2 * G_W + 2 * LINE);
    floor_is(1, kept, STATE + R * (STREAM + WIDE) + G_W3 + 2 * G_W + 2 * LINE);
}

/* W3 is updated after the loop of the head and W2 after d.up, so no two gradients are live
 * together. At d.up: x, d.out, d.up in place of up, and the gradient of W2. This is less than in
 * the loop of the head: x, up, out, d.out and targets whole, the logits of one iteration, the
 * gradient of W3, 1/tokens, learning rate, loss. */
static void with_release_the_floor_is_as_computed_by_hand(void **state)
{
    const hr_strategy consumed = { .loss_chunk = 64, .consume = true };
    const int64_t head = R * (3 * STREAM + WIDE + TARGETS) + 64 * LOGITS + G_W3;
    (void)state;
    assert_true(R * (2 * STREAM + WIDE) + G_W < head);
    floor_is(0, consumed, STATE + head + 3 * LINE);
    /* The second pass has the norm already. */
    floor_is(1, consumed, STATE + head + 4 * LINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_follow_the_last_use_of_weight_and_gradient),
        cmocka_unit_test(the_norm_section_repeats_the_step),
        cmocka_unit_test(an_update_one_step_too_early_is_refused),
        cmocka_unit_test(without_release_the_floor_is_as_computed_by_hand),
        cmocka_unit_test(with_release_the_floor_is_as_computed_by_hand),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
