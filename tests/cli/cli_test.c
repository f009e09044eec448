/* SPDX-License-Identifier: Apache-2.0 */
/* cli_test.c - help, manual, completion, keys, doctor, and errors for unknown words. */
#include <sys/stat.h>

#include "config/config.h"
#include "headroom/version.h"
#include "support/program.h"

static const char *const commands[] = { "plan",
                                        "verify",
                                        "profile",
                                        "prove",
                                        "train",
                                        "runs",
                                        "checkpoint list",
                                        "checkpoint verify",
                                        "checkpoint prune",
                                        "data inspect",
                                        "cache path",
                                        "cache list",
                                        "cache prune",
                                        "cache clear",
                                        "pack",
                                        "convert",
                                        "adapter info",
                                        "adapter gguf",
                                        "adapter capture",
                                        "adapter replay",
                                        "adapter merge",
                                        "generate",
                                        "eval",
                                        "tokenize encode",
                                        "tokenize decode",
                                        "tokenize inspect",
                                        "tokenize count",
                                        "tokenize compare",
                                        "tokenize train",
                                        "calibrate",
                                        "audit",
                                        "keys",
                                        "devices",
                                        "presets",
                                        "doctor",
                                        "help",
                                        "version" };
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void without_arguments_it_prints_a_short_help(void **state)
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

static void a_group_prints_its_commands(void **state)
{
    (void)state;
    require_program();
    static const char *const groups[] = { "tokenize", "data", "checkpoint", "cache" };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        static char first[PROGRAM_TEXT_BYTES];
        assert_int_equal(run("%s --help", groups[i]), HR_OK);
        strcpy(first, out);
        assert_int_equal(run("%s -h", groups[i]), HR_OK);
        assert_string_equal(out, first);
        assert_int_equal(run("help %s", groups[i]), HR_OK);
        assert_string_equal(out, first);
        for (int32_t j = 0; j < COMMAND_COUNT; j++) {
            char line[64];
            const size_t length = strlen(groups[i]);
            const bool is_one = !strncmp(commands[j], groups[i], length) && commands[j][length];
            snprintf(line, sizeof line, "\n  headroom %s ", commands[j]);
            assert_int_equal(strstr(out, line) != NULL, is_one);
        }
    }
}

static void manual_and_completion_have_every_listed_option(void **state)
{
    (void)state;
    require_program();
    static char manual[PROGRAM_TEXT_BYTES], completion[PROGRAM_TEXT_BYTES],
        help[PROGRAM_TEXT_BYTES];
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
    assert_int_equal(run("help generate"), HR_OK);
    assert_non_null(strstr(
        out,
        "  --stop TEXT             stop string; it is not printed; may be repeated, at most 16\n"));
    assert_non_null(
        strstr(manual, "\nstop string; it is not printed; may be repeated, at most 16\n"));
    for (int32_t i = 0; hr_config_key(i); i++) {
        assert_non_null(strstr(manual, hr_config_key(i)->name));
        assert_non_null(strstr(completion, hr_config_key(i)->name));
    }
}

/* Texts of two columns are wrapped, and every text of the second column starts at one place. */
static void help_is_aligned_and_within_100_columns(void **state)
{
    (void)state;
    require_program();
    for (int32_t i = -1; i < COMMAND_COUNT; i++) {
        assert_int_equal(run("help %s", i < 0 ? "" : commands[i]), HR_OK);
        for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
            const size_t length = strlen(line), column = i < 0 ? 40 : 26;
            const bool row = !strncmp(line, i < 0 ? "  headroom" : "  --", i < 0 ? 10 : 4);
            if (length > 100) fail_msg("%zu columns: %s", length, line);
            const char *text = row ? strstr(line + 2, "  ") : NULL; /* after the left part */
            if (text && text + strspn(text, " ") != line + column)
                fail_msg("not aligned: %s", line);
        }
    }
    assert_int_equal(run("keys"), HR_OK);
    assert_non_null(strstr(out, "\ntrain.optimizer.adafactor.scale_parameter  true        true "));
    assert_int_equal(strncmp(out, "key  ", 5), 0);
    assert_non_null(
        strstr(out, "\n  train.format                               now train.dtype\n"));
    for (const char *at = hr_config_key(1)->choices; *at; at += strcspn(at, " ")) {
        char family[32];
        at += strspn(at, " ");
        snprintf(family, sizeof family, "%.*s", (int)strcspn(at, " "), at);
        assert_int_equal(run("help keys"), HR_OK);
        if (!strstr(out, family)) fail_msg("help keys does not explain %s", family);
    }
}

