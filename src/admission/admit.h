/* SPDX-License-Identifier: Apache-2.0 */
/* admission/admit.h - plans a config for a machine: the fastest plan that fits, or a refusal.
 *
 * The search (src/search) finds the fastest strategy within the available bytes. The strategy is
 * then built, packed and accounted: its time is a prediction, its bytes are exact. */
#ifndef HR_ADMISSION_ADMIT_H
#define HR_ADMISSION_ADMIT_H

#include "admission/machine.h"
#include "headroom/plan.h"
#include "headroom/plan_queries.h"
#include "plan/compile.h"
#include "plan/cost.h"

/* Bytes that the plans of a run of stages have in common, so that their processes differ by the
 * arena alone (admission/stages.h). */
typedef struct {
    const hr_config *recipe; /* of the run, borrowed */
    int64_t planning_bytes, kept_bytes;
    int64_t set_bytes; /* a region of its own, from planning to the end */
    hr_admission_needs needs;
} hr_admission_share;

typedef struct {
    hr_region region; /* holds the compiled program and plan; trimmed once admitted */
    hr_compiled compiled;
    int64_t pack_work;         /* work limit of packing the plan (plan/compile.h) */
    hr_config config;          /* with the chosen values of the memory keys */
    const hr_backend *backend; /* of the program */
    uint32_t cpu_mask;
    hr_admission_needs needs;
    int64_t work;        /* counted so far, about one nanosecond of a 2024 core a unit */
    int64_t least_floor; /* the least floor of any strategy; 0 if not computed */
    hr_plan_answer answer;
    hr_rates rates; /* for predicted times */
    bool has_file;  /* the recipe's program has values in a file */
    /* Set by the caller before admission: */
    hr_plan_progress progress;
    int64_t budget;                  /* replaces that of the recipe; 0: none */
    const hr_admission_share *share; /* null: the run has no stages */
} hr_admission;

/* State that one query shares between its admissions. */
typedef struct {
    hr_region region; /* for planning; opened when needed, reopened if too small */
    struct hr_proxy_cache *cache;
    hr_plan_progress progress;
    /* Packs each plan of hr_admit with the full limit of work, as without a room. */
    bool packs_fully;
    /* hr_admit finds the least floor only if nothing fits, and then leaves no plan: only the bytes
     * of the smallest one. */
    bool is_brief;
} hr_admission_room;

/* Plans the fastest run that fits on a machine. If nothing fits, leaves the smallest plan compiled.
 * Like hr_admit_least and hr_admit_any, opens admission->region with machine->open, and overwrites
 * all of *admission but its progress, which the caller has set.
 *
 *   thorough  also computes answer.minimum_bytes if the plan fits
 *   room      null, or state to share; admission->region then belongs to it
 *
 * Errors   NO_FIT  nothing fits. USAGE, FAILURE. CORRUPT  as machine->rates. */
HR_MUST_CHECK hr_status hr_admit(const hr_admission_machine *machine, const hr_config *config,
                                 bool thorough, hr_admission_room *room, hr_admission *admission,
                                 hr_error *err);

/* Whether the plan that was tried last has a file that is larger than memory.file_budget, whatever
 * its memory: then nothing fits. */
bool hr_admit_exceeds_file(const hr_admission *admission);

/* Says so. Errors NO_FIT. */
hr_status hr_admit_refuse_file(const hr_admission *admission, hr_error *err);

/* Finds only answer.minimum_bytes, the process bytes of the smallest plan, and answer.fits; several
 * times as fast as hr_admit. Errors as hr_admit, but never NO_FIT. */
HR_MUST_CHECK hr_status hr_admit_least(const hr_admission_machine *machine, const hr_config *config,
                                       hr_admission_room *room, hr_admission *admission,
                                       hr_error *err);

/* Finds the least budget for a step of at most `seconds`. The search compares floors; only the
 * last plan is built.
 *
 *   slow, fast  plans of this config: `slow` takes longer than `seconds`, `fast` does not
 *   least       out: process bytes below which the search found no plan that is fast enough
 *   bytes       out: process bytes of a plan that is fast enough; = least if it packs at its floor
 *
 * Errors   as hr_admit_least. */
HR_MUST_CHECK hr_status hr_admit_budget(const hr_admission_machine *machine,
                                        const hr_config *config, double seconds,
                                        const hr_plan_point *slow, const hr_plan_point *fast,
                                        hr_admission_room *room, int64_t *least, int64_t *bytes,
                                        hr_error *err);

/* Sets answer.fits to whether any plan fits. If one does, answer.minimum_bytes are its process
 * bytes, slightly above those of the smallest plan. If none does, they are those of the smallest
 * plan; if the least floor is far above the limit, they are those of an arena at that floor, and
 * the result is NO_FIT. Other errors as hr_admit_least. */
HR_MUST_CHECK hr_status hr_admit_any(const hr_admission_machine *machine, const hr_config *config,
                                     hr_admission_room *room, hr_admission *admission,
                                     hr_error *err);

/* Returns the process bytes of the smallest plan of another config, or INT64_MAX if it cannot be
 * compiled. Compiles in the region of an admission and overwrites the admission's own plan. Without
 * `exact`, the bytes are those of hr_admit_any. Adds to admission->work, as does hr_admit_other.
 *
 *   cache  search results of earlier calls, or null */
int64_t hr_admit_minimum(const hr_admission_machine *machine, const hr_config *config, bool exact,
                         struct hr_proxy_cache *cache, hr_admission *admission);

/* Computes the time of a step with another config. Compiles in the region of an admission and
 * overwrites the admission's own plan. Errors as hr_admit. */
HR_MUST_CHECK hr_status hr_admit_other(const hr_admission_machine *machine, const hr_config *config,
                                       hr_admission *admission, double *step_seconds,
                                       hr_error *err);

/* Replaces the admitted strategy: program, plan and process bytes. The answer does not change.
 *
 *   strategy  recompute_set lies in hr_admit_spare(admission) or outside the admission's region
 *   work      work limit of packing; 0: does not pack and takes the floor, a lower bound, as arena
 *   seconds   out: predicted time of a training step */
HR_MUST_CHECK hr_status hr_admit_strategy(const hr_admission_machine *machine,
                                          const hr_strategy *strategy, int64_t work,
                                          hr_admission *admission, double *seconds, hr_error *err);

/* The part of the region of an admission that compiling never uses. */
hr_region hr_admit_spare(const hr_admission *admission);

#endif
