/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/state.h - saves and loads an interrupted training: the complete state of the
 * engine. */
#ifndef HR_TOKENIZER_TRAIN_STATE_H
#define HR_TOKENIZER_TRAIN_STATE_H

#include "tokenizer/train/engine.h"

/* Identifies the training of a state. */
typedef struct {
    uint64_t settings, text; /* hashes */
    int32_t stage;
    int32_t merging; /* 0: the stage has not started merging, so there is no engine */
    int64_t words, inherited, dropped; /* for the report */
    hr_engine_sizes sizes;
} hr_state_head;

/* Reads the head of the state in a folder; *found false: there is none. Errors CORRUPT  it is
 * damaged. */
HR_MUST_CHECK hr_status hr_state_read_head(const char *folder, hr_state_head *head, bool *found,
                                           hr_error *err);

/* Writes a state and replaces the previous one. engine null: head->merging is 0. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_state_save(const char *folder, const hr_state_head *head,
                                      const hr_engine *engine, hr_error *err);

/* Loads a state into an engine placed with head->sizes. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_state_load(const char *folder, const hr_state_head *head,
                                      hr_engine *engine, hr_error *err);

void hr_state_remove(const char *folder);

#endif
