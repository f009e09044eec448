/* SPDX-License-Identifier: Apache-2.0 */
/* cli/table.c - every command and every option, once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "headroom/generate.h"

static_assert((int)HR_STOPS_MAX <= HR_CLI_REPEATS_MAX, "all of them have their place");

static_assert(HR_OPTION_COUNT <= 8 * sizeof(hr_cli_options), "each has its bit");

#define TAKES(id) ((hr_cli_options)1 << HR_OPTION_##id)

static const hr_cli_option options[HR_OPTION_COUNT] = {
    [HR_OPTION_BUDGET] = { "budget", "SIZE",
                           "bytes for the whole process: 700MiB, 733MB, 4GiB or plain bytes" },
    [HR_OPTION_PLAN_OUT] = { "out", "FILE.json", "write the whole plan to a file" },
    [HR_OPTION_TRAIN_OUT] = { "out", "DIR", "directory for weights and token shards" },
    [HR_OPTION_PACK_OUT] = { "out", "FILE.csv", "write the rows with their offsets to a file" },
    [HR_OPTION_CAPACITY] = { "capacity", "SIZE", "be content with any placement in so many bytes" },
    [HR_OPTION_SECONDS] = { "seconds", "N", "stop packing after so many seconds (10)" },
    [HR_OPTION_METRICS] = { "metrics", "FILE.jsonl", "write one JSON object for each step" },
    [HR_OPTION_FRESH] = { "fresh", NULL, "start over: checkpoints that lie in --out are removed" },
    [HR_OPTION_ALLOW_CHANGE] = { "allow-change", "KEY", "go on though this key is not what it was",
                                 HR_CLI_REPEATS_MAX },
    [HR_OPTION_JSON] = { "json", NULL, "print JSON instead of text" },
    [HR_OPTION_PROGRAM] = { "program", NULL, "print the step program instead of the plan" },
    [HR_OPTION_LARGEST] = { "largest", "KEY",
                            "say the largest value of a key, such as train.seq_len, that fits" },
    [HR_OPTION_SMALLEST] = { "smallest", NULL, "say the least budgets, of all and of fast plans" },
    [HR_OPTION_SLOWDOWN] = { "slowdown", "PERCENT",
                             "how much slower --smallest may be than the fastest plan (10%)" },
    [HR_OPTION_FRONTIER] = { "frontier", NULL, "print bytes against tokens a second, with a plot" },
    [HR_OPTION_SVG] = { "svg", "FILE.svg", "draw what --frontier prints in a file" },
    [HR_OPTION_THREADS] = { "threads", "N", "use so many threads (as affinity and quota allow)" },
    [HR_OPTION_CHECK] = { "check", NULL, "hold predictions against runs instead" },
    [HR_OPTION_RECIPES] = { "recipes", "N", "recipes that --check runs, at most 40 (10)" },
    [HR_OPTION_KERNELS] = { "kernels", "NAME",
                            "use these, as train.kernels takes them (the machine's best)" },
    [HR_OPTION_SHARD_BYTES] = { "shard-bytes", "SIZE",
                                "split into files of so many bytes, and write their index" },
    [HR_OPTION_PREFIX] = { "prefix", "NAME",
                           "of all tensors but heads: none, model., transformer., gpt_neox." },
    [HR_OPTION_DTYPE] = { "dtype", "NAME", "round or widen all floats: f32, f16, bf16" },
    [HR_OPTION_PROMPT] = { "prompt", "TEXT", "go on from this text" },
    [HR_OPTION_FILE] = { "file", "FILE", "go on from the text of a file; -: of standard input" },
    [HR_OPTION_PROMPT_IDS] = { "prompt-ids", "LIST", "go on from these token ids: 29,1,11" },
    [HR_OPTION_PRINT_IDS] = { "print-ids", NULL, "print token ids, not text" },
    [HR_OPTION_TOKENIZER] = { "tokenizer", "FILE",
                              "how text becomes tokens: a tokenizer's file or folder; of a model, "
                              "bytes (where it has 256 of them)" },
    [HR_OPTION_MAX_TOKENS] = { "max-tokens", "N", "length of the answer (128)" },
    [HR_OPTION_CHUNK] = { "chunk", "N",
                          "tokens of the prompt at a time (as many as fit, 512 at most)" },
    [HR_OPTION_TEMPERATURE] = { "temperature", "X",
                                "divides logits; 0: always the likeliest token (0.8)" },
    [HR_OPTION_TOP_K] = { "top-k", "N", "choose among the likeliest N tokens (all)" },
    [HR_OPTION_TOP_P] = { "top-p", "X",
                          "choose among the likeliest that hold this share together (1)" },
    [HR_OPTION_MIN_P] = { "min-p", "X",
                          "choose among those at least X times as likely as the likeliest (0)" },
    [HR_OPTION_REPETITION_PENALTY] = { "repetition-penalty", "X",
                                       "divides logits of tokens that were there; 0.01 to 100 "
                                       "(1)" },
    [HR_OPTION_STOP] = { "stop", "TEXT", "end before this text", HR_STOPS_MAX },
    [HR_OPTION_SEED] = { "seed", "N", "of what is drawn (0)" },
    [HR_OPTION_FORMAT] = { "format", "NAME", "weights and arithmetic: fp32 or bf16 (fp32)" },
    [HR_OPTION_TOKENS] = { "tokens", "FILE",
                           "evaluate the input_ids [B,T] of a safetensors file, against its labels "
                           "or the next token" },
    [HR_OPTION_TEXT_FILE] = { "file", "FILE", "evaluate the text of a file" },
    [HR_OPTION_CHOICES] = { "choices", "FILE.jsonl",
                            "multiple choice: an object a line with context, choices and answer" },
    [HR_OPTION_LOGITS_OUT] = { "logits-out", "FILE",
                               "write all logits [B,T,V] of --tokens to a safetensors file" },
    [HR_OPTION_PER_TOKEN] = { "per-token", "FILE.jsonl", "write the loss of each token to a file" },
    [HR_OPTION_CONTEXT] = { "context", "N",
                            "tokens of a window of --file (1024; all positions, if fewer or "
                            "learned)" },
    [HR_OPTION_STRIDE] = { "stride", "N",
                           "tokens from window to window; what two share counts in the first "
                           "(--context)" },
    [HR_OPTION_TOKENIZER_OUT] = { "out", "DIR",
                                  "folder for tokenizer.json, vocab.json and merges.txt" },
    [HR_OPTION_VOCAB_SIZE] = { "vocab-size", "N", "tokens to end with (30000)" },
    [HR_OPTION_MIN_FREQUENCY] = { "min-frequency", "N", "times that a pair has to be there (0)" },
    [HR_OPTION_LIMIT_ALPHABET] = { "limit-alphabet", "N",
                                   "most characters that tokens begin with" },
    [HR_OPTION_INITIAL_ALPHABET] = { "initial-alphabet", "TEXT",
                                     "characters that are in it whatever the text; bytes: all "
                                     "256" },
    [HR_OPTION_SPECIAL] = { "special", "TEXT", "a special token; they get the first ids",
                            HR_CLI_REPEATS_MAX },
    [HR_OPTION_MAX_TOKEN_LENGTH] = { "max-token-length", "N", "characters of a token (any)" },
    [HR_OPTION_PATTERN] = { "pattern", "NAME",
                            "how text is cut: gpt2, cl100k, qwen, o200k, super, super-paper, or a "
                            "regular expression (gpt2; with --transition super)" },
    [HR_OPTION_LIKE] = { "like", "FILE", "cut and write as this tokenizer.json does" },
    [HR_OPTION_PREFIX_SPACE] = { "prefix-space", NULL, "gpt2: a space before every line" },
    [HR_OPTION_TRANSITION] = { "transition", "N",
                               "SuperBPE: from here on tokens go over words; the first N - 1 "
                               "merges "
                               "are of a stage that does not" },
    [HR_OPTION_INHERIT] = { "inherit", "FILE", "take those from this merges.txt instead" },
    [HR_OPTION_PATTERN_TWO] = { "pattern-two", "NAME",
                                "how text is cut from then on: super, super-paper, or a regular "
                                "expression (super)" },
    [HR_OPTION_LIKE_TWO] = { "like-two", "FILE", "the same, as this tokenizer.json does" },
    [HR_OPTION_JSONL] = { "jsonl", NULL, "every line is a text of its own, in a JSON object" },
    [HR_OPTION_BARE] = { "bare", NULL, "without the ids that the file puts around every text" },
    [HR_OPTION_KEEP_SPECIAL] = { "keep-special", NULL, "special tokens have their text too" },
    [HR_OPTION_MAN] = { "man", NULL, "print the manual page in roff" },
    [HR_OPTION_COMPLETION] = { "completion", "SHELL", "print the completion for a shell: bash" },
    [HR_OPTION_HELP] = { "help", NULL, "print this help" },
};

static const hr_cli_command commands[] = {
    { "plan", "RECIPE", "say whether a run fits, what eats it and what to change",
      "Plans every byte of a run without running it. When nothing fits, the exit code is 3 and\n"
      "the changes that would make it fit are listed, cheapest first. One of --largest,\n"
      "--smallest and --frontier asks about all plans of the recipe instead.",
      TAKES(BUDGET) | TAKES(PLAN_OUT) | TAKES(JSON) | TAKES(PROGRAM) | TAKES(LARGEST) |
          TAKES(SMALLEST) | TAKES(SLOWDOWN) | TAKES(FRONTIER) | TAKES(SVG) | TAKES(HELP),
      1, 1, hr_cli_plan, true },
    { "verify", "FILE.json", "judge a plan file from the file alone",
      "Derives lives, overlap, peak and floor from the steps of the file, believing nothing it\n"
      "declares. When two buffers share bytes at one step the exit code is 4 and both are named.",
      TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_verify },
    { "train", "RECIPE", "train inside the plan",
      "Plans, takes the memory once, trains, and ends with planned beside measured bytes. The\n"
      "first Ctrl-C or SIGTERM saves and ends with exit code 75, and the same command goes on; a\n"
      "second one stops at once. SIGUSR1 saves and goes on, SIGUSR2 reports on memory.",
      TAKES(BUDGET) | TAKES(TRAIN_OUT) | TAKES(METRICS) | TAKES(FRESH) | TAKES(ALLOW_CHANGE) |
          TAKES(HELP),
      1, 1, hr_cli_train, true },
    { "checkpoint list", "FOLDER", "list the checkpoints of a run",
      "FOLDER is the --out of a run. Reads the manifests alone.", TAKES(JSON) | TAKES(HELP), 1, 1,
      hr_cli_checkpoint_list },
    { "checkpoint verify", "FOLDER", "hold every byte of every checkpoint against its hash",
      "The exit code is 5 when one is damaged; each is said.", TAKES(JSON) | TAKES(HELP), 1, 1,
      hr_cli_checkpoint_verify },
    { "checkpoint prune", "FOLDER", "remove checkpoints that need not stay",
      "What is damaged or was never finished goes, and what train.keep_last, train.keep_every and\n"
      "train.keep_best of the run's recipe, or as given, let go. One that is whole stays always.",
      TAKES(HELP), 1, 1, hr_cli_checkpoint_prune, true },
    { "pack", "FILE.csv", "give the rows of a packing instance their offsets",
      "Reads id,lower,upper,size, alive from lower up to but not including upper; at most 1048576\n"
      "rows. Without a capacity the arena is as low as can be. The exit code is 3 when no\n"
      "placement in the capacity exists, 7 when the time ran out before that was known.",
      TAKES(CAPACITY) | TAKES(SECONDS) | TAKES(PACK_OUT) | TAKES(JSON) | TAKES(HELP), 1, 1,
      hr_cli_pack },
    { "generate", "FOLDER", "go on with a text, inside a plan",
      "Loads the model of a folder and prints the text that follows the prompt, as it comes. All\n"
      "bytes are planned: weights, and keys and values of all tokens. Equal seeds give equal text.",
      TAKES(PROMPT) | TAKES(FILE) | TAKES(PROMPT_IDS) | TAKES(PRINT_IDS) | TAKES(TOKENIZER) |
          TAKES(MAX_TOKENS) | TAKES(CHUNK) | TAKES(TEMPERATURE) | TAKES(TOP_K) | TAKES(TOP_P) |
          TAKES(MIN_P) | TAKES(REPETITION_PENALTY) | TAKES(STOP) | TAKES(SEED) | TAKES(FORMAT) |
          TAKES(BUDGET) | TAKES(THREADS) | TAKES(KERNELS) | TAKES(JSON) | TAKES(HELP),
      1, 1, hr_cli_generate },
    { "eval", "FOLDER", "say what a text costs a model, or write all its logits",
      "Loads the model of a folder and prints the loss of a text in nats a token, perplexity and\n"
      "bits a byte; with --choices the share of questions that it answers rightly, taking the\n"
      "likeliest answer, and the likeliest by the mean of its tokens. All bytes are planned.",
      TAKES(TOKENS) | TAKES(TEXT_FILE) | TAKES(CHOICES) | TAKES(LOGITS_OUT) | TAKES(PER_TOKEN) |
          TAKES(CONTEXT) | TAKES(STRIDE) | TAKES(TOKENIZER) | TAKES(FORMAT) | TAKES(BUDGET) |
          TAKES(THREADS) | TAKES(KERNELS) | TAKES(JSON) | TAKES(HELP),
      1, 1, hr_cli_eval },
    { "convert", "SOURCE FOLDER", "copy weights into another folder: shards, names, types",
      "Reads a folder with safetensors, one or sharded by an index, or a single file. Every "
      "tensor\n"
      "keeps its bytes, unless --dtype asks for another type. FOLDER is made; one that has "
      "weights\n"
      "already is refused. config.json and a tokenizer's files are taken along.",
      TAKES(SHARD_BYTES) | TAKES(PREFIX) | TAKES(DTYPE) | TAKES(HELP), 2, 2, hr_cli_convert },
    { "data inspect", "RECIPE", "say what the texts of a recipe are",
      "Makes the token shards of data.train and data.valid, or finds them, as train does. Prints\n"
      "files, documents, tokens, the longest document, what is masked or left out, how often a "
      "run\n"
      "goes through each text, and the beginnings of ten documents.",
      TAKES(TRAIN_OUT) | TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_data, true },
    { "tokenize encode", "[FILE]", "print the ids of a text",
      "Reads tokenizer.json of BPE and Unigram, vocab.json with merges.txt, files of ranks, and\n"
      "tokenizer.model of SentencePiece.\n"
      "Without FILE, or with -: standard input. --jsonl takes {\"text\": ...} a line, and with\n"
      "--json {\"ids\": [...]} a line is printed.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(BARE) | TAKES(THREADS) |
          TAKES(JSON) | TAKES(HELP),
      0, 1, hr_cli_tokenize_encode },
    { "tokenize decode", "[FILE]", "print the text of ids",
      "Ids are numbers with blanks, commas or ends of lines between them; with --jsonl\n"
      "{\"ids\": [...]} a line, and {\"text\": ...} a line is printed. Without FILE, or with -:\n"
      "standard input. Special tokens are left out.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(KEEP_SPECIAL) | TAKES(HELP), 0, 1,
      hr_cli_tokenize_decode },
    { "tokenize inspect", "TOKENIZER", "say what a tokenizer's file holds and how it is read",
      "Tokens, merges, how text is cut and by what, what stands around a text, memory.",
      TAKES(PATTERN) | TAKES(JSON) | TAKES(HELP), 1, 1, hr_cli_tokenize_inspect },
    { "tokenize count", "[FILE]", "count the tokens of a text",
      "Bytes, texts, ids and bytes a token. Without FILE, or with -: standard input.",
      TAKES(TOKENIZER) | TAKES(PATTERN) | TAKES(JSONL) | TAKES(BARE) | TAKES(THREADS) |
          TAKES(JSON) | TAKES(HELP),
      0, 1, hr_cli_tokenize_count },
    { "tokenize compare", "FILE TOKENIZER...", "hold several tokenizers against one text",
      "A row for each: ids, tokens, bytes a token, and the seconds that it took.",
      TAKES(PATTERN) | TAKES(JSONL) | TAKES(THREADS) | TAKES(JSON) | TAKES(HELP), 2, -1,
      hr_cli_tokenize_compare },
    { "tokenize train", "FILE...", "make a tokenizer from text: BPE or SuperBPE",
      "Writes the tokenizer.json that the field's reference trainer writes for the same settings.\n"
      "Says what memory it will use before it merges, and refuses what does not fit with exit "
      "code\n"
      "3. The first Ctrl-C saves and ends with exit code 75; the same command goes on.",
      TAKES(TOKENIZER_OUT) | TAKES(VOCAB_SIZE) | TAKES(MIN_FREQUENCY) | TAKES(LIMIT_ALPHABET) |
          TAKES(INITIAL_ALPHABET) | TAKES(SPECIAL) | TAKES(MAX_TOKEN_LENGTH) | TAKES(PATTERN) |
          TAKES(LIKE) | TAKES(PREFIX_SPACE) | TAKES(TRANSITION) | TAKES(INHERIT) |
          TAKES(PATTERN_TWO) | TAKES(LIKE_TWO) | TAKES(BUDGET) | TAKES(THREADS) | TAKES(JSON) |
          TAKES(HELP),
      1, -1, hr_cli_tokenize_train },
    { "calibrate", "", "measure this machine, so that plans can say how long a step takes",
      "Runs small recipes for less than a minute and keeps the prices of operations in\n"
      "$XDG_CACHE_HOME/headroom. With --check: predicts the steps of other recipes, runs them,\n"
      "and prints both; rows that ran while the machine was quicker or slower than when it was\n"
      "calibrated are marked.",
      TAKES(THREADS) | TAKES(KERNELS) | TAKES(CHECK) | TAKES(RECIPES) | TAKES(JSON) | TAKES(HELP),
      0, 0, hr_cli_calibrate },
    { "keys", "", "list every key of a recipe with default, unit and range",
      "Each key may stand in a recipe, or behind it on the command line as key=value.",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_keys },
    { "doctor", "", "say what this machine has and which kernels will be used",
      "Cores, instruction sets, memory, huge pages, and the limits of cgroup and ulimit.",
      TAKES(JSON) | TAKES(HELP), 0, 0, hr_cli_doctor },
    { "help", "[COMMAND]", "print help, the manual page or the shell completion",
      "Without a command: the list of commands.", TAKES(MAN) | TAKES(COMPLETION) | TAKES(HELP), 0,
      2, hr_cli_help },
    { "version", "", "print the version", "The version of the program and of the library in it.",
      TAKES(HELP), 0, 0, hr_cli_version },
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

const char *hr_cli_times(const hr_cli_option *option, char text[32])
{
    if (!option->most) return "";
    snprintf(text, 32, "; up to %d times", option->most);
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

bool hr_cli_takes(const hr_cli_command *command, int32_t id)
{
    return command->options >> id & 1;
}
