/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: every instruction set against the reference, the reference against finite differences
 * of the definition, and the bit-identity that the contract promises. */
#include "attention_cases.h"
#include "ops/attention/attention_build.h"
#include "require.h"

#ifndef HR_COUNT
#define HR_COUNT 1
#endif

static const uint64_t seed = 20241121;

/* CPU feature masks of the instruction sets above the reference that this machine has. */
static int rungs(uint32_t masks[4])
{
    static const char *const names[] = { "avx2", "avx512", "avx512bf16", "amx" };
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (hr_test_has(names[i])) masks[count++] = (uint32_t)hr_cpu_mask_of(names[i]);
    return count;
}

static void every_rung_agrees_with_the_reference(void **state)
{
    static const int64_t lengths[] = { 1, 2, 7, 63, 64, 65, 130, 200 };
    static const int32_t widths[] = { 1, 8, 16, 24, 64, 80, 128, 256 };
    case_random random = { .seed = seed };
    uint32_t masks[4];
    const int count = rungs(masks);
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < HR_COUNT; round++)
        for (int i = 0; i < 64; i++)
            case_check(case_around(&random, lengths[i / 8], widths[i % 8]), masks, count, false,
                       random);
}

static void every_pattern_is_computed_on_every_rung(void **state)
{
    case_random random = { .seed = seed + 1 };
    uint32_t masks[4];
    const int count = rungs(masks);
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int small = 0; small < 2; small++) {
            attention_case c = case_of(small ? 100 : 450, 1, 1, 16, true, 0);
            c.attr.mask = (hr_attention_mask){ kind, small ? 8 : 64, 1, 3 };
            c.attr.dropout = small ? 0.5f : 0;
            case_check(c, masks, count, false, random);
        }
}

static void a_sliding_window_of_any_length_works_on_every_rung(void **state)
{
    case_random random = { .seed = seed + 6 };
    uint32_t masks[4];
    const int count = rungs(masks);
    (void)state;
    for (int i = 0; i < CASE_WINDOWS; i++) {
        attention_case c = case_of(300, 2, 1, i % 3 ? 16 : 24, i % 2, 0);
        c.attr.mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 64, case_windows[i], 1 };
        c.attr.dropout = i % 2 ? 0.5f : 0;
        case_check(c, masks, count, false, random);
    }
}

static void pairs_counts_the_unmasked_pairs(void **state)
{
    case_random random = { .seed = seed + 2 };
    (void)state;
    for (int round = 0; round < 200 * HR_COUNT; round++) {
        const int64_t length = case_below(&random, 150);
        hr_attention_mask mask = case_mask(&random, length);
        mask.block = 1 + (int32_t)case_below(&random, 20);
        int64_t pairs = 0;
        for (int64_t i = 0; i < length; i++)
            for (int64_t j = 0; j <= i; j++) pairs += hr_attention_keeps(&mask, i, j);
        assert_int_equal(hr_attention_pairs(&mask, length), pairs);
    }
}

/* sum(dO * O) of one head of one sequence, from the definition, in double. */
static double definition(const attention_case *c, const double *x, const double *grad_o,
                         int64_t head)
{
    const hr_attention_attr *a = &c->attr;
    const int64_t w = a->head_width, block = a->mask.block;
    double loss = 0, p[64];
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t begin = c->begins ? c->begins[i] : 0;
        const hr_random_row row = hr_random_row_of(
            hr_random_stream_of(7, 5, a->site, (uint32_t)head), (uint32_t)(c->row_first / a->T),
            (uint32_t)i);
        double total = 0;
        for (int64_t j = begin; j <= i; j++) {
            const int64_t apart = (i - begin) / block - (j - begin) / block;
            double score = 0;
            const bool near = apart <= a->mask.window;
            const bool column = (j - begin) / block % a->mask.stride == 0;
            const bool kept[] = { true, near, column || apart == 0, near || column || apart == 0,
                                  i - j < a->mask.window };
            for (int64_t e = 0; e < w; e++)
                score += x[i * a->q_width + a->q_offset + head * a->q_head_stride + e] *
                         x[j * a->q_width + a->k_offset + head * a->k_head_stride + e];
            p[j] = kept[a->mask.kind] ? exp((double)a->scale * score) : 0;
            total += p[j];
        }
        for (int64_t j = begin; j <= i; j++) {
            const uint32_t bits = hr_random_element(&row, (uint64_t)(j - begin));
            const bool dropped = bits < hr_random_threshold((double)a->dropout);
            const double weight = dropped ? 0 : p[j] / total / (1 - (double)a->dropout);
            for (int64_t e = 0; e < w; e++)
                loss += weight * grad_o[(i * a->H + head) * w + e] *
                        x[j * a->q_width + a->v_offset + head * a->v_head_stride + e];
        }
    }
    return loss;
}

