/* SPDX-License-Identifier: Apache-2.0 */
/* admission/stages.h - plans a run of stages: each is a recipe of its own over the same state.
 *
 * Every stage is searched for the bytes of the whole run, and the run has the largest arena, so the
 * set is as fast as its stages. What lives through the run is at the same offsets in every plan:
 * packing puts it first, in the order in which it is loaded. Only the strategies are kept. The plan
 * of a stage is compiled when it begins, in the region of the one before, which allocates nothing
 * and gives the plan that was admitted. */
#ifndef HR_ADMISSION_STAGES_H
#define HR_ADMISSION_STAGES_H

#include "admission/admit.h"
#include "headroom/stages.h"

typedef struct {
    hr_strategy strategy; /* recompute_set in the region of the set */
    int64_t pack_work, arena_bytes, file_bytes;
    int32_t weights; /* hr_place of the recipe's frozen weights */
} hr_stage_choice;

typedef struct {
    hr_stages list;
    hr_stage_choice choices[HR_STAGES_MAX];
    hr_plan_stage plans[HR_STAGES_MAX];
    hr_admission_share share;
    const hr_config *recipe; /* borrowed */
    hr_config config;        /* of the stage that is compiled, with its memory keys chosen */
    int32_t current;
    int64_t arena_bytes, file_bytes; /* the largest of each */
    hr_plan_answer answer;           /* of the stage that decides whether the run fits */
} hr_stage_set;

/* Admits all stages of a recipe, as hr_admit does one. The set is in a region of its own, opened
 * with machine->open. Leaves the plan of the largest stage in the admission, with the account of
 * the run; if some do not fit, the smallest plan of the one that needs most.
 *
 * Errors   NO_FIT  with the stage. Others as hr_admit and hr_config_stages. */
HR_MUST_CHECK hr_status hr_admit_stages(const hr_admission_machine *machine,
                                        const hr_config *recipe, hr_admission *admission,
                                        hr_stage_set **set, hr_error *err);

/* What the plans of a run's stages have in common. `scratch` is overwritten.
 * Errors as hr_config_stages. */
HR_MUST_CHECK hr_status hr_stages_share(const hr_admission_machine *machine,
                                        const hr_config *recipe, hr_config *scratch,
                                        hr_admission_share *share, hr_error *err);

/* Accounts the process of a stage: with the arena of its own plan, or with that of the run.
 * Errors as hr_admission_machine.open. */
HR_MUST_CHECK hr_status hr_stage_set_account(const hr_admission_machine *machine,
                                             const hr_stage_set *set, bool alone,
                                             hr_admission *admission, hr_error *err);

/* Compiles the admitted plan of a stage in place of the one in the admission. Its account stays.
 * Errors   BROKEN  it is not the plan that was admitted. */
HR_MUST_CHECK hr_status hr_stage_set_compile(hr_stage_set *set, int32_t index,
                                             hr_admission *admission, hr_error *err);

#endif
