/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/normalizer.c - a queue of characters before each operation and one after the last. Each
 * operation consumes its input queue while its output queue has room. */
#include "tokenizer/normalizer.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/graphemes.h"
#include "tokenizer/nfc.h"
#include "tokenizer/normalizing.h"
#include "tokenizer/unicode.h"

bool hr_normalizer_replaces_spaces(const hr_normalize_op *op)
{
    return op->kind == HR_NORMALIZE_REPLACE && op->pattern_count == 1 && op->pattern[0] == ' ' &&
           op->content_count == 1 && op->content[0] == HR_METASPACE;
}

void hr_normalizer_finish(hr_normalizer *n)
{
    n->composes = false;
    n->strips = 0;
    for (int32_t i = 0; i < n->count; i++) {
        hr_normalize_op *op = &n->ops[i];
        n->composes |= op->kind == HR_NORMALIZE_NFC;
        n->strips += op->kind == HR_NORMALIZE_STRIP;
        op->fallback[0] = 0;
        for (int32_t at = 1, held = 0; at < op->pattern_count; at++) {
            while (held && op->pattern[held] != op->pattern[at]) held = op->fallback[held - 1];
            if (op->pattern[held] == op->pattern[at]) held++;
            op->fallback[at] = (uint8_t)held;
        }
    }
    n->spaces_back = n->sentencepiece ||
                     (n->count && hr_normalizer_replaces_spaces(&n->ops[n->count - 1]));
    n->plain = !n->sentencepiece && n->spaces_back &&
               (n->count == 1 ||
                (n->count == 2 && n->ops[0].kind == HR_NORMALIZE_PREPEND &&
                 n->ops[0].content_count == 1 &&
                 (n->ops[0].content[0] == HR_METASPACE || n->ops[0].content[0] == ' ')));
}

bool hr_normalizer_acts(const hr_normalizer *n)
{
    return n->count || n->sentencepiece;
}

int64_t hr_normalizing_bytes(const hr_normalizer *n)
{
    if (!hr_normalizer_acts(n)) return 0;
    return (int64_t)sizeof(hr_normalizing) + 2 * 64 +
           (n->composes ? (int64_t)sizeof(hr_normalize_composing) : 0) +
           n->strips * (HR_NORMALIZE_RUNS * (int64_t)sizeof(hr_normalize_run) + 64);
}

hr_status hr_normalizing_place(hr_normalizing **work, hr_region *region,
                               const hr_normalizer *normalizer, hr_error *err)
{
    *work = NULL;
    if (!hr_normalizer_acts(normalizer)) return HR_OK;
    hr_normalizing *made = hr_region_take(region, 1, sizeof *made);
    hr_normalize_composing *composing = NULL;
    if (normalizer->composes) composing = hr_region_take_raw(region, 1, sizeof *composing);
    if (!made || (normalizer->composes && !composing))
        return hr_fail(err, HR_NO_FIT, "normalization: needs %lld bytes",
                       (long long)hr_normalizing_bytes(normalizer));
    for (int32_t i = 0; i < normalizer->count; i++) {
        hr_normalize_stage *s = &made->stages[i];
        if (normalizer->ops[i].kind != HR_NORMALIZE_STRIP) continue;
        s->runs = hr_region_take_raw(region, HR_NORMALIZE_RUNS, sizeof *s->runs);
        if (!s->runs)
            return hr_fail(err, HR_NO_FIT, "normalization: needs %lld bytes",
                           (long long)hr_normalizing_bytes(normalizer));
    }
    made->normalizer = normalizer;
    made->composing = composing;
    hr_normalizing_begin(made);
    *work = made;
    return HR_OK;
}

void hr_normalizing_begin(hr_normalizing *w)
{
    for (int32_t i = 0; i <= w->normalizer->count; i++) {
        hr_normalize_stage *s = &w->stages[i];
        s->at = s->count = s->matched = s->run_at = s->run_count = s->todo_at = s->todo_count = 0;
        s->ended = s->begun = s->clustered = false;
        s->blanks = 0;
        s->pending = NULL;
        s->pending_count = 0;
        s->text = NULL;
        s->text_bytes = 0;
        s->cluster_count = s->cluster_bytes = 0;
        s->grapheme = (hr_grapheme){ .any = false };
    }
    if (w->composing) w->composing->bytes = w->composing->out_bytes = w->composing->out_at = 0;
    w->begun = w->space_before = false;
    w->spaces = 0;
    w->problem = NULL;
}

