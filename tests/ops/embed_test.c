/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding: every instruction set gives the bits of the reference; clearing covers whole
 * tables; threads and splits change no bit; the gradient is the adjoint of the forward pass. */
#include "ops/embed/embed.h"
#include "ops/linear/linear.h"
#include "ops/passes.h"
#include "support/half.h"

enum { SEED = 202, V = 7 };

static int32_t *take_ids(int64_t rows, uint64_t *state)
{
    int32_t *ids = take(rows * 4);
    for (int64_t r = 0; r < rows; r++) ids[r] = (int32_t)((draw(state) + 1) / 2 * V);
    return ids;
}

static void compare_forward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                            hr_dtype dtype, bool positions)
{
    uint64_t state = start(SEED + (uint64_t)D);
    const hr_embed_attr attr = { V, D, 5, 6, 1, HR_ROWS };
    const int64_t bytes = rows * D * hr_dtype_bytes(dtype);
    void *expected = take_poisoned(bytes), *got = take_poisoned(bytes);
    hr_call call = { .in = { take_ids(rows, &state), take_random(V * D, HR_F32, 1, &state),
                             positions ? take_random(6 * D, HR_F32, 1, &state) : NULL },
                     .out = { expected },
                     .attr = &attr,
                     .kernels = ref,
                     .rows = rows,
                     .row_first = 3,
                     .dtype = dtype };
    run_threads(&call, hr_embed_run, 1, 1);
    call.kernels = fast;
    call.out[0] = got;
    run_threads(&call, hr_embed_run, 1, 3);
    assert_same_bits(got, expected, bytes);
    release_all();
}

static void forward_has_the_bits_of_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 6; k++)
            for (int64_t rows = 0; rows < 16; rows += 5)
                compare_forward(&fast, &ref, rows, odd_sizes[s], activations[k % 3], k & 2);
}

/* Reference with one thread and one call, against the variant with more threads and calls. */
static void compare_backward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                             hr_dtype dtype, int64_t call_rows, int32_t threads, bool positions)
{
    uint64_t state = start(SEED + (uint64_t)D);
    const hr_embed_attr attr = { V, D, 5, 6, 1, HR_ROWS };
    const int32_t *ids = take_ids(rows, &state);
    const void *dy = take_random(rows * D, dtype, 1, &state);
    float *word[2], *position[2];
    for (int32_t k = 0; k < 2; k++) {
        word[k] = take_poisoned(V * D * 4);
        position[k] = positions ? take_poisoned(6 * D * 4) : NULL;
        const int64_t step = k == 0 || call_rows == 0 ? hr_max(rows, 1) : call_rows;
        for (int64_t first = 0; first == 0 || first < rows; first += step) {
            hr_call call = { .in = { (void *)(ids + first), hr_element_at(dy, first * D, dtype) },
                             .out = { word[k], position[k] },
                             .attr = &attr,
                             .kernels = k == 0 ? ref : fast,
                             .rows = hr_min(step, rows - first),
                             .row_first = first,
                             .clear = first == 0 ? 3 : 0,
                             .dtype = dtype };
            run_threads(&call, hr_embed_bwd_run, 1, k == 0 ? 1 : threads);
        }
    }
    assert_same_bits(word[1], word[0], V * D * 4);
    if (positions) assert_same_bits(position[1], position[0], 6 * D * 4);
    for (int64_t i = 0; i < V * D; i++) assert_false(isnan(word[1][i]));
    release_all();
}

static void backward_has_the_bits_of_the_reference_for_any_split(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 6; k++)
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
                for (int64_t rows = 0; rows < 40; rows += 13)
                    compare_backward(&fast, &ref, rows, odd_sizes[s], activations[k % 3],
                                     7 * (threads - 1), threads, k > 2);
}

