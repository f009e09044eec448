/* SPDX-License-Identifier: Apache-2.0 */
/* explain_test.c - the printed plan is counted again from its storages, and fits its buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "graph/backend.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "report/details.h"
#include "report/explain.h"
#include "report/frontier.h"
#include "report/labels.h"
#include "report/listing.h"
#include "sections/assemble.h"
#include "support/random_config.h"
#include "support/random_strategy.h"

enum { SEED = 20250301, TEXT_BYTES = 1 << 16, SPARE_BYTES = 1 << 24 };

enum { FEW_LAYERS = 8 };

/* A compiled config, and its printed plan. */
typedef struct {
    hr_intermediates recompute_set[FEW_LAYERS];
    hr_strategy strategy;
    void *memory;
    hr_region region;
    hr_compiled compiled;
    hr_plan_details details;
    hr_plan_answer answer;
} explained;

static void must(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static void explain(const hr_config *config, const hr_strategy *strategy, explained *e)
{
    hr_error err;
    const int64_t bytes = hr_compile_bytes(config) + SPARE_BYTES;
    e->memory = malloc((size_t)bytes);
    assert_non_null(e->memory);
    e->region = hr_region_over(e->memory, bytes);
    must(hr_compile(config, &hr_cpu_backend, strategy, 1, &e->region, &e->compiled, &err), &err);
    hr_plan *plan = &e->compiled.plan;
    plan->process.lines[0] = (hr_account_line){ "arena", plan->arena_bytes };
    plan->process.line_count = 1;
    plan->process.bytes = plan->arena_bytes;
    must(hr_details(config, &e->compiled.program, &e->compiled.plan, &e->region, &e->details, &err),
         &err);
    e->answer = (hr_plan_answer){ .fits = true,
                                  .process_bytes = plan->process.bytes,
                                  .minimum_bytes = plan->process.bytes,
                                  .available_bytes = plan->process.bytes,
                                  .arena_bytes = plan->arena_bytes,
                                  .floor_bytes = plan->floor_bytes,
                                  .step_seconds = 1,
                                  .bound_seconds = 1,
                                  .threads = 1,
                                  .rung = "ref",
                                  .packing = "at floor",
                                  .times = "a guess" };
}

/* A small preset with this many layers, without dropout. */
static hr_config preset(const char *name, int64_t layers, hr_intermediates *recompute_set,
                        hr_strategy *strategy)
{
    hr_config config;
    hr_error err;
    char path[512];
    hr_config_default(&config);
    snprintf(path, sizeof path, HR_SOURCE "/presets/%s.yaml", name);
    must(hr_config_read(&config, path, &err), &err);
    config.model.n_layers = layers;
    memset(recompute_set, 0, (size_t)layers * sizeof *recompute_set);
    *strategy = (hr_strategy){ .dw_first = true,
                               .layer_count = (int32_t)layers,
                               .recompute_set = recompute_set };
    return config;
}

/* Explains such a preset, without recompute; returns a buffer for the text. */
static char *explain_preset(const char *name, int64_t layers, hr_config *config, explained *e)
{
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    assert_in_range(layers, 1, FEW_LAYERS);
    *config = preset(name, layers, e->recompute_set, &e->strategy);
    explain(config, &e->strategy, e);
    return text;
}

static int64_t sum_of(const hr_plan_part *parts, int32_t count)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++) sum += parts[i].bytes;
    return sum;
}

