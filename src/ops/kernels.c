/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kernels.c - selects the kernels of every operation for a CPU feature mask. */
#include "ops/kernels.h"

#include "base/cpu.h"

static void fill_ref(hr_kernels *kernels)
{
    hr_activation_fill_ref(&kernels->activation);
    hr_glu_fill_ref(&kernels->glu);
    hr_norm_fill_ref(&kernels->norm);
    hr_magnitude_fill_ref(&kernels->magnitude);
    hr_modulate_fill_ref(&kernels->modulate);
    hr_match_fill_ref(&kernels->match);
    hr_recurrence_fill_ref(&kernels->recurrence);
    hr_compress_fill_ref(&kernels->compress);
    hr_gates_fill_ref(&kernels->gates);
    hr_choose_fill_ref(&kernels->choose);
    hr_lif_fill_ref(&kernels->lif);
    hr_embed_fill_ref(&kernels->embed);
    hr_rope_fill_ref(&kernels->rope);
    hr_loss_fill_ref(&kernels->loss);
    hr_dropout_fill_ref(&kernels->dropout);
    hr_adafactor_fill_ref(&kernels->adafactor);
    hr_dequantize_fill_ref(&kernels->dequantize);
}

static void fill_avx2(hr_kernels *kernels)
{
    hr_activation_fill_avx2(&kernels->activation);
    hr_glu_fill_avx2(&kernels->glu);
    hr_norm_fill_avx2(&kernels->norm);
    hr_magnitude_fill_avx2(&kernels->magnitude);
    hr_modulate_fill_avx2(&kernels->modulate);
    hr_match_fill_avx2(&kernels->match);
    hr_recurrence_fill_avx2(&kernels->recurrence);
    hr_compress_fill_avx2(&kernels->compress);
    hr_gates_fill_avx2(&kernels->gates);
    hr_choose_fill_avx2(&kernels->choose);
    hr_lif_fill_avx2(&kernels->lif);
    hr_embed_fill_avx2(&kernels->embed);
    hr_rope_fill_avx2(&kernels->rope);
    hr_loss_fill_avx2(&kernels->loss);
    hr_dropout_fill_avx2(&kernels->dropout);
    hr_adafactor_fill_avx2(&kernels->adafactor);
    hr_dequantize_fill_avx2(&kernels->dequantize);
}

static void fill_avx512(hr_kernels *kernels)
{
    hr_activation_fill_avx512(&kernels->activation);
    hr_glu_fill_avx512(&kernels->glu);
    hr_norm_fill_avx512(&kernels->norm);
    hr_magnitude_fill_avx512(&kernels->magnitude);
    hr_modulate_fill_avx512(&kernels->modulate);
    hr_match_fill_avx512(&kernels->match);
    hr_recurrence_fill_avx512(&kernels->recurrence);
    hr_compress_fill_avx512(&kernels->compress);
    hr_gates_fill_avx512(&kernels->gates);
    hr_choose_fill_avx512(&kernels->choose);
    hr_lif_fill_avx512(&kernels->lif);
    hr_embed_fill_avx512(&kernels->embed);
    hr_rope_fill_avx512(&kernels->rope);
    hr_loss_fill_avx512(&kernels->loss);
    hr_dropout_fill_avx512(&kernels->dropout);
    hr_adafactor_fill_avx512(&kernels->adafactor);
    hr_dequantize_fill_avx512(&kernels->dequantize);
}

static void fill_avx512bf16(hr_kernels *kernels)
{
    hr_activation_fill_avx512bf16(&kernels->activation);
    hr_glu_fill_avx512bf16(&kernels->glu);
    hr_norm_fill_avx512bf16(&kernels->norm);
    hr_magnitude_fill_avx512bf16(&kernels->magnitude);
    hr_recurrence_fill_avx512bf16(&kernels->recurrence);
    hr_loss_fill_avx512bf16(&kernels->loss);
}

/* Each instruction set replaces the kernels that it has. */
void hr_kernels_fill(hr_kernels *kernels, uint32_t cpu_mask)
{
    const uint32_t mask = hr_cpu_ladder(cpu_mask);
    fill_ref(kernels);
    if (mask & HR_CPU_AVX2) fill_avx2(kernels);
    if (mask & HR_CPU_AVX512) fill_avx512(kernels);
    if (mask & HR_CPU_AVX512BF16) fill_avx512bf16(kernels);
    hr_linear_kernels_fill(&kernels->linear, mask);
    hr_attention_kernels_fill(&kernels->attention, mask);
    hr_update_kernels_fill(&kernels->update, mask);
}
