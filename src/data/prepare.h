/* SPDX-License-Identifier: Apache-2.0 */
/* data/prepare.h - converts the texts of a run to shards of tokens, before the arena is
 * allocated. */
#ifndef HR_DATA_PREPARE_H
#define HR_DATA_PREPARE_H

#include "checkpoint/manifest.h"
#include "config/config.h"
#include "mem/memory.h"
#include "text/batch.h"
#include "text/text.h"
#include "text/word_vocabulary.h"

/* Creates the directories, creates or finds the shards, and reports them. Works in a region of
 * hr_texts_bytes that is closed again.
 *
 *   limit_bytes  of data.cache; 0: no limit
 *   mixture      out; its paths point into `text`
 *
 * Errors as hr_texts_prepare. */
HR_MUST_CHECK hr_status hr_prepare(hr_memory *memory, const hr_config *config, int64_t limit_bytes,
                                   const hr_text_progress *progress, hr_text *text,
                                   hr_batch_mixture *mixture, hr_error *err);

/* Copies the tokenizer, which generate and eval look for beside the weights, and
 * generation_config.json into train.out.
 *
 *   vocabulary  null: the data are ids already
 *
 * Errors as hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_prepare_sidecars(const hr_config *config, hr_vocabulary *vocabulary,
                                            hr_error *err);

/* Identifies the texts: shards by their names, which are content hashes; files of rows by a hash of
 * all bytes.
 * Errors INTERRUPTED; as hr_file_read. */
HR_MUST_CHECK hr_status hr_prepare_identify(const hr_config *config,
                                            const hr_text_progress *progress, const hr_text *text,
                                            hr_manifest_texts *identity, hr_error *err);

#endif
