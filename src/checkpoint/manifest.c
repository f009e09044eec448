/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/manifest.c - one table of the state's members serves printing and parsing. */
#include "checkpoint/manifest.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/number.h"
#include "base/writer.h"

const char hr_manifest_name[] = "manifest.json";

typedef struct {
    const char *name;
    int32_t offset;
    bool real;
} state_row;

#define INTEGER(member) \
    { \
#member, (int32_t)offsetof(hr_run_state, member), false \
    }
#define REAL(member) \
    { \
#member, (int32_t)offsetof(hr_run_state, member), true \
    }

static const state_row rows[] = {
    INTEGER(step),          INTEGER(steps),   INTEGER(tokens),    INTEGER(batch_shift),
    INTEGER(evaluated),     INTEGER(sampled), INTEGER(kept),      INTEGER(ended),
    INTEGER(best_step),     INTEGER(waited),  INTEGER(bad_steps), INTEGER(log_bytes),
    INTEGER(metrics_bytes), REAL(first_loss), REAL(last_loss),    REAL(valid_loss),
    REAL(best_loss),        REAL(seconds),
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

void hr_manifest_add(hr_manifest *manifest, const char *name, int64_t bytes, const hr_hash *hash)
{
    HR_ASSERT(manifest->file_count < HR_MANIFEST_FILES_MAX);
    HR_ASSERT(strlen(name) < HR_MANIFEST_NAME_BYTES);
    hr_manifest_file *file = &manifest->files[manifest->file_count++];
    *file = (hr_manifest_file){ .bytes = bytes };
    strcpy(file->name, name);
    hr_hash_print(hash, file->hash);
}

const hr_manifest_file *hr_manifest_find(const hr_manifest *manifest, const char *name)
{
    for (int32_t i = 0; i < manifest->file_count; i++)
        if (!strcmp(manifest->files[i].name, name)) return &manifest->files[i];
    return NULL;
}

/* ---- printing */

static void put_real(hr_writer *w, double value)
{
    char text[HR_REAL_BYTES];
    hr_put(w, "%s", isfinite(value) ? hr_real_print(value, text) : "null");
}

static void put_state(hr_writer *w, const hr_run_state *state)
{
    hr_put(w, "\"state\":{");
    for (int32_t i = 0; i < ROW_COUNT; i++) {
        const char *member = (const char *)state + rows[i].offset;
        hr_put(w, "%s\"%s\":", i ? "," : "", rows[i].name);
        if (rows[i].real) put_real(w, *(const double *)(const void *)member);
        else hr_put(w, "%lld", (long long)*(const int64_t *)(const void *)member);
    }
    hr_put(w, ",\"levels\":[");
    for (int64_t i = 0; i < state->level_count; i++) {
        hr_put(w, "%s", i ? "," : "");
        put_real(w, state->levels[i]);
    }
    hr_put(w, "]");
    if (state->loss_scale.factor > 0) {
        hr_put(w, ",\"loss_scale\":");
        put_real(w, state->loss_scale.factor);
        hr_put(w, ",\"loss_scale_steps\":%lld,\"overflows\":%lld",
               (long long)state->loss_scale.good_steps, (long long)state->loss_scale.overflows);
    }
    if (state->uncounted) hr_put(w, ",\"uncounted\":%lld", (long long)state->uncounted);
    if (state->stage.number)
        hr_put(w, ",\"stage\":%lld,\"stage_batch_shift\":%lld,\"cursors\":[",
               (long long)state->stage.number, (long long)state->stage.batch_shift);
    for (int64_t i = 0; i < state->stage.cursor_count; i++)
        hr_put(w, "%s%lld", i ? "," : "", (long long)state->stage.cursors[i]);
    hr_put(w, state->stage.number ? "]}" : "}");
}

/* The end of a manifest: `,"xxh3_128":"`, the digits, and `"}\n`. */
static const char hash_prefix[] = ",\"xxh3_128\":\"", hash_suffix[] = "\"}\n";
enum { TAIL_BYTES = sizeof hash_prefix - 1 + HR_HASH_BYTES - 1 + sizeof hash_suffix - 1 };

static void print_tail(const char *text, int64_t bytes, char tail[TAIL_BYTES + 1])
{
    hr_hash hash;
    char digits[HR_HASH_BYTES];
    hr_hash_begin(&hash);
    hr_hash_add(&hash, text, bytes);
    snprintf(tail, TAIL_BYTES + 1, "%s%s%s", hash_prefix, hr_hash_print(&hash, digits),
             hash_suffix);
}

int64_t hr_manifest_print(const hr_manifest *manifest, char text[HR_MANIFEST_BYTES])
{
    hr_writer w = { text, HR_MANIFEST_BYTES };
    char tail[TAIL_BYTES + 1];
    const hr_manifest_texts *texts = &manifest->texts;
    hr_put(&w,
           "{\"headroom_checkpoint\":%d,\"kernels\":\"%s\",\"train_text\":\"%s\",\"valid_text\":\"%"
           "s\",",
           HR_MANIFEST_VERSION, manifest->kernels, texts->train, texts->valid);
    if (*texts->tokenizer) hr_put(&w, "\"tokenizer\":\"%s\",", texts->tokenizer);
    put_state(&w, &manifest->state);
    hr_put(&w, ",\"files\":[");
    for (int32_t i = 0; i < manifest->file_count; i++) {
        const hr_manifest_file *file = &manifest->files[i];
        hr_put(&w, "%s{\"name\":\"%s\",\"bytes\":%lld,\"xxh3_128\":\"%s\"}", i ? "," : "",
               file->name, (long long)file->bytes, file->hash);
    }
    hr_put(&w, "]");
    print_tail(text, w.used, tail);
    hr_put(&w, "%s", tail);
    HR_ASSERT(!w.cut);
    return w.used;
}

/* ---- parsing */

typedef struct {
    hr_manifest *manifest;
    hr_json json;
    int64_t version;
    uint32_t seen; /* bit i: rows[i] occurred */
    bool has_files, has_levels;
} reading;

/* Reads a string with the characters that hr_manifest_print writes: file names, kernel names,
 * digits. */
static bool read_word(reading *r, char *text, int64_t bytes)
{
    static const char letters[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-";
    if (hr_json_next(&r->json) != HR_JSON_STRING || r->json.value_bytes >= bytes) return false;
    memcpy(text, r->json.value, (size_t)r->json.value_bytes + 1);
    return strspn(text, letters) == (size_t)r->json.value_bytes;
}

static bool read_integer(reading *r, int64_t *value)
{
    return hr_json_next(&r->json) == HR_JSON_NUMBER && hr_json_integer(&r->json, value);
}

static bool take_real(reading *r, hr_json_kind kind, double *value)
{
    *value = NAN;
    return kind == HR_JSON_NULL || (kind == HR_JSON_NUMBER && hr_json_real(&r->json, value));
}

static bool read_levels(reading *r)
{
    hr_run_state *state = &r->manifest->state;
    if (hr_json_next(&r->json) != HR_JSON_ARRAY) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) return r->has_levels = true;
        if (state->level_count == HR_STATE_LEVELS) return false;
        if (!take_real(r, kind, &state->levels[state->level_count++])) return false;
    }
}

