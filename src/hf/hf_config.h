/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_config.h - reads and writes config.json of a Hugging Face folder, with one table for
 * both directions.
 *
 * Each option either sets a key, or must have the one supported value, or is known to have no
 * effect. Any other option is an error that names it; nothing is guessed. */
#ifndef HR_HF_HF_CONFIG_H
#define HR_HF_HF_CONFIG_H

#include "base/writer.h"
#include "config/config.h"

/* Sets stored_weights, and every key of `model` but from, dropout and weights, from
 * DIR/config.json. Absent options get the defaults of transformers.
 *
 *   config  untouched after an error
 *
 * Errors   USAGE    there is no such file
 *          CORRUPT  not JSON; an unknown architecture, option or value. */
HR_MUST_CHECK hr_status hr_hf_config_read(const char *directory, hr_config *config, hr_error *err);

/* The same into another config, whose contents before do not matter: less stack. */
HR_MUST_CHECK hr_status hr_hf_config_over(const char *directory, const hr_config *config,
                                          hr_config *adopted, hr_error *err);

/* Returns whether a folder has a tokenizer, complete or damaged. */
bool hr_hf_has_tokenizer(const char *folder);

/* Writes a config.json that hr_hf_config_read accepts, for a file of fp32 weights, or of bf16
 * matrices without masters, and of matrices of layers in the format `weights` (hr_weights_choice).
 * Allocates nothing. */
void hr_hf_config_write(const hr_config *config, int32_t weights, hr_writer *writer);

/* The entry of F8_E4M3 weights in config.json, with a comma after it. */
extern const char hr_hf_quantization[];

/* A sentence about features of the written folder that other software does not support; null: all
 * are supported, or no folder is written. */
const char *hr_hf_config_note(const hr_config *config);

#endif