static void reference_gradients_match_finite_differences(void **state)
{
    static const int32_t begins[21] = { 0, 0, 0, 3,  3,  3,  3,  3,  3,  3, 3,
                                        3, 3, 3, 14, 15, 15, 15, 15, 15, 15 };
    const double step = 1e-4;
    (void)state;
    for (int round = 0; round < 10; round++) {
        const int kind = round % 5;
        case_random random = { .seed = seed + 3 };
        attention_case c = case_of(21, 2, 2, 5, true, 0);
        attention_tensors t;
        double x[21 * 30], grad_o[21 * 10];
        c.attr.mask = (hr_attention_mask){ kind, 4, kind == HR_PATTERN_SLIDING ? 6 : 1, 3 };
        c.attr.dropout = 0.3f;
        c.row_first = 42;
        c.begins = round < 5 ? NULL : begins;
        case_open(&c, &t, random);
        case_run(&c, &t, 0, 1);
        for (int64_t i = 0; i < t.count[CASE_Q]; i++) x[i] = case_get(&c, &t, CASE_Q, i);
        for (int64_t i = 0; i < t.count[CASE_GRAD_O]; i++)
            grad_o[i] = case_get(&c, &t, CASE_GRAD_O, i);
        for (int64_t i = 0; i < t.count[CASE_Q]; i++) {
            const double at = x[i];
            double loss[2] = { 0 };
            for (int side = 0; side < 2; side++) {
                x[i] = side ? at + step : at - step;
                for (int64_t head = 0; head < 2; head++)
                    loss[side] += definition(&c, x, grad_o, head);
            }
            x[i] = at;
            const double slope = (loss[1] - loss[0]) / (2 * step);
            if (!(fabs(case_get(&c, &t, CASE_DQ, i) - slope) < 2e-6))
                fail_msg("pattern %d element %d: %g, slope %g", kind, (int)i,
                         case_get(&c, &t, CASE_DQ, i), slope);
        }
        case_close(&t);
    }
}

static void assert_rows_equal(const attention_case *c, const attention_tensors *a,
                              const attention_tensors *b, int tensor, int64_t rows)
{
    if (!a->at[tensor]) return;
    const int64_t row_bytes = a->count[tensor] / c->rows * case_bytes(c, tensor);
    assert_memory_equal(a->at[tensor], b->at[tensor], (size_t)(rows * row_bytes));
}

/* Runs a check on a few shapes with the reference and every instruction set, in all dtypes. */
static void with_shapes(void (*check)(const attention_case *c, uint32_t mask, case_random random))
{
    case_random random = { .seed = seed + 4 };
    uint32_t masks[5] = { 0 };
    const int count = 1 + rungs(masks + 1);
    for (int i = 0; i < count; i++)
        for (int shape = 0; shape < 6; shape++) {
            attention_case c = case_around(&random, shape % 2 ? 64 : 77, shape < 3 ? 24 : 64);
            c.dtype = case_dtypes[shape % 3];
            c.rows = 2 * c.attr.T + c.attr.T / 3;
            check(&c, masks[i], random);
        }
}

static void check_threads(const attention_case *c, uint32_t mask, case_random random)
{
    attention_tensors one, many;
    case_open(c, &one, random);
    case_run(c, &one, mask, 1);
    for (int32_t threads = 2; threads <= 4; threads++) {
        case_open(c, &many, random);
        case_run(c, &many, mask, threads);
        for (int i = 0; i < CASE_TENSORS; i++) assert_rows_equal(c, &one, &many, i, c->rows);
        case_close(&many);
    }
    case_close(&one);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    with_shapes(check_threads);
}

static void check_cuts(const attention_case *c, uint32_t mask, case_random random)
{
    attention_tensors whole, cut;
    const int64_t T = c->attr.T;
    case_open(c, &whole, random);
    case_open(c, &cut, random);
    case_run(c, &whole, mask, 1);
    for (int64_t first = 0; first < c->rows; first += T)
        for (int backward = 0; backward < 2; backward++)
            case_call(c, &cut, backward, mask, 2, first, hr_min(T, c->rows - first));
    for (int i = 0; i < CASE_TENSORS; i++) assert_rows_equal(c, &whole, &cut, i, c->rows);
    case_close(&whole);
    case_close(&cut);
}

