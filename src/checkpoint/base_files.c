/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/base_files.c - lists, hashes and compares the files of a frozen model. */
#include "checkpoint/base_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "checkpoint/hash_cache.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"

enum {
    PIECE_BYTES = 32 << 10,
    BEHIND_BYTES = 8 << 20,
    LINE_BYTES = 256,
    FIRST_LINE_MOST = 8 << 10
};

const char hr_base_name[] = "base.json";

int64_t hr_base_files_bytes(void)
{
    return HR_BASE_FILES_MAX * (int64_t)sizeof(hr_base_file) + 64;
}

/* ---- reading files */

static hr_status path_of(const hr_base_files *base, int32_t file, char path[PATH_MAX],
                         hr_error *err)
{
    return hr_path_join(base->folder, base->files[file].name, path, PATH_MAX, err);
}

static int64_t time_of(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0) return -1;
    return there.st_mtim.tv_sec * INT64_C(1000000000) + there.st_mtim.tv_nsec;
}

static hr_status hash_open(int file, const char *path, int64_t bytes, hr_base_progress *progress,
                           void *context, char hash[HR_HASH_BYTES], hr_error *err)
{
    _Alignas(64) char piece[PIECE_BYTES];
    hr_hash sum;
    hr_hash_begin(&sum);
    for (int64_t at = 0; at < bytes; at += PIECE_BYTES) {
        const int64_t part = hr_min(PIECE_BYTES, bytes - at);
        const hr_status status = hr_file_read(file, path, at, piece, part, err);
        if (status != HR_OK) return status;
        hr_hash_add(&sum, piece, part);
        /* A large file would displace what other programs have in the page cache. */
        if (bytes >= HR_HASH_CACHE_LEAST && (at + part) % BEHIND_BYTES == 0)
            posix_fadvise(file, at + part - BEHIND_BYTES, BEHIND_BYTES, POSIX_FADV_DONTNEED);
        if (progress && at % (INT64_C(64) << 20) == 0 && progress(context, at, bytes))
            return hr_fail(err, HR_INTERRUPTED, "interrupted while checking %.300s", path);
    }
    hr_hash_print(&sum, hash);
    return HR_OK;
}

/* Sets size, time and hash of a file of the list. */
static hr_status look(const hr_base_files *base, int32_t index, hr_base_progress *progress,
                      void *context, hr_base_file *found, hr_error *err)
{
    char path[PATH_MAX];
    int file = -1;
    hr_status status = path_of(base, index, path, err);
    if (status == HR_OK) status = hr_file_open(path, &file, &found->bytes, err);
    if (status != HR_OK) return status;
    found->changed_ns = time_of(path);
    if (!hr_hash_cache_find(base->cache, file, path, found->hash)) {
        const int64_t begun = (int64_t)hr_clock_wall_seconds();
        status = hash_open(file, path, found->bytes, progress, context, found->hash, err);
        if (status == HR_OK) hr_hash_cache_keep(base->cache, file, path, begun, found->hash);
    }
    hr_file_close(&file);
    return status;
}

hr_status hr_base_files_open(hr_base_files *base, const char *folder, const char *cache,
                             hr_base_progress *progress, void *context, hr_region *kept,
                             hr_region *scratch, hr_error *err)
{
    hr_stored stored;
    *base = (hr_base_files){ .folder = folder,
                             .cache = cache,
                             .files = hr_region_take(kept, HR_BASE_FILES_MAX,
                                                     sizeof *base->files) };
    if (!base->files) return hr_fail(err, HR_FAILURE, "%s: out of memory for its files", folder);
    hr_status status = hr_stored_open(&stored, folder, scratch, err);
    if (status != HR_OK) return status;
    for (int32_t f = 0; f < stored.file_count && status == HR_OK; f++) {
        const char *name = stored.files[f].name;
        if (f == HR_BASE_FILES_MAX || strlen(name) >= sizeof base->files->name) {
            status = hr_fail(err, HR_USAGE,
                             "%s: a base of adapters has at most %d files with "
                             "names of less than %d characters",
                             hr_path_shown(folder), HR_BASE_FILES_MAX, HR_MANIFEST_NAME_BYTES);
            break;
        }
        hr_base_file *file = &base->files[base->count++];
        snprintf(file->name, sizeof file->name, "%s", name);
        status = look(base, f, progress, context, file, err);
    }
    hr_stored_close(&stored);
    return status;
}

