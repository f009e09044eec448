/* SPDX-License-Identifier: Apache-2.0 */
/* cli_plan_test.c - printed and written plans, planner queries, and the verifier. */
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/program.h"

static int64_t plan_number(const char *arguments, const char *name)
{
    run("plan tiny.yaml --json %s", arguments);
    json_t *answer = out_json();
    const json_t *number = json_object_get(answer, name);
    assert_true(json_is_integer(number));
    const int64_t value = json_integer_value(number);
    json_decref(answer);
    return value;
}

/* With a budget: without one, the plan shows the available memory of the machine. */
static void two_plans_of_one_recipe_are_byte_identical(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static char first[PROGRAM_TEXT_BYTES], file[PROGRAM_TEXT_BYTES];
    assert_int_equal(run("plan tiny.yaml --budget 1GiB --out a.json"), HR_OK);
    strcpy(first, out);
    get("a.json", file);
    assert_int_equal(run("plan tiny.yaml --budget 1GiB --out b.json"), HR_OK);
    assert_string_equal(out, first);
    get("b.json", out);
    assert_string_equal(out, file);
}

static void the_smallest_plan_fits_and_a_page_less_does_not(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    char budget[64];
    const int64_t minimum = plan_number("", "minimum_bytes");
    snprintf(budget, sizeof budget, "--budget %lld", (long long)minimum);
    assert_int_equal(plan_number(budget, "process_bytes"), minimum);
    assert_int_equal(run("plan tiny.yaml %s", budget), HR_OK);
    assert_int_equal(run("plan tiny.yaml --budget %lld", (long long)minimum - 4096), HR_NO_FIT);
    assert_int_equal(run("plan tiny.yaml --budget 1 --json"), HR_NO_FIT);
    json_t *answer = out_json();
    assert_true(json_is_false(json_object_get(answer, "fits")));
    assert_int_equal(json_integer_value(json_object_get(answer, "available_bytes")), 1);
    json_decref(answer);
}

/* Arguments, and the members of the answer beside the name of the query. */
static void queries_print_text_and_json(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const struct {
        const char *question, *arguments, *words;
        const char *members[10];
    } cases[] = {
        { "largest",
          "--largest train.seq_len --budget 200MiB",
          "largest train.seq_len that fits: ",
          { "key", "fits", "outcome", "largest", "next", "next_multiple_of_64", "available_bytes",
            "plans_made", "plan" } },
        { "smallest",
          "--smallest --slowdown 5%",
          "smallest budget that is at most 5 % slower than the fastest plan",
          { "slowdown", "least", "within", "fastest", "strategy_named", "times" } },
        { "frontier",
          "--frontier --svg f.svg",
          "memory saved by",
          { "points", "available_bytes", "strategy_named", "times" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("plan tiny.yaml %s", cases[i].arguments), HR_OK);
        assert_non_null(strstr(out, cases[i].words));
        assert_int_equal(run("plan tiny.yaml --json %s", cases[i].arguments), HR_OK);
        json_t *answer = out_json();
        assert_string_equal(json_string_value(json_object_get(answer, "question")),
                            cases[i].question);
        for (int32_t m = 0; cases[i].members[m]; m++)
            if (!json_object_get(answer, cases[i].members[m]))
                fail_msg("%s has no %s", cases[i].question, cases[i].members[m]);
        json_decref(answer);
    }
    assert_int_equal(access("f.svg", F_OK), 0);
    assert_int_equal(
        run("plan " HR_SOURCE "/presets/quickstart.yaml --frontier%s", SANITIZED_BUDGET), HR_OK);
    assert_non_null(strstr(out, "\n    tokens/s\n"));
    assert_non_null(strstr(out, " process memory, log scale "));
    assert_int_equal(run("plan tiny.yaml --json --largest model.d_ff --budget 1"), HR_NO_FIT);
    json_t *answer = out_json();
    assert_true(json_is_false(json_object_get(answer, "fits")));
    assert_true(json_is_null(json_object_get(answer, "plan")));
    json_decref(answer);
}

/* No line is wider than the table of the peak; queries have one column of sizes. */
static void tables_are_aligned_and_within_104_columns(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const char *const presets[] = { "needle-70m", "pythia-70m", "quickstart" };
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        assert_int_equal(run("plan " HR_SOURCE "/presets/%s.yaml%s", presets[i], SANITIZED_BUDGET),
                         HR_OK);
        int32_t lines = 0;
        for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"), lines++) {
            size_t columns = 0;
            for (const char *at = line; *at; at++) columns += ((unsigned char)*at & 0xc0) != 0x80;
            if (columns > 104) fail_msg("%zu columns: %s", columns, line);
        }
        assert_true(lines > 10);
    }
    static const char *const keys[] = { "train.seq_len", "train.schedule.warmup_steps" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(run("plan tiny.yaml --budget 500MiB --largest %s", keys[i]), HR_OK);
        ptrdiff_t column = -1;
        int32_t sizes = 0;
        const char *end = strstr(out, "\n\n");
        for (const char *at = out; (at = strstr(at, " MiB\n")) && at < end; at++, sizes++) {
            const char *start = at;
            while (start[-1] != '\n') start--;
            if (column >= 0) assert_int_equal(at - start, column);
            column = at - start;
        }
        assert_true(sizes >= 2);
    }
}

