/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of columns and products with trained lengths: every instruction set against the
 * equations in double, the gradients against finite differences, the same bits for every split of
 * tokens and number of threads. */
#include "ops/cpu.h"
#include "ops/list.h"
#include "ops/magnitude/magnitude.h"
#include "ops/passes.h"

enum { SEED = 211, ROWS = 140, TOKENS = 70 };

/* W + scale A B of one column, in double. */
static double length_of(const float *w, const float *a, const float *b, const hr_length_attr *attr,
                        int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < attr->K; k++) {
        double value = w[k * attr->N + n];
        for (int64_t r = 0; r < attr->R; r++)
            value += (double)attr->scale * a[k * attr->R + r] * b[r * attr->N + n];
        sum += value * value;
    }
    return sqrt(sum);
}

/* A matrix in a layout with zeros as padding, and its elements as [K, N] fp32. */
static void *take_matrix(int64_t K, int64_t N, hr_layout layout, hr_dtype dtype, float **plain,
                         uint64_t *state)
{
    const int64_t count = hr_layout_elements(layout, K, N);
    void *matrix = take(count * hr_dtype_bytes(dtype));
    *plain = take(K * N * 4);
    memset(matrix, 0, (size_t)(count * hr_dtype_bytes(dtype)));
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            const int64_t at = hr_layout_index(layout, K, N, k, n);
            /* the third column is zero */
            hr_element_set(matrix, at, dtype, n == 2 ? 0 : (float)draw(state));
            (*plain)[k * N + n] = hr_element_get(matrix, at, dtype);
        }
    return matrix;
}

static void lengths_are_those_of_the_sum(uint32_t mask)
{
    static const int64_t sizes[][3] = {
        { 1, 1, 1 }, { 70, 33, 5 }, { 64, 16, 64 }, { 130, 50, 67 }, { 300, 20, 130 }
    };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int32_t t = 0; t < 3; t++) {
            uint64_t state = start(SEED);
            const hr_dtype dtype = activations[t > 0];
            const hr_layout layout = t == 2 ? HR_PANEL_PAIR : HR_PANEL;
            const int64_t K = sizes[i][0], N = sizes[i][1], R = sizes[i][2];
            const hr_length_attr attr = { K, N, R, 0.75F, (int32_t)layout };
            float *w, *a, *b, *first = NULL;
            void *in[] = { take_matrix(K, N, layout, dtype, &w, &state),
                           take_matrix(K, R, layout, dtype, &a, &state),
                           take_matrix(R, N, layout, dtype, &b, &state) };
            float *m = take_random(N, HR_F32, 1, &state), *e = take_poisoned(N * 4);
            m[0] = NAN;
            const float kept = N > 1 ? m[1] : 0;
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
                float *c = take_poisoned(N * 4);
                hr_call call = { .in = { in[0], in[1], in[2] },
                                 .out = { c, NULL, m, e },
                                 .attr = &attr,
                                 .kernels = &kernels,
                                 .dtype = dtype };
                run_threads(&call, hr_length_run, 1, threads);
                if (first) assert_same_bits(c, first, N * 4);
                else first = c;
            }
            for (int64_t n = 0; n < N; n++) {
                const double length = length_of(w, a, b, &attr, n);
                if (length == 0) assert_true(first[n] == 0 && e[n] == 0);
                else assert_true(fabs(first[n] * length - 1) < 2e-6);
                assert_true(fabs(e[n] - length) <= 2e-6 * length);
            }
            assert_true(m[0] == e[0] && (N == 1 || m[1] == kept));
            release_all();
        }
}

typedef struct {
    void *x, *residual, *dy, *addend;
    float *m, *c, *bias;
} values;

static values take_values(int64_t rows, int64_t N, hr_dtype dtype, uint64_t *state)
{
    return (values){ take_random(rows * N, dtype, 2, state), take_random(rows * N, dtype, 1, state),
                     take_random(rows * N, dtype, 1, state), take_random(rows * N, dtype, 1, state),
                     take_random(N, HR_F32, 2, state),       take_random(N, HR_F32, 1, state),
                     take_random(N, HR_F32, 1, state) };
}

