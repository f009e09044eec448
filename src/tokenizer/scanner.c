/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/scanner.c - matches one character at a time and tries the alternatives of a pattern in
 * their order.
 *
 * Each `*_piece` returns the end of the match that begins at `p` and, in `far`, how far it read. In
 * a window that is not the end of the text, results are valid up to MARGIN bytes before its end: no
 * piece reads more than an apostrophe and two letters, or one character of four bytes, after
 * `far`. */
#include "tokenizer/scanner.h"

#include "tokenizer/unicode.h"

enum { MARGIN = 8, WORD = HR_LETTER | HR_NUMBER, NOT_OTHER = HR_LETTER | HR_NUMBER | HR_SPACE };

typedef struct {
    const uint8_t *text;
    int64_t end;
} stretch;

/* The class of the character at p < end; *next: the position after it. */
static inline uint32_t class_at(stretch s, int64_t p, int64_t *next)
{
    if (s.text[p] < 0x80) {
        *next = p + 1;
        return hr_unicode_class[s.text[p]]; /* the first page has index 0 */
    }
    uint32_t point;
    *next = p + hr_utf8_take(s.text + p, s.end - p, &point);
    return hr_unicode_class_of(point);
}

static inline int64_t run_of(stretch s, int64_t p, uint32_t bits)
{
    int64_t next;
    while (p < s.end && class_at(s, p, &next) & bits) p = next;
    return p;
}

static inline int64_t run_without(stretch s, int64_t p, uint32_t bits)
{
    int64_t next;
    while (p < s.end && !(class_at(s, p, &next) & bits)) p = next;
    return p;
}

static inline bool is_newline(stretch s, int64_t p)
{
    return p < s.end && (s.text[p] == '\n' || s.text[p] == '\r');
}

/* The length of 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; 0: none. `any_case` also matches upper
 * case and the long s, which case-folds to s. */
