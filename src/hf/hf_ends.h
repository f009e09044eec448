/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_ends.h - the tokens that end an answer of a model in a Hugging Face folder. */
#ifndef HR_HF_HF_ENDS_H
#define HR_HF_HF_ENDS_H

#include <stdbool.h>

#include "config/config.h"

enum { HR_END_IDS_MOST = 32, HR_GENERATION_CONFIG_BYTES = 1 << 14 };

typedef struct {
    int32_t ids[HR_END_IDS_MOST], count;
} hr_end_ids;

/* Reads eos_token_id, a number or a list, of generation_config.json in the folder of a config, or
 * of its config.json if the former has none. Without both there are no such tokens.
 *
 *   config  read from that folder
 *
 * Errors   CORRUPT  generation_config.json is not JSON, too long, or has another kind of value or
 *                   too many of them. */
HR_MUST_CHECK hr_status hr_hf_read_ends(const char *folder, const hr_config *config,
                                        hr_end_ids *ends, hr_error *err);

static inline bool hr_end_ids_have(const hr_end_ids *ends, int64_t id)
{
    for (int32_t i = 0; i < ends->count; i++)
        if (ends->ids[i] == id) return true;
    return false;
}

#endif