/* ---- queues */

/* Moves the pending output of a stage to the next queue; false: the queue is full. */
static bool flush_pending(hr_normalize_stage *s, hr_normalize_stage *to)
{
    while (s->pending_count && to->count < HR_NORMALIZE_QUEUE) {
        to->queue[to->count++] = *s->pending++;
        s->pending_count--;
    }
    while (s->text_bytes && to->count < HR_NORMALIZE_QUEUE) {
        const int64_t taken = hr_utf8_take(s->text, s->text_bytes, &to->queue[to->count++]);
        s->text += taken;
        s->text_bytes -= taken;
    }
    return to->count < HR_NORMALIZE_QUEUE;
}

static void add_pending(hr_normalize_stage *s, const uint32_t *points, int32_t count)
{
    s->pending = points;
    s->pending_count = count;
}

static bool is_space(uint32_t point)
{
    return hr_unicode_class_of(point) & HR_SPACE;
}

/* ---- operations: a step consumes the next character or adds pending output. With `end` no
 * character is left; the step returns false when no output is left. */

static bool step_replace(const hr_normalize_op *op, hr_normalize_stage *s, hr_normalize_stage *to,
                         bool end)
{
    if (end) {
        const int32_t held = s->matched;
        add_pending(s, op->pattern, held);
        s->matched = 0;
        return held > 0;
    }
    const uint32_t point = s->queue[s->at];
    if (point == op->pattern[s->matched]) {
        s->at++;
        if (++s->matched < op->pattern_count) return true;
        s->matched = 0;
        add_pending(s, op->content, op->content_count);
    } else if (s->matched) {
        const int32_t kept = op->fallback[s->matched - 1];
        add_pending(s, op->pattern, s->matched - kept);
        s->matched = kept;
    } else {
        s->at++;
        to->queue[to->count++] = point;
    }
    return true;
}

static bool step_spaces(const hr_normalize_op *op, hr_normalize_stage *s, hr_normalize_stage *to,
                        bool end)
{
    static const uint32_t space = ' ';
    const uint32_t point = end ? 0 : s->queue[s->at];
    if (!end && point == ' ') {
        s->at++;
        s->blanks++;
    } else if (s->blanks) {
        if (s->blanks == 1) add_pending(s, &space, 1);
        else add_pending(s, op->content, op->content_count);
        s->blanks = 0;
    } else if (!end) {
        s->at++;
        to->queue[to->count++] = point;
    } else {
        return false;
    }
    return true;
}

/* Holds white space back, as runs of one character, until other text follows. */
static bool step_strip(hr_normalizing *w, const hr_normalize_op *op, hr_normalize_stage *s,
                       hr_normalize_stage *to, bool end)
{
    if (end) return false;
    const uint32_t point = s->queue[s->at];
    const bool space = is_space(point);
    if (space && op->left && !s->begun) {
        s->at++;
    } else if (space && op->right) {
        s->at++;
        if (s->run_count && s->runs[s->run_count - 1].point == point &&
            s->runs[s->run_count - 1].count < UINT32_MAX)
            s->runs[s->run_count - 1].count++;
        else if (s->run_count < HR_NORMALIZE_RUNS)
            s->runs[s->run_count++] = (hr_normalize_run){ point, 1 };
        else
            w->problem =
                "white space that changes more than 65536 times, the limit of the normalizer Strip";
    } else if (s->run_at < s->run_count) {
        hr_normalize_run *run = &s->runs[s->run_at];
        to->queue[to->count++] = run->point;
        if (--run->count == 0) s->run_at++;
    } else {
        s->run_at = s->run_count = 0;
        s->begun = true;
        s->at++;
        to->queue[to->count++] = point;
    }
    return true;
}

static int64_t put_utf8(uint8_t *out, uint32_t point)
{
    if (point < 0x80) return out[0] = (uint8_t)point, 1;
    if (point < 0x800) {
        out[0] = (uint8_t)(0xc0 | point >> 6);
        out[1] = (uint8_t)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | point >> 12);
        out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | point >> 18);
    out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (point & 0x3f));
    return 4;
}

