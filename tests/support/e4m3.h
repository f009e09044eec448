/* SPDX-License-Identifier: Apache-2.0 */
/* support/e4m3.h - F8_E4M3 in plain arithmetic: 4 bits of exponent, 3 of fraction, no Inf, and
 * matrices with a scale for each block of 128 x 128. */
#ifndef HR_TESTS_E4M3_H
#define HR_TESTS_E4M3_H

#include <math.h>
#include <stdint.h>

enum { E4M3_BLOCK = 128, E4M3_NAN = 127 };

static inline float e4m3_value(uint8_t byte)
{
    const int32_t exponent = byte >> 3 & 15, fraction = byte & 7;
    const double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    if ((byte & 127) == E4M3_NAN) return NAN;
    return (float)(byte >> 7 ? -size : size);
}

/* The nearest value, found by trying all; ties to even. */
static inline uint8_t e4m3_nearest(double value)
{
    uint8_t best = 0;
    for (int32_t i = 0; i < E4M3_NAN; i++) {
        const double gap = fabs(e4m3_value((uint8_t)i) - fabs(value));
        const double least = fabs(e4m3_value(best) - fabs(value));
        if (gap < least || (gap == least && i % 2 == 0)) best = (uint8_t)i;
    }
    return (uint8_t)(best | (signbit(value) ? 128 : 0));
}

/* The scale of the block with element (row, column) of a matrix [rows, width]: the largest
 * magnitude of the block becomes 448, the largest number of E4M3. */
static inline float e4m3_scale(const float *matrix, int64_t rows, int64_t width, int64_t row,
                               int64_t column)
{
    float most = 0;
    const int64_t first = row / E4M3_BLOCK * E4M3_BLOCK, left = column / E4M3_BLOCK * E4M3_BLOCK;
    for (int64_t r = first; r < rows && r < first + E4M3_BLOCK; r++)
        for (int64_t c = left; c < width && c < left + E4M3_BLOCK; c++)
            most = fmaxf(most, fabsf(matrix[r * width + c]));
    return most / 448;
}

#endif
