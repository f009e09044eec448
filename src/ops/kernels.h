/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kernels.h - the table of function pointers to the inner loops of each operation.
 *
 * The table is a value, not a global. ops/kernels.c fills it once from a mask of CPU features. Each
 * operation declares its own part in its contract. */
#ifndef HR_OPS_KERNELS_H
#define HR_OPS_KERNELS_H

#include <stdint.h>

#include "ops/activation/activation_kernels.h"
#include "ops/adafactor/adafactor_kernels.h"
#include "ops/attention/attention_kernels.h"
#include "ops/choose/choose_kernels.h"
#include "ops/compress/compress_kernels.h"
#include "ops/dequantize/dequantize_kernels.h"
#include "ops/dropout/dropout_kernels.h"
#include "ops/embed/embed_kernels.h"
#include "ops/gates/gates_kernels.h"
#include "ops/glu/glu_kernels.h"
#include "ops/lif/lif_kernels.h"
#include "ops/linear/linear_kernels.h"
#include "ops/loss/loss_kernels.h"
#include "ops/magnitude/magnitude_kernels.h"
#include "ops/match/match_kernels.h"
#include "ops/modulate/modulate_kernels.h"
#include "ops/norm/norm_kernels.h"
#include "ops/recurrence/recurrence_kernels.h"
#include "ops/rope/rope_kernels.h"
#include "ops/update/update_kernels.h"

typedef struct hr_kernels {
    hr_linear_kernels linear;
    hr_activation_kernels activation;
    hr_glu_kernels glu;
    hr_attention_kernels attention;
    hr_norm_kernels norm;
    hr_magnitude_kernels magnitude;
    hr_modulate_kernels modulate;
    hr_match_kernels match;
    hr_recurrence_kernels recurrence;
    hr_compress_kernels compress;
    hr_gates_kernels gates;
    hr_choose_kernels choose;
    hr_lif_kernels lif;
    hr_embed_kernels embed;
    hr_rope_kernels rope;
    hr_loss_kernels loss;
    hr_dropout_kernels dropout;
    hr_update_kernels update;
    hr_adafactor_kernels adafactor;
    hr_dequantize_kernels dequantize;
} hr_kernels;

/* Fills the table for a CPU feature mask (base/cpu.h): starts with the reference kernels and adds
 * each instruction set up to the first missing one. Any thread. */
void hr_kernels_fill(hr_kernels *kernels, uint32_t cpu_mask);

#endif
