/* SPDX-License-Identifier: Apache-2.0 */
/* tile_test.c - checks of memory that tests of results cannot make: if a tile does not shrink a
 * tensor, plans get larger while all values stay correct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ops/cpu.h"
#include "ops/embed/embed_build.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "plan/plan_file.h"
#include "plan/recompute.h"
#include "plan/tile.h"
#include "sections/assemble.h"
#include "support/by_hand.h"
#include "support/folder.h"
#include "support/random_config.h"

enum { SEED = 20250213, LAYERS_MOST = 4 };

/* ---- confluence */

typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_plan plan;
    hr_pack_result packing;
} compiled;

static void open_region(compiled *c, int64_t bytes)
{
    c->memory = aligned_alloc(64, (size_t)hr_round_up(bytes, 64));
    c->region = hr_region_over(c->memory, bytes);
}

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static void plan(compiled *c, int32_t threads)
{
    hr_error err;
    c->plan = (hr_plan){ .process = { .threads = threads, .rung = "ref", .page_bytes = 4096 } };
    must(hr_lifetimes(&c->program, &c->region, &c->plan, &err), &err);
    must(hr_pack(c->plan.storages, c->plan.storage_count, HR_PACK_WORK_DEFAULT, &c->region,
                 &c->packing, &err),
         &err);
    c->plan.arena_bytes = c->packing.arena_bytes;
    c->plan.floor_bytes = c->packing.floor_bytes;
}

static void tile_head(compiled *c, hr_loop_id section, const char *name, int64_t chunk)
{
    const hr_loop *loop = &c->program.loops[hr_program_loop(&c->program, section)];
    int32_t first = -1, last = -1;
    hr_error err;
    for (int32_t s = loop->step_first; s <= loop->step_last; s++) {
        if (c->program.steps[s].block != HR_BLOCK_HEAD) continue;
        if (first < 0) first = s;
        last = s;
    }
    must(hr_tile(&c->program, &(hr_tile_cut){ first, last, name, chunk }, 1, &c->region, &err),
         &err);
}

static void tile_batch(compiled *c, int64_t rows)
{
    const hr_loop *loop = &c->program.loops[hr_program_loop(&c->program, HR_LOOP_STEP)];
    hr_error err;
    must(hr_tile(&c->program,
                 &(hr_tile_cut){ loop->step_first, loop->step_last, "micro-batch", rows }, 1,
                 &c->region, &err),
         &err);
}

/* Compiles with the tiles made in one order or the other. */
static void compile_in_order(compiled *c, const hr_config *config, hr_strategy cuts,
                             int64_t micro_batch, bool chunk_first)
{
    hr_error err;
    open_region(c, hr_compile_bytes(config) + (1 << 20));
    must(hr_model_assemble(config, &hr_cpu_backend, micro_batch, &c->region, &c->program, &err),
         &err);
    must(hr_recompute(&c->program, hr_program_loop(&c->program, HR_LOOP_STEP), cuts.recompute_set,
                      0, &c->region, &err),
         &err);
    const int64_t rows = cuts.micro_batch * config->train.seq_len;
    if (!chunk_first && rows) tile_batch(c, rows);
    if (cuts.loss_chunk) {
        tile_head(c, HR_LOOP_STEP, "loss chunk", cuts.loss_chunk);
        tile_head(c, HR_LOOP_EVALUATION, "evaluation loss chunk", cuts.loss_chunk);
    }
    if (chunk_first && rows) tile_batch(c, rows);
    hr_tile_sort_loops(&c->program);
    plan(c, 2);
}

/* The plan file as text. */
static char *written(const compiled *c)
{
    const hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "plan.json");
    int64_t bytes;
    hr_error err;
    must(hr_plan_file_write(path, &c->program, &c->plan, &err), &err);
    char *text = hr_folder_read(path, &bytes);
    hr_folder_close(&folder);
    return text;
}

