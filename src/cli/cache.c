/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cache.c - headroom cache; selects the cache directory and its size limit. */
#include "headroom/cache.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static const char limit_variable[] = "HEADROOM_CACHE_LIMIT";
static const int64_t limit_default = (int64_t)16 << 30;

/* ---- directory and limit */

hr_status hr_cli_cache_directory(char *path, int64_t bytes, hr_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int written = -1;
    /* The XDG specification says to ignore a relative path in XDG_CACHE_HOME. */
    if (cache && *cache == '/') written = snprintf(path, (size_t)bytes, "%s/headroom", cache);
    else if (home && *home) written = snprintf(path, (size_t)bytes, "%s/.cache/headroom", home);
    else *path = 0;
    if (written < bytes) return HR_OK;
    return hr_fail(err, HR_USAGE, "the cache directory's path needs %d bytes, there are %lld",
                   written + 1, (long long)bytes);
}

const char *hr_cli_calibrations(char *path, int64_t bytes)
{
    hr_error ignored;
    return hr_cli_cache_directory(path, bytes, &ignored) == HR_OK && *path ? path : NULL;
}

/* Parses a size; 0 means no limit. `name` is the source of the value, for the error. */
static hr_status read_limit(const char *name, const char *text, int64_t *limit, hr_error *err)
{
    *limit = limit_default;
    if (!text) return HR_OK;
    if (!strcmp(text, "none")) *limit = 0;
    else if (hr_bytes_parse(text, limit, NULL) != HR_OK || *limit <= 0)
        return hr_fail(err, HR_USAGE,
                       "%s takes a size such as 16GiB, or none; it was given \"%.40s\"", name,
                       text);
    return HR_OK;
}

hr_status hr_cli_take_cache(hr_config *config, int64_t *limit_bytes, hr_error *err)
{
    char directory[HR_PATH_BYTES];
    *limit_bytes = 0;
    if (*hr_config_text(config, "train.out") || *hr_config_text(config, "data.cache")) return HR_OK;
    const char *cache = hr_cli_calibrations(directory, sizeof directory);
    hr_status status = read_limit(limit_variable, getenv(limit_variable), limit_bytes, err);
    if (status == HR_OK && cache) status = hr_config_set(config, "data.cache", cache, err);
    return status;
}

/* ---- the commands */

/* Finds the directory; it is an error if none is set. */
static hr_status find_directory(char *path, int64_t bytes, hr_error *err)
{
    const hr_status status = hr_cli_cache_directory(path, bytes, err);
    if (status != HR_OK || *path) return status;
    return hr_fail(err, HR_USAGE,
                   "neither XDG_CACHE_HOME nor HOME says where the cache is; set one of them");
}

static int print_object(json_t *object)
{
    return hr_cli_print_json(object, 0);
}

int hr_cli_cache_path(const hr_cli_arguments *arguments)
{
    char directory[HR_PATH_BYTES];
    hr_error err;
    if (find_directory(directory, sizeof directory, &err) != HR_OK) return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_JSON])
        return print_object(json_pack("{s:o}", "path", hr_cli_json_string(directory)));
    printf("%s\n", directory);
    return HR_OK;
}

typedef struct {
    char name[256], used[32];
    hr_cache_entry entry;
} row;

/* Grows with each entry; `lost`: out of memory. */
typedef struct {
    row *rows;
    size_t count, room;
    bool lost;
} table;

static void take_row(void *context, const hr_cache_entry *entry)
{
    table *t = context;
    if (t->count == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        row *rows = realloc(t->rows, room * sizeof *rows);
        t->lost |= !rows;
        if (!rows) return;
        t->rows = rows;
        t->room = room;
    }
    row *r = &t->rows[t->count++];
    struct tm when;
    const time_t used = (time_t)entry->used_seconds;
    r->entry = *entry;
    snprintf(r->name, sizeof r->name, "%s", entry->name);
    strftime(r->used, sizeof r->used, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&used, &when));
}

/* Most recently used first. */
static int compare(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->entry.used_seconds != y->entry.used_seconds)
        return x->entry.used_seconds > y->entry.used_seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

static const char *const kinds[] = { [HR_CACHE_TOKENS] = "tokens",
                                     [HR_CACHE_VOCABULARY] = "vocabulary",
                                     [HR_CACHE_CALIBRATION] = "calibration" };

