/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/list.h - the files that a part of a recipe names, sorted by the bytes of their paths. */
#ifndef HR_CORPUS_LIST_H
#define HR_CORPUS_LIST_H

#include "base/region.h"
#include "corpus/kind.h"
#include "corpus/spec.h"

typedef struct {
    int64_t path; /* offset of its path in the pool */
    int64_t bytes;
    hr_file_sort sort;
    int32_t ids_bytes; /* as given for the part */
} hr_listed;

typedef struct {
    int64_t path;
    int64_t device, inode;
    int32_t parent;    /* parent folder; -1: none */
    int32_t component; /* component of the pattern that its entries are matched with */
} hr_listed_folder;

typedef struct {
    char *pool; /* null-terminated paths */
    int64_t pool_bytes, pool_used;
    hr_listed *files; /* sorted within each part */
    int32_t files_max, count;
    hr_listed_folder *folders; /* of the current part */
    int32_t folders_max, folder_count;
    int32_t *order;
    hr_listed *sorted;
    uint8_t *entries; /* buffer for directory entries of the system call */
} hr_list;

/* Bytes of a list for these texts. The list is small without folders and patterns. Pure. */
int64_t hr_list_bytes(const hr_spec *train, const hr_spec *valid);

/* Takes the list's memory from the region. */
hr_list hr_list_place(hr_region *region, const hr_spec *train, const hr_spec *valid);

/* Whether a part is a pattern: it contains * ? or [, and no file or folder has exactly this name.
 */
bool hr_list_is_pattern(const hr_spec_part *part);

/* Adds the files of a part: the file itself; all texts in a folder and its subfolders; or the files
 * that match a pattern. If a file or folder with the literal name exists, the part is not a
 * pattern. In a pattern, * and ? do not match a slash, [a-z] matches one character, and ** matches
 * any number of folders. Names that begin with a dot match only if the pattern has the dot.
 *
 * Errors   USAGE    nothing has that name or matches; too many files; a folder that contains itself
 *                   through a link, or cannot be read; a table (Parquet); the message has the
 *                   command that converts it
 *          FAILURE  a system call failed. */
HR_MUST_CHECK hr_status hr_list_add(hr_list *list, const hr_spec_part *part, hr_error *err);

/* Opens a file that the recipe names directly. For a folder, the error explains how to name one.
 * Errors as hr_file_open. */
HR_MUST_CHECK hr_status hr_list_open(const char *path, int *file, int64_t *bytes, hr_error *err);

static inline const char *hr_list_path(const hr_list *list, int32_t file)
{
    return list->pool + list->files[file].path;
}

/* Whether a name matches one component of a pattern; neither contains a slash. Pure. */
bool hr_list_matches(const char *pattern, int64_t pattern_bytes, const char *name);

#endif