static void tiling_the_loss_or_the_batch_first_gives_equal_plans(void **state)
{
    (void)state;
    int32_t both = 0;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 100 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        const int64_t T = config.train.seq_len, batch = config.train.batch;
        int64_t micro = between(SEED, turn, 20, 1, batch - 1);
        while (batch % micro) micro--;
        config.memory.loss_chunk = between(SEED, turn, 21, 1, micro * T * 5 / 4);
        hr_intermediates recompute_set[LAYERS_MOST];
        const hr_strategy cuts = hr_strategy_of(&config, micro, recompute_set);
        both += cuts.micro_batch && cuts.loss_chunk;
        compiled a, b;
        compile_in_order(&a, &config, cuts, micro, false);
        compile_in_order(&b, &config, cuts, micro, true);
        char *one = written(&a), *other = written(&b);
        if (strcmp(one, other))
            fail_msg("turn %llu: micro-batch %lld of %lld x %lld, chunk %lld: floor %lld or %lld",
                     (unsigned long long)turn, (long long)micro, (long long)batch, (long long)T,
                     (long long)cuts.loss_chunk, (long long)a.plan.floor_bytes,
                     (long long)b.plan.floor_bytes);
        free(one);
        free(other);
        free(a.memory);
        free(b.memory);
    }
    print_message("%d of %d with both cuts\n", both, 100 * HR_COUNT);
    assert_true(both > 50);
}

/* ---- limits in plans of models */

/* Maximum of rows of any tensor of logits or of their gradient in a section's plan. */
static int64_t logit_rows(const compiled *c, hr_loop_id section)
{
    const hr_loop *loop = &c->program.loops[hr_program_loop(&c->program, section)];
    int64_t rows = 0;
    for (int32_t b = 0; b < c->plan.buffer_count; b++) {
        const hr_buffer *buffer = &c->plan.buffers[b];
        if (buffer->tensor == HR_NONE || buffer->step_first < loop->step_first ||
            buffer->step_last > loop->step_last)
            continue;
        const hr_tensor *tensor = &c->program.tensors[buffer->tensor];
        if (!strcmp(tensor->name, "logits") || !strcmp(tensor->name, "d.logits"))
            rows = hr_max(rows, tensor->rows);
    }
    return rows;
}

/* Floating-point operations of a section, with every iteration counted at full size. */
static int64_t flops_of(const compiled *c, hr_loop_id section)
{
    const hr_program *program = &c->program;
    const int32_t loop = hr_program_loop(program, section);
    int64_t sum = 0;
    for (int32_t s = program->loops[loop].step_first; s <= program->loops[loop].step_last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = hr_step_op(program, step);
        int64_t turns = 1;
        for (int32_t l = step->loop; l != loop; l = program->loops[l].parent)
            turns *= program->loops[l].count;
        if (op->flops) sum += turns * op->flops(step->attr, program->tensors[step->in[0]].rows);
    }
    return sum;
}

static void logits_have_the_rows_of_a_chunk_and_no_tile_adds_work(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        config.train.seq_len = 8 * between(SEED, turn, 22, 1, 20);
        const int64_t T = config.train.seq_len, batch = config.train.batch, chunk = T / 4;
        const int64_t micro = draw(SEED, turn, 23) % 2 ? 1 : batch / 2;
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_strategy cuts = hr_strategy_of(&config, batch, recompute_set);
        compiled whole, cut;
        cuts.loss_chunk = 0;
        compile_in_order(&whole, &config, cuts, batch, false);
        cuts.micro_batch = micro;
        cuts.loss_chunk = chunk;
        compile_in_order(&cut, &config, cuts, micro, draw(SEED, turn, 24) % 2);
        assert_int_equal(logit_rows(&whole, HR_LOOP_STEP), batch * T);
        assert_int_equal(logit_rows(&cut, HR_LOOP_STEP), chunk);
        assert_int_equal(logit_rows(&cut, HR_LOOP_EVALUATION), chunk);
        if (config.train.sample_tokens) assert_int_equal(logit_rows(&cut, HR_LOOP_SAMPLE), 1);
        assert_int_equal(flops_of(&whole, HR_LOOP_STEP), flops_of(&cut, HR_LOOP_STEP));
        free(whole.memory);
        free(cut.memory);
    }
}

