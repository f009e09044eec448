/* SPDX-License-Identifier: Apache-2.0 */
/* infer/inference.h - a model of a folder, from its config to its last section: what generation and
 * evaluation have in common.
 *
 * In this order: begin; plan; compile and fit, with less and less at a time until it does; open;
 * take; run sections; settle. Whoever asks may open regions of its own before it plans, in the same
 * memory: they are accounted. */
#ifndef HR_INFER_INFERENCE_H
#define HR_INFER_INFERENCE_H

#include "ckpt/weights_in.h"
#include "dev/executor.h"
#include "headroom/infer.h"
#include "plan/compile.h"
#include "text/tokens.h"

/* The first three are the caller's to set; all else is zero before. */
typedef struct {
    const hr_infer_request *request;
    hr_infer_result *result;
    hr_memory *memory; /* open */
    hr_config config;  /* of the folder, a sequence at a time; its length is the caller's */
    int32_t threads;
    uint32_t cpu_mask;
    hr_region planning;   /* to compile in, from its beginning */
    hr_compiled compiled; /* by the caller */
    int64_t own_bytes;
    hr_region tables; /* of the run; own_bytes of them are the caller's to take */
    hr_pool pool;
    hr_kernels kernels;
    hr_weights_in weights;
    hr_executor executor;
    hr_tokens *tokens; /* null: tokens are bytes, or nobody asked */
    hr_region tokens_region;
    hr_host_fn *host;
    void *context; /* of host */
} hr_inference;

/* Config, threads and kernels. Errors USAGE; CORRUPT as hr_config_adopt. */
HR_MUST_CHECK hr_status hr_inference_begin(hr_inference *session, hr_error *err);

/* The longest text of at most so many tokens that a plan is made of; beyond it hr_inference_plan
 * names keys of training, which nobody gave. The config's length is undefined after it. */
int64_t hr_inference_longest(hr_inference *session, int64_t tokens);

/* Checks the config and opens the region for compiling. Errors USAGE, NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_plan(hr_inference *session, hr_error *err);

/* Accounts what was compiled, own_bytes of tables with it, and holds it against the budget or the
 * machine. What fits is described in the result.
 *
 *   tokens   what the config's sequence length counts: "tokens"
 *   instead  what to type for less
 *
 * Errors   NO_FIT  with the bytes needed and available; there may be less to compile. */
HR_MUST_CHECK hr_status hr_inference_fit(hr_inference *session, int64_t own_bytes,
                                         const char *tokens, const char *instead, hr_error *err);

/* Opens the tables and finds all weights. Errors as hr_weights_in_open; NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_open(hr_inference *session, hr_error *err);

/* What does not fit, with `err` of hr_inference_fit: CORRUPT and another sentence where the tensors
 * contradict the sizes, which more memory would not help; else NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_refuse(hr_inference *session, hr_error *err);

/* Takes stacks, threads and the arena, and seals the memory. Steps of the host go to `host`, but
 * those that load. Errors NO_FIT, INTERRUPTED, BROKEN. */
HR_MUST_CHECK hr_status hr_inference_take(hr_inference *session, hr_host_fn *host, void *context,
                                          hr_error *err);

/* Runs a section; `seconds` out. An interrupt ends it before its next step.
 * Errors as hr_load and steps of the host; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_inference_run(hr_inference *session, const char *section,
                                         double *seconds, hr_error *err);

/* What was used, and whether that was planned. Errors BROKEN. */
HR_MUST_CHECK hr_status hr_inference_check_peak(hr_inference *session, hr_error *err);

/* Accepts what was never begun, and leaves the memory open. */
void hr_inference_close(hr_inference *session);

/* Finds the tokenizer of the model, and opens it where it is a file: its ids go to the sink.
 * `instead` is what to give that is no text.
 * Errors   USAGE  there is none. CORRUPT  it cannot be used. NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_open_text(hr_inference *session, const char *instead,
                                               hr_tokens_sink *sink, void *context, hr_error *err);

/* Nothing becomes ids any more: gives back what only that needed. */
void hr_inference_end_text(hr_inference *session);

/* Tells how far the work is. */
void hr_inference_tell(const hr_inference *session, const char *work, int64_t done, int64_t total);

static inline bool hr_inference_is_interrupted(const hr_inference *session)
{
    return session->request->interrupts && *session->request->interrupts > 0;
}

#endif
