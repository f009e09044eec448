/* SPDX-License-Identifier: Apache-2.0 */
/* admission/changes.c - plans changed recipes. */
#include "admission/changes.h"

#include <stdio.h>
#include <string.h>

#include "admission/stages.h"
#include "base/account.h"
#include "base/checked.h"

/* A change makes no state larger: a recipe whose states all stay in memory has no file after it. */
int64_t hr_changes_available(const hr_changes *c, const hr_config *config)
{
    const bool files = config->memory.moments == HR_PLACE_FILE;
    const bool has_file = (files && (c->has_file || c->config->memory.moments != HR_PLACE_FILE)) ||
                          config->memory.weights == HR_PLACE_FILE ||
                          config->memory.spill == HR_SPILL_AUTO;
    return hr_account_process(config->memory.budget, c->machine->process.page_bytes,
                              c->admission->answer.available_bytes,
                              c->admission->compiled.plan.process.threads, has_file);
}

/* ---- what is known of other devices */

/* Machines whose plans have the same bytes: all cards, where the recipe has the same format. */
static const void *tag_of(const hr_admission_machine *machine, const hr_config *config)
{
    static const char cards[2] = "";
    if (!machine->device) return NULL;
    if (!hr_admission_is_card(machine)) return machine->device->device;
    return &cards[config->train.dtype == HR_FORMAT_BF16];
}

static bool lacks_format(const hr_changes *c)
{
    const bool bf16 = c->tried.train.dtype == HR_FORMAT_BF16;
    const hr_device_choice *device = c->machine->device;
    return device && !hr_device_has(device->device, bf16 ? HR_DEVICE_BF16 : HR_DEVICE_FP32);
}

/* The entry of a change; -1 if there is no room for it. */
static int32_t entry_of(hr_changes *c, const char *what)
{
    hr_change_memo *memo = c->memo;
    const void *tag = tag_of(c->machine, c->config);
    const int64_t file_budget = c->config->memory.file_budget;
    for (int32_t i = 0; i < memo->count; i++)
        if (memo->known[i].tag == tag && memo->known[i].file_budget == file_budget &&
            !strcmp(memo->known[i].what, what))
            return i;
    if (memo->count == HR_CHANGES_KNOWN_MOST) return -1;
    memo->known[memo->count].tag = tag;
    memo->known[memo->count].file_budget = file_budget;
    memo->known[memo->count].low = 0;
    memo->known[memo->count].high = INT64_MAX;
    memo->known[memo->count].exact = 0;
    snprintf(memo->known[memo->count].what, HR_PLAN_CHANGE_BYTES, "%s", what);
    return memo->count++;
}

/* ---- what is tried, in a run of stages */

/* The recipe to change, in a region: another config on the stack would exceed what is planned. Null
 * without stages. */
static hr_config *open_run(const hr_admission_machine *machine, const hr_admission *admission)
{
    hr_error ignored;
    hr_region region = { 0 };
    if (!admission->share) return NULL;
    const hr_status status = machine->open(machine->context, "a changed recipe", sizeof(hr_config),
                                           false, &region, &ignored);
    return status == HR_OK ? hr_region_take(&region, 1, sizeof(hr_config)) : NULL;
}

/* Takes c->tried as a change of the whole run: *c->run is its recipe, and `own` what its stages
 * have in common. Returns whether it is one. */
static bool change_run(hr_changes *c, hr_admission_share *own)
{
    hr_error ignored;
    *c->run = *c->admission->share->recipe;
    hr_config_copy_changes(c->run, c->config, &c->tried);
    return hr_stages_share(c->machine, c->run, &c->tried, own, &ignored) == HR_OK;
}

/* Sets c->tried to a stage of *c->run. */
static bool take_stage(hr_changes *c, int32_t index)
{
    hr_error ignored;
    return hr_config_at_stage(c->run, index, &c->tried, &ignored) == HR_OK;
}

static int64_t plan_stage(hr_changes *c, int32_t index, bool exact)
{
    if (!take_stage(c, index)) return INT64_MAX;
    return hr_admit_minimum(c->machine, &c->tried, exact, c->cache, c->admission);
}

/* Bytes of the stage of *c->run that needs most: with a change, another one may than without. With
 * `exact` false, of the one that needed most without it. */
