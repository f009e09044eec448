/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/pipeline.c - reads a tokenizer.json and reprints its sections with two more
 * spaces of indentation per level. */
#include "tokenizer/train/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"

const char *const hr_pipeline_section_names[HR_PIPELINE_SECTIONS] = {
    "truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"
};
const char *const hr_pipeline_flag_names[HR_PIPELINE_FLAGS] = { "dropout", "unk_token", "fuse_unk",
                                                                "byte_fallback", "ignore_merges" };

enum { PRE_TOKENIZER = 3 };

/* At most six bytes per character, plus the indentation of each line. */
int64_t hr_pipeline_bytes(int64_t text_bytes)
{
    return 10 * text_bytes + (64 << 10);
}

void hr_json_quote(hr_writer *writer, const char *text, int64_t bytes)
{
    static const char names[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    hr_put(writer, "\"");
    for (int64_t at = 0; at < bytes;) {
        int64_t plain = at;
        while (plain < bytes && (uint8_t)text[plain] >= 32 && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        hr_put(writer, "%.*s", (int)(plain - at), text + at);
        if (plain < bytes) {
            const uint8_t c = (uint8_t)text[plain];
            if (c >= 32) hr_put(writer, "\\%c", c);
            else if (names[c]) hr_put(writer, "\\%c", names[c]);
            else hr_put(writer, "\\u%04x", c);
        }
        at = plain + 1;
    }
    hr_put(writer, "\"");
}

/* ---- reprinting a value */

static void put_line(hr_writer *writer, int32_t depth)
{
    hr_put(writer, "\n%*s", 2 * depth, "");
}

/* Prints the value that starts with `kind`. `depth`: indentation level of its line. */
static bool reprint(hr_json *json, hr_json_kind kind, hr_writer *writer, int32_t depth)
{
    const int32_t outside = json->depth - (kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY);
    char closing[HR_JSON_DEPTH_MAX];
    int32_t open = 0;
    bool first = true, after_key = false;
    for (;; kind = hr_json_next(json)) {
        if (kind == HR_JSON_WRONG || kind == HR_JSON_END) return false;
        if (kind == HR_JSON_CLOSE) {
            open--;
            if (!first) put_line(writer, depth + open);
            hr_put(writer, "%c", closing[open]);
            first = false;
        } else {
            if (open > 0 && !after_key) {
                hr_put(writer, first ? "" : ",");
                put_line(writer, depth + open);
            }
            first = after_key = false;
            if (kind == HR_JSON_KEY || kind == HR_JSON_STRING)
                hr_json_quote(writer, json->value, json->value_bytes);
            else if (kind == HR_JSON_NUMBER)
                hr_put(writer, "%.*s", (int)json->value_bytes, json->value);
            else if (kind == HR_JSON_TRUE) hr_put(writer, "true");
            else if (kind == HR_JSON_FALSE) hr_put(writer, "false");
            else if (kind == HR_JSON_NULL) hr_put(writer, "null");
            if (kind == HR_JSON_KEY) {
                hr_put(writer, ": ");
                after_key = true;
            }
            if (kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY) {
                hr_put(writer, kind == HR_JSON_OBJECT ? "{" : "[");
                closing[open++] = kind == HR_JSON_OBJECT ? '}' : ']';
                first = true;
            }
        }
        if (open == 0 && !after_key) return json->depth == outside && !writer->cut;
    }
}

/* ---- reading a pre-tokenizer */

typedef struct {
    hr_pipeline *pipeline;
    const char *path;
    bool is_bytes; /* ByteLevel was read: nothing may follow */
} reading;

typedef struct {
    char type[32], behavior[32];
    const char *pattern;
    int64_t pattern_bytes;
    bool is_string, invert, individual, prefix_space, use_regex;
} stage_text;

/* Copies a word that an error message may quote: printable ASCII only. */
static void take_word(const hr_json *json, char word[32])
{
    snprintf(word, 32, "%.*s", (int)json->value_bytes, json->value);
    for (char *c = word; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
}

/* Reads the fields of a pre-tokenizer after its opening brace, up to its end or to a list of
 * pre-tokenizers. */
static hr_status read_fields(reading *r, hr_json *json, stage_text *s, bool *has_list,
                             hr_error *err)
{
    *has_list = false;
    *s = (stage_text){ .use_regex = true, .prefix_space = true };
    for (;;) {
        hr_json_kind kind = hr_json_next(json);
        if (kind == HR_JSON_CLOSE) return HR_OK;
        if (kind != HR_JSON_KEY) break;
        char key[32];
        take_word(json, key);
        kind = hr_json_next(json);
        const bool truth = kind == HR_JSON_TRUE;
        if (!strcmp(key, "type") && kind == HR_JSON_STRING) take_word(json, s->type);
        else if (!strcmp(key, "behavior") && kind == HR_JSON_STRING) take_word(json, s->behavior);
        else if (!strcmp(key, "invert")) s->invert = truth;
        else if (!strcmp(key, "individual_digits")) s->individual = truth;
        else if (!strcmp(key, "add_prefix_space")) s->prefix_space = truth;
        else if (!strcmp(key, "use_regex")) s->use_regex = truth;
        else if (!strcmp(key, "trim_offsets")) continue;
        else if (!strcmp(key, "pretokenizers") && kind == HR_JSON_ARRAY) {
            *has_list = true;
            return HR_OK;
        } else if (!strcmp(key, "pattern") && kind == HR_JSON_OBJECT &&
                   hr_json_next(json) == HR_JSON_KEY) {
            s->is_string = hr_json_is(json, "String");
            if (hr_json_next(json) != HR_JSON_STRING) break;
            s->pattern = json->value;
            s->pattern_bytes = json->value_bytes;
            if (hr_json_next(json) != HR_JSON_CLOSE) break;
        } else {
            return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: %s is not supported", r->path, key);
        }
    }
    return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: invalid", r->path);
}

static bool behavior_of(const char *name, hr_pretokenizer_behavior *behavior)
{
    static const char *const names[] = {
        [HR_PRETOKENIZER_ISOLATED] = "Isolated",
        [HR_PRETOKENIZER_REMOVED] = "Removed",
        [HR_PRETOKENIZER_CONTIGUOUS] = "Contiguous",
        [HR_PRETOKENIZER_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [HR_PRETOKENIZER_MERGED_WITH_NEXT] = "MergedWithNext"
    };
    for (int32_t i = 0; i < (int32_t)(sizeof names / sizeof *names); i++) {
        if (strcmp(names[i], name) != 0) continue;
        *behavior = (hr_pretokenizer_behavior)i;
        return true;
    }
    return false;
}

static hr_status add_stage(reading *r, const stage_text *s, hr_error *err)
{
    hr_pretokenizer_desc *cut = &r->pipeline->cut;
    hr_pretokenizer_stage stage = { .kind = HR_PRETOKENIZER_SPLIT, .invert = s->invert };
    if (r->is_bytes)
        return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: %s after ByteLevel is not supported",
                       r->path, s->type);
    if (!strcmp(s->type, "ByteLevel")) {
        r->is_bytes = true;
        if (s->prefix_space && cut->stage_count)
            return hr_fail(err, HR_CORRUPT,
                           "%s: pre_tokenizer: add_prefix_space after others is not supported",
                           r->path);
        r->pipeline->prefix_space = s->prefix_space;
        if (!s->use_regex) return HR_OK;
        stage.pattern = hr_pattern_gpt2;
        stage.pattern_bytes = (int64_t)strlen(hr_pattern_gpt2);
    } else if (!strcmp(s->type, "Digits")) {
        stage.kind = HR_PRETOKENIZER_DIGITS;
        stage.behavior = s->individual ? HR_PRETOKENIZER_ISOLATED : HR_PRETOKENIZER_CONTIGUOUS;
    } else if (!strcmp(s->type, "Split") && s->pattern) {
        stage.kind = s->is_string ? HR_PRETOKENIZER_STRING : HR_PRETOKENIZER_SPLIT;
        stage.pattern = s->pattern;
        stage.pattern_bytes = s->pattern_bytes;
        if (!behavior_of(s->behavior, &stage.behavior))
            return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: unknown behavior %s of Split",
                           r->path, s->behavior);
    } else {
        return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: %s is not supported", r->path,
                       *s->type ? s->type : "one without a type");
    }
    if (cut->stage_count == HR_PRETOKENIZER_STAGES_MAX)
        return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: more than %d stages", r->path,
                       HR_PRETOKENIZER_STAGES_MAX);
    cut->stages[cut->stage_count++] = stage;
    return HR_OK;
}

