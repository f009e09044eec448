/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/infer.h - what asking a model takes, whatever is asked (generate.h, evaluate.h). */
#ifndef HEADROOM_INFER_H
#define HEADROOM_INFER_H

#include <signal.h>

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *folder; /* of the model, as headroom and Hugging Face write it */
    const char
        *tokenizer;      /* bytes, or a tokenizer's file or folder; null: the model's own folder's,
                              and where it has none, bytes for a vocabulary of 256 */
    int32_t format;      /* hr_format of weights and arithmetic */
    int64_t budget;      /* bytes of the process; 0: what the machine has */
    int64_t threads;     /* 0: as affinity and cgroup quota allow */
    const char *kernels; /* highest rung; null: auto */
    const volatile sig_atomic_t *interrupts; /* above 0: to end; null: there are none */
    /* Told how far the work is: planning, loading weights, evaluating. done of total in units of
     * the work; total 0: not known. May be null; must not allocate. */
    void (*working)(void *context, const char *work, int64_t done, int64_t total);
    void *working_context;
} hr_infer_request;

typedef struct {
    int64_t weight_bytes; /* of all weights */
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    double load_seconds;
} hr_infer_result;

#ifdef __cplusplus
}
#endif
#endif
