/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stack_test.c - the program with a limited stack: a limit that is too low for a command is
 * refused with the needed number, and from that number on every command works. */
#include "headroom/status.h"
#include "mem/sanitize.h"
#include "support/program.h"

/* KiB. The last one is the usual limit. */
static const int32_t limits[] = { 64, 80, 100, 128, 160, 200, 240, 255, 256, 257, 300, 512, 8192 };

enum { LIMITS = sizeof limits / sizeof *limits, STACK_KIB = 256 };

static void require_known_frames(void)
{
    require_program();
    if (!HR_ADDRESS_SANITIZER && !HR_THREAD_SANITIZER) return;
    hr_test_skip("no-sanitizer", "a sanitizer makes frames larger");
}

/* Runs the program with a stack limit and `padding` more bytes of environment. */
static int run_limited(int32_t limit_kib, int32_t padding, const char *arguments)
{
    char command[PROGRAM_COMMAND_BYTES];
    snprintf(command, sizeof command,
             "bash -c 'ulimit -s %d; PADDING=$(printf %%%ds) exec \"$HEADROOM\" %s' "
             ">out.txt 2>err.txt",
             (int)limit_kib, (int)padding, arguments);
    const int status = system(command);
    get("out.txt", out);
    get("err.txt", err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void needs(int32_t limit_kib, int32_t padding, int32_t needed_kib, const char *arguments)
{
    char sentence[256];
    const int code = run_limited(limit_kib, padding, arguments);
    snprintf(sentence, sizeof sentence,
             "headroom: the stack of the main thread needs %d KiB, and its limit is %d KiB: type "
             "ulimit -s %d\n",
             (int)needed_kib, (int)limit_kib, (int)needed_kib);
    if (limit_kib >= needed_kib && code != HR_OK)
        fail_msg("%s with ulimit -s %d: exit code %d, %s", arguments, (int)limit_kib, code, err);
    if (limit_kib >= needed_kib) return;
    assert_int_equal(code, HR_NO_FIT);
    assert_string_equal(err, sentence);
}

static void every_stack_limit_is_enough_or_refused_with_the_number(void **state)
{
    static const char *const commands[] = {
        "doctor",
        "plan tiny.yaml",
        "plan tiny.yaml --smallest",
        "plan tiny.yaml --largest train.batch --budget 64MB",
        "train tiny.yaml data.train=text.txt data.valid=text.txt --fresh --out run",
        "train tiny.yaml data.train=text.txt data.valid=text.txt --out run train.steps=3",
        "train from.yaml data.train=text.txt "
        "train.batch=2 train.seq_len=8 --fresh --out again",
        "generate run --prompt abc --max-tokens 4",
        "eval run --file text.txt",
        "checkpoint verify run",
        "prove tiny.yaml data.train=text.txt --dir .",
    };
    (void)state;
    require_known_frames();
    put_tiny_and_text();
    put("from.yaml", "model: {from: run}\ntrain: {steps: 2}\n");
    for (int32_t i = 0; i < LIMITS; i++)
        for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
            needs(limits[LIMITS - 1 - i], 0, STACK_KIB, commands[c]);
}

static void help_and_usage_errors_work_with_any_stack(void **state)
{
    static const struct {
        const char *arguments;
        int code;
    } cases[] = { { "version", HR_OK },    { "help", HR_OK },        { "help peak", HR_OK },
                  { "help --man", HR_OK }, { "plan --help", HR_OK }, { "tokenize --help", HR_OK },
                  { "keys", HR_OK },       { "keys --json", HR_OK }, { "plain", HR_USAGE },
                  { "plan", HR_USAGE },    { "help paln", HR_USAGE } };
    (void)state;
    require_known_frames();
    for (int32_t i = 0; i < LIMITS; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            const int code = run_limited(limits[i], 0, cases[c].arguments);
            assert_int_equal(code, cases[c].code);
            assert_null(strstr(err, "stack"));
        }
}

/* The kernel counts arguments and environment towards the limit. */
static void a_large_environment_needs_a_larger_stack(void **state)
{
    (void)state;
    require_known_frames();
    put_tiny_and_text();
    needs(256, 60000, 2 * STACK_KIB, "plan tiny.yaml");
    needs(512, 60000, 2 * STACK_KIB, "plan tiny.yaml");
    needs(512, 60000, 2 * STACK_KIB, "train tiny.yaml data.train=text.txt --fresh --out run");
}

/* The most that needs no larger stack, but for the random distance of up to 8 KiB. */
static void models_and_adapters_fit_beside_an_environment(void **state)
{
    static const char *const commands[] = {
        "eval model --file text.txt",
        "eval model --adapter low --adapter low=0.5 --file text.txt",
        "generate model --adapter low --adapter low=0.5 --prompt abc --max-tokens 4",
        "plan tiny.yaml model.from=model train.adapter.from=low",
        "train tiny.yaml model.from=model train.adapter.from=low data.train=text.txt --fresh "
        "--out again",
        "train tiny.yaml model.from=model data.train=text.txt --fresh --out whole",
    };
    (void)state;
    require_known_frames();
    put_tiny_and_text();
    put("llama.yaml",
        "model: {family: llama, d_model: 16, n_layers: 2, n_heads: 2, vocab_size: 256}\n"
        "train: {steps: 1, batch: 2, seq_len: 8, sample_tokens: none}\n"
        "data: {tokenizer: bytes, train: text.txt}\n");
    assert_int_equal(run("train llama.yaml --out model"), HR_OK);
    assert_int_equal(run("train llama.yaml model.from=model train.adapter.kind=lora --out low"),
                     HR_OK);
    put("tiny.yaml", "train: {steps: 1, batch: 2, seq_len: 8, sample_tokens: none}\n"
                     "data: {tokenizer: bytes}\n");
    for (int32_t padding = 0; padding <= 24000; padding += 4000)
        for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
            needs(8192, padding, STACK_KIB, commands[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_stack_limit_is_enough_or_refused_with_the_number),
        IN_A_FOLDER(help_and_usage_errors_work_with_any_stack),
        IN_A_FOLDER(a_large_environment_needs_a_larger_stack),
        IN_A_FOLDER(models_and_adapters_fit_beside_an_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