static void a_tile_not_smaller_than_its_enclosing_tile_has_no_effect(void **state)
{
    (void)state;
    hr_config config = random_config(SEED, 0);
    config.train.batch = 6;
    config.train.seq_len = 64;
    const struct {
        int64_t micro_batch, loss_chunk;
        int64_t micro_batch_left, loss_chunk_left;
    } cases[] = { { 6, 64, 0, 64 }, { 6, 384, 0, 0 },   { 6, 100000, 0, 0 }, { 6, 383, 0, 383 },
                  { 3, 192, 3, 0 }, { 3, 191, 3, 191 }, { 3, 1000, 3, 0 },   { 1, 64, 1, 0 },
                  { 1, 0, 1, 0 },   { 6, 0, 0, 0 } };
    hr_intermediates recompute_set[LAYERS_MOST];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config.memory.loss_chunk = cases[i].loss_chunk;
        const hr_strategy strategy = hr_strategy_of(&config, cases[i].micro_batch, recompute_set);
        assert_int_equal(strategy.micro_batch, cases[i].micro_batch_left);
        assert_int_equal(strategy.loss_chunk, cases[i].loss_chunk_left);
    }
    config.memory.loss_chunk = 0;
    config.train.batch = 32;
    assert_int_equal(hr_strategy_of(&config, 32, recompute_set).loss_chunk, 1024);
    config.train.seq_len = 300; /* not a multiple of 64: whole sequences, or blocks of one */
    assert_int_equal(hr_strategy_of(&config, 32, recompute_set).loss_chunk, 900);
    assert_int_equal(hr_strategy_of(&config, 1, recompute_set).loss_chunk, 0);
    config.train.seq_len = 3000;
    assert_int_equal(hr_strategy_of(&config, 1, recompute_set).loss_chunk, 1024);
}

/* ---- floors computed by hand
 *
 * 256 token rows (R) through table [96, 32], relu(h W1) with W1 [32, 64], logits = up W2 with
 * W2 [64, 96]; loss; a report that reads loss and gradients. fp32, no scratch. Bytes:
 *
 *   weights    table 96*32*4 = 12288, W1 32*64*4 = 8192, W2 64*96*4 = 24576: together 45056
 *   gradients  the same three
 *   rows       ids, targets 4 R, h and d.h 128 R, up and d.up 256 R, logits and d.logits 384 R
 *   small      1/tokens 64, learning rate 64 (batch only), loss sum 64
 *
 * Steps: 0 batch, 1 embed h, 2 up, 3 logits, 4 loss (d.logits in place of logits), 5 dW2, 6 d.up
 * (in place of up, whose lifetime ends here), 7 dW1, 8 d.h, 9 embed_bwd, 10 report. */

enum { ROWS = 256, V = 96, D = 32, F = 64 };
enum { WEIGHTS = 45056, W1_BYTES = 8192, W2_BYTES = 24576, TABLE_BYTES = 12288, LINE = 64 };
enum { UP_STEP = 2, LOGITS_STEP = 3, DUP_STEP = 6, FIRST = 1, LAST = 9 };

