/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/feed.c - finds lines in a buffer. A line longer than the buffer is split window
 * by window. */
#include "tokenizer/train/feed.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "tokenizer/unicode.h"

/* ---- scanning all files */

typedef struct {
    hr_feed_source *source;
    uint8_t *scratch;
    int64_t bytes, line; /* line: bytes of the unfinished line */
    hr_feed_stop *stop;
    void *context;
} scanning;

static uint64_t mix_text(uint64_t sum, const uint8_t *text, int64_t bytes)
{
    uint64_t lanes[4] = { sum, sum + 1, sum + 2, sum + 3 };
    int64_t i = 0;
    for (; i + 32 <= bytes; i += 32)
        for (int32_t lane = 0; lane < 4; lane++) {
            uint64_t part;
            memcpy(&part, text + i + 8 * lane, 8);
            lanes[lane] = (lanes[lane] ^ part) * UINT64_C(0x9e3779b97f4a7c15);
            lanes[lane] ^= lanes[lane] >> 32;
        }
    for (; i < bytes; i++) lanes[0] = (lanes[0] ^ text[i]) * UINT64_C(0x9e3779b97f4a7c15);
    for (int32_t lane = 0; lane < 4; lane++) sum = hr_random_mix(sum ^ lanes[lane]);
    return sum;
}

static void scan_lines(scanning *l, const uint8_t *text, int64_t bytes)
{
    for (int64_t at = 0; at < bytes;) {
        const uint8_t *newline = memchr(text + at, '\n', (size_t)(bytes - at));
        const int64_t end = newline ? newline + 1 - text : bytes;
        l->line += end - at;
        l->source->line_bytes_most = hr_max(l->source->line_bytes_most, l->line);
        if (newline) {
            l->source->lines++;
            l->line = 0;
        }
        at = end;
    }
}

/* Length of the valid UTF-8 at the start of text [bytes]; less than all if the end cuts a
 * character. */
static int64_t valid_bytes(const uint8_t *text, int64_t bytes)
{
    int64_t at = 0;
    while (at < bytes) {
        uint64_t eight;
        while (at + 8 <= bytes &&
               (memcpy(&eight, text + at, 8), !(eight & UINT64_C(0x8080808080808080))))
            at += 8;
        if (at == bytes) break;
        uint32_t point;
        const int64_t taken = hr_utf8_take(text + at, bytes - at, &point);
        if (taken == 1 && text[at] >= 0x80) break;
        at += taken;
    }
    return at;
}

static hr_status scan_file(scanning *l, const hr_feed_file *file, hr_error *err)
{
    int descriptor;
    int64_t bytes, kept = 0;
    hr_status status = hr_file_open(file->path, &descriptor, &bytes, err);
    for (int64_t at = 0; status == HR_OK && at < file->bytes;) {
        const int64_t more = hr_min(l->bytes - kept, file->bytes - at);
        status = hr_file_read(descriptor, file->path, at, l->scratch + kept, more, err);
        if (status != HR_OK) break;
        const int64_t held = kept + more;
        const bool whole = at + more == file->bytes;
        const int64_t valid = valid_bytes(l->scratch, held);
        if (valid < held && (whole || !hr_utf8_cut(l->scratch + valid, held - valid)))
            status = hr_fail(err, HR_CORRUPT, "%s: byte %lld is not UTF-8", file->path,
                             (long long)(at - kept + valid));
        scan_lines(l, l->scratch, valid);
        l->source->identity = mix_text(l->source->identity, l->scratch, valid);
        kept = held - valid;
        memmove(l->scratch, l->scratch + valid, (size_t)kept);
        at += more;
        if (status == HR_OK && l->stop &&
            l->stop(l->context, "scanning the text", file->start + at, l->source->bytes))
            status = hr_fail(err, HR_INTERRUPTED, "interrupted while scanning the text");
    }
    if (l->line > 0) l->source->lines++;
    l->line = 0;
    hr_file_close(&descriptor);
    return status;
}

