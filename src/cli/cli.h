/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cli.h - the command line: one table of commands and options is the source of the parser, the
 * help, the manual page and the completion. One file per command; all include only
 * include/headroom. */
#ifndef HR_CLI_CLI_H
#define HR_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/config.h"
#include "headroom/devices.h"
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
    HR_OPTION_STAGE,
    HR_OPTION_SCHEDULE,
    HR_OPTION_HTML,
    HR_OPTION_SNAPSHOT,
    HR_OPTION_TRACE,
    HR_OPTION_RUNS_CSV,
    HR_OPTION_RUNS_HTML,
    HR_OPTION_PROFILE_HTML,
    HR_OPTION_QUIET,
    HR_OPTION_AS,
    HR_OPTION_ASSUME,
    HR_OPTION_DEVICE,
    HR_OPTION_DEVICE_FILE,
    HR_OPTION_DEVICES_FILE,
    HR_OPTION_DEVICES,
    HR_OPTION_GRID,
    HR_OPTION_GRID_TOKENS,
    HR_OPTION_CSV,
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
    HR_OPTION_IGNORE_EOS,
    HR_OPTION_SEED,
    HR_OPTION_FORMAT,
    HR_OPTION_WEIGHTS,
    HR_OPTION_WEIGHTS_IN,
    HR_OPTION_ADAPTER,
    HR_OPTION_NPT_LAYERS,
    HR_OPTION_POSITIONS,
    HR_OPTION_TOKEN,
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
    HR_OPTION_KIND,
    HR_OPTION_MODEL,
    HR_OPTION_PROCESSES,
    HR_OPTION_LENGTH,
    HR_OPTION_CHECKPOINTING,
    HR_OPTION_ONLY,
    HR_OPTION_STEPS,
    HR_OPTION_PROFILE_STEPS,
    HR_OPTION_DIR,
    HR_OPTION_MAN,
    HR_OPTION_COMPLETION,
    HR_OPTION_HELP,
    HR_OPTION_COUNT
} hr_cli_option_id;

enum { HR_CLI_REPEATS_MAX = 128 }; /* more than there are keys */

/* One bit per hr_cli_option_id, 128 at most. */
typedef unsigned __int128 hr_cli_options;

typedef struct {
    const char *name;     /* without the dashes */
    const char *argument; /* "SIZE"; null: no argument */
    const char *text;
    int32_t most;         /* maximum repetitions, at most HR_CLI_REPEATS_MAX; 0: once */
    const char *old_name; /* deprecated name, accepted for one version; null: none */
} hr_cli_option;

typedef struct {
    const char *program; /* argv[0] */
    const struct hr_cli_command *command;
    const char *values[HR_OPTION_COUNT]; /* null: not given; empty text: given without an
                                          * argument */
    /* [repeated_count] values of the repeatable options, in order, those of one option together */
    const char *repeated[HR_CLI_REPEATS_MAX];
    int16_t repeated_id[HR_CLI_REPEATS_MAX]; /* hr_cli_option_id */
    int32_t repeated_count;
    char **operands; /* [operand_count] of argv: the recipe, then key=value */
    int32_t operand_count;
} hr_cli_arguments;

typedef struct hr_cli_command {
    const char *name;
    const char *operands;                /* "RECIPE" */
    const char *text;                    /* one line */
    const char *more;                    /* a few lines */
    hr_cli_options options;              /* accepted options */
    int32_t operand_least, operand_most; /* most < 0: unlimited */
    int (*run)(const hr_cli_arguments *arguments);
    bool keys;  /* the operands may be followed by key=value */
    bool small; /* works with any stack limit, so the limit is not checked */
} hr_cli_command;

/* Rows of the tables; null after the last one. */
const hr_cli_command *hr_cli_command_at(int32_t index);
const hr_cli_option *hr_cli_option_at(int32_t id);

/* The values of a repeatable option; their number in `count`. */
const char *const *hr_cli_repeated(const hr_cli_arguments *arguments, int32_t id, int32_t *count);

/* Returns "; may be repeated, at most 16" for a repeatable option, else an empty text. */
const char *hr_cli_repeat_note(const hr_cli_option *option, char text[32]);

/* Returns the text after the command's name: "RECIPE [key=value ...]". */
enum { HR_CLI_OPERANDS_BYTES = 64 };
const char *hr_cli_operands(const hr_cli_command *command, char text[HR_CLI_OPERANDS_BYTES]);

/* Returns the command of that name, or null. */
const hr_cli_command *hr_cli_command_find(const char *name);

/* Returns true when a command belongs to a group, such as "tokenize train" to "tokenize". */
bool hr_cli_is_of_group(const hr_cli_command *command, const char *group);

