/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/unpack.c - a panel is sixteen rows of a transposed matrix turned over: sixteen rows of the
 * file are one stretch of the file and one stretch of memory. They are turned in blocks of a few
 * dozen columns, which stay in the nearest cache. */
#include "ckpt/unpack.h"

#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"

enum { BLOCK = 64, PANEL = HR_PANEL_WIDTH };

/* Four words of 32 bits: what every x86-64 moves at once. */
typedef uint32_t words __attribute__((vector_size(16), aligned(4), may_alias));

enum { LANES = 4 };

static inline words load(const uint32_t *from)
{
    words value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void store(uint32_t *to, words value)
{
    memcpy(to, &value, sizeof value);
}

/* ---- what is finite */

static bool finite_f32(const uint32_t *bits, int64_t count)
{
    const words most = { 0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000 };
    words bad = { 0 };
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) bad |= (words)((load(bits + i) & most) == most);
    bool finite = !(bad[0] | bad[1] | bad[2] | bad[3]);
    for (; i < count; i++) finite &= (bits[i] & 0x7f800000) != 0x7f800000;
    return finite;
}

/* Two halves a word, of which `exponent` are the bits that are all set in what is not finite. */
static bool finite_halves(const uint16_t *bits, int64_t count, uint16_t exponent)
{
    typedef uint16_t halves __attribute__((vector_size(16)));
    const halves most = { exponent, exponent, exponent, exponent,
                          exponent, exponent, exponent, exponent };
    halves bad = { 0 }, value;
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        memcpy(&value, bits + i, sizeof value);
        bad |= (halves)((value & most) == most);
    }
    bool finite = true;
    for (int32_t k = 0; k < 2 * LANES; k++) finite &= !bad[k];
    for (; i < count; i++) finite &= (bits[i] & exponent) != exponent;
    return finite;
}

static bool all_finite(hr_stored_kind kind, const void *source, int64_t count)
{
    if (kind == HR_STORED_F32) return finite_f32(source, count);
    return finite_halves(source, count, kind == HR_STORED_F16 ? 0x7c00 : 0x7f80);
}

/* ---- types */

static int64_t bytes_of(hr_stored_kind kind)
{
    return kind == HR_STORED_F32 ? 4 : 2;
}

/* In whole numbers, because threads may flush subnormal floats, and a half's are ordinary ones. */
static inline uint32_t f32_of_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    const float small = (float)rest * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &small, sizeof bits);
    if (rest >= 0x400) bits = (rest << 13) + (112u << 23);
    if (rest >= 0x7c00) bits = rest << 13 | 0x7f800000;
    return sign | bits;
}

static void widen(hr_stored_kind kind, const uint16_t *from, uint32_t *to, int64_t count)
{
    typedef uint16_t halves __attribute__((vector_size(16)));
    const halves none = { 0 };
    int64_t i = 0;
    for (; kind == HR_STORED_BF16 && i + 2 * LANES <= count; i += 2 * LANES) {
        halves value;
        memcpy(&value, from + i, sizeof value);
        store(to + i, (words)__builtin_shufflevector(none, value, 0, 8, 0, 9, 0, 10, 0, 11));
        store(to + i + LANES,
              (words)__builtin_shufflevector(none, value, 0, 12, 0, 13, 0, 14, 0, 15));
    }
    for (; i < count; i++)
        to[i] = kind == HR_STORED_BF16 ? (uint32_t)from[i] << 16 : f32_of_f16(from[i]);
}

static void narrow(const uint32_t *from, uint16_t *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, &from[i], sizeof value);
        to[i] = hr_bf16_from_f32(value);
    }
}

/* ---- rows as they come */

static void take_flat(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t at = first * u->N, elements = count * u->N;
    uint32_t wide[BLOCK];
    for (int64_t i = 0; i < elements; i += BLOCK) {
        const int64_t some = hr_min(BLOCK, elements - i);
        const uint32_t *values = wide;
        if (u->kind == HR_STORED_F32) values = (const uint32_t *)source + i;
        else if (u->master && !u->weight) {
            widen(u->kind, (const uint16_t *)source + i, (uint32_t *)u->master + at + i, some);
            continue;
        } else widen(u->kind, (const uint16_t *)source + i, wide, some);
        if (u->master && (const void *)(u->master + at + i) != values)
            memcpy(u->master + at + i, values, (size_t)some * sizeof *values);
        if (!u->weight) continue;
        if (u->kind == HR_STORED_BF16)
            memcpy(u->weight + at + i, (const uint16_t *)source + i, (size_t)some * 2);
        else narrow(values, u->weight + at + i, some);
    }
}