static void splitting_the_batch_into_sequences_changes_no_bit(void **state)
{
    (void)state;
    with_shapes(check_cuts);
}

/* `b` has other tokens from `split` on; a third run is a sequence that ends there. */
static void check_causality(const attention_case *c, uint32_t mask, case_random random)
{
    attention_tensors a, b, ended;
    attention_case one = *c, early;
    one.rows = c->attr.T;
    early = one;
    early.rows = 1 + case_below(&random, one.rows - 1);
    case_open(&one, &a, random);
    case_open(&one, &b, random);
    case_open(&early, &ended, random);
    for (int i = 0; i < CASE_TENSORS; i++) {
        if (!a.at[i] || !(i <= CASE_V || i == CASE_GRAD_O)) continue;
        const int64_t kept = early.rows * (a.count[i] / one.rows);
        for (int64_t j = kept; j < a.count[i]; j++)
            case_set(&one, &b, i, j, 50 * case_uniform(&random));
        memcpy(ended.at[i], a.at[i], (size_t)(kept * case_bytes(c, i)));
    }
    case_run(&one, &a, mask, 1);
    case_run(&one, &b, mask, 1);
    case_run(&early, &ended, mask, 1);
    for (int i = CASE_O; i < CASE_TENSORS; i++) {
        if (i >= CASE_DK || (i == CASE_DQ && c->fused) || i == CASE_GRAD_O) continue;
        assert_rows_equal(&one, &a, &b, i, early.rows);
        assert_rows_equal(&one, &a, &ended, i, early.rows);
    }
    case_close(&a);
    case_close(&b);
    case_close(&ended);
}

static void later_tokens_change_no_bit_of_earlier_rows(void **state)
{
    (void)state;
    with_shapes(check_causality);
}

/* Sequences of several chunks of queries and ranges of keys: threads that share them change no bit,
 * and the results are those of the reference. */
static void threads_share_long_sequences(void **state)
{
    enum { T = 1300 };
    static int32_t begins[T];
    uint32_t masks[5] = { 0 };
    const int count = 1 + rungs(masks + 1);
    (void)state;
    for (int32_t i = 0, begun = 0; i < T; i++) {
        if (i % 517 == 211 || i % 700 == 30) begun = i;
        begins[i] = begun;
    }
    for (int shape = 0; shape < 6; shape++) {
        attention_case c = case_of(T, shape % 2 ? 3 : 2, 1 + (shape == 4), 16, false, 0);
        attention_tensors want, one, many;
        const case_random random = { .seed = seed + 20 + (uint64_t)shape };
        c.attr.mask.kind = shape % 3 == 2 ? HR_PATTERN_SLIDING : HR_PATTERN_DENSE;
        c.attr.mask.window = 600;
        c.attr.dropout = shape == 3 ? 0.25f : 0;
        c.dtype = shape == 1 ? HR_BF16 : HR_F32;
        c.begins = shape < 3 ? NULL : begins;
        case_open(&c, &want, random);
        case_run(&c, &want, 0, 1);
        for (int i = 1; i < count; i++) {
            case_open(&c, &one, random);
            case_run(&c, &one, masks[i], 1);
            case_close_to(&c, &one, &want, c.dtype == HR_BF16 ? 6e-3 : 1e-5);
            for (int32_t threads = 2; threads <= 7; threads += 1 + threads / 3) {
                case_open(&c, &many, random);
                case_run(&c, &many, masks[i], threads);
                for (int k = 0; k < CASE_TENSORS; k++) assert_rows_equal(&c, &one, &many, k, T);
                case_close(&many);
            }
            case_close(&one);
        }
        case_close(&want);
    }
}

