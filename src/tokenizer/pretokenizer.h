/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pretokenizer.h - the pieces of a text inside which tokens are found: the pre-tokenizer.
 *
 * A description as tokenizer.json has it becomes a cutter; a cut walks text with it, window by
 * window. Where the windows end never changes a piece. */
#ifndef HR_TOKENIZER_PRETOKENIZER_H
#define HR_TOKENIZER_PRETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"

/* What becomes of the matches of a pattern, and of what lies between them. */
typedef enum {
    HR_PRETOKENIZER_ISOLATED,   /* each match is a piece, and so is what lies between two */
    HR_PRETOKENIZER_REMOVED,    /* matches are left out */
    HR_PRETOKENIZER_CONTIGUOUS, /* matches without anything between them are one piece */
    HR_PRETOKENIZER_MERGED_WITH_PREVIOUS, /* a match belongs to the end of what lies before it */
    HR_PRETOKENIZER_MERGED_WITH_NEXT
} hr_pretokenizer_behaviour;

typedef enum {
    HR_PRETOKENIZER_SPLIT,  /* by a regular expression */
    HR_PRETOKENIZER_STRING, /* by a text */
    HR_PRETOKENIZER_DIGITS, /* every numeric character is a match; ISOLATED or CONTIGUOUS */
    HR_PRETOKENIZER_SPACES  /* every character of white space is one */
} hr_pretokenizer_kind;

/* One stage; it cuts the pieces of the one before. */
typedef struct {
    hr_pretokenizer_kind kind;
    hr_pretokenizer_behaviour behaviour;
    bool invert;         /* what lies between matches is the match */
    const char *pattern; /* [pattern_bytes]; read while the cutter is made, and no more */
    int64_t pattern_bytes;
} hr_pretokenizer_stage;

enum { HR_PRETOKENIZER_STAGES_MAX = 16, HR_PRETOKENIZER_WINDOW_MAX = 1 << 30 };

typedef struct {
    hr_pretokenizer_stage stages[HR_PRETOKENIZER_STAGES_MAX];
    int32_t stage_count; /* 0: a text is one piece */
} hr_pretokenizer_desc;

/* The pattern of the pre-tokenizer ByteLevel with use_regex, and what else has a name here. */
extern const char hr_pattern_gpt2[], hr_pattern_cl100k[], hr_pattern_qwen[], hr_pattern_o200k[];
/* SuperBPE's: of the paper (behind HR_PRETOKENIZER_DIGITS, contiguous), and that which its authors
 * recommend since; stages one and two. */
extern const char hr_pattern_super_paper_one[], hr_pattern_super_paper_two[];
extern const char hr_pattern_super_one[], hr_pattern_super_two[];

typedef struct hr_pretokenizer hr_pretokenizer;

/* Bytes that a cutter needs. Pure. */
int64_t hr_pretokenizer_bytes(const hr_pretokenizer_desc *desc);

/* Makes a cutter in a region that has room for hr_pretokenizer_bytes(desc).
 *
 *   cutter  out; lives where the region lies, nothing to free; any number of threads
 *   cpu     from hr_cpu_detect
 *
 * Errors   CORRUPT  a pattern that is refused: says which, and why
 *          NO_FIT   the region is too small. */
HR_MUST_CHECK hr_status hr_pretokenizer_place(hr_pretokenizer **pretokenizer, hr_region *region,
                                              const hr_pretokenizer_desc *desc, uint32_t cpu,
                                              hr_error *err);

/* How stage `index` finds its matches: "scanner gpt2", "pcre2" ...; null past the last. */
const char *hr_pretokenizer_how(const hr_pretokenizer *pretokenizer, int32_t index);

/* Whether a piece begins at `text` whatever else is there: text[-1] to text[1] tell. Never where
 * the first stage has no scanner. */
bool hr_pretokenizer_parts(const hr_pretokenizer *pretokenizer, const uint8_t *text);

typedef struct {
    uint32_t begin, end; /* in the window */
} hr_piece;

typedef struct hr_pretokenizer_cursor hr_pretokenizer_cursor;

/* Bytes that a walk needs. Pure. */
int64_t hr_pretokenizer_cursor_bytes(const hr_pretokenizer *pretokenizer);

/* Makes a walk in a region that has room for hr_pretokenizer_cursor_bytes(cutter); it is before any
 * text. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_pretokenizer_cursor_place(hr_pretokenizer_cursor **cut,
                                                     hr_region *region,
                                                     const hr_pretokenizer *pretokenizer,
                                                     hr_error *err);

/* Begins a text: what comes is cut as if nothing had been before. */
void hr_pretokenizer_cursor_begin(hr_pretokenizer_cursor *cut);

/* The next window of the text.
 *
 *   text   [bytes] UTF-8, bytes <= HR_PRETOKENIZER_WINDOW_MAX; other bytes are characters of no
 * class. Borrowed until the next window. at     where the text goes on: what
 * hr_pretokenizer_cursor_done said of the last window lies here, and the
 *          hr_pretokenizer_cursor_before bytes in front of it, where there are so many, are still
 * there whole  the text ends with this window */
void hr_pretokenizer_cursor_window(hr_pretokenizer_cursor *cut, const uint8_t *text, int64_t at,
                                   int64_t bytes, bool whole);

/* The next pieces, in the order of the text; none is empty.
 *
 *   pieces  out [most], most >= 1
 *   count   out; 0: the text is done, or the window has no piece more that is certain to end where
 *           it does: then give a window that begins at hr_pretokenizer_cursor_done and has more
 *
 * Errors   CORRUPT  a pattern gave up on a stretch of text: says which.
 * Threads  one thread per walk. */
HR_MUST_CHECK hr_status hr_pretokenizer_cursor_next(hr_pretokenizer_cursor *cut, hr_piece *pieces,
                                                    int64_t most, int64_t *count, hr_error *err);

/* Up to where the window is done with, once hr_pretokenizer_cursor_next has said 0; and how many
 * bytes in front of that have to stay. */
int64_t hr_pretokenizer_cursor_done(const hr_pretokenizer_cursor *cut);
int64_t hr_pretokenizer_cursor_before(const hr_pretokenizer_cursor *cut);

#endif
