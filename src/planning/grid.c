/* SPDX-License-Identifier: Apache-2.0 */
/* planning/grid.c - plans the cells of a grid one after the other. Everything that is large is in a
 * region, and the cells share the planning region and the results of the search. */
#include "headroom/plan_grid.h"

#include <stdio.h>
#include <string.h>

#include "admission/admit.h"
#include "admission/answer.h"
#include "admission/probes.h"
#include "admission/refuse.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/options.h"
#include "planning/target.h"
#include "report/frontier.h"
#include "report/grid.h"
#include "report/svg.h"

typedef struct {
    const hr_grid_request *request;
    hr_grid_table table;
    hr_memory *memory;
    hr_measured measured;
    hr_admission_machine machine;
    const hr_device_choice *device; /* of the machine; null: this machine, or none yet */
    hr_probes probes;
    hr_grid_cell *cells;
    hr_config config;
    hr_admission admission;
    hr_change_memo memo;
    int64_t changed_work; /* of plans with changes */
    hr_error refusal;     /* of the cell */
    hr_error first;       /* the reason of the first invalid cell */
    int32_t fitting, valid;
    char times[2][HR_TIMES_TEXT_BYTES]; /* of the first plan, and of the last that differs */
} running;

/* ---- one plan */

/* The recipe with the values of the cell, as the command line would make it. */
static hr_status make_config(running *r, const hr_grid_cell *cell, hr_error *err)
{
    const hr_grid_request *request = r->request;
    char value[HR_GRID_VALUE_BYTES];
    hr_status status = HR_OK;
    r->config = *request->config;
    for (int32_t a = 0; a < request->axis_count; a++) {
        const hr_grid_axis *axis = &request->axes[a];
        for (int32_t k = 0; k < axis->key_count && status == HR_OK; k++)
            status = hr_config_set(&r->config, axis->keys[k]->name,
                                   hr_grid_axis_value(axis, cell->points[a], k, value), err);
    }
    if (status == HR_OK) status = hr_config_adopt(&r->config, err);
    if (status == HR_OK) status = hr_config_adopt_data(&r->config, err);
    return status == HR_OK ? hr_config_check(&r->config, err) : status;
}

/* Describes the plan or the refusal of the last admission. */
static void describe(running *r, hr_grid_cell *cell, bool fits)
{
    const hr_admission *a = &r->admission;
    const hr_plan_answer *answer = &a->answer;
    const hr_strategy *strategy = &a->compiled.strategy;
    cell->verdict = HR_CELL_REFUSED;
    cell->process_bytes = fits ? answer->process_bytes : answer->minimum_bytes;
    cell->available_bytes = answer->available_bytes;
    cell->arena_bytes = answer->arena_bytes;
    cell->floor_bytes = answer->floor_bytes;
    cell->batch = r->config.train.batch;
    cell->seq_len = r->config.train.seq_len;
    cell->layers = (int32_t)r->config.model.n_layers;
    cell->file_bytes = cell->file_available_bytes = 0;
    if (!fits && hr_admit_exceeds_file(a)) {
        cell->file_bytes = answer->file_bytes;
        cell->file_available_bytes = a->config.memory.file_budget;
    }
    if (!fits) return;
    cell->disk_bytes = answer->file_bytes;
    cell->step_seconds = answer->step_seconds;
    cell->tokens_per_second = (double)(cell->batch * cell->seq_len) / answer->step_seconds;
    if (r->request->tokens > 0) cell->hours = r->request->tokens / cell->tokens_per_second / 3600;
    cell->micro_batch = strategy->micro_batch;
    cell->loss_chunk = strategy->loss_chunk;
    for (int32_t l = 0; l < strategy->layer_count; l++)
        cell->recomputed_layers += strategy->recompute_set[l] != 0;
    cell->splits_more = strategy->mlp_tile || strategy->attention_tile || strategy->consume ||
                        strategy->reorder;
    hr_frontier_words(&r->config, strategy, cell->words);
    const bool plain = !cell->micro_batch && !cell->loss_chunk && !cell->recomputed_layers &&
                       !cell->splits_more && !*cell->change;
    cell->verdict = plain ? HR_CELL_FITS : HR_CELL_FITS_WITH;
    if (!*r->times[0]) memcpy(r->times[0], answer->times, sizeof r->times[0]);
    else if (strcmp(r->times[0], answer->times) != 0)
        memcpy(r->times[1], answer->times, sizeof r->times[1]);
}

