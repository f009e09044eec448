/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/encode.c - encodes a file window by window, or in parts on all threads.
 *
 * Text is split only at positions that no token can cross, so parts are encoded like independent
 * texts and the ids do not depend on the number of threads. Any free thread reads the next part.
 * Ids are output in the order of the parts. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "dev/ticket_lock.h"
#include "tokenize/encode_session.h"

typedef struct {
    int file;
    const char *path;
    int64_t bytes, read; /* bytes -1: unknown */
    bool over;
    bool named; /* error messages begin with the name already */
} input;

/* The state that all threads share while they encode one text. */
struct hr_encode_session_shared {
    hr_tokenize *session;
    input *in;
    atomic_bool ended;              /* no further part is read */
    hr_ticket_lock reading, output; /* the fields below belong to the holder */
    const uint8_t *rest;            /* [rest_bytes] read, not yet in a part */
    int64_t rest_bytes;
    hr_status status; /* of the first part that failed */
    hr_error err;
};

/* Waits until all earlier parts are output, then outputs the buffered ids. False: an earlier part
 * failed. */
static bool take_turn(hr_encode_session_part *part)
{
    if (part->holds) hr_ticket_lock_wait(&part->shared->output, part->number);
    if (part->shared->status != HR_OK) return false;
    if (part->holds) hr_encode_session_output(part->session, part->ids, part->id_count);
    part->holds = false;
    return true;
}

bool hr_encode_session_sink(void *context, const uint32_t *ids, int64_t count)
{
    hr_encode_session_part *part = context;
    if (part->holds && count > HR_ENCODE_SESSION_PART_IDS - part->id_count && !take_turn(part))
        return false;
    if (part->holds) {
        memcpy(part->ids + part->id_count, ids, (size_t)count * sizeof *ids);
        part->id_count += count;
    } else {
        hr_encode_session_output(part->session, ids, count);
    }
    const volatile sig_atomic_t *interrupts = part->session->request.interrupts;
    return !interrupts || __atomic_load_n(interrupts, __ATOMIC_RELAXED) == 0;
}

hr_status hr_encode_session_room(void *context, hr_encoder_more what, int64_t bytes,
                                 hr_region *region, hr_error *err)
{
    const hr_encode_session_part *part = context;
    hr_tokenize *t = part->session;
    hr_region *rooms = t->rooms[what];
    HR_ASSERT(!part->shared); /* a part is small enough, even after normalization */
    hr_memory_region_close(&t->memory, &rooms[1]);
    rooms[1] = rooms[0];
    rooms[0] = (hr_region){ 0 };
    const hr_status status = hr_memory_region_open(&t->memory, "a long piece of text", bytes,
                                                   &rooms[0], err);
    *region = rooms[0];
    return status;
}

/* Doubles the window and keeps its content. */
static hr_status grow_window(hr_tokenize *t, int64_t filled, hr_error *err)
{
    hr_region larger;
    const int64_t bytes = hr_min(2 * t->window_bytes, HR_PRETOKENIZER_WINDOW_MAX);
    const hr_status status = hr_memory_region_open(&t->memory, "a long line of text", bytes,
                                                   &larger, err);
    if (status != HR_OK) return status;
    memcpy(larger.base, t->window, (size_t)filled);
    hr_memory_region_close(&t->memory, &t->larger_window);
    t->larger_window = larger;
    t->window = larger.base;
    t->window_bytes = bytes;
    return HR_OK;
}

/* ---- input */

static hr_status open_input(input *in, const char *path, hr_error *err)
{
    *in = (input){ .path = path, .bytes = -1 };
    return strcmp(path, "-") ? hr_file_open(path, &in->file, &in->bytes, err) : HR_OK;
}

/* Fills the window after its first `filled` bytes. */
static hr_status fill(input *in, uint8_t *window, int64_t *filled, int64_t room, hr_error *err)
{
    while (*filled < room && !in->over) {
        int64_t count = room - *filled;
        if (in->bytes >= 0) {
            count = hr_min(count, in->bytes - in->read);
            const hr_status status = hr_file_read(in->file, in->path, in->read, window + *filled,
                                                  count, err);
            if (status != HR_OK) return status;
            in->over = in->read + count == in->bytes;
        } else {
            count = read(in->file, window + *filled, (size_t)count);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return hr_fail(err, HR_FAILURE, "%s", strerror(errno));
            in->over = count == 0;
        }
        in->read += count;
        *filled += count;
    }
    return HR_OK;
}

