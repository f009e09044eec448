/* SPDX-License-Identifier: Apache-2.0 */
/* admission/probes.c - the smallest budgets, and the frontier between bytes and time. A probe finds
 * the fastest plan within a budget. The bytes of that plan are the least budget that gives it, so
 * one probe covers every budget between the two. */
#include "admission/probes.h"
#include "admission/queries.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "report/frontier.h"
#include "report/svg.h"
#include "search/proxy_cache.h"

enum {
    BUDGETS = 20,     /* of a frontier, evenly spaced on a log scale */
    POINTS_FEW = 12,  /* with fewer points the widest gaps are probed too */
    PROBES_MOST = 48, /* of a frontier */
    MEND_MOST = 3,
    WITHIN_MOST = 8,             /* plans tried if floors do not decide */
    WITHIN_WORK_MOST = 800000000 /* only up to this work of all plans (hr_admission) */
};

static const int64_t unbounded = INT64_C(1) << 53; /* the largest that memory.budget takes */

/* ---- probes */

hr_status hr_probes_open(hr_probes *probes, const hr_admission_machine *machine,
                         const hr_plan_query *question, hr_error *err)
{
    *probes = (hr_probes){ .machine = machine,
                           .work_most = question->work_most ? question->work_most : HR_QUERY_WORK };
    probes->room.progress = question->progress;
    hr_region region = { 0 };
    const hr_status status = machine->open(machine->context, "search results",
                                           hr_proxy_cache_bytes(), false, &region, err);
    return status == HR_OK ? hr_proxy_cache_place(&region, &probes->room.cache, err) : status;
}

void hr_probes_forget(hr_probes *probes)
{
    hr_proxy_cache_clear(probes->room.cache);
}

static void describe(const hr_admission *a, hr_plan_point *point)
{
    const hr_plan_answer *answer = &a->answer;
    *point = (hr_plan_point){ .process_bytes = answer->process_bytes,
                              .arena_bytes = answer->arena_bytes,
                              .floor_bytes = answer->floor_bytes,
                              .step_seconds = answer->step_seconds,
                              .bound_seconds = answer->bound_seconds };
    point->tokens_per_second = (double)(a->config.train.batch * a->config.train.seq_len) /
                               answer->step_seconds;
    memcpy(point->packing, answer->packing, sizeof point->packing);
    memcpy(point->strategy, answer->strategy, sizeof point->strategy);
    hr_frontier_words(&a->config, &a->compiled.strategy, point->words);
}

hr_status hr_probe_fastest(hr_probes *probes, const hr_config *config, int64_t budget,
                           hr_plan_point *point, hr_error *err)
{
    hr_admission admission = { .progress = probes->room.progress, .budget = budget };
    probes->made++;
    const hr_status status = hr_admit(probes->machine, config, false, &probes->room, &admission,
                                      err);
    memcpy(probes->times, admission.answer.times, sizeof probes->times);
    if (status == HR_OK) describe(&admission, point);
    probes->least_floor = admission.least_floor;
    probes->work += admission.work;
    probes->has_file = admission.has_file;
    return status;
}

hr_status hr_probe_least(hr_probes *probes, const hr_config *config, int64_t *bytes, hr_error *err)
{
    hr_admission admission = { .progress = probes->room.progress };
    probes->made++;
    const hr_status status = hr_admit_least(probes->machine, config, &probes->room, &admission,
                                            err);
    probes->work += admission.work;
    probes->has_file = admission.has_file;
    if (status == HR_OK && hr_admit_exceeds_file(&admission))
        return hr_admit_refuse_file(&admission, err);
    if (status == HR_OK) *bytes = admission.answer.minimum_bytes;
    return status;
}

hr_status hr_probe_any(hr_probes *probes, const hr_config *config, int64_t budget, int64_t *bytes,
                       hr_error *err)
{
    hr_admission admission = { .progress = probes->room.progress, .budget = budget };
    probes->made++;
    hr_status status = hr_admit_any(probes->machine, config, &probes->room, &admission, err);
    probes->work += admission.work;
    probes->has_file = admission.has_file;
    const bool far = status == HR_NO_FIT && admission.answer.minimum_bytes > 0;
    if (hr_admit_exceeds_file(&admission)) return hr_admit_refuse_file(&admission, err);
    if (status == HR_OK || far) *bytes = admission.answer.minimum_bytes;
    return far ? HR_OK : status;
}

/* ---- the smallest budget */

/* Finds the plan with the least budget. If a plan packs above the least floor, another may pack
 * lower: probes one page less until that is refused. */
static hr_status find_least(hr_probes *probes, const hr_config *config, hr_plan_point *point,
                            hr_error *err)
{
    int64_t bytes;
    hr_status status = hr_probe_least(probes, config, &bytes, err);
    if (status == HR_OK) status = hr_probe_fastest(probes, config, bytes, point, err);
    for (int32_t i = 0; i < MEND_MOST && status == HR_OK; i++) {
        if (point->arena_bytes <= probes->least_floor) return HR_OK;
        bytes = point->process_bytes - probes->machine->process.page_bytes;
        status = hr_probe_fastest(probes, config, bytes, point, err);
        if (status == HR_NO_FIT) return HR_OK;
    }
    return status;
}

