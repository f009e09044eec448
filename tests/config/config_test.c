/* SPDX-License-Identifier: Apache-2.0 */
/* config_test.c - the table of keys, and the checks. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/random.h"
#include "config/config.h"
#include "config/config_keys.h"

static void every_default_is_what_its_row_prints(void **state)
{
    (void)state;
    hr_config config;
    hr_config_default(&config);
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        hr_config again = config;
        char text[HR_PATH_BYTES];
        assert_int_equal(hr_config_get(&config, key->name, text, sizeof text, NULL), HR_OK);
        assert_int_equal(hr_config_set(&again, key->name, key->default_text, NULL), HR_OK);
        assert_true(again.given[i / 64] >> i % 64 & 1);
        memcpy(again.given, config.given, sizeof again.given);
        assert_memory_equal(&again, &config, sizeof config);
        if (key->type == HR_KEY_REAL) continue; /* 1e-5 prints as 1e-05 */
        assert_string_equal(text, key->default_text);
    }
}

/* Every key has exactly the value that hr_config_get prints. */
static void a_handle_reads_the_value_of_every_key(void **state)
{
    (void)state;
    hr_config *config = hr_config_new();
    assert_non_null(config);
    assert_int_equal(
        hr_config_read_text(config, "train: {batch: 3, optimizer: {lr: 0.5}}", "r", NULL), HR_OK);
    assert_int_equal(hr_config_set(config, "train.dtype", "bf16", NULL), HR_OK);
    assert_int_equal(hr_config_set(config, "data.train", "a.txt", NULL), HR_OK);
    assert_true(hr_config_from_recipe(config, "train.batch"));
    assert_false(hr_config_from_recipe(config, "train.dtype"));
    assert_int_equal(hr_config_integer(config, "train.dtype"), HR_FORMAT_BF16);
    hr_config *copy = hr_config_copy(config);
    assert_non_null(copy);
    hr_config_default(config);
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        char text[HR_VALUE_BYTES], again[HR_VALUE_BYTES];
        if (key->type == HR_KEY_TEXT)
            snprintf(again, sizeof again, "%s", hr_config_text(copy, key->name));
        else if (key->type == HR_KEY_REAL)
            snprintf(again, sizeof again, "%.17g", hr_config_real(copy, key->name));
        else if (key->type == HR_KEY_BOOL)
            snprintf(again, sizeof again, "%s",
                     hr_config_integer(copy, key->name) ? "true" : "false");
        else if (key->type != HR_KEY_CHOICE)
            snprintf(again, sizeof again, "%lld", (long long)hr_config_integer(copy, key->name));
        else continue;
        assert_int_equal(hr_config_set(config, key->name, again, NULL), HR_OK);
        assert_int_equal(hr_config_get(copy, key->name, text, sizeof text, NULL), HR_OK);
        assert_int_equal(hr_config_get(config, key->name, again, sizeof again, NULL), HR_OK);
        assert_string_equal(again, text);
    }
    hr_config_assign(config, copy);
    assert_memory_equal(config, copy, sizeof *config);
    hr_config_free(copy);
    hr_config_free(config);
}

static void the_default_recipe_passes_its_own_check(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
}

/* A random legal value of a key, as text. */
static void random_value(const hr_key *key, uint64_t *draw, char *text, size_t bytes)
{
    const uint64_t bits = hr_random_mix(++*draw);
    const double share = (double)(bits >> 11) / 9007199254740992.0;
    const double inside = key->low + share * (key->high - key->low);
    static const char *const rungs[] = { "auto", "ref", "avx2", "avx512", "avx512bf16", "amx" };
    char number[HR_REAL_BYTES], word[32] = "";
    int32_t count = 0;
    switch (key->type) {
    case HR_KEY_INTEGER:
    case HR_KEY_BYTES: snprintf(text, bytes, "%lld", (long long)inside); return;
    case HR_KEY_REAL: snprintf(text, bytes, "%s", hr_real_print(inside, number)); return;
    case HR_KEY_BOOL: snprintf(text, bytes, bits & 1 ? "true" : "false"); return;
    case HR_KEY_CHOICE:
        for (const char *at = key->choices; sscanf(at, "%31s", word) == 1; count++) {
            if (hr_random_mix(bits + (uint64_t)count) % 3 == 0) break;
            at += strlen(word) + (at[strlen(word)] == ' ');
            if (!*at) break;
        }
        snprintf(text, bytes, "%s", word);
        return;
    case HR_KEY_TEXT:
        if (key->choices) snprintf(text, bytes, "%s", rungs[bits % 6]);
        else snprintf(text, bytes, "a folder/%llx: #'\"{}.txt", (unsigned long long)bits);
        return;
    }
}