/* A table shared with the head: its rows are the columns of panels. */
static void compare_panels(const hr_kernels *kernels, int64_t D, hr_dtype dtype, int32_t threads)
{
    enum { ROWS = 29, WORDS = 37, T = 5 };
    uint64_t state = start(SEED + (uint64_t)D);
    const hr_layout layout = hr_linear_layout(dtype);
    const int64_t stored = hr_layout_elements(layout, D, WORDS);
    const hr_embed_attr in_rows = { WORDS, D, T, T, 0, HR_ROWS };
    const hr_embed_attr in_panels = { WORDS, D, T, T, 0, layout, dtype };
    int32_t *ids = take(ROWS * 4);
    for (int64_t r = 0; r < ROWS; r++) ids[r] = (int32_t)((draw(&state) + 1) / 2 * WORDS);
    float *table = take_random(WORDS * D, HR_F32, 1, &state);
    void *panels = take(stored * hr_dtype_bytes(dtype));
    for (int64_t v = 0; v < WORDS; v++)
        for (int64_t d = 0; d < D; d++) {
            const int64_t at = hr_layout_index(layout, D, WORDS, d, v);
            hr_element_set(panels, at, dtype, table[v * D + d]);
            table[v * D + d] = hr_element_get(panels, at, dtype);
        }
    void *positions = take_random(T * D, HR_F32, 1, &state);
    void *expected = take_poisoned(ROWS * D * hr_dtype_bytes(dtype));
    void *got = take_poisoned(ROWS * D * hr_dtype_bytes(dtype));
    hr_call call = { .in = { ids, table, positions },
                     .out = { expected },
                     .attr = &in_rows,
                     .kernels = kernels,
                     .rows = ROWS,
                     .dtype = dtype };
    run_threads(&call, hr_embed_run, 1, 1);
    call.attr = &in_panels;
    call.in[1] = panels;
    call.out[0] = got;
    run_threads(&call, hr_embed_run, 1, threads);
    assert_same_bits(got, expected, ROWS * D * hr_dtype_bytes(dtype));

    float *rows_sum = take_poisoned(WORDS * D * 4), *panels_sum = take_poisoned(stored * 4);
    hr_call back = { .in = { ids, take_random(ROWS * D, dtype, 1, &state) },
                     .out = { rows_sum },
                     .attr = &in_rows,
                     .kernels = kernels,
                     .rows = ROWS,
                     .clear = 1,
                     .dtype = dtype };
    for (int32_t round = 0; round < 2; round++, back.clear = 0) {
        back.attr = &in_rows;
        back.out[0] = rows_sum;
        run_threads(&back, hr_embed_bwd_run, 1, 1);
        back.attr = &in_panels;
        back.out[0] = panels_sum;
        run_threads(&back, hr_embed_bwd_run, 1, threads);
    }
    double all = 0, theirs = 0;
    for (int64_t i = 0; i < stored; i++) all += fabs((double)panels_sum[i]); /* padding is zero */
    for (int64_t v = 0; v < WORDS; v++)
        for (int64_t d = 0; d < D; d++) {
            const float sum = panels_sum[hr_layout_index(layout, D, WORDS, d, v)];
            assert_true(sum == rows_sum[v * D + d]);
            theirs += fabs((double)sum);
        }
    assert_true(fabs(all - theirs) <= 1e-9 * all);
    release_all();
}

static void a_table_in_panel_layout_gives_the_same_bits_as_in_rows(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 3 * THREADS_MOST; k++)
            compare_panels(&kernels, odd_sizes[s], activations[k % 3], 1 + k / 3);
}

/* A frozen table may have the dtype of activations: a long table is rounded when it is read, a
 * short one was rounded before. */
static void a_short_table_gives_the_bits_of_a_long_one(uint32_t mask)
{
    enum { ROWS = 29, WORDS = 37, T = 5 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SIZE_COUNT; s++) {
        const int64_t D = odd_sizes[s];
        uint64_t state = start(SEED + (uint64_t)D);
        const hr_embed_attr in_long = { WORDS, D, T, T, 0, HR_ROWS };
        const hr_embed_attr in_short = { WORDS, D, T, T, 0, HR_ROWS, HR_BF16 };
        int32_t *ids = take(ROWS * 4);
        for (int64_t r = 0; r < ROWS; r++) ids[r] = (int32_t)((draw(&state) + 1) / 2 * WORDS);
        float *table = take_random(WORDS * D, HR_F32, 1, &state);
        hr_bf16 *half = take(WORDS * D * 2);
        for (int64_t i = 0; i < WORDS * D; i++) half[i] = hr_bf16_from_f32(table[i]);
        void *expected = take_poisoned(ROWS * D * 2), *got = take_poisoned(ROWS * D * 2);
        hr_call call = { .in = { ids, table },
                         .out = { expected },
                         .attr = &in_long,
                         .kernels = &kernels,
                         .rows = ROWS,
                         .dtype = HR_BF16 };
        run_threads(&call, hr_embed_run, 1, 1);
        call.attr = &in_short;
        call.in[1] = half;
        call.out[0] = got;
        run_threads(&call, hr_embed_run, 1, 3);
        assert_same_bits(got, expected, ROWS * D * 2);
        release_all();
    }
}

