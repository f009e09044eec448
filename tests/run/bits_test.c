/* SPDX-License-Identifier: Apache-2.0 */
/* bits_test.c - threads and strategies do not change losses, gradients or weights by a single bit.
 *
 * Each case trains for three steps without cuts on one thread. The same run is then cut in every
 * way that keeps the bits, and every number is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/family.h"
#include "require.h"
#include "support/random_strategy.h"
#include "support/rig.h"

enum { STEPS = 3 };

/* The results of a run. */
typedef struct {
    double losses[STEPS], norms[STEPS];
    double *gradients; /* of the last step */
    float *weights;
    int64_t count;
    int64_t *firsts; /* [param_count + 1]: first element of each parameter */
    int32_t param_count;
} trace;

typedef struct {
    int64_t micro_batch, loss_chunk;
    int32_t threads;
    const hr_strategy *strategy; /* null: that of the recipe, with the two values above */
} cut;

#ifdef HR_EMULATE
static const char *const rungs[] = { "avx512bf16", "amx" };
#else
static const char *const rungs[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
#endif
enum { RUNGS = sizeof rungs / sizeof *rungs };

static bool has_rung(int32_t rung)
{
    return hr_test_has(rungs[rung]);
}

static hr_config config_of(int32_t family, int32_t format, int64_t T, int32_t pattern)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.d_model = 24;
    config.model.n_layers = 2;
    config.model.n_heads = 2;
    config.model.d_ff = 40;
    config.model.vocab_size = 37;
    config.model.rotary_fraction = 0.5;
    config.model.dropout = 0.1;
    config.model.parallel_residual = pattern % 2 == 0;
    config.model.attention.pattern = pattern;
    config.model.attention.block = 16;
    config.model.attention.stride = 3;
    if (hr_family_of(&config)->traits & HR_HAS_STATES) {
        config.model.dropout = 0;
        config.model.attention.pattern = HR_PATTERN_DENSE;
        config.model.decoder_rank = pattern % 2 * 5;
    }
    snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "words");
    config.train.dtype = format;
    config.train.batch = 4;
    config.train.seq_len = T;
    config.train.steps = STEPS;
    config.train.seed = 11 + T;
    config.train.optimizer.lr = 0.01;
    config.train.schedule.warmup_steps = 2;
    config.train.z_loss = T == 23 || T == 128 ? 0.05 : 0;
    return config;
}

static trace run(const hr_config *config, cut c, uint32_t mask)
{
    hr_config own = *config;
    rig r;
    trace t = { 0 };
    own.memory.micro_batch = c.micro_batch;
    own.memory.loss_chunk = c.loss_chunk;
    rig_build_with(&r, &own, c.strategy, c.threads, mask, 0, 0);
    rig_section(&r, HR_LOOP_LOAD);
    for (int32_t s = 0; s < STEPS; s++) {
        rig_step(&r);
        t.losses[s] = r.loss;
        t.norms[s] = r.norm;
    }
    t.count = r.gradient_count;
    t.param_count = r.compiled.program.param_count;
    t.gradients = malloc((size_t)t.count * sizeof *t.gradients);
    memcpy(t.gradients, r.gradients, (size_t)t.count * sizeof *t.gradients);
    t.weights = malloc((size_t)t.count * sizeof *t.weights);
    t.firsts = malloc((size_t)(t.param_count + 1) * sizeof *t.firsts);
    int64_t at = 0;
    for (int32_t p = 0; p < t.param_count; p++) {
        t.firsts[p] = at;
        for (int64_t i = 0; i < rig_elements(&r.compiled.program.params[p]); i++)
            t.weights[at++] = rig_weight(&r, p, i);
    }
    t.firsts[t.param_count] = at;
    rig_close(&r);
    return t;
}

static void drop(trace *t)
{
    free(t->gradients);
    free(t->weights);
    free(t->firsts);
}

