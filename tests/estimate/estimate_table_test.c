/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_table_test.c - estimates beside measured training steps of PyTorch
 * (bench/pytorch_memory.jsonl, written by tools/pytorch-memory), and beside the figures of
 * documents that ran out of memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "config/config.h"
#include "headroom/estimate.h"

enum { WORDS_MOST = 32, ROWS_MOST = 256, LINE_BYTES = 8192 };

/* A row of the table. Texts point into the line. */
typedef struct {
    const char *name, *set, *recipe[WORDS_MOST], *assume[WORDS_MOST];
    int32_t recipe_count, assume_count;
    int64_t peak_bytes;
} row;

static int32_t read_words(hr_json *json, const char *words[WORDS_MOST])
{
    int32_t count = 0;
    assert_int_equal(hr_json_next(json), HR_JSON_ARRAY);
    for (hr_json_kind kind; (kind = hr_json_next(json)) == HR_JSON_STRING;) {
        assert_true(count < WORDS_MOST);
        words[count++] = json->value;
    }
    return count;
}

static row read_row(char *line)
{
    row r = { .peak_bytes = 0 };
    hr_json json = hr_json_over(line, (int64_t)strlen(line));
    assert_int_equal(hr_json_next(&json), HR_JSON_OBJECT);
    for (hr_json_kind kind; (kind = hr_json_next(&json)) == HR_JSON_KEY;) {
        if (hr_json_is(&json, "recipe")) r.recipe_count = read_words(&json, r.recipe);
        else if (hr_json_is(&json, "assume")) r.assume_count = read_words(&json, r.assume);
        else if (hr_json_is(&json, "name")) {
            assert_int_equal(hr_json_next(&json), HR_JSON_STRING);
            r.name = json.value;
        } else if (hr_json_is(&json, "set")) {
            assert_int_equal(hr_json_next(&json), HR_JSON_STRING);
            r.set = json.value;
        } else if (hr_json_is(&json, "peak_bytes")) {
            assert_int_equal(hr_json_next(&json), HR_JSON_NUMBER);
            assert_true(hr_json_integer(&json, &r.peak_bytes));
        } else assert_true(hr_json_skip(&json, hr_json_next(&json)));
    }
    assert_int_equal(hr_json_next(&json), HR_JSON_END);
    assert_true(r.name && r.set && r.peak_bytes > 0 && r.recipe_count > 0);
    return r;
}

