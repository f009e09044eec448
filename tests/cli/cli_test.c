/* SPDX-License-Identifier: Apache-2.0 */
/* The program as people and scripts meet it: run with /bin/sh, its exit code and words read back.
 * HEADROOM names the program; without it every test is skipped. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "headroom/config.h"
#include "headroom/version.h"

enum { TEXT_BYTES = 1 << 18, COMMAND_BYTES = 4096 };

static char folder[64];
static char out[TEXT_BYTES], err[TEXT_BYTES]; /* of the last run */

/* A model so small that a plan takes a millisecond and a run a blink. */
static const char tiny[] = "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32}\n"
                           "train: {batch: 4, seq_len: 16, steps: 3, threads: 1}\n";

static int make_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/cli_XXXXXX", parent ? parent : P_tmpdir);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void get(const char *name, char *text)
{
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, TEXT_BYTES - 1, file);
    text[length] = 0;
    fclose(file);
}

static void require_program(void)
{
    if (getenv("HEADROOM")) return;
    print_message("skip: HEADROOM is not set\n");
    skip();
}

/* Runs `headroom <arguments>` in the folder; returns its exit code. */
static int run(const char *format, ...)
{
    char arguments[COMMAND_BYTES - 64], command[COMMAND_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "\"$HEADROOM\" %s >out.txt 2>err.txt", arguments);
    const int status = system(command);
    get("out.txt", out);
    get("err.txt", err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static json_t *out_json(void)
{
    json_error_t problem;
    json_t *value = json_loads(out, 0, &problem);
    if (!value) fail_msg("%s in: %s", problem.text, out);
    return value;
}

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

static const char *const commands[] = { "plan", "verify", "train", "pack",   "calibrate",
                                        "keys", "doctor", "help",  "version" };
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void alone_it_prints_a_short_help(void **state)
{
    (void)state;
    require_program();
    static const char *const words[] = { "", "help", "--help", "-h" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(run("%s", words[i]), HR_OK);
        assert_string_equal(err, "");
        for (int32_t j = 0; j < COMMAND_COUNT; j++) assert_non_null(strstr(out, commands[j]));
    }
}

static void manual_and_completion_have_what_every_help_lists(void **state)
{
    (void)state;
    require_program();
    static char manual[TEXT_BYTES], completion[TEXT_BYTES], help[TEXT_BYTES];
    assert_int_equal(run("help --man | sed 's/\\\\-/-/g'"), HR_OK);
    strcpy(manual, out);
    assert_int_equal(run("help --completion bash"), HR_OK);
    strcpy(completion, out);
    int32_t options = 0;
    for (int32_t i = 0; i < COMMAND_COUNT; i++) {
        assert_int_equal(run("%s --help", commands[i]), HR_OK);
        strcpy(help, out);
        assert_int_equal(run("help %s", commands[i]), HR_OK);
        assert_string_equal(out, help);
        assert_non_null(strstr(manual, commands[i]));
        assert_non_null(strstr(completion, commands[i]));
        for (const char *at = help; (at = strstr(at, "\n  --")); at += 5, options++) {
            char option[32];
            assert_int_equal(sscanf(at + 3, "%31s", option), 1);
            assert_non_null(strstr(manual, option));
            assert_non_null(strstr(completion, option));
        }
    }
    assert_true(options > 2 * COMMAND_COUNT);
    for (int32_t i = 0; hr_config_key(i); i++) {
        assert_non_null(strstr(manual, hr_config_key(i)->name));
        assert_non_null(strstr(completion, hr_config_key(i)->name));
    }
}

static void the_first_page_lists_every_command(void **state)
{
    (void)state;
    require_program();
    static char page[TEXT_BYTES];
    get(HR_SOURCE "/README.md", page);
    assert_int_equal(run("help"), HR_OK);
    int32_t count = 0;
    for (const char *at = out; (at = strstr(at, "\n  headroom ")); at++, count++) {
        char row[64], command[32];
        assert_int_equal(sscanf(at, " headroom %31s", command), 1);
        snprintf(row, sizeof row, "\n| `headroom %s", command);
        if (!strstr(page, row)) fail_msg("README.md has no row for %s", command);
    }
    assert_int_equal(count, COMMAND_COUNT);
}

static void the_completion_is_good_bash(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("help --completion bash | bash -n"), HR_OK);
    assert_string_equal(err, "");
    assert_int_equal(run("help --completion fish"), HR_USAGE);
    assert_string_equal(err, "headroom: --completion takes bash; it was given \"fish\"\n");
}

static void the_version_is_the_one_that_is_built(void **state)
{
    (void)state;
    require_program();
    static char lists[TEXT_BYTES];
    get(HR_SOURCE "/CMakeLists.txt", lists);
    assert_non_null(strstr(lists, "project(headroom VERSION " HR_VERSION " "));
    assert_int_equal(run("--version"), HR_OK);
    assert_string_equal(out, "headroom " HR_VERSION "\n");
}

static void a_wrong_word_is_answered_in_one_sentence_with_exit_2(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        { "paln", "\"paln\" is not a command; the nearest is plan (headroom help lists all)" },
        { "help trian",
          "\"trian\" is not a command; the nearest is train (headroom help lists all)" },
        { "plan", "plan needs RECIPE (headroom plan --help)" },
        { "verify", "verify needs FILE.json (headroom verify --help)" },
        { "plan tiny.yaml --bugdet 4",
          "--bugdet is not an option of plan; the nearest is --budget (headroom plan --help)" },
        { "plan tiny.yaml --bugdet=4",
          "--bugdet is not an option of plan; the nearest is --budget (headroom plan --help)" },
        { "plan tiny.yaml -o x",
          "-o is not an option of plan; the nearest is --out (headroom plan --help)" },
        { "keys --budget 4", "--budget is not an option of keys (headroom keys --help)" },
        { "--frobnicate", "\"--frobnicate\" is not a command (headroom help lists all)" },
        { "plan tiny.yaml --gpu", "--gpu is not an option of plan (headroom plan --help)" },
        { "plan tiny.yaml --budget", "--budget needs SIZE" },
        { "plan tiny.yaml --json=yes", "--json takes no value; it was given \"yes\"" },
        { "plan tiny.yaml --json --json", "--json is given twice" },
        { "plan tiny.yaml --json --program",
          "--program and --json both say what to print; give one" },
        { "plan tiny.yaml --largest train.seq_len --smallest",
          "--largest and --smallest ask for different things; give one" },
        { "plan tiny.yaml --frontier --program",
          "--frontier and --program ask for different things; give one" },
        { "plan tiny.yaml --largest train.seq_length",
          "\"train.seq_length\" is not a key; the nearest is train.seq_len (headroom keys lists "
          "all)" },
        { "plan tiny.yaml --largest model.dropout",
          "model.dropout takes a number from 0 to 0.999: the largest value is asked of keys that "
          "take a whole number" },
        { "plan tiny.yaml --slowdown 5%", "--slowdown belongs to --smallest" },
        { "plan tiny.yaml --svg f.svg", "--svg belongs to --frontier" },
        { "plan tiny.yaml --smallest --slowdown much",
          "--slowdown takes per cent from 0 to 1000000, such as 10%; it was given \"much\"" },
        { "plan tiny.yaml --smallest --slowdown nan",
          "--slowdown takes per cent from 0 to 1000000, such as 10%; it was given \"nan\"" },
        { "plan tiny.yaml --frontier --svg .",
          "--svg .: there is a directory, and a file is to be put there" },
        { "doctor please", "doctor takes no operands; \"please\" is one too many" },
        { "verify a b", "verify takes one operand; \"b\" is one too many" },
        { "plan tiny.yaml other.yaml",
          "\"other.yaml\" is not key=value; a command takes one recipe" },
        { "plan none.yaml", "the recipe none.yaml cannot be opened: No such file or directory" },
        { "plan .", ". is a directory; a recipe is a YAML file" },
        { "plan bad.yaml",
          "bad.yaml:2: \"train.bacth\" is not a key; the nearest is train.batch (headroom keys "
          "lists all)" },
        { "plan tiny.yaml train.bacth=4",
          "\"train.bacth\" is not a key; the nearest is train.batch (headroom keys lists all)" },
        { "plan tiny.yaml train.batch=",
          "train.batch takes a whole number from 1 to 16777216, in sequences; it was given \"\"" },
        { "plan tiny.yaml model.n_heads=3", "model.n_heads 3 does not divide model.d_model 16" },
        { "plan tiny.yaml --budget lots",
          "memory.budget takes a size such as 700MiB, 733MB or plain bytes, at most "
          "9007199254740992, or none; it was given \"lots\"" },
    };
    put("tiny.yaml", tiny);
    put("bad.yaml", "train:\n  bacth: 4\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[HR_ERROR_BYTES + 16];
        snprintf(expected, sizeof expected, "headroom: %s\n", cases[i].sentence);
        assert_int_equal(run("%s", cases[i].words), HR_USAGE);
        assert_string_equal(err, expected);
        assert_string_equal(out, "");
    }
}

