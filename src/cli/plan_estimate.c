/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan_estimate.c - headroom plan --as FRAMEWORK: what another framework would take for the
 * same recipe, beside what headroom takes. An estimate, with every assumption printed. */
#include "headroom/estimate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "headroom/plan.h"

/* Both answers. */
typedef struct {
    hr_estimate_settings settings;
    hr_estimate_answer estimate;
    hr_plan_answer plan;
    hr_plan_details details; /* of the plan */
    bool planned;            /* the plan exists, whether or not it fits */
    hr_error plan_error;
    int64_t memory; /* for the framework */
    bool budgeted;  /* it is memory.budget */
} answers;

const char *hr_cli_estimate_verdict(int64_t low, int64_t high, int64_t memory)
{
    if (high <= memory) return "fits";
    return low <= memory ? "may fit" : "does not fit";
}

/* Whether the framework runs on a GPU and no device is given: memory of the host says nothing. */
static bool is_elsewhere(const answers *all)
{
    return !*all->plan.device.name && !all->budgeted && all->settings.device == HR_ESTIMATE_CUDA;
}

/* A size that is read beside a larger one, in its unit. */
static const char *size_beside(int64_t bytes, int64_t larger)
{
    enum { BUFFERS = 4, GIB_FROM = 10 };
    const double gib = 1 << 30;
    static char texts[BUFFERS][HR_COUNT_BYTES];
    static int32_t next;
    if ((double)larger < GIB_FROM * gib || (double)bytes >= GIB_FROM * gib ||
        (double)bytes < gib / 100)
        return hr_cli_size(bytes);
    next = (next + 1) % BUFFERS;
    snprintf(texts[next], HR_COUNT_BYTES, "%.2f GiB", (double)bytes / gib);
    return texts[next];
}

/* ---- text */

static void print_line(const char *name, int64_t bytes, const char *note)
{
    printf("  %-34s %20s  %10s%s%s\n", name, hr_cli_count(bytes), hr_cli_size(bytes),
           *note ? "  " : "", note);
}

static void print_head(const answers *all)
{
    const hr_estimate_answer *e = &all->estimate;
    const hr_plan_answer *p = &all->plan;
    const char *name = hr_estimate_framework_name(all->settings.framework);
    const char *place = *p->device.name ? p->device.name : "this machine";
    printf("%s: %s to %s of memory (estimate: tensors %s, +- 5 %%, and the library)\n", name,
           hr_cli_size(e->low_bytes), hr_cli_size(e->high_bytes), hr_cli_size(e->tensor_bytes));
    if (!all->planned) printf("headroom: %s\n", all->plan_error.message);
    else {
        const double ratio = (double)e->low_bytes / (double)p->minimum_bytes;
        printf("headroom: %s at the least (plan), %.1f times %s",
               size_beside(p->minimum_bytes, e->low_bytes), ratio < 1 ? 1 / ratio : ratio,
               ratio < 1 ? "more" : "less");
        if (ratio < 1 && all->settings.lora_rank) printf(": the plan trains all weights");
        if (p->fits && p->process_bytes > p->minimum_bytes)
            printf("; %s for the fastest plan that fits",
                   size_beside(p->process_bytes, e->low_bytes));
        printf("\n");
    }
    const char *plan = !all->planned ? "" : p->fits ? "headroom fits" : "headroom does not fit";
    if (all->budgeted) printf("the budget is %s: ", size_beside(all->memory, e->low_bytes));
    else printf("%s has %s: ", place, size_beside(all->memory, e->low_bytes));
    if (is_elsewhere(all))
        printf("%s%s%s is estimated on a GPU, --device NAME names one\n", plan, *plan ? "; " : "",
               name);
    else
        printf("%s %s%s%s\n", name,
               hr_cli_estimate_verdict(e->low_bytes, e->high_bytes, all->memory), *plan ? ", " : "",
               plan);
    printf("peak: %s\n\n", e->peak);
}

