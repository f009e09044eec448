/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/repack.c - panels in blocks of rows of the file that fit the first-level cache: rows
 * at a power-of-two distance compete for the same few cache sets. */
#include "checkpoint/repack.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/e4m3.h"
#include "base/f16.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { PANEL = HR_PANEL_WIDTH, LINES = 64, ELEMENT_MOST = 2 };

/* Lines [k, k + lines) of columns [n, n + columns) of a panel. Of these, the file has the first
 * `rows` rows with `width` elements; the others are padding. */
typedef struct {
    int64_t k, lines, n, columns;
    int64_t rows, width;
} part;

static int64_t width_of(const hr_repack *r)
{
    return r->transposed ? r->K : r->N;
}

/* Moves the elements of a part between memory and a block of rows of LINES or PANEL elements. */
ALWAYS_INLINE void move_elements(const hr_repack *r, const part *p, uint8_t *block, uint8_t *weight,
                                 bool take, const int64_t size)
{
    const int64_t across = r->transposed ? LINES : 1, down = r->transposed ? 1 : PANEL;
    const int64_t pairs = r->layout == HR_PANEL_PAIR;
    uint8_t *panel = weight + hr_layout_index(r->layout, r->K, r->N, p->k, p->n) * size;
    for (int64_t k = 0; k < p->lines; k++) {
        uint8_t *line = panel + (pairs ? k / 2 * 2 * PANEL + k % 2 : k * PANEL) * size;
        for (int64_t c = 0; c < p->columns; c++) {
            uint8_t *inside = block + (c * across + k * down) * size;
            uint8_t *outside = line + (c << pairs) * size;
            memcpy(take ? outside : inside, take ? inside : outside, (size_t)size);
        }
    }
}

/* Moves a part between memory and the file's rows, which are `stride` bytes apart. */
static void move_part(const hr_repack *r, const part *p, uint8_t *rows, uint8_t *weight, bool take)
{
    uint8_t block[LINES * PANEL * ELEMENT_MOST] = { 0 };
    const int64_t size = r->element_bytes, stride = width_of(r) * size;
    const int64_t row_bytes = (r->transposed ? LINES : PANEL) * size;
    for (int64_t i = 0; i < p->rows && take; i++)
        memcpy(block + i * row_bytes, rows + i * stride, (size_t)(p->width * size));
    if (size == 1) move_elements(r, p, block, weight, take, 1);
    else move_elements(r, p, block, weight, take, 2);
    for (int64_t i = 0; i < p->rows && !take; i++)
        memcpy(rows + i * stride, block + i * row_bytes, (size_t)(p->width * size));
}

/* Rows of the file are columns of panels. */
static void move_columns(const hr_repack *r, int64_t first, int64_t count, uint8_t *rows,
                         uint8_t *weight, bool take)
{
    const int64_t end = first + count;
    const int64_t end_n = take && end == r->N ? hr_round_up(end, PANEL) : end;
    const int64_t end_k = take && r->layout == HR_PANEL_PAIR ? hr_round_up(r->K, 2) : r->K;
    for (int64_t n = first, next; n < end_n; n = next) {
        next = hr_min(end_n, (n / PANEL + 1) * PANEL);
        for (int64_t k = 0; k < end_k; k += LINES) {
            const part p = { .k = k,
                             .lines = hr_min(LINES, end_k - k),
                             .n = n,
                             .columns = next - n,
                             .rows = hr_min(next, end) - n,
                             .width = hr_min(LINES, r->K - k) };
            move_part(r, &p, rows + ((n - first) * r->K + k) * r->element_bytes, weight, take);
        }
    }
}

/* Rows of the file are lines of panels. A part begins at an even line, so that pairs are whole. */
static void move_lines(const hr_repack *r, int64_t first, int64_t count, uint8_t *rows,
                       uint8_t *weight, bool take)
{
    const int64_t end = first + count;
    const bool pads = take && end == r->K && r->layout == HR_PANEL_PAIR;
    const int64_t end_k = pads ? hr_round_up(end, 2) : end;
    for (int64_t k = first, next; k < end_k; k = next) {
        next = hr_min(end_k, k % 2 ? k + 1 : k + LINES);
        for (int64_t n = 0; n < r->N; n += PANEL) {
            const part p = { .k = k,
                             .lines = next - k,
                             .n = n,
                             .columns = take ? PANEL : hr_min(PANEL, r->N - n),
                             .rows = hr_min(next, end) - k,
                             .width = hr_min(PANEL, r->N - n) };
            move_part(r, &p, rows + ((k - first) * r->N + n) * r->element_bytes, weight, take);
        }
    }
}

static void move(const hr_repack *r, int64_t first, int64_t count, uint8_t *rows, uint8_t *weight,
                 bool take)
{
    HR_ASSERT(r->layout != HR_ROWS && r->element_bytes <= ELEMENT_MOST);
    if (r->transposed) move_columns(r, first, count, rows, weight, take);
    else move_lines(r, first, count, rows, weight, take);
}

void hr_repack_take(const hr_repack *repack, int64_t first, int64_t count, const void *rows,
                    void *weight)
{
    move(repack, first, count, (uint8_t *)rows, weight, true);
}

void hr_repack_give(const hr_repack *repack, int64_t first, int64_t count, const void *weight,
                    void *rows)
{
    move(repack, first, count, rows, (uint8_t *)weight, false);
}

/* The largest code without the sign: magnitudes are in the order of their codes. */
static float largest(hr_dtype dtype, const uint8_t *elements, int64_t count)
{
    uint16_t most = 0;
    for (int64_t i = 0; i < count && dtype == HR_F8_E4M3; i++)
        most = (uint16_t)hr_max(most, elements[i] & 0x7f);
    for (int64_t i = 0; i < count && dtype == HR_F16; i++) {
        uint16_t half;
        memcpy(&half, elements + 2 * i, sizeof half);
        most = (uint16_t)hr_max(most, half & 0x7fff);
    }
    return dtype == HR_F16 ? hr_f16_to_f32(most) : hr_e4m3_to_f32((uint8_t)most);
}

bool hr_repack_is_finite(const hr_weight_format *format, const void *rows, int64_t count,
                         int64_t width, const float *scales, uint32_t most)
{
    const int64_t size = hr_dtype_bytes(format->dtype), block = scales ? format->block[1] : width;
    for (int64_t row = 0; row < count; row++)
        for (int64_t i = 0; i < width; i += block) {
            const uint8_t *elements = (const uint8_t *)rows + (row * width + i) * size;
            const float value = largest(format->dtype, elements, hr_min(block, width - i));
            const float product = scales ? value * scales[i / block] : value;
            uint32_t bits;
            memcpy(&bits, &product, sizeof bits);
            if ((bits & 0x7fffffff) > most) return false;
        }
    return true;
}