static void output_that_does_not_arrive_is_a_failure(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const char *const words[] = { "keys",
                                         "keys --json",
                                         "help",
                                         "help --man",
                                         "doctor",
                                         "plan tiny.yaml",
                                         "plan tiny.yaml --json",
                                         "plan tiny.yaml --program" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char command[COMMAND_BYTES];
        snprintf(command, sizeof command, "\"$HEADROOM\" %s >/dev/full 2>err.txt", words[i]);
        const int status = system(command);
        assert_int_equal(WEXITSTATUS(status), HR_FAILURE);
        get("err.txt", err);
        assert_string_equal(err, "headroom: standard output cannot be written: No space left on "
                                 "device\n");
    }
}

static void what_is_no_file_is_not_replaced_by_one(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    put("rows.csv", "id,lower,upper,size\n0,0,1,64\n");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    static const char *const words[] = { "plan tiny.yaml --out", "pack rows.csv --out" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct stat there;
        assert_int_equal(run("%s pipe", words[i]), HR_USAGE);
        assert_string_equal(err, "headroom: --out pipe: there is a device or a pipe, and a file is "
                                 "to be put there\n");
        assert_int_equal(stat("pipe", &there), 0);
        assert_true(S_ISFIFO(there.st_mode));
        assert_int_equal(run("%s .", words[i]), HR_USAGE);
        assert_int_equal(run("%s new", words[i]), HR_OK);
        assert_int_equal(run("%s new", words[i]), HR_OK);
    }
}