static void components_phases_and_curve_agree_with_the_storages(void **state)
{
    (void)state;
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 60 * HR_COUNT; turn++) {
        const hr_config config = random_config(SEED, turn);
        hr_intermediates recompute_set[8];
        const hr_strategy strategy = random_strategy(&config, SEED, turn, recompute_set);
        explained e;
        explain(&config, &strategy, &e);
        const hr_program *program = &e.compiled.program;
        const hr_plan_details *d = &e.details;
        const int64_t floor = e.compiled.plan.floor_bytes;
        assert_int_equal(sum_of(d->parts, d->part_count), floor);
        assert_int_equal(sum_of(d->lines, d->line_count), e.compiled.plan.process.bytes);

        int64_t *alive = calloc((size_t)program->step_count, sizeof *alive), most = 0, curve = 0;
        assert_non_null(alive);
        hr_lifetimes_alive(program, &e.compiled.plan, alive);
        for (int32_t i = 0; i < d->phase_count; i++) most = hr_max(most, d->phases[i].bytes);
        if (most != floor)
            fail_msg("no phase has the peak: step %d, section %s", d->peak_step,
                     hr_loop_name(hr_step_section(program, d->peak_step)));
        assert_int_equal(hr_lifetimes_most(&e.compiled.plan, 0, program->step_count - 1), floor);
        most = 0;
        for (int32_t s = 0; s < program->step_count; s++) {
            const hr_loop_id section = hr_step_section(program, s);
            if (section != HR_LOOP_LOAD && section != HR_LOOP_EVALUATION &&
                section != HR_LOOP_SAMPLE && section != HR_LOOP_SAVE)
                most = hr_max(most, alive[s]);
        }
        for (int32_t i = 0; i < d->curve_count; i++) curve = hr_max(curve, d->curve[i]);
        assert_int_equal(curve, most);
        assert_int_equal(curve, d->curve[d->curve_peak]);
        assert_int_equal(alive[d->peak_step], floor);
        for (int32_t i = 1; i < d->largest_count; i++)
            assert_in_range(d->largest[i].bytes, 1, d->largest[i - 1].bytes);
        free(alive);
        free(e.memory);
    }
}

/* The column of the first '^' in a text, and whether the highest line has a bar there. */
static void the_peak_is_marked_below_its_bar(void **state)
{
    explained e;
    hr_config config;
    char *text = explain_preset("needle-70m", 6, &config, &e);
    (void)state;
    hr_writer writer = { text, TEXT_BYTES };
    hr_explain_plan(&config, &e.answer, &e.details, false, false, &writer);
    const char *title = strstr(text, "live bytes during a training step\n");
    assert_non_null(title);
    const char *top = strchr(title, '\n') + 1, *mark = strchr(title, '^');
    assert_non_null(mark);
    const char *line = mark, *last;
    while (line[-1] != '\n') line--;
    for (last = line - 1; last[-1] != '\n';) last--; /* the axis */
    assert_int_equal(last[strcspn(last, "+")], '+');
    for (last--; last[-1] != '\n';) last--; /* the line that has a bar in every column */
    const int64_t column = (mark - line) - (int64_t)strcspn(last, "#");
    assert_int_equal(top[mark - line], '#');
    assert_in_range(column, 0, e.details.curve_count - 1);
    assert_int_equal(e.details.curve[column], e.compiled.plan.floor_bytes);
    char label[HR_PLAN_NAME_BYTES + 64], count[HR_COUNT_BYTES];
    snprintf(label, sizeof label, "^ operation %s: %s\n            operation  %d ",
             hr_count_print(e.details.peak_step, count), e.details.peak, e.details.curve_first);
    assert_int_equal(strncmp(mark, label, strlen(label)), 0);
    const char *end = strchr(strchr(mark, '\n') + 1, '\n');
    snprintf(label, sizeof label, " %d\n", e.details.curve_last);
    assert_int_equal(strncmp(end + 1 - strlen(label), label, strlen(label)), 0);
    free(text);
    free(e.memory);
}

