/* SPDX-License-Identifier: Apache-2.0 */
/* run/run_files.c - the tables for the files of a checkpoint. */
#include "run/run_files.h"

hr_status hr_run_files_place(hr_region *region, const hr_program *program, hr_run_files *files,
                             hr_error *err)
{
    files->weights_text = hr_region_take(region, hr_weights_text_bytes(program), 1);
    bool placed = files->weights_text;
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++) {
        hr_weights_in *in = &files->kept[kept];
        in->sources = hr_region_take(region, program->param_count, sizeof *in->sources);
        in->files = hr_region_take(region, 1, sizeof *in->files);
        placed &= in->sources && in->files;
    }
    if (placed) return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for the buffers of the run");
}

void hr_run_files_close_kept(hr_run_files *files, const hr_program *program)
{
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++) {
        hr_weights_in *in = &files->kept[kept];
        for (int32_t f = 0; f < in->file_count; f++) hr_file_close(&in->files[f]);
        in->file_count = 0;
    }
}
