/* SPDX-License-Identifier: Apache-2.0 */
/* floor_test.c - strategies whose floor was computed by hand. */
#include "ops/embed/embed_build.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "plan/lifetimes.h"
#include "support/by_hand.h"
#include "support/compiled.h"

/* 256 token rows (R): h from table [96, 32]; a layer with an MLP only, out = h + act(h W1) W2 with
 * W1 [32, 64], W2 [64, 32]; logits = out W3, W3 [32, 96]; loss; a report that reads all gradients.
 * fp32, no scratch. Bytes:
 *
 *   weights  table, W3 12288 each, W1, W2 8192 each: 40960; gradients the same
 *   rows     ids, targets 4 R; h, out and their gradients 128 R; up, pre, d.up 256 R; logits and
 *            d.logits, which share memory, 384 R
 *   small    1/tokens 64, learning rate (fetch only), loss sum 64
 *
 * Steps: embed h, up, out; logits, loss, dW3, d.out; dW2, d.up, dW1, d.h; embed_bwd. */

enum { R = 256, V = 96, D = 32, F = 64, T = 64 };
enum { WEIGHTS = 40960, G_TABLE = 12288, G_W = 8192, LINE = 64, IDS = 4 * R };
enum { STREAM = 128, WIDE = 256, LOGITS = 384 }; /* bytes per row */

static void build_by_hand(compiled *c, hr_act act)
{
    hr_error err;
    hr_program *program = &c->of.program;
    open_region(c, 1 << 20);
    hr_builder b = by_hand(program, &c->region, R, T, &err);
    const int32_t table = weight(&b, HR_PARAM_TABLE, V, D, "table");
    const int32_t w1 = weight(&b, HR_PARAM_MATRIX, D, F, "W1");
    const int32_t w2 = weight(&b, HR_PARAM_MATRIX, F, D, "W2");
    const int32_t w3 = weight(&b, HR_PARAM_MATRIX, D, V, "W3");
    const int32_t ids = hr_build_rows(&b, "ids", HR_I32, 1);
    const int32_t targets = hr_build_rows(&b, "targets", HR_I32, 1);
    const int32_t scale = hr_build_fixed(&b, "scale", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t lr = hr_build_fixed(&b, "lr", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t loss = hr_build_fixed(&b, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, 1, 0, 0);
    hr_step *step = hr_build_step(&b, HR_OP_batch, 0, 0);
    const int32_t fetched[] = { ids, targets, scale, lr };
    memcpy(step->out, fetched, sizeof fetched);

    hr_build_known_loop_open(&b, HR_LOOP_STEP, 1);
    b.direction = HR_DIR_FORWARD;
    const int32_t first = program->step_count;
    b.block = HR_BLOCK_EMBED;
    const int32_t h = hr_build_embed(&b, "h", ids, table, HR_NONE, 0);
    b.block = HR_BLOCK_MLP;
    b.layer = 0;
    const int32_t up = hr_build_linear(&b, "up", h, w1, HR_NONE, act, HR_NONE);
    const int32_t out = hr_build_linear(&b, "out", up, w2, HR_NONE, HR_ACT_NONE, h);
    b.block = HR_BLOCK_HEAD;
    b.layer = HR_NONE;
    const int32_t logits = hr_build_linear(&b, "logits", out, w3, HR_NONE, HR_ACT_NONE, HR_NONE);
    hr_build_loss(&b, logits, targets, scale, 0, loss);
    must(hr_build_derivative(&b, first, program->step_count - 1, &c->region, &err), &err);
    hr_build_loop_close(&b);

    step = hr_build_step(&b, HR_OP_report, 0, 0);
    step->in[0] = loss;
    for (int32_t p = 0; p < 4; p++) step->in[1 + p] = program->params[p].gradient;
    must(hr_build_status(&b), &err);
    assert_int_equal(program->step_count, 14);
}

static void floor_is(hr_act act, hr_strategy strategy, uint32_t recompute_set, int64_t bytes)
{
    compiled c;
    hr_error err;
    hr_intermediates set[] = { (hr_intermediates)recompute_set };
    strategy.layer_count = 1;
    strategy.recompute_set = set;
    build_by_hand(&c, act);
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

enum { ACT = 1u << HR_INTERMEDIATE_ACTIVATION, UP = 1u << HR_INTERMEDIATE_UP };

/* At dW3: h and up for the layer's gradients, out, d.logits, the first gradient. */
static void saving_everything_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .dw_first = true }, 0,
             WEIGHTS + IDS + LINE + R * (STREAM + WIDE + STREAM + LOGITS) + G_TABLE);
}

