/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kernels/harness.h - one call of an operation with its own arrays, used to compare it with
 * the reference (kernels_test.c) and to time it (bench/kernels_bench.c).
 *
 * Outputs and scratch are poisoned before each compared call. Compared arrays end at an
 * inaccessible page. Timed arrays do not: a masked access that reaches into such a page takes 0.3
 * us, even with those lanes off. tests/kernels/table.h lists the operations. */
#ifndef HR_TESTS_KERNELS_HARNESS_H
#define HR_TESTS_KERNELS_HARNESS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/element.h"
#include "base/random.h"
#include "checkpoint/unpack.h"
#include "guard.h"
#include "ops/activation/activation.h"
#include "ops/adafactor/adafactor.h"
#include "ops/attention/attention.h"
#include "ops/dequantize/dequantize.h"
#include "ops/dropout/dropout.h"
#include "ops/embed/embed.h"
#include "ops/glu/glu.h"
#include "ops/kernels.h"
#include "ops/linear/linear.h"
#include "ops/loss/loss.h"
#include "ops/match/match.h"
#include "ops/modulate/modulate.h"
#include "ops/norm/norm.h"
#include "ops/recurrence/recurrence.h"
#include "ops/rope/rope.h"
#include "ops/update/update.h"

enum { KERNEL_OPERANDS_MOST = 12, KERNEL_TEXT_BYTES = 256, KERNEL_SLACK_BYTES = 4096 };

/* Contents of an array before the call. */
typedef enum {
    KERNEL_POISON,   /* bytes of 0xff: NaN in every type */
    KERNEL_UNIFORM,  /* (-scale, scale) */
    KERNEL_POSITIVE, /* (scale / 2, 3 scale / 2) */
    KERNEL_COLUMNS,  /* positive in even columns, negative in odd ones; `width` columns */
    KERNEL_INDEX,    /* integers of [0, scale); with `width` 3 every third is -1 */
    KERNEL_CONSTANT  /* scale */
} kernel_fill;

/* Comparison of a result: per element, |got - want| <= tolerance (|want| + size); or in the 2-norm,
 * |got - want| <= tolerance (|want| + size sqrt(count)). */
typedef struct {
    bool norm;
    double tolerance, size;
} kernel_bound;

typedef struct {
    hr_dtype dtype;
    int64_t count, bytes;
    kernel_fill fill;
    double scale;
    int64_t width;
    bool output;
    kernel_bound bound;
    hr_guard guard;
    void *at;       /* the array of the call */
    void *before;   /* initial contents of an array that is read and written; else null */
    void *expected; /* for an output: the result of the reference */
    char name[8];   /* "in 2", "out 0" */
} kernel_operand;

typedef struct {
    hr_call call;
    hr_run_fn *run;
    int32_t phases;
    int32_t (*phases_of)(const hr_call *call); /* null: `phases` */
    union {
        hr_linear_attr linear;
        hr_attention_attr attention;
        hr_attention_cached_attr cached;
        hr_norm_attr norm;
        hr_length_attr length;
        hr_magnitude_attr magnitude;
        hr_modulate_attr modulate;
        hr_match_attr match;
        hr_glu_attr glu;
        hr_loss_attr loss;
        hr_embed_attr embed;
        hr_rope_attr rope;
        hr_dropout_attr dropout;
        hr_dequantize_attr dequantize;
        hr_recurrence_attr recurrence;
        hr_sumsq_attr sumsq;
        hr_update_attr update;
        hr_adafactor_attr adafactor;
        hr_unpack unpack;
    } attr;
    /* of the function pointer in hr_kernels; < 0: the mask selects the kernel */
    int64_t kernel_offset;
    kernel_operand operands[KERNEL_OPERANDS_MOST];
    int32_t count;
    int64_t (*scratch_bytes)(const void *attr, int64_t rows, int32_t threads); /* null: none */
    hr_guard scratch_guard;
    bool scratch_taken, timed;
    uint64_t drawn;
} kernel_case;

/* Allocates bytes before an inaccessible page. Timed: aligned bytes, followed by a page that has
 * been written. A masked access that reaches into an untouched page is as slow as a fault. */
static inline void *kernel_take(const kernel_case *c, hr_guard *guard, int64_t bytes)
{
    const int64_t more = c->timed ? hr_round_up(bytes, 64) - bytes + KERNEL_SLACK_BYTES : 0;
    return memset(hr_guard_open(guard, bytes + more), 0, (size_t)(bytes + more));
}

