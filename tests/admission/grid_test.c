/* SPDX-License-Identifier: Apache-2.0 */
/* grid_test.c - axes, and cells beside the plans that they stand for, made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "headroom/plan_grid.h"
#include "support/folder.h"
#include "support/random_config.h"

enum { SEED = 2201, RECIPES = 8 * HR_COUNT, CELLS = 64, TEXT_BYTES = 1 << 18 };

/* ---- axes */

static hr_grid_axis parsed(const char *text)
{
    hr_grid_axis axis;
    hr_error err;
    if (hr_grid_axis_parse(text, &axis, &err) != HR_OK) fail_msg("%s", err.message);
    return axis;
}

static void points(const char *text, const char *expected)
{
    const hr_grid_axis axis = parsed(text);
    char all[512] = "", value[HR_GRID_VALUE_BYTES];
    for (int32_t p = 0; p < axis.count; p++)
        for (int32_t k = 0; k < axis.key_count; k++) {
            const size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, "%s%s", used ? k ? ":" : " " : "",
                     hr_grid_axis_value(&axis, p, k, value));
        }
    assert_string_equal(all, expected);
}

static void an_axis_lists_doubles_and_adds(void **state)
{
    (void)state;
    points("train.batch=8,16,32", "8 16 32");
    points("train.batch=64..4096", "64 128 256 512 1024 2048 4096");
    points("train.batch=3..20", "3 6 12");
    points("train.batch=8..64+24", "8 32 56");
    points("train.batch=1,4..16,100..120+10", "1 4 8 16 100 110 120");
    points("train.batch=7..7", "7");
    points("memory.budget=1GiB..4GiB", "1073741824 2147483648 4294967296");
    points("memory.budget=1GB..2GB+500MB", "1000000000 1500000000 2000000000");
    points("memory.budget=700MiB,none", "700MiB none");
    points("train.dtype=fp32,bf16", "fp32 bf16");
    points("train.optimizer.lr=1e-3,2e-4", "1e-3 2e-4");
    points("train.seq_len,train.batch=8:8192,16:4096", "8:8192 16:4096");
    points("train.seq_len,train.batch,train.dtype=8:1:bf16", "8:1:bf16");
    /* Two dots in a text are no range. */
    points("train.out=../runs/a", "../runs/a");
    char label[HR_GRID_LABEL_BYTES];
    hr_grid_axis axis = parsed("train.seq_len,train.batch=8:8192,16:4096");
    assert_string_equal(hr_grid_axis_label(&axis, 1, label), "16 x 4096");
    axis = parsed("memory.budget=1GiB..4GiB");
    assert_string_equal(hr_grid_axis_label(&axis, 2, label), "4,096.0 MiB");
}

static void refused(const char *text, const char *sentence)
{
    hr_grid_axis axis;
    hr_error err;
    assert_int_equal(hr_grid_axis_parse(text, &axis, &err), HR_USAGE);
    assert_string_equal(err.message, sentence);
}

static void a_bad_axis_is_refused_in_one_sentence(void **state)
{
    (void)state;
    refused(
        "train.batch",
        "--grid takes KEY=VALUES, such as train.batch=8,16,32 or 64..4096; got \"train.batch\"");
    refused("=8", "--grid: no key before \"=\"");
    refused("train.bach=8",
            "--grid: \"train.bach\" is not a key; the nearest is train.batch (headroom keys lists "
            "all)");
    refused("train.batch,train.batch=8:8", "--grid: train.batch is given twice");
    refused("train.batch=4096..64", "--grid: train.batch: the range 4096..64 runs backwards");
    refused("train.batch=0..64", "--grid: train.batch: the range 0..64 has no end: 0 does not "
                                 "double");
    refused("train.batch=8..64+0", "--grid: train.batch: the range 8..64+0 has no end: add 1 or "
                                   "more");
    refused("train.batch=8..many",
            "--grid: train.batch: \"8..many\" is not a range; write 64..4096 "
            "to double, or 8..64+8 to add");
    refused("train.batch=8..", "--grid: train.batch: \"8..\" is not a range; write 64..4096 to "
                               "double, or 8..64+8 to add");
    refused("train.batch=1..1000000+1", "--grid: train.batch has more than 10000 values");
    refused("train.seq_len,train.batch=8:16,32",
            "--grid: \"32\" is not a value for each of 2 keys, separated by colons");
    refused("train.seq_len,train.batch=8:16:32",
            "--grid: \"8:16:32\" is not a value for each of 2 keys, separated by colons");
    hr_grid_axis axis;
    hr_error err;
    assert_int_equal(hr_grid_axis_parse("train.batch=8,x", &axis, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "--grid: train.batch"));
    assert_int_equal(hr_grid_axis_parse("train.batch=8,,16", &axis, &err), HR_USAGE);
    assert_int_equal(hr_grid_axis_parse("train.batch=", &axis, &err), HR_USAGE);
}

