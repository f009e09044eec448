/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cli.h - the command line: one table of commands and options drives the parser, the help, the
 * manual page and the completion. A file per command; all of them see include/headroom only. */
#ifndef HR_CLI_CLI_H
#define HR_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/config.h"
#include "headroom/infer.h"
#include "headroom/progress.h"

typedef enum {
    HR_OPTION_BUDGET,
    HR_OPTION_PLAN_OUT,
    HR_OPTION_TRAIN_OUT,
    HR_OPTION_PACK_OUT,
    HR_OPTION_CAPACITY,
    HR_OPTION_SECONDS,
    HR_OPTION_METRICS,
    HR_OPTION_FRESH,
    HR_OPTION_ALLOW_CHANGE,
    HR_OPTION_JSON,
    HR_OPTION_PROGRAM,
    HR_OPTION_LARGEST,
    HR_OPTION_SMALLEST,
    HR_OPTION_SLOWDOWN,
    HR_OPTION_FRONTIER,
    HR_OPTION_SVG,
    HR_OPTION_THREADS,
    HR_OPTION_CHECK,
    HR_OPTION_RECIPES,
    HR_OPTION_KERNELS,
    HR_OPTION_SHARD_BYTES,
    HR_OPTION_PREFIX,
    HR_OPTION_DTYPE,
    HR_OPTION_PROMPT,
    HR_OPTION_FILE,
    HR_OPTION_PROMPT_IDS,
    HR_OPTION_PRINT_IDS,
    HR_OPTION_TOKENIZER,
    HR_OPTION_MAX_TOKENS,
    HR_OPTION_CHUNK,
    HR_OPTION_TEMPERATURE,
    HR_OPTION_TOP_K,
    HR_OPTION_TOP_P,
    HR_OPTION_MIN_P,
    HR_OPTION_REPETITION_PENALTY,
    HR_OPTION_STOP,
    HR_OPTION_SEED,
    HR_OPTION_FORMAT,
    HR_OPTION_TOKENS,
    HR_OPTION_TEXT_FILE,
    HR_OPTION_CHOICES,
    HR_OPTION_LOGITS_OUT,
    HR_OPTION_PER_TOKEN,
    HR_OPTION_CONTEXT,
    HR_OPTION_STRIDE,
    HR_OPTION_TOKENIZER_OUT,
    HR_OPTION_VOCAB_SIZE,
    HR_OPTION_MIN_FREQUENCY,
    HR_OPTION_LIMIT_ALPHABET,
    HR_OPTION_INITIAL_ALPHABET,
    HR_OPTION_SPECIAL,
    HR_OPTION_MAX_TOKEN_LENGTH,
    HR_OPTION_PATTERN,
    HR_OPTION_LIKE,
    HR_OPTION_PREFIX_SPACE,
    HR_OPTION_TRANSITION,
    HR_OPTION_INHERIT,
    HR_OPTION_PATTERN_TWO,
    HR_OPTION_LIKE_TWO,
    HR_OPTION_JSONL,
    HR_OPTION_BARE,
    HR_OPTION_KEEP_SPECIAL,
    HR_OPTION_LIMIT,
    HR_OPTION_MAN,
    HR_OPTION_COMPLETION,
    HR_OPTION_HELP,
    HR_OPTION_COUNT
} hr_cli_option_id;

enum { HR_CLI_REPEATS_MAX = 16 };

/* A bit per hr_cli_option_id: there is room for 128. */
typedef unsigned __int128 hr_cli_options;

typedef struct {
    const char *name;     /* without the dashes */
    const char *argument; /* "SIZE"; null: takes none */
    const char *text;
    int32_t most;         /* times that it may be given, HR_CLI_REPEATS_MAX at most; 0: once */
    const char *old_name; /* that is accepted for one version; null: none */
} hr_cli_option;

typedef struct {
    const char *program; /* as it was typed */
    const struct hr_cli_command *command;
    const char *values[HR_OPTION_COUNT]; /* null: not given; an empty text: given, takes none */
    /* [repeated_count] of the one option that may be given several times, in their order */
    const char *repeated[HR_CLI_REPEATS_MAX];
    int32_t repeated_count;
    char **operands; /* [operand_count] of argv: the recipe, then key=value */
    int32_t operand_count;
} hr_cli_arguments;