static bool same_bits(const trace *a, const trace *b)
{
    return !memcmp(a->losses, b->losses, sizeof a->losses) &&
           !memcmp(a->norms, b->norms, sizeof a->norms) &&
           !memcmp(a->gradients, b->gradients, (size_t)a->count * sizeof *a->gradients) &&
           !memcmp(a->weights, b->weights, (size_t)a->count * sizeof *a->weights);
}

/* Returns the largest ||a - b|| / ||a|| of the losses, and of gradient and weights of each
 * parameter. A gradient that is only rounding (a constant added to every key cancels in the
 * softmax) has no relative difference: parameters below 1e-8 of the whole gradient are skipped. */
static double relative_difference(const trace *a, const trace *b)
{
    double worst = 0;
    for (int32_t s = 0; s < STEPS; s++)
        worst = fmax(worst, fabs(a->losses[s] - b->losses[s]) / a->losses[s]);
    const double least = 1e-8 * a->norms[STEPS - 1];
    for (int32_t p = 0; p < a->param_count; p++) {
        double d_gradient = 0, gradient = 0, d_weight = 0, weight = 0;
        for (int64_t i = a->firsts[p]; i < a->firsts[p + 1]; i++) {
            d_gradient += pow(a->gradients[i] - b->gradients[i], 2);
            gradient += pow(a->gradients[i], 2);
            d_weight += pow((double)a->weights[i] - b->weights[i], 2);
            weight += pow(a->weights[i], 2);
        }
        if (sqrt(gradient) < least) continue;
        worst = fmax(worst, sqrt(d_gradient / gradient));
        if (weight > 0) worst = fmax(worst, sqrt(d_weight / weight));
    }
    return worst;
}

static void must_match(const trace *whole, const hr_config *config, cut c, uint32_t mask)
{
    trace t = run(config, c, mask);
    if (!same_bits(whole, &t))
        fail_msg("%s %s %s T %lld pattern %d: micro-batch %lld, loss chunk %lld, %d threads "
                 "differ from the uncut run by %.2e",
                 hr_family_of(config)->name, hr_format_name(config->train.dtype),
                 hr_cpu_rung_name(mask), (long long)config->train.seq_len,
                 config->model.attention.pattern, (long long)c.micro_batch, (long long)c.loss_chunk,
                 c.threads, relative_difference(whole, &t));
    drop(&t);
}

static void must_match_strategy(const trace *whole, const hr_config *config, hr_strategy strategy,
                                int32_t threads, uint32_t mask)
{
    trace t = run(config, (cut){ .threads = threads, .strategy = &strategy }, mask);
    if (!same_bits(whole, &t)) {
        for (int32_t l = 0; l < strategy.layer_count; l++)
            print_message("layer %d drops %02x\n", l, strategy.recompute_set[l]);
        fail_msg(
            "%s %s %s T %lld pattern %d parallel %d: micro-batch %lld, loss chunk %lld, MLP "
            "tile %lld, attention tile %lld, %s first, gradients %s, %d threads: differ by %.2e",
            hr_family_of(config)->name, hr_format_name(config->train.dtype), hr_cpu_rung_name(mask),
            (long long)config->train.seq_len, config->model.attention.pattern,
            config->model.parallel_residual, (long long)strategy.micro_batch,
            (long long)strategy.loss_chunk, (long long)strategy.mlp_tile,
            (long long)strategy.attention_tile, strategy.dw_first ? "dW" : "dx",
            strategy.consume ? "consumed" : "kept", threads, relative_difference(whole, &t));
    }
    drop(&t);
}

/* Checks every cut that keeps the bits: whole sequences, and multiples of 64 tokens if T is one or
 * the micro-batch is one sequence. */
