/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pretokenizer.h - the pre-tokenizer: splits text into pieces, inside which tokens are
 * found.
 *
 * hr_pretokenizer_desc describes a pre-tokenizer as tokenizer.json does. hr_pretokenizer is the
 * compiled form. hr_pretokenizer_cursor iterates over the pieces of a text, window by window.
 * Window boundaries never change a piece. */
#ifndef HR_TOKENIZER_PRETOKENIZER_H
#define HR_TOKENIZER_PRETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"

/* What happens to the matches of a pattern and to the text between them. */
typedef enum {
    HR_PRETOKENIZER_ISOLATED,   /* each match is a piece, and so is the text between two matches */
    HR_PRETOKENIZER_REMOVED,    /* matches are removed */
    HR_PRETOKENIZER_CONTIGUOUS, /* adjacent matches form one piece */
    HR_PRETOKENIZER_MERGED_WITH_PREVIOUS, /* a match is appended to the text before it */
    HR_PRETOKENIZER_MERGED_WITH_NEXT
} hr_pretokenizer_behavior;

typedef enum {
    HR_PRETOKENIZER_SPLIT,  /* match a regular expression */
    HR_PRETOKENIZER_STRING, /* match a fixed string */
    HR_PRETOKENIZER_DIGITS, /* match each numeric character; ISOLATED or CONTIGUOUS */
    HR_PRETOKENIZER_SPACES  /* match each white space character */
} hr_pretokenizer_kind;

/* One stage. It splits the pieces of the previous stage. */
typedef struct {
    hr_pretokenizer_kind kind;
    hr_pretokenizer_behavior behavior;
    bool invert;         /* match the text between the matches instead */
    const char *pattern; /* [pattern_bytes]; read only by hr_pretokenizer_place */
    int64_t pattern_bytes;
} hr_pretokenizer_stage;

enum { HR_PRETOKENIZER_STAGES_MAX = 16, HR_PRETOKENIZER_WINDOW_MAX = 1 << 30 };

typedef struct {
    hr_pretokenizer_stage stages[HR_PRETOKENIZER_STAGES_MAX];
    int32_t stage_count; /* 0: a text is one piece */
} hr_pretokenizer_desc;

/* The pattern of the pre-tokenizer ByteLevel with use_regex, and other patterns with a name. */
extern const char hr_pattern_gpt2[], hr_pattern_cl100k[], hr_pattern_qwen[], hr_pattern_o200k[];
/* SuperBPE, stages 1 and 2: the patterns of the paper (after HR_PRETOKENIZER_DIGITS, contiguous),
 * and those that its authors recommend since. */
extern const char hr_pattern_super_paper_one[], hr_pattern_super_paper_two[];
extern const char hr_pattern_super_one[], hr_pattern_super_two[];

typedef struct hr_pretokenizer hr_pretokenizer;

/* Bytes that a pre-tokenizer needs. Pure. */
int64_t hr_pretokenizer_bytes(const hr_pretokenizer_desc *desc);

/* Builds a pre-tokenizer in a region with room for hr_pretokenizer_bytes(desc).
 *
 *   pretokenizer  out; lives in the region, nothing to free; any number of threads may use it
 *   cpu           from hr_cpu_detect
 *
 * Errors   CORRUPT  a refused pattern: names it and the reason
 *          NO_FIT   the region is too small. */
HR_MUST_CHECK hr_status hr_pretokenizer_place(hr_pretokenizer **pretokenizer, hr_region *region,
                                              const hr_pretokenizer_desc *desc, uint32_t cpu,
                                              hr_error *err);

/* How stage `index` finds its matches: "scanner gpt2", "pcre2" and so on; null past the last. */
const char *hr_pretokenizer_how(const hr_pretokenizer *pretokenizer, int32_t index);

/* Whether a piece begins at `text` in every context, judged from text[-1] to text[1]. Always false
 * if the first stage has no scanner. */
bool hr_pretokenizer_splits_at(const hr_pretokenizer *pretokenizer, const uint8_t *text);

typedef struct {
    uint32_t begin, end; /* offsets in the window */
} hr_piece;

typedef struct hr_pretokenizer_cursor hr_pretokenizer_cursor;

/* Bytes that a cursor needs. Pure. */
int64_t hr_pretokenizer_cursor_bytes(const hr_pretokenizer *pretokenizer);

/* Builds a cursor in a region with room for hr_pretokenizer_cursor_bytes(pretokenizer). Errors
 * NO_FIT. */
HR_MUST_CHECK hr_status hr_pretokenizer_cursor_place(hr_pretokenizer_cursor **cut,
                                                     hr_region *region,
                                                     const hr_pretokenizer *pretokenizer,
                                                     hr_error *err);

/* Begins a text: earlier text has no influence on its pieces. */
void hr_pretokenizer_cursor_begin(hr_pretokenizer_cursor *cut);

/* Sets the next window of the text.
 *
 *   text   [bytes] UTF-8, bytes <= HR_PRETOKENIZER_WINDOW_MAX; invalid bytes are characters without
 *          a class. Borrowed until the next window.
 *   at     offset in the window to continue at: the position that hr_pretokenizer_cursor_done
 *          returned for the last window. The hr_pretokenizer_cursor_before bytes before it must
 *          still be present, or all bytes of the text if it has fewer.
 *   whole  the text ends with this window */
void hr_pretokenizer_cursor_window(hr_pretokenizer_cursor *cut, const uint8_t *text, int64_t at,
                                   int64_t bytes, bool whole);

/* Returns the next pieces in the order of the text. No piece is empty.
 *
 *   pieces  out [most], most >= 1
 *   count   out; 0: the text is done, or the end of every further piece depends on text after the
 *           window. Then set a longer window that begins at hr_pretokenizer_cursor_done.
 *
 * Errors   CORRUPT  a pattern exceeded its limits: names it and the length of the text.
 * Threads  one thread per cursor. */
HR_MUST_CHECK hr_status hr_pretokenizer_cursor_next(hr_pretokenizer_cursor *cut, hr_piece *pieces,
                                                    int64_t most, int64_t *count, hr_error *err);

/* The offset up to which the window is done after hr_pretokenizer_cursor_next returned count 0, and
 * the number of bytes before it that the next window must keep. */
int64_t hr_pretokenizer_cursor_done(const hr_pretokenizer_cursor *cut);
int64_t hr_pretokenizer_cursor_before(const hr_pretokenizer_cursor *cut);

#endif
