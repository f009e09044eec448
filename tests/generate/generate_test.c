/* SPDX-License-Identifier: Apache-2.0 */
/* generate_test.c - the program continues texts: like transformers; like the model without a cache;
 * with the same result for all chunks, threads and budgets; and its errors. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/ioctl.h>

#include "config/config.h"
#include "headroom/generate.h"
#include "mem/process.h"
#include "model/family.h"
#include "support/child.h"
#include "support/folder.h"
#include "support/oracle.h"

enum { T = 64, PROMPT = 16, SAMPLE = 40, SAID_BYTES = 1 << 16 };

static hr_folder folder;
static char said[SAID_BYTES]; /* standard output and standard error */

/* Runs the program in the directory; returns its exit code. */
static int run(const char *arguments)
{
    char command[4096];
    snprintf(command, sizeof command, "cd %s && \"$HEADROOM\" generate %s 2>&1", folder.path,
             arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    said[fread(said, 1, sizeof said - 1, out)] = 0;
    return WEXITSTATUS(pclose(out));
}

/* The answer and its figures; every run stays within its plan. */
static json_t *answer_of(const char *arguments)
{
    char all[3000];
    snprintf(all, sizeof all, "%s --json", arguments);
    const int code = run(all);
    json_t *answer = json_loads(said, 0, 0);
    if (code != 0 || !answer) fail_msg("%s: %d: %s", all, code, said);
    const json_int_t planned = json_integer_value(json_object_get(answer, "process_bytes_planned"));
    const json_int_t used = json_integer_value(json_object_get(answer, "process_bytes_measured"));
    assert_int_equal(json_integer_value(json_object_get(answer, "arena_bytes_used")),
                     json_integer_value(json_object_get(answer, "arena_bytes_planned")));
    if (!hr_process_is_exact()) return answer;
    assert_true(used <= planned && planned - used <= 4 << 20);
    return answer;
}

static void ids_are(const json_t *answer, const json_t *want)
{
    const json_t *got = json_object_get(answer, "ids");
    assert_true(json_array_size(want) > 0);
    assert_int_equal(json_array_size(got), json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++)
        assert_int_equal(json_integer_value(json_array_get(got, i)),
                         json_integer_value(json_array_get(want, i)));
}

/* ---- compared with transformers */

static void greedy_answers_equal_those_of_transformers(void **state)
{
    static const char *const models[] = { "gpt_neox",   "gpt2",    "llama_gqa",
                                          "qwen3_tied", "gpt_neo", "qwen2_mixed" };
    static const char *const rungs[] = { "ref", "auto" };
    (void)state;
    for (int32_t m = 0; m < 12; m++) {
        char path[600], list[200], arguments[900];
        int32_t used = 0;
        snprintf(path, sizeof path, HR_ORACLES "/hf/%s/golden.json", models[m / 2]);
        json_t *golden = json_load_file(path, 0, 0);
        assert_non_null(golden);
        const json_t *greedy = json_object_get(golden, "greedy"), *id;
        size_t i;
        json_array_foreach(json_object_get(greedy, "prompt"), i, id)
            used += snprintf(list + used, sizeof list - (size_t)used, "%s%d", i ? "," : "",
                             (int)json_integer_value(id));
        snprintf(arguments, sizeof arguments,
                 HR_ORACLES "/hf/%s --prompt-ids %s --print-ids --temperature 0 "
                            "--max-tokens 16 --chunk %d --kernels %s",
                 models[m / 2], list, m % 2 ? 3 : 8, rungs[m % 2]);
        json_t *answer = answer_of(arguments);
        ids_are(answer, json_object_get(greedy, "tokens"));
        json_decref(answer);
        json_decref(golden);
    }
}

/* ---- compared with the model without a cache */

/* Sets sparse attention whose blocks are not all selected. */
static void select_keys(hr_config *config, const char *branches, bool own_keys)
{
    config->model.attention.kind = HR_ATTENTION_NSA;
    snprintf(config->model.attention.nsa.branches, sizeof config->model.attention.nsa.branches,
             "%s", branches);
    config->model.attention.nsa.own_keys = own_keys;
    config->model.attention.nsa.compress_block = 8;
    config->model.attention.nsa.compress_stride = 4;
    config->model.attention.nsa.select_block = 8;
    config->model.attention.nsa.select_count = 3;
    config->model.attention.nsa.select_local = 1;
    config->model.attention.nsa.window = 5;
}

/* Trains a model of the family in folder/out, with this limit of positions (0: the window), and
 * returns the sample of its last step, computed from whole windows.
 *
 *   branches  of sparse attention; null: dense attention */
static const child_outcome *trained_as(int32_t family, int32_t format, int64_t positions,
                                       const char *text, const char *branches, bool own_keys)
{
    hr_config config;
    hr_config_default(&config);
    if (branches) select_keys(&config, branches, own_keys);
    config.model.family = family;
    config.model.d_model = 32;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.d_ff = 64;
    config.model.positions = positions;
    const uint32_t traits = hr_family_of(&config)->traits;
    if (traits & HR_READS_GROUPS) config.model.n_kv_heads = 1;
    if (family == HR_FAMILY_MISTRAL && !branches) config.model.attention.sliding_window = 19;
    config.train.dtype = format;
    config.train.batch = 4;
    config.train.seq_len = T;
    config.train.steps = 40;
    config.train.threads = 2;
    config.train.optimizer.lr = 0.01;
    config.train.sample_tokens = SAMPLE;
    config.train.sample_temperature = 0;
    snprintf(config.data.train, sizeof config.data.train, "%s/%s", folder.path, text);
    snprintf(config.train.out, sizeof config.train.out, "%s/out", folder.path);
    const child_outcome *run = child_run(&config, (child_wishes){ 0 });
    if (run->status != HR_OK) fail_msg("%s", run->err.message);
    assert_int_equal(run->sample_bytes, PROMPT + SAMPLE);
    return run;
}

static const child_outcome *trained_for(int32_t family, int32_t format, int64_t positions,
                                        const char *text)
{
    return trained_as(family, format, positions, text, NULL, false);
}

static const child_outcome *trained(int32_t family, int32_t format)
{
    return trained_for(family, format, 0, "text");
}

static void drop_model(void)
{
    hr_folder out;
    snprintf(out.path, sizeof out.path, "%.200s/out", folder.path);
    hr_folder_close(&out);
}

/* The answers of the model in folder/out are the sample that training made without a cache. */
static void answers_are(const child_outcome *trained_run, int32_t format)
{
    static const char *const cuts[] = { "", "--chunk 1 --threads 1", "--chunk 5", "--chunk 16" };
    hr_folder_write(hr_folder_path(&folder, "prompt"), trained_run->sample, PROMPT);
    json_t *want = json_array();
    for (int32_t i = 0; i < SAMPLE; i++) {
        const unsigned char byte = (unsigned char)trained_run->sample[PROMPT + i];
        json_array_append_new(want, json_integer(byte));
    }
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments,
                 "out --file prompt --print-ids --temperature 0 --max-tokens %d --dtype %s %s",
                 SAMPLE, format ? "bf16" : "fp32", cuts[c]);
        json_t *answer = answer_of(arguments);
        ids_are(answer, want);
        json_decref(answer);
    }
    json_decref(want);
    drop_model();
}