/* One element into one place; those past the ends of the matrix are zeros. */
static void put(const hr_unpack *u, int64_t k, int64_t n, const void *source, int64_t index)
{
    const int64_t to = hr_layout_index(u->layout, u->K, u->N, k, n);
    uint32_t wide = 0;
    uint16_t narrowed = 0;
    if (source && u->kind == HR_STORED_F32) wide = ((const uint32_t *)source)[index];
    else if (source) widen(u->kind, (const uint16_t *)source + index, &wide, 1);
    if (source && u->kind == HR_STORED_BF16) narrowed = ((const uint16_t *)source)[index];
    else narrow(&wide, &narrowed, 1);
    if (u->master) memcpy(u->master + to, &wide, sizeof wide);
    if (u->weight) u->weight[to] = narrowed;
}

/* Whatever the order: an element after the other. Each row brings the zeros at its own end; the
 * last row those of the rows behind it. */
static void take_singly(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t rows = hr_unpack_rows(u), width = hr_unpack_width(u);
    const bool panels = u->layout != HR_ROWS;
    const int64_t stored_k = u->layout == HR_PANEL_PAIR ? hr_round_up(u->K, 2) : u->K;
    const int64_t stored_n = panels ? hr_round_up(u->N, PANEL) : u->N;
    const int64_t stored_width = u->transposed ? stored_k : stored_n;
    const int64_t stored_rows = u->transposed ? stored_n : stored_k;
    const int64_t end = first + count == rows ? stored_rows : first + count;
    for (int64_t row = first; row < end; row++)
        for (int64_t i = 0; i < stored_width; i++) {
            const bool is_there = row < rows && i < width;
            put(u, u->transposed ? i : row, u->transposed ? row : i, is_there ? source : NULL,
                is_there ? (row - first) * width + i : 0);
        }
}

/* ---- sixteen rows of a transposed matrix: a panel */

/* Words [PANEL][stride] of which `count` columns are turned: to [count][PANEL]. Four rows at a
 * time: rows that are a power of two apart all want the same few places of the nearest cache. */