hr_status hr_feed_scan(hr_feed_source *source, const char *const *paths, int32_t count,
                       uint8_t *scratch, int64_t bytes, hr_feed_stop *stop, void *context,
                       hr_error *err)
{
    scanning l = { source, scratch, bytes, 0, stop, context };
    HR_ASSERT(bytes >= HR_FEED_BYTES_LEAST);
    if (count < 1) return hr_fail(err, HR_USAGE, "no text: give at least one file to train on");
    if (count > HR_FEED_FILES_MAX)
        return hr_fail(err, HR_USAGE, "%d files, the limit is %d", count, HR_FEED_FILES_MAX);
    *source = (hr_feed_source){ .file_count = count };
    for (int32_t i = 0; i < count; i++) {
        hr_feed_file *file = &source->files[i];
        int descriptor;
        *file = (hr_feed_file){ .path = paths[i], .start = source->bytes };
        hr_status status = hr_file_open(paths[i], &descriptor, &file->bytes, err);
        if (status != HR_OK) return status;
        hr_file_close(&descriptor);
        source->bytes += file->bytes;
        source->identity = hr_random_mix(source->identity ^ (uint64_t)file->bytes);
    }
    if (source->bytes == 0)
        return hr_fail(err, HR_CORRUPT, "%s: no text in %s", paths[0],
                       count == 1 ? "it" : "it or the other files");
    for (int32_t i = 0; i < count; i++) {
        hr_status status = scan_file(&l, &source->files[i], err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* ---- parts */

enum { FRONT = 64 }; /* reserved bytes before the data, for a space before a line */

int64_t hr_feed_buffer_bytes(const hr_feed_source *source)
{
    const int64_t lines = hr_round_up(2 * source->line_bytes_most + 2 * FRONT, 4096);
    const int64_t all = hr_round_up(source->bytes + 2 * FRONT, 4096);
    return hr_min(hr_min(hr_max(lines, HR_FEED_BYTES_LEAST), HR_FEED_BYTES_MOST),
                  hr_max(all, 1 << 16));
}

static int64_t file_end(const hr_feed *f)
{
    return f->source->files[f->file].start + f->source->files[f->file].bytes;
}

/* The offset of the first byte that is not split yet. */
static int64_t first_place(const hr_feed *f)
{
    return f->at - (f->held - f->first);
}

/* Moves what is held to the front and reads more after it. */
static hr_status refill(hr_feed *f, hr_error *err)
{
    const hr_feed_file *file = &f->source->files[f->file];
    if (f->first > FRONT) {
        memmove(f->buffer + FRONT, f->buffer + f->first, (size_t)(f->held - f->first));
        f->held -= f->first - FRONT;
        f->first = FRONT;
    }
    const int64_t more = hr_min(f->buffer_bytes - f->held, file_end(f) - f->at);
    if (more <= 0)
        return hr_fail(err, HR_CORRUPT, "%s: a word of more than %lld bytes, the limit", file->path,
                       (long long)(f->held - f->first));
    if (f->descriptor < 0) {
        int64_t bytes;
        hr_status status = hr_file_open(file->path, &f->descriptor, &bytes, err);
        if (status != HR_OK) return status;
    }
    hr_status status = hr_file_read(f->descriptor, file->path, f->at - file->start,
                                    f->buffer + f->held, more, err);
    if (status != HR_OK) return status;
    f->held += more;
    f->at += more;
    return HR_OK;
}

void hr_feed_begin(hr_feed *f, int32_t index, int32_t parts)
{
    const int64_t bytes = f->source->bytes;
    const int64_t start = (int64_t)((__int128)bytes * index / parts);
    f->end = (int64_t)((__int128)bytes * (index + 1) / parts);
    f->file = 0;
    f->descriptor = -1;
    f->done = f->window = 0;
    f->piece_count = f->piece_at = 0;
    f->begun = f->whole = f->finished = false;
    f->first = f->held = FRONT;
    while (f->file + 1 < f->source->file_count && file_end(f) <= start) f->file++;
    /* A line that began earlier belongs to the previous part. Reading starts one byte early and
     * skips to the end of that line. */
    const int64_t file_start = f->source->files[f->file].start;
    f->begun = start > file_start;
    f->at = f->begun ? start - 1 : file_start;
}

/* Skips the end of a line that belongs to the previous part. */
static hr_status skip_line(hr_feed *f, hr_error *err)
{
    while (f->begun) {
        const uint8_t *newline = memchr(f->buffer + f->first, '\n', (size_t)(f->held - f->first));
        f->first = newline ? newline + 1 - f->buffer : f->held;
        if (newline || f->at == file_end(f)) {
            f->begun = false;
            return HR_OK;
        }
        hr_status status = refill(f, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* Sets the next window: a line, or as much of it as is in the buffer; or finishes the part. */
static hr_status next_window(hr_feed *f, int64_t from, hr_error *err)
{
    const uint8_t *newline = 0;
    if (!f->begun) {
        while (f->first == f->held && f->at == file_end(f)) {
            if (f->at >= f->end || f->file + 1 == f->source->file_count) {
                f->finished = true;
                return HR_OK;
            }
            hr_file_close(&f->descriptor);
            f->file++;
        }
        if (first_place(f) >= f->end) {
            f->finished = true;
            return HR_OK;
        }
    }
    newline = memchr(f->buffer + f->first + from, '\n', (size_t)(f->held - f->first - from));
    if (!newline && f->at < file_end(f)) {
        const int64_t known = f->held - f->first;
        if (f->begun || known < f->buffer_bytes - FRONT) {
            hr_status status = refill(f, err);
            if (status != HR_OK) return status;
            newline = memchr(f->buffer + f->first + known, '\n',
                             (size_t)(f->held - f->first - known));
        }
    }
    if (!f->begun && f->prefix_space && f->buffer[f->first] != ' ') f->buffer[--f->first] = ' ';
    const int64_t held = f->held - f->first;
    f->window = newline ? newline + 1 - (f->buffer + f->first) : held;
    f->whole = newline || f->at == file_end(f);
    if (!f->begun) hr_pretokenizer_cursor_begin(f->cut);
    hr_pretokenizer_cursor_window(f->cut, f->buffer + f->first, from, f->window, f->whole);
    return HR_OK;
}

/* Ends a window whose pieces are all passed on. */
static hr_status end_window(hr_feed *f, hr_error *err)
{
    if (f->whole) {
        f->first += f->window;
        f->window = 0;
        f->begun = false;
        return HR_OK;
    }
    const int64_t done = hr_pretokenizer_cursor_done(f->cut);
    const int64_t before = hr_min(done, hr_pretokenizer_cursor_before(f->cut));
    f->first += done - before;
    f->begun = true;
    return next_window(f, before, err);
}

hr_status hr_feed_run(hr_feed *f, int64_t bytes, hr_error *err)
{
    const int64_t until = f->done + bytes;
    if (f->begun && !f->window) {
        hr_status status = skip_line(f, err);
        if (status != HR_OK) return status;
    }
    while (!f->finished && f->done < until) {
        hr_status status = HR_OK;
        for (; f->piece_at < f->piece_count; f->piece_at++) {
            const hr_piece *piece = &f->pieces[f->piece_at];
            const int64_t length = (int64_t)piece->end - piece->begin;
            if (!f->word(f->context, f->buffer + f->first + piece->begin, length)) return HR_OK;
            f->done += length;
        }
        f->piece_at = f->piece_count = 0;
        if (!f->window) status = next_window(f, 0, err);
        if (status == HR_OK && !f->finished)
            status = hr_pretokenizer_cursor_next(f->cut, f->pieces, 256, &f->piece_count, err);
        if (status == HR_OK && !f->finished && !f->piece_count) status = end_window(f, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

void hr_feed_end(hr_feed *f)
{
    hr_file_close(&f->descriptor);
}