typedef struct hr_cli_command {
    const char *name;
    const char *operands;                /* "RECIPE" */
    const char *text;                    /* one line */
    const char *more;                    /* a few lines */
    hr_cli_options options;              /* that it takes */
    int32_t operand_least, operand_most; /* most < 0: any number */
    int (*run)(const hr_cli_arguments *arguments);
    bool keys; /* any number of key=value may follow the operands */
} hr_cli_command;

/* Rows of the tables, null past their ends. */
const hr_cli_command *hr_cli_command_at(int32_t index);
const hr_cli_option *hr_cli_option_at(int32_t id);

/* "; up to 16 times", or an empty text: what the table says of an option beside its text. */
const char *hr_cli_times(const hr_cli_option *option, char text[32]);

/* What stands behind the command's name: "RECIPE [key=value ...]". */
enum { HR_CLI_OPERANDS_BYTES = 64 };
const char *hr_cli_operands(const hr_cli_command *command, char text[HR_CLI_OPERANDS_BYTES]);

/* The command of that name, or null. */
const hr_cli_command *hr_cli_command_find(const char *name);

/* Whether a command belongs to a group: "tokenize train" to "tokenize". */
bool hr_cli_is_of_group(const hr_cli_command *command, const char *group);

/* Whether commands of that group exist. */
bool hr_cli_is_group(const char *name);

/* Whether a command takes an option. */
bool hr_cli_takes(const hr_cli_command *command, int32_t id);

/* Splits the words behind the command's name. Sorts `words` [count]: operands come first.
 * Errors   USAGE  one sentence; the nearest option is named. */
HR_MUST_CHECK hr_status hr_cli_parse(const hr_cli_command *command, char **words, int32_t count,
                                     hr_cli_arguments *arguments, hr_error *err);

/* Prints the command that was typed, in quotes where a shell needs them, without the end of the
 * line. */
void hr_cli_put_command(FILE *file, const hr_cli_arguments *arguments);

/* Defaults, the recipe, key=value in their order, --budget and --out; and then the check. */
HR_MUST_CHECK hr_status hr_cli_recipe(const hr_cli_arguments *arguments, hr_config *config,
                                      hr_error *err);

/* The present name of a key that an option was given, which may be its old name: then says so on
 * standard error. A word that is no key comes back as it is. */
const char *hr_cli_key_name(const char *name);

/* May a file be put where `path` says? What is there already must be a file: a device or a pipe
 * would be replaced, not written to. Null is fine. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_check_out(const char *path, hr_error *err);

/* The same for a file that another option names. */
HR_MUST_CHECK hr_status hr_cli_check_file(const char *option, const char *path, hr_error *err);

/* Where calibrations are, as hr_cli_cache_directory says; null when it says nothing of use: a plan
 * is made without them. */
const char *hr_cli_calibrations(char *path, int64_t bytes);

/* Whether --largest, --smallest or --frontier is there; and the answer, printed. */
bool hr_cli_is_question(const hr_cli_arguments *arguments);
HR_MUST_CHECK hr_status hr_cli_question(const hr_cli_arguments *arguments, const hr_config *config,
                                        const char *calibrations, hr_error *err);

/* The cache directory: $XDG_CACHE_HOME/headroom, or ~/.cache/headroom; empty when neither variable
 * is set. path [bytes] out. Errors USAGE too long. */
HR_MUST_CHECK hr_status hr_cli_cache_directory(char *path, int64_t bytes, hr_error *err);

/* A recipe without train.out and data.cache keeps its token shards in the cache directory.
 *   limit_bytes  out; of that directory: $HEADROOM_CACHE_LIMIT, or 16 GiB. 0: no limit, or the
 *                shards lie elsewhere
 * Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_take_cache(hr_config *config, int64_t *limit_bytes, hr_error *err);

/* The number that an option was given, any or a whole one from 0 on; `value` stays where it was not
 * given. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_number(const hr_cli_arguments *arguments, hr_cli_option_id id,
                                      double *value, hr_error *err);
HR_MUST_CHECK hr_status hr_cli_whole(const hr_cli_arguments *arguments, hr_cli_option_id id,
                                     int64_t *value, hr_error *err);

/* From here on SIGINT and SIGTERM count up what is returned, and the second ends the program at
 * once. */
const volatile sig_atomic_t *hr_cli_catch_signals(void);

/* The exit code that the last of the signals asks for. */
int hr_cli_signalled(void);

/* Of a clock that only goes on. */
int64_t hr_cli_now_ns(void);

/* Work whose progress is shown: which, and since when. Begin with { 0 }. */
typedef struct {
    char name[64];
    int64_t begun_ns;
} hr_cli_work;

