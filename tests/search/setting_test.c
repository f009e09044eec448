/* SPDX-License-Identifier: Apache-2.0 */
/* setting_test.c - what is foreseen of a recompute set without its proxy model, held against the
 * proxy model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "ops/cpu.h"
#include "search/setting.h"
#include "support/random_config.h"

enum { SEED = 20261122, LAYERS_MOST = 9 };

typedef struct {
    int64_t sets, exact; /* compared; of these, what layers work with was no bound but the truth */
    double estimate, really; /* sums of what they work with */
} tally;

/* All of a setting: bytes that are kept to the byte, time and work from below. */
static void hold(hr_fit *fit, const hr_setting *estimate, bool kept_too, uint64_t turn, tally *t)
{
    hr_setting known = *estimate;
    hr_error err;
    assert_int_equal(hr_setting_measure_all(fit, &known, &err), HR_OK);
    for (int32_t k = 0; k < fit->set_count; k++) {
        const hr_proxy_set *a = &estimate->sets[k], *b = &known.sets[k];
        bool exact = true;
        assert_int_equal(a->recompute_set, b->recompute_set);
        if (kept_too) assert_int_equal(a->kept, b->kept);
        for (int32_t place = 0; place < fit->proxy.depth.places; place++) {
            if (kept_too && a->ps[place] > b->ps[place])
                fail_msg("turn %llu, set %03x: %lld ps, foreseen %lld", (unsigned long long)turn,
                         a->recompute_set, (long long)b->ps[place], (long long)a->ps[place]);
            for (int32_t pass = 0; pass < HR_PASSES; pass++) {
                t->estimate += (double)a->work[place][pass];
                t->really += (double)b->work[place][pass];
                exact &= a->work[place][pass] == b->work[place][pass];
                if (a->work[place][pass] > b->work[place][pass])
                    fail_msg("turn %llu, set %03x, place %d, pass %d: works with %lld bytes, "
                             "foreseen %lld",
                             (unsigned long long)turn, a->recompute_set, place, pass,
                             (long long)b->work[place][pass], (long long)a->work[place][pass]);
            }
        }
        t->sets++;
        t->exact += exact;
    }
}

static void what_is_foreseen_of_a_set_is_never_more_than_it_takes(void **state)
{
    hr_rates rates;
    hr_error err;
    tally t = { 0 };
    (void)state;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    print_message("seed %d\n", SEED);
    for (uint64_t turn = 0; turn < 30 * HR_COUNT; turn++) {
        hr_fit fit;
        hr_config config = random_config(SEED, turn);
        config.memory.recompute = HR_RECOMPUTE_AUTO;
        config.model.n_layers = draw_layers(&config, SEED, turn, 60, LAYERS_MOST);
        config.train.batch = between(SEED, turn, 61, 1, 6);
        int64_t micro = between(SEED, turn, 62, 1, config.train.batch);
        while (config.train.batch % micro) micro--;
        const bool consume = micro == config.train.batch && turn % 2, dw_first = turn / 2 % 2;
        const int64_t bytes = hr_fit_bytes(&config);
        void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
        hr_region region = hr_region_over(memory, bytes);
        hr_setting base, rests;
        assert_int_equal(hr_fit_open(&fit, &config, &rates, 2, &region, &err), HR_OK);
        assert_int_equal(hr_setting_open(&fit, micro, dw_first, consume, &base, &err), HR_OK);
        assert_int_equal(hr_setting_bound_sets(&fit, &base, &err), HR_OK);
        hold(&fit, &base, true, turn, &t);
        /* The other order, in tiles. */
        int64_t mlp[HR_FIT_TILES_MOST], attention[HR_FIT_TILES_MOST];
        const int32_t mlps = hr_fit_mlp_tiles(&config, micro, mlp);
        const int32_t attentions = hr_fit_attention_tiles(&config, micro, attention);
        assert_int_equal(hr_setting_open(&fit, micro, !dw_first, consume, &rests, &err), HR_OK);
        hr_setting tiled;
        hr_setting_derive(&fit, &base, &rests, &tiled);
        tiled.knobs.mlp_tile = mlp[draw(SEED, turn, 63) % (uint64_t)mlps];
        tiled.knobs.attention_tile = attention[draw(SEED, turn, 64) % (uint64_t)attentions];
        assert_int_equal(hr_setting_bound_works(&fit, &tiled, &err), HR_OK);
        hold(&fit, &tiled, false, turn, &t);
        hr_setting_forget(&fit, &tiled);
        assert_int_equal(hr_setting_bound_sets(&fit, &tiled, &err), HR_OK);
        hold(&fit, &tiled, true, turn, &t);
        free(memory);
    }
    print_message("%lld sets, work of %lld foreseen to the byte, of all %.1f %% of it\n",
                  (long long)t.sets, (long long)t.exact, 100 * t.estimate / t.really);
    assert_true(t.estimate > 0.8 * t.really);
}

/* The bytes and times of a smaller micro-batch, as those of a larger one bound them. */
static void a_smaller_micro_batch_keeps_no_less_than_its_share(void **state)
{
    hr_rates rates;
    hr_error err;
    int64_t odd = 0, sum = 0, really = 0;
    (void)state;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (uint64_t turn = 0; turn < 20 * HR_COUNT; turn++) {
        hr_fit fit;
        hr_config config = random_config(SEED + 1, turn);
        config.memory.recompute = HR_RECOMPUTE_AUTO;
        config.memory.micro_batch = 0;
        config.model.n_layers = draw_layers(&config, SEED, turn, 70, LAYERS_MOST);
        config.train.batch = 2 * between(SEED, turn, 71, 1, 6);
        const int64_t bytes = hr_fit_bytes(&config), micro = turn % 2 ? 1 : config.train.batch / 2;
        void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
        hr_region region = hr_region_over(memory, bytes);
        hr_setting whole, part, known;
        assert_int_equal(hr_fit_open(&fit, &config, &rates, 2, &region, &err), HR_OK);
        assert_int_equal(hr_setting_open(&fit, config.train.batch, false, false, &whole, &err),
                         HR_OK);
        assert_int_equal(hr_setting_bound_sets(&fit, &whole, &err), HR_OK);
        assert_int_equal(hr_setting_open(&fit, micro, false, false, &part, &err), HR_OK);
        known = part;
        hr_setting_scale(&fit, &whole, &part);
        assert_int_equal(hr_setting_measure_all(&fit, &known, &err), HR_OK);
        odd += config.train.seq_len % 64 != 0;
        for (int32_t k = 0; k < fit.set_count; k++) {
            if (part.sets[k].kept > known.sets[k].kept)
                fail_msg("turn %llu, set %03x: keeps %lld bytes, foreseen %lld",
                         (unsigned long long)turn, fit.sets[k], (long long)known.sets[k].kept,
                         (long long)part.sets[k].kept);
            assert_true(hr_fit_uniform_ps(&fit, &part.sets[k]) <=
                        hr_fit_uniform_ps(&fit, &known.sets[k]));
            sum += part.sets[k].kept;
            really += known.sets[k].kept;
        }
        free(memory);
    }
    print_message("%lld odd lengths, %.1f %% of the kept bytes\n", (long long)odd,
                  100 * (double)sum / (double)really);
    assert_true(odd > 0 && (double)sum > 0.3 * (double)really);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_foreseen_of_a_set_is_never_more_than_it_takes),
        cmocka_unit_test(a_smaller_micro_batch_keeps_no_less_than_its_share),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
