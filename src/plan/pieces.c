/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pieces.c - walks through the pieces of updates. */
#include "plan/pieces.h"

#include "base/checked.h"
#include "base/residual.h"
#include "graph/backend.h"

int64_t hr_piece_own_elements(const hr_tensor *tensor, int64_t all, int64_t elements)
{
    enum { BLOCK = HR_STATE_BLOCK_ELEMENTS };
    const int64_t own = hr_tensor_bytes(tensor) / hr_dtype_bytes((hr_dtype)tensor->dtype);
    if (!hr_piece_is_array(tensor)) return HR_NONE;
    if (own == all) return elements;
    for (int32_t bytes = 0; bytes < 2 && tensor->dtype == HR_U16; bytes++)
        if (own == hr_residual_halves(all, bytes)) return hr_residual_halves(elements, bytes);
    return own == (all + BLOCK - 1) / BLOCK ? (elements + BLOCK - 1) / BLOCK : HR_NONE;
}

bool hr_piece_has(const hr_program *program, int32_t step)
{
    const hr_step *update = &program->steps[step];
    if (!hr_step_op(program, update)->split) return false;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (hr_tensor_is_away(program, update->out[k])) return true;
    return false;
}

int64_t hr_piece_elements_of(const hr_program *program, int32_t step)
{
    const int32_t *out = program->steps[step].out;
    int32_t k = 0;
    while (!hr_tensor_is_away(program, out[k])) k++;
    const hr_tensor *state = &program->tensors[out[k]];
    return hr_tensor_bytes(state) / hr_dtype_bytes((hr_dtype)state->dtype);
}

/* The piece from element `first` of a step on, or of the next update after the last element. */
static hr_piece piece_from(const hr_program *program, int32_t step, int64_t first)
{
    if (step < 0 || first == hr_piece_elements_of(program, step)) {
        first = 0;
        do step++;
        while (step < program->step_count && !hr_piece_has(program, step));
        if (step == program->step_count) return (hr_piece){ HR_NONE, 0, 0 };
    }
    const int64_t left = hr_piece_elements_of(program, step) - first;
    return (hr_piece){ step, first, hr_min(left, program->piece_elements) };
}

hr_piece hr_piece_first(const hr_program *program)
{
    return piece_from(program, -1, 0);
}

hr_piece hr_piece_next(const hr_program *program, hr_piece piece)
{
    return piece_from(program, piece.step, piece.first + piece.count);
}

int64_t hr_piece_bytes(const hr_program *program, hr_piece piece)
{
    const int32_t *out = program->steps[piece.step].out;
    int64_t bytes = 0;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (hr_tensor_is_away(program, out[k]))
            bytes += hr_round_up(piece.count *
                                     hr_dtype_bytes((hr_dtype)program->tensors[out[k]].dtype),
                                 hr_space_align(HR_SPACE_FILE));
    return bytes;
}

int64_t hr_window_bytes(const hr_program *program, int64_t bytes)
{
    return bytes + hr_space_align(HR_SPACE_FILE) - hr_program_align(program, HR_SPACE_HOST);
}
