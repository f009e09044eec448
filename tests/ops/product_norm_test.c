/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of squares of a gradient from the operands of its product equals that of the gradient in
 * double, for products and embeddings; threads change no bit, and a NaN stays visible. */
#include "ops/cpu.h"
#include "ops/cpu_run.h"
#include "ops/passes.h"
#include "ops/product_norm/product_norm.h"

enum { SEED = 2511 };

extern const hr_op_run hr_product_norm_cpu_run;

static double measure(const hr_kernels *kernels, const hr_product_norm_attr *attr, const void *x,
                      const void *dy, hr_dtype dtype, int32_t threads)
{
    const int64_t bytes = hr_product_norm_cpu.scratch_bytes(attr, 0, threads);
    double part = NAN;
    hr_guard guard;
    hr_call call = { .in = { (void *)x, (void *)dy },
                     .out = { &part },
                     .attr = attr,
                     .kernels = kernels,
                     .threads = threads,
                     .dtype = dtype };
    call.scratch = memset(hr_guard_open(&guard, hr_round_up(bytes, 64)), 0xff, (size_t)bytes);
    run_threads(&call, hr_product_norm_run, hr_product_norm_cpu_run.phases_of(&call), threads);
    hr_guard_close(&guard);
    return part;
}

/* Of x^T dy, or of the sums of dy over equal ids. */
static double expected(const hr_product_norm_attr *attr, const void *x, const void *dy,
                       int64_t words, hr_dtype dtype)
{
    const int64_t K = attr->K ? attr->K : words, N = attr->N;
    double sum = 0, *gradient = take(K * N * 8);
    memset(gradient, 0, (size_t)(K * N) * 8);
    for (int64_t r = 0; r < attr->rows; r++)
        for (int64_t k = 0; k < K; k++) {
            const double factor = attr->K ? (double)hr_element_get(x, r * K + k, dtype)
                                          : ((const int32_t *)x)[r] == k;
            for (int64_t n = 0; n < N && factor != 0; n++)
                gradient[k * N + n] += factor * (double)hr_element_get(dy, r * N + n, dtype);
        }
    for (int64_t i = 0; i < K * N; i++) sum += gradient[i] * gradient[i];
    return sum;
}

/* Rows in several blocks of tokens, columns in several pieces, and odd numbers of both. */
static const struct {
    int64_t rows, K, N;
} shapes[] = { { 1, 1, 1 },     { 5, 3, 70 },     { 64, 64, 64 }, { 33, 2049, 17 }, { 513, 40, 33 },
               { 1030, 8, 24 }, { 20, 30, 4100 }, { 77, 0, 40 },  { 600, 0, 9 } };
enum { SHAPES = sizeof shapes / sizeof *shapes, WORDS = 50 };

static void norms_are_those_of_gradients(uint32_t mask)
{
    hr_kernels kernels;
    uint64_t state = start(SEED);
    hr_kernels_fill(&kernels, mask);
    for (int32_t i = 0; i < 3 * SHAPES; i++) {
        const hr_dtype dtype = activations[i % 3];
        const hr_product_norm_attr attr = { shapes[i / 3].rows, shapes[i / 3].K, shapes[i / 3].N,
                                            0 };
        const void *dy = take_random(attr.rows * attr.N, dtype, 1e-3, &state);
        int32_t *ids = take(attr.rows * 4);
        for (int64_t r = 0; r < attr.rows; r++) ids[r] = (int32_t)(fabs(draw(&state)) * WORDS);
        const void *x = attr.K ? take_random(attr.rows * attr.K, dtype, 1, &state) : ids;
        const double exact = expected(&attr, x, dy, WORDS, dtype);
        const double got = measure(&kernels, &attr, x, dy, dtype, 1);
        if (!(fabs(got - exact) <= 1e-5 * exact))
            fail_msg("[%lld, %lld]^T [%lld]: %.12g, not %.12g", (long long)attr.rows,
                     (long long)attr.K, (long long)attr.N, got, exact);
        for (int32_t threads = 2; threads <= THREADS_MOST; threads++) {
            const double other = measure(&kernels, &attr, x, dy, dtype, threads);
            assert_same_bits(&other, &got, sizeof got);
        }
        hr_element_set((void *)dy, attr.rows * attr.N / 2, dtype, NAN);
        assert_true(isnan(measure(&kernels, &attr, x, dy, dtype, 2)));
        release_all();
    }
}

ON_RUNGS(norms_are_those_of_gradients)
ON_RUNG(norms_are_those_of_gradients, amx)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(norms_are_those_of_gradients),
        cmocka_unit_test(norms_are_those_of_gradients_on_amx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
