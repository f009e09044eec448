/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_test.c - strategies: one plan whatever the order of the passes, which sets give
 * different programs, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/verify.h"
#include "model/layer_schema.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "plan/compile.h"
#include "plan/consume.h"
#include "plan/dequantize.h"
#include "plan/lifetimes.h"
#include "plan/order.h"
#include "plan/plan_file.h"
#include "plan/recompute.h"
#include "plan/tile.h"
#include "sections/assemble.h"
#include "support/compiled.h"
#include "support/folder.h"
#include "support/random_freeze.h"
#include "support/random_strategy.h"

enum { SEED = 20250402, LAYERS_MOST = 4, SETS = 1 << (HR_INTERMEDIATES - 1) };

/* The plan file as text, accepted by the verifier. */
static char *written(const compiled *c)
{
    const hr_folder folder = hr_folder_open();
    const char *path = hr_folder_path(&folder, "plan.json");
    int64_t bytes;
    hr_error err;
    hr_verify_report report;
    must(hr_plan_file_write(path, &c->of.program, &c->of.plan, &err), &err);
    must(hr_verify_file(path, &report, &err), &err);
    assert_int_equal(report.floor_bytes, c->of.plan.floor_bytes);
    char *text = hr_folder_read(path, &bytes);
    hr_folder_close(&folder);
    return text;
}

static const char *said(const hr_strategy *strategy)
{
    static char text[256];
    snprintf(text, sizeof text,
             "micro-batch %lld, loss chunk %lld, MLP tile %lld, attention tile %lld, %s first, "
             "gradients %s, layer 0 drops %02x",
             (long long)strategy->micro_batch, (long long)strategy->loss_chunk,
             (long long)strategy->mlp_tile, (long long)strategy->attention_tile,
             strategy->dw_first ? "dW" : "dx", strategy->consume ? "consumed" : "kept",
             strategy->recompute_set[0]);
    return text;
}

/* ---- confluence */

enum { CUTS_MOST = 64 };

typedef struct {
    hr_tile_cut cuts[CUTS_MOST];
    int32_t count;
} cut_list;

static void add_runs(cut_list *list, const hr_program *program, hr_block block, int64_t rows)
{
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    for (int32_t s = section->step_first, last; rows && s <= section->step_last; s = last + 1) {
        const hr_step *steps = program->steps;
        for (last = s; last < section->step_last && steps[last + 1].block == steps[s].block &&
                       steps[last + 1].layer == steps[s].layer;)
            last++;
        if (steps[s].block != block) continue;
        assert_in_range(list->count, 0, CUTS_MOST - 1);
        list->cuts[list->count++] = (hr_tile_cut){
            s, last, block == HR_BLOCK_MLP ? "mlp tile" : "attention tile", rows
        };
    }
}

static void add_head(cut_list *list, const hr_program *program, hr_loop_id section,
                     const char *name, int64_t rows)
{
    const hr_loop *loop = &program->loops[hr_program_loop(program, section)];
    int32_t first = -1, last = -1;
    for (int32_t s = loop->step_first; s <= loop->step_last; s++) {
        if (program->steps[s].block != HR_BLOCK_HEAD) continue;
        if (first < 0) first = s;
        last = s;
    }
    if (rows) list->cuts[list->count++] = (hr_tile_cut){ first, last, name, rows };
}

