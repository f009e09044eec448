/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu_rates.c - typical rates per instruction set, for machines without calibration.
 *
 * Matrix products have the speed of each rung's kernels on the machine they were developed on; a
 * pass over memory has the speed of one core and its memory there. This ranks plans well enough,
 * but absolute times may be wrong by a factor of two or more: `headroom calibrate` replaces these
 * rates. */
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "graph/rates.h"
#include "ops/cpu.h"

_Static_assert((int)HR_OP_COUNT <= (int)HR_RATE_OPS_MOST, "every operation has its rates");

/* Attoseconds per FLOP of one thread: fp32 and bf16 matrix products, and those of attention. */
typedef struct {
    int64_t product_as[HR_COMPUTES], attention_as[HR_COMPUTES];
} rung_rates;

static rung_rates rates_of_rung(uint32_t cpu_mask)
{
    if (cpu_mask & HR_CPU_AMX) return (rung_rates){ { 6200000, 1050000 }, { 7500000, 2400000 } };
    if (cpu_mask & HR_CPU_AVX512BF16)
        return (rung_rates){ { 8400000, 4200000 }, { 11000000, 6000000 } }; /* Zen 4 */
    if (cpu_mask & HR_CPU_AVX512) return (rung_rates){ { 6200000, 7500000 }, { 7500000, 9000000 } };
    if (cpu_mask & HR_CPU_AVX2)
        return (rung_rates){ { 12500000, 15000000 }, { 15000000, 18000000 } };
    return (rung_rates){ { 600000000, 800000000 }, { 600000000, 800000000 } };
}

enum {
    CALL_PS = 3000000,   /* three microseconds to wake all threads and wait for the last */
    BYTE_AS = 100000000, /* of one thread: 10 GB/s, a pass over memory with little arithmetic */
    MEMORY_THREADS = 8,  /* more threads do not add bandwidth */
    VECTOR_PASSES = 4    /* slowdown of a pass without vector instructions */
};

/* Picoseconds per item of one thread, for each kind of item, by prefix of the operation's name. The
 * first match applies. */
static const struct {
    const char *name;
    int64_t ps[HR_ITEMS_MAX];
} items_guess[] = {
    { "linear_dw", { 200, 150, 120, 200 } },
    { "linear", { 200, 400, 100, 100000 } },
    { "attention", { 200, 300, 4, 0 } },
    { "choose", { 400, 200, 0, 0 } },
    { "embed", { 0 } },             /* included in the bytes written */
    { "norm", { 0 } },              /* with or without mean: a pass over memory */
    { "", { 200, 200, 200, 200 } }, /* an exponential, the overhead of a rotation */
};

static const int64_t *items_of(const hr_op *op)
{
    int32_t i = 0;
    while (strncmp(op->name, items_guess[i].name, strlen(items_guess[i].name))) i++;
    return items_guess[i].ps;
}

/* Whether the products of an operation have the rate of attention: small ones, between which other
 * work is done. */
static bool is_like_attention(const hr_op *op)
{
    return !strncmp(op->name, "attention", 9) || !strcmp(op->name, "choose") ||
           !strncmp(op->name, "compress", 8);
}

/* Items take `slower` times as long without vector instructions. */
static hr_rate guess(const hr_backend *backend, int32_t index, int64_t flop_as, int64_t byte_as,
                     int64_t slower, int64_t threads)
{
    const hr_op *op = backend->ops[index];
    hr_rate rate = { .call_ps = CALL_PS };
    if (op->flops) rate.unit_as[HR_TERM_FLOPS] = flop_as;
    if (backend->facts[index]->items)
        for (int32_t i = 0; i < HR_ITEMS_MAX; i++)
            rate.unit_as[HR_TERM_ITEMS + i] = slower * items_of(op)[i] * 1000000 / threads;
    for (int32_t i = 0; op->in[i]; i++) rate.unit_as[HR_TERM_IN + i] = byte_as;
    for (int32_t k = 0; op->out[k]; k++) {
        rate.unit_as[HR_TERM_OUT + k] = byte_as;
        if (op->out[k] == 'a' || op->out[k] == 'A') rate.unit_as[HR_TERM_START] = byte_as;
    }
    return rate;
}

void hr_cpu_guess(uint32_t features, hr_rates *rates)
{
    const hr_backend *backend = rates->backend;
    const rung_rates rung = rates_of_rung(features);
    const int64_t threads = rates->threads;
    const int64_t slower = features & HR_CPU_AVX2 ? 1 : VECTOR_PASSES;
    const int64_t byte_as = slower * (int64_t)BYTE_AS / hr_min(threads, MEMORY_THREADS);
    for (int32_t i = 0; i < backend->op_count && i < HR_RATE_OPS_MOST; i++) {
        /* host steps are not part of the step time */
        if (backend->ops[i]->host || !backend->facts[i]) continue;
        const bool attention = is_like_attention(backend->ops[i]);
        for (int32_t dtype = 0; dtype < HR_COMPUTES; dtype++) {
            const int64_t flop_as = attention ? rung.attention_as[dtype] : rung.product_as[dtype];
            rates->op[i][dtype] = guess(backend, i, flop_as / threads, byte_as, slower, threads);
        }
    }
}
