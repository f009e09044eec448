/* SPDX-License-Identifier: Apache-2.0 */
/* ops/list.h - the list of operations. hr_<name>_op is what the compiler knows of each; back ends
 * (ops/cpu.h) say how they compute it. */
#ifndef HR_OPS_LIST_H
#define HR_OPS_LIST_H

#include "graph/op.h"

#define HR_OP_LIST(X) \
    X(embed) \
    X(embed_bwd) \
    X(norm) \
    X(norm_bwd) \
    X(length) \
    X(magnitude) \
    X(magnitude_bwd) \
    X(modulate) \
    X(modulate_bwd) \
    X(match) \
    X(select) \
    X(penalty) \
    X(gram) \
    X(gram_bwd) \
    X(restrain) \
    X(linear) \
    X(linear_dx) \
    X(linear_dw) \
    X(activation) \
    X(glu) \
    X(glu_bwd) \
    X(recurrence) \
    X(recurrence_bwd) \
    X(recurrence_clear) \
    X(lif) \
    X(lif_bwd) \
    X(rope_table) \
    X(rope) \
    X(attention) \
    X(attention_bwd) \
    X(attention_cached) \
    X(compress) \
    X(compress_cached) \
    X(compress_bwd) \
    X(choose) \
    X(gates) \
    X(gates_bwd) \
    X(cache_clear) \
    X(cache_append) \
    X(dropout) \
    X(loss) \
    X(loss_part) \
    X(loss_dx) \
    X(last_row) \
    X(merge) \
    X(sumsq) \
    X(product_norm) \
    X(clip) \
    X(adamw) \
    X(sgd) \
    X(lion) \
    X(adafactor) \
    X(muon) \
    X(average) \
    X(dequantize)

/* Services (ops/host/): operations that the host runs. */
#define HR_HOST_OP_LIST(X) \
    X(initialize) \
    X(batch) \
    X(prompt) \
    X(sample) \
    X(emit) \
    X(report) \
    X(save) \
    X(lookup) \
    X(fetch_begin) \
    X(fetch_wait) \
    X(spill_begin) \
    X(spill_wait)

#define HR_OP_ID(name) HR_OP_##name,
enum { HR_OP_LIST(HR_OP_ID) HR_HOST_OP_LIST(HR_OP_ID) HR_OP_COUNT };
#undef HR_OP_ID

/* [HR_OP_COUNT] properties of each operation, for the compiler. */
extern const hr_op *const hr_op_table[];

#endif
