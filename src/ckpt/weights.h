/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/weights.h - the weights of a model as a safetensors file, with the names other software
 * gives them, and a config.json beside it.
 *
 * Written one parameter after the other through a small buffer, so that saving needs no second copy
 * of the model. The fp32 masters are written: nothing is lost. A value that is not finite is never
 * written: whatever has the names then stays. */
#ifndef HR_CKPT_WEIGHTS_H
#define HR_CKPT_WEIGHTS_H

#include "base/file.h"
#include "graph/program.h"
#include "headroom/config.h"

typedef struct {
    hr_file_out file;
    const hr_program *program;
} hr_weights_out;

/* Bytes of text that hr_weights_begin and hr_weights_config need. Pure. */
int64_t hr_weights_text_bytes(const hr_program *program);

/* That both files could be put into DIR, which is there. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_weights_check(const char *directory, hr_error *err);

/* Begins DIR/model.safetensors: the header, with every parameter in the order of the table.
 *
 *   text  [bytes], bytes >= hr_weights_text_bytes(program)
 *
 * Errors   USAGE the directory is missing. FAILURE it cannot be written. */
HR_MUST_CHECK hr_status hr_weights_begin(hr_weights_out *out, const hr_program *program,
                                         const char *directory, char *text, int64_t bytes,
                                         hr_error *err);

/* Adds the next parameter, out of the layout it has in memory.
 *
 *   master   in the layout and type of its tensor: bf16 where a frozen weight has none
 *   staging  [staging_bytes], a row at least
 *
 * Errors   DIVERGED  an element is not finite: a file of weights never holds such a one
 *          FAILURE   a full disk among them; the temporary file is then gone. */
HR_MUST_CHECK hr_status hr_weights_add(hr_weights_out *out, int32_t param, const void *master,
                                       void *staging, int64_t staging_bytes, hr_error *err);

/* Writes config.json, then flushes and renames the weights. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_weights_commit(hr_weights_out *out, const hr_config *config,
                                          const char *directory, char *text, int64_t bytes,
                                          hr_error *err);

/* Forgets what was begun. Accepts a closed object. */
void hr_weights_abort(hr_weights_out *out);

#endif