/* Uniform in (-1, 1). */
static inline double kernel_draw(kernel_case *c)
{
    return (double)(int64_t)hr_random_mix(++c->drawn) / 9223372036854775808.0;
}

static inline double kernel_get(const void *array, int64_t i, hr_dtype dtype)
{
    if (dtype == HR_F64) return ((const double *)array)[i];
    if (dtype == HR_I32) return ((const int32_t *)array)[i];
    if (dtype == HR_U8) return ((const uint8_t *)array)[i];
    return (double)hr_element_get(array, i, dtype);
}

static inline void kernel_set(void *array, int64_t i, hr_dtype dtype, double value)
{
    if (dtype == HR_F64) ((double *)array)[i] = value;
    else if (dtype == HR_I32) ((int32_t *)array)[i] = (int32_t)value;
    else if (dtype == HR_U16) ((uint16_t *)array)[i] = (uint16_t)value;
    else if (dtype == HR_F8_E4M3 || dtype == HR_U8) ((uint8_t *)array)[i] = (uint8_t)value;
    else hr_element_set(array, i, dtype, (float)value);
}

static inline void *kernel_copy(const void *array, int64_t bytes)
{
    void *copy = malloc((size_t)bytes + 1);
    if (!copy) abort();
    return memcpy(copy, array, (size_t)bytes);
}

static inline double kernel_value(kernel_case *c, const kernel_operand *o, int64_t i)
{
    const double u = kernel_draw(c);
    switch (o->fill) {
    case KERNEL_POSITIVE: return o->scale * (1 + u / 2);
    case KERNEL_COLUMNS: return o->scale * (1 + u / 2) * (i % o->width % 2 ? -1 : 1);
    case KERNEL_INDEX: return o->width == 3 && i % 3 == 1 ? -1 : floor((u + 1) / 2 * o->scale);
    case KERNEL_CONSTANT: return o->scale;
    default: return o->scale * u;
    }
}

/* ---- building a case: its operands in the order of the operation's contract */

static inline kernel_operand *kernel_add(kernel_case *c, bool output, int32_t slot, hr_dtype dtype,
                                         int64_t count, kernel_fill fill, double scale,
                                         int64_t width)
{
    kernel_operand *o = &c->operands[c->count++];
    if (c->count > KERNEL_OPERANDS_MOST) abort();
    *o = (kernel_operand){ .dtype = dtype,
                           .count = count,
                           .bytes = count * hr_dtype_bytes(dtype),
                           .fill = fill,
                           .scale = scale,
                           .width = width,
                           .output = output };
    snprintf(o->name, sizeof o->name, "%s %d", output ? "out" : "in", (int)slot);
    o->at = kernel_take(c, &o->guard, o->bytes);
    if (fill == KERNEL_POISON) memset(o->at, 0xff, (size_t)o->bytes);
    else
        for (int64_t i = 0; i < count; i++) kernel_set(o->at, i, dtype, kernel_value(c, o, i));
    if (output) c->call.out[slot] = o->at;
    else c->call.in[slot] = o->at;
    return o;
}

static inline void kernel_in(kernel_case *c, int32_t slot, hr_dtype dtype, int64_t count,
                             kernel_fill fill, double scale)
{
    kernel_add(c, false, slot, dtype, count, fill, scale, 0);
}

static inline void kernel_out(kernel_case *c, int32_t slot, hr_dtype dtype, int64_t count,
                              kernel_bound bound)
{
    kernel_add(c, true, slot, dtype, count, KERNEL_POISON, 0, 0)->bound = bound;
}

/* Read and written. */
static inline void kernel_both(kernel_case *c, int32_t slot, hr_dtype dtype, int64_t count,
                               kernel_fill fill, double scale, kernel_bound bound)
{
    kernel_operand *o = kernel_add(c, true, slot, dtype, count, fill, scale, 0);
    o->bound = bound;
    o->before = kernel_copy(o->at, o->bytes);
}

/* A [K, N] matrix in the layout of product weights for this dtype; its padding is 0. */
static inline void kernel_weight(kernel_case *c, int32_t slot, int64_t K, int64_t N)
{
    const hr_layout layout = hr_linear_layout(c->call.dtype);
    const int64_t count = hr_layout_elements(layout, K, N);
    kernel_operand *o = kernel_add(c, false, slot, hr_product_dtype(c->call.dtype), count,
                                   KERNEL_CONSTANT, 0, 0);
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++)
            kernel_set(o->at, hr_layout_index(layout, K, N, k, n), o->dtype, kernel_draw(c));
}