/* Reads text [bytes] in place. The patterns keep pointing into it. */
static hr_status read_stages(reading *r, char *text, int64_t bytes, hr_error *err)
{
    hr_json json = hr_json_over(text, bytes);
    stage_text stage;
    bool has_list, ignored;
    if (hr_json_next(&json) != HR_JSON_OBJECT)
        return hr_fail(err, HR_CORRUPT, "%s: has no pre_tokenizer; a byte-level one is needed",
                       r->path);
    hr_status status = read_fields(r, &json, &stage, &has_list, err);
    if (status == HR_OK && !has_list) status = add_stage(r, &stage, err);
    while (status == HR_OK && has_list) {
        const hr_json_kind kind = hr_json_next(&json);
        if (kind == HR_JSON_CLOSE) break;
        if (kind != HR_JSON_OBJECT)
            return hr_fail(err, HR_CORRUPT, "%s: pre_tokenizer: invalid", r->path);
        status = read_fields(r, &json, &stage, &ignored, err);
        if (status == HR_OK) status = add_stage(r, &stage, err);
    }
    if (status == HR_OK && !r->is_bytes)
        status = hr_fail(err, HR_CORRUPT,
                         "%s: pre_tokenizer: has no ByteLevel, which training needs", r->path);
    return status;
}

