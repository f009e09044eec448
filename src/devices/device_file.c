/* SPDX-License-Identifier: Apache-2.0 */
/* devices/device_file.c - reads devices from a YAML file: a mapping of names to mappings of
 * figures, where `peak_tflops` is a mapping of formats. One state per level. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "config/config.h"
#include "config/yaml_events.h"
#include "headroom/devices.h"

enum { ROOT = 1, DEVICE, PEAKS }; /* open mappings */
enum {
    WORD_BYTES = 256,
    DEFAULT_RESERVE = 512 << 20,
    SEEN_MOST = 11 + HR_DEVICE_FORMATS /* KEY_NAMES and the formats */
};

#define KEY_NAMES \
    "title, kind, usable, reserve, host, bandwidth, link, peak_tflops, threads, kernels and " \
    "source"

typedef struct {
    hr_device_list *list;
    hr_device_facts *row; /* under construction */
    const char *path;
    hr_error *err;
    int64_t line, device_line;
    int32_t depth, documents;
    char key[WORD_BYTES];     /* whose value is next; empty: a key is next */
    char seen[SEEN_MOST][32]; /* keys of the open device, formats included */
    int32_t seen_count;
} reader;

static hr_status fail(const reader *r, const char *sentence)
{
    return hr_yaml_fail(r->path, r->line, sentence, r->err);
}

static hr_status fail_key(const reader *r, const char *sentence)
{
    hr_error inner;
    (void)hr_fail(&inner, HR_USAGE, "%.60s: %s", r->key, sentence);
    return fail(r, inner.message);
}

/* ---- values */

static hr_status take_size(const reader *r, const char *text, int64_t least, int64_t *bytes)
{
    hr_error inner;
    int64_t size;
    if (hr_bytes_parse(text, &size, &inner) != HR_OK) return fail_key(r, inner.message);
    if (size < least || size > INT64_C(1) << 53)
        return fail_key(r, "a size from 1MiB to 8192TiB is expected (reserve and host: from 0)");
    *bytes = size;
    return HR_OK;
}

/* "1008GB/s" */
static hr_status take_rate(const reader *r, const char *text, int64_t *rate)
{
    const int64_t million = 1000000;
    char size[WORD_BYTES];
    hr_error inner;
    const size_t length = strlen(text);
    if (length < 3 || strcmp(text + length - 2, "/s") != 0)
        return fail_key(r, "a rate is expected, such as 1008GB/s");
    snprintf(size, sizeof size, "%.*s", (int)length - 2, text);
    if (hr_bytes_parse(size, rate, &inner) != HR_OK) return fail_key(r, inner.message);
    if (*rate < million || *rate > million * million * 100)
        return fail_key(r, "a rate from 1MB/s to 100TB/s is expected");
    return HR_OK;
}

static hr_status take_peak(const reader *r, const char *text)
{
    double value;
    int32_t f = 0;
    while (hr_device_format_name(f) && strcmp(hr_device_format_name(f), r->key) != 0) f++;
    if (!hr_device_format_name(f))
        return fail_key(r, "is no format; those are fp32, tf32, bf16, fp16, fp8 and int8");
    if (!hr_real_parse(text, &value) || value < 1e-4 || value > 1e6)
        return fail_key(r, "a peak from 0.0001 to 1,000,000 TFLOPS is expected");
    r->row->peak[f] = value;
    return HR_OK;
}

static hr_status take_text(const reader *r, const char *text, char *field, size_t bytes)
{
    if (!*text || strlen(text) >= bytes) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "1 to %d letters are expected", (int)bytes - 1);
        return fail_key(r, sentence);
    }
    memcpy(field, text, strlen(text) + 1);
    return HR_OK;
}