static inline int64_t contraction(stretch s, int64_t p, bool any_case)
{
    if (p + 1 >= s.end) return 0;
    const uint8_t fold = any_case ? 0x20 : 0;
    const uint8_t first = s.text[p + 1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (p + 2 >= s.end) return 0;
    if (any_case && s.text[p + 1] == 0xc5 && s.text[p + 2] == 0xbf) return 3;
    const uint8_t second = s.text[p + 2] | fold;
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    return first == 'l' && second == 'l' ? 3 : 0;
}

/* \s+(?!\S)|\s+ at white space; with `newlines`, \s*[\r\n]+ is tried first. */
static inline int64_t blank_piece(stretch s, int64_t p, bool newlines, int64_t *far)
{
    int64_t at = p, next, last = p, after_newline = p;
    while (at < s.end && class_at(s, at, &next) & HR_SPACE) {
        if (is_newline(s, at)) after_newline = next;
        last = at;
        at = next;
    }
    *far = at;
    if (newlines && after_newline > p) return after_newline;
    return at < s.end && last > p ? last : at;
}

/* ---- 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline int64_t gpt2_piece(stretch s, int64_t p, int64_t *far)
{
    int64_t from = p, next;
    if (s.text[p] == '\'') {
        const int64_t bytes = contraction(s, p, false);
        if (bytes) return *far = p + bytes;
    } else if (s.text[p] == ' ' && p + 1 < s.end) {
        from = p + 1;
    }
    const uint32_t class = class_at(s, from, &next);
    if (class & HR_LETTER) return *far = run_of(s, next, HR_LETTER);
    if (class & HR_NUMBER) return *far = run_of(s, next, HR_NUMBER);
    if (class & HR_SPACE) return blank_piece(s, p, false, far);
    return *far = run_without(s, next, NOT_OTHER);
}

static inline int64_t numbers(stretch s, int64_t p, int32_t most)
{
    int64_t next;
    for (int32_t i = 0; i < most && p < s.end && class_at(s, p, &next) & HR_NUMBER; i++) p = next;
    return p;
}

/*  ?[^\s\p{L}\p{N}]+[\r\n]* or, with `slash`, [\r\n/]*, where p is a space or one of them. */
static inline int64_t other_piece(stretch s, int64_t p, bool slash)
{
    p = run_without(s, p, NOT_OTHER);
    while (is_newline(s, p) || (slash && p < s.end && s.text[p] == '/')) p++;
    return p;
}

/* The alternatives that follow the words in o200k, cl100k and Qwen's pattern. */
static inline int64_t rest_piece(stretch s, int64_t p, int32_t digits, bool slash, int64_t *far)
{
    int64_t next, ignored;
    const uint32_t class = class_at(s, p, &next);
    if (class & HR_NUMBER) return *far = numbers(s, next, digits - 1);
    if (!(class & HR_SPACE)) return *far = other_piece(s, next, slash);
    if (s.text[p] == ' ' && next < s.end && !(class_at(s, next, &ignored) & NOT_OTHER))
        return *far = other_piece(s, next, slash);
    return blank_piece(s, p, true, far);
}

/* ---- (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
 *       ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static inline int64_t cl100k_piece(stretch s, int64_t p, int32_t digits, int64_t *far)
{
    int64_t next, after;
    if (s.text[p] == '\'') {
        const int64_t bytes = contraction(s, p, true);
        if (bytes) return *far = p + bytes;
    }
    const uint32_t class = class_at(s, p, &next);
    if (class & HR_LETTER) return *far = run_of(s, next, HR_LETTER);
    if (!(class & WORD) && !is_newline(s, p) && next < s.end &&
        class_at(s, next, &after) & HR_LETTER)
        return *far = run_of(s, after, HR_LETTER);
    return rest_piece(s, p, digits, false, far);
}

/* ---- U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L = [\p{Ll}\p{Lm}\p{Lo}\p{M}], C = the contractions:
 * [^\r\n\p{L}\p{N}]?U*L+C?|[^\r\n\p{L}\p{N}]?U+L*C?|... */

/* The end of U*L+ at p; -1: no match. U* is greedy and gives back only as much as L+ needs: it
 * backtracks to the last character that is in both sets. */
static inline int64_t lower_word(stretch s, int64_t p, int64_t *upper_end)
{
    int64_t at = p, next, both = -1;
    uint32_t class = 0;
    while (at < s.end && (class = class_at(s, at, &next)) & HR_UPPER) {
        if (class & HR_LOWER) both = next;
        at = next;
    }
    *upper_end = at;
    return at < s.end && class & HR_LOWER ? run_of(s, next, HR_LOWER) : both;
}

static inline int64_t o200k_piece(stretch s, int64_t p, bool contractions, int64_t *far)
{
    int64_t next, upper[2] = { 0, 0 }, end = -1;
    const uint32_t class = class_at(s, p, &next);
    const bool leads = !(class & WORD) && !is_newline(s, p);
    if (leads) end = lower_word(s, next, &upper[0]);
    if (end < 0 && class & (HR_UPPER | HR_LOWER)) end = lower_word(s, p, &upper[1]);
    if (end < 0 && leads && upper[0] > next) end = upper[0];
    if (end < 0 && upper[1] > p) end = upper[1];
    if (end < 0) {
        end = rest_piece(s, p, 3, true, far);
        if (upper[0] > *far) *far = upper[0];
        return end;
    }
    *far = end > upper[0] ? end : upper[0];
    if (upper[1] > *far) *far = upper[1];
    if (contractions && end < s.end && s.text[end] == '\'') end += contraction(s, end, true);
    return end;
}

/* ---- scanners: a loop over the pieces of one pattern */
#define SCANNER(name, piece) \
    int64_t hr_scanner_##name(const uint8_t *text, int64_t at, int64_t bytes, bool whole, \
                              hr_piece *pieces, int64_t most) \
    { \
        const stretch s = { text, bytes }; \
        const int64_t trusted = whole ? bytes : bytes - MARGIN; \
        int64_t count = 0; \
        while (count < most && at < bytes) { \
            int64_t far = at; \
            const int64_t end = piece; \
            if (far > trusted || end > trusted) break; \
            pieces[count++] = (hr_piece){ (uint32_t)at, (uint32_t)end }; \
            at = end; \
        } \
        return count; \
    }

SCANNER(gpt2, gpt2_piece(s, at, &far))
SCANNER(cl100k, cl100k_piece(s, at, 3, &far))
SCANNER(qwen, cl100k_piece(s, at, 1, &far))
SCANNER(o200k, o200k_piece(s, at, true, &far))
SCANNER(super_one, o200k_piece(s, at, false, &far))

/* ---- searchers */

/* Returns HR_FOUND_MORE and forgets the run of digits: more text may extend it. */
static hr_found more(hr_scanner_run *run)
{
    run->count = 0;
    return HR_FOUND_MORE;
}

static hr_found found(int64_t begin, int64_t end, hr_piece *match)
{
    *match = (hr_piece){ (uint32_t)begin, (uint32_t)end };
    return HR_FOUND;
}

static hr_found search_class(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                             uint8_t class, hr_piece *match)
{
    const stretch s = { text, bytes };
    int64_t next = from, p;
    p = run_without(s, from, class);
    if (!whole && p > bytes - MARGIN) return HR_FOUND_MORE;
    if (p >= bytes) return HR_FOUND_NONE;
    class_at(s, p, &next);
    return found(p, next, match);
}

