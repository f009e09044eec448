/* SPDX-License-Identifier: Apache-2.0 */
/* RoPE: every instruction set against the reference, in place and copying; other elements are
 * copied; the inverse undoes a rotation; the table against its definition in long double. */
#include "ops/passes.h"
#include "ops/rope/rope.h"

enum { SEED = 303, T = 7 };

/* Queries and keys of 3 adjacent heads, with `rest` unrotated elements per head and a few at the
 * end of the row. */
static hr_rope_attr attr_of(int32_t rotary, int32_t rest, int32_t runs)
{
    const int64_t stride = rotary + rest;
    return (hr_rope_attr){ .width = runs * 3 * stride + 5,
                           .T = T,
                           .rotary = rotary,
                           .heads = 3,
                           .runs = runs,
                           .offset = { 0, 3 * stride },
                           .head_stride = stride,
                           .theta = 10000 };
}

static float *take_table(hr_rope_attr *attr)
{
    float *table = take_poisoned(T * attr->rotary * 4);
    hr_call call = { .out = { table }, .attr = attr };
    run_threads(&call, hr_rope_table_run, 1, 2);
    return table;
}

static void compare_rungs(const hr_kernels *fast, const hr_kernels *ref, hr_rope_attr attr,
                          int64_t rows, hr_dtype dtype, bool in_place)
{
    uint64_t state = start(SEED + (uint64_t)attr.rotary);
    const int64_t bytes = rows * attr.width * hr_dtype_bytes(dtype);
    void *x = take_random(rows * attr.width, dtype, 1, &state);
    void *expected = take_poisoned(bytes), *got = in_place ? x : take_poisoned(bytes);
    hr_call call = { .in = { x, take_table(&attr) },
                     .out = { expected },
                     .attr = &attr,
                     .kernels = ref,
                     .rows = rows,
                     .row_first = 4,
                     .dtype = dtype };
    run_threads(&call, hr_rope_run, 1, 1);
    void *same = take_copy(x, bytes);
    call.kernels = fast;
    call.out[0] = got;
    run_threads(&call, hr_rope_run, 1, 3);
    assert_close(got, expected, rows * attr.width, dtype, rounding(dtype), 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t e = attr.runs * 3 * attr.head_stride - (attr.head_stride - attr.rotary);
             e < attr.width; e++)
            assert_true(hr_element_get(got, r * attr.width + e, dtype) ==
                        hr_element_get(same, r * attr.width + e, dtype));
    release_all();
}

static void every_head_is_rotated_as_in_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    const int32_t widths[] = { 2, 4, 16, 30, 32, 34, 62, 64, 66, 256 };
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int32_t k = 0; k < 16; k++)
            for (int64_t rows = 0; rows < 12; rows += 5) {
                hr_rope_attr attr = attr_of(widths[w], k & 4 ? 3 : 0, k & 8 ? 2 : 1);
                attr.inverse = rows == 5;
                compare_rungs(&fast, &ref, attr, rows, activations[k % 3], k & 2);
            }
}

