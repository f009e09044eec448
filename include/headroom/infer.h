/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/infer.h - settings and results that generate.h and evaluate.h share. */
#ifndef HEADROOM_INFER_H
#define HEADROOM_INFER_H

#include <signal.h>

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_INFER_ADAPTERS_MAX = 8 };

typedef struct {
    size_t size;        /* of this struct */
    const char *folder; /* model folder that headroom or Hugging Face wrote */
    /* [adapter_count] folders, or FOLDER=FACTOR of what they add; those of PEFT add up */
    const char *const *adapters;
    int32_t adapter_count; /* at most HR_INFER_ADAPTERS_MAX */
    /* layers that use their NPT adapters, as train.adapter.layers, or "none"; null: all that have
     * some */
    const char *npt_layers;
    /* "bytes", or a tokenizer file or folder; null: the tokenizer of the model folder, or bytes if
     * it has none and a vocabulary of 256 */
    const char *tokenizer;
    int32_t format;  /* hr_format of weights and arithmetic */
    int32_t weights; /* hr_weights_choice: storage of the weights of layers */
    int32_t place;   /* hr_place of matrices: in memory, or in their files, read for each use */
    /* memory limit of the process in bytes; 0: the memory of the machine */
    int64_t budget;
    int64_t threads;                         /* 0: from CPU affinity and cgroup quota */
    const char *kernels;                     /* highest instruction set; null: auto */
    const volatile sig_atomic_t *interrupts; /* above 0: stop; null: none */
    /* Progress of planning, loading weights and evaluating. `done` and `total` are in units of the
     * work; total 0: not known. May be null; must not allocate. */
    void (*working)(void *context, const char *work, int64_t done, int64_t total);
    void (*note)(void *context, const char *line); /* a sentence before the run; may be null */
    void *working_context;
} hr_infer_request;

typedef struct {
    int64_t weight_bytes; /* of all weights */
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    double load_seconds;
    /* matrices that stayed in their files: bytes read, and how long that took and was waited for */
    int64_t read_bytes;
    double read_seconds, read_waited_seconds;
} hr_infer_result;

#ifdef __cplusplus
}
#endif
#endif
