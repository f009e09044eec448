/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/attention/attention_kernels.h"

#include "base/cpu.h"

void hr_attention_kernels_fill(hr_attention_kernels *kernels, uint32_t cpu_mask)
{
    const uint32_t mask = hr_cpu_ladder(cpu_mask);
    hr_attention_fn **fwd = kernels->fwd, **bwd = kernels->bwd, **store = kernels->store;
    hr_attention_cached_fn **cached = kernels->cached;
    hr_attention_selected_fn **selected = kernels->selected;
    hr_attention_scores_fn **scores = kernels->scores;
    fwd[HR_F32] = fwd[HR_BF16] = fwd[HR_F16] = hr_attention_fwd_ref;
    bwd[HR_F32] = bwd[HR_BF16] = bwd[HR_F16] = hr_attention_bwd_ref;
    store[HR_F32] = store[HR_BF16] = store[HR_F16] = hr_attention_store_ref;
    cached[HR_F32] = cached[HR_BF16] = cached[HR_F16] = hr_attention_cached_ref;
    selected[HR_F32] = selected[HR_BF16] = selected[HR_F16] = hr_attention_selected_ref;
    scores[HR_F32] = scores[HR_BF16] = scores[HR_F16] = hr_attention_scores_ref;
    if (!(mask & HR_CPU_AVX2)) return;
    fwd[HR_F32] = fwd[HR_BF16] = fwd[HR_F16] = hr_attention_fwd_avx2;
    bwd[HR_F32] = bwd[HR_BF16] = bwd[HR_F16] = hr_attention_bwd_avx2;
    store[HR_F32] = store[HR_BF16] = store[HR_F16] = hr_attention_store_avx2;
    cached[HR_F32] = cached[HR_BF16] = cached[HR_F16] = hr_attention_cached_avx2;
    selected[HR_F32] = selected[HR_BF16] = selected[HR_F16] = hr_attention_selected_avx2;
    scores[HR_F32] = scores[HR_BF16] = scores[HR_F16] = hr_attention_scores_avx2;
    if (!(mask & HR_CPU_AVX512)) return;
    fwd[HR_F32] = fwd[HR_BF16] = fwd[HR_F16] = hr_attention_fwd_avx512;
    bwd[HR_F32] = bwd[HR_BF16] = bwd[HR_F16] = hr_attention_bwd_avx512;
    store[HR_F32] = store[HR_BF16] = store[HR_F16] = hr_attention_store_avx512;
    cached[HR_F32] = cached[HR_BF16] = cached[HR_F16] = hr_attention_cached_avx512;
    selected[HR_F32] = selected[HR_BF16] = selected[HR_F16] = hr_attention_selected_avx512;
    scores[HR_F32] = scores[HR_BF16] = scores[HR_F16] = hr_attention_scores_avx512;
    if (!(mask & HR_CPU_AVX512BF16)) return; /* the AMX kernels also round p with it */
    fwd[HR_BF16] = hr_attention_fwd_bf16_avx512bf16;
    bwd[HR_BF16] = hr_attention_bwd_bf16_avx512bf16;
    cached[HR_BF16] = hr_attention_cached_bf16_avx512bf16;
    selected[HR_BF16] = hr_attention_selected_bf16_avx512bf16;
    scores[HR_BF16] = hr_attention_scores_bf16_avx512bf16;
    if (!(mask & HR_CPU_AMX)) return;
    fwd[HR_BF16] = hr_attention_fwd_bf16_amx;
    bwd[HR_BF16] = hr_attention_bwd_bf16_amx;
    cached[HR_BF16] = hr_attention_cached_bf16_amx;
    selected[HR_BF16] = hr_attention_selected_bf16_amx;
    scores[HR_BF16] = hr_attention_scores_bf16_amx;
}
