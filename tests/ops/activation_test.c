/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-alone activation: it follows its definition, and is bit-identical to the activation of
 * a product with every instruction set. */
#include "ops/activation/activation.h"
#include "ops/activation/activation_scalar.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"
#include "ops/passes.h"

enum { SEED = 707, ROWS = 5 };

static const hr_act acts[] = { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU, HR_ACT_GELU_TANH };

static void results_match_the_definition(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 24; k++) {
            uint64_t state = start(SEED + (uint64_t)s);
            const hr_linear_attr attr = { 1, odd_sizes[s], 64, acts[k % 4] };
            const hr_dtype dtype = activations[k / 4 % 3];
            const int64_t count = ROWS * attr.N, bytes = count * hr_dtype_bytes(dtype);
            void *pre = take_random(count, dtype, 6, &state), *before = take_copy(pre, bytes);
            void *y = k < 12 ? take_poisoned(bytes) : pre; /* separate, in place */
            hr_call call = { .in = { pre }, .out = { y }, .attr = &attr, .kernels = &kernels };
            call.rows = ROWS;
            call.dtype = dtype;
            run_threads(&call, hr_activation_run, 1, 1 + k % THREADS_MOST);
            for (int64_t i = 0; i < count; i++) {
                const double expected = hr_activate(attr.act, hr_element_get(before, i, dtype));
                assert_true(fabs(hr_element_get(y, i, dtype) - expected) <=
                            rounding(dtype) * fabs(expected) + (dtype == HR_BF16 ? 1e-4 : 1e-6));
            }
            release_all();
        }
}

/* Products with a short reduction, whose results cover all ranges: the curved part, large values,
 * zero, and values so small that instruction sets treat them differently. */
static void a_product_writes_the_same_bits(uint32_t mask)
{
    enum { K = 2, TALL = 77 };
    static const double scales[] = { 1, 3, 1e-3, 1e-19, 1e9 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 60; k++) {
            uint64_t state = start(SEED + (uint64_t)(s * 60 + k));
            const hr_linear_attr attr = { K, odd_sizes[s], 64, acts[k % 4] };
            const hr_dtype dtype = activations[k / 4 % 3];
            const double scale = fmin(scales[k / 12], dtype == HR_F16 ? 100 : 1e9);
            const int64_t count = TALL * attr.N, bytes = count * hr_dtype_bytes(dtype);
            const int64_t words = hr_layout_elements(hr_linear_layout(dtype), K, attr.N);
            const int64_t scratch = hr_linear_cpu.scratch_bytes(&attr, TALL, 1);
            void *pre = take_poisoned(bytes), *y = take_poisoned(bytes);
            void *again = take_poisoned(bytes), *alone = take_poisoned(bytes);
            void *x = take_random(TALL * K, dtype, scale, &state);
            hr_call call = { .in = { x,
                                     take_random(words, hr_product_dtype(dtype), scale, &state) },
                             .out = { y, pre },
                             .attr = &attr,
                             .kernels = &kernels,
                             .scratch = take(scratch),
                             .rows = TALL,
                             .dtype = dtype };
            run_threads(&call, hr_linear_run, 1, 1);
            call.out[0] = alone; /* whether pre is written must not change y */
            call.out[1] = NULL;
            run_threads(&call, hr_linear_run, 1, 1);
            assert_same_bits(alone, y, bytes);
            call.in[0] = pre;
            call.out[0] = again;
            run_threads(&call, hr_activation_run, 1, 3);
            assert_same_bits(again, y, bytes);
            release_all();
        }
}

static void a_product_writes_the_same_bits_on_ref(void **state)
{
    (void)state;
    a_product_writes_the_same_bits((uint32_t)hr_cpu_mask_of("ref"));
}

ON_RUNGS(results_match_the_definition)
ON_RUNG(a_product_writes_the_same_bits, avx2)
ON_RUNG(a_product_writes_the_same_bits, avx512)
ON_RUNG(a_product_writes_the_same_bits, avx512bf16)
ON_RUNG(a_product_writes_the_same_bits, amx)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(results_match_the_definition),
        TEST_RUNGS(a_product_writes_the_same_bits),
        cmocka_unit_test(a_product_writes_the_same_bits_on_avx512bf16),
        cmocka_unit_test(a_product_writes_the_same_bits_on_amx),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