static void report_progress(const hr_tokenize *t, const input *in, int64_t done)
{
    if (t->request.progress) t->request.progress(t->request.context, done, in->bytes);
}

static const char *name_of(const input *in)
{
    return strcmp(in->path, "-") ? in->path : "standard input";
}

static hr_status of_file(const input *in, hr_status status, hr_error *err)
{
    if (status == HR_OK || status == HR_INTERRUPTED || in->named || !err) return status;
    hr_error inner = *err;
    return hr_fail(err, status, "%.200s: %.400s", name_of(in), inner.message);
}

/* ---- one text on all threads */

/* Reads the next part: up to the last split point in the window. Returns false if there is none. A
 * part with a read error counts as a part, so that the error is reported in order. */
static bool read_part(struct hr_encode_session_shared *shared, hr_encode_session_part *part)
{
    input *in = shared->in;
    int64_t filled = shared->rest_bytes, end = -1;
    if (atomic_load(&shared->ended)) return false;
    memmove(part->window, shared->rest, (size_t)filled);
    for (int64_t room = HR_ENCODE_SESSION_PART_BYTES;
         end < 0 && room <= HR_ENCODE_SESSION_PART_BYTES_MAX; room *= 2) {
        part->status = fill(in, part->window, &filled, room, &part->err);
        if (part->status != HR_OK) break;
        /* The last positions are excluded, because the text after them is not read yet. */
        end = in->over
                  ? filled
                  : hr_tokenizer_split_point(part->session->tokenizer, part->window, 0, filled - 8);
    }
    part->bytes = hr_max(end, 0);
    part->position = in->read - filled;
    shared->rest = part->window + part->bytes;
    shared->rest_bytes = filled - part->bytes;
    if (in->over || end < 0) atomic_store(&shared->ended, true);
    return end >= 0 || part->status != HR_OK;
}

static void encode_part(hr_encode_session_part *part)
{
    int64_t taken;
    part->holds = true;
    part->id_count = 0;
    if (part->status != HR_OK) return;
    hr_encoder_begin(part->encoder, part->position, HR_SPECIAL_NONE);
    part->status = hr_encoder_take(part->encoder, part->window, 0, part->bytes, true, &taken,
                                   &part->err);
}

/* Reports the first error in text order. Outputs no ids after it. */
static void end_part(struct hr_encode_session_shared *shared, hr_encode_session_part *part)
{
    if (take_turn(part)) {
        shared->status = part->status;
        if (part->status == HR_OK)
            report_progress(part->session, shared->in, part->position + part->bytes);
        else shared->err = part->err;
    }
    part->holds = false;
    if (shared->status != HR_OK) atomic_store(&shared->ended, true);
    hr_ticket_lock_pass(&shared->output);
}

static void encode_parts(void *context, int32_t thread, int32_t threads)
{
    struct hr_encode_session_shared *shared = context;
    hr_encode_session_part *part = &shared->session->parts[thread];
    (void)threads;
    part->shared = shared;
    for (;;) {
        part->number = hr_ticket_lock_take(&shared->reading);
        const bool some = read_part(shared, part);
        hr_ticket_lock_pass(&shared->reading);
        if (!some) break;
        encode_part(part);
        end_part(shared, part);
    }
    part->shared = NULL;
}

/* Encodes parts until the end, or until a stretch longer than a window has no split point. The
 * session's window then holds that stretch. */
static hr_status encode_in_parts(hr_tokenize *t, input *in, int64_t *filled, hr_error *err)
{
    struct hr_encode_session_shared shared = { .session = t, .in = in, .rest = t->window };
    hr_ticket_lock_open(&shared.reading);
    hr_ticket_lock_open(&shared.output);
    hr_pool_run(&t->pool, encode_parts, &shared);
    hr_ticket_lock_close(&shared.reading);
    hr_ticket_lock_close(&shared.output);
    if (shared.status != HR_OK && err) *err = shared.err;
    memcpy(t->window, shared.rest, (size_t)shared.rest_bytes);
    *filled = shared.rest_bytes;
    return shared.status;
}

