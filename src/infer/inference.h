/* SPDX-License-Identifier: Apache-2.0 */
/* infer/inference.h - runs a model from a directory: the common part of generation and evaluation.
 *
 * Call in this order: begin; plan; compile and fit, with smaller chunks until it fits; open; take;
 * run sections; check the peak. The caller may open its own regions in the same memory before
 * planning: the plan includes them. */
#ifndef HR_INFER_INFERENCE_H
#define HR_INFER_INFERENCE_H

#include "checkpoint/weights_stream.h"
#include "dev/devices.h"
#include "dev/executor.h"
#include "dev/transfer.h"
#include "headroom/infer.h"
#include "hf/hf_ends.h"
#include "plan/compile.h"
#include "text/tokens.h"

/* The caller sets the first three fields; all others start as zero. */
typedef struct {
    const hr_infer_request *request;
    hr_infer_result *result;
    hr_memory *memory; /* an open memory */
    hr_config config;  /* config of the model, for one sequence at a time; the caller sets the
                        * length */
    int32_t threads;
    const hr_backend *backend;
    uint32_t cpu_mask;
    hr_region planning;   /* scratch for compiling, used from its start */
    hr_compiled compiled; /* set by the caller */
    int64_t own_bytes;
    hr_region tables; /* tables of the run; the caller may take own_bytes of them */
    hr_pool pool;
    hr_devices devices;
    hr_weights_stream *stream;     /* matrices that stay in the files; null: none do */
    hr_transfers_of_run transfers; /* of them */
    hr_weights_in weights, adapters[HR_INFER_ADAPTERS_MAX];
    hr_config_adapter more[HR_INFER_ADAPTERS_MAX - 1]; /* adapters after that of the config */
    char paths[HR_INFER_ADAPTERS_MAX][HR_PATH_BYTES];  /* the files of the adapters */
    hr_executor executor;
    hr_tokens *tokens; /* null: tokens are bytes, or no text is needed */
    hr_region tokens_region;
    hr_end_ids ends; /* of hr_inference_find_ends */
} hr_inference;

/* Reads the config and selects the back end, threads and kernels. Errors USAGE; CORRUPT as
 * hr_config_adopt. */
HR_MUST_CHECK hr_status hr_inference_begin(hr_inference *session, hr_error *err);

/* Finds the tokens that end an answer. Call it after hr_inference_begin. Errors as
 * hr_hf_read_ends. */
HR_MUST_CHECK hr_status hr_inference_find_ends(hr_inference *session, hr_error *err);

/* Returns the longest text of at most `tokens` tokens that can be planned. For longer ones
 * hr_inference_plan would report errors about training keys that the user did not set. The length
 * in the config is undefined after the call. */
int64_t hr_inference_longest(hr_inference *session, int64_t tokens);

/* Checks the config and opens the region for compiling. Errors USAGE, NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_plan(hr_inference *session, hr_error *err);

/* Adds up the process memory of the compiled program, with own_bytes for tables of the caller, and
 * compares it with the budget or the machine. If it fits, fills in the result.
 *
 *   tokens   what the sequence length of the config counts: "tokens"
 *   instead  the option to suggest for less memory
 *
 * Errors   NO_FIT  with the bytes needed and available; a smaller program may still fit. */
HR_MUST_CHECK hr_status hr_inference_fit(hr_inference *session, int64_t own_bytes,
                                         const char *tokens, const char *instead, hr_error *err);

/* Opens the tables and locates all weights. Errors as hr_weights_in_open; NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_open(hr_inference *session, hr_error *err);

/* Returns the final error after hr_inference_fit failed with `err`: CORRUPT with a new message when
 * the tensors contradict the sizes in the config, because more memory would not help; else
 * NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_refuse(hr_inference *session, hr_error *err);

/* Allocates stacks, threads and the arena, and seals the memory. `services` handle all services of
 * the program but those that load weights. Errors NO_FIT, INTERRUPTED, BROKEN; as
 * hr_executor_check_services. */
HR_MUST_CHECK hr_status hr_inference_take(hr_inference *session, hr_services services,
                                          hr_error *err);

/* Runs a section; `seconds` out. An interrupt stops it before the next step.
 * Errors as hr_load and the services; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_inference_run(hr_inference *session, hr_loop_id section, double *seconds,
                                         hr_error *err);

/* Compares the memory used with the plan. Errors BROKEN. */
HR_MUST_CHECK hr_status hr_inference_check_peak(hr_inference *session, hr_error *err);

/* Accepts a session that never began. Does not close the memory. */
void hr_inference_close(hr_inference *session);

/* Finds the tokenizer of the model and opens it if it is a file; its ids go to the sink. `instead`
 * is the input to suggest in place of text.
 * Errors   USAGE  the model has no tokenizer. CORRUPT  it is invalid. NO_FIT. */
HR_MUST_CHECK hr_status hr_inference_open_text(hr_inference *session, const char *instead,
                                               hr_tokens_sink *sink, void *context, hr_error *err);

/* Frees the memory that only tokenization needed. No text can be encoded after it. */
void hr_inference_end_text(hr_inference *session);

/* Reports progress of the work. */
void hr_inference_report_progress(const hr_inference *session, const char *work, int64_t done,
                                  int64_t total);

static inline bool hr_inference_is_interrupted(const hr_inference *session)
{
    return session->request->interrupts && *session->request->interrupts > 0;
}

#endif
