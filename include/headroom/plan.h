/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan.h - will it fit, what eats it, what to change. */
#ifndef HEADROOM_PLAN_H
#define HEADROOM_PLAN_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STRATEGY_TEXT_BYTES = 8192, HR_TIMES_TEXT_BYTES = 160 };

/* What a plan comes to. All in bytes unless it says otherwise. */
typedef struct {
    bool fits;
    int64_t process_bytes;   /* of the plan chosen; of the smallest one when nothing fits */
    int64_t minimum_bytes;   /* process bytes of the smallest plan of all */
    int64_t available_bytes; /* the budget, or what the machine has left */
    int64_t arena_bytes, floor_bytes;
    int64_t kernel_bytes; /* page tables and kernel: what a cgroup is charged beside the process */
    int64_t parameters;   /* count */
    int64_t micro_batch;  /* sequences */
    int64_t loss_chunk;   /* tokens */
    int64_t flops_per_token; /* of training: 6 x weights in products + attention of kept blocks */
    double step_seconds;     /* of training, predicted */
    double bound_seconds; /* no plan of the space is faster in the bytes available; -1: unknown */
    int32_t threads;
    char rung[16];                         /* kernels: ref, avx2, avx512, avx512bf16, amx */
    char packing[16];                      /* at floor, proven, open */
    char times[HR_TIMES_TEXT_BYTES];       /* where predictions come from */
    char strategy[HR_STRATEGY_TEXT_BYTES]; /* YAML, as memory.strategy takes it */
} hr_plan_answer;

/* What else to write. Everything may be left null. */
typedef struct {
    const char *file; /* the whole plan as JSON: docs/plan-file.md */
    char *text;       /* [text_bytes] out: the plan, or the refusal, for people */
    int64_t text_bytes;
    bool program;             /* text is the step program instead */
    const char *calibrations; /* directory of calibrations; null: times are guessed */
} hr_plan_outputs;

/* Plans a run of this config.
 *
 * Errors   NO_FIT  says bytes needed and available, the largest part, and the first change that
 * would
 *                  make it fit; `answer` and text are written all the same
 *          USAGE   the config contradicts itself. FAILURE  the file cannot be written.
 * Threads  one call at a time in a process: it measures the process. */
HR_MUST_CHECK hr_status hr_plan_make(const hr_config *config, const hr_plan_outputs *outputs,
                                     hr_plan_answer *answer, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
