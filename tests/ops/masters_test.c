/* SPDX-License-Identifier: Apache-2.0 */
/* masters_test.c - weights without fp32 copies: a residual restores every number, an update with
 * one has the bits of an update of fp32 masters, and stochastic rounding is unbiased. */
#include <math.h>
#include <stdlib.h>

#include "ops/passes.h"
#include "ops/update/masters.h"
#include "ops/update/update.h"

enum { BLOCK = HR_RESIDUAL_BLOCK, RUN = HR_RESIDUAL_RUN, SEED = 20261123 };

/* A sanitizer makes the test of every pattern take minutes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PATTERNS_APART = 257 };
#else
enum { PATTERNS_APART = 1 };
#endif

static float number(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Packs and unpacks a block; returns the number of elements that are not restored. */
static int64_t wrong_in_block(const hr_update_kernels *kernels, const float *values, int64_t count)
{
    hr_bf16 weight[BLOCK];
    uint16_t residual[BLOCK + HR_RESIDUAL_HEAD];
    float back[BLOCK];
    int64_t wrong = 0;
    const hr_master master = { .kind = HR_MASTER_RESIDUAL, .stored = weight, .residual = residual };
    hr_master_pack(kernels, &master, 0, count, values);
    hr_master_unpack(kernels, &master, 0, count, back);
    for (int64_t i = 0; i < count; i++) {
        const bool kept = isnan(values[i]) ? isnan(back[i])
                                           : bits_of(back[i]) == bits_of(values[i]);
        wrong += !kept || weight[i] != hr_bf16_from_f32(values[i]);
    }
    return wrong;
}

/* Every pattern, in blocks of patterns that are `apart`: 2^16 makes blocks with all ties. */
static int64_t wrong_patterns(const hr_update_kernels *kernels, uint64_t apart, uint64_t skip)
{
    int64_t wrong = 0;
    for (uint64_t block = 0; block < (UINT64_C(1) << 24); block += skip) {
        const uint64_t first = block % apart + block / apart * apart * BLOCK;
        float values[BLOCK];
        for (uint64_t i = 0; i < BLOCK; i++) values[i] = number((uint32_t)(first + i * apart));
        wrong += wrong_in_block(kernels, values, BLOCK);
    }
    return wrong;
}

static void a_residual_restores_every_number_of_32_bits(void **state)
{
    hr_update_kernels kernels;
    (void)state;
    hr_update_kernels_fill(&kernels, hr_cpu_detect());
    assert_int_equal(wrong_patterns(&kernels, 65536, PATTERNS_APART), 0);
}

static void a_residual_restores_numbers(uint32_t mask)
{
    hr_update_kernels kernels;
    hr_update_kernels_fill(&kernels, mask);
    assert_int_equal(wrong_patterns(&kernels, 1, 1021), 0);
    assert_int_equal(wrong_patterns(&kernels, 65536, 1021), 0);
    for (uint32_t low = 0x7fff; low <= 0x8001;
         low++) /* all numbers that are, or are beside, ties */
        for (uint32_t upper = 0; upper < 65536; upper += 64) {
            float values[BLOCK];
            for (uint32_t i = 0; i < BLOCK; i++)
                values[i] = number(((upper + i % 64) << 16) | ((low + i / 64) & 0xffff));
            for (int64_t count = BLOCK; count > BLOCK - 20; count--)
                assert_int_equal(wrong_in_block(&kernels, values, count), 0);
        }
}