static void the_cache_changes_no_token(void **state)
{
    (void)state;
    for (int32_t k = 0; k < 2 * HR_FAMILIES; k++) answers_are(trained(k / 2, k % 2), k % 2);
}

static void caches_of_sparse_attention_change_no_token(void **state)
{
    static const struct {
        int32_t family;
        const char *branches;
        bool own_keys;
    } models[] = { { HR_FAMILY_LLAMA, "compressed, selected, window", false },
                   { HR_FAMILY_QWEN3, "selected, window", false },
                   { HR_FAMILY_MISTRAL, "compressed, selected, window", true },
                   { HR_FAMILY_QWEN2, "selected, window", true } };
    (void)state;
    for (int32_t k = 0; k < 8; k++)
        answers_are(trained_as(models[k / 2].family, k % 2, 0, "text", models[k / 2].branches,
                               models[k / 2].own_keys),
                    k % 2);
}

/* ---- text, stops and bytes */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static void answers_are_text_that_ends_where_it_should(void **state)
{
    (void)state;
    char arguments[300], stop[4] = { 0 };
    trained_for(HR_FAMILY_LLAMA, 0, 2 * T, "text");
    json_t *whole = answer_of("out --prompt 'the red ' --seed 5 --max-tokens 60");
    const char *text = json_string_value(json_object_get(whole, "text"));
    assert_non_null(text);
    assert_string_equal(json_string_value(json_object_get(whole, "end")), "tokens");
    assert_int_equal(json_integer_value(json_object_get(whole, "tokens")), 60);
    json_t *again = answer_of("out --prompt 'the red ' --seed 5 --max-tokens 60 --chunk 3");
    assert_string_equal(json_string_value(json_object_get(again, "text")), text);
    json_t *other = answer_of("out --prompt 'the red ' --seed 6 --max-tokens 60");
    assert_string_not_equal(json_string_value(json_object_get(other, "text")), text);

    int32_t at = 5; /* three letters of it without shell characters */
    while (at < 50 && !(is_letter(text[at]) && is_letter(text[at + 1]) && is_letter(text[at + 2])))
        at++;
    assert_true(at < 50);
    memcpy(stop, text + at, 3);
    snprintf(arguments, sizeof arguments,
             "out --prompt 'the red ' --seed 5 --max-tokens 60 --stop '%s'", stop);
    json_t *cut = answer_of(arguments);
    const char *before = json_string_value(json_object_get(cut, "text"));
    assert_string_equal(json_string_value(json_object_get(cut, "end")), "stop");
    assert_int_equal(strlen(before), strstr(text, stop) - text);
    assert_int_equal(strncmp(before, text, strlen(before)), 0);
    snprintf(
        arguments, sizeof arguments,
        "out --prompt 'the red ' --seed 5 --max-tokens 60 --stop never --stop='%s' --stop none",
        stop);
    json_t *same = answer_of(arguments);
    assert_true(json_equal(json_object_get(same, "text"), json_object_get(cut, "text")));
    json_decref(same);

    /* Without --json: the text on standard output, the figures on standard error. */
    assert_int_equal(run("out --prompt 'the red ' --seed 5 --max-tokens 60"), 0);
    assert_non_null(strstr(said, text));
    assert_non_null(strstr(said, "memory planned"));
    json_decref(whole);
    json_decref(again);
    json_decref(other);
    json_decref(cut);
}