static void check_cuts(const hr_config *config, uint32_t mask)
{
    const int64_t T = config->train.seq_len, batch = config->train.batch;
    const int64_t unit = T % 64 ? T : 64, whole_chunk = batch * T;
    trace whole = run(config, (cut){ batch, whole_chunk, 1 }, mask);
    assert_true(isfinite(whole.losses[STEPS - 1]) && whole.norms[STEPS - 1] > 0);
    must_match(&whole, config, (cut){ batch, whole_chunk, 1 }, mask);
    for (int32_t threads = 2; threads <= 4; threads++)
        must_match(&whole, config, (cut){ batch, whole_chunk, threads }, mask);
    for (int64_t micro = 1; micro < batch; micro++)
        if (batch % micro == 0) must_match(&whole, config, (cut){ micro, whole_chunk, 1 }, mask);
    must_match(&whole, config, (cut){ batch, unit, 2 }, mask);
    must_match(&whole, config, (cut){ batch / 2, unit, 1 }, mask);
    must_match(&whole, config, (cut){ batch, 3 * unit, 3 }, mask); /* a shorter last iteration */
    must_match(&whole, config, (cut){ 1, 64, 2 }, mask);
    hr_config keeping = *config;
    keeping.memory.recompute = HR_RECOMPUTE_NONE;
    must_match(&whole, &keeping, (cut){ batch / 2, unit, 2 }, mask);
    keeping.memory.recompute = HR_RECOMPUTE_LAYERS;
    must_match(&whole, &keeping, (cut){ batch, whole_chunk, 1 }, mask);
    must_match(&whole, &keeping, (cut){ batch / 2, unit, 2 }, mask);
    drop(&whole);
}

/* Random sets of recomputed intermediates per layer, with every combination of cuts and orders.
 * Dropout is on, so recomputed values need the same mask. */
static void any_strategy_keeps_every_bit(void **state)
{
    static const int64_t lengths[] = { 64, 23, 128, 77 };
    enum { STRATEGIES = 5, SEED = 20250401 };
    (void)state;
    int32_t checked = 0;
    print_message("seed %d\n", SEED);
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        for (int32_t i = 0; i < 8 * hr_min(HR_COUNT, 4); i++) {
            const int32_t format = i >> 1 & 1, length = rung == 0 ? i % 2 : (i + rung) % 4;
            /* Even patterns have parallel residuals, odd ones sequential residuals. */
            hr_config config = config_of(i & 1, format, lengths[length], i >> 2 & 3);
            config.model.n_layers = 3;
            const int64_t whole_chunk = config.train.batch * config.train.seq_len;
            trace whole = run(&config, (cut){ config.train.batch, whole_chunk, 1 }, mask);
            for (uint64_t round = 0; round < (rung == 0 ? 2 : STRATEGIES); round++) {
                hr_intermediates recompute_set[3];
                const uint64_t which = round + 100 * (uint64_t)(i + 64 * rung);
                hr_strategy strategy = random_strategy(&config, SEED, which, recompute_set);
                strategy.reorder = round % 2;
                must_match_strategy(&whole, &config, strategy, (int32_t)(1 + round % 3), mask);
                checked++;
            }
            drop(&whole);
        }
    }
    print_message("%d strategies\n", checked);
    if (!checked) hr_test_skip("avx512", "this machine has none of the rungs");
}

/* Every optimizer, with and without active clipping: the norm of released gradients equals that of
 * kept gradients, and a step that is computed twice uses one dropout mask. */
static void released_gradients_keep_every_bit(void **state)
{
    static const int64_t lengths[] = { 64, 23, 128 };
    enum { SEED = 20261123 };
    (void)state;
    int32_t checked = 0;
    print_message("seed %d\n", SEED);
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        for (int32_t i = 0; i < 8 * HR_OPTIMIZERS; i++) {
            const int32_t length = rung == 0 ? i % 2 : (i + rung) % 3;
            hr_config config = config_of(i & 1, i >> 1 & 1, lengths[length],
                                         (i + i / (4 * HR_OPTIMIZERS)) % 4);
            config.train.optimizer.kind = i / 4 % HR_OPTIMIZERS;
            config.train.optimizer.adafactor.beta1 = i & 1 ? 0.9 : 0;
            config.train.optimizer.clip = i < 4 * HR_OPTIMIZERS ? 0 : 0.25;
            const int64_t whole_chunk = config.train.batch * config.train.seq_len;
            trace whole = run(&config, (cut){ config.train.batch, whole_chunk, 1 }, mask);
            for (uint64_t round = 0; round < 2; round++) {
                hr_intermediates recompute_set[2];
                hr_strategy strategy = random_strategy(&config, SEED, 2 * (uint64_t)i + round,
                                                       recompute_set);
                strategy.micro_batch = 0;
                strategy.consume = true;
                strategy.reorder = true;
                must_match_strategy(&whole, &config, strategy, (int32_t)(1 + round), mask);
                checked++;
            }
            drop(&whole);
        }
    }
    print_message("%d strategies\n", checked);
    if (!checked) hr_test_skip("avx512", "this machine has none of the rungs");
}

