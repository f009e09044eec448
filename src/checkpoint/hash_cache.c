/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/hash_cache.c - one small text file for each remembered file. */
#include "checkpoint/hash_cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"

enum { TEXT_BYTES = PATH_MAX + 256, NAME_DIGITS = 16, SETTLED_SECONDS = 2 };

/* What must be equal, and the path of the file that says so. */
typedef struct {
    char identity[TEXT_BYTES], entry[PATH_MAX], name[HR_NAME_BYTES];
    int64_t changed; /* seconds since 1970 */
} entry;

static bool find_entry(const char *cache, int file, const char *path, entry *e)
{
    struct stat there;
    char whole[PATH_MAX], digits[HR_HASH_BYTES];
    hr_hash name;
    hr_error ignored;
    if (!cache || fstat(file, &there) != 0 || there.st_size < HR_HASH_CACHE_LEAST ||
        !realpath(path, whole))
        return false;
    hr_hash_begin(&name);
    hr_hash_add(&name, whole, (int64_t)strlen(whole));
    hr_hash_print(&name, digits);
    snprintf(e->name, sizeof e->name, "hash-%.*s.txt", NAME_DIGITS, digits);
    snprintf(e->identity, sizeof e->identity,
             "headroom hash 1\n%s\n%lld bytes, %lld.%09ld, %lld.%09ld, inode %lld\n", whole,
             (long long)there.st_size, (long long)there.st_mtim.tv_sec, there.st_mtim.tv_nsec,
             (long long)there.st_ctim.tv_sec, there.st_ctim.tv_nsec, (long long)there.st_ino);
    e->changed = there.st_ctim.tv_sec;
    return hr_path_join(cache, e->name, e->entry, sizeof e->entry, &ignored) == HR_OK;
}

bool hr_hash_cache_find(const char *cache, int file, const char *path, char hash[HR_HASH_BYTES])
{
    entry e;
    char text[TEXT_BYTES];
    int64_t bytes;
    int known = -1;
    hr_error ignored;
    if (!find_entry(cache, file, path, &e)) return false;
    if (hr_file_open(e.entry, &known, &bytes, &ignored) != HR_OK) return false;
    const int64_t length = (int64_t)strlen(e.identity), digits = HR_HASH_BYTES - 1;
    const bool found = bytes == length + digits + 1 &&
                       hr_file_read(known, e.entry, 0, text, bytes, &ignored) == HR_OK &&
                       !memcmp(text, e.identity, (size_t)length);
    hr_file_close(&known);
    if (found) snprintf(hash, HR_HASH_BYTES, "%.*s", (int)digits, text + length);
    return found && strspn(hash, "0123456789abcdef") == (size_t)digits;
}

void hr_hash_cache_keep(const char *cache, int file, const char *path, int64_t begun,
                        const char hash[HR_HASH_BYTES])
{
    entry e;
    char line[HR_HASH_BYTES + 1];
    hr_file_out out;
    hr_error ignored;
    if (!find_entry(cache, file, path, &e) || begun - e.changed < SETTLED_SECONDS) return;
    if (hr_directory_make(cache, &ignored) != HR_OK ||
        hr_file_begin(&out, cache, e.name, &ignored) != HR_OK)
        return;
    snprintf(line, sizeof line, "%s\n", hash);
    hr_status status = hr_file_append(&out, e.identity, (int64_t)strlen(e.identity), &ignored);
    if (status == HR_OK) status = hr_file_append(&out, line, (int64_t)strlen(line), &ignored);
    if (status == HR_OK) status = hr_file_commit(&out, &ignored);
    (void)status; /* the next run hashes the file again */
}
