/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kernels/weight_cases.h - cases of the operations on whole weights: updates, and stored
 * matrices. */
#ifndef HR_TESTS_KERNELS_WEIGHT_CASES_H
#define HR_TESTS_KERNELS_WEIGHT_CASES_H

#include "kernels/sizes.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"

/* ---- updates: rows * a elements */

static inline void make_sumsq(kernel_case *c, kernel_sizes s, int32_t option)
{
    (void)option;
    c->attr.sumsq = (hr_sumsq_attr){ s.rows * s.a };
    c->run = hr_sumsq_run;
    c->phases = 2;
    c->call.clear = 1;
    c->kernel_offset = KERNEL_AT(update.sumsq);
    c->scratch_bytes = hr_sumsq_cpu.scratch_bytes;
    kernel_in(c, 0, HR_F32, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, HR_F64, 1, kernel_same_bits);
}

/* ---- options of an update: a bf16 copy, and moments as codes or in bf16 */

enum { UPDATE_COPY = 1, UPDATE_CODES = 2, UPDATE_HALVES = 4 };

/* Moment `index`, of magnitude `scale`; its scales are output `scales` + index. */
static inline void kernel_moment(kernel_case *c, int32_t index, int32_t scales, int32_t option,
                                 double scale, kernel_bound bound)
{
    /* A number at the limit of two codes, or of two bf16 numbers, may become the other. */
    const kernel_bound one_code = { .tolerance = 1e-6, .size = 1e6 };
    const int64_t count = c->attr.update.elements;
    const int64_t blocks = (count + HR_MOMENT_BLOCK - 1) / HR_MOMENT_BLOCK;
    const kernel_fill fill = index ? KERNEL_POSITIVE : KERNEL_UNIFORM;
    const bool exact = bound.tolerance == 0;
    if (option & UPDATE_CODES) {
        c->attr.update.moments = HR_U8;
        c->kernel_offset = KERNEL_AT(update.pack_codes);
        kernel_both(c, 1 + index, HR_U8, count, KERNEL_INDEX, 256, exact ? bound : one_code);
        kernel_both(c, scales + index, HR_F32, blocks, KERNEL_POSITIVE, scale, bound);
        return;
    }
    if (option & UPDATE_HALVES) {
        c->attr.update.moments = HR_BF16;
        c->kernel_offset = KERNEL_AT(update.pack_bf16);
        kernel_both(c, 1 + index, HR_BF16, count, fill, scale,
                    exact ? bound : kernel_rounded(HR_BF16, bound.size / 2000));
        return;
    }
    kernel_both(c, 1 + index, HR_F32, count, fill, scale, bound);
}

static inline void make_adamw(kernel_case *c, kernel_sizes s, int32_t option)
{
    const int64_t count = s.rows * s.a;
    c->attr.update = (hr_update_attr){ count, 0.9, 0.95, 1e-8, 0.1, 1, true };
    c->run = hr_adamw_run;
    c->kernel_offset = KERNEL_AT(update.adamw);
    kernel_in(c, 0, HR_F32, count, KERNEL_UNIFORM, 1e-2);
    kernel_in(c, 1, HR_F64, 2, KERNEL_CONSTANT, 0.75);
    kernel_in(c, 2, HR_F64, 1, KERNEL_CONSTANT, 1e-3);
    kernel_both(c, 0, HR_F32, count, KERNEL_UNIFORM, 1, kernel_rounded(HR_F32, 0.1));
    kernel_moment(c, 0, 4, option, 1e-2, kernel_rounded(HR_F32, 1e-2));
    kernel_moment(c, 1, 4, option, 1e-4, kernel_rounded(HR_F32, 1e-4));
    if (option & UPDATE_COPY) kernel_out(c, 3, HR_BF16, count, kernel_rounded(HR_BF16, 1e-5));
}

static inline void make_sgd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const int64_t count = s.rows * s.a;
    c->attr.update = (hr_update_attr){ count, 0.9, 0, 0, 0.1, 1, true };
    c->run = hr_sgd_run;
    c->kernel_offset = KERNEL_AT(update.sgd);
    kernel_in(c, 0, HR_F32, count, KERNEL_UNIFORM, 1e-2);
    kernel_in(c, 1, HR_F64, 2, KERNEL_CONSTANT, 0.75);
    kernel_in(c, 2, HR_F64, 1, KERNEL_CONSTANT, 1e-3);
    kernel_both(c, 0, HR_F32, count, KERNEL_UNIFORM, 1, kernel_rounded(HR_F32, 0.1));
    kernel_moment(c, 0, 3, option, 1e-2, kernel_rounded(HR_F32, 0.1));
    if (option & UPDATE_COPY) kernel_out(c, 2, HR_BF16, count, kernel_rounded(HR_BF16, 1e-5));
}

static inline void make_lion(kernel_case *c, kernel_sizes s, int32_t option)
{
    const int64_t count = s.rows * s.a;
    c->attr.update = (hr_update_attr){ count, 0.9, 0.99, 0, 0.1, 1, true };
    c->run = hr_lion_run;
    c->kernel_offset = KERNEL_AT(update.lion);
    kernel_in(c, 0, HR_F32, count, KERNEL_UNIFORM, 1e-2);
    kernel_in(c, 1, HR_F64, 2, KERNEL_CONSTANT, 0.75);
    kernel_in(c, 2, HR_F64, 1, KERNEL_CONSTANT, 1e-3);
    kernel_both(c, 0, HR_F32, count, KERNEL_UNIFORM, 1, kernel_same_bits);
    kernel_moment(c, 0, 3, option, 1e-2, kernel_same_bits);
    if (option & UPDATE_COPY) kernel_out(c, 2, HR_BF16, count, kernel_same_bits);
}

