/* SPDX-License-Identifier: Apache-2.0 */
/* model/layer_types.c - the words of the list, one after the other. */
#include "model/layer_types.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define BETWEEN " \t\r\n,"
#define KEY "model.attention.layer_types"

static const char *const names[] = { [HR_LAYER_FULL] = "full", [HR_LAYER_SLIDING] = "sliding" };

/* Some equal layers, one word of the list. */
typedef struct {
    const char *at; /* text after the word */
    int32_t type;   /* HR_NONE: the word is not a type */
    int64_t count;
    char text[HR_FIELD_BYTES];
} run;

enum { NO_TYPE = -1 };

/* Reads the next word. Returns false at the end of the list. */
static bool next_run(run *r)
{
    r->at += strspn(r->at, BETWEEN);
    const size_t length = strcspn(r->at, BETWEEN);
    snprintf(r->text, sizeof r->text, "%.*s", (int)length, r->at);
    r->at += length;
    const size_t name = strcspn(r->text, "*");
    r->type = NO_TYPE;
    r->count = 1;
    for (int32_t i = 0; i < 2; i++)
        if (name == strlen(names[i]) && !strncmp(r->text, names[i], name)) r->type = i;
    if (r->text[name] && !hr_integer_parse(r->text + name + 1, &r->count)) r->type = NO_TYPE;
    if (r->count < 1 || r->count > INT32_MAX) r->type = NO_TYPE;
    return length > 0;
}

static int64_t length_of(const char *list)
{
    int64_t length = 0;
    for (run r = { list }; next_run(&r);) length += r.count;
    return length;
}

int32_t hr_layer_type(const hr_config *config, int64_t layer)
{
    const char *list = config->model.attention.layer_types;
    const int64_t length = *list ? length_of(list) : 0;
    if (length == 0)
        return config->model.attention.sliding_window ? HR_LAYER_SLIDING : HR_LAYER_FULL;
    run r = { list };
    for (layer %= length; next_run(&r) && layer >= r.count;) layer -= r.count;
    return r.type;
}

hr_status hr_layer_types_check(const hr_config *config, hr_error *err)
{
    const char *list = config->model.attention.layer_types;
    bool slides = false, any = false;
    for (run r = { list }; next_run(&r); any = true) {
        slides |= r.type == HR_LAYER_SLIDING;
        if (r.type != NO_TYPE) continue;
        return hr_fail(err, HR_USAGE,
                       KEY ": \"%s\" is not a type; write \"full sliding\", or with numbers of "
                           "layers \"full*21 sliding*7\"",
                       r.text);
    }
    if (!any && !*list) return HR_OK;
    if (!slides)
        return hr_fail(err, HR_USAGE,
                       KEY " has no sliding layer; remove it and "
                           "model.attention.sliding_window for full attention");
    if (!config->model.attention.sliding_window)
        return hr_fail(err, HR_USAGE, KEY " needs model.attention.sliding_window, in tokens");
    const int64_t length = length_of(list), layers = config->model.n_layers;
    if (length <= layers) return HR_OK;
    return hr_fail(err, HR_USAGE, KEY " lists %lld layers, model.n_layers is %lld",
                   (long long)length, (long long)layers);
}

static int64_t period_of(const uint8_t *types, int64_t count)
{
    int64_t period = 1;
    for (int64_t i = 0; i < count;) {
        if (types[i] == types[i % period]) i++;
        else i = 0, period++;
    }
    return period;
}

hr_status hr_layer_types_set(hr_config *config, const uint8_t *types, int64_t count, hr_error *err)
{
    char *list = config->model.attention.layer_types;
    const size_t room = sizeof config->model.attention.layer_types;
    const int64_t period = period_of(types, count);
    size_t used = 0;
    list[0] = 0;
    for (int64_t i = 0, next; i < period; i = next) {
        for (next = i; next < period && types[next] == types[i];) next++;
        const char *blank = i ? " " : "";
        used += (size_t)(next - i == 1
                             ? snprintf(list + used, room - used, "%s%s", blank, names[types[i]])
                             : snprintf(list + used, room - used, "%s%s*%lld", blank,
                                        names[types[i]], (long long)(next - i)));
        if (used < room) continue;
        list[0] = 0;
        return hr_fail(err, HR_USAGE,
                       KEY " has no room for a list that changes as often as that of "
                           "%lld layers",
                       (long long)count);
    }
    return HR_OK;
}