/* Replaces a cluster of up to five bytes as a whole if the map contains a prefix of it. */
static void close_cluster(const hr_normalize_op *op, hr_normalize_stage *s)
{
    uint8_t text[8 * 4];
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->cluster_count; i++) bytes += put_utf8(text + bytes, s->cluster[i]);
    const hr_charsmap_match match = hr_charsmap_shortest(op->map, text, bytes);
    if (match.taken) {
        s->text = match.text;
        s->text_bytes = match.bytes;
    } else {
        memcpy(s->todo, s->cluster, sizeof s->todo);
        s->todo_at = 0;
        s->todo_count = s->cluster_count;
    }
    s->cluster_count = s->cluster_bytes = 0;
}

static void map_one(const hr_normalize_op *op, hr_normalize_stage *s, hr_normalize_stage *to,
                    uint32_t point)
{
    uint8_t text[4];
    const hr_charsmap_match match = hr_charsmap_shortest(op->map, text, put_utf8(text, point));
    s->text = match.text;
    s->text_bytes = match.bytes;
    if (!match.taken) to->queue[to->count++] = point;
}

static bool step_charsmap(const hr_normalize_op *op, hr_normalize_stage *s, hr_normalize_stage *to,
                          bool end)
{
    if (s->todo_at < s->todo_count) return map_one(op, s, to, s->todo[s->todo_at++]), true;
    if (end) {
        if (s->cluster_count) return close_cluster(op, s), true;
        return false;
    }
    const uint32_t point = s->queue[s->at];
    const uint8_t class = hr_grapheme_class_of(point);
    if (hr_grapheme_breaks(&s->grapheme, class)) {
        s->clustered = false; /* the previous cluster had more than five bytes */
        if (s->cluster_count) return close_cluster(op, s), true;
    }
    uint8_t text[4];
    s->at++;
    hr_grapheme_next(&s->grapheme, class);
    if (s->clustered) return map_one(op, s, to, point), true;
    s->cluster[s->cluster_count++] = point;
    s->cluster_bytes += (int32_t)put_utf8(text, point);
    if (s->cluster_bytes < 6) return true;
    s->clustered = true;
    memcpy(s->todo, s->cluster, sizeof s->todo);
    s->todo_at = 0;
    s->todo_count = s->cluster_count;
    s->cluster_count = s->cluster_bytes = 0;
    return true;
}

static bool step_compatible(hr_normalize_stage *s, hr_normalize_stage *to, bool end)
{
    if (end) return false;
    const uint32_t point = s->queue[s->at++];
    const hr_compatible *parts = point < 0xa0 ? NULL : hr_compatible_of(point);
    if (parts) add_pending(s, hr_compatible_points + parts->points, parts->count);
    else to->queue[to->count++] = point;
    return true;
}

/* Collects characters as UTF-8 and composes the complete runs. */
static bool step_compose(hr_normalizing *w, hr_normalize_stage *s, hr_normalize_stage *to, bool end)
{
    hr_normalize_composing *c = w->composing;
    if (c->out_at < c->out_bytes) {
        c->out_at += hr_utf8_take(c->out + c->out_at, c->out_bytes - c->out_at,
                                  &to->queue[to->count++]);
        return true;
    }
    while (s->at < s->count && c->bytes + 4 <= (int64_t)sizeof c->text)
        c->bytes += put_utf8(c->text + c->bytes, s->queue[s->at++]);
    int64_t taken, written;
    if (!hr_nfc_compose(c->text, c->bytes, end, c->out, sizeof c->out, &c->form, &taken,
                        &written) ||
        (!taken && c->bytes + 4 > (int64_t)sizeof c->text)) {
        w->problem = "too many combining characters in a row";
        return true;
    }
    memmove(c->text, c->text + taken, (size_t)(c->bytes - taken));
    c->bytes -= taken;
    c->out_at = 0;
    c->out_bytes = written;
    return written > 0;
}

static bool step(hr_normalizing *w, int32_t i, bool end)
{
    const hr_normalize_op *op = &w->normalizer->ops[i];
    hr_normalize_stage *s = &w->stages[i], *to = &w->stages[i + 1];
    switch (op->kind) {
    case HR_NORMALIZE_PREPEND:
        if (end) return false;
        if (s->begun) to->queue[to->count++] = s->queue[s->at++];
        else add_pending(s, op->content, op->content_count);
        s->begun = true;
        return true;
    case HR_NORMALIZE_REPLACE: return step_replace(op, s, to, end);
    case HR_NORMALIZE_SPACES: return step_spaces(op, s, to, end);
    case HR_NORMALIZE_STRIP: return step_strip(w, op, s, to, end);
    case HR_NORMALIZE_CHARSMAP: return step_charsmap(op, s, to, end);
    case HR_NORMALIZE_COMPATIBLE: return step_compatible(s, to, end);
    case HR_NORMALIZE_NFC: break;
    }
    return step_compose(w, s, to, end);
}