/* The minimum that the error names is enough and gives the same text; a page less is refused. */
static void the_least_budget_is_enough(void **state)
{
    (void)state;
    char arguments[300];
    long long least = 0;
    json_t *wide = answer_of("out --prompt 'the red cat' --max-tokens 20");
    assert_int_equal(run("out --prompt 'the red cat' --max-tokens 20 --budget 1MiB"), HR_NO_FIT);
    const char *at = strstr(said, "need at least ");
    assert_non_null(at);
    for (at += strlen("need at least "); (*at >= '0' && *at <= '9') || *at == ','; at++)
        if (*at != ',') least = 10 * least + *at - '0';
    snprintf(arguments, sizeof arguments,
             "out --prompt 'the red cat' --max-tokens 20 --budget %lld", least);
    json_t *narrow = answer_of(arguments);
    assert_string_equal(json_string_value(json_object_get(narrow, "text")),
                        json_string_value(json_object_get(wide, "text")));
    snprintf(arguments, sizeof arguments,
             "out --prompt 'the red cat' --max-tokens 20 --budget %lld", least - 4096);
    assert_int_equal(run(arguments), HR_NO_FIT);
    json_decref(wide);
    json_decref(narrow);
}

static void every_invalid_request_is_one_error_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *sentence;
        int code;
    } cases[] = {
        { "missing --prompt x", "missing", HR_USAGE },
        { "out", "give one of --prompt", HR_USAGE },
        { "out --prompt x --prompt-ids 1", "give one of --prompt", HR_USAGE },
        { "out --prompt ''", "the prompt is empty; at least one token is needed", HR_USAGE },
        { "out --file nothing", "nothing", HR_USAGE },
        { "out --prompt-ids 1,,2",
          "--prompt-ids takes integers separated by commas, such as 29,1,11", HR_USAGE },
        { "out --prompt-ids 1,256", "token 2 of the prompt is 256; the model has ids 0 to 255",
          HR_USAGE },
        { "out --prompt x --max-tokens 0", "at least 1 is needed", HR_USAGE },
        { "out --prompt x --max-tokens -3", "not a non-negative integer", HR_USAGE },
        { "out --prompt x --seed 9007199254740993", "--seed 9007199254740993 is above 10^15",
          HR_USAGE },
        { "out --prompt x --temperature warm", "not a number", HR_USAGE },
        { "out --prompt x --top-p 1.5", "--top-p 1.5", HR_USAGE },
        { "out --prompt x --top-p 1.0000001", "--top-p 1.0000001 is not above 0 and at most 1",
          HR_USAGE },
        { "out --prompt x --repetition-penalty 1e-39",
          "--repetition-penalty 1e-39 is not from 0.01 to 100", HR_USAGE },
        { "'' --prompt x", "the path of the model is empty; give a folder", HR_USAGE },
        { "out --prompt x --max-tokens 1e12", "the limit is 1073741823", HR_USAGE },
        { "out --prompt x --stop a --stop \"$(printf '\\200')\"", "--stop number 2 is not UTF-8",
          HR_USAGE },
        { "out --prompt x --stop \"$(printf '\\342\\202')\"", "--stop number 1 is not UTF-8",
          HR_USAGE },
        { "out --prompt x --dtype fp8", "--dtype takes fp32 or bf16", HR_USAGE },
        { "out --prompt x --stop ''", "--stop takes", HR_USAGE },
        { "out --prompt x --stop a --stop ''", "--stop takes", HR_USAGE },
        { "out --prompt x --seed 1 --seed 2", "--seed is given twice", HR_USAGE },
        { "out --prompt x --kernels mmx", "--kernels: this CPU has no mmx", HR_USAGE },
        { "out --prompt x --threads 5000", "from 0 to 256", HR_USAGE },
        { "out --prompt x --threads 999999999999", "got 999999999999", HR_USAGE },
        { "out --prompt x --threads 257", "got 257", HR_USAGE },
        { "out --prompt x --budget 1", "are available; use --budget ", HR_NO_FIT },
    };
    char many[300] = "out --prompt x";
    for (int32_t i = 0; i <= HR_STOPS_MAX; i++) strcat(many, " --stop x");
    assert_int_equal(run(many), HR_USAGE);
    assert_non_null(strstr(said, "--stop may be given at most 16 times\n"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int code = run(cases[i].arguments);
        const char *end = strchr(said, '\n');
        if (code != cases[i].code || !strstr(said, cases[i].sentence) || !end || end[1])
            fail_msg("%s: %d: %s", cases[i].arguments, code, said);
    }
    drop_model();
}

