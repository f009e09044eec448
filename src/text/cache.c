/* SPDX-License-Identifier: Apache-2.0 */
/* text/cache.c - users of an entry hold a shared lock (flock) on it; removal needs an exclusive
 * lock. The modification time of the file is the time of the last use. */
#include "text/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"

/* ---- use */

static bool lock(int file, int operation)
{
    int code;
    do code = flock(file, operation);
    while (code != 0 && errno == EINTR);
    return code == 0;
}

hr_status hr_cache_hold(const char *path, int *file, hr_error *err)
{
    struct stat named, opened;
    int64_t bytes;
    *file = -1;
    if (!hr_file_exists(path)) return HR_OK;
    const hr_status status = hr_file_open(path, file, &bytes, err);
    if (status != HR_OK) return status;
    (void)lock(*file, LOCK_SH);
    (void)futimens(*file, NULL); /* fails for a file of another user, whose time then stays */
    /* The file may have been removed between open and lock. */
    if (stat(path, &named) != 0 || fstat(*file, &opened) != 0 || named.st_ino != opened.st_ino ||
        named.st_dev != opened.st_dev)
        hr_file_close(file);
    return HR_OK;
}

/* ---- entries */

/* Prefixes and suffixes of entries; other files are never listed or removed. */
static const struct {
    const char *begin, *end;
    hr_cache_kind kind;
} forms[] = {
    { "bytes-", ".tokens", HR_CACHE_TOKENS },
    { "words-", ".tokens", HR_CACHE_TOKENS },
    { "tokens-", ".tokens", HR_CACHE_TOKENS },
    { "ids-", ".tokens", HR_CACHE_TOKENS },
    { "words-", ".vocabulary", HR_CACHE_VOCABULARY },
    { "tokens-", ".vocabulary", HR_CACHE_VOCABULARY },
    { "calibration-", ".json", HR_CACHE_CALIBRATION },
};

static bool find_kind(const char *name, hr_cache_kind *kind)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t begin = strlen(forms[i].begin), end = strlen(forms[i].end);
        if (bytes <= begin + end || strncmp(name, forms[i].begin, begin) != 0 ||
            strcmp(name + bytes - end, forms[i].end) != 0)
            continue;
        *kind = forms[i].kind;
        return true;
    }
    return false;
}

/* Orders entries by last use; the name breaks ties. */
typedef struct {
    struct timespec used;
    int64_t bytes;
    char name[HR_NAME_BYTES];
} place;

static int compare(const place *a, const place *b)
{
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* State of one listing of the directory. */
typedef struct {
    const char *directory;
    void (*tell)(void *context, const hr_cache_entry *entry); /* may be null */
    void *context;
    place tried, oldest; /* the last entry tried; the least recently used entry after it */
    bool any_tried, any;
    int64_t count, bytes; /* of removable entries */
} listing;

/* Whether a running process uses the file; true if that cannot be determined. */
static bool is_in_use(const char *path)
{
    int file = -1;
    int64_t bytes;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return true;
    const bool unused = lock(file, LOCK_EX | LOCK_NB);
    hr_file_close(&file);
    return !unused;
}

static bool take_entry(void *context, const char *name)
{
    listing *l = context;
    hr_cache_kind kind;
    char path[PATH_MAX];
    struct stat what;
    place at;
    if (strlen(name) >= sizeof at.name || !find_kind(name, &kind) ||
        hr_path_join(l->directory, name, path, sizeof path, NULL) != HR_OK ||
        lstat(path, &what) != 0 || !S_ISREG(what.st_mode))
        return true;
    if (l->tell) {
        const hr_cache_entry entry = { name, kind, what.st_size, what.st_mtim.tv_sec,
                                       is_in_use(path) };
        l->tell(l->context, &entry);
    }
    if (kind == HR_CACHE_CALIBRATION) return true;
    at.used = what.st_mtim;
    at.bytes = what.st_size;
    strcpy(at.name, name);
    l->count++;
    l->bytes += what.st_size;
    if ((l->any_tried && compare(&at, &l->tried) <= 0) || (l->any && compare(&at, &l->oldest) >= 0))
        return true;
    l->oldest = at;
    l->any = true;
    return true;
}

hr_status hr_cache_list(const char *directory,
                        void (*tell)(void *context, const hr_cache_entry *entry), void *context,
                        hr_error *err)
{
    listing l = { .directory = directory, .tell = tell, .context = context };
    return hr_directory_list(directory, take_entry, &l, err);
}

/* ---- removal */

typedef enum { REMOVED, IN_USE, GONE } outcome;

/* Removes an entry that is not in use. A process that waits for the lock then finds the name
 * missing (hr_cache_hold). */
static hr_status remove_entry(const listing *l, outcome *what, hr_error *err)
{
    char path[PATH_MAX];
    int file = -1;
    int64_t bytes;
    *what = GONE;
    hr_status status = hr_path_join(l->directory, l->oldest.name, path, sizeof path, err);
    if (status != HR_OK || !hr_file_exists(path)) return status;
    *what = IN_USE;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return HR_OK;
    if (lock(file, LOCK_EX | LOCK_NB)) {
        *what = unlink(path) == 0 ? REMOVED : GONE;
        if (*what == GONE && errno != ENOENT)
            status = hr_fail(err, HR_FAILURE, "%s: cannot be removed: %s", path, hr_reason(errno));
    }
    hr_file_close(&file);
    return status;
}

/* Lists the directory again before every removal, which bounds the memory. Each iteration tries the
 * next entry in order of last use, so the loop ends. */
hr_status hr_cache_prune(const char *directory, int64_t limit_bytes, hr_cache_report *report,
                         hr_error *err)
{
    hr_cache_report made = { 0 };
    listing l = { .directory = directory };
    for (;;) {
        l.any = false;
        l.count = l.bytes = 0;
        hr_status status = hr_directory_list(directory, take_entry, &l, err);
        if (status != HR_OK) return status;
        if (l.bytes <= limit_bytes || !l.any) break;
        outcome what;
        status = remove_entry(&l, &what, err);
        if (status != HR_OK) return status;
        l.tried = l.oldest;
        l.any_tried = true;
        made.in_use += what == IN_USE;
        made.removed += what == REMOVED;
        made.removed_bytes += what == REMOVED ? l.oldest.bytes : 0;
    }
    made.kept = l.count;
    made.kept_bytes = l.bytes;
    *report = made;
    return HR_OK;
}
