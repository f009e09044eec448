/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/repack.c - panels in blocks of rows of the file that fit the first-level cache: rows
 * at a power-of-two distance compete for the same few cache sets. */
#include "checkpoint/repack.h"

#include <string.h>

#include "base/assert.h"
#include "base/bf16.h"
#include "base/checked.h"
#include "base/e4m3.h"
#include "base/f16.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { PANEL = HR_PANEL_WIDTH, LINES = 64, ELEMENT_MOST = 4 };

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

/* Moves units of constant bytes between rows of a block and lines of a panel. */
ALWAYS_INLINE void turn(uint8_t *block, int64_t row_bytes, uint8_t *panel, int64_t lines,
                        int64_t columns, bool take, const int64_t unit)
{
    for (int64_t k = 0; k < lines; k++)
        for (int64_t c = 0; c < columns; c++) {
            uint8_t *inside = block + c * row_bytes + k * unit;
            uint8_t *outside = panel + (k * PANEL + c) * unit;
            memcpy(take ? outside : inside, take ? inside : outside, (size_t)unit);
        }
}

/* Rows of the block are columns. The two elements of a pair are adjacent in it, too. */
static void turn_block(const hr_repack *r, const part *p, uint8_t *block, uint8_t *panel, bool take)
{
    const bool pairs = r->layout == HR_PANEL_PAIR;
    const int64_t unit = r->element_bytes << pairs, row_bytes = LINES * r->element_bytes;
    const int64_t lines = pairs ? (p->lines + 1) / 2 : p->lines;
    if (unit == 1) turn(block, row_bytes, panel, lines, p->columns, take, 1);
    else if (unit == 2) turn(block, row_bytes, panel, lines, p->columns, take, 2);
    else if (unit == 4) turn(block, row_bytes, panel, lines, p->columns, take, 4);
    else turn(block, row_bytes, panel, lines, p->columns, take, 8);
}

/* Rows of the block are lines. */
ALWAYS_INLINE void copy_lines(const hr_repack *r, const part *p, uint8_t *block, uint8_t *panel,
                              bool take, const int64_t size)
{
    const int64_t pairs = r->layout == HR_PANEL_PAIR;
    for (int64_t k = 0; k < p->lines; k++) {
        uint8_t *line = panel + (pairs ? k / 2 * 2 * PANEL + k % 2 : k * PANEL) * size;
        for (int64_t c = 0; c < p->columns; c++) {
            uint8_t *inside = block + (k * PANEL + c) * size, *outside = line + (c << pairs) * size;
            memcpy(take ? outside : inside, take ? inside : outside, (size_t)size);
        }
    }
}

/* Moves a part between memory and the file's rows, which are `stride` bytes apart. */
static void move_part(const hr_repack *r, const part *p, uint8_t *rows, uint8_t *weight, bool take)
{
    uint8_t block[LINES * PANEL * ELEMENT_MOST];
    memset(block, r->pad, sizeof block);
    const int64_t size = r->element_bytes, stride = width_of(r) * size;
    const int64_t row_bytes = (r->transposed ? LINES : PANEL) * size;
    for (int64_t i = 0; i < p->rows && take; i++)
        memcpy(block + i * row_bytes, rows + i * stride, (size_t)(p->width * size));
    uint8_t *panel = weight + hr_layout_index(r->layout, r->K, r->N, p->k, p->n) * size;
    if (r->transposed) turn_block(r, p, block, panel, take);
    else if (size == 1) copy_lines(r, p, block, panel, take, 1);
    else if (size == 2) copy_lines(r, p, block, panel, take, 2);
    else copy_lines(r, p, block, panel, take, 4);
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

/* Without panels. Rows of the file are rows of memory, or columns. */
static void move_rows(const hr_repack *r, int64_t first, int64_t count, uint8_t *rows,
                      uint8_t *weight, bool take)
{
    const int64_t size = r->element_bytes, width = width_of(r);
    const int64_t unit = r->transposed ? size : width * size;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < (r->transposed ? width : 1); c++) {
            uint8_t *inside = rows + (i * width + c) * size;
            uint8_t *outside = weight +
                               (r->transposed ? c * r->N + first + i : (first + i) * r->N) * size;
            memcpy(take ? outside : inside, take ? inside : outside, (size_t)unit);
        }
}

static void move(const hr_repack *r, int64_t first, int64_t count, uint8_t *rows, uint8_t *weight,
                 bool take)
{
    HR_ASSERT(r->element_bytes <= ELEMENT_MOST);
    if (r->layout == HR_ROWS) move_rows(r, first, count, rows, weight, take);
    else if (r->transposed) move_columns(r, first, count, rows, weight, take);
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

/* The largest code without the sign: magnitudes are in the order of their codes. Lanes let the
 * compiler use vectors. */
static float largest_e4m3(const uint8_t *codes, int64_t count)
{
    enum { LANES = 32 };
    uint8_t most[LANES] = { 0 }, all = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int32_t l = 0; l < LANES; l++) {
            const uint8_t code = codes[i + l] & 0x7f;
            most[l] = code > most[l] ? code : most[l];
        }
    for (int32_t l = 0; l < LANES; l++) all = most[l] > all ? most[l] : all;
    for (; i < count; i++) all = (codes[i] & 0x7f) > all ? codes[i] & 0x7f : all;
    return hr_e4m3_to_f32(all);
}

static float largest_f16(const uint8_t *halves, int64_t count)
{
    enum { LANES = 16 };
    uint16_t most[LANES] = { 0 }, some[LANES], all = 0;
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t lanes = hr_min(LANES, count - i);
        if (lanes < LANES) memset(some, 0, sizeof some);
        memcpy(some, halves + 2 * i, lanes < LANES ? (size_t)lanes * 2 : sizeof some);
        for (int32_t l = 0; l < LANES; l++) {
            const uint16_t half = some[l] & 0x7fff;
            most[l] = half > most[l] ? half : most[l];
        }
    }
    for (int32_t l = 0; l < LANES; l++) all = most[l] > all ? most[l] : all;
    return hr_f16_to_f32(all);
}

static float largest_bf16(const uint8_t *halves, int64_t count)
{
    uint16_t all = 0, half;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&half, halves + 2 * i, sizeof half);
        half &= 0x7fff;
        all = half > all ? half : all;
    }
    return hr_bf16_to_f32(all);
}

static float largest(hr_dtype dtype, const uint8_t *elements, int64_t count)
{
    if (dtype == HR_U8) return 0; /* codes are finite */
    if (dtype == HR_BF16) return largest_bf16(elements, count);
    return dtype == HR_F16 ? largest_f16(elements, count) : largest_e4m3(elements, count);
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
