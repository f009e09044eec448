/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_ref.c - what every rung of the matrix products is held against.
 *
 * One loop nest for both types. Sums of a result element are double from end to end; those over
 * tokens are double inside a block of 64 and are rounded where they meet the carried sum. */
#include "ops/linear/linear_kernels.h"

#include "ops/activation/activation_scalar.h"
#include "ops/element.h"

enum { BLOCK_TOKENS = 64 };

/* An activation reads what was stored, or would be: it can be made from that again. */
static double as_stored(hr_dtype dtype, double z)
{
    return dtype == HR_BF16 ? hr_bf16_to_f32(hr_bf16_from_f32((float)z)) : (float)z;
}

static double product(hr_dtype dtype, const hr_linear_mm *mm, int64_t row, int64_t n)
{
    const hr_layout layout = hr_layout_for(dtype);
    double sum = 0;
    for (int64_t k = 0; k < mm->K; k++) {
        const int64_t index = mm->transposed ? hr_layout_index(layout, mm->N, mm->K, n, k)
                                             : hr_layout_index(layout, mm->K, mm->N, k, n);
        sum += (double)hr_element_get(mm->a, row * mm->K + k, dtype) *
               hr_element_get(mm->w, index, dtype);
    }
    return sum;
}

static void mm_any(hr_dtype dtype, const hr_linear_mm *mm)
{
    for (int64_t row = 0; row < mm->rows; row++)
        for (int64_t n = mm->n_first; n < mm->n_end; n++) {
            const int64_t index = row * mm->N + n;
            const double other = mm->residual ? hr_element_get(mm->residual, index, dtype) : 0;
            double z = product(dtype, mm, row, n);
            if (mm->transposed) {
                z += other;
                if (mm->aux)
                    z *= hr_activation_slope(mm->act, hr_element_get(mm->aux, index, dtype));
                hr_element_set(mm->out, index, dtype, (float)z);
                continue;
            }
            if (mm->bias) z += mm->bias[n];
            if (mm->pre) hr_element_set(mm->pre, index, dtype, (float)z);
            if (mm->act != HR_ACT_NONE) z = hr_activate(mm->act, as_stored(dtype, z));
            hr_element_set(mm->out, index, dtype, (float)(mm->residual ? z + other : z));
        }
}

/* carried + the sum over tokens of x[., k] dy[., n], or of dy[., n] alone without x. */
static float sum_tokens(hr_dtype dtype, const hr_linear_dw *dw, int64_t k, int64_t n, float carried)
{
    int64_t position = dw->position;
    double block = 0;
    for (int64_t row = 0; row < dw->rows; row++) {
        const double x = dw->x ? hr_element_get(dw->x, row * dw->K + k, dtype) : 1;
        block += x * hr_element_get(dw->dy, row * dw->N + n, dtype);
        position = position + 1 == dw->T ? 0 : position + 1;
        if (position % BLOCK_TOKENS && row + 1 < dw->rows) continue;
        carried = (float)(carried + block);
        block = 0;
    }
    return carried;
}

static void dw_any(hr_dtype dtype, const hr_linear_dw *dw)
{
    const hr_layout layout = hr_layout_for(dtype);
    const int64_t k_stored = dw->k_end == dw->K && layout == HR_PANEL_PAIR ? hr_round_up(dw->K, 2)
                                                                           : dw->k_end;
    const int64_t n_stored = hr_round_up(dw->n_end, HR_PANEL_WIDTH);
    for (int64_t k = dw->k_first; k < k_stored; k++)
        for (int64_t n = dw->n_first; n < n_stored; n++) {
            float *element = dw->dw + hr_layout_index(layout, dw->K, dw->N, k, n);
            const bool padding = k >= dw->k_end || n >= dw->n_end;
            *element = padding ? 0 : sum_tokens(dtype, dw, k, n, dw->clear ? 0 : *element);
        }
}

static void db_any(hr_dtype dtype, const hr_linear_db *db)
{
    const hr_linear_dw sums = {
        .dy = db->dy, .rows = db->rows, .N = db->N, .T = db->T, .position = db->position
    };
    for (int64_t n = db->n_first; n < db->n_end; n++)
        db->db[n] = sum_tokens(dtype, &sums, 0, n, db->clear ? 0 : db->db[n]);
}

void hr_linear_mm_f32_ref(const hr_linear_mm *mm)
{
    mm_any(HR_F32, mm);
}

void hr_linear_mm_bf16_ref(const hr_linear_mm *mm)
{
    mm_any(HR_BF16, mm);
}

void hr_linear_dw_f32_ref(const hr_linear_dw *dw)
{
    dw_any(HR_F32, dw);
}

void hr_linear_dw_bf16_ref(const hr_linear_dw *dw)
{
    dw_any(HR_BF16, dw);
}

void hr_linear_db_f32_ref(const hr_linear_db *db)
{
    db_any(HR_F32, db);
}

void hr_linear_db_bf16_ref(const hr_linear_db *db)
{
    db_any(HR_BF16, db);
}
