/* SPDX-License-Identifier: Apache-2.0 */
/* run/run_files.h - the checkpoints of a run: the one that it loads, and those that it writes. */
#ifndef HR_RUN_RUN_FILES_H
#define HR_RUN_RUN_FILES_H

#include "checkpoint/base_files.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/weights_in.h"
#include "run/resume.h"

typedef struct {
    hr_checkpoint_writer *writer;
    hr_resume resume;       /* the checkpoint of the resume or of the last rewind */
    hr_weights_in source;   /* weights of model.from */
    hr_weights_in adapters; /* of train.adapter.from */
    char adapters_path[HR_PATH_BYTES];
    hr_base_files base; /* of adapters: the files of model.from */
    /* The files of that checkpoint while they are loaded; file_count 0: closed. */
    hr_weights_in kept[HR_KEPT_MAX];
    int64_t saved_step; /* step of the newest checkpoint; 0: none */
    bool is_saved;      /* the newest checkpoint has the current state */
    bool base_changed;  /* a file under the adapters is another since the run began */
    char *weights_text; /* [hr_weights_text_bytes] */
    uint32_t cpu_mask;  /* base/cpu.h */
} hr_run_files;

/* Places the tables of the files that a checkpoint is loaded from. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_run_files_place(hr_region *region, const hr_program *program,
                                           hr_run_files *files, hr_error *err);

/* Closes the files of the checkpoint that was loaded. */
void hr_run_files_close_kept(hr_run_files *files, const hr_program *program);

#endif
