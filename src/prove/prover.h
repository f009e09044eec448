/* SPDX-License-Identifier: Apache-2.0 */
/* prove/prover.h - the state that all proofs of a recipe share, and the runs that they are made of.
 *
 * Everything is in one region of a memory of its own. The runs measure their process, so they count
 * it. */
#ifndef HR_PROVE_PROVER_H
#define HR_PROVE_PROVER_H

#include "headroom/plan.h"
#include "mem/memory.h"
#include "plan/strategy.h"
#include "prove/masked.h"
#include "prove/trace.h"
#include "prove/values.h"

/* For tests: changes what the compared runs of a proof see. */
typedef struct {
    const char *proof; /* its name */
    hr_watch_fn *disturb;
    void *context;
} hr_prove_fault;

typedef struct {
    const hr_prove_options *options;
    hr_prove_report *report;
    const hr_prove_fault *fault; /* null: none */
    hr_memory *memory;
    hr_region region;
    char directory[HR_PATH_BYTES]; /* temporary; exists while proofs run */
    hr_config recipe;              /* as given */
    hr_config base;                /* that is proven: without output, evaluation and samples */
    hr_config variant;             /* of the run at hand */
    hr_config other;               /* of the other run, where a proof has its own two */
    bool is_reduced;               /* base is smaller than the recipe */
    bool draws_tokens;             /* the data of base are random tokens */
    int64_t param_max;
    int32_t threads; /* of the reference */
    int64_t steps;
    hr_strategy whole, strategy;     /* of the reference; of the run at hand */
    hr_trace reference, own, second; /* the latter two: of proofs with their own two runs */
    hr_values values;
    uint8_t *buffer; /* [HR_TRACE_BUFFER_BYTES] */
    hr_tracer tracer;
    hr_masked_device masked;
    hr_watch_fn *look; /* of the next run from given weights; null: none */
    void *looking;     /* its context */
    bool masks;        /* the next run computes attention with `masked` */
    bool selects_all;  /* and there selected blocks are all */
    hr_plan_answer answer;
    hr_train_result result;
    int32_t runs;      /* of the proof at hand; `prepare` may change it */
    const char *proof; /* name of the proof that runs */
    bool has_reference;
} hr_prover;

/* Sets the dtype of a config. Only bf16 weights have masters that are not they themselves. */
static inline void hr_prover_set_dtype(hr_config *config, int32_t dtype)
{
    config->train.dtype = dtype;
    if (dtype != HR_FORMAT_BF16) config->train.state.master = HR_MASTERS_FP32;
}

/* Says why a proof does not apply. Returns false. */
bool hr_proof_declines(hr_proof *proof, const char *format, ...) HR_PRINTF(2, 3);

/* Sets `config` to the base with a strategy, which goes through a file like that of a recipe.
 * Errors FAILURE  the file cannot be written. */
HR_MUST_CHECK hr_status hr_prover_use(hr_prover *prover, const hr_strategy *strategy,
                                      hr_config *config, hr_error *err);

/* A strategy that differs from the reference in nothing yet, with its own recompute set. */
hr_strategy hr_prover_strategy(hr_prover *prover);

/* Predicted seconds of a training step; sets prover->answer. Errors as hr_plan_make. */
HR_MUST_CHECK hr_status hr_prover_plan(hr_prover *prover, const hr_config *config, double *seconds,
                                       hr_error *err);

/* Runs a config under an observer. Errors as hr_train. */
HR_MUST_CHECK hr_status hr_prover_run(hr_prover *prover, const hr_config *config,
                                      const hr_observer *observer, bool fresh, hr_error *err);

/* Runs `config` and writes its trace of `steps` steps, without the final values if only gradients
 * count.
 *
 *   notes  null, or where its initial weights are written */
HR_MUST_CHECK hr_status hr_prover_trace(hr_prover *prover, const hr_config *config, hr_trace *trace,
                                        int64_t steps, bool values, hr_values *notes,
                                        hr_error *err);

/* The same for the gradients of one step from given initial weights. It is the compared run of a
 * proof. */
HR_MUST_CHECK hr_status hr_prover_trace_from(hr_prover *prover, const hr_config *config,
                                             hr_trace *trace, hr_values *starts, hr_error *err);

/* Runs `config` and compares it with a trace. What was found is in prover->tracer.found.
 *
 *   rounding  0: every bit counts. Else the gradients of the first step are measured norm-wise, and
 *             the norm of a tensor whose elements are below this fraction of the average gradient
 *             counts as that of such elements
 *   starts    null, or the initial weights */
HR_MUST_CHECK hr_status hr_prover_compare(hr_prover *prover, const hr_config *config,
                                          hr_trace *trace, double rounding, hr_values *starts,
                                          hr_error *err);

/* Gives a config random tokens: rows of its length, enough for the steps that are proven, in a file
 * in the temporary directory. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_prover_draw_tokens(const hr_prover *prover, hr_config *config,
                                              hr_error *err);

/* Makes the trace of the reference, once. */
HR_MUST_CHECK hr_status hr_prover_reference(hr_prover *prover, hr_error *err);

/* Attaches the fault of a test to a tracer of its proof. */
void hr_prover_disturb(const hr_prover *prover, hr_tracer *tracer);

/* Removes a directory with all that is in it. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_prover_remove(const char *path, hr_error *err);

#endif
