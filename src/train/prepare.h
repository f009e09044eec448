/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.h - converts the texts of a run to shards of tokens, before the arena is
 * allocated. */
#ifndef HR_TRAIN_PREPARE_H
#define HR_TRAIN_PREPARE_H

#include "checkpoint/hash.h"
#include "corpus/corpus.h"
#include "headroom/train.h"
#include "mem/memory.h"
#include "text/batch.h"
#include "text/text.h"
#include "train/trainer.h"

/* Bytes of the region for hr_prepare_open and hr_text_prepare, freed before the arena is allocated.
 * Pure. */
int64_t hr_prepare_bytes(const hr_config *config);

/* Checks the syntax of the text keys of the recipe; opens no file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_prepare_read(const hr_config *config, hr_error *err);

/* Number of shards that training reads: 1, or the parts of a mixture; 1 for files of rows. Pure. */
int32_t hr_prepare_shards(const hr_config *config);

/* The open texts of a recipe, in a region. */
typedef struct {
    hr_text_desc desc;
    hr_documents train[HR_SPEC_PARTS_MAX];
    hr_corpus *corpus;
} hr_prepare_texts;

/* Opens the texts in a region of hr_prepare_bytes(config); the rest of the region is for
 * hr_text_prepare. The arguments and *texts must not move, since the description points into them.
 * Errors as hr_corpus_open. */
HR_MUST_CHECK hr_status hr_prepare_open(const hr_config *config, hr_region *region,
                                        hr_prepare_texts *texts, hr_error *err);

/* Removes files from data.cache, if the recipe has one, to stay within its limit; files in use
 * stay. Reports what was removed. limit_bytes 0: no limit. Errors as hr_cache_prune. */
HR_MUST_CHECK hr_status hr_prepare_prune(const hr_config *config, int64_t limit_bytes,
                                         const hr_text_progress *progress, hr_error *err);

/* Checks that the texts are readable, and that weights, shards and `metrics` (null: none) can be
 * written to their paths. Creates nothing, because the plan may still be refused.
 * Errors   USAGE    a path is missing, unreadable, or of the wrong kind
 *          FAILURE  the system would refuse to write. */
HR_MUST_CHECK hr_status hr_prepare_paths(const hr_config *config, const char *metrics,
                                         hr_error *err);

/* Creates the directories, creates or finds the shards, and reports them. Works in a region of
 * hr_prepare_bytes that is closed again. The recipe, the events and the interrupts are those of the
 * trainer.
 *
 *   mixture  out; its paths point into `text`
 *
 * Errors as hr_corpus_open and hr_text_prepare. */
HR_MUST_CHECK hr_status hr_prepare(hr_memory *memory, hr_trainer *trainer, hr_text *text,
                                   hr_batch_mixture *mixture, hr_error *err);

/* Copies the tokenizer, which generate and eval look for beside the weights, and
 * generation_config.json into train.out. The vocabulary of the trainer is open. Errors as
 * hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_prepare_sidecars(const hr_trainer *trainer, hr_error *err);

/* Identifies the texts: shards by their names, which are content hashes; files of rows by a hash of
 * all bytes.
 *   train_text, valid_text  out
 * Errors INTERRUPTED; as hr_file_read. */
HR_MUST_CHECK hr_status hr_prepare_identify(hr_trainer *trainer, const hr_text *text,
                                            char train_text[HR_HASH_BYTES],
                                            char valid_text[HR_HASH_BYTES], hr_error *err);

#endif