/* Warned once per name, in the order of the table; the plan is that of the new name. */
static void a_deprecated_key_name_is_accepted_with_a_warning(void **state)
{
    (void)state;
    require_program();
    static char now[PROGRAM_TEXT_BYTES];
    put("tiny.yaml", tiny);
    put("old.yaml", tiny);
    assert_int_equal(system("printf 'train.average: 0.9\\n' >>old.yaml"), 0);
    assert_int_equal(run("plan tiny.yaml train.dtype=bf16 train.ema_decay=0.9"), HR_OK);
    assert_string_equal(err, "");
    snprintf(now, sizeof now, "%s", out);
    assert_int_equal(run("plan old.yaml train.format=bf16 train.format=bf16"), HR_OK);
    assert_string_equal(err, "headroom: train.average is deprecated: use train.ema_decay\n"
                             "headroom: train.format is deprecated: use train.dtype\n");
    assert_string_equal(out, now);
}

static void a_plan_in_json_has_its_parts_and_bounds(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const char *const lists[] = { "process", "phases", "at_peak", "largest" };
    assert_int_equal(run("plan tiny.yaml --json"), HR_OK);
    json_t *answer = out_json();
    int64_t bytes[4];
    static const char *const packed[] = { "arena_bytes", "bound_bytes", "floor_bytes",
                                          "gap_bytes" };
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        const json_t *number = json_object_get(answer, packed[i]);
        assert_true(json_is_integer(number));
        bytes[i] = json_integer_value(number);
    }
    assert_true(bytes[0] >= bytes[1] && bytes[1] >= bytes[2] && bytes[2] > 0);
    assert_int_equal(bytes[3], bytes[0] - bytes[1]);
    const json_t *why = json_object_get(answer, "why");
    assert_true(json_is_object(why));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_true(json_array_size(json_object_get(why, lists[i])) > 0);
    int64_t sum = 0;
    size_t index;
    json_t *line;
    json_array_foreach(json_object_get(why, "process"), index, line)
        sum += json_integer_value(json_object_get(line, "bytes"));
    assert_int_equal(sum, json_integer_value(json_object_get(answer, "process_bytes")));
    json_decref(answer);
}

/* A path that is too long, a file in place of a directory, or a directory in place of the
 * calibration does not stop a plan: it says that its times are estimates. */
static void a_cache_that_cannot_be_read_does_not_stop_a_plan(void **state)
{
    (void)state;
    require_program();
    char command[PROGRAM_COMMAND_BYTES];
    put("tiny.yaml", tiny);
    static const char *const values[] = { "/nonexistent", "\"$PWD/tiny.yaml\"", "relative",
                                          "/$(printf '%02000d' 0)", "" };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(command, sizeof command,
                 "XDG_CACHE_HOME=%s HOME= \"$HEADROOM\" plan tiny.yaml --json >out.txt 2>err.txt",
                 values[i]);
        assert_int_equal(system(command), 0);
        get("out.txt", out);
        json_t *answer = out_json();
        assert_non_null(strstr(json_string_value(json_object_get(answer, "times")), "estimated"));
        json_decref(answer);
    }
}

static void a_plan_file_is_verified_and_an_overlap_is_exit_4(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("plan tiny.yaml --out plan.json"), HR_OK);
    assert_int_equal(run("verify plan.json"), HR_OK);
    assert_int_equal(run("verify plan.json --json"), HR_OK);
    json_decref(out_json());
    json_t *plan = json_load_file("plan.json", 0, NULL);
    assert_non_null(plan);
    size_t index;
    json_t *buffer;
    json_array_foreach(json_object_get(plan, "buffers"), index, buffer)
        json_object_set_new(buffer, "offset", json_integer(0));
    assert_int_equal(json_dump_file(plan, "broken.json", 0), 0);
    json_decref(plan);
    assert_int_equal(run("verify broken.json"), HR_BROKEN);
    assert_int_equal(run("verify '%s/README.md'", HR_SOURCE), HR_CORRUPT);
    assert_int_equal(run("verify tiny.yaml"), HR_USAGE); /* a recipe is for prove */
    assert_int_equal(run("verify none.json"), HR_USAGE);
}

