/* SPDX-License-Identifier: Apache-2.0 */
/* admission/changes.h - plans changed recipes: a stage with its run, and for a list of devices only
 * what the devices before have not shown.
 *
 * The work of all plans is counted and not timed, so that equal recipes get equal answers. */
#ifndef HR_ADMISSION_CHANGES_H
#define HR_ADMISSION_CHANGES_H

#include "admission/admit.h"
#include "search/proxy_cache.h"

enum { HR_CHANGES_KNOWN_MOST = 384 };

/* The bytes of changes to one recipe, for the devices of a list: plans have the same bytes on every
 * card. Begin with zeros. */
typedef struct {
    struct {
        int64_t low, high; /* no plan fits below low, one fits in high */
        int64_t exact;     /* of the smallest plan; 0: not planned */
        int64_t file_budget;
        const void *tag; /* of machines whose plans have the same bytes */
        char what[HR_PLAN_CHANGE_BYTES];
    } known[HR_CHANGES_KNOWN_MOST];
    int32_t count;
    int64_t work;          /* of all its plans, in units of hr_admission.work */
    hr_proxy_cache *cache; /* opened when needed */
    const void *cache_tag;
} hr_change_memo;

typedef struct {
    const hr_admission_machine *machine;
    const hr_config *config; /* the recipe, unchanged */
    hr_admission *admission; /* a refused one of it; its plan is overwritten */
    hr_proxy_cache *cache;   /* or null */
    hr_change_memo *memo;    /* or null */
    int64_t work_most;       /* no plan begins beyond so much work; set by the caller */
    hr_config tried;         /* the changed recipe, of the stage of `config`; set by the caller */
    hr_config *run;          /* the recipe of a run of stages, with what is tried; else null */
    bool has_file;           /* the recipe's program has values in a file */
    bool cut;                /* the limit of work left a change unplanned, with a memo */
} hr_changes;

/* Opens regions for a cache of search results and the recipe of a run. Without a cache plans take
 * longer. */
void hr_changes_open(const hr_admission_machine *machine, const hr_config *config,
                     hr_admission *admission, hr_change_memo *memo, hr_changes *changes);

/* Bytes that the process of a recipe may use. */
int64_t hr_changes_available(const hr_changes *changes, const hr_config *config);

/* Bytes of the smallest plan of `tried`, or without `exact` close to them; INT64_MAX: there is
 * none. With a memo they tell whether it fits, and `what` names the change. */
int64_t hr_changes_minimum(hr_changes *changes, const char *what, bool exact);

/* The same with a memo, exactly, whatever the limit of work. */
int64_t hr_changes_exact(hr_changes *changes, const char *what);

/* Step seconds of the fastest plan of `tried`; below 0: there is none. */
double hr_changes_seconds(hr_changes *changes);

/* Whether the limit of work is reached. With a memo, hr_changes_minimum asks. */
bool hr_changes_are_over(const hr_changes *changes);

#endif
