/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.h - the texts of a run as shards of tokens, before its memory is taken. */
#ifndef HR_TRAIN_PREPARE_H
#define HR_TRAIN_PREPARE_H

#include "ckpt/hash.h"
#include "corpus/corpus.h"
#include "headroom/train.h"
#include "mem/memory.h"
#include "text/batch.h"
#include "text/text.h"
#include "train/trainer.h"

/* Bytes that preparing takes, given back before the arena is taken. Pure. */
int64_t hr_prepare_bytes(const hr_config *config);

/* That the recipe's words about texts can be read; no file is looked at. Errors USAGE. */
HR_MUST_CHECK hr_status hr_prepare_read(const hr_config *config, hr_error *err);

/* Shards that training reads: 1, or the parts of a mixture; of rows 1. Pure. */
int32_t hr_prepare_shards(const hr_config *config);

/* The texts of a recipe, open in a region. */
typedef struct {
    hr_text_desc desc;
    hr_documents train[HR_SPEC_PARTS_MAX];
    hr_corpus *corpus;
} hr_prepare_texts;

/* Opens them in a region of hr_prepare_bytes(config); what is left of it is for hr_text_prepare.
 * Nothing may move meanwhile: the description refers to the rest. Errors as hr_corpus_open. */
HR_MUST_CHECK hr_status hr_prepare_open(const hr_config *config, hr_region *region,
                                        hr_prepare_texts *texts, hr_error *err);

/* Keeps data.cache, if the recipe has one, within its limit; files that are held stay. What was
 * removed is noted. limit_bytes 0: nothing is done. Errors as hr_cache_prune. */
HR_MUST_CHECK hr_status hr_prepare_prune(const hr_config *config, int64_t limit_bytes,
                                         const hr_text_progress *progress, hr_error *err);

/* That the texts can be read, and that weights, tokens and `metrics` (null: none) could be written
 * where they are to go. Makes nothing: it comes before a plan that may be refused.
 * Errors   USAGE    a path is missing, unreadable, or of the wrong kind
 *          FAILURE  the system would refuse to write. */
HR_MUST_CHECK hr_status hr_prepare_paths(const hr_config *config, const char *metrics,
                                         hr_error *err);

/* Makes the directories; makes or finds the shards, in a region of hr_prepare_bytes that is open
 * only meanwhile, and tells of them. The recipe and who listens are the trainer's; whatever ends a
 * run ends this.
 *
 *   mixture  out; its paths are those of `text`
 *
 * Errors as hr_corpus_open and hr_text_prepare. */
HR_MUST_CHECK hr_status hr_prepare(hr_memory *memory, hr_trainer *trainer, hr_text *text,
                                   hr_batch_mixture *mixture, hr_error *err);

/* What the texts are: shards by their names, which are those of their content, files of rows by all
 * of their bytes.
 *   train_text, valid_text  out
 * Errors INTERRUPTED; as hr_file_read. */
HR_MUST_CHECK hr_status hr_prepare_identify(hr_trainer *trainer, const hr_text *text,
                                            char train_text[HR_HASH_BYTES],
                                            char valid_text[HR_HASH_BYTES], hr_error *err);

#endif
