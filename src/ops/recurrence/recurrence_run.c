/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_run.c - splits stripes of sequences over threads; backward keeps the
 * sums of token blocks in scratch, then adds them per channel in block order. */
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/recurrence/recurrence.h"

enum {
    STRIPE = HR_RECURRENCE_STRIPE,
    BLOCK_STATES = HR_RECURRENCE_BLOCK_STATES,
    COLUMN_UNIT = 16 /* a cache line of sums */
};

/* A stripe of one sequence. */
typedef struct {
    int64_t sequence, row, c; /* its first row and channel */
    hr_recurrence_part part;
} piece;

static int64_t sequences_of(int64_t rows, int64_t T)
{
    return (rows + T - 1) / T;
}

static piece piece_of(const hr_call *call, int64_t index, int64_t T)
{
    const hr_recurrence_attr *attr = call->attr;
    const int64_t stripes = hr_recurrence_stripes(attr->C);
    const int64_t sequence = index / stripes, c = index % stripes * STRIPE;
    return (piece){ .sequence = sequence,
                    .row = sequence * T,
                    .c = c,
                    .part = { .alpha = (const float *)call->in[2] + c,
                              .tokens = hr_min(T, call->rows - sequence * T),
                              .channels = hr_min(STRIPE, attr->C - c),
                              .stride = attr->C,
                              .dtype = call->dtype } };
}

static void *begin(const hr_call *call, void *rows, const piece *own)
{
    return hr_element_at(rows, own->row * own->part.stride + own->c, call->dtype);
}

void hr_recurrence_run(const hr_call *call)
{
    const hr_recurrence_attr *attr = call->attr;
    float *state = call->out[1];
    const int64_t T = state ? hr_max(call->rows, 1) : attr->T;
    const int64_t count = sequences_of(call->rows, T) * hr_recurrence_stripes(attr->C);
    int64_t first, last;
    hr_share(count, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const piece own = piece_of(call, i, T);
        call->kernels->recurrence.fwd(
            &own.part, begin(call, call->in[0], &own), begin(call, call->in[1], &own),
            begin(call, call->out[0], &own), state ? state + own.c : NULL);
    }
}

static void bwd_pieces(const hr_call *call, float *sums)
{
    const hr_recurrence_attr *attr = call->attr;
    const int64_t blocks = hr_recurrence_blocks(attr->T);
    const int64_t count = sequences_of(call->rows, attr->T) * hr_recurrence_stripes(attr->C);
    float *states = (float *)call->scratch + call->thread * BLOCK_STATES;
    int64_t first, last;
    hr_share(count, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const piece own = piece_of(call, i, attr->T);
        call->kernels->recurrence.bwd(&own.part, begin(call, call->in[0], &own),
                                      begin(call, call->in[1], &own),
                                      begin(call, call->out[0], &own),
                                      sums + own.sequence * blocks * attr->C + own.c, states);
    }
}

void hr_recurrence_bwd_run(const hr_call *call)
{
    const hr_recurrence_attr *attr = call->attr;
    float *const sums = (float *)call->scratch + call->threads * BLOCK_STATES;
    float *const dalpha = call->out[1];
    if (call->phase == 0) {
        bwd_pieces(call, sums);
        return;
    }
    int64_t first, last;
    hr_share((attr->C + COLUMN_UNIT - 1) / COLUMN_UNIT, call->thread, call->threads, &first, &last);
    first *= COLUMN_UNIT;
    last = hr_min(last * COLUMN_UNIT, attr->C);
    const int64_t blocks = hr_recurrence_blocks_of(call->rows, attr->T);
    if (first >= last || !dalpha) return;
    if (call->clear & 2) memset(dalpha + first, 0, (size_t)(last - first) * sizeof *dalpha);
    for (int64_t k = 0; k < blocks; k++)
        for (int64_t c = first; c < last; c++) dalpha[c] += sums[k * attr->C + c];
}

void hr_recurrence_clear_run(const hr_call *call)
{
    const hr_recurrence_attr *attr = call->attr;
    int64_t first, last;
    hr_share(attr->C, call->thread, call->threads, &first, &last);
    memset((float *)call->out[0] + first, 0, (size_t)(last - first) * sizeof(float));
}

const hr_op_run hr_recurrence_cpu_run = { hr_recurrence_run, 1 };
const hr_op_run hr_recurrence_bwd_cpu_run = { hr_recurrence_bwd_run, 2 };
const hr_op_run hr_recurrence_clear_cpu_run = { hr_recurrence_clear_run, 1 };