static hr_status take_source(const reader *r, const char *text)
{
    hr_device_facts *row = r->row;
    hr_status status = take_text(r, text, row->usable_source, sizeof row->usable_source);
    if (status != HR_OK) return status;
    memcpy(row->reserve_source, row->usable_source, sizeof row->usable_source);
    memcpy(row->figures_source, row->usable_source, sizeof row->usable_source);
    memcpy(row->link_source, row->usable_source, sizeof row->usable_source);
    return HR_OK;
}

static hr_status take_value(const reader *r, const char *text)
{
    static const char *const rungs[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
    hr_device_facts *row = r->row;
    const char *key = r->key;
    int64_t count;
    if (!strcmp(key, "title")) return take_text(r, text, row->title, sizeof row->title);
    if (!strcmp(key, "usable")) return take_size(r, text, 1 << 20, &row->usable_bytes);
    if (!strcmp(key, "reserve")) return take_size(r, text, 0, &row->reserve_bytes);
    if (!strcmp(key, "host")) return take_size(r, text, 0, &row->host_bytes);
    if (!strcmp(key, "bandwidth")) return take_rate(r, text, &row->bandwidth);
    if (!strcmp(key, "link")) return take_rate(r, text, &row->link);
    if (!strcmp(key, "source")) return take_source(r, text);
    if (!strcmp(key, "kind")) {
        const bool cpu = !strcmp(text, "cpu");
        if (!cpu && strcmp(text, "gpu") != 0) return fail_key(r, "gpu or cpu is expected");
        row->kind = cpu ? HR_DEVICE_CPU : HR_DEVICE_GPU;
        row->group = cpu ? HR_DEVICE_LAPTOP : HR_DEVICE_DISPLAY;
        return HR_OK;
    }
    if (!strcmp(key, "threads")) {
        if (!hr_integer_parse(text, &count) || count < 1 || count > 1024)
            return fail_key(r, "an integer from 1 to 1,024 is expected");
        row->threads = (int32_t)count;
        return HR_OK;
    }
    if (!strcmp(key, "kernels")) {
        for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++)
            if (!strcmp(text, rungs[i])) return take_text(r, text, row->kernels, 16);
        return fail_key(r, "ref, avx2, avx512, avx512bf16 or amx is expected");
    }
    if (!strcmp(key, "peak_tflops"))
        return fail_key(r, "a mapping of formats is expected, such as {fp32: 82.6, bf16: 165.2}");
    return fail_key(r, "is no figure of a device; those are " KEY_NAMES);
}

/* ---- devices */

static bool is_name(const char *text)
{
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.");
    return *text && !text[length] && length < HR_DEVICE_NAME_BYTES && strcmp(text, "all") != 0;
}

static hr_status begin_device(reader *r, const char *name)
{
    hr_device_list *list = r->list;
    if (!is_name(name))
        return fail(r,
                    "a name of a device has 1 to 31 lower-case letters, digits, dashes and dots, "
                    "and is not \"all\"");
    for (int32_t i = 0; i < list->count; i++)
        if (!strcmp(list->rows[i].name, name)) return fail(r, "this device is given twice");
    if (list->count == HR_DEVICES_OWN_MOST) return fail(r, "a file has at most 64 devices");
    r->row = &list->rows[list->count];
    *r->row = (hr_device_facts){ .own = true, .reserve_bytes = DEFAULT_RESERVE };
    memcpy(r->row->name, name, strlen(name) + 1); /* shorter than a name may be */
    memcpy(r->row->title, name, strlen(name) + 1);
    snprintf(r->key, sizeof r->key, "source");
    const hr_status status = take_source(r, "a file of the user");
    snprintf(r->key, sizeof r->key, "%s", name);
    r->seen_count = 0;
    r->device_line = r->line;
    return status;
}

