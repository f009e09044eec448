/* SPDX-License-Identifier: Apache-2.0 */
/* model/attention_share.h - how much of causal attention a pattern or a sliding window computes. */
#ifndef HR_MODEL_ATTENTION_SHARE_H
#define HR_MODEL_ATTENTION_SHARE_H

#include "config/config.h"

/* Pairs of a query and a key at or before it, in one sequence of train.seq_len tokens: of blocks
 * for a pattern, of tokens for a window. */
typedef struct {
    int64_t kept, causal; /* pairs that are computed, of all causal ones */
    int64_t layers;       /* layers that skip the others; 0: dense attention, kept = causal */
    bool blocks;          /* the pairs are of blocks */
} hr_attention_share;

/* Counts the pairs of a checked config. Pure. */
hr_attention_share hr_attention_share_of(const hr_config *config);

#endif