/* Generation: rows do not depend on the split of the text. */
static void rows_that_start_later_have_their_positions(void **unused)
{
    (void)unused;
    enum { ROWS = 11, D = 9, T = 16, CUT = 4 };
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    uint64_t state = start(SEED);
    const hr_embed_attr attr = { V, D, T, T + 2, 2, HR_ROWS };
    int32_t *ids = take_ids(ROWS, &state), start_at = CUT;
    float *table = take_random(V * D, HR_F32, 1, &state);
    float *positions = take_random((T + 2) * D, HR_F32, 1, &state);
    float *whole = take_poisoned(ROWS * D * 4), *cut = take_poisoned(ROWS * D * 4);
    hr_call call = { .in = { ids, table, positions },
                     .out = { whole },
                     .attr = &attr,
                     .kernels = &ref,
                     .rows = ROWS,
                     .dtype = HR_F32 };
    run_threads(&call, hr_embed_run, 1, 1);
    for (int64_t d = 0; d < D; d++)
        assert_true(whole[d] == table[ids[0] * D + d] + positions[2 * D + d]);
    call.out[0] = cut;
    call.rows = CUT;
    run_threads(&call, hr_embed_run, 1, 1);
    call.in[0] = ids + CUT;
    call.in[3] = &start_at;
    call.out[0] = cut + CUT * D;
    call.rows = ROWS - CUT;
    run_threads(&call, hr_embed_run, 1, 1);
    assert_same_bits(cut, whole, ROWS * D * 4);
    release_all();
}

/* Every upper half of a float with lower halves at and next to ties; NaN stays NaN. Then back:
 * every bf16 converts to its float. */
