/* SPDX-License-Identifier: Apache-2.0 */
/* cli/plan_estimates.c - headroom plan --as FRAMEWORK with --largest, --grid or --devices: many
 * estimates of another framework. They are quick: no plan is made. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "headroom/estimate.h"
#include "headroom/plan_grid.h"

/* What is changed in the recipe, and where the framework runs. */
typedef struct {
    const hr_cli_arguments *arguments;
    const hr_config *recipe; /* before hr_config_adopt */
    const hr_device_choice *devices;
    int32_t device_count; /* 0: the budget */
    hr_grid_axis axes[HR_GRID_AXES_MOST];
    int32_t axis_count;
    hr_config *config;
} asking;

typedef struct {
    bool legal; /* false: `why` */
    int64_t low, high;
    hr_error why;
} estimated;

static const hr_device_choice *device_of(const asking *a, int32_t index)
{
    return a->device_count ? &a->devices[index] : NULL;
}

/* Devices, or the budget. */
static int32_t places(const asking *a)
{
    return a->device_count ? a->device_count : 1;
}

static int64_t memory_of(const asking *a, int32_t device)
{
    return a->device_count ? hr_cli_estimate_memory(device_of(a, device))
                           : hr_config_integer(a->recipe, "memory.budget");
}

static const char *place_of(const asking *a, int32_t device)
{
    return a->device_count ? a->devices[device].device->name : "the budget";
}

static const char *verdict_of(const asking *a, int32_t device, const estimated *e)
{
    return e->legal ? hr_cli_estimate_verdict(e->low, e->high, memory_of(a, device)) : "invalid";
}

/* Estimates a->config, the recipe with some values. */
static void estimate(asking *a, int32_t device, estimated *e)
{
    hr_estimate_settings settings;
    hr_estimate_answer answer;
    hr_status status = hr_config_adopt(a->config, &e->why);
    if (status == HR_OK) status = hr_config_adopt_data(a->config, &e->why);
    if (status == HR_OK) status = hr_config_check(a->config, &e->why);
    if (status == HR_OK)
        status = hr_cli_estimate_one(a->arguments, a->config, device_of(a, device), &settings,
                                     &answer, &e->why);
    e->legal = status == HR_OK;
    e->low = e->legal ? answer.low_bytes : 0;
    e->high = e->legal ? answer.high_bytes : 0;
}

static void print_json(json_t *object)
{
    (void)hr_cli_print_json(object, 0);
}

static void print_places(const asking *a)
{
    printf("%s: estimates, tensors +- 5 %% and the library; headroom plan --as %s alone lists what "
           "is assumed\n",
           a->arguments->values[HR_OPTION_AS], a->arguments->values[HR_OPTION_AS]);
    for (int32_t i = 0; i < places(a); i++)
        printf("%s: %s of memory\n", place_of(a, i), hr_cli_size(memory_of(a, i)));
}

static const char *range(const estimated *e)
{
    static char text[2 * HR_COUNT_BYTES + 8];
    if (!e->legal) return e->why.message;
    snprintf(text, sizeof text, "%s to %s", hr_cli_size(e->low), hr_cli_size(e->high));
    return text;
}

/* ---- --largest */

enum { GAP_MOST = 4096 }; /* values without a legal one, at which the search ends */

/* The value of the key from `value` on that makes a recipe, with its estimate; -1: none. */
static int64_t legal_from(asking *a, const char *key, int64_t value, int64_t most, int32_t device,
                          estimated *e)
{
    char text[HR_COUNT_BYTES];
    for (int64_t at = value; at <= most && at - value <= GAP_MOST; at++) {
        hr_config_assign(a->config, a->recipe);
        snprintf(text, sizeof text, "%lld", (long long)at);
        e->legal = hr_config_set(a->config, key, text, &e->why) == HR_OK;
        if (e->legal) estimate(a, device, e);
        if (e->legal) return at;
    }
    return -1;
}

/* The ends of the three answers on a device; -1: there is no such value. */
typedef struct {
    int64_t fits, may_fit, beyond;
    estimated at[3];
} ends;

/* The largest value whose bytes (the low ends of ranges, or the high ones) are within the memory;
 * *beyond: the legal value after it. */