static bool read_cursors(reading *r)
{
    hr_run_state *state = &r->manifest->state;
    if (state->stage.cursor_count || hr_json_next(&r->json) != HR_JSON_ARRAY) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) return true;
        if (kind != HR_JSON_NUMBER || state->stage.cursor_count == HR_STATE_CURSORS) return false;
        int64_t *cursor = &state->stage.cursors[state->stage.cursor_count++];
        if (!hr_json_integer(&r->json, cursor) || *cursor < 0) return false;
    }
}

/* Members that only runs of stages, with a scaled loss or with steps that are no updates have. */
static bool read_other(reading *r)
{
    hr_run_state *state = &r->manifest->state;
    if (hr_json_is(&r->json, "loss_scale"))
        return take_real(r, hr_json_next(&r->json), &state->loss_scale.factor);
    if (hr_json_is(&r->json, "loss_scale_steps"))
        return read_integer(r, &state->loss_scale.good_steps);
    if (hr_json_is(&r->json, "overflows")) return read_integer(r, &state->loss_scale.overflows);
    if (hr_json_is(&r->json, "uncounted")) return read_integer(r, &state->uncounted);
    if (hr_json_is(&r->json, "stage")) return read_integer(r, &state->stage.number);
    if (hr_json_is(&r->json, "stage_batch_shift"))
        return read_integer(r, &state->stage.batch_shift);
    return hr_json_is(&r->json, "cursors") && read_cursors(r);
}

static bool read_row(reading *r)
{
    for (int32_t i = 0; i < ROW_COUNT; i++) {
        char *member = (char *)&r->manifest->state + rows[i].offset;
        if (!hr_json_is(&r->json, rows[i].name)) continue;
        if (r->seen >> i & 1) return false;
        r->seen |= 1u << i;
        if (rows[i].real) return take_real(r, hr_json_next(&r->json), (double *)(void *)member);
        return read_integer(r, (int64_t *)(void *)member);
    }
    if (hr_json_is(&r->json, "levels")) return read_levels(r);
    return read_other(r);
}

static bool read_state(reading *r)
{
    if (hr_json_next(&r->json) != HR_JSON_OBJECT) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) return true;
        if (kind != HR_JSON_KEY || !read_row(r)) return false;
    }
}