static inline void kernel_close(kernel_case *c)
{
    for (int32_t i = 0; i < c->count; i++) {
        hr_guard_close(&c->operands[i].guard);
        free(c->operands[i].before);
        free(c->operands[i].expected);
    }
    if (c->scratch_taken) hr_guard_close(&c->scratch_guard);
}

/* ---- calling it */

/* Poisons the outputs, restores arrays that are read and written, and allocates scratch. */
static inline void kernel_reset(kernel_case *c, int32_t threads)
{
    for (int32_t i = 0; i < c->count; i++) {
        kernel_operand *o = &c->operands[i];
        if (o->before) memcpy(o->at, o->before, (size_t)o->bytes);
        else if (o->output) memset(o->at, 0xff, (size_t)o->bytes);
    }
    if (!c->scratch_bytes) return;
    const int64_t bytes = hr_round_up(c->scratch_bytes(&c->attr, c->call.rows, threads), 64);
    if (c->scratch_taken) hr_guard_close(&c->scratch_guard);
    c->call.scratch = kernel_take(c, &c->scratch_guard, bytes);
    c->scratch_taken = true;
    memset(c->call.scratch, 0xff, (size_t)bytes);
}

/* Calls the operation as a pool of `threads` threads would, one thread after the other. */
static inline void kernel_call(kernel_case *c, const hr_kernels *kernels, uint32_t mask,
                               int32_t threads)
{
    hr_call *call = &c->call;
    call->attr = &c->attr;
    call->kernels = kernels;
    call->threads = threads;
    if (c->kernel_offset < 0) c->attr.unpack.cpu_mask = mask;
    const int32_t phases = c->phases_of ? c->phases_of(call) : c->phases;
    for (call->phase = 0; call->phase < phases; call->phase++)
        for (call->thread = threads - 1; call->thread >= 0; call->thread--) c->run(call);
}

/* Computes the expected outputs with the reference. */
static inline void kernel_expect(kernel_case *c)
{
    hr_kernels reference;
    hr_kernels_fill(&reference, 0);
    kernel_reset(c, 1);
    kernel_call(c, &reference, 0, 1);
    for (int32_t i = 0; i < c->count; i++)
        if (c->operands[i].output)
            c->operands[i].expected = kernel_copy(c->operands[i].at, c->operands[i].bytes);
}

static inline bool kernel_operand_agrees(const kernel_operand *o, char *why)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < o->count; i++) {
        const double got = kernel_get(o->at, i, o->dtype);
        const double want = kernel_get(o->expected, i, o->dtype);
        const double allowed = o->bound.tolerance * (fabs(want) + o->bound.size);
        apart += (got - want) * (got - want);
        size += want * want;
        if (isfinite(got) && (o->bound.norm || fabs(got - want) <= allowed)) continue;
        snprintf(why, KERNEL_TEXT_BYTES, "%s: element %lld of %lld is %.9g, not %.9g (+- %.1e)",
                 o->name, (long long)i, (long long)o->count, got, want, allowed);
        return false;
    }
    const double allowed = o->bound.tolerance *
                           (sqrt(size) + o->bound.size * sqrt((double)o->count));
    if (!o->bound.norm || sqrt(apart) <= allowed) return true;
    snprintf(why, KERNEL_TEXT_BYTES, "%s: %.3g off in the 2-norm, allowed are %.3g", o->name,
             sqrt(apart), allowed);
    return false;
}

/* Calls the kernels of a mask on poisoned outputs and compares all outputs with the reference.
 * False: `why` [KERNEL_TEXT_BYTES] has the reason. */
static inline bool kernel_agrees(kernel_case *c, const hr_kernels *kernels, uint32_t mask,
                                 int32_t threads, char *why)
{
    kernel_reset(c, threads);
    kernel_call(c, kernels, mask, threads);
    for (int32_t i = 0; i < c->count; i++)
        if (c->operands[i].output && !kernel_operand_agrees(&c->operands[i], why)) return false;
    return true;
}

/* Whether two tables have the same function for this case. */
static inline bool kernel_is_same(const kernel_case *c, const hr_kernels *a, uint32_t a_mask,
                                  const hr_kernels *b, uint32_t b_mask)
{
    if (c->kernel_offset < 0) return !((a_mask ^ b_mask) & HR_CPU_AVX2);
    return !memcmp((const char *)a + c->kernel_offset, (const char *)b + c->kernel_offset,
                   sizeof(void *));
}

#endif