/* Runs one operation as far as possible. Returns whether anything changed. */
static bool run(hr_normalizing *w, int32_t i)
{
    hr_normalize_stage *s = &w->stages[i], *to = &w->stages[i + 1];
    const int32_t at = s->at;
    if (to->at == to->count) to->at = to->count = 0;
    const int32_t count = to->count;
    const bool ended = to->ended;
    while (!w->problem && flush_pending(s, to)) {
        if (s->at < s->count) {
            step(w, i, false);
        } else if (s->ended && !to->ended) {
            if (!step(w, i, true) && !s->pending_count && !s->text_bytes) to->ended = true;
        } else {
            break;
        }
    }
    return s->at != at || to->count != count || to->ended != ended;
}

/* ---- input and output */

static void feed(hr_normalize_stage *s, const uint8_t *text, int64_t bytes, bool whole,
                 int64_t *taken)
{
    if (s->at < s->count) return;
    s->at = s->count = 0;
    while (*taken < bytes && s->count < HR_NORMALIZE_QUEUE)
        *taken += hr_utf8_take(text + *taken, bytes - *taken, &s->queue[s->count++]);
    s->ended = whole && *taken == bytes;
}

static void drain(const hr_normalizer *n, hr_normalize_stage *s, uint8_t *out, int64_t room,
                  int64_t *written)
{
    while (s->at < s->count && *written + 4 <= room) {
        const uint32_t point = s->queue[s->at++];
        if (n->spaces_back && point == HR_METASPACE) out[(*written)++] = ' ';
        else *written += put_utf8(out + *written, point);
    }
}

/* The fast path for an optional prefix and U+2581 to space: copies the text in between. */
static void normalize_plain(hr_normalizing *w, const uint8_t *text, int64_t bytes, bool whole,
                            uint8_t *out, int64_t room, hr_normalized *result)
{
    int64_t at = 0, to = 0;
    if (bytes && !w->begun) {
        if (w->normalizer->count == 2) out[to++] = ' ';
        w->begun = true;
    }
    while (at < bytes && to < room) {
        const int64_t most = hr_min(bytes - at, room - to);
        const uint8_t *found = memchr(text + at, 0xe2, (size_t)most);
        const int64_t count = found ? found - (text + at) : most;
        memcpy(out + to, text + at, (size_t)count);
        at += count;
        to += count;
        if (!found || to == room) continue;
        if (at + 3 <= bytes && hr_is_metaspace(text + at)) {
            out[to++] = ' ';
            at += 3;
        } else {
            out[to++] = text[at++];
        }
    }
    *result = (hr_normalized){ at, to, at == bytes };
    (void)whole;
}

const char *hr_normalize(hr_normalizing *w, const uint8_t *text, int64_t bytes, bool whole,
                         uint8_t *out, int64_t room, hr_normalized *result)
{
    const hr_normalizer *n = w->normalizer;
    hr_normalize_stage *last = &w->stages[n->count];
    *result = (hr_normalized){ 0, 0, false };
    HR_ASSERT(room > 0);
    if (n->sentencepiece)
        return hr_normalize_sentencepiece_text(w, text, bytes, whole, out, room, result);
    if (n->plain) return normalize_plain(w, text, bytes, whole, out, room, result), NULL;
    for (bool moved = true; moved && !w->problem;) {
        const int64_t taken = result->taken, written = result->written;
        feed(&w->stages[0], text, bytes, whole, &result->taken);
        moved = false;
        for (int32_t i = 0; i < n->count; i++) moved |= run(w, i);
        drain(n, last, out, room, &result->written);
        moved |= result->taken != taken || result->written != written;
    }
    result->done = result->taken == bytes && last->at == last->count && (!whole || last->ended);
    return w->problem;
}

int64_t hr_normalize_short(hr_normalizing *work, const uint8_t *text, int64_t bytes, uint8_t *out,
                           int64_t room)
{
    hr_normalized result;
    hr_normalizing_begin(work);
    const char *why = hr_normalize(work, text, bytes, true, out, room, &result);
    hr_normalizing_begin(work);
    return !why && result.done ? result.written : -1;
}
