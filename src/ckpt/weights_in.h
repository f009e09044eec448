/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/weights_in.h - the parameters of a program out of the safetensors of a folder.
 *
 * Before the seal every parameter is found, under its external name with or without the prefix of
 * an architecture, and its shape and type are held against the program. After it, pieces of rows go
 * through a staging buffer to where they belong, on as many threads as there are: there is never a
 * second copy of the model. */
#ifndef HR_CKPT_WEIGHTS_IN_H
#define HR_CKPT_WEIGHTS_IN_H

#include "ckpt/safetensors.h"
#include "ckpt/weights.h"
#include "graph/program.h"

/* Where a parameter lies. */
typedef struct {
    int64_t offset;
    int32_t file; /* of `files` */
    hr_stored_kind kind;
} hr_weights_source;

typedef struct {
    const hr_program *program;
    const char *path;           /* the folder, the caller's */
    hr_weights_source *sources; /* [param_count] */
    int *files;                 /* [file_count] descriptors */
    int32_t file_count;
    uint32_t cpu_mask; /* base/cpu.h: instructions that may be used */
} hr_weights_in;

/* Bytes of a region that stay for the run. Pure. */
int64_t hr_weights_in_bytes(const hr_program *program);

int64_t hr_weights_in_kept_bytes(const hr_program *program); /* of hr_weights_in_open_kept */

/* That `path` is there and has what hr_weights_in_open looks for first. Errors USAGE. */
HR_MUST_CHECK hr_status hr_weights_in_check(const char *path, hr_error *err);

/* Finds every parameter. All tensors of the folder have to be the program's, but for masks and
 * frequencies that other software kept there, and for a copy of the table where that is the head:
 * byte for byte, which is read to know it.
 *
 *   kept     takes hr_weights_in_bytes
 *   scratch  holds hr_stored_bytes(path) and a byte for each tensor while this runs
 *
 * Errors   as hr_stored_open; CORRUPT  a parameter is missing, there twice, of another shape or of
 *          a type that is no number of 16 or 32 bits; a tensor that is none of the model's; a
 *          head beside a table that is the head, and another. */
HR_MUST_CHECK hr_status hr_weights_in_open(hr_weights_in *in, const hr_program *program,
                                           const char *path, uint32_t cpu_mask, hr_region *kept,
                                           hr_region *scratch, hr_error *err);

/* Opens a file of a checkpoint instead: its header has to be the program's own, byte for byte, and
 * says nothing that is not known. Takes no memory, so that it may come after the seal.
 *
 *   in    sources [param_count] and files [1] are the caller's, and stay that after the close
 *   text  [bytes >= hr_weights_text_bytes(program)] used while this runs
 *
 * Errors   CORRUPT  another header, another length. USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_weights_in_open_kept(hr_weights_in *in, const hr_program *program,
                                                hr_kept kept, const char *directory,
                                                uint32_t cpu_mask, char *text, int64_t bytes,
                                                hr_error *err);

/* Bytes of scratch for hr_weights_in_open, as the path is now. */
int64_t hr_weights_in_scratch_bytes(const char *path);

/* Pieces in which a parameter is read through so many bytes, a row of the file at least. */
int64_t hr_weights_in_pieces(const hr_weights_in *in, int32_t param, int64_t staging_bytes);

/* Reads one piece.
 *
 *   master, weight  in their tensors' layout; weight null where it is the master; master null where
 *                   only the weight is wanted
 *   staging         [staging_bytes], as in hr_weights_in_pieces
 *
 * Errors   CORRUPT  an element is not finite: the tensor is named. FAILURE.
 * Threads  any, for other pieces. */
HR_MUST_CHECK hr_status hr_weights_in_take(const hr_weights_in *in, int32_t param, int64_t piece,
                                           float *master, void *weight, void *staging,
                                           int64_t staging_bytes, hr_error *err);

/* Closes the files. Accepts what is closed or zeroed. */
void hr_weights_in_close(hr_weights_in *in);

#endif
