/* SPDX-License-Identifier: Apache-2.0 */
/* The gated activation: the reference against the definition in long double, and its backward half
 * against differences of that; every rung against the reference, apart and in every place that the
 * contract allows; far out and at what is no number; cuts; and what the builder makes of it. */
#include <stdlib.h>

#include "graph/builder.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu_build.h"
#include "ops/list.h"
#include "ops/passes.h"

enum { SEED = 909, ARRAYS = 3 /* dy, gate, up */ };

static const hr_glu_act acts[] = { HR_GLU_SILU, HR_GLU_GELU_TANH };

/* The definition as the literature writes it; far below 0 the second takes 1 from 1. */
static long double act_at(hr_glu_act act, long double x)
{
    if (act == HR_GLU_SILU) return x / (1 + expl(-x));
    return x / 2 * (1 + tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
}

static hr_call forward_call(const hr_kernels *kernels, const hr_glu_attr *attr, int64_t rows,
                            hr_dtype dtype, void *gate, void *up, void *y)
{
    return (hr_call){ .in = { gate, up },
                      .out = { y },
                      .attr = attr,
                      .kernels = kernels,
                      .rows = rows,
                      .dtype = dtype };
}

static void the_reference_is_the_definition_and_its_derivative(void **unused)
{
    enum { COUNT = 4001 };
    (void)unused;
    hr_kernels ref;
    hr_glu_kernels_fill(&ref.glu, 0);
    for (int32_t a = 0; a < 2; a++) {
        const hr_glu_attr attr = { COUNT, acts[a] };
        uint64_t state = start(SEED);
        float *dy = take_random(COUNT, HR_F32, 1, &state);
        float *up = take_random(COUNT, HR_F32, 1, &state), *gate = take(COUNT * 4);
        float *y = take_poisoned(COUNT * 4), *dgate = take_poisoned(COUNT * 4);
        float *dup = take_poisoned(COUNT * 4);
        for (int32_t i = 0; i < COUNT; i++) gate[i] = (float)(i - COUNT / 2) / 100;
        hr_call call = forward_call(&ref, &attr, 1, HR_F32, gate, up, y);
        run_threads(&call, hr_glu_run, 1, 1);
        call = (hr_call){
            .in = { dy, gate, up }, .out = { dgate, dup }, .attr = &attr, .kernels = &ref, .rows = 1
        };
        run_threads(&call, hr_glu_bwd_run, 1, 1);
        for (int32_t i = 0; i < COUNT; i++) {
            const long double x = gate[i], step = 1e-5L, value = act_at(attr.act, x);
            const long double slope = (act_at(attr.act, x + step) - act_at(attr.act, x - step)) /
                                      (2 * step);
            assert_true(fabsl(y[i] - value * up[i]) <= 1e-7L * fabsl(value * up[i]) + 1e-16L);
            assert_true(fabsl(dup[i] - value * dy[i]) <= 1e-7L * fabsl(value * dy[i]) + 1e-16L);
            assert_true(fabsl(dgate[i] - slope * dy[i] * up[i]) <=
                        1e-7L * fabsl(slope * dy[i] * up[i]) + 1e-9L);
        }
        release_all();
    }
}

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_the_definition_and_its_derivative),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
