/* SPDX-License-Identifier: Apache-2.0 */
/* model/hf_config.h - config.json of a Hugging Face folder and the model's keys of a recipe: one
 * table for both directions.
 *
 * An option is taken, or it has the one value that headroom computes with, or it is known to change
 * nothing; anything else is refused by its name. Nothing is guessed. */
#ifndef HR_MODEL_HF_CONFIG_H
#define HR_MODEL_HF_CONFIG_H

#include "base/writer.h"
#include "headroom/config.h"

/* Sets every key of `model` but from and dropout, as DIR/config.json says. Keys that it does not
 * name get what transformers takes for them.
 *
 *   config  untouched after an error
 *
 * Errors   USAGE    there is no such file
 *          CORRUPT  not JSON; an architecture, an option or a value that is not known. */
HR_MUST_CHECK hr_status hr_hf_config_read(const char *directory, hr_config *config, hr_error *err);

/* Whether a folder has a tokenizer, whole or damaged. */
bool hr_hf_has_tokenizer(const char *folder);

/* Writes what hr_hf_config_read takes back, for a file of fp32 weights. Takes no memory from the
 * system. */
void hr_hf_config_write(const hr_config *config, hr_writer *writer);

/* What other software does not know of the folder that a run writes, in a sentence; null: nothing,
 * or no folder. */
const char *hr_hf_config_note(const hr_config *config);

#endif