static bool is_within(const hr_plan_point *point, const hr_smallest *answer)
{
    const double most = answer->fastest.step_seconds * (1 + answer->slowdown);
    return point->step_seconds <= most * (1 + 1e-12);
}

/* Finds the smallest plan within the slowdown. The first search compares floors, which is fast. If
 * its plan does not pack at its floor, a smaller budget may be enough: bisects with built plans,
 * where `within` is always fast enough and `low` never is. */
static hr_status find_within(hr_probes *probes, const hr_config *config, hr_smallest *answer,
                             hr_error *err)
{
    const int64_t page = probes->machine->process.page_bytes;
    const double seconds = answer->fastest.step_seconds * (1 + answer->slowdown) * (1 + 1e-12);
    int64_t low, middle;
    hr_plan_point point;
    if (is_within(&answer->least, answer)) {
        answer->within = answer->least;
        return HR_OK;
    }
    answer->within = answer->fastest;
    hr_config unlimited = *config;
    unlimited.memory.budget = unbounded;
    hr_status status = hr_admit_budget(probes->machine, &unlimited, seconds, &answer->least,
                                       &answer->fastest, &probes->room, &low, &middle, err);
    if (status == HR_OK) status = hr_probe_fastest(probes, config, middle, &point, err);
    if (status != HR_OK) return status;
    if (is_within(&point, answer)) answer->within = point;
    else low = middle;
    if (answer->within.process_bytes <= low) return HR_OK;
    low -= page;
    for (int32_t i = 0; i < WITHIN_MOST && probes->work < WITHIN_WORK_MOST &&
                        answer->within.process_bytes - low > page;
         i++) {
        middle = low + (answer->within.process_bytes - low) / 2 / page * page;
        status = hr_probe_fastest(probes, config, hr_max(middle, low + page), &point, err);
        if (status != HR_OK) return status;
        if (is_within(&point, answer)) answer->within = point;
        else low = hr_max(middle, low + page);
    }
    if (answer->within.process_bytes - low > page) answer->within_bound = low + page;
    return HR_OK;
}

static hr_status find_smallest(hr_probes *probes, const hr_config *config, hr_smallest *answer,
                               hr_error *err)
{
    hr_status status = hr_probe_fastest(probes, config, unbounded, &answer->fastest, err);
    if (status != HR_OK) return status;
    answer->named = *config->memory.strategy;
    if (answer->named) answer->least = answer->within = answer->fastest;
    else status = find_least(probes, config, &answer->least, err);
    if (status == HR_OK && !answer->named) status = find_within(probes, config, answer, err);
    memcpy(answer->times, probes->times, sizeof answer->times);
    return status;
}

hr_status hr_query_smallest(const hr_admission_machine *machine, const hr_config *config,
                            double slowdown, const hr_plan_query *question, hr_smallest *answer,
                            hr_error *err)
{
    hr_probes probes;
    if (!(slowdown >= 0 && slowdown <= 1e9))
        return hr_fail(err, HR_USAGE, "a slowdown is a number from 0 on; got %g", slowdown);
    hr_status status = hr_probes_open(&probes, machine, question, err);
    if (status != HR_OK) return status;
    answer->slowdown = slowdown;
    answer->within_bound = 0;
    status = find_smallest(&probes, config, answer, err);
    if (status != HR_OK || !question->text) return status;
    hr_writer writer = { question->text, question->text_bytes };
    hr_smallest_print(answer, &writer);
    return HR_OK;
}

/* ---- the frontier */

/* The frontier under construction. Budgets from the bytes of points[i] to clear[i] give
 * points[i]. */
typedef struct {
    hr_probes *probes;
    const hr_config *config;
    hr_frontier *frontier;
    int64_t clear[HR_POINTS_MOST];
} walk;

static void drop(walk *w, int32_t i)
{
    hr_frontier *f = w->frontier;
    const size_t behind = (size_t)(f->count - i - 1);
    memmove(&f->points[i], &f->points[i + 1], behind * sizeof *f->points);
    memmove(&w->clear[i], &w->clear[i + 1], behind * sizeof *w->clear);
    f->count--;
}

