/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/graphemes.h - boundaries of extended grapheme clusters: UAX #29, Unicode 17.
 *
 * Regional indicators have no class: a pair of them has eight bytes, and the caller only uses
 * clusters of up to five bytes. */
#ifndef HR_TOKENIZER_GRAPHEMES_H
#define HR_TOKENIZER_GRAPHEMES_H

#include <stdbool.h>
#include <stdint.h>

/* Grapheme_Cluster_Break in the low four bits of a class. The high bits are
 * Indic_Conjunct_Break. */
enum {
    HR_GRAPHEME_OTHER,
    HR_GRAPHEME_CR,
    HR_GRAPHEME_LF,
    HR_GRAPHEME_CONTROL,
    HR_GRAPHEME_EXTEND,
    HR_GRAPHEME_ZWJ,
    HR_GRAPHEME_PREPEND,
    HR_GRAPHEME_SPACING,
    HR_GRAPHEME_L,
    HR_GRAPHEME_V,
    HR_GRAPHEME_T,
    HR_GRAPHEME_LV,
    HR_GRAPHEME_LVT,
    HR_GRAPHEME_PICTOGRAPH,
    HR_GRAPHEME_CONSONANT = 16,
    HR_GRAPHEME_LINKER = 32,
    HR_GRAPHEME_LINK_EXTEND = 64
};

extern const uint8_t hr_grapheme_page[8704];
extern const uint8_t hr_grapheme_class[];

static inline uint8_t hr_grapheme_class_of(uint32_t point)
{
    return hr_grapheme_class[hr_grapheme_page[point >> 7] << 7 | (point & 127)];
}

/* State before a character; all zero at the start of a text. */
typedef struct {
    bool any;
    uint8_t before;   /* break class of the previous character */
    uint8_t pictures; /* 1: after Extended_Pictographic Extend*; 2: after that and a ZWJ */
    uint8_t linked;   /* 1: after a consonant and its extenders; 2: with a linker among them */
} hr_grapheme;

/* Whether a cluster ends before a character of this class. */
static inline bool hr_grapheme_breaks(const hr_grapheme *g, uint8_t class)
{
    const uint8_t a = g->before, b = class & 15;
    if (!g->any) return true;
    if (a == HR_GRAPHEME_CR && b == HR_GRAPHEME_LF) return false;
    if (a >= HR_GRAPHEME_CR && a <= HR_GRAPHEME_CONTROL) return true;
    if (b >= HR_GRAPHEME_CR && b <= HR_GRAPHEME_CONTROL) return true;
    if (a == HR_GRAPHEME_L &&
        (b == HR_GRAPHEME_L || b == HR_GRAPHEME_V || b == HR_GRAPHEME_LV || b == HR_GRAPHEME_LVT))
        return false;
    if ((a == HR_GRAPHEME_LV || a == HR_GRAPHEME_V) && (b == HR_GRAPHEME_V || b == HR_GRAPHEME_T))
        return false;
    if ((a == HR_GRAPHEME_LVT || a == HR_GRAPHEME_T) && b == HR_GRAPHEME_T) return false;
    if (b == HR_GRAPHEME_EXTEND || b == HR_GRAPHEME_ZWJ || b == HR_GRAPHEME_SPACING) return false;
    if (a == HR_GRAPHEME_PREPEND) return false;
    if (g->linked == 2 && class & HR_GRAPHEME_CONSONANT) return false;
    return !(g->pictures == 2 && b == HR_GRAPHEME_PICTOGRAPH);
}

/* Advances the state past a character of this class. */
static inline void hr_grapheme_next(hr_grapheme *g, uint8_t class)
{
    const uint8_t b = class & 15;
    g->any = true;
    g->before = b;
    if (b == HR_GRAPHEME_PICTOGRAPH) g->pictures = 1;
    else if (g->pictures == 1 && b == HR_GRAPHEME_ZWJ) g->pictures = 2;
    else if (g->pictures != 1 || b != HR_GRAPHEME_EXTEND) g->pictures = 0;
    if (class & HR_GRAPHEME_CONSONANT) g->linked = 1;
    else if (g->linked && class & HR_GRAPHEME_LINKER) g->linked = 2;
    else if (!(class & HR_GRAPHEME_LINK_EXTEND)) g->linked = 0;
}

#endif
