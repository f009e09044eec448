/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/unpack_avx2.c - converts panels in blocks of 16 x 16 elements.
 *
 * Line k of a panel is row k of the matrix in the panel's 16 columns. Lines are copied from a file
 * that stores the matrix, and transposed in 16 x 16 blocks from a file that stores its transpose.
 * The fp32 lines stay in the first-level cache and are converted to each layout and dtype; only
 * unconverted pairs of bf16 are moved as 32-bit words.
 *
 * Weights are not read again soon, so non-temporal stores of whole cache lines avoid fetching the
 * destination: a third of the memory traffic. */
#include "checkpoint/unpack_kernels.h"

#include <immintrin.h>
#include <string.h>

#include "base/checked.h"
#include "checkpoint/block_scales.h"

enum { PANEL = HR_PANEL_WIDTH, LANES = 8, LINES = 16 };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
    _Alignas(64) uint32_t at[LINES][PANEL];
} lines;

/* Maxima of the absolute bit patterns, for 32-bit and for 16-bit elements. */
typedef struct {
    __m256i words, halves;
} maxima;

/* ---- elements */

ALWAYS_INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256(from);
}

ALWAYS_INLINE void track_words(maxima *seen, __m256i words)
{
    const __m256i size = _mm256_and_si256(words, _mm256_set1_epi32(0x7fffffff));
    seen->words = _mm256_max_epu32(seen->words, size);
}

ALWAYS_INLINE void track_halves(maxima *seen, __m256i halves)
{
    const __m256i size = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
    seen->halves = _mm256_max_epu16(seen->halves, size);
}

static bool all_finite(const hr_unpack *u, const maxima *seen)
{
    const __m256i most = _mm256_set1_epi32((int32_t)hr_unpack_most(u));
    const __m256i words = _mm256_cmpgt_epi32(seen->words, most);
    const __m256i halves = _mm256_cmpgt_epi16(seen->halves, _mm256_set1_epi16(0x7f7f));
    return _mm256_testz_si256(_mm256_or_si256(words, halves), _mm256_set1_epi32(-1));
}

/* The bits of an E4M3 value are those of an f16 value that is 2^8 times smaller, except of NaN. */
ALWAYS_INLINE __m256i widen_e4m3(const void *from, float scale)
{
    const __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64(from));
    const __m128i rest = _mm_and_si128(bytes, _mm_set1_epi16(0x7f));
    const __m128i sign = _mm_slli_epi16(_mm_xor_si128(bytes, rest), 8);
    const __m128i nan = _mm_cmpeq_epi16(rest, _mm_set1_epi16(0x7f));
    const __m128i halves = _mm_or_si128(_mm_or_si128(sign, _mm_slli_epi16(rest, 7)), nan);
    const __m256 values = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256));
    return _mm256_castps_si256(_mm256_mul_ps(values, _mm256_set1_ps(scale)));
}

/* Converts eight elements to fp32; `scale` is the factor of E4M3. Subnormal f16 values are exact,
 * even if the thread flushes subnormals. */
ALWAYS_INLINE __m256i widen(hr_stored_kind kind, const void *from, float scale)
{
    if (kind == HR_STORED_F32) return load(from);
    if (kind == HR_STORED_E4M3) return widen_e4m3(from, scale);
    const __m128i halves = _mm_loadu_si128(from);
    if (kind == HR_STORED_F16) return _mm256_castps_si256(_mm256_cvtph_ps(halves));
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
}

/* Rounds to bf16, nearest with ties to even; the result is in the upper 16 bits. */
ALWAYS_INLINE __m256i round_up_half(__m256i words)
{
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(words, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(words, _mm256_set1_epi32(0x7fff)), odd);
}

/* Interleaves the upper halves; `even` comes first. */
ALWAYS_INLINE __m256i pair(__m256i even, __m256i odd)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