/* Plans r->config. *planned out: whether there is an answer, a plan or a refusal with bytes. */
static hr_status admit(running *r, hr_error *err)
{
    hr_admission *a = &r->admission;
    hr_status status = hr_admit(&r->machine, &r->config, false, &r->probes.room, a, err);
    /* A plan whose file is too large is found without the smallest plan, which is reported. */
    if (status == HR_NO_FIT && !a->answer.minimum_bytes && hr_admit_exceeds_file(a))
        status = hr_admit(&r->machine, &r->config, true, &r->probes.room, a, err);
    if (status == HR_NO_FIT && !a->answer.minimum_bytes) return HR_FAILURE; /* no memory for it */
    return status;
}

/* Takes another format than the recipe's, which the device lacks. Returns whether it fits then. */
static bool take_format(running *r, hr_grid_cell *cell, const char *word)
{
    hr_error *why = &r->refusal;
    hr_status status = hr_config_set_word(&r->config, word, why);
    if (status == HR_OK) status = hr_config_check(&r->config, why);
    if (status == HR_OK) status = admit(r, why);
    if (status == HR_OK || status == HR_NO_FIT)
        snprintf(cell->change, sizeof cell->change, "%s", word);
    return status == HR_OK;
}

/* Work (hr_admission) of changes and of plans with them, for a list of devices, after which no
 * fastest plan with a change is searched. */
static const int64_t fastest_work_most = INT64_C(800000000);

/* Plans r->config, which fits: the fastest plan, or after much work the smallest. */
static hr_status admit_changed(running *r, hr_grid_cell *cell)
{
    hr_admission *a = &r->admission;
    hr_status status = HR_NO_FIT;
    if (r->memo.work + r->changed_work >= fastest_work_most) {
        status = hr_admit_any(&r->machine, &r->config, &r->probes.room, a, &r->refusal);
        const hr_plan *plan = &a->compiled.plan;
        if (status == HR_OK && (!a->answer.fits || plan->process.bytes > a->answer.minimum_bytes))
            status = HR_NO_FIT; /* the plan that was built last is not the one that fits */
        cell->smallest = status == HR_OK;
        if (status == HR_OK) hr_answer_describe(a);
    }
    if (status != HR_OK) status = admit(r, &r->refusal);
    r->changed_work += a->work;
    return status;
}

/* Takes the cheapest change that a refusal offers. Returns whether there is one. */
static bool take_cheapest(running *r, hr_grid_cell *cell)
{
    hr_plan_change change;
    const size_t used = strlen(cell->change);
    const bool found = hr_refuse_cheapest(&r->machine, &r->config, &r->admission, &r->memo, &change,
                                          &cell->tried_all);
    r->probes.room.region = r->admission.region; /* larger if it was too small */
    if (found && admit_changed(r, cell) == HR_OK) {
        snprintf(cell->change + used, sizeof cell->change - used, "%s%s", used ? " " : "",
                 change.what);
        return true;
    }
    if (found) return false; /* no plan was built within the bytes of the search */
    cell->least_bytes = change.bytes;
    snprintf(cell->least, sizeof cell->least, "%s", change.what);
    return false;
}

/* Looks for what makes a recipe fit that does not as it is: another format if the device lacks its
 * own, then the cheapest change. A refusal is described with the format alone. */
