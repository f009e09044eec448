/* SPDX-License-Identifier: Apache-2.0 */
/* devices/devices.c - finds devices by name, parses a question's list of them, and refuses formats
 * that a device lacks. */
#include "headroom/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "headroom/config.h"

#define FORMAT_NAME(id, name) [HR_DEVICE_##id] = #name,
static const char *const format_names[] = { HR_DEVICE_FORMAT_LIST(FORMAT_NAME) };

const char *hr_device_format_name(int32_t format)
{
    return format >= 0 && format < HR_DEVICE_FORMATS ? format_names[format] : NULL;
}

/* ---- names */

/* Row `index` of the devices of a file and then of the table; null past the end. */
static const hr_device_facts *row_at(const hr_device_list *own, int32_t index)
{
    const int32_t count = own ? own->count : 0;
    return index < count ? &own->rows[index] : hr_device_at(index - count);
}

/* Lower case, and dashes for blanks and underscores. */
static void normalize(const char *name, char plain[2 * HR_DEVICE_NAME_BYTES])
{
    size_t bytes = 0;
    for (; name[bytes] && bytes + 1 < 2 * HR_DEVICE_NAME_BYTES; bytes++) {
        const char c = name[bytes];
        plain[bytes] = c;
        if (c >= 'A' && c <= 'Z') plain[bytes] = (char)(c - 'A' + 'a');
        if (c == ' ' || c == '_') plain[bytes] = '-';
    }
    plain[bytes] = 0;
}

/* The part of a normalized name that follows the words of the maker, which people may leave out. */
static const char *without_maker(const char *plain)
{
    static const char *const words[] = { "nvidia-", "geforce-", "tesla-" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(plain, words[i], strlen(words[i]))) plain += strlen(words[i]);
    return plain;
}

static const hr_device_facts *find_row(const char *name, const hr_device_list *own)
{
    for (int32_t i = 0; row_at(own, i); i++)
        if (!strcmp(row_at(own, i)->name, name)) return row_at(own, i);
    return NULL;
}

static const char *nearest(const char *name, const hr_device_list *own)
{
    const char *best = NULL;
    int32_t least = INT32_MAX;
    for (int32_t i = 0; row_at(own, i); i++) {
        const int32_t cost = hr_word_cost(name, row_at(own, i)->name);
        if (cost < least) best = row_at(own, i)->name;
        least = (int32_t)hr_min(cost, least);
    }
    return best;
}

hr_status hr_device_find(const char *name, const hr_device_list *own,
                         const hr_device_facts **device, hr_error *err)
{
    char plain[2 * HR_DEVICE_NAME_BYTES];
    normalize(name, plain);
    /* First as given: a device of a file may be called tesla-lab. */
    const hr_device_facts *row = find_row(plain, own);
    if (!row) row = find_row(without_maker(plain), own);
    if (row) {
        *device = row;
        return HR_OK;
    }
    const char *similar = nearest(without_maker(plain), own);
    return hr_fail(err, HR_USAGE,
                   "\"%.40s\" is not a known device%s%s (headroom devices lists all)", name,
                   similar ? "; the nearest is " : "", similar ? similar : "");
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
    if (!*word) return hr_fail(c->err, HR_USAGE, "a device has no name: two commas in a row");
    if (equals) {
        *equals = 0;
        return set_bytes(c, word, equals + 1);
    }
    hr_status status = HR_OK;
    if (!strcmp(word, "all") && c->most > 1) {
        for (int32_t i = 0; row_at(c->own, i) && status == HR_OK; i++)
            status = add(c, row_at(c->own, i));
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
        choice->host_bytes = c->host_bytes >= 0 ? c->host_bytes : device->host_bytes;
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
