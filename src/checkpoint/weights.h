/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights.h - weights and the states of a program as safetensors files with Hugging Face
 * names, and config.json.
 *
 * Parameters are written one after another through a small buffer, so saving needs no second copy
 * of the model. The files contain the fp32 masters, so no precision is lost; bf16 weights without
 * them, and stored weights (graph/weight_format.h), as they are. A value that is not
 * finite stops the write, and the previous file stays in place. Header and offsets follow from the
 * program alone. */
#ifndef HR_CHECKPOINT_WEIGHTS_H
#define HR_CHECKPOINT_WEIGHTS_H

#include "base/file.h"
#include "checkpoint/hash.h"
#include "graph/program.h"
#include "graph/weight_format.h"
#include "headroom/config.h"

/* The tensors that a file contains: all weights but those under adapters, or one state of the
 * trained parameters. A state has the number 1 + its index in the program. */
typedef int32_t hr_kept;
enum { HR_KEPT_WEIGHTS, HR_KEPT_STATES, HR_KEPT_MAX = HR_KEPT_STATES + HR_STATES_MAX };

/* Number of kinds that a program can have files of. Pure. */
int32_t hr_kept_count(const hr_program *program);

/* The files of a run with weights, and with their description: "model.safetensors" and
 * "config.json", or of adapters those of PEFT. Pure. */
const char *hr_weights_name(const hr_config *config);
const char *hr_weights_config_name(const hr_config *config);

const char *hr_kept_name(const hr_program *program, hr_kept kept);

/* The tensor of a parameter in a file of this kind; HR_NONE if it has none. Pure. */
int32_t hr_kept_tensor(const hr_program *program, int32_t param, hr_kept kept);

/* Its elements in the file: [K, N], or [N, K] if transposed; a vector has N = 1. With a stack, the
 * shape in the file has another dimension in front, of the matrices in it; their columns may be
 * beside each other in memory. States have no stack. Pure. */
typedef struct {
    int64_t K, N;
    bool vector, transposed;
    int64_t stack;  /* 0: it is one matrix */
    int64_t groups; /* of columns: 1, or the stack */
} hr_kept_shape;
hr_kept_shape hr_kept_shape_of(const hr_program *program, int32_t param, hr_kept kept);

/* The format of its elements in the file; that of HR_WEIGHTS_COMPUTE is F32. Scales follow their
 * matrix, in the scale_dtype of the format. Pure. */
const hr_weight_format *hr_kept_format(const hr_program *program, int32_t param, hr_kept kept);

/* Bytes of one element in the file. Pure. */
int64_t hr_kept_element_bytes(const hr_program *program, int32_t param, hr_kept kept);

/* Whether the program has a file of this kind. Pure. */
bool hr_kept_any(const hr_program *program, hr_kept kept);

/* Bytes of text buffer for headers and config.json. Pure. */
int64_t hr_weights_text_bytes(const hr_program *program);

/* Prints a file's length field and header into text [bytes], bytes >=
 * hr_weights_text_bytes(program). Returns its bytes. The tensors follow immediately, in the order
 * of the parameters. */
int64_t hr_weights_header(const hr_program *program, hr_kept kept, char *text, int64_t bytes);

/* Bytes of one parameter with its scales, and of all tensors after the header. Pure. */
int64_t hr_kept_bytes_of(const hr_program *program, int32_t param, hr_kept kept);
int64_t hr_kept_bytes(const hr_program *program, hr_kept kept);

/* Bytes of the whole file; 0 if the program has none. Pure. */
int64_t hr_kept_file_bytes(const hr_program *program, hr_kept kept);

typedef struct {
    hr_file_out file;
    hr_hash hash; /* of all bytes written so far */
    const hr_program *program;
    hr_kept kept;
} hr_weights_out;

/* Checks that weights and their description can be written into the existing folder DIR. Errors as
 * hr_file_begin. */
HR_MUST_CHECK hr_status hr_weights_check(const hr_config *config, const char *directory,
                                         hr_error *err);

/* Begins DIR/hr_kept_name(program, kept) with its header. `text` as in hr_weights_header.
 * Errors   USAGE the directory is missing. FAILURE the file cannot be written. */
HR_MUST_CHECK hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program,
                                         hr_kept kept, const char *directory, char *text,
                                         int64_t bytes, hr_error *err);

/* Rows and row width, in elements, of a matrix in the file. Gathering the rows of one panel
 * together is fastest. */
int64_t hr_weights_rows(hr_kept_shape shape);
int64_t hr_weights_width(hr_kept_shape shape);

/* Copies rows [first, first + count) of that matrix out of the tensor's layout in memory.
 *   values    in the layout and dtype of the tensor: bf16 for a weight without a master
 *   residual  of bf16 values, which are then the upper half of fp32; null: none
 *   to        [count, width] elements of hr_kept_element_bytes, out
 * Threads  any. */
void hr_weights_gather(const hr_program *program, int32_t param, hr_kept kept, const void *values,
                       hr_residual residual, int64_t first, int64_t count, void *to);

/* Appends the next elements of a parameter, as hr_weights_gather gives them.
 * Errors   DIVERGED  an element is not finite
 *          FAILURE   a write failed, for example on a full disk; the temporary file is removed. */
HR_MUST_CHECK hr_status hr_weights_append(hr_weights_out *out, int32_t param, const void *values,
                                          int64_t count, hr_error *err);

/* Appends the scales of a stored parameter, after its elements; nothing if it has none. Errors as
 * hr_weights_append. */
HR_MUST_CHECK hr_status hr_weights_append_scales(hr_weights_out *out, int32_t param,
                                                 const float *scales, hr_error *err);

/* Gathers and appends a whole parameter without scales in chunks.
 *   staging  [staging_bytes], at least one row */
HR_MUST_CHECK hr_status hr_weights_add(hr_weights_out *out, int32_t param, const void *values,
                                       void *staging, int64_t staging_bytes, hr_error *err);

/* Discards a file that was begun. Accepts a closed object. */
void hr_weights_abort(hr_weights_out *out);

/* Prints the description of the weights of a program into text [hr_weights_text_bytes]. Returns its
 * bytes. */
int64_t hr_weights_config(const hr_config *config, const hr_program *program, char *text,
                          int64_t bytes);

#endif