static void turn_words(const uint32_t *from, int64_t stride, int64_t count, uint32_t *to)
{
    const int64_t whole = count / LANES * LANES;
    for (int32_t n = 0; n < PANEL; n += LANES)
        for (int64_t j = 0; j < whole; j += LANES) {
            const uint32_t *at = from + n * stride + j;
            const words a = load(at), b = load(at + stride);
            const words c = load(at + 2 * stride), d = load(at + 3 * stride);
            const words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const words cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            uint32_t *out = to + j * PANEL + n;
            store(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
            store(out + PANEL, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
            store(out + 2 * PANEL, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
            store(out + 3 * PANEL, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
        }
    for (int64_t j = whole; j < count; j++)
        for (int32_t n = 0; n < PANEL; n++) to[j * PANEL + n] = from[n * stride + j];
}

/* The same for pairs of words. */
static void turn_pairs(const uint32_t *from, int64_t stride, int64_t count, uint32_t *to)
{
    for (int64_t j = 0; j < count; j++)
        for (int32_t n = 0; n < PANEL; n++)
            memcpy(to + 2 * (j * PANEL + n), from + n * stride + 2 * j, 2 * sizeof *to);
}

/* A panel whose columns are all there and whose rows come in twos where they are interleaved.
 *
 *   source  [PANEL][K] */
static void take_panel(const hr_unpack *u, int64_t panel, const void *source)
{
    const bool pairs = u->layout == HR_PANEL_PAIR;
    const int64_t K = u->K, at = panel * K * PANEL;
    uint32_t wide[PANEL * BLOCK];
    uint16_t narrowed[PANEL * BLOCK];
    for (int64_t k = 0; k < K; k += BLOCK) {
        const int64_t some = hr_min(BLOCK, K - k);
        const uint32_t *values = (const uint32_t *)source + k;
        int64_t stride = K;
        if (u->kind != HR_STORED_F32 && (u->master || u->kind != HR_STORED_BF16)) {
            values = wide;
            stride = BLOCK;
            for (int32_t n = 0; n < PANEL; n++)
                widen(u->kind, (const uint16_t *)source + n * K + k, wide + n * BLOCK, some);
        }
        if (u->master && pairs)
            turn_pairs(values, stride, some / 2, (uint32_t *)u->master + at + k * PANEL);
        else if (u->master)
            turn_words(values, stride, some, (uint32_t *)u->master + at + k * PANEL);
        if (!u->weight) continue;
        const uint16_t *halves = (const uint16_t *)source + k;
        int64_t halves_stride = K;
        if (u->kind != HR_STORED_BF16) {
            halves = narrowed;
            halves_stride = BLOCK;
            for (int32_t n = 0; n < PANEL; n++)
                narrow(values + n * stride, narrowed + n * BLOCK, some);
        }
        turn_words((const uint32_t *)halves, halves_stride / 2, some / 2,
                   (uint32_t *)(u->weight + at + k * PANEL));
    }
}

/* Rows [K, N] whose panels are filled line by line. Lines of a panel are far from those of the
 * next: a row goes out in lines of PANEL. */
static void take_lines(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t N = u->N;
    uint32_t wide[PANEL];
    uint16_t narrowed[PANEL];
    for (int64_t n = 0; n < N; n += PANEL)
        for (int64_t row = 0; row < count; row++) {
            const int64_t to = (n / PANEL * u->K + first + row) * PANEL, from = row * N + n;
            const uint32_t *values = wide;
            if (u->kind == HR_STORED_F32) values = (const uint32_t *)source + from;
            else widen(u->kind, (const uint16_t *)source + from, wide, PANEL);
            if (u->master) memcpy(u->master + to, values, sizeof wide);
            if (!u->weight) continue;
            narrow(values, narrowed, PANEL);
            memcpy(u->weight + to, narrowed, sizeof narrowed);
        }
}

/* The same for two rows at a time, interleaved. */
static void take_pairs_of_lines(const hr_unpack *u, int64_t first, int64_t count,
                                const void *source)
{
    const int64_t N = u->N;
    uint32_t wide[2][PANEL], turned[2 * PANEL];
    uint16_t narrowed[2 * PANEL];
    for (int64_t n = 0; n < N; n += PANEL)
        for (int64_t row = 0; row < count; row += 2) {
            const int64_t to = (n / PANEL * u->K + first + row) * PANEL;
            for (int32_t k = 0; k < 2; k++) {
                const int64_t from = (row + k) * N + n;
                if (u->kind != HR_STORED_F32)
                    widen(u->kind, (const uint16_t *)source + from, wide[k], PANEL);
                else memcpy(wide[k], (const uint32_t *)source + from, sizeof wide[k]);
            }
            for (int32_t i = 0; i < 2 * PANEL; i++) turned[i] = wide[i % 2][i / 2];
            if (u->master) memcpy(u->master + to, turned, sizeof turned);
            if (!u->weight) continue;
            narrow(turned, narrowed, 2 * PANEL);
            memcpy(u->weight + to, narrowed, sizeof narrowed);
        }
}

/* ---- choice */

bool hr_unpack_is_flat(const hr_unpack *u)
{
    return u->kind == HR_STORED_F32 && u->master && u->layout == HR_ROWS && !u->transposed;
}

bool hr_unpack_take(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    const int64_t width = hr_unpack_width(u);
    const bool pairs = u->layout == HR_PANEL_PAIR;
    const bool finite = all_finite(u->kind, source, count * width);
    if (u->layout == HR_ROWS && !u->transposed) take_flat(u, first, count, source);
    else if (!u->transposed && u->layout == HR_PANEL && u->N % PANEL == 0)
        take_lines(u, first, count, source);
    else if (!u->transposed && pairs && u->N % PANEL == 0 && !(u->K % 2 || first % 2 || count % 2))
        take_pairs_of_lines(u, first, count, source);
    else if (!u->transposed || u->layout == HR_ROWS || first % PANEL || (pairs && u->K % 2) ||
             (!pairs && u->weight))
        take_singly(u, first, count, source);
    else {
        int64_t done = 0;
        for (; done + PANEL <= count; done += PANEL)
            take_panel(u, (first + done) / PANEL,
                       (const char *)source + done * width * bytes_of(u->kind));
        if (done < count)
            take_singly(u, first + done, count - done,
                        (const char *)source + done * width * bytes_of(u->kind));
    }
    return finite;
}
