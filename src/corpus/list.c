/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/list.c - reads folders breadth-first with getdents64 into the caller's memory, because
 * opendir would allocate. */
#define _GNU_SOURCE /* getdents64, strerrordesc_np */
#include "corpus/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/sort.h"
#include "headroom/config.h"

enum {
    POOL_BYTES = 4 << 20, /* 65536 paths of 64 bytes */
    FILES_MAX = 65536,
    FOLDERS_MAX = 8192,
    ENTRIES_BYTES = 32 << 10,
    COMPONENTS_MAX = 32
};

/* ---- memory */

static bool needs_traversal(const hr_spec *spec)
{
    for (int32_t i = 0; i < spec->count; i++)
        if (hr_spec_is_folder(&spec->parts[i]) || hr_spec_is_pattern(&spec->parts[i])) return true;
    return false;
}

hr_list hr_list_place(hr_region *region, const hr_spec *train, const hr_spec *valid)
{
    const bool folders = needs_traversal(train) || needs_traversal(valid);
    hr_list list = { .pool_bytes = folders ? POOL_BYTES : 2 * HR_PATH_BYTES,
                     .files_max = folders ? FILES_MAX : 2 * HR_SPEC_PARTS_MAX,
                     .folders_max = folders ? FOLDERS_MAX : 0 };
    list.pool = hr_region_take_raw(region, 1, list.pool_bytes);
    list.files = hr_region_take_raw(region, list.files_max, sizeof *list.files);
    if (!folders) return list;
    list.folders = hr_region_take_raw(region, list.folders_max, sizeof *list.folders);
    list.order = hr_region_take_raw(region, list.files_max, sizeof *list.order);
    list.sorted = hr_region_take_raw(region, list.files_max, sizeof *list.sorted);
    list.entries = hr_region_take_raw(region, 1, ENTRIES_BYTES);
    HR_ASSERT(list.pool && list.files && list.folders && list.order && list.sorted && list.entries);
    return list;
}

int64_t hr_list_bytes(const hr_spec *train, const hr_spec *valid)
{
    const bool folders = needs_traversal(train) || needs_traversal(valid);
    if (!folders)
        return 2 * HR_PATH_BYTES +
               hr_round_up(2 * HR_SPEC_PARTS_MAX * (int64_t)sizeof(hr_listed), 64);
    return POOL_BYTES + 2 * hr_round_up(FILES_MAX * (int64_t)sizeof(hr_listed), 64) +
           hr_round_up(FOLDERS_MAX * (int64_t)sizeof(hr_listed_folder), 64) +
           hr_round_up(FILES_MAX * (int64_t)sizeof(int32_t), 64) + ENTRIES_BYTES;
}

/* ---- patterns */

/* Whether `letter` is in the set at pattern, after its opening bracket; *bytes out: length of the
 * set with its closing bracket, 0: there is none, so the bracket is literal. */
static bool in_set(const char *pattern, int64_t pattern_bytes, char letter, int64_t *bytes)
{
    int64_t i = 0;
    const bool inverts = i < pattern_bytes && (pattern[i] == '!' || pattern[i] == '^');
    bool found = false;
    i += inverts;
    for (const int64_t first = i; i < pattern_bytes && (pattern[i] != ']' || i == first); i++) {
        const bool range = i + 2 < pattern_bytes && pattern[i + 1] == '-' && pattern[i + 2] != ']';
        const char high = range ? pattern[i + 2] : pattern[i];
        found |= letter >= pattern[i] && letter <= high;
        i += range ? 2 : 0;
    }
    *bytes = i < pattern_bytes ? i + 1 : 0;
    return found != inverts;
}

/* Whether one element of the pattern matches this character; *bytes out: length of the element. */
static bool matches_one(const char *pattern, int64_t pattern_bytes, char letter, int64_t *bytes)
{
    *bytes = 1;
    if (*pattern == '?') return true;
    if (*pattern == '[') {
        int64_t set;
        const bool found = in_set(pattern + 1, pattern_bytes - 1, letter, &set);
        if (set) {
            *bytes = 1 + set;
            return found;
        }
    }
    return *pattern == letter;
}