/* Numbers stored one at a time, as weights are loaded, with many ties of both kinds. */
static void weights_that_are_loaded_one_at_a_time_have_the_bits_of_an_update(void **state)
{
    enum { COUNT = 2 * RUN + 300 };
    static float values[COUNT];
    static hr_bf16 one[COUNT], two[COUNT];
    static uint16_t first[COUNT + 3 * HR_RESIDUAL_HEAD], second[COUNT + 3 * HR_RESIDUAL_HEAD];
    const hr_residual residual = { .codes = first };
    hr_update_kernels kernels;
    uint64_t random = start(SEED);
    (void)state;
    hr_update_kernels_fill(&kernels, 0);
    assert_int_equal(hr_residual_halves(COUNT, false), COUNT + 3 * HR_RESIDUAL_HEAD);
    for (int64_t i = 0; i < COUNT; i++) {
        const uint32_t bits = (uint32_t)(hr_random_mix(random += 1) >> 32) & 0xbfffffff;
        values[i] = number(i % 3 ? bits : (bits & 0xffff0000) | 0x8000);
    }
    for (int64_t i = COUNT - 1; i >= 0; i--) hr_residual_put(one, residual, i, values[i]);
    hr_residual_finish(one, residual, COUNT);
    const hr_master master = { .kind = HR_MASTER_RESIDUAL, .stored = two, .residual = second };
    for (int64_t at = 0; at < COUNT; at += BLOCK)
        hr_master_pack(&kernels, &master, at, hr_min(BLOCK, COUNT - at), values + at);
    assert_memory_equal(one, two, sizeof one);
    assert_memory_equal(first, second, sizeof first);
    for (int64_t i = 0; i < COUNT; i++)
        assert_int_equal(bits_of(hr_residual_value(one, residual, i)), bits_of(values[i]));
}

/* Every number of 24 bits is restored, and the weight is the nearest of bf16; of other numbers the
 * nearest of 24 bits is stored, when they are loaded. */
static void eight_bits_restore_every_number_of_24(uint32_t mask)
{
    hr_update_kernels kernels;
    hr_update_kernels_fill(&kernels, mask);
    for (uint32_t block = 0; block < 1u << 16; block += mask ? 1 : 251) {
        float values[BLOCK], back[BLOCK];
        hr_bf16 weight[BLOCK], other[BLOCK];
        uint16_t codes[BLOCK / 2], loaded[BLOCK / 2];
        const hr_residual residual = { loaded, true };
        const hr_master master = { .kind = HR_MASTER_RESIDUAL_BYTES,
                                   .stored = weight,
                                   .residual = codes,
                                   .stream = hr_random_stream_of(7, block, HR_SITE_MASTERS, 2) };
        const int64_t count = BLOCK - block % 3;
        for (uint32_t i = 0; i < BLOCK; i++) values[i] = number((block << 16) + (i << 8));
        hr_master_pack(&kernels, &master, 0, count, values);
        hr_master_unpack(&kernels, &master, 0, count, back);
        for (int64_t i = 0; i < count; i++) {
            if (isnan(values[i])) assert_true(isnan(back[i]) && isnan(hr_bf16_to_f32(weight[i])));
            else assert_int_equal(bits_of(back[i]), bits_of(values[i]));
            const float nearest = hr_bf16_to_f32(weight[i]), size = fabsf(values[i]);
            assert_true(!isfinite(nearest) || fabsf(nearest - values[i]) <= size / 256 + 1e-38f);
            hr_residual_put(other, residual, i, number(bits_of(values[i]) + 0x7f - i % 256));
            assert_true(isnan(values[i]) || weight[i] == other[i] || !isfinite(values[i]));
            if (isfinite(values[i]))
                assert_int_equal(bits_of(hr_residual_value(other, residual, i)),
                                 bits_of(values[i]));
        }
    }
}

/* ---- updates */

typedef struct {
    float *fp32; /* masters, or what is restored of them */
    hr_bf16 *weight;
} updated;

typedef struct {
    hr_run_fn *run;
    hr_master_kind kind;
    hr_dtype moments;
    int64_t piece;
    int32_t threads;
} update;

enum { ELEMENTS = 5 * RUN + 300, STEPS = 3 };

