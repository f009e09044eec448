/* SPDX-License-Identifier: Apache-2.0 */
/* levers_test.c - the values of levers are valid, and patterns of train.freeze match the layers
 * that they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admission/format_loss.h"
#include "admission/levers.h"
#include "model/family.h"
#include "model/rules.h"

static const hr_lever_names names = { .before = "tok.weight,pos.weight", .layers = "m.layers." };
static hr_config config, changed;

static const hr_lever *find(const char *key)
{
    int32_t count;
    const hr_lever *levers = hr_levers(&count);
    for (int32_t i = 0; i < count; i++)
        if (!strcmp(levers[i].key, key)) return &levers[i];
    fail_msg("%s is no lever", key);
    return NULL;
}

static int32_t steps_of(const char *key)
{
    return hr_lever_steps(find(key), &config, &names);
}

static bool is_frozen(const char *name, int16_t layer)
{
    const hr_rules rules = { .config = &changed };
    return hr_rules_of(&rules, layer, 0, false, false, name).frozen;
}

/* Step k freezes all but the upper 1 / 2^k of the layers, rounded up, and what is before them. */
static void patterns_freeze_exactly_the_lower_layers(void **state)
{
    (void)state;
    int32_t patterns = 0;
    for (int64_t layers = 1; layers <= 140; layers++) {
        char value[HR_LEVER_VALUE_BYTES], name[64];
        hr_config_default(&config);
        config.model.n_layers = layers;
        const int32_t steps = steps_of("train.freeze");
        if (layers == 1) assert_int_equal(steps, 0);
        else assert_true(steps > 0);
        if (layers <= 100) assert_true(layers <= INT64_C(1) << steps); /* the last trains one */
        for (int32_t step = 1; step <= steps; step++, patterns++) {
            const int64_t parts = INT64_C(1) << step, trained = (layers + parts - 1) / parts;
            changed = config;
            assert_true(hr_lever_apply(find("train.freeze"), &names, step, &changed, value) > 0);
            assert_true(*value == '\'' && value[strlen(value) - 1] == '\'');
            assert_true(is_frozen("tok.weight", HR_NONE) && is_frozen("pos.weight", HR_NONE));
            assert_false(is_frozen("head.weight", HR_NONE));
            for (int64_t l = 0; l < layers; l++) {
                snprintf(name, sizeof name, "m.layers.%lld.mlp.weight", (long long)l);
                if (is_frozen(name, (int16_t)l) != (l < layers - trained))
                    fail_msg("%lld layers, step %d, layer %lld: %s", (long long)layers, step,
                             (long long)l, value);
            }
        }
    }
    print_message("%d patterns\n", patterns);
    assert_true(patterns > 300);
}

/* Every step is valid and leaves less than the one before. */
static void every_step_of_every_lever_is_valid(void **state)
{
    (void)state;
    int32_t count, tried = 0;
    const hr_lever *levers = hr_levers(&count);
    for (int32_t family = 0; family < HR_FAMILIES; family++)
        for (int32_t i = 0; i < count; i++) {
            char value[HR_LEVER_VALUE_BYTES], before[HR_LEVER_VALUE_BYTES] = "";
            hr_error err;
            hr_config_default(&config);
            config.model.family = family;
            config.train.ema_decay = 0.9;
            const int32_t steps = hr_lever_steps(&levers[i], &config, &names);
            double left = 2;
            for (int32_t step = 1; step <= steps; step++, tried++) {
                changed = config;
                const double now = hr_lever_apply(&levers[i], &names, step, &changed, value);
                if (!(now > 0 && now < left)) fail_msg("%s, step %d", levers[i].key, step);
                assert_string_not_equal(value, before);
                if (hr_config_check(&changed, &err) != HR_OK)
                    fail_msg("%s=%s: %s", levers[i].key, value, err.message);
                left = now;
                memcpy(before, value, sizeof before);
            }
            if (steps == 0) continue;
            changed = config;
            assert_true(hr_lever_apply(&levers[i], &names, steps + 1, &changed, value) == 0);
            assert_memory_equal(&changed, &config, sizeof config);
        }
    print_message("%d values\n", tried);
    assert_true(tried > 20 * HR_FAMILIES);
}