/* `over`: 0 separate, 1 over the first operand, 2 over the last, 3 without optional operands. */
static void compare(const hr_kernels *kernels, int64_t rows, int64_t N, hr_dtype dtype,
                    int32_t over)
{
    uint64_t state = start(SEED + (uint64_t)(rows * 1000 + N));
    const hr_magnitude_attr attr = { N, TOKENS };
    const int64_t bytes = rows * N * hr_dtype_bytes(dtype);
    const values v = take_values(rows, N, dtype, &state);
    const bool all = over < 3;
    float *y = take(rows * N * 4), *dx = take(rows * N * 4), *sums = take(N * 4);
    float *dm = take_random(N, HR_F32, 1, &state);
    for (int64_t n = 0; n < N; n++) {
        double sum = dm[n];
        for (int64_t r = 0; r < rows; r++) {
            const int64_t i = r * N + n;
            const double x = hr_element_get(v.x, i, dtype), dy = hr_element_get(v.dy, i, dtype);
            y[i] = (float)(x * v.c[n] * v.m[n] +
                           (all ? v.bias[n] + hr_element_get(v.residual, i, dtype) : 0));
            dx[i] = (float)(dy * v.c[n] * v.m[n] + (all ? hr_element_get(v.addend, i, dtype) : 0));
            sum += dy * x * v.c[n];
        }
        sums[n] = (float)sum;
    }
    void *to = over == 1   ? take_copy(v.x, bytes)
               : over == 2 ? take_copy(v.residual, bytes)
                           : take_poisoned(bytes);
    hr_call call = { .in = { over == 1 ? to : v.x, v.m, v.c, all ? v.bias : NULL,
                             !all        ? NULL
                             : over == 2 ? to
                                         : v.residual },
                     .out = { to },
                     .attr = &attr,
                     .kernels = kernels,
                     .rows = rows,
                     .dtype = dtype };
    run_threads(&call, hr_magnitude_run, 1, 2);
    for (int64_t i = 0; i < rows * N; i++)
        assert_true(fabs(hr_element_get(to, i, dtype) - (double)y[i]) <= rounding(dtype) * 4);
    void *back = over == 1 ? v.dy : over == 2 ? v.addend : take_poisoned(bytes);
    hr_call bwd = { .in = { v.dy, v.x, v.m, v.c, all ? v.addend : NULL },
                    .out = { back, dm },
                    .attr = &attr,
                    .kernels = kernels,
                    .rows = rows,
                    .scratch = take_poisoned(hr_magnitude_bwd_cpu.scratch_bytes(&attr, rows, 2)),
                    .dtype = dtype };
    run_threads(&bwd, hr_magnitude_bwd_run, 2, 2);
    for (int64_t i = 0; i < rows * N; i++)
        assert_true(fabs(hr_element_get(back, i, dtype) - (double)dx[i]) <= rounding(dtype) * 4);
    for (int64_t n = 0; n < N; n++) assert_true(fabs(dm[n] - sums[n]) < 1e-4);
    release_all();
}

static void passes_agree_with_the_equations(uint32_t mask)
{
    static const int64_t rows[] = { 0, 1, 3, ROWS };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 4; k++)
            for (int32_t over = 0; over < 4; over++)
                for (int32_t d = 0; d < 3; d++)
                    compare(&kernels, rows[k], odd_sizes[s], activations[d], over);
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    enum { N = 37 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
        for (int32_t k = 0; k < 4; k++) {
            uint64_t state = start(SEED);
            const hr_dtype dtype = activations[k & 1];
            const int64_t step = k & 2 ? 64 : 192, rows = 512;
            const hr_magnitude_attr attr = { N, 256 };
            const values v = take_values(rows, N, dtype, &state);
            float *dm[2] = { take_poisoned(N * 4), take_poisoned(N * 4) };
            void *dx[2] = { take_poisoned(rows * N * hr_dtype_bytes(dtype)),
                            take_poisoned(rows * N * hr_dtype_bytes(dtype)) };
            for (int32_t cut = 0; cut < 2; cut++)
                for (int64_t first = 0; first < rows; first += cut ? step : rows) {
                    const int64_t count = cut ? hr_min(step, rows - first) : rows, at = first * N;
                    hr_call call = { .in = { hr_element_at(v.dy, at, dtype),
                                             hr_element_at(v.x, at, dtype), v.m, v.c },
                                     .out = { hr_element_at(dx[cut], at, dtype), dm[cut] },
                                     .attr = &attr,
                                     .kernels = &kernels,
                                     .rows = count,
                                     .row_first = first,
                                     .clear = first == 0 ? 1u << 1 : 0,
                                     .dtype = dtype };
                    call.scratch = take_poisoned(
                        hr_magnitude_bwd_cpu.scratch_bytes(&attr, count, threads));
                    run_threads(&call, hr_magnitude_bwd_run, 2, cut ? threads : 1);
                }
            assert_same_bits(dx[1], dx[0], rows * N * hr_dtype_bytes(dtype));
            assert_same_bits(dm[1], dm[0], N * 4);
            release_all();
        }
}

ON_RUNGS(lengths_are_those_of_the_sum)
ON_RUNGS(passes_agree_with_the_equations)
ON_RUNGS(threads_and_splits_change_no_bit)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(lengths_are_those_of_the_sum),
        TEST_RUNGS(passes_agree_with_the_equations),
        TEST_RUNGS(threads_and_splits_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