/* The inverse is also the gradient: <dy, R x> = <R' dy, x>. */
static void the_inverse_undoes_the_rotation_and_is_the_adjoint(uint32_t mask)
{
    enum { ROWS = 9 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    uint64_t state = start(SEED);
    hr_rope_attr attr = attr_of(34, 2, 2);
    const int64_t count = ROWS * attr.width;
    float *x = take_random(count, HR_F32, 1, &state), *y = take_poisoned(count * 4);
    float *dy = take_random(count, HR_F32, 1, &state), *dx = take_poisoned(count * 4);
    hr_call call = { .in = { x, take_table(&attr) },
                     .out = { y },
                     .attr = &attr,
                     .kernels = &kernels,
                     .rows = ROWS,
                     .dtype = HR_F32 };
    run_threads(&call, hr_rope_run, 1, 1);
    attr.inverse = true;
    call.in[0] = dy;
    call.out[0] = dx;
    run_threads(&call, hr_rope_run, 1, 1);
    double forward = 0, backward = 0;
    for (int64_t i = 0; i < count; i++) {
        forward += (double)dy[i] * y[i];
        backward += (double)dx[i] * x[i];
    }
    assert_true(fabs(forward - backward) < 1e-4);
    call.in[0] = call.out[0] = y;
    run_threads(&call, hr_rope_run, 1, 1);
    assert_close(y, x, count, HR_F32, 1e-6, 1);
    release_all();
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    enum { ROWS = 30 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    hr_rope_attr attr = attr_of(18, 1, 2);
    uint64_t state = start(SEED);
    const int64_t bytes = ROWS * attr.width * 2;
    void *x = take_random(ROWS * attr.width, HR_BF16, 1, &state);
    void *whole = take_poisoned(bytes), *cut = take_poisoned(bytes);
    hr_call call = { .in = { x, take_table(&attr) },
                     .out = { whole },
                     .attr = &attr,
                     .kernels = &kernels,
                     .rows = ROWS,
                     .dtype = HR_BF16 };
    run_threads(&call, hr_rope_run, 1, 1);
    call.rows = 6;
    for (call.row_first = 0; call.row_first < ROWS; call.row_first += 6) {
        call.in[0] = hr_element_at(x, call.row_first * attr.width, HR_BF16);
        call.out[0] = hr_element_at(cut, call.row_first * attr.width, HR_BF16);
        run_threads(&call, hr_rope_run, 1, THREADS_MOST);
    }
    assert_same_bits(cut, whole, bytes);
    release_all();
}

/* Rows that start at a position are rotated as in the whole sequence. */
static void a_sequence_continues_at_its_position(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    hr_rope_attr attr = attr_of(18, 1, 2);
    uint64_t state = start(SEED);
    const int64_t bytes = T * attr.width * 2;
    void *x = take_random(T * attr.width, HR_BF16, 1, &state);
    void *whole = take_poisoned(bytes), *parts = take_poisoned(bytes);
    hr_call call = { .in = { x, take_table(&attr) },
                     .out = { whole },
                     .attr = &attr,
                     .kernels = &kernels,
                     .rows = T,
                     .dtype = HR_BF16 };
    run_threads(&call, hr_rope_run, 1, 1);
    attr.T = 2; /* unused: the table has all positions */
    int32_t *position = take_poisoned(4);
    call.in[2] = position;
    for (int64_t first = 0; first < T; first += call.rows) {
        call.rows = first ? 2 : 3;
        call.row_first = first % 2;
        *position = (int32_t)(first - call.row_first);
        call.in[0] = hr_element_at(x, first * attr.width, HR_BF16);
        call.out[0] = hr_element_at(parts, first * attr.width, HR_BF16);
        run_threads(&call, hr_rope_run, 1, 2);
    }
    assert_same_bits(parts, whole, bytes);
    release_all();
}

static void a_document_starts_at_position_0(uint32_t mask)
{
    static const int32_t begins[2 * T] = { 0, 0, 0, 3, 3, 5, 6, 0, 1, 1, 1, 1, 1, 1 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    hr_rope_attr attr = attr_of(18, 1, 2);
    uint64_t state = start(SEED);
    const int64_t row_bytes = attr.width * 2;
    void *x = take_random(2 * T * attr.width, HR_BF16, 1, &state);
    void *whole = take_poisoned(2 * T * row_bytes), *alone = take_poisoned(2 * T * row_bytes);
    hr_call call = { .in = { x, take_table(&attr), NULL, (void *)begins },
                     .out = { whole },
                     .attr = &attr,
                     .kernels = &kernels,
                     .rows = 2 * T,
                     .dtype = HR_BF16 };
    run_threads(&call, hr_rope_run, 1, 2);
    call.in[3] = NULL;
    for (int64_t r = 0; r < 2 * T; r++) {
        call.rows = 1;
        call.row_first = r % T - begins[r];
        call.in[0] = hr_element_at(x, r * attr.width, HR_BF16);
        call.out[0] = hr_element_at(alone, r * attr.width, HR_BF16);
        run_threads(&call, hr_rope_run, 1, 1);
    }
    assert_same_bits(alone, whole, 2 * T * row_bytes);
    release_all();
}

/* f(e) of rope.h, after scaling. */
static long double frequency_of(const hr_rope_attr *attr, int64_t e, int32_t *parts)
{
    const hr_rope_scaling *scaling = &attr->scaling;
    const long double f = powl(attr->theta, -2.0L * e / attr->rotary);
    if (scaling->kind == HR_ROPE_NONE) return f;
    if (scaling->kind == HR_ROPE_LINEAR) return f / scaling->factor;
    const long double w = scaling->original * f / (2 * acosl(-1));
    const int32_t part = w < scaling->low ? 0 : w > scaling->high ? 2 : 1;
    const long double share = (w - scaling->low) / ((long double)scaling->high - scaling->low);
    *parts |= 1 << part;
    if (part == 1) return (1 - share) * f / scaling->factor + share * f;
    return part ? f : f / scaling->factor;
}

/* The llama3 frequencies are below low, between low and high, and above high. */
static void the_table_holds_the_angles_of_its_definition(void **unused)
{
    static const hr_rope_scaling scalings[] = { { .kind = HR_ROPE_NONE, .factor = 8 },
                                                { .kind = HR_ROPE_LINEAR, .factor = 3 },
                                                { HR_ROPE_LLAMA3, 8, 1, 4, 1024, 0 },
                                                { HR_ROPE_LLAMA3, 32, 1.5, 7, 8192, 0 } };
    (void)unused;
    for (size_t k = 0; k < sizeof scalings / sizeof *scalings; k++) {
        hr_rope_attr attr = attr_of(64, 0, 1);
        attr.T = 4096;
        attr.scaling = scalings[k];
        const int64_t half = attr.rotary / 2;
        int32_t parts = 0;
        float *table = take_poisoned(attr.T * attr.rotary * 4);
        hr_call call = { .out = { table }, .attr = &attr };
        run_threads(&call, hr_rope_table_run, 1, 3);
        for (int64_t e = 0; e < half; e++) {
            const long double frequency = frequency_of(&attr, e, &parts);
            for (int64_t p = 0; p < attr.T; p += 5) {
                const long double angle = p * frequency;
                assert_true(fabsl(table[p * attr.rotary + e] - cosl(angle)) < 1e-7L);
                assert_true(fabsl(table[p * attr.rotary + half + e] - sinl(angle)) < 1e-7L);
            }
        }
        assert_int_equal(parts, attr.scaling.kind == HR_ROPE_LLAMA3 ? 7 : 0);
        release_all();
    }
}

/* Frequencies of transformers 5 (ROPE_INIT_FUNCTIONS) for heads of 16 and theta 10,000. */
static void yarn_and_dynamic_are_those_of_transformers(void **unused)
{
    static const struct {
        hr_rope_scaling scaling;
        int64_t T;
        double frequencies[8], length;
    } cases[] = {
        { { HR_ROPE_YARN, 4, 1, 32, 64, 0 },
          256,
          { 1, 0.237170815, 0.049999997, 0.00790569466, 0.00249999994, 0.000790569466,
            0.000250000012, 7.90569466e-05 },
          1.138629436111989 },
        { { HR_ROPE_YARN, 4, 2, 8, 64, 1.25 },
          256,
          { 1, 0.197642356, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466,
            0.000250000012, 7.90569466e-05 },
          1.25 },
        { { HR_ROPE_DYNAMIC, 2, 0, 0, 64, 0 },
          200,
          { 1, 0.249528468, 0.0622644536, 0.0155367535, 0.00387686281, 0.000967387517,
            0.000241390735, 6.02338623e-05 },
          1 },
        { { HR_ROPE_DYNAMIC, 2, 0, 0, 64, 0 },
          40,
          { 1, 0.316227764, 0.100000001, 0.0316227786, 0.00999999978, 0.00316227786, 0.00100000005,
            0.000316227786 },
          1 },
    };
    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hr_rope_attr attr = attr_of(16, 0, 1);
        attr.T = cases[k].T;
        attr.rotary = 16;
        attr.theta = 10000;
        attr.scaling = cases[k].scaling;
        float *table = take_poisoned(attr.T * attr.rotary * 4);
        hr_call call = { .out = { table }, .attr = &attr };
        run_threads(&call, hr_rope_table_run, 1, 2);
        for (int64_t e = 0; e < 8; e++)
            for (int64_t p = 0; p < attr.T; p++) {
                const double angle = (double)p * cases[k].frequencies[e];
                const double c = cases[k].length * cos(angle), s = cases[k].length * sin(angle);
                assert_true(fabs((double)table[p * 16 + e] - c) < 1e-5);
                assert_true(fabs((double)table[p * 16 + 8 + e] - s) < 1e-5);
            }
        release_all();
    }
}

/* Rotations of (1, 0) with a split table and with a whole one: cosines and sines. */
static void a_split_table_has_the_angles_of_a_whole_one(void **unused)
{
    static const hr_rope_scaling scalings[] = { { .kind = HR_ROPE_NONE, .factor = 1 },
                                                { HR_ROPE_YARN, 4, 1, 32, 64, 1.25 } };
    enum { LAST = 70001, ROWS_SEEN = 1100, HALF = 40 };
    hr_kernels kernels;
    (void)unused;
    hr_kernels_fill(&kernels, 0);
    for (size_t k = 0; k < sizeof scalings / sizeof *scalings; k++) {
        hr_rope_attr attr = { .width = 2 * HALF,
                              .T = LAST,
                              .rotary = 2 * HALF,
                              .heads = 1,
                              .runs = 1,
                              .theta = 10000,
                              .scaling = scalings[k] };
        float *whole = take_poisoned(LAST * attr.rotary * 4);
        hr_call call = { .out = { whole }, .attr = &attr };
        run_threads(&call, hr_rope_table_run, 1, 3);
        attr.split = true;
        float *split = take_poisoned(hr_rope_split_rows(LAST) * attr.rotary * 8);
        call.out[0] = split;
        run_threads(&call, hr_rope_table_run, 1, 3);
        float *x = take_poisoned(ROWS_SEEN * attr.width * 4);
        for (int64_t i = 0; i < ROWS_SEEN * attr.width; i++) x[i] = i % attr.width < HALF;
        call = (hr_call){ .in = { x, split },
                          .out = { x },
                          .attr = &attr,
                          .kernels = &kernels,
                          .rows = ROWS_SEEN,
                          .row_first = LAST - ROWS_SEEN };
        run_threads(&call, hr_rope_run, 1, 2);
        for (int64_t i = 0; i < ROWS_SEEN * attr.width; i++) {
            const float expected = whole[(LAST - ROWS_SEEN) * attr.rotary + i];
            assert_true(fabsf(x[i] - expected) <= 1.2e-7F * fmaxf(fabsf(expected), 1e-4F));
        }
        release_all();
    }
}

ON_RUNGS(every_head_is_rotated_as_in_the_reference)
ON_RUNGS(the_inverse_undoes_the_rotation_and_is_the_adjoint)
ON_RUNGS(threads_and_splits_change_no_bit)
ON_RUNGS(a_sequence_continues_at_its_position)
ON_RUNGS(a_document_starts_at_position_0)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(every_head_is_rotated_as_in_the_reference),
        TEST_RUNGS(the_inverse_undoes_the_rotation_and_is_the_adjoint),
        TEST_RUNGS(threads_and_splits_change_no_bit),
        TEST_RUNGS(a_sequence_continues_at_its_position),
        TEST_RUNGS(a_document_starts_at_position_0),
        cmocka_unit_test(the_table_holds_the_angles_of_its_definition),
        cmocka_unit_test(yarn_and_dynamic_are_those_of_transformers),
        cmocka_unit_test(a_split_table_has_the_angles_of_a_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