static void set_accepts_the_text_of_get_for_every_key(void **state)
{
    (void)state;
    const uint64_t seed = 20261121;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t draw = seed;
    for (int32_t round = 0; round < 200 * HR_COUNT; round++) {
        for (int32_t i = 0; hr_config_key(i); i++) {
            const hr_key *key = hr_config_key(i);
            char text[HR_PATH_BYTES], written[HR_PATH_BYTES], again[HR_PATH_BYTES];
            hr_config one, two;
            hr_config_default(&one);
            hr_config_default(&two);
            random_value(key, &draw, text, sizeof text);
            assert_int_equal(hr_config_set(&one, key->name, text, NULL), HR_OK);
            assert_int_equal(hr_config_get(&one, key->name, written, sizeof written, NULL), HR_OK);
            assert_int_equal(hr_config_set(&two, key->name, written, NULL), HR_OK);
            assert_int_equal(hr_config_get(&two, key->name, again, sizeof again, NULL), HR_OK);
            assert_string_equal(written, again);
            assert_memory_equal(&one, &two, sizeof one);
        }
    }
}

static void the_rows_cover_the_whole_struct_once(void **state)
{
    (void)state;
    char covered[sizeof(hr_config)] = { 0 };
    int64_t bytes = 0;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const hr_config_row *row = &hr_config_rows()[i];
        for (int32_t j = 0; j < row->bytes; j++) assert_int_equal(covered[row->offset + j]++, 0);
        bytes += row->bytes;
        assert_int_equal(hr_config_row_find(row->key.name), i);
        assert_true(strlen(row->key.text) > 0 && strlen(row->key.text) < 80);
    }
    /* The rest is padding: less than 8 bytes after each narrower member. */
    assert_true((int64_t)sizeof(hr_config) - bytes < 8 * hr_config_row_count());
}

static void the_old_name_of_a_key_sets_the_same_member_and_is_noted(void **state)
{
    (void)state;
    hr_error err;
    for (int32_t i = 0; hr_config_renamed(i); i++) {
        const hr_renamed_key *key = hr_config_renamed(i);
        const int32_t row = hr_config_row_find(key->name);
        hr_config now, old;
        char value[HR_PATH_BYTES];
        assert_true(row >= 0);
        assert_string_equal(hr_config_name(key->old_name), key->name);
        assert_string_equal(hr_config_name(key->name), key->name);
        hr_config_default(&now);
        hr_config_default(&old);
        snprintf(value, sizeof value, "%s", hr_config_key(row)->default_text);
        assert_int_equal(hr_config_set(&now, key->name, value, &err), HR_OK);
        assert_int_equal(hr_config_set(&old, key->old_name, value, &err), HR_OK);
        assert_true(old.old_names == UINT64_C(1) << i && now.old_names == 0);
        old.old_names = 0;
        assert_memory_equal(&now, &old, sizeof now);
        assert_int_equal(hr_config_get(&old, key->old_name, value, sizeof value, &err), HR_OK);
    }
    assert_null(hr_config_renamed(-1));
    assert_null(hr_config_name("train.nothing"));
}

static void get_says_how_many_bytes_its_text_needs(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    char text[4] = "old";
    hr_config_default(&config);
    assert_int_equal(hr_config_get(&config, "data.tokenizer", text, sizeof text, &err), HR_USAGE);
    assert_string_equal(err.message, "data.tokenizer: its value needs 6 bytes, there are 4");
    assert_string_equal(text, "old");
}