static void recomputing_an_activation_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .dw_first = true }, ACT,
             WEIGHTS + IDS + LINE + R * (STREAM + STREAM + LOGITS) + G_TABLE);
}

/* With loss chunks the head is small, and the peak is at dW1: h, d.out, d.up in place of the
 * recomputed activation, three gradients. */
static void recomputing_with_loss_chunks_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .dw_first = true, .loss_chunk = 64 }, ACT,
             WEIGHTS + IDS + LINE + R * (STREAM + STREAM + WIDE) + G_TABLE + 2 * G_W);
}

/* With tiles of 64 tokens h, d.out and d.h are whole, d.up has the rows of one iteration, and the
 * gradients live through all iterations. */
static void a_tiled_layer_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .dw_first = true, .loss_chunk = 64, .mlp_tile = 64 }, ACT,
             WEIGHTS + IDS + LINE + R * 3 * STREAM + 64 * WIDE + G_TABLE + 2 * G_W);
}

/* With dx first the activation is live until dW2, so d.up cannot reuse its memory. */
static void input_gradient_first_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .loss_chunk = 64 }, ACT,
             WEIGHTS + IDS + LINE + R * (2 * STREAM + 2 * WIDE) + G_TABLE + G_W);
}

/* GELU saves its input; the activation is recomputed from it for dW2. */
static void an_activation_from_its_saved_input_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_GELU, (hr_strategy){ .dw_first = true, .loss_chunk = 64 }, ACT,
             WEIGHTS + IDS + LINE + R * (2 * STREAM + 2 * WIDE) + G_TABLE + G_W);
    floor_is(HR_ACT_GELU, (hr_strategy){ .dw_first = true, .loss_chunk = 64, .mlp_tile = 64 }, ACT,
             WEIGHTS + IDS + LINE + R * (3 * STREAM + WIDE) + 64 * WIDE + G_TABLE + 2 * G_W);
    /* Neither is saved: in a tile both exist for one iteration, and d.up reuses the memory of
     * one. */
    floor_is(HR_ACT_GELU, (hr_strategy){ .dw_first = true, .loss_chunk = 64, .mlp_tile = 64 },
             ACT | UP, WEIGHTS + IDS + LINE + R * 3 * STREAM + 2 * 64 * WIDE + G_TABLE + 2 * G_W);
}

/* With micro-batches of one sequence, tiles of the same size have no effect. Gradients, ids and
 * targets live through all iterations. Peak at the loss: h, out, logits. */
static void micro_batches_have_the_floor_computed_by_hand(void **state)
{
    (void)state;
    floor_is(HR_ACT_RELU, (hr_strategy){ .dw_first = true, .micro_batch = 1 }, ACT,
             2 * WEIGHTS + 2 * IDS + 2 * LINE + 64 * (2 * STREAM + LOGITS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saving_everything_has_the_floor_computed_by_hand),
        cmocka_unit_test(recomputing_an_activation_has_the_floor_computed_by_hand),
        cmocka_unit_test(recomputing_with_loss_chunks_has_the_floor_computed_by_hand),
        cmocka_unit_test(a_tiled_layer_has_the_floor_computed_by_hand),
        cmocka_unit_test(input_gradient_first_has_the_floor_computed_by_hand),
        cmocka_unit_test(an_activation_from_its_saved_input_has_the_floor_computed_by_hand),
        cmocka_unit_test(micro_batches_have_the_floor_computed_by_hand),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