static void build_by_hand(compiled *c)
{
    hr_error err;
    open_region(c, 1 << 20);
    hr_builder b = by_hand(&c->program, &c->region, ROWS, 64, &err);
    const int32_t table = weight(&b, HR_PARAM_TABLE, V, D, "table");
    const int32_t w1 = weight(&b, HR_PARAM_MATRIX, D, F, "W1");
    const int32_t w2 = weight(&b, HR_PARAM_MATRIX, F, V, "W2");
    const int32_t ids = hr_build_rows(&b, "ids", HR_I32, 1);
    const int32_t targets = hr_build_rows(&b, "targets", HR_I32, 1);
    const int32_t scale = hr_build_fixed(&b, "scale", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t lr = hr_build_fixed(&b, "lr", HR_ROLE_INPUT, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t loss = hr_build_fixed(&b, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, 1, 0, 0);
    hr_step *step = hr_build_step(&b, HR_OP_batch, 0, 0);
    const int32_t fetched[] = { ids, targets, scale, lr };
    memcpy(step->out, fetched, sizeof fetched);

    hr_build_known_loop_open(&b, HR_LOOP_STEP, 1);
    const int32_t h = hr_build_embed(&b, "h", ids, table, HR_NONE, 0);
    const int32_t up = hr_build_linear(&b, "up", h, w1, HR_NONE, HR_ACT_RELU, HR_NONE);
    const int32_t logits = hr_build_linear(&b, "logits", up, w2, HR_NONE, HR_ACT_NONE, HR_NONE);
    hr_build_loss(&b, logits, targets, scale, 0, loss);
    must(hr_build_derivative(&b, FIRST, c->program.step_count - 1, &c->region, &err), &err);
    hr_build_loop_close(&b);

    step = hr_build_step(&b, HR_OP_report, 0, 0);
    step->in[0] = loss;
    for (int32_t p = 0; p < 3; p++) step->in[1 + p] = c->program.params[p].gradient;
    must(hr_build_status(&b), &err);
    assert_int_equal(c->program.step_count, 11);
}

static void cut(compiled *c, int32_t first, int32_t last, const char *name, int64_t rows)
{
    hr_error err;
    must(hr_tile(&c->program, &(hr_tile_cut){ first, last, name, rows }, 1, &c->region, &err),
         &err);
}

static void floor_is(compiled *c, int64_t bytes)
{
    hr_tile_sort_loops(&c->program);
    plan(c, 1);
    assert_int_equal(c->plan.floor_bytes, bytes);
    assert_int_equal(c->plan.arena_bytes, bytes);
    free(c->memory);
}

/* Peak at step 5: weights, ids, loss, h, up, d.logits and the gradient of W2:
 * 45056 + 1024 + 64 + 256 * (128 + 256 + 384) + 24576 = 267328. */
static void a_whole_batch_has_the_floor_computed_by_hand(void **state)
{
    (void)state;
    compiled c;
    build_by_hand(&c);
    floor_is(&c, WEIGHTS + 4 * ROWS + LINE + (128 + 256 + 384) * ROWS + W2_BYTES);
}

/* Four iterations of 64 rows. Values that the iterations share live through all of them: gradients,
 * loss, ids, targets, 1/tokens: 2 * 45056 + 2 * 1024 + 2 * 64. Peak at step 5: 64 rows of h, up,
 * d.logits: 64 * 768. Together 141440. */
static void micro_batches_have_the_floor_computed_by_hand(void **state)
{
    (void)state;
    compiled c;
    build_by_hand(&c);
    cut(&c, FIRST, LAST, "micro-batch", 64);
    floor_is(&c, 2 * WEIGHTS + 2 * 4 * ROWS + 2 * LINE + 64 * (128 + 256 + 384));
}

/* Eight iterations of 32 rows over steps 3 to 6. up and d.up are accessed in slices and are whole
 * at the same time, so d.up cannot reuse up. The gradient of W2 lives through all iterations, the
 * other gradients start later. 45056 + ids, targets 2048 + 1/tokens, loss 128 + 256 * (128 + 256 +
 * 256) + 32 * 384 + 24576. */
static void loss_chunks_have_the_floor_computed_by_hand(void **state)
{
    (void)state;
    compiled c;
    build_by_hand(&c);
    cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 32);
    floor_is(&c,
             WEIGHTS + 2 * 4 * ROWS + 2 * LINE + (128 + 256 + 256) * ROWS + 32 * 384 + W2_BYTES);
}

/* The last iteration may be short: 48 rows give six iterations, and the bytes are those of a full
 * one. */
static void a_short_last_iteration_does_not_change_the_floor(void **state)
{
    (void)state;
    compiled c;
    build_by_hand(&c);
    cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 48);
    assert_string_equal(c.program.loops[c.program.loop_count - 1].name, "chunk");
    assert_int_equal(c.program.loops[c.program.loop_count - 1].count, 6);
    floor_is(&c,
             WEIGHTS + 2 * 4 * ROWS + 2 * LINE + (128 + 256 + 256) * ROWS + 48 * 384 + W2_BYTES);
}

