/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_adapter.h - reads adapter_config.json of PEFT, or npt_config.json of NPT (docs/npt.md). */
#ifndef HR_HF_HF_ADAPTER_H
#define HR_HF_HF_ADAPTER_H

#include "config/config.h"

/* Splits FOLDER=FACTOR; the factor is 1 if there is none. Errors USAGE  an empty or long path. */
HR_MUST_CHECK hr_status hr_hf_adapter_split(const char *text, char folder[HR_PATH_BYTES],
                                            double *factor, hr_error *err);

/* Sets the keys of train.adapter that describe adapters as the folder says.
 *
 *   base  out: base_model_name_or_path; null: not needed
 *
 * Errors   USAGE    the folder, or both of its files of this kind, are missing
 *          CORRUPT  not JSON, more than 64 KiB, a key that is missing or of a wrong type, another
 *                   kind of adapter, or a key that changes results in a way that is not read. */
HR_MUST_CHECK hr_status hr_hf_adapter_read(const char *folder, hr_config *config,
                                           char base[HR_PATH_BYTES], hr_error *err);

#endif
