/* SPDX-License-Identifier: Apache-2.0 */
/* cli_profile_test.c - headroom profile: its operations fill the step and are those of the plan,
 * memory is as planned, nothing is written; and what is refused. */
#include <jansson.h>
#include <math.h>

#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

static void put_recipe(void)
{
    require_program();
    put_tiny_and_text();
    put("recipe.yaml", "model: {family: llama, d_model: 32, n_layers: 2, n_heads: 4, d_ff: 64,\n"
                       "  vocab_size: 300}\n"
                       "data: {train: text.txt, tokenizer: bytes}\n"
                       "train: {steps: 8, batch: 4, seq_len: 24, threads: 2}\n");
}

static json_t *profile(const char *keys)
{
    json_error_t ignored;
    if (run("profile recipe.yaml --json %s", keys)) fail_msg("%s: %s", keys, err);
    json_t *report = json_loads(out, 0, &ignored);
    assert_non_null(report);
    return report;
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("%s is no number", name);
    return json_number_value(value);
}

/* No plan counts the memory of ThreadSanitizer. */
static bool is_within_plan(double measured, const json_t *report)
{
    return HR_THREAD_SANITIZER || measured <= number(report, "process_bytes_planned");
}

static void operations_fill_the_step(void **state)
{
    static const char *const ways[] = {
        "",
        "memory.micro_batch=2 --steps 1",
        "train.dtype=bf16 memory.moments=file memory.file_dir=.",
        "memory.spill=auto memory.recompute=layers memory.file_dir=.",
        /* the layer with the most operations: planning it takes the most stack */
        "train.adapter.kind=lora train.adapter.dora=true train.adapter.dropout=0.1 "
        "model.attention.kind=nsa model.attention.nsa.own_keys=true "
        "model.attention.nsa.compress_block=8 model.attention.nsa.compress_stride=4 "
        "model.attention.nsa.select_block=8",
    };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        json_t *report = profile(ways[i]);
        const json_t *rows = json_object_get(report, "operations");
        double seconds = number(report, "between_seconds"), planned = 0, calls = 0;
        assert_true(seconds >= 0);
        assert_true(json_array_size(rows) > 10);
        for (size_t k = 0; k < json_array_size(rows); k++) {
            const json_t *row = json_array_get(rows, k);
            seconds += number(row, "seconds");
            planned += number(row, "planned_seconds");
            calls += number(row, "calls");
            assert_true(number(row, "calls") > 0);
        }
        assert_true(fabs(seconds / number(report, "step_seconds") - 1) < 1e-9);
        /* A step waits for what transfers do not hide, and these are no operations. */
        assert_true(planned <= number(report, "planned_seconds") * 1.0001);
        assert_true(calls > 50);
        assert_true(number(report, "steps") == (strstr(ways[i], "--steps 1") ? 1 : 2));
        assert_true(number(report, "arena_bytes_used") == number(report, "arena_bytes_planned"));
        assert_true(is_within_plan(number(report, "process_bytes_measured"), report));
        json_decref(report);
    }
    assert_int_equal(system("test -z \"$(find . -name '*.safetensors' -o -name '*.tmp' "
                            "-o -name '*.jsonl')\""),
                     0);
}

/* The rows of each engine are the step; the file moves both moments in and out. */
static void engines_fill_the_step(void **state)
{
    static const char keys[] = "model.d_model=256 memory.moments=file memory.file_dir=.";
    char steps[128];
    (void)state;
    put_recipe();
    snprintf(steps, sizeof steps, "%s --steps 4", keys);
    json_t *report = profile(steps);
    const json_t *rows = json_object_get(report, "engines");
    double threads = 0, file = 0, bytes = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *engine = json_string_value(json_object_get(row, "engine"));
        assert_true(number(row, "seconds") > 0);
        *(strcmp(engine, "compute threads") ? &file : &threads) += number(row, "seconds");
        bytes += number(row, "bytes");
    }
    assert_true(fabs(threads / number(report, "step_seconds") - 1) < 1e-9);
    assert_true(file >= number(report, "step_seconds") * (1 - 1e-9));
    if (run("plan recipe.yaml %s --json", keys)) fail_msg("%s", err);
    json_t *plan = json_loads(out, 0, NULL);
    const double moments = 2 * sizeof(float) * number(plan, "parameters");
    assert_true(bytes > 1.8 * moments && bytes < 2.1 * moments); /* small ones stay in memory */
    json_decref(plan);
    json_decref(report);
    report = profile("");
    rows = json_object_get(report, "engines");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *engine = json_object_get(json_array_get(rows, i), "engine");
        assert_string_equal(json_string_value(engine), "compute threads");
    }
    json_decref(report);
}

/* The planned bytes are those of plan, counted another way; the process has its own throughout. */
static void bytes_over_the_step_are_those_of_the_plan(void **state)
{
    (void)state;
    put_recipe();
    json_t *report = profile("memory.micro_batch=2");
    const json_t *curve = json_object_get(report, "over_step");
    const json_t *live = json_object_get(curve, "arena_bytes_live");
    const json_t *measured = json_object_get(curve, "process_bytes_measured");
    if (run("plan recipe.yaml memory.micro_batch=2 --json")) fail_msg("%s", err);
    json_t *plan = json_loads(out, 0, NULL);
    const json_t *planned = json_object_get(json_object_get(plan, "why"), "curve");
    assert_true(json_array_size(planned) > 32 && json_equal(planned, live));
    assert_int_equal(json_array_size(measured), json_array_size(live));
    for (size_t i = 0; i < json_array_size(measured); i++) {
        const double bytes = json_number_value(json_array_get(measured, i));
        assert_true(bytes > number(report, "arena_bytes_planned"));
        assert_true(bytes <= number(report, "process_bytes_planned"));
    }
    json_decref(plan);
    json_decref(report);
}