/* Applies the passes of a strategy one tile at a time, in a random order. */
static void compile_in_some_order(compiled *c, const hr_config *config, hr_strategy strategy,
                                  uint64_t turn)
{
    hr_error err;
    hr_program *program = &c->of.program;
    const int64_t T = config->train.seq_len;
    const int64_t micro = strategy.micro_batch ? strategy.micro_batch : config->train.batch;
    cut_list list = { .count = 0 };
    bool drops = false;
    for (int32_t l = 0; l < strategy.layer_count; l++) drops |= strategy.recompute_set[l] != 0;

    open_region(c, hr_compile_bytes(config));
    must(hr_model_assemble(config, &hr_cpu_backend, micro, &c->region, program, &err), &err);
    const int32_t section = hr_program_loop(program, HR_LOOP_STEP);
    /* Clones and dequantized copies must come after the backward order; without them the order may
     * come at any time. */
    const bool stored = config->model.weights != HR_WEIGHTS_COMPUTE;
    const bool order_last = !drops && !stored && draw(SEED, turn, 80) % 2;
    if (!order_last) {
        hr_order(program, section, !strategy.dw_first); /* the opposite order first */
        hr_order(program, section, strategy.dw_first);
    }
    const uint32_t whole = (strategy.mlp_tile ? 1u << HR_BLOCK_MLP : 0) |
                           (strategy.attention_tile ? 1u << HR_BLOCK_ATTENTION : 0);
    must(hr_recompute(program, section, strategy.recompute_set, whole, &c->region, &err), &err);
    must(hr_dequantize(program, &c->region, &err), &err);
    const hr_loop *step = &program->loops[section];
    if (strategy.micro_batch)
        list.cuts[list.count++] = (hr_tile_cut){ step->step_first, step->step_last, "micro-batch",
                                                 strategy.micro_batch * T, false };
    add_head(&list, program, HR_LOOP_STEP, "loss chunk", strategy.loss_chunk);
    add_head(&list, program, HR_LOOP_EVALUATION, "evaluation loss chunk", strategy.loss_chunk);
    add_runs(&list, program, HR_BLOCK_MLP, strategy.mlp_tile);
    add_runs(&list, program, HR_BLOCK_ATTENTION, strategy.attention_tile);
    for (int32_t i = list.count - 1; i > 0; i--) {
        const int64_t other = between(SEED, turn, 100 + (uint32_t)i, 0, i);
        const hr_tile_cut cut = list.cuts[i];
        list.cuts[i] = list.cuts[other];
        list.cuts[other] = cut;
    }
    for (int32_t i = 0; i < list.count; i++)
        must(hr_tile(program, &list.cuts[i], 1, &c->region, &err), &err);
    if (order_last) hr_order(program, section, strategy.dw_first);
    if (strategy.consume && draw(SEED, turn, 81) % 2) hr_tile_sort_loops(program);
    if (strategy.consume) must(hr_consume(program, &c->region, &err), &err);
    hr_tile_sort_loops(program);

    hr_plan *plan = &c->of.plan;
    *plan = (hr_plan){ .process = { .threads = 2, .rung = "" } };
    must(hr_lifetimes(program, &c->region, plan, &err), &err);
    must(hr_pack_floor(plan->storages, plan->storage_count, &c->region, &c->of.packing, &err),
         &err);
    plan->arena_bytes = plan->floor_bytes = c->of.packing.floor_bytes;
    plan->peak_step = c->of.packing.peak_step;
    pack(c);
}

static void passes_in_any_order_give_one_plan_byte_for_byte(void **state)
{
    (void)state;
    int32_t all = 0;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 150 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        if (turn % 2) config.train.seq_len = 64 * (1 + turn % 3);
        random_freeze(&config, (int32_t)(turn % FREEZES), SEED, turn);
        (void)random_stored(&config, SEED, turn);
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_strategy strategy = random_strategy(&config, SEED, turn, recompute_set);
        if (turn % 4 == 0) memset(recompute_set, 0, sizeof recompute_set);
        all += (strategy.micro_batch || strategy.consume) && strategy.loss_chunk &&
               strategy.mlp_tile && strategy.attention_tile;
        compiled one, other;
        compile(&one, &config, &strategy);
        compile_in_some_order(&other, &config, strategy, turn);
        char *a = written(&one), *b = written(&other);
        if (strcmp(a, b))
            fail_msg("turn %llu, %s: floor %lld or %lld", (unsigned long long)turn, said(&strategy),
                     (long long)one.of.plan.floor_bytes, (long long)other.of.plan.floor_bytes);
        free(a);
        free(b);
        free(one.memory);
        free(other.memory);
    }
    print_message("%d of %d with every cut, or all but one and gradients consumed\n", all,
                  150 * HR_COUNT);
    assert_true(all > 10);
}

/* ---- effects of tiles */

static int64_t flops_of_step(const hr_program *program)
{
    const int32_t loop = hr_program_loop(program, HR_LOOP_STEP);
    int64_t sum = 0;
    for (int32_t s = program->loops[loop].step_first; s <= program->loops[loop].step_last; s++) {
        const hr_step *step = &program->steps[s];
        int64_t turns = 1;
        for (int32_t l = step->loop; l != loop; l = program->loops[l].parent)
            turns *= program->loops[l].count;
        const hr_op *op = hr_step_op(program, step);
        if (!op->flops) continue;
        const int64_t each = op->flops(step->attr, program->tensors[step->in[0]].rows);
        sum += turns * each;
        if (step->op != HR_OP_linear_dw) continue;
        /* the last strip of a gradient is counted with the rest of its panel */
        const hr_linear_attr *attr = (const void *)step->attr;
        const int64_t past = attr->strip_first + turns * attr->strip - attr->N;
        if (attr->strip && past > 0) sum -= each / attr->strip * past;
    }
    return sum;
}

