/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/manifest.h - the last file of a checkpoint: where the run was, and what the others hold.
 *
 * One JSON object on a line. Its last member is the hash of all bytes before it, so that a bit that
 * flips in the manifest is found as one in the files that it names. docs/checkpoints.md has the
 * members. */
#ifndef HR_CKPT_MANIFEST_H
#define HR_CKPT_MANIFEST_H

#include <stdbool.h>

#include "ckpt/hash.h"
#include "headroom/status.h"

enum {
    HR_MANIFEST_VERSION = 2, /* 1: the same members, but of runs with another random generator */
    HR_MANIFEST_FILES_MAX = 8,
    HR_MANIFEST_NAME_BYTES = 40,
    HR_MANIFEST_BYTES = 16 << 10,
    HR_STATE_LEVELS = 160 /* numbers of the guard's statistics */
};

/* All that a run is between two updates, beside its tensors. Random numbers are functions of seed
 * and step, and so is what is read next: nothing else has to be kept of them. */
typedef struct {
    int64_t step, steps; /* done; of the whole run */
    int64_t tokens;      /* real ones so far */
    int64_t batch_shift; /* batch of a step: the step and this, past what was left out */
    int64_t evaluated, sampled, kept; /* steps after which that was done last, as is due */
    int64_t ended;                    /* 1: patience is spent, and this is the end */
    int64_t best_step, waited;        /* of the least validation loss; evaluations since */
    int64_t bad_steps;                /* that were skipped or gone back from */
    int64_t log_bytes;                /* of whole lines in the log, */
    int64_t metrics_bytes;            /* and in the file that --metrics named */
    double first_loss, last_loss;
    double valid_loss, best_loss;   /* NaN: not evaluated */
    double seconds;                 /* of training so far */
    double levels[HR_STATE_LEVELS]; /* as the guard keeps them */
    int64_t level_count;
} hr_run_state;

typedef struct {
    char name[HR_MANIFEST_NAME_BYTES];
    int64_t bytes;
    char hash[HR_HASH_BYTES];
} hr_manifest_file;

typedef struct {
    hr_run_state state;
    char kernels[16]; /* rung that computed the last step */
    char train_text[HR_HASH_BYTES], valid_text[HR_HASH_BYTES]; /* identify them */
    hr_manifest_file files[HR_MANIFEST_FILES_MAX];
    int32_t file_count;
} hr_manifest;

extern const char hr_manifest_name[]; /* "manifest.json" */

/* Adds a file whose bytes are all in `hash`. */
void hr_manifest_add(hr_manifest *manifest, const char *name, int64_t bytes, const hr_hash *hash);

/* The file of that name, or null. */
const hr_manifest_file *hr_manifest_find(const hr_manifest *manifest, const char *name);

/* Prints it into text [HR_MANIFEST_BYTES]. Returns its bytes. */
int64_t hr_manifest_print(const hr_manifest *manifest, char text[HR_MANIFEST_BYTES]);

/* Reads one that lies in text [bytes], which is written to.
 *   path  for the sentence
 * Errors   USAGE    one of another version, which another program can read
 *          CORRUPT  anything else but a whole manifest. */
HR_MUST_CHECK hr_status hr_manifest_read(hr_manifest *manifest, const char *path, char *text,
                                         int64_t bytes, hr_error *err);

#endif