hr_status hr_base_files_check(hr_base_files *base, hr_error *err)
{
    for (int32_t f = 0; f < base->count; f++) {
        char path[PATH_MAX];
        hr_base_file now = base->files[f];
        hr_status status = path_of(base, f, path, err);
        if (status != HR_OK) return status;
        if (time_of(path) == now.changed_ns) continue;
        status = look(base, f, NULL, NULL, &now, err);
        if (status != HR_OK || now.bytes != base->files[f].bytes ||
            strcmp(now.hash, base->files[f].hash))
            return hr_fail(err, HR_CORRUPT,
                           "%.300s %s since the run began: adapters belong to the weights "
                           "that they were trained on",
                           path, hr_file_exists(path) ? "has changed" : "was removed");
        base->files[f].changed_ns = now.changed_ns;
    }
    return HR_OK;
}

/* ---- base.json */

static void put_string(hr_writer *w, const char *text)
{
    char quoted[FIRST_LINE_MOST - LINE_BYTES];
    int64_t taken;
    const int64_t bytes = hr_json_escape(quoted, sizeof quoted, text, (int64_t)strlen(text),
                                         &taken);
    hr_put(w, "\"%.*s\"", (int)bytes, quoted);
}

static void print_first(const hr_base_files *base, hr_writer *w)
{
    hr_put(w, "{\"folder\":");
    if (base->folder) put_string(w, base->folder);
    else hr_put(w, "null");
    hr_put(w, ",\"files\":[\n");
}

static void print_file(const hr_base_files *base, int32_t f, hr_writer *w)
{
    const hr_base_file *file = &base->files[f];
    hr_put(w, "{\"name\":\"%s\",\"bytes\":%lld,\"xxh3_128\":\"%s\"}%s\n", file->name,
           (long long)file->bytes, file->hash, f + 1 < base->count ? "," : "");
}

static void print_last(hr_writer *w)
{
    hr_put(w, "]}\n");
}

void hr_base_files_print(const hr_base_files *base, hr_writer *w)
{
    print_first(base, w);
    for (int32_t f = 0; f < base->count; f++) print_file(base, f, w);
    print_last(w);
}

/* Reads the next bytes of a file and compares them with a line. */
static bool continues(int file, const char *path, int64_t *at, const hr_writer *line)
{
    char piece[LINE_BYTES];
    hr_error ignored;
    const bool same = hr_file_read(file, path, *at, piece, line->used, &ignored) == HR_OK &&
                      !memcmp(piece, line->text, (size_t)line->used);
    *at += line->used;
    return same;
}

/* The end of the first line, after which the files follow; 0: there is none. */
static int64_t after_first(int file, const char *path, int64_t bytes)
{
    char piece[FIRST_LINE_MOST];
    hr_error ignored;
    const int64_t part = hr_min(bytes, (int64_t)sizeof piece);
    if (hr_file_read(file, path, 0, piece, part, &ignored) != HR_OK) return 0;
    const char *end = memchr(piece, '\n', (size_t)part);
    return end ? end - piece + 1 : 0;
}

hr_status hr_base_files_compare(const hr_base_files *base, const char *place, hr_error *err)
{
    char path[PATH_MAX], text[LINE_BYTES];
    int file = -1;
    int64_t bytes, at;
    hr_status status = hr_path_join(place, hr_base_name, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    at = after_first(file, path, bytes);
    if (!at) status = hr_fail(err, HR_CORRUPT, "%.300s: has no list of files", path);
    for (int32_t f = 0; f <= base->count && status == HR_OK; f++) {
        hr_writer line = { text, sizeof text };
        if (f < base->count) print_file(base, f, &line);
        else print_last(&line);
        if (continues(file, path, &at, &line)) continue;
        status = f < base->count
                     ? hr_fail(err, HR_USAGE,
                               "%.200s/%s is not the file that the run began with (%.200s): its "
                               "adapters belong to another base",
                               base->folder, base->files[f].name, path)
                     : hr_fail(err, HR_USAGE,
                               "the run began with other files than those of %.200s (%.200s)",
                               base->folder ? base->folder : "no folder", path);
    }
    hr_file_close(&file);
    return status;
}
