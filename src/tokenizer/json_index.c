/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/json_index.c - a state machine over bytes: nesting depth, keys of the upper two levels,
 * counts. */
#include "tokenizer/json_index.h"

#include <string.h>

#include "base/checked.h"
#include "base/file.h"

enum { BUFFER_BYTES = 1 << 16, DEPTH_MAX = 64, NUMBER_MOST = 1 << 30 };

typedef struct {
    hr_json_index *outline;
    const char *path;
    bool bare;
    int64_t at; /* offset in the file */
    int32_t depth;
    char open[DEPTH_MAX];
    bool in_string, escaped, is_key, expects_key, key_too_long, in_number;
    int64_t number;
    char key[HR_JSON_INDEX_KEY_BYTES];
    int32_t key_bytes;
    hr_json_index_member *member[2]; /* whose value is open, at depths 1 and 2 */
} scan;

static const hr_json_index_member *find(const hr_json_index_member *members, int32_t count,
                                        const char *key)
{
    for (int32_t i = 0; i < count; i++)
        if (!strcmp(members[i].key, key)) return &members[i];
    return NULL;
}

const hr_json_index_member *hr_json_index_top(const hr_json_index *outline, const char *key)
{
    return find(outline->top, outline->top_count, key);
}

const hr_json_index_member *hr_json_index_model(const hr_json_index *outline, const char *key)
{
    return find(outline->model, outline->model_count, key);
}

static bool inside(const scan *s, int32_t level, const char *key)
{
    return s->member[level] && !strcmp(s->member[level]->key, key);
}

static bool in_vocab(const scan *s)
{
    if (s->bare) return s->depth == 1;
    return s->depth == 3 && inside(s, 0, "model") && inside(s, 1, "vocab");
}

static bool in_merges(const scan *s)
{
    return !s->bare && s->depth == 3 && inside(s, 0, "model") && inside(s, 1, "merges");
}

static bool in_added(const scan *s, int32_t depth)
{
    return !s->bare && s->depth == depth && inside(s, 0, "added_tokens");
}

static void number_ends(scan *s)
{
    if (!s->in_number) return;
    s->in_number = false;
    if ((in_vocab(s) || in_added(s, 3)) && s->number > s->outline->id_most)
        s->outline->id_most = s->number;
}

/* The value of a member ends before the current byte. */
static void value_ends(scan *s)
{
    number_ends(s);
    if (s->depth < 1 || s->depth > 2 || !s->member[s->depth - 1]) return;
    hr_json_index_member *member = s->member[s->depth - 1];
    member->bytes = s->at - member->at;
    s->member[s->depth - 1] = NULL;
}

static hr_status colon(scan *s, hr_error *err)
{
    hr_json_index *outline = s->outline;
    const bool model = s->depth == 2 && inside(s, 0, "model");
    if (in_vocab(s)) outline->vocab_count++;
    if (s->bare || (s->depth != 1 && !model)) return HR_OK;
    hr_json_index_member *members = model ? outline->model : outline->top;
    int32_t *count = model ? &outline->model_count : &outline->top_count;
    s->key[s->key_bytes] = 0;
    if (s->key_too_long || *count == HR_JSON_INDEX_MEMBERS_MAX || find(members, *count, s->key))
        return hr_fail(err, HR_CORRUPT, "%s: not a tokenizer: the key \"%s\" at byte %lld %s",
                       s->path, s->key, (long long)s->at,
                       s->key_too_long                       ? "is too long"
                       : *count == HR_JSON_INDEX_MEMBERS_MAX ? "is one too many"
                                                             : "occurs twice");
    hr_json_index_member *member = &members[(*count)++];
    memcpy(member->key, s->key, sizeof member->key);
    member->at = s->at + 1;
    s->member[s->depth - 1] = member;
    return HR_OK;
}

static hr_status opens(scan *s, char c, hr_error *err)
{
    if (in_merges(s) && c == '[') s->outline->merge_count++;
    if (in_vocab(s) && !s->bare && c == '[') {
        s->outline->listed = true;
        s->outline->vocab_count++;
    }
    if (in_added(s, 2) && c == '{') s->outline->added_count++;
    if (s->depth == DEPTH_MAX)
        return hr_fail(err, HR_CORRUPT, "%s: not a tokenizer: nested more than %d deep", s->path,
                       DEPTH_MAX);
    s->open[s->depth++] = c;
    s->expects_key = c == '{';
    return HR_OK;
}

static hr_status byte(scan *s, char c, hr_error *err)
{
    if (s->in_string) {
        if (!s->escaped && c == '"') {
            s->in_string = false;
            if (in_merges(s)) s->outline->merge_count++;
        } else if (s->is_key) {
            if (s->key_bytes + 1 < HR_JSON_INDEX_KEY_BYTES) s->key[s->key_bytes++] = c;
            else s->key_too_long = true;
        }
        s->escaped = c == '\\' && !s->escaped;
        return HR_OK;
    }
    switch (c) {
    case '"':
        s->in_string = true;
        s->is_key = s->expects_key;
        s->expects_key = false;
        if (s->is_key) s->key_bytes = 0;
        s->key_too_long = false;
        return HR_OK;
    case '{':
    case '[': return opens(s, c, err);
    case ':': return colon(s, err);
    case ',':
        value_ends(s);
        s->expects_key = s->depth > 0 && s->open[s->depth - 1] == '{';
        return HR_OK;
    case '}':
    case ']':
        value_ends(s);
        if (s->depth == 0)
            return hr_fail(err, HR_CORRUPT, "%s: invalid JSON: unmatched closing bracket", s->path);
        s->depth--;
        s->expects_key = false;
        return HR_OK;
    default: break;
    }
    if (c >= '0' && c <= '9') {
        if (!s->in_number) s->number = 0;
        s->in_number = true;
        s->number = hr_min(s->number * 10 + c - '0', NUMBER_MOST);
    } else {
        number_ends(s);
    }
    return HR_OK;
}

hr_status hr_json_index_read(hr_json_index *outline, const char *path, bool bare, hr_error *err)
{
    char buffer[BUFFER_BYTES];
    int file = -1;
    *outline = (hr_json_index){ .id_most = -1 };
    hr_status status = hr_file_open(path, &file, &outline->bytes, err);
    scan s = { .outline = outline, .path = path, .bare = bare };
    while (status == HR_OK && s.at < outline->bytes) {
        const int64_t begin = s.at, count = hr_min(outline->bytes - begin, BUFFER_BYTES);
        status = hr_file_read(file, path, begin, buffer, count, err);
        for (int64_t i = 0; status == HR_OK && i < count; i++, s.at++)
            status = byte(&s, buffer[i], err);
    }
    hr_file_close(&file);
    if (status != HR_OK) return status;
    if (s.depth || s.in_string)
        return hr_fail(err, HR_CORRUPT, "%s: invalid JSON: unexpected end of file", path);
    const hr_json_index_member *vocab = hr_json_index_model(outline, "vocab");
    const hr_json_index_member *added = hr_json_index_top(outline, "added_tokens");
    outline->vocab_bytes = bare ? outline->bytes : vocab ? vocab->bytes : 0;
    outline->added_bytes = added ? added->bytes : 0;
    if (outline->listed) outline->id_most = hr_max(outline->id_most, outline->vocab_count - 1);
    return HR_OK;
}
