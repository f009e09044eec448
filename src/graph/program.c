/* SPDX-License-Identifier: Apache-2.0 */
/* graph/program.c - creates an empty program, and queries that need only the program. */
#include "graph/program.h"

#include <string.h>

hr_status hr_program_place(hr_region *region, const struct hr_op *const *ops, int32_t op_count,
                           int32_t step_max, int32_t tensor_max, int32_t loop_max,
                           int32_t param_max, hr_program *program, hr_error *err)
{
    hr_program made = { .ops = ops,
                        .op_count = op_count,
                        .tensor_max = tensor_max,
                        .step_max = step_max,
                        .loop_max = loop_max,
                        .param_max = param_max };
    made.tensors = hr_region_take_raw(region, tensor_max, sizeof *made.tensors);
    made.steps = hr_region_take_raw(region, step_max, sizeof *made.steps);
    made.loops = hr_region_take_raw(region, loop_max, sizeof *made.loops);
    made.params = hr_region_take_raw(region, param_max, sizeof *made.params);
    if (!made.tensors || !made.steps || !made.loops || !made.params)
        return hr_fail(err, HR_FAILURE, "the program needs more than %lld bytes",
                       (long long)region->bytes);
    made.loops[0] = (hr_loop){ "run", HR_NONE, 1, 0, 0, 0, -1 };
    made.loop_count = 1;
    *program = made;
    return HR_OK;
}

int32_t hr_program_average(const hr_program *program)
{
    for (int32_t i = 0; i < program->state_count; i++)
        if (program->states[i].average) return i;
    return HR_NONE;
}

int64_t hr_tensor_bytes(const hr_tensor *tensor)
{
    return tensor->rows * tensor->row_bytes + tensor->fixed_bytes;
}

bool hr_loop_inside(const hr_program *program, int32_t inner, int32_t outer)
{
    if (outer == HR_NONE) return true;
    while (inner != HR_NONE && inner != outer) inner = program->loops[inner].parent;
    return inner == outer;
}