/* The parts of a sequence, one after the other, have the bits of the whole. */
static void parts_of_a_sequence_have_the_bits_of_the_whole(void **state)
{
    enum { T = 1300 };
    static const int64_t sizes[] = { 512, 1024 };
    static int32_t begins[T];
    uint32_t masks[5] = { 0 };
    const int count = 1 + rungs(masks + 1);
    (void)state;
    for (int32_t i = 0, begun = 0; i < T; i++) {
        if (i % 517 == 211 || i % 700 == 30) begun = i;
        begins[i] = begun;
    }
    for (int shape = 0; shape < 8; shape++) {
        attention_case c = case_of(T, 4, 2, shape % 2 ? 16 : 24, false, 3);
        attention_tensors whole, parts;
        hr_guard guard;
        const case_random random = { .seed = seed + 40 + (uint64_t)shape };
        const int64_t size = sizes[shape % 2], bytes = 2 * 2 * T * 32 * 4;
        c.attr.mask.kind = shape % 5;
        if (c.attr.mask.kind == HR_PATTERN_SLIDING) c.attr.mask.window = 300;
        c.attr.dropout = shape == 3 ? 0.25f : 0;
        c.dtype = shape % 3 == 1 ? HR_BF16 : HR_F32;
        c.row_first = 2 * T;
        c.begins = shape < 5 ? NULL : begins;
        for (int i = shape < 2 ? 0 : 1; i < count; i++) {
            float *sums = hr_guard_open(&guard, bytes);
            memset(sums, 0xff, (size_t)bytes);
            case_open(&c, &whole, random);
            case_open(&c, &parts, random);
            case_run(&c, &whole, masks[i], 2);
            for (int64_t first = 0; first < T; first += size)
                case_call_part(&c, &parts, false, masks[i], 1 + shape % 3, first,
                               first + size < T ? size : T - first, sums);
            for (int64_t first = 0; first < T; first += size)
                case_call_part(&c, &parts, true, masks[i], 1 + shape % 4, first,
                               first + size < T ? size : T - first, sums);
            for (int k = 0; k < CASE_TENSORS; k++) assert_rows_equal(&c, &whole, &parts, k, T);
            case_close(&parts);
            case_close(&whole);
            hr_guard_close(&guard);
        }
    }
}

/* Forward packs all keys of short sequences, and a chunk of those of long ones: with the same
 * bits. */
static void long_sequences_have_the_bits_of_short_ones(void **state)
{
    enum { SHORT = 4000, LONG = 4200 };
    uint32_t masks[5] = { 0 };
    const int count = 1 + rungs(masks + 1);
    (void)state;
    for (int i = 2; i < 2 * count; i++) {
        attention_case c = case_of(LONG, 1, 1, 16, false, 0);
        attention_tensors all, some;
        const case_random random = { .seed = seed + 30 };
        c.dtype = i % 2 ? HR_BF16 : HR_F32;
        c.attr.mask.kind = i % 4 < 2 ? HR_PATTERN_SLIDING : HR_PATTERN_MIXED;
        c.attr.mask.window = i % 4 < 2 ? 1000 : 1;
        case_open(&c, &all, random);
        case_open(&c, &some, random);
        case_call(&c, &all, false, masks[i / 2], 3, 0, LONG);
        c.attr.T = SHORT;
        case_call(&c, &some, false, masks[i / 2], 1, 0, SHORT);
        assert_rows_equal(&c, &all, &some, CASE_O, SHORT);
        assert_rows_equal(&c, &all, &some, CASE_LSE, SHORT);
        case_close(&all);
        case_close(&some);
    }
}

/* Sets keys to NaN that are more than 128 tokens outside the window: they must not be read. */
static void keys_far_outside_a_window_are_not_read(void **state)
{
    enum { T = 700, WINDOW = 100, LOST = 250, CLEAR = LOST + WINDOW + 128 };
    uint32_t masks[5] = { 0 };
    const int count = 1 + rungs(masks + 1);
    (void)state;
    for (int i = 0; i < 2 * count; i++) {
        attention_case c = case_of(T, 2, 1, 16, false, 0);
        attention_tensors whole, lost;
        c.dtype = i % 2 ? HR_BF16 : HR_F32;
        c.attr.mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 64, WINDOW, 1 };
        case_open(&c, &whole, (case_random){ .seed = seed + 7 });
        case_open(&c, &lost, (case_random){ .seed = seed + 7 });
        for (int64_t j = 0; j < LOST * 16; j++) {
            case_set(&c, &lost, CASE_K, j, NAN);
            case_set(&c, &lost, CASE_V, j, NAN);
        }
        case_run(&c, &whole, masks[i / 2], 1);
        case_run(&c, &lost, masks[i / 2], 1);
        static const int rows[] = { CASE_O, CASE_LSE, CASE_DQ };
        for (int k = 0; k < 3; k++) {
            const int64_t bytes = whole.count[rows[k]] / T * case_bytes(&c, rows[k]);
            assert_memory_equal((char *)lost.at[rows[k]] + CLEAR * bytes,
                                (char *)whole.at[rows[k]] + CLEAR * bytes,
                                (size_t)((T - CLEAR) * bytes));
        }
        assert_true(isfinite(case_get(&c, &lost, CASE_O, CLEAR * 32)));
        case_close(&whole);
        case_close(&lost);
    }
}