hr_found hr_searcher_numeric(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                             hr_scanner_run *run, hr_piece *match)
{
    (void)run;
    return search_class(text, from, bytes, whole, HR_NUMERIC, match);
}

hr_found hr_searcher_spaces(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                            hr_scanner_run *run, hr_piece *match)
{
    (void)run;
    return search_class(text, from, bytes, whole, HR_SPACE, match);
}

/* Adjusts the known run of digits to position `p`: after an empty match the search resumes one
 * character later. */
static void catch_up(stretch s, int64_t p, hr_scanner_run *run)
{
    int64_t next;
    while (run->count && run->at < p) {
        class_at(s, run->at, &next);
        *run = (hr_scanner_run){ next, run->count - 1 };
    }
}

/* Whether (?=(\d{3})+(?!\d)) matches: before a run of digits whose length is a multiple of three.
 * Counts each run once. */
static bool groups_here(stretch s, int64_t p, hr_scanner_run *run, int64_t *far)
{
    if (run->at != p || !run->count) {
        int64_t at = p, next;
        *run = (hr_scanner_run){ p, 0 };
        for (; at < s.end && class_at(s, at, &next) & HR_DECIMAL; at = next) run->count++;
        *far = at;
    }
    return run->count > 0 && run->count % 3 == 0;
}

/* Moves past one digit of the run. */
static int64_t pass_decimal(stretch s, int64_t p, hr_scanner_run *run)
{
    int64_t next;
    class_at(s, p, &next);
    if (run->count) *run = (hr_scanner_run){ next, run->count - 1 };
    return next;
}

hr_found hr_searcher_super_paper_two(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                                     hr_scanner_run *run, hr_piece *match)
{
    const stretch s = { text, bytes };
    const int64_t trusted = whole ? bytes : bytes - MARGIN;
    catch_up(s, from, run);
    for (int64_t p = from; p < bytes;) {
        int64_t far = p;
        const bool here = groups_here(s, p, run, &far);
        if (far > trusted) return more(run);
        if (here) return found(p, p, match);
        p = run->count ? pass_decimal(s, p, run) : run_without(s, p, HR_DECIMAL);
    }
    return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
}

/* (?=(\d{3})+(?!\d))| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
hr_found hr_searcher_super_paper_one(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                                     hr_scanner_run *run, hr_piece *match)
{
    const stretch s = { text, bytes };
    const int64_t trusted = whole ? bytes : bytes - MARGIN;
    catch_up(s, from, run);
    for (int64_t p = from, next; p < bytes;) {
        int64_t far = p;
        uint32_t class = class_at(s, p, &next);
        if (class & HR_NUMBER) {
            const bool here = groups_here(s, p, run, &far);
            if (far > trusted) return more(run);
            if (here) return found(p, p, match);
            p = pass_decimal(s, p, run);
            continue;
        }
        const int64_t begin = s.text[p] == ' ' && next < bytes ? next : p;
        class = class_at(s, begin, &next);
        int64_t end;
        if (class & HR_LETTER) far = end = run_of(s, next, HR_LETTER);
        else if (class & NOT_OTHER) end = blank_piece(s, p, false, &far);
        else far = end = run_without(s, next, NOT_OTHER);
        return far > trusted || end > trusted ? HR_FOUND_MORE : found(p, end, match);
    }
    return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
}

/* \p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S) */
hr_found hr_searcher_super_two(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                               hr_scanner_run *run, hr_piece *match)
{
    const stretch s = { text, bytes };
    const int64_t trusted = whole ? bytes : bytes - MARGIN;
    (void)run;
    for (int64_t p = run_of(s, from, HR_LETTER), next, second; p < bytes;
         p = run_of(s, next, HR_LETTER)) {
        int64_t end = -1, far = p;
        const uint32_t class = class_at(s, p, &next);
        const bool space = s.text[p] == ' ';
        const int64_t begin = space ? next : p;
        if (class & HR_NUMBER) {
            far = end = numbers(s, p, 3);
        } else if ((space || !(class & HR_SPACE)) && begin < bytes &&
                   !(class_at(s, begin, &second) & NOT_OTHER)) {
            far = run_without(s, second, NOT_OTHER);
            if (far > second) far = end = other_piece(s, far, true);
        }
        if (end < 0 && space) {
            int64_t spaces = p;
            while (spaces < bytes && s.text[spaces] == ' ') spaces++;
            if (spaces > far) far = spaces;
            const bool free = spaces >= bytes || class_at(s, spaces, &second) & HR_SPACE;
            end = free ? spaces : spaces > p + 1 ? spaces - 1 : -1;
        }
        if (far > trusted || end > trusted) return HR_FOUND_MORE;
        if (end >= 0) return found(p, end, match);
    }
    return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
}