static hr_status end_device(reader *r)
{
    const hr_device_facts *row = r->row;
    const char *missing = !row->usable_bytes                               ? "usable"
                          : !row->bandwidth                                ? "bandwidth"
                          : row->peak[HR_DEVICE_FP32] <= 0                 ? "fp32 in peak_tflops"
                          : row->kind == HR_DEVICE_CPU && !row->threads    ? "threads"
                          : row->kind == HR_DEVICE_CPU && !row->kernels[0] ? "kernels"
                                                                           : NULL;
    char text[160];
    r->line = r->device_line;
    if (missing) {
        snprintf(text, sizeof text, "the device %s has no %s", row->name, missing);
        return fail(r, text);
    }
    if (row->kind == HR_DEVICE_GPU && (row->threads || row->kernels[0]))
        return fail(r, "threads and kernels are for devices of kind cpu");
    if (row->reserve_bytes >= row->usable_bytes)
        return fail(r, "the reserve leaves nothing of the usable bytes");
    r->list->count++;
    return HR_OK;
}

static hr_status take_key(reader *r, const char *word)
{
    if (r->depth == ROOT) return begin_device(r, word);
    snprintf(r->key, sizeof r->key, "%s", word);
    for (int32_t i = 0; i < r->seen_count; i++)
        if (!strcmp(r->seen[i], word)) return fail_key(r, "is given twice");
    /* More keys than there are names end in an unknown one. */
    if (r->seen_count < (int32_t)(sizeof r->seen / sizeof *r->seen))
        snprintf(r->seen[r->seen_count++], sizeof *r->seen, "%.31s", word);
    return HR_OK;
}

/* ---- events */

static hr_status take_scalar(reader *r, const yaml_event_t *event)
{
    const char *given = (const char *)event->data.scalar.value;
    char text[WORD_BYTES];
    if (event->data.scalar.anchor || event->data.scalar.tag)
        return fail(r, "anchors and tags are not read");
    if (strlen(given) != event->data.scalar.length || strlen(given) >= WORD_BYTES)
        return fail(r, "a value has more than 255 letters, or a null byte");
    snprintf(text, sizeof text, "%s", given);
    for (char *c = text; *c; c++) /* words are quoted in sentences of one line */
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    if (r->depth == 0 || (r->depth == ROOT && *r->key))
        return fail(r, "a device is a mapping of figures, such as usable: 23.64GiB");
    if (!*r->key) return take_key(r, text);
    const hr_status status = r->depth == PEAKS ? take_peak(r, text) : take_value(r, text);
    r->key[0] = 0;
    return status;
}

static hr_status open_mapping(reader *r, const yaml_event_t *event)
{
    if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
        return fail(r, "anchors and tags are not read");
    const bool expected = r->depth == 0 || (r->depth == ROOT && *r->key) ||
                          (r->depth == DEVICE && !strcmp(r->key, "peak_tflops"));
    if (!expected) return fail(r, "a mapping is not expected here");
    r->key[0] = 0;
    r->depth++;
    return HR_OK;
}

static hr_status take(void *context, const yaml_event_t *event, int64_t line)
{
    reader *r = context;
    r->line = line;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return r->documents++ ? fail(r, "a second document is not read") : HR_OK;
    case YAML_ALIAS_EVENT: return fail(r, "aliases are not read");
    case YAML_SEQUENCE_START_EVENT: return fail(r, "a list is not expected here");
    case YAML_SCALAR_EVENT: return take_scalar(r, event);
    case YAML_MAPPING_START_EVENT: return open_mapping(r, event);
    case YAML_MAPPING_END_EVENT: return r->depth-- == DEVICE ? end_device(r) : HR_OK;
    default: return HR_OK;
    }
}

hr_status hr_devices_read(const char *path, hr_device_list *list, hr_error *err)
{
    reader r = { .list = list, .path = path, .err = err };
    list->count = 0;
    const hr_status status = hr_yaml_read(path, "device file", take, &r, err);
    if (status == HR_OK && !list->count) return hr_fail(err, HR_USAGE, "%s has no devices", path);
    if (status != HR_OK) list->count = 0;
    return status;
}
