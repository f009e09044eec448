/* SPDX-License-Identifier: Apache-2.0 */
/* space_test.c - the loss chunks and tiles that a search tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "ops/cpu.h"
#include "search/fit.h"
#include "search/space.h"

static void one_sequence_is_cut_at_every_64_tokens(void **state)
{
    int64_t chunks[HR_FIT_CHUNKS_MOST], tiles[HR_FIT_TILES_MOST];
    static hr_config config;
    (void)state;
    hr_config_default(&config);
    config.train.seq_len = 300;
    config.train.batch = 4;
    assert_int_equal(hr_fit_chunks(&config, 1, chunks), 4);
    for (int32_t i = 0; i < 4; i++) assert_int_equal(chunks[i], i ? 512 >> i : 0);
    assert_int_equal(hr_fit_mlp_tiles(&config, 1, tiles), 3);
    for (int32_t i = 0; i < 3; i++) assert_int_equal(tiles[i], i ? 256 >> i : 0);
    assert_int_equal(hr_fit_chunks(&config, 2, chunks), 2);
    assert_int_equal(chunks[1], 300);
    assert_int_equal(hr_fit_mlp_tiles(&config, 4, tiles), 3);
    assert_int_equal(tiles[1], 600);
    assert_int_equal(tiles[2], 300);
}

static void a_chunk_that_is_given_finds_its_least(void **state)
{
    static const char *const presets[] = { "quickstart", "pythia-70m", "needle-70m", "llama-134m" };
    hr_rates rates;
    hr_error err;
    (void)state;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (size_t i = 0; i < 4 * sizeof presets / sizeof *presets; i++) {
        char path[512];
        hr_intermediates recompute_set[16];
        hr_config config;
        hr_fit fit;
        hr_fit_found found = { .strategy.recompute_set = recompute_set };
        hr_config_default(&config);
        snprintf(path, sizeof path, "%s/presets/%s.yaml", HR_SOURCE, presets[i / 4]);
        if (hr_config_read(&config, path, &err) != HR_OK) fail_msg("%s", err.message);
        config.memory.recompute = HR_RECOMPUTE_AUTO;
        config.memory.loss_chunk = INT64_C(128) << 2 * (i % 4);
        const int64_t bytes = hr_round_up(hr_fit_bytes(&config), 64);
        hr_region region = hr_region_over(aligned_alloc(64, (size_t)bytes), bytes);
        assert_non_null(region.base);
        assert_int_equal(hr_fit_open(&fit, &config, &rates, 2, &region, &err), HR_OK);
        if (hr_fit_least(&fit, INT64_MAX, 0, &found, &err) != HR_OK) fail_msg("%s", err.message);
        const int64_t least = found.floor_bytes;
        if (hr_fit_fastest(&fit, least, &found, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(found.floor_bytes, least);
        free(region.base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sequence_is_cut_at_every_64_tokens),
        cmocka_unit_test(a_chunk_that_is_given_finds_its_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
