/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pretokenizer.c - a chain of stages; each stage pulls pieces from the previous one.
 *
 * Only the first stage handles the end of a window. It passes a piece on once its end is certain,
 * so all other stages see complete texts. The common case, a single stage without gaps, is a loop
 * over its scanner. */
#define _GNU_SOURCE /* memmem */
#include "tokenizer/pretokenizer.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/pattern.h"
#include "tokenizer/scanner.h"
#include "tokenizer/unicode.h"

const char hr_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char gpt2_grouped[] =
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
#define BEHIND_WORDS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const char hr_pattern_cl100k[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                                 "\\p{N}{1,3}" BEHIND_WORDS;
const char hr_pattern_qwen[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                               "\\p{N}" BEHIND_WORDS;
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define REST "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const char hr_pattern_o200k[] = LEAD UPPER "*" LOWER "+" SUFFIX "|" LEAD UPPER "+" LOWER "*" SUFFIX
                                           "|" REST;
const char hr_pattern_super_one[] = LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER "*|" REST;
const char hr_pattern_super_two[] = "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]{2,}[\\r\\n/]*| +(?!\\S)";
const char hr_pattern_super_paper_one[] =
    "(?=(\\d{3})+(?!\\d))| ?\\p{L}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char hr_pattern_super_paper_two[] = "(?=(\\d{3})+(?!\\d))";

static const struct {
    const char *pattern, *how;
    hr_scanner *scanner;
    hr_searcher *searcher;
} known[] = {
    { hr_pattern_gpt2, "scanner gpt2", hr_scanner_gpt2, NULL },
    { gpt2_grouped, "scanner gpt2", hr_scanner_gpt2, NULL },
    { hr_pattern_cl100k, "scanner cl100k", hr_scanner_cl100k, NULL },
    { hr_pattern_qwen, "scanner qwen", hr_scanner_qwen, NULL },
    { hr_pattern_o200k, "scanner o200k", hr_scanner_o200k, NULL },
    { hr_pattern_super_one, "scanner superbpe stage 1", hr_scanner_super_one, NULL },
    { hr_pattern_super_two, "scanner superbpe stage 2", NULL, hr_searcher_super_two },
    { hr_pattern_super_paper_one, "scanner superbpe paper stage 1", NULL,
      hr_searcher_super_paper_one },
    { hr_pattern_super_paper_two, "scanner superbpe paper stage 2", NULL,
      hr_searcher_super_paper_two },
};

typedef struct {
    const char *how;
    hr_scanner *scanner;   /* one of scanner, searcher, pattern is set, */
    hr_searcher *searcher; /* or string [string_bytes], the text to match */
    hr_pattern *pattern;
    const char *string;
    int64_t string_bytes;
    hr_pretokenizer_behavior behavior;
    bool invert;
} stage;

struct hr_pretokenizer {
    stage stages[HR_PRETOKENIZER_STAGES_MAX];
    int32_t count;
    bool plain; /* one scanner without gaps, and each match is a piece */
    int64_t before;
};

/* The state of a stage for one input piece, [begin, end) of the window. */
typedef struct {
    int64_t begin, end;
    int64_t at;               /* the search continues here */
    int64_t last;             /* end of the last match, where a gap may begin */
    bool matched;             /* a match ended at `last` */
    bool over;                /* no further match */
    bool queued;              /* `queue` holds the match after the gap that was returned last */
    bool held, held_is_match; /* `hold` is a piece that the next span may extend */
    bool previous_match;
    hr_piece queue, hold;
    hr_scanner_run run;
    hr_pattern_workspace *work;
} level;

struct hr_pretokenizer_cursor {
    const hr_pretokenizer *pretokenizer;
    const uint8_t *text;
    int64_t bytes, from; /* the window; return pieces from this offset on */
    bool whole, begins;  /* begins: the window starts at the start of the text */
    bool usable;         /* PCRE2 may read the window: it is UTF-8 */
    int32_t depth; /* the stage to pull from next; all later stages are at the end of their input */
    level levels[HR_PRETOKENIZER_STAGES_MAX];
};

/* ---- construction */

static bool has_pattern(const hr_pretokenizer_stage *described)
{
    if (described->kind != HR_PRETOKENIZER_SPLIT) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (described->pattern_bytes == (int64_t)strlen(known[i].pattern) &&
            !memcmp(described->pattern, known[i].pattern, (size_t)described->pattern_bytes))
            return false;
    return true;
}

int64_t hr_pretokenizer_bytes(const hr_pretokenizer_desc *desc)
{
    int64_t bytes = hr_round_up((int64_t)sizeof(hr_pretokenizer), 64);
    for (int32_t i = 0; i < desc->stage_count; i++) {
        const hr_pretokenizer_stage *described = &desc->stages[i];
        if (has_pattern(described))
            bytes += hr_round_up(hr_pattern_bytes(described->pattern_bytes), 64);
        else if (described->kind == HR_PRETOKENIZER_STRING)
            bytes += hr_round_up(described->pattern_bytes, 64);
    }
    return bytes;
}

static hr_status place_stage(stage *made, hr_region *region, const hr_pretokenizer_stage *described,
                             hr_error *err)
{
    made->behavior = described->behavior;
    made->invert = described->invert;
    if (described->kind == HR_PRETOKENIZER_SPACES) {
        made->how = "scanner white space";
        made->searcher = hr_searcher_spaces;
        return HR_OK;
    }
    if (described->kind == HR_PRETOKENIZER_DIGITS) {
        made->how = "scanner digits";
        made->searcher = hr_searcher_numeric;
        return HR_OK;
    }
    if (described->kind == HR_PRETOKENIZER_STRING) {
        char *copy = hr_region_take_raw(region, described->pattern_bytes, 1);
        if (!copy) return hr_fail(err, HR_NO_FIT, "pre-tokenizer: the region is too small");
        made->how = "text";
        made->string = memcpy(copy, described->pattern, (size_t)described->pattern_bytes);
        made->string_bytes = described->pattern_bytes;
        return HR_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (described->pattern_bytes != (int64_t)strlen(known[i].pattern) ||
            memcmp(described->pattern, known[i].pattern, (size_t)described->pattern_bytes))
            continue;
        made->how = known[i].how;
        made->scanner = known[i].scanner;
        made->searcher = known[i].searcher;
        return HR_OK;
    }
    made->how = "pcre2";
    return hr_pattern_place(&made->pattern, region, described->pattern, described->pattern_bytes,
                            err);
}

hr_status hr_pretokenizer_place(hr_pretokenizer **pretokenizer, hr_region *region,
                                const hr_pretokenizer_desc *desc, uint32_t cpu, hr_error *err)
{
    (void)cpu;
    HR_ASSERT(desc->stage_count >= 0 && desc->stage_count <= HR_PRETOKENIZER_STAGES_MAX);
    hr_pretokenizer *made = hr_region_take(region, 1, sizeof *made);
    if (!made)
        return hr_fail(err, HR_NO_FIT, "pre-tokenizer: needs %lld bytes, the region has %lld",
                       (long long)hr_pretokenizer_bytes(desc), (long long)region->bytes);
    for (int32_t i = 0; i < desc->stage_count; i++) {
        const hr_status status = place_stage(&made->stages[i], region, &desc->stages[i], err);
        if (status != HR_OK) return status;
    }
    made->count = desc->stage_count;
    const stage *first = &made->stages[0];
    made->plain = made->count == 1 && first->scanner &&
                  (first->behavior == HR_PRETOKENIZER_ISOLATED ||
                   (first->behavior == HR_PRETOKENIZER_REMOVED && first->invert));
    if (made->count > 0 && first->pattern) made->before = hr_pattern_before(first->pattern);
    *pretokenizer = made;
    return HR_OK;
}

const char *hr_pretokenizer_how(const hr_pretokenizer *pretokenizer, int32_t index)
{
    return index >= 0 && index < pretokenizer->count ? pretokenizer->stages[index].how : NULL;
}

static bool is_letter(uint8_t c)
{
    return c < 0x80 && hr_unicode_class[c] & HR_LETTER;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

bool hr_pretokenizer_splits_at(const hr_pretokenizer *pretokenizer, const uint8_t *text)
{
    const stage *first = &pretokenizer->stages[0];
    const bool kept = first->behavior == HR_PRETOKENIZER_ISOLATED ||
                      (first->behavior == HR_PRETOKENIZER_REMOVED && first->invert);
    const uint8_t left = text[-1], here = text[0];
    if (first->searcher == hr_searcher_numeric)
        return left < 0x80 && !is_digit(left) && is_digit(here);
    if (!pretokenizer->count || !kept) return false;
    if (first->searcher == hr_searcher_super_two) return is_letter(left) && is_digit(here);
    if (!first->scanner) return false;
    /* Between lines, if the next line begins with a letter or digit; between words. */
    return left == '\n' ? is_letter(here) || is_digit(here)
                        : is_letter(left) && here == ' ' && is_letter(text[1]);
}

int64_t hr_pretokenizer_cursor_bytes(const hr_pretokenizer *pretokenizer)
{
    int64_t bytes = hr_round_up((int64_t)sizeof(hr_pretokenizer_cursor), 64);
    for (int32_t i = 0; i < pretokenizer->count; i++)
        if (pretokenizer->stages[i].pattern) bytes += HR_PATTERN_WORKSPACE_BYTES;
    return bytes;
}

hr_status hr_pretokenizer_cursor_place(hr_pretokenizer_cursor **cut, hr_region *region,
                                       const hr_pretokenizer *pretokenizer, hr_error *err)
{
    hr_pretokenizer_cursor *made = hr_region_take(region, 1, sizeof *made);
    if (!made)
        return hr_fail(err, HR_NO_FIT, "pre-tokenizer cursor: needs %lld bytes",
                       (long long)hr_pretokenizer_cursor_bytes(pretokenizer));
    made->pretokenizer = pretokenizer;
    for (int32_t i = 0; i < pretokenizer->count; i++) {
        if (!pretokenizer->stages[i].pattern) continue;
        const hr_status status = hr_pattern_workspace_place(&made->levels[i].work, region,
                                                            pretokenizer->stages[i].pattern, err);
        if (status != HR_OK) return status;
    }
    hr_pretokenizer_cursor_begin(made);
    *cut = made;
    return HR_OK;
}

/* ---- windows */

static void level_over(level *here, int64_t begin, int64_t end)
{
    *here = (level){ .begin = begin, .end = end, .at = begin, .last = begin, .work = here->work };
}

void hr_pretokenizer_cursor_begin(hr_pretokenizer_cursor *cut)
{
    level_over(&cut->levels[0], 0, 0);
    cut->text = NULL;
    cut->bytes = cut->from = 0;
    cut->whole = false;
    cut->begins = true;
    cut->depth = 0;
}

/* The first byte that the next window must contain. */
static int64_t level_done(const level *here)
{
    if (here->held) return here->hold.begin;
    return here->queued ? (int64_t)here->queue.begin : here->last;
}

static void shift(level *here, int64_t by)
{
    here->at += by;
    here->last += by;
    here->queue.begin += (uint32_t)by;
    here->queue.end += (uint32_t)by;
    here->hold.begin += (uint32_t)by;
    here->hold.end += (uint32_t)by;
    here->run.count = 0;
}

void hr_pretokenizer_cursor_window(hr_pretokenizer_cursor *cut, const uint8_t *text, int64_t at,
                                   int64_t bytes, bool whole)
{
    HR_ASSERT(at >= 0 && at <= bytes && bytes <= HR_PRETOKENIZER_WINDOW_MAX);
    level *first = &cut->levels[0];
    if (cut->text) cut->begins = cut->begins && at == hr_pretokenizer_cursor_done(cut);
    shift(first, at - hr_pretokenizer_cursor_done(cut));
    cut->text = text;
    cut->from = at;
    cut->whole = whole;
    /* An incomplete character is left to the next window. */
    for (int32_t i = 0; i < 3 && !whole && bytes > at && (text[bytes - 1] & 0xc0) == 0x80; i++)
        bytes--;
    if (!whole && bytes > at && text[bytes - 1] >= 0xc0) bytes--;
    cut->bytes = bytes;
    first->begin = 0;
    first->end = bytes;
    cut->usable = true;
    for (int32_t i = 0; i < cut->pretokenizer->count; i++)
        if (cut->pretokenizer->stages[i].pattern)
            cut->usable = hr_utf8_valid(text + at, bytes - at);
}

int64_t hr_pretokenizer_cursor_done(const hr_pretokenizer_cursor *cut)
{
    return cut->pretokenizer->count == 0 || cut->pretokenizer->plain ? cut->from
                                                                     : level_done(&cut->levels[0]);
}

int64_t hr_pretokenizer_cursor_before(const hr_pretokenizer_cursor *cut)
{
    return cut->pretokenizer->before;
}

/* ---- one stage */

static hr_found find_string(const stage *sought, const uint8_t *text, int64_t from, int64_t bytes,
                            bool whole, hr_piece *match)
{
    const uint8_t *there = NULL;
    if (!sought->string_bytes) there = text + from;
    else if (from < bytes)
        there = memmem(text + from, (size_t)(bytes - from), sought->string,
                       (size_t)sought->string_bytes);
    if (!there) return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
    *match = (hr_piece){ (uint32_t)(there - text),
                         (uint32_t)(there - text + sought->string_bytes) };
    return HR_FOUND;
}

/* Finds the first match at or after `from` in [begin, end) of the window. */
static hr_found find(hr_pretokenizer_cursor *cut, int32_t depth, int64_t from, hr_piece *match)
{
    const stage *sought = &cut->pretokenizer->stages[depth];
    level *here = &cut->levels[depth];
    const bool whole = depth > 0 || cut->whole;
    const uint8_t *text = cut->text;
    if (sought->scanner) {
        if (from >= here->end) return whole ? HR_FOUND_NONE : HR_FOUND_MORE;
        return sought->scanner(text, from, here->end, whole, match, 1) ? HR_FOUND : HR_FOUND_MORE;
    }
    if (sought->searcher) return sought->searcher(text, from, here->end, whole, &here->run, match);
    if (sought->string) return find_string(sought, text, from, here->end, whole, match);
    const int64_t base = here->begin;
    const hr_found found = hr_pattern_search(here->work, text + base, from - base, here->end - base,
                                             depth > 0 || cut->begins, whole, match);
    match->begin += (uint32_t)base;
    match->end += (uint32_t)base;
    return found;
}

/* Returns the next match of a stage, or the gap before it, in the order of Oniguruma's iterator: an
 * empty match directly after a match is skipped and the search continues one character later. */
static hr_found next_span(hr_pretokenizer_cursor *cut, int32_t depth, hr_piece *span,
                          bool *is_match)
{
    level *here = &cut->levels[depth];
    *is_match = true;
    if (here->queued) {
        here->queued = false;
        *span = here->queue;
        return HR_FOUND;
    }
    while (!here->over) {
        hr_piece match = { 0, 0 };
        const hr_found found = here->at > here->end ? HR_FOUND_NONE
                                                    : find(cut, depth, here->at, &match);
        if (found == HR_FOUND_MORE || found == HR_FOUND_WRONG) return found;
        if (found == HR_FOUND_NONE) {
            here->over = true;
            if (here->last >= here->end) return HR_FOUND_NONE;
            *span = (hr_piece){ (uint32_t)here->last, (uint32_t)here->end };
            *is_match = false;
            return HR_FOUND;
        }
        if (match.begin == match.end && here->matched && here->last == (int64_t)match.end) {
            uint32_t point;
            here->at += here->at < here->end
                            ? hr_utf8_take(cut->text + here->at, here->end - here->at, &point)
                            : 1;
            continue;
        }
        const hr_piece gap = { (uint32_t)here->last, match.begin };
        here->at = here->last = match.end;
        here->matched = true;
        *span = match;
        if (gap.begin == gap.end) return HR_FOUND;
        here->queued = true;
        here->queue = match;
        *span = gap;
        *is_match = false;
        return HR_FOUND;
    }
    return HR_FOUND_NONE;
}

/* Whether a span is appended to the held piece. */
static bool joins(const level *here, hr_pretokenizer_behavior behavior, bool is_match)
{
    if (!here->held) return false;
    if (behavior == HR_PRETOKENIZER_CONTIGUOUS) return is_match == here->previous_match;
    if (behavior == HR_PRETOKENIZER_MERGED_WITH_PREVIOUS) return is_match && !here->previous_match;
    return behavior == HR_PRETOKENIZER_MERGED_WITH_NEXT && !is_match && here->held_is_match;
}

/* Returns the next piece of a stage. */
static hr_found next_piece(hr_pretokenizer_cursor *cut, int32_t depth, hr_piece *piece)
{
    const stage *cutting = &cut->pretokenizer->stages[depth];
    level *here = &cut->levels[depth];
    for (;;) {
        hr_piece span;
        bool is_match;
        const hr_found found = next_span(cut, depth, &span, &is_match);
        if (found == HR_FOUND_NONE && here->held) {
            here->held = false;
            *piece = here->hold;
            if (piece->end > piece->begin) return HR_FOUND;
        }
        if (found != HR_FOUND) return found;
        is_match ^= cutting->invert;
        if (cutting->behavior <= HR_PRETOKENIZER_REMOVED) {
            *piece = span;
            if (span.end > span.begin &&
                !(cutting->behavior == HR_PRETOKENIZER_REMOVED && is_match))
                return HR_FOUND;
            continue;
        }
        const bool joined = joins(here, cutting->behavior, is_match);
        const bool ready = here->held && !joined && here->hold.end > here->hold.begin;
        *piece = here->hold;
        if (joined) here->hold.end = span.end;
        else here->hold = span;
        here->held = true;
        here->held_is_match = is_match;
        here->previous_match = is_match;
        if (ready) return HR_FOUND;
    }
}

/* ---- pieces */

static hr_status gave_up(const hr_pretokenizer_cursor *cut, int32_t depth, hr_error *err)
{
    return hr_fail(
        err, HR_CORRUPT,
        "pattern %d of the pre-tokenizer exceeds the step or memory limit on %lld bytes of text",
        depth + 1, (long long)(cut->levels[depth].end - cut->levels[depth].at));
}

static int64_t next_whole(hr_pretokenizer_cursor *cut, hr_piece *pieces)
{
    if (!cut->whole || cut->from >= cut->bytes) return 0;
    pieces[0] = (hr_piece){ (uint32_t)cut->from, (uint32_t)cut->bytes };
    cut->from = cut->bytes;
    return 1;
}

hr_status hr_pretokenizer_cursor_next(hr_pretokenizer_cursor *cut, hr_piece *pieces, int64_t most,
                                      int64_t *count, hr_error *err)
{
    const hr_pretokenizer *pretokenizer = cut->pretokenizer;
    if (!cut->usable)
        return hr_fail(err, HR_CORRUPT, "the text is not UTF-8, which PCRE2 patterns need");
    if (pretokenizer->count == 0) {
        *count = next_whole(cut, pieces);
        return HR_OK;
    }
    if (pretokenizer->plain) {
        *count = pretokenizer->stages[0].scanner(cut->text, cut->from, cut->bytes, cut->whole,
                                                 pieces, most);
        if (*count) cut->from = pieces[*count - 1].end;
        return HR_OK;
    }
    int64_t written = 0;
    while (written < most) {
        hr_piece piece;
        const hr_found found = next_piece(cut, cut->depth, &piece);
        if (found == HR_FOUND_WRONG) return gave_up(cut, cut->depth, err);
        if (found != HR_FOUND) {
            if (cut->depth == 0) break;
            cut->depth--;
        } else if (cut->depth + 1 < pretokenizer->count) {
            cut->depth++;
            level_over(&cut->levels[cut->depth], piece.begin, piece.end);
        } else {
            pieces[written++] = piece;
        }
    }
    *count = written;
    return HR_OK;
}