/* ---- cells. Large objects are static, so that the stack stays as deep from plan to plan. */

static struct {
    hr_grid_cell cells[CELLS];
    char strategies[CELLS][HR_STRATEGY_TEXT_BYTES];
    double bounds[CELLS];
    int32_t count;
    char text[TEXT_BYTES];
} taken;
static hr_plan_answer answer;
static hr_config base, config;

static void take(void *context, const hr_grid_cell *cell, const hr_plan_answer *plan)
{
    (void)context;
    assert_true(taken.count < CELLS);
    taken.cells[taken.count] = *cell;
    snprintf(taken.strategies[taken.count], HR_STRATEGY_TEXT_BYTES, "%s", plan->strategy);
    taken.bounds[taken.count] = plan->bound_seconds;
    taken.count++;
}

static void take_text(void *context, const char *text)
{
    (void)context;
    const size_t used = strlen(taken.text);
    assert_true(used + strlen(text) < TEXT_BYTES);
    strcpy(taken.text + used, text);
}

static hr_status run(const hr_grid_axis *axes, int32_t axis_count, const hr_device_choice *devices,
                     int32_t device_count, const char *svg, hr_error *err)
{
    const hr_grid_request request = { .size = sizeof request,
                                      .config = &base,
                                      .axes = axes,
                                      .axis_count = axis_count,
                                      .devices = devices,
                                      .device_count = device_count,
                                      .changes = axis_count == 0,
                                      .tokens = 1e6,
                                      .svg = svg,
                                      .cell = take,
                                      .write = take_text };
    taken.count = 0;
    taken.text[0] = 0;
    return hr_plan_grid(&request, err);
}

static hr_device_facts card(const char *name, double tflops, int64_t usable_bytes)
{
    hr_device_facts facts = { .title = "a card",
                              .usable_bytes = usable_bytes,
                              .bandwidth = 500000000000,
                              .link = 16000000000 };
    snprintf(facts.name, sizeof facts.name, "%s", name);
    facts.peak[HR_DEVICE_FP32] = tflops;
    facts.peak[HR_DEVICE_BF16] = 4 * tflops;
    return facts;
}

/* Compares a cell with the plan of its own recipe. Returns whether it fits. */
static bool same(int32_t index, const hr_grid_axis *axes, int32_t axis_count,
                 const hr_device_choice *device)
{
    const hr_grid_cell *cell = &taken.cells[index];
    const hr_plan_outputs outputs = { .size = sizeof outputs, .device = device };
    char value[HR_GRID_VALUE_BYTES];
    hr_error err;
    config = base;
    for (int32_t a = 0; a < axis_count; a++)
        for (int32_t k = 0; k < axes[a].key_count; k++)
            assert_int_equal(hr_config_set(&config, axes[a].keys[k]->name,
                                           hr_grid_axis_value(&axes[a], cell->points[a], k, value),
                                           &err),
                             HR_OK);
    if (hr_config_check(&config, &err) != HR_OK) {
        assert_int_equal(cell->verdict, HR_CELL_INVALID);
        assert_string_equal(cell->reason, err.message);
        return false;
    }
    const hr_status status = hr_plan_make(&config, &outputs, &answer, &err);
    if (status == HR_NO_FIT) {
        assert_int_equal(cell->verdict, HR_CELL_REFUSED);
        assert_int_equal(cell->process_bytes, answer.minimum_bytes);
        assert_string_equal(cell->reason, err.message);
        return false;
    }
    if (status != HR_OK) fail_msg("%s", err.message);
    assert_true(cell->verdict == HR_CELL_FITS || cell->verdict == HR_CELL_FITS_WITH);
    assert_int_equal(cell->process_bytes, answer.process_bytes);
    assert_int_equal(cell->arena_bytes, answer.arena_bytes);
    assert_int_equal(cell->floor_bytes, answer.floor_bytes);
    assert_int_equal(cell->available_bytes, answer.available_bytes);
    assert_true(cell->step_seconds == answer.step_seconds);
    assert_true(taken.bounds[index] == answer.bound_seconds);
    assert_string_equal(taken.strategies[index], answer.strategy);
    const double tokens = (double)(config.train.batch * config.train.seq_len);
    assert_true(cell->tokens_per_second == tokens / answer.step_seconds);
    assert_true(cell->hours > 0.999 * 1e6 * answer.step_seconds / tokens / 3600 &&
                cell->hours < 1.001 * 1e6 * answer.step_seconds / tokens / 3600);
    return true;
}

