/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_ref.c - reference implementation of the matrix products.
 *
 * One loop nest for both dtypes. Sums of a result element are double throughout, in order. Sums
 * over tokens are double inside a block of 64 and rounded when added to the accumulator. A strip of
 * columns is summed at once, because tests spend much of their time here. */
#include "ops/linear/linear_kernels.h"

#include "base/element.h"
#include "ops/activation/activation_scalar.h"

enum { BLOCK_TOKENS = 64, COLUMNS = HR_PANEL_WIDTH, ROWS = 16, DEPTH = 64, STRIP = 8 };

/* The activation reads the stored precision, so that recompute gives the same bits. */
static double as_stored(hr_dtype dtype, double z)
{
    float stored;
    hr_element_set(&stored, 0, dtype, (float)z);
    return hr_element_get(&stored, 0, dtype);
}

/* Sums of `columns` columns from `n` on, of `rows` rows. */
static void multiply(hr_dtype dtype, const hr_linear_mm *mm, int64_t row, int64_t rows, int64_t n,
                     int64_t columns, double z[ROWS][COLUMNS])
{
    const hr_layout layout = hr_linear_layout(dtype);
    float w[DEPTH][COLUMNS] = { 0 };
    for (int64_t first = 0; first < mm->K; first += DEPTH) {
        const int64_t depth = hr_min(DEPTH, mm->K - first);
        for (int64_t k = 0; k < depth; k++)
            for (int64_t c = 0; c < columns; c++)
                w[k][c] = hr_element_get(
                    mm->w,
                    mm->transposed ? hr_layout_index(layout, mm->N, mm->K, n + c, first + k)
                                   : hr_layout_index(layout, mm->K, mm->N, first + k, n + c),
                    hr_product_dtype(dtype));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < depth; k++) {
                const double a = hr_element_get(mm->a, (row + r) * mm->K + first + k, dtype);
                for (int64_t c = 0; c < COLUMNS; c++) z[r][c] += a * w[k][c];
            }
    }
}

static void finish(hr_dtype dtype, const hr_linear_mm *mm, int64_t index, int64_t n, double z)
{
    if (mm->after) {
        mm->after[index] = (float)z;
        return;
    }
    const double other = mm->residual ? hr_element_get(mm->residual, index, dtype) : 0;
    if (mm->transposed) {
        z += other;
        if (mm->aux) z *= hr_activation_slope(mm->act, hr_element_get(mm->aux, index, dtype));
        hr_element_set(mm->out, index, dtype, (float)z);
        return;
    }
    if (mm->bias) z += mm->bias[n];
    if (mm->pre) hr_element_set(mm->pre, index, dtype, (float)z);
    if (mm->act != HR_ACT_NONE) z = hr_activate(mm->act, as_stored(dtype, z));
    hr_element_set(mm->out, index, dtype, (float)(mm->residual ? z + other : z));
}

static void mm_any(hr_dtype dtype, const hr_linear_mm *mm)
{
    for (int64_t row = 0; row < mm->rows; row += ROWS)
        for (int64_t n = mm->n_first; n < mm->n_end; n += COLUMNS) {
            const int64_t rows = hr_min(ROWS, mm->rows - row);
            const int64_t columns = hr_min(COLUMNS, mm->n_end - n);
            double z[ROWS][COLUMNS] = { 0 };
            for (int64_t r = 0; mm->before && r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    z[r][c] = mm->before[(row + r) * mm->N + n + c];
            multiply(dtype, mm, row, rows, n, columns, z);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    finish(dtype, mm, (row + r) * mm->N + n + c, n + c, z[r][c]);
        }
}

/* carried[i][c] += the sum over tokens of x[., k + i] dy[., n + c], or of dy[., n + c] without
 * x. */
static void sum_tokens(hr_dtype dtype, const hr_linear_dw *dw, int64_t k, int64_t rows, int64_t n,
                       int64_t columns, float carried[][COLUMNS])
{
    int64_t position = dw->position;
    double block[STRIP][COLUMNS] = { 0 };
    float dy[COLUMNS] = { 0 };
    for (int64_t row = 0; row < dw->rows; row++) {
        for (int64_t c = 0; c < columns; c++)
            dy[c] = hr_element_get(dw->dy, row * dw->N + n + c, dtype);
        for (int64_t i = 0; i < rows; i++) {
            const double x = dw->x ? hr_element_get(dw->x, row * dw->K + k + i, dtype) : 1;
            for (int64_t c = 0; c < COLUMNS; c++) block[i][c] += x * dy[c];
        }
        position = position + 1 == dw->T ? 0 : position + 1;
        if (position % BLOCK_TOKENS && row + 1 < dw->rows) continue;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < COLUMNS; c++) {
                carried[i][c] = (float)(carried[i][c] + block[i][c]);
                block[i][c] = 0;
            }
    }
}

/* Also stores zeros past N, and in the row past an odd K. */
static void dw_any(hr_dtype dtype, const hr_linear_dw *dw)
{
    const hr_layout layout = hr_linear_layout(dtype);
    const int64_t k_stored = dw->k_end == dw->K && layout == HR_PANEL_PAIR ? hr_round_up(dw->K, 2)
                                                                           : dw->k_end;
    for (int64_t k = dw->k_first; k < k_stored; k += STRIP)
        for (int64_t n = dw->n_first; n < dw->n_end; n += COLUMNS) {
            const int64_t stored = hr_min(STRIP, k_stored - k),
                          rows = hr_min(stored, dw->k_end - k);
            const int64_t columns = hr_min(COLUMNS, dw->n_end - n);
            float sums[STRIP][COLUMNS] = { 0 };
            for (int64_t i = 0; !dw->clear && i < rows; i++)
                for (int64_t c = 0; c < columns; c++)
                    sums[i][c] = dw->dw[hr_layout_index(layout, dw->K, dw->N, k + i, n + c)];
            sum_tokens(dtype, dw, k, rows, n, columns, sums);
            for (int64_t i = 0; i < stored; i++)
                for (int64_t c = 0; c < COLUMNS; c++)
                    dw->dw[hr_layout_index(layout, dw->K, dw->N, k + i, n + c)] =
                        i < rows && c < columns ? sums[i][c] : 0;
        }
}

static void db_any(hr_dtype dtype, const hr_linear_db *db)
{
    const hr_linear_dw tokens = {
        .dy = db->dy, .rows = db->rows, .N = db->N, .T = db->T, .position = db->position
    };
    for (int64_t n = db->n_first; n < db->n_end; n += COLUMNS) {
        const int64_t columns = hr_min(COLUMNS, db->n_end - n);
        float sums[1][COLUMNS] = { 0 };
        for (int64_t c = 0; !db->clear && c < columns; c++) sums[0][c] = db->db[n + c];
        sum_tokens(dtype, &tokens, 0, 1, n, columns, sums);
        for (int64_t c = 0; c < columns; c++) db->db[n + c] = sums[0][c];
    }
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

void hr_linear_mm_f16_ref(const hr_linear_mm *mm)
{
    mm_any(HR_F16, mm);
}

void hr_linear_dw_f16_ref(const hr_linear_dw *dw)
{
    dw_any(HR_F16, dw);
}

void hr_linear_db_f16_ref(const hr_linear_db *db)
{
    db_any(HR_F16, db);
}
