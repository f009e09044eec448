/* SPDX-License-Identifier: Apache-2.0 */
/* cli/table.c - the table of all commands and options. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "headroom/generate.h"
#include "headroom/infer.h"
#include "headroom/plan_grid.h"
#include "headroom/stages.h"

static_assert((int)HR_STOPS_MAX <= HR_CLI_REPEATS_MAX, "all of them have their place");

enum { SPECIALS_MAX = 16 };

static_assert(HR_OPTION_COUNT <= 8 * sizeof(hr_cli_options), "each has its bit");

#define TAKES(id) ((hr_cli_options)1 << HR_OPTION_##id)

static const hr_cli_option options[HR_OPTION_COUNT] = {
    [HR_OPTION_BUDGET] = { "budget", "SIZE",
                           "memory limit of the whole process: 700MiB, 733MB, 4GiB or plain bytes "
                           "(default: the available memory of this machine)" },
    [HR_OPTION_PLAN_OUT] = { "out", "FILE.json", "write the plan to a JSON file" },
    [HR_OPTION_TRAIN_OUT] = { "out", "DIR",
                              "output directory: weights, checkpoints, logs, tokenized data" },
    [HR_OPTION_RUNS_CSV] = { "csv", NULL, "print every step and evaluation as CSV instead" },
    [HR_OPTION_RUNS_HTML] = { "html", "FILE.html",
                              "write the runs as a page: charts of their losses, and the tables" },
    [HR_OPTION_PACK_OUT] = { "out", "FILE.csv", "write the rows and their offsets to a CSV file" },
    [HR_OPTION_CAPACITY] = { "capacity", "SIZE", "stop at the first placement within this size" },
    [HR_OPTION_SECONDS] = { "seconds", "N", "time limit in seconds (default 10)" },
    [HR_OPTION_METRICS] = { "metrics", "FILE.jsonl",
                            "write the metrics of each step, one JSON object per line" },
    [HR_OPTION_QUIET] = { "quiet", NULL, "print no steps and no progress" },
    [HR_OPTION_FRESH] = { "fresh", NULL,
                          "start over: delete the checkpoints in --out and replace its model" },
    [HR_OPTION_ALLOW_CHANGE] = { "allow-change", "KEY",
                                 "resume although the value of this key has changed",
                                 HR_CLI_REPEATS_MAX },
    [HR_OPTION_JSON] = { "json", NULL, "print JSON instead of text" },
    [HR_OPTION_PROGRAM] = { "program", NULL,
                            "print the planned operations instead, as outputs <- inputs; an output "
                            "is r: rows, w: written as a whole, a: accumulated, u: updated in "
                            "place" },
    [HR_OPTION_LARGEST] = { "largest", "KEY",
                            "print the largest value of a key, such as train.seq_len, that fits" },
    [HR_OPTION_SMALLEST] = { "smallest", NULL,
                             "print the smallest budget, and the smallest with a fast plan "
                             "(--slowdown)" },
    [HR_OPTION_SLOWDOWN] = { "slowdown", "PERCENT",
                             "with --smallest: a plan is fast up to this slowdown (default 10%)" },
    [HR_OPTION_FRONTIER] = { "frontier", NULL,
                             "print the best trade-offs of memory and tokens per second, with a "
                             "plot" },
    [HR_OPTION_SVG] = { "svg", "FILE.svg",
                        "write the plot of --frontier, or the heat map of --grid, to an SVG file" },
    [HR_OPTION_STAGE] = { "stage", "N", "take stage N of train.stages as a recipe of its own" },
    [HR_OPTION_HTML] = { "html", "FILE.html",
                         "write the plan as a page: its bytes over the step, its tables" },
    [HR_OPTION_PROFILE_HTML] = { "html", "FILE.html",
                                 "write the profile as a page: planned bytes over the step, its "
                                 "tables with bars" },
    [HR_OPTION_SNAPSHOT] = { "snapshot", "FILE.pickle",
                             "write the plan as a memory snapshot for the viewer of PyTorch" },
    [HR_OPTION_TRACE] = { "trace", "FILE.json",
                          "write the operations of the last step as a trace for ui.perfetto.dev" },
    [HR_OPTION_SCHEDULE] = { "schedule", "FILE.svg",
                             "write a plot of the learning rate over the run to an SVG file" },
    [HR_OPTION_AS] = { "as", "FRAMEWORK",
                       "estimate what another framework takes: pytorch, hf-trainer, trl, axolotl, "
                       "deepspeed-z2 or deepspeed-z3" },
    [HR_OPTION_ASSUME] = { "assume", "NAME=VALUE",
                           "with --as: change an assumption that it prints, such as "
                           "attention=eager",
                           HR_CLI_REPEATS_MAX },
    [HR_OPTION_DEVICE] = { "device", "NAME[,...]",
                           "plan for a device of headroom devices instead of this machine, with "
                           "optional settings: rtx-4090,host=64GiB,disk=500GiB,reserve=1GiB" },
    [HR_OPTION_DEVICE_FILE] = { "device-file", "FILE.yaml",
                                "also know the devices of this file, for --device" },
    [HR_OPTION_DEVICES] = { "devices", "LIST",
                            "plan for each of these devices, or all: one line or column each" },
    [HR_OPTION_GRID] = { "grid", "KEY=VALUES",
                         "plan every combination of values: train.batch=8,16,32, 64..4096 "
                         "(doubling), 8..64+8 (adding), or KEY,KEY=8:4096,16:2048",
                         HR_GRID_AXES_MOST },
    [HR_OPTION_GRID_TOKENS] = { "tokens", "N",
                                "with --grid or --devices: also print the hours for N tokens, such "
                                "as 1B" },
    [HR_OPTION_CSV] = { "csv", NULL, "with --grid or --devices: print CSV instead of text" },
    [HR_OPTION_DEVICES_FILE] = { "file", "FILE.yaml",
                                 "also list the devices of this file: a mapping of names to "
                                 "figures" },
    [HR_OPTION_THREADS] = { "threads", "N",
                            "number of threads (default: as CPU affinity and cgroup quota allow)" },
    [HR_OPTION_CHECK] = { "check", NULL,
                          "compare predicted with measured step times instead of calibrating" },
    [HR_OPTION_RECIPES] = { "recipes", "N",
                            "number of recipes for --check, at most 40 (default 10)" },
    [HR_OPTION_KERNELS] = { "kernels", "NAME",
                            "instruction set of the kernels: ref, avx2, avx512, avx512bf16 or amx "
                            "(default: best of this CPU)" },
    [HR_OPTION_SHARD_BYTES] = { "shard-bytes", "SIZE",
                                "split the output into files of at most this size, with an index" },
    [HR_OPTION_PREFIX] = { "prefix", "NAME",
                           "change the prefix of the tensor names: none, model., transformer. or "
                           "gpt_neox." },
    [HR_OPTION_DTYPE] = { "dtype", "NAME",
                          "convert floating-point tensors to f32, f16, bf16 or f8_e4m3" },
    [HR_OPTION_PROMPT] = { "prompt", "TEXT", "prompt text" },
    [HR_OPTION_FILE] = { "file", "FILE", "read the prompt from a file; -: standard input" },
    [HR_OPTION_PROMPT_IDS] = { "prompt-ids", "LIST", "prompt as token ids: 29,1,11" },
    [HR_OPTION_PRINT_IDS] = { "print-ids", NULL, "print token ids instead of text" },
    [HR_OPTION_TOKENIZER] = { "tokenizer", "FILE",
                              "tokenizer file or folder, or bytes (generate, eval: default that "
                              "of the model)" },
    [HR_OPTION_MAX_TOKENS] = { "max-tokens", "N", "maximum number of new tokens (default 128)" },
    [HR_OPTION_CHUNK] = { "chunk", "N",
                          "prompt tokens per forward pass (default: as many as fit, at most 512)" },
    [HR_OPTION_TEMPERATURE] = { "temperature", "X",
                                "sampling temperature; 0: greedy (default 0.8)" },
    [HR_OPTION_TOP_K] = { "top-k", "N", "sample from the N most likely tokens (default: all)" },
    [HR_OPTION_TOP_P] = { "top-p", "X",
                          "sample from the fewest tokens with this total probability (default 1)" },
    [HR_OPTION_MIN_P] = { "min-p", "X",
                          "minimum probability relative to the most likely token (default 0)" },
    [HR_OPTION_REPETITION_PENALTY] = { "repetition-penalty", "X",
                                       "penalty of tokens that already occurred, as in Hugging "
                                       "Face, 0.01 to 100 (default 1: none)" },
    [HR_OPTION_STOP] = { "stop", "TEXT", "stop string; it is not printed", HR_STOPS_MAX },
    [HR_OPTION_IGNORE_EOS] = { "ignore-eos", NULL,
                               "go on after the end tokens of the model and its tokenizer" },
    [HR_OPTION_SEED] = { "seed", "N", "random seed of sampling (default 0)" },
    [HR_OPTION_FORMAT] = { "dtype", "NAME",
                           "dtype of weights and arithmetic: fp32 or bf16 (default fp32)", 0,
                           "format" },
    [HR_OPTION_WEIGHTS] = { "weights", "NAME",
                            "storage of the weights of layers: compute, f16, bf16, f8_e4m3, or "
                            "auto: as the model says (default compute: in the dtype of --dtype)" },
    [HR_OPTION_WEIGHTS_IN] = { "weights-in", "PLACE",
                               "memory, or file: matrices stay in the files of the model and are "
                               "read for each use (default memory)" },
    [HR_OPTION_ADAPTER] = { "adapter", "FOLDER[=FACTOR]",
                            "add the low-rank adapters of a PEFT folder, times a factor, or those "
                            "of NPT",
                            HR_INFER_ADAPTERS_MAX },
    [HR_OPTION_NPT_LAYERS] = { "npt-layers", "LIST",
                               "layers that use their NPT adapters, as \"4-7 9\"; the others are "
                               "standard; none: all are (default: all that have some)" },
    [HR_OPTION_POSITIONS] = { "positions", "LIST",
                              "tokens of the first sequence, as \"0-3 9\" (default: the last)" },
    [HR_OPTION_TOKEN] = { "token", "N", "row of the capture (default 0)" },
    [HR_OPTION_TOKENS] = { "tokens", "FILE",
                           "evaluate input_ids [B,T] of a safetensors file. labels [B,T] are "
                           "optional and already shifted: labels[b,t] is the target after "
                           "input_ids[b,t], -100 is ignored. Without labels the targets are the "
                           "next tokens" },
    [HR_OPTION_TEXT_FILE] = { "file", "FILE",
                              "evaluate a text: a file, folder or pattern, as for data.valid" },
    [HR_OPTION_CHOICES] = { "choices", "FILE.jsonl",
                            "multiple choice: JSON Lines with context, choices and answer" },
    [HR_OPTION_LOGITS_OUT] = { "logits-out", "FILE",
                               "write the logits [B,T,V] of --tokens to a safetensors file" },
    [HR_OPTION_PER_TOKEN] = { "per-token", "FILE.jsonl",
                              "write the loss of each token, one JSON object per line" },
    [HR_OPTION_CONTEXT] = { "context", "N",
                            "window length in tokens for --file (default 1024, at most the "
                            "positions of the model)" },
    [HR_OPTION_STRIDE] = { "stride", "N",
                           "tokens between the starts of two windows; each token counts once "
                           "(default: --context)" },
    [HR_OPTION_TOKENIZER_OUT] = { "out", "DIR",
                                  "output folder for tokenizer.json, vocab.json and merges.txt" },
    [HR_OPTION_VOCAB_SIZE] = { "vocab-size", "N", "vocabulary size (default 30000)" },
    [HR_OPTION_MIN_FREQUENCY] = { "min-frequency", "N",
                                  "minimum count of a pair to merge (default 0)" },
    [HR_OPTION_LIMIT_ALPHABET] = { "limit-alphabet", "N",
                                   "maximum number of single characters in the vocabulary "
                                   "(default: no limit)" },
    [HR_OPTION_INITIAL_ALPHABET] = { "initial-alphabet", "TEXT",
                                     "characters to include even if they do not occur; bytes: all "
                                     "256 bytes" },
    [HR_OPTION_SPECIAL] = { "special", "TEXT", "special token; these get the first ids",
                            SPECIALS_MAX },
    [HR_OPTION_MAX_TOKEN_LENGTH] = { "max-token-length", "N",
                                     "longest token: fewer than N characters, at least 2 "
                                     "(default: no limit)" },
    [HR_OPTION_PATTERN] = { "pattern", "NAME",
                            "pre-tokenizer: gpt2, cl100k, qwen, o200k, super, super-paper or a "
                            "regular expression (default gpt2; with --transition super)" },
    [HR_OPTION_LIKE] = { "like", "FILE",
                         "use the pre-tokenizer and format of this tokenizer.json" },
    [HR_OPTION_PREFIX_SPACE] = { "prefix-space", NULL,
                                 "with gpt2: add a space before every line (add_prefix_space)" },
    [HR_OPTION_TRANSITION] = { "transition", "N",
                               "SuperBPE: stage 2, whose merges may cross words, begins with "
                               "the first N lines of the merges.txt of stage 1" },
    [HR_OPTION_INHERIT] = { "inherit", "FILE",
                            "SuperBPE: take the merges of stage 1 from this merges.txt" },
    [HR_OPTION_PATTERN_TWO] = { "pattern-two", "NAME",
                                "pre-tokenizer of stage 2: super, super-paper or a regular "
                                "expression (default super)" },
    [HR_OPTION_LIKE_TWO] = { "like-two", "FILE",
                             "use the stage 2 pre-tokenizer of this tokenizer.json" },
    [HR_OPTION_JSONL] = { "jsonl", NULL, "read JSON Lines, one text per line" },
    [HR_OPTION_BARE] = { "bare", NULL, "do not add special tokens around each text" },
    [HR_OPTION_KIND] = { "kind", "NAME",
                         "what the file is: claims, markdown, recipe, hf, trl, axolotl, "
                         "llama-factory, torchtune, deepspeed or mlx-lm (default: by its "
                         "content)" },
    [HR_OPTION_MODEL] = { "model", "MODEL",
                          "model of a training file that names none or an unknown one: a published "
                          "model, a preset, a recipe, or a folder with config.json" },
    [HR_OPTION_PROCESSES] = { "processes", "N", "number of processes that train (default 1)" },
    [HR_OPTION_LENGTH] = { "length", "N",
                           "tokens of a sequence, for a training file that does not say it" },
    [HR_OPTION_CHECKPOINTING] = { "checkpointing", "on|off",
                                  "whether the training checkpoints activations, for a file that "
                                  "does not say it" },
    [HR_OPTION_KEEP_SPECIAL] = { "keep-special", NULL, "print special tokens" },
    [HR_OPTION_LIMIT] = { "limit", "SIZE",
                          "size limit of the cache, or none (default: $HEADROOM_CACHE_LIMIT, or "
                          "16GiB)" },
    [HR_OPTION_ONLY] = { "only", "NAME", "run one proof" },
    [HR_OPTION_STEPS] = { "steps", "N", "training steps of each run, at most 16 (default 2)" },
    [HR_OPTION_PROFILE_STEPS] = { "steps", "N",
                                  "training steps (default 3); of several the first is not "
                                  "counted" },
    [HR_OPTION_DIR] = { "dir", "DIR",
                        "directory for temporary files (default $TMPDIR, or /var/tmp)" },
    [HR_OPTION_MAN] = { "man", NULL, "print the manual page, or that of a command (roff)" },
    [HR_OPTION_COMPLETION] = { "completion", "SHELL",
                               "print the shell completion: bash, zsh or fish" },
    [HR_OPTION_HELP] = { "help", NULL, "print this help" },
};

static const hr_cli_command commands[] = {
    { "plan", "RECIPE", "print whether a run fits, its memory and how to reduce it",
      "RECIPE is a preset (headroom presets lists them) or a YAML file (headroom keys lists\n"
      "what it can contain).\n"
      "Plans all memory of a training run without running it. When nothing fits, the exit\n"
      "code is 3 and changes that make it fit are listed. --largest, --smallest and\n"
      "--frontier search all plans of the recipe, --grid and --devices plan many recipes and\n"
      "devices; at most one of them can be given, but --grid with --devices. --as estimates\n"
      "what another framework would take for the same recipe, alone or with --largest, --grid\n"
      "or --devices.",
      TAKES(BUDGET) | TAKES(PLAN_OUT) | TAKES(JSON) | TAKES(PROGRAM) | TAKES(LARGEST) |
          TAKES(SMALLEST) | TAKES(SLOWDOWN) | TAKES(FRONTIER) | TAKES(SVG) | TAKES(AS) |
          TAKES(ASSUME) | TAKES(DEVICE) | TAKES(DEVICE_FILE) | TAKES(DEVICES) | TAKES(GRID) |
          TAKES(GRID_TOKENS) | TAKES(CSV) | TAKES(STAGE) | TAKES(SCHEDULE) | TAKES(HTML) |
          TAKES(SNAPSHOT) | TAKES(HELP),
      1, 1, hr_cli_plan, true },
    { "train", "RECIPE", "train within the planned memory",
      "RECIPE is a preset (headroom presets lists them) or a YAML file (headroom keys lists\n"
      "what it can contain).\n"
      "Plans, allocates the memory once, trains, and prints planned and measured memory at\n"
      "the end. With --out, the first Ctrl-C or SIGTERM saves a checkpoint and exits with\n"
      "code 75; the same command resumes. A second one exits at once. SIGUSR1 saves a\n"
      "checkpoint, SIGUSR2 prints memory use. Without --out no weights and no checkpoints are\n"
      "saved.",
      TAKES(BUDGET) | TAKES(TRAIN_OUT) | TAKES(METRICS) | TAKES(QUIET) | TAKES(FRESH) |
          TAKES(ALLOW_CHANGE) | TAKES(STAGE) | TAKES(HELP),
      1, 1, hr_cli_train, true },
    { "generate", "MODEL_DIR", "generate text from a model",
      "MODEL_DIR has config.json and safetensors: the --out of a run, or a Hugging Face\n"
      "model. Prints the text while it is generated, up to an end token (eos_token_id of\n"
      "generation_config.json or config.json). All memory, the KV cache included, is planned\n"
      "before the weights are loaded. Equal seeds give equal text.",
      TAKES(PROMPT) | TAKES(FILE) | TAKES(PROMPT_IDS) | TAKES(PRINT_IDS) | TAKES(TOKENIZER) |
          TAKES(MAX_TOKENS) | TAKES(CHUNK) | TAKES(TEMPERATURE) | TAKES(TOP_K) | TAKES(TOP_P) |
          TAKES(MIN_P) | TAKES(REPETITION_PENALTY) | TAKES(STOP) | TAKES(IGNORE_EOS) | TAKES(SEED) |
          TAKES(FORMAT) | TAKES(WEIGHTS) | TAKES(WEIGHTS_IN) | TAKES(ADAPTER) | TAKES(NPT_LAYERS) |
          TAKES(BUDGET) | TAKES(THREADS) | TAKES(KERNELS) | TAKES(JSON) | TAKES(HELP),
      1, 1, hr_cli_generate },
    { "eval", "MODEL_DIR", "compute loss, accuracy or logits of a model",
      "MODEL_DIR has config.json and safetensors: the --out of a run, or a Hugging Face\n"
      "model. Prints loss in nats per token, perplexity and bits per byte; with --choices,\n"
      "accuracy on multiple choice, by total and by length-normalized log likelihood. All\n"
      "memory is planned before the weights are loaded. The keys of --file are\n"
      "data.text_field, data.prompt_field, data.completion_field and data.bad_lines.",
      TAKES(TOKENS) | TAKES(TEXT_FILE) | TAKES(CHOICES) | TAKES(LOGITS_OUT) | TAKES(PER_TOKEN) |
          TAKES(CONTEXT) | TAKES(STRIDE) | TAKES(TOKENIZER) | TAKES(FORMAT) | TAKES(WEIGHTS) |
          TAKES(WEIGHTS_IN) | TAKES(ADAPTER) | TAKES(NPT_LAYERS) | TAKES(BUDGET) | TAKES(THREADS) |
          TAKES(KERNELS) | TAKES(JSON) | TAKES(HELP),
      1, 1, hr_cli_eval, true },
    { "checkpoint list", "RUN_DIR", "list the checkpoints of a run",
      "RUN_DIR is the --out of a run. Only the manifests of its checkpoints are read.",
      TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_checkpoint_list },
    { "checkpoint verify", "RUN_DIR", "check every file of every checkpoint against its hash",
      "RUN_DIR is the --out of a run. The exit code is 5 if a checkpoint is damaged.",
      TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_checkpoint_verify },
    { "checkpoint prune", "RUN_DIR", "delete checkpoints that the train.keep_* keys do not keep",
      "RUN_DIR is the --out of a run. Deletes damaged and unfinished checkpoints, and those\n"
      "that train.keep_last, train.keep_every and train.keep_best do not keep. The keys are\n"
      "those of the run unless given here. At least one intact checkpoint always remains.",
      TAKES(HELP), 1, 1, hr_cli_checkpoint_prune, true },
    { "runs", "RUN_DIR...", "compare the logs and recipes of runs",
      "Prints for each run its steps, tokens, time, losses, and the bytes that it planned and\n"
      "took; the loss where all have seen as many tokens; and the keys in which the recipes of\n"
      "their newest checkpoints differ. A run may be going on. --html also draws the losses.",
      TAKES(RUNS_CSV) | TAKES(RUNS_HTML) | TAKES(JSON) | TAKES(HELP), 1, HR_CLI_RUNS_MOST,
      hr_cli_runs },
    { "data inspect", "RECIPE", "print statistics and samples of the data of a recipe",
      "RECIPE is a preset (headroom presets lists them) or a YAML file (headroom keys lists\n"
      "what it can contain).\n"
      "Tokenizes data.train and data.valid as train does, or reads the cached tokens. Prints\n"
      "files, documents, tokens, the longest document, masked tokens, skipped lines, epochs\n"
      "of a run, and ten samples.",
      TAKES(TRAIN_OUT) | TAKES(JSON) | TAKES(STAGE) | TAKES(HELP), 1, 1, hr_cli_data, true },
    { "cache path", "", "print the cache directory",
      "The cache holds token shards, vocabularies and calibrations: $XDG_CACHE_HOME/headroom,\n"
      "or ~/.cache/headroom. Runs with --out keep their token shards in DIR instead.",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_cache_path },
    { "cache list", "", "list the files of the cache, most recently used first",
      "Prints the size, the time of the last use, the kind and the name of each file.",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_cache_list },
    { "cache prune", "", "delete the least recently used files of the cache",
      "Deletes token shards and vocabularies until the rest is within the limit. A file in\n"
      "use by a running process is kept. train and data inspect do the same when they use the\n"
      "cache.",
      TAKES(LIMIT) | TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_cache_prune },
    { "cache clear", "", "delete all token shards and vocabularies of the cache",
      "Files in use by a running process and calibrations are kept.", TAKES(JSON) | TAKES(HELP), 0,
      0, hr_cli_cache_clear },
    { "tokenize train", "FILE...", "train a BPE or SuperBPE tokenizer",
      "Writes the same tokenizer.json as Hugging Face tokenizers with the same settings.\n"
      "Prints the memory it will use before it merges; the exit code is 3 when it does not\n"
      "fit. The first Ctrl-C saves the state and exits with code 75; the same command\n"
      "resumes.",
      TAKES(TOKENIZER_OUT) | TAKES(VOCAB_SIZE) | TAKES(MIN_FREQUENCY) | TAKES(LIMIT_ALPHABET) |
          TAKES(INITIAL_ALPHABET) | TAKES(SPECIAL) | TAKES(MAX_TOKEN_LENGTH) | TAKES(PATTERN) |
          TAKES(LIKE) | TAKES(PREFIX_SPACE) | TAKES(TRANSITION) | TAKES(INHERIT) |
          TAKES(PATTERN_TWO) | TAKES(LIKE_TWO) | TAKES(BUDGET) | TAKES(THREADS) | TAKES(JSON) |
          TAKES(HELP),
      1, -1, hr_cli_tokenize_train },
    { "tokenize encode", "[FILE]", "print the token ids of a text",
      "Reads tokenizer.json of BPE, Unigram and data.tokenizer=words, vocab.json with\n"
      "merges.txt, tiktoken files, and tokenizer.model of SentencePiece. The tokenizer bytes\n"
      "has no file. Without FILE, or with -, reads standard input. --jsonl reads {\"text\":\n"
      "...} per line; --json prints {\"ids\": [...]} per line.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(BARE) | TAKES(THREADS) |
          TAKES(JSON) | TAKES(HELP),
      0, 1, hr_cli_tokenize_encode },
    { "tokenize decode", "[FILE]", "print the text of token ids",
      "Ids are separated by spaces, commas or newlines. --jsonl reads {\"ids\": [...]} and\n"
      "prints {\"text\": ...} per line. Without FILE, or with -, reads standard input.\n"
      "Special tokens are not printed.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(KEEP_SPECIAL) | TAKES(HELP), 0, 1,
      hr_cli_tokenize_decode },
    { "tokenize inspect", "TOKENIZER", "print what a tokenizer file contains",
      "Prints tokens, merges, normalizer, pre-tokenizer, tokens added around a text, and\n"
      "memory.",
      TAKES(PATTERN) | TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_tokenize_inspect },
    { "tokenize count", "[FILE]", "count the tokens of a text",
      "Prints bytes, texts, tokens and bytes per token. Without FILE, or with -, reads\n"
      "standard input.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(BARE) | TAKES(THREADS) |
          TAKES(JSON) | TAKES(HELP),
      0, 1, hr_cli_tokenize_count },
    { "tokenize compare", "FILE TOKENIZER...", "compare tokenizers on a text",
      "Prints a row per tokenizer: vocabulary, tokens, bytes per token and time; with --json\n"
      "an object on a line of its own.",
      TAKES(PATTERN) | TAKES(JSONL) | TAKES(THREADS) | TAKES(JSON) | TAKES(HELP), 2, -1,
      hr_cli_tokenize_compare },
    { "convert", "SOURCE OUT_DIR", "copy weights with other shards, tensor names or dtype",
      "SOURCE is a folder with safetensors, sharded or not, or a single file. Tensors are\n"
      "copied unchanged unless --dtype is given. OUT_DIR is created; it must not contain\n"
      "weights. config.json and the tokenizer files are copied too.",
      TAKES(SHARD_BYTES) | TAKES(PREFIX) | TAKES(DTYPE) | TAKES(HELP), 2, 2, hr_cli_convert },
    { "adapter info", "ADAPTER", "list what a folder of adapters has",
      "ADAPTER is a folder of PEFT or of NPT. Prints its rank, base and modules; reads no values.",
      TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_adapter_info },
    { "adapter gguf", "BASE ADAPTER FILE.gguf", "write adapters as a GGUF file, for llama.cpp",
      "BASE is the folder of a model of the families llama, mistral, qwen2, qwen3, gpt2 or\n"
      "gpt_neox, ADAPTER a PEFT folder, or FOLDER=FACTOR. GGUF has adapters of the matrices of\n"
      "layers, without magnitudes (DoRA).",
      TAKES(HELP), 3, 3, hr_cli_adapter_gguf },
    { "adapter capture", "BASE ADAPTER OUT.safetensors",
      "write how NPT adapters change weights at some tokens",
      "ADAPTER is a folder of NPT adapters. Runs the model on a text and writes, for each of the\n"
      "--positions and each matrix, what makes its change: m of a diagonal adapter, or va and vb\n"
      "of outer products. headroom adapter replay makes an adapter for any text from it.",
      TAKES(PROMPT) | TAKES(TOKENS) | TAKES(TOKENIZER) | TAKES(POSITIONS) | TAKES(NPT_LAYERS) |
          TAKES(FORMAT) | TAKES(WEIGHTS) | TAKES(BUDGET) | TAKES(THREADS) | TAKES(KERNELS) |
          TAKES(HELP),
      3, 3, hr_cli_adapter_capture },
    { "adapter replay", "ADAPTER CAPTURE OUT_DIR",
      "make the change of one captured token a low-rank adapter",
      "CAPTURE is a file of headroom adapter capture of ADAPTER. OUT_DIR gets a PEFT folder that "
      "changes\n"
      "the weights of standard layers as the token did: use it with generate and eval,\n"
      "--adapter OUT_DIR or OUT_DIR=FACTOR, or add it for good with headroom adapter merge.",
      TAKES(TOKEN) | TAKES(HELP), 3, 3, hr_cli_adapter_replay },
    { "adapter merge", "BASE ADAPTER OUT_DIR", "add low-rank adapters to the weights of their base",
      "BASE is the folder of a model, ADAPTER a PEFT folder, or FOLDER=FACTOR. OUT_DIR gets a\n"
      "model without adapters: the matrices of BASE plus what the adapters add, in the dtypes\n"
      "of BASE unless --dtype is given; config.json and the tokenizer files are copied.",
      TAKES(SHARD_BYTES) | TAKES(DTYPE) | TAKES(HELP), 3, 3, hr_cli_adapter_merge },
    { "calibrate", "", "measure this machine to predict step times",
      "Runs small recipes for less than a minute and stores kernel timings in\n"
      "$XDG_CACHE_HOME/headroom. With --check it predicts the step time of other recipes,\n"
      "runs them, and prints both. Rows measured while the machine was faster or slower than\n"
      "during calibration are marked.",
      TAKES(THREADS) | TAKES(KERNELS) | TAKES(CHECK) | TAKES(RECIPES) | TAKES(JSON) | TAKES(HELP),
      0, 0, hr_cli_calibrate },
    { "devices", "[NAME]", "list the machines that plan --device can plan for",
      "Prints memory as drivers report it, bandwidth and peaks by format; with NAME also the\n"
      "source of every figure.",
      TAKES(DEVICES_FILE) | TAKES(JSON) | TAKES(HELP), 0, 1, hr_cli_devices, .small = true },
    { "doctor", "", "print what this machine has and which kernels are used",
      "Prints cores, instruction sets, memory, huge pages, cgroup limits and ulimits.",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_doctor },
    { "keys", "", "list all recipe keys with default, unit and range",
      "Keys can be set in the recipe, or after it on the command line as key=value.\n"
      "model.family:\n"
      "  gpt_neox                        Pythia and GPT-NeoX\n"
      "  gpt2, opt, gpt_neo              GPT-2, OPT, GPT-Neo\n"
      "  llama, mistral, qwen2, qwen3    the Hugging Face models of these names (\"llama-like\" "
      "keys)\n"
      "  yxanul                          llama-like, with a factorized embedding\n"
      "  needle                          learned positions, separate norms for Q, K and V, ReLU\n"
      "  wide                            gated recurrence or spiking neurons, wide output head",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_keys, .small = true },
    { "presets", "[NAME]", "list the recipes that come with headroom, or print one",
      "A preset is a recipe with a name: headroom plan NAME. Printed to a file, it is a recipe\n"
      "to edit: headroom presets NAME > mine.yaml.",
      TAKES(JSON) | TAKES(HELP), 0, 1, hr_cli_presets, .small = true },
    { "verify", "FILE.json...", "check a plan file for overlapping buffers",
      "FILE.json is from plan --out. Recomputes lifetimes, overlaps, peak and floor from the\n"
      "operations in the file, independently of the planner. When two live buffers overlap,\n"
      "the exit code is 4 and both are named. Several files are the stages of one run: what\n"
      "lives through it must be at the same bytes in all.",
      TAKES(JSON) | TAKES(HELP), 1, HR_STAGES_MAX, hr_cli_verify },
    { "audit", "FILE", "check stated memory numbers, and plan the training files of other programs",
      "FILE is a list of claims, a Markdown document, a recipe or preset, or a training\n"
      "configuration of Hugging Face, TRL, axolotl, LLaMA-Factory, torchtune, DeepSpeed or\n"
      "mlx-lm. Nothing of it is run. The exit code is 4 when a claim is wrong, 3 when a\n"
      "training file does not fit --device, 7 when it has what no estimate here knows, 2 when\n"
      "it cannot be read. Of prose, numbers with words that it knows are checked; the exact way\n"
      "is a list of claims with their formulas, such as tests/audit/documents.yaml.\n"
      "docs/audit.md has the formats.",
      TAKES(KIND) | TAKES(MODEL) | TAKES(PROCESSES) | TAKES(LENGTH) | TAKES(CHECKPOINTING) |
          TAKES(DEVICE) | TAKES(DEVICE_FILE) | TAKES(JSON) | TAKES(HELP),
      1, 1, hr_cli_audit },
    { "profile", "RECIPE", "measure the operations of some training steps",
      "RECIPE is a preset or a YAML file (headroom keys lists what it can contain).\n"
      "Trains a few steps within the plan, saves nothing, and prints the time of a step by part\n"
      "of the model and by operation, beside the predicted time and what the operations compute\n"
      "per second.",
      TAKES(PROFILE_STEPS) | TAKES(BUDGET) | TAKES(JSON) | TAKES(TRACE) | TAKES(PROFILE_HTML) |
          TAKES(STAGE) | TAKES(HELP),
      1, 1, hr_cli_profile, true },
    { "prove", "RECIPE", "prove that the choices of a plan do not change results",
      "RECIPE is a preset or a YAML file (headroom keys lists what it can contain).\n"
      "Trains the recipe for a few steps in pairs of runs, one of which keeps everything, and\n"
      "compares losses, gradients, weights and optimizer states of each tensor. Proofs: plan,\n"
      "micro-batch, loss-chunk, mlp-tile, attention-tile, recompute, again, release, order,\n"
      "together, threads, resume, moments, spill, base, masters, pattern, nsa, factors,\n"
      "adapter, npt, weights. Each run is planned within the budget. When a proof fails, the exit\n"
      "code is 4 and the tensor is named.",
      TAKES(ONLY) | TAKES(STEPS) | TAKES(BUDGET) | TAKES(DIR) | TAKES(JSON) | TAKES(STAGE) |
          TAKES(HELP),
      1, 1, hr_cli_prove, true },
    { "pack", "FILE.csv", "assign offsets to buffers of given sizes and lifetimes",
      "Each row of FILE.csv is a buffer: id,lower,upper,size. It is live from time lower up\n"
      "to, but not including, upper; at most 1,048,576 rows. Buffers that are live at the\n"
      "same time do not overlap. Without --capacity, the total is minimized. The exit code is\n"
      "3 when no placement within the capacity exists, 7 when the time limit ended the\n"
      "search.",
      TAKES(CAPACITY) | TAKES(SECONDS) | TAKES(PACK_OUT) | TAKES(JSON) | TAKES(HELP), 1, 1,
      hr_cli_pack },
    { "help", "[COMMAND|TERM]", "print help, the manual page or the shell completion",
      "help COMMAND prints the options of a command, help TERM explains a word of the output,\n"
      "help terms all of them. Without either: the list of commands.",
      TAKES(MAN) | TAKES(COMPLETION) | TAKES(HELP), 0, 5, hr_cli_help, .small = true },
    { "version", "", "print the version", "Prints the version of the program and its library.",
      TAKES(HELP), 0, 0, hr_cli_version, .small = true },
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

const hr_cli_command *hr_cli_command_at(int32_t index)
{
    return index >= 0 && index < COMMAND_COUNT ? &commands[index] : NULL;
}

const hr_cli_option *hr_cli_option_at(int32_t id)
{
    return id >= 0 && id < HR_OPTION_COUNT ? &options[id] : NULL;
}

const char *hr_cli_repeat_note(const hr_cli_option *option, char text[32])
{
    if (!option->most) return "";
    snprintf(text, 32, "; may be repeated, at most %d", option->most);
    return text;
}

const char *hr_cli_operands(const hr_cli_command *command, char text[HR_CLI_OPERANDS_BYTES])
{
    snprintf(text, HR_CLI_OPERANDS_BYTES, "%s%s", command->operands,
             command->keys ? " [key=value ...]" : "");
    return text;
}

const hr_cli_command *hr_cli_command_find(const char *name)
{
    for (int32_t i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

bool hr_cli_is_of_group(const hr_cli_command *command, const char *group)
{
    const size_t length = strlen(group);
    return !strncmp(command->name, group, length) && command->name[length] == ' ';
}

bool hr_cli_is_group(const char *name)
{
    for (int32_t i = 0; i < COMMAND_COUNT; i++)
        if (hr_cli_is_of_group(&commands[i], name)) return true;
    return false;
}

bool hr_cli_takes(const hr_cli_command *command, int32_t id)
{
    return command->options >> id & 1;
}
