/* SPDX-License-Identifier: Apache-2.0 */
/* cli_grid_test.c - devices and grids on the command line: text, CSV and JSON beside the JSON of
 * single plans, and what is refused. */
#include "headroom/status.h"
#include "support/program.h"

static const char card[] = "small-card:\n"
                           "  title: A small card\n"
                           "  usable: 40MiB\n"
                           "  reserve: 1MiB\n"
                           "  bandwidth: 10GB/s\n"
                           "  peak_tflops: {fp32: 0.5}\n";

/* More than a megabyte of values. */
static const char middle[] =
    "model: {family: llama, d_model: 64, n_layers: 2, n_heads: 2, d_ff: 128,"
    " vocab_size: 4000}\n"
    "train: {batch: 8, seq_len: 128}\n"
    "data: {tokenizer: words}\n";

static json_t *member(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (!value) fail_msg("no member %s", name);
    return value;
}

static int64_t number(json_t *object, const char *name)
{
    assert_true(json_is_integer(member(object, name)));
    return json_integer_value(member(object, name));
}

static void put_recipes(void)
{
    require_program();
    put("recipe.yaml", middle);
    put("card.yaml", card);
}

/* ---- devices */

static void devices_are_listed_with_their_sources(void **state)
{
    (void)state;
    put_recipes();
    assert_int_equal(run("devices"), HR_OK);
    assert_non_null(strstr(out, "\nrtx-4090                23.64 GiB   0.75 GiB    1008    82.6"));
    assert_int_equal(run("devices --file card.yaml"), HR_OK);
    assert_non_null(strstr(out, "\nsmall-card "));
    assert_int_equal(run("devices 'NVIDIA GeForce RTX 4090'"), HR_OK);
    assert_non_null(strstr(out, "NVIDIA Ada GPU Architecture, whitepaper"));
    assert_int_equal(run("devices a100-80gb --json"), HR_OK);
    json_t *device = out_json();
    assert_int_equal(number(device, "usable_bytes"), INT64_C(81049) << 20);
    assert_true(json_is_null(member(member(device, "peak_tflops"), "fp8")));
    assert_true(json_real_value(member(member(device, "peak_tflops"), "bf16")) == 312);
    json_decref(device);
    assert_int_equal(run("devices --json --file card.yaml"), HR_OK);
    json_t *all = out_json();
    assert_true(json_array_size(all) > 20);
    assert_string_equal(json_string_value(member(json_array_get(all, 0), "name")), "small-card");
    json_decref(all);
    assert_int_equal(run("devices rtx-4900"), HR_USAGE);
    assert_string_equal(err,
                        "headroom: \"rtx-4900\" is not a known device; the nearest is rtx-4090 "
                        "(headroom devices lists all)\n");
    put("bad.yaml", "card:\n  usable: 4GiB\n  memory: 5\n");
    assert_int_equal(run("devices --file bad.yaml"), HR_USAGE);
    assert_non_null(strstr(err, "headroom: bad.yaml:3: memory: is no figure of a device"));
}

