/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/pass_lines.c - documents from JSON Lines.
 *
 * A line that fits the buffer is parsed completely before any of it is returned. A longer line is
 * returned in parts; if it turns out to be invalid, the last piece discards its document. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/json.h"
#include "corpus/pass.h"

/* In the order of hr_line's names. */
enum { TEXT, PROMPT, COMPLETION };

enum { BIT_TEXT = 1 << TEXT, BIT_BOTH = 1 << PROMPT | 1 << COMPLETION };

static const char *name_of(const hr_pass *pass, int32_t field)
{
    const hr_corpus_desc *desc = pass->desc;
    return field == TEXT     ? desc->text_field
           : field == PROMPT ? desc->prompt_field
                             : desc->completion_field;
}

static void begin_line(hr_pass *pass)
{
    const char *const names[HR_LINE_FIELDS] = { name_of(pass, TEXT), name_of(pass, PROMPT),
                                                name_of(pass, COMPLETION) };
    hr_line_begin(&pass->lines.line, names);
    pass->lines.opened = -1;
}

void hr_pass_lines_begin(hr_pass *pass)
{
    pass->lines = (hr_pass_lines){ .opened = -1 };
}

/* ---- bad lines */

/* Describes the fields that a valid object lacks to be a document; an empty text if it is one. */
static void describe_missing(const hr_pass *pass, char *text, int64_t bytes)
{
    const hr_line *line = &pass->lines.line;
    const uint32_t both = line->found & BIT_BOTH;
    *text = 0;
    if (line->found & BIT_TEXT || both == BIT_BOTH) return;
    if (both) {
        const int32_t there = line->found >> PROMPT & 1 ? PROMPT : COMPLETION;
        snprintf(text, (size_t)bytes, "has \"%s\" and no \"%s\"", name_of(pass, there),
                 name_of(pass, PROMPT + COMPLETION - there));
        return;
    }
    const int used = snprintf(text, (size_t)bytes, "has no \"%s\"", name_of(pass, TEXT));
    if (line->first_text[0])
        snprintf(text + used, (size_t)(bytes - used),
                 "; if its text is in \"%.40s\", set data.text_field=%.40s", line->first_text,
                 line->first_text);
}

/* Counts the line as skipped, or ends the pass with an error. */
static hr_status refuse_line(hr_pass *pass, const char *problem, hr_error *err)
{
    const hr_pass_lines *lines = &pass->lines;
    if (pass->desc->skip_bad_lines) {
        pass->bad_lines++;
        return HR_OK;
    }
    char place[32] = "";
    if (lines->line.problem)
        snprintf(place, sizeof place, " byte %lld:", (long long)lines->line.at);
    return hr_fail(err, HR_CORRUPT,
                   "%s: line %lld:%s %s; fix it, or skip such lines with data.bad_lines=skip",
                   hr_list_path(pass->list, pass->file), (long long)lines->number, place, problem);
}

/* ---- lines that fit the buffer */

static void put_span(hr_pass *pass, const hr_line_span *span, bool begins, bool ends)
{
    hr_pass_put(pass, (hr_piece){ .bytes = span->text,
                                  .count = span->bytes,
                                  .begins = begins,
                                  .ends = ends,
                                  .segment_ends = span->ends,
                                  .targets = span->field != PROMPT,
                                  .offset = pass->lines.offset + (span->text - pass->buffer) });
}

static hr_status take_line(hr_pass *pass, hr_error *err)
{
    const hr_line *line = &pass->lines.line;
    const hr_line_span *fields[HR_LINE_FIELDS] = { NULL };
    char missing[256];
    for (int32_t i = 0; i < line->span_count; i++) fields[line->spans[i].field] = &line->spans[i];
    describe_missing(pass, missing, sizeof missing);
    if (missing[0]) return refuse_line(pass, missing, err);
    if (fields[TEXT]) {
        pass->excluded = hr_pass_is_excluded(pass, fields[TEXT], 1);
        put_span(pass, fields[TEXT], true, true);
        return HR_OK;
    }
    const hr_line_span both[] = { *fields[PROMPT], *fields[COMPLETION] };
    pass->excluded = hr_pass_is_excluded(pass, both, 2);
    put_span(pass, &both[0], true, false);
    put_span(pass, &both[1], false, true);
    return HR_OK;
}

static bool is_blank(const uint8_t *text, int64_t bytes)
{
    while (bytes && (*text == ' ' || *text == '\t' || *text == '\r')) {
        text++;
        bytes--;
    }
    return bytes == 0;
}

/* Bytes of a byte order mark at the beginning of a file. */
static int64_t mark_bytes(const hr_pass *pass, const uint8_t *text, int64_t bytes)
{
    return pass->lines.number == 1 ? hr_json_mark_bytes((const char *)text, bytes) : 0;
}

static hr_status read_line(hr_pass *pass, uint8_t *text, int64_t bytes, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    const int64_t mark = mark_bytes(pass, text, bytes);
    if (is_blank(text + mark, bytes - mark)) return HR_OK;
    begin_line(pass);
    hr_line_read(&lines->line, text + mark, bytes - mark, true, false);
    if (hr_line_is_whole(&lines->line)) return take_line(pass, err);
    return refuse_line(pass, lines->line.problem, err);
}

/* ---- longer lines */

