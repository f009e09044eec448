/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/nfc.h - Unicode normalization form C for the characters of Unicode 9.
 *
 * The reference has the tables of that version and leaves later characters unchanged. A library
 * with newer tables would compose and reorder more. */
#ifndef HR_TOKENIZER_NFC_H
#define HR_TOKENIZER_NFC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t order;    /* canonical combining class */
    uint8_t unstable; /* may change, or may combine with a preceding character */
    uint8_t count;    /* code points of its full decomposition; 0: it has none */
    uint16_t points;
} hr_nfc_form;

typedef struct {
    uint32_t first, second, composed;
} hr_nfc_pair;

enum { HR_NFC_PAIRS = 940 };

extern const uint8_t hr_nfc_page[8704];
extern const uint16_t hr_nfc_record[];
extern const hr_nfc_form hr_nfc_forms[];
extern const uint32_t hr_nfc_points[];
extern const hr_nfc_pair hr_nfc_pairs[HR_NFC_PAIRS]; /* sorted */

static inline const hr_nfc_form *hr_nfc_form_of(uint32_t point)
{
    return &hr_nfc_forms[hr_nfc_record[hr_nfc_page[point >> 7] << 7 | (point & 127)]];
}

/* Full compatibility decompositions that differ from the canonical ones. */
typedef struct {
    uint32_t point;
    uint16_t points, count;
} hr_compatible;

extern const int32_t hr_compatible_count;
extern const hr_compatible hr_compatibles[]; /* sorted by code point */
extern const uint32_t hr_compatible_points[];

/* The compatibility decomposition of a character; null: none. */
const hr_compatible *hr_compatible_of(uint32_t point);

/* Maximum length in characters of a run: a starter and the characters that may combine with it. */
enum { HR_NFC_RUN_MAX = 1 << 16 };

typedef struct {
    uint32_t points[HR_NFC_RUN_MAX], sorted[HR_NFC_RUN_MAX];
} hr_nfc_scratch;

/* Converts text [bytes], UTF-8, to form C.
 *
 *   whole    the text ends there; otherwise the last run stays unconsumed, because it may continue
 *   out      [room]
 *   taken    out; bytes of text that are consumed
 *   written  out; bytes of out
 *
 * Returns false if a run has more than HR_NFC_RUN_MAX characters; taken and written then count the
 * text before it. Stops when `out` has no room for the next run; 3 * bytes of room are enough. */
bool hr_nfc_compose(const uint8_t *text, int64_t bytes, bool whole, uint8_t *out, int64_t room,
                    hr_nfc_scratch *scratch, int64_t *taken, int64_t *written);

/* Quick check whether text [bytes] is in form C. True only if nothing can change. */
bool hr_nfc_stable(const uint8_t *text, int64_t bytes);

#endif