static void a_plan_for_a_device_names_it(void **state)
{
    (void)state;
    put_recipes();
    /* The budget is the limit: no larger device helps. */
    assert_int_equal(run("plan recipe.yaml --device rtx-4060 --budget 1MiB --json"), HR_NO_FIT);
    json_t *refused = out_json();
    assert_null(json_object_get(member(refused, "device"), "larger"));
    json_decref(refused);
    assert_int_equal(run("plan recipe.yaml --device rtx-4060,host=64GiB,disk=1TiB --json"), HR_OK);
    json_t *answer = out_json();
    json_t *device = member(answer, "device");
    assert_string_equal(json_string_value(member(device, "name")), "rtx-4060");
    assert_int_equal(number(device, "usable_bytes"), INT64_C(7813) << 20);
    assert_int_equal(number(device, "host_bytes"), INT64_C(64) << 30);
    assert_int_equal(number(device, "disk_bytes"), INT64_C(1) << 40);
    assert_int_equal(number(answer, "available_bytes"),
                     number(device, "usable_bytes") - number(device, "reserve_bytes"));
    json_t *spaces = member(answer, "spaces");
    assert_int_equal(json_array_size(spaces), 2);
    assert_string_equal(json_string_value(member(json_array_get(spaces, 0), "name")), "device");
    assert_int_equal(number(json_array_get(spaces, 1), "bytes"), 0);
    assert_int_equal(number(json_array_get(spaces, 1), "available_bytes"), INT64_C(64) << 30);
    json_decref(answer);
    assert_int_equal(run("plan recipe.yaml --device rtx-4060,host=64GiB --out plan.json"), HR_OK);
    assert_non_null(strstr(out, "needed outside the arena; no tensor is kept there"));
    assert_non_null(strstr(out, "headroom trains on CPUs"));
    assert_null(strstr(out, "headroom calibrate"));
    assert_int_equal(run("verify plan.json"), HR_OK);
    assert_int_equal(run("plan recipe.yaml --json"), HR_OK);
    answer = out_json();
    assert_true(json_is_null(member(answer, "device")));
    json_decref(answer);
}

/* The verdict, the bytes and the cheapest change are among the first ten lines. */
static void the_first_ten_lines_hold_the_answer(void **state)
{
    (void)state;
    put_recipes();
    for (int32_t fits = 0; fits < 2; fits++) {
        assert_int_equal(
            run("plan recipe.yaml model.vocab_size=%d --device-file card.yaml --device "
                "small-card",
                fits ? 4000 : 40000),
            fits ? HR_OK : HR_NO_FIT);
        char *end = out;
        for (int32_t line = 0; line < 10; line++) end = strchr(end, '\n') + 1;
        *end = 0;
        assert_non_null(strstr(out, fits ? "\nfits\n" : "does not fit\n"));
        assert_non_null(strstr(out, fits ? "memory of the card" : "needs at least"));
        if (!fits) assert_non_null(strstr(out, "cheapest change             "));
    }
}

/* ---- grids */

/* Each cell of the JSON equals the JSON of its own plan. */
static void cells_in_json_equal_single_plans(void **state)
{
    (void)state;
    put_recipes();
    assert_int_equal(run("plan recipe.yaml --grid train.batch=2..16 --grid train.seq_len=64,200 "
                         "--device-file card.yaml --devices small-card,laptop-8gb --json"),
                     HR_OK);
    json_t *grid = out_json();
    assert_string_equal(json_string_value(member(grid, "question")), "grid");
    json_t *cells = member(grid, "cells");
    assert_int_equal(json_array_size(cells), 16);
    int32_t fitting = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        json_t *cell = json_array_get(cells, i), *values = member(cell, "values");
        const bool fits = strncmp(json_string_value(member(cell, "verdict")), "fits", 4) == 0;
        const int code = run("plan recipe.yaml train.batch=%lld train.seq_len=%lld --device %s "
                             "--device-file card.yaml --json",
                             (long long)number(values, "train.batch"),
                             (long long)number(values, "train.seq_len"),
                             json_string_value(member(cell, "device")));
        assert_int_equal(code, fits ? HR_OK : HR_NO_FIT);
        json_t *answer = out_json();
        assert_int_equal(number(cell, "process_bytes"),
                         number(answer, fits ? "process_bytes" : "minimum_bytes"));
        assert_int_equal(number(cell, "available_bytes"), number(answer, "available_bytes"));
        if (fits) {
            json_t *plan = member(cell, "plan");
            assert_true(json_equal(member(plan, "strategy"), member(answer, "strategy")));
            assert_true(json_equal(member(plan, "arena_bytes"), member(answer, "arena_bytes")));
            assert_true(json_equal(member(plan, "step_seconds_predicted"),
                                   member(answer, "step_seconds_predicted")));
            assert_true(json_equal(member(plan, "micro_batch"), member(answer, "micro_batch")));
            assert_true(json_equal(member(plan, "loss_chunk"), member(answer, "loss_chunk")));
        }
        fitting += fits;
        json_decref(answer);
    }
    assert_true(fitting > 0);
    json_decref(grid);
}