static void no_tile_adds_work_and_no_clone_splits_a_run(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        config.train.seq_len = 64 * (1 + turn % 3);
        config.train.batch = 4 + 2 * (turn % 2);
        hr_intermediates recompute_set[LAYERS_MOST];
        hr_strategy cut = random_strategy(&config, SEED, turn, recompute_set), whole = cut;
        /* tiles that divide evenly: no iteration is short */
        cut.micro_batch = cut.consume ? 0 : config.train.batch / 2;
        cut.loss_chunk = cut.mlp_tile = 64;
        cut.attention_tile = config.train.seq_len;
        whole.micro_batch = whole.loss_chunk = whole.mlp_tile = whole.attention_tile = 0;
        compiled a, b;
        compile(&a, &config, &cut);
        compile(&b, &config, &whole);
        assert_int_equal(flops_of_step(&a.of.program), flops_of_step(&b.of.program));

        int32_t loops = 0;
        for (int32_t l = 0; l < a.of.program.loop_count; l++)
            loops += !strcmp(a.of.program.loops[l].name, "mlp tile");
        /* One forward and one backward, without recomputation; the norm section has them too. */
        const bool norm = hr_program_loop(&a.of.program, HR_LOOP_NORM) != HR_NONE;
        assert_int_equal(norm, cut.consume);
        const bool has_mlp = !(hr_family_of(&config)->traits & HR_HAS_STATES);
        assert_int_equal(loops, has_mlp ? (norm ? 4 : 2) * config.model.n_layers : 0);
        free(a.memory);
        free(b.memory);
    }
}

static int64_t rows_within(const compiled *c, const char *const *names, int32_t count)
{
    const hr_program *program = &c->of.program;
    const hr_loop *step = &program->loops[hr_program_loop(program, HR_LOOP_STEP)];
    int64_t rows = 0;
    for (int32_t b = 0; b < c->of.plan.buffer_count; b++) {
        const hr_buffer *buffer = &c->of.plan.buffers[b];
        if (buffer->tensor == HR_NONE || buffer->step_first < step->step_first ||
            buffer->step_last > step->step_last)
            continue;
        const hr_tensor *tensor = &program->tensors[buffer->tensor];
        for (int32_t i = 0; i < count; i++)
            if (!strcmp(tensor->name, names[i])) rows = hr_max(rows, tensor->rows);
    }
    return rows;
}

/* Tensors that only a tile accesses must shrink to the rows of one iteration. */
static void tensors_of_a_tile_have_the_rows_of_one_iteration(void **state)
{
    static const char *const mlp[] = { "up",           "pre",        "d.up",
                                       "d.pre",        "again.up",   "again.pre",
                                       "norm_mlp",     "norm_2",     "again.norm_mlp",
                                       "again.norm_2", "d.norm_mlp", "d.norm_2" };
    static const char *const heads[] = { "d.q",         "d.k",    "d.v",    "d.qkv",
                                         "qkv",         "q",      "k",      "v",
                                         "d.attention", "norm_1", "norm_q", "d.norm_1",
                                         "d.norm_q",    "u",      "d.u",    "again.u" };
    (void)state;
    for (uint64_t turn = 0; turn < 40 * HR_COUNT; turn++) {
        hr_config config = random_config(SEED, turn);
        config.train.seq_len = 128;
        config.train.batch = 6;
        config.model.n_layers = 3;
        hr_intermediates recompute_set[LAYERS_MOST];
        memset(recompute_set, 0xff, sizeof recompute_set);
        hr_strategy strategy = random_strategy(&config, SEED, turn, recompute_set);
        memset(recompute_set, 0xff, sizeof recompute_set);
        strategy.micro_batch = 6;
        strategy.mlp_tile = 64;
        strategy.attention_tile = config.train.seq_len;
        compiled c;
        compile(&c, &config, &strategy);
        const bool has_mlp = !(hr_family_of(&config)->traits & HR_HAS_STATES);
        assert_int_equal(rows_within(&c, mlp, sizeof mlp / sizeof *mlp), has_mlp ? 64 : 0);
        assert_int_equal(rows_within(&c, heads, sizeof heads / sizeof *heads), 128);
        free(written(&c));
        free(c.memory);
    }
}

/* ---- which sets give different programs */