/* Returns true when a group of that name exists. */
bool hr_cli_is_group(const char *name);

/* Returns true when a command accepts an option. */
bool hr_cli_takes(const hr_cli_command *command, int32_t id);

/* Parses the arguments after the command's name. Reorders `words` [count]: operands come first.
 * Errors   USAGE  with the most similar option. */
HR_MUST_CHECK hr_status hr_cli_parse(const hr_cli_command *command, char **words, int32_t count,
                                     hr_cli_arguments *arguments, hr_error *err);

/* Prints the command line with shell quotes where needed, without a newline. */
void hr_cli_put_command(FILE *file, const hr_cli_arguments *arguments);

/* Warns that this processor has only the reference kernels, and why. */
void hr_cli_warn_processor(void);

/* Applies defaults, the recipe, key=value in order, --budget and --out, and checks the result. */
HR_MUST_CHECK hr_status hr_cli_recipe(const hr_cli_arguments *arguments, hr_config *config,
                                      hr_error *err);

/* The same without adopting model.from and rows of data, and without the check: for commands that
 * set further keys. */
HR_MUST_CHECK hr_status hr_cli_recipe_keys(const hr_cli_arguments *arguments, hr_config *config,
                                           hr_error *err);

/* For questions about one length and batch: leaves train.stages out, and says so. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_leave_stages(hr_config *config, hr_error *err);

/* A command with settings of its own. Returns the exit code. */
typedef int hr_cli_config_command(const hr_cli_arguments *arguments, hr_config *config);
int hr_cli_with_config(const hr_cli_arguments *arguments, hr_cli_config_command *command);

/* A recipe of presets/: its name and its YAML. */
typedef struct {
    const char *name, *text;
} hr_cli_preset;

/* All presets by name; a null name after the last one. The build generates them. */
extern const hr_cli_preset hr_cli_preset_rows[];

/* Returns the preset of that name, or null. */
const hr_cli_preset *hr_cli_preset_find(const char *name);

/* Reads a recipe: a preset by its name, or else a file. Errors as hr_config_read, with similar
 * presets if there is no such file. */
HR_MUST_CHECK hr_status hr_cli_read_recipe(hr_config *config, const char *name, hr_error *err);

/* Prints a row of two columns, the second one wrapped at 100. A left part that is too long has its
 * own line. */
void hr_cli_print_row(const char *left, int columns, const char *text);

/* Returns the current name of a key that may be a deprecated one; prints a warning to standard
 * error for those. Returns a word that is no key unchanged. */
const char *hr_cli_key_name(const char *name);

/* Checks that `path` can be created or replaced as a file: a device or pipe would be replaced, not
 * written to. Null is accepted. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_check_out(const char *path, hr_error *err);

/* Checks that no two options of a command write one file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_check_outputs(const hr_cli_arguments *arguments, hr_error *err);

/* Same as hr_cli_check_out for the file of another option. */
HR_MUST_CHECK hr_status hr_cli_check_file(const char *option, const char *path, hr_error *err);

/* Returns the directory of calibrations, as hr_cli_cache_directory; null if there is none: plans
 * are then made without calibration. */
const char *hr_cli_calibrations(char *path, int64_t bytes);

/* Replaces the names of corpora by their files in data/, $HEADROOM_DATA and the cache directory, if
 * there is one. */
void hr_cli_find_corpora(hr_config *config);

/* hr_cli_is_query: returns true for --largest, --smallest or --frontier. hr_cli_query:
 * computes and prints the answer. */
bool hr_cli_is_query(const hr_cli_arguments *arguments);
HR_MUST_CHECK hr_status hr_cli_query(const hr_cli_arguments *arguments, const hr_config *config,
                                     const char *calibrations, const hr_device_choice *device,
                                     hr_error *err);

/* The same for --grid and --devices.
 *   config  of hr_cli_recipe_keys
 *   own     devices of --device-file, or null */
bool hr_cli_is_grid(const hr_cli_arguments *arguments);
HR_MUST_CHECK hr_status hr_cli_grid(const hr_cli_arguments *arguments, const hr_config *config,
                                    const char *calibrations, const hr_device_list *own,
                                    hr_error *err);

/* Reads the devices of a file; *own is null without a path, else to be freed. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_own_devices(const char *path, hr_device_list **own, hr_error *err);

/* The device of --device, if it is given, with those of --device-file, as above. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_device(const hr_cli_arguments *arguments, hr_device_list **own,
                                      hr_device_choice *choice, hr_error *err);

/* plan --as: computes and prints an estimate beside the plan. */
HR_MUST_CHECK hr_status hr_cli_estimate(const hr_cli_arguments *arguments, const hr_config *config,
                                        const char *calibrations, const hr_device_choice *device,
                                        hr_error *err);