/* The value is what people paste behind the key: all of its words give the same recipe. */
static void what_goes_with_a_lever_is_set_and_printed(void **state)
{
    (void)state;
    int32_t count, tried = 0;
    const hr_lever *levers = hr_levers(&count);
    for (int32_t i = 0; i < count; i++) {
        static hr_config pasted;
        char value[HR_LEVER_VALUE_BYTES], words[2 * HR_LEVER_VALUE_BYTES];
        hr_error why;
        if (!levers[i].with) continue;
        hr_config_default(&config);
        config.model.vocab_size = 1000;
        if (!strcmp(levers[i].key, "train.state.master")) config.train.dtype = HR_FORMAT_BF16;
        assert_int_equal(hr_lever_steps(&levers[i], &config, &names), 1);
        changed = pasted = config;
        assert_true(hr_lever_apply(&levers[i], &names, 1, &changed, value) > 0);
        assert_int_equal(changed.train.dtype, HR_FORMAT_BF16);
        assert_int_equal(changed.train.state.moments, HR_MOMENTS_INT8);
        assert_int_not_equal(changed.train.state.master, HR_MASTERS_FP32);
        snprintf(words, sizeof words, "%s=%s", levers[i].key, value);
        for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
            assert_int_equal(hr_config_set_word(&pasted, word, &why), HR_OK);
        assert_memory_equal(&pasted, &changed, sizeof pasted);
        tried++;
    }
    assert_int_equal(tried, 3);
}

/* Rows are in the order of what they give up: hr_refuse takes the first ones first. */
static void the_table_is_sorted_by_what_levers_give_up(void **state)
{
    (void)state;
    int32_t count;
    const hr_lever *levers = hr_levers(&count);
    for (int32_t i = 1; i < count; i++) assert_true(levers[i - 1].loss <= levers[i].loss);
}