static void verify_prints_the_bytes_and_floor_of_each_space(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("verify '%s/tests/fuzz/plans/file.json'", HR_SOURCE), HR_OK);
    assert_non_null(strstr(out,
                           "\n  file     8,192 bytes (8.0 KiB); floor 8,192 bytes (8.0 KiB), 0 "
                           "bytes below\n"));
    assert_int_equal(run("verify '%s/tests/fuzz/plans/file.json' --json", HR_SOURCE), HR_OK);
    json_t *answer = out_json(), *spaces = json_object_get(answer, "spaces");
    assert_int_equal(json_array_size(spaces), 1);
    const char *name = "";
    json_int_t bytes = 0, floor = 0, gap = -1;
    assert_int_equal(json_unpack(json_array_get(spaces, 0), "{ss sI sI sI}", "name", &name, "bytes",
                                 &bytes, "floor_bytes", &floor, "gap_bytes", &gap),
                     0);
    assert_string_equal(name, "file");
    assert_int_equal(bytes, 8192);
    assert_int_equal(floor, 8192);
    assert_int_equal(gap, 0);
    json_decref(answer);
}

/* Checked before planning: with an impossible budget, the path is still the error. */
static void only_regular_files_are_replaced(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    put("rows.csv", "id,lower,upper,size\n0,0,1,64\n");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(symlink("tiny.yaml", "link"), 0);
    assert_int_equal(symlink("/dev/full", "far"), 0);
    static const char *const words[] = { "plan tiny.yaml --budget 1 --out",
                                         "plan tiny.yaml --budget 1 --frontier --svg",
                                         "pack rows.csv --out" };
    static const char *const places[] = { "pipe",      "link",     "far",           ".",
                                          "/dev/full", "none/new", "tiny.yaml/new", "''" };
    static const char *const reasons[] = { "pipe: is a device or a pipe, a file cannot be",
                                           "link: is a symbolic link, a file cannot be",
                                           "far: is a",
                                           ".: is a directory, a file cannot be",
                                           "/dev/full: is a device or a pipe, a file cannot be",
                                           "none: no such directory; create it, or give",
                                           "tiny.yaml: is a file, a directo",
                                           "\"\" is not a file name" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct stat there;
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            assert_int_equal(run("%s %s", words[i], places[j]), HR_USAGE);
            if (!strstr(err, reasons[j])) fail_msg("%s %s: %s", words[i], places[j], err);
            assert_string_equal(out, "");
        }
        assert_int_equal(stat("pipe", &there), 0);
        assert_true(S_ISFIFO(there.st_mode));
        assert_int_equal(lstat("link", &there), 0);
        assert_true(S_ISLNK(there.st_mode));
        assert_int_equal(stat("/dev/full", &there), 0);
        assert_true(S_ISCHR(there.st_mode));
    }
    assert_int_equal(run("plan tiny.yaml --budget 1 --out new"), HR_NO_FIT);
    assert_int_equal(access("new", F_OK), -1);
    for (int32_t twice = 0; twice < 2; twice++) {
        assert_int_equal(run("plan tiny.yaml --out new.json"), HR_OK);
        assert_int_equal(run("pack rows.csv --out new.csv"), HR_OK);
    }
}

/* Input files, weights and other texts are never overwritten, only an earlier file of the same
 * kind. */
