/* SPDX-License-Identifier: Apache-2.0 */
/* run/trainer.h - the state of a run, and the execution of its sections. */
#ifndef HR_RUN_TRAINER_H
#define HR_RUN_TRAINER_H

#include "admission/stages.h"
#include "checkpoint/weights_stream.h"
#include "data/sample.h"
#include "dev/executor.h"
#include "dev/transfer.h"
#include "headroom/train.h"
#include "hf/hf_ends.h"
#include "run/file_space.h"
#include "run/guard.h"
#include "run/inputs.h"
#include "run/measures.h"
#include "run/observer.h"
#include "run/remaining.h"
#include "run/requests.h"
#include "run/run_files.h"
#include "telemetry/log.h"

/* A run, made of what it reads (inputs, sample), what was asked of it (requests), what it measures
 * (times, measures, guard), and what it keeps (state, files). Each has a file of its own. */
typedef struct {
    const hr_config *config;
    const hr_train_options *options;
    const hr_observer *observer; /* null: none */
    const hr_rates *rates;       /* of the plan */
    hr_train_result *result;
    int *lock; /* lock of train.out */
    hr_executor executor;
    hr_region tables; /* of the executor, for the program of any stage */
    hr_stage_set
        *stages; /* null: the run has no stages; else `config` is that of the present one */
    hr_admission *admission; /* of the program, which changes with the stage */
    bool is_in_stage;        /* the batches are where the state says */
    hr_log log;
    hr_inputs inputs;
    hr_sample sample;
    hr_end_ids sample_ends; /* they end a sample */
    hr_run_state state;     /* state after the last update; steps 0: not known yet */
    hr_guard guard;
    hr_requests requests;
    hr_run_times times;
    hr_measures measures;
    hr_run_files files;
    hr_transfer_file *moments; /* of the optimizer; null: they are in memory */
    hr_weights_stream *base;   /* weights that stay in the files of model.from; null: none do */
    hr_transfers_of_run transfers;
    char moments_name[HR_FILE_SPACE_NAME_BYTES];
    int64_t moments_step;   /* the last one in which that file failed; 0: none */
    double ceiling_seconds; /* per token at the peak rate of products; 0: not measured */
} hr_trainer;

/* Places tables and buffers in a region of hr_run_bytes, and registers the services. Errors
 * FAILURE. */
HR_MUST_CHECK hr_status hr_trainer_place(hr_region *region, const hr_program *program,
                                         hr_trainer *trainer, hr_error *err);

/* The handlers of the services of training; waiting for `save` collects its checkpoint. */
hr_services hr_trainer_services(hr_trainer *trainer);

/* As hr_requests_stop, and writes a memory report if one was requested. */
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

/* Runs the section that saves, without writing a file: its operands have every weight and state. */
HR_MUST_CHECK hr_status hr_trainer_visit(hr_trainer *trainer, hr_error *err);

/* Collects the result of a checkpoint that has completed.
 *   wait  wait for the pending one
 * Errors FAILURE  the checkpoint could not be made. */
HR_MUST_CHECK hr_status hr_trainer_collect_checkpoint(hr_trainer *trainer, bool wait,
                                                      hr_error *err);

/* Rewinds to the newest checkpoint and skips the batch of the current step. Errors as
 * hr_trainer_load; DIVERGED  there is no checkpoint. */
HR_MUST_CHECK hr_status hr_trainer_rewind(hr_trainer *trainer, hr_error *err);

/* After a transfer to or from the file of moments has failed: creates the file anew, and loads the
 * newest intact checkpoint, from which the run continues.
 * Errors   that of the transfer, if there is no checkpoint, or it fails again before that step;
 *          as hr_transfer_file_open, hr_trainer_load. */
HR_MUST_CHECK hr_status hr_trainer_recover(hr_trainer *trainer, hr_error *err);

#endif
