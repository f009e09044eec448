/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/output.c - writes text through one buffer and reports the first error at the
 * end. */
#include "tokenizer/train/output.h"

#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "headroom/config.h"

typedef struct {
    hr_file_out file;
    char *buffer;
    int64_t used;
    bool escaped; /* the output is inside a JSON string */
    hr_status status;
    hr_error *err;
} sheet;

static void put_bytes(sheet *s, const char *text, int64_t bytes)
{
    while (bytes > 0) {
        if (s->used == HR_OUTPUT_BYTES) {
            if (s->status == HR_OK)
                s->status = hr_file_append(&s->file, s->buffer, s->used, s->err);
            s->used = 0;
        }
        const int64_t room = HR_OUTPUT_BYTES - s->used, part = bytes < room ? bytes : room;
        memcpy(s->buffer + s->used, text, (size_t)part);
        s->used += part;
        text += part;
        bytes -= part;
    }
}

static void put(sheet *s, const char *text)
{
    put_bytes(s, text, (int64_t)strlen(text));
}

static void put_number(sheet *s, int64_t value)
{
    char text[32];
    hr_writer writer = { text, sizeof text, 0, false };
    hr_put(&writer, "%lld", (long long)value);
    put(s, text);
}

static void put_leaf(void *context, const uint8_t *text, int64_t bytes)
{
    sheet *s = context;
    char quoted[16];
    for (int64_t at = 0; at < bytes; at++) {
        int64_t plain = at;
        while (plain < bytes &&
               (!s->escaped || (text[plain] >= 32 && text[plain] != '"' && text[plain] != '\\')))
            plain++;
        put_bytes(s, (const char *)text + at, plain - at);
        at = plain;
        if (at == bytes) return;
        hr_writer writer = { quoted, sizeof quoted, 0, false };
        hr_json_quote(&writer, (const char *)text + at, 1);
        put_bytes(s, quoted + 1, writer.used - 2);
    }
}

static void put_token(sheet *s, const hr_vocabulary *v, uint32_t id, bool quoted)
{
    s->escaped = quoted;
    if (quoted) put(s, "\"");
    hr_vocabulary_spell(v, id, put_leaf, s);
    if (quoted) put(s, "\"");
}

static void put_special(sheet *s, const hr_vocabulary *v, const char *const *special, int32_t count)
{
    bool any = false;
    put(s, "  \"added_tokens\": [");
    /* Each special token has the id of its text; duplicates share one id. */
    for (uint32_t id = 0; id < v->count && (int32_t)id < count; id++) {
        if (v->tokens[id].left != HR_NO_TOKEN) break;
        bool is_special = false;
        for (int32_t i = 0; i < count; i++)
            if (hr_vocabulary_find(v, special[i], (int64_t)strlen(special[i])) == id)
                is_special = true;
        if (!is_special) break;
        put(s, any ? ",\n    {\n      \"id\": " : "\n    {\n      \"id\": ");
        put_number(s, id);
        put(s, ",\n      \"content\": ");
        put_token(s, v, id, true);
        put(s,
            ",\n      \"single_word\": false,\n      \"lstrip\": false,\n      \"rstrip\": false,"
            "\n      \"normalized\": false,\n      \"special\": true\n    }");
        any = true;
    }
    put(s, any ? "\n  ],\n" : "],\n");
}

static void put_section(sheet *s, const char *name, const char *value, const char *indent)
{
    put(s, indent);
    put(s, "\"");
    put(s, name);
    put(s, "\": ");
    put(s, value);
    put(s, ",\n");
}