/* Large enough for strips of the head, which do or do not divide it. The random bits that round
 * bf16 moments and the scales of codes belong to elements of the whole weight. */
static void strips_keep_every_bit_of_stored_moments(void **state)
{
    static const int64_t vocabularies[] = { 1216, 1171 };
    int32_t checked = 0;
    (void)state;
    for (int32_t rung = 1; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        for (int32_t i = 0; i < 4; i++) {
            hr_config config = config_of(HR_FAMILY_WIDE, (i + rung) / 2 % 2, 64, HR_PATTERN_DENSE);
            config.model.dropout = 0;
            config.model.decoder_rank = 0;
            config.model.expansion = 512;
            config.model.vocab_size = vocabularies[i / 2];
            config.train.batch = 2;
            config.train.optimizer.kind = i == 3 ? HR_OPTIMIZER_LION : HR_OPTIMIZER_ADAMW;
            config.train.optimizer.clip = rung % 2;
            config.train.state.moments = i % 2 ? HR_MOMENTS_INT8 : HR_MOMENTS_BF16;
            config.memory.product_norm = i / 2;
            trace whole = run(&config, (cut){ 2, 128, 1 }, mask);
            hr_intermediates recompute_set[2] = { 0 };
            const hr_strategy strategy = {
                .consume = true, .dw_first = i % 2, .layer_count = 2, .recompute_set = recompute_set
            };
            must_match_strategy(&whole, &config, strategy, 1 + i % 3, mask);
            drop(&whole);
            checked++;
        }
    }
    print_message("%d strategies\n", checked);
    if (!checked) hr_test_skip("avx512", "this machine has none of the rungs");
}

static void cuts_and_threads_keep_every_bit(void **state)
{
    static const int64_t lengths[] = { 64, 23, 128, 77 };
    (void)state;
    int32_t checked = 0;
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        for (int32_t i = 0; i < 2 * HR_FAMILIES * hr_min(HR_COUNT, 4); i++) {
            /* With HR_COUNT 1, each family and format runs one length and one pattern per rung. */
            const int32_t family = i % HR_FAMILIES, format = i / HR_FAMILIES % 2,
                          round = i / (2 * HR_FAMILIES);
            const int32_t length = rung == 0 ? (i + format + round) % 2
                                             : (i + rung + round) % 4; /* ref is slow */
            const hr_config config = config_of(family, format, lengths[length],
                                               (i + 2 * rung + round) % 4);
            check_cuts(&config, mask);
            checked++;
        }
    }
    print_message("%d cases\n", checked);
    if (!checked) hr_test_skip("avx512", "this machine has none of the rungs");
}

/* Sizes beyond the blocks of the products: 512 words of a reduction, and blocks of columns. */
static void wide_layers_keep_every_bit(void **state)
{
    (void)state;
    for (int32_t rung = 1; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        for (int32_t format = 0; format <= HR_FORMAT_FP16; format++) {
            hr_config config = config_of(rung & 1, format, 128, HR_PATTERN_DENSE);
            config.model.n_layers = 1;
            config.model.d_ff = 1100;
            config.model.vocab_size = 1203;
            config.train.batch = 2;
            const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
            trace whole = run(&config, (cut){ 2, 256, 1 }, mask);
            must_match(&whole, &config, (cut){ 1, 64, 2 }, mask);
            must_match(&whole, &config, (cut){ 2, 192, 3 }, mask);
            drop(&whole);
        }
    }
}