static void a_family_has_the_levers_of_its_keys(void **state)
{
    (void)state;
    static const struct {
        int32_t family;
        const char *has[4], *lacks[4];
    } cases[] = {
        { HR_FAMILY_WIDE,
          { "model.expansion", "model.decoder_rank", "model.vocab_size" },
          { "model.attention.pattern", "model.d_ff", "model.n_kv_heads", "model.embedding_rank" } },
        { HR_FAMILY_YXANUL,
          { "model.embedding_rank", "model.n_kv_heads", "model.attention.sliding_window" },
          { "model.expansion", "model.tie_embeddings" } },
        { HR_FAMILY_LLAMA,
          { "model.n_kv_heads", "model.tie_embeddings", "model.attention.pattern" },
          { "model.embedding_rank", "model.decoder_rank" } },
        { HR_FAMILY_NEEDLE,
          { "model.attention.pattern", "model.d_ff" },
          { "model.n_kv_heads", "model.tie_embeddings", "model.attention.sliding_window" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config_default(&config);
        config.model.family = cases[i].family;
        config.model.vocab_size = 1000;
        for (int32_t k = 0; k < 4 && cases[i].has[k]; k++)
            if (!steps_of(cases[i].has[k])) fail_msg("no %s", cases[i].has[k]);
        for (int32_t k = 0; k < 4 && cases[i].lacks[k]; k++)
            if (steps_of(cases[i].lacks[k])) fail_msg("%s", cases[i].lacks[k]);
        snprintf(config.model.from, sizeof config.model.from, "folder");
        assert_int_equal(steps_of("model.vocab_size"), 0); /* the folder says it */
        assert_true(steps_of("train.batch") > 0);
    }
}

/* Halving starts where a factorized head is smaller than the full matrix. */
static void a_rank_begins_below_the_full_matrix(void **state)
{
    (void)state;
    char value[HR_LEVER_VALUE_BYTES];
    hr_config_default(&config);
    config.model.family = HR_FAMILY_WIDE;
    config.model.expansion = 32768;
    config.model.vocab_size = 32000;
    changed = config;
    assert_true(hr_lever_apply(find("model.decoder_rank"), &names, 1, &changed, value) > 0);
    assert_string_equal(value, "8192");
    assert_true(8192 * (32768 + 32000) < 32768 * 32000);
    config.model.decoder_rank = 600;
    changed = config;
    assert_true(hr_lever_apply(find("model.decoder_rank"), &names, 1, &changed, value) > 0);
    assert_string_equal(value, "300");
}

/* A factorized matrix keeps every word. */
static void a_smaller_rank_gives_up_less_than_a_smaller_vocabulary(void **state)
{
    (void)state;
    assert_true(find("model.decoder_rank")->loss < find("model.vocab_size")->loss);
    assert_true(find("model.embedding_rank")->loss < find("model.vocab_size")->loss);
    assert_true(find("model.decoder_rank")->loss > find("train.seq_len")->loss);
}

static void the_vocabulary_of_a_tokenizer_file_is_no_lever(void **state)
{
    (void)state;
    static const char *const tokenizers[] = { "words", "bytes", "folder/tokenizer.model" };
    for (int32_t i = 0; i < 3; i++) {
        hr_config_default(&config);
        config.model.vocab_size = 32000;
        snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "%s", tokenizers[i]);
        assert_int_equal(steps_of("model.vocab_size") > 0, i < 2);
    }
}

/* The table of losses is that of docs/low-byte-formats.md. */
static void losses_of_formats_are_those_of_the_page(void **state)
{
    (void)state;
    static const char *const masters[] = { "", "residual16", "residual8", "none" };
    static const char *const moments[] = { "", "bf16", "int8" };
    static char page[1 << 14];
    FILE *file = fopen(HR_SOURCE "/docs/low-byte-formats.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    const hr_format_loss *row;
    for (int32_t i = 0; (row = hr_format_loss_at(i)); i++) {
        char what[128], difference[64];
        hr_config_default(&config);
        config.train.dtype = row->format;
        config.train.optimizer.kind = row->optimizer;
        config.train.state.master = row->master;
        config.train.state.moments = row->moments;
        assert_ptr_equal(hr_format_loss_of(&config), row);
        hr_error err;
        char optimizer[32];
        assert_int_equal(
            hr_config_get(&config, "train.optimizer.kind", optimizer, sizeof optimizer, &err),
            HR_OK);
        snprintf(what, sizeof what, "| %s, %s%s%s%s%s | ", optimizer, hr_format_name(row->format),
                 *masters[row->master] ? ", master " : "", masters[row->master],
                 *moments[row->moments] ? ", moments " : "", moments[row->moments]);
        snprintf(difference, sizeof difference, "| %+.2f \xc2\xb1 %.2f %% |", row->percent,
                 row->interval);
        const char *line = strstr(page, what), *end = line ? strchr(line, '\n') : NULL;
        const char *found = line ? strstr(line, difference) : NULL;
        if (!found || found > end) fail_msg("%s%s", what, difference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_freeze_exactly_the_lower_layers),
        cmocka_unit_test(every_step_of_every_lever_is_valid),
        cmocka_unit_test(what_goes_with_a_lever_is_set_and_printed),
        cmocka_unit_test(the_table_is_sorted_by_what_levers_give_up),
        cmocka_unit_test(a_family_has_the_levers_of_its_keys),
        cmocka_unit_test(a_rank_begins_below_the_full_matrix),
        cmocka_unit_test(a_smaller_rank_gives_up_less_than_a_smaller_vocabulary),
        cmocka_unit_test(the_vocabulary_of_a_tokenizer_file_is_no_lever),
        cmocka_unit_test(losses_of_formats_are_those_of_the_page),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
