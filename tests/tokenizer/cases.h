/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tokenizer/cases.h - opens a tokenizer in exactly the memory that it asks for, and reads
 * files of cases: one {"text", "ids", "decoded"} per line. */
#ifndef HR_TESTS_TOKENIZER_CASES_H
#define HR_TESTS_TOKENIZER_CASES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tokenizer/encoder.h"

enum { IDS_MAX = 1 << 18, PIECE_BYTES = 1 << 16 };

typedef struct {
    hr_tokenizer *tokenizer;
    hr_encoder *encoder;
    void *tables, *work;
    uint32_t ids[IDS_MAX];
    int64_t count;
} subject;

static inline bool keep(void *context, const uint32_t *ids, int64_t count)
{
    subject *s = context;
    if (s->count + count > IDS_MAX) return false;
    memcpy(s->ids + s->count, ids, (size_t)count * sizeof *ids);
    s->count += count;
    return true;
}

static inline void *room(int64_t bytes)
{
    return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static inline hr_status open_subject(subject *s, const char *path, const char *pattern,
                                     hr_error *err)
{
    static hr_tokenizer_source source;
    s->tables = s->work = NULL;
    hr_status status = hr_tokenizer_probe(&source, path, pattern, err);
    if (status != HR_OK) return status;
    s->tables = room(source.table_bytes);
    void *scratch = room(source.scratch_bytes);
    hr_region region = hr_region_over(s->tables, source.table_bytes);
    status = hr_tokenizer_place(&s->tokenizer, &region,
                                hr_region_over(scratch, source.scratch_bytes), &source, 0, err);
    free(scratch);
    if (status != HR_OK) return status;
    const int64_t bytes = hr_encoder_bytes(s->tokenizer, PIECE_BYTES);
    s->work = room(bytes);
    region = hr_region_over(s->work, bytes);
    return hr_encoder_place(&s->encoder, &region, s->tokenizer, PIECE_BYTES, keep, s, err);
}

static inline void close_subject(subject *s)
{
    free(s->tables);
    free(s->work);
}

/* Encodes in windows that grow by 1 to `window` bytes each; 0: all at once. Each window is a
 * separate copy, so that the sanitizer detects reads outside it. */
static inline hr_status encode_all(subject *s, const uint8_t *text, int64_t bytes, int64_t window,
                                   hr_error *err)
{
    int64_t taken = 0, base = 0, size = 0, at = 0;
    s->count = 0;
    hr_encoder_begin(s->encoder, 0, HR_SPECIAL_AROUND);
    for (;;) {
        const int64_t more = window ? 1 + rand() % window : bytes;
        size = base + size + more > bytes ? bytes - base : size + more;
        uint8_t *copy = malloc((size_t)size + 1);
        memcpy(copy, text + base, (size_t)size);
        const bool whole = base + size == bytes && (!window || rand() % 2);
        const hr_status status = hr_encoder_take(s->encoder, copy, at, size, whole, &taken, err);
        free(copy);
        if (status != HR_OK || whole) return status;
        const int64_t before = hr_encoder_before(s->encoder);
        const int64_t drop = taken > before ? taken - before : 0;
        base += drop;
        size -= drop;
        at = taken - drop;
    }
}

/* A parsed line of a file of cases. */
typedef struct {
    const char *text, *decoded;
    int64_t text_bytes, decoded_bytes;
    uint32_t ids[IDS_MAX];
    int64_t count;
} expected;

static inline bool read_expected(char *line, int64_t bytes, expected *e)
{
    hr_json json = hr_json_over(line, bytes);
    hr_json_kind kind;
    json.zeros = true;
    e->text = e->decoded = NULL;
    e->count = 0;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return false;
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        const bool text = hr_json_is(&json, "text"), decoded = hr_json_is(&json, "decoded");
        const bool ids = hr_json_is(&json, "ids");
        kind = hr_json_next(&json);
        if (text) {
            e->text = json.value;
            e->text_bytes = json.value_bytes;
        } else if (decoded) {
            e->decoded = json.value;
            e->decoded_bytes = json.value_bytes;
        } else if (ids) {
            int64_t id = 0;
            while (hr_json_next(&json) == HR_JSON_NUMBER && e->count < IDS_MAX)
                if (hr_json_integer(&json, &id)) e->ids[e->count++] = (uint32_t)id;
        } else if (!hr_json_skip(&json, kind)) {
            return false;
        }
    }
    return kind == HR_JSON_CLOSE && e->text;
}

/* Reads a whole file and appends a zero byte; null: there is no such file. */
static inline char *read_all(const char *path, int64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = ftell(file);
    rewind(file);
    char *text = malloc((size_t)*bytes + 1);
    if (fread(text, 1, (size_t)*bytes, file) != (size_t)*bytes) *bytes = 0;
    text[*bytes] = 0;
    fclose(file);
    return text;
}

/* ---- assertions; include cmocka.h first */

static inline int64_t decode_all(const subject *of, const uint32_t *ids, int64_t count,
                                 uint8_t *out, int64_t bytes)
{
    hr_decoder decoder = { .tokenizer = of->tokenizer };
    int64_t written = 0, used;
    for (int64_t at = 0; at < count; at += used) {
        const int64_t some = at + 1 + rand() % 5;
        written += hr_decoder_add(&decoder, ids + at, (some < count ? some : count) - at,
                                  out + written, bytes - written, &used);
    }
    return written + hr_decoder_end(&decoder, out + written);
}

static inline void expect_line(subject *s, const expected *e, const char *name, int64_t number)
{
    static uint8_t out[1 << 22];
    static const int64_t windows[] = { 0, 1, 7, 60 };
    hr_error err;
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        const hr_status status = encode_all(s, (const uint8_t *)e->text, e->text_bytes, windows[w],
                                            &err);
        if (status != HR_OK || s->count != e->count || memcmp(s->ids, e->ids, (size_t)e->count * 4))
            fail_msg("%s line %lld, windows of %lld: %s", name, (long long)number,
                     (long long)windows[w], status != HR_OK ? err.message : "other ids");
    }
    if (!e->decoded) return;
    const int64_t bytes = decode_all(s, e->ids, e->count, out, sizeof out);
    if (bytes != e->decoded_bytes || memcmp(out, e->decoded, (size_t)bytes))
        fail_msg("%s line %lld: decoded as %.*s", name, (long long)number, (int)bytes, out);
}

static inline void expect_refused(subject *s, const char *file, const char *sentence)
{
    char path[] = "/tmp/tokenizer_testXXXXXX";
    hr_error err = { HR_OK, "" };
    const int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    fputs(file, out);
    fclose(out);
    const hr_status status = open_subject(s, path, NULL, &err);
    remove(path);
    close_subject(s);
    if (status != HR_CORRUPT || !strstr(err.message, sentence))
        fail_msg("%s\n gave %d: %s\n not: %s", file, status, err.message, sentence);
}

#endif
