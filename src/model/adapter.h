/* SPDX-License-Identifier: Apache-2.0 */
/* model/adapter.h - which matrices get a low-rank adapter (Hu et al. 2021, arXiv:2106.09685).
 *
 *     y = x W + b + s (dropout(x) A) B,   s = alpha / rank, or alpha / sqrt(rank)
 *
 *     train.adapter.targets  words that name modules (model/module_names.h)
 *     train.adapter.modules_to_save  ends of the names of modules that are trained whole
 *     train.adapter.layers   "all", "upper_half", "lower_half", or indices and ranges of them
 *     train.adapter.groups   groups separated by `;`, each of words and of rank=R, alpha=X or both;
 *                            the first group with a setting that names the module applies */
#ifndef HR_MODEL_ADAPTER_H
#define HR_MODEL_ADAPTER_H

#include "config/config.h"
#include "graph/program.h"

/* Whether the module of a parameter is trained whole beside adapters. */
bool hr_adapter_saves(const hr_config *config, const char *name);

/* Adapter `which` of a matrix, from 0 on; rank 0: none. */
hr_adapter_rule hr_adapter_of(const hr_config *config, int32_t which, int16_t layer,
                              const char *name);

/* The adapters, functions of the token, of the MLP of a layer that has them. */
hr_adapter_rule hr_adapter_modulating(const hr_config *config);

/* The one with the largest rank that a matrix has in any layer. */
hr_adapter_rule hr_adapter_widest(const hr_config *config, int32_t which, int16_t layer,
                                  const char *name);

/* Whether two lists of layers name the same ones, and only such as a model of `layers` has. */
bool hr_adapter_same_layers(const char *a, const char *b, int64_t layers);

/* Checks the layers that are switched to their adapters. Errors USAGE. */
HR_MUST_CHECK hr_status hr_adapter_check_switched(const hr_config *config, hr_error *err);

/* Checks the syntax of the keys. Errors USAGE. */
HR_MUST_CHECK hr_status hr_adapter_check_words(const hr_config *config, hr_error *err);

/* Checks the keys of train.adapter against the matrices of a program.
 *
 * Errors   USAGE  a word that matches no matrix, with the nearest name. */
HR_MUST_CHECK hr_status hr_adapter_check(const hr_config *config, const hr_program *program,
                                         hr_error *err);

#endif
