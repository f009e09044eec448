/* SPDX-License-Identifier: Apache-2.0 */
/* Strips of a gradient: computed in iterations of a loop and at its end, they have the bits of the
 * whole gradient with every instruction set, and so has the sum of their squares. */
#include "ops/cpu.h"
#include "ops/embed/embed.h"
#include "ops/linear/linear.h"
#include "ops/passes.h"
#include "ops/update/update.h"

enum { SEED = 311, PANEL = HR_PANEL_WIDTH };

static const hr_dtype dtypes[] = { HR_F32, HR_BF16 };

typedef struct {
    int64_t rows, K, N, T;
} size;

/* Frees the arrays of a strip. */
static void release_to(int32_t mark)
{
    while (array_count > mark) hr_guard_close(&arrays[--array_count]);
}

/* The strips of `panels` panels of dW, with `threads` threads, in arrays of their own. The last
 * strip is a part of a loop, as the others, or computed alone. */
static void compare_strips(const hr_kernels *kernels, size s, hr_dtype dtype, int64_t panels,
                           int32_t threads, bool adds)
{
    uint64_t state = start(SEED + (uint64_t)s.N);
    const hr_layout layout = hr_linear_layout(dtype);
    const int64_t all = (s.N + PANEL - 1) / PANEL, panel = hr_layout_elements(layout, s.K, PANEL);
    const hr_linear_attr whole = { s.K, s.N, s.T };
    hr_call call = { .attr = &whole, .kernels = kernels, .rows = s.rows, .dtype = dtype };
    call.row_first = 2 * s.T;
    call.clear = !adds;
    call.in[0] = take_random(s.rows * s.K, dtype, 1, &state);
    call.in[1] = take_random(s.rows * s.N, dtype, 1, &state);
    float *before = take_random(all * panel, HR_F32, 1, &state);
    float *dw = call.out[0] = take_copy(before, all * panel * 4);
    call.scratch = take_poisoned(
        hr_round_up(hr_linear_dw_cpu.scratch_bytes(&whole, s.rows, 1), 64));
    run_threads(&call, hr_linear_dw_run, 1, 1);
    const int32_t mark = array_count;
    for (int64_t at = 0; at < all; at += panels) {
        const int64_t here = hr_min(panels, all - at);
        const bool alone = here < panels;
        hr_linear_attr attr = { s.K, s.N, s.T, .strip = here * PANEL };
        if (alone) attr.strip_first = at * PANEL;
        call.attr = &attr;
        call.turn = alone ? 0 : at / panels;
        call.out[0] = take_copy(before + at * panel, here * panel * 4);
        call.scratch = take_poisoned(
            hr_round_up(hr_linear_dw_cpu.scratch_bytes(&attr, s.rows, threads), 64));
        run_threads(&call, hr_linear_dw_run, 1, threads);
        assert_same_bits(call.out[0], dw + at * panel, here * panel * 4);
        release_to(mark);
    }
    release_all();
}

static void strips_of_a_matrix_have_the_bits_of_the_whole(uint32_t mask)
{
    static const size sizes[] = {
        { 1, 1, 17, 64 },     { 0, 5, 48, 64 },      { 70, 33, 133, 37 },
        { 130, 65, 211, 64 }, { 300, 520, 100, 96 }, { 64, 20, 1090, 64 }
    };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int32_t k = 0; k < 4; k++)
            for (int64_t panels = 1; panels <= 9; panels = panels * 2 + 1)
                compare_strips(&kernels, sizes[i], dtypes[k & 1], panels, 1 + (int32_t)(panels % 4),
                               k & 2);
}

/* Ids at the bounds of strips, and none in some strips. */
static void strips_of_a_table_have_the_bits_of_the_whole(uint32_t mask)
{
    enum { V = 53, D = 37, ROWS = 40 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 12; k++) {
        const int64_t strip = 1 + 3 * (k / 2);
        const hr_dtype dtype = dtypes[k & 1];
        uint64_t state = start(SEED + (uint64_t)k);
        const hr_embed_attr whole = { V, D, 8, .layout = HR_ROWS };
        int32_t *ids = take(ROWS * 4);
        for (int64_t r = 0; r < ROWS; r++)
            ids[r] = r % 4 ? (int32_t)(((draw(&state) + 1) / 2) * 30) : (int32_t)(r * strip % V);
        hr_call call = { .in = { ids, take_random(ROWS * D, dtype, 1, &state) },
                         .out = { take_poisoned(V * D * 4) },
                         .attr = &whole,
                         .kernels = &kernels,
                         .rows = ROWS,
                         .clear = 1,
                         .dtype = dtype };
        const float *table = call.out[0];
        const int32_t mark = array_count;
        run_threads(&call, hr_embed_bwd_run, 1, 1);
        for (int64_t row = 0; row < V; row += strip) {
            const int64_t here = hr_min(strip, V - row);
            hr_embed_attr attr = { V, D, 8, .layout = HR_ROWS, .strip = here };
            if (here < strip) attr.strip_first = row;
            call.attr = &attr;
            call.turn = here < strip ? 0 : row / strip;
            call.out[0] = take_poisoned(here * D * 4);
            run_threads(&call, hr_embed_bwd_run, 1, 1 + k % 3);
            assert_same_bits(call.out[0], table + row * D, here * D * 4);
            release_to(mark);
        }
        release_all();
    }
}

static double sum_of(const hr_kernels *kernels, const float *gradient, int64_t elements,
                     int64_t strip, int32_t threads)
{
    double part = NAN;
    for (int64_t at = 0; at == 0 || at < elements; at += strip) {
        const hr_sumsq_attr attr = { hr_min(strip, elements - at) };
        hr_call call = { .in = { (void *)(gradient + at) },
                         .out = { &part },
                         .scratch = take_poisoned(hr_sumsq_cpu.scratch_bytes(&attr, 0, threads)),
                         .attr = &attr,
                         .kernels = kernels,
                         .clear = at == 0 };
        run_threads(&call, hr_sumsq_run, 2, threads);
    }
    return part;
}

static void squares_of_strips_have_the_sum_of_the_whole(uint32_t mask)
{
    enum { RUN = 4096, ELEMENTS = 9 * RUN + 77 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    uint64_t state = start(SEED);
    const float *gradient = take_random(ELEMENTS, HR_F32, 1e-3, &state);
    const double whole = sum_of(&kernels, gradient, ELEMENTS, ELEMENTS, 1);
    for (int64_t runs = 1; runs <= 5; runs++) {
        const double sum = sum_of(&kernels, gradient, ELEMENTS, runs * RUN, 1 + (int32_t)runs % 3);
        assert_same_bits(&sum, &whole, sizeof sum);
    }
    release_all();
}

ON_RUNGS(strips_of_a_matrix_have_the_bits_of_the_whole)
ON_RUNG(strips_of_a_matrix_have_the_bits_of_the_whole, amx)
ON_RUNGS(strips_of_a_table_have_the_bits_of_the_whole)
ON_RUNGS(squares_of_strips_have_the_sum_of_the_whole)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(strips_of_a_matrix_have_the_bits_of_the_whole),
        cmocka_unit_test(strips_of_a_matrix_have_the_bits_of_the_whole_on_amx),
        TEST_RUNGS(strips_of_a_table_have_the_bits_of_the_whole),
        TEST_RUNGS(squares_of_strips_have_the_sum_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
