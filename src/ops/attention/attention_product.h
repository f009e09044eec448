/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_product.h - the matrix product of attention in vector registers.
 *
 * Part of the vector kernel template. The including file defines ROWS, the rows of a strip, and
 * TILE_ROWS, the rows whose sums fit in registers. 8 rows of two vectors are 16 independent sums,
 * enough to hide the latency of a multiply-add; 16 multiply-adds need 2 loads and 8 broadcasts. */
#ifndef HR_OPS_ATTENTION_PRODUCT_H
#define HR_OPS_ATTENTION_PRODUCT_H

enum { FEW_ROWS = 4 };

/* Left operand of multiply(): word k of row i is at i * row + k * word. */
typedef struct {
    const uint32_t *at;
    int64_t row, word;
} left;

/* Left operand whose rows are adjacent and whose words are `step` apart, used in place. */
VEC_INLINE left left_of_columns(const uint32_t *a, int64_t step, int64_t words, uint32_t *room)
{
    (void)words;
    (void)room;
    return (left){ a, 1, step };
}

/* c (+)= a b for `rows` rows (1, FEW_ROWS, ROWS / 4, ROWS / 2 or ROWS), in tiles of about as many
 * each, and `panels` (1 or 2) panels. Word k of row i of a is a[i * a_row + k * a_word]; line k of
 * panel j of b is b[j * b_panel + k * lanes]. The bits of a sum do not depend on the other rows and
 * panels. */
VEC_INLINE void multiply(const int rows, const bool add, const int panels, const int64_t a_row,
                         const int64_t a_word, int64_t words, const uint32_t *a, const uint32_t *b,
                         int64_t b_panel, float *c, int64_t c_row)
{
    const int tiles = (rows + (int)TILE_ROWS - 1) / (int)TILE_ROWS;
    UNROLL for (int t = 0; t < tiles; t++)
    {
        const int first = rows * t / tiles, tile = rows * (t + 1) / tiles - first;
        const uint32_t *a_tile = a + first * a_row;
        float *c_tile = c + first * c_row;
        vec sum[TILE_ROWS][2];
        UNROLL for (int i = 0; i < tile; i++) UNROLL for (int j = 0; j < panels; j++)
            sum[i][j] = vec_set(0);
        if (add)
            UNROLL for (int i = 0; i < tile; i++) UNROLL for (int j = 0; j < panels; j++)
                sum[i][j] = load_floats(c_tile + i * c_row + j * VEC_LANES);
        for (int64_t k = 0; k < words; k++) {
            vec_bits line[2];
            UNROLL for (int j = 0; j < panels; j++)
                line[j] = (vec_bits)load_floats((const float *)b + j * b_panel + k * VEC_LANES);
            UNROLL for (int i = 0; i < tile; i++)
            {
                const uint32_t word = a_tile[i * a_row + k * a_word];
                UNROLL for (int j = 0; j < panels; j++)
                    sum[i][j] = multiply_add(sum[i][j], line[j], word);
            }
        }
        UNROLL for (int i = 0; i < tile; i++) UNROLL for (int j = 0; j < panels; j++)
            store_floats(c_tile + i * c_row + j * VEC_LANES, sum[i][j]);
    }
}

#endif
