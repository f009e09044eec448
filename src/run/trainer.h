/* SPDX-License-Identifier: Apache-2.0 */
/* run/trainer.h - the state of a run, and the execution of its sections. */
#ifndef HR_RUN_TRAINER_H
#define HR_RUN_TRAINER_H

#include "admission/admit.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/token_rows.h"
#include "checkpoint/weights_in.h"
#include "data/sample.h"
#include "dev/executor.h"
#include "headroom/train.h"
#include "run/guard.h"
#include "run/remaining.h"
#include "run/resume.h"
#include "telemetry/log.h"
#include "text/batch.h"
#include "text/word_vocabulary.h"

typedef struct {
    const hr_config *config;
    const hr_train_options *options;
    int *lock; /* lock of train.out */
    hr_train_result *result;
    hr_executor executor;
    hr_log log;
    hr_batches *train, *valid;            /* valid: null without evaluation */
    hr_token_rows train_rows, valid_rows; /* read by the batches; closed if the data are texts */
    hr_vocabulary *vocabulary;            /* null: the data are ids already */

    hr_run_state state; /* state after the last update; steps 0: not known yet */
    hr_guard guard;
    int64_t begun_ns, start_ns; /* start of the process; of its first step */
    double seconds_before;      /* training time of the runs before the resume */
    int64_t saved_step;         /* step of the newest checkpoint; 0: none */
    bool is_saved;              /* the newest checkpoint has the current state */
    int64_t saves, reports;     /* signals handled so far */
    hr_run_times times;         /* since the process started */

    int32_t load, fetch, norm, step_section, update, evaluation, evaluation_batch, sampling,
        save; /* loops; HR_NONE: absent, such as norm or update if gradients are released */

    int64_t targets;            /* target tokens of the current batch */
    double lr, loss, grad_norm; /* of the current step */
    double z_loss;              /* not included in loss */
    double ceiling_seconds;     /* per token at the peak rate of products; 0: not measured */
    bool is_bad;                /* the current step gets no update */
    int64_t evaluated_tokens;
    double evaluation_loss;
    hr_sample sample;
    hr_weights_in source; /* weights of model.from */

    hr_checkpoint_writer *checkpoint_writer;
    hr_resume resume; /* the checkpoint of the resume or of the last rewind */
    /* The files of that checkpoint while they are loaded; file_count 0: closed. */
    hr_weights_in kept[HR_KEPT_MAX];
    uint32_t cpu_mask;                                         /* base/cpu.h */
    char *weights_text;                                        /* [hr_weights_text_bytes] */
    char train_text[HR_HASH_BYTES], valid_text[HR_HASH_BYTES]; /* identify the texts */
} hr_trainer;

/* Places tables and buffers in a region of hr_run_bytes, and finds the sections. */
HR_MUST_CHECK hr_status hr_trainer_place(hr_region *region, const hr_program *program,
                                         hr_trainer *trainer, hr_error *err);

/* The handlers of the services of training; waiting for `save` collects its checkpoint. */
hr_services hr_trainer_services(hr_trainer *trainer);

/* As hr_trainer_is_interrupted, and writes a memory report if one was requested. */
bool hr_trainer_poll(hr_trainer *trainer);

/* Runs the sections to the end of the run, or to the first interrupt. */
HR_MUST_CHECK hr_status hr_trainer_run(hr_trainer *trainer, hr_error *err);

/* ---- checkpoints (restore.c) */

/* Loads the checkpoint in `resume`: every parameter, its optimizer states, and the state of the
 * run. Without a checkpoint, initializes the weights. */
HR_MUST_CHECK hr_status hr_trainer_load(hr_trainer *trainer, hr_error *err);

/* Makes a checkpoint of the current state, unless there is one. hr_trainer_collect_checkpoint
 * reports its completion, and has to be called for the previous checkpoint first.
 * Errors   DIVERGED  a weight is not finite. FAILURE  it cannot be written. */
HR_MUST_CHECK hr_status hr_trainer_save(hr_trainer *trainer, hr_error *err);

/* Collects the result of a checkpoint that has completed.
 *   wait  wait for the pending one
 * Errors FAILURE  the checkpoint could not be made. */
HR_MUST_CHECK hr_status hr_trainer_collect_checkpoint(hr_trainer *trainer, bool wait,
                                                      hr_error *err);

/* Rewinds to the newest checkpoint and skips the batch of the current step. Errors as
 * hr_trainer_load; DIVERGED  there is no checkpoint. */
HR_MUST_CHECK hr_status hr_trainer_rewind(hr_trainer *trainer, hr_error *err);

#endif
