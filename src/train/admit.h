/* SPDX-License-Identifier: Apache-2.0 */
/* train/admit.h - from a config and this machine to a plan that fits, or a refusal that helps.
 *
 * The fastest strategy within the bytes that are available is searched for (src/fit), built, packed
 * and accounted for real: the search may mislead about time, never about bytes. */
#ifndef HR_TRAIN_ADMIT_H
#define HR_TRAIN_ADMIT_H

#include "headroom/plan.h"
#include "headroom/plan_queries.h"
#include "mem/memory.h"
#include "plan/compile.h"
#include "plan/cost.h"

typedef struct {
    hr_region region; /* holds the compiled program and plan; trimmed once admitted */
    hr_compiled compiled;
    int64_t pack_work; /* that the plan was packed with (plan/compile.h) */
    hr_config config;  /* the keys of memory as chosen */
    uint32_t cpu_mask;
    int64_t prepare_bytes; /* memory for tokenizing, before the arena */
    int64_t reading_bytes; /* memory for finding the weights of model.from, before the arena */
    int64_t run_bytes;     /* tables and buffers of the run, a region of its own */
    int64_t work;          /* so far, counted: about nanoseconds of a core of 2024 */
    int64_t least_floor;   /* the least floor of any strategy, or 0: it was not looked for */
    hr_plan_answer answer;
    hr_rates rates;            /* that predictions come from */
    hr_plan_progress progress; /* set by the caller before it admits */
} hr_admission;

/* What a question keeps from one admission to the next. */
typedef struct {
    hr_region region; /* for planning; opened, or opened anew where it is too small */
    struct hr_proxy_cache *cache;
    hr_plan_progress progress;
} hr_admission_room;

/* Plans the fastest run that fits. When nothing fits, the smallest plan is left compiled. Opens
 * admission->region and overwrites all of *admission but its progress, which the caller has set; so
 * do hr_admit_least and hr_admit_any.
 *
 *   room          null; else admission->region is the room's, and stays open with it
 *   calibrations  directory of measured times; null: they are guessed
 *   thorough      answer.minimum_bytes is wanted though the plan fits
 *
 * Errors   NO_FIT  nothing fits. USAGE, FAILURE. CORRUPT  the calibration cannot be used. */
HR_MUST_CHECK hr_status hr_admit(hr_memory *memory, const hr_config *config,
                                 const char *calibrations, bool thorough, hr_admission_room *room,
                                 hr_admission *admission, hr_error *err);

/* Plans the smallest run, whether it fits or not, and nothing else: several times as quick.
 * answer.minimum_bytes are its process bytes. Errors as hr_admit, but not for want of bytes. */
HR_MUST_CHECK hr_status hr_admit_least(hr_memory *memory, const hr_config *config,
                                       const char *calibrations, hr_admission_room *room,
                                       hr_admission *admission, hr_error *err);

/* The least budget that gets a plan with a step of at most `seconds`, by what the search says of
 * floors. One plan is built.
 *
 *   slow, fast  plans of this config: one that takes longer, one that does not
 *   least       out: process bytes below which no plan is known to be fast enough
 *   bytes       out: process bytes of a plan that is; = least where it packs at its floor
 *
 * Errors   as hr_admit_least. */
HR_MUST_CHECK hr_status hr_admit_budget(hr_memory *memory, const hr_config *config,
                                        const char *calibrations, double seconds,
                                        const hr_plan_point *slow, const hr_plan_point *fast,
                                        hr_admission_room *room, int64_t *least, int64_t *bytes,
                                        hr_error *err);

/* Whether any plan fits: answer.fits and, where one does, its process bytes in
 * answer.minimum_bytes, which are hardly more than the smallest plan's; where none does, the
 * smallest plan's, or far from fitting those of the least floor. Errors as hr_admit_least; NO_FIT
 * where it is that far. */
HR_MUST_CHECK hr_status hr_admit_any(hr_memory *memory, const hr_config *config,
                                     const char *calibrations, hr_admission_room *room,
                                     hr_admission *admission, hr_error *err);

/* Process bytes of the smallest plan of another config, compiled in the region of an admission,
 * whose own plan is overwritten; not `exact`: as hr_admit_any says them. INT64_MAX when it cannot
 * be compiled there. Adds to admission->work, as does hr_admit_other. */
int64_t hr_admit_minimum(hr_memory *memory, const hr_config *config, bool exact,
                         hr_admission *admission);

/* The answer for another config, compiled in the region of an admission, whose own plan is
 * overwritten. Errors as hr_admit. */
HR_MUST_CHECK hr_status hr_admit_other(hr_memory *memory, const hr_config *config,
                                       const char *calibrations, hr_admission *admission,
                                       hr_plan_answer *answer, hr_error *err);

/* Puts another strategy in the place of the admitted one: program, plan and its process bytes. The
 * answer stays.
 *
 *   strategy  `dropped` lies in hr_admit_spare(admission) or outside the admission's region
 *   work      of packing it; 0: the floor stands for the arena, which is never less
 *   seconds   out: a step of training, predicted */
HR_MUST_CHECK hr_status hr_admit_strategy(hr_memory *memory, const hr_strategy *strategy,
                                          int64_t work, hr_admission *admission, double *seconds,
                                          hr_error *err);

/* What is free in the region of an admission whatever is compiled there. */
hr_region hr_admit_spare(const hr_admission *admission);

/* Bytes of tables and buffers that a run keeps beside program and plan. */
int64_t hr_run_bytes(const hr_config *config);

#endif