static void keys_in_json_are_the_table(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("keys --json"), HR_OK);
    json_t *list = out_json();
    for (int32_t i = 0; hr_config_key(i); i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        const hr_key *key = hr_config_key(i);
        assert_string_equal(json_string_value(json_object_get(row, "name")), key->name);
        assert_string_equal(json_string_value(json_object_get(row, "text")), key->text);
        assert_null(hr_config_key((int32_t)json_array_size(list)));
    }
    json_decref(list);
    assert_int_equal(run("keys"), HR_OK);
    for (int32_t i = 0; hr_config_key(i); i++) assert_non_null(strstr(out, hr_config_key(i)->name));
}

static void the_doctor_names_the_kernels(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("doctor --json"), HR_OK);
    json_t *machine = out_json();
    const char *rung = json_string_value(json_object_get(machine, "rung"));
    assert_non_null(rung);
    assert_true(json_integer_value(json_object_get(machine, "memory_bytes")) > 0);
    assert_int_equal(run("doctor"), HR_OK);
    assert_non_null(strstr(out, rung));
    json_decref(machine);
}

/* With a budget: without one a plan says what the machine has left. */
static void two_plans_of_one_recipe_are_the_same_bytes(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static char first[TEXT_BYTES], file[TEXT_BYTES];
    assert_int_equal(run("plan tiny.yaml --budget 1GiB --out a.json"), HR_OK);
    strcpy(first, out);
    get("a.json", file);
    assert_int_equal(run("plan tiny.yaml --budget 1GiB --out b.json"), HR_OK);
    assert_string_equal(out, first);
    get("b.json", out);
    assert_string_equal(out, file);
}

static void the_minimum_fits_and_a_page_less_does_not(void **state)
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