/* Without dropout a document has the same bits as it has alone. */
static void check_documents(const attention_case *c, uint32_t mask, case_random random)
{
    attention_case apart = *c;
    attention_tensors all, alone;
    int32_t begins[256];
    apart.attr.dropout = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        const bool starts = i % c->attr.T == 0 || case_below(&random, 4) == 0;
        begins[i] = starts ? (int32_t)(i % c->attr.T) : begins[i - 1];
        if (i > 1 && case_below(&random, 3)) begins[i] = i % c->attr.T ? begins[i - 1] : 0;
    }
    apart.begins = begins;
    case_open(&apart, &all, random);
    case_open(&apart, &alone, random);
    case_run(&apart, &all, mask, 1 + (int32_t)case_below(&random, 3));
    apart.begins = NULL;
    for (int64_t first = 0, last; first < c->rows; first = last) {
        const int64_t start = first / c->attr.T * c->attr.T;
        for (last = first + 1; last < c->rows && last % c->attr.T; last++)
            if (begins[last] == last - start) break;
        apart.attr.T = last - first;
        apart.row_first = -first;
        for (int backward = 0; backward < 2; backward++)
            case_call(&apart, &alone, backward, mask, 1, first, last - first);
    }
    for (int i = 0; i < CASE_TENSORS; i++) assert_rows_equal(c, &all, &alone, i, c->rows);
    case_close(&all);
    case_close(&alone);
}

static void separate_documents_have_the_bits_of_sequences(void **state)
{
    (void)state;
    with_shapes(check_documents);
}

static void large_scores_stay_finite(void **state)
{
    uint32_t masks[4];
    const int count = rungs(masks);
    (void)state;
    attention_case c = case_of(70, 1, 1, 16, true, 0);
    c.attr.scale = 400;
    for (int i = 0; i < count; i++)
        for (int type = 0; type < 3; type++) {
            attention_tensors t;
            c.dtype = case_dtypes[type];
            case_open(&c, &t, (case_random){ .seed = seed + 5 });
            case_run(&c, &t, masks[i], 1);
            for (int tensor = CASE_O; tensor < CASE_TENSORS; tensor++)
                for (int64_t j = 0; j < t.count[tensor]; j++)
                    assert_true(isfinite(case_get(&c, &t, tensor, j)));
            case_close(&t);
        }
}

static void a_call_without_rows_writes_nothing(void **state)
{
    attention_case c = case_of(64, 2, 1, 16, false, 0);
    attention_tensors t;
    (void)state;
    case_open(&c, &t, (case_random){ .seed = seed });
    case_call(&c, &t, false, hr_cpu_detect(), 2, 0, 0);
    case_call(&c, &t, true, hr_cpu_detect(), 2, 0, 0);
    assert_true(isnan(case_get(&c, &t, CASE_O, 0)) && isnan(case_get(&c, &t, CASE_DQ, 0)));
    case_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rung_agrees_with_the_reference),
        cmocka_unit_test(every_pattern_is_computed_on_every_rung),
        cmocka_unit_test(a_sliding_window_of_any_length_works_on_every_rung),
        cmocka_unit_test(pairs_counts_the_unmasked_pairs),
        cmocka_unit_test(reference_gradients_match_finite_differences),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(threads_share_long_sequences),
        cmocka_unit_test(parts_of_a_sequence_have_the_bits_of_the_whole),
        cmocka_unit_test(long_sequences_have_the_bits_of_short_ones),
        cmocka_unit_test(splitting_the_batch_into_sequences_changes_no_bit),
        cmocka_unit_test(separate_documents_have_the_bits_of_sequences),
        cmocka_unit_test(later_tokens_change_no_bit_of_earlier_rows),
        cmocka_unit_test(keys_far_outside_a_window_are_not_read),
        cmocka_unit_test(large_scores_stay_finite),
        cmocka_unit_test(a_call_without_rows_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
