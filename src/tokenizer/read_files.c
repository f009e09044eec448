/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read_files.c - reads merges and the line-based files: merges.txt and .tiktoken. */
#include <string.h>

#include "base/checked.h"
#include "tokenizer/reading.h"

/* The tokens that stand for characters without a token do not take part in merges. */
static bool is_fallback(const hr_tokenizer *tokenizer, int32_t id)
{
    return tokenizer->kind != HR_BYTE_LEVEL_BPE &&
           (id == tokenizer->bpe.unknown || tokenizer->marks[id] & HR_TOKENIZER_FALLBACK);
}

hr_status hr_read_merge(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                        const hr_keys *keys, const char *left, int64_t left_bytes,
                        const char *right, int64_t right_bytes, hr_error *err)
{
    const int32_t a = hr_keys_find(keys, left, left_bytes, "", 0);
    const int32_t b = hr_keys_find(keys, right, right_bytes, "", 0);
    const int32_t both = hr_keys_find(keys, left, left_bytes, right, right_bytes);
    if (a < 0 || b < 0 || both < 0)
        return hr_fail(
            err, HR_CORRUPT,
            HR_OF_FILE "merge %lld, \"%.*s %.*s\": the token \"%.*s%.*s\" is not in the vocabulary",
            source->path, (long long)tokenizer->merges + 1, (int)hr_min(left_bytes, 60), left,
            (int)hr_min(right_bytes, 60), right, a < 0 || b >= 0 ? (int)hr_min(left_bytes, 60) : 0,
            left, a >= 0 ? (int)hr_min(right_bytes, 60) : 0, right);
    if (is_fallback(tokenizer, a) || is_fallback(tokenizer, b) || is_fallback(tokenizer, both))
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE
                       "merge %lld uses the unknown token or a byte token, which is not supported",
                       source->path, (long long)tokenizer->merges + 1);
    if (!hr_bpe_add_merge(&tokenizer->bpe, (uint32_t)a, (uint32_t)b, (int32_t)tokenizer->merges,
                          (uint32_t)both))
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "more merges than were counted", source->path);
    tokenizer->merges++;
    return HR_OK;
}

/* The next line of text [bytes] from *at on, without its line break; false: none. */
static bool next_line(const char *text, int64_t bytes, int64_t *at, const char **line,
                      int64_t *line_bytes)
{
    if (*at >= bytes) return false;
    const char *begin = text + *at;
    const char *end = memchr(begin, '\n', (size_t)(bytes - *at));
    *line = begin;
    *line_bytes = end ? end - begin : bytes - *at;
    *at += *line_bytes + 1;
    if (*line_bytes && begin[*line_bytes - 1] == '\r') --*line_bytes;
    return true;
}

hr_status hr_read_merge_lines(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                              const hr_keys *keys, char *text, hr_error *err)
{
    static const char header[] = "#version";
    const char *line;
    int64_t at = 0, bytes, number = 0;
    text += source->outline.bytes;
    while (next_line(text, source->merges_bytes, &at, &line, &bytes)) {
        number++;
        if (bytes >= (int64_t)sizeof header - 1 && !memcmp(line, header, sizeof header - 1))
            continue;
        if (!bytes && at >= source->merges_bytes) break;
        const char *space = memchr(line, ' ', (size_t)bytes);
        const int64_t left = space ? space - line : 0, right = bytes - left - 1;
        if (!space || !left || right <= 0 || memchr(space + 1, ' ', (size_t)right))
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "line %lld, \"%.*s\", is not two tokens separated by a space",
                           source->merges, (long long)number, (int)hr_min(bytes, 80), line);
        const hr_status status = hr_read_merge(tokenizer, source, keys, line, left, space + 1,
                                               right, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

static int32_t sextet(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int64_t hr_read_base64(char *text, int64_t bytes)
{
    int64_t count = 0;
    uint32_t bits = 0, have = 0;
    if (bytes % 4) return -1;
    while (bytes && text[bytes - 1] == '=') bytes--;
    for (int64_t i = 0; i < bytes; i++) {
        const int32_t value = sextet(text[i]);
        if (value < 0) return -1;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        text[count++] = (char)(uint8_t)(bits >> have);
    }
    return count;
}

hr_status hr_read_ranks(const hr_tokenizer_source *source, hr_region *region, hr_keys *keys,
                        char *text, hr_error *err)
{
    const char *line;
    int64_t at = 0, bytes, number = 0;
    (void)region;
    while (next_line(text, source->outline.bytes, &at, &line, &bytes)) {
        number++;
        if (!bytes) continue;
        const char *space = memchr(line, ' ', (size_t)bytes);
        int64_t rank = 0, digits = 0;
        if (space)
            for (const char *p = space + 1; p < line + bytes && *p >= '0' && *p <= '9'; p++)
                rank = hr_min(rank * 10 + *p - '0', HR_BPE_IDS_MAX), digits++;
        char *encoded = text + (line - text);
        const int64_t count = space ? hr_read_base64(encoded, space - line) : -1;
        if (count <= 0 || !digits || space + 1 + digits != line + bytes)
            return hr_fail(err, HR_CORRUPT, HR_OF_FILE "line %lld is not a base64 token and a rank",
                           source->path, (long long)number);
        const char *why = hr_keys_add(keys, encoded, count, rank);
        if (why)
            return hr_fail(err, HR_CORRUPT, HR_OF_FILE "line %lld, rank %lld: %s", source->path,
                           (long long)number, (long long)rank, why);
    }
    if (!keys->count)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "not a tokenizer: it has no lines",
                       source->path);
    return HR_OK;
}