static void print_components(const hr_estimate_answer *e)
{
    printf("at the peak\n");
    for (int32_t i = 0; i < HR_ESTIMATE_COMPONENTS; i++)
        if (e->components[i])
            print_line(hr_estimate_component_name(i), e->components[i],
                       e->most[i] > e->components[i] ? "larger at another moment" : "");
    print_line("tensors together", e->tensor_bytes, "");
    printf("\nlargest at any moment\n");
    for (int32_t i = 0; i < HR_ESTIMATE_COMPONENTS; i++)
        if (e->most[i] > e->components[i])
            print_line(hr_estimate_component_name(i), e->most[i], "");
    printf("\npeak of each part of a step\n");
    print_line("forward", e->forward_bytes, "");
    print_line("backward", e->backward_bytes, "");
    print_line("update", e->update_bytes, "");
    printf("\nlargest tensors at the peak\n");
    for (int32_t i = 0; i < e->tensor_count; i++) {
        const hr_estimate_tensors *one = &e->tensors[i];
        char note[2 * HR_COUNT_BYTES];
        const int used = snprintf(note, sizeof note, "%lld tensors", (long long)one->count);
        if (one->each)
            snprintf(note + used, sizeof note - (size_t)used, ", %s each", hr_cli_size(one->each));
        print_line(one->name, one->bytes, one->count > 1 ? note : "");
    }
}

static void print_plan(const answers *all)
{
    if (!all->planned) return;
    printf("\nheadroom at its peak (%s)\n",
           all->plan.fits ? "the fastest plan that fits" : "the smallest plan");
    for (int32_t i = 0; i < all->details.part_count; i++)
        print_line(all->details.parts[i].name, all->details.parts[i].bytes, "");
    print_line("process", all->plan.process_bytes, "");
}

static void print_text(const answers *all)
{
    char value[HR_ESTIMATE_VALUE_BYTES], pair[HR_ESTIMATE_VALUE_BYTES + 24];
    print_head(all);
    print_components(&all->estimate);
    print_plan(all);
    printf("\nassumptions (--assume NAME=VALUE changes one)\n");
    const hr_estimate_assumption *one;
    for (int32_t i = 0; (one = hr_estimate_assumption_at(i)); i++) {
        snprintf(pair, sizeof pair, "%s=%s", one->name,
                 hr_estimate_value(&all->settings, i, value));
        printf("  %-34s %s\n", pair, one->text);
    }
}

/* ---- JSON: docs/estimates.md lists the members */

static json_t *json_of_settings(const hr_estimate_settings *settings)
{
    char value[HR_ESTIMATE_VALUE_BYTES];
    json_t *object = json_object();
    const hr_estimate_assumption *one;
    for (int32_t i = 0; (one = hr_estimate_assumption_at(i)); i++)
        json_object_set_new(object, one->name, json_string(hr_estimate_value(settings, i, value)));
    return object;
}

static json_t *json_of_components(const int64_t bytes[HR_ESTIMATE_COMPONENTS])
{
    json_t *object = json_object();
    for (int32_t i = 0; i < HR_ESTIMATE_COMPONENTS; i++)
        json_object_set_new(object, hr_estimate_component_name(i), json_integer(bytes[i]));
    return object;
}

static json_t *json_of_tensors(const hr_estimate_answer *e)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < e->tensor_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:I}", "name",
                                              e->tensors[i].name, "component",
                                              hr_estimate_component_name(e->tensors[i].component),
                                              "count", (json_int_t)e->tensors[i].count, "bytes",
                                              (json_int_t)e->tensors[i].bytes, "bytes_each",
                                              (json_int_t)e->tensors[i].each));
    return list;
}

static json_t *json_of_plan(const answers *all)
{
    const hr_plan_answer *p = &all->plan;
    if (!all->planned) return json_null();
    json_t *parts = json_object();
    for (int32_t i = 0; i < all->details.part_count; i++)
        json_object_set_new(parts, all->details.parts[i].name,
                            json_integer(all->details.parts[i].bytes));
    return json_pack("{s:b, s:I, s:I, s:f, s:o}", "fits", p->fits, "process_bytes",
                     (json_int_t)p->process_bytes, "minimum_bytes", (json_int_t)p->minimum_bytes,
                     "ratio", (double)all->estimate.low_bytes / (double)p->minimum_bytes, "at_peak",
                     parts);
}