static int64_t largest_within(asking *a, const hr_key *key, int32_t device, bool high,
                              estimated *within, int64_t *beyond, estimated *above)
{
    const int64_t memory = memory_of(a, device), most = (int64_t)key->high;
    int64_t found = -1, first = (int64_t)(key->low > 1 ? key->low : 1);
    int64_t step = 1, end = -1; /* a value that is beyond */
    *beyond = -1;
    for (int64_t value = first; end < 0; value = found + step, step *= 2) {
        estimated e;
        const int64_t at = value > most ? -1 : legal_from(a, key->name, value, most, device, &e);
        if (at < 0 && step == 1) return found;
        if (at < 0 || (high ? e.high : e.low) > memory) {
            end = at < 0 ? (value > most ? most + 1 : value) : at;
            if (at >= 0) *beyond = at, *above = e;
        } else found = at, *within = e;
    }
    for (int64_t low = found < 0 ? first : found + 1; low < end;) {
        estimated e;
        const int64_t middle = low + (end - low) / 2;
        const int64_t at = legal_from(a, key->name, middle, end - 1, device, &e);
        if (at >= 0 && (high ? e.high : e.low) <= memory) {
            found = at;
            *within = e;
            low = at + 1;
        } else {
            if (at >= 0) *beyond = at, *above = e;
            end = middle;
        }
    }
    return found;
}

static const char *const answers[] = { "fits up to", "may fit up to", "does not fit from" };

static void print_ends(const asking *a, int32_t device, const ends *found)
{
    const int64_t values[] = { found->fits, found->may_fit, found->beyond };
    if (a->device_count > 1) printf("\n%s\n", place_of(a, device));
    for (int32_t i = 0; i < 3; i++) {
        if (i == 1 && found->may_fit == found->fits) continue;
        if (values[i] < 0) printf("  %-18s %12s\n", answers[i], i < 2 ? "none" : "no value");
        else
            printf("  %-18s %12s  %s\n", answers[i], hr_cli_count(values[i]), range(&found->at[i]));
    }
}

static json_t *json_of_end(int64_t value, const estimated *e)
{
    if (value < 0) return json_null();
    return json_pack("{s:I, s:I, s:I}", "value", (json_int_t)value, "low_bytes", (json_int_t)e->low,
                     "high_bytes", (json_int_t)e->high);
}

static hr_status largest(asking *a, hr_error *err)
{
    const char *name = hr_cli_key_name(a->arguments->values[HR_OPTION_LARGEST]);
    const hr_key *key = NULL;
    for (int32_t i = 0; (key = hr_config_key(i)) && strcmp(key->name, name);) i++;
    if (!key || key->type != HR_KEY_INTEGER)
        return hr_fail(err, HR_USAGE, "--largest takes a key with an integer, not \"%.80s\"", name);
    const bool json = a->arguments->values[HR_OPTION_JSON];
    json_t *list = json_array();
    if (!json) {
        print_places(a);
        printf("\n%s\n", name);
    }
    bool any = false;
    for (int32_t d = 0; d < places(a); d++) {
        ends found = { .beyond = -1 };
        int64_t after;
        estimated other;
        found.fits = largest_within(a, key, d, true, &found.at[0], &after, &other);
        found.may_fit = largest_within(a, key, d, false, &found.at[1], &found.beyond, &found.at[2]);
        any |= found.fits >= 0;
        if (!json) print_ends(a, d, &found);
        else
            json_array_append_new(
                list, json_pack("{s:s, s:I, s:o, s:o, s:o}", "device",
                                a->device_count ? place_of(a, d) : "", "available_bytes",
                                (json_int_t)memory_of(a, d), "fits",
                                json_of_end(found.fits, &found.at[0]), "may_fit",
                                json_of_end(found.may_fit, &found.at[1]), "does_not_fit",
                                json_of_end(found.beyond, &found.at[2])));
    }
    if (json)
        print_json(json_pack("{s:s, s:s, s:s, s:o}", "question", "largest", "framework",
                             a->arguments->values[HR_OPTION_AS], "key", name, "devices", list));
    else json_decref(list);
    if (any) return HR_OK;
    return hr_fail(err, HR_NO_FIT, "%s fits with no value of %s",
                   a->arguments->values[HR_OPTION_AS], name);
}

/* ---- --grid, --devices */

static hr_status read_axes(asking *a, hr_error *err)
{
    int32_t count;
    const char *const *texts = hr_cli_repeated(a->arguments, HR_OPTION_GRID, &count);
    hr_status status = HR_OK;
    for (; a->axis_count < count && status == HR_OK; a->axis_count++)
        status = hr_grid_axis_parse(texts[a->axis_count], &a->axes[a->axis_count], err);
    return status;
}

/* Sets the values of a row: the last axis changes first. Writes them to `label`. */
static hr_status set_row(asking *a, int64_t row, char *label, int64_t label_bytes, json_t *values,
                         hr_error *err)
{
    const int shown = a->arguments->values[HR_OPTION_CSV] ? HR_GRID_VALUE_BYTES : 60;
    hr_status status = HR_OK;
    int64_t used = 0, points = 1;
    hr_config_assign(a->config, a->recipe);
    for (int32_t i = 0; i < a->axis_count; i++) points *= a->axes[i].count;
    for (int32_t i = 0; i < a->axis_count; i++) {
        const hr_grid_axis *axis = &a->axes[i];
        points /= axis->count;
        for (int32_t k = 0; k < axis->key_count; k++) {
            char value[HR_GRID_VALUE_BYTES];
            hr_grid_axis_value(axis, (int32_t)(row / points % axis->count), k, value);
            if (status == HR_OK) status = hr_config_set(a->config, axis->keys[k]->name, value, err);
            used += snprintf(label + used, (size_t)(label_bytes - used), "%s%.*s",
                             used ? " x " : "", shown, value);
            json_object_set_new(values, axis->keys[k]->name, hr_cli_json_string(value));
        }
    }
    return status;
}

