/* SPDX-License-Identifier: Apache-2.0 */
/* strips_test.c - which gradients gradient release computes in strips, how large the strips are,
 * and what the smallest plan of a wide model needs then. */
#include <stdio.h>

#include "ops/list.h"
#include "plan/strips.h"
#include "support/compiled.h"

enum { LAYERS_MOST = 4, THREADS = 2 };

/* An embedding of 4,099 x 128 and a head of 512 x 4,099 are cut; the expansion, of 128 x 512, is
 * one strip. */
static hr_config small_config(int32_t family)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.d_model = 128;
    config.model.n_layers = 2;
    if (family == HR_FAMILY_WIDE) config.model.expansion = 512;
    config.model.vocab_size = 4099;
    config.train.dtype = HR_F32;
    config.train.batch = 2;
    config.train.seq_len = 64;
    config.train.optimizer.kind = HR_OPTIMIZER_SGD;
    config.train.optimizer.clip = 0;
    snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "words");
    return config;
}

/* Loops over strips of the section "step", with a back end. Writes the floor and the largest
 * strip. */
static int32_t strips_of(const hr_config *config, const hr_backend *backend, int64_t loss_chunk,
                         int64_t *floor_bytes, int64_t *largest)
{
    hr_intermediates everything[LAYERS_MOST];
    hr_error err;
    compiled c;
    int32_t count = 0;
    const hr_strategy strategy = { .loss_chunk = loss_chunk,
                                   .dw_first = true,
                                   .consume = true,
                                   .layer_count = (int32_t)config->model.n_layers,
                                   .recompute_set = everything };
    for (int32_t l = 0; l < LAYERS_MOST; l++) everything[l] = UINT16_MAX - 1;
    open_region(&c, hr_compile_unpacked_bytes(config) + hr_compile_bytes(config));
    must(hr_config_check(config, &err), &err);
    hr_strategy canonical = strategy;
    hr_strategy_canonical(config, &canonical);
    must(hr_compile_floor(config, backend, &canonical, THREADS, &c.region, &c.of, &err), &err);
    const hr_program *program = &c.of.program;
    for (int32_t l = 0; l < program->loop_count; l++)
        count += program->loops[l].id == HR_LOOP_STRIP &&
                 program->loops[program->loops[l].parent].id == HR_LOOP_STEP;
    *floor_bytes = c.of.plan.floor_bytes;
    *largest = hr_strips_largest(program);
    free(c.memory);
    return count;
}

static int32_t count_of(const hr_config *config, const hr_backend *backend, int64_t loss_chunk)
{
    int64_t floor_bytes, largest;
    return strips_of(config, backend, loss_chunk, &floor_bytes, &largest);
}

static void strips_are_whole_runs_of_a_suitable_size(void **state)
{
    enum { LEAST = 6, ENOUGH = 32 };
    static const struct {
        int64_t units, elements, strip;
        bool equal;
    } cases[] = {
        { 2000, 32768 * 16, 6, false }, /* 12 MiB, 333 strips and a rest */
        { 896, 4096 * 16, 32, true },   /* 512 columns */
        { 48, 768 * 16, 24, true },     /* not 32: a divisor */
        { 257, 512 * 16, 32, false },   /* a prime: 8 strips and a rest */
        { 19, 256 * 16, 16, false },    /* fewer than 32, without a divisor: 16 and 3 */
        { 31, 768 * 16, 16, false },    /* 16 and 15 */
        { 257, 512 * 16, 0, true },      { 43 * 16, 4096 * 16, 16, true },
        { 43 * 2, 4096 * 16, 43, true }, /* larger than 32, since smaller ones do not fit */
        { 32, 128 * 16, 0, false },      /* one strip */
        { 128, 513 * 16, 0, false },     /* 256 panels are whole runs */
        { 1280, 513 * 16, 256, true }
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hr_strips of = { cases[i].units, LEAST, ENOUGH };
        const int64_t units = hr_strip_units(of, cases[i].elements, cases[i].equal);
        if (units != cases[i].strip)
            fail_msg("%lld units of %lld elements: strips of %lld", (long long)cases[i].units,
                     (long long)cases[i].elements, (long long)units);
        assert_int_equal(units * cases[i].elements % HR_STRIP_QUANTUM, 0);
    }
    for (int64_t units = 1; units <= 700; units++) /* at least one strip, and less than all */
        for (int64_t elements = 64; elements <= 65536; elements += 64) {
            const int64_t of_strip = hr_strip_units((hr_strips){ units, LEAST, ENOUGH }, elements,
                                                    elements % 128 == 0);
            assert_true(of_strip >= 0 && of_strip < units);
            assert_int_equal(of_strip * elements % HR_STRIP_QUANTUM, 0);
        }
}

