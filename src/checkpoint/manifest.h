/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/manifest.h - the last file of a checkpoint: the state of the run, and the sizes and
 * hashes of the other files.
 *
 * The manifest is one JSON object on one line. Its last member is the hash of all bytes before it,
 * so a flipped bit in the manifest is detected like one in the other files. docs/checkpoints.md
 * lists the members. */
#ifndef HR_CHECKPOINT_MANIFEST_H
#define HR_CHECKPOINT_MANIFEST_H

#include <stdbool.h>

#include "checkpoint/hash.h"
#include "headroom/status.h"

enum {
    /* version 1 has the same members, but its runs used another random generator */
    HR_MANIFEST_VERSION = 2,
    HR_MANIFEST_FILES_MAX = 11,
    HR_MANIFEST_NAME_BYTES = 40,
    HR_MANIFEST_BYTES = 16 << 10,
    HR_STATE_LEVELS = 160, /* numbers of the guard's statistics */
    HR_STATE_CURSORS = 16
};

/* Of train.dtype=fp16 (run/loss_scale.h). */
typedef struct {
    double factor;      /* of the loss; 0: it is not scaled */
    int64_t good_steps; /* since the factor last changed */
    int64_t overflows;  /* in a row */
} hr_loss_scale;

/* The state of a run between two updates, except its tensors. Random numbers and the data order are
 * functions of seed and step, so they need no state here. */
typedef struct {
    int64_t step, steps; /* steps done; steps of the whole run */
    int64_t tokens;      /* training tokens so far, without padding */
    /* the batch of a step is step + batch_shift; skipped batches increase it */
    int64_t batch_shift;
    /* step of the last scheduled evaluation, sample and checkpoint */
    int64_t evaluated, sampled, kept;
    int64_t ended;             /* 1: early stopping ended the run */
    int64_t best_step, waited; /* step of the best validation loss; evaluations since then */
    int64_t bad_steps;         /* steps that were skipped or rewound */
    int64_t log_bytes;         /* bytes of complete lines in the log */
    int64_t metrics_bytes;     /* and in the file of --metrics */
    double first_loss, last_loss;
    double valid_loss, best_loss;   /* NaN: no evaluation yet */
    double seconds;                 /* training time so far */
    double levels[HR_STATE_LEVELS]; /* statistics of the guard */
    int64_t level_count;
    hr_loss_scale loss_scale;
    int64_t uncounted; /* steps that were skipped, or before another optimizer's states began */
    /* Of a run of stages: the one whose data the next step reads, or an earlier one if that step
     * is the first of a stage. */
    struct {
        int64_t number;                    /* from 1; 0: the run has no stages */
        int64_t batch_shift;               /* when it began */
        int64_t cursors[HR_STATE_CURSORS]; /* then: positions in the passes over each text */
        int64_t cursor_count;
    } stage;
} hr_run_state;

typedef struct {
    char name[HR_MANIFEST_NAME_BYTES];
    int64_t bytes;
    char hash[HR_HASH_BYTES];
} hr_manifest_file;

/* Hashes of the texts, as ids, and of the tokenizer file that made them; empty: none. */
typedef struct {
    char train[HR_HASH_BYTES], valid[HR_HASH_BYTES], tokenizer[HR_HASH_BYTES];
} hr_manifest_texts;

typedef struct {
    hr_run_state state;
    char kernels[16]; /* kernel variant that computed the last step */
    hr_manifest_texts texts;
    hr_manifest_file files[HR_MANIFEST_FILES_MAX];
    int32_t file_count;
} hr_manifest;

extern const char hr_manifest_name[]; /* "manifest.json" */

/* Adds a file. `hash` must cover all of its bytes. */
void hr_manifest_add(hr_manifest *manifest, const char *name, int64_t bytes, const hr_hash *hash);

/* The file with this name, or null. */
const hr_manifest_file *hr_manifest_find(const hr_manifest *manifest, const char *name);

/* Prints the manifest into text [HR_MANIFEST_BYTES]. Returns its bytes. */
int64_t hr_manifest_print(const hr_manifest *manifest, char text[HR_MANIFEST_BYTES]);

/* Parses the manifest in text [bytes], which is modified.
 *   path  for error messages
 * Errors   USAGE    the manifest has another version
 *          CORRUPT  it is damaged or incomplete. */
HR_MUST_CHECK hr_status hr_manifest_read(hr_manifest *manifest, const char *path, char *text,
                                         int64_t bytes, hr_error *err);

#endif
