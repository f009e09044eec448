/* SPDX-License-Identifier: Apache-2.0 */
/* model/adapter.h - which matrices get a low-rank adapter (Hu et al. 2021, arXiv:2106.09685).
 *
 *     y = x W + b + s (dropout(x) A) B,   s = alpha / rank, or alpha / sqrt(rank)
 *
 * A word of train.adapter.targets names a module, that is a parameter without ".weight": by its
 * last parts ("q_proj", "mlp.down_proj") or by a pattern for the whole name ("*.layers.[0-3].*").
 * all-linear stands for the matrices of all layers. */
#ifndef HR_MODEL_ADAPTER_H
#define HR_MODEL_ADAPTER_H

#include "graph/program.h"
#include "headroom/config.h"

/* The adapter of a matrix; rank 0: none. */
hr_adapter_rule hr_adapter_of(const hr_config *config, int16_t layer, const char *name);

/* Checks the keys of train.adapter against the matrices of a program.
 *
 * Errors   USAGE  a target that matches no matrix, with the nearest names. */
HR_MUST_CHECK hr_status hr_adapter_check(const hr_config *config, const hr_program *program,
                                         hr_error *err);

#endif
