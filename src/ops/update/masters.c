/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/masters.c - blocks of weights without an fp32 copy. */
#include "ops/update/masters.h"

#include "base/assert.h"

enum { ROW = HR_UPDATE_RUN_ELEMENTS };
_Static_assert((int)ROW == (int)HR_RESIDUAL_RUN, "a thread has whole runs of codes");
_Static_assert((int)HR_MOMENT_BLOCK == (int)HR_RESIDUAL_BLOCK, "a block has one tie code");

float *hr_master_unpack(const hr_update_kernels *kernels, const hr_master *master, int64_t first,
                        int64_t count, float *values)
{
    if (master->kind == HR_MASTER_F32) return (float *)master->stored + first;
    const hr_bf16 *weight = (const hr_bf16 *)master->stored + first;
    if (master->kind == HR_MASTER_RESIDUAL)
        kernels->join(weight, master->residual + hr_residual_index(first),
                      master->residual[hr_residual_tie_index(first)], values, count);
    else if (master->kind == HR_MASTER_RESIDUAL_BYTES)
        kernels->join_bytes(weight, (const uint8_t *)master->residual + first, values, count);
    else kernels->unpack_bf16(weight, values, count);
    return values;
}

/* One block in about 500 has a tie that is rounded up. */
static uint16_t mark_ties(const float *values, uint16_t *codes, int64_t count)
{
    const uint16_t tie = hr_residual_free_code(codes, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        if (hr_residual_is_up(bits)) codes[i] = tie;
    }
    return tie;
}

void hr_master_pack(const hr_update_kernels *kernels, const hr_master *master, int64_t first,
                    int64_t count, const float *values)
{
    hr_bf16 *weight = (hr_bf16 *)master->stored + first;
    if (master->kind == HR_MASTER_RESIDUAL) {
        uint16_t *codes = master->residual + hr_residual_index(first);
        const bool up = kernels->part(values, weight, codes, count);
        master->residual[hr_residual_tie_index(first)] = up ? mark_ties(values, codes, count) : 0;
    } else if (master->kind != HR_MASTER_F32) {
        const int64_t element = master->element_first + first;
        const hr_random_row row = hr_random_row_of(master->stream, 0, (uint32_t)(element / ROW));
        const uint32_t of_row = (uint32_t)(element % ROW);
        HR_ASSERT(element % HR_MOMENT_BLOCK == 0);
        if (master->kind == HR_MASTER_ROUNDED)
            kernels->pack_bf16(values, &row, of_row, weight, count);
        else
            kernels->part_bytes(values, &row, of_row, weight, (uint8_t *)master->residual + first,
                                count);
    }
}