static void a_grid_prints_tables_and_csv(void **state)
{
    (void)state;
    put_recipes();
    assert_int_equal(run("plan recipe.yaml --grid train.seq_len,train.batch=64:16,128:8 --devices "
                         "l4,t4 --tokens 1B --svg grid.svg"),
                     HR_OK);
    assert_ptr_equal(strstr(out, "headroom trains on CPUs today: "), out);
    assert_non_null(strstr(out, "\n\ntrain.seq_len x train.batch  l4 "));
    assert_non_null(strstr(out, "\navailable                    21.53 GiB"));
    assert_non_null(strstr(out, "\n64 x 16                      fits "));
    assert_non_null(strstr(out, " h\n"));
    assert_non_null(strstr(out, "estimated from published figures"));
    assert_null(strstr(out, " \n"));
    get("grid.svg", err);
    assert_ptr_equal(strstr(err, "<svg "), err);
    assert_int_equal(run("plan recipe.yaml --grid train.seq_len,train.batch=64:16,128:8 --devices "
                         "l4,t4 --tokens 1B --csv"),
                     HR_OK);
    assert_ptr_equal(strstr(out, "train.seq_len,train.batch,device,verdict,process_bytes,"), out);
    assert_non_null(strstr(out, "\n64,16,l4,fits,"));
    int32_t lines = 0;
    for (const char *at = out; (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 5);
    assert_int_equal(run("plan recipe.yaml --grid 'train.out=a\"b,c' --csv"), HR_OK);
    assert_non_null(strstr(out, "\n\"a\"\"b\",,fits"));
    assert_non_null(strstr(out, "\nc,,fits"));
    assert_int_equal(run("plan recipe.yaml --devices all"), HR_OK);
    assert_non_null(strstr(out, "\nrtx-4090 "));
    assert_non_null(strstr(out, "fits\n"));
}

static void each_reason_of_invalid_cells_is_told_once(void **state)
{
    (void)state;
    put_recipes();
    assert_int_equal(run("plan recipe.yaml --grid model.n_heads=3,5,3,4 --grid train.batch=1,2"),
                     HR_OK);
    const char *first = strstr(out, "invalid: model.n_heads 3 does not divide");
    assert_non_null(first);
    assert_null(strstr(first + 1, "invalid: model.n_heads 3 "));
    assert_non_null(strstr(first, "\ninvalid: model.n_heads 5 does not divide"));
    assert_null(strstr(out, "other reasons"));
    assert_int_equal(run("plan recipe.yaml --grid model.n_heads=3,5,6,7,9,11,4"), HR_OK);
    assert_non_null(
        strstr(out, "\ninvalid: 2 cells for other reasons; --csv and --json have all\n"));
}

static void a_grid_of_one_plan_that_does_not_fit_says_so(void **state)
{
    (void)state;
    put_recipes();
    assert_int_equal(run("plan recipe.yaml --grid train.batch=8 --budget 1MiB"), HR_NO_FIT);
    assert_string_equal(err, "headroom: the plan does not fit\n");
    assert_int_equal(run("plan recipe.yaml --grid train.batch=8,16 --budget 1MiB"), HR_NO_FIT);
    assert_string_equal(err, "headroom: none of the 2 plans fits\n");
}

static void a_long_value_is_refused_with_its_bytes(void **state)
{
    (void)state;
    char value[301];
    put_recipes();
    memset(value, 'a', sizeof value - 1);
    value[sizeof value - 1] = 0;
    assert_int_equal(run("plan recipe.yaml --grid train.out=%s", value), HR_USAGE);
    assert_string_equal(err, "headroom: --grid: a value of 300 bytes; at most 255 are taken\n");
}

static void what_makes_no_grid_is_refused_in_one_sentence(void **state)
{
    (void)state;
    put_recipes();
    static const struct {
        const char *arguments, *sentence;
    } cases[] = {
        { "--grid train.bach=8",
          "--grid: \"train.bach\" is not a key; the nearest is train.batch (headroom keys lists "
          "all)" },
        { "--grid train.batch=64..8", "--grid: train.batch: the range 64..8 runs backwards" },
        { "--grid train.batch=8 --grid train.batch=4", "--grid: train.batch is given twice" },
        { "--grid train.batch=1..101+1 --grid train.seq_len=1..100+1",
          "the grid has more than 10000 cells; give fewer values" },
        { "--grid train.batch=8 --largest train.batch",
          "--largest searches one key and --grid plans given values; give one: --grid "
          "train.batch=1..1024 shows where a value stops fitting" },
        { "--grid train.batch,=8", "--grid: no key after \"train.batch,\"" },
        { "--grid ,train.batch=8", "--grid: \"\" is not a key (headroom keys lists all)" },
        { "--grid train.batch=8 --tokens 0x10",
          "--tokens takes a number of tokens such as 1B, 500M or 300000000; got \"0x10\"" },
        { "--grid train.batch=8 --tokens inf",
          "--tokens takes a number of tokens such as 1B, 500M or 300000000; got \"inf\"" },
        { "--devices l4 --device t4", "--device and --devices exclude each other; give one" },
        { "--devices l4 --frontier", "--frontier and --devices exclude each other; give one" },
        { "--grid train.batch=8 --json --csv", "--json and --csv exclude each other; give one" },
        { "--csv", "--csv needs --grid or --devices" },
        { "--tokens 1B", "--tokens needs --grid or --devices" },
        { "--grid train.batch=8 --tokens many",
          "--tokens takes a number of tokens such as 1B, 500M or 300000000; got \"many\"" },
        { "--grid memory.budget=1GiB --budget 1GiB",
          "--budget and --grid memory.budget exclude each other; give one" },
        { "--device l4,h100", "h100 is one device too many; 1 can be given" },
        { "--device-file card.yaml", "--device-file needs --device or --devices" },
        { "--grid a=1 --grid b=2 --grid c=3 --grid d=4", "--grid may be given at most 3 times" },
        { "--devices l4,t4 model.n_heads=3",
          "model.n_heads 3 does not divide model.d_model 64; the nearest that does is 2" },
        { "--device t4 train.dtype=bf16",
          "train.dtype=bf16: t4 (NVIDIA T4 16 GB) has no bf16; it has fp32, fp16, int8, and "
          "devices "
          "with bf16 are rtx-3060, rtx-3070, rtx-3080, rtx-3090 and others; train.dtype=fp32 works "
          "there" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        snprintf(expected, sizeof expected, "headroom: %s\n", cases[i].sentence);
        const int code = run("plan recipe.yaml %s", cases[i].arguments);
        assert_string_equal(err, expected);
        assert_int_equal(code, HR_USAGE);
        assert_string_equal(out, "");
    }
    assert_int_equal(run("plan recipe.yaml --grid memory.budget=1MiB,2MiB"), HR_NO_FIT);
    assert_string_equal(err, "headroom: none of the 2 plans fits\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(devices_are_listed_with_their_sources),
        IN_A_FOLDER(a_plan_for_a_device_names_it),
        IN_A_FOLDER(the_first_ten_lines_hold_the_answer),
        IN_A_FOLDER(cells_in_json_equal_single_plans),
        IN_A_FOLDER(a_grid_prints_tables_and_csv),
        IN_A_FOLDER(what_makes_no_grid_is_refused_in_one_sentence),
        IN_A_FOLDER(each_reason_of_invalid_cells_is_told_once),
        IN_A_FOLDER(a_grid_of_one_plan_that_does_not_fit_says_so),
        IN_A_FOLDER(a_long_value_is_refused_with_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
