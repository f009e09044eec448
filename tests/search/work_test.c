/* SPDX-License-Identifier: Apache-2.0 */
/* work_test.c - the work of a search is counted and bounded for every shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "ops/cpu.h"
#include "search/fit.h"
#include "search/proxy_cache.h"

/* The search finishes the list or proxy model that it has begun, so it may exceed its limits. */
enum { STATES_MOST = 4 * HR_LAYERS_WORK_MOST, STEPS_MOST = 1 << 22, BUDGETS = 8 };

static hr_region take(int64_t bytes)
{
    const int64_t rounded = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, (size_t)rounded);
    assert_non_null(memory);
    return hr_region_over(memory, rounded);
}

/* The shape of the 4B preset with another batch and sequence length. */
static hr_config odd(int64_t batch, int64_t seq_len)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    config.model.d_model = 2560;
    config.model.n_layers = 36;
    config.model.n_heads = 32;
    config.model.n_kv_heads = 8;
    config.model.d_ff = 9216;
    config.model.vocab_size = 151936;
    config.train.dtype = HR_FORMAT_BF16;
    config.train.batch = batch;
    config.train.seq_len = seq_len;
    return config;
}

static void a_search_stays_within_its_work_limits_at_odd_lengths(void **state)
{
    static const struct {
        int64_t batch, seq_len;
    } shapes[] = { { 1, 40001 }, { 7, 1133 }, { 360, 129 }, { 2, 1048573 } };
    (void)state;
    hr_rates rates;
    hr_error err;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const hr_config config = odd(shapes[i].batch, shapes[i].seq_len);
        hr_intermediates recompute_set[36];
        hr_region region = take(hr_fit_bytes(&config));
        hr_fit *fit = malloc(sizeof *fit);
        hr_fit_found least = { .strategy.recompute_set = recompute_set }, found = least;
        if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(hr_fit_open(fit, &config, &rates, 2, &region, &err), HR_OK);
        assert_int_equal(hr_fit_least(fit, INT64_MAX, 0, &least, &err), HR_OK);
        for (int32_t b = 0; b < BUDGETS; b++) {
            const int64_t steps = fit->proxy.steps;
            const int64_t limit = least.floor_bytes + least.floor_bytes / 64 * b;
            assert_int_equal(hr_fit_fastest(fit, limit, &found, &err), HR_OK);
            assert_true(found.floor_bytes <= limit);
            assert_true(found.bound_ps <= found.step_ps);
            assert_true(fit->layers.work <= STATES_MOST);
            assert_true(fit->proxy.steps - steps <= STEPS_MOST);
        }
        free(fit);
        free(region.base);
    }
}

/* The bounds of smaller micro-batches hold at odd lengths, too, and those of kept bytes in models
 * that are their own proxy. Without them these searches build 9,395, 6,086 and 6,092 proxy models;
 * with them 2,728, 3,622 and 2,065. */
static void few_proxy_models_decide_a_tight_search_at_odd_lengths(void **state)
{
    static const struct {
        int64_t layers, batch, seq_len, built_most;
    } shapes[] = { { 4, 768, 63, 4000 }, { 36, 96, 8191, 4500 }, { 36, 384, 511, 3500 } };
    (void)state;
    hr_rates rates;
    hr_error err;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hr_config config = odd(shapes[i].batch, shapes[i].seq_len);
        config.model.n_layers = shapes[i].layers;
        hr_intermediates recompute_set[36];
        hr_region region = take(hr_fit_bytes(&config));
        hr_fit *fit = malloc(sizeof *fit);
        hr_fit_found least = { .strategy.recompute_set = recompute_set }, found = least;
        if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(hr_fit_open(fit, &config, &rates, 2, &region, &err), HR_OK);
        assert_int_equal(hr_fit_least(fit, INT64_MAX, 0, &least, &err), HR_OK);
        const int64_t before = fit->proxy.built;
        for (int32_t b = 0; b < BUDGETS; b++)
            assert_int_equal(
                hr_fit_fastest(fit, least.floor_bytes + least.floor_bytes / 64 * b, &found, &err),
                HR_OK);
        print_message("%lld x %lld, %lld layers: %lld for the floor, %lld for %d budgets\n",
                      (long long)config.train.batch, (long long)config.train.seq_len,
                      (long long)shapes[i].layers, (long long)before,
                      (long long)(fit->proxy.built - before), BUDGETS);
        assert_true(fit->proxy.built <= shapes[i].built_most);
        free(fit);
        free(region.base);
    }
}

/* The second search gives the same answer and builds nothing. */
static void cached_proxy_models_are_not_rebuilt(void **state)
{
    (void)state;
    const hr_config config = odd(4, 512);
    hr_rates rates;
    hr_error err;
    hr_intermediates one[36], two[36];
    hr_region region = take(hr_fit_bytes(&config)), memory = take(hr_proxy_cache_bytes());
    hr_fit *fit = malloc(sizeof *fit);
    hr_fit_found first = { .strategy.recompute_set = one },
                 second = { .strategy.recompute_set = two };
    struct hr_proxy_cache *cache = NULL;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    assert_int_equal(hr_proxy_cache_place(&memory, &cache, &err), HR_OK);
    hr_proxy_cache_use(cache, &config);
    for (int32_t turn = 0; turn < 2; turn++) {
        region.used = 0;
        assert_int_equal(hr_fit_open(fit, &config, &rates, 2, &region, &err), HR_OK);
        fit->proxy.cache = cache;
        assert_int_equal(hr_fit_fastest(fit, INT64_C(120) << 30, turn ? &second : &first, &err),
                         HR_OK);
        if (turn) assert_int_equal(fit->proxy.built, 0);
        else assert_true(fit->proxy.built > 0);
    }
    assert_int_equal(first.step_ps, second.step_ps);
    assert_int_equal(first.floor_bytes, second.floor_bytes);
    assert_memory_equal(one, two, sizeof one);
    free(fit);
    free(region.base);
    free(memory.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_stays_within_its_work_limits_at_odd_lengths),
        cmocka_unit_test(few_proxy_models_decide_a_tight_search_at_odd_lengths),
        cmocka_unit_test(cached_proxy_models_are_not_rebuilt),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