static void print_json(const answers *all)
{
    const hr_estimate_answer *e = &all->estimate;
    const hr_plan_answer *p = &all->plan;
    json_t *estimate = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o}", "framework",
        hr_estimate_framework_name(all->settings.framework), "tensor_bytes",
        (json_int_t)e->tensor_bytes, "low_bytes", (json_int_t)e->low_bytes, "high_bytes",
        (json_int_t)e->high_bytes, "peak", e->peak, "forward_bytes", (json_int_t)e->forward_bytes,
        "backward_bytes", (json_int_t)e->backward_bytes, "update_bytes",
        (json_int_t)e->update_bytes, "parameters", (json_int_t)e->parameters, "trained_parameters",
        (json_int_t)e->trained_parameters, "verdict",
        is_elsewhere(all) ? "no device"
                          : hr_cli_estimate_verdict(e->low_bytes, e->high_bytes, all->memory),
        "at_peak", json_of_components(e->components), "largest", json_of_components(e->most),
        "tensors", json_of_tensors(e), "assumptions", json_of_settings(&all->settings));
    json_t *object = json_pack("{s:o, s:o, s:I, s:s}", "estimate", estimate, "plan",
                               json_of_plan(all), "available_bytes", (json_int_t)all->memory,
                               "device", p->device.name);
    (void)hr_cli_print_json(object, 0);
}

/* ---- the answer */

hr_status hr_cli_estimate_settings(const hr_cli_arguments *arguments, const hr_config *config,
                                   const hr_device_choice *device, hr_estimate_settings *settings,
                                   hr_error *err)
{
    int32_t framework = HR_FRAMEWORK_PYTORCH;
    hr_status status = hr_estimate_framework(arguments->values[HR_OPTION_AS], &framework, err);
    if (status != HR_OK) return status;
    hr_estimate_settings_of(config, framework, settings);
    if (device)
        hr_estimate_move(settings, device->device->kind == HR_DEVICE_GPU ? HR_ESTIMATE_CUDA
                                                                         : HR_ESTIMATE_CPU);
    int32_t count;
    const char *const *assumed = hr_cli_repeated(arguments, HR_OPTION_ASSUME, &count);
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        status = hr_estimate_assume(settings, assumed[i], err);
    if (status == HR_OK && settings->world > 1 && !settings->zero_stage)
        return hr_fail(err, HR_USAGE,
                       "--assume world=%lld: with zero=0 nothing is shared, and each process takes "
                       "what one alone takes; set zero=1, 2 or 3 too",
                       (long long)settings->world);
    return status;
}

hr_status hr_cli_estimate_one(const hr_cli_arguments *arguments, const hr_config *config,
                              const hr_device_choice *device, hr_estimate_settings *settings,
                              hr_estimate_answer *answer, hr_error *err)
{
    hr_status status = hr_cli_estimate_settings(arguments, config, device, settings, err);
    if (status != HR_OK) return status;
    const int64_t bytes = hr_estimate_bytes(config);
    void *memory = malloc((size_t)bytes);
    if (!memory)
        return hr_fail(err, HR_FAILURE, "out of memory for %lld bytes of an estimate",
                       (long long)bytes);
    status = hr_estimate_make(config, settings, memory, bytes, answer, err);
    free(memory);
    return status;
}

/* The range has the context of a card, which is part of the reserve of a plan. */
int64_t hr_cli_estimate_memory(const hr_device_choice *device)
{
    return device->device->kind == HR_DEVICE_GPU ? device->device->usable_bytes
                                                 : hr_device_budget(device);
}

hr_status hr_cli_estimate(const hr_cli_arguments *arguments, const hr_config *config,
                          const char *calibrations, const hr_device_choice *device, hr_error *err)
{
    static answers all;
    const hr_plan_outputs outputs = { .size = sizeof outputs,
                                      .calibrations = calibrations,
                                      .device = device,
                                      .details = &all.details };
    memset(&all, 0, sizeof all);
    hr_status status = hr_cli_estimate_one(arguments, config, device, &all.settings, &all.estimate,
                                           err);
    if (status != HR_OK) return status;
    status = hr_plan_make(config, &outputs, &all.plan, &all.plan_error);
    all.planned = status == HR_OK || (status == HR_NO_FIT && all.plan.minimum_bytes > 0);
    if (status == HR_USAGE || status == HR_CORRUPT)
        return hr_fail(err, status, "%s", all.plan_error.message);
    all.memory = device ? hr_cli_estimate_memory(device) : all.plan.available_bytes;
    const int64_t budget = hr_config_integer(config, "memory.budget");
    all.budgeted = !device && budget > 0 && all.memory <= budget;
    if (arguments->values[HR_OPTION_JSON]) print_json(&all);
    else print_text(&all);
    return HR_OK;
}