/* Moves the unread bytes to the front of the buffer and fills the rest. */
static hr_status fill(hr_pass *pass, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    int64_t count;
    memmove(pass->buffer, pass->buffer + lines->at, (size_t)(lines->fill - lines->at));
    lines->offset += lines->at;
    lines->fill -= lines->at;
    lines->at = 0;
    const int64_t room = pass->buffer_bytes - lines->fill;
    const hr_status status = hr_input_stream_read(&pass->input_stream, pass->buffer + lines->fill,
                                                  room, &count, err);
    if (status != HR_OK) return status;
    lines->fill += count;
    lines->ended = count < room;
    return HR_OK;
}

/* Skips the rest of the line. */
static hr_status discard(hr_pass *pass, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    for (;;) {
        const uint8_t *from = pass->buffer + lines->at;
        const uint8_t *newline = memchr(from, '\n', (size_t)(lines->fill - lines->at));
        lines->at = newline ? newline + 1 - pass->buffer : lines->fill;
        if (newline || lines->ended) break;
        const hr_status status = fill(pass, err);
        if (status != HR_OK) return status;
    }
    lines->is_long = lines->discarded = false;
    return HR_OK;
}

/* Refuses a long line and discards the part of its document that was already returned. */
static hr_status refuse_long(hr_pass *pass, const char *problem, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    const hr_status status = refuse_line(pass, problem, err);
    if (status != HR_OK) return status;
    if (lines->opened >= 0) {
        pass->queued = 0; /* discard the pieces that were not returned yet */
        hr_pass_put(pass, (hr_piece){ .discard = true, .ends = true, .segment_ends = true });
    }
    lines->discarded = true;
    return HR_OK;
}

/* Queues a part of a long line's text. The prompt must come before the completion, because the
 * first text is no longer in the buffer when the second arrives. Returns null; an error message; or
 * an empty text for a field to ignore. */
static const char *take_span(hr_pass *pass, const hr_line_span *span)
{
    hr_pass_lines *lines = &pass->lines;
    const int32_t field = span->field;
    if (lines->opened >= 0 && (lines->opened == TEXT) != (field == TEXT))
        return field == TEXT ? "is longer than the buffer, and its text comes after a prompt" : "";
    if (lines->opened < 0 && field == COMPLETION)
        return "is longer than the buffer, and its completion comes before the prompt";
    const bool begins = lines->opened < 0;
    if (begins) pass->excluded = hr_pass_is_excluded(pass, span, 1);
    lines->opened = field;
    put_span(pass, span, begins, false);
    return NULL;
}

/* Ends a long line and its document. */
static hr_status end_long(hr_pass *pass, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    char missing[256];
    if (!hr_line_is_whole(&lines->line)) return refuse_long(pass, lines->line.problem, err);
    describe_missing(pass, missing, sizeof missing);
    if (missing[0]) return refuse_long(pass, missing, err);
    hr_pass_put(pass, (hr_piece){ .ends = true, .segment_ends = true });
    lines->discarded = true; /* skips the newline */
    return HR_OK;
}

/* Reads the next part of a long line, up to the end of the buffer or of the line. */
static hr_status next_part(hr_pass *pass, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    hr_line *line = &lines->line;
    hr_status status = lines->ended ? HR_OK : fill(pass, err);
    if (status != HR_OK) return status;
    uint8_t *from = pass->buffer + lines->at;
    const uint8_t *newline = memchr(from, '\n', (size_t)(lines->fill - lines->at));
    const int64_t bytes = newline ? newline - from : lines->fill - lines->at;
    const bool last = newline || lines->ended;
    lines->blank = lines->blank && is_blank(from, bytes);
    if (lines->blank) { /* a blank line is skipped, however long */
        lines->at += bytes;
        lines->discarded = last;
        return HR_OK;
    }
    const int64_t used = hr_line_read(line, from, bytes, last, true);
    lines->at += used;
    for (int32_t i = 0; i < line->span_count; i++) {
        const char *problem = take_span(pass, &line->spans[i]);
        if (problem && *problem) return refuse_long(pass, problem, err);
    }
    if (line->problem) return refuse_long(pass, line->problem, err);
    return last && used == bytes ? end_long(pass, err) : HR_OK;
}

hr_status hr_pass_lines_next(hr_pass *pass, bool *end, hr_error *err)
{
    hr_pass_lines *lines = &pass->lines;
    if (lines->discarded) return discard(pass, err);
    if (lines->is_long) return next_part(pass, err);
    uint8_t *from = pass->buffer + lines->at;
    const uint8_t *newline = memchr(from, '\n', (size_t)(lines->fill - lines->at));
    if (!newline && !lines->ended) {
        if (lines->at > 0 || lines->fill < pass->buffer_bytes) return fill(pass, err);
        lines->is_long = lines->blank = true;
        lines->number++;
        const int64_t mark = mark_bytes(pass, from, lines->fill);
        lines->at += mark;
        begin_line(pass);
        return HR_OK;
    }
    *end = lines->ended && lines->at == lines->fill;
    if (*end) return HR_OK;
    const int64_t bytes = newline ? newline - from : lines->fill - lines->at;
    lines->number++;
    lines->at += bytes + (newline != NULL);
    return read_line(pass, from, bytes, err);
}