/* Inserts a point in order, unless another is as small and as fast. Drops the points it beats. */
static void insert(walk *w, const hr_plan_point *point, int64_t budget)
{
    hr_frontier *f = w->frontier;
    int32_t at = 0;
    while (at < f->count && f->points[at].process_bytes <= point->process_bytes) at++;
    if (at > 0 && f->points[at - 1].step_seconds <= point->step_seconds) {
        w->clear[at - 1] = hr_max(w->clear[at - 1], budget);
        return;
    }
    while (at > 0 && f->points[at - 1].process_bytes == point->process_bytes) drop(w, --at);
    while (at < f->count && f->points[at].step_seconds >= point->step_seconds) drop(w, at);
    if (f->count == HR_POINTS_MOST) return;
    const size_t behind = (size_t)(f->count - at);
    memmove(&f->points[at + 1], &f->points[at], behind * sizeof *f->points);
    memmove(&w->clear[at + 1], &w->clear[at], behind * sizeof *w->clear);
    f->points[at] = *point;
    w->clear[at] = budget;
    f->count++;
}

static hr_status probe(walk *w, int64_t budget, hr_error *err)
{
    hr_plan_point point;
    const hr_status status = hr_probe_fastest(w->probes, w->config, budget, &point, err);
    if (status == HR_OK) insert(w, &point, budget);
    return status;
}

/* Returns whether an earlier probe covers a budget. */
static bool is_known(const walk *w, int64_t budget)
{
    for (int32_t i = 0; i < w->frontier->count; i++)
        if (w->frontier->points[i].process_bytes <= budget && budget <= w->clear[i]) return true;
    return false;
}

static hr_status walk_evenly(walk *w, hr_error *err)
{
    const hr_frontier *f = w->frontier;
    const double low = log((double)f->points[0].process_bytes);
    const double high = log((double)f->points[f->count - 1].process_bytes);
    hr_status status = HR_OK;
    for (int32_t i = BUDGETS - 2; i > 0 && status == HR_OK; i--) {
        if (hr_probes_are_spent(w->probes)) break;
        const int64_t budget = (int64_t)exp(low + (high - low) * i / (BUDGETS - 1));
        if (budget >= f->points[0].process_bytes && !is_known(w, budget))
            status = probe(w, budget, err);
    }
    return status;
}

/* Probes the widest gaps between points until there are POINTS_FEW points. */
static hr_status walk_gaps(walk *w, hr_error *err)
{
    const hr_frontier *f = w->frontier;
    hr_status status = HR_OK;
    while (f->count < POINTS_FEW && w->probes->made < PROBES_MOST && status == HR_OK &&
           !hr_probes_are_spent(w->probes)) {
        double widest = 1.002; /* narrower gaps are not worth a point */
        int32_t at = HR_NONE;
        for (int32_t i = 0; i + 1 < f->count; i++) {
            const double gap = (double)f->points[i + 1].process_bytes / (double)w->clear[i];
            if (gap <= widest) continue;
            widest = gap;
            at = i;
        }
        if (at == HR_NONE) return HR_OK;
        status = probe(w, (int64_t)((double)w->clear[at] * sqrt(widest)), err);
    }
    return status;
}

static hr_status find_frontier(hr_probes *probes, const hr_config *config, hr_frontier *answer,
                               hr_error *err)
{
    walk w = { .probes = probes, .config = config, .frontier = answer };
    hr_plan_point least;
    answer->count = 0;
    answer->cut = false;
    answer->named = *config->memory.strategy;
    answer->available_bytes = config->memory.budget ? config->memory.budget : -1;
    hr_status status = probe(&w, unbounded, err);
    if (status == HR_OK && !answer->named) status = find_least(probes, config, &least, err);
    if (status == HR_OK && !answer->named) {
        insert(&w, &least, least.process_bytes);
        status = walk_evenly(&w, err);
        if (status == HR_OK) status = walk_gaps(&w, err);
        answer->cut = hr_probes_are_spent(probes);
    }
    answer->probes = probes->made;
    memcpy(answer->times, probes->times, sizeof answer->times);
    return status;
}

static hr_status write_svg(const hr_frontier *frontier, const char *path, hr_error *err)
{
    char svg[HR_FRONTIER_SVG_BYTES];
    hr_writer writer = { svg, sizeof svg };
    hr_file_out out;
    hr_frontier_draw(frontier, &writer);
    if (writer.cut)
        return hr_fail(err, HR_FAILURE, "%s: more than %d bytes", path, (int)sizeof svg);
    hr_status status = hr_file_begin_path(&out, path, err);
    if (status == HR_OK) status = hr_file_append(&out, svg, writer.used, err);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}

hr_status hr_query_frontier(const hr_admission_machine *machine, const hr_config *config,
                            const char *svg, const hr_plan_query *question, hr_frontier *answer,
                            hr_error *err)
{
    hr_probes probes;
    hr_status status = HR_OK;
    if (svg) status = hr_file_check_kind(svg, hr_svg_first, "drawing", err);
    if (status == HR_OK) status = hr_probes_open(&probes, machine, question, err);
    if (status != HR_OK) return status;
    status = find_frontier(&probes, config, answer, err);
    if (status != HR_OK) return status;
    hr_writer writer = { question->text, question->text_bytes };
    if (question->text)
        hr_frontier_print(answer, question->columns ? question->columns : 80, &writer);
    return svg ? write_svg(answer, svg, err) : HR_OK;
}