/* The operands of the piece from element `at` on. */
static hr_call call_of(const update *u, uint8_t *const moments[2], float *const scales[2],
                       float *master, hr_bf16 *weight, hr_residual residual, int64_t at)
{
    const bool adamw = u->run == hr_adamw_run, coded = u->moments == HR_U8;
    const int64_t width = hr_dtype_bytes(u->moments);
    const bool copied = u->kind == HR_MASTER_F32;
    hr_call call = { .out = { copied ? (void *)(master + at) : (void *)(weight + at) } };
    int32_t k = 1;
    call.out[k++] = moments[0] + at * width;
    if (adamw) call.out[k++] = moments[1] + at * width;
    call.out[k++] = copied ? weight + at : NULL;
    call.out[k++] = coded ? scales[0] + at / BLOCK : NULL;
    if (adamw) call.out[k++] = coded ? scales[1] + at / BLOCK : NULL;
    call.out[k] = residual.codes ? residual.codes + hr_residual_halves(at, residual.bytes) : NULL;
    return call;
}

static updated run_update(const hr_kernels *kernels, const update *u)
{
    uint64_t random = start(SEED);
    double lr = 1e-3;
    float *gradient = take_random(ELEMENTS, HR_F32, 1e-2, &random);
    float *master = take_random(ELEMENTS, HR_F32, 1, &random);
    hr_bf16 *weight = take(ELEMENTS * 2);
    const bool bytes = u->kind == HR_MASTER_RESIDUAL_BYTES;
    const bool lone = u->kind == HR_MASTER_F32 || u->kind == HR_MASTER_ROUNDED;
    const hr_residual residual = { take(hr_residual_halves(ELEMENTS, bytes) * 2), bytes };
    uint8_t *moments[2] = { take(ELEMENTS * 4), take(ELEMENTS * 4) };
    float *scales[2] = { take(ELEMENTS), take(ELEMENTS) };
    for (int64_t i = 0; i < ELEMENTS; i++) hr_residual_put(weight, residual, i, master[i]);
    hr_residual_finish(weight, residual, ELEMENTS);
    for (int64_t step = 0; step < STEPS; step++)
        for (int64_t at = 0; at < ELEMENTS; at += u->piece) {
            const hr_update_attr attr = { .elements = hr_min(u->piece, ELEMENTS - at),
                                          .beta1 = 0.9,
                                          .beta2 = 0.999,
                                          .eps = 1e-8,
                                          .decay = 0.1,
                                          .lr_scale = 1,
                                          .decoupled = true,
                                          .moments = (uint8_t)u->moments,
                                          .param = 3,
                                          .first = at,
                                          .master = (uint8_t)u->kind };
            hr_call call = call_of(u, moments, scales, master, weight,
                                   lone ? (hr_residual){ 0 } : residual, at);
            call.in[0] = gradient + at;
            call.in[2] = &lr;
            call.attr = &attr;
            call.kernels = kernels;
            call.clock = step;
            call.seed = 5;
            run_threads(&call, u->run, 1, u->threads);
        }
    for (int64_t i = 0; i < ELEMENTS && !lone; i++)
        master[i] = hr_residual_value(weight, residual, i);
    return (updated){ master, weight };
}

static hr_run_fn *const runs[] = { hr_adamw_run, hr_sgd_run, hr_lion_run };
static const hr_dtype formats[] = { HR_F32, HR_BF16, HR_U8 };

static void updates_with_residuals_have_the_bits_of_fp32_masters(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t r = 0; r < 3; r++)
        for (int32_t f = 0; f < 3; f++) {
            const update wide = { runs[r], HR_MASTER_F32, formats[f], ELEMENTS, 1 };
            const updated expected = run_update(&kernels, &wide);
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
                const update half = { runs[r], HR_MASTER_RESIDUAL, formats[f], 2 * RUN, threads };
                const updated found = run_update(&kernels, &half);
                assert_same_bits(found.fp32, expected.fp32, ELEMENTS * 4);
                assert_same_bits(found.weight, expected.weight, ELEMENTS * 2);
            }
            release_all();
        }
}

