/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/weights.h - what a run knows of every parameter, as safetensors files with the names other
 * software gives them, and a config.json beside the weights.
 *
 * Written one parameter after the other through a small buffer, so that saving needs no second copy
 * of the model. The fp32 masters are written: nothing is lost. A value that is not finite is never
 * written: whatever has the names then stays. The files of a program differ in nothing but what
 * they are of: header and places follow from the program alone. */
#ifndef HR_CKPT_WEIGHTS_H
#define HR_CKPT_WEIGHTS_H

#include "base/file.h"
#include "ckpt/hash.h"
#include "graph/program.h"
#include "headroom/config.h"

/* What of the parameters a file holds: all of the weights, or states of those that train. */
typedef enum {
    HR_KEPT_WEIGHTS,
    HR_KEPT_MOMENT_1,
    HR_KEPT_MOMENT_2,
    HR_KEPT_AVERAGE,
    HR_KEPT_KINDS
} hr_kept;

/* "model.safetensors" */
const char *hr_kept_name(hr_kept kept);

/* The tensor that a file of that kind has of a parameter, HR_NONE: none. Pure. */
int32_t hr_kept_tensor(const hr_program *program, int32_t param, hr_kept kept);

/* Whether there is such a file at all. Pure. */
bool hr_kept_any(const hr_program *program, hr_kept kept);

/* Bytes of text that headers and config.json need. Pure. */
int64_t hr_weights_text_bytes(const hr_program *program);

/* Prints the header of a file, its length before it, into text [bytes], bytes >=
 * hr_weights_text_bytes(program). Returns its bytes: tensors follow at once, in the order of the
 * parameters. */
int64_t hr_weights_header(const hr_program *program, hr_kept kept, char *text, int64_t bytes);

/* Bytes of one parameter, and of all tensors behind the header. Pure. */
int64_t hr_kept_bytes_of(const hr_param *param);
int64_t hr_kept_bytes(const hr_program *program, hr_kept kept);

/* Bytes of the whole file; 0: this program has none. Pure. */
int64_t hr_kept_file_bytes(const hr_program *program, hr_kept kept);

typedef struct {
    hr_file_out file;
    hr_hash hash; /* of what was written */
    const hr_program *program;
    hr_kept kept;
} hr_weights_out;

/* That weights and config.json could be put into DIR, which is there. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_weights_check(const char *directory, hr_error *err);

/* Begins DIR/hr_kept_name(kept) with its header. `text` as in hr_weights_header.
 * Errors   USAGE the directory is missing. FAILURE it cannot be written. */
HR_MUST_CHECK hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program,
                                         hr_kept kept, const char *directory, char *text,
                                         int64_t bytes, hr_error *err);

/* Rows of the file's matrix of a parameter, and elements of each. Rows of one panel are gathered
 * together quickest. */
int64_t hr_weights_rows(const hr_param *param);
int64_t hr_weights_width(const hr_param *param);

/* Rows [first, first + count) of that matrix, out of the layout that its tensor has in memory.
 *   values  in that layout and type: bf16 where a frozen weight has no master
 *   to      [count, width] out
 * Threads  any. */
void hr_weights_gather(const hr_program *program, int32_t param, hr_kept kept, const void *values,
                       int64_t first, int64_t count, float *to);

/* Adds the next elements of a parameter.
 * Errors   DIVERGED  an element is not finite: a file of weights never holds such a one
 *          FAILURE   a full disk among them; the temporary file is then gone. */
HR_MUST_CHECK hr_status hr_weights_append(hr_weights_out *out, int32_t param, const float *values,
                                          int64_t count, hr_error *err);

/* Both, for a whole parameter, in pieces.
 *   staging  [staging_bytes], a row at least */
HR_MUST_CHECK hr_status hr_weights_add(hr_weights_out *out, int32_t param, const void *values,
                                       void *staging, int64_t staging_bytes, hr_error *err);

/* Forgets what was begun. Accepts a closed object. */
void hr_weights_abort(hr_weights_out *out);

/* Prints config.json into text [hr_weights_text_bytes]. Returns its bytes. */
int64_t hr_weights_config(const hr_config *config, char *text, int64_t bytes);

extern const char hr_weights_config_name[]; /* "config.json" */

#endif
