/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cases.h - shapes of attention with their tensors, run through a table of kernels. Every
 * tensor and the scratch end at an inaccessible page; outputs are poisoned first. */
#ifndef HR_TESTS_OPS_ATTENTION_CASES_H
#define HR_TESTS_OPS_ATTENTION_CASES_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/element.h"
#include "base/random.h"
#include "guard.h"
#include "ops/attention/attention.h"
#include "ops/cpu.h"
#include "ops/kernels.h"

/* Random numbers of the tests: a hashed counter. */
typedef struct {
    uint64_t seed, drawn;
} case_random;

static inline uint64_t case_draw(case_random *random)
{
    return hr_random_mix(random->seed ^ hr_random_mix(++random->drawn));
}

static inline int64_t case_below(case_random *random, int64_t count)
{
    return (int64_t)(case_draw(random) % (uint64_t)count);
}

/* In (-1, 1). */
static inline float case_uniform(case_random *random)
{
    return ((float)(case_draw(random) >> 40) + 0.5f) / (float)(1 << 23) - 1;
}

enum {
    CASE_Q,
    CASE_K,
    CASE_V,
    CASE_O,
    CASE_GRAD_O,
    CASE_LSE,
    CASE_DQ,
    CASE_DK,
    CASE_DV,
    CASE_TENSORS
};

static const char *const case_names[] = { "q", "k", "v", "o", "do", "lse", "dq", "dk", "dv" };

typedef struct {
    hr_attention_attr attr;
    hr_dtype dtype;
    int64_t rows, row_first;
    bool fused;
    const int32_t *begins; /* first row of each document [rows]; null: one document per sequence */
} attention_case;

typedef struct {
    void *at[CASE_TENSORS];
    int64_t count[CASE_TENSORS];
    hr_guard guard[CASE_TENSORS];
} attention_tensors;

/* Separate tensors with adjacent heads; or fused: per head q | k | v as in GPT-NeoX if every head
 * has its own keys, otherwise all q, all k, all v. `gap` elements at the end of a row belong to no
 * head. */
static inline attention_case case_of(int64_t T, int32_t H, int32_t G, int32_t head_width,
                                     bool fused, int64_t gap)
{
    const int64_t w = head_width;
    attention_case c = { .attr = { .H = H, .G = G, .head_width = head_width, .T = T },
                         .rows = T,
                         .fused = fused };
    hr_attention_attr *a = &c.attr;
    a->scale = 1 / sqrtf((float)head_width);
    a->mask = (hr_attention_mask){ HR_PATTERN_DENSE, 64, 1, 2 };
    a->site = 3;
    a->q_head_stride = a->k_head_stride = a->v_head_stride = fused && H == G ? 3 * w : w;
    a->k_offset = !fused ? 0 : H == G ? w : H * w;
    a->v_offset = !fused ? 0 : H == G ? 2 * w : (H + G) * w;
    a->q_width = (fused ? H + 2 * G : H) * w + gap;
    a->k_width = a->v_width = fused ? 0 : G * w + gap;
    return c;
}

/* Of activations. */
static const hr_dtype case_dtypes[] = { HR_F32, HR_BF16, HR_F16 };

static inline int64_t case_bytes(const attention_case *c, int tensor)
{
    return tensor == CASE_LSE ? 4 : hr_dtype_bytes(c->dtype);
}

static inline double case_get(const attention_case *c, const attention_tensors *t, int tensor,
                              int64_t i)
{
    return (double)hr_element_get(t->at[tensor], i, tensor == CASE_LSE ? HR_F32 : c->dtype);
}

static inline void case_set(const attention_case *c, attention_tensors *t, int tensor, int64_t i,
                            float value)
{
    hr_element_set(t->at[tensor], i, tensor == CASE_LSE ? HR_F32 : c->dtype, value);
}

/* Tensors that a case does not have stay null. Inputs are random, outputs NaN. */
static inline void case_open(const attention_case *c, attention_tensors *t, case_random random)
{
    const hr_attention_attr *a = &c->attr;
    const int64_t o_width = (int64_t)a->H * a->head_width;
    const int64_t width[] = { a->q_width, a->k_width, a->v_width, o_width,   o_width,
                              a->H,       a->q_width, a->k_width, a->v_width };
    for (int i = 0; i < CASE_TENSORS; i++) {
        const bool input = i <= CASE_V || i == CASE_GRAD_O;
        t->count[i] = c->rows * width[i];
        t->at[i] = NULL;
        if (t->count[i] == 0) continue;
        t->at[i] = hr_guard_open(&t->guard[i], t->count[i] * case_bytes(c, i));
        memset(t->at[i], 0xff, (size_t)(t->count[i] * case_bytes(c, i)));
        for (int64_t j = 0; input && j < t->count[i]; j++)
            case_set(c, t, i, j, case_uniform(&random));
    }
}