/* The bits of Lion do not depend on the instruction set, so those of its rounded weights do not. */
static void rounded_updates_do_not_depend_on_pieces_threads_or_kernels(uint32_t mask)
{
    hr_kernels kernels, reference;
    hr_kernels_fill(&kernels, mask);
    hr_kernels_fill(&reference, 0);
    for (int32_t r = 0; r < 6; r++)
        for (int32_t f = 0; f < 3; f++) {
            const hr_master_kind kind = r / 3 ? HR_MASTER_RESIDUAL_BYTES : HR_MASTER_ROUNDED;
            const update whole = { runs[r % 3], kind, formats[f], ELEMENTS, 1 };
            const bool lion = runs[r % 3] == hr_lion_run;
            const updated expected = run_update(lion ? &reference : &kernels, &whole);
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
                const update parts = { runs[r % 3], kind, formats[f], 2 * RUN, threads };
                const updated found = run_update(&kernels, &parts);
                assert_same_bits(found.weight, expected.weight, ELEMENTS * 2);
                if (r / 3) assert_same_bits(found.fp32, expected.fp32, ELEMENTS * 4);
            }
            release_all();
        }
}

/* A change of 26/256 of the last place, 1,000 times: nearest rounding would keep the weight. The
 * number of steps up of an element is binomial with mean 101.6 and variance 91, so the mean of
 * 4,096 elements has a standard deviation of sqrt(91 / 4096) = 0.15 steps. */
static void add_small_changes(uint32_t mask, hr_master_kind kind)
{
    enum { TIMES = 1000, FROM = 256 };
    static hr_bf16 weight[RUN];
    static uint16_t codes[RUN / 2];
    const float place = kind == HR_MASTER_ROUNDED ? 2 : 0x1p-7f;
    float values[BLOCK];
    double sum = 0, squares = 0;
    hr_update_kernels kernels;
    hr_update_kernels_fill(&kernels, mask);
    memset(codes, 0, sizeof codes);
    for (int64_t i = 0; i < RUN; i++) weight[i] = hr_bf16_from_f32(FROM);
    for (uint64_t step = 0; step <= TIMES; step++) {
        const hr_master master = { .kind = kind,
                                   .stored = weight,
                                   .residual = codes,
                                   .stream = hr_random_stream_of(7, step, HR_SITE_MASTERS, 2) };
        for (int64_t at = 0; at < RUN; at += BLOCK) {
            hr_master_unpack(&kernels, &master, at, BLOCK, values);
            for (int64_t i = 0; i < BLOCK && step == TIMES; i++) {
                const double steps = ((double)values[i] - FROM) / (double)place;
                sum += steps;
                squares += steps * steps;
            }
            for (int64_t i = 0; i < BLOCK; i++) values[i] += 0.1015625f * place;
            hr_master_pack(&kernels, &master, at, BLOCK, values);
        }
    }
    const double mean = sum / RUN, variance = squares / RUN - mean * mean;
    print_message("mean %.2f of 101.56, variance %.1f of 91\n", mean, variance);
    assert_true(fabs(mean - 101.5625) < 0.6); /* four standard deviations */
    assert_true(fabs(variance - 91) < 8);     /* and of the variance: 91 sqrt(2 / 4096) = 2 */
}

static void small_changes_of_rounded_weights_count_in_the_mean(uint32_t mask)
{
    add_small_changes(mask, HR_MASTER_ROUNDED);
    add_small_changes(mask, HR_MASTER_RESIDUAL_BYTES);
}

ON_RUNGS(a_residual_restores_numbers)
ON_RUNGS(eight_bits_restore_every_number_of_24)
ON_RUNGS(updates_with_residuals_have_the_bits_of_fp32_masters)
ON_RUNGS(rounded_updates_do_not_depend_on_pieces_threads_or_kernels)
ON_RUNGS(small_changes_of_rounded_weights_count_in_the_mean)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_residual_restores_every_number_of_32_bits),
        TEST_RUNGS(a_residual_restores_numbers),
        TEST_RUNGS(eight_bits_restore_every_number_of_24),
        cmocka_unit_test(weights_that_are_loaded_one_at_a_time_have_the_bits_of_an_update),
        TEST_RUNGS(updates_with_residuals_have_the_bits_of_fp32_masters),
        TEST_RUNGS(rounded_updates_do_not_depend_on_pieces_threads_or_kernels),
        TEST_RUNGS(small_changes_of_rounded_weights_count_in_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