/* The parts of it: the assumptions of a recipe and their estimate; memory of a device for a
 * framework; "fits", "does not fit", or "may fit" for a range of bytes. */
struct hr_estimate_settings;
struct hr_estimate_answer;
HR_MUST_CHECK hr_status hr_cli_estimate_settings(const hr_cli_arguments *arguments,
                                                 const hr_config *config,
                                                 const hr_device_choice *device,
                                                 struct hr_estimate_settings *settings,
                                                 hr_error *err);
HR_MUST_CHECK hr_status hr_cli_estimate_one(const hr_cli_arguments *arguments,
                                            const hr_config *config, const hr_device_choice *device,
                                            struct hr_estimate_settings *settings,
                                            struct hr_estimate_answer *answer, hr_error *err);
int64_t hr_cli_estimate_memory(const hr_device_choice *device);
const char *hr_cli_estimate_verdict(int64_t low, int64_t high, int64_t memory);

/* plan --as with --largest, --grid or --devices.
 *   recipe   of hr_cli_recipe_keys
 *   devices  [device_count]; none: the budget */
HR_MUST_CHECK hr_status hr_cli_estimates(const hr_cli_arguments *arguments, const hr_config *recipe,
                                         const hr_device_choice *devices, int32_t device_count,
                                         hr_error *err);

/* The cache directory: $XDG_CACHE_HOME/headroom, or ~/.cache/headroom; empty if neither variable is
 * set. path [bytes] out. Errors USAGE  too long. */
HR_MUST_CHECK hr_status hr_cli_cache_directory(char *path, int64_t bytes, hr_error *err);

/* Sets the cache directory as the location of token shards, for recipes without train.out and
 * data.cache.
 *   limit_bytes  out; limit of the directory: $HEADROOM_CACHE_LIMIT, or 16 GiB. 0: no limit, or
 *                the shards are elsewhere
 * Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_take_cache(hr_config *config, int64_t *limit_bytes, hr_error *err);

/* Parse the value of an option: any number, or an integer >= 0. `value` is unchanged if the option
 * was not given. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_number(const hr_cli_arguments *arguments, hr_cli_option_id id,
                                      double *value, hr_error *err);
HR_MUST_CHECK hr_status hr_cli_whole(const hr_cli_arguments *arguments, hr_cli_option_id id,
                                     int64_t *value, hr_error *err);

/* Requests to end, by SIGINT or SIGTERM. */
typedef struct {
    volatile sig_atomic_t interrupts; /* requests so far */
    volatile sig_atomic_t number;     /* the last signal; 0: none */
} hr_cli_signals;

const hr_cli_signals *hr_cli_received_signals(void);

/* Installs handlers for SIGINT and SIGTERM. The first request is counted; the second prints `said`,
 * unless it is null, and ends the program immediately. Returns the counter. */
const volatile sig_atomic_t *hr_cli_catch_signals(const char *said);

/* Installs a handler for two signals, which do not interrupt each other. */
void hr_cli_catch(void (*handler)(int), int first, int second);

/* Exit code for the last signal. */
int hr_cli_signal_code(void);

/* Monotonic clock. */
int64_t hr_cli_now_ns(void);

enum { HR_CLI_WORK_BYTES = 64 };

/* State of a progress line. Initialize with { 0 }. */
typedef struct {
    char name[HR_CLI_WORK_BYTES];
    int64_t begun_ns;
} hr_cli_work;

/* Shows the progress of the work, with the remaining time. */
void hr_cli_show_work(hr_progress *progress, hr_cli_work *shown, const char *work, int64_t done,
                      int64_t total);

/* Shows the progress of work in bytes, such as reading a text. */
void hr_cli_show_bytes(hr_progress *progress, const char *work, int64_t bytes_done,
                       int64_t bytes_total);

/* The progress line of a search for plans, with the elapsed time. */
typedef struct {
    hr_progress progress;
    int64_t begun_ns;
} hr_cli_planning;

void hr_cli_planning_begin(hr_cli_planning *planning);
void hr_cli_planning_show(void *planning); /* the callback of hr_plan_progress */
void hr_cli_planning_end(hr_cli_planning *planning);

/* Fills a request from the model directory (the operand) and the common options. Installs the
 * signal handlers. Errors USAGE. */
HR_MUST_CHECK hr_status hr_cli_model(const hr_cli_arguments *arguments, hr_infer_request *request,
                                     hr_error *err);