/* ---- one text on one thread */

/* Encodes the text as a stream with one encoder. The window already holds its first `filled`
 * bytes. */
static hr_status encode_stream(hr_tokenize *t, input *in, int64_t filled, int64_t position,
                               hr_error *err)
{
    hr_encode_session_part *part = &t->parts[0];
    hr_encoder_begin(part->encoder, position, HR_SPECIAL_NONE);
    for (int64_t at = 0;;) {
        hr_status status = fill(in, t->window, &filled, t->window_bytes, err);
        int64_t taken = at;
        if (status == HR_OK)
            status = hr_encoder_take(part->encoder, t->window, at, filled, in->over, &taken, err);
        if (status != HR_OK || in->over) return status;
        if (taken == at && t->window_bytes == HR_PRETOKENIZER_WINDOW_MAX)
            return hr_fail(err, HR_CORRUPT,
                           "byte %lld: the pre-tokenizer finds no split in %d bytes, the limit",
                           (long long)(in->read - filled + at), HR_PRETOKENIZER_WINDOW_MAX);
        if (taken == at) status = grow_window(t, filled, err);
        if (status != HR_OK) return status;
        report_progress(t, in, in->read - filled + taken);
        const int64_t kept = hr_min(taken, hr_encoder_before(part->encoder));
        memmove(t->window, t->window + taken - kept, (size_t)(filled - taken + kept));
        filled -= taken - kept;
        at = kept;
    }
}

static hr_status encode_plain(hr_tokenize *t, input *in, hr_error *err)
{
    do {
        const int64_t position = in->read;
        int64_t filled = 0;
        hr_status status = fill(in, t->window, &filled, t->window_bytes, err);
        if (status != HR_OK) return status;
        status = hr_encode_session_plain(t, t->window, filled, in->over, name_of(in), position,
                                         err);
        in->named |= status != HR_OK;
        if (status != HR_OK) return status;
        report_progress(t, in, in->read);
    } while (!in->over);
    return HR_OK;
}

static hr_status encode_text(hr_tokenize *t, input *in, hr_error *err)
{
    int64_t filled = 0;
    if (t->plain) return encode_plain(t, in, err);
    const hr_status status = t->threads > 1 ? encode_in_parts(t, in, &filled, err) : HR_OK;
    if (status != HR_OK || in->over) return status;
    return encode_stream(t, in, filled, in->read - filled, err);
}

static void begin_text(hr_tokenize *t)
{
    if (t->words) hr_word_level_discard(t->words);
    if (t->request.around)
        hr_encode_session_output(t, t->tokenizer->first, t->tokenizer->first_count);
}

static void end_text(hr_tokenize *t)
{
    if (t->request.around)
        hr_encode_session_output(t, t->tokenizer->last, t->tokenizer->last_count);
    t->result->texts++;
    if (t->request.end) t->request.end(t->request.context);
}

/* ---- JSON lines */

static hr_status read_line(char *line, int64_t bytes, const char **text, int64_t *text_bytes,
                           const char **why)
{
    hr_json json = hr_json_over(line, bytes);
    json.zeros = true;
    *text = NULL;
    hr_json_kind kind = hr_json_next(&json);
    *why = "not a JSON object";
    if (kind != HR_JSON_OBJECT) return HR_CORRUPT;
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        const bool sought = hr_json_is(&json, "text");
        kind = hr_json_next(&json);
        if (sought && (*text || kind != HR_JSON_STRING)) {
            *why = *text          ? "\"text\" occurs twice"
                   : json.problem ? json.problem
                                  : "\"text\" is not a string";
            return HR_CORRUPT;
        }
        if (sought) {
            *text = json.value;
            *text_bytes = json.value_bytes;
        } else if (!hr_json_skip(&json, kind)) {
            break;
        }
    }
    if (kind == HR_JSON_CLOSE) kind = hr_json_next(&json);
    *why = json.problem ? json.problem : "\"text\" is missing";
    return kind == HR_JSON_END && *text ? HR_OK : HR_CORRUPT;
}

