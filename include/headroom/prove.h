/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/prove.h - proves on this machine, with gradients, that the choices of a plan do not
 * change the results of a recipe.
 *
 * The recipe is trained for a few steps in pairs of runs: a reference, which processes the whole
 * batch at once and keeps everything, and a variant. Losses, gradients, weights and optimizer
 * states are compared tensor by tensor. docs/proving.md lists the proofs. */
#ifndef HEADROOM_PROVE_H
#define HEADROOM_PROVE_H

#include <signal.h>

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HR_PROOFS_MOST = 24,
    HR_PROOF_TEXT_BYTES = 256,
    HR_PROOF_REASON_BYTES = 384,
    HR_PROVE_STEPS_DEFAULT = 2,
    HR_PROVE_STEPS_MOST = 16
};

typedef enum {
    HR_PROOF_PASSED,
    HR_PROOF_FAILED,
    HR_PROOF_DOES_NOT_APPLY, /* the recipe has nothing that it could change */
    HR_PROOF_NOT_RUN         /* it does not fit the budget or the machine */
} hr_proof_outcome;

/* One line: what was compared, and how it went. */
typedef struct {
    const char *name;                   /* "loss-chunk" */
    char compared[HR_PROOF_TEXT_BYTES]; /* "loss in chunks of 64 tokens = whole loss" */
    hr_proof_outcome outcome;
    char reason[HR_PROOF_REASON_BYTES]; /* why it failed, does not apply or was not run */
    /* Bound of the norm of the difference of a tensor, relative to the norm of the tensor; 0: every
     * bit must be equal. */
    double bound;
    int32_t steps;   /* of training that were compared */
    int32_t tensors; /* gradients of each step, and weights and states at the end */
    int64_t elements;
    double largest_absolute; /* difference of two elements */
    int64_t largest_ulps;    /* the same in units of the last place; with a bound 0 */
    double largest_relative; /* norm-wise, of a tensor */
    char
        tensor[HR_PROOF_TEXT_BYTES]; /* with the largest relative difference; empty: none differs */
    double seconds;                  /* that the proof took */
} hr_proof;

typedef struct {
    char configuration[HR_PROOF_TEXT_BYTES]; /* model, batch and kernels that were used */
    char reduced[HR_PROOF_REASON_BYTES];     /* how it differs from the recipe, and why; or empty */
    char data[HR_PROOF_REASON_BYTES];        /* where the tokens come from */
    char note[HR_PROOF_REASON_BYTES];        /* about the temporary directory; or empty */
    int64_t steps;            /* of training in each run; fewer if the recipe has fewer */
    int32_t runs;             /* that are planned */
    double predicted_seconds; /* of the training steps of all runs */
    hr_proof proofs[HR_PROOFS_MOST];
    int32_t proof_count, passed, failed, not_applicable, not_run;
} hr_prove_report;

/* Called from the thread that proves; they must not allocate. Any may be null. */
typedef struct {
    void *context;
    void (*begun)(void *context, const hr_prove_report *report); /* before the first run */
    void (*proved)(void *context, const hr_proof *proof);        /* after each proof */
    /* `work` is in progress in the run of a proof; total 0: not known */
    void (*working)(void *context, const char *proof, const char *work, int64_t done,
                    int64_t total);
} hr_prove_events;

typedef struct {
    size_t size; /* of this struct */
    hr_prove_events events;
    const char *only;          /* name of a proof; null: all */
    int64_t steps;             /* at most HR_PROVE_STEPS_MOST; 0: HR_PROVE_STEPS_DEFAULT */
    const char *directory;     /* for temporary files: a folder in it, removed at the end */
    const char *calibrations;  /* as in hr_train_options */
    int64_t cache_limit_bytes; /* as in hr_train_options */
    /* signals received so far: 1 ends the current run; null: none */
    const volatile sig_atomic_t *interrupts;
} hr_prove_options;

/* Name of proof `index`, null past the last one; what it compares. Pure. */
const char *hr_proof_name(int32_t index);
const char *hr_proof_text(int32_t index);

/* Runs the proofs of a recipe. Each run is planned like training: it stays within memory.budget, or
 * the available memory. A recipe that does not fit as a whole is reduced, and the report says how.
 * Keys about output, evaluation and samples are ignored.
 *
 *   report  out; written as far as the proofs got
 *
 * Errors   BROKEN   a proof failed: names the proof and the tensor
 *          NO_FIT   nothing that can be compared fits; or a proof was not run
 *          USAGE    unknown name of a proof; `only` does not apply; directory missing; as hr_train
 *          CORRUPT, DIVERGED, INTERRUPTED, FAILURE as hr_train. */
HR_MUST_CHECK hr_status hr_prove(const hr_config *config, const hr_prove_options *options,
                                 hr_prove_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