/* Positions are limited, learned or rotary. A prompt without room is refused, an answer beyond the
 * limit is cut. */
static void positions_are_limited_to_those_the_model_supports(void **state)
{
    (void)state;
    static const int32_t families[] = { HR_FAMILY_GPT2, HR_FAMILY_LLAMA, HR_FAMILY_GPT_NEOX };
    for (int32_t i = 0; i < 3; i++) {
        char arguments[2 * T + 100], prompt[2 * T] = { 0 };
        trained(families[i], 0);
        memset(prompt, 'a', T);
        snprintf(arguments, sizeof arguments, "out --prompt %s", prompt);
        assert_int_equal(run(arguments), HR_USAGE);
        assert_non_null(strstr(said, "the prompt has 64 tokens and the model 64 positions"));
        assert_true((strstr(said, "increase max_position_embeddings") != NULL) == (i > 0));
        snprintf(arguments, sizeof arguments, "out --prompt %s --max-tokens 9", prompt + 4);
        json_t *cut = answer_of(arguments);
        assert_string_equal(json_string_value(json_object_get(cut, "end")), "positions");
        assert_int_equal(json_integer_value(json_object_get(cut, "tokens")), 4);
        json_decref(cut);
        assert_int_equal(run(arguments), HR_OK);
        assert_non_null(strstr(said, "generation stopped at the 64 positions of the model"));
        drop_model();
    }
}

/* A model that repeats one character of three bytes, cut after one of them. */
static void a_character_cut_by_the_end_is_replaced(void **state)
{
    (void)state;
    char euros[3000];
    for (size_t i = 0; i < sizeof euros; i++) euros[i] = "\xe2\x82\xac"[i % 3];
    hr_folder_write(hr_folder_path(&folder, "euros"), euros, sizeof euros);
    trained_for(HR_FAMILY_LLAMA, 0, 0, "euros");
    assert_int_equal(run("out --prompt '\xe2\x82\xac' --temperature 0 --max-tokens 5"), HR_OK);
    assert_non_null(strstr(said, "\xe2\x82\xac\xef\xbf\xbd\n"));
    json_t *cut = answer_of("out --prompt '\xe2\x82\xac' --temperature 0 --max-tokens 5");
    assert_string_equal(json_string_value(json_object_get(cut, "text")),
                        "\xe2\x82\xac\xef\xbf\xbd");
    json_decref(cut);
    drop_model();
}

