/* SPDX-License-Identifier: Apache-2.0 */
/* run/shelf.c - the tables for the files of a checkpoint. */
#include "run/shelf.h"

hr_status hr_shelf_place(hr_region *region, const hr_program *program, hr_shelf *shelf,
                         hr_error *err)
{
    shelf->weights_text = hr_region_take(region, hr_weights_text_bytes(program), 1);
    bool placed = shelf->weights_text;
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++) {
        hr_weights_in *in = &shelf->kept[kept];
        in->sources = hr_region_take(region, program->param_count, sizeof *in->sources);
        in->files = hr_region_take(region, 1, sizeof *in->files);
        placed &= in->sources && in->files;
    }
    if (placed) return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for the buffers of the run");
}

void hr_shelf_close_kept(hr_shelf *shelf, const hr_program *program)
{
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++) {
        hr_weights_in *in = &shelf->kept[kept];
        for (int32_t f = 0; f < in->file_count; f++) hr_file_close(&in->files[f]);
        in->file_count = 0;
    }
}
