/* SPDX-License-Identifier: Apache-2.0 */
/* train/trainer.h - a run while it runs: what the host's steps work with, and the sections in
 * turn. */
#ifndef HR_TRAIN_TRAINER_H
#define HR_TRAIN_TRAINER_H

#include "ckpt/token_rows.h"
#include "ckpt/weights_in.h"
#include "dev/executor.h"
#include "headroom/train.h"
#include "text/batch.h"
#include "text/word_vocabulary.h"
#include "train/admit.h"
#include "train/checkpoint_writer.h"
#include "train/guard.h"
#include "train/log.h"
#include "train/remaining.h"
#include "train/resume.h"

enum { HR_SAMPLE_PROMPT_TOKENS = 16, HR_SAMPLE_TEXT_BYTES = 16 << 10 };

typedef struct {
    const hr_config *config;
    const hr_train_options *options;
    int *lock; /* of train.out */
    hr_train_result *result;
    hr_executor executor;
    hr_log log;
    hr_batches *train, *valid;            /* valid: null where nothing is evaluated */
    hr_token_rows train_rows, valid_rows; /* that batches read; closed: there are none */
    hr_vocabulary *vocabulary;            /* null: every id was an id before */

    hr_run_state state; /* between two updates; steps 0: not known yet */
    hr_guard guard;
    int64_t begun_ns, start_ns; /* of the process's run; of its first step */
    double seconds_before;      /* of training, in runs that this one goes on from */
    int64_t saved_step;         /* of the newest checkpoint; 0: there is none */
    bool is_saved;              /* and it has the state as it is */
    int64_t saves, reports;     /* signals that were answered */
    hr_run_times times;         /* of this start */

    int32_t load, fetch, norm, step_section, update, evaluation, evaluation_batch, sample,
        save; /* loops; HR_NONE: norm or update, where gradients are consumed or kept */

    int64_t targets;            /* real tokens of the present batch */
    double lr, loss, grad_norm; /* of the present step */
    double z_loss;              /* beside the loss */
    double ceiling_seconds;     /* of a token, at the rate of its products; 0: not measured */
    bool is_bad;                /* the present step is to have no update */
    int64_t evaluated_tokens;
    double evaluation_loss;
    int32_t *sample_ids; /* [sample_most] */
    int64_t sample_count, sample_most;
    char *sample_text;    /* [HR_SAMPLE_TEXT_BYTES] */
    hr_weights_in source; /* of model.from */

    hr_checkpoint_writer *checkpoint_writer;
    hr_resume resume; /* what the run goes on from, or went back to */
    /* Files of that, while they are loaded; file_count 0: they are closed. */
    hr_weights_in kept[HR_KEPT_KINDS];
    uint32_t cpu_mask;                                         /* base/cpu.h: for reading them */
    char *weights_text;                                        /* [hr_weights_text_bytes] */
    char train_text[HR_HASH_BYTES], valid_text[HR_HASH_BYTES]; /* identify them */
} hr_trainer;

/* Takes tables and buffers from a region of hr_run_bytes, and finds the sections. */
HR_MUST_CHECK hr_status hr_trainer_place(hr_region *region, const hr_program *program,
                                         hr_trainer *trainer, hr_error *err);

/* The steps of the host: an hr_host_fn. */
hr_status hr_trainer_host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                          hr_error *err);

/* Ends the run: what is not finite, what of its weights is on the disk, what to try. */
hr_status hr_trainer_diverged(hr_trainer *trainer, const char *what, hr_error *err);

/* Has somebody asked for the end of the run, or is its time over? Threads: any. */
bool hr_trainer_is_interrupted(const hr_trainer *trainer);

/* The same, and a request for a report on memory is answered. */
bool hr_trainer_poll(hr_trainer *trainer);

/* What a run tells at its end of where it is. */
void hr_trainer_take_result(hr_train_result *result, const hr_run_state *state);

/* Tells how far work beside the steps is. */
void hr_trainer_report_progress(const hr_trainer *trainer, const char *work, int64_t done,
                                int64_t total);

/* Tells what went wrong while the run goes on. */
void hr_trainer_trouble(hr_trainer *trainer, const char *line);

/* Says what the process uses beside what was planned: into train.out, and to who listens. */
void hr_trainer_report_memory(hr_trainer *trainer);

/* Runs the sections to the end of the run, or to the first interrupt. */
HR_MUST_CHECK hr_status hr_trainer_run(hr_trainer *trainer, hr_error *err);

/* ---- checkpoints (taking_up.c) */

/* Loads what `resume` found: every parameter with its states, and where the run was. Or, without,
 * first values. */
HR_MUST_CHECK hr_status hr_trainer_load(hr_trainer *trainer, hr_error *err);

/* Makes a checkpoint of the state as it is, unless there is one; it is told when it is whole. The
 * one before must have been settled.
 * Errors   DIVERGED  a weight is not finite. FAILURE  it cannot be written. */
HR_MUST_CHECK hr_status hr_trainer_save(hr_trainer *trainer, hr_error *err);

/* Takes note of a checkpoint that came to its end meanwhile; wait: of the one in the making.
 * Errors FAILURE  it could not be made. */
HR_MUST_CHECK hr_status hr_trainer_collect_checkpoint(hr_trainer *trainer, bool wait,
                                                      hr_error *err);

/* Goes back to the newest checkpoint, and past the batch of the present step. Errors as
 * hr_trainer_load; DIVERGED  there is none. */
HR_MUST_CHECK hr_status hr_trainer_rewind(hr_trainer *trainer, hr_error *err);

#endif
