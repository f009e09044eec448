/* SPDX-License-Identifier: Apache-2.0 */
/* plan/cost_guess.c - rates for a machine that nobody measured.
 *
 * Products at what the kernels of a rung reach on the machines they were written on, a pass over
 * memory at what a core and its memory gave there. Good enough to rank plans, wrong by two or more
 * in seconds: `headroom calibrate` replaces it. */
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "plan/cost.h"

/* Attoseconds for a FLOP of one thread: fp32 and bf16 products, and attention's. */
typedef struct {
    int64_t product_as[2], attention_as[2];
} rung_rates;

static rung_rates rates_of_rung(uint32_t cpu_mask)
{
    if (cpu_mask & HR_CPU_AMX) return (rung_rates){ { 6200000, 1050000 }, { 7500000, 2400000 } };
    if (cpu_mask & HR_CPU_AVX512BF16)
        return (rung_rates){ { 6200000, 4000000 }, { 7500000, 6000000 } };
    if (cpu_mask & HR_CPU_AVX512) return (rung_rates){ { 6200000, 7500000 }, { 7500000, 9000000 } };
    if (cpu_mask & HR_CPU_AVX2)
        return (rung_rates){ { 12500000, 15000000 }, { 15000000, 18000000 } };
    return (rung_rates){ { 600000000, 800000000 }, { 600000000, 800000000 } };
}

enum {
    CALL_PS = 3000000,   /* three microseconds to wake the threads and wait for the last */
    BYTE_AS = 100000000, /* of one thread: 10 GB/s is what a pass with a little work reaches */
    ITEM_AS = 200000000, /* an exponential, a rotation's overhead */
    MEMORY_THREADS = 8,  /* more do not make memory faster */
    VECTOR_PASSES = 4    /* a pass without vectors takes so many times as long */
};

static hr_rate guess(const hr_op *op, int64_t flop_as, int64_t item_as, int64_t byte_as)
{
    hr_rate rate = { .call_ps = CALL_PS };
    if (op->flops) rate.unit_as[HR_TERM_FLOPS] = flop_as;
    if (op->items) rate.unit_as[HR_TERM_ITEMS] = item_as;
    for (int32_t i = 0; op->in[i]; i++) rate.unit_as[HR_TERM_IN + i] = byte_as;
    for (int32_t k = 0; op->out[k]; k++) {
        rate.unit_as[HR_TERM_OUT + k] = byte_as;
        if (op->out[k] == 'a' || op->out[k] == 'A') rate.unit_as[HR_TERM_START] = byte_as;
    }
    /* A lookup touches a row a token, not the table. */
    if (strncmp(op->name, "embed", 5)) return rate;
    if (op->out[0] == 'a') {
        rate.unit_as[HR_TERM_OUT] = rate.unit_as[HR_TERM_OUT + 1] = 0;
    } else {
        rate.unit_as[HR_TERM_IN + 1] = rate.unit_as[HR_TERM_IN + 2] = 0;
    }
    return rate;
}

void hr_rates_guess(const struct hr_op *const *ops, int32_t op_count, uint32_t cpu_mask,
                    int32_t threads, hr_rates *rates)
{
    const rung_rates rung = rates_of_rung(cpu_mask);
    const int64_t slower = cpu_mask & HR_CPU_AVX2 ? 1 : VECTOR_PASSES;
    const int64_t byte_as = slower * (int64_t)BYTE_AS / hr_min(hr_max(threads, 1), MEMORY_THREADS);
    memset(rates, 0, sizeof *rates);
    rates->threads = (int32_t)hr_max(threads, 1);
    for (int32_t i = 0; i < op_count && i < HR_RATE_OPS_MOST; i++) {
        if (ops[i]->host) continue; /* reads and reports are no work of the step's */
        const bool attention = !strncmp(ops[i]->name, "attention", 9);
        for (int32_t dtype = 0; dtype < 2; dtype++) {
            const int64_t flop_as = attention ? rung.attention_as[dtype] : rung.product_as[dtype];
            rates->op[i][dtype] = guess(ops[i], flop_as / rates->threads,
                                        slower * (int64_t)ITEM_AS / rates->threads, byte_as);
        }
    }
}