static void files_of_another_kind_are_not_replaced(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("notes.txt", "not to be lost\n");
    put("rows.csv", "id,lower,upper,size\n0,0,1,64\n");
    put("empty", "");
    assert_int_equal(run("train tiny.yaml data.train=text.txt --out m"), HR_OK);
    static const struct {
        const char *words, *place, *kind;
    } cases[] = {
        { "plan tiny.yaml --out", "tiny.yaml", "plan" },
        { "plan tiny.yaml data.train=text.txt --out", "text.txt", "plan" },
        { "plan tiny.yaml --out", "m/config.json", "plan" },
        { "plan tiny.yaml --out", "m/model.safetensors", "plan" },
        { "plan tiny.yaml --out", "rows.csv", "plan" },
        { "plan tiny.yaml --frontier --svg", "notes.txt", "drawing" },
        { "plan tiny.yaml --frontier --svg", "tiny.yaml", "drawing" },
        { "pack rows.csv --out", "rows.csv", "file of rows with offsets" },
        { "pack rows.csv --out", "notes.txt", "file of rows with offsets" },
        { "tokenize train text.txt --vocab-size 300 --out", "t/tokenizer.json", "tokenizer.json" },
        { "tokenize train text.txt --vocab-size 300 --out", "t/merges.txt", "merges.txt" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[160], command[160], place[32];
        const bool folder = *cases[i].place == 't' && cases[i].place[1] == '/';
        if (folder) assert_int_equal(system("rm -rf t && mkdir t"), 0);
        if (folder) put(cases[i].place, "mine\n");
        snprintf(place, sizeof place, "%s", folder ? "t" : cases[i].place);
        snprintf(command, sizeof command, "cp %s kept", cases[i].place);
        assert_int_equal(system(command), 0);
        assert_int_equal(run("%s %s", cases[i].words, place), HR_USAGE);
        snprintf(said, sizeof said, "%s: exists and is not a %s; give another path", cases[i].place,
                 cases[i].kind);
        assert_said(said);
        snprintf(command, sizeof command, "cmp %s kept", cases[i].place);
        assert_int_equal(system(command), 0);
    }
    assert_int_equal(run("plan tiny.yaml --out empty"), HR_OK);
    for (int32_t twice = 0; twice < 2; twice++)
        assert_int_equal(run("plan tiny.yaml --frontier --svg f.svg"), HR_OK);
}

static void without_memory_for_planning_the_run_does_not_fit(void **state)
{
    (void)state;
    require_program();
    if (HR_ADDRESS_SANITIZER || HR_THREAD_SANITIZER)
        hr_test_skip("no-sanitizer", "a sanitizer has memory of its own");
    for (int32_t json = 0; json < 2; json++) {
        char command[PROGRAM_COMMAND_BYTES];
        snprintf(command, sizeof command,
                 "ulimit -v 14000; \"$HEADROOM\" plan " HR_SOURCE "/presets/needle-70m.yaml %s "
                 ">out.txt 2>err.txt",
                 json ? "--json" : "");
        const int status = system(command);
        get("out.txt", out);
        get("err.txt", err);
        assert_int_equal(WEXITSTATUS(status), HR_NO_FIT);
        assert_non_null(strstr(err, "headroom: planning: needs "));
        assert_non_null(strstr(
            err, " the address space (ulimit -v); free some memory; no budget reduces this\n"));
        assert_string_equal(out, json ? "{\n  \"fits\": false\n}\n" : "");
    }
}

/* Returns true when a process handles a signal; false also when it does not exist. */
static bool catches(pid_t process, int number)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigCgt: %llx", &caught) == 1) break;
    if (file) fclose(file);
    return caught >> (number - 1) & 1;
}

/* A query that takes at least a second, with a signal right after its start. */
static void a_signal_ends_planning_with_its_exit_code_and_no_output(void **state)
{
    (void)state;
    require_program();
    static const int numbers[] = { SIGINT, SIGTERM };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGINT, SIG_DFL);
            signal(SIGTERM, SIG_DFL);
            if (!freopen("out.txt", "w", stdout) || !freopen("err.txt", "w", stderr)) _exit(126);
            execl(getenv("HEADROOM"), "headroom", "plan", HR_SOURCE "/presets/needle-70m.yaml",
                  "--frontier", "--svg", "f.svg", (char *)0);
            _exit(127);
        }
        while (!catches(child, numbers[i]) && waitpid(child, &status, WNOHANG) == 0) continue;
        assert_int_equal(kill(child, numbers[i]), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        get("out.txt", out);
        get("err.txt", err);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + numbers[i]);
        assert_said("interrupted; nothing was saved");
        assert_string_equal(out, "");
        assert_int_equal(system("ls | grep svg >left.txt"), 256);
    }
}