static void non_finite_logits_are_reported_and_not_sampled(void **state)
{
    (void)state;
    trained(HR_FAMILY_LLAMA, 0);
    char weights[300];
    snprintf(weights, sizeof weights, "%s/out/model.safetensors", folder.path);
    oracle_spoil(weights, "lm_head.weight", 3e38f, 256 * 32);
    assert_int_equal(run("out --prompt x --temperature 0"), HR_DIVERGED);
    assert_non_null(strstr(said, "headroom: out: the logits of token 2 are NaN or Inf\n"));
    assert_int_equal(run("out --prompt x --dtype bf16 --json"), HR_DIVERGED);
    assert_non_null(strstr(said, "token 2 are NaN or Inf\n"));
    oracle_spoil(weights, "lm_head.weight", NAN, 1);
    assert_int_equal(run("out --prompt x"), HR_CORRUPT);
    assert_non_null(strstr(said, "out: tensor lm_head.weight has NaN or Inf values\n"));
    drop_model();
}

/* ---- signals */

/* Starts the program in the directory with exec, with pipes for input and output. */
static pid_t begin(const char *arguments, int *in, int *out)
{
    char command[1024];
    int to[2], from[2];
    snprintf(command, sizeof command, "cd %s && exec \"$HEADROOM\" generate %s 2>said", folder.path,
             arguments);
    assert_true(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)0);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    *in = to[1];
    *out = from[0];
    return child;
}

/* The exit code, after all output is read. */
static int end(pid_t child, int in, int out)
{
    int status;
    while (read(out, said, sizeof said) > 0) continue;
    close(out);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(in);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Standard error of the program that begin() started. */
static const char *said_beside(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/said", folder.path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
    return said;
}

/* A signal during an answer, and while it waits for the rest of a prompt. */
static void a_signal_ends_generation_with_its_exit_code(void **state)
{
    (void)state;
    static const int signals[] = { SIGINT, SIGTERM };
    trained_for(HR_FAMILY_LLAMA, 0, 1 << 20, "text");
    alarm(120); /* so that the test cannot wait forever */
    for (int32_t i = 0; i < 2; i++) {
        int in, out, left = 1;
        pid_t child = begin("out --prompt 'the red ' --max-tokens 100000", &in, &out);
        assert_int_equal(read(out, said, 1), 1);
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(end(child, in, out), 128 + signals[i]);
        assert_non_null(strstr(said_beside(), "headroom: interrupted after "));

        child = begin("out --file -", &in, &out);
        assert_int_equal(write(in, "the red", 7), 7);
        while (left) assert_int_equal(ioctl(in, FIONREAD, &left), 0);
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(end(child, in, out), 128 + signals[i]);
        assert_string_equal(said_beside(), "headroom: interrupted while waiting for the prompt\n");
    }
    alarm(0);
}

/* Generation stops when its reader is gone or the disk is full. */
static void generation_ends_when_its_reader_is_gone(void **state)
{
    (void)state;
    static const char *const forms[] = { "", "--json", "--print-ids" };
    alarm(120);
    trained_for(HR_FAMILY_LLAMA, 0, 1 << 20, "text");
    for (int32_t i = 0; i < 3; i++) {
        int in, out, status;
        char arguments[200];
        snprintf(arguments, sizeof arguments, "out --prompt 'the red ' --max-tokens 1000000 %s",
                 forms[i]);
        const pid_t child = begin(arguments, &in, &out);
        assert_int_equal(read(out, said, 1), 1);
        close(out);
        assert_int_equal(waitpid(child, &status, 0), child);
        close(in);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), HR_FAILURE);
        assert_string_equal(said_beside(), "");
        snprintf(arguments, sizeof arguments,
                 "out --prompt 'the red ' --max-tokens 1000000 %s >/dev/full", forms[i]);
        const pid_t other = begin(arguments, &in, &out);
        assert_int_equal(end(other, in, out), HR_FAILURE);
        assert_string_equal(
            said_beside(),
            "headroom: standard output cannot be written: No space left on device\n");
    }
    alarm(0);
    drop_model();
}

/* A recurrent model has no position limit; a text that cannot be planned is refused with a number
 * of tokens. */