/* Both: 64 rows of h, up and d.up, 32 of logits. */
static void both_have_the_floor_computed_by_hand_in_either_order(void **state)
{
    (void)state;
    for (int32_t order = 0; order < 2; order++) {
        compiled c;
        build_by_hand(&c);
        if (order) cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 32);
        cut(&c, FIRST, LAST, "micro-batch", 64);
        if (!order) cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 32);
        floor_is(&c, 2 * WEIGHTS + 2 * 4 * ROWS + 2 * LINE + 64 * (128 + 256 + 256) + 32 * 384);
    }
}

/* Two adjacent inner tiles: up is written through the views of one and read through those of the
 * other, and no step accesses it directly. It must still shrink with the micro-batch. */
static void tensors_accessed_only_through_views_shrink_too(void **state)
{
    (void)state;
    for (int32_t order = 0; order < 2; order++) {
        compiled c;
        build_by_hand(&c);
        if (!order) cut(&c, FIRST, LAST, "micro-batch", 64);
        cut(&c, FIRST, UP_STEP, "inner tile", 16);
        cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 32);
        if (order) cut(&c, FIRST, LAST, "micro-batch", 64);
        floor_is(&c, 2 * WEIGHTS + 2 * 4 * ROWS + 2 * LINE + 64 * (128 + 256 + 256) + 32 * 384);
    }
}

/* Three levels, from the inside out and from the outside in. */
static void three_nested_tiles_give_one_plan_in_any_order(void **state)
{
    (void)state;
    char *text[3];
    for (int32_t order = 0; order < 3; order++) {
        compiled c;
        build_by_hand(&c);
        if (order == 0) cut(&c, FIRST, LAST, "micro-batch", 128);
        if (order == 2) cut(&c, LOGITS_STEP, LOGITS_STEP + 1, "inner", 16);
        cut(&c, LOGITS_STEP, DUP_STEP, "chunk", 48);
        if (order == 1) cut(&c, FIRST, LAST, "micro-batch", 128);
        if (order != 2) cut(&c, LOGITS_STEP, LOGITS_STEP + 1, "inner", 16);
        if (order == 2) cut(&c, FIRST, LAST, "micro-batch", 128);
        hr_tile_sort_loops(&c.program);
        plan(&c, 1);
        text[order] = written(&c);
        free(c.memory);
    }
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    for (int32_t order = 0; order < 3; order++) free(text[order]);
}

/* A chain of products with 200 loops over it in random order: one by one, and in another order all
 * in one call. Loops of one step are inside loops of two, those inside loops of ten. */