/* ---- the file */

/* Writes to the unused end of the region. The caller then takes the bytes used. */
static hr_writer writer_in(const hr_region *region)
{
    const int64_t used = hr_round_up(region->used, 64);
    return (hr_writer){ (char *)region->base + used, region->bytes - used, 0, false };
}

static const char *print_value(hr_json *json, hr_region *region, int32_t depth)
{
    hr_writer writer = writer_in(region);
    if (writer.bytes < 64 || !reprint(json, hr_json_next(json), &writer, depth)) return 0;
    return hr_region_take_raw(region, writer.used + 1, 1);
}

static const char **find_name(hr_json *json, const char *const *names, const char **values,
                              int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (hr_json_is(json, names[i])) return &values[i];
    return 0;
}

/* Reads the flags of the model and skips the vocabulary and merges. */
static bool read_model(hr_pipeline *p, hr_json *json, hr_region *region)
{
    if (hr_json_next(json) != HR_JSON_OBJECT) return false;
    for (;;) {
        const hr_json_kind kind = hr_json_next(json);
        if (kind == HR_JSON_CLOSE) return true;
        if (kind != HR_JSON_KEY) return false;
        const char **flag = find_name(json, hr_pipeline_flag_names, p->flags, HR_PIPELINE_FLAGS);
        if (flag) *flag = print_value(json, region, 2);
        if (flag ? !*flag : !hr_json_skip(json, hr_json_next(json))) return false;
    }
}