static void put_model(sheet *s, const hr_engine *e, const hr_pipeline *p)
{
    const hr_vocabulary *v = &e->vocabulary;
    put(s, "  \"model\": {\n    \"type\": \"BPE\",\n");
    for (int32_t i = 0; i < HR_PIPELINE_FLAGS; i++) {
        if (i == 2) {
            put_section(s, "continuing_subword_prefix", "null", "    ");
            put_section(s, "end_of_word_suffix", "null", "    ");
        }
        put_section(s, hr_pipeline_flag_names[i], p->flags[i], "    ");
    }
    put(s, v->count ? "    \"vocab\": {\n" : "    \"vocab\": {");
    for (uint32_t id = 0; id < v->count; id++) {
        put(s, "      ");
        put_token(s, v, id, true);
        put(s, ": ");
        put_number(s, id);
        put(s, id + 1 < v->count ? ",\n" : "\n    ");
    }
    put(s, e->merge_count ? "},\n    \"merges\": [\n" : "},\n    \"merges\": [");
    for (int64_t i = 0; i < e->merge_count; i++) {
        put(s, "      [\n        ");
        put_token(s, v, e->merges[i].left, true);
        put(s, ",\n        ");
        put_token(s, v, e->merges[i].right, true);
        put(s, i + 1 < e->merge_count ? "\n      ],\n" : "\n      ]\n    ");
    }
    put(s, "]\n  }\n}");
}

static hr_status begin(sheet *s, const char *folder, const char *name, char *buffer, hr_error *err)
{
    *s = (sheet){ .buffer = buffer, .err = err };
    return hr_file_begin(&s->file, folder, name, err);
}

static hr_status finish(sheet *s)
{
    if (s->status == HR_OK) s->status = hr_file_append(&s->file, s->buffer, s->used, s->err);
    if (s->status == HR_OK) s->status = hr_file_commit(&s->file, s->err);
    hr_file_abort(&s->file);
    return s->status;
}

/* ---- the three files */

enum { FILES = 3 };

static const char *const names[FILES] = { "tokenizer.json", "vocab.json", "merges.txt" };

static const char *const beginnings[FILES] = { "{\n  \"version\": \"1.0\",\n", "{",
                                               "#version: 0.2\n" };

hr_status hr_output_check(const char *folder, hr_error *err)
{
    char path[HR_PATH_BYTES];
    hr_status status = HR_OK;
    for (int32_t i = 0; i < FILES && status == HR_OK; i++) {
        status = hr_path_join(folder, names[i], path, sizeof path, err);
        if (status == HR_OK && hr_file_exists(path))
            status = hr_file_check_kind(path, beginnings[i], names[i], err);
    }
    return status;
}

hr_status hr_output_write(const char *folder, const hr_engine *e, const hr_pipeline *p,
                          const char *const *special, int32_t special_count, char *buffer,
                          hr_error *err)
{
    sheet s;
    hr_status status = begin(&s, folder, names[0], buffer, err);
    if (status != HR_OK) return status;
    put(&s, beginnings[0]);
    for (int32_t i = 0; i < HR_PIPELINE_SECTIONS; i++) {
        if (i == 2) put_special(&s, &e->vocabulary, special, special_count);
        put_section(&s, hr_pipeline_section_names[i], p->sections[i], "  ");
    }
    put_model(&s, e, p);
    status = finish(&s);
    if (status == HR_OK) status = begin(&s, folder, names[1], buffer, err);
    if (status != HR_OK) return status;
    put(&s, "{");
    for (uint32_t id = 0; id < e->vocabulary.count; id++) {
        put(&s, id ? "," : "");
        put_token(&s, &e->vocabulary, id, true);
        put(&s, ":");
        put_number(&s, id);
    }
    put(&s, "}");
    status = finish(&s);
    if (status == HR_OK) status = begin(&s, folder, names[2], buffer, err);
    if (status != HR_OK) return status;
    put(&s, beginnings[2]);
    for (int64_t i = 0; i < e->merge_count; i++) {
        put_token(&s, &e->vocabulary, e->merges[i].left, false);
        put(&s, " ");
        put_token(&s, &e->vocabulary, e->merges[i].right, false);
        put(&s, "\n");
    }
    return finish(&s);
}