static bool find_change(running *r, hr_grid_cell *cell, hr_status status)
{
    const bool lacks = status == HR_USAGE && r->config.train.dtype == HR_FORMAT_BF16;
    cell->tried_all = true;
    if (lacks && take_format(r, cell, "train.dtype=fp32")) return true;
    if (status != HR_NO_FIT && !*cell->change) return false;
    describe(r, cell, false);
    snprintf(cell->reason, sizeof cell->reason, "%s", r->refusal.message);
    return !cell->file_bytes && take_cheapest(r, cell);
}

static void invalid(running *r, hr_grid_cell *cell, const hr_error *why)
{
    cell->verdict = HR_CELL_INVALID;
    snprintf(cell->reason, sizeof cell->reason, "%s", why->message);
    if (!r->first.message[0]) r->first = *why;
}

static hr_status plan_cell(running *r, hr_grid_cell *cell, hr_error *err)
{
    hr_error *why = &r->refusal;
    hr_status status = make_config(r, cell, why);
    if (status != HR_OK) {
        invalid(r, cell, why);
        return HR_OK;
    }
    status = hr_target_check_host(r->device, &r->config, err); /* of all devices of a list */
    if (status != HR_OK) return status;
    hr_target_limit(r->device, &r->config);
    status = admit(r, why);
    if (status == HR_FAILURE || status == HR_CORRUPT)
        return hr_fail(err, why->status, "%s", why->message);
    bool fits = status == HR_OK;
    if (!fits && r->request->changes) {
        fits = find_change(r, cell, status);
        if (!fits && *cell->reason) {
            r->valid++;
            return HR_OK;
        }
    }
    if (!fits && status != HR_NO_FIT) {
        invalid(r, cell, why);
        return HR_OK;
    }
    r->valid++;
    r->fitting += fits;
    describe(r, cell, fits);
    snprintf(cell->reason, sizeof cell->reason, "%s", fits ? "" : why->message);
    return HR_OK;
}

/* ---- all of them */

static void select_device(running *r, int32_t index)
{
    const hr_grid_request *request = r->request;
    const hr_device_choice *device = request->device_count ? &request->devices[index] : NULL;
    if (device == r->device) return;
    r->device = device;
    r->machine = hr_target(device, r->memory, request->calibrations, &r->measured);
    hr_probes_forget(&r->probes);
}

static hr_status plan_all(running *r, hr_error *err)
{
    const hr_grid_request *request = r->request;
    const hr_grid_table *t = &r->table;
    const int32_t axes = request->axis_count, devices = (int32_t)hr_max(request->device_count, 1);
    hr_grid_cell *cell = r->cells;
    for (int32_t tab = 0; tab < t->tabs; tab++)
        for (int32_t row = 0; row < t->rows; row++)
            for (int32_t column = 0; column < t->columns; column++, cell++) {
                cell->device = axes == 0 ? row : axes == 1 ? column : tab % devices;
                if (axes > 0) cell->points[0] = row;
                if (axes > 1) cell->points[1] = column;
                if (axes > 2) cell->points[2] = tab / devices;
                select_device(r, cell->device);
                const hr_status status = plan_cell(r, cell, err);
                if (status != HR_OK) return status;
                if (request->cell) request->cell(request->context, cell, &r->admission.answer);
            }
    return HR_OK;
}

typedef struct {
    hr_file_out out;
    hr_status status;
    hr_error *err;
} drawing;

static void append(void *context, const char *text)
{
    drawing *to = context;
    if (to->status == HR_OK)
        to->status = hr_file_append(&to->out, text, (int64_t)strlen(text), to->err);
}

static hr_status draw(const running *r, hr_error *err)
{
    drawing to = { .err = err };
    to.status = hr_file_begin_path(&to.out, r->request->svg, err);
    if (to.status != HR_OK) return to.status;
    hr_grid_draw(&r->table, &(hr_grid_sink){ append, &to });
    return to.status == HR_OK ? hr_file_commit(&to.out, err) : to.status;
}

