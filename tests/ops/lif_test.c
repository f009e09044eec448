/* SPDX-License-Identifier: Apache-2.0 */
/* Spiking neurons: at most `winners` of a block spike, the lower ones of equals and never a NaN; a
 * state continues a sequence; threads, instruction sets and outputs in place of inputs change no
 * bit. That values and gradients are right is for tests/run/oracle_test.c to say, which compares
 * them with PyTorch. */
#include "ops/cpu.h"
#include "ops/lif/lif.h"
#include "ops/passes.h"

enum { SEED = 1705 };

typedef struct {
    hr_lif_attr attr;
    int64_t rows;
    hr_dtype dtype;
    void *u, *x, *dy;
    float *w;
} neurons;

static neurons take_neurons(hr_lif_attr attr, int64_t rows, hr_dtype dtype, uint64_t *state)
{
    const int64_t count = rows * attr.C;
    return (neurons){ attr,
                      rows,
                      dtype,
                      take_random(count, dtype, 3, state),
                      take_random(count, dtype, 1, state),
                      take_random(count, dtype, 1, state),
                      take_random(attr.synapses * attr.C, HR_F32, 0.5, state) };
}

static void run(uint32_t mask, hr_run_fn *op, const neurons *n, void *first, void *y, void *second,
                uint32_t clear, int32_t threads)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const int64_t bytes = op == hr_lif_run
                              ? 0
                              : hr_lif_bwd_cpu.scratch_bytes(&n->attr, n->rows, threads);
    hr_guard guard;
    hr_call call = { .in = { first, op == hr_lif_run ? n->x : n->u, n->w },
                     .out = { y, second },
                     .attr = &n->attr,
                     .kernels = &kernels,
                     .rows = n->rows,
                     .clear = clear,
                     .dtype = n->dtype };
    call.scratch = memset(hr_guard_open(&guard, hr_round_up(bytes, 64)), 0xff, (size_t)bytes);
    run_threads(&call, op, 1, threads);
    hr_guard_close(&guard);
}