static void colour_and_blocks_are_printed_only_on_request(void **state)
{
    explained e;
    hr_config config;
    char *text = explain_preset("pythia-70m", 3, &config, &e);
    (void)state;
    e.details.change_count = e.details.removal_count = 1;
    for (int32_t asked = 0; asked < 4; asked++) {
        const bool colour = asked & 1, blocks = asked & 2;
        bool escaped = false, wide = false;
        for (int32_t refusal = 0; refusal < 2; refusal++) {
            hr_writer writer = { text, TEXT_BYTES };
            if (refusal) hr_explain_refusal(&config, &e.answer, &e.details, colour, &writer);
            else hr_explain_plan(&config, &e.answer, &e.details, colour, blocks, &writer);
            assert_int_equal(strchr(text, '\033') != NULL, colour);
            escaped |= strchr(text, '\033') != NULL;
            for (const char *c = text; *c; c++) wide |= (unsigned char)*c > 127;
        }
        assert_int_equal(escaped, colour);
        assert_int_equal(wide, blocks);
    }
    free(text);
    free(e.memory);
}

static void what_is_proven_about_the_strategy_is_printed(void **state)
{
    static const struct {
        double bound_seconds;
        bool cut;
        const char *sentence;
    } cases[] = {
        { 1, false, "  strategy: proven fastest within the available memory\n" },
        { 0.5, false,
          "  strategy: fastest found within the available memory; no strategy takes less than 500 "
          "ms "
          "per step\n" },
        { 0.5, true,
          "  strategy: fastest found within the available memory and the limit of the search; no "
          "strategy takes less than 500 ms per step\n" },
        { 0, false, "  strategy: fastest found, not proven: layers train different parameters\n" },
        { -1, false, "  strategy: given, not compared with others\n" },
    };
    explained e;
    hr_config config;
    char *text = explain_preset("needle-70m", 2, &config, &e);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_writer writer = { text, TEXT_BYTES };
        e.answer.bound_seconds = cases[i].bound_seconds;
        e.answer.cut = cases[i].cut;
        hr_explain_plan(&config, &e.answer, &e.details, false, false, &writer);
        if (!strstr(text, cases[i].sentence)) fail_msg("%s: %s", cases[i].sentence, text);
    }
    free(text);
    free(e.memory);
}

static void the_proven_part_of_the_gap_is_printed_in_bytes(void **state)
{
    static const struct {
        const char *packing, *sentence;
        int64_t gap;
    } cases[] = {
        { "at floor", "  equals the floor\n", 0 },
        { "proven", "  640 bytes above the floor; proven smallest\n", 640 },
        { "open", "  640 bytes above the floor; not proven smallest\n", 640 },
        { "open", "  proven lower bound; gap 512 bytes, 0.000 %\n", 640 },
    };
    explained e;
    hr_config config;
    char *text = explain_preset("needle-70m", 2, &config, &e);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_writer writer = { text, TEXT_BYTES };
        snprintf(e.answer.packing, sizeof e.answer.packing, "%s", cases[i].packing);
        e.answer.arena_bytes = e.answer.floor_bytes + cases[i].gap;
        e.answer.bound_bytes = e.answer.floor_bytes + (i >= 2 ? 128 : cases[i].gap);
        hr_explain_plan(&config, &e.answer, &e.details, false, false, &writer);
        if (!strstr(text, cases[i].sentence)) fail_msg("%s: %s", cases[i].packing, text);
        assert_int_equal(strstr(text, "  arena, lower bound ") != NULL, i >= 2);
    }
    free(text);
    free(e.memory);
}

static void the_table_of_a_126_layer_model_fits_the_buffer(void **state)
{
    enum { LAYERS = 126 };
    hr_intermediates recompute_set[LAYERS];
    hr_strategy strategy;
    const hr_config config = preset("pythia-70m", LAYERS, recompute_set, &strategy);
    explained e;
    char *text = malloc(TEXT_BYTES);
    (void)state;
    assert_non_null(text);
    /* The longest strategy text: no two adjacent layers are equal. */
    for (int32_t l = 0; l < LAYERS; l++)
        recompute_set[l] = (hr_intermediates)(l % 2 << HR_INTERMEDIATE_NORM);
    explain(&config, &strategy, &e);
    hr_writer yaml = { e.answer.strategy, sizeof e.answer.strategy };
    for (int32_t i = 0; i < LAYERS; i++)
        hr_put(&yaml, "    - layers: %d\n      keep: [norm, q, k, v, attention, up]\n", i);
    assert_false(yaml.cut);
    hr_writer writer = { text, TEXT_BYTES };
    hr_explain_plan(&config, &e.answer, &e.details, true, true, &writer);
    assert_false(writer.cut);
    assert_int_equal(strlen(text), writer.used);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        assert_non_null(strchr(line, '\n'));
    /* Text that does not fit is truncated, and nothing is written after the buffer. */
    memset(text, 'x', TEXT_BYTES);
    writer = (hr_writer){ text, 1000 };
    hr_explain_plan(&config, &e.answer, &e.details, true, true, &writer);
    assert_true(writer.cut);
    assert_int_equal(text[1000], 'x');
    free(text);
    free(e.memory);
}

