/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/safetensors.h - which tensors lie where: the headers of safetensors files as one table.
 *
 * One file, or the shards that an index names. Nothing is believed: every byte behind a header
 * belongs to one tensor, and every tensor has the bytes that its shape and type come to. Tables are
 * built in the caller's region, out of headers that are decoded where they lie; no tensor is
 * read. */
#ifndef HR_CKPT_SAFETENSORS_H
#define HR_CKPT_SAFETENSORS_H

#include "base/file.h"
#include "base/region.h"

enum {
    HR_STORED_RANK_MAX = 8,
    HR_STORED_FILES_MAX = 512,
    HR_STORED_HEADER_BYTES_MAX = 100000000 /* as the format says */
};

typedef enum {
    HR_STORED_F32,
    HR_STORED_F16,
    HR_STORED_BF16,
    HR_STORED_OTHER /* known, and moved about, and never computed with */
} hr_stored_kind;

/* A row of the format's list of types. */
typedef struct {
    const char *name; /* "BF16" */
    int32_t bits;
    hr_stored_kind kind;
} hr_stored_dtype;

typedef struct {
    const char *name;
    const hr_stored_dtype *dtype;
    int64_t dims[HR_STORED_RANK_MAX];
    int64_t offset, bytes; /* in its file, from the file's beginning on */
    int32_t rank, file;
} hr_stored_tensor;

typedef struct {
    const char *name; /* inside its folder; of a single file its path */
    int file;         /* descriptor */
    int64_t bytes, data_offset;
} hr_stored_file;

typedef struct {
    const char *path; /* that was opened */
    hr_stored_file *files;
    hr_stored_tensor *tensors;    /* [tensor_count] in the order of headers */
    int32_t *by_name, *by_offset; /* [tensor_count] rows by name; by file and offset */
    int32_t file_count, tensor_count;
    bool sharded;
} hr_stored;

extern const char hr_stored_single_name[]; /* "model.safetensors" */
extern const char hr_stored_index_name[];  /* "model.safetensors.index.json" */

/* Bytes of a region that hr_stored_open needs for a path as it is now; 0 when there is nothing
 * there that could be opened. The texts of headers and index, and a row for each tensor.
 * Cost     headers and index are read once, and looked through for tensors. */
int64_t hr_stored_bytes(const char *path);

/* The texts alone, of headers and index. */
int64_t hr_stored_text_bytes(const char *path);

/* As hr_stored_bytes for what they say alone, without the blanks between: what a table of the
 * tensors, or a header that says it again, takes at most. */
int64_t hr_stored_said_bytes(const char *path);

/* That a safetensors file lies at `path`, or a folder with model.safetensors or an index, and that
 * it can be opened. The sentence says what lies there instead: a link without a target, a pipe, or
 * a pickle (pytorch_model.bin), which is never read. Shards are not looked at.
 * Errors USAGE; FAILURE the system refused. */
HR_MUST_CHECK hr_status hr_stored_check(const char *path, hr_error *err);

/* Opens a safetensors file, or a folder that has model.safetensors or, without that, an index.
 *
 * Errors   USAGE    the path, or a shard that the index names, is missing or unreadable
 *          CORRUPT  anything that the files say and that is not so
 *          FAILURE  the region is too small, the system refused. */
HR_MUST_CHECK hr_status hr_stored_open(hr_stored *stored, const char *path, hr_region *region,
                                       hr_error *err);

/* Closes the files. Accepts what is closed or zeroed. */
void hr_stored_close(hr_stored *stored);

/* The tensor of that name, or null. */
const hr_stored_tensor *hr_stored_find(const hr_stored *stored, const char *name);

/* "[48, 3]" into text [bytes]. Returns text. */
const char *hr_stored_shape(const hr_stored_tensor *tensor, char *text, int64_t bytes);

/* The type of that name, or null. */
const hr_stored_dtype *hr_stored_dtype_find(const char *name);

#endif