static const hr_lif_attr shapes[] = {
    { 16, 7, 16, 1, 1 },
    { 64, 20, 32, 5, 31 },
    { 96, 33, 48, 48, 9 },
    { 512, 9, 256, 30, 64 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void spikes_are_those_of_the_winners(uint32_t mask)
{
    uint64_t random = start(SEED);
    for (int32_t i = 0; i < SHAPES; i++) {
        const hr_lif_attr attr = shapes[i];
        const neurons n = take_neurons(attr, attr.T, HR_F32, &random);
        float *y = take(n.rows * attr.C * 4), *u = n.u, *x = n.x;
        memset(x, 0, (size_t)(n.rows * attr.C) * 4);
        for (int64_t c = 0; c < attr.block; c++) u[c] = c == 1 ? NAN : 2; /* the first token */
        run(mask, hr_lif_run, &n, n.u, y, NULL, 0, 1);
        for (int64_t c = 0, left = attr.winners; c < attr.block; c++) {
            assert_true(y[c] == (c != 1 && left > 0));
            left -= c != 1;
        }
        int64_t all = 0;
        for (int64_t b = 0; b < n.rows * attr.C / attr.block; b++) {
            int64_t spikes = 0;
            for (int64_t c = 0; c < attr.block; c++) {
                assert_true(y[b * attr.block + c] == 0 || y[b * attr.block + c] == 1);
                spikes += y[b * attr.block + c] == 1;
            }
            assert_true(spikes <= attr.winners);
            all += spikes;
        }
        assert_true(all > 0 && all < n.rows * attr.C / 2);
        release_all();
    }
}

static void a_state_continues_a_sequence(uint32_t mask)
{
    uint64_t random = start(SEED);
    for (int32_t i = 0; i < 3 * SHAPES; i++) {
        const hr_lif_attr attr = shapes[i / 3];
        neurons n = take_neurons(attr, attr.T, activations[i % 3], &random);
        const int64_t row = attr.C * hr_dtype_bytes(n.dtype);
        void *whole = take_poisoned(attr.T * row), *parts = take_poisoned(attr.T * row);
        float *states = memset(take(12 * attr.C), 0, (size_t)(12 * attr.C));
        run(mask, hr_lif_run, &n, n.u, whole, NULL, 0, 2);
        char *u = n.u, *x = n.x;
        for (int64_t at = 0; at < attr.T; at += n.rows) {
            n.rows = hr_min(1 + at % 5, attr.T - at);
            n.x = x + at * row;
            run(mask, hr_lif_run, &n, u + at * row, (char *)parts + at * row, states, 0, 3);
        }
        assert_same_bits(parts, whole, attr.T * row);
        release_all();
    }
}

static void threads_and_places_change_no_bit(uint32_t mask)
{
    uint64_t random = start(SEED);
    for (int32_t i = 0; i < 3 * SHAPES; i++) {
        const hr_lif_attr attr = shapes[i / 3];
        const neurons n = take_neurons(attr, 2 * attr.T + 3, activations[i % 3], &random);
        const int64_t bytes = n.rows * attr.C * hr_dtype_bytes(n.dtype);
        const int64_t weights = attr.synapses * attr.C * 4;
        void *y = take_poisoned(bytes), *du = take_poisoned(bytes);
        float *dw = take_poisoned(weights);
        run(mask, hr_lif_run, &n, n.u, y, NULL, 0, 1);
        run(mask, hr_lif_bwd_run, &n, n.dy, du, dw, 2, 1);
        for (int32_t threads = 2; threads <= THREADS_MOST; threads++) {
            void *other = take_copy(n.u, bytes), *back = take_copy(n.dy, bytes);
            float *sum = take_poisoned(weights);
            run(mask, hr_lif_run, &n, other, other, NULL, 0, threads);
            run(mask, hr_lif_bwd_run, &n, back, back, sum, 2, threads);
            assert_same_bits(other, y, bytes);
            assert_same_bits(back, du, bytes);
            assert_same_bits(sum, dw, weights);
            /* The gradient may be that of frozen synapses; of several parts it is added up. */
            run(mask, hr_lif_bwd_run, &n, n.dy, back, NULL, 0, threads);
            assert_same_bits(back, du, bytes);
            run(mask, hr_lif_bwd_run, &n, n.dy, back, sum, 0, threads);
            for (int64_t k = 0; k < attr.synapses * attr.C; k++)
                assert_true(fabsf(sum[k] - 2 * dw[k]) <= 1e-5f * (1 + fabsf(dw[k])));
        }
        release_all();
    }
}

static void rungs_have_the_bits_of_the_reference(uint32_t mask)
{
    uint64_t random = start(SEED);
    for (int32_t i = 0; i < 3 * SHAPES; i++) {
        const hr_lif_attr attr = shapes[i / 3];
        const neurons n = take_neurons(attr, 2 * attr.T + 3, activations[i % 3], &random);
        const int64_t bytes = n.rows * attr.C * hr_dtype_bytes(n.dtype);
        const int64_t weights = attr.synapses * attr.C * 4;
        void *y[2], *du[2];
        float *dw[2];
        for (int32_t k = 0; k < 2; k++) {
            y[k] = take_poisoned(bytes);
            du[k] = take_poisoned(bytes);
            dw[k] = take_poisoned(weights);
            run(k ? mask : 0, hr_lif_run, &n, n.u, y[k], NULL, 0, 1);
            run(k ? mask : 0, hr_lif_bwd_run, &n, n.dy, du[k], dw[k], 2, 1);
        }
        assert_same_bits(y[1], y[0], bytes);
        assert_same_bits(du[1], du[0], bytes);
        assert_same_bits(dw[1], dw[0], weights);
        release_all();
    }
}

ON_RUNGS(spikes_are_those_of_the_winners)
ON_RUNGS(a_state_continues_a_sequence)
ON_RUNGS(threads_and_places_change_no_bit)
ON_RUNGS(rungs_have_the_bits_of_the_reference)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(spikes_are_those_of_the_winners),
        TEST_RUNGS(a_state_continues_a_sequence),
        TEST_RUNGS(threads_and_places_change_no_bit),
        TEST_RUNGS(rungs_have_the_bits_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