static hr_status finish(running *r, hr_error *err)
{
    const hr_grid_request *request = r->request;
    hr_status status = HR_OK;
    if (!r->valid)
        return hr_fail(err, HR_USAGE, "%s%s",
                       request->axis_count ? "no cell of the grid is a recipe: " : "",
                       r->first.message);
    if (request->write)
        hr_grid_print(&r->table, &(hr_grid_sink){ request->write, request->context });
    if (request->svg) status = draw(r, err);
    if (status == HR_OK && !r->fitting)
        return r->valid == 1 ? hr_fail(err, HR_NO_FIT, "the plan does not fit")
                             : hr_fail(err, HR_NO_FIT, "none of the %d plans fits", r->valid);
    return status;
}

static hr_status check(const hr_grid_request *request, int64_t *cells, hr_error *err)
{
    *cells = hr_max(request->device_count, 1);
    for (int32_t a = 0; a < request->axis_count; a++) {
        const hr_grid_axis *axis = &request->axes[a];
        *cells *= axis->count; /* at most 10^4 x 10^4: refused before the next factor */
        if (*cells > HR_GRID_CELLS_MOST)
            return hr_fail(err, HR_USAGE, "the grid has more than %d cells; give fewer values",
                           HR_GRID_CELLS_MOST);
        for (int32_t b = 0; b < a; b++)
            for (int32_t k = 0; k < axis->key_count; k++)
                for (int32_t l = 0; l < request->axes[b].key_count; l++)
                    if (axis->keys[k] == request->axes[b].keys[l])
                        return hr_fail(err, HR_USAGE, "--grid: %s is given twice",
                                       axis->keys[k]->name);
    }
    if (request->svg) return hr_file_check_kind(request->svg, hr_svg_first, "drawing", err);
    return HR_OK;
}

/* Not inlined: the memory has to be opened with a small stack (mem/process.h). */
static __attribute__((noinline)) hr_status run(const hr_grid_request *request, int64_t cells,
                                               hr_memory *memory, hr_error *err)
{
    const hr_plan_query question = { .size = sizeof question, .progress = request->progress };
    const int32_t axes = request->axis_count, devices = (int32_t)hr_max(request->device_count, 1);
    hr_region region = { 0 };
    running *r = NULL;
    hr_status status = hr_memory_region_open(
        memory, "the grid", (int64_t)sizeof *r + cells * (int64_t)sizeof *r->cells + 256, &region,
        err);
    if (status != HR_OK) return status;
    r = hr_region_take(&region, 1, sizeof *r);
    if (r) r->cells = hr_region_take(&region, cells, sizeof *r->cells);
    if (!r || !r->cells) return hr_fail(err, HR_FAILURE, "no room for the cells of a grid");
    r->request = request;
    r->memory = memory;
    r->table = (hr_grid_table){ .request = request,
                                .cells = r->cells,
                                .tabs = axes > 2 ? request->axes[2].count : 1,
                                .rows = axes > 0 ? request->axes[0].count : devices,
                                .columns = axes > 1 ? request->axes[1].count : 1,
                                .times = { r->times[0], r->times[1] } };
    if (axes == 1) r->table.columns = devices;
    if (axes > 1) r->table.tabs *= devices;
    r->machine = hr_target(NULL, memory, request->calibrations, &r->measured);
    status = hr_probes_open(&r->probes, &r->machine, &question, err);
    r->probes.room.packs_fully = r->probes.room.is_brief = true;
    r->admission.progress = request->progress;
    if (status == HR_OK) status = plan_all(r, err);
    return status == HR_OK ? finish(r, err) : status;
}

hr_status hr_plan_grid(const hr_grid_request *given, hr_error *err)
{
    hr_grid_request request;
    hr_memory memory = { 0 };
    int64_t cells = 0;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = check(&request, &cells, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = run(&request, cells, &memory, err);
    hr_memory_close(&memory);
    return status;
}
