/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights_in.h - loads the parameters of a program from the safetensors files of a
 * folder.
 *
 * Before the seal, it finds every parameter by its external name, with or without an architecture's
 * prefix, and checks its shape and dtype. After the seal, threads read chunks of rows through
 * staging buffers into the arena, so there is never a second copy of the model. */
#ifndef HR_CHECKPOINT_WEIGHTS_IN_H
#define HR_CHECKPOINT_WEIGHTS_IN_H

#include "checkpoint/block_scales.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weights.h"
#include "graph/program.h"

/* Location of a parameter in the files. */
typedef struct {
    int64_t offset;
    int32_t file; /* index into `files` */
    hr_stored_kind kind;
} hr_weights_source;

/* Where a parameter is loaded to. Null: absent. With rows, only these rows of the file are loaded,
 * as a matrix of their own: a multiple of HR_SCALE_BLOCK, or up to the last. */
typedef struct {
    float *master;           /* in the layout of its tensor; null if there is only a weight */
    void *weight;            /* the same; null if it is the master */
    float *scales;           /* of a stored weight */
    uint8_t zero;            /* every byte of the padding of codes */
    hr_residual residual;    /* of a bf16 weight; hr_load completes it (base/residual.h) */
    int64_t first_row, rows; /* rows 0: all */
} hr_weights_place;

typedef struct {
    const hr_program *program;
    hr_kept kept;               /* what is read; HR_KEPT_WEIGHTS from a folder */
    const char *path;           /* the folder; owned by the caller */
    hr_weights_source *sources; /* [param_count] */
    hr_block_scales *scales;    /* [param_count] of E4M3 parameters; null for a checkpoint */
    int *files;                 /* [file_count] descriptors */
    const int *direct;          /* [file_count] the same files for direct I/O; null: not used */
    int32_t file_count;
    bool streams;      /* in use: errors name a file, and reads leave no page cache behind */
    uint32_t cpu_mask; /* base/cpu.h: allowed instruction sets */
} hr_weights_in;

/* At least the elements of the longest row of a matrix in the files of a model. Pure. */
int64_t hr_weights_width_most(const hr_config *config);

/* Bytes of a region that stay in use for the run. Pure. */
int64_t hr_weights_in_bytes(const hr_program *program);

int64_t hr_weights_in_kept_bytes(const hr_program *program); /* for hr_weights_in_open_kept */

/* Checks that `path` exists and has the first file that hr_weights_in_open reads. Errors USAGE. */
HR_MUST_CHECK hr_status hr_weights_in_check(const char *path, hr_error *err);

/* Which parameters a folder has: those of a model; or the first adapters alone, + 1 the second
 * ones. */
typedef enum { HR_PART_MODEL, HR_PART_ADAPTERS } hr_weights_part;

/* The file of adapters in a PEFT folder. Errors USAGE  the path is too long. */
HR_MUST_CHECK hr_status hr_adapter_path(const char *folder, char path[HR_PATH_BYTES],
                                        hr_error *err);

/* Finds every parameter of a part (hr_weights_part). Every tensor of the folder must belong to it,
 * except buffers such as masks and RoPE frequencies, and a copy of a tied embedding table, which
 * must be byte-identical to the table.
 *
 *   kept     needs hr_weights_in_bytes
 *   scratch  needs hr_stored_bytes(path) and one byte per tensor during the call
 *
 * Errors   as hr_stored_open; CORRUPT  a parameter is missing, occurs twice, or has another shape
 *          or a dtype other than F32, F16, BF16 and F8_E4M3 with its scales, or another than that
 *          of its format; a tensor does not belong to the model; the head differs from the table
 *          that it is tied to. */
HR_MUST_CHECK hr_status hr_weights_in_open(hr_weights_in *in, const hr_program *program,
                                           int32_t part, const char *path, uint32_t cpu_mask,
                                           hr_region *kept, hr_region *scratch, hr_error *err);

/* Opens a file of a checkpoint. Its header must equal the program's own header byte for byte.
 * Allocates nothing, so it may be called after the seal.
 *
 *   in    sources [param_count] and files [1] belong to the caller, also after the close
 *   text  [bytes >= hr_weights_text_bytes(program)] scratch
 *
 * Errors   CORRUPT  the header or the size differs. USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_weights_in_open_kept(hr_weights_in *in, const hr_program *program,
                                                hr_kept kept, const char *directory,
                                                uint32_t cpu_mask, char *text, int64_t bytes,
                                                hr_error *err);

/* Bytes of scratch that hr_weights_in_open needs for the current files. */
int64_t hr_weights_in_scratch_bytes(const char *path);

/* Chunks that a parameter, or some rows of it, is read in with a staging buffer of this size, which
 * holds at least one row. */
int64_t hr_weights_in_pieces(const hr_weights_in *in, int32_t param, hr_weights_place place,
                             int64_t staging_bytes);

/* Bytes in the files of a parameter, or of some rows of it. */
int64_t hr_weights_in_bytes_of(const hr_weights_in *in, int32_t param, hr_weights_place place);

/* The same of a weight, or of a view of some of its columns. */
int64_t hr_weights_in_bytes_of_tensor(const hr_weights_in *in, int32_t weight);

/* Reads one chunk.
 *
 *   staging  [staging_bytes], as in hr_weights_in_pieces; for direct I/O aligned to
 *            HR_FILE_BLOCK, with room for two blocks more
 *
 * A stored weight keeps the elements of the file, and gets its scales.
 *
 * Errors   CORRUPT  an element is not finite, as products read it; the message names the tensor.
 *                   FAILURE.
 * Threads  any, for different chunks. */
HR_MUST_CHECK hr_status hr_weights_in_take(const hr_weights_in *in, int32_t param, int64_t piece,
                                           hr_weights_place place, void *staging,
                                           int64_t staging_bytes, hr_error *err);

/* Reads one row of a table, which the file has in rows, into fp32 or bf16 [N] of the program's
 * weight. Staging, errors and threads as above. */
HR_MUST_CHECK hr_status hr_weights_in_take_row(const hr_weights_in *in, int32_t param, int64_t row,
                                               void *to, void *staging, hr_error *err);

/* Closes the files. Accepts a closed or zeroed object. */
void hr_weights_in_close(hr_weights_in *in);

#endif