/* The upper halves of 16 words, in order. */
ALWAYS_INLINE __m256i narrow(__m256i first, __m256i second)
{
    const __m256i mixed = _mm256_packus_epi32(_mm256_srli_epi32(first, 16),
                                              _mm256_srli_epi32(second, 16));
    return _mm256_permute4x64_epi64(mixed, 0xd8);
}

ALWAYS_INLINE void put(void *to, __m256i value, bool streaming)
{
    if (streaming) _mm256_stream_si256(to, value);
    else _mm256_storeu_si256(to, value);
}

/* ---- from the file to lines */

/* Transposes an 8 x 8 matrix of words in registers. */
ALWAYS_INLINE void transpose(__m256i r[LANES])
{
    __m256i t[LANES];
    for (int32_t i = 0; i < LANES; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int32_t i = 0; i < LANES; i += 4) {
        r[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int32_t i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(r[i], r[4 + i], 0x20);
        t[4 + i] = _mm256_permute2x128_si256(r[i], r[4 + i], 0x31);
    }
    for (int32_t i = 0; i < LANES; i++) r[i] = t[i];
}

/* Reads 16 rows of 16 elements, `stride` bytes apart, into lines, optionally transposed. Reads
 * eight rows completely before the next eight: rows at a power-of-two distance compete for the same
 * few cache sets.
 *
 *   scale  factor of E4M3 elements
 *   raw    the elements are words that are pairs of bf16 */
ALWAYS_INLINE void fill(lines *l, hr_stored_kind kind, const char *from, int64_t stride,
                        float scale, bool transposed, bool raw, maxima *seen)
{
    const int64_t half = LANES * (raw ? 4 : hr_stored_kind_bytes(kind));
    for (int32_t n = 0; n < LINES; n += LANES)
        for (int32_t j = 0; j < 2; j++) {
            __m256i row[LANES];
            for (int32_t i = 0; i < LANES; i++) {
                row[i] = widen(raw ? HR_STORED_F32 : kind, from + (n + i) * stride + j * half,
                               scale);
                if (raw) track_halves(seen, row[i]);
                else track_words(seen, row[i]);
            }
            if (transposed) transpose(row);
            uint32_t *to = transposed ? &l->at[LANES * j][n] : &l->at[n][LANES * j];
            for (int32_t i = 0; i < LANES; i++)
                _mm256_store_si256((__m256i *)(to + i * PANEL), row[i]);
        }
}

/* Copies a partial block at the edge of a matrix into `edge` [LINES][row_bytes], padded with zeros.
 */
static void fill_edge(char *edge, int64_t row_bytes, const char *from, int64_t stride, int64_t rows,
                      int64_t bytes)
{
    memset(edge, 0, (size_t)(LINES * row_bytes));
    for (int64_t n = 0; n < rows; n++)
        memcpy(edge + n * row_bytes, from + n * stride, (size_t)bytes);
}

/* ---- from lines to memory */

ALWAYS_INLINE void put_words(const lines *l, int64_t count, uint32_t *to, bool streaming)
{
    const uint32_t *from = l->at[0];
    for (int64_t i = 0; i < count * PANEL; i += LANES) put(to + i, load(from + i), streaming);
}

/* Interleaves lines 2k and 2k + 1: the two elements of a column are adjacent. */
ALWAYS_INLINE void put_interleaved(const lines *l, int64_t count, uint32_t *to, bool streaming)
{
    for (int64_t k = 0; k < count; k += 2)
        for (int32_t n = 0; n < PANEL; n += LANES) {
            const __m256i even = load(&l->at[k][n]), odd = load(&l->at[k + 1][n]);
            const __m256i low = _mm256_unpacklo_epi32(even, odd);
            const __m256i high = _mm256_unpackhi_epi32(even, odd);
            put(to + k * PANEL + 2 * n, _mm256_permute2x128_si256(low, high, 0x20), streaming);
            put(to + k * PANEL + 2 * n + LANES, _mm256_permute2x128_si256(low, high, 0x31),
                streaming);
        }
}

ALWAYS_INLINE void put_pairs(const lines *l, int64_t count, uint16_t *to, bool streaming)
{
    for (int64_t k = 0; k < count; k += 2)
        for (int32_t n = 0; n < PANEL; n += LANES)
            put(to + k * PANEL + 2 * n,
                pair(round_up_half(load(&l->at[k][n])), round_up_half(load(&l->at[k + 1][n]))),
                streaming);
}

ALWAYS_INLINE void put_halves(const lines *l, int64_t count, uint16_t *to, bool streaming)
{
    for (int64_t k = 0; k < count; k++)
        put(to + k * PANEL,
            narrow(round_up_half(load(&l->at[k][0])), round_up_half(load(&l->at[k][LANES]))),
            streaming);
}

/* Writes lines [k, k + count) of a panel. `count` may be odd only at the end of a matrix. */
ALWAYS_INLINE void put_lines(const hr_unpack *u, const lines *l, int64_t panel, int64_t k,
                             int64_t count, bool streaming)
{
    const bool pairs = u->layout == HR_PANEL_PAIR;
    const int64_t at = (panel * (pairs ? hr_round_up(u->K, 2) : u->K) + k) * PANEL;
    if (u->master && pairs) put_interleaved(l, count, (uint32_t *)u->master + at, streaming);
    else if (u->master) put_words(l, count, (uint32_t *)u->master + at, streaming);
    if (u->weight && pairs) put_pairs(l, count, u->weight + at, streaming);
    else if (u->weight) put_halves(l, count, u->weight + at, streaming);
}

/* ---- matrices */

static bool is_aligned(const hr_unpack *u)
{
    return !(((uintptr_t)u->master | (uintptr_t)u->weight) % sizeof(__m256i));
}

/* Converts rows [first, first + count) in blocks of 16 columns; each block gives lines of one
 * panel. */
ALWAYS_INLINE bool take_panels(const hr_unpack *u, hr_stored_kind kind, bool transposed, bool raw,
                               int64_t first, int64_t count, const char *source)
{
    const int64_t size = hr_stored_kind_bytes(kind), width = hr_unpack_width(u);
    const int64_t stride = width * size, across = raw ? 2 * PANEL : PANEL, bytes = across * size;
    const bool streaming = is_aligned(u);
    char edge[LINES * PANEL * 4];
    maxima seen = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    lines l;
    for (int64_t outer = 0; outer < (transposed ? count : width);
         outer += transposed ? LINES : across)
        for (int64_t inner = 0; inner < (transposed ? width : count);
             inner += transposed ? across : LINES) {
            const int64_t row = transposed ? outer : inner, column = transposed ? inner : outer;
            const int64_t rows = hr_min(LINES, count - row);
            const int64_t columns = hr_min(across, width - column);
            const char *from = source + row * stride + column * size;
            const bool whole = rows == LINES && columns == across;
            if (!whole) fill_edge(edge, bytes, from, stride, rows, columns * size);
            const float scale = kind == HR_STORED_E4M3 ? u->scales[column / HR_SCALE_BLOCK] : 1;
            fill(&l, kind, whole ? from : edge, whole ? stride : bytes, scale, transposed, raw,
                 &seen);
            if (raw)
                put_words(&l, (columns + 1) / 2,
                          (uint32_t *)u->weight +
                              ((first + row) / PANEL * ((u->K + 1) / 2) + column / 2) * PANEL,
                          streaming);
            else if (transposed)
                put_lines(u, &l, (first + row) / PANEL, column, columns, streaming);
            else put_lines(u, &l, column / PANEL, first + row, rows, streaming);
        }
    return all_finite(u, &seen);
}

/* Converts `count` elements in the order of the file to elements `at` and following. */
ALWAYS_INLINE void take_run(const hr_unpack *u, hr_stored_kind kind, int64_t at, int64_t count,
                            const char *source, float scale, maxima *seen)
{
    const int64_t size = hr_stored_kind_bytes(kind);
    const bool streaming = is_aligned(u) && at % PANEL == 0;
    float *master = u->master ? u->master + at : NULL;
    uint16_t *weight = u->weight ? u->weight + at : NULL;
    for (int64_t i = 0; i < count; i += PANEL) {
        const int64_t some = hr_min(PANEL, count - i);
        const char *from = source + i * size;
        char edge[PANEL * 4] = { 0 };
        if (some < PANEL) from = memcpy(edge, from, (size_t)(some * size));
        const __m256i low = widen(kind, from, scale);
        const __m256i high = widen(kind, from + LANES * size, scale);
        track_words(seen, low);
        track_words(seen, high);
        const __m256i halves = narrow(round_up_half(low), round_up_half(high));
        if (some == PANEL) {
            if (master && from != (const char *)(master + i)) {
                put(master + i, low, streaming);
                put(master + i + LANES, high, streaming);
            }
            if (weight) put(weight + i, halves, streaming);
            continue;
        }
        uint32_t words[PANEL];
        uint16_t ends[PANEL];
        put(words, low, false);
        put(words + LANES, high, false);
        put(ends, halves, false);
        if (master) memcpy(master + i, words, (size_t)some * sizeof *words);
        if (weight) memcpy(weight + i, ends, (size_t)some * sizeof *ends);
    }
}

/* Converts elements whose order in memory equals that of the file. */
ALWAYS_INLINE bool take_flat(const hr_unpack *u, hr_stored_kind kind, int64_t first, int64_t count,
                             const char *source)
{
    maxima seen = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    if (kind != HR_STORED_E4M3) {
        take_run(u, kind, first * u->N, count * u->N, source, 1, &seen);
        return all_finite(u, &seen);
    }
    for (int64_t k = 0; k < count; k++)
        for (int64_t n = 0; n < u->N; n += HR_SCALE_BLOCK)
            take_run(u, kind, (first + k) * u->N + n, hr_min(HR_SCALE_BLOCK, u->N - n),
                     source + k * u->N + n, u->scales[n / HR_SCALE_BLOCK], &seen);
    return all_finite(u, &seen);
}

ALWAYS_INLINE bool take_kind(const hr_unpack *u, hr_stored_kind kind, int64_t first, int64_t count,
                             const char *source)
{
    if (u->layout == HR_ROWS) return take_flat(u, kind, first, count, source);
    if (!u->transposed) return take_panels(u, kind, false, false, first, count, source);
    if (kind == HR_STORED_BF16 && u->layout == HR_PANEL_PAIR && !u->master && u->K % 2 == 0)
        return take_panels(u, kind, true, true, first, count, source);
    return take_panels(u, kind, true, false, first, count, source);
}

bool hr_unpack_can_avx2(const hr_unpack *u, int64_t first, int64_t count)
{
    if (u->layout == HR_ROWS) return !u->transposed;
    if (u->transposed) return first % PANEL == 0;
    return u->layout == HR_PANEL || (first % 2 == 0 && (count % 2 == 0 || first + count == u->K));
}

bool hr_unpack_take_avx2(const hr_unpack *u, int64_t first, int64_t count, const void *source)
{
    bool finite;
    if (u->kind == HR_STORED_F32) finite = take_kind(u, HR_STORED_F32, first, count, source);
    else if (u->kind == HR_STORED_F16) finite = take_kind(u, HR_STORED_F16, first, count, source);
    else if (u->kind == HR_STORED_BF16) finite = take_kind(u, HR_STORED_BF16, first, count, source);
    else finite = take_kind(u, HR_STORED_E4M3, first, count, source);
    _mm_sfence(); /* orders the non-temporal stores before any signal to other threads */
    return finite;
}