/* Arguments, and the members that their answer has beside the name of the question. */
static void questions_are_answered_in_words_and_in_json(void **state)
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
          "the largest train.seq_len that fits is ",
          { "key", "fits", "outcome", "largest", "next", "next_multiple_of_64", "available_bytes",
            "plans_made", "plan" } },
        { "smallest",
          "--smallest --slowdown 5%",
          "the least that is at most 5 % slower than the fastest",
          { "slowdown", "least", "within", "fastest", "strategy_named", "times" } },
        { "frontier",
          "--frontier --svg f.svg",
          "what is given up",
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
    assert_int_equal(run("plan tiny.yaml --json --largest model.d_ff --budget 1"), HR_NO_FIT);
    json_t *answer = out_json();
    assert_true(json_is_false(json_object_get(answer, "fits")));
    assert_true(json_is_null(json_object_get(answer, "plan")));
    json_decref(answer);
}

static void a_plan_says_why_in_json(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    static const char *const lists[] = { "process", "phases", "at_peak", "largest" };
    assert_int_equal(run("plan tiny.yaml --json"), HR_OK);
    json_t *answer = out_json();
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

/* Neither a path too long, nor a file in the place of a directory, nor a folder in the place of the
 * calibration stops a plan: it says that its times are a guess. */
static void a_cache_that_cannot_be_read_does_not_stop_a_plan(void **state)
{
    (void)state;
    require_program();
    char command[COMMAND_BYTES];
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
        assert_non_null(strstr(json_string_value(json_object_get(answer, "times")), "a guess"));
        json_decref(answer);
    }
}

static void a_plan_file_is_judged_and_a_collision_is_exit_4(void **state)
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
    assert_int_equal(run("verify tiny.yaml"), HR_CORRUPT);
    assert_int_equal(run("verify none.json"), HR_USAGE);
}

static void a_run_ends_with_metrics_weights_and_its_promise(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("keys"), HR_OK);
    put("text.txt", out);
    assert_int_equal(run("train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                         "--metrics m.jsonl train.sample_tokens=8"),
                     HR_OK);
    assert_string_equal(err, "");
    assert_non_null(strstr(out, "\nmemory planned "));
    assert_int_equal(access("run/model.safetensors", F_OK), 0);
    FILE *metrics = fopen("m.jsonl", "r");
    char line[1024];
    int32_t lines = 0;
    assert_non_null(metrics);
    while (fgets(line, sizeof line, metrics)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        const char *const name = lines < 3 ? "step" : "process_bytes_measured";
        assert_non_null(json_object_get(object, name));
        json_decref(object);
        lines++;
    }
    fclose(metrics);
    assert_int_equal(lines, 4);
}

static void a_run_without_its_text_or_place_is_exit_2(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    put("text.txt", "too short");
    assert_int_equal(run("train tiny.yaml --out run"), HR_USAGE);
    assert_int_equal(run("train tiny.yaml --out run data.train=none.txt"), HR_USAGE);
    assert_non_null(strstr(err, "none.txt"));
    assert_int_equal(run("train tiny.yaml --out run data.train=."), HR_USAGE);
    assert_int_equal(run("train tiny.yaml --out tiny.yaml data.train=text.txt"), HR_USAGE);
    assert_int_equal(run("train tiny.yaml --out run data.train=text.txt"), HR_CORRUPT);
    assert_int_equal(run("train tiny.yaml --out run data.train=text.txt --budget 1"), HR_NO_FIT);
}

static void a_loss_that_is_no_number_is_called_nan(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("keys"), HR_OK);
    put("text.txt", out);
    static const char train[] = "train tiny.yaml data.train=text.txt data.valid=text.txt --out run "
                                "train.optimizer.lr=1000 train.optimizer.weight_decay=1000 "
                                "train.eval_every=1 --metrics m.jsonl";
    assert_int_equal(run(train), HR_DIVERGED);
    assert_non_null(strstr(out, "validation loss nan over"));
    assert_non_null(strstr(err, ": the loss is nan and the gradient's norm nan; try"));
}

/* Past a limit of 40 blocks of 512 bytes (of 1,024 in some shells): the shard fits, the weights do
 * not. */
static void a_file_too_large_for_ulimit_is_a_failure_and_leaves_nothing(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    put("text.txt", tiny);
    const int status = system("ulimit -f 40 && \"$HEADROOM\" train tiny.yaml data.train=text.txt "
                              "--out run model.d_ff=512 train.steps=1 >out.txt 2>err.txt");
    get("err.txt", err);
    assert_int_equal(WEXITSTATUS(status), HR_FAILURE);
    assert_non_null(strstr(err, "model.safetensors"));
    assert_non_null(strstr(err, "File too large"));
    assert_int_equal(system("ls run | grep -v tokens >left.txt"), 256);
}