static inline void case_close(attention_tensors *t)
{
    for (int i = 0; i < CASE_TENSORS; i++)
        if (t->at[i]) hr_guard_close(&t->guard[i]);
}

/* Calls a run function with `threads` threads, one after the other, over `rows` rows from `first`
 * on. With `sums` they are a part of a sequence. */
static inline void case_call_part(const attention_case *c, attention_tensors *t, bool backward,
                                  uint32_t mask, int32_t threads, int64_t first, int64_t rows,
                                  float *sums)
{
    static const int fwd[] = { CASE_Q, CASE_K, CASE_V };
    static const int bwd[] = { CASE_Q, CASE_K, CASE_V, CASE_O, CASE_GRAD_O, CASE_LSE };
    static const int fwd_out[] = { CASE_O, CASE_LSE }, bwd_out[] = { CASE_DQ, CASE_DK, CASE_DV };
    const int *in = backward ? bwd : fwd, *out = backward ? bwd_out : fwd_out;
    hr_attention_attr attr = c->attr;
    attr.in_parts = sums != NULL;
    const int64_t bytes = backward ? hr_attention_bwd_cpu.scratch_bytes(&attr, rows, threads)
                                   : hr_attention_cpu.scratch_bytes(&attr, rows, threads);
    hr_kernels kernels;
    hr_guard guard;
    hr_call call = { .attr = &attr,
                     .kernels = &kernels,
                     .rows = rows,
                     .row_first = c->row_first + first,
                     .clock = 5,
                     .seed = 7,
                     .dtype = c->dtype,
                     .threads = threads };
    hr_kernels_fill(&kernels, mask);
    for (int i = 0; i < (backward ? 6 : 3); i++) {
        const bool whole = sums && (in[i] == CASE_K || in[i] == CASE_V);
        if (t->at[in[i]])
            call.in[i] = (char *)t->at[in[i]] +
                         (whole ? 0 : first) * (t->count[in[i]] / c->rows) * case_bytes(c, in[i]);
    }
    for (int i = 0; i < (backward ? 3 : 2); i++) {
        const bool whole = sums && out[i] >= CASE_DK;
        if (t->at[out[i]])
            call.out[i] = (char *)t->at[out[i]] + (whole ? 0 : first) *
                                                      (t->count[out[i]] / c->rows) *
                                                      case_bytes(c, out[i]);
    }
    if (backward) call.out[3] = sums;
    if (c->begins) call.in[backward ? 6 : 3] = (void *)(c->begins + first);
    call.scratch = hr_guard_open(&guard, bytes);
    memset(call.scratch, 0xff, (size_t)bytes);
    const int32_t phases = backward ? hr_attention_bwd_phases(&call) : 1;
    for (call.phase = 0; call.phase < phases; call.phase++)
        for (call.thread = 0; call.thread < threads; call.thread++)
            (backward ? hr_attention_bwd_run : hr_attention_run)(&call);
    hr_guard_close(&guard);
}

static inline void case_call(const attention_case *c, attention_tensors *t, bool backward,
                             uint32_t mask, int32_t threads, int64_t first, int64_t rows)
{
    case_call_part(c, t, backward, mask, threads, first, rows, NULL);
}

static inline void case_run(const attention_case *c, attention_tensors *t, uint32_t mask,
                            int32_t threads)
{
    case_call(c, t, false, mask, threads, 0, c->rows);
    case_call(c, t, true, mask, threads, 0, c->rows);
}

static inline double case_norm(const attention_case *c, const attention_tensors *t, int tensor)
{
    double sum = 0;
    for (int64_t i = 0; i < t->count[tensor]; i++)
        sum += case_get(c, t, tensor, i) * case_get(c, t, tensor, i);
    return sqrt(sum);
}