/* After a mismatch, the last star matches one more character. */
bool hr_list_matches(const char *pattern, int64_t pattern_bytes, const char *name)
{
    int64_t p = 0, star = -1, n = 0, resume = 0;
    if (name[0] == '.' && (!pattern_bytes || pattern[0] != '.')) return false;
    while (name[n]) {
        int64_t bytes;
        if (p < pattern_bytes && pattern[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern_bytes &&
                   matches_one(pattern + p, pattern_bytes - p, name[n], &bytes)) {
            p += bytes;
            n++;
        } else if (star >= 0) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern_bytes && pattern[p] == '*') p++;
    return p == pattern_bytes;
}

/* ---- traversal */

/* A component of a pattern, between two slashes. */
typedef struct {
    const char *text;
    int64_t bytes;
} piece;

/* State of the traversal of one part. */
typedef struct {
    hr_list *list;
    hr_error *err;
    const hr_spec_part *part;
    piece components[COMPONENTS_MAX];
    int32_t component_count;
    bool folder;    /* the part is a folder: only files with known extensions count */
    int64_t tables; /* tables found in the folder, which are not read */
    int64_t table;  /* path of one of them */
} traversal;

static const char *reason(int code)
{
    const char *text = strerrordesc_np(code);
    return text ? text : "unknown error";
}

static hr_status no_room(const traversal *w)
{
    return hr_fail(w->err, HR_USAGE,
                   "%.*s: more than %d files, %d folders or %d bytes of paths: merge the text "
                   "into fewer files",
                   (int)w->part->path_bytes, w->part->path, w->list->files_max,
                   w->list->folders_max, (int)w->list->pool_bytes);
}

static hr_status refuse_table(const traversal *w, const char *path)
{
    return hr_fail(w->err, HR_USAGE,
                   "%.160s: is a table of columns, which is not read; python3 -c \"import "
                   "pandas,sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], "
                   "orient='records', lines=True)\" FILE.parquet FILE.jsonl converts it",
                   path);
}

static hr_status refuse_rows(const traversal *w, const char *path)
{
    return hr_fail(w->err, HR_USAGE,
                   "%.160s: rows of token ids are a whole text: name that file alone, without "
                   "weights, patterns and other files",
                   path);
}

/* What a link leads to, such as a disk that is not there, may be a part of the text. */
static hr_status refuse_link(const traversal *w, const char *path)
{
    return hr_fail(w->err, HR_USAGE, "%.200s: is a link that leads nowhere: remove it, or mend it",
                   path);
}

/* Raw ids may have any name that is not one of a text. */
static hr_status check_ids(const traversal *w, const char *path, hr_file_sort *sort)
{
    if (!w->part->ids_bytes || w->folder || sort->kind == HR_FILE_TOKENS) return HR_OK;
    if (sort->known)
        return hr_fail(w->err, HR_USAGE,
                       "%.160s: has ids=u%d, but the name of a text: remove ids=, or rename the "
                       "file to .bin",
                       path, 8 * w->part->ids_bytes);
    sort->kind = HR_FILE_TOKENS;
    return HR_OK;
}

/* Puts `folder`/`name` into the pool; returns its offset, or -1 if the pool is full. */
static int64_t add_path(hr_list *list, const char *folder, int64_t folder_bytes, const char *name)
{
    const bool slash = folder_bytes && folder[folder_bytes - 1] != '/' && *name;
    const int64_t bytes = folder_bytes + slash + (int64_t)strlen(name) + 1;
    if (bytes > list->pool_bytes - list->pool_used) return -1;
    char *to = list->pool + list->pool_used;
    memcpy(to, folder, (size_t)folder_bytes);
    if (slash) to[folder_bytes] = '/';
    strcpy(to + folder_bytes + slash, name);
    list->pool_used += bytes;
    return list->pool_used - bytes;
}

/* bytes < 0: something that is no file. */
static hr_status add_file(traversal *w, int64_t path, int64_t bytes)
{
    hr_list *list = w->list;
    const char *text = list->pool + path;
    hr_file_sort sort = hr_file_sort_of(text, (int64_t)strlen(text));
    if (sort.kind == HR_FILE_TABLE && !w->folder) return refuse_table(w, text);
    if (sort.kind == HR_FILE_ROWS && !w->folder) return refuse_rows(w, text);
    const hr_status status = check_ids(w, text, &sort);
    if (status != HR_OK) return status;
    if (sort.kind == HR_FILE_TABLE) {
        w->tables++;
        w->table = path;
        return HR_OK;
    }
    if (w->folder && !sort.known) {
        list->pool_used = path;
        return HR_OK;
    }
    if (bytes < 0)
        return hr_fail(w->err, HR_USAGE, "%.200s: is not a file: remove it, or name the files",
                       text);
    if (list->count == list->files_max) return no_room(w);
    list->files[list->count++] = (hr_listed){ path, bytes, sort, w->part->ids_bytes };
    return HR_OK;
}

/* Whether a folder contains itself through a link. */
static bool contains_itself(const hr_list *list, int32_t parent, const struct stat *what)
{
    for (; parent >= 0; parent = list->folders[parent].parent)
        if (list->folders[parent].device == (int64_t)what->st_dev &&
            list->folders[parent].inode == (int64_t)what->st_ino)
            return true;
    return false;
}

static hr_status add_folder(traversal *w, int64_t path, int32_t parent, int32_t component,
                            const struct stat *what)
{
    hr_list *list = w->list;
    if (contains_itself(list, parent, what))
        return hr_fail(w->err, HR_USAGE,
                       "%s: is a link to one of its parent folders: remove it, or name the files",
                       list->pool + path);
    if (list->folder_count == list->folders_max) return no_room(w);
    list->folders[list->folder_count++] = (hr_listed_folder){ .path = path,
                                                              .device = (int64_t)what->st_dev,
                                                              .inode = (int64_t)what->st_ino,
                                                              .parent = parent,
                                                              .component = component };
    return HR_OK;
}

static bool is_any_depth(const traversal *w, int32_t component)
{
    return w->components[component].bytes == 2 && !memcmp(w->components[component].text, "**", 2);
}

static bool matches_component(const traversal *w, int32_t component, const char *name)
{
    return component < w->component_count &&
           hr_list_matches(w->components[component].text, w->components[component].bytes, name);
}

/* Handles an entry of a folder: a matching file, a folder that may contain one, or neither. */
static hr_status take_entry(traversal *w, int32_t folder, const char *name)
{
    hr_list *list = w->list;
    const hr_listed_folder *in = &list->folders[folder];
    const bool any = is_any_depth(w, in->component);
    const int32_t own = in->component + any, last = w->component_count - 1;
    const bool matches = matches_component(w, own, name);
    if (!matches && !(any && name[0] != '.')) return HR_OK;
    struct stat what;
    const char *place = list->pool + in->path;
    const int64_t path = add_path(list, place, (int64_t)strlen(place), name);
    if (path < 0) return no_room(w);
    if (stat(list->pool + path, &what) != 0) {
        if (lstat(list->pool + path, &what) == 0) return refuse_link(w, list->pool + path);
        list->pool_used = path; /* it has disappeared during the traversal */
        return HR_OK;
    }
    const bool deeper = S_ISDIR(what.st_mode);
    if (!deeper && matches && own == last)
        return add_file(w, path, S_ISREG(what.st_mode) ? what.st_size : -1);
    const int32_t folders = list->folder_count;
    hr_status status = HR_OK;
    if (deeper && any) status = add_folder(w, path, folder, in->component, &what);
    if (status == HR_OK && deeper && matches && own < last)
        status = add_folder(w, path, folder, own + 1, &what);
    if (list->folder_count == folders && status == HR_OK) list->pool_used = path;
    return status;
}

static hr_status read_folder(traversal *w, int32_t folder)
{
    hr_list *list = w->list;
    const char *path = list->pool + list->folders[folder].path;
    int file = open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return hr_fail(w->err, HR_USAGE, "%s: cannot be read as a folder: %s", path, reason(errno));
    hr_status status = HR_OK;
    while (status == HR_OK) {
        const ssize_t bytes = getdents64(file, list->entries, ENTRIES_BYTES);
        if (bytes < 0)
            status = hr_fail(w->err, HR_FAILURE, "%s: cannot be read: %s", path, reason(errno));
        if (bytes <= 0) break;
        for (ssize_t at = 0; at < bytes && status == HR_OK;) {
            const struct dirent64 *entry = (const struct dirent64 *)(list->entries + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                status = take_entry(w, folder, entry->d_name);
            at += entry->d_reclen;
        }
    }
    hr_file_close(&file);
    return status;
}

/* ---- parts */

/* Whether a path [bytes] exists literally. */
static bool exists(const char *text, int64_t bytes)
{
    char path[HR_PATH_BYTES];
    if (bytes >= (int64_t)sizeof path) return false;
    memcpy(path, text, (size_t)bytes);
    path[bytes] = 0;
    return hr_file_exists(path);
}

bool hr_list_is_pattern(const hr_spec_part *part)
{
    return hr_spec_is_pattern(part) && !exists(part->path, part->path_bytes);
}

/* Length of the folder to start in: leading components without * ? or [, or that exist literally.
 */
static int64_t literal_bytes(const hr_spec_part *part)
{
    int64_t literal = 0;
    bool plain = true; /* the current component has no wildcard so far */
    for (int64_t i = 0; i < part->path_bytes; i++) {
        plain = plain && !strchr("*?[", part->path[i]);
        if (part->path[i] != '/') continue;
        if (!plain && !exists(part->path, i)) return literal;
        literal = i + 1;
        plain = true;
    }
    return literal;
}

/* Splits the pattern at its slashes after the first *base_bytes, which name the folder to start in.
 */
static hr_status cut_pattern(traversal *w, int64_t *base_bytes)
{
    const hr_spec_part *part = w->part;
    const char *end = part->path + part->path_bytes;
    int32_t any_depths = 0;
    *base_bytes = literal_bytes(part);
    for (const char *at = part->path + *base_bytes; at < end;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const int64_t bytes = (slash ? slash : end) - at;
        if (w->component_count > COMPONENTS_MAX - 3)
            return hr_fail(w->err, HR_USAGE, "%.*s: is deeper than %d folders",
                           (int)part->path_bytes, part->path, COMPONENTS_MAX - 3);
        const bool any = bytes >= 2 && at[0] == '*' && at[1] == '*'; /* **.txt: of any depth */
        if (any) w->components[w->component_count++] = (piece){ at, 2 };
        if (any ? bytes > 2 : bytes > 0)
            w->components[w->component_count++] = (piece){ at + any, bytes - any };
        any_depths += any;
        at += bytes + 1;
    }
    if (w->folder || (w->component_count && is_any_depth(w, w->component_count - 1))) {
        any_depths += w->folder;
        if (w->folder) w->components[w->component_count++] = (piece){ "**", 2 };
        w->components[w->component_count++] = (piece){ "*", 1 };
    }
    if (any_depths <= 1) return HR_OK;
    return hr_fail(w->err, HR_USAGE, "%.*s: ** may occur once in a pattern, and FOLDER/ implies it",
                   (int)part->path_bytes, part->path);
}

static bool comes_before(const void *table, int32_t a, int32_t b)
{
    const hr_list *list = table;
    return strcmp(hr_list_path(list, a), hr_list_path(list, b)) < 0;
}

/* Sorts the files from `first` on by the bytes of their paths. */
static void order_files(hr_list *list, int32_t first)
{
    const int32_t count = list->count - first;
    for (int32_t i = 0; i < count; i++) list->order[i] = first + i;
    hr_sort(list, comes_before, list->order, count);
    for (int32_t i = 0; i < count; i++) list->sorted[i] = list->files[list->order[i]];
    memcpy(list->files + first, list->sorted, (size_t)count * sizeof *list->files);
}

static hr_status traverse_part(traversal *w)
{
    hr_list *list = w->list;
    const int32_t first = list->count;
    struct stat what;
    int64_t base_bytes;
    w->folder = hr_spec_is_folder(w->part);
    hr_status status = cut_pattern(w, &base_bytes);
    if (status != HR_OK) return status;
    const int64_t base = add_path(list, w->part->path, base_bytes, "");
    if (base < 0) return no_room(w);
    const char *place = list->pool[base] ? list->pool + base : ".";
    const int code = stat(place, &what) == 0 ? 0 : errno;
    if (code == ENOTDIR || (!code && !S_ISDIR(what.st_mode)))
        return hr_fail(w->err, HR_USAGE, "%s: is a file; remove the slash", place);
    if (code) return hr_fail(w->err, HR_USAGE, "%s: no such folder", place);
    list->folder_count = 0;
    status = add_folder(w, base, -1, 0, &what);
    for (int32_t i = 0; i < list->folder_count && status == HR_OK; i++) status = read_folder(w, i);
    if (status != HR_OK) return status;
    if (list->count == first && w->tables) return refuse_table(w, list->pool + w->table);
    if (list->count == first)
        return hr_fail(
            w->err, HR_USAGE, "%.*s: %s", (int)w->part->path_bytes, w->part->path,
            w->folder
                ? "has no .txt, .jsonl, .ndjson or .json file, plain, .gz or .zst: name other "
                  "files by a pattern"
                : "no file matches");
    order_files(list, first);
    return HR_OK;
}

hr_status hr_list_open(const char *path, int *file, int64_t *bytes, hr_error *err)
{
    struct stat what;
    if (stat(path, &what) != 0 || !S_ISDIR(what.st_mode))
        return hr_file_open(path, file, bytes, err);
    return hr_fail(err, HR_USAGE, "%.240s: is a directory; add a slash to use the texts in it",
                   path);
}

hr_status hr_list_add(hr_list *list, const hr_spec_part *part, hr_error *err)
{
    traversal w = { .list = list, .err = err, .part = part };
    if (hr_spec_is_folder(part) || hr_list_is_pattern(part)) return traverse_part(&w);
    int file;
    int64_t bytes;
    const int64_t path = add_path(list, part->path, part->path_bytes, "");
    if (path < 0) return no_room(&w);
    const hr_status status = hr_list_open(list->pool + path, &file, &bytes, err);
    if (status != HR_OK) return status;
    hr_file_close(&file);
    return add_file(&w, path, bytes);
}
