/* SPDX-License-Identifier: Apache-2.0 */
/* Dequantize: every f16 and every E4M3 number on every instruction set, in both dtypes, against
 * plain arithmetic, and that against PyTorch; the scale of each element in every layout; threads
 * change nothing. */
#include "base/bf16.h"
#include "ops/dequantize/dequantize.h"
#include "ops/passes.h"
#include "oracles/formats.h"
#include "support/e4m3.h"
#include "support/half.h"

enum { SEED = 808, HALVES = 1 << 16, CODES = 256 };

static float value_of(hr_dtype from, const void *w, int64_t i)
{
    return from == HR_F16 ? half_value(((const uint16_t *)w)[i])
                          : e4m3_value(((const uint8_t *)w)[i]);
}

static void same_number(const void *y, int64_t i, hr_dtype to, float expected)
{
    const float got = hr_element_get(y, i, to);
    if (to == HR_BF16) expected = hr_bf16_to_f32(hr_bf16_from_f32(expected));
    if (isnan(expected) ? isnan(got) : !memcmp(&got, &expected, sizeof got)) return;
    fail_msg("element %lld: %.9g, expected %.9g", (long long)i, (double)got, (double)expected);
}

/* FNV-1a of the numbers as fp32. */
static uint64_t hash_of(hr_dtype from, const void *w, int64_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < count; i++) {
        const float value = value_of(from, w, i);
        uint32_t bits = 0x7fc00000;
        if (!isnan(value)) memcpy(&bits, &value, sizeof bits);
        for (int32_t b = 0; b < 4; b++) hash = (hash ^ (bits >> 8 * b & 255)) * 0x100000001b3;
    }
    return hash;
}

static void every_number_is_exact(uint32_t mask)
{
    static const hr_dtype from[] = { HR_F16, HR_F8_E4M3 };
    static const float scales[] = { 1, 0.0123f, 3e5f, 0x1p-126f };
    static uint16_t halves[HALVES];
    static uint8_t codes[CODES];
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t i = 0; i < HALVES; i++) halves[i] = (uint16_t)i;
    for (int32_t i = 0; i < CODES; i++) codes[i] = (uint8_t)i;
    assert_true(hash_of(HR_F16, halves, HALVES) == ORACLE_F16_HASH);
    assert_true(hash_of(HR_F8_E4M3, codes, CODES) == ORACLE_E4M3_HASH);
    for (int32_t f = 0; f < 2; f++)
        for (int32_t t = 0; t < 2; t++)
            for (int32_t s = 0; s < (f ? 4 : 1); s++) {
                const int64_t count = f ? CODES : HALVES;
                const void *w = f ? (const void *)codes : halves;
                void *y = take_poisoned(count * hr_dtype_bytes(activations[t]));
                kernels.dequantize.span(w, y, count, scales[s], from[f], activations[t]);
                for (int64_t i = 0; i < count; i++)
                    same_number(y, i, activations[t], value_of(from[f], w, i) * scales[s]);
                release_all();
            }
    float *y = take_poisoned(HALVES * 4);
    kernels.dequantize.span(halves, y, HALVES, 1, HR_BF16, HR_F32);
    for (int64_t i = 0; i < HALVES; i++) same_number(y, i, HR_F32, hr_bf16_to_f32(halves[i]));
    release_all();
}

/* A matrix [K, N] with random elements and scales. `turned`: the file has [N, K]. */
static void compare_matrix(const hr_kernels *kernels, hr_dtype from, hr_dtype to, hr_layout layout,
                           int64_t K, int64_t N, bool turned, uint64_t *state)
{
    enum { BLOCK = 128 };
    const bool scaled = from == HR_F8_E4M3;
    const int64_t count = hr_layout_elements(layout, K, N);
    const int64_t down = (K + BLOCK - 1) / BLOCK, across = (N + BLOCK - 1) / BLOCK;
    const hr_dequantize_attr attr = { .K = K,
                                      .N = N,
                                      .block = { scaled * BLOCK, scaled * BLOCK },
                                      .scale_stride = { turned ? 1 : across, turned ? down : 1 },
                                      .from = (int32_t)from,
                                      .to = (int32_t)to,
                                      .layout = (int32_t)layout };
    uint8_t *w = take(count * hr_dtype_bytes(from));
    float *scales = take_random(down * across, HR_F32, 1, state);
    memset(w, 0, (size_t)(count * hr_dtype_bytes(from)));
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            const int64_t at = hr_layout_index(layout, K, N, k, n);
            const uint16_t bits = (uint16_t)(hr_random_mix(++*state) & 0xbbff);
            if (from == HR_F16) memcpy(w + 2 * at, &bits, sizeof bits);
            else w[at] = (uint8_t)((bits & 0x7f) == E4M3_NAN ? 0 : bits);
        }
    for (int64_t i = 0; i < down * across; i++) scales[i] = fabsf(scales[i]);
    void *first = NULL;
    for (int32_t threads = 1; threads <= 3; threads++) {
        void *y = take_poisoned(count * hr_dtype_bytes(to));
        hr_call call = {
            .in = { w, scaled ? scales : NULL }, .out = { y }, .attr = &attr, .kernels = kernels
        };
        run_threads(&call, hr_dequantize_run, 1, threads);
        if (first) assert_same_bits(y, first, count * hr_dtype_bytes(to));
        else first = y;
    }
    int64_t inside = 0, zeros = 0;
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++, inside++) {
            const int64_t at = hr_layout_index(layout, K, N, k, n);
            const int64_t block = turned ? n / BLOCK * down + k / BLOCK
                                         : k / BLOCK * across + n / BLOCK;
            same_number(first, at, to, value_of(from, w, at) * (scaled ? scales[block] : 1));
            zeros += value_of(from, w, at) == 0;
        }
    for (int64_t i = 0; i < count; i++) zeros -= hr_element_get(first, i, to) == 0;
    assert_true(count - inside + zeros <= 0); /* the padding is zero */
    release_all();
}

static void every_element_has_the_scale_of_its_block(uint32_t mask)
{
    static const struct {
        hr_layout layout;
        int64_t K, N;
    } cases[] = { { HR_PANEL, 1, 1 },          { HR_PANEL, 300, 260 },  { HR_PANEL, 128, 33 },
                  { HR_PANEL_PAIR, 301, 260 }, { HR_PANEL_PAIR, 5, 7 }, { HR_PANEL_PAIR, 256, 128 },
                  { HR_ROWS, 300, 261 },       { HR_ROWS, 1, 129 } };
    uint64_t state = start(SEED);
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t turned = 0; turned < 2; turned++)
            for (int32_t t = 0; t < 2; t++) {
                compare_matrix(&kernels, HR_F16, activations[t], cases[i].layout, cases[i].K,
                               cases[i].N, turned, &state);
                compare_matrix(&kernels, HR_F8_E4M3, activations[t], cases[i].layout, cases[i].K,
                               cases[i].N, turned, &state);
            }
}

ON_RUNGS(every_number_is_exact)
ON_RUNGS(every_element_has_the_scale_of_its_block)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(every_number_is_exact),
        TEST_RUNGS(every_element_has_the_scale_of_its_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
