/* SPDX-License-Identifier: Apache-2.0 */
/* config/grid_axes.c - axes of a grid: values of keys. Points are found by walking the text of the
 * axis, so an axis of any length needs no memory. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/writer.h"
#include "config/config_keys.h"
#include "headroom/plan_grid.h"

/* An item of the text: a value, or the integers from first to last. */
typedef struct {
    const char *text;
    int32_t bytes;
    bool is_range, adds;
    int64_t first, last, step; /* step: added; 0: doubling */
} item;

static bool takes_ranges(const hr_grid_axis *axis)
{
    const hr_key_type type = axis->keys[0]->type;
    return axis->key_count == 1 && (type == HR_KEY_INTEGER || type == HR_KEY_BYTES);
}

/* ---- items */

static const char *find_dots(const item *of)
{
    for (int32_t i = 0; i + 1 < of->bytes; i++)
        if (of->text[i] == '.' && of->text[i + 1] == '.') return of->text + i;
    return NULL;
}

/* Parses one end of a range or its step. */
static bool parse_end(const hr_grid_axis *axis, const char *text, int64_t bytes, int64_t *value)
{
    char copy[64];
    if (bytes <= 0 || bytes >= (int64_t)sizeof copy) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)bytes, text);
    if (axis->keys[0]->type == HR_KEY_BYTES) return hr_bytes_parse(copy, value, NULL) == HR_OK;
    return hr_integer_parse(copy, value);
}

/* Reads the item at `text`. Returns false for a range with bad numbers. */
static bool read_item(const hr_grid_axis *axis, const char *text, item *read)
{
    *read = (item){ .text = text, .bytes = (int32_t)strcspn(text, ",") };
    const char *dots = takes_ranges(axis) ? find_dots(read) : NULL;
    if (!dots) return true;
    const char *end = text + read->bytes, *plus = memchr(dots, '+', (size_t)(end - dots));
    const char *last_end = plus ? plus : end;
    read->is_range = true;
    read->adds = plus;
    return parse_end(axis, text, dots - text, &read->first) &&
           parse_end(axis, dots + 2, last_end - dots - 2, &read->last) &&
           (!plus || parse_end(axis, plus + 1, end - plus - 1, &read->step));
}

/* The value at a point of a range; -1 past its end. */
static int64_t range_value(const item *of, int64_t point)
{
    int64_t added;
    if (of->adds) {
        if (!hr_checked_mul(point, of->step, &added) || added > of->last - of->first) return -1;
        return of->first + added;
    }
    return point < 62 && of->first <= of->last >> point ? of->first << point : -1;
}

/* Number of points, at most HR_GRID_CELLS_MOST + 1. */
static int32_t item_points(const item *of)
{
    int32_t low = 0, high = HR_GRID_CELLS_MOST + 1;
    if (!of->is_range) return 1;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (range_value(of, middle) >= 0) low = middle + 1;
        else high = middle;
    }
    return (int32_t)hr_min(low, HR_GRID_CELLS_MOST + 1);
}

/* Writes part `key` of an item whose parts are separated by colons. Returns false if the item has
 * another number of parts, or the part is too long. */
static bool part_of(const hr_grid_axis *axis, const item *of, int32_t key,
                    char value[HR_GRID_VALUE_BYTES])
{
    const char *at = of->text, *end = of->text + of->bytes;
    for (int32_t i = 0; i < axis->key_count; i++) {
        const char *colon = axis->key_count > 1 ? memchr(at, ':', (size_t)(end - at)) : NULL;
        const bool is_last = i + 1 == axis->key_count;
        if (is_last == (colon != NULL)) return false;
        const char *stop = colon ? colon : end;
        if (i == key) {
            if (stop - at >= HR_GRID_VALUE_BYTES) return false;
            snprintf(value, HR_GRID_VALUE_BYTES, "%.*s", (int)(stop - at), at);
        }
        at = stop + 1;
    }
    return true;
}

const char *hr_grid_axis_value(const hr_grid_axis *axis, int32_t point, int32_t key,
                               char value[HR_GRID_VALUE_BYTES])
{
    const char *text = axis->values;
    item at;
    value[0] = 0;
    for (int32_t before = 0; read_item(axis, text, &at); text += at.bytes + 1) {
        const int32_t points = item_points(&at);
        if (point < before + points) {
            if (!at.is_range) (void)part_of(axis, &at, key, value);
            else
                snprintf(value, HR_GRID_VALUE_BYTES, "%lld",
                         (long long)range_value(&at, point - before));
            return value;
        }
        before += points;
        if (!text[at.bytes]) break;
    }
    return value;
}

const char *hr_grid_axis_label(const hr_grid_axis *axis, int32_t point,
                               char label[HR_GRID_LABEL_BYTES])
{
    char value[HR_GRID_VALUE_BYTES];
    hr_writer writer = { label, HR_GRID_LABEL_BYTES };
    char size[HR_COUNT_BYTES];
    for (int32_t k = 0; k < axis->key_count; k++) {
        int64_t bytes;
        const char *shown = hr_grid_axis_value(axis, point, k, value);
        if (axis->keys[k]->type == HR_KEY_BYTES && hr_bytes_parse(shown, &bytes, NULL) == HR_OK)
            shown = hr_size_print(bytes, size);
        hr_put(&writer, "%s%s", k ? " x " : "", shown);
    }
    return label;
}