/* Shows how far work is, with the time that it still takes. */
void hr_cli_show_work(hr_progress *progress, hr_cli_work *shown, const char *work, int64_t done,
                      int64_t total);

/* The progress line of a search for plans, with the time that it has taken so far. */
typedef struct {
    hr_progress progress;
    int64_t begun_ns;
} hr_cli_planning;

void hr_cli_planning_begin(hr_cli_planning *planning);
void hr_cli_planning_show(void *planning); /* as hr_plan_progress has it */
void hr_cli_planning_end(hr_cli_planning *planning);

/* The folder, which is the operand, and what options say of how a model is asked. Signals are
 * caught from here on. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_model(const hr_cli_arguments *arguments, hr_infer_request *request,
                                     hr_error *err);

/* What it took: in JSON up to the clock, which is left open; and in words. */
void hr_cli_put_json_run(const hr_infer_result *result);
void hr_cli_put_run(FILE *file, const hr_infer_result *result);

/* Prints "headroom: sentence" on standard error; returns the exit code. */
int hr_cli_fail(const hr_error *err);

/* The same for words that name no command: the group's name alone, a group with another word, or
 * an unknown word. `second` is the word behind it, or null. Names a similar command if there is
 * one. */
int hr_cli_fail_command(const char *name, const char *second);

/* A count as people read it, "1,048,576", in one of eight places that are used in turn. */
const char *hr_cli_count(int64_t count);

/* "WORK: 1.2 MiB of 30.0 MiB", or the work alone where nothing says how many bytes there are. */
void hr_cli_progress_text(const char *work, int64_t bytes_done, int64_t bytes_total,
                          char text[HR_PROGRESS_BYTES]);

/* Prints text of a model, which may be any bytes: "?" for what is no text or would drive a
 * terminal; or as the inside of a JSON string, U+FFFD for what is no text. */
void hr_cli_put_text(const char *text, int64_t bytes);
void hr_cli_put_json_text(const char *text, int64_t bytes);

/* A word of the output, and what it means in one line. */
typedef struct {
    const char *name, *text;
} hr_cli_term;

/* Rows of the glossary in their order, null past its end; the one of that name in any case of its
 * letters, or null; all of them on standard output, "NAME: TEXT" each. */
const hr_cli_term *hr_cli_term_at(int32_t index);
const hr_cli_term *hr_cli_term_find(const char *name);
void hr_cli_print_terms(void);

/* Help for one command, the overview for null, or the commands of a group; on standard output. */
void hr_cli_print_help(const hr_cli_command *command);
void hr_cli_print_group(const char *group);
void hr_cli_print_manual(void);
void hr_cli_print_completion(void);

int hr_cli_plan(const hr_cli_arguments *arguments);
int hr_cli_verify(const hr_cli_arguments *arguments);
int hr_cli_train(const hr_cli_arguments *arguments);
int hr_cli_pack(const hr_cli_arguments *arguments);
int hr_cli_generate(const hr_cli_arguments *arguments);
int hr_cli_eval(const hr_cli_arguments *arguments);
int hr_cli_convert(const hr_cli_arguments *arguments);
int hr_cli_checkpoint_list(const hr_cli_arguments *arguments);
int hr_cli_checkpoint_verify(const hr_cli_arguments *arguments);
int hr_cli_checkpoint_prune(const hr_cli_arguments *arguments);
int hr_cli_cache_path(const hr_cli_arguments *arguments);
int hr_cli_cache_list(const hr_cli_arguments *arguments);
int hr_cli_cache_prune(const hr_cli_arguments *arguments);
int hr_cli_cache_clear(const hr_cli_arguments *arguments);
int hr_cli_data(const hr_cli_arguments *arguments);
int hr_cli_tokenize_train(const hr_cli_arguments *arguments);
int hr_cli_tokenize_encode(const hr_cli_arguments *arguments);
int hr_cli_tokenize_decode(const hr_cli_arguments *arguments);
int hr_cli_tokenize_inspect(const hr_cli_arguments *arguments);
int hr_cli_tokenize_count(const hr_cli_arguments *arguments);
int hr_cli_tokenize_compare(const hr_cli_arguments *arguments);
int hr_cli_calibrate(const hr_cli_arguments *arguments);
int hr_cli_keys(const hr_cli_arguments *arguments);
int hr_cli_doctor(const hr_cli_arguments *arguments);
int hr_cli_help(const hr_cli_arguments *arguments);
int hr_cli_version(const hr_cli_arguments *arguments);

#endif