typedef struct {
    const char *wrong, *right;
} pair;

static void an_unknown_key_names_the_nearest_known_one(void **state)
{
    (void)state;
    static const pair pairs[] = {
        { "model.d_modl", "model.d_model" },  { "train.seqlen", "train.seq_len" },
        { "memory.bugdet", "memory.budget" }, { "epoch", "train.epochs" },
        { "model.heads", "model.n_heads" },   { "model.vocab", "model.vocab_size" },
    };
    hr_config config, before;
    hr_config_default(&config);
    before = config;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hr_error err;
        char expected[200];
        assert_int_equal(hr_config_set(&config, pairs[i].wrong, "1", &err), HR_USAGE);
        snprintf(expected, sizeof expected,
                 "\"%s\" is not a key; the nearest is %s (headroom keys lists all)", pairs[i].wrong,
                 pairs[i].right);
        assert_string_equal(err.message, expected);
    }
    assert_memory_equal(&config, &before, sizeof config);
}

static void an_unrelated_key_is_refused_without_a_suggestion(void **state)
{
    (void)state;
    static const char *const far[] = {
        "model.width", "train.gpu", "memory.limit", "data.source",  "foo", "x", "",
        "kk.kkk",      ".",         "outlier",      "advance.gamma"
    };
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        char expected[200];
        assert_null(hr_config_nearest(far[i]));
        assert_int_equal(hr_config_set(&config, far[i], "1", &err), HR_USAGE);
        snprintf(expected, sizeof expected, "\"%s\" is not a key (headroom keys lists all)",
                 far[i]);
        assert_string_equal(err.message, expected);
    }
}

/* The first word is the typed one, the others follow by likelihood. Words after the empty word are
 * no suggestions. */
