/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h - shared parts of the tests of memory-bound passes: instruction sets, random arrays that
 * end at an inaccessible page, calls as the executor makes them, comparison. */
#ifndef HR_TESTS_OPS_PASSES_H
#define HR_TESTS_OPS_PASSES_H

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/element.h"
#include "base/random.h"
#include "guard.h"
#include "ops/kernels.h"
#include "require.h"

enum { SIZE_COUNT = 10, THREADS_MOST = 4, ARRAYS_MOST = 64 };

static const int64_t odd_sizes[SIZE_COUNT] = { 1, 2, 15, 16, 17, 31, 33, 100, 512, 513 };
static const hr_dtype activations[3] = { HR_F32, HR_BF16, HR_F16 };

/* Arrays of one case; freed together. */
static hr_guard arrays[ARRAYS_MOST];
static int32_t array_count;

static inline void *take(int64_t bytes)
{
    assert_in_range(array_count, 0, ARRAYS_MOST - 1);
    return hr_guard_open(&arrays[array_count++], bytes);
}

static inline void release_all(void)
{
    while (array_count > 0) hr_guard_close(&arrays[--array_count]);
}

/* Seed of a case; every round of HR_COUNT has its own. */
static int32_t test_round;

static inline uint64_t start(uint64_t seed)
{
    return seed + ((uint64_t)test_round << 32);
}

/* Uniform in [-1, 1). */
static inline double draw(uint64_t *state)
{
    return (double)(int64_t)hr_random_mix(++*state) / 9223372036854775808.0;
}

static inline void *take_random(int64_t count, hr_dtype dtype, double scale, uint64_t *state)
{
    void *array = take(count * hr_dtype_bytes(dtype));
    for (int64_t i = 0; i < count; i++)
        hr_element_set(array, i, dtype, (float)(scale * draw(state)));
    return array;
}

/* All bits set: NaN in every floating-point type. */
static inline void *take_poisoned(int64_t bytes)
{
    return memset(take(bytes), 0xff, (size_t)bytes);
}

static inline void *take_copy(const void *from, int64_t bytes)
{
    void *array = take(bytes);
    if (bytes > 0) memcpy(array, from, (size_t)bytes);
    return array;
}

/* Runs an operation as `threads` threads of a pool would, one after the other. */
static inline void run_threads(hr_call *call, hr_run_fn *run, int32_t phases, int32_t threads)
{
    call->threads = threads;
    for (call->phase = 0; call->phase < phases; call->phase++)
        for (call->thread = threads - 1; call->thread >= 0; call->thread--) run(call);
}

/* |got - expected| <= relative * (|expected| + scale); `scale` is the magnitude of the summands. */
static inline void assert_close(const void *got, const void *expected, int64_t count,
                                hr_dtype dtype, double relative, double scale)
{
    for (int64_t i = 0; i < count; i++) {
        const double a = hr_element_get(got, i, dtype), b = hr_element_get(expected, i, dtype);
        if (fabs(a - b) <= relative * (fabs(b) + scale) || a == b || (isnan(a) && isnan(b)))
            continue;
        fail_msg("element %lld of %lld: %.9g, expected %.9g", (long long)i, (long long)count, a, b);
    }
}

static inline void assert_same_bits(const void *got, const void *expected, int64_t bytes)
{
    if (bytes > 0) assert_memory_equal(got, expected, (size_t)bytes);
}

/* Relative error of rounding to the type. */
static inline double rounding(hr_dtype dtype)
{
    return dtype == HR_BF16 ? 1.0 / 128 : dtype == HR_F16 ? 1.0 / 1024 : 4e-6;
}

/* Defines a test per instruction set: `NAME_on_avx2` and so on call NAME with its CPU feature mask,
 * HR_COUNT times. */
#define ON_RUNG(name, rung) \
    static void name##_on_##rung(void **state) \
    { \
        (void)state; \
        hr_test_require(#rung); \
        for (test_round = 0; test_round < HR_COUNT; test_round++) \
            name((uint32_t)hr_cpu_mask_of(#rung)); \
    }
#define ON_RUNGS(name) \
    ON_RUNG(name, ref) ON_RUNG(name, avx2) ON_RUNG(name, avx512) ON_RUNG(name, avx512bf16)
#define TEST_RUNGS(name) \
    cmocka_unit_test(name##_on_ref), cmocka_unit_test(name##_on_avx2), \
        cmocka_unit_test(name##_on_avx512), cmocka_unit_test(name##_on_avx512bf16)

#endif
