/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/lines.h - one line of JSON Lines: an object, and in it the texts of a few fields.
 *
 * RFC 8259 and no more, in one pass over bytes that may come in parts, so a line has any length.
 * Texts are decoded where they lie; the rest is checked and passed over. */
#ifndef HR_CORPUS_LINES_H
#define HR_CORPUS_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HR_LINE_FIELDS = 3,
    HR_LINE_NAME_BYTES = 64, /* of a field, the null included */
    HR_LINE_DEPTH_MAX = 64,
    HR_LINE_AHEAD = 16 /* what the longest letter needs that may not be cut: two escapes, 12 */
};

/* The text of a field, or a part of it. */
typedef struct {
    uint8_t *text; /* decoded, where it lay */
    int64_t bytes;
    int32_t field;
    bool begins, ends;
} hr_line_span;

/* What the machine knows from part to part. */
typedef struct {
    const char *names[HR_LINE_FIELDS]; /* of the fields; null: none. Borrowed */
    const char *problem;               /* what is wrong, null: nothing */
    int64_t at;                        /* bytes of the line that were read: where it is wrong */
    char open[HR_LINE_DEPTH_MAX];      /* brackets */
    int32_t depth;
    uint8_t expects;                        /* what may come next */
    uint8_t number;                         /* where in a number it is */
    const char *word;                       /* what is left of true, false or null */
    char key[HR_LINE_NAME_BYTES];           /* the one at hand */
    int32_t key_bytes;                      /* of it that were kept; more than fit: no field */
    int32_t field;                          /* whose text it is in; -1: another's */
    int32_t wanted;                         /* whose value comes next, -1: of none */
    uint32_t found;                         /* bit i: field i was there */
    char first_text[HR_LINE_NAME_BYTES];    /* key of the first text that was none of them */
    hr_line_span spans[HR_LINE_FIELDS + 1]; /* of the last part that was read */
    int32_t span_count;
} hr_line;

/* A new line. */
void hr_line_begin(hr_line *line, const char *const names[HR_LINE_FIELDS]);

/* Reads a part of the line, which is written to. Returns how many bytes were read: all, where
 * `last` says that the line ends with them; else a few may be left at its end, to come again before
 * what follows. After a problem nothing is read. With `stops`, it stops in front of a field's text.
 * Spans of the part are those of `line`, until the next call. */
int64_t hr_line_read(hr_line *line, uint8_t *part, int64_t bytes, bool last, bool stops);

/* After the last part: whether the line was whole. Else `problem` says why not. */
bool hr_line_is_whole(hr_line *line);

#endif
