/* SPDX-License-Identifier: Apache-2.0 */
/* attention_share_test.c - the share of attention that a pattern keeps, compared with the mask of
 * the kernels, pair by pair. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/attention_share.h"
#include "model/layer_types.h"
#include "ops/attention/attention.h"

enum { SEED = 20260301 };

static hr_config local(int64_t T, int64_t window)
{
    hr_config config;
    hr_config_default(&config);
    config.train.seq_len = T;
    config.model.attention.pattern = HR_ATTENTION_LOCAL;
    config.model.attention.window = window;
    return config;
}

/* Percentages of local(1) with 64-token blocks, computed by hand: (2n - 1) / (n(n + 1) / 2). */
static void local_blocks_have_the_documented_percentages(void **state)
{
    (void)state;
    static const struct {
        int64_t T;
        double percent;
    } known[] = { { 64, 100 },   { 128, 100 },   { 256, 70 },
                  { 512, 41.7 }, { 1024, 22.8 }, { 4096, 6.1 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const hr_config config = local(known[i].T, 1);
        const hr_attention_share share = hr_attention_share_of(&config);
        const double percent = 100 * (double)share.kept / (double)share.causal;
        assert_true(fabs(percent - known[i].percent) < 0.05);
        assert_true(share.blocks);
        assert_int_equal(share.layers, config.model.n_layers);
    }
}

/* Blocks with at least one pair of tokens that the mask keeps. */
static void count(const hr_attention_mask *mask, int64_t T, int64_t *kept, int64_t *causal)
{
    const int64_t block = mask->kind == HR_PATTERN_SLIDING ? 1 : mask->block;
    const int64_t n = (T + block - 1) / block;
    *kept = *causal = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const int64_t query = i * block + block - 1 < T ? i * block + block - 1 : T - 1;
            *kept += hr_attention_keeps(mask, query, j * block);
            ++*causal;
        }
}

static void random_patterns_keep_the_pairs_of_the_mask(void **state)
{
    (void)state;
    const hr_random_stream stream = hr_random_stream_of(SEED, 0, 0, 0);
    print_message("seed %d\n", SEED);
    for (int32_t turn = 0; turn < 600 * HR_COUNT; turn++) {
        const hr_random_row row = hr_random_row_of(stream, (uint32_t)turn, 0);
        hr_config config = local(1 + hr_random_element(&row, 0) % 200, 0);
        config.model.attention.pattern = (int32_t)(hr_random_element(&row, 1) % 4);
        config.model.attention.window = hr_random_element(&row, 2) % 12;
        config.model.attention.stride = hr_random_element(&row, 3) % 9;
        config.model.attention.block = 1 + hr_random_element(&row, 4) % 20;
        hr_attention_mask mask = { config.model.attention.pattern,
                                   (int32_t)config.model.attention.block,
                                   (int32_t)config.model.attention.window,
                                   (int32_t)hr_config_attention_stride(&config) };
        if (turn % 5 == 0) {
            config.model.attention.pattern = HR_ATTENTION_DENSE;
            config.model.attention.sliding_window = 1 + hr_random_element(&row, 5) % 250;
            mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 1,
                                        (int32_t)config.model.attention.sliding_window, 1 };
        }
        int64_t kept, causal;
        count(&mask, config.train.seq_len, &kept, &causal);
        const hr_attention_share share = hr_attention_share_of(&config);
        assert_int_equal(share.kept, kept);
        assert_int_equal(share.causal, causal);
        assert_int_equal(share.blocks, turn % 5 != 0);
    }
}

static void layers_without_the_window_are_not_counted(void **state)
{
    (void)state;
    hr_config config = local(128, 1);
    config.model.attention.pattern = HR_ATTENTION_DENSE;
    assert_int_equal(hr_attention_share_of(&config).layers, 0);
    config.model.n_layers = 28;
    config.model.attention.sliding_window = 16;
    snprintf(config.model.attention.layer_types, HR_LAYER_TYPES_BYTES, "full*21 sliding*7");
    assert_int_equal(hr_attention_share_of(&config).layers, 7);
}

/* T = 2^24 tokens in blocks of one: products stay within 64 bits. */
static void the_longest_sequence_does_not_overflow(void **state)
{
    (void)state;
    hr_config config = local(16777216, 16777216);
    config.model.attention.block = 1;
    const hr_attention_share share = hr_attention_share_of(&config);
    assert_int_equal(share.causal, INT64_C(140737496743936));
    assert_int_equal(share.kept, share.causal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_blocks_have_the_documented_percentages),
        cmocka_unit_test(random_patterns_keep_the_pairs_of_the_mask),
        cmocka_unit_test(layers_without_the_window_are_not_counted),
        cmocka_unit_test(the_longest_sequence_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