/* The calls and the floating-point operations are of one step, whatever the number of steps. */
static void rows_are_of_one_step(void **state)
{
    (void)state;
    put_recipe();
    json_t *one = profile("--steps 1"), *more = profile("--steps 4");
    double calls[2] = { 0 }, flops[2] = { 0 };
    for (int32_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(i ? more : one, "operations");
        for (size_t k = 0; k < json_array_size(rows); k++) {
            calls[i] += number(json_array_get(rows, k), "calls");
            flops[i] += number(json_array_get(rows, k), "flops");
        }
    }
    assert_true(calls[0] == calls[1]);
    assert_true(flops[0] > 0 && flops[0] == flops[1]);
    json_decref(one);
    json_decref(more);
}

static void text_names_parts(void **state)
{
    static const char *const says[] = {
        "part of the model",           "attention, backward",
        "output head, forward",        "linear_dw, MLP, backward",
        "between operations",          "memory   planned",
        "compute threads: operations", "bytes over the step, by operation"
    };
    (void)state;
    put_recipe();
    if (run("profile recipe.yaml train.steps=2 --steps 4")) fail_msg("%s", err);
    assert_non_null(strstr(out, "profile  3 steps of "));
    if (run("profile recipe.yaml")) fail_msg("%s", err);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strstr(out, says[i])) fail_msg("no \"%s\" in\n%s", says[i], out);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *words, *says;
        int code;
    } wrong[] = {
        { "--steps 0", "--steps takes a number from 1", HR_USAGE },
        { "--steps two", "--steps", HR_USAGE },
        { "--trace one --html one", "--trace and --html both write one", HR_USAGE },
        { "--trace one --html ./one", "--trace and --html both write one", HR_USAGE },
        { "--budget 1MiB", "the run needs at least", HR_NO_FIT },
        { "data.train=nowhere.txt", "nowhere.txt", HR_USAGE },
    };
    (void)state;
    put_recipe();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (run("profile recipe.yaml %s", wrong[i].words) != wrong[i].code)
            fail_msg("%s: %s", wrong[i].words, err);
        assert_says(wrong[i].says);
    }
}

/* Slices follow one another, fill the step, and are the calls of the report; the arena's counter
 * has the peak of the plan. */
static void a_trace_has_every_call_of_the_last_step(void **state)
{
    (void)state;
    put_recipe();
    json_t *report = profile("memory.micro_batch=2 --trace trace.json");
    double calls = 0, ends = 0, sum = 0, most = 0, count = 0, processes = 0, samples = 0;
    json_error_t why;
    json_t *trace = json_load_file("trace.json", 0, &why);
    if (!trace) fail_msg("%s", why.text);
    for (size_t i = 0; i < json_array_size(json_object_get(report, "operations")); i++)
        calls += number(json_array_get(json_object_get(report, "operations"), i), "calls");
    const json_t *events = json_object_get(trace, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i), *args = json_object_get(event, "args");
        const char *kind = json_string_value(json_object_get(event, "ph"));
        assert_non_null(kind);
        if (*kind == 'C' && json_object_get(args, "live")) most = fmax(most, number(args, "live"));
        if (*kind == 'C' && json_object_get(args, "planned")) {
            assert_true(number(args, "planned") == number(report, "process_bytes_planned"));
            assert_true(number(args, "measured") == number(report, "process_bytes_measured"));
            processes++;
        }
        if (*kind == 'C' && json_object_get(args, "measured")) {
            assert_true(is_within_plan(number(args, "measured"), report));
            samples++;
        }
        if (*kind != 'X') continue;
        assert_true(number(event, "ts") >= ends - 0.01);
        ends = number(event, "ts") + number(event, "dur");
        sum += number(event, "dur");
        count++;
    }
    assert_true(count == calls && processes == 2 && samples >= 3);
    assert_true(sum <= ends && sum > 0.5 * ends);
    assert_true(most > 0 && most <= number(report, "arena_bytes_planned"));
    json_decref(trace);
    json_decref(report);
    assert_int_equal(run("profile recipe.yaml --trace text.txt"), HR_USAGE);
    assert_non_null(strstr(err, "text.txt: exists and is not a trace"));
    assert_int_equal(run("profile recipe.yaml --trace none/t.json"), HR_USAGE);
}

/* What is on a page is checked by tests/report/check_page.py. */
static void a_page_is_whole_or_absent(void **state)
{
    static char page[PROGRAM_TEXT_BYTES];
    (void)state;
    put_recipe();
    assert_int_equal(run("profile recipe.yaml --trace trace.json --html page.html"), HR_OK);
    get("page.html", page);
    assert_non_null(strstr(page, "<h1>A step takes "));
    assert_non_null(strstr(page, "</main></html>\n"));
    assert_int_equal(access("trace.json", F_OK), 0);
    assert_int_equal(run("profile recipe.yaml --budget 1MiB --html none.html"), HR_NO_FIT);
    assert_int_equal(access("none.html", F_OK), -1);
    assert_int_equal(run("profile recipe.yaml --html text.txt"), HR_USAGE);
    assert_says("text.txt: exists and is not a page");
    assert_int_equal(run("profile recipe.yaml --html no/page.html"), HR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(operations_fill_the_step),
        IN_A_FOLDER(a_trace_has_every_call_of_the_last_step),
        IN_A_FOLDER(a_page_is_whole_or_absent),
        IN_A_FOLDER(rows_are_of_one_step),
        IN_A_FOLDER(engines_fill_the_step),
        IN_A_FOLDER(bytes_over_the_step_are_those_of_the_plan),
        IN_A_FOLDER(text_names_parts),
        IN_A_FOLDER(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