static void large_gradients_are_cut_into_strips(void **state)
{
    const hr_config config = small_config(HR_FAMILY_WIDE);
    int64_t floor_bytes, largest;
    (void)state;
    assert_int_equal(strips_of(&config, &hr_cpu_backend, 0, &floor_bytes, &largest), 2);
    assert_int_equal(largest, 512 * 512 * 4); /* 512 columns of the head */
}

static void gradients_are_cut_whatever_the_format_of_the_moments(void **state)
{
    (void)state;
    for (int32_t format = 0; format <= HR_MOMENTS_INT8; format++)
        for (int32_t kind = 0; kind <= HR_OPTIMIZER_LION; kind++) {
            hr_config config = small_config(HR_FAMILY_WIDE);
            int64_t floor_bytes, largest;
            config.train.optimizer.kind = kind;
            config.train.state.moments = format;
            assert_int_equal(strips_of(&config, &hr_cpu_backend, 0, &floor_bytes, &largest), 2);
            assert_int_equal(largest, 512 * 512 * 4);
        }
}

/* Like the CPU, but its SGD reads whole matrices. */
static hr_backend without_split(const hr_op **ops, hr_op *sgd)
{
    hr_backend backend = hr_cpu_backend;
    for (int32_t i = 0; i < backend.op_count; i++) ops[i] = backend.ops[i];
    *sgd = *ops[HR_OP_sgd];
    sgd->split = NULL;
    ops[HR_OP_sgd] = sgd;
    backend.ops = ops;
    return backend;
}

static void gradients_stay_whole_where_they_must(void **state)
{
    const hr_op *ops[HR_OP_COUNT];
    hr_op sgd;
    const hr_backend whole = without_split(ops, &sgd);
    hr_config config = small_config(HR_FAMILY_WIDE);
    (void)state;
    assert_int_equal(count_of(&config, &hr_cpu_backend, 0), 2);
    assert_int_equal(count_of(&config, &hr_cpu_backend, 64), 1); /* the head is in a loop */
    assert_int_equal(count_of(&config, &whole, 0), 0);
    config.memory.moments = HR_PLACE_FILE;
    assert_int_equal(count_of(&config, &hr_cpu_backend, 0), 0);
    config.memory.moments = HR_PLACE_HOST;
    config.train.optimizer.kind = HR_OPTIMIZER_ADAFACTOR;
    assert_int_equal(count_of(&config, &hr_cpu_backend, 0), 0);
    config = small_config(HR_FAMILY_LLAMA);
    config.model.n_heads = 2;
    config.model.d_ff = 64;
    config.model.tie_embeddings = HR_TIE_FALSE;
    assert_int_equal(count_of(&config, &hr_cpu_backend, 0), 2);
    config.model.tie_embeddings = HR_TIE_TRUE;
    assert_int_equal(count_of(&config, &hr_cpu_backend, 0), 0);
}

/* presets/wide-1.2b.yaml. Weights and moments: 1,189,646,336 elements of 8 bytes. At the strips of
 * the head are live: the expansion and its gradient, 128 rows of 32,768 floats each; the gradient
 * of the logits, 128 rows of 32,000 floats; the strip, 32,768 x 96 floats; and less than 5 MiB of
 * hidden rows and scratch. */
static void a_wide_model_needs_little_more_than_its_weights_and_moments(void **state)
{
    const int64_t kept = INT64_C(1189646336) * 8, most = INT64_C(9600000000) - (14 << 20);
    const int64_t rows = 128 * 4 * (2 * 32768 + 32000), strip = 32768 * 96 * 4;
    int64_t floor_bytes, largest;
    (void)state;
    for (int32_t clips = 0; clips < 2; clips++) {
        hr_config config = small_config(HR_FAMILY_WIDE);
        config.model.d_model = 2048;
        config.model.expansion = 32768;
        config.model.vocab_size = 32000;
        config.train.batch = 1;
        config.train.seq_len = 128;
        config.train.optimizer.clip = clips;
        assert_int_equal(strips_of(&config, &hr_cpu_backend, 0, &floor_bytes, &largest), 5);
        assert_int_equal(largest, strip);
        assert_true(floor_bytes >= kept + rows + strip);
        assert_true(floor_bytes <= kept + rows + strip + (5 << 20));
        assert_true(floor_bytes <= most); /* with the program, 9.6 GB */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_are_whole_runs_of_a_suitable_size),
        cmocka_unit_test(large_gradients_are_cut_into_strips),
        cmocka_unit_test(gradients_are_cut_whatever_the_format_of_the_moments),
        cmocka_unit_test(gradients_stay_whole_where_they_must),
        cmocka_unit_test(a_wide_model_needs_little_more_than_its_weights_and_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