static int64_t plan_run(hr_changes *c, bool exact)
{
    const int32_t worst = c->config->stage.index, count = c->config->stage.count;
    int64_t most = plan_stage(c, worst, exact);
    for (int32_t i = 0; i < count && exact; i++)
        if (i != worst && plan_stage(c, i, false) > most)
            most = hr_max(most, plan_stage(c, i, true));
    return most;
}

/* Bytes of c->tried, as hr_admit_minimum. */
static int64_t plan_tried(hr_changes *c, bool exact)
{
    hr_admission_share own;
    const hr_admission_share *share = c->admission->share;
    if (!c->run) return hr_admit_minimum(c->machine, &c->tried, exact, c->cache, c->admission);
    if (!change_run(c, &own)) return INT64_MAX;
    c->admission->share = &own;
    const int64_t bytes = plan_run(c, exact);
    c->admission->share = share;
    return take_stage(c, c->config->stage.index) ? bytes : INT64_MAX;
}

double hr_changes_seconds(hr_changes *c)
{
    hr_error ignored;
    hr_admission_share own;
    double seconds = -1;
    const hr_admission_share *share = c->admission->share;
    const bool is_run = c->run != NULL;
    if (is_run && !(change_run(c, &own) && take_stage(c, c->config->stage.index))) return -1;
    if (is_run) c->admission->share = &own;
    const hr_status status = hr_admit_other(c->machine, &c->tried, c->admission, &seconds,
                                            &ignored);
    c->admission->share = share;
    return status == HR_OK ? seconds : -1;
}

/* ---- bytes of what is tried */

/* What a device has shown is not planned for the next. */
int64_t hr_changes_minimum(hr_changes *c, const char *what, bool exact)
{
    const int64_t available = hr_changes_available(c, &c->tried);
    if (!c->memo) return plan_tried(c, exact);
    if (lacks_format(c)) return INT64_MAX;
    const int32_t i = entry_of(c, what);
    const int64_t low = i < 0 ? 0 : c->memo->known[i].low;
    const int64_t high = i < 0 ? INT64_MAX : c->memo->known[i].high;
    if (high <= available) return high;
    if (low > available) return low;
    if (c->memo->work >= c->work_most) {
        c->cut = true;
        return INT64_MAX;
    }
    const int64_t before = c->admission->work;
    const int64_t bytes = plan_tried(c, false);
    c->memo->work += c->admission->work - before;
    if (i >= 0 && bytes <= available) c->memo->known[i].high = bytes;
    if (i >= 0 && bytes > available) c->memo->known[i].low = hr_max(low, bytes);
    return bytes;
}

int64_t hr_changes_exact(hr_changes *c, const char *what)
{
    const int32_t i = entry_of(c, what);
    int64_t bytes = i < 0 ? 0 : c->memo->known[i].exact;
    if (!bytes) bytes = plan_tried(c, true);
    if (i >= 0) c->memo->known[i].exact = bytes;
    return bytes;
}

bool hr_changes_are_over(const hr_changes *c)
{
    return !c->memo && c->admission->work >= c->work_most;
}

/* Opens a cache of search results. Without it plans take longer. */
static hr_proxy_cache *open_cache(const hr_admission_machine *machine)
{
    hr_error ignored;
    hr_region region = { 0 };
    hr_proxy_cache *cache = NULL;
    hr_status status = machine->open(machine->context, "search results", hr_proxy_cache_bytes(),
                                     false, &region, &ignored);
    if (status == HR_OK) status = hr_proxy_cache_place(&region, &cache, &ignored);
    return status == HR_OK ? cache : NULL;
}

/* Opens the search results of a memo, or forgets those of other machines. */
static void use_cache(const hr_admission_machine *machine, const hr_config *config,
                      hr_change_memo *memo)
{
    if (!memo->cache) memo->cache = open_cache(machine);
    else if (memo->cache_tag != tag_of(machine, config)) hr_proxy_cache_clear(memo->cache);
    memo->cache_tag = tag_of(machine, config);
}

void hr_changes_open(const hr_admission_machine *machine, const hr_config *config,
                     hr_admission *admission, hr_change_memo *memo, hr_changes *changes)
{
    *changes = (hr_changes){ .machine = machine,
                             .config = config,
                             .admission = admission,
                             .memo = memo,
                             .run = open_run(machine, admission),
                             .has_file = admission->has_file };
    if (memo) use_cache(machine, config, memo);
    changes->cache = memo ? memo->cache : open_cache(machine);
}
