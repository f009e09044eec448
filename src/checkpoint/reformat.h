/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/reformat.h - writes the weights and optimizer states of a checkpoint again, in the
 * formats of another recipe for the same parameters. */
#ifndef HR_CHECKPOINT_REFORMAT_H
#define HR_CHECKPOINT_REFORMAT_H

#include <signal.h>

#include "checkpoint/weights.h"
#include "graph/program.h"

typedef struct {
    const hr_program *was, *now; /* with the same parameters */
    const char *from, *to;       /* folders: the checkpoint, and where files are written */
    const volatile sig_atomic_t *interrupts;         /* may be null */
    void (*report)(void *context, const char *line); /* a line for each file; may be null */
    void *context;
} hr_reformat;

/* Whether all parameters of a file, which both programs have, can be written in the formats of
 * `now`: fp32, bf16 and 8-bit codes can. Sets `differs` if the file differs. Pure. */
bool hr_reformat_can(const hr_program *was, const hr_program *now, hr_kept kept_was,
                     hr_kept kept_now, bool *differs);

/* The file of `was` with the name of a file of `now`; -1: there is none. Pure. */
hr_kept hr_reformat_source(const hr_program *was, const hr_program *now, hr_kept kept_now);

/* Bytes of the region for hr_reformat_write. Pure. */
int64_t hr_reformat_bytes(const hr_program *was, const hr_program *now);

/* Writes each file of `now` that differs, with its scales. Values are rounded to nearest.
 * Errors  FAILURE, CORRUPT  as of files; DIVERGED  a value is not finite; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_reformat_write(const hr_reformat *reformat, hr_region *region,
                                          hr_error *err);

#endif