static void hundreds_of_tiles_give_one_plan_in_any_order_and_in_one_call(void **state)
{
    enum { LINKS = 120, CUTS = LINKS + LINKS / 2 + LINKS / 10, SIZES = 3 };
    static const int32_t steps_a_cut[SIZES] = { 10, 2, 1 };
    hr_tile_cut cuts[CUTS];
    char *text[2];
    hr_error err;
    int32_t count = 0;
    (void)state;
    for (int32_t i = 0; i < SIZES; i++)
        for (int32_t s = 1; s <= LINKS; s += steps_a_cut[i])
            cuts[count++] = (hr_tile_cut){ s, s + steps_a_cut[i] - 1, "cut", 64 >> i };
    assert_int_equal(count, CUTS);
    for (int32_t turn = 0; turn < 2; turn++) {
        compiled c;
        open_region(&c, 1 << 22);
        must(hr_program_place(&c.region, &hr_cpu_backend, LINKS + 2, 4096, CUTS + 2, 1, &c.program,
                              &err),
             &err);
        hr_builder b = { .program = &c.program,
                         .dtype = HR_F32,
                         .rows = ROWS,
                         .T = ROWS,
                         .layer = HR_NONE,
                         .err = &err };
        const int32_t square = weight(&b, HR_PARAM_MATRIX, D, D, "square");
        int32_t x = hr_build_rows(&b, "x", HR_F32, D);
        hr_build_step(&b, HR_OP_prompt, 0, 0)->out[0] = x;
        hr_build_loop_open(&b, "chain", 1);
        for (int32_t i = 0; i < LINKS; i++)
            x = hr_build_linear(&b, "x", x, square, HR_NONE, HR_ACT_NONE, HR_NONE);
        hr_build_loop_close(&b);
        must(hr_build_status(&b), &err);
        for (int32_t i = CUTS - 1; i > 0; i--) {
            const int32_t other = (int32_t)between(SEED, (uint64_t)turn, i, 0, i);
            const hr_tile_cut swap = cuts[i];
            cuts[i] = cuts[other];
            cuts[other] = swap;
        }
        for (int32_t i = 0; i < CUTS && turn == 0; i++)
            cut(&c, cuts[i].first, cuts[i].last, cuts[i].name, cuts[i].rows);
        if (turn) must(hr_tile(&c.program, cuts, CUTS, &c.region, &err), &err);
        hr_tile_sort_loops(&c.program);
        plan(&c, 1);
        for (int32_t l = 2; l < c.program.loop_count; l++) {
            const hr_loop *before = &c.program.loops[l - 1], *loop = &c.program.loops[l];
            assert_true(loop->parent < l && loop->step_first >= before->step_first);
            assert_true(loop->step_first > before->step_first ||
                        loop->step_last < before->step_last);
        }
        text[turn] = written(&c);
        free(c.memory);
    }
    assert_string_equal(text[0], text[1]);
    for (int32_t turn = 0; turn < 2; turn++) free(text[turn]);
}

static void too_little_memory_is_refused(void **state)
{
    (void)state;
    compiled c;
    hr_error err;
    build_by_hand(&c);
    c.program.loop_max = c.program.loop_count;
    assert_int_equal(
        hr_tile(&c.program, &(hr_tile_cut){ FIRST, LAST, "t", 64 }, 1, &c.region, &err),
        HR_FAILURE);
    c.program.loop_max++;
    c.program.tensor_max = c.program.tensor_count;
    assert_int_equal(
        hr_tile(&c.program, &(hr_tile_cut){ LOGITS_STEP, DUP_STEP, "t", 64 }, 1, &c.region, &err),
        HR_FAILURE);
    assert_non_null(strstr(err.message, "the program has more than "));
    free(c.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiling_the_loss_or_the_batch_first_gives_equal_plans),
        cmocka_unit_test(logits_have_the_rows_of_a_chunk_and_no_tile_adds_work),
        cmocka_unit_test(a_tile_not_smaller_than_its_enclosing_tile_has_no_effect),
        cmocka_unit_test(a_whole_batch_has_the_floor_computed_by_hand),
        cmocka_unit_test(micro_batches_have_the_floor_computed_by_hand),
        cmocka_unit_test(loss_chunks_have_the_floor_computed_by_hand),
        cmocka_unit_test(a_short_last_iteration_does_not_change_the_floor),
        cmocka_unit_test(both_have_the_floor_computed_by_hand_in_either_order),
        cmocka_unit_test(tensors_accessed_only_through_views_shrink_too),
        cmocka_unit_test(three_nested_tiles_give_one_plan_in_any_order),
        cmocka_unit_test(hundreds_of_tiles_give_one_plan_in_any_order_and_in_one_call),
        cmocka_unit_test(too_little_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
