/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/list.h - the files that a part of a recipe names, in the order of their bytes. */
#ifndef HR_CORPUS_LIST_H
#define HR_CORPUS_LIST_H

#include "base/region.h"
#include "corpus/kind.h"
#include "corpus/spec.h"

typedef struct {
    int64_t path; /* offset of its path in the pool */
    int64_t bytes;
    hr_file_sort sort;
    int32_t ids_bytes; /* as the part says */
} hr_listed;

typedef struct {
    int64_t path;
    int64_t device, inode;
    int32_t parent;    /* the one it was found in, -1: none */
    int32_t component; /* of the pattern, that its entries are held against */
} hr_listed_folder;

typedef struct {
    char *pool; /* paths, each with a null behind */
    int64_t pool_bytes, pool_used;
    hr_listed *files; /* in order part by part */
    int32_t files_max, count;
    hr_listed_folder *folders; /* of the part at hand */
    int32_t folders_max, folder_count;
    int32_t *order;
    hr_listed *sorted;
    uint8_t *entries; /* as the system gives them */
} hr_list;

/* Bytes of a list of the files of these; without folders and patterns it is small. Pure. */
int64_t hr_list_bytes(const hr_spec *train, const hr_spec *valid);

/* Takes its memory. */
hr_list hr_list_place(hr_region *region, const hr_spec *train, const hr_spec *valid);

/* Whether a part is a pattern: it has * ? or [, and no file or folder has that very name. */
bool hr_list_is_pattern(const hr_spec_part *part);

/* Adds the files of a part: the file itself; all texts in a folder and those below it; what a
 * pattern matches. A file or folder whose own name has * ? or [ is taken as it is.
 * In a pattern * and ? stand for what has no slash, [a-z] for one letter, ** for
 * any number of folders. Names that begin with a point are found only where the pattern has it.
 *
 * Errors   USAGE    nothing of that name; nothing that matches; more than there is room for; a
 *                   folder that leads back into itself, or cannot be read; a table (Parquet), with
 *                   the command that converts it
 *          FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_list_add(hr_list *list, const hr_spec_part *part, hr_error *err);

/* Opens a file that is named itself; of a folder it says how that is named. As hr_file_open. */
HR_MUST_CHECK hr_status hr_list_open(const char *path, int *file, int64_t *bytes, hr_error *err);

static inline const char *hr_list_path(const hr_list *list, int32_t file)
{
    return list->pool + list->files[file].path;
}

/* Whether the name is one that this component of a pattern means; neither has a slash. Pure. */
bool hr_list_matches(const char *pattern, int64_t pattern_bytes, const char *name);

#endif