/* Encodes a complete text in memory. */
static hr_status encode_whole(hr_tokenize *t, const char *text, int64_t bytes, hr_error *err)
{
    const uint8_t *first = (const uint8_t *)text;
    hr_encoder *encoder = t->parts[0].encoder;
    int64_t taken;
    begin_text(t);
    if (!t->plain) hr_encoder_begin(encoder, 0, HR_SPECIAL_NONE);
    const hr_status status = t->plain
                                 ? hr_encode_session_plain(t, first, bytes, true, "the text", 0,
                                                           err)
                                 : hr_encoder_take(encoder, first, 0, bytes, true, &taken, err);
    if (status == HR_OK) end_text(t);
    return status;
}

static hr_status encode_line(hr_tokenize *t, char *line, int64_t bytes, int64_t number,
                             hr_error *err)
{
    const char *text, *why;
    int64_t text_bytes = 0;
    if (read_line(line, bytes, &text, &text_bytes, &why) != HR_OK)
        return hr_fail(err, HR_CORRUPT, "line %lld: %s", (long long)number, why);
    hr_error inner;
    const hr_status status = encode_whole(t, text, text_bytes, &inner);
    if (status == HR_INTERRUPTED) return hr_fail(err, status, "%s", inner.message);
    if (status != HR_OK)
        return hr_fail(err, status, "line %lld: %.500s", (long long)number, inner.message);
    t->result->bytes += text_bytes;
    return HR_OK;
}

static hr_status encode_lines(hr_tokenize *t, input *in, hr_error *err)
{
    int64_t filled = 0, number = 0;
    do {
        hr_status status = fill(in, t->window, &filled, t->window_bytes, err);
        if (status != HR_OK) return status;
        char *at = (char *)t->window, *const end = at + filled;
        while (at < end) {
            char *stop = memchr(at, '\n', (size_t)(end - at));
            if (!stop && !in->over) break;
            if (!stop) stop = end;
            if (!number++) at += hr_json_mark_bytes(at, stop - at);
            bool blank = true;
            for (const char *p = at; p < stop && blank; p++) blank = *p == ' ' || *p == '\r';
            if (!blank) status = encode_line(t, at, stop - at, number, err);
            if (status != HR_OK) return status;
            at = stop < end ? stop + 1 : end;
        }
        const bool full = end - at == t->window_bytes;
        filled = end - at;
        memmove(t->window, at, (size_t)filled);
        if (full && t->window_bytes == HR_PRETOKENIZER_WINDOW_MAX)
            return hr_fail(err, HR_CORRUPT, "line %lld: is longer than %d bytes, the limit",
                           (long long)number + 1, HR_PRETOKENIZER_WINDOW_MAX);
        if (full) status = grow_window(t, filled, err);
        if (status != HR_OK) return status;
        report_progress(t, in, in->read - filled);
    } while (!in->over || filled);
    return HR_OK;
}

hr_status hr_tokenize_file(hr_tokenize *tokenize, const char *path,
                           const hr_tokenize_request *given, hr_tokenize_result *result,
                           hr_error *err)
{
    input in;
    *result = (hr_tokenize_result){ 0 };
    tokenize->result = result;
    hr_status status = hr_options_take(&tokenize->request, sizeof tokenize->request, given, err);
    if (status == HR_OK) status = open_input(&in, path, err);
    if (status != HR_OK) return status;
    if (tokenize->request.lines) {
        status = encode_lines(tokenize, &in, err);
    } else {
        begin_text(tokenize);
        status = encode_text(tokenize, &in, err);
        result->bytes = in.read;
        if (status == HR_OK) end_text(tokenize);
    }
    if (in.file > 0) hr_file_close(&in.file);
    return of_file(&in, status, err);
}

hr_status hr_tokenize_text(hr_tokenize *tokenize, const char *text, int64_t bytes,
                           const hr_tokenize_request *given, hr_tokenize_result *result,
                           hr_error *err)
{
    *result = (hr_tokenize_result){ .bytes = bytes };
    tokenize->result = result;
    const hr_status status = hr_options_take(&tokenize->request, sizeof tokenize->request, given,
                                             err);
    if (status != HR_OK) return status;
    if (bytes > HR_PRETOKENIZER_WINDOW_MAX)
        return hr_fail(err, HR_CORRUPT, "a text of %lld bytes; the limit is %d", (long long)bytes,
                       HR_PRETOKENIZER_WINDOW_MAX);
    return encode_whole(tokenize, text, bytes, err);
}
