/* SPDX-License-Identifier: Apache-2.0 */
/* train/trainer.h - a run while it runs: what the host's steps work with, and the sections in
 * turn. */
#ifndef HR_TRAIN_TRAINER_H
#define HR_TRAIN_TRAINER_H

#include "ckpt/token_rows.h"
#include "ckpt/weights.h"
#include "ckpt/weights_in.h"
#include "dev/executor.h"
#include "headroom/train.h"
#include "report/metrics.h"
#include "text/batch.h"
#include "text/vocabulary.h"
#include "train/admit.h"

enum { HR_SAMPLE_PROMPT_TOKENS = 16, HR_SAMPLE_TEXT_BYTES = 16 << 10 };

typedef struct {
    const hr_config *config;
    const hr_train_options *options;
    hr_train_result *result;
    hr_executor executor;
    hr_metrics metrics;
    hr_batches *train, *valid;            /* valid: null where nothing is evaluated */
    hr_token_rows train_rows, valid_rows; /* that batches read; closed: there are none */
    hr_vocabulary *vocabulary;            /* null: every id was an id before */
    int64_t steps;                        /* of the run */
    int64_t step;                         /* done */
    int64_t saved_step; /* of the weights that lie in train.out; 0: none of this run's */

    int32_t load, fetch, norm, step_section, update, evaluation, evaluation_batch, sample,
        save; /* loops; HR_NONE: norm or update, where gradients are consumed or kept */

    int64_t targets;            /* real tokens of the present batch */
    double lr, loss, grad_norm; /* of the present step */
    double z_loss;              /* beside the loss */
    int64_t evaluated_tokens;
    double evaluation_loss;
    int32_t *sample_ids; /* [sample_most] */
    int64_t sample_count, sample_most;
    char *sample_text;    /* [HR_SAMPLE_TEXT_BYTES] */
    hr_weights_in source; /* of model.from */
    hr_weights_out weights;
    char *weights_text; /* [hr_weights_text_bytes] */
} hr_trainer;

/* Takes tables and buffers from a region of hr_run_bytes, and finds the sections. */
HR_MUST_CHECK hr_status hr_trainer_place(hr_region *region, const hr_program *program,
                                         hr_trainer *trainer, hr_error *err);

/* The steps of the host: an hr_host_fn. */
hr_status hr_trainer_host(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                          hr_error *err);

/* Ends the run: what is not finite, what of its weights is on the disk, what to try. */
hr_status hr_trainer_diverged(const hr_trainer *trainer, const char *what, hr_error *err);

/* Has somebody asked for the end of the run? Threads: any. */
bool hr_trainer_is_interrupted(const hr_trainer *trainer);

/* Runs the sections to the end of the run, or to the first interrupt. */
HR_MUST_CHECK hr_status hr_trainer_run(hr_trainer *trainer, hr_error *err);

#endif
