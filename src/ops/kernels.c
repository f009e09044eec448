/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kernels.c - selects the kernels of every operation for a CPU feature mask. */
#include "ops/kernels.h"

void hr_kernels_fill(hr_kernels *kernels, uint32_t cpu_mask)
{
    hr_linear_kernels_fill(&kernels->linear, cpu_mask);
    hr_activation_kernels_fill(&kernels->activation, cpu_mask);
    hr_glu_kernels_fill(&kernels->glu, cpu_mask);
    hr_attention_kernels_fill(&kernels->attention, cpu_mask);
    hr_norm_kernels_fill(&kernels->norm, cpu_mask);
    hr_magnitude_kernels_fill(&kernels->magnitude, cpu_mask);
    hr_modulate_kernels_fill(&kernels->modulate, cpu_mask);
    hr_match_kernels_fill(&kernels->match, cpu_mask);
    hr_recurrence_kernels_fill(&kernels->recurrence, cpu_mask);
    hr_compress_kernels_fill(&kernels->compress, cpu_mask);
    hr_gates_kernels_fill(&kernels->gates, cpu_mask);
    hr_choose_kernels_fill(&kernels->choose, cpu_mask);
    hr_lif_kernels_fill(&kernels->lif, cpu_mask);
    hr_embed_kernels_fill(&kernels->embed, cpu_mask);
    hr_rope_kernels_fill(&kernels->rope, cpu_mask);
    hr_loss_kernels_fill(&kernels->loss, cpu_mask);
    hr_dropout_kernels_fill(&kernels->dropout, cpu_mask);
    hr_update_kernels_fill(&kernels->update, cpu_mask);
    hr_adafactor_kernels_fill(&kernels->adafactor, cpu_mask);
    hr_dequantize_kernels_fill(&kernels->dequantize, cpu_mask);
}