static void every_closed_set_gives_a_different_program(void **state)
{
    static const struct {
        int32_t family, parallel, distinct;
    } cases[] = { { HR_FAMILY_NEEDLE, 0, 128 },
                  { HR_FAMILY_GPT_NEOX, 0, 64 },
                  { HR_FAMILY_GPT_NEOX, 1, 32 },
                  { HR_FAMILY_LLAMA, 0, 512 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config = random_config_of(cases[i].family, SEED, 3);
        hr_intermediates form_of_text[SETS];
        char *text[SETS];
        int32_t distinct = 0, count = 0;
        config.model.parallel_residual = cases[i].parallel;
        config.model.rotary_fraction = 0.25;
        config.model.n_layers = 2;
        config.model.dropout = 0.1 * (double)(i % 2);
        const hr_layer_schema form = hr_layer_schema_of(&config);
        for (int32_t set = 0; set < SETS; set++) {
            hr_intermediates recompute_set[] = { (hr_intermediates)(2 * set), 0 };
            const hr_intermediates closed = hr_layer_schema_within(&form, recompute_set[0]);
            const hr_strategy strategy = { .dw_first = true,
                                           .layer_count = 2,
                                           .recompute_set = recompute_set };
            /* All closed sets, and a fifth of those that contain absent values. */
            if (closed != recompute_set[0] && set % 5) continue;
            compiled c;
            compile(&c, &config, &strategy);
            text[count] = written(&c);
            form_of_text[count] = closed;
            assert_int_equal(c.of.strategy.recompute_set[0], closed);
            bool known = false;
            for (int32_t other = 0; other < count; other++) {
                const bool same = !strcmp(text[count], text[other]);
                known |= same;
                /* Two sets give the same program exactly if their canonical forms are equal. */
                assert_int_equal(same, closed == form_of_text[other]);
            }
            distinct += !known;
            count++;
            free(c.memory);
        }
        assert_int_equal(distinct, cases[i].distinct);
        while (count) free(text[--count]);
    }
}

/* If the product's input is saved and its output is not, no product is recomputed. */
static void an_activation_is_recomputed_without_its_product(void **state)
{
    (void)state;
    hr_config config = random_config_of(HR_FAMILY_GPT_NEOX, SEED, 3);
    config.model.rotary_fraction = 0.25;
    config.model.n_layers = 1;
    int64_t flops[4];
    int32_t alone[4] = { 0 };
    for (int32_t set = 0; set < 4; set++) {
        hr_intermediates recompute_set[] = { (hr_intermediates)((set & 1)
                                                                    << HR_INTERMEDIATE_ACTIVATION |
                                                                (set >> 1) << HR_INTERMEDIATE_UP) };
        const hr_strategy strategy = { .dw_first = true,
                                       .layer_count = 1,
                                       .recompute_set = recompute_set };
        compiled c;
        compile(&c, &config, &strategy);
        flops[set] = flops_of_step(&c.of.program);
        for (int32_t s = 0; s < c.of.program.step_count; s++)
            alone[set] += c.of.program.steps[s].op == HR_OP_activation;
        free(c.memory);
    }
    const int64_t product = 2 * config.train.batch * config.train.seq_len * config.model.d_model *
                            config.model.d_ff;
    assert_int_equal(flops[1], flops[0]);
    assert_int_equal(flops[2], flops[0] + product);
    assert_int_equal(flops[3], flops[0] + product);
    assert_int_equal(alone[1], 1);
    assert_int_equal(alone[0] + alone[2] + alone[3], 0);
}

/* ---- refusals and canonical forms */

static void an_illegal_strategy_is_refused_with_one_sentence(void **state)
{
    (void)state;
    hr_config config = random_config(SEED, 0);
    hr_error err;
    hr_intermediates recompute_set[LAYERS_MOST] = { 0 };
    config.model.n_layers = 3;
    config.train.batch = 6;
    config.train.seq_len = 128;
    hr_strategy strategy = { .layer_count = 2, .recompute_set = recompute_set };
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    assert_string_equal(err.message, "the strategy is for 2 layers, model.n_layers is 3");
    strategy.layer_count = 3;
    strategy.micro_batch = 4;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    assert_string_equal(err.message, "micro_batch 4 does not divide train.batch 6");
    strategy.micro_batch = 3;
    strategy.mlp_tile = 96;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    assert_string_equal(err.message,
                        "mlp_tile 96 would change the result: with train.seq_len 128 it must be a "
                        "multiple of 64");
    config.train.seq_len = 100;
    strategy.mlp_tile = 64;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    assert_string_equal(err.message,
                        "mlp_tile 64 would change the result: with train.seq_len 100 it must be a "
                        "multiple of 100");
    strategy.mlp_tile = 200;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_OK);
    strategy.mlp_tile = 64;
    strategy.micro_batch = 1; /* one sequence is cut at every 64 tokens */
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_OK);
    strategy.mlp_tile = 32;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    strategy.mlp_tile = 200;
    strategy.micro_batch = 3;
    strategy.consume = true;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_USAGE);
    assert_string_equal(
        err.message, "micro_batch 3 accumulates gradients over 2 micro-batches: gradient_release "
                     "needs one micro-batch");
    strategy.micro_batch = 6;
    assert_int_equal(hr_strategy_check(&config, &strategy, &err), HR_OK);
}

