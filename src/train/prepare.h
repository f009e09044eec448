/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.h - the texts of a run as shards of tokens, before its memory is taken. */
#ifndef HR_TRAIN_PREPARE_H
#define HR_TRAIN_PREPARE_H

#include "headroom/train.h"
#include "mem/memory.h"
#include "text/text.h"

/* Bytes that preparing takes, given back before the arena is taken. Pure. */
int64_t hr_prepare_bytes(const hr_config *config);

/* That the texts can be read, and that weights, tokens and `metrics` (null: none) could be written
 * where they are to go. Makes nothing: it comes before a plan that may be refused.
 * Errors   USAGE    a path is missing, unreadable, or of the wrong kind
 *          FAILURE  the system would refuse to write. */
HR_MUST_CHECK hr_status hr_prepare_paths(const hr_config *config, const char *metrics,
                                         hr_error *err);

/* Makes the directories; makes or finds the shards, in a region of hr_prepare_bytes that is open
 * only meanwhile, and tells of them. Errors as hr_text_prepare. */
HR_MUST_CHECK hr_status hr_prepare(hr_memory *memory, const hr_config *config,
                                   const hr_train_options *options, hr_text *text, hr_error *err);

#endif
