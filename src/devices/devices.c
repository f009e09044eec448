/* SPDX-License-Identifier: Apache-2.0 */
/* devices/devices.c - parses a question's list of devices, and refuses formats that a device lacks.
 */
#include "headroom/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "config/config.h"

#define FORMAT_NAME(id, name) [HR_DEVICE_##id] = #name,
static const char *const format_names[] = { HR_DEVICE_FORMAT_LIST(FORMAT_NAME) };

const char *hr_device_format_name(int32_t format)
{
    return format >= 0 && format < HR_DEVICE_FORMATS ? format_names[format] : NULL;
}

#define GROUP_WORDS(id, words) [HR_DEVICE_##id] = words,
static const char *const group_words[] = { HR_DEVICE_GROUP_LIST(GROUP_WORDS) };

const char *hr_device_group_words(int32_t group)
{
    return group >= 0 && group < HR_DEVICE_GROUPS ? group_words[group] : NULL;
}

/* ---- lists */

typedef struct {
    const hr_device_list *own;
    int32_t most, count;
    hr_device_choice *choices;
    int64_t host_bytes, disk_bytes, reserve_bytes; /* -1: not given */
    hr_error *err;
} choosing;

static hr_status set_bytes(choosing *c, const char *name, const char *value)
{
    const struct {
        const char *name;
        int64_t *bytes;
    } settings[] = { { "host", &c->host_bytes },
                     { "disk", &c->disk_bytes },
                     { "reserve", &c->reserve_bytes } };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (strcmp(settings[i].name, name) != 0) continue;
        if (*settings[i].bytes >= 0)
            return hr_fail(c->err, HR_USAGE, "%s= is given twice for one device", name);
        const hr_status status = hr_bytes_parse(value, settings[i].bytes, c->err);
        /* 0 bytes of a choice are no limit. */
        if (status == HR_OK && !*settings[i].bytes && settings[i].bytes != &c->reserve_bytes)
            return hr_fail(c->err, HR_USAGE, "%s= takes 1 byte or more; got \"%.40s\"", name,
                           value);
        return status;
    }
    return hr_fail(
        c->err, HR_USAGE,
        "\"%.40s=\" is no setting of a device; those are host=, disk= and reserve=", name);
}

static hr_status add(choosing *c, const hr_device_facts *device)
{
    for (int32_t i = 0; i < c->count; i++)
        if (c->choices[i].device == device)
            return hr_fail(c->err, HR_USAGE, "the device %s is given twice", device->name);
    if (c->count == c->most)
        return hr_fail(c->err, HR_USAGE, "%s is one device too many; %d can be given", device->name,
                       c->most);
    c->choices[c->count++] = (hr_device_choice){ .device = device };
    return HR_OK;
}

static hr_status take(choosing *c, char *word)
{
    char *equals = strchr(word, '=');
    if (!*word)
        return hr_fail(c->err, HR_USAGE, "a device has no name; headroom devices lists all");
    if (equals) {
        *equals = 0;
        return set_bytes(c, word, equals + 1);
    }
    hr_status status = HR_OK;
    if (!strcmp(word, "all") && c->most == 1)
        return hr_fail(c->err, HR_USAGE, "\"all\" is several devices; use --devices all");
    if (!strcmp(word, "all")) {
        for (int32_t i = 0; hr_device_row(c->own, i) && status == HR_OK; i++)
            if (!hr_device_is_hidden(c->own, i)) status = add(c, hr_device_row(c->own, i));
        return status;
    }
    const hr_device_facts *device;
    status = hr_device_find(word, c->own, &device, c->err);
    return status == HR_OK ? add(c, device) : status;
}

/* Gives every chosen device the settings. */
static hr_status finish(const choosing *c)
{
    for (int32_t i = 0; i < c->count; i++) {
        hr_device_choice *choice = &c->choices[i];
        const hr_device_facts *device = choice->device;
        const bool cpu = device->kind == HR_DEVICE_CPU;
        if (cpu && c->host_bytes >= 0 && c->count == 1)
            return hr_fail(c->err, HR_USAGE,
                           "host= is the memory around a card; %s runs in its own memory, which "
                           "reserve= and --budget lower",
                           device->name);
        choice->host_bytes = c->host_bytes >= 0 ? c->host_bytes : device->host_bytes;
        if (cpu) choice->host_bytes = 0;
        choice->disk_bytes = hr_max(c->disk_bytes, 0);
        choice->reserve_bytes = c->reserve_bytes >= 0 ? c->reserve_bytes : device->reserve_bytes;
        char reserve[64], usable[64];
        if (choice->reserve_bytes >= device->usable_bytes)
            return hr_fail(c->err, HR_USAGE, "a reserve of %s leaves nothing of the %s of %s",
                           hr_bytes_print(choice->reserve_bytes, reserve),
                           hr_bytes_print(device->usable_bytes, usable), device->name);
    }
    return HR_OK;
}

hr_status hr_devices_choose(const char *text, const hr_device_list *own, int32_t most,
                            hr_device_choice *choices, int32_t *count, hr_error *err)
{
    char words[4096];
    choosing c = { .own = own,
                   .most = most,
                   .choices = choices,
                   .host_bytes = -1,
                   .disk_bytes = -1,
                   .reserve_bytes = -1,
                   .err = err };
    if (strlen(text) >= sizeof words)
        return hr_fail(err, HR_USAGE, "a list of devices has at most %d letters",
                       (int)sizeof words - 1);
    memcpy(words, text, strlen(text) + 1);
    hr_status status = HR_OK;
    for (char *word = words, *comma; word && status == HR_OK; word = comma) {
        comma = strchr(word, ',');
        if (comma) *comma++ = 0;
        status = take(&c, word);
    }
    if (status == HR_OK && !c.count)
        status = hr_fail(err, HR_USAGE, "no device is named; headroom devices lists all");
    if (status == HR_OK) status = finish(&c);
    if (status == HR_OK) *count = c.count;
    return status;
}

/* ---- formats */

bool hr_device_has(const hr_device_facts *device, hr_device_format format)
{
    return device->kind == HR_DEVICE_CPU || device->peak[format] > 0;
}

hr_status hr_device_check_format(const hr_device_facts *device, hr_device_format format,
                                 const char *key, hr_error *err)
{
    enum { NAMED_MOST = 4 };
    char has[64], others[160];
    hr_writer formats = { has, sizeof has }, devices = { others, sizeof others };
    if (hr_device_has(device, format)) return HR_OK;
    hr_put(&formats, "%s", "");
    hr_put(&devices, "%s", "");
    for (int32_t f = 0; f < HR_DEVICE_FORMATS; f++)
        if (hr_device_has(device, (hr_device_format)f))
            hr_put(&formats, "%s%s", formats.used ? ", " : "", format_names[f]);
    for (int32_t i = 0, named = 0; hr_device_at(i) && named < NAMED_MOST; i++) {
        const hr_device_facts *other = hr_device_at(i);
        if (other->kind == HR_DEVICE_CPU || !hr_device_has(other, format)) continue;
        hr_put(&devices, "%s%s", devices.used ? ", " : "", other->name);
        named++;
    }
    return hr_fail(
        err, HR_USAGE, "%s: %s (%s) has no %s; it has %s, and devices with %s are %s and others%s",
        key, device->name, device->title, format_names[format], has, format_names[format], others,
        !strncmp(key, "train.dtype=", 12) && hr_device_has(device, HR_DEVICE_FP32)
            ? "; train.dtype=fp32 works there"
            : "");
}