static bool read_file(reading *r)
{
    hr_manifest *m = r->manifest;
    if (m->file_count == HR_MANIFEST_FILES_MAX) return false;
    hr_manifest_file *file = &m->files[m->file_count++];
    *file = (hr_manifest_file){ .bytes = -1 };
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) break;
        if (kind != HR_JSON_KEY) return false;
        const bool fine = hr_json_is(&r->json, "name") ? read_word(r, file->name, sizeof file->name)
                          : hr_json_is(&r->json, "bytes")
                              ? read_integer(r, &file->bytes)
                              : hr_json_is(&r->json, "xxh3_128") &&
                                    read_word(r, file->hash, sizeof file->hash);
        if (!fine) return false;
    }
    return file->name[0] && file->name[0] != '.' && file->bytes >= 0 && file->hash[0];
}

static bool read_files(reading *r)
{
    if (hr_json_next(&r->json) != HR_JSON_ARRAY) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) return r->has_files = true;
        if (kind != HR_JSON_OBJECT || !read_file(r)) return false;
    }
}

static bool read_member(reading *r)
{
    if (hr_json_is(&r->json, "headroom_checkpoint")) return read_integer(r, &r->version);
    if (hr_json_is(&r->json, "kernels"))
        return read_word(r, r->manifest->kernels, sizeof r->manifest->kernels);
    if (hr_json_is(&r->json, "train_text"))
        return read_word(r, r->manifest->texts.train, HR_HASH_BYTES);
    if (hr_json_is(&r->json, "valid_text"))
        return read_word(r, r->manifest->texts.valid, HR_HASH_BYTES);
    if (hr_json_is(&r->json, "tokenizer"))
        return read_word(r, r->manifest->texts.tokenizer, HR_HASH_BYTES);
    if (hr_json_is(&r->json, "state")) return read_state(r);
    if (hr_json_is(&r->json, "files")) return read_files(r);
    return hr_json_skip(&r->json, hr_json_next(&r->json));
}

static bool read_all(reading *r)
{
    if (hr_json_next(&r->json) != HR_JSON_OBJECT) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(&r->json);
        if (kind == HR_JSON_CLOSE) return hr_json_next(&r->json) == HR_JSON_END;
        if (kind != HR_JSON_KEY || !read_member(r)) return false;
    }
}

static bool is_whole(const char *text, int64_t bytes)
{
    char tail[TAIL_BYTES + 1];
    if (bytes <= TAIL_BYTES) return false;
    print_tail(text, bytes - TAIL_BYTES, tail);
    return !memcmp(text + bytes - TAIL_BYTES, tail, TAIL_BYTES);
}

/* Bounds the numbers, because the run calculates with them and a valid hash does not guarantee
 * their range. */
static bool is_in_range(const hr_run_state *state)
{
    const int64_t most = INT64_C(1) << 41;
    for (int32_t i = 0; i < ROW_COUNT; i++)
        if (!rows[i].real &&
            *(const int64_t *)(const void *)((const char *)state + rows[i].offset) < 0)
            return false;
    if (state->stage.number < 0 || state->stage.batch_shift < 0 ||
        state->stage.batch_shift > state->batch_shift || state->stage.number > most ||
        !state->stage.number != !state->stage.cursor_count)
        return false;
    const hr_loss_scale *scale = &state->loss_scale;
    if (!(scale->factor >= 0 && scale->factor <= 0x1p64) || scale->good_steps < 0 ||
        scale->overflows < 0 || state->uncounted < 0 || state->uncounted > state->step)
        return false;
    return state->step <= state->steps && state->steps <= most && state->batch_shift <= most &&
           state->bad_steps <= most && state->waited <= most && state->tokens <= most << 20;
}

hr_status hr_manifest_read(hr_manifest *manifest, const char *path, char *text, int64_t bytes,
                           hr_error *err)
{
    reading r = { .manifest = manifest, .json = hr_json_over(text, bytes), .version = -1 };
    memset(manifest, 0, sizeof *manifest);
    if (!is_whole(text, bytes))
        return hr_fail(err, HR_CORRUPT, "%s: damaged manifest: its hash does not match", path);
    if (!read_all(&r) || r.version < 0)
        return hr_fail(err, HR_CORRUPT, "%s: not a checkpoint manifest", path);
    if (r.version == 1)
        return hr_fail(err, HR_USAGE,
                       "%s: has version 1, whose runs drew random numbers from another generator: "
                       "dropout and the data order would change within the run. Resume it with the "
                       "release that wrote it, or start a new run from its weights: use "
                       "model.from=DIR and another --out",
                       path);
    if (r.version != HR_MANIFEST_VERSION)
        return hr_fail(err, HR_USAGE,
                       "%s: has version %lld, this program reads version %d: use the program that "
                       "wrote it, or another folder",
                       path, (long long)r.version, HR_MANIFEST_VERSION);
    if (r.seen == (1u << ROW_COUNT) - 1 && r.has_levels && r.has_files &&
        is_in_range(&manifest->state))
        return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s: its run state is incomplete", path);
}