/* The program, the manual page and docs/glossary.md have the same text for every term, and a name
 * is a command or a term, not both. */
static void every_term_has_the_same_explanation_in_three_places(void **state)
{
    (void)state;
    require_program();
    static char page[PROGRAM_TEXT_BYTES], all[PROGRAM_TEXT_BYTES];
    get(HR_SOURCE "/docs/glossary.md", page);
    assert_int_equal(run("help terms"), HR_OK);
    snprintf(all, sizeof all, "%s", out);
    assert_int_equal(run("help --man"), HR_OK);
    static char manual[PROGRAM_TEXT_BYTES];
    snprintf(manual, sizeof manual, "%s", out);
    int32_t count = 0, rows = 0;
    for (char *line = all, *end; (end = strchr(line, '\n')); line = end + 1, count++) {
        char row[PROGRAM_COMMAND_BYTES], name[64];
        *end = 0;
        const char *colon = strstr(line, ": ");
        assert_non_null(colon);
        snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
        snprintf(row, sizeof row, "\n| %s | %s |\n", name, colon + 2);
        if (!strstr(page, row)) fail_msg("docs/glossary.md has not: %s", line);
        assert_non_null(strstr(manual, ".SH GLOSSARY"));
        assert_int_equal(run("help %s", name), HR_OK);
        out[strcspn(out, "\n")] = 0;
        assert_string_equal(out, line);
        for (int32_t i = 0; i < COMMAND_COUNT; i++) assert_string_not_equal(name, commands[i]);
    }
    for (const char *at = page; (at = strstr(at, "\n| ")); at++) rows++;
    assert_int_equal(rows, count + 2); /* table head and the line below it */
    assert_int_equal(run("help Moments"), HR_OK);
    assert_ptr_equal(strstr(out, "moment: "), out);
    assert_int_equal(run("help momentss"), HR_USAGE);
    assert_int_equal(run("help no such term"), HR_USAGE);
}

