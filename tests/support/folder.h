/* SPDX-License-Identifier: Apache-2.0 */
/* support/folder.h - a temporary folder for a test, and functions that write and read whole
 * files. */
#ifndef HR_TESTS_FOLDER_H
#define HR_TESTS_FOLDER_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char path[256];
} hr_folder;

static inline hr_folder hr_folder_open(void)
{
    hr_folder folder = { P_tmpdir "/headroom-test-XXXXXX" };
    if (!mkdtemp(folder.path)) abort();
    return folder;
}

/* The path of a name in the folder, in one of four static buffers. */
static inline const char *hr_folder_path(const hr_folder *folder, const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder->path, name);
    return path;
}

/* Number of names in the folder that contain `part`; "" counts all. */
static inline int hr_folder_count(const hr_folder *folder, const char *part)
{
    int count = 0;
    DIR *directory = opendir(folder->path);
    if (!directory) return 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
                 strstr(entry->d_name, part);
    closedir(directory);
    return count;
}

static inline void hr_folder_empty(const hr_folder *folder)
{
    DIR *directory = opendir(folder->path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            remove(hr_folder_path(folder, entry->d_name));
    closedir(directory);
}

static inline void hr_folder_close(const hr_folder *folder)
{
    hr_folder_empty(folder);
    rmdir(folder->path);
}

static inline void hr_folder_write(const char *path, const void *content, int64_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(content, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file)) abort();
}

/* The file's content, null-terminated; the caller frees it. */
static inline char *hr_folder_read(const char *path, int64_t *bytes)
{
    struct stat what;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &what)) abort();
    char *content = calloc(1, (size_t)what.st_size + 1);
    if (!content || fread(content, 1, (size_t)what.st_size, file) != (size_t)what.st_size) abort();
    fclose(file);
    *bytes = what.st_size;
    return content;
}

#endif