static void print_rows(const char *directory, const table *t, int64_t bytes, int64_t limit)
{
    char total[64], most[64];
    printf("%s\n", directory);
    if (t->count) printf("  %15s  %-20s  %-11s  %s\n", "bytes", "last used", "kind", "file");
    for (size_t i = 0; i < t->count; i++)
        printf("  %15s  %s  %-11s  %s%s\n", hr_cli_count(t->rows[i].entry.bytes), t->rows[i].used,
               kinds[t->rows[i].entry.kind], t->rows[i].name,
               t->rows[i].entry.in_use ? "  in use" : "");
    printf("%zu file%s, %s; the limit is %s\n", t->count, t->count == 1 ? "" : "s",
           hr_bytes_print(bytes, total), limit ? hr_bytes_print(limit, most) : "none");
}

static int print_json(const char *directory, const table *t, int64_t bytes, int64_t limit)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->count; i++)
        json_array_append_new(list, json_pack("{s:o, s:s, s:I, s:s, s:b}", "name",
                                              hr_cli_json_string(t->rows[i].name), "kind",
                                              kinds[t->rows[i].entry.kind], "bytes",
                                              (json_int_t)t->rows[i].entry.bytes, "last_used",
                                              t->rows[i].used, "in_use", t->rows[i].entry.in_use));
    return print_object(json_pack("{s:o, s:I, s:o, s:o}", "path", hr_cli_json_string(directory),
                                  "bytes", (json_int_t)bytes, "limit_bytes",
                                  limit ? json_integer(limit) : json_null(), "files", list));
}

int hr_cli_cache_list(const hr_cli_arguments *arguments)
{
    char directory[HR_PATH_BYTES];
    table t = { .rows = NULL };
    int64_t limit, bytes = 0;
    hr_error err;
    hr_status status = find_directory(directory, sizeof directory, &err);
    if (status == HR_OK) status = read_limit(limit_variable, getenv(limit_variable), &limit, &err);
    if (status == HR_OK) status = hr_cache_list(directory, take_row, &t, &err);
    if (status == HR_OK && t.lost)
        status = hr_fail(&err, HR_FAILURE, "%s: no memory for the list of its files", directory);
    if (status != HR_OK) {
        free(t.rows);
        return hr_cli_fail(&err);
    }
    if (t.count) qsort(t.rows, t.count, sizeof *t.rows, compare);
    for (size_t i = 0; i < t.count; i++) bytes += t.rows[i].entry.bytes;
    int code = HR_OK;
    if (arguments->values[HR_OPTION_JSON]) code = print_json(directory, &t, bytes, limit);
    else print_rows(directory, &t, bytes, limit);
    free(t.rows);
    return code;
}

/* Removes the least recently used entries until `limit`, and prints them. */
static int prune(const hr_cli_arguments *arguments, const char *directory, int64_t limit)
{
    hr_cache_report report;
    hr_error err;
    char removed[64], kept[64];
    if (hr_cache_prune(directory, limit, &report, &err) != HR_OK) return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_JSON])
        return print_object(json_pack(
            "{s:o, s:I, s:I, s:I, s:I, s:I}", "path", hr_cli_json_string(directory), "removed",
            (json_int_t)report.removed, "removed_bytes", (json_int_t)report.removed_bytes, "kept",
            (json_int_t)report.kept, "kept_bytes", (json_int_t)report.kept_bytes, "in_use",
            (json_int_t)report.in_use));
    printf("removed %lld file%s, %s; kept %lld, %s\n", (long long)report.removed,
           report.removed == 1 ? "" : "s", hr_bytes_print(report.removed_bytes, removed),
           (long long)report.kept, hr_bytes_print(report.kept_bytes, kept));
    if (report.in_use)
        printf("%lld of them %s in use by a running process\n", (long long)report.in_use,
               report.in_use == 1 ? "is" : "are");
    return HR_OK;
}

int hr_cli_cache_prune(const hr_cli_arguments *arguments)
{
    char directory[HR_PATH_BYTES];
    int64_t limit;
    hr_error err;
    const char *given = arguments->values[HR_OPTION_LIMIT];
    hr_status status = find_directory(directory, sizeof directory, &err);
    if (status == HR_OK)
        status = read_limit(given ? "--limit" : limit_variable,
                            given ? given : getenv(limit_variable), &limit, &err);
    if (status != HR_OK) return hr_cli_fail(&err);
    return prune(arguments, directory, limit ? limit : INT64_MAX);
}

int hr_cli_cache_clear(const hr_cli_arguments *arguments)
{
    char directory[HR_PATH_BYTES];
    hr_error err;
    if (find_directory(directory, sizeof directory, &err) != HR_OK) return hr_cli_fail(&err);
    return prune(arguments, directory, 0);
}