static void the_first_page_lists_every_command(void **state)
{
    (void)state;
    require_program();
    static char page[PROGRAM_TEXT_BYTES];
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

static void the_completion_is_valid_bash(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(run("help --completion bash | bash -n"), HR_OK);
    assert_string_equal(err, "");
    assert_int_equal(run("help --completion tcsh"), HR_USAGE);
    assert_string_equal(err, "headroom: --completion takes bash, zsh or fish; got \"tcsh\"\n");
}

/* Sets `out` to the completions of the last of these words, one per line. */
static void complete(const char *words)
{
    put("complete.sh", "eval \"$(\"$HEADROOM\" help --completion bash)\"\n"
                       "compopt() { :; }\n"
                       "COMP_WORDS=(\"$@\")\n"
                       "COMP_CWORD=$(($# - 1))\n"
                       "_headroom\n"
                       "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    char command[PROGRAM_COMMAND_BYTES];
    snprintf(command, sizeof command, "bash complete.sh headroom %s >out.txt 2>err.txt", words);
    assert_int_equal(system(command), 0);
    get("out.txt", out);
    get("err.txt", err);
    assert_string_equal(err, "");
}

/* Commands with [key=value ...] in their usage complete keys after the operand; others do not. */
static void the_completion_offers_the_options_of_a_command(void **state)
{
    (void)state;
    require_program();
    complete("da");
    assert_string_equal(out, "data\n");
    complete("data ins");
    assert_string_equal(out, "inspect\n");
    complete("checkpoint ''");
    assert_string_equal(out, "list\nverify\nprune\n");
    complete("plan ''");
    assert_non_null(strstr(out, "complete.sh\n"));
    for (int32_t i = 0; i < COMMAND_COUNT; i++) {
        char words[64];
        assert_int_equal(run("help %s", commands[i]), HR_OK);
        const bool keys = strstr(out, " [key=value ...] [options]\n");
        snprintf(words, sizeof words, "%s operand train.see", commands[i]);
        complete(words);
        assert_string_equal(out, keys ? "train.seed=\n" : "\n");
        assert_int_equal(keys,
                         !strcmp(commands[i], "plan") || !strcmp(commands[i], "train") ||
                             !strcmp(commands[i], "profile") || !strcmp(commands[i], "prove") ||
                             !strcmp(commands[i], "data inspect") || !strcmp(commands[i], "eval") ||
                             !strcmp(commands[i], "checkpoint prune"));
    }
}

static void the_version_is_that_of_the_build(void **state)
{
    (void)state;
    require_program();
    static char lists[PROGRAM_TEXT_BYTES];
    get(HR_SOURCE "/CMakeLists.txt", lists);
    assert_non_null(strstr(lists, "project(headroom VERSION " HR_VERSION " "));
    assert_int_equal(run("--version"), HR_OK);
    assert_string_equal(out, "headroom " HR_VERSION "\n");
}

static void an_unknown_word_is_one_error_sentence_with_exit_2(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        { "paln", "\"paln\" is not a command; the nearest is plan (headroom help lists all)" },
        { "help trian",
          "\"trian\" is not a command or a term; the nearest is train (headroom help lists the "
          "commands, headroom help terms the terms)" },
        { "help paek",
          "\"paek\" is not a command or a term; the nearest are pack, peak (headroom help lists "
          "the commands, headroom help terms the terms)" },
        { "help loss chnk",
          "\"loss chnk\" is not a command or a term; the nearest is loss chunk (headroom help "
          "lists the commands, headroom help terms the terms)" },
        { "help KV cahe",
          "\"KV cahe\" is not a command or a term; the nearest is KV cache (headroom help lists "
          "the commands, headroom help terms the terms)" },
        { "help frobnicate",
          "\"frobnicate\" is not a command or a term (headroom help lists the commands, headroom "
          "help terms the terms)" },
        { "plan", "plan needs RECIPE (headroom plan --help)" },
        { "data", "data needs a command: inspect (headroom data --help)" },
        { "checkpoint",
          "checkpoint needs a command: list, verify or prune (headroom checkpoint --help)" },
        { "data inspct",
          "\"inspct\" is not a command of data; the nearest is inspect (headroom help data lists "
          "all)" },
        { "help tokenize frobnicate",
          "\"frobnicate\" is not a command of tokenize (headroom help tokenize lists all)" },
        { "tokenise encode",
          "\"tokenise\" is not a command; the nearest is tokenize (headroom help lists all)" },
        { "generate m --temp 1",
          "--temp is not an option of generate; the nearest is --temperature (headroom generate "
          "--help)" },
        { "plan tiny.yaml --temp 1", "--temp is not an option of plan (headroom plan --help)" },
        { "tokenize train t --size 9",
          "--size is not an option of tokenize train; the nearest is --vocab-size (headroom "
          "tokenize train --help)" },
        { "generate m -t 1", "-t is not an option of generate (headroom generate --help)" },
        { "plan tiny.yaml lora.width=4", "\"lora.width\" is not a key (headroom keys lists all)" },
        { "plan tiny.yaml gradient_accumulation_steps=4",
          "\"gradient_accumulation_steps\" is not a key; use memory.micro_batch = train.batch / 4: "
          "train.batch counts the sequences of one update, over all its micro-batches (headroom "
          "keys lists all)" },
        { "plan tiny.yaml --batch_size 32",
          "--batch_size is not an option of plan; use train.batch=32 (headroom plan --help)" },
        { "train tiny.yaml --max-grad-norm=0.5",
          "--max-grad-norm is not an option of train; use train.optimizer.clip=0.5 (headroom train "
          "--help)" },
        { "train tiny.yaml --vocab_size 10000 --sparse",
          "--vocab_size is not an option of train; use model.vocab_size=10000 (headroom train "
          "--help)" },
        { "train tiny.yaml --sparse data.train=x",
          "--sparse is not an option of train; use model.attention.pattern=local (headroom train "
          "--help)" },
        { "train tiny.yaml --device cuda", "--device is not an option of train: training runs on "
                                           "the CPU; headroom plan --device NAME "
                                           "plans for other machines (headroom train --help)" },
        { "train tiny.yaml --train.batch 8",
          "--train.batch is not an option of train; use train.batch=8 (headroom train --help)" },
        { "data inspect", "data inspect needs RECIPE (headroom data inspect --help)" },
        { "verify", "verify needs FILE.json... (headroom verify --help)" },
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
        { "plan tiny.yaml --json=yes", "--json takes no value; got \"yes\"" },
        { "plan tiny.yaml --json --json", "--json is given twice" },
        { "plan tiny.yaml --json --program", "--program and --json exclude each other; give one" },
        { "plan tiny.yaml --largest train.seq_len --smallest",
          "--largest and --smallest exclude each other; give one" },
        { "plan tiny.yaml --frontier --program",
          "--frontier and --program exclude each other; give one" },
        { "plan tiny.yaml --largest train.seq_length",
          "\"train.seq_length\" is not a key; use train.seq_len (headroom keys lists all)" },
        { "plan tiny.yaml --largest model.dropout",
          "model.dropout (number from 0 to 0.999): --largest needs a key that "
          "takes an integer" },
        { "plan tiny.yaml --slowdown 5%", "--slowdown needs --smallest" },
        { "plan tiny.yaml --svg f.svg", "--svg needs --frontier or --grid" },
        { "plan tiny.yaml --smallest --slowdown much",
          "--slowdown takes a percentage from 0 to 1,000,000, such as 10%; got \"much\"" },
        { "plan tiny.yaml --smallest --slowdown nan",
          "--slowdown takes a percentage from 0 to 1,000,000, such as 10%; got \"nan\"" },
        { "plan tiny.yaml --frontier --svg .",
          "--svg .: is a directory, a file cannot be written there" },
        { "doctor please", "doctor takes no operands; \"please\" is one too many" },
        { "convert a", "convert needs OUT_DIR (headroom convert --help)" },
        { "convert a b c", "convert takes two operands; \"c\" is one too many" },
        { "audit a b", "audit takes one operand; \"b\" is one too many" },
        { "plan tiny.yaml other.yaml",
          "\"other.yaml\" is not key=value; a command takes one recipe" },
        { "verify pipe", "plan file pipe is not a file" },
        { "pack pipe", "pipe: is a device or pipe, a file is needed" },
        { "plan none.yaml", "recipe none.yaml: no such file" },
        { "plan .", "recipe .: is a directory, a file is needed" },
        { "plan pipe", "recipe pipe: is a device or pipe, a file is needed" },
        { "plan tiny.yaml memory.strategy=pipe",
          "strategy pipe: is a device or pipe, a file is needed" },
        { "plan bad.yaml",
          "bad.yaml:2: \"train.bacth\" is not a key; the nearest is train.batch (headroom keys "
          "lists all)" },
        { "plan tiny.yaml train.bacth=4",
          "\"train.bacth\" is not a key; the nearest is train.batch (headroom keys lists all)" },
        { "plan tiny.yaml train.batch=",
          "train.batch takes an integer from 1 to 16,777,216 sequences; got \"\"" },
        { "plan tiny.yaml model.n_heads=3",
          "model.n_heads 3 does not divide model.d_model 16; the nearest that does is 2" },
        { "plan tiny.yaml --budget 0", "--budget 0 is zero; give a size such as 700MiB, or none" },
        { "plan tiny.yaml --budget lots",
          "memory.budget takes a size up to 8192 TiB, such as 700MiB, 733MB or plain "
          "bytes, or none; got \"lots\"" },
    };
    put("tiny.yaml", tiny);
    put("bad.yaml", "train:\n  bacth: 4\n");
    assert_int_equal(mkfifo("pipe", 0600),
                     0); /* it has no writer, and the command does not wait for one */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[HR_ERROR_BYTES + 16];
        snprintf(expected, sizeof expected, "headroom: %s\n", cases[i].sentence);
        assert_int_equal(run("%s", cases[i].words), HR_USAGE);
        assert_string_equal(err, expected);
        assert_string_equal(out, "");
    }
}