static hr_estimate_answer estimate(const char *const *recipe, int32_t recipe_count,
                                   const char *const *assume, int32_t assume_count)
{
    hr_config config;
    hr_error err;
    hr_estimate_settings settings;
    hr_estimate_answer answer;
    hr_config_default(&config);
    for (int32_t i = 0; i < recipe_count; i++)
        assert_int_equal(hr_config_set_word(&config, recipe[i], &err), HR_OK);
    hr_estimate_settings_of(&config, HR_FRAMEWORK_PYTORCH, &settings);
    for (int32_t i = 0; i < assume_count; i++)
        if (hr_estimate_assume(&settings, assume[i], &err) != HR_OK) fail_msg("%s", err.message);
    const int64_t bytes = hr_estimate_bytes(&config);
    void *memory = malloc((size_t)bytes);
    if (hr_estimate_make(&config, &settings, memory, bytes, &answer, &err) != HR_OK)
        fail_msg("%s", err.message);
    free(memory);
    return answer;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(const char *set, double *errors, int32_t count)
{
    assert_true(count >= 12);
    qsort(errors, (size_t)count, sizeof *errors, ascending);
    printf("%s: %d configurations, median %.2f %%, worst %.2f %%\n", set, count,
           errors[count / 2] * 100, errors[count - 1] * 100);
    assert_true(errors[count / 2] <= 0.005);
    assert_true(errors[count - 1] <= 0.05);
}

static void estimates_are_within_five_percent_of_measured_steps(void **state)
{
    (void)state;
    static char line[LINE_BYTES];
    static double fit[ROWS_MOST], held[ROWS_MOST];
    int32_t fits = 0, helds = 0;
    FILE *file = fopen(HR_SOURCE "/bench/pytorch_memory.jsonl", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        assert_true(fits < ROWS_MOST && helds < ROWS_MOST);
        const row r = read_row(line);
        const hr_estimate_answer answer = estimate(r.recipe, r.recipe_count, r.assume,
                                                   r.assume_count);
        const double error = (double)answer.tensor_bytes / (double)r.peak_bytes - 1;
        printf("%-34s %14lld measured %14lld estimated %+6.2f %%\n", r.name,
               (long long)r.peak_bytes, (long long)answer.tensor_bytes, error * 100);
        if (!strcmp(r.set, "fit")) fit[fits++] = fabs(error);
        else held[helds++] = fabs(error);
    }
    fclose(file);
    check("fit", fit, fits);
    check("held out", held, helds);
}

/* ---- documents. The figures are recomputed here, by hand. */

#define COUNT(list) (int32_t)(sizeof(list) / sizeof *(list))

static const hr_estimate_tensors *tensors_of(const hr_estimate_answer *answer, const char *name)
{
    for (int32_t i = 0; i < answer->tensor_count; i++)
        if (!strcmp(answer->tensors[i].name, name)) return &answer->tensors[i];
    fail_msg("%s is not among the largest tensors", name);
    return NULL;
}

/* Two tensors [B, H, T, T, head] of fp32 in each of 6 layers. */
static void a_product_by_broadcasting_keeps_12_9_gb(void **state)
{
    (void)state;
    static const struct {
        const char *batch, *length;
        int64_t bytes;
    } cases[] = { { "train.batch=32", "train.seq_len=128", 12884901888 },
                  { "train.batch=8", "train.seq_len=512", 51539607552 } };
    for (int32_t i = 0; i < COUNT(cases); i++) {
        const char *recipe[] = { "model.family=needle", "model.d_model=512",
                                 "model.n_layers=6",    "model.n_heads=8",
                                 "model.d_ff=2048",     "model.vocab_size=10000",
                                 cases[i].batch,        cases[i].length };
        const char *assume[] = { "attention=broadcast" };
        const hr_estimate_answer answer = estimate(recipe, COUNT(recipe), assume, COUNT(assume));
        const hr_estimate_tensors *kept = tensors_of(&answer, "products [B, H, T, T, head]");
        assert_int_equal(kept->count, 2 * 6);
        assert_int_equal(kept->bytes, cases[i].bytes);
        assert_true(answer.components[HR_ESTIMATE_SCORES] >= cases[i].bytes);
    }
}

/* A change [4096, 11008] of fp32 for each of 4 x 512 tokens, in one layer. */
static void a_weight_change_per_token_takes_344_gib(void **state)
{
    (void)state;
    const char *recipe[] = { "model.family=llama", "model.d_model=4096", "model.n_layers=32",
                             "model.n_heads=32",   "model.d_ff=11008",   "model.vocab_size=32000",
                             "train.batch=4",      "train.seq_len=512" };
    const char *assume[] = { "npt=materialized:16:1" };
    const hr_estimate_answer answer = estimate(recipe, COUNT(recipe), assume, COUNT(assume));
    assert_int_equal(answer.components[HR_ESTIMATE_WEIGHT_CHANGES], INT64_C(369367187456));
    assert_int_equal(tensors_of(&answer, "weight changes [B, T, D, F]")->bytes / (1 << 30), 344);
}

static hr_estimate_answer long_4b(const char *loss)
{
    const char *recipe[] = { "model.family=llama",      "model.d_model=2560", "model.n_layers=36",
                             "model.n_heads=32",        "model.n_kv_heads=8", "model.d_ff=9216",
                             "model.vocab_size=151936", "train.dtype=bf16",   "train.batch=1",
                             "train.seq_len=131072" };
    const char *assume[] = { "device=cuda", "weights=bf16",     "autocast=none",
                             "upcast=off",  "checkpointing=on", "chunk=4096",
                             loss };
    return estimate(recipe, COUNT(recipe), assume, COUNT(assume));
}

/* Logits [131072, 151936] in bf16 and their log-softmax in fp32: 37.09 + 74.19 = 111.28 GiB. */
static void a_loss_over_all_logits_takes_111_gib(void **state)
{
    (void)state;
    const int64_t count = INT64_C(131072) * 151936;
    const hr_estimate_answer answer = long_4b("loss=whole");
    assert_int_equal(answer.most[HR_ESTIMATE_LOGITS], 2 * count);
    assert_int_equal(answer.most[HR_ESTIMATE_LOG_SOFTMAX], 4 * count);
    assert_int_equal((2 * count + 4 * count) / (1 << 30), 111);
    assert_true(answer.forward_bytes > 6 * count);
}

/* In chunks without recomputation the log-softmax of every chunk is kept all the same. */
static void a_loop_over_chunks_still_keeps_74_gib(void **state)
{
    (void)state;
    const int64_t count = INT64_C(131072) * 151936;
    const hr_estimate_answer kept = long_4b("loss=loop"), freed = long_4b("loss=chunked");
    assert_int_equal(kept.most[HR_ESTIMATE_LOG_SOFTMAX], 4 * count);
    assert_int_equal(4 * count / (1 << 30), 74);
    assert_int_equal(freed.most[HR_ESTIMATE_LOG_SOFTMAX], 0);
    assert_true(kept.forward_bytes - freed.forward_bytes >= 4 * count / 10 * 9);
}

/* Batches of a table for a card of 24 GB: with checkpointing, pure bf16 and a loss in bf16 the
 * logits, their log-softmax and a gradient of each are 8 bytes an entry at the peak. */
static void a_vocabulary_of_200005_does_not_fit_a_batch_of_131072_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *batch, *length;
        int64_t tokens;
    } cases[] = { { "train.batch=8192", "train.seq_len=8", 65536 },
                  { "train.batch=4096", "train.seq_len=32", 131072 },
                  { "train.batch=64", "train.seq_len=2048", 131072 },
                  { "train.batch=256", "train.seq_len=768", 196608 } };
    for (int32_t i = 0; i < COUNT(cases); i++) {
        const char *recipe[] = { "model.family=yxanul",
                                 "model.d_model=768",
                                 "model.n_layers=28",
                                 "model.n_heads=12",
                                 "model.n_kv_heads=2",
                                 "model.d_ff=2048",
                                 "model.vocab_size=200005",
                                 "model.embedding_rank=128",
                                 "train.dtype=bf16",
                                 cases[i].batch,
                                 cases[i].length };
        const char *assume[] = { "device=cuda", "weights=bf16",  "autocast=none",
                                 "upcast=off",  "fp32-loss=off", "checkpointing=on" };
        const hr_estimate_answer answer = estimate(recipe, COUNT(recipe), assume, COUNT(assume));
        assert_int_equal(answer.parameters, 196398464);
        const int64_t entries = cases[i].tokens * 200005;
        assert_int_equal(answer.components[HR_ESTIMATE_LOG_SOFTMAX] / 512, entries * 2 / 512);
        assert_int_equal(answer.components[HR_ESTIMATE_LOSS_GRADIENTS] / 1024, entries * 4 / 1024);
        assert_true(answer.tensor_bytes > 3 * INT64_C(24000000000));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_within_five_percent_of_measured_steps),
        cmocka_unit_test(a_product_by_broadcasting_keeps_12_9_gb),
        cmocka_unit_test(a_weight_change_per_token_takes_344_gib),
        cmocka_unit_test(a_loss_over_all_logits_takes_111_gib),
        cmocka_unit_test(a_loop_over_chunks_still_keeps_74_gib),
        cmocka_unit_test(a_vocabulary_of_200005_does_not_fit_a_batch_of_131072_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