/* ---- Adafactor of a matrix [rows, a]. option: hr_layout, and more */

enum { ADAFACTOR_MOMENT = 4, ADAFACTOR_COPY = 8 };

static inline void make_adafactor(kernel_case *c, kernel_sizes s, int32_t option)
{
    const int64_t K = hr_max(s.rows, 1), N = s.a; /* no weight is empty */
    const hr_layout layout = (hr_layout)(option & 3);
    const int64_t count = hr_layout_elements(layout, K, N);
    c->attr.adafactor = (hr_adafactor_attr){ .update = { .elements = count,
                                                         .beta1 = option & ADAFACTOR_MOMENT ? 0.9
                                                                                            : 0,
                                                         .decay = 0.1,
                                                         .lr_scale = 1 },
                                             .K = K,
                                             .N = N,
                                             .eps1 = 1e-30,
                                             .eps2 = 1e-3,
                                             .clip_threshold = 0.5,
                                             .decay_rate = -0.8,
                                             .scale_parameter = true,
                                             .layout = (uint8_t)layout };
    c->run = hr_adafactor_run;
    c->phases = 4;
    c->kernel_offset = KERNEL_AT(adafactor.squares);
    c->scratch_bytes = hr_adafactor_cpu.scratch_bytes;
    kernel_in(c, 0, HR_F32, count, KERNEL_UNIFORM, 1e-2);
    kernel_in(c, 1, HR_F64, 2, KERNEL_CONSTANT, 0.75);
    kernel_in(c, 2, HR_F64, 1, KERNEL_CONSTANT, 1e-2);
    kernel_both(c, 0, HR_F32, count, KERNEL_UNIFORM, 1, kernel_rounded(HR_F32, 0.1));
    kernel_both(c, 1, HR_F32, K, KERNEL_POSITIVE, 1e-4, kernel_rounded(HR_F32, 1e-4));
    kernel_both(c, 2, HR_F32, N, KERNEL_POSITIVE, 1e-4, kernel_rounded(HR_F32, 1e-4));
    if (option & ADAFACTOR_MOMENT)
        kernel_both(c, 3, HR_F32, count, KERNEL_UNIFORM, 1e-2, kernel_rounded(HR_F32, 1e-2));
    if (option & ADAFACTOR_COPY) kernel_out(c, 4, HR_BF16, count, kernel_rounded(HR_BF16, 1e-5));
}

/* ---- dequantizing a stored matrix [a, b]. option: hr_dtype */

static inline void make_dequantize(kernel_case *c, kernel_sizes s, int32_t option)
{
    enum { BLOCK = 128 };
    const bool scaled = option == HR_F8_E4M3;
    const double codes = scaled ? 0x7f : 0x7c00; /* that are positive and finite */
    const hr_layout layout = hr_linear_layout(c->call.dtype);
    const int64_t count = hr_layout_elements(layout, s.a, s.b);
    const int64_t down = (s.a + BLOCK - 1) / BLOCK, across = (s.b + BLOCK - 1) / BLOCK;
    const int64_t block = scaled * BLOCK;
    const hr_dtype to = hr_product_dtype(c->call.dtype);
    c->attr.dequantize = (hr_dequantize_attr){ s.a, s.b,   { block, block }, { across, 1 }, option,
                                               to,  layout };
    c->run = hr_dequantize_run;
    c->kernel_offset = KERNEL_AT(dequantize.span);
    kernel_in(c, 0, scaled ? HR_F8_E4M3 : HR_U16, count, KERNEL_INDEX, codes);
    if (scaled) kernel_in(c, 1, HR_F32, down * across, KERNEL_POSITIVE, 0.01);
    kernel_out(c, 0, to, count, kernel_same_bits);
}

/* ---- unpacking a stored matrix [a, b] into the layout of products. option: hr_stored_kind */

static inline void kernel_unpack_run(const hr_call *call)
{
    hr_unpack unpack = *(const hr_unpack *)call->attr;
    unpack.master = call->out[0];
    unpack.weight = call->out[1];
    if (call->thread == 0) hr_unpack_take(&unpack, 0, unpack.K, call->in[0]);
}

static inline void make_unpack(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_layout layout = hr_linear_layout(c->call.dtype);
    const int64_t K = hr_round_up(s.a, HR_PANEL_WIDTH), N = s.b;
    const int64_t count = hr_layout_elements(layout, K, N);
    c->attr.unpack = (hr_unpack){ .kind = option, .layout = layout, .K = K, .N = N };
    c->run = kernel_unpack_run;
    c->kernel_offset = -1;
    kernel_in(c, 0, option == HR_STORED_F32 ? HR_F32 : HR_BF16, K * N, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, HR_F32, count, kernel_same_bits);
    if (c->call.dtype == HR_BF16) kernel_out(c, 1, HR_BF16, count, kernel_same_bits);
}

#endif
