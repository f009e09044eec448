/* SPDX-License-Identifier: Apache-2.0 */
/* model/config_keys.c - the one table of everything a person can choose.
 *
 * The recipe, overrides, help, completion and docs/recipe.md all come from these rows. A key's name
 * is the path of its member in hr_config, so the two cannot part. */
#include "model/config_keys.h"

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
/* clang-format on */

/* Upper ends of ranges. They keep indices inside the 32 bits that kernels use for them and products
 * of two inside 64; products of more are checked one by one (config_check.c). */
#define WIDTH_MAX 1048576.0           /* 2^20 */
#define TOKENS_MAX 16777216.0         /* 2^24: positions are exact in fp32 up to here */
#define WORDS_MAX 1073741824.0        /* 2^30 */
#define COUNTED_WORDS_MAX 134217728.0 /* 2^27: their text is addressed with 32 bits */
#define STEPS_MAX 1099511627776.0     /* 2^40 */
#define EXACT_MAX 9007199254740992.0  /* 2^53: whole numbers a double holds */

/* What is kept is multiplied by 1 / (1 - p), here a thousand at most. Kernels have p in fp32, whose
 * step below 1 is 2^-24: up to here 1 - p is good to 6e-5, and beyond 1 - 2^-25 it would be 0. */
#define DROPOUT_MAX 0.999