static void an_interrupted_run_saves_and_is_exit_75(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("keys"), HR_OK);
    put("text.txt", out);
    /* The shell's child is the program itself, so that $! is its number. */
    FILE *program = popen("exec \"$HEADROOM\" train tiny.yaml data.train=text.txt --out run "
                          "train.steps=1000000000 & echo $!; wait $!; echo code $?",
                          "r");
    assert_non_null(program);
    char line[1024], last[1024] = "";
    int number = 0;
    assert_non_null(fgets(line, sizeof line, program));
    assert_int_equal(sscanf(line, "%d", &number), 1);
    while (fgets(line, sizeof line, program)) {
        if (!strncmp(line, "step 1/", 7)) assert_int_equal(kill(number, SIGINT), 0);
        memcpy(last, line, sizeof last);
    }
    pclose(program);
    assert_string_equal(last, "code 75\n");
    assert_int_equal(access("run/model.safetensors", F_OK), 0);
}

/* The signal comes when the text is ready, and then a large table is still to be initialised: so
 * almost surely before the first step. Then there is nothing to say of the memory. */
static void a_run_that_was_interrupted_early_says_one_sentence(void **state)
{
    (void)state;
    require_program();
    put("tiny.yaml", tiny);
    assert_int_equal(run("keys"), HR_OK);
    put("text.txt", out);
    FILE *program = popen("exec \"$HEADROOM\" train tiny.yaml data.train=text.txt --out run "
                          "model.vocab_size=100000 2>err.txt & echo $!; wait $!; echo code $?",
                          "r");
    assert_non_null(program);
    char line[1024], last[1024] = "";
    int number = 0;
    bool memory = false;
    assert_non_null(fgets(line, sizeof line, program));
    assert_int_equal(sscanf(line, "%d", &number), 1);
    while (fgets(line, sizeof line, program)) {
        if (!strncmp(line, "train  ", 7)) assert_int_equal(kill(number, SIGINT), 0);
        memory = memory || !strncmp(line, "memory planned", 14);
        memcpy(last, line, sizeof last);
    }
    pclose(program);
    get("err.txt", err);
    const bool early = !strcmp(err,
                               "headroom: interrupted before the first step; nothing was saved\n");
    if (!early) print_message("the signal came late: %s", err);
    assert_string_equal(last, early ? "code 130\n" : "code 75\n");
    assert_true(memory != early);
}

#define IN_A_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(alone_it_prints_a_short_help),
        IN_A_FOLDER(manual_and_completion_have_what_every_help_lists),
        IN_A_FOLDER(the_first_page_lists_every_command),
        IN_A_FOLDER(the_completion_is_good_bash),
        IN_A_FOLDER(the_version_is_the_one_that_is_built),
        IN_A_FOLDER(a_wrong_word_is_answered_in_one_sentence_with_exit_2),
        IN_A_FOLDER(output_that_does_not_arrive_is_a_failure),
        IN_A_FOLDER(what_is_no_file_is_not_replaced_by_one),
        IN_A_FOLDER(keys_in_json_are_the_table),
        IN_A_FOLDER(the_doctor_names_the_kernels),
        IN_A_FOLDER(two_plans_of_one_recipe_are_the_same_bytes),
        IN_A_FOLDER(the_minimum_fits_and_a_page_less_does_not),
        IN_A_FOLDER(questions_are_answered_in_words_and_in_json),
        IN_A_FOLDER(a_plan_says_why_in_json),
        IN_A_FOLDER(a_cache_that_cannot_be_read_does_not_stop_a_plan),
        IN_A_FOLDER(a_plan_file_is_judged_and_a_collision_is_exit_4),
        IN_A_FOLDER(a_run_ends_with_metrics_weights_and_its_promise),
        IN_A_FOLDER(a_run_without_its_text_or_place_is_exit_2),
        IN_A_FOLDER(a_loss_that_is_no_number_is_called_nan),
        IN_A_FOLDER(a_file_too_large_for_ulimit_is_a_failure_and_leaves_nothing),
        IN_A_FOLDER(an_interrupted_run_saves_and_is_exit_75),
        IN_A_FOLDER(a_run_that_was_interrupted_early_says_one_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