static inline void case_print(const attention_case *c)
{
    const hr_attention_attr *a = &c->attr;
    print_message("T %d rows %d H %d G %d width %d %s %s pattern %d block %d window %d stride %d "
                  "dropout %g\n",
                  (int)a->T, (int)c->rows, a->H, a->G, a->head_width, hr_dtype_name(c->dtype),
                  c->fused ? "fused" : "separate", a->mask.kind, a->mask.block, a->mask.window,
                  a->mask.stride, (double)a->dropout);
}

/* Every tensor of `got` is within `tolerance` of `want` in the 2-norm. Gradients of scores cancel,
 * completely in a row with one key, so their error is measured against dv. The terms of a score
 * cancel too: the error of a log-sum-exp is that of its rounded terms, even if it is small. */
static inline void case_close_to(const attention_case *c, const attention_tensors *got,
                                 const attention_tensors *want, double tolerance)
{
    static const int outputs[] = { CASE_O, CASE_LSE, CASE_DQ, CASE_DK, CASE_DV };
    const double floor = 0.2 * case_norm(c, want, want->at[CASE_DV] ? CASE_DV : CASE_DQ);
    for (int k = 0; k < 5; k++) {
        const int tensor = outputs[k];
        double sum = 0;
        for (int64_t i = 0; i < got->count[tensor]; i++) {
            const double d = case_get(c, got, tensor, i) - case_get(c, want, tensor, i);
            sum += d * d;
        }
        const double scores = 0.05 * sqrt((double)got->count[CASE_LSE]);
        const double size = case_norm(c, want, tensor) + (tensor >= CASE_DQ    ? floor
                                                          : tensor == CASE_LSE ? scores
                                                                               : 1e-3);
        if (sqrt(sum) <= tolerance * size) continue;
        case_print(c);
        fail_msg("%s is %g off, allowed %g of %g", case_names[tensor], sqrt(sum), tolerance, size);
    }
}

/* A random mask for sequences of T. */
static inline hr_attention_mask case_mask(case_random *random, int64_t T)
{
    static const int32_t blocks[] = { 64, 8, 64, 5, 1, 48 };
    hr_attention_mask mask = { .kind = (int32_t)case_below(random, 5) };
    mask.block = blocks[case_below(random, 6)];
    mask.window = (int32_t)case_below(random, 4);
    mask.stride = 1 + (int32_t)case_below(random, 3);
    if (mask.kind == HR_PATTERN_SLIDING) mask.window = 1 + (int32_t)case_below(random, T + 2);
    return mask;
}

/* A random shape with given T and head_width: one to three sequences, the last may be short. */
static inline attention_case case_around(case_random *random, int64_t T, int32_t head_width)
{
    static const int32_t heads[][2] = { { 1, 1 }, { 2, 2 }, { 2, 1 }, { 4, 2 }, { 3, 1 } };
    const int32_t *pair = heads[case_below(random, head_width > 64 || T > 100 ? 3 : 5)];
    attention_case c = case_of(T, pair[0], pair[1], head_width, case_below(random, 2) == 0,
                               case_below(random, 3) == 0 ? 3 : 0);
    c.attr.mask = case_mask(random, T);
    c.attr.dropout = case_below(random, 3) == 0 ? 0.25f : 0;
    c.rows = T + (case_below(random, 2) ? case_below(random, T) : 0);
    c.row_first = T * case_below(random, 3);
    return c;
}

/* Windows around the block sizes of the kernels, for T = 300. */
static const int32_t case_windows[] = { 1,   2,   31,  32,  33,  63,  64, 65,
                                        100, 255, 256, 257, 299, 300, 512 };

enum { CASE_WINDOWS = sizeof case_windows / sizeof *case_windows };

/* Runs a case in all dtypes with each mask and compares it with the reference. */
static inline void case_check(attention_case c, const uint32_t *masks, int mask_count,
                              bool bf16_only, case_random random)
{
    for (int type = bf16_only; type < (bf16_only ? 2 : 3); type++) {
        attention_tensors want, got;
        c.dtype = case_dtypes[type];
        case_open(&c, &want, random);
        case_run(&c, &want, 0, 1);
        for (int i = 0; i < mask_count; i++) {
            case_open(&c, &got, random);
            case_run(&c, &got, masks[i], 1 + i % 3);
            case_close_to(&c, &got, &want, type ? 6e-3 : 1e-5);
            case_close(&got);
        }
        case_close(&want);
    }
}

#endif