static hr_status read_file(hr_pipeline *p, hr_region *region, const char *path, hr_json *json,
                           hr_error *err)
{
    bool good = hr_json_next(json) == HR_JSON_OBJECT;
    while (good) {
        const hr_json_kind kind = hr_json_next(json);
        if (kind == HR_JSON_CLOSE) return HR_OK;
        if (kind != HR_JSON_KEY) break;
        const char **section = find_name(json, hr_pipeline_section_names, p->sections,
                                         HR_PIPELINE_SECTIONS);
        if (section) {
            *section = print_value(json, region, 1);
            good = *section != 0;
        } else if (hr_json_is(json, "model")) {
            good = read_model(p, json, region);
        } else if (hr_json_is(json, "added_tokens")) {
            good = hr_json_next(json) == HR_JSON_ARRAY;
            if (good && hr_json_next(json) != HR_JSON_CLOSE)
                return hr_fail(
                    err, HR_CORRUPT,
                    "%s: has added tokens, which training does not support; give them with "
                    "--special",
                    path);
        } else {
            good = hr_json_skip(json, hr_json_next(json));
        }
    }
    return hr_fail(err, HR_CORRUPT, "%s: byte %lld: %s", path, (long long)json->at,
                   json->problem ? json->problem : "not a tokenizer.json");
}

hr_status hr_pipeline_read(hr_pipeline *p, hr_region *region, const char *path, char *text,
                           int64_t bytes, hr_error *err)
{
    static const char *const flags[HR_PIPELINE_FLAGS] = { "null", "null", "false", "false",
                                                          "false" };
    *p = (hr_pipeline){ .cut = { .stage_count = 0 } };
    for (int32_t i = 0; i < HR_PIPELINE_SECTIONS; i++) p->sections[i] = "null";
    memcpy(p->flags, flags, sizeof flags);
    hr_json json = hr_json_over_file(text, bytes);
    hr_status status = read_file(p, region, path, &json, err);
    if (status != HR_OK) return status;
    if (strcmp(p->sections[2], "null") != 0)
        return hr_fail(err, HR_CORRUPT, "%s: has a normalizer, which training does not support",
                       path);
    const char *cut = p->sections[PRE_TOKENIZER];
    const int64_t cut_bytes = (int64_t)strlen(cut);
    char *stages = hr_region_take_raw(region, cut_bytes + 1, 1);
    if (!stages) return hr_fail(err, HR_NO_FIT, "%s: out of memory", path);
    memcpy(stages, cut, (size_t)cut_bytes + 1);
    reading r = { p, path, false };
    return read_stages(&r, stages, cut_bytes, err);
}

/* ---- named pipelines */

static const char *pattern_of(const char *name, int32_t stage, bool *digits)
{
    const bool one = stage == 1;
    *digits = !strcmp(name, "super-paper");
    if (*digits) return one ? hr_pattern_super_paper_one : hr_pattern_super_paper_two;
    if (!strcmp(name, "super")) return one ? hr_pattern_super_one : hr_pattern_super_two;
    if (!strcmp(name, "cl100k")) return hr_pattern_cl100k;
    if (!strcmp(name, "qwen")) return hr_pattern_qwen;
    if (!strcmp(name, "o200k")) return hr_pattern_o200k;
    return name;
}

hr_status hr_pipeline_name(hr_pipeline *p, hr_region *region, const char *pattern, int32_t stage,
                           bool prefix_space, hr_error *err)
{
    static const char bytes_decoder[] = "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                                        "true,\"trim_offsets\":true,\"use_regex\":true}}";
    hr_writer writer = writer_in(region);
    bool digits = false;
    hr_put(&writer, "{\"pre_tokenizer\":");
    if (!pattern || !strcmp(pattern, "gpt2")) {
        hr_put(&writer,
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
               "\"use_regex\":true}",
               prefix_space ? "true" : "false");
    } else {
        const char *text = pattern_of(pattern, stage, &digits);
        hr_put(&writer, "{\"type\":\"Sequence\",\"pretokenizers\":[%s",
               digits ? "{\"type\":\"Digits\",\"individual_digits\":false}," : "");
        hr_put(&writer, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        hr_json_quote(&writer, text, (int64_t)strlen(text));
        hr_put(&writer, "},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
                        "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}");
    }
    hr_put(&writer, ",%s", bytes_decoder);
    if (writer.cut || writer.bytes < 1) return hr_fail(err, HR_NO_FIT, "pattern: out of memory");
    char *text = hr_region_take_raw(region, writer.used + 1, 1);
    return hr_pipeline_read(p, region, "pattern", text, writer.used, err);
}