static const hr_config_row rows[] = {
    TEXT(model.from, "", NULL,
         "folder of config.json and safetensors to start from; empty: a new model"),
    CHOICE(model.family, "gpt_neox",
           "needle gpt_neox llama gpt2 opt mistral qwen2 qwen3 yxanul wide",
           "which decoder is built"),
    INTEGER(model.d_model, "128", "elements", NULL, 1, WIDTH_MAX, "width of the residual stream"),
    INTEGER(model.n_layers, "4", "layers", NULL, 1, 4096, "blocks of attention and feed-forward"),
    INTEGER(model.n_heads, "4", "heads", NULL, 1, WIDTH_MAX,
            "attention heads; must divide d_model, unless head_dim is given; wide has none"),
    INTEGER(model.n_kv_heads, "auto", "heads", "auto", 0, WIDTH_MAX,
            "llama and its kin: heads of keys and values; auto: n_heads"),
    INTEGER(model.head_dim, "auto", "elements", "auto", 0, WIDTH_MAX,
            "llama and its kin: width of a head; auto: d_model / n_heads"),
    INTEGER(model.d_ff, "512", "elements", NULL, 1, TOKENS_MAX,
            "width inside the feed-forward; wide has none"),
    INTEGER(model.vocab_size, "256", "tokens", NULL, 1, WORDS_MAX,
            "rows of the embedding and of the head: 256 at least for bytes, 5 for words"),
    INTEGER(model.positions, "auto", "tokens", "auto", 0, TOKENS_MAX,
            "positions, learned or rotated, that a model is known for; auto: train.seq_len"),
    INTEGER(model.embedding_rank, "auto", "elements", "auto", 0, WIDTH_MAX,
            "yxanul: width of the factorised table; auto: a quarter of d_model"),
    INTEGER(model.expansion, "auto", "elements", "auto", 0, TOKENS_MAX,
            "wide: what the decoder reads; auto: 4 d_model"),
    INTEGER(model.decoder_rank, "none", "elements", "none", 0, WIDTH_MAX,
            "wide: the decoder is two factors with so much between them; none: one matrix"),
    CHOICE(model.tie_embeddings, "auto", "auto false true",
           "the head is the table of embeddings; auto: gpt2, opt, yxanul"),
    REAL(model.dropout, "0", "", NULL, 0, DROPOUT_MAX,
         "probability that an element is dropped in training"),
    REAL(model.norm_eps, "1e-5", "", NULL, 1e-12, 1, "added to the variance in a norm"),
    REAL(model.rotary_fraction, "0.25", "", NULL, 0, 1,
         "gpt_neox: share of each head that rotates"),
    REAL(model.rope_theta, "10000", "", NULL, 1, 1e12,
         "gpt_neox, llama and its kin: base of the rotary wavelengths"),
    CHOICE(model.rope_scaling.kind, "none", "none linear llama3",
           "llama and its kin: how wavelengths are stretched for longer texts"),
    REAL(model.rope_scaling.factor, "8", "", NULL, 1, 1e6, "linear, llama3: how far"),
    REAL(model.rope_scaling.low_freq_factor, "1", "", NULL, 1e-3, 1e6,
         "llama3: fewer waves than this in the original positions: stretched"),
    REAL(model.rope_scaling.high_freq_factor, "4", "", NULL, 1e-3, 1e6,
         "llama3: more waves than this in the original positions: left alone"),
    INTEGER(model.rope_scaling.original_positions, "8192", "tokens", NULL, 1, TOKENS_MAX,
            "llama3: positions before the stretch"),
    BOOL(model.parallel_residual, "true",
         "gpt_neox: attention and feed-forward read the same input"),
    CHOICE(model.attention.pattern, "dense", "dense local global mixed",
           "which blocks of keys a block of queries sees; all are causal"),
    INTEGER(model.attention.window, "1", "blocks", NULL, 0, TOKENS_MAX,
            "local, mixed: blocks seen before a query's own"),
    INTEGER(model.attention.stride, "auto", "blocks", "auto", 0, TOKENS_MAX,
            "global, mixed: every so many blocks one is seen by all; auto: 2, 4"),
    INTEGER(model.attention.block, "64", "tokens", NULL, 1, TOKENS_MAX, "tokens in a block"),
    INTEGER(model.attention.sliding_window, "none", "tokens", "none", 0, TOKENS_MAX,
            "llama: tokens that a token sees, itself the last of them"),

    TEXT(data.train, "", NULL,
         "file, FOLDER/, pattern or several to train on; .safetensors: rows of tokens"),
    TEXT(data.valid, "", NULL,
         "the same to evaluate on, or a share held out: 0.5%; empty: no evaluation"),
    TEXT(data.fixed_batch, "", NULL,
         "safetensors file with the batch of every step, in place of data.train"),
    TEXT(data.text_field, "text", NULL, "JSON Lines: the field that is a document"),
    TEXT(data.prompt_field, "prompt", NULL,
         "JSON Lines without that: the field that is read and not learned"),
    TEXT(data.completion_field, "completion", NULL, "and the one that is learned behind it"),
    CHOICE(data.bad_lines, "stop", "stop skip",
           "what a line that is no JSON, or no document, does: end the run, or nothing"),
    TEXT(data.document_end, "auto", NULL,
         "id between documents, or none; auto: the tokenizer's own, where it has one"),
    CHOICE(data.documents, "joined", "joined separate",
           "whether tokens see, and follow, the documents before theirs in a window"),
    TEXT(data.tokenizer, "bytes", NULL,
         "bytes, words, or a tokenizer: tokenizer.json, tokenizer.model, a folder, or ranks"),
    INTEGER(data.words_max, "1048576", "words", NULL, 1, COUNTED_WORDS_MAX,
            "distinct words that counting has room for"),
    TEXT(data.cache, "", NULL,
         "directory of token shards; empty: train.out, or without that ~/.cache/headroom"),

    CHOICE(train.format, "fp32", "fp32 bf16", "number format of weights and activations"),
    INTEGER(train.batch, "16", "sequences", NULL, 1, TOKENS_MAX, "sequences in an update"),
    INTEGER(train.seq_len, "128", "tokens", NULL, 1, TOKENS_MAX, "length of a sequence"),
    INTEGER(train.steps, "auto", "updates", "auto", 0, STEPS_MAX,
            "updates in the run; auto: as many as train.epochs gives"),
    INTEGER(train.epochs, "1", "passes", NULL, 1, STEPS_MAX, "passes over the training text"),
    INTEGER(train.seed, "0", "", NULL, 0, EXACT_MAX,
            "fixes initial weights, order of windows and dropout"),
    INTEGER(train.threads, "auto", "threads", "auto", 0, HR_THREADS_MOST,
            "auto: as many as affinity and cgroup quota allow"),
    INTEGER(train.eval_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between evaluations; end: only after the last"),
    INTEGER(train.eval_batches, "all", "batches", "all", 0, STEPS_MAX,
            "how much of data.valid an evaluation reads"),
    INTEGER(train.checkpoint_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between checkpoints; end: only after the last"),
    INTEGER(train.keep_last, "2", "checkpoints", NULL, 1, 1000,
            "newest checkpoints that stay; older ones go"),
    INTEGER(train.keep_every, "none", "steps", "none", 0, STEPS_MAX,
            "checkpoints of such steps stay too"),
    BOOL(train.keep_best, "false",
         "an evaluation with the least loss so far makes a checkpoint, and that one stays"),
    INTEGER(train.patience, "none", "evaluations", "none", 0, STEPS_MAX,
            "evaluations in a row without a new least loss that end the run"),
    INTEGER(train.max_seconds, "none", "seconds", "none", 0, STEPS_MAX,
            "after which the run saves and ends, with exit code 75"),
    SHARE(train.average, "0",
          "decay of an average of the weights over the updates, kept beside them; 0: none"),
    CHOICE(train.bad_steps, "stop", "stop skip rewind",
           "a loss or gradient that is not finite: end, go on without it, or go back"),
    INTEGER(train.bad_steps_max, "10", "steps", NULL, 1, STEPS_MAX,
            "skip, rewind: so many in a run, and the next one ends it"),
    BOOL(train.spikes, "false", "a loss or norm far above those before it makes a bad step too"),
    INTEGER(train.sample_every, "end", "steps", "end", 0, STEPS_MAX,
            "steps between samples of generated text; end: only after the last"),
    INTEGER(train.sample_tokens, "none", "tokens", "none", 0, TOKENS_MAX, "length of a sample"),
    REAL(train.sample_temperature, "0.8", "", NULL, 0, 100,
         "divides the logits of a sample; 0: the likeliest token"),
    REAL(train.z_loss, "0", "", NULL, 0, 1000,
         "times the mean square of log(sum of exponentials of logits), added to the loss"),
    LIST(train.freeze, " ",
         "patterns of parameters that do not train: \"*.mlp.* *embed*\"; empty: all train"),
    LIST(train.groups, "; ",
         "patterns with a factor of lr, a decay or both: \"*.bias decay=0; head* lr=0.1\""),
    TEXT(train.out, "", NULL, "directory for weights; empty: nothing is written"),
    TEXT(train.kernels, "auto", "auto ref avx2 avx512 avx512bf16 amx",
         "highest rung of kernels to use; auto: what the machine has"),

    CHOICE(train.optimizer.kind, "adamw", "adam adamw sgd", "update rule"),
    REAL(train.optimizer.lr, "0.001", "", NULL, 0, 1000, "learning rate after warm-up"),
    SHARE(train.optimizer.beta1, "0.9", "decay of the first moment; sgd: momentum"),
    SHARE(train.optimizer.beta2, "0.95", "adam, adamw: decay of the second moment"),
    REAL(train.optimizer.eps, "1e-8", "", NULL, 1e-30, 1, "adam, adamw: added to the root"),
    REAL(train.optimizer.weight_decay, "0.1", "", NULL, 0, 1000,
         "decay of matrices; vectors have none"),
    REAL(train.optimizer.clip, "1", "", "none", 0, 1e30, "largest norm of the whole gradient"),

    CHOICE(train.schedule.kind, "cosine", "constant linear cosine wsd",
           "how the learning rate falls; wsd: warm-up, stable, decay"),
    INTEGER(train.schedule.warmup_steps, "0", "steps", NULL, 0, STEPS_MAX,
            "steps over which the learning rate rises to lr"),
    REAL(train.schedule.final_fraction, "0.1", "", NULL, 0, 1,
         "share of lr that the schedule falls to"),
    REAL(train.schedule.decay_share, "0.2", "", NULL, 0, 1,
         "wsd: share of the steps that decays at the end"),

    BYTES(memory.budget, "none", "none", 0, EXACT_MAX, "bytes the whole process may use"),
    INTEGER(memory.micro_batch, "auto", "sequences", "auto", 0, TOKENS_MAX,
            "sequences in memory at once; auto: as the fastest plan that fits has it"),
    INTEGER(memory.loss_chunk, "auto", "tokens", "auto", 0, STEPS_MAX,
            "tokens whose logits exist at once; auto: as the fastest plan that fits has it"),
    CHOICE(memory.recompute, "auto", "auto none norms layers",
           "computed again for backward; auto: as the fastest plan that fits has it"),
    TEXT(memory.strategy, "", NULL,
         "YAML file with a whole strategy, in place of the three keys above"),
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

int32_t hr_config_row_find(const char *name)
{
    for (int32_t i = 0; i < ROW_COUNT; i++)
        if (!strcmp(rows[i].key.name, name)) return i;
    return -1;
}

/* Restricted Damerau-Levenshtein distance, three rows of the table at a time. */
int32_t hr_word_distance(const char *a, const char *b)
{
    enum { LETTERS_MAX = 63 };
    int32_t line[3][LETTERS_MAX + 1];
    const int32_t a_count = (int32_t)strnlen(a, LETTERS_MAX);
    const int32_t b_count = (int32_t)strnlen(b, LETTERS_MAX);
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

/* People forget or mistake the section more often than the word, and write "batch_size" for
 * "batch": the last words are compared alone too, and a word that begins the other is close. */
static int32_t key_distance(const char *wanted, const char *known)
{
    const char *a = last_word(wanted), *b = last_word(known);
    const size_t shorter = (size_t)hr_min((int64_t)strlen(a), (int64_t)strlen(b));
    const bool begins = shorter > 2 && !strncmp(a, b, shorter);
    const int32_t words = begins && strcmp(a, b) ? 2 : hr_word_distance(a, b) + 1;
    return (int32_t)hr_min(words, hr_word_distance(wanted, known));
}

bool hr_word_is_near(const char *word, const char *known)
{
    const size_t shorter = (size_t)hr_min((int64_t)strlen(word), (int64_t)strlen(known));
    if (shorter > 2 && !strncmp(word, known, shorter)) return true;
    return 3 * hr_word_distance(word, known) <= (int32_t)strnlen(word, 63) + 2;
}

int32_t hr_config_distance(const char *wanted, const char *known)
{
    const char *last = last_word(wanted);
    const int32_t letters = (int32_t)strnlen(last, 63);
    const bool near = hr_word_is_near(last, last_word(known)) ||
                      3 * hr_word_distance(wanted, known) <= letters + 2;
    return near ? key_distance(wanted, known) : INT32_MAX;
}

/* What other software calls it: transformers, nanoGPT, Megatron-LM. */
static const char *const elsewhere[][2] = {
    { "hidden_size", "model.d_model" },
    { "n_embd", "model.d_model" },
    { "num_hidden_layers", "model.n_layers" },
    { "num_layers", "model.n_layers" },
    { "num_attention_heads", "model.n_heads" },
    { "num_key_value_heads", "model.n_kv_heads" },
    { "intermediate_size", "model.d_ff" },
    { "ffn_dim", "model.d_ff" },
    { "ffn_hidden_size", "model.d_ff" },
    { "n_inner", "model.d_ff" },
    { "max_position_embeddings", "model.positions" },
    { "layer_norm_eps", "model.norm_eps" },
    { "rotary_pct", "model.rotary_fraction" },
    { "partial_rotary_factor", "model.rotary_fraction" },
    { "resid_pdrop", "model.dropout" },
    { "dataset", "data.train" },
    { "seq_length", "train.seq_len" },
    { "max_seq_length", "train.seq_len" },
    { "max_length", "train.seq_len" },
    { "context_length", "train.seq_len" },
    { "block_size", "train.seq_len" },
    { "learning_rate", "train.optimizer.lr" },
    { "max_grad_norm", "train.optimizer.clip" },
    { "clip_grad", "train.optimizer.clip" },
    { "lr_scheduler_type", "train.schedule.kind" },
    { "lr_decay_style", "train.schedule.kind" },
    { "warmup_iters", "train.schedule.warmup_steps" },
    { "min_lr", "train.schedule.final_fraction" },
    { "max_steps", "train.steps" },
    { "max_iters", "train.steps" },
    { "train_iters", "train.steps" },
    { "num_train_epochs", "train.epochs" },
    { "per_device_train_batch_size", "train.batch" },
    { "global_batch_size", "train.batch" },
    { "gradient_accumulation_steps", "memory.micro_batch" },
    { "gradient_checkpointing", "memory.recompute" },
    { "activation_checkpointing", "memory.recompute" },
    { "bf16", "train.format" },
    { "precision", "train.format" },
    { "dtype", "train.format" },
    { "save_every", "train.checkpoint_every" },
    { "save_steps", "train.checkpoint_every" },
    { "save_interval", "train.checkpoint_every" },
    { "save_total_limit", "train.keep_last" },
    { "eval_interval", "train.eval_every" },
    { "eval_iters", "train.eval_batches" },
    { "output_dir", "train.out" },
    { "out_dir", "train.out" },
};

static const char *name_here(const char *word)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (!strcmp(word, elsewhere[i][0])) return elsewhere[i][1];
    return NULL;
}

/* Where none is near, that with the fewest edits of the whole name: mostly one of its section. */
const char *hr_config_nearest(const char *key)
{
    const char *here = name_here(last_word(key));
    if (here) return here;
    const char *near = NULL, *far = rows[0].key.name;
    int32_t least_near = INT32_MAX, least_far = INT32_MAX;
    for (int32_t i = 0; i < ROW_COUNT; i++) {
        const char *name = rows[i].key.name;
        const int32_t distance = hr_config_distance(key, name), edits = hr_word_distance(key, name);
        if (distance < least_near) near = name;
        if (edits < least_far) far = name;
        least_near = (int32_t)hr_min(least_near, distance);
        least_far = (int32_t)hr_min(least_far, edits);
    }
    return near ? near : far;
}

/* Words of a list of choices with commas between them. */
static void list_choices(const char *choices, char *text, int32_t bytes)
{
    int32_t length = 0;
    for (; *choices && length + 3 < bytes; choices++) {
        if (*choices == ' ') text[length++] = ',';
        text[length++] = *choices;
    }
    text[length] = 0;
}

/* Of the member that a key sets; the null behind it included. */
static int32_t text_bytes(const hr_key *key)
{
    const int32_t row = hr_config_row_find(key->name);
    return row >= 0 ? rows[row].bytes : HR_PATH_BYTES;
}

const char *hr_key_takes(const hr_key *key, char text[HR_TAKES_BYTES])
{
    char low[HR_REAL_BYTES], high[HR_REAL_BYTES], words[96];
    const char *in = *key->unit ? ", in " : "";
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
        snprintf(text, HR_TAKES_BYTES, "a whole number from %s to %s%s%s%s%s", low, high, in,
                 key->unit, or_word, zero);
        break;
    case HR_KEY_REAL:
        snprintf(text, HR_TAKES_BYTES, "a number from %s %s %s%s%s%s%s", low,
                 key->below_high ? "to below" : "to", high, in, key->unit, or_word, zero);
        break;
    case HR_KEY_BOOL: snprintf(text, HR_TAKES_BYTES, "true or false"); break;
    case HR_KEY_BYTES:
        snprintf(text, HR_TAKES_BYTES,
                 "a size such as 700MiB, 733MB or plain bytes, at most %.0f%s%s", key->high,
                 or_word, zero);
        break;
    default: snprintf(text, HR_TAKES_BYTES, "text of at most %d bytes", text_bytes(key) - 1);
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

hr_status hr_config_fail_unknown(const char *key, hr_error *err)
{
    char quoted[48];
    return hr_fail(err, HR_USAGE, "%s is not a key; the nearest is %s (headroom keys lists all)",
                   hr_config_quote(key, quoted), hr_config_nearest(key));
}
