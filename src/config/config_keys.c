/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_keys.c - the table of all keys.
 *
 * The recipe, overrides, help, completion and docs/recipe.md all use these rows. The name of a key
 * is the path of its member in hr_config, so the two cannot differ. */
#include "config/config_keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/threads.h"

/* clang-format off */
#define MEMBER(path) (int32_t)offsetof(hr_config, path), (int32_t)sizeof(((hr_config *)0)->path)
#define INTEGER(path, value, unit, zero, low, high, text) \
    { { #path, HR_KEY_INTEGER, value, unit, NULL, zero, low, high, false, text }, MEMBER(path) }
#define REAL(path, value, unit, zero, low, high, text) \
    { { #path, HR_KEY_REAL, value, unit, NULL, zero, low, high, false, text }, MEMBER(path) }
#define SHARE(path, value, text) /* a real in [0, 1) */ \
    { { #path, HR_KEY_REAL, value, "", NULL, NULL, 0, 1, true, text }, MEMBER(path) }
#define BOOL(path, value, text) \
    { { #path, HR_KEY_BOOL, value, "", NULL, NULL, 0, 1, false, text }, MEMBER(path) }
#define CHOICE(path, value, choices, text) \
    { { #path, HR_KEY_CHOICE, value, "", choices, NULL, 0, 0, false, text }, MEMBER(path) }
#define BYTES(path, value, zero, low, high, text) \
    { { #path, HR_KEY_BYTES, value, "bytes", NULL, zero, low, high, false, text }, MEMBER(path) }
#define TEXT(path, value, choices, text) \
    { { #path, HR_KEY_TEXT, value, "", choices, NULL, 0, 0, false, text }, MEMBER(path) }
#define LIST(path, between, text) \
    { { #path, HR_KEY_TEXT, "", "", NULL, NULL, 0, 0, false, text }, MEMBER(path), between }
#define MAPS(path, between, text) \
    { { #path, HR_KEY_TEXT, "", "", NULL, NULL, 0, 0, false, text }, MEMBER(path), between, true }
/* clang-format on */

/* Upper limits of ranges. They keep indices within the 32 bits that kernels use, and products of
 * two within 64; model/model_check.c checks larger products. */
#define WIDTH_MAX 1048576.0           /* 2^20 */
#define TOKENS_MAX 16777216.0         /* 2^24: positions are exact in fp32 up to here */
#define WORDS_MAX 1073741824.0        /* 2^30 */
#define COUNTED_WORDS_MAX 134217728.0 /* 2^27: their text is addressed with 32 bits */
#define STEPS_MAX 1099511627776.0     /* 2^40 */
#define EXACT_MAX 9007199254740992.0  /* 2^53: integers exact in a double */

/* Kept values are multiplied by 1 / (1 - p), a thousand at most. Kernels have p in fp32, whose step
 * below 1 is 2^-24: up to this limit 1 - p is accurate to 6e-5, and beyond 1 - 2^-25 it would be
 * 0. */
#define DROPOUT_MAX 0.999

#define WORD(id, name) " " #name

static const hr_config_row rows[] = {
    TEXT(model.from, "", NULL,
         "folder with config.json and safetensors to load; unset: random weights"),
    CHOICE(model.family, "gpt_neox", &(HR_FAMILY_LIST(WORD))[1],
           "model architecture; headroom help keys explains each"),
    INTEGER(model.d_model, "128", "elements", NULL, 1, WIDTH_MAX, "width of the residual stream"),
    INTEGER(model.n_layers, "4", "layers", NULL, 1, 4096, "transformer blocks"),
    INTEGER(model.n_heads, "4", "heads", NULL, 1, WIDTH_MAX,
            "attention heads; divides d_model unless head_dim is set; unused by wide"),
    INTEGER(model.n_kv_heads, "auto", "heads", "auto", 0, WIDTH_MAX,
            "llama-like: key-value heads (GQA); auto: n_heads"),
    INTEGER(model.head_dim, "auto", "elements", "auto", 0, WIDTH_MAX,
            "llama-like: width of an attention head; auto: d_model / n_heads"),
    INTEGER(model.d_ff, "512", "elements", NULL, 1, TOKENS_MAX,
            "hidden width of the MLP; unused by wide"),
    INTEGER(model.vocab_size, "256", "tokens", NULL, 1, WORDS_MAX,
            "vocabulary size; at least 256 for tokenizer bytes, 5 for words"),
    INTEGER(model.positions, "auto", "tokens", "auto", 0, TOKENS_MAX,
            "maximum positions (max_position_embeddings); auto: train.seq_len"),
    INTEGER(model.embedding_rank, "auto", "elements", "auto", 0, WIDTH_MAX,
            "yxanul: rank of the factorized embedding; auto: d_model / 4"),
    INTEGER(model.expansion, "auto", "elements", "auto", 0, TOKENS_MAX,
            "wide: input width of the output head; auto: 4 d_model"),
    INTEGER(model.decoder_rank, "none", "elements", "none", 0, WIDTH_MAX,
            "wide: rank of a factorized output head; none: one full matrix"),
    CHOICE(model.trunk, "gated", "gated lif",
           "wide: gated recurrences, or spiking neurons (leaky integrate-and-fire)"),
    INTEGER(model.lif.block, "256", "neurons", NULL, 16, 1024,
            "lif: neurons that hear one another and compete; divides d_model"),
    INTEGER(model.lif.winners, "32", "neurons", NULL, 1, 1024,
            "lif: neurons of a block that may spike at a token"),
    INTEGER(model.lif.synapses, "64", "neurons", NULL, 1, 1023,
            "lif: neurons of its block that each one hears"),
    CHOICE(model.weights, "compute", &(HR_WEIGHT_FORMAT_LIST(WORD) " auto")[1],
           "storage of frozen layer weights; compute: train.dtype; auto: as in model.from"),
    CHOICE(model.tie_embeddings, "auto", "auto false true",
           "share embedding and output head; auto: true for gpt2, opt, yxanul"),
    REAL(model.dropout, "0", "", NULL, 0, DROPOUT_MAX, "dropout probability during training"),
    REAL(model.norm_eps, "1e-5", "", NULL, 1e-12, 1, "epsilon of LayerNorm and RMSNorm"),
    REAL(model.rotary_fraction, "0.25", "", NULL, 0, 1,
         "gpt_neox: fraction of each attention head that RoPE rotates"),
    REAL(model.rope_theta, "10000", "", NULL, 1, 1e12, "gpt_neox, llama-like: base of RoPE"),
    CHOICE(model.rope_scaling.kind, "none", "none linear llama3 yarn dynamic",
           "llama-like: RoPE scaling method"),
    REAL(model.rope_scaling.factor, "8", "", NULL, 1, 1e6, "factor of RoPE scaling"),
    REAL(model.rope_scaling.low_freq_factor, "1", "", NULL, 1e-3, 1e6,
         "llama3: below this many periods in original_positions: scaled in full"),
    REAL(model.rope_scaling.high_freq_factor, "4", "", NULL, 1e-3, 1e6,
         "llama3: above this many periods in original_positions: not scaled"),
    INTEGER(model.rope_scaling.original_positions, "8192", "tokens", NULL, 1, TOKENS_MAX,
            "llama3, yarn, dynamic: positions the model was trained with before scaling"),
    REAL(model.rope_scaling.beta_fast, "32", "", NULL, 1e-3, 1e6,
         "yarn: from this many periods in original_positions on, not scaled"),
    REAL(model.rope_scaling.beta_slow, "1", "", NULL, 1e-3, 1e6,
         "yarn: up to this many periods in original_positions, scaled in full"),
    REAL(model.rope_scaling.attention_factor, "auto", "", "auto", 0, 1e6,
         "yarn: factor of queries and keys; auto: 0.1 ln(factor) + 1"),
    BOOL(model.parallel_residual, "true",
         "gpt_neox: attention and MLP in parallel, from the same input"),
    CHOICE(model.attention.pattern, "dense", "dense local global mixed",
           "block-sparse causal attention pattern; dense: full causal attention"),
    INTEGER(model.attention.window, "1", "blocks", NULL, 0, TOKENS_MAX,
            "local, mixed: previous blocks that a block attends to"),
    INTEGER(model.attention.stride, "auto", "blocks", "auto", 0, TOKENS_MAX,
            "global, mixed: every n-th block is visible to all; auto: global 2, mixed 4"),
    INTEGER(model.attention.block, "64", "tokens", NULL, 1, TOKENS_MAX,
            "tokens per attention block"),
    INTEGER(model.attention.sliding_window, "none", "tokens", "none", 0, TOKENS_MAX,
            "llama-like, gpt_neo: sliding window, the current token included"),
    TEXT(model.attention.layer_types, "", NULL,
         "layers with the window: full sliding alternates, full*21 sliding*7; unset: all"),
    CHOICE(model.attention.kind, "dense", "dense nsa",
           "dense, or as pattern and window say; nsa: native sparse attention"),
    TEXT(model.attention.nsa.branches, "compressed, selected, window", NULL,
         "compressed, selected, window; or selected, window"),
    INTEGER(model.attention.nsa.compress_block, "32", "tokens", NULL, 1, TOKENS_MAX,
            "nsa: tokens that one compressed key stands for"),
    INTEGER(model.attention.nsa.compress_stride, "16", "tokens", NULL, 1, TOKENS_MAX,
            "nsa: from one compressed key to the next"),
    INTEGER(model.attention.nsa.compress_hidden, "auto", "elements", "auto", 0, WIDTH_MAX,
            "nsa: hidden width of the MLP that compresses; auto: head_dim"),
    INTEGER(model.attention.nsa.select_block, "64", "tokens", NULL, 8, 256,
            "nsa: tokens of a selected block, a power of 2"),
    INTEGER(model.attention.nsa.select_count, "16", "blocks", NULL, 1, 256,
            "nsa: blocks that a query sees"),
    INTEGER(model.attention.nsa.select_first, "1", "blocks", NULL, 0, 256,
            "nsa: first blocks of the sequence, which every query sees"),
    INTEGER(model.attention.nsa.select_local, "2", "blocks", NULL, 1, 256,
            "nsa: last blocks up to the query, which it sees"),
    INTEGER(model.attention.nsa.window, "512", "tokens", NULL, 1, TOKENS_MAX,
            "nsa: tokens of the window branch, the current token included"),
    BOOL(model.attention.nsa.own_keys, "false",
         "nsa: keys and values of their own for each branch"),

    TEXT(data.train, "", NULL,
         "training data: files, DIR/ or globs; .safetensors: token ids; synthetic"),
    TEXT(data.valid, "", NULL,
         "validation data, or a split of data.train such as 0.5%; unset: none"),
    TEXT(data.fixed_batch, "", NULL, "safetensors file with one batch, on which every step trains"),
    TEXT(data.text_field, "text", NULL, "JSON Lines: field with the text of a document"),
    TEXT(data.prompt_field, "prompt", NULL,
         "for lines without data.text_field: field of the prompt (loss masked)"),
    TEXT(data.completion_field, "completion", NULL,
         "for lines without data.text_field: field of the completion (trained on)"),
    CHOICE(data.bad_lines, "stop", "stop skip",
           "invalid JSON Lines: stop with an error, or skip the line"),
    TEXT(data.document_end, "auto", NULL,
         "token id after each document, or none; auto: the tokenizer's EOS token"),
    CHOICE(data.documents, "joined", "joined separate",
           "joined: attention crosses documents in a window; separate: masked"),
    TEXT(data.tokenizer, "bytes", NULL,
         "bytes, words, or a path: tokenizer.json or .model, a folder, a tiktoken file"),
    INTEGER(data.words_max, "1048576", "words", NULL, 1, COUNTED_WORDS_MAX,
            "tokenizer words: maximum distinct words in the text"),
    TEXT(data.cache, "", NULL,
         "directory for tokenized data; unset: train.out or ~/.cache/headroom"),

    CHOICE(train.dtype, "fp32", "fp32 bf16 fp16",
           "dtype of activations and weights; fp16: of activations, with a scaled loss"),
    INTEGER(train.batch, "16", "sequences", NULL, 1, TOKENS_MAX,
            "global batch size, in sequences per optimizer step"),
    INTEGER(train.seq_len, "128", "tokens", NULL, 1, TOKENS_MAX, "sequence length"),
    INTEGER(train.steps, "auto", "updates", "auto", 0, STEPS_MAX,
            "optimizer steps; auto: train.epochs passes over the data"),
    INTEGER(train.epochs, "1", "passes", NULL, 1, STEPS_MAX, "passes over the training data"),
    INTEGER(train.seed, "0", "", NULL, 0, EXACT_MAX,
            "random seed of initial weights, data order and dropout"),
    INTEGER(train.threads, "auto", "threads", "auto", 0, HR_THREADS_MOST,
            "CPU threads; auto: as many as CPU affinity and cgroup quota allow"),
    INTEGER(train.eval_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between evaluations; end: only after the last step"),
    INTEGER(train.eval_batches, "all", "batches", "all", 0, STEPS_MAX,
            "batches of data.valid per evaluation"),
    INTEGER(train.checkpoint_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between checkpoints; end: only after the last step"),
    INTEGER(train.keep_last, "2", "checkpoints", NULL, 1, 1000,
            "number of newest checkpoints to keep"),
    INTEGER(train.keep_every, "none", "steps", "none", 0, STEPS_MAX,
            "also keep the checkpoints at multiples of this step"),
    BOOL(train.keep_best, "false",
         "also save and keep the checkpoint with the lowest validation loss"),
    INTEGER(train.patience, "none", "evaluations", "none", 0, STEPS_MAX,
            "early stopping: evaluations without improvement before the run ends"),
    INTEGER(train.max_seconds, "none", "seconds", "none", 0, STEPS_MAX,
            "time limit; then the run saves a checkpoint and exits with code 75"),
    SHARE(train.ema_decay, "0", "decay of an exponential moving average of the weights; 0: no EMA"),
    CHOICE(train.bad_steps, "stop", "stop skip rewind",
           "on a NaN or Inf loss or gradient: stop, skip the update, or rewind"),
    INTEGER(train.bad_steps_max, "10", "steps", NULL, 1, STEPS_MAX,
            "skip, rewind: maximum bad steps per run"),
    BOOL(train.detect_spikes, "false", "treat outliers of loss or gradient norm as bad steps"),
    INTEGER(train.sample_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between generated samples; end: only after the last step"),
    INTEGER(train.sample_tokens, "none", "tokens", "none", 0, TOKENS_MAX,
            "tokens of a generated sample; none: no samples"),
    REAL(train.sample_temperature, "0.8", "", NULL, 0, 100, "sampling temperature; 0: greedy"),
    REAL(train.z_loss, "0", "", NULL, 0, 1000,
         "weight of the z-loss, the mean of logsumexp(logits)^2"),
    MAPS(train.stages, "; ",
         "stages of the run: \"at_step=0 seq_len=64; at_step=900 seq_len=512\"; unset: one"),
    LIST(train.freeze, " ", "name patterns of frozen parameters: \"*.mlp.* *embed*\"; unset: none"),
    LIST(train.param_groups, "; ",
         "per-parameter lr factor and weight decay: \"*.bias decay=0; head* lr=0.1\""),
    CHOICE(train.adapter.kind, "none", "none lora npt",
           "adapters beside frozen weights: low-rank, or modulated by each token"),
    INTEGER(train.adapter.rank, "16", "", NULL, 1, WIDTH_MAX, "rank of the adapters"),
    REAL(train.adapter.alpha, "32", "", NULL, -EXACT_MAX, EXACT_MAX,
         "adapters are scaled by alpha / rank"),
    REAL(train.adapter.dropout, "0", "", NULL, 0, DROPOUT_MAX, "dropout of the inputs of adapters"),
    BOOL(train.adapter.rslora, "false", "scale by alpha / sqrt(rank)"),
    BOOL(train.adapter.dora, "false", "train a magnitude for each output, too: DoRA"),
    LIST(train.adapter.targets, " ",
         "modules with an adapter: q_proj, patterns or a /regex/; unset: all-linear"),
    LIST(train.adapter.modules_to_save, " ",
         "modules that are trained whole beside adapters: lm_head; unset: none"),
    LIST(train.adapter.layers, " ",
         "layers with adapters: \"0-3 8\", upper_half or lower_half; unset: all"),
    LIST(train.adapter.groups, "; ",
         "other ranks and alphas: \"down_proj rank=8 alpha=16; k_proj rank=4\""),
    CHOICE(train.adapter.form, "diagonal", "diagonal single dual triple",
           "npt: how the weights of the MLP follow attention"),
    INTEGER(train.adapter.triples, "1", "", NULL, 1, 64,
            "npt: outer products that add up in single, dual and triple"),
    REAL(train.adapter.scale, "0.1", "", NULL, -EXACT_MAX, EXACT_MAX,
         "npt: factor of tanh in the diagonal form"),
    CHOICE(train.adapter.objective, "equivalence", "equivalence direct lm",
           "npt: equal the standard layer, what it adds, or predict the next token"),
    CHOICE(train.adapter.measure, "mse", "mse cosine",
           "npt, equivalence: the mean squared error, or 1 - the cosine"),
    REAL(train.adapter.regularisation, "0.01", "", NULL, 0, EXACT_MAX,
         "npt, equivalence and direct: weight of the lengths of adapters"),
    LIST(train.adapter.inputs, ", ",
         "npt: what layers read: \"teacher mixed:0.5@1000 student@2000\""),
    TEXT(train.adapter.from, "", NULL,
         "folder whose adapters the run starts from; unset: new adapters"),
    TEXT(train.out, "", NULL,
         "output directory for weights, checkpoints and logs; unset: none written"),
    TEXT(train.kernels, "auto", "auto ref avx2 avx512 avx512bf16 amx",
         "highest instruction set to use; auto: the best of this CPU"),

    CHOICE(train.optimizer.kind, "adamw", &(HR_OPTIMIZER_LIST(WORD))[1], "optimizer"),
    REAL(train.optimizer.lr, "0.001", "", NULL, 0, 1000, "peak learning rate"),
    SHARE(train.optimizer.beta1, "0.9",
          "first moment decay; sgd: momentum; lion: momentum in the update"),
    SHARE(train.optimizer.beta2, "0.95",
          "adam, adamw, muon beside matrices: second moment decay; lion: momentum decay"),
    REAL(train.optimizer.eps, "1e-8", "", NULL, 1e-30, 1,
         "adam, adamw, muon beside matrices: epsilon"),
    REAL(train.optimizer.weight_decay, "0.1", "", NULL, 0, 1000,
         "weight decay of matrices; biases and norms have none"),
    REAL(train.optimizer.clip, "1", "", "none", 0, 1e30,
         "maximum norm of the global gradient (clip_grad_norm_)"),
    REAL(train.optimizer.adafactor.eps1, "1e-30", "", NULL, 1e-35, 1,
         "added to the squares of gradients"),
    REAL(train.optimizer.adafactor.eps2, "1e-3", "", NULL, 0, 1e30,
         "scale_parameter: least root mean square of a weight"),
    REAL(train.optimizer.adafactor.clip_threshold, "1", "", NULL, 1e-30, 1e30,
         "largest root mean square of an update before the learning rate"),
    REAL(train.optimizer.adafactor.decay_rate, "-0.8", "", NULL, -100, 0,
         "the second moment keeps 1 - step^decay_rate of itself"),
    SHARE(train.optimizer.adafactor.beta1, "0",
          "first moment decay; 0: no first moment, and no state for it"),
    BOOL(train.optimizer.adafactor.scale_parameter, "true",
         "multiply the learning rate by the root mean square of the weight"),
    BOOL(train.optimizer.adafactor.relative_step, "true",
         "limit the learning rate to 1 / sqrt(step)"),
    SHARE(train.optimizer.muon.momentum, "0.95", "muon: momentum of matrices"),
    BOOL(train.optimizer.muon.nesterov, "true", "muon: the update looks one step ahead"),
    INTEGER(train.optimizer.muon.steps, "5", "", NULL, 1, 10,
            "muon: Newton-Schulz steps that make an update orthogonal"),
    CHOICE(train.optimizer.muon.scale, "match_rms", "match_rms original",
           "muon: 0.2 sqrt(max(in, out)), or sqrt(max(1, out / in)), times the rate"),
    CHOICE(train.state.master, "fp32", "fp32 residual16 residual8 none auto",
           "of bf16 weights: fp32 copies, 16 or 8 bits that they lack, or neither"),
    CHOICE(train.state.moments, "fp32", "fp32 bf16 int8 auto",
           "format of the optimizer's moments; int8: 8-bit codes in blocks of 256"),

    CHOICE(train.schedule.kind, "cosine", "constant linear cosine wsd",
           "learning rate schedule; wsd: warmup, stable, decay"),
    INTEGER(train.schedule.warmup_steps, "0", "steps", NULL, 0, STEPS_MAX,
            "steps of linear warmup"),
    INTEGER(train.schedule.warmup_tokens, "none", "tokens", "none", 0, EXACT_MAX,
            "tokens of linear warmup, beside that in steps"),
    CHOICE(train.schedule.unit, "steps", "steps tokens",
           "what the decay counts; with train.stages, steps differ in tokens"),
    REAL(train.schedule.final_fraction, "0.1", "", NULL, 0, 1,
         "final learning rate, as a fraction of lr"),
    REAL(train.schedule.decay_fraction, "0.2", "", NULL, 0, 1,
         "wsd: fraction of the steps in the final decay"),

    BYTES(memory.budget, "none", "none", 0, EXACT_MAX, "memory limit of the whole process"),
    INTEGER(memory.micro_batch, "auto", "sequences", "auto", 0, TOKENS_MAX,
            "sequences per forward/backward pass; auto: fastest that fits"),
    INTEGER(memory.loss_chunk, "auto", "tokens", "auto", 0, STEPS_MAX,
            "tokens per chunk of logits and loss; auto: fastest that fits"),
    CHOICE(memory.recompute, "auto", "auto none norms layers",
           "activation checkpointing: recompute for backward; auto: fastest that fits"),
    TEXT(memory.strategy, "", NULL,
         "YAML file with a full strategy; replaces the three keys above"),
    BOOL(memory.recompute_again, "false",
         "recompute for each block's backward pass, not once for a layer's: fewest bytes"),
    BOOL(memory.product_norm, "false",
         "clip by a norm from activations, not weight gradients: no second backward pass"),
    CHOICE(memory.moments, "host", "host file",
           "optimizer moments: in memory, or in a file, read and written during the update"),
    CHOICE(memory.weights, "resident", "resident file auto",
           "frozen weights: in memory, or read from files for each use; auto: as fits"),
    CHOICE(memory.spill, "no", "no auto",
           "inputs of layers in a file from forward to backward; auto: where it fits"),
    LIST(memory.allow, " ",
         "train.state auto: formats it may choose that change results: \"bf16 int8\""),
    BYTES(memory.file_budget, "none", "none", 0, EXACT_MAX,
          "moments=file, spill=auto: largest size of their file"),
    TEXT(memory.file_dir, "", NULL,
         "moments=file, spill=auto: directory of their file; unset: train.out"),
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };
_Static_assert(sizeof rows / sizeof *rows <= HR_CONFIG_ROWS_MAX,
               "readers keep one note for each row");

const hr_config_row *hr_config_rows(void)
{
    return rows;
}

int32_t hr_config_row_count(void)
{
    return ROW_COUNT;
}

const hr_key *hr_config_key(int32_t index)
{
    return index >= 0 && index < ROW_COUNT ? &rows[index].key : NULL;
}

/* Renamed keys. The old name is accepted for one version in recipes, checkpoints and on the command
 * line, with the same meaning. */
static const hr_renamed_key renamed[] = {
    { "train.average", "train.ema_decay" },
    { "train.format", "train.dtype" },
    { "train.groups", "train.param_groups" },
    { "train.spikes", "train.detect_spikes" },
    { "train.schedule.decay_share", "train.schedule.decay_fraction" },
};
enum { RENAMED_COUNT = sizeof renamed / sizeof *renamed };
_Static_assert(RENAMED_COUNT <= 64, "hr_config.old_names has a bit for each");

const hr_renamed_key *hr_config_renamed(int32_t index)
{
    return index >= 0 && index < RENAMED_COUNT ? &renamed[index] : NULL;
}

int32_t hr_config_renamed_find(const char *name)
{
    for (int32_t i = 0; i < RENAMED_COUNT; i++)
        if (!strcmp(renamed[i].old_name, name)) return i;
    return -1;
}

int32_t hr_config_row_find(const char *name)
{
    const int32_t old = hr_config_renamed_find(name);
    if (old >= 0) name = renamed[old].name;
    for (int32_t i = 0; i < ROW_COUNT; i++)
        if (!strcmp(rows[i].key.name, name)) return i;
    return -1;
}

const char *hr_config_name(const char *name)
{
    const int32_t row = hr_config_row_find(name);
    return row >= 0 ? rows[row].key.name : NULL;
}

/* Restricted Damerau-Levenshtein distance with three rows of the table. */
int32_t hr_word_distance(const char *a, const char *b)
{
    int32_t line[3][HR_WORD_LETTERS_MAX + 1];
    const int32_t a_count = (int32_t)strnlen(a, HR_WORD_LETTERS_MAX);
    const int32_t b_count = (int32_t)strnlen(b, HR_WORD_LETTERS_MAX);
    for (int32_t j = 0; j <= b_count; j++) line[0][j] = j;
    for (int32_t i = 1; i <= a_count; i++) {
        int32_t *now = line[i % 3];
        const int32_t *before = line[(i + 2) % 3], *earlier = line[(i + 1) % 3];
        now[0] = i;
        for (int32_t j = 1; j <= b_count; j++) {
            const int32_t replaced = before[j - 1] + (a[i - 1] != b[j - 1]);
            int64_t least = hr_min(replaced, hr_min(before[j], now[j - 1]) + 1);
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) least = hr_min(least, earlier[j - 2] + 1);
            now[j] = (int32_t)least;
        }
    }
    return line[a_count % 3][b_count];
}

static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Returns whether `word` is a sequence of whole parts of `known`: "size" of "vocab-size". */
static bool is_part(const char *word, const char *known)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(known, word); at; at = strstr(at + 1, word)) {
        const bool starts = at == known || strchr("_-. ", at[-1]);
        if (starts && (!at[length] || strchr("_-. ", at[length]))) return true;
    }
    return false;
}

int32_t hr_word_cost(const char *word, const char *known)
{
    enum { PREFIX_LETTERS = 3, LETTERS_PER_EDIT = 3, PREFIX = 1, PART = 2 };
    const size_t letters = strnlen(word, HR_WORD_LETTERS_MAX), known_letters = strlen(known);
    const int32_t edits = hr_word_distance(word, known);
    int32_t cost = LETTERS_PER_EDIT * edits <= (int32_t)letters ? edits : INT32_MAX;
    if (letters >= PREFIX_LETTERS && !strncmp(word, known, letters))
        cost = (int32_t)hr_min(cost, PREFIX);
    if (known_letters >= PREFIX_LETTERS && !strncmp(word, known, known_letters))
        cost = (int32_t)hr_min(cost, PART);
    if (letters >= PREFIX_LETTERS && is_part(word, known)) cost = (int32_t)hr_min(cost, PART);
    return cost == INT32_MAX ? cost : (HR_WORD_LETTERS_MAX + 1) * cost + edits;
}

/* Users omit or mistake the section more often than the last word, so last words are compared
 * first, and whole names decide ties. In another section only the same word or one edit counts:
 * model.decoder_rank is no suggestion for lora.rank. Nor is a key that the word only begins with:
 * train.out for output_dim. */
int32_t hr_config_distance(const char *wanted, const char *known)
{
    const int32_t cost = hr_word_cost(last_word(wanted), last_word(known));
    const int32_t edits = hr_word_distance(last_word(wanted), last_word(known));
    const size_t word_bytes = strlen(last_word(known));
    const bool longer = !strncmp(last_word(wanted), last_word(known), word_bytes) && edits > 1;
    const size_t section_bytes = (size_t)(last_word(wanted) - wanted);
    const bool same_section = !strncmp(wanted, known, section_bytes);
    if (cost == INT32_MAX || longer || (!same_section && edits > 1)) return INT32_MAX;
    return (HR_WORD_LETTERS_MAX + 1) * cost + hr_word_distance(wanted, known);
}

/* Lists choices, separated by commas. */
static void list_choices(const char *choices, char *text, int32_t bytes)
{
    int32_t length = 0;
    for (; *choices && length + 3 < bytes; choices++) {
        if (*choices == ' ') text[length++] = ',';
        text[length++] = *choices;
    }
    text[length] = 0;
}

const char *hr_key_takes(const hr_key *key, char text[HR_TAKES_BYTES])
{
    char low[HR_COUNT_BYTES], high[HR_COUNT_BYTES], words[96];
    const char *space = *key->unit ? " " : "";
    const char *or_word = key->zero_word ? ", or " : "";
    const char *zero = key->zero_word ? key->zero_word : "";
    hr_real_print(key->low, low);
    hr_real_print(key->high, high);
    if (key->choices) {
        list_choices(key->choices, words, (int32_t)sizeof words);
        snprintf(text, HR_TAKES_BYTES, "one of %s", words);
        return text;
    }
    switch (key->type) {
    case HR_KEY_INTEGER:
        snprintf(text, HR_TAKES_BYTES, "integer from %s to %s%s%s%s%s",
                 hr_count_print((int64_t)key->low, low), hr_count_print((int64_t)key->high, high),
                 space, key->unit, or_word, zero);
        break;
    case HR_KEY_REAL:
        snprintf(text, HR_TAKES_BYTES, "number from %s %s %s%s%s%s%s", low,
                 key->below_high ? "to below" : "to", high, space, key->unit, or_word, zero);
        break;
    case HR_KEY_BOOL: snprintf(text, HR_TAKES_BYTES, "true or false"); break;
    case HR_KEY_BYTES:
        snprintf(text, HR_TAKES_BYTES,
                 "size up to %.0f TiB, such as 700MiB, 733MB or plain bytes%s%s",
                 key->high / 0x1p40, or_word, zero);
        break;
    default: snprintf(text, HR_TAKES_BYTES, "string");
    }
    return text;
}

const char *hr_config_quote(const char *value, char text[48])
{
    enum { SHOWN_MAX = 40 };
    int32_t length = 0;
    text[length++] = '"';
    for (int32_t i = 0; value[i] && i < SHOWN_MAX; i++)
        text[length++] = (unsigned char)value[i] < ' ' || value[i] == 127 ? '?' : value[i];
    snprintf(text + length, (size_t)(48 - length), "%s\"", strlen(value) > SHOWN_MAX ? "..." : "");
    return text;
}