static void a_tile_without_effect_is_canonically_0(void **state)
{
    (void)state;
    hr_config config = random_config_of(HR_FAMILY_NEEDLE, SEED, 0);
    hr_intermediates recompute_set[] = { 0xffff, 0xffff };
    config.model.n_layers = 2;
    config.train.batch = 6;
    config.train.seq_len = 64;
    hr_strategy strategy = { .micro_batch = 3,
                             .loss_chunk = 192,
                             .mlp_tile = 192,
                             .attention_tile = 192,
                             .consume = true,
                             .layer_count = 2,
                             .recompute_set = recompute_set };
    hr_strategy_canonical(&config, &strategy);
    assert_int_equal(strategy.micro_batch, 3);
    assert_false(strategy.consume);
    assert_int_equal(strategy.loss_chunk + strategy.mlp_tile + strategy.attention_tile, 0);
    assert_int_equal(recompute_set[0], hr_layer_schema_of(&config).present);
    strategy.micro_batch = 6;
    strategy.consume = true;
    strategy.loss_chunk = strategy.mlp_tile = 192;
    strategy.attention_tile = 320;
    hr_strategy_canonical(&config, &strategy);
    assert_int_equal(strategy.micro_batch, 0);
    assert_true(strategy.consume);
    assert_int_equal(strategy.loss_chunk, 192);
    assert_int_equal(strategy.mlp_tile, 192);
    assert_int_equal(strategy.attention_tile, 320);
}

/* The limits of steps, tensors and loops suffice for every strategy, also of deep models. */
static void the_limits_suffice_for_every_strategy(void **state)
{
    (void)state;
    int64_t most[3] = { 0 };
    int32_t stored = 0;
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        enum { DEEP = 24 };
        hr_config config = random_config(SEED, turn);
        hr_intermediates recompute_set[DEEP];
        config.model.n_layers = turn % 4 ? config.model.n_layers : DEEP;
        random_freeze(&config, turn % 5 ? FREEZE_NOTHING : FREEZE_KINDS, SEED, turn);
        stored += random_stored(&config, SEED, turn);
        hr_strategy strategy = random_strategy(&config, SEED, turn, recompute_set);
        if (turn % 3 == 0) {
            const int64_t length = config.train.seq_len;
            strategy.attention_tile = length;
            strategy.micro_batch = strategy.consume ? 0 : config.train.batch / 2;
            const int64_t sequences = strategy.consume ? config.train.batch : strategy.micro_batch;
            strategy.mlp_tile = strategy.loss_chunk = hr_strategy_unit(length, sequences);
        }
        compiled c;
        compile(&c, &config, &strategy);
        const hr_program *program = &c.of.program;
        most[0] = hr_max(most[0], 100 * program->step_count / program->step_max);
        most[1] = hr_max(most[1], 100 * program->tensor_count / program->tensor_max);
        most[2] = hr_max(most[2], 100 * program->loop_count / program->loop_max);
        free(c.memory);
    }
    print_message("%lld %% of the steps there is room for, %lld %% tensors, %lld %% loops\n",
                  (long long)most[0], (long long)most[1], (long long)most[2]);
    assert_true(stored > 4 * HR_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_in_any_order_give_one_plan_byte_for_byte),
        cmocka_unit_test(no_tile_adds_work_and_no_clone_splits_a_run),
        cmocka_unit_test(tensors_of_a_tile_have_the_rows_of_one_iteration),
        cmocka_unit_test(every_closed_set_gives_a_different_program),
        cmocka_unit_test(an_activation_is_recomputed_without_its_product),
        cmocka_unit_test(an_illegal_strategy_is_refused_with_one_sentence),
        cmocka_unit_test(a_tile_without_effect_is_canonically_0),
        cmocka_unit_test(the_limits_suffice_for_every_strategy),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