static void a_text_too_long_to_plan_is_refused_with_a_number_of_tokens(void **state)
{
    (void)state;
    long long asked, most;
    trained(HR_FAMILY_WIDE, 0);
    assert_int_equal(run("out --prompt xy --max-tokens 1000000000"), HR_USAGE);
    assert_int_equal(
        sscanf(said,
               "headroom: %lld tokens are too many: prompt and answer may have %lld tokens "
               "together; use --max-tokens ",
               &asked, &most),
        2);
    assert_int_equal(asked, 1000000002);
    assert_null(strstr(said, "train."));
    char arguments[100];
    snprintf(arguments, sizeof arguments, "out --prompt xy --max-tokens %lld", most - 1);
    assert_int_equal(run(arguments), HR_USAGE);
    assert_non_null(strstr(said, "are too many"));
    snprintf(arguments, sizeof arguments, "out --prompt xy --max-tokens %lld --budget 1MiB",
             most - 2);
    assert_int_equal(run(arguments), HR_NO_FIT);
    drop_model();
}

static void standard_input_can_be_the_prompt(void **state)
{
    (void)state;
    json_t *given = answer_of("out --prompt 'the red cat' --max-tokens 20");
    hr_folder_write(hr_folder_path(&folder, "prompt"), "the red cat", 11);
    json_t *piped = answer_of("out --file - --max-tokens 20 <prompt");
    assert_true(json_equal(json_object_get(given, "text"), json_object_get(piped, "text")));
    assert_int_equal(json_integer_value(json_object_get(piped, "prompt_tokens")), 11);
    assert_int_equal(run("out --file - </dev/null"), HR_USAGE);
    assert_non_null(strstr(said, "the prompt is empty; at least one token is needed"));
    assert_int_equal(run("out --file - </dev/zero"), HR_USAGE);
    assert_non_null(strstr(said, "standard input has 1 MiB or more; use --file"));
    assert_int_equal(run("out --file - <."), HR_USAGE);
    assert_non_null(strstr(said, "standard input: Is a directory"));
    json_decref(given);
    json_decref(piped);
    drop_model();
}

/* An interrupt before the result exists returns an error to the caller. */
static void an_interrupt_before_allocation_is_reported(void **state)
{
    (void)state;
    static const volatile sig_atomic_t interrupts = 1;
    char path[300];
    hr_generate_result result;
    hr_error err = { HR_OK, "" };
    trained(HR_FAMILY_LLAMA, 0);
    snprintf(path, sizeof path, "%s/out", folder.path);
    const hr_infer_request model = { .size = sizeof model,
                                     .folder = path,
                                     .interrupts = &interrupts };
    const hr_generate_request request = { .size = sizeof request,
                                          .model = &model,
                                          .prompt = "the red",
                                          .tokens = 8,
                                          .sampling = { .repetition_penalty = 1, .top_p = 1 } };
    assert_int_equal(hr_generate(&request, &result, &err), HR_INTERRUPTED);
    assert_non_null(strstr(err.message, "interrupted"));
    assert_int_equal(result.tokens, 0);
    drop_model();
}

static int make_text(void **state)
{
    static const char words[] = "the red cat sat on a mat. the cat was red and the mat was not.\n";
    static char text[6000];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) text[i] = words[(i + i / 700) % (sizeof words - 1)];
    folder = hr_folder_open();
    hr_folder_write(hr_folder_path(&folder, "text"), text, sizeof text);
    return 0;
}

static int drop_text(void **state)
{
    (void)state;
    drop_model();
    hr_folder_close(&folder);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3) return child_main(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_answers_equal_those_of_transformers),
        cmocka_unit_test(the_cache_changes_no_token),
        cmocka_unit_test(caches_of_sparse_attention_change_no_token),
        cmocka_unit_test(answers_are_text_that_ends_where_it_should),
        cmocka_unit_test(the_least_budget_is_enough),
        cmocka_unit_test(every_invalid_request_is_one_error_sentence),
        cmocka_unit_test(positions_are_limited_to_those_the_model_supports),
        cmocka_unit_test(a_character_cut_by_the_end_is_replaced),
        cmocka_unit_test(non_finite_logits_are_reported_and_not_sampled),
        cmocka_unit_test(a_signal_ends_generation_with_its_exit_code),
        cmocka_unit_test(standard_input_can_be_the_prompt),
        cmocka_unit_test(generation_ends_when_its_reader_is_gone),
        cmocka_unit_test(a_text_too_long_to_plan_is_refused_with_a_number_of_tokens),
        cmocka_unit_test(an_interrupt_before_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, make_text, drop_text);
}
