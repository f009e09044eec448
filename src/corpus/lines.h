/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/lines.h - parses one line of JSON Lines: an object, and the texts of a few of its fields.
 *
 * A strict RFC 8259 parser in one pass. The line may arrive in parts, so its length is unlimited.
 * Texts are decoded in place; other values are validated and skipped. */
#ifndef HR_CORPUS_LINES_H
#define HR_CORPUS_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HR_LINE_FIELDS = 3,
    HR_LINE_NAME_BYTES = 64, /* of a field name, including the null */
    HR_LINE_DEPTH_MAX = 64,
    /* the longest sequence that must not be split: two escapes of a surrogate pair, 12 bytes */
    HR_LINE_AHEAD = 16
};

/* The text of a field, or a part of it. */
typedef struct {
    uint8_t *text; /* decoded in place */
    int64_t bytes;
    int32_t field;
    bool begins, ends;
} hr_line_span;

/* Parser state between the parts of a line. */
typedef struct {
    const char *names[HR_LINE_FIELDS]; /* names of the fields; null: unused. Borrowed */
    const char *problem;               /* error message; null: none */
    int64_t at;                        /* bytes of the line read so far: the position of an error */
    char open[HR_LINE_DEPTH_MAX];      /* stack of open brackets */
    int32_t depth;
    uint8_t expects;              /* parser state: what may come next */
    uint8_t number;               /* state within a number */
    const char *word;             /* remaining letters of true, false or null */
    char key[HR_LINE_NAME_BYTES]; /* the current key */
    /* bytes of the key; a key that does not fit matches no field */
    int32_t key_bytes;
    int32_t field;  /* field whose text is being read; -1: another text */
    int32_t wanted; /* field whose value comes next; -1: none */
    uint32_t found; /* bit i: field i occurred */
    /* key of the first string value that is not one of the fields */
    char first_text[HR_LINE_NAME_BYTES];
    hr_line_span spans[HR_LINE_FIELDS + 1]; /* spans of the last part that was read */
    int32_t span_count;
} hr_line;

/* Begins a new line. */
void hr_line_begin(hr_line *line, const char *const names[HR_LINE_FIELDS]);

/* Reads a part of the line and decodes it in place. Returns the number of bytes read: all if
 * `last`; otherwise a few may remain at the end, and the caller puts them before the next part.
 * After a problem nothing is read. With `stops`, stops before the text of a field. The spans in
 * `line` are valid until the next call. */
int64_t hr_line_read(hr_line *line, uint8_t *part, int64_t bytes, bool last, bool stops);

/* After the last part: whether the line was complete. If not, `problem` is set. */
bool hr_line_is_whole(hr_line *line);

#endif
