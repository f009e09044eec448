/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/nfc.h - Unicode's normalization form C, of the characters of Unicode 9.
 *
 * The field's reference has the tables of that version and leaves later characters alone; a library
 * with newer tables would compose and order more than it does. */
#ifndef HR_TOKENIZER_NFC_H
#define HR_TOKENIZER_NFC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t order;    /* canonical combining class */
    uint8_t unstable; /* may change, or join what is before it */
    uint8_t count;    /* of points that it decomposes into, wholly; 0: into itself */
    uint16_t points;
} hr_layer_schema;

typedef struct {
    uint32_t first, second, composed;
} hr_nfc_pair;

enum { HR_NFC_PAIRS = 940 };

extern const uint8_t hr_nfc_page[8704];
extern const uint16_t hr_nfc_record[];
extern const hr_layer_schema hr_nfc_forms[];
extern const uint32_t hr_nfc_points[];
extern const hr_nfc_pair hr_nfc_pairs[HR_NFC_PAIRS]; /* in ascending order */

static inline const hr_layer_schema *hr_layer_schema_of(uint32_t point)
{
    return &hr_nfc_forms[hr_nfc_record[hr_nfc_page[point >> 7] << 7 | (point & 127)]];
}

/* Full compatibility decompositions, where they differ from the canonical ones. */
typedef struct {
    uint32_t point;
    uint16_t points, count;
} hr_compatible;

extern const int32_t hr_compatible_count;
extern const hr_compatible hr_compatibles[]; /* in ascending order */
extern const uint32_t hr_compatible_points[];

/* That of a character, null: it has none. */
const hr_compatible *hr_compatible_of(uint32_t point);

/* A character and what joins it, at most so many. */
enum { HR_NFC_RUN_MAX = 1 << 16 };

typedef struct {
    uint32_t points[HR_NFC_RUN_MAX], sorted[HR_NFC_RUN_MAX];
} hr_nfc_scratch;

/* Brings text [bytes], UTF-8, into form C.
 *
 *   whole    the text ends there; else a last character that what follows may join is left
 *   out      [room]
 *   taken    out; bytes of text that are done
 *   written  out; bytes of out
 *
 * Returns false, with what was done until then, where more than HR_NFC_RUN_MAX characters would
 * join one. Stops where `out` has no room for a run any more; 3 x bytes of room are enough. */
bool hr_nfc_compose(const uint8_t *text, int64_t bytes, bool whole, uint8_t *out, int64_t room,
                    hr_nfc_scratch *scratch, int64_t *taken, int64_t *written);

/* Whether text [bytes] is in form C for a quick look: true only where nothing could change. */
bool hr_nfc_stable(const uint8_t *text, int64_t bytes);

#endif
