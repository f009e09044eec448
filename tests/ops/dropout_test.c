/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the mask follows its row of random numbers with every instruction set and every split;
 * kept elements are scaled; the gradient is the same operation. */
#include "ops/dropout/dropout.h"
#include "ops/passes.h"

enum { SEED = 505, STEP = 9, SITE = 4 };

static hr_call call_of(const hr_kernels *kernels, const hr_dropout_attr *attr, int64_t rows,
                       hr_dtype dtype)
{
    return (hr_call){ .attr = attr,
                      .kernels = kernels,
                      .rows = rows,
                      .row_first = 3,
                      .clock = STEP,
                      .seed = SEED,
                      .dtype = dtype };
}

/* The definition of ops/dropout/dropout.h, in double. */
static double expected_at(const hr_dropout_attr *attr, const void *x, const void *residual,
                          int64_t row_first, int64_t r, int64_t c, hr_dtype dtype)
{
    const int64_t row = row_first + r, at = r * attr->D + c;
    const hr_random_row random = hr_random_row_of(hr_random_stream_of(SEED, STEP, attr->site, 0),
                                                  (uint32_t)(row / attr->T),
                                                  (uint32_t)(row % attr->T));
    const bool drop = hr_random_element(&random, (uint64_t)c) < hr_random_threshold(attr->p);
    return (drop ? 0 : hr_element_get(x, at, dtype) / (1 - (double)attr->p)) +
           (residual ? hr_element_get(residual, at, dtype) : 0);
}

/* `over`: 0 separate, 1 y over x, 2 y over residual, 3 no residual. */
static void compare_definition(const hr_kernels *kernels, int64_t rows, int64_t D, float p,
                               hr_dtype dtype, int32_t over)
{
    uint64_t state = start(SEED + (uint64_t)D);
    const hr_dropout_attr attr = { D, 2, p, SITE, 1 };
    const int64_t bytes = rows * D * hr_dtype_bytes(dtype);
    void *x = take_random(rows * D, dtype, 1, &state), *x_kept = take_copy(x, bytes);
    void *residual = take_random(rows * D, dtype, 1, &state);
    void *residual_kept = over == 3 ? NULL : take_copy(residual, bytes);
    void *y = over == 1 ? x : over == 2 ? residual : take_poisoned(bytes);
    hr_call call = call_of(kernels, &attr, rows, dtype);
    call.in[0] = x;
    call.in[1] = over == 3 ? NULL : residual;
    call.out[0] = y;
    run_threads(&call, hr_dropout_run, 1, 3);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < D; c++) {
            const double got = hr_element_get(y, r * D + c, dtype);
            const double expected = expected_at(&attr, x_kept, residual_kept, 3, r, c, dtype);
            if (over == 3) assert_true((got == 0) == (expected == 0));
            assert_true(fabs(got - expected) <= rounding(dtype) * fabs(expected) + 1e-7 / (1 - p));
        }
    release_all();
}

static void elements_are_kept_and_scaled_as_defined(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const float shares[] = { 0, 0.1f, 0.5f, 0.999f };
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 48; k++)
            for (int64_t rows = 0; rows < 6; rows += 1 + rows)
                compare_definition(&kernels, rows, odd_sizes[s], shares[k & 3],
                                   activations[k / 4 % 3], k / 12);
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    enum { ROWS = 20, D = 45 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_dropout_attr attr = { D, 7, 0.25f, SITE, 1 };
    uint64_t state = start(SEED);
    void *x = take_random(ROWS * D, HR_BF16, 1, &state);
    void *whole = take_poisoned(ROWS * D * 2), *cut = take_poisoned(ROWS * D * 2);
    hr_call call = call_of(&kernels, &attr, ROWS, HR_BF16);
    call.in[0] = x;
    call.out[0] = whole;
    call.row_first = 0;
    run_threads(&call, hr_dropout_run, 1, 1);
    for (int64_t first = 0; first < ROWS; first += 3) {
        call.rows = hr_min(3, ROWS - first);
        call.row_first = first;
        call.in[0] = hr_element_at(x, first * D, HR_BF16);
        call.out[0] = hr_element_at(cut, first * D, HR_BF16);
        run_threads(&call, hr_dropout_run, 1, THREADS_MOST);
    }
    assert_same_bits(cut, whole, ROWS * D * 2);
    release_all();
}

/* <dy, drop(x)> = <drop(dy), x>: the operation is a diagonal matrix. */
static void the_gradient_is_the_same_operation(uint32_t mask)
{
    enum { ROWS = 8, D = 50 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_dropout_attr attr = { D, 4, 0.3f, SITE, 1 };
    uint64_t state = start(SEED);
    float *x = take_random(ROWS * D, HR_F32, 1, &state), *y = take_poisoned(ROWS * D * 4);
    float *dy = take_random(ROWS * D, HR_F32, 1, &state), *dx = take_poisoned(ROWS * D * 4);
    hr_call call = call_of(&kernels, &attr, ROWS, HR_F32);
    call.in[0] = x;
    call.out[0] = y;
    run_threads(&call, hr_dropout_run, 1, 1);
    call.in[0] = dy;
    call.out[0] = dx;
    run_threads(&call, hr_dropout_run, 1, 1);
    double forward = 0, backward = 0;
    for (int64_t i = 0; i < ROWS * D; i++) {
        forward += (double)dy[i] * y[i];
        backward += (double)dx[i] * x[i];
    }
    assert_true(fabs(forward - backward) < 1e-5);
    release_all();
}

/* 400,000 elements with p = 0.1: the share is within six standard deviations. */
static void the_share_of_dropped_elements_is_p(uint32_t mask)
{
    enum { ROWS = 400, D = 1000 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_dropout_attr attr = { D, 100, 0.1f, SITE, 1 };
    float *x = take(ROWS * D * 4);
    int64_t dropped = 0;
    for (int64_t i = 0; i < ROWS * D; i++) x[i] = 1;
    hr_call call = call_of(&kernels, &attr, ROWS, HR_F32);
    call.in[0] = call.out[0] = x;
    run_threads(&call, hr_dropout_run, 1, 1);
    for (int64_t i = 0; i < ROWS * D; i++) dropped += x[i] == 0;
    assert_true(fabs((double)dropped / (ROWS * D) - 0.1) < 6 * sqrt(0.1 * 0.9 / (ROWS * D)));
    release_all();
}

ON_RUNGS(elements_are_kept_and_scaled_as_defined)
ON_RUNGS(threads_and_splits_change_no_bit)
ON_RUNGS(the_gradient_is_the_same_operation)
ON_RUNGS(the_share_of_dropped_elements_is_p)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(elements_are_kept_and_scaled_as_defined),
        TEST_RUNGS(threads_and_splits_change_no_bit),
        TEST_RUNGS(the_gradient_is_the_same_operation),
        TEST_RUNGS(the_share_of_dropped_elements_is_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
