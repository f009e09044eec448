/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/place.c - compares files by identity, not by path: links and dots can make two paths
 * refer to one file. */
#include "evaluate/place.h"

#include <string.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "base/words.h"
#include "checkpoint/sidecar_files.h"
#include "evaluate/output.h"

typedef struct {
    const hr_evaluate_request *request;
    const char *option, *path, *folder;
    hr_status status;
    hr_error *err;
} place;

static const char is_read[] = "is an input";

/* The directory of a path. Paths that are too long are refused when they are opened. */
static void folder_of(const char *path, char folder[HR_PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const size_t bytes = slash ? (size_t)(slash - path) + 1 : 0;
    const bool fits = bytes > 0 && bytes < HR_PATH_BYTES;
    memcpy(folder, fits ? path : "./", fits ? bytes : 2);
    folder[fits ? bytes : 2] = 0;
}

static hr_status check_apart(const place *p, const char *read, const char *what)
{
    if (!read || !hr_file_is_one(p->path, read)) return HR_OK;
    return hr_fail(p->err, HR_USAGE, "%s %.200s is the file %.200s, which %s; give another path",
                   p->option, p->path, read, what);
}

/* Returns true for file names that model and tokenizer loaders look for: a file with such a name
 * would be loaded as part of the model next time, in preference to its shards. */
static bool is_read_by_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return hr_sidecar_files_have(name) || !strcmp(name, hr_stored_single_name) ||
           !strcmp(name, hr_stored_index_name);
}

/* Returns true for outputs of an earlier evaluation, which no model loads. */
static bool is_output(const char *path)
{
    return hr_ends_with(path, ".jsonl") || hr_logits_are_in(path);
}

static bool compare(void *context, const char *name)
{
    place *p = context;
    char inside[HR_PATH_BYTES];
    p->status = hr_path_join(p->folder, name, inside, sizeof inside, p->err);
    const bool read = hr_ends_with(name, ".safetensors") || is_read_by_name(name);
    if (p->status == HR_OK && !is_output(inside))
        p->status = check_apart(p, inside, read ? is_read : "may belong to the model");
    return p->status == HR_OK;
}

/* Checks every file of a directory, because an index can give shards any name. */
static hr_status check_folder(place *p, const char *folder)
{
    char into[HR_PATH_BYTES];
    p->folder = folder;
    const hr_status status = hr_directory_list(folder, compare, p, p->err);
    if (status != HR_OK || p->status != HR_OK) return status != HR_OK ? status : p->status;
    folder_of(p->path, into);
    if (!hr_file_is_one(into, folder) || !is_read_by_name(p->path)) return HR_OK;
    return hr_fail(p->err, HR_USAGE,
                   "%s %.200s would become part of the model in %.200s; give another path",
                   p->option, p->path, folder);
}

/* A vocabulary file may have a merges file beside it, which is loaded with it. */
static hr_status check_tokenizer(place *p)
{
    static const char *const pair[] = { "vocab.json", "merges.txt" };
    char folder[HR_PATH_BYTES], beside[HR_PATH_BYTES];
    const char *path = p->request->model->tokenizer;
    if (!path || !strcmp(path, "bytes")) return HR_OK;
    if (hr_file_is_directory(path)) return check_folder(p, path);
    hr_status status = check_apart(p, path, is_read);
    if (!hr_ends_with(path, pair[0]) && !hr_ends_with(path, pair[1])) return status;
    folder_of(path, folder);
    for (int32_t i = 0; i < 2 && status == HR_OK; i++) {
        status = hr_path_join(folder, pair[i], beside, sizeof beside, p->err);
        if (status == HR_OK) status = check_apart(p, beside, is_read);
    }
    return status;
}

hr_status hr_place_check(const hr_evaluate_request *request, const char *option, const char *path,
                         hr_place_kind kind, hr_error *err)
{
    place p = { request, option, path, NULL, HR_OK, err };
    if (!path) return HR_OK;
    hr_status status = check_apart(&p, request->tokens, is_read);
    if (status == HR_OK) status = check_apart(&p, request->text, is_read);
    if (status == HR_OK) status = check_apart(&p, request->choices, is_read);
    if (status == HR_OK) status = check_folder(&p, request->model->folder);
    if (status == HR_OK) status = check_tokenizer(&p);
    return status == HR_OK ? hr_file_check_kind_at(path, kind.at, kind.is, kind.name, err) : status;
}