/* ---- parsing */

static hr_status parse_keys(const char *text, hr_grid_axis *axis, hr_error *err)
{
    const size_t length = strcspn(text, "=");
    if (!text[length])
        return hr_fail(err, HR_USAGE,
                       "--grid takes KEY=VALUES, such as train.batch=8,16,32 or 64..4096; got "
                       "\"%.40s\"",
                       text);
    for (const char *at = text; at < text + length;) {
        char name[128];
        const int bytes = (int)strcspn(at, ",=");
        snprintf(name, sizeof name, "%.*s", bytes, at);
        const char *now = hr_config_name(name);
        if (!now || bytes >= (int)sizeof name) {
            hr_error inner;
            (void)hr_config_fail_unknown(name, NULL, &inner);
            return hr_fail(err, HR_USAGE, "--grid: %s", inner.message);
        }
        if (axis->key_count == HR_GRID_KEYS_MOST)
            return hr_fail(err, HR_USAGE, "--grid: an axis has at most %d keys", HR_GRID_KEYS_MOST);
        for (int32_t i = 0; hr_config_key(i); i++)
            if (!strcmp(hr_config_key(i)->name, now))
                axis->keys[axis->key_count] = hr_config_key(i);
        for (int32_t k = 0; k < axis->key_count; k++)
            if (axis->keys[k] == axis->keys[axis->key_count])
                return hr_fail(err, HR_USAGE, "--grid: %s is given twice", now);
        axis->key_count++;
        at += bytes + 1;
        if (at == text + length && at[-1] == ',')
            return hr_fail(err, HR_USAGE, "--grid: no key after \"%s,\"", now);
    }
    if (!axis->key_count) return hr_fail(err, HR_USAGE, "--grid: no key before \"=\"");
    axis->values = text + length + 1;
    return HR_OK;
}

/* Checks a range: its numbers, direction and step. */
static hr_status check_range(const hr_grid_axis *axis, const item *of, bool numbers, hr_error *err)
{
    const char *name = axis->keys[0]->name;
    const int bytes = (int)hr_min(of->bytes, 60);
    if (!numbers || of->first < 0)
        return hr_fail(err, HR_USAGE,
                       "--grid: %s: \"%.*s\" is not a range; write 64..4096 to double, or 8..64+8 "
                       "to add",
                       name, bytes, of->text);
    if (of->first > of->last)
        return hr_fail(err, HR_USAGE, "--grid: %s: the range %.*s runs backwards", name, bytes,
                       of->text);
    if (of->adds ? of->step <= 0 : of->first == 0)
        return hr_fail(err, HR_USAGE, "--grid: %s: the range %.*s has no end: %s", name, bytes,
                       of->text, of->adds ? "add 1 or more" : "0 does not double");
    return HR_OK;
}

/* Checks that every key accepts its values. */
static hr_status check_values(const hr_grid_axis *axis, const item *of, int32_t point,
                              hr_config *scratch, hr_error *err)
{
    char value[HR_GRID_VALUE_BYTES];
    hr_error inner;
    for (int32_t k = 0; k < axis->key_count; k++) {
        if (!of->is_range && of->bytes >= HR_GRID_VALUE_BYTES)
            return hr_fail(err, HR_USAGE, "--grid: a value of %d bytes; at most %d are taken",
                           of->bytes, HR_GRID_VALUE_BYTES - 1);
        if (of->is_range) snprintf(value, sizeof value, "%lld", (long long)range_value(of, point));
        else if (!part_of(axis, of, k, value))
            return hr_fail(err, HR_USAGE,
                           "--grid: \"%.*s\" is not a value for each of %d key%s, separated by "
                           "colons",
                           (int)hr_min(of->bytes, 60), of->text, axis->key_count,
                           axis->key_count == 1 ? "" : "s");
        if (hr_config_set(scratch, axis->keys[k]->name, value, &inner) != HR_OK)
            return hr_fail(err, HR_USAGE, "--grid: %s", inner.message);
    }
    return HR_OK;
}

/* Not inlined: a config is large, and the stack size is planned. */
static __attribute__((noinline)) hr_status parse_values(hr_grid_axis *axis, hr_error *err)
{
    hr_config scratch;
    hr_config_default(&scratch);
    item at;
    for (const char *text = axis->values;; text += at.bytes + 1) {
        const bool numbers = read_item(axis, text, &at);
        hr_status status = at.is_range ? check_range(axis, &at, numbers, err) : HR_OK;
        const int32_t points = status == HR_OK ? item_points(&at) : 0;
        axis->count += points;
        if (axis->count > HR_GRID_CELLS_MOST)
            return hr_fail(err, HR_USAGE, "--grid: %s has more than %d values", axis->keys[0]->name,
                           HR_GRID_CELLS_MOST);
        for (int32_t p = 0; p < points && status == HR_OK; p++)
            status = check_values(axis, &at, p, &scratch, err);
        if (status != HR_OK || !text[at.bytes]) return status;
    }
}

hr_status hr_grid_axis_parse(const char *text, hr_grid_axis *axis, hr_error *err)
{
    hr_grid_axis parsed = { .key_count = 0 };
    hr_status status = parse_keys(text, &parsed, err);
    if (status == HR_OK) status = parse_values(&parsed, err);
    if (status == HR_OK) *axis = parsed;
    return status;
}