/* Floating-point operations and picoseconds of a step exceed 64 bits, and the arena 32 TiB. */
static void a_405b_model_with_a_million_tokens_is_planned_and_its_file_is_valid(void **state)
{
    static const char shape[] = "model.n_layers=126 model.d_model=16384 model.n_heads=128 "
                                "model.n_kv_heads=8 model.head_dim=128 model.d_ff=53248 "
                                "model.tie_embeddings=false train.batch=8";
    static const int64_t lengths[] = { 1048576, 1048575 };
    (void)state;
    require_program();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(run("plan " HR_SOURCE "/presets/llama-3.2-1b.yaml %s train.seq_len=%lld "
                             "--budget 8192TiB --json --out p.json",
                             shape, (long long)lengths[i]),
                         HR_OK);
        json_t *answer = out_json();
        const double seconds = json_real_value(json_object_get(answer, "step_seconds_predicted"));
        const double flops = (double)json_integer_value(json_object_get(answer, "flops_per_token"));
        assert_int_equal(json_integer_value(json_object_get(answer, "parameters")), 405853388800);
        assert_true(flops > 1.5e13 && flops < 1.6e13);
        /* Beyond 2^63 picoseconds, and above what any two threads can do. */
        assert_true(seconds > flops * 8 * (double)lengths[i] / 1e14 && seconds > 9.3e6);
        json_decref(answer);
        assert_int_equal(run("verify p.json"), HR_OK);
    }
}

static void a_pattern_says_how_much_it_skips(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *line;
    } cases[] = {
        { "train.seq_len=128 model.attention.pattern=local",
          "  attention local, window 1: keeps 100 % of the causal blocks at 128 tokens: no "
          "saving\n" },
        { "train.seq_len=256 model.attention.pattern=local",
          "  attention local, window 1: keeps 70.0 % of the causal blocks at 256 tokens\n" },
        { "train.seq_len=1024 model.attention.pattern=global",
          "  attention global, stride 2: keeps 58.8 % of the causal blocks at 1,024 tokens\n" },
        { "train.seq_len=1024 model.attention.pattern=mixed",
          "  attention mixed, window 1, stride 4: keeps 46.3 % of the causal blocks at 1,024 "
          "tokens\n" },
        { "model.family=qwen2 train.seq_len=128 model.attention.sliding_window=16 "
          "model.n_layers=4 'model.attention.layer_types=full sliding'",
          "  sliding window of 16 tokens in 2 of 4 layers: keeps 23.4 % of the causal pairs at 128 "
          "tokens\n" },
    };
    put_tiny_and_text();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("plan tiny.yaml %s", cases[i].arguments), HR_OK);
        if (!strstr(out, cases[i].line)) fail_msg("%s", out);
    }
    assert_int_equal(run("plan tiny.yaml"), HR_OK);
    assert_null(strstr(out, "keeps"));
    assert_int_equal(run("plan tiny.yaml --json %s", cases[1].arguments), HR_OK);
    json_t *plan = out_json();
    assert_int_equal(json_integer_value(json_object_get(plan, "attention_kept")), 7);
    assert_int_equal(json_integer_value(json_object_get(plan, "attention_causal")), 10);
    json_decref(plan);
}

static void without_text_for_it_no_evaluation_is_planned(void **state)
{
    (void)state;
    put_tiny_and_text();
    assert_int_equal(run("plan tiny.yaml data.train=text.txt"), HR_OK);
    assert_null(strstr(out, "on data.valid"));
    assert_int_equal(run("plan tiny.yaml data.train=text.txt data.valid=5%%"), HR_OK);
    assert_non_null(strstr(out, "on data.valid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_pattern_says_how_much_it_skips),
        IN_A_FOLDER(two_plans_of_one_recipe_are_byte_identical),
        IN_A_FOLDER(the_smallest_plan_fits_and_a_page_less_does_not),
        IN_A_FOLDER(queries_print_text_and_json),
        IN_A_FOLDER(tables_are_aligned_and_within_104_columns),
        IN_A_FOLDER(without_text_for_it_no_evaluation_is_planned),
        IN_A_FOLDER(a_deprecated_key_name_is_accepted_with_a_warning),
        IN_A_FOLDER(a_plan_in_json_has_its_parts_and_bounds),
        IN_A_FOLDER(a_cache_that_cannot_be_read_does_not_stop_a_plan),
        IN_A_FOLDER(a_plan_file_is_verified_and_an_overlap_is_exit_4),
        IN_A_FOLDER(verify_prints_the_bytes_and_floor_of_each_space),
        IN_A_FOLDER(only_regular_files_are_replaced),
        IN_A_FOLDER(files_of_another_kind_are_not_replaced),
        IN_A_FOLDER(without_memory_for_planning_the_run_does_not_fit),
        IN_A_FOLDER(a_405b_model_with_a_million_tokens_is_planned_and_its_file_is_valid),
        IN_A_FOLDER(a_signal_ends_planning_with_its_exit_code_and_no_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
