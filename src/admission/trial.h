/* SPDX-License-Identifier: Apache-2.0 */
/* admission/trial.h - what all plans of one config share during an admission: the planning region,
 * the rates, the search, and the accounting of the process. */
#ifndef HR_ADMISSION_TRIAL_H
#define HR_ADMISSION_TRIAL_H

#include "admission/admit.h"
#include "search/fit.h"

typedef struct {
    const hr_admission_machine *machine;
    hr_admission *admission;
    hr_admission_room *room; /* or null */
    bool estimates;          /* rates need no calibration: only bytes are asked for */
    const char *rung;
    int32_t threads;
    int64_t planning_bytes, kept_bytes;
    int64_t tried_bytes; /* of the planning region, which another recipe of this process had */
    hr_region search;    /* memory of `fit` */
    bool search_is_open;
    bool is_packed;      /* the admission has the packed plan of its strategy */
    hr_fit_found lowest; /* with the least floor; floor_bytes 0: not computed */
    hr_intermediates *chosen, *least, *spare; /* [layers] recompute sets */
    hr_fit fit;
} hr_trial;

/* Arrays of recompute sets at the end of the planning region. */
enum {
    HR_TRIAL_SETS_OWN = 4,  /* those of the trial */
    HR_TRIAL_SETS_SPARE = 2 /* after them: those of hr_admit_spare */
};

/* Bytes of one such array. */
int64_t hr_trial_set_bytes(const hr_config *config);

/* Bytes of the planning region of a config. */
int64_t hr_trial_planning_bytes(const hr_config *config, int64_t kept_bytes);

/* Whether the plan in the admission fits if planning had a region of so many bytes. */
bool hr_trial_fits_planning(hr_trial *t, int64_t planning_bytes);

/* Opens the planning region, unless admission->region is open already: memory to build a plan, or
 * to keep a built plan and search another.
 *
 *   touched  writes to every page, so that the resident size equals the planned bytes even if
 *            planning is the peak of the run */
HR_MUST_CHECK hr_status hr_trial_open_regions(hr_trial *t, bool touched, hr_error *err);

/* Checks the config and prepares its search: rates, regions and limits. */
HR_MUST_CHECK hr_status hr_trial_prepare(hr_trial *t, bool touched, hr_error *err);

/* Opens the search if it is closed. Building a plan closes it, because both use the same memory. */
HR_MUST_CHECK hr_status hr_trial_open_search(hr_trial *t, hr_error *err);

/* Closes the search and adds its steps to the work of the admission. */
void hr_trial_close_search(hr_trial *t);

/* Copies a search result, and its recompute sets into the memory that the copy owns. */
void hr_trial_copy_found(const hr_trial *t, const hr_fit_found *from, hr_fit_found *to);

/* Tells the caller of the admission that planning advances. */
void hr_trial_tell(const hr_trial *t);

/* Builds a strategy into the admission up to its floor, without packing. */
HR_MUST_CHECK hr_status hr_trial_build_floor(hr_trial *t, const hr_strategy *strategy,
                                             hr_error *err);

/* Reorders the steps of the packed plan in the admission, and derives its floor again.
 *
 *   moved  out: false if that does not lower the floor; the packed plan then stays */
HR_MUST_CHECK hr_status hr_trial_reorder_floor(hr_trial *t, bool *moved, hr_error *err);

/* Packs the plan of hr_trial_build_floor or hr_trial_reorder_floor within a work limit. */
HR_MUST_CHECK hr_status hr_trial_pack(hr_trial *t, int64_t work, hr_error *err);

/* Builds and packs a strategy, unless the admission has this plan already. */
HR_MUST_CHECK hr_status hr_trial_build(hr_trial *t, const hr_strategy *strategy, int64_t work,
                                       hr_error *err);

/* ---- admission/trial_account.c */

/* Accounts the process with an arena of a given size. Fills the plan; returns process bytes. */
int64_t hr_trial_account(const hr_trial *t, int64_t arena_bytes);

/* The largest arena that fits the available bytes; -1 if none does. */
int64_t hr_trial_arena_limit(const hr_trial *t);

#endif