/* The first step of an operation in a section, layer and direction. */
static int32_t step_of(const hr_program *program, const char *op, int32_t layer, int32_t direction,
                       const char *weight)
{
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (strcmp(hr_step_op(program, step)->name, op) || step->layer != layer) continue;
        if (step->direction != direction) continue;
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            if (step->in[i] != HR_NONE && strstr(program->tensors[step->in[i]].name, weight))
                return s;
        for (int32_t i = 0; i < HR_OUT_MAX; i++)
            if (step->out[i] != HR_NONE && strstr(program->tensors[step->out[i]].name, weight))
                return s;
    }
    fail_msg("no %s of %s", op, weight);
    return HR_NONE;
}

static void steps_are_named_by_what_they_do(void **state)
{
    static const struct {
        const char *preset, *op;
        int32_t layer, direction;
        const char *weight, *words;
    } cases[] = {
        { "pythia-70m", "linear_dx", 3, HR_DIR_BACKWARD, "dense_4h_to_h",
          "layer 3 backward, MLP down-projection, input gradient" },
        { "pythia-70m", "linear_dw", 3, HR_DIR_BACKWARD, "dense_4h_to_h",
          "layer 3 backward, MLP down-projection, weight gradient" },
        { "pythia-70m", "linear", 0, HR_DIR_FORWARD, "query_key_value",
          "layer 0 forward, query, key and value projection" },
        { "pythia-70m", "norm", 2, HR_DIR_FORWARD, "input_layernorm",
          "layer 2 forward, norm before attention" },
        { "pythia-70m", "linear", HR_NONE, HR_DIR_FORWARD, "embed_out",
          "output head forward, logits" },
        { "needle-70m", "linear", 1, HR_DIR_FORWARD, ".w1", "layer 1 forward, MLP up-projection" },
        { "needle-70m", "linear_dw", 1, HR_DIR_BACKWARD, ".wo",
          "layer 1 backward, attention output projection, weight gradient" },
        { "needle-70m", "save", HR_NONE, HR_DIR_NONE, "head", "save, writing head" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_intermediates recompute_set[8];
        hr_strategy strategy;
        const hr_config config = preset(cases[i].preset, 6, recompute_set, &strategy);
        explained e;
        char text[HR_PLAN_NAME_BYTES];
        explain(&config, &strategy, &e);
        const hr_program *program = &e.compiled.program;
        hr_label_step(
            program,
            step_of(program, cases[i].op, cases[i].layer, cases[i].direction, cases[i].weight),
            text);
        assert_string_equal(text, cases[i].words);
        free(e.memory);
    }
}

/* Every loop has one line, before its first step and indented one level less. */
static void a_listing_shows_loops_within_loops(void **state)
{
    enum { LISTING_BYTES = 1 << 20 };
    hr_intermediates recompute_set[8];
    hr_strategy strategy;
    const hr_config config = preset("needle-70m", 3, recompute_set, &strategy);
    explained e;
    char *text = malloc(LISTING_BYTES);
    int32_t lines = 0;
    (void)state;
    assert_non_null(text);
    strategy.micro_batch = 8;
    strategy.loss_chunk = 256;
    strategy.mlp_tile = 128;
    strategy.attention_tile = 2 * config.train.seq_len;
    explain(&config, &strategy, &e);
    const hr_program *program = &e.compiled.program;
    hr_listing(program, text, LISTING_BYTES);
    for (const char *c = text; *c; c++) lines += *c == '\n';
    int32_t loops = 0;
    for (int32_t l = 1; l < program->loop_count; l++)
        loops += program->loops[l].step_last >= program->loops[l].step_first;
    assert_int_equal(lines, program->step_count + loops);
    assert_null(strstr(text, " W:")); /* in the table of operations, a capital is optional */
    assert_non_null(strstr(text, "\nstep\n  micro-batch x 4, 1024 token rows per iteration\n"));
    assert_non_null(strstr(text, "\n    mlp tile x 8, 128 token rows per iteration\n        "));
    assert_non_null(
        strstr(text, "\n    attention tile x 4, 256 token rows per iteration\n        "));
    assert_non_null(strstr(text, "\n    loss chunk x 4, 256 token rows per iteration\n        "));
    free(text);
    free(e.memory);
}

static void the_longest_names_are_not_truncated(void **state)
{
    hr_intermediates recompute_set[130];
    hr_strategy strategy;
    const hr_config config = preset("pythia-70m", 126, recompute_set, &strategy);
    explained e;
    bool seen = false;
    (void)state;
    explain(&config, &strategy, &e);
    for (int32_t t = 0; t < e.compiled.program.tensor_count; t++)
        seen |= !strcmp(e.compiled.program.tensors[t].name,
                        "moment 1 gpt_neox.layers.125.post_attention_layernorm.weight");
    assert_true(seen);
    free(e.memory);
}

/* Every setting saves memory, and no two activations are recomputed in equally many layers. */
static void the_longest_summary_of_a_strategy_is_not_truncated(void **state)
{
    enum { LAYERS = 4096 };
    static hr_intermediates recompute_set[LAYERS];
    static const char end[] =
        "MLP activations in 4094 of 4096 layers; layer inputs in a file in 4094 of 4096 layers; "
        "gradient release (backward runs twice, for the gradient norm)";
    char words[HR_POINT_WORDS_BYTES];
    hr_strategy strategy;
    hr_config config = preset("llama-134m", LAYERS, recompute_set, &strategy);
    (void)state;
    config.train.batch = strategy.micro_batch = 16777216;
    strategy.loss_chunk = strategy.mlp_tile = INT64_C(1) << 40;
    strategy.attention_tile = INT64_C(1) << 40;
    strategy.consume = true;
    for (int32_t l = 1; l < LAYERS - 1; l++) recompute_set[l] = (1u << HR_INTERMEDIATES) - 1;
    hr_frontier_words(&config, &strategy, words);
    assert_string_equal(words + strlen(words) - strlen(end), end);
    recompute_set[0] = recompute_set[LAYERS - 1] = 1u << HR_INTERMEDIATE_NORM;
    recompute_set[LAYERS - 1] |= 1u << HR_INTERMEDIATE_Q;
    hr_frontier_words(&config, &strategy, words);
    assert_non_null(strstr(words, "; recompute norm outputs in every layer, queries in 4095, keys "
                                  "in 4094, "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_phases_and_curve_agree_with_the_storages),
        cmocka_unit_test(the_peak_is_marked_below_its_bar),
        cmocka_unit_test(colour_and_blocks_are_printed_only_on_request),
        cmocka_unit_test(what_is_proven_about_the_strategy_is_printed),
        cmocka_unit_test(the_proven_part_of_the_gap_is_printed_in_bytes),
        cmocka_unit_test(the_table_of_a_126_layer_model_fits_the_buffer),
        cmocka_unit_test(steps_are_named_by_what_they_do),
        cmocka_unit_test(a_listing_shows_loops_within_loops),
        cmocka_unit_test(the_longest_names_are_not_truncated),
        cmocka_unit_test(the_longest_summary_of_a_strategy_is_not_truncated),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