/* Loss chunks and MLP tiles of 64 tokens in sequences of any length: accumulated over four
 * micro-batches, and of a batch of one sequence with gradients kept and released. */
static void one_sequence_of_any_length_is_cut_at_64_tokens(void **state)
{
    static const int64_t lengths[] = { 65, 127, 150, 193 };
    (void)state;
    int32_t checked = 0;
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        for (int32_t i = rung ? 0 : 3; i < 2 * HR_FAMILIES; i += rung ? 1 : 8) { /* ref is slow */
            hr_intermediates recompute_set[2];
            const int32_t format = i < HR_FAMILIES ? HR_FORMAT_FP32
                                   : i % 3         ? HR_FORMAT_BF16
                                                   : HR_FORMAT_FP16;
            hr_config config = config_of(i % HR_FAMILIES, format, lengths[(i + rung) % 4], i % 4);
            for (config.train.batch = 4; config.train.batch >= 1; config.train.batch -= 3) {
                const int64_t batch = config.train.batch;
                trace whole = run(&config, (cut){ batch, batch * config.train.seq_len, 1 }, mask);
                hr_strategy strategy = hr_strategy_of(&config, 1, recompute_set);
                for (strategy.loss_chunk = 64; strategy.loss_chunk < config.train.seq_len;
                     strategy.loss_chunk += 64) {
                    strategy.mlp_tile = hr_family_of(&config)->traits & HR_HAS_STATES ? 0 : 64;
                    strategy.consume = batch == 1 && strategy.loss_chunk == 64;
                    must_match_strategy(&whole, &config, strategy, 2, mask);
                    checked++;
                }
                drop(&whole);
            }
        }
    }
    print_message("%d strategies\n", checked);
    if (!checked) hr_test_skip("avx512", "this machine has none of the rungs");
}

/* A cut inside a block of 64 tokens adds in another order. */
static void other_cuts_agree_to_rounding(void **state)
{
    (void)state;
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        if (!has_rung(rung)) continue;
        double worst[2] = { 0, 0 };
        for (int32_t i = 0; i < 8; i++) {
            const int32_t format = i >> 1 & 1;
            const int64_t T = i < 4 ? 128 : 77, chunk = i < 4 ? 48 : 37;
            hr_config config = config_of(i & 1, format, T, i % 4);
            /* Adam would divide the rounding of small gradients by their size. */
            config.train.optimizer.kind = HR_OPTIMIZER_SGD;
            const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
            trace whole = run(&config, (cut){ 4, 4 * T, 1 }, mask);
            trace t = run(&config, (cut){ 2, chunk, 2 }, mask);
            worst[format] = fmax(worst[format], relative_difference(&whole, &t));
            drop(&whole);
            drop(&t);
        }
        print_message("%s: fp32 %.1e, bf16 %.1e\n", rungs[rung], worst[0], worst[1]);
        assert_true(worst[0] < 1e-6 && worst[1] < 1e-3);
    }
}

static void both_dtypes_start_with_the_same_weights(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        rig r[2];
        for (int32_t format = 0; format < 2; format++) {
            const hr_config config = config_of(family, format, 23, HR_PATTERN_DENSE);
            rig_open(&r[format], &config, 1, 0, 0, 0);
        }
        const hr_program *program = &r[0].compiled.program;
        for (int32_t p = 0; p < program->param_count; p++)
            for (int64_t i = 0; i < rig_elements(&program->params[p]); i++)
                assert_true(rig_weight(&r[0], p, i) == rig_weight(&r[1], p, i));
        rig_close(&r[0]);
        rig_close(&r[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_and_threads_keep_every_bit),
        cmocka_unit_test(any_strategy_keeps_every_bit),
        cmocka_unit_test(released_gradients_keep_every_bit),
        cmocka_unit_test(strips_keep_every_bit_of_stored_moments),
        cmocka_unit_test(wide_layers_keep_every_bit),
        cmocka_unit_test(one_sequence_of_any_length_is_cut_at_64_tokens),
        cmocka_unit_test(other_cuts_agree_to_rounding),
        cmocka_unit_test(both_dtypes_start_with_the_same_weights),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