/* Print time and memory of a run: as JSON members inside an open object, and as text. */
void hr_cli_put_json_run(const hr_infer_result *result);
void hr_cli_put_run(FILE *file, const hr_infer_result *result);

/* Prints what a run read of weights that stay in their files. */
void hr_cli_put_reads(FILE *file, int64_t bytes, double seconds, double waited);

/* Prints "headroom: sentence" to standard error and returns the exit code. */
int hr_cli_fail(const hr_error *err);

/* Prints an object, which may be null without memory, and a line end, and releases it.
 *   flags  of jansson, beside indentation; 0: none */
struct json_t;
hr_status hr_cli_print_json(struct json_t *object, size_t flags);

/* Whether all objects were printed. Prints a sentence to standard error if not. */
bool hr_cli_json_arrived(void);

/* Prints a field of CSV; quotes it if it contains a comma, a quote or a line break. */
void hr_cli_put_field(const char *text);

/* A string with the text as hr_cli_write_text prints it: of a file name, which may be no UTF-8.
 * Null without memory. */
struct json_t *hr_cli_json_string(const char *text);

/* Whether the locale has UTF-8, and with it block characters. */
bool hr_cli_has_blocks(void);

/* Same for an unknown command: a group's name alone, a group with an unknown word, or an unknown
 * word. `second` is the next word, or null. Suggests a similar command. */
int hr_cli_fail_command(const char *name, const char *second);

/* Formats a count as "1,048,576" in one of eight static buffers, used in rotation. */
const char *hr_cli_count(int64_t count);

/* The same for a size, "1.2 GiB". */
const char *hr_cli_size(int64_t bytes);

/* Formats "WORK: 1.2 MiB of 30.0 MiB", or only the work if the total is unknown. */
void hr_cli_progress_text(const char *work, int64_t bytes_done, int64_t bytes_total,
                          char text[HR_PROGRESS_BYTES]);

/* Print model output and texts of files, which can be any bytes. hr_cli_put_text: "?" for invalid
 * UTF-8 and control characters; the others are it for a string and another stream.
 * hr_cli_put_json_text: the inside of a JSON string, U+FFFD for invalid UTF-8. */
void hr_cli_put_text(const char *text, int64_t bytes);
void hr_cli_put_string(const char *text);
void hr_cli_write_text(FILE *to, const char *text, int64_t bytes);
void hr_cli_put_json_text(const char *text, int64_t bytes);

/* A term of the output and its meaning in one line. */
typedef struct {
    const char *name, *text;
} hr_cli_term;

/* hr_cli_term_at: rows of the glossary in order, null after the last one. hr_cli_term_find: the
 * term of that name, also in the plural and ignoring case, or null. hr_cli_print_terms: prints all
 * as "NAME: TEXT". */
const hr_cli_term *hr_cli_term_at(int32_t index);
const hr_cli_term *hr_cli_term_find(const char *name);
void hr_cli_print_terms(void);

/* Prints the help of a command, the overview for null, or the commands of a group. */
void hr_cli_print_help(const hr_cli_command *command);
void hr_cli_print_group(const char *group);
void hr_cli_print_manual(void);
void hr_cli_print_command_manual(const hr_cli_command *command);
bool hr_cli_print_completion(const char *shell);

enum { HR_CLI_RUNS_MOST = 32 };
int hr_cli_runs(const hr_cli_arguments *arguments);
int hr_cli_plan(const hr_cli_arguments *arguments);
int hr_cli_audit(const hr_cli_arguments *arguments);
int hr_cli_verify(const hr_cli_arguments *arguments);
int hr_cli_profile(const hr_cli_arguments *arguments);
int hr_cli_prove(const hr_cli_arguments *arguments);
int hr_cli_train(const hr_cli_arguments *arguments);
int hr_cli_pack(const hr_cli_arguments *arguments);
int hr_cli_generate(const hr_cli_arguments *arguments);
int hr_cli_eval(const hr_cli_arguments *arguments);
int hr_cli_convert(const hr_cli_arguments *arguments);
int hr_cli_adapter_info(const hr_cli_arguments *arguments);
int hr_cli_adapter_gguf(const hr_cli_arguments *arguments);
int hr_cli_adapter_merge(const hr_cli_arguments *arguments);
int hr_cli_adapter_capture(const hr_cli_arguments *arguments);
int hr_cli_adapter_replay(const hr_cli_arguments *arguments);
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
int hr_cli_devices(const hr_cli_arguments *arguments);
int hr_cli_presets(const hr_cli_arguments *arguments);
int hr_cli_doctor(const hr_cli_arguments *arguments);
int hr_cli_help(const hr_cli_arguments *arguments);
int hr_cli_version(const hr_cli_arguments *arguments);

#endif