static void similar_words_cost_less_and_different_ones_are_no_suggestion(void **state)
{
    (void)state;
    static const char *const rows[][5] = {
        { "temp", "temperature", "", "help", "seed" },
        { "tok", "tokens", "tokenizer", "", "top-k" },
        { "batch_size", "batch", "", "patch", "size" },
        { "seqlen", "seq_len", "", "len", "seed" },
        { "size", "vocab-size", "", "side-car", "prize" },
        { "trian", "train", "", "plan", "brain" },
        { "rank", "", "positions", "mask", "random" },
        { "lr", "", "lx", "clip", "seq_len" },
        { "budgt", "budget", "", "widget", "out" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t before = -1;
        bool similar = true;
        for (int32_t j = 1; j < 5; j++) {
            const int32_t cost = hr_word_cost(rows[i][0], rows[i][j]);
            similar = similar && *rows[i][j];
            if (!*rows[i][j]) continue;
            if (similar != (cost < INT32_MAX) || (similar && cost <= before))
                fail_msg("%s, %s: %d", rows[i][0], rows[i][j], cost);
            before = cost;
        }
        assert_int_equal(hr_word_cost(rows[i][0], rows[i][0]), 0);
    }
}

static void word_distance_counts_single_edits(void **state)
{
    (void)state;
    assert_int_equal(hr_word_distance("", ""), 0);
    assert_int_equal(hr_word_distance("", "abc"), 3);
    assert_int_equal(hr_word_distance("kitten", "sitting"), 3);
    assert_int_equal(hr_word_distance("plan", "paln"), 1);
    assert_int_equal(hr_word_distance("train", "train"), 0);
    char long_word[500];
    memset(long_word, 'a', sizeof long_word);
    long_word[499] = 0;
    assert_int_equal(hr_word_distance(long_word, "a"), 62);
}

static void a_wrong_value_says_what_the_key_takes(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        { "train.batch", "0",
          "train.batch takes an integer from 1 to 16,777,216 sequences; got \"0\"" },
        { "train.epochs", "-4",
          "train.epochs takes an integer from 1 to 1,099,511,627,776 passes; got \"-4\"" },
        { "train.epochs", "1e3",
          "train.epochs takes an integer from 1 to 1,099,511,627,776 passes; got "
          "\"1e3\"" },
        { "train.batch", "99999999999999999999",
          "train.batch takes an integer from 1 to 16,777,216 sequences; got "
          "\"99999999999999999999\"" },
        { "train.threads", "many",
          "train.threads takes an integer from 0 to 256 threads, or auto; got \"many\"" },
        { "train.seed", "9007199254740993",
          "train.seed takes an integer from 0 to 9,007,199,254,740,992; got "
          "\"9007199254740993\"" },
        { "model.tie_embeddings", "True",
          "model.tie_embeddings takes one of auto, false, true; got \"True\": use true" },
        { "model.tie_embeddings", "no",
          "model.tie_embeddings takes one of auto, false, true; got \"no\": use false" },
        { "model.dropout", "0.999999999",
          "model.dropout takes a number from 0 to 0.999; got \"0.999999999\"" },
        { "train.optimizer.beta1", "1",
          "train.optimizer.beta1 takes a number from 0 to below 1; got \"1\"" },
        { "model.dropout", "nan", "model.dropout takes a number from 0 to 0.999; got \"nan\"" },
        { "train.optimizer.lr", "fast",
          "train.optimizer.lr takes a number from 0 to 1000; got \"fast\"" },
        { "train.optimizer.lr", "0x1p3",
          "train.optimizer.lr takes a number from 0 to 1000; got \"0x1p3\"" },
        { "train.dtype", "fp8",
          "train.dtype takes one of fp32, bf16, fp16; got \"fp8\": use bf16; fp16 keeps fp32 "
          "weights and scales the loss; bf16 needs no scaling, and is faster here; fp8 arithmetic "
          "is not supported" },
        { "train.dtype", "fp32 bf16",
          "train.dtype takes one of fp32, bf16, fp16; got \"fp32 bf16\"" },
        { "train.kernels", "sse",
          "train.kernels takes one of auto, ref, avx2, avx512, avx512bf16, amx; got "
          "\"sse\"" },
        { "model.parallel_residual", "yes",
          "model.parallel_residual takes true or false; got \"yes\"" },
        { "memory.budget", "700M",
          "memory.budget takes a size up to 8192 TiB, such as 700MiB, 733MB or plain "
          "bytes, or none; got \"700M\"" },
        { "data.train", "two\nlines",
          "data.train takes no control characters, and byte 3 of \"two?lines\" is one, the end of "
          "a "
          "line" },
        { "data.train", "na\xefve.txt",
          "data.train takes printable UTF-8, and byte 2 of \"na\xefve.txt\" is not" },
        { "data.text_field", "\xe2\x80\xa8",
          "data.text_field takes printable UTF-8, and byte 0 of \"\xe2\x80\xa8\" is not" },
        { "train.seed", "1_000",
          "train.seed takes an integer from 0 to 9,007,199,254,740,992; got \"1_000\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config, before;
        hr_error err;
        hr_config_default(&config);
        before = config;
        assert_int_equal(hr_config_set(&config, cases[i].key, cases[i].value, &err), HR_USAGE);
        assert_string_equal(err.message, cases[i].message);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

static void a_control_character_is_named_as_the_reason(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    assert_int_equal(hr_config_set(&config, "data.train", "a\nb.txt", &err), HR_USAGE);
    assert_string_equal(err.message, "data.train takes no control characters, and byte 1 of "
                                     "\"a?b.txt\" is one, the end of a line");
    assert_int_equal(hr_config_set(&config, "train.out", "\x1b", &err), HR_USAGE);
    assert_string_equal(err.message,
                        "train.out takes no control characters, and byte 0 of \"?\" is one");
}

static void a_path_of_1023_bytes_is_taken_and_of_1024_refused(void **state)
{
    (void)state;
    hr_config config;
    char path[1025];
    hr_config_default(&config);
    memset(path, 'p', sizeof path);
    path[1024] = 0;
    assert_int_equal(hr_config_set(&config, "data.train", path, NULL), HR_USAGE);
    path[1023] = 0;
    assert_int_equal(hr_config_set(&config, "data.train", path, NULL), HR_OK);
    assert_string_equal(config.data.train, path);
}

static void the_check_names_both_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *message;
    } cases[] = {
        { "model.n_heads=3",
          "model.n_heads 3 does not divide model.d_model 128; the nearest that does is 2" },
        { "model.d_model=4096 model.n_heads=8",
          "model.d_model 4096 / model.n_heads 8 gives heads of 512; the limit is 256: "
          "use at least 16 heads" },
        { "model.d_model=48 model.n_heads=4",
          "model.rotary_fraction 0.25 of a head of 12 is 3 elements; RoPE needs an "
          "even number" },
        { "model.vocab_size=255",
          "model.vocab_size is 255; data.tokenizer bytes needs 256 at least" },
        { "data.tokenizer=words model.vocab_size=4",
          "model.vocab_size is 4; data.tokenizer words needs 5 at least: <pad>, <unk>, <sos>, "
          "<eos> and one word" },
        { "model.attention.sliding_window=64",
          "model.family gpt_neox has no model.attention.sliding_window" },
        { "model.family=llama model.attention.sliding_window=64 model.attention.pattern=local",
          "model.attention.sliding_window 64 needs model.attention.pattern dense" },
        { "model.family=llama model.attention.layer_types=full",
          "model.family llama has no model.attention.layer_types" },
        { "model.family=qwen2 model.attention.sliding_window=8 "
          "model.attention.layer_types=full,local",
          "model.attention.layer_types: \"local\" is not a type; write \"full sliding\", or with "
          "numbers of layers \"full*21 sliding*7\"" },
        { "model.family=qwen2 model.attention.sliding_window=8 "
          "model.attention.layer_types=sliding*0",
          "model.attention.layer_types: \"sliding*0\" is not a type; write \"full sliding\", or "
          "with numbers of layers \"full*21 sliding*7\"" },
        { "model.family=qwen2 model.attention.sliding_window=8 model.attention.layer_types=full*4",
          "model.attention.layer_types has no sliding layer; remove it and "
          "model.attention.sliding_window for full attention" },
        { "model.family=gpt_neo model.attention.layer_types=full,sliding",
          "model.attention.layer_types needs model.attention.sliding_window, in tokens" },
        { "model.family=gpt_neo model.attention.sliding_window=8 "
          "model.attention.layer_types=full*3,sliding*2",
          "model.attention.layer_types lists 5 layers, model.n_layers is 4" },
        { "model.family=gpt2 model.positions=64",
          "train.seq_len 128 is more than model.positions 64: use train.seq_len=64 or "
          "model.positions=128" },
        { "model.family=gpt2 model.positions=64 model.from=folder",
          "train.seq_len 128 is more than model.positions 64: use train.seq_len=64" },
        { "memory.micro_batch=3",
          "memory.micro_batch 3 does not divide train.batch 16; the nearest that does is 2" },
        { "memory.micro_batch=32",
          "memory.micro_batch 32 does not divide train.batch 16; the nearest that does is 16" },
        { "model.vocab_size=1073741824 model.d_model=1048576 model.n_heads=4096",
          "8 FLOP x the micro-batch x train.seq_len x model.vocab_size x model.d_model "
          "exceeds 4611686018427387904, the limit; reduce one of them" },
        { "model.n_layers=4096 model.d_model=1048576 model.n_heads=4096 model.d_ff=1048576",
          "model.n_layers x model.d_model x model.d_ff x 48 bytes exceeds "
          "72057594037927936, the limit; reduce one of them" },
        { "train.batch=16777216 train.seq_len=16777216",
          "train.batch x train.seq_len x model.n_layers x the width of attention x 64 "
          "bytes exceeds 72057594037927936, the limit; reduce one of them" },
        { "train.seq_len=16777216 model.dropout=0.1 model.d_model=1024 model.n_heads=1024 "
          "model.rotary_fraction=0 train.batch=1 model.n_layers=1 model.d_ff=1",
          "model.n_heads x train.seq_len is 17179869184; with dropout the limit is "
          "4294967295" },
        { "train.steps=1099511627776 train.batch=65536 train.seq_len=128",
          "train.steps x train.batch x train.seq_len tokens exceeds "
          "4611686018427387904, the limit; reduce one of them" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config config;
        hr_error err;
        char keys[300], *rest = keys;
        hr_config_default(&config);
        snprintf(keys, sizeof keys, "%s", cases[i].keys);
        for (char *word; (word = strsep(&rest, " "));) {
            char *value = strchr(word, '=');
            *value++ = 0;
            assert_int_equal(hr_config_set(&config, word, value, NULL), HR_OK);
        }
        if (hr_config_check(&config, &err) == HR_OK) fail_msg("%s passed", cases[i].keys);
        assert_int_equal(err.status, HR_USAGE);
        assert_string_equal(err.message, cases[i].message);
    }
}

/* Counts of a whole step may exceed 64 bits; those of one call may not. */
static void a_405b_model_with_a_million_tokens_is_accepted(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    config.model.n_layers = 126;
    config.model.d_model = 16384;
    config.model.n_heads = 128;
    config.model.n_kv_heads = 8;
    config.model.d_ff = 53248;
    config.model.vocab_size = 128256;
    config.train.seq_len = 1048576;
    for (config.train.batch = 1; config.train.batch <= 16; config.train.batch *= 2)
        if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(hr_config_check(&config, &err), HR_USAGE);
    assert_string_equal(err.message,
                        "14 FLOP x the micro-batch x train.seq_len squared x the width of "
                        "attention exceeds 4611686018427387904, the limit; reduce one of them");
    config.memory.micro_batch = 1;
    if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
}

static void the_documented_table_equals_the_code(void **state)
{
    (void)state;
    static char page[65536];
    const int fd = open(HR_SOURCE "/docs/recipe.md", O_RDONLY);
    assert_true(fd >= 0);
    const ssize_t bytes = read(fd, page, sizeof page - 1);
    assert_in_range(bytes, 1, sizeof page - 2);
    close(fd);
    for (int32_t i = 0; hr_config_key(i); i++) {
        const hr_key *key = hr_config_key(i);
        char row[400], takes[HR_TAKES_BYTES];
        snprintf(row, sizeof row, "| `%s` | %s | %s | %s |\n", key->name,
                 *key->default_text ? key->default_text : "–", hr_key_takes(key, takes), key->text);
        if (!strstr(page, row)) fail_msg("docs/recipe.md lacks this row:\n%s", row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_what_its_row_prints),
        cmocka_unit_test(the_default_recipe_passes_its_own_check),
        cmocka_unit_test(set_accepts_the_text_of_get_for_every_key),
        cmocka_unit_test(the_rows_cover_the_whole_struct_once),
        cmocka_unit_test(the_old_name_of_a_key_sets_the_same_member_and_is_noted),
        cmocka_unit_test(get_says_how_many_bytes_its_text_needs),
        cmocka_unit_test(an_unknown_key_names_the_nearest_known_one),
        cmocka_unit_test(an_unrelated_key_is_refused_without_a_suggestion),
        cmocka_unit_test(similar_words_cost_less_and_different_ones_are_no_suggestion),
        cmocka_unit_test(word_distance_counts_single_edits),
        cmocka_unit_test(a_wrong_value_says_what_the_key_takes),
        cmocka_unit_test(a_control_character_is_named_as_the_reason),
        cmocka_unit_test(a_path_of_1023_bytes_is_taken_and_of_1024_refused),
        cmocka_unit_test(a_handle_reads_the_value_of_every_key),
        cmocka_unit_test(the_check_names_both_numbers),
        cmocka_unit_test(a_405b_model_with_a_million_tokens_is_accepted),
        cmocka_unit_test(the_documented_table_equals_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
