/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/safetensors.h - the headers of safetensors files as one table of tensors.
 *
 * The source is one file, or the shards that an index names. All headers are validated: every byte
 * after a header belongs to exactly one tensor, and the size of each tensor matches its shape and
 * dtype. The tables are in the caller's region; headers are decoded in place; tensor data is not
 * read. */
#ifndef HR_CHECKPOINT_SAFETENSORS_H
#define HR_CHECKPOINT_SAFETENSORS_H

#include "base/file.h"
#include "base/region.h"

enum {
    HR_STORED_RANK_MAX = 8,
    HR_STORED_FILES_MAX = 512,
    HR_STORED_HEADER_BYTES_MAX = 100000000 /* limit of the format */
};

typedef enum {
    HR_STORED_F32,
    HR_STORED_F16,
    HR_STORED_BF16,
    HR_STORED_E4M3, /* with a scale for each block (block_scales.h) */
    HR_STORED_U8,   /* codes of an optimizer state; never weights */
    HR_STORED_OTHER /* a known dtype that can be copied but not computed with */
} hr_stored_kind;

/* Bytes of an element; not for OTHER. */
static inline int64_t hr_stored_kind_bytes(hr_stored_kind kind)
{
    return kind == HR_STORED_F32 ? 4 : kind == HR_STORED_E4M3 || kind == HR_STORED_U8 ? 1 : 2;
}

/* One row of the format's table of dtypes. */
typedef struct {
    const char *name; /* "BF16" */
    int32_t bits;
    hr_stored_kind kind;
} hr_stored_dtype;

typedef struct {
    const char *name;
    const hr_stored_dtype *dtype;
    int64_t dims[HR_STORED_RANK_MAX];
    int64_t offset, bytes; /* from the beginning of its file */
    int32_t rank, file;
} hr_stored_tensor;

typedef struct {
    const char *name; /* relative to the folder; the path of a single file */
    int file;         /* descriptor */
    int64_t bytes, data_offset;
} hr_stored_file;

typedef struct {
    const char *path; /* the path that was opened */
    hr_stored_file *files;
    hr_stored_tensor *tensors; /* [tensor_count] in header order */
    /* [tensor_count] row indices sorted by name; by file and offset */
    int32_t *by_name, *by_offset;
    int32_t file_count, tensor_count;
    bool sharded;
} hr_stored;

extern const char hr_stored_single_name[]; /* "model.safetensors" */
extern const char hr_stored_index_name[];  /* "model.safetensors.index.json" */

/* Bytes of a region that hr_stored_open needs for the current files at a path: the texts of headers
 * and index, and the tables. 0 if nothing there can be opened.
 * Cost     reads headers and index once. */
int64_t hr_stored_bytes(const char *path);

/* Bytes of the texts alone: headers and index. */
int64_t hr_stored_text_bytes(const char *path);

/* As hr_stored_bytes, but without the white space of the texts: an upper bound for a table of the
 * tensors, or for a rewritten header. */
int64_t hr_stored_compact_bytes(const char *path);

/* Checks that `path` is a safetensors file, or a folder with model.safetensors or an index, and
 * that it can be opened. The error says what is there instead: a broken link, a pipe, or a pickle
 * (pytorch_model.bin), which is never read. Does not check shards.
 * Errors USAGE; FAILURE a system call failed. */
HR_MUST_CHECK hr_status hr_stored_check(const char *path, hr_error *err);

/* Opens a safetensors file, or a folder with model.safetensors or else an index.
 *
 * Errors   USAGE    the path, or a shard that the index names, is missing or unreadable
 *          CORRUPT  a header or the index is invalid or contradicts the files
 *          FAILURE  the region is too small, or a system call failed. */
HR_MUST_CHECK hr_status hr_stored_open(hr_stored *stored, const char *path, hr_region *region,
                                       hr_error *err);

/* Closes the files. Accepts a closed or zeroed object. */
void hr_stored_close(hr_stored *stored);

/* The tensor with this name, or null. */
const hr_stored_tensor *hr_stored_find(const hr_stored *stored, const char *name);

/* Prints a shape such as "[48, 3]" into text [bytes]. Returns text. */
const char *hr_stored_shape(const hr_stored_tensor *tensor, char *text, int64_t bytes);

/* The dtype with this name, or null. */
const hr_stored_dtype *hr_stored_dtype_find(const char *name);

#endif