static void output_that_cannot_be_written_is_a_failure(void **state)
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
        char command[PROGRAM_COMMAND_BYTES];
        snprintf(command, sizeof command, "\"$HEADROOM\" %s >/dev/full 2>err.txt", words[i]);
        const int status = system(command);
        assert_int_equal(WEXITSTATUS(status), HR_FAILURE);
        get("err.txt", err);
        assert_string_equal(err, "headroom: standard output cannot be written: No space left on "
                                 "device\n");
    }
}

static void keys_in_json_equal_the_table(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(without_arguments_it_prints_a_short_help),
        IN_A_FOLDER(help_is_aligned_and_within_100_columns),
        IN_A_FOLDER(a_group_prints_its_commands),
        IN_A_FOLDER(manual_and_completion_have_every_listed_option),
        IN_A_FOLDER(every_term_has_the_same_explanation_in_three_places),
        IN_A_FOLDER(the_first_page_lists_every_command),
        IN_A_FOLDER(the_completion_is_valid_bash),
        IN_A_FOLDER(the_completion_offers_the_options_of_a_command),
        IN_A_FOLDER(the_version_is_that_of_the_build),
        IN_A_FOLDER(an_unknown_word_is_one_error_sentence_with_exit_2),
        IN_A_FOLDER(output_that_cannot_be_written_is_a_failure),
        IN_A_FOLDER(keys_in_json_equal_the_table),
        IN_A_FOLDER(the_doctor_names_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