static void bf16_conversions_match_the_reference_for_every_value(uint32_t mask)
{
    enum { HALVES = 65536 };
    static const uint32_t lower[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    uint32_t *word = take(HALVES * 4);
    hr_bf16 *expected = take_poisoned(HALVES * 2), *got = take_poisoned(HALVES * 2);
    for (size_t k = 0; k < sizeof lower / sizeof *lower; k++) {
        for (uint32_t i = 0; i < HALVES; i++) word[i] = i << 16 | lower[k];
        ref.embed.fwd((float *)word, NULL, expected, HALVES, HR_BF16);
        fast.embed.fwd((float *)word, NULL, got, HALVES, HR_BF16);
        assert_same_bits(got, expected, HALVES * 2);
        for (int64_t i = 0; i < HALVES; i++)
            assert_true(isnan(hr_bf16_to_f32(got[i])) == isnan(((float *)word)[i]));
    }
    float *sum = take(HALVES * 4);
    for (uint32_t i = 0; i < HALVES; i++) got[i] = (hr_bf16)i;
    fast.embed.bwd(sum, got, HALVES, HR_BF16);
    for (int64_t i = 0; i < HALVES; i++) {
        const float value = hr_bf16_to_f32(got[i]);
        assert_true(sum[i] == value || (isnan(sum[i]) && isnan(value)));
    }
    release_all();
}

/* Every f16 number with the bits behind it at and next to ties, as they are and 2^16 times larger,
 * where they overflow, and 2^-16 times smaller, where they are subnormal. */
static void f16_conversions_match_the_reference_for_every_value(uint32_t mask)
{
    enum { HALVES = 65536 };
    static const uint32_t lower[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff };
    static const float factors[] = { 1, 0x1p16f, 0x1p-16f };
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    uint32_t *bits = take(HALVES * 4);
    float *word = take(HALVES * 4), *sum = take(HALVES * 4);
    uint16_t *expected = take_poisoned(HALVES * 2), *got = take_poisoned(HALVES * 2);
    for (int32_t k = 0; k < 18; k++) {
        for (uint32_t i = 0; i < HALVES; i++)
            bits[i] = hr_f16_to_f32_bits((uint16_t)i) + lower[k % 6];
        memcpy(word, bits, HALVES * sizeof *word);
        for (uint32_t i = 0; i < HALVES; i++) word[i] *= factors[k / 6];
        ref.embed.fwd(word, NULL, expected, HALVES, HR_F16);
        fast.embed.fwd(word, NULL, got, HALVES, HR_F16);
        assert_same_bits(got, expected, HALVES * 2);
    }
    for (uint32_t i = 0; i < HALVES; i++) got[i] = (uint16_t)i;
    memset(sum, 0, HALVES * sizeof *sum);
    fast.embed.bwd(sum, got, HALVES, HR_F16);
    for (int64_t i = 0; i < HALVES; i++) {
        const float value = half_value(got[i]);
        assert_true(sum[i] == value || (isnan(sum[i]) && isnan(value)));
    }
    release_all();
}

/* <dy, y(E, P)> = <dE, E> + <dP, P>, since y is linear in the tables. */
static void adjoint(const int32_t *begins)
{
    enum { ROWS = 23, D = 9, T = 6 };
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    uint64_t state = start(SEED);
    const hr_embed_attr attr = { V, D, T, T, 0, HR_ROWS };
    float *word = take_random(V * D, HR_F32, 1, &state);
    float *position = take_random(T * D, HR_F32, 1, &state);
    float *dy = take_random(ROWS * D, HR_F32, 1, &state), *y = take_poisoned(ROWS * D * 4);
    float *dword = take_poisoned(V * D * 4), *dposition = take_poisoned(T * D * 4);
    hr_call call = { .in = { take_ids(ROWS, &state), word, position, NULL, (void *)begins },
                     .out = { y },
                     .attr = &attr,
                     .kernels = &ref,
                     .rows = ROWS,
                     .dtype = HR_F32 };
    run_threads(&call, hr_embed_run, 1, 1);
    call.in[1] = dy;
    call.in[2] = (void *)begins;
    call.out[0] = dword;
    call.out[1] = dposition;
    call.clear = 3;
    run_threads(&call, hr_embed_bwd_run, 1, 1);
    double forward = 0, backward = 0;
    for (int64_t i = 0; i < ROWS * D; i++) forward += (double)dy[i] * y[i];
    for (int64_t i = 0; i < V * D; i++) backward += (double)dword[i] * word[i];
    for (int64_t i = 0; i < T * D; i++) backward += (double)dposition[i] * position[i];
    assert_true(fabs(forward - backward) < 1e-5);
    release_all();
}

static void the_gradient_is_the_adjoint_of_the_forward_pass(void **unused)
{
    (void)unused;
    /* sequences of 6: three documents, one, two, one for each token, and a short one */
    static const int32_t begins[] = { 0, 0, 2, 2, 2, 5, 0, 0, 0, 0, 0, 0,
                                      0, 0, 0, 0, 4, 4, 0, 1, 2, 3, 4 };
    adjoint(NULL);
    adjoint(begins);
}

static void a_document_starts_at_position_0(void **unused)
{
    (void)unused;
    enum { ROWS = 12, D = 5, T = 6 };
    static const int32_t begins[ROWS] = { 0, 0, 0, 3, 3, 5, 0, 1, 1, 1, 1, 1 };
    static const int32_t places[ROWS] = { 0, 1, 2, 0, 1, 0, 0, 0, 1, 2, 3, 4 };
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    uint64_t state = start(SEED);
    const hr_embed_attr attr = { V, D, T, T + 2, 2, HR_ROWS };
    const int32_t *ids = take_ids(ROWS, &state);
    const float *table = take_random(V * D, HR_F32, 1, &state);
    const float *positions = take_random((T + 2) * D, HR_F32, 1, &state);
    float *y = take_poisoned(ROWS * D * 4);
    hr_call call = { .in = { (void *)ids, (void *)table, (void *)positions, NULL, (void *)begins },
                     .out = { y },
                     .attr = &attr,
                     .kernels = &ref,
                     .rows = ROWS,
                     .dtype = HR_F32 };
    run_threads(&call, hr_embed_run, 1, 1);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t d = 0; d < D; d++)
            assert_true(y[r * D + d] == table[ids[r] * D + d] + positions[(places[r] + 2) * D + d]);
    release_all();
}

ON_RUNGS(bf16_conversions_match_the_reference_for_every_value)
ON_RUNGS(f16_conversions_match_the_reference_for_every_value)
ON_RUNGS(a_table_in_panel_layout_gives_the_same_bits_as_in_rows)
ON_RUNGS(a_short_table_gives_the_bits_of_a_long_one)
ON_RUNGS(forward_has_the_bits_of_the_reference)
ON_RUNGS(backward_has_the_bits_of_the_reference_for_any_split)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(forward_has_the_bits_of_the_reference),
        TEST_RUNGS(backward_has_the_bits_of_the_reference_for_any_split),
        TEST_RUNGS(bf16_conversions_match_the_reference_for_every_value),
        TEST_RUNGS(f16_conversions_match_the_reference_for_every_value),
        TEST_RUNGS(a_table_in_panel_layout_gives_the_same_bits_as_in_rows),
        TEST_RUNGS(a_short_table_gives_the_bits_of_a_long_one),
        cmocka_unit_test(rows_that_start_later_have_their_positions),
        cmocka_unit_test(the_gradient_is_the_adjoint_of_the_forward_pass),
        cmocka_unit_test(a_document_starts_at_position_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