/* Random recipes; the first device has room for some of the cells, the second for all. */
static void every_cell_is_the_plan_of_its_own_recipe(void **state)
{
    (void)state;
    int32_t fitting = 0, others = 0, with = 0;
    const hr_grid_axis axes[] = { parsed("train.seq_len=64..256,160"),
                                  parsed("train.batch=16,47,128") };
    for (int32_t turn = 0; turn < RECIPES; turn++) {
        hr_error err;
        base = random_config_of(turn % HR_FAMILIES, SEED, (uint64_t)turn);
        base.memory.micro_batch = base.memory.loss_chunk = 0;
        base.memory.recompute = HR_RECOMPUTE_AUTO;
        base.memory.budget = 0;
        const hr_device_facts large = card("large", 3, INT64_C(1) << 36);
        hr_device_facts small = card("small", 9, INT64_C(1) << 36);
        const hr_device_choice devices[] = { { .device = &small, .reserve_bytes = 12345 },
                                             { .device = &large } };
        const hr_plan_outputs outputs = { .size = sizeof outputs, .device = &devices[0] };
        config = base;
        config.train.seq_len = 256;
        config.train.batch = 128;
        if (hr_plan_make(&config, &outputs, &answer, &err) != HR_OK) fail_msg("%s", err.message);
        /* From below the smallest plan to half of the fastest without a limit. */
        small.usable_bytes = 12345 + answer.minimum_bytes - (2 << 20) +
                             (answer.process_bytes - answer.minimum_bytes) * (turn % 3) / 4;
        const hr_status status = run(axes, 2, devices, 2, NULL, &err);
        if (status != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(taken.count, 2 * axes[0].count * axes[1].count);
        for (int32_t i = 0; i < taken.count; i++) {
            const int32_t device = i / (axes[0].count * axes[1].count);
            assert_int_equal(taken.cells[i].device, device);
            assert_int_equal(taken.cells[i].points[0], i / 3 % axes[0].count);
            assert_int_equal(taken.cells[i].points[1], i % 3);
            const bool fits = same(i, axes, 2, &devices[device]);
            fitting += fits;
            others += !fits;
            with += taken.cells[i].verdict == HR_CELL_FITS_WITH;
        }
    }
    print_message("%d recipes: %d cells fit, %d of them with changes, %d do not\n", (int)RECIPES,
                  fitting, with, others);
    assert_true(fitting > 0 && with > 0 && others > 0);
}

static void small_base(void)
{
    hr_config_default(&base);
    base.model.family = HR_FAMILY_LLAMA;
    base.model.d_model = 256;
    base.model.n_heads = 4;
    base.model.d_ff = 1024;
    base.model.n_layers = 2;
    base.model.vocab_size = 16000;
    base.train.batch = 16;
    base.train.seq_len = 256;
}

/* A cache of search results that outlives a change of the machine would show here, and so would
 * budgets that leak from cell to cell. */
static void cells_of_refusals_budgets_and_wrong_values_are_their_own_plans_too(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    const hr_device_facts facts[] = { card("slow", 0.01, INT64_C(3) << 30),
                                      card("fast", 900, INT64_C(1) << 30) };
    const hr_device_choice devices[] = { { .device = &facts[0] }, { .device = &facts[1] } };
    const hr_grid_axis axes[] = { parsed("memory.budget=64MiB,180MiB,300MiB,none"),
                                  parsed("memory.micro_batch=auto,3,16"),
                                  parsed("train.dtype=fp32,bf16") };
    assert_int_equal(run(axes, 3, devices, 2, NULL, &err), HR_OK);
    assert_int_equal(taken.count, 48);
    int32_t counts[4] = { 0 };
    for (int32_t i = 0; i < taken.count; i++) {
        const hr_grid_cell *cell = &taken.cells[i];
        assert_int_equal(cell->points[2], i / 24);
        assert_int_equal(cell->device, i / 12 % 2);
        (void)same(i, axes, 3, &devices[cell->device]);
        counts[cell->verdict]++;
    }
    for (int32_t v = 0; v < 4; v++) assert_true(counts[v] > 0);
    assert_non_null(strstr(taken.text, "train.dtype = bf16, fast\n"));
    assert_non_null(strstr(taken.text, "\ninvalid: memory.micro_batch 3 does not divide"));
}

/* Beside one axis, devices are the columns: neighbors differ in the device alone. */
static void neighbors_on_other_devices_share_no_results(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    base.train.batch = 256;
    hr_device_facts facts[] = { card("slow", 0.01, INT64_C(1) << 30),
                                card("fast", 90000, INT64_C(1) << 30),
                                card("laptop", 0.3, INT64_C(1) << 30) };
    facts[2].kind = HR_DEVICE_CPU;
    facts[2].threads = 3;
    strcpy(facts[2].kernels, "avx2");
    const hr_device_choice devices[] = { { .device = &facts[0] },
                                         { .device = &facts[1] },
                                         { .device = &facts[2] } };
    const hr_grid_axis axes[] = { parsed("train.seq_len=128..512") };
    assert_int_equal(run(axes, 1, devices, 3, NULL, &err), HR_OK);
    assert_int_equal(taken.count, 9);
    for (int32_t i = 0; i < taken.count; i++) {
        assert_int_equal(taken.cells[i].device, i % 3);
        assert_true(same(i, axes, 1, &devices[i % 3]));
    }
}

/* A disk that is too small refuses a plan whose memory would fit. */
static void a_refused_disk_has_the_bytes_of_its_plan(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    base.memory.moments = HR_PLACE_FILE;
    const hr_device_facts facts[] = { card("large", 3, INT64_C(4) << 30) };
    const hr_device_choice devices[] = { { .device = &facts[0], .disk_bytes = 1 << 20 } };
    const hr_grid_axis axes[] = { parsed("train.batch=4,8") };
    assert_int_equal(run(axes, 1, devices, 1, NULL, &err), HR_NO_FIT);
    assert_int_equal(taken.count, 2);
    for (int32_t i = 0; i < taken.count; i++) {
        const hr_grid_cell *cell = &taken.cells[i];
        assert_false(same(i, axes, 1, &devices[0]));
        assert_true(cell->process_bytes > 0 && cell->process_bytes < cell->available_bytes);
        assert_int_equal(cell->file_bytes, answer.file_bytes);
        assert_int_equal(cell->file_available_bytes, 1 << 20);
    }
    assert_non_null(strstr(taken.text, "disk: needs "));
    assert_non_null(strstr(taken.text, "has 1.0 MiB"));
    assert_int_equal(run(NULL, 0, devices, 1, NULL, &err), HR_NO_FIT);
    assert_non_null(strstr(taken.text, "does not fit: disk: needs "));
    assert_non_null(strstr(taken.text, ", has 1.0 MiB\n"));
}

static void a_grid_is_about_this_machine_without_devices(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    base.memory.budget = 200 << 20;
    const hr_grid_axis axes[] = { parsed("train.batch=4..32"), parsed("train.seq_len=128,256") };
    assert_int_equal(run(axes, 2, NULL, 0, NULL, &err), HR_OK);
    assert_int_equal(taken.count, 8);
    for (int32_t i = 0; i < taken.count; i++) (void)same(i, axes, 2, NULL);
}

static void a_list_of_devices_tries_another_format_and_moments_in_a_file(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    base.train.dtype = HR_FORMAT_BF16;
    hr_device_facts facts[] = { card("plain", 10, INT64_C(4) << 30),
                                card("old", 10, INT64_C(4) << 30),
                                card("tight", 10, INT64_C(4) << 30), card("tiny", 10, 1 << 20) };
    facts[1].peak[HR_DEVICE_BF16] = 0;
    const hr_device_choice devices[] = { { .device = &facts[0] },
                                         { .device = &facts[1] },
                                         { .device = &facts[2] },
                                         { .device = &facts[3] } };
    /* Between the smallest plans with the moments in memory and in a file. */
    const hr_plan_outputs outputs = { .size = sizeof outputs, .device = &devices[2] };
    assert_int_equal(hr_plan_make(&base, &outputs, &answer, &err), HR_OK);
    const int64_t in_memory = answer.minimum_bytes;
    config = base;
    config.memory.moments = HR_PLACE_FILE;
    assert_int_equal(hr_plan_make(&config, &outputs, &answer, &err), HR_OK);
    facts[2].usable_bytes = (in_memory + answer.minimum_bytes) / 2;
    assert_int_equal(run(NULL, 0, devices, 4, NULL, &err), HR_OK);
    assert_int_equal(taken.count, 4);
    assert_int_equal(taken.cells[0].verdict, HR_CELL_FITS);
    assert_string_equal(taken.cells[0].change, "");
    assert_string_equal(taken.cells[1].change, "train.dtype=fp32");
    assert_string_equal(taken.cells[2].change, "memory.moments=file");
    assert_int_equal(taken.cells[3].verdict, HR_CELL_REFUSED);
    base.train.dtype = HR_FORMAT_FP32;
    assert_true(same(1, NULL, 0, &devices[1]));
    base.train.dtype = HR_FORMAT_BF16;
    base.memory.moments = HR_PLACE_FILE;
    assert_true(same(2, NULL, 0, &devices[2]));
    base.memory.moments = HR_PLACE_HOST;
    assert_false(same(3, NULL, 0, &devices[3]));
    assert_non_null(strstr(taken.text, "\nold "));
    assert_non_null(strstr(taken.text, "fits with memory.moments=file"));
    assert_non_null(strstr(taken.text, "does not fit: needs at least "));
}

static void grids_that_are_too_large_or_empty_are_refused(void **state)
{
    (void)state;
    hr_error err;
    small_base();
    const hr_grid_axis large[] = { parsed("train.batch=1..200+1"),
                                   parsed("train.seq_len=1..51+1") };
    assert_int_equal(run(large, 2, NULL, 0, NULL, &err), HR_USAGE);
    assert_string_equal(err.message, "the grid has more than 10000 cells; give fewer values");
    const hr_grid_axis twice[] = { parsed("train.batch=1"),
                                   parsed("train.seq_len,train.batch=8:8") };
    assert_int_equal(run(twice, 2, NULL, 0, NULL, &err), HR_USAGE);
    assert_string_equal(err.message, "--grid: train.batch is given twice");
    const hr_grid_axis wrong[] = { parsed("model.n_heads=3,5") };
    assert_int_equal(run(wrong, 1, NULL, 0, NULL, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "no cell of the grid is a recipe: "));
    base.memory.budget = 8 << 20;
    const hr_grid_axis small[] = { parsed("train.batch=1,2") };
    assert_int_equal(run(small, 1, NULL, 0, NULL, &err), HR_NO_FIT);
    assert_string_equal(err.message, "none of the 2 plans fits");
    assert_int_equal(taken.count, 2);
}

static void a_drawing_has_a_rectangle_for_each_cell(void **state)
{
    (void)state;
    hr_error err;
    hr_folder folder = hr_folder_open();
    char path[512];
    static char text[TEXT_BYTES];
    strcpy(path, hr_folder_path(&folder, "grid.svg"));
    small_base();
    const hr_grid_axis axes[] = { parsed("train.batch=4,8"), parsed("train.seq_len=64..256") };
    for (int32_t again = 0; again < 2; again++)
        assert_int_equal(run(axes, 2, NULL, 0, path, &err), HR_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    int32_t cells = 0;
    for (const char *at = text; (at = strstr(at, "<g><rect ")); at++) cells++;
    assert_int_equal(cells, 6);
    assert_non_null(strstr(text, "train.batch down; train.seq_len across"));
    assert_string_equal(text + strlen(text) - 7, "</svg>\n");
    hr_folder_write(path, "mine\n", 5);
    assert_int_equal(run(axes, 2, NULL, 0, path, &err), HR_USAGE);
    hr_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_axis_lists_doubles_and_adds),
        cmocka_unit_test(a_bad_axis_is_refused_in_one_sentence),
        cmocka_unit_test(every_cell_is_the_plan_of_its_own_recipe),
        cmocka_unit_test(cells_of_refusals_budgets_and_wrong_values_are_their_own_plans_too),
        cmocka_unit_test(neighbors_on_other_devices_share_no_results),
        cmocka_unit_test(a_refused_disk_has_the_bytes_of_its_plan),
        cmocka_unit_test(a_grid_is_about_this_machine_without_devices),
        cmocka_unit_test(a_list_of_devices_tries_another_format_and_moments_in_a_file),
        cmocka_unit_test(grids_that_are_too_large_or_empty_are_refused),
        cmocka_unit_test(a_drawing_has_a_rectangle_for_each_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
