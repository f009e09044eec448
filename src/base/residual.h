/* SPDX-License-Identifier: Apache-2.0 */
/* base/residual.h - the bits that a bf16 weight lacks of the number it was rounded from: 16 of an
 * fp32 number, or 8 of one that has 24 bits.
 *
 * With 16 bits the code of an element is the lower half of the fp32 bits. As a signed integer it is
 * their distance from the bits of the weight, since nearest rounding moves them by less than half a
 * unit of the upper half, or by exactly half: a tie. Ties round to an even weight from both sides,
 * so a weight can have 2^16 + 1 origins, one more than there are codes. Therefore each block of 256
 * elements has a tie code, which no other element of the block has: it stands for a tie that was
 * rounded up. 0: the block has none. (256 elements have at most 256 codes, so one of 257 is free.)
 *
 *     fp32 bits = (weight << 16) + distance, with distance = 2^15 for code 0x8000,
 *                 -2^15 for the tie code, otherwise the code as a signed integer
 *
 * This is exact for all numbers and infinities; a NaN stays a NaN.
 *
 * Codes are stored in runs of 4,096 elements: 16 tie codes, padding to 64 bytes, then the codes.
 *
 * While elements are stored one at a time, no tie code can be chosen. A tie then has the upper half
 * of its bits as the weight, not rounded; hr_residual_finish rounds it.
 *
 * With 8 bits the lower 8 bits of the fp32 number are zero, and the code is the 8 bits above them.
 * Codes are stored one after the other, without runs. Ties round away from zero, so
 *
 *     fp32 bits = (weight << 16) + (code << 8), minus 2^16 for code 0x80 and above
 */
#ifndef HR_BASE_RESIDUAL_H
#define HR_BASE_RESIDUAL_H

#include <stdbool.h>

#include "base/bf16.h"

enum {
    HR_RESIDUAL_RUN = 4096,
    HR_RESIDUAL_BLOCK = 256,
    HR_RESIDUAL_HEAD = 32, /* of a run */
    HR_RESIDUAL_TIE = 0x8000
};

typedef struct {
    uint16_t *codes; /* null: none */
    bool bytes;      /* 8 bits for each element */
} hr_residual;

/* Halves of a residual of `elements`. */
static inline int64_t hr_residual_halves(int64_t elements, bool bytes)
{
    if (bytes) return elements / 2 + elements % 2;
    const int64_t runs = elements / HR_RESIDUAL_RUN + (elements % HR_RESIDUAL_RUN != 0);
    return elements + runs * HR_RESIDUAL_HEAD;
}

/* Index of the code of an element. */
static inline int64_t hr_residual_index(int64_t element)
{
    return element + (element / HR_RESIDUAL_RUN + 1) * HR_RESIDUAL_HEAD;
}

/* Index of the tie code of its block. */
static inline int64_t hr_residual_tie_index(int64_t element)
{
    const int64_t run = element / HR_RESIDUAL_RUN;
    return run * (HR_RESIDUAL_RUN + HR_RESIDUAL_HEAD) +
           element % HR_RESIDUAL_RUN / HR_RESIDUAL_BLOCK;
}

static inline uint32_t hr_residual_join(hr_bf16 weight, uint16_t code, uint16_t tie)
{
    uint32_t distance = (uint32_t)(int32_t)(int16_t)code;
    if (code == HR_RESIDUAL_TIE) distance = 0x8000;
    else if (tie && code == tie) distance = (uint32_t)-0x8000;
    return ((uint32_t)weight << 16) + distance;
}

/* Whether these bits are a tie that is rounded up. */
static inline bool hr_residual_is_up(uint32_t bits)
{
    return (bits & 0x1ffff) == 0x18000;
}

/* A code that none of `count` <= 256 elements has, and that is neither 0 nor 0x8000. */
static inline uint16_t hr_residual_free_code(const uint16_t *codes, int64_t count)
{
    bool taken[HR_RESIDUAL_BLOCK + 2] = { true };
    uint16_t code = 0;
    for (int64_t i = 0; i < count; i++)
        if (codes[i] < sizeof taken) taken[codes[i]] = true;
    while (taken[code]) code++;
    return code;
}

static inline uint32_t hr_residual_join_byte(hr_bf16 weight, uint8_t code)
{
    return (((uint32_t)weight - (code >> 7)) << 16) + ((uint32_t)code << 8);
}

/* Rounds bits to 24 of them: up with the probability of the rest, if `random` is uniform in [0,
 * 256); to nearest for 128. Infinities and NaN become those of bf16. */
static inline void hr_residual_part_byte(uint32_t bits, uint32_t random, hr_bf16 *weight,
                                         uint8_t *code)
{
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    const uint32_t rounded = (bits + random) >> 8, quiet = bits & 0x7fffff ? 0x40 : 0;
    *weight = (hr_bf16)(finite ? (rounded + 0x80) >> 8 : bits >> 16 | quiet);
    *code = (uint8_t)(finite ? rounded : 0);
}

/* One element. */
static inline float hr_residual_value(const hr_bf16 *weight, hr_residual residual, int64_t element)
{
    const uint16_t *codes = residual.codes;
    const uint32_t bits = residual.bytes
                              ? hr_residual_join_byte(weight[element],
                                                      ((const uint8_t *)codes)[element])
                              : hr_residual_join(weight[element], codes[hr_residual_index(element)],
                                                 codes[hr_residual_tie_index(element)]);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Stores one element; hr_residual_finish completes it. */
static inline void hr_residual_put(hr_bf16 *weight, hr_residual residual, int64_t element,
                                   float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (residual.bytes) {
        hr_residual_part_byte(bits, 0x80, weight + element, (uint8_t *)residual.codes + element);
        return;
    }
    const bool tie = (bits & 0xffff) == HR_RESIDUAL_TIE && (bits & 0x7f800000) != 0x7f800000;
    weight[element] = tie ? (hr_bf16)(bits >> 16) : hr_bf16_from_f32(value);
    residual.codes[hr_residual_index(element)] = (uint16_t)bits;
}

/* Rounds the ties of all elements, and gives their blocks tie codes. */
static inline void hr_residual_finish(hr_bf16 *weight, hr_residual residual, int64_t elements)
{
    for (int64_t first = 0; first < elements && !residual.bytes; first += HR_RESIDUAL_BLOCK) {
        const int64_t left = elements - first;
        const int64_t count = left < HR_RESIDUAL_BLOCK ? left : HR_RESIDUAL_BLOCK;
        uint16_t *codes = residual.codes + hr_residual_index(first), tie = 0;
        for (int64_t i = 0; i < count; i++) {
            const hr_bf16 half = weight[first + i];
            if (codes[i] != HR_RESIDUAL_TIE || !(half & 1) || (half & 0x7f80) == 0x7f80) continue;
            if (!tie) tie = hr_residual_free_code(codes, count);
            weight[first + i]++;
            codes[i] = tie;
        }
        residual.codes[hr_residual_tie_index(first)] = tie;
    }
}

#endif