static void print_heading(const asking *a)
{
    bool first = true;
    print_places(a);
    printf("\n");
    for (int32_t i = 0; i < a->axis_count; i++)
        for (int32_t k = 0; k < a->axes[i].key_count; k++, first = false)
            printf("%s%s", first ? "" : " x ", a->axes[i].keys[k]->name);
    if (!first) printf("\n");
}

static hr_status grid(asking *a, hr_error *err)
{
    const bool json = a->arguments->values[HR_OPTION_JSON],
               csv = a->arguments->values[HR_OPTION_CSV];
    hr_status status = read_axes(a, err);
    int64_t rows = 1;
    for (int32_t i = 0; i < a->axis_count && status == HR_OK; i++) rows *= a->axes[i].count;
    const int64_t cells = rows * places(a);
    if (status == HR_OK && cells > HR_GRID_CELLS_MOST)
        return hr_fail(err, HR_USAGE, "%lld estimates are too many, %d are the most",
                       (long long)cells, HR_GRID_CELLS_MOST);
    if (status != HR_OK) return status;
    json_t *list = json_array();
    if (!json && !csv) print_heading(a);
    if (csv) printf("values,device,verdict,low_bytes,high_bytes,available_bytes\n");
    bool any = false;
    for (int64_t cell = 0; cell < cells; cell++) {
        char label[HR_GRID_AXES_MOST * HR_GRID_KEYS_MOST * (HR_GRID_VALUE_BYTES + 4)];
        const int32_t device = (int32_t)(cell % places(a));
        json_t *values = json_object();
        estimated e = { 0 };
        *label = 0;
        e.legal = set_row(a, cell / places(a), label, sizeof label, values, &e.why) == HR_OK;
        if (e.legal) estimate(a, device, &e);
        const char *verdict = verdict_of(a, device, &e);
        any |= !strcmp(verdict, "fits");
        if (json)
            json_array_append_new(
                list, json_pack("{s:O, s:s, s:s, s:I, s:I, s:I}", "values", values, "device",
                                a->device_count ? place_of(a, device) : "", "verdict", verdict,
                                "low_bytes", (json_int_t)e.low, "high_bytes", (json_int_t)e.high,
                                "available_bytes", (json_int_t)memory_of(a, device)));
        else if (csv) {
            hr_cli_put_field(label);
            printf(",%s,%s,%lld,%lld,%lld\n", a->device_count ? place_of(a, device) : "", verdict,
                   (long long)e.low, (long long)e.high, (long long)memory_of(a, device));
        } else printf("  %-20s %-18s %-13s %s\n", label, place_of(a, device), verdict, range(&e));
        json_decref(values);
    }
    if (json)
        print_json(json_pack("{s:s, s:s, s:o}", "question", "grid", "framework",
                             a->arguments->values[HR_OPTION_AS], "cells", list));
    else json_decref(list);
    return any ? HR_OK
               : hr_fail(err, HR_NO_FIT, "%s fits in no case", a->arguments->values[HR_OPTION_AS]);
}

/* ---- all of them */

hr_status hr_cli_estimates(const hr_cli_arguments *arguments, const hr_config *recipe,
                           const hr_device_choice *devices, int32_t device_count, hr_error *err)
{
    asking *a = calloc(1, sizeof *a);
    if (a) a->config = hr_config_new();
    if (!a || !a->config) {
        free(a);
        return hr_fail(err, HR_FAILURE, "out of memory for estimates");
    }
    a->arguments = arguments;
    a->recipe = recipe;
    a->devices = devices;
    a->device_count = device_count;
    hr_estimate_settings settings;
    hr_status status = hr_cli_estimate_settings(arguments, recipe, device_of(a, 0), &settings, err);
    if (status == HR_OK && !device_count && !hr_config_integer(recipe, "memory.budget"))
        status = hr_fail(
            err, HR_USAGE,
            "--as with --largest, --grid or --devices needs memory to fit in: --device "
            "NAME, --devices LIST or --budget SIZE");
    if (status == HR_OK)
        status = arguments->values[HR_OPTION_LARGEST] ? largest(a, err) : grid(a, err);
    hr_config_free(a->config);
    free(a);
    return status;
}
